// What sectors cost that are written in part: rows of `width` elements that stand `stride` apart, written to 1 GiB without reading anything, or to the same
// 16 MB again and again, which the second-level cache keeps; copied from as many; and their gaps' sectors asked for without writing. By other stores too, and
// with the two ends of a gap written by one instruction. Blocks take turns with chunks of rows; times are medians of five launches, on two grids.
//
//     nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a -o partial_sectors partial_sectors.cu
//     ./partial_sectors
//     ONCE=1 ncu --clock-control none --metrics dram__bytes_read.sum,dram__bytes_write.sum,gpu__time_duration.sum ./partial_sectors

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "padded.cuh"

constexpr size_t BYTES = size_t(1) << 30, KEPT = size_t(16) << 20;

enum Store { PLAIN, STREAMING, GLOBAL, EVICTED_FIRST, EVICTED_LAST };

template <int STORE, class T> __device__ __forceinline__ void put(T* p, T v) {
    if constexpr (STORE == PLAIN) *p = v;
    else if constexpr (STORE == STREAMING) __stcs(p, v);
    else if constexpr (STORE == GLOBAL) __stcg(p, v);
    else {
        unsigned long long policy;
        if constexpr (STORE == EVICTED_FIRST) asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
        else asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
        if constexpr (sizeof(T) == 4) asm volatile("st.global.L2::cache_hint.b32 [%0], %1, %2;" ::"l"(p), "f"(float(v)), "l"(policy) : "memory");
        else asm volatile("st.global.L2::cache_hint.b64 [%0], %1, %2;" ::"l"(p), "d"(double(v)), "l"(policy) : "memory");
    }
}

// Rows are written, with what is read of A or nothing; chunks of C come again after `kept` of them. Where rows are shifted, the end of one and the
// beginning of the next are written by one warp.
template <class T, int WIDTH, int ROWS, bool READ, bool SHIFTED, int STORE>
__global__ void __launch_bounds__(THREADS) writes(const T* a, T* c, size_t all, int stride, size_t kept) {
    const size_t chunk = size_t(ROWS) * stride;
    constexpr int ELEMENTS = ROWS * WIDTH, HELD = ELEMENTS / THREADS;
    const auto place = [=](int u) {
        const int i = threadIdx.x + u * THREADS + (SHIFTED ? WIDTH / 2 : 0), at = i < ELEMENTS ? i : i - ELEMENTS;
        return size_t(at / WIDTH * stride + at % WIDTH);
    };
    for (size_t j = blockIdx.x; j < all; j += gridDim.x) {
        T held[HELD];
#pragma unroll
        for (int u = 0; u < HELD; ++u) held[u] = READ ? a[j * chunk + place(u)] : T{};
#pragma unroll
        for (int u = 0; u < HELD; ++u) put<STORE>(&c[j % kept * chunk + place(u)], held[u]);
    }
}

template <class T, int WIDTH, int ROWS> __global__ void __launch_bounds__(THREADS) only_fetches(const T* c, size_t all, int stride) {
    for (size_t j = blockIdx.x; j < all; j += gridDim.x) fetch_ends<T, WIDTH, ROWS>(c + j * size_t(ROWS) * stride, stride);
}

template <class Launch> void timed(const char* what, Launch launch) {
    static cudaEvent_t before, after;
    if (!before) cudaEventCreate(&before), cudaEventCreate(&after);
    printf("  %-28s", what);
    for (int blocks : {8, 16}) {
        const int grid = 132 * blocks, launches = getenv("ONCE") ? 1 : 5;
        float times[5];
        if (launches > 1) launch(grid);
        for (int i = 0; i < launches; ++i) {
            cudaEventRecord(before);
            launch(grid);
            cudaEventRecord(after);
            cudaEventSynchronize(after);
            cudaEventElapsedTime(&times[i], before, after);
        }
        std::sort(times, times + launches);
        printf(" %6.0f us", times[launches / 2] * 1e3);
    }
    printf("\n");
}

template <class T, int WIDTH> void all(const char* type, const char* from, char* to, int stride) {
    constexpr int ROWS = 2048 / WIDTH / 32 * 32 > 0 ? 2048 / WIDTH / 32 * 32 : 32;
    const size_t chunk = size_t(ROWS) * stride * sizeof(T), chunks_ = BYTES / chunk, kept = KEPT / chunk;
    const T* a = (const T*)from;
    T* c = (T*)to;
    printf("%s, %d columns, rows %d apart: %zu rows, with 8 and 16 blocks a multiprocessor\n", type, WIDTH, stride, chunks_ * ROWS);
    timed("written", [=](int grid) { writes<T, WIDTH, ROWS, false, false, PLAIN><<<grid, THREADS>>>(a, c, chunks_, stride, chunks_); });
    timed("written in 16 MB", [=](int grid) { writes<T, WIDTH, ROWS, false, false, PLAIN><<<grid, THREADS>>>(a, c, chunks_, stride, kept); });
    timed("written by both ends", [=](int grid) { writes<T, WIDTH, ROWS, false, true, PLAIN><<<grid, THREADS>>>(a, c, chunks_, stride, chunks_); });
    timed("asked for", [=](int grid) { only_fetches<T, WIDTH, ROWS><<<grid, THREADS>>>(c, chunks_, stride); });
    timed("copied", [=](int grid) { writes<T, WIDTH, ROWS, true, false, PLAIN><<<grid, THREADS>>>(a, c, chunks_, stride, chunks_); });
    timed("copied by both ends", [=](int grid) { writes<T, WIDTH, ROWS, true, true, PLAIN><<<grid, THREADS>>>(a, c, chunks_, stride, chunks_); });
    timed("copied, streaming", [=](int grid) { writes<T, WIDTH, ROWS, true, false, STREAMING><<<grid, THREADS>>>(a, c, chunks_, stride, chunks_); });
    timed("copied, cached globally", [=](int grid) { writes<T, WIDTH, ROWS, true, false, GLOBAL><<<grid, THREADS>>>(a, c, chunks_, stride, chunks_); });
    timed("copied, evicted first", [=](int grid) { writes<T, WIDTH, ROWS, true, false, EVICTED_FIRST><<<grid, THREADS>>>(a, c, chunks_, stride, chunks_); });
    timed("copied, evicted last", [=](int grid) { writes<T, WIDTH, ROWS, true, false, EVICTED_LAST><<<grid, THREADS>>>(a, c, chunks_, stride, chunks_); });
}

int main() {
    char *a, *c;
    if (cudaMalloc(&a, BYTES + 4096) != cudaSuccess || cudaMalloc(&c, BYTES + 4096) != cudaSuccess) {
        fprintf(stderr, "this needs a GPU with 2 GiB; skipped\n");
        return 0;
    }
    cudaMemset(a, 1, BYTES);
    cudaMemset(c, 1, BYTES);
    all<double, 32>("f64", a, c, 32);
    all<double, 32>("f64", a, c, 33);
    all<double, 24>("f64", a, c, 25);
    all<float, 32>("f32", a, c, 33);
    all<float, 32>("f32", a, c, 40);
    all<double, 8>("f64", a, c, 9);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
