// How fast device memory is read and as much of it written, by which block takes which piece of it when: what the family `tsmm` can
// reach at most where rows are copied through shared memory. A piece is copied there by asynchronous copies of 16 bytes, and stored
// from there. Either a block takes one piece and makes room for the next block, or blocks stay on their multiprocessors and have several
// pieces on their way, of which each block takes every so many (cyclic), neighbouring ones (apart), or the next one that nobody has
// taken yet (queue). Or they take a few neighbouring ones, and then make room (few). Medians of nine launches, 2 GB read and 2 GB written.
//
//     nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a -o walks bench/limits/walks.cu && ./walks
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <vector>

#include <cuda_runtime.h>

constexpr long long BYTES = 2000000000;

enum Walk { CYCLIC, APART, QUEUE };

inline void check(cudaError_t error, int line = __builtin_LINE()) {
    if (error == cudaSuccess) return;
    printf("failed at line %d: %s\n", line, cudaGetErrorString(error));
    exit(1);
}

__device__ __forceinline__ void copy16(float4* to, const float4* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from) : "memory");
}

// A piece of `each` float4 for each thread, through registers or through shared memory; `n` float4 in all.
template <int threads, int each, bool shared>
__global__ void __launch_bounds__(threads) pass(const float4* __restrict__ from, float4* __restrict__ to, long long n) {
    extern __shared__ float4 piece[];
    const long long at = (long long)blockIdx.x * threads * each + threadIdx.x;
    float4 own[each];
    #pragma unroll
    for (int u = 0; u < each; ++u) {
        if (at + u * threads >= n) continue;
        if (shared) copy16(&piece[u * threads + threadIdx.x], &from[at + u * threads]);
        else own[u] = from[at + u * threads];
    }
    if (shared) {
        asm volatile("cp.async.wait_all;" ::: "memory");
        __syncthreads();
    }
    // What one thread has copied another one stores, as where products are made of it.
    #pragma unroll
    for (int u = 0; u < each; ++u) {
        if (at + u * threads < n) to[at + u * threads] = shared ? piece[u * threads + (threadIdx.x ^ 1)] : own[u];
    }
}

__device__ unsigned long long taken;

template <int threads, int each, int stages, Walk walk>
__global__ void __launch_bounds__(threads) stay(const float4* __restrict__ from, float4* __restrict__ to, long long n) {
    extern __shared__ float4 ring[];
    __shared__ long long next[stages];
    const long long pieces = (n + threads * each - 1) / (threads * each), share = (pieces + gridDim.x - 1) / gridDim.x;
    long long mine[stages];
    auto ask = [&](int step, int slot) {
        if (walk == QUEUE) {
            if (threadIdx.x == 0) next[slot] = atomicAdd(&taken, 1ull);
            __syncthreads();
        }
        const long long apart = step < share ? blockIdx.x * share + step : pieces;
        const long long piece = walk == CYCLIC ? blockIdx.x + (long long)step * gridDim.x : walk == APART ? apart : next[slot];
        mine[slot] = piece;
        const long long at = piece * threads * each + threadIdx.x;
        #pragma unroll
        for (int u = 0; u < each; ++u) {
            if (at + u * threads < n) copy16(&ring[(slot * each + u) * threads + threadIdx.x], &from[at + u * threads]);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    #pragma unroll
    for (int slot = 0; slot < stages - 1; ++slot) ask(slot, slot);
    for (int round = 0;; round += stages) {
        #pragma unroll
        for (int slot = 0; slot < stages; ++slot) {
            ask(round + slot + stages - 1, (slot + stages - 1) % stages);
            asm volatile("cp.async.wait_group %0;" ::"n"(stages - 1) : "memory");
            __syncthreads();
            if (mine[slot] >= pieces) return;
            const long long at = mine[slot] * threads * each + threadIdx.x;
            #pragma unroll
            for (int u = 0; u < each; ++u) {
                if (at + u * threads < n) to[at + u * threads] = ring[(slot * each + u) * threads + (threadIdx.x ^ 1)];
            }
            __syncthreads();
        }
    }
}

template <class Launch> double gigabytes_per_second(Launch launch) {
    cudaEvent_t events[2];
    for (auto& event : events) check(cudaEventCreate(&event));
    std::vector<float> times;
    for (int i = 0; i < 12; ++i) {
        const unsigned long long none = 0;
        check(cudaMemcpyToSymbol(taken, &none, sizeof none));
        check(cudaEventRecord(events[0]));
        launch();
        check(cudaGetLastError());
        check(cudaEventRecord(events[1]));
        check(cudaEventSynchronize(events[1]));
        float ms;
        check(cudaEventElapsedTime(&ms, events[0], events[1]));
        if (i >= 3) times.push_back(ms);
    }
    std::sort(times.begin(), times.end());
    return 2 * BYTES / times[times.size() / 2] * 1e-6;
}

const float4* from;
float4* to;
int multiprocessors;

template <int threads, int each> void measure() {
    constexpr int bytes = threads * each * 16;
    const long long n = BYTES / 16;
    const int pieces = (int)((n + threads * each - 1) / (threads * each));
    auto passing = [&](auto shared, const char* how) {
        auto kernel = pass<threads, each, decltype(shared)::value>;
        printf("%3d KB  pass, %-28s %5.0f GB/s\n", bytes / 1024, how,
               gigabytes_per_second([&] { kernel<<<pieces, threads, decltype(shared)::value ? bytes : 0>>>(from, to, n); }));
    };
    passing(std::false_type(), "through registers");
    passing(std::true_type(), "through shared memory");
    auto staying = [&](auto walk, auto stages, const char* how) {
        constexpr int ring = bytes * decltype(stages)::value;
        auto kernel = stay<threads, each, decltype(stages)::value, decltype(walk)::value>;
        check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, ring));
        int most;
        check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&most, kernel, threads, ring));
        printf("%3d KB  stay, %s, %d on their way, blocks of a multiprocessor:", bytes / 1024, how, decltype(stages)::value);
        for (int blocks = 1; blocks <= most; blocks *= 2) {
            printf("  %d: %.0f", blocks,
                   gigabytes_per_second([&] { kernel<<<blocks * multiprocessors, threads, ring>>>(from, to, n); }));
        }
        printf(" GB/s\n");
    };
    // Neighbouring pieces of each block, and more blocks than stay.
    auto leaving = [&](auto stages) {
        constexpr int ring = bytes * decltype(stages)::value;
        auto kernel = stay<threads, each, decltype(stages)::value, APART>;
        check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, ring));
        printf("%3d KB  few, %d on their way, pieces of a block:", bytes / 1024, decltype(stages)::value);
        for (int few = 2; few <= 64; few *= 2) {
            printf("  %d: %.0f", few, gigabytes_per_second([&] { kernel<<<(pieces + few - 1) / few, threads, ring>>>(from, to, n); }));
        }
        printf(" GB/s\n");
    };
    constexpr std::integral_constant<int, 2> two;
    constexpr std::integral_constant<int, 4> four;
    staying(std::integral_constant<Walk, CYCLIC>(), two, "cyclic");
    staying(std::integral_constant<Walk, CYCLIC>(), four, "cyclic");
    staying(std::integral_constant<Walk, APART>(), two, "apart");
    staying(std::integral_constant<Walk, QUEUE>(), two, "queue");
    staying(std::integral_constant<Walk, QUEUE>(), four, "queue");
    leaving(two);
    leaving(four);
}

int main() {
    cudaDeviceProp device;
    check(cudaGetDeviceProperties(&device, 0));
    multiprocessors = device.multiProcessorCount;
    printf("%s\n", device.name);
    void *read, *written;
    check(cudaMalloc(&read, BYTES));
    check(cudaMalloc(&written, BYTES));
    check(cudaMemset(read, 1, BYTES));
    from = (const float4*)read;
    to = (float4*)written;
    measure<128, 2>();
    measure<128, 4>();
    measure<128, 8>();
    measure<256, 8>();
}
