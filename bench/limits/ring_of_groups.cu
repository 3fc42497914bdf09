// What a kernel reaches that is written by hand for one thing: products A C in complex128 with N columns, all of whose copies are bulk
// copies. A ring of groups of 16 rows lies in shared memory beside the small matrix. Each of eight warps takes every eighth group of its block, multiplies
// it on the f64 matrix units, leaves the results where the rows lay, has a bulk copy bring them to device memory, and asks for another
// group in the place of the one before while it multiplies the next; nobody meets anybody. Rows of an odd number of numbers are read so
// that lanes do not meet in banks. (Of a warp that is far ahead of another it is not known that the phase of a slot before its own is over, which it
// would take for its own. Results have been right; what the schedules make has a barrier for each slot and part, and cannot.)
//
// It is no limit: `tsmm --param team=part,store=bulk,copy=bulk` does the same and is faster.
//
// Twice for each width: with numbers whole, each product of two tiles being four of their parts, and (second) as the real matrix of parts.
// Parts of R = min(intensity x 4314 GB/s, 56.4 TFLOP/s) on numbers that look random, over launches after pauses of 0.3 s, medians of
// three, with the registers and bytes of the stack that the compiler took. A few rows of each result are compared with the definition.
//
//     nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a -o ring ring_of_groups.cu && ./ring

#include <algorithm>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>
#include <time.h>

#include "bulk.cuh"
#include "doubles.cuh"

constexpr int ROWS = 16, MOST_SLOTS = 16;
constexpr size_t OPERAND = size_t(1) << 31;

__device__ __forceinline__ bool is_over(uint64_t* barrier, int parity) {
    int over;
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared.b64 p, [%1], %2;\nselp.s32 %0, 1, 0, p;\n}"
                 : "=r"(over) : "r"(at(barrier)), "r"(parity) : "memory");
    return over;
}
// What is never copied is a mistake: the kernel ends.
__device__ __forceinline__ void wait_or_end(uint64_t* barrier, int parity) {
    for (long long tries = 0; !is_over(barrier, parity); ++tries) {
        if (tries > 200000) asm volatile("trap;");
    }
}
// As `multiply`, in the order in which it is written.
__device__ __forceinline__ void multiply_in_order(double (&d)[4], double a0, double a1, double b) {
    asm volatile("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3]) : "d"(a0), "d"(a1), "d"(b));
}

// How the small matrix lies in shared memory: how far apart the terms of an instruction are, rows, tiles beside each other, and columns.
template <int N, bool PARTS> struct Small {
    static constexpr int APART = N % 2 ? (PARTS ? 4 : 2) : 1;
    static constexpr int TERMS =
        PARTS ? (N % 2 ? (N + 7) / 8 * 8 : (N + 1) / 2 * 2) : (N + 4 * APART - 1) / (4 * APART) * 4 * APART;
    static constexpr int TILES = PARTS ? (2 * N + 7) / 8 : (N + 7) / 8;
    static constexpr int COLUMNS = PARTS ? (TILES * 4 + 1) / 2 * 2 + 2 : TILES * 8 + 2;
    static constexpr int BYTES = (TERMS * COLUMNS * 16 + 127) / 128 * 128;
};

template <int N, int WARPS, int SLOTS, bool PARTS>
__global__ void __launch_bounds__(32 * WARPS, 1) walk(const double2* a, const double2* b, double2* c, int groups) {
    using S = Small<N, PARTS>;
    constexpr int T = S::APART, KP = S::TERMS, TILES = S::TILES, NP = S::COLUMNS, STEPS = PARTS ? KP / 2 : KP / 4;
    constexpr int BYTES = ROWS * N * 16;
    extern __shared__ __align__(128) char shared[];
    double2* const small = reinterpret_cast<double2*>(shared);
    char* const ring = shared + S::BYTES;
    __shared__ uint64_t full[MOST_SLOTS];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        for (int s = 0; s < SLOTS; ++s) init(&full[s], 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    for (int e = threadIdx.x; e < KP * NP; e += blockDim.x) {
        const int r = e / NP, col = e % NP;
        // Rows in the order of instructions.
        const int k = T == 2 ? r / 8 * 8 + r % 4 * 2 + r / 4 % 2 : T == 4 ? r / 8 * 8 + r % 2 * 4 + r % 8 / 2 : r;
        small[e] = k < N && col < N ? b[k * N + col] : make_double2(0, 0);
    }
    for (int e = threadIdx.x; e < SLOTS * BYTES / 16 + 16; e += blockDim.x) reinterpret_cast<double2*>(ring)[e] = make_double2(0, 0);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    const int mine = (groups - blockIdx.x + gridDim.x - 1) / gridDim.x;
    auto group = [&](int i) { return size_t(blockIdx.x) + size_t(i) * gridDim.x; };
    auto ask = [&](int i) {
        const int s = i % SLOTS;
        expect(&full[s], BYTES);
        bring(ring + s * BYTES, reinterpret_cast<const char*>(a) + group(i) * BYTES, BYTES, &full[s]);
    };
    if (threadIdx.x == 0) {
        for (int i = 0; i < SLOTS && i < mine; ++i) ask(i);
    }
    __syncthreads();
    int slot = warp % SLOTS, parity = (warp / SLOTS) & 1;
    for (int i = warp; i < mine; i += WARPS) {
        wait_or_end(&full[slot], parity);
        double2* const rows = reinterpret_cast<double2*>(ring + slot * BYTES);
        auto refill = [&]() {
            if (lane == 0 && i >= WARPS) {
                wait_for_reads<0>();
                if (i - WARPS + SLOTS < mine) ask(i - WARPS + SLOTS);
            }
            __syncwarp();
        };
        constexpr int EARLY = STEPS / 8;
        if constexpr (!PARTS) {
            const double2* const left = rows + lane / 4 * N + lane % 4 * T;
            const double2* const right = small + lane % 4 * NP + lane / 4;
            double re[TILES][4] = {}, im[TILES][4] = {};
#pragma unroll
            for (int s = 0; s < STEPS; ++s) {
                if (s == EARLY) refill();
                const int k = T == 2 ? s / 2 * 8 + s % 2 : 4 * s;
                const double2 a0 = left[k], a1 = left[k + 8 * N];
                const double m0 = -a0.y, m1 = -a1.y;
                double2 x = right[s * 4 * NP];
#pragma unroll
                for (int t = 0; t < TILES; ++t) {
                    const double2 now = x;
                    if (t + 1 < TILES) x = right[s * 4 * NP + 8 * (t + 1)];
                    multiply_in_order(re[t], a0.x, a1.x, now.x);
                    multiply_in_order(im[t], a0.x, a1.x, now.y);
                    multiply_in_order(re[t], m0, m1, now.y);
                    multiply_in_order(im[t], a0.y, a1.y, now.x);
                }
            }
            __syncwarp();
#pragma unroll
            for (int t = 0; t < TILES; ++t) {
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    const int row = lane / 4 + e / 2 * 8, col = 8 * t + lane % 4 * 2 + e % 2;
                    if (col < N) rows[row * N + col] = make_double2(re[t][e], im[t][e]);
                }
            }
        } else {
            // A real matrix of parts: term 2 k + p, column 2 j + q, where (p, q) = (1, 0) is -im.
            const int q = lane % 4, p = q % 2, h = q / 2;
            const double* const left = reinterpret_cast<const double*>(rows + lane / 4 * N + h * T) + p;
            const int column = lane / 4;
            const double* const right = reinterpret_cast<const double*>(small + h * NP + column / 2) + (column % 2 ^ p);
            const double sign = p == 1 && column % 2 == 0 ? -0.0 : 0.0;
            auto signed_ = [&](double x) { return __longlong_as_double(__double_as_longlong(x) ^ __double_as_longlong(sign)); };
            double sums[TILES][4] = {};
#pragma unroll
            for (int s = 0; s < STEPS; ++s) {
                if (s == EARLY) refill();
                const int k = T == 4 ? s / 4 * 8 + s % 4 : 2 * s;
                const double a0 = left[2 * k], a1 = left[2 * (k + 8 * N)];
                double x = right[2 * (s * 2 * NP)];
#pragma unroll
                for (int t = 0; t < TILES; ++t) {
                    const double now = signed_(x);
                    if (t + 1 < TILES) x = right[2 * (s * 2 * NP + 4 * (t + 1))];
                    multiply_in_order(sums[t], a0, a1, now);
                }
            }
            __syncwarp();
#pragma unroll
            for (int t = 0; t < TILES; ++t) {
                const int row = lane / 4, col = 4 * t + lane % 4;
                if (col < N) {
                    rows[row * N + col] = make_double2(sums[t][0], sums[t][1]);
                    rows[(row + 8) * N + col] = make_double2(sums[t][2], sums[t][3]);
                }
            }
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncwarp();
        if (lane == 0) take(reinterpret_cast<char*>(c) + group(i) * BYTES, rows, BYTES);
        slot += WARPS;
        while (slot >= SLOTS) slot -= SLOTS, parity ^= 1;
    }
    if (lane == 0) wait_for_writes();
}
static int multiprocessors;
static cudaEvent_t before, after;

template <int N, bool PARTS> void measure(const double2* a, const double2* b, double2* c) {
    constexpr int WARPS = 8, SMALL = (N + 7) / 8 * 8 * ((N + 7) / 8 * 8 + 2) * 16, ROOM = (226 * 1024 - SMALL) / (ROWS * N * 16);
    constexpr int SLOTS = ROOM < MOST_SLOTS ? ROOM : MOST_SLOTS;
    const int shared = Small<N, PARTS>::BYTES + SLOTS * ROWS * N * 16 + 256;
    const auto kernel = walk<N, WARPS, SLOTS, PARTS>;
    if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared) != cudaSuccess) {
        printf(" [no room for %d groups]", SLOTS);
        return;
    }
    const size_t m = OPERAND / 16 / N / ROWS * ROWS;
    const double limit = std::max((2.0 * m * N + N * N) * 16 / 4314e9, 8.0 * m * N * N / 56.4e12);
    double times[3];
    for (double& time : times) {
        const timespec pause = {0, 300000000};
        nanosleep(&pause, nullptr);
        cudaEventRecord(before);
        for (int i = 0; i < 4; ++i) kernel<<<multiprocessors, 32 * WARPS, shared>>>(a, b, c, m / ROWS);
        cudaEventRecord(after);
        cudaEventSynchronize(after);
        float milliseconds = 0;
        cudaEventElapsedTime(&milliseconds, before, after);
        time = milliseconds / 4e3;
    }
    std::sort(times, times + 3);
    double worst = 0;
    std::vector<std::complex<double>> row(N), small(N * N), result(N);
    cudaMemcpy(small.data(), b, 16 * N * N, cudaMemcpyDeviceToHost);
    for (size_t at : {size_t(0), size_t(17), m - 1, m / 2 + 5}) {
        cudaMemcpy(row.data(), a + at * N, 16 * N, cudaMemcpyDeviceToHost);
        cudaMemcpy(result.data(), c + at * N, 16 * N, cudaMemcpyDeviceToHost);
        for (int j = 0; j < N; ++j) {
            std::complex<double> sum = 0;
            for (int k = 0; k < N; ++k) sum += row[k] * small[k * N + j];
            worst = std::max(worst, std::abs(sum - result[j]));
        }
    }
    cudaFuncAttributes taken;
    cudaFuncGetAttributes(&taken, kernel);
    printf(" %s: %.3f of R, %d groups, %d registers, %d bytes of stack%s", PARTS ? ", parts" : "whole", limit / times[1], SLOTS,
           taken.numRegs, int(taken.localSizeBytes), worst < 1e-9 ? "" : " WRONG");
    fflush(stdout);
}

template <int... N> void all(const double2* a, const double2* b, double2* c) {
    (..., (printf("%d:", N), measure<N, false>(a, b, c), measure<N, true>(a, b, c), printf("\n")));
}

int main() {
    cudaDeviceProp device;
    if (cudaGetDeviceProperties(&device, 0) != cudaSuccess || device.major < 9) {
        printf("this needs a GPU of compute capability 9.0 or newer; skipped\n");
        return 0;
    }
    multiprocessors = device.multiProcessorCount;
    printf("%s\n", device.name);
    double2 *a, *b, *c;
    if (cudaMalloc(&a, OPERAND) != cudaSuccess || cudaMalloc(&b, 1 << 20) != cudaSuccess || cudaMalloc(&c, OPERAND) != cudaSuccess) {
        printf("there is no room for 4 GiB; skipped\n");
        return 0;
    }
    cudaEventCreate(&before);
    cudaEventCreate(&after);
    fill<<<2048, 256>>>(reinterpret_cast<double*>(a), OPERAND / sizeof(double));
    fill<<<64, 256>>>(reinterpret_cast<double*>(b), (1 << 20) / sizeof(double));
    all<33, 37, 41, 45, 48, 49, 50, 53, 54, 56, 57, 60, 63, 64>(a, b, c);
    if (cudaDeviceSynchronize() != cudaSuccess) {
        printf("failed: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 1;
    }
}
