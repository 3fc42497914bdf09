// What a GPU does that moves the rows of a tall and skinny product in complex128 and executes as many f64 matrix
// instructions as that product takes, with nothing in the way: bulk copies bring groups of 32 rows to a ring in shared
// memory, twelve warps execute the instructions on registers (reading twelve doubles a lane of each group, so that what
// is multiplied is as random as the rows), and for A C a bulk copy takes as many bytes back as came. No fragments are
// read, no tile stands on another's scheduler, no sum leaves. What remains is memory and matrix units at work at once.
//
// `fragments` are `whole` again, where warps also read what they multiply from shared memory, without conflicts, as often as
// tiles of so many rows and columns do: for A^H B by twelve warps in tiles of 16 x 96 and 32 x 48, by eight in tiles of 48 x 48 and 64 x 32 and by
// sixteen in tiles of 32 x 32, for A C by eight in tiles of 16 x 128 and 32 x 64 and by sixteen in tiles of 16 x 64. Where rows may be `turned`
// as many instructions count as then. A sum stays with a warp, and no instruction is divided: of 113 that make a step of A^H B one of the four
// schedulers has 29, so that 116 count; where the tiles of all warps hold the sums twice, two schedulers share out the 113 of every other step.
//
// For each width n: TFLOP/s of the product (8 n^2 for a row), as a part of R = min(intensity x bandwidth, 56.4 TFLOP/s),
// with bandwidths as `bench tsm` takes them (GB/s, read, and read and write; arguments 2 and 3) or, where none are given,
// that of the same copies without instructions, over launches after pauses of 0.3 s, medians of three. `exact` are as many
// instructions as there are products, `whole` those of tiles of 16 x 8 over real and imaginary parts, of 4 terms in A C.
// `stored` are `fragments` of A C where warps store as many bytes to shared memory as results have, to nobody's harm, since sums have to leave registers.
// `results` are `fragments` of A C by eight warps in tiles of 32 x 64 where what leaves does not lie in shared memory already: lanes
// store pairs of sums as the instructions leave them, straight to C, or to shared memory, from where bulk copies take them.
//
// `turned` are `whole` where the last rows of C, at most half an instruction of them, are columns of instructions instead
// (`tsmttsm --param border=turned`).
//
// Zeros, then random numbers, or those that argument 1 names; with argument 4 all widths from 33 to 64, of A^H B (`left`), of A C (`right`)
// alone, or of both (`both`), or those from argument 5 to argument 6. With arguments 7 and 8 a table for bench/goals.py that bears the date of argument 8
// gets the least time of `fragments` (A^H B) and `stored` (A C) with random numbers, since operands have to come to registers and results to leave them;
// what else costs time is left out.
//
//     nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a -o ridge bulk_and_products.cu && ./ridge all 4552 4069
//     ./ridge random 4552 4314 both 33 64 limits-nvidia-h200-DATE.csv DATE

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <time.h>

#include "bulk.cuh"
#include "doubles.cuh"

constexpr int ROWS = 32, SHARED = 200 << 10, MOST_STAGES = 12;
// Sums of a warp that reads no fragments.
constexpr int SUMS = 8;
constexpr size_t OPERAND = size_t(1) << 31;

// The first so many threads of a block meet.
template <int THREADS> __device__ __forceinline__ void meet() {
    asm volatile("bar.sync 1, %0;" ::"n"(THREADS) : "memory");
}
__device__ __forceinline__ void multiply16(double (&d)[4], const double (&a)[8], const double (&b)[4]) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7, %8, %9, %10, %11}, "
                 "{%12, %13, %14, %15}, {%0, %1, %2, %3};"
                 : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
                 : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]), "d"(b[0]),
                   "d"(b[1]), "d"(b[2]), "d"(b[3]));
}

// Groups of `bytes` of A and, unless they go to C, of B. For each group a warp owes `hundredths` of an instruction of 16 terms
// (A^H B) or of 4 (A C), and executes them eight at a time; or, with tiles of HIGH x WIDE, a step of four terms of its tile at a time,
// for which it reads the fragments.
// Results leave from where the rows came to (AS_THEY_CAME), straight from registers, or from registers through shared memory; or rows leave as they
// came, and warps store as many bytes as results have to shared memory, each to a place of its own (STORED).
enum Results { AS_THEY_CAME, STORED, DIRECT, THROUGH_SHARED };

// Bytes of shared memory that a warp stores to.
constexpr int OF_A_WARP = 1 << 10;

template <bool WRITES, int WARPS, int HIGH, int WIDE, Results RESULTS>
__global__ void __launch_bounds__(32 * (WARPS + 1), 1)
    moves_and_products(const char* a, const char* b, char* c, int groups, int bytes, int stages, int hundredths, double* out) {
    extern __shared__ __align__(128) char ring[];
    __shared__ uint64_t full[MOST_STAGES], empty[MOST_STAGES];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, stage_bytes = WRITES ? bytes : 2 * bytes;
    if (threadIdx.x == 0) {
        for (int s = 0; s < stages; ++s) {
            init(&full[s], 1);
            init(&empty[s], WARPS);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (warp == WARPS) {
        if (lane > 0) return;
        int asked = blockIdx.x;
        Place to;
        bool again = false;
        auto ask = [&]() {
            if (asked >= groups) return;
            if (again) wait(&empty[to.stage], to.parity ^ 1);
            expect(&full[to.stage], stage_bytes);
            char* stage = ring + to.stage * stage_bytes;
            bring(stage, a + size_t(asked) * bytes, bytes, &full[to.stage]);
            if (!WRITES) bring(stage + bytes, b + size_t(asked) * bytes, bytes, &full[to.stage]);
            asked += gridDim.x;
            to.next(stages);
            again |= to.stage == 0;
        };
        if (!WRITES) {
            while (asked < groups) ask();
            return;
        }
        if (RESULTS > STORED) {
            while (asked < groups) ask();
            return;
        }
        carry(c, ring, full, groups, bytes, stages, ask);
        return;
    }
    constexpr bool READS = HIGH > 0;
    constexpr int OF_A = 2 * HIGH / 16, OF_B = WIDE / 8, TILES = READS ? HIGH / 16 * OF_B : SUMS;
    // Hundredths of instructions of 4 terms, or of 16, that are executed together.
    constexpr int AT_ONCE = READS ? 100 * TILES / (WRITES ? 1 : 4) : 100 * SUMS;
    double sums[TILES][4] = {};
    // Warps do not all have their turns with the same groups.
    int due = warp * (AT_ONCE / WARPS), place = warp, parity = 0;
    Place from;
    for (int g = blockIdx.x; g < groups; g += gridDim.x) {
        wait(&full[from.stage], from.parity);
        const double* numbers = reinterpret_cast<const double*>(ring + from.stage * stage_bytes) + lane;
        if constexpr (READS) {
            const int rounds = stage_bytes / 256 - (OF_A + OF_B);
            for (due += hundredths; due >= AT_ONCE; due -= AT_ONCE) {
                double left[OF_A], right[OF_B];
#pragma unroll
                for (int i = 0; i < OF_A; ++i) left[i] = numbers[32 * (place + i)];
#pragma unroll
                for (int i = 0; i < OF_B; ++i) right[i] = numbers[32 * (place + OF_A + i)];
                place = place + OF_A + OF_B < rounds ? place + OF_A + OF_B : 0;
#pragma unroll
                for (int i = 0; i < TILES; ++i) {
                    multiply(sums[i], left[i / OF_B * 2], left[i / OF_B * 2 + 1], right[i % OF_B]);
                }
            }
            __syncwarp();
            if (lane == 0) arrive(&empty[from.stage]);
            from.next(stages);
            if constexpr (RESULTS == STORED) {
                const unsigned to = at(ring + stages * stage_bytes + warp * OF_A_WARP + lane * 16);
                for (int i = 0; i < (bytes / 512 + WARPS - 1) / WARPS; ++i) {
                    asm volatile("st.shared.v2.f64 [%0], {%1, %2};" ::"r"(to + i % 2 * 512), "d"(sums[0][0]), "d"(sums[0][1]) : "memory");
                }
            }
            if constexpr (RESULTS > STORED) {
                // A row of C has as many bytes as one of A, of which a lane stores 16 in every fourth, and eight rows below.
                const int row_bytes = bytes / ROWS, across = (row_bytes + 63) / 64;
                char* const to = RESULTS == DIRECT ? c + size_t(g) * bytes : ring + (stages + parity) * stage_bytes;
                if (RESULTS == THROUGH_SHARED) {
                    if (threadIdx.x == 0) wait_for_reads<1>();
                    meet<32 * WARPS>();
                }
                int t = 0;
                for (int tile = warp; tile < ROWS / 16 * across; tile += WARPS, ++t) {
                    const int row = tile / across * 16 + lane / 4, column = tile % across * 64 + lane % 4 * 16;
                    const double(&sum)[4] = sums[0];
                    if (column < row_bytes) {
                        *reinterpret_cast<double2*>(to + row * row_bytes + column) = make_double2(sum[0] + t, sum[1]);
                        *reinterpret_cast<double2*>(to + (row + 8) * row_bytes + column) = make_double2(sum[2] + t, sum[3]);
                    }
                }
                if (RESULTS == THROUGH_SHARED) {
                    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
                    meet<32 * WARPS>();
                    if (threadIdx.x == 0) take(c + size_t(g) * bytes, to, bytes);
                    parity ^= 1;
                }
            }
        } else {
            double left[8], right[4];
#pragma unroll
            for (int i = 0; i < 8; ++i) left[i] = numbers[32 * i];
#pragma unroll
            for (int i = 0; i < 4; ++i) right[i] = numbers[32 * (i + 4)];
            __syncwarp();
            if (lane == 0) arrive(&empty[from.stage]);
            from.next(stages);
            for (due += hundredths; due >= AT_ONCE; due -= AT_ONCE) {
#pragma unroll
                for (int i = 0; i < TILES; ++i) {
                    if (WRITES) multiply(sums[i], left[i % 8], left[(i + 1) % 8], right[i % 4]);
                    else multiply16(sums[i], left, right);
                }
            }
        }
    }
    if (RESULTS == THROUGH_SHARED && threadIdx.x == 0) wait_for_writes();
    double all = 0;
    for (auto& sum : sums) {
        for (double part : sum) all += part;
    }
    if (all == 1.2345) out[0] = all;  // Never, but the compiler does not know.
}

static int multiprocessors;
static cudaEvent_t before, after;

template <bool WRITES, int WARPS = 12, int HIGH = 0, int WIDE = 0, Results RESULTS = AS_THEY_CAME>
double seconds(const char* a, const char* b, char* c, double* out, int n, double instructions) {
    const int bytes = ROWS * 16 * n;  // A multiple of 16, and no less than what a warp reads of it.
    const int stage = WRITES ? bytes : 2 * bytes;
    const int stages = std::min(MOST_STAGES, SHARED / stage - (RESULTS == THROUGH_SHARED ? 2 : 0));
    const int groups = OPERAND / bytes;
    const auto kernel = moves_and_products<WRITES, WARPS, HIGH, WIDE, RESULTS>;
    const int shared = SHARED + (RESULTS == STORED ? WARPS * OF_A_WARP : 0);
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    double times[3];
    for (double& time : times) {
        const timespec pause = {0, 300000000};
        nanosleep(&pause, nullptr);
        cudaEventRecord(before);
        for (int i = 0; i < 4; ++i) {
            kernel<<<multiprocessors, 32 * (WARPS + 1), shared>>>(a, b, c, groups, bytes, stages,
                                                                  int(100 * instructions * ROWS / 16 / WARPS), out);
        }
        cudaEventRecord(after);
        cudaEventSynchronize(after);
        float milliseconds = 0;
        cudaEventElapsedTime(&milliseconds, before, after);
        time = milliseconds / 4e3 * OPERAND / (groups * double(bytes));
    }
    std::sort(times, times + 3);
    return times[1];
}

int up(int n, int to) { return (n + to - 1) / to; }

// Instructions of a step as they count where schedulers share them out: as many on each as on the fullest. `sums` of a step are in the tiles of
// all warps together, once or several times.
template <int WARPS, int HIGH, int WIDE> double shared_out(double instructions, int sums) {
    const int sets = std::clamp(WARPS * HIGH * WIDE / sums, 1, 4), schedulers = 4 / sets;
    return up(int(instructions), schedulers) * schedulers;
}

// Seconds of A^H B with fragments, in tiles of so many rows and columns.
template <int WARPS, int HIGH, int WIDE>
double with_fragments(const char* a, const char* b, char* c, double* out, int n, double instructions) {
    return seconds<false, WARPS, HIGH, WIDE>(a, b, c, out, n, shared_out<WARPS, HIGH, WIDE>(instructions, 4 * n * n));
}

// What is written of the fastest that were found.
static FILE* table;
static const char *date, *name;

template <bool WRITES> void measure(const char* a, const char* b, char* c, double* out, int n, double bandwidth) {
    // Of 16 rows: instructions of 16 terms of parts of A^H B, or of 4 terms of A C.
    const double exact = WRITES ? 16.0 * 8 * n * n / (2 * 16 * 8 * 4) : 16.0 * 8 * n * n / (2 * 16 * 8 * 16);
    const double whole = WRITES ? up(2 * n, 4) * up(2 * n, 8) : up(2 * n, 16) * up(2 * n, 8);
    const double flops = OPERAND / (16.0 * n) * 8 * n * n, moved = 2.0 * OPERAND;
    // A table has what does the most of what has to be done; the others cost time.
    const bool all = !table || bandwidth <= 0;
    const double none = all ? seconds<WRITES>(a, b, c, out, n, 0) : 0;
    const double limit = std::max(bandwidth > 0 ? moved / bandwidth / 1e9 : none, flops / 56.4e12);
    const double taken = seconds<WRITES>(a, b, c, out, n, whole);
    printf("  %s %2d: ", WRITES ? "A C  " : "A^H B", n);
    if (all) {
        const double best = seconds<WRITES>(a, b, c, out, n, exact);
        printf("moved alone %4.0f GB/s; exact %5.1f TFLOP/s %.3f of R, ", moved / none / 1e9, flops / best / 1e12, limit / best);
    }
    printf("whole (%.3f) %5.1f TFLOP/s %.3f of R\n", exact / whole, flops / taken / 1e12, limit / taken);
    double fewest = whole;
    const int over = 2 * n % 16;
    if (!WRITES && over > 0 && over <= 8) {
        fewest = std::min(whole, double(2 * n / 16 * up(2 * n, 8) + up(2 * n, 16)));
        printf("            turned (%.3f) %.3f of R\n", exact / fewest, limit / seconds<WRITES>(a, b, c, out, n, fewest));
    }
    const size_t rows = OPERAND / (16 * n);
    double least;
    if constexpr (WRITES) {
        const double kept[] = {seconds<true, 8, 16, 128, STORED>(a, b, c, out, n, whole), seconds<true, 8, 32, 64, STORED>(a, b, c, out, n, whole),
                               seconds<true, 16, 16, 64, STORED>(a, b, c, out, n, whole)};
        printf("            stored    16 x 128 %.3f, 32 x 64 %.3f, 16 x 64 %.3f of R\n", limit / kept[0], limit / kept[1], limit / kept[2]);
        least = *std::min_element(kept, kept + 3);
        if (!table) {
            const double read[] = {seconds<true, 8, 16, 128>(a, b, c, out, n, whole), seconds<true, 8, 32, 64>(a, b, c, out, n, whole),
                                   seconds<true, 16, 16, 64>(a, b, c, out, n, whole)};
            printf("            fragments 16 x 128 %.3f, 32 x 64 %.3f, 16 x 64 %.3f of R\n", limit / read[0], limit / read[1], limit / read[2]);
            const double stored[] = {seconds<true, 8, 32, 64, DIRECT>(a, b, c, out, n, whole), seconds<true, 8, 32, 64, THROUGH_SHARED>(a, b, c, out, n, whole),
                                     seconds<true, 8, 32, 64, DIRECT>(a, b, c, out, n, 0), seconds<true, 8, 32, 64, THROUGH_SHARED>(a, b, c, out, n, 0)};
            printf("            results direct %.3f, through shared memory %.3f of R; without instructions %.3f, %.3f\n", limit / stored[0],
                   limit / stored[1], limit / stored[2], limit / stored[3]);
        }
    } else {
        const double read[] = {with_fragments<12, 16, 96>(a, b, c, out, n, fewest), with_fragments<12, 32, 48>(a, b, c, out, n, fewest),
                               with_fragments<8, 48, 48>(a, b, c, out, n, fewest),
                               with_fragments<8, 64, 32>(a, b, c, out, n, fewest),  with_fragments<16, 32, 32>(a, b, c, out, n, fewest)};
        printf("            fragments 16 x 96 %.3f, 32 x 48 %.3f, 48 x 48 %.3f, 64 x 32 %.3f, 32 x 32 %.3f of R\n", limit / read[0],
               limit / read[1], limit / read[2], limit / read[3], limit / read[4]);
        least = *std::min_element(read, read + 5);
    }
    if (table) {
        if (WRITES) fprintf(table, "widths,tsmm,c128,%zu,%d,%d,,%.9g,copies with fragments and stores and", rows, n, n, least);
        else fprintf(table, "widths,tsmttsm,c128,%d,%d,%zu,,%.9g,copies with fragments and", n, n, rows, least);
        fprintf(table, " whole instructions,%s,%s\n", name, date);
    }
    fflush(nullptr);
}

int main(int count, char** arguments) {
    cudaDeviceProp device;
    if (cudaGetDeviceProperties(&device, 0) != cudaSuccess || device.major < 9) {
        printf("this needs a GPU of compute capability 9.0 or newer; skipped\n");
        return 0;
    }
    multiprocessors = device.multiProcessorCount;
    const double read = count > 3 ? atof(arguments[2]) : 0, both = count > 3 ? atof(arguments[3]) : 0;
    char *a, *b, *c;
    double* out;
    if (cudaMalloc(&a, OPERAND) != cudaSuccess || cudaMalloc(&b, OPERAND) != cudaSuccess ||
        cudaMalloc(&c, OPERAND) != cudaSuccess || cudaMalloc(&out, sizeof(double)) != cudaSuccess) {
        printf("there is no room for 6 GiB; skipped\n");
        return 0;
    }
    cudaEventCreate(&before);
    cudaEventCreate(&after);
    if (count > 8) {
        name = device.name, date = arguments[8], table = fopen(arguments[7], "w");
        if (!table) return printf("%s cannot be written\n", arguments[7]), 1;
        fprintf(table, "figure,operation,dtype,m,n,k,row_strides,seconds,way,gpu,date\n");
    }
    for (const char* what : {"zeros", "random numbers"}) {
        if (count > 1 && arguments[1][0] != 'a' && arguments[1][0] != what[0]) continue;
        for (char* p : {a, b}) {
            if (what[0] == 'z') cudaMemset(p, 0, OPERAND);
            else fill<<<2048, 256>>>(reinterpret_cast<double*>(p), OPERAND / sizeof(double));
        }
        printf("%s, %s, R of %.0f GB/s (A^H B) and %.0f GB/s (A C), 0: of the copies alone\n", device.name, what, read, both);
        const char of = count > 4 ? arguments[4][0] : 0;
        for (int n = count > 5 ? atoi(arguments[5]) : 33, last = count > 6 ? atoi(arguments[6]) : 64; n <= last; ++n) {
            if (of == 0 && n % 4 != 1 && n % 12 != 0 && n != 64) continue;
            if (of != 'r') measure<false>(a, b, c, out, n, read);
            if (of != 'l') measure<true>(a, b, c, out, n, both);
        }
    }
    if (table) fclose(table);
    if (cudaDeviceSynchronize() != cudaSuccess) {
        printf("failed: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 1;
    }
}
