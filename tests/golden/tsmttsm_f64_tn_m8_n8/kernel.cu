// C = alpha op(A) op(B) + beta C

__device__ __forceinline__ int ceil_div(int a, int b) { return (a + b - 1)/b; }

// Lets the blocks of the next launch, which waits for this one itself, take what room there is.
__device__ __forceinline__ void let_next_launch_begin() {
    asm volatile("griddepcontrol.launch_dependents;");
}

// Waits until the launch before this one has ended and what it wrote can be read.
__device__ __forceinline__ void wait_for_launch_before() {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

// Grid: 8 blocks of 128 threads; 17408 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(128, 1)
tsmttsm_f64_tn_m8_n8_1(int K, const double* __restrict__ A, int lda, const double* __restrict__ B, int ldb,
    double* __restrict__ part)
{
    let_next_launch_begin();
    const int tid = threadIdx.x;
    const int g = blockIdx.x;
    __shared__ __align__(128) double share[2][1][8][8];
    __shared__ __align__(128) double slice[32][1][8][8];

    {
        const int s = tid/4;
        const int k = 32*g + s;
        const int it = tid%4/2;
        const int jt = tid%2;
        double mine[4][4][1][1][1][1] = {};
        for (int ko = 0; ko < (ceil_div(K, 32) - g + 7)/8; ++ko) {
            double a[4][1][1];
            double b[4][1][1];
            #pragma unroll
            for (int i = 0; i < 4; ++i) {
                a[i][0][0] = k + 256*ko < K ? A[(long long)(k + 256*ko)*lda + 2*i + it] : 0.0;
            }
            #pragma unroll
            for (int j = 0; j < 4; ++j) {
                b[j][0][0] = k + 256*ko < K ? B[(long long)(k + 256*ko)*ldb + 2*j + jt] : 0.0;
            }
            #pragma unroll
            for (int i = 0; i < 4; ++i) {
                #pragma unroll
                for (int j = 0; j < 4; ++j) {
                    mine[i][i%2 == 1 ? -j + 3 : j][0][0][0][0] += a[i][0][0]*b[i%2 == 1 ? -j + 3 : j][0][0];
                }
            }
        }
        #pragma unroll
        for (int j = 0; j < 4; ++j) {
            #pragma unroll
            for (int i = 0; i < 4; ++i) slice[s][0][2*i + it][2*j + jt] = mine[i][j][0][0][0][0];
        }
    }
    __syncthreads();
    {
        const int q = tid/64;
        const int t = tid%64;
        double some = 0.0;
        for (int s = 0; s < 16; ++s) some += (&slice[2*s + q][0][0][0])[t];
        (&share[q][0][0][0])[t] = some;
    }
    __syncthreads();
    if (tid < 64) {
        double whole = 0.0;
        for (int q = 0; q < 2; ++q) whole += (&share[q][0][0][0])[tid];
        part[64*g + tid] = whole;
    }
}

// Grid: 8 blocks of 64 threads; 512 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(64)
tsmttsm_f64_tn_m8_n8_2(double alpha, double beta, bool beta0, double* __restrict__ C, int ldc,
    const double* part)
{
    wait_for_launch_before();
    const int tid = threadIdx.x;
    const int i = blockIdx.x;
    __shared__ __align__(128) double sub[8][1][8];

    {
        const int t = tid/8;
        const int j = tid%8;
        double sum = 0.0;
        sum += part[64*t + 8*i + j];
        sub[t][0][j] = sum;
    }
    __syncthreads();
    if (tid < 8) {
        double acc = 0.0;
        #pragma unroll
        for (int t = 0; t < 8; ++t) acc += sub[t][0][tid];
        if (beta0) C[(long long)i*ldc + tid] = alpha*acc;
        else C[(long long)i*ldc + tid] = alpha*acc + beta*C[(long long)i*ldc + tid];
    }
}
