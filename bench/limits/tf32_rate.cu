// How many products of split numbers the matrix units of an H200 make: `mma.sync` m16n8k8 on tf32, three for each product in f32
// (3xTF32), by so many warps on a multiprocessor with so many tiles of 16 x 8 each. Every tile has two sums, as in the kernels:
// of leading parts, and of what is left. With `split`, each warp also makes the parts of its factors, four numbers a lane for a
// row of tiles and two for a column, as A^T B does; without, the factors stand in registers, which is the limit of the units.
//
//   nvcc -O3 -std=c++17 -arch=sm_90a -o tf32_rate tf32_rate.cu && ./tf32_rate
#include <cstdio>
#include <cuda_runtime.h>

__device__ __forceinline__ void mma(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

template <int N> __device__ __forceinline__ void split(const float (&x)[N], unsigned (&leading)[N], unsigned (&rest)[N]) {
    #pragma unroll
    for (int i = 0; i < N; ++i) {
        asm volatile("cvt.rn.tf32.f32 %0, %1;" : "=r"(leading[i]) : "f"(x[i]));
        rest[i] = __float_as_uint(1024.0f*(x[i] - __uint_as_float(leading[i])));
    }
}

// One step multiplies 16 ROWS x 8 and 8 x 8 COLUMNS numbers.
template <int ROWS, int COLUMNS, bool SPLIT>
__global__ void products(int steps, const float* in, float* out) {
    float sum[ROWS][COLUMNS][4] = {}, rest[ROWS][COLUMNS][4] = {};
    float a[ROWS][4], b[COLUMNS][2];
    unsigned a0[ROWS][4], a1[ROWS][4], b0[COLUMNS][2], b1[COLUMNS][2];
    #pragma unroll
    for (int i = 0; i < ROWS; ++i)
        for (int r = 0; r < 4; ++r) a[i][r] = in[threadIdx.x + 32*(4*i + r)];
    #pragma unroll
    for (int j = 0; j < COLUMNS; ++j)
        for (int r = 0; r < 2; ++r) b[j][r] = in[threadIdx.x + 32*(64 + 2*j + r)];
    #pragma unroll
    for (int i = 0; i < ROWS; ++i) split(a[i], a0[i], a1[i]);
    #pragma unroll
    for (int j = 0; j < COLUMNS; ++j) split(b[j], b0[j], b1[j]);
    #pragma unroll 2
    for (int step = 0; step < steps; ++step) {
        if (SPLIT) {
            #pragma unroll
            for (int i = 0; i < ROWS; ++i) split(a[i], a0[i], a1[i]);
            #pragma unroll
            for (int j = 0; j < COLUMNS; ++j) split(b[j], b0[j], b1[j]);
        }
        #pragma unroll
        for (int i = 0; i < ROWS; ++i) {
            #pragma unroll
            for (int j = 0; j < COLUMNS; ++j) {
                mma(rest[i][j], a1[i], b0[j]);
                mma(rest[i][j], a0[i], b1[j]);
                mma(sum[i][j], a0[i], b0[j]);
            }
        }
    }
    float total = 0;
    #pragma unroll
    for (int i = 0; i < ROWS; ++i)
        for (int j = 0; j < COLUMNS; ++j)
            for (int r = 0; r < 4; ++r) total += sum[i][j][r] + rest[i][j][r];
    if (total == 1.25f) out[threadIdx.x] = total;
}

template <int ROWS, int COLUMNS, bool SPLIT> void measure(int warps, int multiprocessors, const float* in, float* out) {
    const int steps = 20000;
    cudaEvent_t begin, end;
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    float best = 1e30f;
    for (int repeat = 0; repeat < 6; ++repeat) {
        cudaEventRecord(begin);
        products<ROWS, COLUMNS, SPLIT><<<multiprocessors, 32*warps>>>(steps, in, out);
        cudaEventRecord(end);
        cudaEventSynchronize(end);
        float ms;
        cudaEventElapsedTime(&ms, begin, end);
        if (repeat > 0 && ms < best) best = ms;
    }
    if (cudaGetLastError() != cudaSuccess) { printf("%d x %d tiles, %2d warps: cannot be launched\n", ROWS, COLUMNS, warps); return; }
    const double products = 16.0*ROWS*8*COLUMNS*8*steps*warps*multiprocessors;
    printf("%d x %d tiles of 16 x 8, %2d warps, %s: %6.1f TFLOP/s in f32 (%5.1f in tf32)\n", ROWS, COLUMNS, warps,
           SPLIT ? "split in every step" : "split before       ", 2e-9*products/best, 6e-9*products/best);
}

int main() {
    cudaDeviceProp device;
    if (cudaGetDeviceProperties(&device, 0) != cudaSuccess) { printf("no GPU: nothing is measured\n"); return 0; }
    float *in, *out;
    cudaMalloc(&in, 1 << 16);
    cudaMalloc(&out, 1 << 16);
    cudaMemset(in, 0x3f, 1 << 16);
    printf("%s, %d multiprocessors\n", device.name, device.multiProcessorCount);
    for (int warps : {4, 8, 12, 16}) {
        measure<2, 4, false>(warps, device.multiProcessorCount, in, out);
        measure<2, 4, true>(warps, device.multiProcessorCount, in, out);
    }
    for (int warps : {4, 8}) {
        measure<2, 7, false>(warps, device.multiProcessorCount, in, out);
        measure<2, 7, true>(warps, device.multiProcessorCount, in, out);
        measure<1, 8, false>(warps, device.multiProcessorCount, in, out);
        measure<1, 8, true>(warps, device.multiProcessorCount, in, out);
    }
}
