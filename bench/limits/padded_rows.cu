// What a GPU's memory allows where rows are padded: rows of `width` elements that stand `stride` elements apart are read
// and added up, or copied to rows that stand as far apart, and nothing is computed. Neighbouring lanes take neighbouring
// elements, so that no sector is asked for twice; no kernel that reads or writes such rows can be much faster.
//
// For each case it prints the best of several launches as a part of what dense rows reach here, bytes being those of
// distinct sectors of 32 bytes, as rooflines count them; and the part that would be left if memory gave and took 64 bytes
// at a time, reading first what is written only in part. Build and run:
//
//     nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a -o limits padded_rows.cu && ./limits

#include <algorithm>
#include <cstdio>
#include <cuda_runtime.h>
#include <set>

constexpr size_t BYTES = size_t(1) << 30;
constexpr int THREADS = 256;

__device__ __forceinline__ float part(float v) { return v; }
__device__ __forceinline__ double part(double v) { return v; }
__device__ __forceinline__ double part(double2 v) { return v.x + v.y; }

// Elements of all rows one after the other: U of a thread are under way at a time.
template <class T, int WIDTH, int U, bool COPY>
__global__ void __launch_bounds__(THREADS) pass(const T* a, T* c, size_t rows, int stride, T* out) {
    const size_t elements = rows * WIDTH, step = size_t(gridDim.x) * THREADS;
    auto sum = part(T{});
    for (size_t first = blockIdx.x * size_t(THREADS) + threadIdx.x; first < elements; first += U * step) {
        T held[U];
#pragma unroll
        for (int u = 0; u < U; ++u) {
            const size_t i = first + u * step;
            held[u] = i < elements ? a[i / WIDTH * stride + i % WIDTH] : T{};
        }
#pragma unroll
        for (int u = 0; u < U; ++u) {
            const size_t i = first + u * step;
            if constexpr (COPY) {
                if (i < elements) c[i / WIDTH * stride + i % WIDTH] = held[u];
            } else {
                sum += part(held[u]);
            }
        }
    }
    if (sum == 1.2345f) out[0] = a[0];  // Never, but the compiler does not know.
}

static cudaEvent_t before, after;
static int multiprocessors;

// Seconds of the fastest launch with so many blocks on a multiprocessor.
template <class T, int WIDTH, int U, bool COPY>
double seconds(const T* a, T* c, size_t rows, int stride, T* out, int blocks) {
    float least = 1e9f;
    for (int i = 0; i < 4; ++i) {
        cudaEventRecord(before);
        pass<T, WIDTH, U, COPY><<<blocks * multiprocessors, THREADS>>>(a, c, rows, stride, out);
        cudaEventRecord(after);
        cudaEventSynchronize(after);
        float milliseconds = 0;
        cudaEventElapsedTime(&milliseconds, before, after);
        least = std::min(least, milliseconds);
    }
    return least / 1e3;
}

// Distinct pieces of so many bytes that a row touches in the mean, and how many of them hold other bytes too.
struct Touched {
    double pieces, partly;
};

Touched touched(long width, long stride, long piece) {
    std::set<long> all, partly;
    const long rows = piece;  // Where rows stand repeats after as many rows as a piece has bytes.
    for (long row = 0; row < rows; ++row) {
        const long from = row * stride, to = from + width;
        for (long p = from / piece; p <= (to - 1) / piece; ++p) all.insert(p);
        if (stride > width) {
            for (long p = to / piece; p <= (from + stride - 1) / piece; ++p) partly.insert(p);
        }
    }
    double both = 0;
    for (long p : partly) both += all.count(p);
    return {double(all.size()) / rows, both / rows};
}

static void *a, *c, *out;

template <class T, int WIDTH, bool COPY> double sectors_per_second(int stride) {
    const size_t rows = BYTES / (stride * sizeof(T));
    double least = 1e9;
    for (int blocks : {4, 8, 32}) {
        least = std::min(least, seconds<T, WIDTH, 4, COPY>((const T*)a, (T*)c, rows, stride, (T*)out, blocks));
        least = std::min(least, seconds<T, WIDTH, 8, COPY>((const T*)a, (T*)c, rows, stride, (T*)out, blocks));
    }
    const double sectors = touched(WIDTH * sizeof(T), stride * sizeof(T), 32).pieces;
    return (COPY ? 2 : 1) * rows * sectors * 32 / least;
}

template <class T, int WIDTH> void measure(std::initializer_list<int> strides) {
    const double dense[2] = {sectors_per_second<T, WIDTH, false>(WIDTH), sectors_per_second<T, WIDTH, true>(WIDTH)};
    printf("%2d bytes x %2d: dense reads %.0f GB/s, copies %.0f GB/s\n", int(sizeof(T)), WIDTH, dense[0] / 1e9,
           dense[1] / 1e9);
    for (int stride : strides) {
        const double sectors = 32 * touched(WIDTH * sizeof(T), stride * sizeof(T), 32).pieces;
        const Touched wide = touched(WIDTH * sizeof(T), stride * sizeof(T), 64);
        const double read = 64 * wide.pieces, copied = 64 * (2 * wide.pieces + wide.partly);
        printf("  stride %2d: reads %.2f (by 64 bytes %.2f), copies %.2f (by 64 bytes %.2f)\n", stride,
               sectors_per_second<T, WIDTH, false>(stride) / dense[0], sectors / read,
               sectors_per_second<T, WIDTH, true>(stride) / dense[1], 2 * sectors / copied);
    }
    fflush(stdout);
}

int main() {
    cudaDeviceProp device;
    if (cudaGetDeviceProperties(&device, 0) != cudaSuccess) {
        printf("this needs a GPU; skipped\n");
        return 0;
    }
    if (cudaMalloc(&a, BYTES) != cudaSuccess || cudaMalloc(&c, BYTES) != cudaSuccess ||
        cudaMalloc(&out, 16) != cudaSuccess) {
        printf("there is no room for 2 GiB; skipped\n");
        return 0;
    }
    cudaMemset(a, 0, BYTES);
    multiprocessors = device.multiProcessorCount;
    cudaEventCreate(&before);
    cudaEventCreate(&after);
    printf("%s, rows of 1 GiB\n", device.name);
    measure<float, 4>({5, 7, 8});
    measure<float, 9>({10, 12, 16});
    measure<float, 16>({17, 19, 24});
    measure<float, 24>({25, 27, 32});
    measure<float, 32>({33, 35, 40});
    measure<double, 4>({5, 7, 8});
    measure<double, 9>({10, 12, 16});
    measure<double, 16>({17, 19, 24});
    measure<double, 24>({25, 27, 32});
    measure<double, 32>({33, 35, 40});
    measure<double2, 4>({5, 7, 8});
    measure<double2, 9>({10, 12, 16});
    measure<double2, 16>({17, 19, 24});
    measure<double2, 24>({25, 27, 32});
    measure<double2, 32>({33, 35, 40});
    if (cudaDeviceSynchronize() != cudaSuccess) {
        printf("failed: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 1;
    }
}
