// What a GPU's ordinary cores can do at most while it reads its memory: 4 GiB are read by 16-byte loads, several of a
// thread under way at a time, and each number read is multiplied by numbers in registers and added to sums there, so
// often that there are 2 to 16 operations for each byte. No shared memory, no results: no f32 or complex64 product
// with so many operations for each byte of its operands can be faster. Power, issue slots and memory set this limit
// together.
//
// A complex multiply-add, four instructions, is 8 operations. Of four kernels of a case, which differ in threads and
// in loads under way, the one that is fastest in a quick look is measured, rested and sustained (multiply_adds.cuh),
// with the clock of the multiprocessors in the latter. Numbers are random, or zeros, which take little power, with
// --zeros. Takes about 35 seconds. Build and run:
//
//     nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a -o limits multiply_adds_registers.cu && ./limits

#include "multiply_adds.cuh"

// `rounds` rounds of U loads of each thread.
template <class T, int PER_BYTE, int U, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    reads_and_products(const float4* p, unsigned rounds, float* out, Spent* spent) {
    constexpr int NUMBERS = 16 / sizeof(T), TIMES = sizeof(T) == 8 ? PER_BYTE : 2 * PER_BYTE;  // Each number, so often.
    constexpr int SUMS = 16 * 4 / sizeof(T), OTHERS = 8 * 4 / sizeof(T);
    union Load {
        float4 all;
        T numbers[NUMBERS];
        __device__ Load() {}
    };
    stamp(spent, -1);
    const size_t step = size_t(gridDim.x) * THREADS;
    p += blockIdx.x * size_t(THREADS) + threadIdx.x;
    T sums[SUMS] = {}, others[OTHERS];
#pragma unroll
    for (int i = 0; i < OTHERS; ++i) others[i] = ((const T*)p)[i];
    Load now[U], next[U];
#pragma unroll
    for (int u = 0; u < U; ++u) now[u].all = __ldcs(p + u * step);
#pragma unroll 2
    for (unsigned round = 1; round < rounds; ++round) {
        p += U * step;
#pragma unroll
        for (int u = 0; u < U; ++u) next[u].all = __ldcs(p + u * step);
#pragma unroll
        for (int u = 0; u < U; ++u) {
#pragma unroll
            for (int i = 0; i < NUMBERS * TIMES; ++i) {
                multiply_add(sums[i % SUMS], now[u].numbers[i / TIMES], others[i % OTHERS]);
            }
        }
#pragma unroll
        for (int u = 0; u < U; ++u) now[u].all = next[u].all;
    }
    float all = 0;
    for (T sum : sums) all += real(sum);
    for (auto& last : now) all += last.all.x + last.all.y + last.all.z + last.all.w;
    if (all == 1.2345f) out[0] = all;  // Never, but the compiler does not know.
    stamp(spent, 1);
}

template <class T, int PER_BYTE, int U, int BLOCKS> Kernel read_and_multiply() {
    constexpr int THREADS = 256;
    const size_t step = size_t(BLOCKS) * multiprocessors * THREADS * U;
    const unsigned rounds = unsigned(BYTES / 16 / step);
    Kernel kernel;
    snprintf(kernel.shape, sizeof kernel.shape, "%d x %d", BLOCKS * THREADS, U);
    kernel.bytes = double(rounds) * step * 16;
    kernel.flops = kernel.bytes * PER_BYTE * (rounds - 1) / rounds;  // What is read last is not multiplied.
    kernel.launch = [=] {
        reads_and_products<T, PER_BYTE, U, THREADS, BLOCKS>
            <<<BLOCKS * multiprocessors, THREADS>>>(numbers, rounds, out, spent);
    };
    return kernel;
}

template <class T, int PER_BYTE> void measure() {
    const Kernel kernel = fastest({read_and_multiply<T, PER_BYTE, 2, 5>(), read_and_multiply<T, PER_BYTE, 4, 3>(),
                                   read_and_multiply<T, PER_BYTE, 4, 4>(), read_and_multiply<T, PER_BYTE, 8, 2>()});
    const Pace is = pace(kernel);
    printf("  %-9s %10d %9s %9.0f %8.1f %9.0f %8.1f %6.0f\n", sizeof(T) == 8 ? "complex64" : "f32", PER_BYTE,
           kernel.shape, kernel.bytes / is.rested / 1e9, kernel.flops / is.rested / 1e12,
           kernel.bytes / is.sustained / 1e9, kernel.flops / is.sustained / 1e12, is.megahertz);
    fflush(stdout);
}

int main(int count, char** arguments) {
    if (!begin(count, arguments)) return 0;
    printf("reads and multiply-adds from registers (threads of a multiprocessor x loads under way)\n\n");
    printf("             flop/byte    kernel    rested             sustained             clock\n");
    printf("                                      GB/s  TFLOP/s      GB/s  TFLOP/s     MHz\n");
    measure<float, 2>();
    measure<float, 4>();
    measure<float, 6>();
    measure<float, 8>();
    measure<float, 10>();
    measure<float, 12>();
    measure<float, 14>();
    measure<float, 16>();
    measure<float2, 2>();
    measure<float2, 4>();
    measure<float2, 6>();
    measure<float2, 8>();
    measure<float2, 10>();
    measure<float2, 12>();
    measure<float2, 14>();
    measure<float2, 16>();
}
