// How many bytes device memory gives at a time, and what it takes to change that. The second-level cache asks for as many as the context says at most
// (`cudaLimitMaxL2FetchGranularity`: 64 unless somebody sets 32 or 128), which CUDA calls a hint. This measures
//
//   - rows of 64 bytes that stand 96 apart, read and copied, by each setting;
//   - how long a change takes the host, alone and while a kernel runs, and whether it waits for that;
//   - when it takes effect: for kernels that are queued behind it, that were queued before it, and that a graph recorded before it;
//   - whether it can be made while a stream is recorded, and whether another context of the process notices.
//
//     nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a -o granularity granularity.cu -lcuda
//     ./granularity

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cuda.h>
#include <cuda_runtime.h>
#include <vector>

constexpr int THREADS = 256;
constexpr size_t BYTES = size_t(2) << 30, ROWS = BYTES / 96;

static cudaStream_t stream;
static float4 *a, *b;
static float* sink;

__global__ void __launch_bounds__(THREADS) reads(const float4* a, float* sink, size_t rows) {
    float sum = 0;
    for (size_t i = blockIdx.x * size_t(THREADS) + threadIdx.x; i < rows * 4; i += size_t(gridDim.x) * THREADS) {
        const float4 v = a[i / 4 * 6 + i % 4];
        sum += v.x + v.y + v.z + v.w;
    }
    if (sum == 1.2345f) *sink = sum;  // Never, but the compiler does not know.
}

__global__ void __launch_bounds__(THREADS) copies(const float4* a, float4* b, size_t rows) {
    for (size_t i = blockIdx.x * size_t(THREADS) + threadIdx.x; i < rows * 4; i += size_t(gridDim.x) * THREADS) b[i / 4 * 6 + i % 4] = a[i / 4 * 6 + i % 4];
}

__global__ void spins(long long cycles) {
    for (const long long start = clock64(); clock64() - start < cycles;) {
    }
}

static double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Sets the granularity; microseconds of the host.
static double set(int bytes) {
    const double start = now();
    cudaDeviceSetLimit(cudaLimitMaxL2FetchGranularity, bytes);
    return (now() - start) * 1e6;
}

static void read() { reads<<<132 * 8, THREADS, 0, stream>>>(a, sink, ROWS); }
static void copy() { copies<<<132 * 8, THREADS, 0, stream>>>(a, b, ROWS); }

static cudaEvent_t event() {
    cudaEvent_t made;
    cudaEventCreate(&made);
    return made;
}

static float between(cudaEvent_t before, cudaEvent_t after) {
    float milliseconds;
    cudaEventElapsedTime(&milliseconds, before, after);
    return milliseconds * 1e3f;
}

// Microseconds of what is launched, the least of five times.
template <class Launch> float timed(Launch launch) {
    static const cudaEvent_t before = event(), after = event();
    float least = 1e9f;
    for (int i = 0; i < 5; ++i) {
        cudaEventRecord(before, stream);
        launch();
        cudaEventRecord(after, stream);
        cudaEventSynchronize(after);
        least = std::min(least, between(before, after));
    }
    return least;
}

// Events around each of so many launches that are queued behind a kernel of some milliseconds; `each` is done before each of them.
template <class Each, class Behind> void queued(const char* what, int launches, Each each, Behind behind) {
    std::vector<cudaEvent_t> events;
    for (int i = 0; i <= launches; ++i) events.push_back(event());
    spins<<<1, 1, 0, stream>>>(8000000);
    cudaEventRecord(events[0], stream);
    for (int i = 0; i < launches; ++i) {
        each(i);
        read();
        cudaEventRecord(events[i + 1], stream);
    }
    behind();
    cudaDeviceSynchronize();
    printf("%s, us each:", what);
    for (int i = 0; i < launches; ++i) printf(" %.0f", between(events[i], events[i + 1]));
    printf("\n");
}

int main() {
    if (cudaMalloc(&a, BYTES + 256) != cudaSuccess || cudaMalloc(&b, BYTES + 256) != cudaSuccess || cudaMalloc(&sink, 256) != cudaSuccess) {
        fprintf(stderr, "this needs a GPU with 4 GiB; skipped\n");
        return 0;
    }
    cudaMemset(a, 1, BYTES);
    cudaMemset(b, 1, BYTES);
    cudaStreamCreate(&stream);
    size_t found = 0;
    cudaDeviceGetLimit(&found, cudaLimitMaxL2FetchGranularity);
    printf("in the beginning: %zu bytes\n", found);
    for (int bytes : {32, 64, 128}) {
        set(bytes);
        printf("%d bytes: read %.0f us, copied %.0f us\n", bytes, timed(read), timed(copy));
    }
    printf("a change takes the host, us:");
    for (int i = 0; i < 6; ++i) printf(" %.0f", set(i % 2 ? 64 : 32));
    printf("\nand while a kernel of some milliseconds runs, us, and then until it ends:");
    for (int i = 0; i < 3; ++i) {
        spins<<<1, 1, 0, stream>>>(5000000);
        const double took = set(i % 2 ? 64 : 32), start = now();
        cudaDeviceSynchronize();
        printf(" %.0f (%.0f)", took, (now() - start) * 1e6);
    }
    printf("\n");
    queued("set to 64 and 32 in turn before each launch, all queued before the first runs", 6, [](int i) { set(i % 2 ? 32 : 64); }, [] {});
    set(64);
    queued("queued at 64, then set to 32", 3, [](int) {}, [] { set(32); });

    cudaGraph_t graph;
    cudaGraphExec_t recorded;
    set(64);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    read();
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&recorded, graph, 0);
    for (int bytes : {64, 32}) {
        set(bytes);
        printf("a graph that was recorded at 64, at %d: %.0f us\n", bytes, timed([=] { cudaGraphLaunch(recorded, stream); }));
    }
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    printf("set while a stream is recorded: %s\n", cudaGetErrorString(cudaDeviceSetLimit(cudaLimitMaxL2FetchGranularity, 64)));
    cudaStreamEndCapture(stream, &graph);
    cudaGetLastError();

    set(32);
    CUcontext mine, other;
    cuCtxGetCurrent(&mine);
    cuCtxCreate(&other, nullptr, 0, 0);
    cuCtxGetLimit(&found, CU_LIMIT_MAX_L2_FETCH_GRANULARITY);
    printf("another context begins with %zu", found);
    cuCtxSetLimit(CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 128);
    cuCtxSetCurrent(mine);
    printf("; set to 128 there, the first one at 32 reads in %.0f us\n", timed(read));
    set(64);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
