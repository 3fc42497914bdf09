// Padded rows copied as boxes of a matrix: the tensor memory accelerator brings those of a block to shared memory by one copy, and takes them away
// by another, or threads store them. What a product A C of such rows would take with boxes, if it multiplied nothing.
//
//   boxes             come and go by one copy each
//   boxes, threads    come by one copy, and threads store 16 bytes each
//   ... behind words, before words    a word of each sector that is written in part is copied too, before the box or behind it
//
// on blocks that make room after 16 to 256 rows, with either granularity of device memory. Rows are as in padded_copies.cu (2 GiB from the first to
// the last, stride and width multiples of 16 bytes), of random numbers too. Prints the median of five launches of each, in us:
//
//     nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a -o boxes boxes.cu
//     ./boxes

#include <cstdio>
#include <cstdlib>
#include <cuda.h>
#include <cuda_runtime.h>

#include "padded.cuh"

constexpr size_t BYTES = size_t(2) << 30;
static char *a, *c;

__device__ __forceinline__ unsigned shared_address(const void* p) { return unsigned(__cvta_generic_to_shared(p)); }

// One block copies ROWS rows of WIDTH pieces of 16 bytes.
template <int WIDTH, int ROWS, int SIZE, int WORDS, bool BY_THREADS>
__global__ void __launch_bounds__(SIZE) boxed(const __grid_constant__ CUtensorMap of_a, const __grid_constant__ CUtensorMap of_c, float4* c, int stride) {
    extern __shared__ __align__(128) unsigned char held[];
    __shared__ __align__(8) unsigned long long arrived;
    __shared__ unsigned landing[SIZE];
    const int first = blockIdx.x * ROWS;
    float4* to = c + size_t(first) * stride;
    const unsigned barrier = shared_address(&arrived), place = shared_address(held);
    const auto words = [&] { copy_words<ROWS, SIZE>(landing, to, size_t(stride) * 16, WIDTH * 16); };
    if (WORDS == WORDS_FIRST) words();
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;\nfence.mbarrier_init.release.cluster;" ::"r"(barrier) : "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier), "r"(ROWS * WIDTH * 16) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(place), "l"(&of_a),
                     "r"(0), "r"(first), "r"(barrier)
                     : "memory");
    }
    if (WORDS == WORDS_BEHIND) words();
    if (WORDS != NO_WORDS) asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    unsigned there = 0;
    if (BY_THREADS || threadIdx.x == 0) {
        while (!there) {
            asm volatile("{ .reg .pred p;\nmbarrier.try_wait.parity.shared.b64 p, [%1], 0;\nselp.u32 %0, 1, 0, p; }" : "=r"(there) : "r"(barrier) : "memory");
        }
    }
    if (BY_THREADS) {
#pragma unroll 4
        for (int i = threadIdx.x; i < ROWS * WIDTH; i += SIZE) to[size_t(i / WIDTH) * stride + i % WIDTH] = ((float4*)held)[i];
    } else if (threadIdx.x == 0) {
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&of_c), "r"(0), "r"(first), "r"(place) : "memory");
        asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;" ::: "memory");
    }
}

static decltype(&cuTensorMapEncodeTiled) encode;  // Of the driver, which is not linked.

// Pieces of rows that are not what they should be, and of gaps that are no longer.
__global__ void differing(const uint4* a, const uint4* c, size_t rows, int width, int stride, unsigned long long* count) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < rows * stride; i += size_t(gridDim.x) * blockDim.x) {
        if (c[i].x != (i % stride < width ? a[i].x : 0)) atomicAdd(count, 1);
    }
}

static CUtensorMap map(char* at, size_t rows, int width, int stride, int box) {
    CUtensorMap found;
    // Elements are doubles: a box has at most 256 of a row.
    const cuuint64_t extents[2] = {cuuint64_t(width) * 2, rows}, strides[1] = {cuuint64_t(stride) * 16};
    const cuuint32_t of_box[2] = {cuuint32_t(width) * 2, cuuint32_t(box)}, steps[2] = {1, 1};
    const CUresult result = encode(&found, CU_TENSOR_MAP_DATA_TYPE_FLOAT64, 2, at, extents, strides, of_box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                                   CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result != CUDA_SUCCESS) fprintf(stderr, "no map: %d\n", int(result)), exit(1);
    return found;
}

template <int WIDTH, int ROWS, int SIZE> void one(int stride) {
    const size_t rows = BYTES / (stride * 16) / 2048 * 2048;
    const CUtensorMap of_a = map(a, rows, WIDTH, stride, ROWS), of_c = map(c, rows, WIDTH, stride, ROWS);
    const int room = ROWS * WIDTH * 16, blocks = rows / ROWS;
    float4* to = (float4*)c;
#define RUN(words, by_threads) \
    (cudaFuncSetAttribute(boxed<WIDTH, ROWS, SIZE, words, by_threads>, cudaFuncAttributeMaxDynamicSharedMemorySize, room), \
     1e6 * median_of_five([&] { boxed<WIDTH, ROWS, SIZE, words, by_threads><<<blocks, SIZE, room>>>(of_a, of_c, to, stride); }))
    const double boxes = RUN(NO_WORDS, false), threads = RUN(NO_WORDS, true);
    unsigned long long* wrong;
    cudaMallocManaged(&wrong, sizeof(*wrong)), *wrong = 0;
    cudaMemset(c, 0, BYTES);
    boxed<WIDTH, ROWS, SIZE, NO_WORDS, false><<<blocks, SIZE, room>>>(of_a, of_c, to, stride);
    differing<<<1024, 256>>>((const uint4*)a, (const uint4*)c, rows, WIDTH, stride, wrong);
    cudaDeviceSynchronize();
    if (*wrong) printf("%llu pieces are wrong\n", *wrong);
    cudaFree(wrong);
    printf("%6d %8d %8.0f %8.0f", ROWS, SIZE, boxes, threads);
    if (stride % 2 || WIDTH % 2) {
        const double behind = RUN(WORDS_FIRST, false), ahead = RUN(WORDS_BEHIND, false), threads_behind = RUN(WORDS_FIRST, true), threads_ahead = RUN(WORDS_BEHIND, true);
        printf(" %8.0f %8.0f %8.0f %8.0f", behind, ahead, threads_behind, threads_ahead);
    }
    printf("\n");
    fflush(stdout);
}

template <int WIDTH> void all(const char* what, int stride) {
    for (int bytes : {32, 64}) {
        cudaDeviceSetLimit(cudaLimitMaxL2FetchGranularity, bytes);
        printf("%s, %d bytes at a time\n  rows  threads    boxes  threads   behind   before  (of threads:) behind before words\n", what, bytes);
        one<WIDTH, 16, 32>(stride);
        one<WIDTH, 32, 32>(stride);
        one<WIDTH, 64, 64>(stride);
        one<WIDTH, 32, 128>(stride);
        one<WIDTH, 64, 128>(stride);
        if constexpr (WIDTH <= 24) one<WIDTH, 128, 128>(stride);
        if constexpr (WIDTH <= 8) one<WIDTH, 256, 256>(stride);
    }
}

int main() {
    cudaDeviceProp device;
    if (cudaGetDeviceProperties(&device, 0) != cudaSuccess) {
        fprintf(stderr, "this needs a GPU; skipped\n");
        return 0;
    }
    cudaDriverEntryPointQueryResult found;
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void**)&encode, 12000, cudaEnableDefault, &found);
    if (found != cudaDriverEntryPointSuccess || device.major < 9) {
        fprintf(stderr, "this needs a GPU and a driver with the tensor memory accelerator; skipped\n");
        return 0;
    }
    if (cudaMalloc(&a, BYTES) != cudaSuccess || cudaMalloc(&c, BYTES) != cudaSuccess) {
        fprintf(stderr, "there is no room for 4 GiB; skipped\n");
        return 0;
    }
    random_numbers<<<1024, 256>>>((float*)a, BYTES / 4, 1);
    all<8>("f32 32, rows 40", 10);
    all<6>("f32 24, rows 32", 8);
    all<4>("f32 16, rows 24", 6);
    all<4>("c128 4, rows 5", 5);
    all<24>("c128 24, rows 25", 25);
    all<24>("c128 24, rows 27", 27);
    all<32>("c128 32, rows 33", 33);
    if (cudaDeviceSynchronize() != cudaSuccess) return fprintf(stderr, "failed: %s\n", cudaGetErrorString(cudaGetLastError())), 1;
}
