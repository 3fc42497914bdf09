// What the programs named multiply_adds share: numbers, a multiply-add, and how a kernel is timed.
//
// "Rested" is the median of five bursts of 18 ms that each come after 0.3 s of rest; "sustained" 200 ms after 200 ms of
// the same, when the clock has come to where the GPU's limit of power lets it.

#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <functional>
#include <time.h>
#include <vector>

constexpr size_t BYTES = size_t(1) << 32;  // Of numbers.
constexpr int BURSTS = 5;

inline void check(cudaError_t error, int line = __builtin_LINE()) {
    if (error == cudaSuccess) return;
    printf("failed at line %d: %s\n", line, cudaGetErrorString(error));
    exit(1);
}

// Cycles and nanoseconds that the first thread of a grid spent in its launches.
struct Spent {
    unsigned long long cycles, nanoseconds;
};

// Called at the beginning with -1 and at the end with 1.
__device__ __forceinline__ void stamp(Spent* spent, long long sign) {
    if (blockIdx.x != 0 || threadIdx.x != 0) return;
    unsigned long long nanoseconds;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
    spent->cycles += sign * clock64();
    spent->nanoseconds += sign * nanoseconds;
}

// Numbers between -1 and 1 whose bits look random.
__global__ void fill(float* p, size_t n) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x) {
        unsigned long long h = (i + 1) * 0x9E3779B97F4A7C15ull;
        h ^= h >> 29;
        h *= 0xBF58476D1CE4E5B9ull;
        p[i] = float(int(h >> 32)) * 0x1p-31f;
    }
}

// A real multiply-add, or a complex one, which is four.
__device__ __forceinline__ void multiply_add(float& sum, float a, float b) { sum = fmaf(a, b, sum); }
__device__ __forceinline__ void multiply_add(float2& sum, float2 a, float2 b) {
    sum.x = fmaf(a.x, b.x, sum.x);
    sum.y = fmaf(a.x, b.y, sum.y);
    sum.x = fmaf(-a.y, b.y, sum.x);
    sum.y = fmaf(a.y, b.x, sum.y);
}
__device__ __forceinline__ float real(float v) { return v; }
__device__ __forceinline__ float real(float2 v) { return v.x + v.y; }

struct Kernel {
    char shape[32];
    std::function<void()> launch;
    double flops, bytes;
};

struct Pace {
    double rested, sustained, megahertz;  // Seconds of a launch; the clock while it went on.
};

static cudaEvent_t before, after;
static int multiprocessors;
static float4* numbers;
static float* out;
static Spent* spent;

// Seconds of one of so many launches.
inline double seconds(const Kernel& kernel, int launches) {
    check(cudaEventRecord(before));
    for (int i = 0; i < launches; ++i) {
        kernel.launch();
        check(cudaGetLastError());
    }
    check(cudaEventRecord(after));
    check(cudaEventSynchronize(after));
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, before, after));
    return milliseconds / 1e3 / launches;
}

inline Pace pace(const Kernel& kernel) {
    const double one = seconds(kernel, 3);
    const auto launches = [&](double time) { return std::max(1, int(time / one + 0.5)); };
    std::vector<double> rested;
    for (int i = 0; i < BURSTS; ++i) {
        const timespec pause = {0, 300000000};
        nanosleep(&pause, nullptr);
        rested.push_back(seconds(kernel, launches(0.018)));
    }
    std::sort(rested.begin(), rested.end());
    seconds(kernel, launches(0.2));
    check(cudaMemset(spent, 0, sizeof(Spent)));
    const double sustained = seconds(kernel, launches(0.2));
    Spent clock;
    check(cudaMemcpy(&clock, spent, sizeof(Spent), cudaMemcpyDeviceToHost));
    return {rested[BURSTS / 2], sustained, clock.cycles * 1e3 / clock.nanoseconds};
}

// The kernel that is fastest in a quick look.
inline Kernel fastest(const std::vector<Kernel>& kernels) {
    double most = 0;
    Kernel best;
    for (const Kernel& kernel : kernels) {
        seconds(kernel, 1);
        const double rate = kernel.flops / seconds(kernel, 2);
        if (rate > most) most = rate, best = kernel;
    }
    return best;
}

// Numbers in the GPU's memory, random ones or, with --zeros, zeros. False where there is nothing to be done.
inline bool begin(int count, char** arguments) {
    const bool zeros = count == 2 && !strcmp(arguments[1], "--zeros");
    if (count > 1 && !zeros) {
        printf("usage: %s [--zeros]\n", arguments[0]);
        return false;
    }
    cudaDeviceProp device;
    if (cudaGetDeviceProperties(&device, 0) != cudaSuccess || device.major < 9) {
        printf("this needs a GPU of compute capability 9.0 or newer; skipped\n");
        return false;
    }
    if (cudaMalloc(&numbers, BYTES) != cudaSuccess) {
        printf("there is no room for 4 GiB; skipped\n");
        return false;
    }
    multiprocessors = device.multiProcessorCount;
    check(cudaMalloc(&out, sizeof(float)));
    check(cudaMalloc(&spent, sizeof(Spent)));
    check(cudaEventCreate(&before));
    check(cudaEventCreate(&after));
    if (zeros) check(cudaMemset(numbers, 0, BYTES));
    else fill<<<2048, 256>>>((float*)numbers, BYTES / sizeof(float));
    check(cudaGetLastError());
    check(cudaDeviceSynchronize());
    printf("%s, %s\n", device.name, zeros ? "zeros" : "random numbers");
    return true;
}
