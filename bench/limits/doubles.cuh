// Doubles for kernels that multiply them on the matrix units: numbers that look random, and the product of 16 x 8 x 4.
#pragma once

#include <cuda_runtime.h>

__device__ __forceinline__ void multiply(double (&d)[4], double a0, double a1, double b) {
    asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
        : "d"(a0), "d"(a1), "d"(b));
}

// Numbers between about -1 and 1 whose bits look random, of doubles or of floats.
template <class T> __global__ void fill(T* p, size_t n) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x) {
        unsigned long long h = (i + 1) * 0x9E3779B97F4A7C15ull;
        h ^= h >> 29;
        h *= 0xBF58476D1CE4E5B9ull;
        h ^= h >> 32;
        p[i] = T(double((long long)h) * 1e-19);
    }
}
