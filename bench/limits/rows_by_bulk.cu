// What it costs to bring rows to shared memory by a bulk copy each: two matrices of rows of 16 bytes an element, in groups of rows to a ring of
// four stages, by one warp that only asks; eight others wait for each stage and give it back. Rows follow each other in device memory, and in
// shared memory they stand 32 bytes apart, so that four of them that are read together would begin in different banks.
//
// For each width GB/s of reads: of groups as two copies (`groups`), of rows that one lane asks for, one after the other (`a lane`), and of rows
// that all lanes share out (`lanes`). Build and run:
//
//     nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a -o rows rows_by_bulk.cu && ./rows

#include <algorithm>
#include <cstdio>
#include <cuda_runtime.h>

#include "bulk.cuh"

constexpr size_t OPERAND = size_t(1) << 31;
constexpr int WARPS = 8, STAGES = 4, PADDING = 32;

enum By { GROUPS, A_LANE, LANES };

// Bytes of a row in device memory and in shared memory, and of a stage.
template <By BY, int ROWS, int WIDTH> struct Shape {
    static constexpr int row = 16 * WIDTH, pitch = BY == GROUPS ? row : row + PADDING, stage = 2 * ROWS * pitch;
};

template <By BY, int ROWS, int WIDTH>
__global__ void __launch_bounds__(32 * (WARPS + 1), 1) brings(const char* a, const char* b, int groups, double* out) {
    using S = Shape<BY, ROWS, WIDTH>;
    extern __shared__ __align__(128) char ring[];
    __shared__ uint64_t full[STAGES], empty[STAGES];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) {
            init(&full[s], 1);
            init(&empty[s], WARPS);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    int stage = 0, parity = 0;
    auto next = [&] {
        if (++stage == STAGES) stage = 0, parity ^= 1;
    };
    if (warp == WARPS) {
        bool again = false;
        for (int g = blockIdx.x; g < groups; g += gridDim.x) {
            if (again) wait(&empty[stage], parity ^ 1);
            char* const to = ring + stage * S::stage;
            const char* const from[2] = {a + size_t(g) * ROWS * S::row, b + size_t(g) * ROWS * S::row};
            if (lane == 0) expect(&full[stage], 2 * ROWS * S::row);
            __syncwarp();
            if (BY == LANES) {
                for (int r = lane; r < 2 * ROWS; r += 32) bring(to + r * S::pitch, from[r / ROWS] + r % ROWS * S::row, S::row, &full[stage]);
            } else if (lane == 0) {
                constexpr int COPIES = BY == GROUPS ? 1 : ROWS, BYTES = ROWS / COPIES * S::row;
#pragma unroll
                for (int r = 0; r < 2 * COPIES; ++r) {
                    bring(to + r * (ROWS / COPIES) * S::pitch, from[r / COPIES] + r % COPIES * BYTES, BYTES, &full[stage]);
                }
            }
            __syncwarp();
            next();
            again |= stage == 0;
        }
        return;
    }
    double sum = 0;
    for (int g = blockIdx.x; g < groups; g += gridDim.x) {
        wait(&full[stage], parity);
        sum += reinterpret_cast<const double*>(ring + stage * S::stage)[lane];
        __syncwarp();
        if (lane == 0) arrive(&empty[stage]);
        next();
    }
    if (sum == 1.2345) out[0] = sum;  // Never, but the compiler does not know.
}

static int multiprocessors;

template <By BY, int ROWS, int WIDTH> double bandwidth(const char* a, const char* b, double* out) {
    using S = Shape<BY, ROWS, WIDTH>;
    const int groups = OPERAND / (ROWS * S::row);
    const auto kernel = brings<BY, ROWS, WIDTH>;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, STAGES * S::stage);
    cudaEvent_t before, after;
    cudaEventCreate(&before);
    cudaEventCreate(&after);
    float times[5];
    for (float& time : times) {
        cudaEventRecord(before);
        kernel<<<multiprocessors, 32 * (WARPS + 1), STAGES * S::stage>>>(a, b, groups, out);
        cudaEventRecord(after);
        cudaEventSynchronize(after);
        cudaEventElapsedTime(&time, before, after);
    }
    std::sort(times, times + 5);
    return 2.0 * groups * ROWS * S::row / times[2] / 1e6;
}

template <int ROWS, int WIDTH> void measure(const char* a, const char* b, double* out) {
    printf("  %2d elements, groups of %d rows: groups %4.0f, a lane %4.0f, lanes %4.0f GB/s\n", WIDTH, ROWS, bandwidth<GROUPS, ROWS, WIDTH>(a, b, out),
           bandwidth<A_LANE, ROWS, WIDTH>(a, b, out), bandwidth<LANES, ROWS, WIDTH>(a, b, out));
}

int main() {
    cudaDeviceProp device;
    if (cudaGetDeviceProperties(&device, 0) != cudaSuccess || device.major < 9) {
        printf("this needs a GPU of compute capability 9.0 or newer; skipped\n");
        return 0;
    }
    multiprocessors = device.multiProcessorCount;
    char *a, *b;
    double* out;
    if (cudaMalloc(&a, OPERAND) != cudaSuccess || cudaMalloc(&b, OPERAND) != cudaSuccess || cudaMalloc(&out, sizeof(double)) != cudaSuccess) {
        printf("there is no room for 4 GiB; skipped\n");
        return 0;
    }
    cudaMemset(a, 0, OPERAND);
    cudaMemset(b, 0, OPERAND);
    printf("%s\n", device.name);
    measure<16, 8>(a, b, out), measure<32, 8>(a, b, out);
    measure<16, 16>(a, b, out), measure<32, 16>(a, b, out);
    measure<16, 24>(a, b, out), measure<32, 24>(a, b, out);
    measure<16, 32>(a, b, out), measure<32, 32>(a, b, out);
    measure<16, 40>(a, b, out), measure<32, 40>(a, b, out);
    measure<16, 48>(a, b, out), measure<32, 48>(a, b, out);
    measure<16, 56>(a, b, out), measure<16, 64>(a, b, out);
    if (cudaDeviceSynchronize() != cudaSuccess) {
        printf("failed: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 1;
    }
}
