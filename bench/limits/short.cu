// How fast a short product can be at all: calls that read 4 to 128 MiB, and what it costs to start them and to bring
// the partial sums of their blocks together. For each size it times
//
//     read              one launch that only reads
//     partial sums      every block writes a partial sum, and a second launch of one block adds them up
//     begun early       the same, the second launch beginning while the first runs (programmatic dependent launch)
//     last block        one launch, in which the block that arrives last adds the partial sums up
//     read and write    one launch that copies: half the bytes are read, half are written
//     all early         `begun early`, and the first launch of a call begins while that before it still runs, and waits for its end itself
//     copied early      `read and write` in the same way
//     asked ahead       `all early`, and each thread asks for what it reads first before it waits: it comes to the second-level cache meanwhile, where a
//                       value that the launch before writes later is found all the same
//     copied ahead      `copied early` in the same way
//     last, early       `last block`, and the launch begins while that before it still runs, and waits for its end itself
//     last, ahead       the same, asking ahead
//     alone, early      `read` in the same way: nothing is added up, so this is less than a call has to do
//     alone, ahead      the same, asking ahead
//     and a launch      `alone, ahead`, and a second launch that begins early, waits, and does nothing
//     and a word        the same, and one thread of the second launch reads a word that another of the first has written, and writes it to C: the least
//                       that a call of two launches does
//
// each with the best of 36 shapes: blocks on a multiprocessor, threads of a block, and 16-byte loads that a thread has
// under way at a time. The calls are nodes of a graph, 104 or more, which is replayed; neighbouring calls use different
// parts of 1 GiB, so that nothing is in the second-level cache. A line has the median and the quartiles of 25 replays
// in microseconds for each call; the least time of its bytes at 4555 GB/s (reads) or 4069 GB/s (copies), which is what
// long operands reach on an H200; that time and two empty launches; and the median as a multiple of the latter. Sums
// are checked. Takes about a minute. With a date and a file, it measures the bytes of products of a million rows that are small
// enough for launches to count, A^T B of 1 to 8 columns and A C of one, and writes a table (CSV) that bench/goals.py reads beside that of
// `bench tsm --sweep short`: what copies so many bytes; or reads them and brings as many sums together as the result has words of 4 bytes, of which each
// block leaves one: the same number everywhere, so that nothing is done for them but to write them, to read them, and to add them up, by one block or by
// eight. Build and run:
//
//     nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a -o limits short.cu && ./limits
//     ./limits DATE limits-nvidia-h200-DATE-short.csv

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <map>
#include <utility>
#include <vector>

#include "graph.cuh"

constexpr size_t MIB = 1 << 20;
constexpr size_t BYTES = 1024 * MIB;
constexpr int MOST_SLOTS = 256;  // Parts of 4 MiB.
constexpr int MOST_BLOCKS = 8 * 1024;
constexpr int MOST_SUMS = 128;
constexpr int LOOKS = 5, REPLAYS = 25, WARM = 2;
constexpr double READS = 4555e9, COPIES = 4069e9;

// Halves of odd numbers from -7.5 to 7.5 in no order: sums of them stay small and are exact.
__global__ void fill(float* p, size_t n) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x) {
        unsigned long long h = (i + 1) * 0x9E3779B97F4A7C15ull;
        h ^= h >> 29;
        h *= 0xBF58476D1CE4E5B9ull;
        p[i] = float(h >> 60) - 7.5f;
    }
}

__global__ void empty() {}

// The sum over a block, in its first thread.
__device__ float sum_of_block(float v) {
    __shared__ float of_warps[32];
    for (int lanes = 16; lanes > 0; lanes /= 2) v += __shfl_down_sync(~0u, v, lanes);
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x < 32) {
        v = threadIdx.x < blockDim.x / 32 ? of_warps[threadIdx.x] : 0;
        for (int lanes = 16; lanes > 0; lanes /= 2) v += __shfl_down_sync(~0u, v, lanes);
    }
    return v;
}

// Adds up what the blocks of a launch have left: this block the sums from the first on, of which each of those left so many. A power of two of them, as
// blocks have of threads.
__device__ void add_partial(const float* partial, unsigned blocks, unsigned sums, unsigned first, unsigned own, float* out) {
    float sum = 0;
    if (sums == 1) {
        for (unsigned i = threadIdx.x; i < blocks; i += blockDim.x) sum += __ldcg(&partial[i]);
        sum = sum_of_block(sum);
        if (threadIdx.x == 0) out[0] = sum;
        return;
    }
    __shared__ float held[1024];
    const unsigned at = threadIdx.x % own, step = blockDim.x / own;
#pragma unroll 4
    for (unsigned i = threadIdx.x / own; i < blocks; i += step) sum += __ldcg(&partial[i * sums + first + at]);
    held[threadIdx.x] = sum;
    for (unsigned half = blockDim.x / 2; half >= own; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) held[threadIdx.x] += held[threadIdx.x + half];
    }
    if (threadIdx.x < own) out[first + at] = held[at];
}

// What becomes of what a block has read.
enum After { NOTHING, PARTIAL, EARLY, LAST, ALL_EARLY, ASKED, LAST_EARLY, LAST_ASKED, ALONE_EARLY, ALONE_ASKED, AND_A_LAUNCH, AND_A_WORD };
__host__ __device__ constexpr bool asks(After after) { return after == ASKED || after == LAST_ASKED || after == ALONE_ASKED || after == AND_A_LAUNCH || after == AND_A_WORD; }
__host__ __device__ constexpr bool waits(After after) { return after == ALL_EARLY || after == LAST_EARLY || after == ALONE_EARLY || asks(after); }
__host__ __device__ constexpr bool leaves_nothing(After after) { return after == NOTHING || after == ALONE_EARLY || after == ALONE_ASKED || after == AND_A_LAUNCH || after == AND_A_WORD; }
__host__ __device__ constexpr bool by_last(After after) { return after == LAST || after == LAST_EARLY || after == LAST_ASKED; }
__host__ __device__ constexpr bool by_another(After after) { return after == EARLY || after == ALL_EARLY || after == ASKED; }
// How a launch begins.
enum Begin { BEHIND, EARLY_TOO, ASKED_TOO };

__device__ __forceinline__ void let_next_begin() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
__device__ __forceinline__ void wait_for_one_before() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// Asks for the lines of what a thread reads first, a lane for each.
template <int IN_FLIGHT> __device__ __forceinline__ void ask(const float4* a, unsigned n) {
    const unsigned step = gridDim.x * blockDim.x, first = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll
    for (int u = 0; u < IN_FLIGHT; ++u) {
        if (threadIdx.x % 8 == 0 && first + u * step < n) asm volatile("prefetch.global.L2 [%0];" ::"l"(&a[first + u * step]));
    }
}

template <After AFTER, int IN_FLIGHT>
__global__ void __launch_bounds__(1024, 1)
    read(const float4* a, unsigned n, float* partial, unsigned sums, unsigned* arrived, float* out) {
    if (AFTER == EARLY || waits(AFTER)) let_next_begin();
    if (asks(AFTER)) ask<IN_FLIGHT>(a, n);
    if (waits(AFTER)) wait_for_one_before();
    const unsigned step = gridDim.x * blockDim.x;
    float sum = 0;
    for (unsigned first = blockIdx.x * blockDim.x + threadIdx.x; first < n; first += IN_FLIGHT * step) {
        float4 held[IN_FLIGHT];
#pragma unroll
        for (int u = 0; u < IN_FLIGHT; ++u) {
            held[u] = first + u * step < n ? __ldcs(&a[first + u * step]) : float4{0, 0, 0, 0};
        }
#pragma unroll
        for (int u = 0; u < IN_FLIGHT; ++u) sum += (held[u].x + held[u].y) + (held[u].z + held[u].w);
    }
    if (leaves_nothing(AFTER)) {
        if (sum == 1.2345f) out[0] = sum;  // Never, but the compiler does not know.
        if (AFTER == AND_A_WORD && blockIdx.x == 0 && threadIdx.x == 0) partial[0] = sum;
        return;
    }
    sum = sum_of_block(sum);
    if (sums == 1) {
        if (threadIdx.x == 0) partial[blockIdx.x] = sum;
    } else {
        __shared__ float of_block;
        if (threadIdx.x == 0) of_block = sum;
        __syncthreads();
        if (threadIdx.x < sums) partial[blockIdx.x * sums + threadIdx.x] = of_block;
    }
    if (by_last(AFTER)) {
        __shared__ bool last;
        if (sums > 1) __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            last = atomicAdd(arrived, 1) == gridDim.x - 1;
            __threadfence();
        }
        __syncthreads();
        if (!last) return;
        add_partial(partial, gridDim.x, sums, 0, sums, out);
        if (threadIdx.x == 0) *arrived = 0;
    }
}

// The second launch; where the first one may still be running, it waits for its end.
template <bool WAITS> __global__ void __launch_bounds__(1024) add_up(const float* partial, unsigned blocks, unsigned sums, float* out) {
    if (WAITS) {
        let_next_begin();
        wait_for_one_before();
    }
    const unsigned own = sums / gridDim.x;
    add_partial(partial, blocks, sums, blockIdx.x * own, own, out);
}

// A second launch that has nothing to do, or hardly.
__global__ void only_wait() {
    let_next_begin();
    wait_for_one_before();
}

__global__ void one_word(const float* partial, float* out) {
    let_next_begin();
    wait_for_one_before();
    if (threadIdx.x == 0) out[0] = __ldcg(partial);
}

template <Begin BEGIN, int IN_FLIGHT> __global__ void __launch_bounds__(1024, 1) copy(const float4* a, float4* c, unsigned n) {
    if (BEGIN != BEHIND) {
        let_next_begin();
        if (BEGIN == ASKED_TOO) ask<IN_FLIGHT>(a, n);
        wait_for_one_before();
    }
    const unsigned step = gridDim.x * blockDim.x;
    for (unsigned first = blockIdx.x * blockDim.x + threadIdx.x; first < n; first += IN_FLIGHT * step) {
        float4 held[IN_FLIGHT];
#pragma unroll
        for (int u = 0; u < IN_FLIGHT; ++u) {
            if (first + u * step < n) held[u] = __ldcs(&a[first + u * step]);
        }
#pragma unroll
        for (int u = 0; u < IN_FLIGHT; ++u) {
            if (first + u * step < n) c[first + u * step] = held[u];
        }
    }
}

// What each part has to come to: a block for a part.
__global__ void expect(const float4* a, unsigned n, float* sums) {
    float sum = 0;
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) {
        const float4 v = a[blockIdx.x * size_t(n) + i];
        sum += (v.x + v.y) + (v.z + v.w);
    }
    sum = sum_of_block(sum);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

struct Shape {
    int blocks, threads, in_flight;  // Blocks of the whole grid.
    int adders = 1;                  // Blocks that add up.
};

static cudaStream_t stream;
static cudaEvent_t events[REPLAYS + 1];
static int multiprocessors;
static float4 *a, *c;
static float *partial, *out, *expected;
static unsigned* arrived;
static double empty_launches;  // Microseconds of two.

// Microseconds of a call in each replay of a graph of calls, in ascending order. `call(slot)` launches one; all slots
// are used equally often.
template <class Call> std::vector<float> replays(int slots, int times, Call call) {
    const int calls = (100 + slots - 1) / slots * slots;
    const cudaGraphExec_t executable = recorded(stream, calls, [&](int i) { call(i % slots); });
    for (int i = 0; i < WARM; ++i) check(cudaGraphLaunch(executable, stream));
    check(cudaEventRecord(events[0], stream));
    for (int i = 0; i < times; ++i) {
        check(cudaGraphLaunch(executable, stream));
        check(cudaEventRecord(events[i + 1], stream));
    }
    check(cudaStreamSynchronize(stream));
    std::vector<float> each(times);
    for (int i = 0; i < times; ++i) {
        check(cudaEventElapsedTime(&each[i], events[i], events[i + 1]));
        each[i] *= 1e3f / calls;
    }
    std::sort(each.begin(), each.end());
    check(cudaGraphExecDestroy(executable));
    return each;
}

// A launch, which begins while the one before it still runs if it waits for it itself.
template <class... Of, class... Is> void launch(bool early, int blocks, int threads, void (*kernel)(Of...), Is... arguments) {
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(threads);
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = early;
    check(cudaLaunchKernelEx(&config, kernel, Of(arguments)...));
}

template <After AFTER> void launch_read(Shape shape, const float4* from, unsigned n, unsigned sums, float* result) {
    const auto kernel = shape.in_flight == 1   ? read<AFTER, 1>
                        : shape.in_flight == 2 ? read<AFTER, 2>
                        : shape.in_flight == 4 ? read<AFTER, 4>
                                               : read<AFTER, 8>;
    launch(waits(AFTER), shape.blocks, shape.threads, kernel, from, n, partial, sums, arrived, result);
    const int adding = sums == 1 ? 256 : 1024;
    if (AFTER == PARTIAL) launch(false, shape.adders, adding, add_up<false>, partial, shape.blocks, sums, result);
    if (AFTER == AND_A_LAUNCH) launch(true, 1, 32, only_wait);
    if (AFTER == AND_A_WORD) launch(true, 1, 32, one_word, partial, result);
    if (by_another(AFTER)) {
        launch(true, shape.adders, adding, add_up<true>, partial, shape.blocks, sums, result);
    }
}

template <Begin BEGIN> void launch_copy(Shape shape, const float4* from, float4* to, unsigned n) {
    const auto kernel = shape.in_flight == 1   ? copy<BEGIN, 1>
                        : shape.in_flight == 2 ? copy<BEGIN, 2>
                        : shape.in_flight == 4 ? copy<BEGIN, 4>
                                               : copy<BEGIN, 8>;
    launch(BEGIN != BEHIND, shape.blocks, shape.threads, kernel, from, to, n);
}

// Looks at every shape, measures the best one, and prints a line. `call(shape, slot)` launches one call. Microseconds of one.
template <class Call> double measure(const char* what, size_t bytes, double bandwidth, unsigned sums, std::vector<int> adders, Call call) {
    const int slots = int(BYTES / bytes);
    float least = 1e9f;
    Shape best = {};
    for (int on_one : {1, 2, 4, 8}) {
        for (int threads : {256, 512, 1024}) {
            if (on_one * threads > 2048) continue;
            for (int in_flight : {1, 2, 4, 8}) {
                for (int adding : adders) {
                    const Shape shape = {on_one * multiprocessors, threads, in_flight, adding};
                    const float look = replays(slots, LOOKS, [&](int slot) { call(shape, slot); })[LOOKS / 2];
                    if (look < least) least = look, best = shape;
                }
            }
        }
    }
    check(cudaMemset(out, 0xff, MOST_SLOTS * MOST_SUMS * sizeof(float)));
    const auto each = replays(slots, REPLAYS, [&](int slot) { call(best, slot); });
    const double median = each[REPLAYS / 2], memory = bytes / bandwidth * 1e6, both = memory + empty_launches;
    printf("%6.1f  %-15s %d x %4d x %d %9.2f  (%6.2f to %6.2f) %9.2f %9.2f %7.2f\n", double(bytes) / MIB, what,
           best.blocks / multiprocessors, best.threads, best.in_flight, median, each[REPLAYS / 4],
           each[REPLAYS * 3 / 4], memory, both, median / both);
    fflush(stdout);
    if (!sums) return median;
    std::vector<float> got(slots * sums), want(slots);
    check(cudaMemcpy(got.data(), out, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
    check(cudaMemcpy(want.data(), expected, slots * sizeof(float), cudaMemcpyDeviceToHost));
    for (unsigned i = 0; i < got.size(); ++i) {
        if (got[i] == want[i / sums]) continue;
        printf("failed: sum %u of part %u came to %g instead of %g\n", i % sums, i / sums, got[i], want[i / sums]);
        exit(1);
    }
    return median;
}

template <After AFTER> double measure_read(const char* what, size_t bytes, unsigned sums = 1) {
    const unsigned n = unsigned(bytes / sizeof(float4));
    const bool by_eight = sums >= 16 && !by_last(AFTER);
    return measure(what, bytes, READS, leaves_nothing(AFTER) ? 0 : sums, by_eight ? std::vector{1, 8} : std::vector{1},
            [&](Shape shape, int slot) { launch_read<AFTER>(shape, a + slot * size_t(n), n, sums, out + slot * sums); });
}

template <Begin BEGIN> double measure_copy(const char* what, size_t bytes) {
    const size_t half = bytes / sizeof(float4) / 2;
    return measure(what, bytes, COPIES, 0, {1}, [&](Shape shape, int slot) {
        launch_copy<BEGIN>(shape, a + slot * half, c + slot * half, unsigned(half));
    });
}

// The sums of all parts, and what it takes only to read one.
void expect_parts(size_t bytes) {
    expect<<<BYTES / bytes, 1024>>>(a, unsigned(bytes / sizeof(float4)), expected);
    check(cudaGetLastError());
    check(cudaDeviceSynchronize());
    measure_read<NOTHING>("read", bytes);
    measure_read<ALONE_EARLY>("alone, early", bytes);
    measure_read<ALONE_ASKED>("alone, ahead", bytes);
    measure_read<AND_A_LAUNCH>("and a launch", bytes);
    measure_read<AND_A_WORD>("and a word", bytes);
}

// The least of the ways in which a call may read so many bytes, and bring so many sums together.
double reads(size_t bytes, unsigned sums) {
    if (sums > 1) printf("        %u sums:\n", sums);
    return std::min({measure_read<PARTIAL>("partial sums", bytes, sums), measure_read<EARLY>("begun early", bytes, sums),
                     measure_read<LAST>("last block", bytes, sums), measure_read<ALL_EARLY>("all early", bytes, sums),
                     measure_read<ASKED>("asked ahead", bytes, sums), measure_read<LAST_EARLY>("last, early", bytes, sums),
                     measure_read<LAST_ASKED>("last, ahead", bytes, sums)});
}

// The same of those in which it may copy half of them.
double copies(size_t bytes) {
    return std::min({measure_copy<BEHIND>("read and write", bytes), measure_copy<EARLY_TOO>("copied early", bytes),
                     measure_copy<ASKED_TOO>("copied ahead", bytes)});
}

// What products of a million rows take that read, or copy, as many bytes.
void products(const char* gpu, const char* date, const char* name) {
    FILE* table = fopen(name, "w");
    if (!table) {
        printf("%s cannot be written\n", name);
        exit(1);
    }
    fprintf(table, "figure,operation,dtype,m,n,k,row_strides,seconds,way,gpu,date\n");
    constexpr int ROWS = 1000000;
    for (int bytes_of_a_row : {4, 8, 16, 32, 64}) {
        const size_t bytes = size_t(2) * ROWS * bytes_of_a_row;
        expect_parts(bytes);
        const double copied = copies(bytes);
        std::map<unsigned, double> read;  // By sums.
        for (auto [dtype, size] : {std::pair{"f32", 4}, {"f64", 8}, {"c64", 8}, {"c128", 16}}) {
            const int width = bytes_of_a_row / size;
            if (width != 1 && width != 4 && width != 8) continue;
            const unsigned sums = width * width * size / sizeof(float);
            if (!read.count(sums)) read[sums] = reads(bytes, sums);
            fprintf(table, "short,tsmttsm,%s,%d,%d,%d,,%.9g,reads and %u sums of each block,%s,%s\n", dtype, width, width, ROWS,
                    read[sums] / 1e6, sums, gpu, date);
            if (width == 1) fprintf(table, "short,tsmm,%s,%d,1,1,,%.9g,a copy,%s,%s\n", dtype, ROWS, copied / 1e6, gpu, date);
        }
    }
    fclose(table);
}

int main(int count, char** arguments) {
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);  // No kernel is first loaded while its launch is captured.
    cudaDeviceProp device;
    if (cudaGetDeviceProperties(&device, 0) != cudaSuccess || device.major < 9) {
        printf("this needs a GPU of compute capability 9.0 or newer; skipped\n");
        return 0;
    }
    multiprocessors = device.multiProcessorCount;
    if (cudaMalloc(&a, BYTES) != cudaSuccess || cudaMalloc(&c, BYTES / 2) != cudaSuccess) {
        printf("there is no room for 1.5 GiB; skipped\n");
        return 0;
    }
    check(cudaMalloc(&partial, MOST_BLOCKS * MOST_SUMS * sizeof(float)));
    check(cudaMalloc(&out, MOST_SLOTS * MOST_SUMS * sizeof(float)));
    check(cudaMalloc(&expected, MOST_SLOTS * sizeof(float)));
    check(cudaMalloc(&arrived, sizeof(unsigned)));
    check(cudaMemset(arrived, 0, sizeof(unsigned)));
    check(cudaStreamCreate(&stream));
    for (auto& event : events) check(cudaEventCreate(&event));
    for (int i = 0; i < 200; ++i) fill<<<2048, 256>>>((float*)a, BYTES / sizeof(float));  // The clock rises meanwhile.
    check(cudaGetLastError());
    check(cudaDeviceSynchronize());

    printf("%s, microseconds of a call\n", device.name);
    for (Shape shape : {Shape{1, 32, 0}, Shape{multiprocessors, 256, 0}}) {
        const auto each = replays(MOST_SLOTS, REPLAYS, [&](int) {
            empty<<<shape.blocks, shape.threads, 0, stream>>>();
            check(cudaGetLastError());
        });
        printf("an empty launch of %d x %d threads: %.2f (%.2f to %.2f)\n", shape.blocks, shape.threads,
               each[REPLAYS / 2], each[REPLAYS / 4], each[REPLAYS * 3 / 4]);
        empty_launches += each[REPLAYS / 2];
    }
    printf("\n   MiB  what             best shape           us    (quartiles)       memory +launches   ratio\n");
    if (count > 2) {
        products(device.name, arguments[1], arguments[2]);
        return 0;
    }
    for (size_t bytes = 4 * MIB; bytes <= 128 * MIB; bytes *= 2) {
        expect_parts(bytes);
        reads(bytes, 1);
        copies(bytes);
    }
}
