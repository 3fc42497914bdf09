// What mma.sync.m16n8k8 does with tf32 numbers: which bits of a sum it keeps, and how it takes subnormal numbers, infinities and
// NaNs. The bound of products of split numbers (src/reference/bound.rs) rests on it.
//
//     nvcc -O3 -arch=sm_90a -o tf32 tf32.cu && ./tf32

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <initializer_list>
#include <utility>

inline void check(cudaError_t error, int line = __builtin_LINE()) {
    if (error == cudaSuccess) return;
    printf("failed at line %d: %s\n", line, cudaGetErrorString(error));
    exit(1);
}

// d = c + a b of one row of a and one column of b; the others are zero.
__global__ void multiply(float* d, const float* a, const float* b, float c) {
    const int row = threadIdx.x/4, term = threadIdx.x%4;
    const unsigned a0 = row == 0 ? __float_as_uint(a[term]) : 0, a2 = row == 0 ? __float_as_uint(a[term + 4]) : 0;
    const unsigned b0 = row == 0 ? __float_as_uint(b[term]) : 0, b1 = row == 0 ? __float_as_uint(b[term + 4]) : 0;
    float sums[4] = {threadIdx.x == 0 ? c : 0.0f, 0.0f, 0.0f, 0.0f};
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]) : "r"(a0), "r"(0), "r"(a2), "r"(0), "r"(b0), "r"(b1));
    if (threadIdx.x == 0) *d = sums[0];
}

float *memory;

// The sum of c and of so many products.
float sum(std::initializer_list<std::pair<float, float>> products, float c = 0) {
    float a[8] = {}, b[8] = {}, d;
    int term = 0;
    for (auto [x, y] : products) { a[term] = x; b[term++] = y; }
    check(cudaMemcpy(memory, a, sizeof a, cudaMemcpyHostToDevice));
    check(cudaMemcpy(memory + 8, b, sizeof b, cudaMemcpyHostToDevice));
    multiply<<<1, 32>>>(memory + 16, memory, memory + 8, c);
    check(cudaGetLastError());
    check(cudaMemcpy(&d, memory + 16, sizeof d, cudaMemcpyDeviceToHost));
    return d;
}

float power(int exponent) { return ldexpf(1, exponent); }

float of_bits(uint32_t bits) { float x; memcpy(&x, &bits, sizeof x); return x; }

int main() {
    check(cudaMalloc(&memory, 17*sizeof(float)));
    const float infinity = INFINITY;

    printf("what is left of a small term beside 1 and -1, which cancel (1 all of it, 0 nothing)\n");
    printf("%8s %24s %24s\n", "term", "both are products", "-1 is what is added to");
    for (int e = 23; e <= 28; ++e) {
        const float both = sum({{1, 1}, {-1, 1}, {power(-e), 1}}), added = sum({{1, 1}, {power(-e), 1}}, -1);
        printf("    2^-%d %24g %24g\n", e, ldexpf(both, e), ldexpf(added, e));
    }
    printf("what is left beside 1 of seven small terms, in units of one (7 all of it)\n");
    for (int e = 22; e <= 27; ++e) {
        const float t = power(-e);
        const float s = sum({{1, 1}, {t, 1}, {t, 1}, {t, 1}, {t, 1}, {t, 1}, {t, 1}, {t, 1}});
        printf("    2^-%d %24g\n", e, ldexpf(s - 1, e));
    }
    printf("towards which side sums are cut off: 1 + 3*2^-25 - 1 is %g, -1 - 3*2^-25 + 1 is %g in units of 2^-23\n",
           ldexpf(sum({{1, 1}, {3*power(-25), 1}}) - 1, 23), ldexpf(sum({{-1, 1}, {-3*power(-25), 1}}) + 1, 23));
    printf("a factor of 1 + 2^-11 + 2^-12 is taken as 1 + %g*2^-12\n",
           ldexpf(sum({{1 + power(-11) + power(-12), 1}}) - 1, 12));
    printf("small factors, times 2^100 (1 it counts, 0 it is taken for zero):");
    for (int e : {126, 127, 130, 136, 137}) printf(" 2^-%d %g", e, ldexpf(sum({{power(-e), power(100)}}), e - 100));
    printf("\nsmall results: 2^-140 is %g*2^-140\n", ldexpf(sum({{power(-80), power(-60)}}), 140));
    printf("infinity times 1: %g, -1: %g, 0: %g, 2^-136: %g; infinity less infinity: %g\n", sum({{infinity, 1}}),
           sum({{infinity, -1}}), sum({{infinity, 0}}), sum({{infinity, power(-136)}}), sum({{infinity, 1}, {infinity, -1}}));
    printf("NaN 7fffffff: %g, NaN 7f800001, which has no leading bits: %g\n", sum({{of_bits(0x7fffffff), 1}}),
           sum({{of_bits(0x7f800001), 1}}));
    printf("2^127 + 2^127: %g, 2^127 + 2^127 - 2^127: %g\n", sum({{power(127), 1}, {power(127), 1}}),
           sum({{power(127), 1}, {power(127), 1}, {-power(127), 1}}));
}
