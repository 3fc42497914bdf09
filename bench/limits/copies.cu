// How many cycles a multiprocessor takes for an asynchronous copy to shared memory, and for a load and a store instead, by bytes
// of a lane and by how the lanes stand over rows. Eight multiprocessors copy different parts of 32 MB that lie in the second-level
// cache: all of them together would be limited by that cache and not by their own (with 132, 16 bytes a lane took 19 cycles, 4 bytes 4).
//
//     nvcc -O3 -arch=sm_90a -o copies copies.cu && ./copies

#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

constexpr int MULTIPROCESSORS = 8, THREADS = 1024, COPIES = 12, ROUNDS = 60;

inline void check(cudaError_t error, int line = __builtin_LINE()) {
    if (error == cudaSuccess) return;
    printf("failed at line %d: %s\n", line, cudaGetErrorString(error));
    exit(1);
}

// How a copy is done.
enum How { ASYNC, THROUGH_REGISTERS, ASYNC_PAST_FIRST_LEVEL };

template <int BYTES, int HOW> __device__ __forceinline__ void copy(unsigned to, const char* from) {
    if (HOW == ASYNC) asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(BYTES) : "memory");
    if (HOW == ASYNC_PAST_FIRST_LEVEL) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
    }
}

// Copies groups of rows as a kernel does: all threads, COPIES pieces each, then all wait for them. `of_a_row` threads copy a row,
// which takes `pitch` bytes in device memory and `staged` in shared memory; where there are none, all is one piece.
template <int BYTES, int HOW>
__global__ void __launch_bounds__(THREADS) copies(const char* memory, int of_a_row, int pitch, int staged, int shift,
                                                  long long size, long long* cycles, float* out) {
    extern __shared__ __align__(128) char shared[];
    const unsigned base = (unsigned)__cvta_generic_to_shared(shared);
    const int t = threadIdx.x;
    // Threads of whole rows only.
    const int rows = of_a_row ? THREADS / of_a_row : 0;
    const bool idle = of_a_row && t >= rows * of_a_row;
    const int from = of_a_row ? t / of_a_row * pitch + t % of_a_row * BYTES : t * BYTES;
    const int to = of_a_row ? t / of_a_row * staged + t % of_a_row * BYTES : t * BYTES;
    const int each = of_a_row ? rows * pitch : THREADS * BYTES, each_to = of_a_row ? rows * staged : THREADS * BYTES;
    const char* mine = memory + size / gridDim.x / 16 * 16 * blockIdx.x + shift + from;
    const char* my_begin = mine;
    const char* my_end = mine + size / gridDim.x - each * (COPIES + 1) - 4096;
    __syncthreads();
    const long long begin = clock64();
    for (int round = 0; round < ROUNDS; ++round) {
        if (HOW == THROUGH_REGISTERS) {
            float values[COPIES][BYTES / 4];
            #pragma unroll
            for (int i = 0; i < COPIES; ++i) {
                for (int e = 0; e < BYTES / 4; ++e) {
                    if (!idle) values[i][e] = __ldcg((const float*)(mine + i * each) + e);
                }
            }
            #pragma unroll
            for (int i = 0; i < COPIES; ++i) {
                for (int e = 0; e < BYTES / 4; ++e) {
                    if (!idle) *((volatile float*)(shared + to + i * each_to) + e) = values[i][e];
                }
            }
        } else if (!idle) {
            #pragma unroll
            for (int i = 0; i < COPIES; ++i) copy<BYTES, HOW>(base + to + i * each_to, mine + i * each);
        }
        asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;" ::: "memory");
        __syncthreads();
        mine += each * COPIES;
        if (mine > my_end) mine = my_begin;
    }
    const long long end = clock64();
    if (t == 0) cycles[blockIdx.x] = end - begin;
    out[blockIdx.x * THREADS + t] = ((volatile float*)shared)[t];
}

template <int BYTES, int HOW> void line(const char* name, int of_a_row, int pitch, int staged, int shift, const char* memory,
                                        long long size, long long* cycles, float* out) {
    const int rows = of_a_row ? THREADS / of_a_row : 0;
    const int shared = (of_a_row ? rows * staged : THREADS * BYTES) * COPIES + 1024;
    check(cudaFuncSetAttribute(copies<BYTES, HOW>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    long long least = 1ll << 60;
    long long taken[MULTIPROCESSORS];
    for (int run = 0; run < 5; ++run) {
        copies<BYTES, HOW><<<MULTIPROCESSORS, THREADS, shared>>>(memory, of_a_row, pitch, staged, shift, size, cycles, out);
        check(cudaGetLastError());
        check(cudaMemcpy(taken, cycles, sizeof taken, cudaMemcpyDeviceToHost));
        long long sum = 0;
        for (long long t : taken) sum += t;
        if (sum / MULTIPROCESSORS < least) least = sum / MULTIPROCESSORS;
    }
    // Warp instructions of a multiprocessor, and bytes that arrive.
    const double instructions = double(ROUNDS) * COPIES * THREADS / 32;
    const double bytes = double(ROUNDS) * COPIES * (of_a_row ? rows * of_a_row : THREADS) * BYTES;
    printf("%-62s %8.2f %8.1f\n", name, least / instructions, bytes / least);
}

int main() {
    cudaDeviceProp properties;
    check(cudaGetDeviceProperties(&properties, 0));
    const long long size = 32ll << 20;
    char* memory;
    long long* cycles;
    float* out;
    check(cudaMalloc(&memory, size + (1 << 20)));
    check(cudaMemset(memory, 0, size + (1 << 20)));
    check(cudaMalloc(&cycles, sizeof(long long) * MULTIPROCESSORS));
    check(cudaMalloc(&out, sizeof(float) * MULTIPROCESSORS * THREADS));
    printf("%s\n%-62s %8s %8s\n", properties.name, "copies of a warp to shared memory, from the second-level cache", "cycles",
           "B/cycle");
#define LINE(name, BYTES, HOW, of_a_row, pitch, staged, shift) \
    line<BYTES, HOW>(name, of_a_row, pitch, staged, shift, memory, size, cycles, out)
    LINE("16 bytes a lane, past the first level, as one", 16, ASYNC_PAST_FIRST_LEVEL, 0, 0, 0, 0);
    LINE("16 bytes a lane, past the first level, rows of 192", 16, ASYNC_PAST_FIRST_LEVEL, 12, 192, 192, 0);
    LINE("16 bytes a lane, as one", 16, ASYNC, 0, 0, 0, 0);
    LINE("8 bytes a lane, as one", 8, ASYNC, 0, 0, 0, 0);
    LINE("8 bytes a lane, rows of 184 as 192", 8, ASYNC, 23, 184, 192, 0);
    LINE("4 bytes a lane, as one", 4, ASYNC, 0, 0, 0, 0);
    LINE("4 bytes a lane, as one, from 4 bytes on", 4, ASYNC, 0, 0, 0, 4);
    LINE("4 bytes a lane, rows of 188 as 192", 4, ASYNC, 47, 188, 192, 0);
    LINE("4 bytes a lane, rows of 188 as 192, half a row", 4, ASYNC, 16, 188, 192, 0);
    LINE("4 bytes a lane, rows of 128", 4, ASYNC, 32, 128, 128, 0);
    LINE("4 bytes a lane, rows of 132 as 144", 4, ASYNC, 33, 132, 144, 0);
    LINE("4 bytes a lane through registers, as one", 4, THROUGH_REGISTERS, 0, 0, 0, 0);
    LINE("4 bytes a lane through registers, rows of 188 as 192", 4, THROUGH_REGISTERS, 47, 188, 192, 0);
}
