// What a GPU's ordinary cores can do at most where operands come from shared memory: nothing is read but them, by
// 16-byte loads, and there are no results and no barriers. Lanes of a warp stand 4 x 8, each with TM x TN sums of its
// own, for which it reads TM + TN numbers of each of 64 terms, again and again. No f32 or complex64 product that
// keeps its operands in shared memory and such tiles in registers can be faster.
//
// A complex multiply-add, four instructions, is 8 operations. Each case is measured rested and sustained
// (multiply_adds.cuh), with the clock of the multiprocessors in the latter. Numbers are random, or zeros, which take
// little power, with --zeros. Takes about 20 seconds. Build and run:
//
//     nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a -o limits multiply_adds_shared.cu && ./limits

#include "multiply_adds.cuh"

constexpr int TERMS = 64, REGIONS = 8;

// Terms of A and of B lie one after the other, each with its rows or columns side by side, of which a lane takes
// 16 bytes at a time. B is the block's; there are rows of A for 8 warps, which others use too.
template <class T, int TM, int TN, int WARPS>
__global__ void __launch_bounds__(32 * WARPS, 1)
    products_from_shared(const float4* numbers, int rounds, float* out, Spent* spent) {
    constexpr int PIECE = 16 / sizeof(T), OF_A = TM / PIECE, OF_B = TN / PIECE;  // Pieces of a lane in each term.
    extern __shared__ float4 memory[];
    stamp(spent, -1);
    for (int i = threadIdx.x; i < TERMS * (REGIONS * 4 * OF_A + 8 * OF_B); i += 32 * WARPS) memory[i] = numbers[i];
    __syncthreads();
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const float4* a = memory + warp % REGIONS * TERMS * 4 * OF_A + lane / 8;
    const float4* b = memory + REGIONS * TERMS * 4 * OF_A + lane % 8;
    T sums[TM][TN] = {};
    for (int round = 0; round < rounds; ++round) {
#pragma unroll 4
        for (int term = 0; term < TERMS; ++term) {
            float4 x[OF_A], y[OF_B];
#pragma unroll
            for (int i = 0; i < OF_A; ++i) x[i] = a[(term * OF_A + i) * 4];
#pragma unroll
            for (int j = 0; j < OF_B; ++j) y[j] = b[(term * OF_B + j) * 8];
#pragma unroll
            for (int i = 0; i < TM; ++i) {
#pragma unroll
                for (int j = 0; j < TN; ++j) multiply_add(sums[i][j], ((const T*)x)[i], ((const T*)y)[j]);
            }
        }
    }
    float all = 0;
    for (auto& row : sums) {
        for (T sum : row) all += real(sum);
    }
    if (all == 1.2345f) out[0] = all;  // Never, but the compiler does not know.
    stamp(spent, 1);
}

template <class T, int TM, int TN, int WARPS> void measure() {
    constexpr int SHARED = TERMS * (REGIONS * 4 * TM + 8 * TN) * sizeof(T);
    const auto function = products_from_shared<T, TM, TN, WARPS>;
    check(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED));
    Kernel kernel;
    const double round = double(multiprocessors) * WARPS * 32 * TERMS * TM * TN * (sizeof(T) == 8 ? 8 : 2);
    const int rounds = int(5e10 / round);  // About a millisecond.
    kernel.flops = round * rounds;
    kernel.launch = [=] { function<<<multiprocessors, 32 * WARPS, SHARED>>>(numbers, rounds, out, spent); };
    const Pace is = pace(kernel);
    printf("  %-9s   %2d x %-2d %6d %8.1f %10.1f %6.0f\n", sizeof(T) == 8 ? "complex64" : "f32", TM, TN, WARPS,
           kernel.flops / is.rested / 1e12, kernel.flops / is.sustained / 1e12, is.megahertz);
    fflush(stdout);
}

int main(int count, char** arguments) {
    if (!begin(count, arguments)) return 0;
    printf("multiply-adds from shared memory (TM x TN, warps of a multiprocessor), TFLOP/s\n\n");
    printf("               tile   warps   rested  sustained     MHz\n");
    measure<float, 8, 8, 8>();
    measure<float, 8, 8, 12>();
    measure<float, 8, 8, 16>();
    measure<float, 16, 8, 8>();
    measure<float, 16, 8, 12>();
    measure<float2, 8, 4, 8>();
    measure<float2, 8, 4, 12>();
    measure<float2, 8, 4, 16>();
    measure<float2, 4, 4, 8>();
    measure<float2, 4, 4, 12>();
    measure<float2, 4, 4, 16>();
}
