// What programs that launch kernels of other files need: errors of the driver, numbers to multiply, and results as one number.

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
