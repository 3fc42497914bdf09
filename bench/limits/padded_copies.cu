// What padded rows cost whoever reads and writes them: the products of `bench tsm --sweep strides`, without a product. Rows of `width`
// elements that stand `stride` elements apart, 2 GiB from the first to the last, are copied to rows as far apart, as A C does,
// or those of two matrices are read and added up, as A^T B does; and dense rows of matrices that start 1, 2 and 3 elements after a multiple of
// 16 bytes. Numbers are random, as those of products. Each is done in several ways, and the fastest counts:
//
//   elements   lanes take neighbouring elements of all rows, 4 or 8 of a thread under way
//   chunks     blocks take turns with chunks of rows, each element held by one thread, all under way
//   fetched    the same, the sectors of gaps fetched to the second-level cache in the same turn, or one or two turns ahead
//   a chunk a block    chunks, or chunks with the sectors of gaps fetched first, by blocks that make room after one: all that are on the GPU
//              at a time have neighbouring chunks
//   prefetched, loaded    the same, but sectors that are written in part, and no others, are prefetched, by each block for itself or by every 16th for
//              16; or loaded and waited for. Chunks are of about 2, 8 and 16 KB, and blocks have room for all that fit or for four or two of them
//   staged     the same through shared memory, in blocks of 64, 128 and 256 threads; sectors that are written in part are asked for by a copy of a word of each,
//              before rows or behind them
//
// where rows touch less memory by 32 bytes than by 64, or are written to parts of sectors, with either granularity of device memory (granularity.cu); in elements, and in pieces of 8 and 16 bytes where rows consist of such and begin at multiples of them, on several grids. A block that
// adds up leaves as many numbers as C has: where sums have to be the same every time, which rows a block adds up is settled beforehand, and so
// each has a part of its own. What the same reads take where blocks leave nothing is in the table as the figure `reads`: no kernel that
// multiplies has less to do.
// Prints a table (CSV) that bench/goals.py reads beside the one of `bench tsm --sweep strides` on the same GPU:
//
//     nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a -o limits padded_copies.cu
//     ./limits DATE > limits-nvidia-h200-DATE.csv
//
// With widths and strides, as in `./limits DATE 24/25 32/33`, it measures those only. With --ways behind them the best of each way to copy is written to
// the other stream: kernels that stage rows in shared memory are to be held against those ways that do.

#include <algorithm>
#include <cstdio>
#include <cuda_runtime.h>
#include <map>
#include <set>
#include <string>

#include "padded.cuh"

constexpr size_t BYTES = size_t(2) << 30;

static int multiprocessors;
static char *of_a, *of_b, *of_c;  // Multiples of 256.
static char *a, *b, *c;           // Where matrices start.

struct Best {
    double seconds = 1e9;
    std::string way;
    std::map<std::string, double> ways;  // The best of each.
    void take(double found, const std::string& how) {
        if (found < seconds) seconds = found, way = how;
        const auto known = ways.emplace(how, found).first;
        known->second = std::min(known->second, found);
    }
    void take(const Best& other, const std::string& at) {
        for (const auto& [how, found] : other.ways) take(found, how + at);
    }
};

// Elements of all rows one after the other: U of a thread are under way at a time. Where nothing is copied, those of a second matrix too, and a
// part of so many words is left.
template <class T, int WIDTH, int U, bool COPY, int LEFT>
__global__ void __launch_bounds__(THREADS) elements(const T* a, const T* b, T* c, size_t rows, int stride) {
    const size_t all = rows * WIDTH, step = size_t(gridDim.x) * THREADS;
    float sum = 0;
    for (size_t first = blockIdx.x * size_t(THREADS) + threadIdx.x; first < all; first += U * step) {
        T held[U], other[U];
#pragma unroll
        for (int u = 0; u < U; ++u) {
            const size_t i = first + u * step, at = i / WIDTH * stride + i % WIDTH;
            held[u] = i < all ? a[at] : T{};
            if (!COPY) other[u] = i < all ? b[at] : T{};
        }
#pragma unroll
        for (int u = 0; u < U; ++u) {
            const size_t i = first + u * step;
            if constexpr (COPY) {
                if (i < all) c[i / WIDTH * stride + i % WIDTH] = held[u];
            } else {
                sum += part(held[u]) + part(other[u]);
            }
        }
    }
    if (sum == 1.2345f) c[0] = a[0];  // Never, but the compiler does not know.
    if (!COPY) leave<LEFT>((float*)c, sum);
}

// Copies by blocks that make room after one chunk of about so many bytes.
template <class T, int WIDTH, int ROWS> void by_one_chunk(Best& best, size_t rows, int stride, const std::string& of) {
    const T* from = (const T*)a;
    T* to = (T*)c;
    const size_t all = rows / ROWS;
    for (int room : {0, 48 << 10, 90 << 10}) {
        cudaFuncSetAttribute(one_chunk<T, WIDTH, ROWS, PREFETCHED>, cudaFuncAttributeMaxDynamicSharedMemorySize, 90 << 10);
        cudaFuncSetAttribute(one_chunk<T, WIDTH, ROWS, LOADED>, cudaFuncAttributeMaxDynamicSharedMemorySize, 90 << 10);
        best.take(median_of_five([=] { one_chunk<T, WIDTH, ROWS, PREFETCHED><<<all, THREADS, room>>>(from, to, all, stride, 1); }), "prefetched" + of);
        best.take(median_of_five([=] { one_chunk<T, WIDTH, ROWS, PREFETCHED><<<all, THREADS, room>>>(from, to, all, stride, 16); }), "prefetched by every 16th" + of);
        best.take(median_of_five([=] { one_chunk<T, WIDTH, ROWS, LOADED><<<all, THREADS, room>>>(from, to, all, stride, 1); }), "loaded" + of);
    }
}

// Copies through shared memory, 64 bytes of a thread.
template <class T, int WIDTH, int SIZE> void staged(Best& best, size_t rows, int stride, const std::string& of) {
    constexpr int FEW = 64 * SIZE / int(sizeof(T)) / WIDTH;
    // Rows are a multiple of 2048.
    constexpr int ROWS = FEW >= 512 ? 512 : FEW >= 256 ? 256 : FEW >= 128 ? 128 : FEW >= 64 ? 64 : FEW >= 32 ? 32 : FEW >= 16 ? 16 : FEW >= 8 ? 8 : 4;
    const T* from = (const T*)a;
    T* to = (T*)c;
    const int all = rows / ROWS;
    best.take(median_of_five([=] { staged_chunk<T, WIDTH, ROWS, SIZE, NO_WORDS><<<all, SIZE>>>(from, to, stride); }), "staged" + of);
    if (WIDTH * sizeof(T) % 32 == 0 && stride * sizeof(T) % 32 == 0) return;
    best.take(median_of_five([=] { staged_chunk<T, WIDTH, ROWS, SIZE, WORDS_FIRST><<<all, SIZE>>>(from, to, stride); }), "staged behind words" + of);
    best.take(median_of_five([=] { staged_chunk<T, WIDTH, ROWS, SIZE, WORDS_BEHIND><<<all, SIZE>>>(from, to, stride); }), "staged before words" + of);
}

template <class T, int WIDTH, bool COPY, int LEFT> void tried(Best& best, size_t rows, int stride) {
    const std::string of = " of " + std::to_string(sizeof(T)) + " bytes";
    const T *from = (const T*)a, *second = (const T*)b;
    T* to = (T*)c;
    // A chunk has about 2048 elements: eight of a thread.
    constexpr int ROWS = 2048 / WIDTH / 32 * 32 > 0 ? 2048 / WIDTH / 32 * 32 : 32;
    for (int blocks : {4, 8, 16}) {
        const int grid = blocks * multiprocessors;
        best.take(median_of_five([=] { elements<T, WIDTH, 4, COPY, LEFT><<<grid, THREADS>>>(from, second, to, rows, stride); }), "elements" + of);
        best.take(median_of_five([=] { elements<T, WIDTH, 8, COPY, LEFT><<<grid, THREADS>>>(from, second, to, rows, stride); }), "elements" + of);
        best.take(median_of_five([=] { chunks<T, WIDTH, ROWS, NEVER, COPY, LEFT><<<grid, THREADS>>>(from, second, to, rows, stride); }), "chunks" + of);
        if constexpr (COPY) {
            best.take(median_of_five([=] { chunks<T, WIDTH, ROWS, 0, true><<<grid, THREADS>>>(from, second, to, rows, stride); }), "fetched" + of);
            best.take(median_of_five([=] { chunks<T, WIDTH, ROWS, 1, true><<<grid, THREADS>>>(from, second, to, rows, stride); }), "fetched" + of);
            best.take(median_of_five([=] { chunks<T, WIDTH, ROWS, 2, true><<<grid, THREADS>>>(from, second, to, rows, stride); }), "fetched" + of);
        }
    }
    const int all = rows / ROWS;
    best.take(median_of_five([=] { chunks<T, WIDTH, ROWS, NEVER, COPY, LEFT><<<all, THREADS>>>(from, second, to, rows, stride); }), "a chunk a block" + of);
    if constexpr (COPY) {
        best.take(median_of_five([=] { chunks<T, WIDTH, ROWS, 0, true><<<all, THREADS>>>(from, second, to, rows, stride); }), "a fetched chunk a block" + of);
        // Rows are a multiple of 2048.
        constexpr int FEW = 256 / int(sizeof(T)) * 8 / WIDTH;
        constexpr int POWER = FEW >= 64 ? 64 : FEW >= 32 ? 32 : FEW >= 16 ? 16 : FEW >= 8 ? 8 : 4;
        by_one_chunk<T, WIDTH, POWER>(best, rows, stride, of);
        by_one_chunk<T, WIDTH, POWER * 4>(best, rows, stride, of);
        by_one_chunk<T, WIDTH, POWER * 8>(best, rows, stride, of);
        staged<T, WIDTH, 64>(best, rows, stride, of);
        staged<T, WIDTH, 128>(best, rows, stride, of);
        staged<T, WIDTH, 256>(best, rows, stride, of);
    }
}

// Rows of WIDTH words, in all pieces of at most so many words that they consist of.
template <int WIDTH, bool COPY, int LEFT> Best words(size_t rows, int stride, int most = 4) {
    Best best;
    tried<float, WIDTH, COPY, LEFT>(best, rows, stride);
    if constexpr (WIDTH % 2 == 0) {
        if (stride % 2 == 0 && most >= 2) tried<float2, WIDTH / 2, COPY, LEFT>(best, rows, stride / 2);
    }
    if constexpr (WIDTH % 4 == 0) {
        if (stride % 4 == 0 && most >= 4) tried<float4, WIDTH / 4, COPY, LEFT>(best, rows, stride / 4);
    }
    return best;
}

static const char* date;
static std::string name;
static std::set<std::string> chosen;  // All if it is empty.
static bool each_way;

// Pieces of so many bytes that hold some of 64 rows of `width` bytes that stand `stride` bytes apart.
static int pieces(int width, int stride, int piece) {
    int all = 0, next = 0;
    for (int row = 0; row < 64; ++row) {
        const int behind = (row * stride + width - 1) / piece + 1;
        all += behind - std::max(row * stride / piece, next);
        next = behind;
    }
    return all;
}

template <int WIDTH, int WORDS> void measure(std::initializer_list<const char*> dtypes, std::initializer_list<int> strides) {
    for (int stride : strides) {
        if (!chosen.empty() && !chosen.count(std::to_string(WIDTH) + "/" + std::to_string(stride))) continue;
        const size_t rows = BYTES / (stride * 4 * WORDS) / 2048 * 2048;
        // Matrices of dense rows start anywhere, and so do their pieces.
        const bool dense = stride == WIDTH;
        const int most = dense ? WORDS : 4;
        const auto start = [=](int elements) { return dense ? elements * 4 * WORDS : 0; };
        a = of_a + start(1), b = of_b + start(2), c = of_c + start(3);
        Best copied, read, alone;
        for (int bytes : {64, 32}) {
            constexpr int ROW = WIDTH * WORDS * 4;
            const int apart = stride * WORDS * 4;
            const bool fewer = pieces(ROW, apart, 32) * 32 < pieces(ROW, apart, 64) * 64;
            const bool in_part = !dense && (ROW % 32 != 0 || apart % 32 != 0);
            if (bytes == 32 && !fewer && !in_part) continue;
            cudaDeviceSetLimit(cudaLimitMaxL2FetchGranularity, bytes);
            const std::string at = bytes == 32 ? " at 32 bytes" : "";
            copied.take(words<WIDTH * WORDS, true, 0>(rows, stride * WORDS, most), at);
            if (bytes == 32 && !fewer) continue;
            read.take(words<WIDTH * WORDS, false, WIDTH * WIDTH * WORDS>(rows, stride * WORDS, most), at);
            alone.take(words<WIDTH * WORDS, false, 0>(rows, stride * WORDS, most), at);
        }
        cudaDeviceSetLimit(cudaLimitMaxL2FetchGranularity, 64);
        if (each_way) {
            for (const auto& [how, seconds] : copied.ways) fprintf(stderr, "%s %d/%d: %.0f us %s\n", *dtypes.begin(), WIDTH, stride, seconds * 1e6, how.c_str());
        }
        for (const char* dtype : dtypes) {
            printf("strides,tsmm,%s,%zu,%d,%d,%d %d %d,%.9g,%s,%s,%s\n", dtype, rows, WIDTH, WIDTH, stride, WIDTH, stride,
                   copied.seconds, copied.way.c_str(), name.c_str(), date);
            const auto sums = [=](const char* figure, const Best& best) {
                printf("%s,tsmttsm,%s,%d,%d,%zu,%d %d %d,%.9g,%s,%s,%s\n", figure, dtype, WIDTH, WIDTH, rows, stride, stride, WIDTH,
                       best.seconds, best.way.c_str(), name.c_str(), date);
            };
            sums("strides", read);
            sums("reads", alone);
        }
        fflush(stdout);
    }
}

template <int WORDS> void all(std::initializer_list<const char*> dtypes) {
    measure<4, WORDS>(dtypes, {4, 5, 7, 8});
    measure<9, WORDS>(dtypes, {9, 10, 12, 16});
    measure<16, WORDS>(dtypes, {16, 17, 19, 24});
    measure<24, WORDS>(dtypes, {24, 25, 27, 32});
    measure<32, WORDS>(dtypes, {32, 33, 35, 40});
}

int main(int argc, char** argv) {
    cudaDeviceProp device;
    if (cudaGetDeviceProperties(&device, 0) != cudaSuccess) {
        fprintf(stderr, "this needs a GPU; skipped\n");
        return 0;
    }
    constexpr size_t ROOM = BYTES + 256;
    if (cudaMalloc(&of_a, ROOM) != cudaSuccess || cudaMalloc(&of_b, ROOM) != cudaSuccess || cudaMalloc(&of_c, ROOM) != cudaSuccess) {
        fprintf(stderr, "there is no room for 6 GiB; skipped\n");
        return 0;
    }
    for (char* matrix : {of_a, of_b, of_c}) random_numbers<<<1024, 256>>>((float*)matrix, ROOM / 4, unsigned(matrix - of_a));
    date = argc > 1 ? argv[1] : "";
    for (int i = 2; i < argc; ++i) {
        if (argv[i] == std::string("--ways")) each_way = true;
        else chosen.insert(argv[i]);
    }
    name = device.name;
    multiprocessors = device.multiProcessorCount;
    printf("figure,operation,dtype,m,n,k,row_strides,seconds,way,gpu,date\n");
    all<1>({"f32"});
    all<2>({"f64", "c64"});
    all<4>({"c128"});
    if (cudaDeviceSynchronize() != cudaSuccess) {
        fprintf(stderr, "failed: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 1;
    }
}
