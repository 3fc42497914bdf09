// What a GPU does that reads its memory and multiplies doubles on its matrix units at once, with nothing else to do: every
// lane loads 16 bytes, and for each of them its warp executes X products of 16 x 8 x 4 on what was loaded, straight from
// registers. No shared memory, no index arithmetic to speak of, no results. Products A^T B have 2 X flop/byte. It is a
// yardstick, no bound: A^H B in complex128 has been up to 6 % faster
// (bench/results/h200-2026-11-25-limits-and-odd-tiles.txt). Then the same where every lane also writes as many bytes as
// it has read, as A C does (X flop for each byte that is read or written).
//
// For each X it prints GB/s and TFLOP/s twice: over four launches after a pause, and over 300 launches after 300 others,
// when the clock has come to where the GPU's limit of power lets it; on zeros, which take little power, and on random
// numbers. Build and run:
//
//     nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a -o limits reads_and_products.cu && ./limits

#include <cstdio>
#include <cuda_runtime.h>
#include <time.h>

#include "doubles.cuh"

constexpr size_t BYTES = size_t(1) << 32;
constexpr int IN_FLIGHT = 4;
constexpr int THREADS = 256;

template <int X, bool WRITES>
__global__ void __launch_bounds__(THREADS) reads_and_products(const double2* p, size_t n, double2* written, double* out) {
    double sums[4][4] = {};
    const size_t step = size_t(gridDim.x) * blockDim.x;
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    double2 now[IN_FLIGHT];
#pragma unroll
    for (int u = 0; u < IN_FLIGHT; ++u) now[u] = __ldcs(&p[i + u * step]);
    for (i += IN_FLIGHT * step; i + IN_FLIGHT * step <= n; i += IN_FLIGHT * step) {
        double2 next[IN_FLIGHT];
#pragma unroll
        for (int u = 0; u < IN_FLIGHT; ++u) next[u] = __ldcs(&p[i + u * step]);
#pragma unroll
        for (int u = 0; u < IN_FLIGHT; ++u) {
#pragma unroll
            for (int x = 0; x < X; ++x) multiply(sums[x % 4], now[u].x, now[u].y, x % 2 ? now[u].x : now[u].y);
            if (WRITES) __stcs(&written[i + u * step], now[u]);
        }
#pragma unroll
        for (int u = 0; u < IN_FLIGHT; ++u) now[u] = next[u];
    }
    double all = 0;
    for (auto& sum : sums) {
        for (double part : sum) all += part;
    }
    for (double2 last : now) all += last.x + last.y;
    if (all == 1.2345) out[0] = all;  // Never, but the compiler does not know.
}

static cudaEvent_t before, after;

// Seconds of one of so many launches.
template <int X, bool WRITES>
double seconds(const double2* p, double2* written, double* out, int multiprocessors, int launches) {
    cudaEventRecord(before);
    for (int i = 0; i < launches; ++i) {
        reads_and_products<X, WRITES><<<4 * multiprocessors, THREADS>>>(p, BYTES / sizeof(double2), written, out);
    }
    cudaEventRecord(after);
    cudaEventSynchronize(after);
    float milliseconds = 0;
    cudaEventElapsedTime(&milliseconds, before, after);
    return milliseconds / 1e3 / launches;
}

template <int X, bool WRITES> void measure(const double2* p, double2* written, double* out, int multiprocessors) {
    seconds<X, WRITES>(p, written, out, multiprocessors, 2);
    const timespec pause = {0, 300000000};
    nanosleep(&pause, nullptr);
    const double rested = seconds<X, WRITES>(p, written, out, multiprocessors, 4);
    seconds<X, WRITES>(p, written, out, multiprocessors, 300);
    const double sustained = seconds<X, WRITES>(p, written, out, multiprocessors, 300);
    const double bytes = double(BYTES) * (WRITES ? 2 : 1), flops = BYTES / 512.0 * X * (2 * 16 * 8 * 4);
    printf("  %2.0f flop/byte%s: after a pause %4.0f GB/s %5.1f TFLOP/s, sustained %4.0f GB/s %5.1f TFLOP/s\n", flops / bytes,
           WRITES ? ", half of them written" : "", bytes / rested / 1e9, flops / rested / 1e12, bytes / sustained / 1e9,
           flops / sustained / 1e12);
    fflush(stdout);
}

template <int... X> void measure_reads(const double2* p, double2* written, double* out, int multiprocessors) {
    (measure<X, false>(p, written, out, multiprocessors), ...);
}

template <int... X> void measure_reads_and_writes(const double2* p, double2* written, double* out, int multiprocessors) {
    (measure<X, true>(p, written, out, multiprocessors), ...);
}

int main() {
    cudaDeviceProp device;
    if (cudaGetDeviceProperties(&device, 0) != cudaSuccess || device.major < 9) {
        printf("this needs a GPU of compute capability 9.0 or newer; skipped\n");
        return 0;
    }
    double2 *p, *written;
    double* out;
    if (cudaMalloc(&p, BYTES) != cudaSuccess || cudaMalloc(&written, BYTES) != cudaSuccess ||
        cudaMalloc(&out, sizeof(double)) != cudaSuccess) {
        printf("there is no room for 8 GiB; skipped\n");
        return 0;
    }
    cudaEventCreate(&before);
    cudaEventCreate(&after);
    for (const char* what : {"zeros", "random numbers"}) {
        if (what[0] == 'z') cudaMemset(p, 0, BYTES);
        else fill<<<2048, THREADS>>>((double*)p, BYTES / sizeof(double));
        printf("%s, %s\n", device.name, what);
        measure_reads<1, 2, 3, 4, 5, 6, 7, 8>(p, written, out, device.multiProcessorCount);
        measure_reads_and_writes<4, 5, 6, 7, 8, 10, 12, 14, 16>(p, written, out, device.multiProcessorCount);
    }
    if (cudaDeviceSynchronize() != cudaSuccess) {
        printf("failed: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 1;
    }
}
