// C = alpha op(A) op(B) + beta C

__device__ __forceinline__ int ceil_div(int a, int b) { return (a + b - 1)/b; }

// Grid: ceil_div(N, 128)*ceil_div(M, 128) blocks of 256 threads; 8192 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(256, 2)
sgemm_block_tiling_2d_f32_nn_1(int N, int K, float alpha, float beta, bool beta0, const float* __restrict__ A,
    int lda, const float* __restrict__ B, int ldb, float* C, int ldc)
{
    const int tid = threadIdx.x;
    const int block = blockIdx.x;
    const int bx = block%ceil_div(N, 128);
    const int by = block/ceil_div(N, 128);
    const int ty = tid/16;
    const int tx = tid%16;
    __shared__ __align__(128) float As[128][8];
    __shared__ __align__(128) float Bs[8][128];

    float acc[8][8] = {};
    for (int ko = 0; ko < ceil_div(K, 8); ++ko) {
        #pragma unroll
        for (int u = 0; u < 4; ++u) {
            As[32*u + tid/8][tid%8] = A[(long long)(128*by + 32*u + tid/8)*lda + 8*ko + tid%8];
        }
        #pragma unroll
        for (int u = 0; u < 4; ++u) {
            Bs[2*u + tid/128][tid%128] = B[(long long)(8*ko + 2*u + tid/128)*ldb + 128*bx + tid%128];
        }
        __syncthreads();
        #pragma unroll
        for (int ki = 0; ki < 8; ++ki) {
            float ra[8][1];
            float rb[1][8];
            #pragma unroll
            for (int r = 0; r < 8; ++r) ra[r][0] = As[8*ty + r][ki];
            #pragma unroll
            for (int c = 0; c < 8; ++c) rb[0][c] = Bs[ki][8*tx + c];
            #pragma unroll
            for (int i = 0; i < 8; ++i) {
                #pragma unroll
                for (int j = 0; j < 8; ++j) {
                    acc[i][i%2 == 1 ? -j + 7 : j] += ra[i][0]*rb[0][i%2 == 1 ? -j + 7 : j];
                }
            }
        }
        __syncthreads();
    }
    {
        const int m = 128*by + 8*ty;
        const int n = 128*bx + 8*tx;
        float* c = &C[(long long)m*ldc + n];
        #pragma unroll
        for (int i = 0; i < 8; ++i) {
            #pragma unroll
            for (int j = 0; j < 8; ++j) {
                if (beta0) c[(long long)i*ldc + j] = alpha*acc[i][j];
                else c[(long long)i*ldc + j] = alpha*acc[i][j] + beta*c[(long long)i*ldc + j];
            }
        }
    }
}

// Grid: ceil_div(N, 128)*ceil_div(M, 128) blocks of 256 threads; 8192 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(256, 2)
sgemm_block_tiling_2d_f32_nn_2(int M, int N, int K, float alpha, float beta, bool beta0,
    const float* __restrict__ A, int lda, const float* __restrict__ B, int ldb, float* C, int ldc)
{
    const int tid = threadIdx.x;
    const int block = blockIdx.x;
    const int bx = block%ceil_div(N, 128);
    const int by = block/ceil_div(N, 128);
    const int ty = tid/16;
    const int tx = tid%16;
    __shared__ __align__(128) float As[128][8];
    __shared__ __align__(128) float Bs[8][128];

    float acc[8][8] = {};
    for (int ko = 0; ko < ceil_div(K, 8); ++ko) {
        {
            const int m = 128*by + tid/8;
            const int k = 8*ko + tid%8;
            #pragma unroll
            for (int u = 0; u < 4; ++u) {
                As[32*u + tid/8][tid%8] = m + 32*u < M && k < K ? A[(long long)(m + 32*u)*lda + k] : 0.0f;
            }
        }
        {
            const int k = 8*ko + tid/128;
            const int n = 128*bx + tid%128;
            #pragma unroll
            for (int u = 0; u < 4; ++u) {
                Bs[2*u + tid/128][tid%128] = k + 2*u < K && n < N ? B[(long long)(k + 2*u)*ldb + n] : 0.0f;
            }
        }
        __syncthreads();
        #pragma unroll
        for (int ki = 0; ki < 8; ++ki) {
            float ra[8][1];
            float rb[1][8];
            #pragma unroll
            for (int r = 0; r < 8; ++r) ra[r][0] = As[8*ty + r][ki];
            #pragma unroll
            for (int c = 0; c < 8; ++c) rb[0][c] = Bs[ki][8*tx + c];
            #pragma unroll
            for (int i = 0; i < 8; ++i) {
                #pragma unroll
                for (int j = 0; j < 8; ++j) {
                    acc[i][i%2 == 1 ? -j + 7 : j] += ra[i][0]*rb[0][i%2 == 1 ? -j + 7 : j];
                }
            }
        }
        __syncthreads();
    }
    {
        const int m = 128*by + 8*ty;
        const int n = 128*bx + 8*tx;
        float* c = &C[(long long)m*ldc + n];
        #pragma unroll
        for (int i = 0; i < 8; ++i) {
            #pragma unroll
            for (int j = 0; j < 8; ++j) {
                if (m + i < M && n + j < N) {
                    if (beta0) c[(long long)i*ldc + j] = alpha*acc[i][j];
                    else c[(long long)i*ldc + j] = alpha*acc[i][j] + beta*c[(long long)i*ldc + j];
                }
            }
        }
    }
}
