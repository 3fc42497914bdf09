// What a copy of padded rows takes that brings the sectors which it will write in part by a word of each, and waits for them: rows of `width` elements that
// stand `stride` elements apart, 2 GiB from the first to the last, where device memory gives 32 bytes at a time. Blocks copy one chunk of rows each and
// make room. Words are asked for before rows or behind them; may be said to stay in the second-level cache, and rows to leave it first; rows come through
// shared memory or by plain loads; and gaps may be written over too, which nobody may, but which shows what words cost. Times are medians of three
// launches, the best of three sizes of blocks and of so many blocks on a multiprocessor as fit or fewer.
//
//     nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a -o words_of_sectors words_of_sectors.cu && ./words_of_sectors

#include <algorithm>
#include <cstdio>
#include <cuda_runtime.h>

#include "padded.cuh"

constexpr size_t BYTES = size_t(2) << 30;

enum Priority { USUAL, LAST, FIRST };

// What the second-level cache is told about the order in which it may drop what is accessed.
template <int PRIORITY> __device__ __forceinline__ unsigned long long policy() {
    unsigned long long p = 0;
    if (PRIORITY == LAST) asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(p));
    if (PRIORITY == FIRST) asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(p));
    return p;
}

template <class T, int PRIORITY> __device__ __forceinline__ void ask(const void* to, size_t from, unsigned long long p) {
    if constexpr (PRIORITY == USUAL) copy_later<T>(to, from);
    else
        asm volatile("cp.async.ca.shared.global.L2::cache_hint [%0], [%1], %2, %3;" ::"r"(unsigned(__cvta_generic_to_shared(to))), "l"(from),
                     "n"(sizeof(T)), "l"(p)
                     : "memory");
}

// PLAIN: rows by loads to registers. OVER: gaps are written too.
template <class T, int WIDTH, int ROWS, int SIZE, int WORDS, int STAY, int OF_A, bool PLAIN, bool OVER>
__global__ void __launch_bounds__(SIZE) copied(const T* a, T* c, int stride) {
    extern __shared__ __align__(16) unsigned char shared[];
    constexpr int ELEMENTS = ROWS * WIDTH, HELD = (ELEMENTS + SIZE - 1) / SIZE;
    T* const held = (T*)shared;
    unsigned* const landing = (unsigned*)(held + ELEMENTS);
    const T* from = a + size_t(blockIdx.x) * ROWS * stride;
    T* to = c + size_t(blockIdx.x) * ROWS * stride;
    const auto stays = policy<STAY>(), of_a = policy<OF_A>();
    const auto words = [&] {
        for (int r = threadIdx.x; r < ROWS; r += SIZE) {
            const size_t begin = size_t(&to[size_t(r) * stride]), end = begin + WIDTH * sizeof(T), before = begin - (stride - WIDTH) * sizeof(T);
            const bool asked = r > 0 && before % 32 != 0 && before / 32 == begin / 32;
            if (begin % 32 != 0 && !asked) ask<unsigned, STAY>(&landing[threadIdx.x], begin / 32 * 32, stays);
            if (end % 32 != 0) ask<unsigned, STAY>(&landing[threadIdx.x], end / 32 * 32, stays);
        }
    };
    if (WORDS == WORDS_FIRST) words();
    T own[PLAIN ? HELD : 1];
    if constexpr (PLAIN) {
#pragma unroll
        for (int u = 0; u < HELD; ++u) {
            const int i = threadIdx.x + u * SIZE;
            if (i < ELEMENTS) own[u] = from[size_t(i / WIDTH) * stride + i % WIDTH];
        }
    } else {
#pragma unroll 4
        for (int i = threadIdx.x; i < ELEMENTS; i += SIZE) ask<T, OF_A>(&held[i], size_t(&from[size_t(i / WIDTH) * stride + i % WIDTH]), of_a);
    }
    if (WORDS == WORDS_BEHIND) words();
    asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    if constexpr (PLAIN) {
#pragma unroll
        for (int u = 0; u < HELD; ++u) {
            const int i = threadIdx.x + u * SIZE;
            if (i < ELEMENTS) to[size_t(i / WIDTH) * stride + i % WIDTH] = own[u];
        }
    } else if constexpr (OVER) {
#pragma unroll 4
        for (int i = threadIdx.x; i < ROWS * stride; i += SIZE) to[i] = held[min(i / stride * WIDTH + i % stride, ELEMENTS - 1)];
    } else {
#pragma unroll 4
        for (int i = threadIdx.x; i < ELEMENTS; i += SIZE) to[size_t(i / WIDTH) * stride + i % WIDTH] = held[i];
    }
}

static char *a, *c;

// The best of blocks of SIZE threads, 64 bytes of a thread, with room for so many of them on a multiprocessor.
template <class T, int WIDTH, int SIZE, int WORDS, int STAY, int OF_A, bool PLAIN, bool OVER> float best_of(int stride) {
    constexpr int FEW = 64 * SIZE / int(sizeof(T)) / WIDTH, ROWS = FEW >= 256 ? 256 : FEW >= 128 ? 128 : FEW >= 64 ? 64 : FEW >= 32 ? 32 : FEW >= 16 ? 16 : 8;
    const auto kernel = copied<T, WIDTH, ROWS, SIZE, WORDS, STAY, OF_A, PLAIN, OVER>;
    const int needed = ROWS * WIDTH * sizeof(T) + SIZE * 4;
    const size_t blocks = BYTES / (stride * sizeof(T)) / ROWS;
    static cudaEvent_t before, after;
    if (!before) cudaEventCreate(&before), cudaEventCreate(&after);
    float best = 1e9;
    for (int at_a_time : {0, 20, 14, 10, 8, 6, 5}) {
        const int room = at_a_time ? (227 << 10) / at_a_time - 1024 : needed;
        if (room < needed) continue;
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, room);
        float times[3];
        for (int i = -1; i < 3; ++i) {
            float t;
            cudaEventRecord(before);
            kernel<<<blocks, SIZE, room>>>((const T*)a, (T*)c, stride);
            cudaEventRecord(after);
            cudaEventSynchronize(after);
            cudaEventElapsedTime(&t, before, after);
            if (i >= 0) times[i] = t;
        }
        std::sort(times, times + 3);
        best = std::min(best, times[1]);
    }
    return best * 1e3f;
}

template <class T, int WIDTH, int WORDS, int STAY, int OF_A, bool PLAIN, bool OVER> void line(const char* what, int stride) {
    const float best = std::min({best_of<T, WIDTH, 64, WORDS, STAY, OF_A, PLAIN, OVER>(stride), best_of<T, WIDTH, 128, WORDS, STAY, OF_A, PLAIN, OVER>(stride),
                                 best_of<T, WIDTH, 256, WORDS, STAY, OF_A, PLAIN, OVER>(stride)});
    printf("  %-58s %6.0f us\n", what, best);
    fflush(stdout);
}

template <class T, int WIDTH> void all(const char* what, int stride) {
    printf("%s, rows %d elements apart\n", what, stride);
    line<T, WIDTH, NO_WORDS, USUAL, USUAL, false, false>("as they are", stride);
    line<T, WIDTH, NO_WORDS, USUAL, FIRST, false, false>("as they are, A to leave first", stride);
    line<T, WIDTH, WORDS_FIRST, USUAL, USUAL, false, false>("words before rows", stride);
    line<T, WIDTH, WORDS_BEHIND, USUAL, USUAL, false, false>("words behind rows", stride);
    line<T, WIDTH, WORDS_FIRST, LAST, USUAL, false, false>("words before rows that are to stay", stride);
    line<T, WIDTH, WORDS_BEHIND, LAST, USUAL, false, false>("words behind rows that are to stay", stride);
    line<T, WIDTH, WORDS_FIRST, USUAL, USUAL, true, false>("words before plain loads of A", stride);
    line<T, WIDTH, WORDS_FIRST, LAST, USUAL, true, false>("words before plain loads of A that are to stay", stride);
    line<T, WIDTH, NO_WORDS, USUAL, USUAL, false, true>("gaps written over", stride);
}

int main() {
    if (cudaMalloc(&a, BYTES) != cudaSuccess || cudaMalloc(&c, BYTES) != cudaSuccess) {
        fprintf(stderr, "this needs a GPU with 4 GiB; skipped\n");
        return 0;
    }
    cudaMemset(a, 0x3f, BYTES);
    cudaDeviceSetLimit(cudaLimitMaxL2FetchGranularity, 32);
    all<double, 24>("f64, 24 columns", 25);
    all<double, 16>("f64, 16 columns", 17);
    all<float, 32>("f32, 32 columns", 33);
    all<double, 64>("c128, 32 columns (as 64 of f64)", 66);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
