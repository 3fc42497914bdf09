// What programs that launch kernels of other files need: errors of the driver, numbers to multiply, results as one number, and times.

#pragma once

#include <cstdio>
#include <cstdlib>
#include <cuda.h>

typedef unsigned long long u64;

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        CUresult result = (call);                                                                                      \
        if (result) {                                                                                                  \
            const char* said;                                                                                          \
            cuGetErrorString(result, &said);                                                                           \
            printf("%s: %s\n", #call, said);                                                                           \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

// Numbers in -1..1 that look random.
template <class T> __global__ void fill(T* p, size_t n) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
        u64 z = (i + 1) * 0x9E3779B97F4A7C15ull;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
        z ^= z >> 31;
        p[i] = (T)((double)(long long)z * (1.0 / 9.3e18));
    }
}

// A sum over all words, each times a number of its own.
__global__ void hash(const unsigned* s, u64* out, size_t n) {
    u64 x = 0;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        x += (s[i] + 7ull) * (i * 2654435761ull + 1);
    atomicAdd(out, x);
}

// The long operands, 2 GiB and a little; what is small, or parts of a result; and a number.
constexpr size_t OPERAND = ((size_t)1 << 31) + (1 << 20), SMALL = (size_t)1 << 27;
constexpr int SMALLS = 4;
static void *a, *b, *smalls[SMALLS];
static u64* sum;

// Makes room on the first GPU, whose name is printed.
static void begin() {
    cudaDeviceProp device;
    if (cudaGetDeviceProperties(&device, 0) != cudaSuccess || cudaSetDevice(0) != cudaSuccess) {
        printf("there is no GPU; skipped\n");
        exit(0);
    }
    bool room = cudaMalloc(&a, OPERAND) == cudaSuccess && cudaMalloc(&b, OPERAND) == cudaSuccess && cudaMalloc(&sum, 8) == cudaSuccess;
    for (auto& s : smalls) room = room && cudaMalloc(&s, SMALL) == cudaSuccess;
    if (!room) {
        printf("there is no room for 5 GiB; skipped\n");
        exit(0);
    }
    printf("%s\n", device.name);
}

template <class T> void fill_operands() {
    fill<<<2048, 256>>>((T*)a, OPERAND / sizeof(T));
    fill<<<2048, 256>>>((T*)b, OPERAND / sizeof(T) - 12345);
}

// The bits of so many pieces of memory, as one number.
static u64 hash_of(void* const* pieces, int count, size_t bytes) {
    u64 found = 0;
    cudaMemset(sum, 0, 8);
    for (int i = 0; i < count; ++i) hash<<<2048, 256>>>((unsigned*)pieces[i], sum, bytes / 4);
    cudaMemcpy(&found, sum, 8, cudaMemcpyDeviceToHost);
    return found;
}

// Milliseconds of a launch, of so many in a row.
template <class Launch> float timed(int times, const char* file, Launch launch) {
    static cudaEvent_t before, after;
    if (!before) cudaEventCreate(&before), cudaEventCreate(&after);
    cudaEventRecord(before);
    for (int i = 0; i < times; ++i) launch();
    cudaEventRecord(after);
    if (cudaError_t error = cudaDeviceSynchronize()) {
        printf("%s failed: %s\n", file, cudaGetErrorString(error));
        exit(1);
    }
    float milliseconds;
    cudaEventElapsedTime(&milliseconds, before, after);
    return milliseconds / times;
}
