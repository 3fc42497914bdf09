// Chunks of padded rows, WIDTH elements each that stand `stride` elements apart, copied or read, with the sectors of gaps fetched to the
// second-level cache first or not.
#pragma once

#include <algorithm>
#include <cuda_runtime.h>

constexpr int THREADS = 256, NEVER = -1;

__device__ __forceinline__ float part(float v) { return v; }
__device__ __forceinline__ float part(float2 v) { return v.x + v.y; }
__device__ __forceinline__ float part(float4 v) { return v.x + v.y + v.z + v.w; }
__device__ __forceinline__ float part(double v) { return v; }
__device__ __forceinline__ float part(double2 v) { return v.x + v.y; }

// Numbers between -1 and 1, of 24 random bits each.
__global__ void random_numbers(float* numbers, size_t count, unsigned seed) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x) {
        unsigned h = unsigned(i) * 2654435761u ^ seed;
        h ^= h >> 16, h *= 0x85ebca6bu, h ^= h >> 13, h *= 0xc2b2ae35u, h ^= h >> 16;
        numbers[i] = (h >> 8) / 8388608.0f - 1;
    }
}

// Seconds of the median of five launches after one that is not counted.
template <class Launch> double median_of_five(Launch launch) {
    static cudaEvent_t before, after;
    if (!before) cudaEventCreate(&before), cudaEventCreate(&after);
    float times[5];
    launch();
    for (float& t : times) {
        cudaEventRecord(before);
        launch();
        cudaEventRecord(after);
        cudaEventSynchronize(after);
        cudaEventElapsedTime(&t, before, after);
    }
    std::sort(times, times + 5);
    return times[2] / 1e3;
}

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

enum Ends { AS_THEY_ARE, PREFETCHED, LOADED };

// What a thread copies to shared memory, which arrives later: 4, 8 or 16 bytes.
template <class T> __device__ __forceinline__ void copy_later(const void* to, size_t from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(unsigned(__cvta_generic_to_shared(to))), "l"(from), "n"(sizeof(T)) : "memory");
}

enum Words { NO_WORDS, WORDS_FIRST, WORDS_BEHIND };

// A block of so many threads copies a word of each sector that is written in part, where rows of so many bytes are stored to, to where nobody looks.
template <int ROWS, int SIZE> __device__ __forceinline__ void copy_words(unsigned* landing, const void* to, size_t stride, int row) {
    for (int r = threadIdx.x; r < ROWS; r += SIZE) {
        const size_t begin = size_t(to) + r * stride, end = begin + row, before = begin - (stride - row);
        // The row before may end in the sector in which this one begins.
        const bool asked = r > 0 && before % 32 != 0 && before / 32 == begin / 32;
        if (begin % 32 != 0 && !asked) copy_later<unsigned>(&landing[threadIdx.x], begin / 32 * 32);
        if (end % 32 != 0) copy_later<unsigned>(&landing[threadIdx.x], end / 32 * 32);
    }
}

// A block of so many threads copies one chunk through shared memory, and makes room. A word of each sector that is written in part is copied too, before the
// chunk or behind it, and everybody stores when all is there.
template <class T, int WIDTH, int ROWS, int SIZE, int WORDS> __global__ void __launch_bounds__(SIZE) staged_chunk(const T* a, T* c, int stride) {
    constexpr int ELEMENTS = ROWS * WIDTH;
    __shared__ __align__(16) unsigned char held[ELEMENTS * sizeof(T)];
    __shared__ unsigned landing[SIZE];
    const T* from = a + size_t(blockIdx.x) * ROWS * stride;
    T* to = c + size_t(blockIdx.x) * ROWS * stride;
    const auto words = [&] { copy_words<ROWS, SIZE>(landing, to, stride * sizeof(T), WIDTH * sizeof(T)); };
    if (WORDS == WORDS_FIRST) words();
#pragma unroll 4
    for (int i = threadIdx.x; i < ELEMENTS; i += SIZE) copy_later<T>(&((T*)held)[i], size_t(&from[size_t(i / WIDTH) * stride + i % WIDTH]));
    if (WORDS == WORDS_BEHIND) words();
    asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;" ::: "memory");
    __syncthreads();
#pragma unroll 4
    for (int i = threadIdx.x; i < ELEMENTS; i += SIZE) to[size_t(i / WIDTH) * stride + i % WIDTH] = ((T*)held)[i];
}

// A block copies one chunk, and makes room. Sectors that rows of the copy share with gaps, those alone that are written in part, are prefetched, by
// every `group`th block for as many chunks; or loaded, and everybody stores when they are there.
template <class T, int WIDTH, int ROWS, int ENDS> __global__ void __launch_bounds__(THREADS) one_chunk(const T* a, T* c, size_t all, int stride, int group) {
    const size_t j = blockIdx.x, chunk = size_t(ROWS) * stride;
    unsigned sum = 0;
    if (ENDS != AS_THEY_ARE && j % group == 0) {
        const T* rows = c + j * chunk;
        const int count = int(size_t(group) < all - j ? size_t(group) : all - j) * ROWS - 1;
        for (int r = threadIdx.x; r < count; r += THREADS) {
            const size_t end = size_t(&rows[size_t(r) * stride + WIDTH]), next = size_t(&rows[size_t(r + 1) * stride]);
            const size_t at_end = end / 32 * 32, at_next = next / 32 * 32;
            const bool ends = end % 32 != 0, begins = next % 32 != 0 && !(ends && at_end == at_next);
            if (ENDS == PREFETCHED) {
                if (ends) fetch(at_end);
                if (begins) fetch(at_next);
            } else {
                if (ends) sum ^= __ldcg((const unsigned*)at_end);
                if (begins) sum ^= __ldcg((const unsigned*)at_next);
            }
        }
    }
    constexpr int ELEMENTS = ROWS * WIDTH, HELD = (ELEMENTS + THREADS - 1) / THREADS;
    T held[HELD];
#pragma unroll
    for (int u = 0; u < HELD; ++u) {
        const int i = threadIdx.x + u * THREADS;
        if (i < ELEMENTS) held[u] = a[j * chunk + i / WIDTH * stride + i % WIDTH];
    }
    if (ENDS == LOADED && sum == 0x9e3779b9u) return;  // Hardly ever, but whoever asks waits for what was loaded.
#pragma unroll
    for (int u = 0; u < HELD; ++u) {
        const int i = threadIdx.x + u * THREADS;
        if (i < ELEMENTS) c[j * chunk + i / WIDTH * stride + i % WIDTH] = held[u];
    }
}
