// How many multiply-adds of f32 a multiprocessor starts in a cycle, by how many registers each has to read. The register
// file has two banks, of the registers with even and with odd numbers; each gives one register of a warp in a cycle. What
// the instruction before has read in the same place of its operands comes from a small cache instead (`.reuse` in the
// machine code). register_banks.py counts what a kernel's machine code asks of the banks.
//
// Every kernel has 64 sums and repeats 256 multiply-adds in registers in the order of the source, to which the compiler
// keeps here: its choice of registers decides the rest, and is printed by
//
//     nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a -cubin -o banks.cubin register_banks.cu
//     nvdisasm -c banks.cubin | python3 register_banks.py
//
// Build and run:
//
//     nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a -o banks register_banks.cu && ./banks

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>

constexpr int THREADS = 128, SIDE = 8, SUMS = SIDE * SIDE, TIMES = 4, ROUNDS = 4000, RUNS = 9;

inline void check(cudaError_t error, int line = __builtin_LINE()) {
    if (error == cudaSuccess) return;
    printf("failed at line %d: %s\n", line, cudaGetErrorString(error));
    exit(1);
}

enum Order { ONE_PRODUCT, ONE_COLUMN, ROWS, DIAGONALS };

// Which sum the n-th multiply-add changes, and which factors it has.
struct Step {
    int sum, a, b;
};

__host__ __device__ constexpr Step step(Order order, int n) {
    const int outer = n / SIDE, inner = n % SIDE;
    const int turned = outer % 2 ? SIDE - 1 - inner : inner;
    switch (order) {
        case ONE_PRODUCT: return {n, 0, 0};
        case ONE_COLUMN: return {n, outer, 0};
        case ROWS: return {outer * SIDE + turned, outer, turned};
        default: return {inner * SIDE + (inner + outer) % SIDE, inner, (inner + outer) % SIDE};
    }
}

template <Order ORDER, int N> __device__ __forceinline__ void multiply_adds(float* c, const float* a, const float* b) {
    if constexpr (N < SUMS) {
        constexpr Step at = step(ORDER, N);
        asm volatile("fma.rn.f32 %0, %1, %2, %0;" : "+f"(c[at.sum]) : "f"(a[at.a]), "f"(b[at.b]));
        multiply_adds<ORDER, N + 1>(c, a, b);
    }
}

template <Order ORDER> __global__ void __launch_bounds__(THREADS) products(const float* p, float* out) {
    float a[SIDE], b[SIDE], c[SUMS];
#pragma unroll
    for (int i = 0; i < SIDE; ++i) {
        a[i] = p[threadIdx.x + THREADS * i];
        b[i] = p[threadIdx.x + THREADS * (i + SIDE)];
    }
#pragma unroll
    for (int i = 0; i < SUMS; ++i) c[i] = i;
#pragma unroll 1
    for (int round = 0; round < ROUNDS; ++round) {
#pragma unroll
        for (int time = 0; time < TIMES; ++time) multiply_adds<ORDER, 0>(c, a, b);
    }
    float sum = 0;
#pragma unroll
    for (int i = 0; i < SUMS; ++i) sum += c[i];
    out[blockIdx.x * THREADS + threadIdx.x] = sum;
}

template <Order ORDER> void measure(const char* what, int multiprocessors, double megahertz, float* p, float* out) {
    printf("  %-66s", what);
    for (int blocks = 1; blocks <= 4; ++blocks) {
        cudaEvent_t before, after;
        check(cudaEventCreate(&before));
        check(cudaEventCreate(&after));
        std::vector<float> times;
        for (int run = 0; run < RUNS; ++run) {
            check(cudaEventRecord(before));
            products<ORDER><<<blocks * multiprocessors, THREADS>>>(p, out);
            check(cudaGetLastError());
            check(cudaEventRecord(after));
            check(cudaEventSynchronize(after));
            times.emplace_back();
            check(cudaEventElapsedTime(&times.back(), before, after));
        }
        std::sort(times.begin(), times.end());
        // Of a scheduler, which starts one instruction of a warp in a cycle and has `blocks` warps of 4 here.
        const double started = double(blocks) * SUMS * TIMES * ROUNDS;
        printf("  %5.3f", started / (times[RUNS / 2] * 1e-3 * megahertz * 1e6));
    }
    printf("\n");
}

int main() {
    cudaDeviceProp device;
    if (cudaGetDeviceProperties(&device, 0) != cudaSuccess || device.major < 9) {
        printf("this needs a GPU of compute capability 9.0 or newer; skipped\n");
        return 0;
    }
    int kilohertz;
    check(cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, 0));
    float *p, *out;
    check(cudaMalloc(&p, 2 * SIDE * THREADS * sizeof(float)));
    check(cudaMemset(p, 0, 2 * SIDE * THREADS * sizeof(float)));
    check(cudaMalloc(&out, 4 * device.multiProcessorCount * THREADS * sizeof(float)));
    const double megahertz = kilohertz / 1e3;
    const int all = device.multiProcessorCount;
    printf("%s, multiply-adds that a scheduler starts in a cycle of %.0f MHz\n", device.name, megahertz);
    printf("  %-66s  %5s  %5s  %5s  %5s\n", "warps of a scheduler", "1", "2", "3", "4");
    measure<ONE_PRODUCT>("both factors as before: one register read", all, megahertz, p, out);
    measure<ONE_COLUMN>("one factor as before, the other for eight: mostly one", all, megahertz, p, out);
    measure<ROWS>("row by row, back and forth: two registers read, some of one bank", all, megahertz, p, out);
    measure<DIAGONALS>("along diagonals: three registers read", all, megahertz, p, out);
    return 0;
}
