// What a layer of few rows takes when nothing is multiplied: y = x W with W of 4096 x 4096 in f32. 128 blocks bring their columns of W, and the
// rows of x that belong to them, to shared memory by asynchronous copies of 16 bytes, several tiles ahead, as the family `tiled` does, and
// wait for so many cycles with each tile where products would be made: all threads of a block together, or each warp for itself.
// W is one of six in turn, so that it comes from device memory. Medians of 25 graphs of 24 launches.
//
//     nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a -o layers bench/limits/layers.cu && ./layers
#include <algorithm>
#include <cstdio>
#include <vector>

#include <cuda_runtime.h>

constexpr int TERMS = 4096, COLUMNS = 4096, THREADS = 256, LAUNCHES = 24, GRAPHS = 25, MOST_SHARED = 227 * 1024;

__device__ __forceinline__ void copy16(float* to, const float* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from) : "memory");
}

__global__ void fill(float* numbers, size_t n) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
        unsigned h = (unsigned)i * 2654435761u;
        h ^= h >> 15;
        h *= 2246822519u;
        numbers[i] = (int)(h ^ h >> 13) * 4.6e-10f;
    }
}

// Tiles of `depth` terms of `width` columns and `rows` rows. A team, a block or a warp, takes its part of each tile's terms.
template <int width, int depth, int stages, int rows, bool by_warps>
__global__ void __launch_bounds__(THREADS, 1) layer(const float* w, const float* x, float* y, int parts, int cycles) {
    extern __shared__ float memory[];
    constexpr int team = by_warps ? 32 : THREADS, terms = depth * team / THREADS;
    constexpr int of_w = terms * width, of_x = rows * terms;
    const int t = threadIdx.x % team, mine = threadIdx.x / team, steps = TERMS / depth / parts;
    float* ring = memory + mine * stages * (of_w + of_x);
    auto fetch = [&](int step) {
        const int k = (step * parts + blockIdx.z) * depth + mine * terms;
        float* slot = ring + step % stages * (of_w + of_x);
        for (int e = t; e < of_w / 4; e += team) {
            copy16(slot + 4 * e, w + (size_t)(k + e / (width / 4)) * COLUMNS + blockIdx.x * width + e % (width / 4) * 4);
        }
        for (int e = t; e < of_x / 4; e += team) {
            copy16(slot + of_w + 4 * e, x + (size_t)(e / (terms / 4)) * TERMS + k + e % (terms / 4) * 4);
        }
    };
    for (int step = 0; step < stages - 1; ++step) {
        if (step < steps) fetch(step);
        asm volatile("cp.async.commit_group;" ::: "memory");
    }
    float sum = 0;
    for (int step = 0; step < steps; ++step) {
        asm volatile("cp.async.wait_group %0;" ::"n"(stages - 2) : "memory");
        if (by_warps) {
            __syncwarp();
        } else {
            __syncthreads();
        }
        if (step + stages - 1 < steps) fetch(step + stages - 1);
        asm volatile("cp.async.commit_group;" ::: "memory");
        sum += ring[step % stages * (of_w + of_x) + t];
        if (cycles > 0) {
            for (const long long end = clock64() + cycles; clock64() < end;) {}
        }
    }
    // Never, but the compiler does not know.
    if (sum == 12345.0f) y[threadIdx.x] = sum;
}

template <int width, int depth, int stages, int rows, bool by_warps>
void time(int cycles, const std::vector<float*>& ws, const float* x, float* y) {
    const auto kernel = layer<width, depth, stages, rows, by_warps>;
    constexpr int bytes = stages * (depth * width + rows * depth) * 4, parts = width / 32;
    static_assert(bytes <= MOST_SHARED);
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    cudaGraph_t graph;
    cudaGraphExec_t launches;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    for (int i = 0; i < LAUNCHES; ++i) {
        kernel<<<dim3(COLUMNS / width, 1, parts), THREADS, bytes, stream>>>(ws[i % ws.size()], x, y, parts, cycles);
    }
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&launches, graph, 0);
    cudaEvent_t begin, end;
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    std::vector<float> times;
    for (int i = 0; i < GRAPHS; ++i) {
        cudaEventRecord(begin, stream);
        cudaGraphLaunch(launches, stream);
        cudaEventRecord(end, stream);
        cudaEventSynchronize(end);
        float ms;
        cudaEventElapsedTime(&ms, begin, end);
        times.push_back(ms / LAUNCHES * 1e3f);
    }
    std::sort(times.begin(), times.end());
    const cudaError_t error = cudaGetLastError();
    printf("%-5s  columns %3d in %d parts  terms %3d  tiles %d  rows %2d  cycles %4d  %6.2f us (%.2f to %.2f)%s\n", by_warps ? "warps" : "block",
           width, parts, depth, stages, rows, cycles, times[GRAPHS / 2], times[GRAPHS / 8], times[GRAPHS - 1 - GRAPHS / 8],
           error == cudaSuccess ? "" : cudaGetErrorString(error));
    cudaGraphExecDestroy(launches);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
}

int main() {
    cudaDeviceProp gpu;
    if (cudaGetDeviceProperties(&gpu, 0) != cudaSuccess) {
        printf("there is no GPU; skipped\n");
        return 0;
    }
    printf("%s\n", gpu.name);
    std::vector<float*> ws(6);
    float *x, *y;
    for (auto& w : ws) {
        cudaMalloc(&w, (size_t)TERMS * COLUMNS * 4);
        fill<<<1024, 256>>>(w, (size_t)TERMS * COLUMNS);
    }
    cudaMalloc(&x, 16 * TERMS * 4);
    fill<<<64, 256>>>(x, 16 * TERMS);
    cudaMalloc(&y, THREADS * 4);
    for (int cycles : {0, 300, 600, 900, 1200}) {
        time<32, 128, 4, 0, false>(cycles, ws, x, y);
        time<32, 128, 4, 16, false>(cycles, ws, x, y);
        time<32, 128, 8, 16, false>(cycles, ws, x, y);
        time<32, 256, 3, 16, false>(cycles, ws, x, y);
        time<32, 256, 4, 16, false>(cycles, ws, x, y);
        time<64, 64, 4, 16, false>(cycles, ws, x, y);
        time<128, 32, 8, 16, false>(cycles, ws, x, y);
        time<32, 128, 4, 0, true>(cycles, ws, x, y);
        time<32, 128, 4, 16, true>(cycles, ws, x, y);
        time<32, 128, 8, 16, true>(cycles, ws, x, y);
        time<32, 256, 3, 16, true>(cycles, ws, x, y);
        time<32, 256, 4, 16, true>(cycles, ws, x, y);
    }
}
