// How many cycles a multiprocessor takes for a load from shared memory, by bytes of a lane and by which lanes read the same:
// what `staging::passes` counts. Each line is a pattern of lanes; 32 warps of one block load as fast as they can.
//
//     nvcc -O3 -arch=sm_90a -o pairs pairs.cu && ./pairs

#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

constexpr int ROUNDS = 200, LOADS = 16, SPREAD = 2048, THREADS = 1024;

inline void check(cudaError_t error, int line = __builtin_LINE()) {
    if (error == cudaSuccess) return;
    printf("failed at line %d: %s\n", line, cudaGetErrorString(error));
    exit(1);
}

template <int BYTES> __device__ __forceinline__ float load(unsigned address) {
    float a = 0, b = 0, c = 0, d = 0;
    if (BYTES == 4) asm volatile("ld.volatile.shared.f32 %0, [%1];" : "=f"(a) : "r"(address));
    if (BYTES == 8) asm volatile("ld.volatile.shared.v2.f32 {%0, %1}, [%2];" : "=f"(a), "=f"(b) : "r"(address));
    if (BYTES == 16) {
        asm volatile("ld.volatile.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "r"(address));
    }
    return a + b + c + d;
}

// places[lane] is the number of the piece that a lane reads.
template <int BYTES> __global__ void loads(const int* places, long long* cycles, float* out) {
    __shared__ __align__(128) char memory[32 * SPREAD / 2];
    for (int i = threadIdx.x; i < 32 * SPREAD / 8; i += THREADS) ((float*)memory)[i] = i;
    __syncthreads();
    const unsigned base = (unsigned)__cvta_generic_to_shared(memory) + BYTES * places[threadIdx.x % 32];
    float sum = 0;
    const long long begin = clock64();
    for (int round = 0; round < ROUNDS; ++round) {
        #pragma unroll
        for (int i = 0; i < LOADS; ++i) sum += load<BYTES>(base + SPREAD * i);
    }
    __syncthreads();
    if (threadIdx.x == 0) *cycles = clock64() - begin;
    out[threadIdx.x] = sum;
}

template <int BYTES> double passes(const int* places, int* device_places, long long* cycles, float* out) {
    check(cudaMemcpy(device_places, places, 32 * sizeof(int), cudaMemcpyHostToDevice));
    long long least = 1ll << 60;
    for (int run = 0; run < 5; ++run) {
        loads<BYTES><<<1, THREADS>>>(device_places, cycles, out);
        long long taken;
        check(cudaMemcpy(&taken, cycles, sizeof taken, cudaMemcpyDeviceToHost));
        if (taken < least) least = taken;
    }
    return double(least) / ROUNDS / LOADS / (THREADS / 32);
}

int main() {
    int *device_places;
    long long* cycles;
    float* out;
    check(cudaMalloc(&device_places, 32 * sizeof(int)));
    check(cudaMalloc(&cycles, sizeof(long long)));
    check(cudaMalloc(&out, THREADS * sizeof(float)));
    struct { const char* name; int (*place)(int); } patterns[] = {
        {"all different", [](int l) { return l; }},
        {"all the same", [](int) { return 0; }},
        {"lanes l and l^1 the same", [](int l) { return l / 2; }},
        {"lanes l and l^2 the same", [](int l) { return l / 4 * 2 + l % 2; }},
        {"lanes l and l^4 the same", [](int l) { return l / 8 * 4 + l % 4; }},
        {"lanes l and l^8 the same", [](int l) { return l / 16 * 8 + l % 8; }},
        {"lanes l and l^16 the same", [](int l) { return l % 16; }},
        {"rows of 4 lanes: of the row", [](int l) { return l / 4; }},
        {"rows of 4 lanes: of the column", [](int l) { return l % 4; }},
        {"rows of 4 lanes, interleaved: of the row", [](int l) { return l / 8 * 2 + l % 2; }},
        {"rows of 4 lanes, interleaved: of the column", [](int l) { return l / 4 % 2 * 2 + l / 2 % 2; }},
        {"rows of 3 lanes: of the row", [](int l) { return l / 3; }},
        {"rows of 3 lanes: of the column", [](int l) { return l % 3; }},
        {"rows of 3 lanes, interleaved: of the row", [](int l) { return l / 6 * 2 + l % 2; }},
        {"rows of 3 lanes, interleaved: of the column", [](int l) { return l / 2 % 3; }},
    };
    printf("%-46s %8s %8s %8s\n", "cycles of a load of so many bytes a lane", "4", "8", "16");
    for (auto& pattern : patterns) {
        int places[32];
        for (int l = 0; l < 32; ++l) places[l] = pattern.place(l);
        printf("%-46s %8.2f %8.2f %8.2f\n", pattern.name, passes<4>(places, device_places, cycles, out),
               passes<8>(places, device_places, cycles, out), passes<16>(places, device_places, cycles, out));
    }
}
