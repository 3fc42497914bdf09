// What a GPU does that moves the rows of a product A C of a million rows in f32 or complex64 and executes as many matrix instructions as it
// takes where numbers are split into tf32 parts, with nothing in the way: bulk copies bring groups of 64 rows to a ring in shared memory and
// take as many bytes back as came, and warps execute three `mma.sync` m16n8k8 for each product of 16 x 8 x 8 numbers:
//
//     copies     no instructions
//     whole      instructions on registers, on numbers of the rows
//     fragments  the same, for which warps also read what they multiply from shared memory, without conflicts, as often as tiles of so many
//                rows and columns do, and make the parts of what they read of rows; those of the small matrix lie there as parts
//
// No tile stands on another's scheduler, no sum leaves, and nobody waits for anybody but for rows to come. Instructions are those of whole
// ones over all columns and terms (of complex numbers over real and imaginary parts), but that one or two terms that are left over cost nothing, as
// if threads added them up meanwhile.
//
// A call is a node of a graph of 20, replayed after 0.3 s of rest; neighbouring calls use other rows, so that nothing is in the second-level
// cache. Microseconds are medians of five. With a date and a file it writes a table (CSV) that bench/goals.py reads beside that of
// `bench tsm --sweep short` on the same GPU: the least time of `fragments`, or of `whole` where that is more. Widths may follow.
//
//     nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a -o split bulk_and_split.cu && ./split
//     ./split DATE limits-nvidia-h200-DATE-split.csv 49 57

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <time.h>

#include "bulk.cuh"
#include "doubles.cuh"
#include "graph.cuh"

constexpr int ROWS = 64, ALL_ROWS = 1000000, GROUPS = ALL_ROWS / ROWS, MOST_STAGES = 12;
constexpr int CALLS = 20, LOOKS = 3, REPLAYS = 5;
constexpr size_t OPERAND = size_t(3) << 30;
// Bytes of the parts of the small matrix, and of the ring.
constexpr int SMALL = 32 << 10, RING = 184 << 10;
// Tiles of a warp that reads no fragments.
constexpr int SUMS = 8;

__device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// The leading part of a number in tf32, and the rest of it, larger by 1024.
__device__ __forceinline__ void split(float x, unsigned& leading, unsigned& rest) {
    asm volatile("cvt.rna.tf32.f32 %0, %1;" : "=r"(leading) : "f"(x));
    rest = __float_as_uint(1024.0f * (x - __uint_as_float(leading)));
}

// The products of a warp for a group: so many hundredths of one of 16 x 8 x 8, tiles of HIGH x WIDE at a time, or SUMS on registers.
template <int WARPS, int HIGH, int WIDE>
__global__ void __launch_bounds__(32 * (WARPS + 1)) moves_and_products(const char* a, char* c, int bytes, int stages, int hundredths, float* out) {
    extern __shared__ __align__(128) char ring[];
    __shared__ uint64_t full[MOST_STAGES], empty[MOST_STAGES];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const unsigned* const small = reinterpret_cast<const unsigned*>(ring + stages * bytes) + lane;
    if (threadIdx.x == 0) {
        for (int s = 0; s < stages; ++s) {
            init(&full[s], 1);
            init(&empty[s], WARPS);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    // Random enough to cost what parts cost: numbers of 13 bits behind the point.
    for (int i = threadIdx.x; i < SMALL / 4; i += blockDim.x) {
        reinterpret_cast<unsigned*>(ring + stages * bytes)[i] = 0x3f000000u + (i * 0x9E3779B9u >> 9 & 0x7fe000u);
    }
    __syncthreads();
    if (warp == WARPS) {
        if (lane > 0) return;
        int asked = blockIdx.x, passed = 0;
        Place to;
        auto ask = [&]() {
            if (asked >= GROUPS) return;
            if (passed >= stages) wait(&empty[to.stage], to.parity ^ 1);
            expect(&full[to.stage], bytes);
            bring(ring + to.stage * bytes, a + size_t(asked) * bytes, bytes, &full[to.stage]);
            asked += gridDim.x;
            ++passed;
            to.next(stages);
        };
        carry(c, ring, full, GROUPS, bytes, stages, ask);
        return;
    }
    constexpr bool READS = HIGH > 0;
    constexpr int OF_A = READS ? HIGH / 16 : 1, OF_B = READS ? WIDE / 8 : 1, TILES = READS ? OF_A * OF_B : SUMS, AT_ONCE = 100 * TILES;
    float sums[TILES][4] = {}, rests[TILES][4] = {};
    // Warps do not all have their turns with the same groups.
    int due = warp * (AT_ONCE / WARPS), place = warp, column = 0;
    Place from;
    for (int g = blockIdx.x; g < GROUPS; g += gridDim.x) {
        wait(&full[from.stage], from.parity);
        const float* const numbers = reinterpret_cast<const float*>(ring + from.stage * bytes) + lane;
        const int rounds = bytes / 128 - 4 * OF_A;
        unsigned leading[OF_A][4], rest[OF_A][4];
        auto read = [&]() {
#pragma unroll
            for (int i = 0; i < OF_A; ++i) {
#pragma unroll
                for (int r = 0; r < 4; ++r) split(numbers[32 * (place + 4 * i + r)], leading[i][r], rest[i][r]);
            }
            place = place + 4 * OF_A < rounds ? place + 4 * OF_A : 0;
        };
        if (!READS) {
            read();
            __syncwarp();
            if (lane == 0) arrive(&empty[from.stage]);
        }
        for (due += hundredths; due >= AT_ONCE; due -= AT_ONCE) {
            if (READS) read();
#pragma unroll
            for (int j = 0; j < (READS ? OF_B : SUMS); ++j) {
                unsigned b[2], parts[2];
#pragma unroll
                for (int r = 0; r < 2; ++r) {
                    b[r] = READS ? small[32 * (column + 4 * j + r)] : leading[0][j / 2 % 2 + r];
                    parts[r] = READS ? small[32 * (column + 4 * j + 2 + r)] : rest[0][j / 2 % 2 + r];
                }
#pragma unroll
                for (int i = 0; i < OF_A; ++i) {
                    const int tile = i + j * OF_A;
                    multiply(rests[tile], rest[i], b);
                    multiply(rests[tile], leading[i], parts);
                    multiply(sums[tile], leading[i], b);
                }
            }
            column = column + 8 * OF_B <= SMALL / 128 - 4 * OF_B ? column + 4 * OF_B : 0;
        }
        if (READS) {
            __syncwarp();
            if (lane == 0) arrive(&empty[from.stage]);
        }
        from.next(stages);
    }
    float all = 0;
    for (int tile = 0; tile < TILES; ++tile) {
        for (int r = 0; r < 4; ++r) all += sums[tile][r] + rests[tile][r];
    }
    if (all == 1.2345f) out[0] = all;  // Never, but the compiler does not know.
}

static cudaStream_t stream;
static cudaEvent_t before, after;
static int multiprocessors;
static char *a, *c;
static float* out;

// Microseconds of a call.
template <int WARPS, int HIGH, int WIDE> double microseconds(int bytes, double products, int blocks, int replays) {
    const auto kernel = moves_and_products<WARPS, HIGH, WIDE>;
    const int stages = std::min(MOST_STAGES, RING / blocks / bytes - (blocks > 1)), shared = stages * bytes + SMALL;
    if (stages < 3 || blocks * (shared + 1024) > (227 << 10)) return 1e9;
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    const size_t operand = size_t(GROUPS) * bytes;
    const int slots = int(OPERAND / operand);
    const cudaGraphExec_t executable = recorded(stream, CALLS, [&](int call) {
        const size_t at = call % slots * operand;
        kernel<<<blocks * multiprocessors, 32 * (WARPS + 1), shared, stream>>>(a + at, c + at, bytes, stages,
                                                                              int(100 * products * ROWS / 16 / WARPS), out);
    });
    float times[REPLAYS];
    for (int i = 0; i < replays; ++i) {
        const timespec pause = {0, replays == REPLAYS ? 300000000 : 0};
        nanosleep(&pause, nullptr);
        check(cudaEventRecord(before, stream));
        check(cudaGraphLaunch(executable, stream));
        check(cudaEventRecord(after, stream));
        check(cudaEventSynchronize(after));
        check(cudaEventElapsedTime(&times[i], before, after));
    }
    check(cudaGraphExecDestroy(executable));
    std::sort(times, times + replays);
    return times[replays / 2] * 1e3 / CALLS;
}

using Timed = double (*)(int bytes, double products, int blocks, int replays);

// The fastest of several kernels, by one or two blocks on a multiprocessor: looked at, and then measured after rest.
double fastest(std::initializer_list<Timed> kernels, int bytes, double products) {
    double least = 1e9;
    Timed best = *kernels.begin();
    int best_blocks = 1;
    for (Timed timed : kernels) {
        for (int blocks : {1, 2}) {
            const double look = timed(bytes, products, blocks, LOOKS);
            if (look < least) least = look, best = timed, best_blocks = blocks;
        }
    }
    return best(bytes, products, best_blocks, REPLAYS);
}

static int up(int n, int to) { return (n + to - 1) / to; }

int main(int count, char** arguments) {
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);  // No kernel is first loaded while its launch is captured.
    cudaDeviceProp device;
    if (cudaGetDeviceProperties(&device, 0) != cudaSuccess || device.major < 9) {
        printf("this needs a GPU of compute capability 9.0 or newer; skipped\n");
        return 0;
    }
    multiprocessors = device.multiProcessorCount;
    if (cudaMalloc(&a, OPERAND) != cudaSuccess || cudaMalloc(&c, OPERAND) != cudaSuccess || cudaMalloc(&out, sizeof(float)) != cudaSuccess) {
        printf("there is no room for 6 GiB; skipped\n");
        return 0;
    }
    FILE* table = nullptr;
    if (count > 2) {
        table = fopen(arguments[2], "w");
        if (!table) return printf("%s cannot be written\n", arguments[2]), 1;
        fprintf(table, "figure,operation,dtype,m,n,k,row_strides,seconds,way,gpu,date\n");
    }
    check(cudaStreamCreate(&stream));
    check(cudaEventCreate(&before));
    check(cudaEventCreate(&after));
    fill<<<2048, 256>>>(reinterpret_cast<float*>(a), OPERAND / sizeof(float));
    printf("%s, A C of a million rows, microseconds\n", device.name);
    for (const char* dtype : {"f32", "c64"}) {
        const bool complex = dtype[0] == 'c';
        const int first = complex ? 17 : 33, last = complex ? 32 : 64;
        const int from = count > 3 ? std::max(first, atoi(arguments[3])) : first, to = count > 4 ? std::min(last, atoi(arguments[4])) : last;
        for (int n = from; n <= to; ++n) {
            const int reals = complex ? 2 * n : n, bytes = ROWS * reals * 4, over = reals % 8;
            const double products = (over > 2 ? up(reals, 8) : reals / 8) * up(reals, 8);
            const double copies = fastest({microseconds<8, 0, 0>}, bytes, 0);
            const double whole = fastest({microseconds<8, 0, 0>, microseconds<12, 0, 0>}, bytes, products);
            const double fragments = fastest({microseconds<8, 16, 64>, microseconds<8, 32, 32>, microseconds<8, 32, 64>, microseconds<12, 16, 64>}, bytes, products);
            printf("  %s %2d: copies %6.1f, whole %6.1f, fragments %6.1f\n", dtype, n, copies, whole, fragments);
            if (table) {
                fprintf(table, "short,tsmm,%s,%d,%d,%d,,%.9g,copies with fragments and whole instructions,%s,%s\n", dtype, ALL_ROWS, n, n,
                        std::max(whole, fragments) / 1e6, device.name, arguments[1]);
            }
            fflush(nullptr);
        }
    }
    if (table) fclose(table);
}
