// How fast a GPU can read rows and multiply them by a small matrix on its ordinary cores, if it need not write: C = A
// B in f32, B of N x N, without C. Each warp copies rows of its own to shared memory, asynchronously and a stage or
// two ahead, waits for nobody else, multiplies them by B, which lies in shared memory too, and only adds up what it
// would have to write. What a whole product loses beyond this it loses by writing.
//
// Of several kernels of a width, which differ in tiles, stages and warps, the one that is fastest in a quick look is
// measured, rested and sustained (multiply_adds.cuh), also as a part of what the whole product could reach on an
// H200, R = min(N / 4 flop/byte x 4069 GB/s, 53.6 TFLOP/s). Sums are checked. Numbers are random, or zeros,
// which take little power, with --zeros. Takes about 10 seconds. Build and run:
//
//     nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a -o limits multiply_adds_rows.cu && ./limits

#include "multiply_adds.cuh"
#include <cmath>

constexpr double COPIES = 4069e9, PEAK = 53.6e12;

static double* total;

// Lanes of a warp stand 32 / ALONG x ALONG over TM x N / ALONG sums each; a stage holds TERMS of the N numbers of
// each row of a tile. Of neighbouring rows, neighbouring lanes read 16 bytes at once, in different banks.
template <int N, int TM, int ALONG, int TERMS, int STAGES, int WARPS> struct Tile {
    static constexpr int TN = N / ALONG, LANES = 32 / ALONG, ROWS = TM * LANES;
    static constexpr int PITCH = TERMS % 8 == 4 ? TERMS : TERMS + 4, STAGE = ROWS * PITCH, PARTS = N / TERMS;
    static constexpr int SHARED = (N * N + WARPS * STAGES * STAGE) * sizeof(float);
    static_assert(N % (4 * PARTS) == 0 && SHARED <= 227 * 1024, "a tile has to fit");
};

template <int N, int TM, int ALONG, int TERMS, int STAGES, int WARPS>
__global__ void __launch_bounds__(32 * WARPS, 1)
    rows_by_matrix(const float* a, const float* b, unsigned tiles, double* total, Spent* spent) {
    using Shape = Tile<N, TM, ALONG, TERMS, STAGES, WARPS>;
    constexpr int TN = Shape::TN, WIDE = TN / 4;
    constexpr int ACROSS = TERMS / 4 & -(TERMS / 4);  // Lanes that copy neighbouring pieces of a row.
    extern __shared__ float4 memory[];
    float* small = (float*)memory;
    stamp(spent, -1);
    for (int i = threadIdx.x; i < N * N; i += 32 * WARPS) small[i] = b[i];
    __syncthreads();
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, along = lane % ALONG;
    const int row_of_lane = lane / ACROSS, term_of_lane = lane % ACROSS * 4;
    float* mine = small + N * N + warp * STAGES * Shape::STAGE;
    const unsigned first = blockIdx.x * WARPS + warp, step = gridDim.x * WARPS;
    const unsigned count = first < tiles ? (tiles - first + step - 1) / step * Shape::PARTS : 0;
    // The part of a tile that is the warp's i-th.
    const auto copy = [&](unsigned i) {
        if (i < count) {
            const unsigned tile = first + i / Shape::PARTS * step;
            const int term = i % Shape::PARTS * TERMS + term_of_lane;
            const float* from = a + (tile * size_t(Shape::ROWS) + row_of_lane) * N + term;
            const float* stage = mine + i % STAGES * Shape::STAGE + row_of_lane * Shape::PITCH + term_of_lane;
            const unsigned to = unsigned(__cvta_generic_to_shared(stage));
#pragma unroll
            for (int row = 0; row < Shape::ROWS; row += 32 / ACROSS) {
#pragma unroll
                for (int term = 0; term < TERMS; term += 4 * ACROSS) {
                    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                                 :
                                 : "r"(to + (row * Shape::PITCH + term) * 4), "l"(from + row * N + term)
                                 : "memory");
                }
            }
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    float sums[TM][TN] = {};
    for (int i = 0; i < STAGES - 1; ++i) copy(i);
    for (unsigned i = 0; i < count; ++i) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        __syncwarp();
        copy(i + STAGES - 1);
        const float* rows = mine + i % STAGES * Shape::STAGE + lane / ALONG * Shape::PITCH;
        const float* terms = small + i % Shape::PARTS * TERMS * N;
#pragma unroll 2
        for (int k = 0; k < TERMS; k += 4, terms += 4 * N) {
            float4 x[TM];
#pragma unroll
            for (int r = 0; r < TM; ++r) x[r] = *(const float4*)(rows + r * Shape::LANES * Shape::PITCH + k);
#pragma unroll
            for (int term = 0; term < 4; ++term) {
                alignas(16) float y[TN];
                const float* columns = terms + term * N;
#pragma unroll
                for (int j = 0; j < WIDE; ++j) *(float4*)&y[4 * j] = ((const float4*)columns)[j * ALONG + along];
                columns += WIDE * 4 * ALONG;
                if (TN % 4 >= 2) *(float2*)&y[4 * WIDE] = ((const float2*)columns)[along];
                if (TN % 2 == 1) y[TN - 1] = columns[TN % 4 / 2 * 2 * ALONG + along];
#pragma unroll
                for (int r = 0; r < TM; ++r) {
#pragma unroll
                    for (int j = 0; j < TN; ++j) multiply_add(sums[r][j], ((const float*)&x[r])[term], y[j]);
                }
            }
        }
    }
    float all = 0;
    for (auto& row : sums) {
        for (float sum : row) all += sum;
    }
    if (total) atomicAdd(total, double(all));
    stamp(spent, 1);
}

// The sum of all that A B consists of.
__global__ void expect(const float* a, const float* b, size_t numbers, int n, double* total) {
    __shared__ double sums[64];  // Of the rows of B.
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        sums[i] = 0;
        for (int j = 0; j < n; ++j) sums[i] += b[i * n + j];
    }
    __syncthreads();
    double sum = 0;
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < numbers; i += size_t(gridDim.x) * blockDim.x) {
        sum += a[i] * sums[i % n];
    }
    atomicAdd(total, sum);
}

constexpr size_t rows_of(int n) { return BYTES / 4 / n / 64 * 64; }  // Whole tiles.

template <int N, int TM, int ALONG, int TERMS, int STAGES, int WARPS> Kernel multiply_rows() {
    using Shape = Tile<N, TM, ALONG, TERMS, STAGES, WARPS>;
    const auto function = rows_by_matrix<N, TM, ALONG, TERMS, STAGES, WARPS>;
    check(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, Shape::SHARED));
    const auto launch = [=](double* total) {
        const float* a = (const float*)numbers;
        function<<<multiprocessors, 32 * WARPS, Shape::SHARED>>>(a, a, rows_of(N) / Shape::ROWS, total, spent);
        check(cudaGetLastError());
    };
    double sums[2];
    check(cudaMemset(total, 0, sizeof sums));
    launch(total);
    expect<<<8 * multiprocessors, 256>>>((const float*)numbers, (const float*)numbers, rows_of(N) * N, N, total + 1);
    check(cudaGetLastError());
    check(cudaMemcpy(sums, total, sizeof sums, cudaMemcpyDeviceToHost));
    Kernel kernel;
    snprintf(kernel.shape, sizeof kernel.shape, "%d x %d, %d, %d, %d", TM, Shape::TN, TERMS, STAGES, WARPS);
    if (!(fabs(sums[0] - sums[1]) < 10)) {  // A tile of random rows comes to 60 or more, rounding to about 1.
        printf("failed: %s of width %d comes to %g instead of %g\n", kernel.shape, N, sums[0], sums[1]);
        exit(1);
    }
    kernel.bytes = double(rows_of(N)) * N * 4;
    kernel.flops = double(rows_of(N)) * N * N * 2;
    kernel.launch = [=] { launch(nullptr); };
    return kernel;
}

template <int N> void measure(const std::vector<Kernel>& kernels) {
    const Kernel kernel = fastest(kernels);
    const Pace is = pace(kernel);
    const double limit = std::min(N / 4.0 * COPIES, PEAK);
    printf("  %5d  %-20s %6.0f %8.1f %5.2f %8.0f %8.1f %5.2f %6.0f\n", N, kernel.shape, kernel.bytes / is.rested / 1e9,
           kernel.flops / is.rested / 1e12, kernel.flops / is.rested / limit, kernel.bytes / is.sustained / 1e9,
           kernel.flops / is.sustained / 1e12, kernel.flops / is.sustained / limit, is.megahertz);
    fflush(stdout);
}

int main(int count, char** arguments) {
    if (!begin(count, arguments)) return 0;
    check(cudaMalloc(&total, 2 * sizeof(double)));
    printf("f32 rows by a matrix, nothing written (TM x TN, terms of a stage, stages, warps); parts of R\n\n");
    printf("  width  kernel                 rested                  sustained               clock\n");
    printf("                                  GB/s  TFLOP/s  of R     GB/s  TFLOP/s  of R     MHz\n");
    measure<32>({multiply_rows<32, 8, 4, 32, 2, 12>(), multiply_rows<32, 8, 8, 32, 3, 12>(),
                multiply_rows<32, 8, 8, 32, 3, 16>(), multiply_rows<32, 4, 4, 32, 3, 16>()});
    measure<48>({multiply_rows<48, 8, 8, 48, 2, 12>(), multiply_rows<48, 8, 8, 48, 2, 16>(),
                multiply_rows<48, 8, 8, 24, 3, 12>(), multiply_rows<48, 4, 4, 48, 2, 16>(),
                multiply_rows<48, 8, 4, 24, 2, 12>(), multiply_rows<48, 8, 4, 24, 3, 8>()});
    measure<56>({multiply_rows<56, 8, 8, 56, 2, 12>(), multiply_rows<56, 4, 4, 56, 2, 12>(),
                multiply_rows<56, 8, 4, 28, 3, 8>()});
    measure<64>({multiply_rows<64, 8, 8, 64, 2, 12>(), multiply_rows<64, 8, 8, 32, 3, 12>(),
                multiply_rows<64, 8, 8, 32, 2, 16>(), multiply_rows<64, 4, 4, 64, 2, 12>(),
                multiply_rows<64, 8, 4, 16, 3, 8>(), multiply_rows<64, 16, 8, 32, 2, 8>()});
}
