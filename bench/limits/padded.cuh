// Chunks of padded rows, WIDTH elements each that stand `stride` elements apart, copied or read, with the sectors of gaps fetched to the
// second-level cache first or not.
#pragma once

#include <cuda_runtime.h>

constexpr int THREADS = 256, NEVER = -1;

__device__ __forceinline__ float part(float v) { return v; }
__device__ __forceinline__ float part(float2 v) { return v.x + v.y; }
__device__ __forceinline__ float part(float4 v) { return v.x + v.y + v.z + v.w; }
__device__ __forceinline__ float part(double v) { return v; }
__device__ __forceinline__ float part(double2 v) { return v.x + v.y; }

__device__ __forceinline__ void fetch(size_t p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p) : "memory"); }

// The sectors that hold the last element of each row, and the first of each where it is another sector than that of the row before.
template <class T, int WIDTH, int ROWS> __device__ void fetch_ends(const T* rows, int stride) {
    for (int r = threadIdx.x; r < ROWS; r += THREADS) {
        const size_t last = size_t(&rows[size_t(r) * stride + WIDTH - 1]), next = size_t(&rows[size_t(r + 1) * stride]);
        fetch(last);
        if (last / 32 != next / 32 && r + 1 < ROWS) fetch(next);
    }
}

// What a block leaves of so many words, which is its part of a sum: it writes as many, whatever they are.
template <int WORDS> __device__ void leave(float* parts, float sum) {
    for (int i = threadIdx.x; i < WORDS; i += THREADS) parts[size_t(blockIdx.x) * WORDS + i] = sum;
}

// Blocks take turns with chunks of so many rows, which are copied to rows as far apart; or read and added up, with those of a second
// matrix, and a part of so many words left in the place of c. The sectors of gaps are fetched so many turns ahead.
template <class T, int WIDTH, int ROWS, int AHEAD, bool COPY, int LEFT = 0>
__global__ void __launch_bounds__(THREADS) chunks(const T* a, const T* b, T* c, size_t rows, int stride) {
    const size_t all = rows / ROWS, chunk = size_t(ROWS) * stride;
    constexpr int ELEMENTS = ROWS * WIDTH, HELD = (ELEMENTS + THREADS - 1) / THREADS;
    float sum = 0;
    for (size_t j = blockIdx.x; j < all; j += gridDim.x) {
        if (AHEAD != NEVER) {
            for (int d = j == blockIdx.x ? 0 : AHEAD; d <= AHEAD; ++d) {
                if (j + d * gridDim.x < all) fetch_ends<T, WIDTH, ROWS>(c + (j + d * gridDim.x) * chunk, stride);
            }
        }
        T held[HELD], other[HELD];
#pragma unroll
        for (int u = 0; u < HELD; ++u) {
            const int i = threadIdx.x + u * THREADS;
            const size_t at = j * chunk + i / WIDTH * stride + i % WIDTH;
            if (i < ELEMENTS) held[u] = a[at];
            if (!COPY && i < ELEMENTS) other[u] = b[at];
        }
#pragma unroll
        for (int u = 0; u < HELD; ++u) {
            const int i = threadIdx.x + u * THREADS;
            if (i >= ELEMENTS) continue;
            if constexpr (COPY) c[j * chunk + i / WIDTH * stride + i % WIDTH] = held[u];
            else sum += part(held[u]) + part(other[u]);
        }
    }
    if (sum == 1.2345f) c[0] = a[0];
    if (!COPY) leave<LEFT>((float*)c, sum);
}
