// Whether padded rows are written faster when the sectors that they fill only in part are fetched to the second-level cache first, so that
// they need not be read and written back later: rows of `WIDTH` elements that stand `stride` elements apart are copied to rows as far apart, in
// chunks that blocks take turns with, as `padded_rows` does; once as they are, once with the sectors of all gaps fetched so many turns ahead.
//
// For each case it prints GB/s of distinct sectors, the best of several grids. Build and run:
//
//     nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a -o limits padded_rows_fetched.cu && ./limits

#include <algorithm>
#include <cstdio>
#include <cuda_runtime.h>
#include <set>

#include "padded.cuh"

constexpr size_t BYTES = size_t(1) << 30;

static cudaEvent_t before, after;
static int multiprocessors;
static void *a, *c;

template <class T, int WIDTH, int ROWS, int AHEAD> double seconds(size_t rows, int stride) {
    float least = 1e9f;
    for (int blocks : {2, 4, 8, 16}) {
        for (int i = 0; i < 4; ++i) {
            cudaEventRecord(before);
            chunks<T, WIDTH, ROWS, AHEAD, true><<<blocks * multiprocessors, THREADS>>>((const T*)a, (const T*)a, (T*)c, rows, stride);
            cudaEventRecord(after);
            cudaEventSynchronize(after);
            float milliseconds = 0;
            cudaEventElapsedTime(&milliseconds, before, after);
            least = std::min(least, milliseconds);
        }
    }
    return least / 1e3;
}

// Distinct sectors of 32 bytes that a row touches in the mean.
double sectors(long width, long stride) {
    std::set<long> all;
    for (long row = 0; row < 32; ++row) {
        for (long s = row * stride / 32; s <= (row * stride + width - 1) / 32; ++s) all.insert(s);
    }
    return all.size() / 32.0;
}

template <class T, int WIDTH, int ROWS> void measure(std::initializer_list<int> strides) {
    for (int stride : strides) {
        const size_t rows = BYTES / (stride * sizeof(T)) / ROWS * ROWS;
        const double moved = 2 * 32 * rows * sectors(WIDTH * sizeof(T), stride * sizeof(T)) / 1e9;
        const double fetched[] = {
            moved / seconds<T, WIDTH, ROWS, 0>(rows, stride),
            moved / seconds<T, WIDTH, ROWS, 1>(rows, stride),
            moved / seconds<T, WIDTH, ROWS, 2>(rows, stride),
        };
        printf("  %2d bytes x %2d, stride %2d: %5.0f GB/s as they are; fetched in the same turn %5.0f, one ahead %5.0f, two ahead %5.0f\n",
               int(sizeof(T)), WIDTH, stride, moved / seconds<T, WIDTH, ROWS, NEVER>(rows, stride), fetched[0], fetched[1], fetched[2]);
        fflush(stdout);
    }
}

int main() {
    cudaDeviceProp device;
    if (cudaGetDeviceProperties(&device, 0) != cudaSuccess) {
        printf("this needs a GPU; skipped\n");
        return 0;
    }
    if (cudaMalloc(&a, BYTES) != cudaSuccess || cudaMalloc(&c, BYTES) != cudaSuccess) {
        printf("there is no room for 2 GiB; skipped\n");
        return 0;
    }
    cudaMemset(a, 0, BYTES);
    cudaMemset(c, 0, BYTES);
    multiprocessors = device.multiProcessorCount;
    cudaEventCreate(&before);
    cudaEventCreate(&after);
    printf("%s, rows of 1 GiB\n", device.name);
    measure<float, 9, 128>({9, 10, 16});
    measure<float, 16, 64>({16, 17, 24});
    measure<float, 24, 64>({24, 25, 32});
    measure<float, 32, 64>({32, 33, 40});
    measure<double, 4, 128>({4, 5, 8});
    measure<double, 9, 64>({9, 10, 16});
    measure<double, 16, 64>({16, 17});
    measure<double, 24, 64>({24, 25});
    measure<double, 32, 32>({32, 33});
    measure<double2, 4, 64>({4, 5});
    measure<double2, 16, 32>({16, 17});
    measure<double2, 32, 32>({32, 33});
    if (cudaDeviceSynchronize() != cudaSuccess) {
        printf("failed: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 1;
    }
}
