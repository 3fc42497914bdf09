// What it is worth to let threads add up a row and a column that are left over beside whole matrix instructions: A^H B in complex128 with 49
// or 50 columns, as the product of the real matrices of twice the width that A and B are in memory. 48 columns are whole instructions, 96 x 96
// in tiles of 16 x 8; with 49 the family `tsmttsm` multiplies 112 x 104.
//
// Groups of 64 rows come by bulk copies, two at a time. Two sets of four warps share out their rows; a warp has 48 x 48 of the real product.
//
//   core    matrix instructions alone, for 48 columns: the rest is missing. No kernel with this core is faster.
//   after   and each lane adds up one more element of the last rows or columns when its warp has multiplied a group, by four multiply-adds a term.
//   among   and each lane adds up products of the fragments that it holds anyway, between matrix instructions; the terms of four lanes come together
//           at the end. The compiler has no registers left for it.
//
// Parts of R = min(intensity x 4552 GB/s, 56.4 TFLOP/s) with 2 GiB each, the second launch that adds up the parts of blocks included, over
// launches after pauses of 0.3 s, medians of three, on numbers that look random and on zeros. Sums of some elements are compared with the definition.
//
//     nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a -o row row_and_column.cu && ./row

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdio>
#include <vector>
#include <cuda_runtime.h>
#include <time.h>

#include "bulk.cuh"
#include "doubles.cuh"

constexpr int CORE = 48, DEPTH = 64, STAGES = 2, SETS = 2, OF_A_SET = DEPTH / SETS, THREADS = 256;
constexpr size_t OPERAND = size_t(1) << 31;
enum Rest { NONE, AFTER, AMONG };

// The sum of the terms of four lanes beside each other.
__device__ __forceinline__ double of_four(double x) {
    x += __shfl_xor_sync(~0u, x, 1);
    return x + __shfl_xor_sync(~0u, x, 2);
}

// `groups` whole groups of rows; each set of each block leaves its part of the real product, 2 N x 2 N.
template <int N, Rest REST>
__global__ void __launch_bounds__(THREADS, 1) products(const double* a, const double* b, double* parts, int groups) {
    constexpr int W = 2 * N, OVER = N - CORE, GROUP = DEPTH * W, BYTES = 8 * GROUP;
    extern __shared__ __align__(128) double ring[];
    double (*const left)[GROUP] = reinterpret_cast<double (*)[GROUP]>(ring);
    double (*const right)[GROUP] = left + STAGES;
    __shared__ uint64_t full[STAGES], empty[STAGES];
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) init(&full[s], 1), init(&empty[s], THREADS / 32);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    const int mine = (groups - int(blockIdx.x) + int(gridDim.x) - 1) / int(gridDim.x);
    auto ask = [&](int g) {
        const size_t from = (blockIdx.x + size_t(g) * gridDim.x) * GROUP;
        expect(&full[g % STAGES], 2 * BYTES);
        bring(left[g % STAGES], a + from, BYTES, &full[g % STAGES]);
        bring(right[g % STAGES], b + from, BYTES, &full[g % STAGES]);
    };
    if (threadIdx.x == 0) {
        for (int g = 0; g < STAGES && g < mine; ++g) ask(g);
    }
    const int set = threadIdx.x / 128, down = threadIdx.x % 128 / 64, beside = threadIdx.x % 64 / 32, lane = threadIdx.x % 32;
    const int first = set * OF_A_SET * W;
    double sums[3][6][4] = {};
    // After: an element of the last rows (of A) or columns (of B) of the complex product, as its four products of parts. Lanes beyond the last repeat it.
    const int number = threadIdx.x % 128;
    const bool in_row = number < 64;
    const int own = 2 * (in_row ? min(number, N - 1) : min(number - 64, CORE - 1));
    double rest[OVER][4] = {};
    // Among: warps on the diagonal have the last columns of their rows, the others the last rows of their columns, and all the corner.
    const bool of_rows = down == beside;
    double edge[OVER][6][2] = {}, corner[OVER][OVER][2] = {};
    for (int g = 0; g < mine; ++g) {
        const int slot = g % STAGES, parity = g / STAGES % 2;
        wait(&full[slot], parity);
        const double *const x = left[slot] + first, *const y = right[slot] + first;
#pragma unroll
        for (int s = 0; s < OF_A_SET / 4; ++s) {
            const double *const xs = x + 4 * W * s + W * (lane % 4), *const ys = y + 4 * W * s + W * (lane % 4);
            double u[6], v[6];
#pragma unroll
            for (int f = 0; f < 6; ++f) u[f] = xs[48 * down + 8 * f + lane / 4], v[f] = ys[48 * beside + 8 * f + lane / 4];
            if constexpr (REST == AMONG) {
                const double *const others = (of_rows ? ys : xs) + 2 * CORE;
#pragma unroll
                for (int o = 0; o < OVER; ++o) {
                    const double2 w = *reinterpret_cast<const double2*>(others + 2 * o);
#pragma unroll
                    for (int f = 0; f < 6; ++f) {
                        const double held = of_rows ? u[f] : v[f];
                        edge[o][f][0] = fma(held, w.x, edge[o][f][0]);
                        edge[o][f][1] = fma(held, w.y, edge[o][f][1]);
                    }
                    if (of_rows) continue;
#pragma unroll
                    for (int f = 0; f < OVER; ++f) {
                        const double last = ys[2 * CORE + 2 * f + lane / 4 % 2];
                        corner[o][f][0] = fma(last, w.x, corner[o][f][0]);
                        corner[o][f][1] = fma(last, w.y, corner[o][f][1]);
                    }
                }
            }
#pragma unroll
            for (int m = 0; m < 3; ++m) {
#pragma unroll
                for (int n = 0; n < 6; ++n) multiply(sums[m][n], u[2 * m], u[2 * m + 1], v[n]);
            }
        }
        if constexpr (REST == AFTER) {
            const double *const owned = (in_row ? y : x) + own, *const others = (in_row ? x : y) + 2 * CORE;
#pragma unroll 16
            for (int k = 0; k < OF_A_SET; ++k) {
                const double2 w = *reinterpret_cast<const double2*>(owned + W * k);
#pragma unroll
                for (int o = 0; o < OVER; ++o) {
                    const double2 z = *reinterpret_cast<const double2*>(others + W * k + 2 * o);
                    rest[o][0] = fma(w.x, z.x, rest[o][0]);
                    rest[o][1] = fma(w.x, z.y, rest[o][1]);
                    rest[o][2] = fma(w.y, z.x, rest[o][2]);
                    rest[o][3] = fma(w.y, z.y, rest[o][3]);
                }
            }
        }
        __syncwarp();
        if (lane == 0) arrive(&empty[slot]);
        if (threadIdx.x == 0 && g + STAGES < mine) {
            wait(&empty[slot], parity);
            ask(g + STAGES);
        }
        __syncwarp();
    }
    double* const part = parts + (size_t(set) * gridDim.x + blockIdx.x) * W * W;
    auto put = [&](int row, int column, double value) { part[W * row + column] = value; };
#pragma unroll
    for (int m = 0; m < 3; ++m) {
#pragma unroll
        for (int n = 0; n < 6; ++n) {
#pragma unroll
            for (int e = 0; e < 4; ++e)
                put(48 * down + 16 * m + e / 2 * 8 + lane / 4, 48 * beside + 8 * n + lane % 4 * 2 + e % 2, sums[m][n][e]);
        }
    }
    if constexpr (REST == AFTER) {
#pragma unroll
        for (int o = 0; o < OVER; ++o) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int held = e / 2, other = 2 * (CORE + o) + e % 2;
                if (in_row && number < N) put(other, own + held, rest[o][e]);
                if (!in_row && number - 64 < CORE) put(own + held, other, rest[o][e]);
            }
        }
    }
    if constexpr (REST == AMONG) {
#pragma unroll
        for (int o = 0; o < OVER; ++o) {
#pragma unroll
            for (int q = 0; q < 2; ++q) {
                const int other = 2 * (CORE + o) + q;
#pragma unroll
                for (int f = 0; f < 6; ++f) {
                    const double all = of_four(edge[o][f][q]);
                    if (lane % 4 == 0 && of_rows) put(48 * down + 8 * f + lane / 4, other, all);
                    if (lane % 4 == 0 && !of_rows) put(other, 48 * beside + 8 * f + lane / 4, all);
                }
#pragma unroll
                for (int f = 0; f < OVER; ++f) {
                    const double all = of_four(corner[o][f][q]);
                    if (lane % 4 == 0 && lane < 8 && down > beside) put(other, 2 * (CORE + f) + lane / 4, all);
                }
            }
        }
    }
}

__global__ void add(const double* parts, double* result, int elements, int count) {
    const int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= elements) return;
    double sum = 0;
    for (int p = 0; p < count; ++p) sum += parts[size_t(p) * elements + e];
    result[e] = sum;
}

static int multiprocessors;
static cudaEvent_t before, after;

template <int N, Rest REST> void measure(const char* name, const double* a, const double* b, double* parts, double* result) {
    const int shared = 2 * STAGES * DEPTH * 2 * N * 8, groups = int(OPERAND / 16 / N / DEPTH);
    const auto kernel = products<N, REST>;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    const double rows = double(groups) * DEPTH;
    const double limit = std::max(2.0 * rows * N * 16 / 4552e9, 8.0 * rows * N * N / 56.4e12);
    const int elements = 4 * N * N;
    cudaMemset(parts, 0, size_t(SETS) * multiprocessors * elements * 8);
    double times[3];
    for (double& time : times) {
        const timespec pause = {0, 300000000};
        nanosleep(&pause, nullptr);
        cudaEventRecord(before);
        for (int i = 0; i < 4; ++i) {
            kernel<<<multiprocessors, THREADS, shared>>>(a, b, parts, groups);
            add<<<(elements + 63) / 64, 64>>>(parts, result, elements, SETS * multiprocessors);
        }
        cudaEventRecord(after);
        cudaEventSynchronize(after);
        float milliseconds = 0;
        cudaEventElapsedTime(&milliseconds, before, after);
        time = milliseconds / 4e3;
    }
    std::sort(times, times + 3);
    // A corner of each kind, from the first rows of both matrices: as many as the host adds up quickly.
    cudaFuncAttributes taken;
    cudaFuncGetAttributes(&taken, kernel);
    const int few = multiprocessors;
    kernel<<<multiprocessors, THREADS, shared>>>(a, b, parts, few);
    add<<<(elements + 63) / 64, 64>>>(parts, result, elements, SETS * multiprocessors);
    std::vector<double> x(size_t(few) * DEPTH * 2 * N), y(x.size()), sums(elements);
    cudaMemcpy(x.data(), a, 8 * x.size(), cudaMemcpyDeviceToHost);
    cudaMemcpy(y.data(), b, 8 * y.size(), cudaMemcpyDeviceToHost);
    cudaMemcpy(sums.data(), result, 8 * sums.size(), cudaMemcpyDeviceToHost);
    double worst = 0;
    for (int i : {0, 47, 95, 96, 2 * N - 1}) {
        for (int j : {0, 48, 95, 96, 2 * N - 1}) {
            if (REST == NONE && (i >= 2 * CORE || j >= 2 * CORE)) continue;
            double sum = 0;
            for (size_t k = 0; k < x.size(); k += 2 * N) sum += x[k + i] * y[k + j];
            worst = std::max(worst, std::abs(sum - sums[size_t(i) * 2 * N + j]));
        }
    }
    printf("  %s %.3f (%d registers, %d bytes of stack)%s", name, limit / times[1], taken.numRegs, int(taken.localSizeBytes), worst < 1e-9 ? "" : " WRONG");
    fflush(stdout);
}

template <int N> void all(const double* a, const double* b, double* parts, double* result) {
    printf("%d:", N);
    measure<N, NONE>("core", a, b, parts, result);
    measure<N, AFTER>("after", a, b, parts, result);
    measure<N, AMONG>("among", a, b, parts, result);
    printf("\n");
}

int main() {
    cudaDeviceProp device;
    if (cudaGetDeviceProperties(&device, 0) != cudaSuccess || device.major < 9) {
        printf("this needs a GPU of compute capability 9.0 or newer; skipped\n");
        return 0;
    }
    multiprocessors = device.multiProcessorCount;
    printf("%s\n", device.name);
    double *a, *b, *parts, *result;
    if (cudaMalloc(&a, OPERAND) != cudaSuccess || cudaMalloc(&b, OPERAND) != cudaSuccess ||
        cudaMalloc(&parts, size_t(SETS) * multiprocessors * 10000 * 8) != cudaSuccess || cudaMalloc(&result, 80000) != cudaSuccess) {
        printf("there is no room for 4 GiB; skipped\n");
        return 0;
    }
    cudaEventCreate(&before);
    cudaEventCreate(&after);
    for (const char* what : {"numbers that look random", "zeros"}) {
        printf("%s\n", what);
        fill<<<2048, 256>>>(a, OPERAND / 8);
        fill<<<2048, 256>>>(b, OPERAND / 8 - 12345);
        if (what[0] == 'z') cudaMemset(a, 0, OPERAND), cudaMemset(b, 0, OPERAND);
        all<49>(a, b, parts, result);
        all<50>(a, b, parts, result);
    }
    if (cudaDeviceSynchronize() != cudaSuccess) {
        printf("failed: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 1;
    }
}
