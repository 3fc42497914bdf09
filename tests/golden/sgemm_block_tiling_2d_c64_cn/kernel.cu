// C = alpha op(A) op(B) + beta C

__device__ __forceinline__ int ceil_div(int a, int b) { return (a + b - 1)/b; }

// a b + c in four fused multiply-adds
__device__ __forceinline__ float2 cfma(float2 a, float2 b, float2 c) {
    return make_float2(fmaf(-a.y, b.y, fmaf(a.x, b.x, c.x)), fmaf(a.y, b.x, fmaf(a.x, b.y, c.y)));
}

__device__ __forceinline__ float2 conj(float2 a) { return make_float2(a.x, -a.y); }

__device__ __forceinline__ float2 cmul(float2 a, float2 b) {
    return make_float2(a.x*b.x - a.y*b.y, a.x*b.y + a.y*b.x);
}

// Grid: ceil_div(N, 128)*ceil_div(M, 128) blocks of 256 threads; 16384 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(256)
sgemm_block_tiling_2d_c64_cn_1(int N, int K, float2 alpha, float2 beta, bool beta0,
    const float2* __restrict__ A, int lda, const float2* __restrict__ B, int ldb, float2* C, int ldc)
{
    const int tid = threadIdx.x;
    const int block = blockIdx.x;
    const int bx = block%ceil_div(N, 128);
    const int by = block/ceil_div(N, 128);
    const int ty = tid/16;
    const int tx = tid%16;
    __shared__ __align__(128) float2 As[8][128];
    __shared__ __align__(128) float2 Bs[8][128];

    float2 acc[8][8] = {};
    for (int ko = 0; ko < ceil_div(K, 8); ++ko) {
        #pragma unroll
        for (int u = 0; u < 4; ++u) {
            As[2*u + tid/128][tid%128] = A[(long long)(8*ko + 2*u + tid/128)*lda + 128*by + tid%128];
        }
        #pragma unroll
        for (int u = 0; u < 4; ++u) {
            Bs[2*u + tid/128][tid%128] = B[(long long)(8*ko + 2*u + tid/128)*ldb + 128*bx + tid%128];
        }
        __syncthreads();
        #pragma unroll
        for (int ki = 0; ki < 8; ++ki) {
            float2 ra[1][8];
            float2 rb[1][8];
            #pragma unroll
            for (int c = 0; c < 8; ++c) ra[0][c] = As[ki][8*ty + c];
            #pragma unroll
            for (int c = 0; c < 8; ++c) rb[0][c] = Bs[ki][8*tx + c];
            #pragma unroll
            for (int i = 0; i < 8; ++i) {
                #pragma unroll
                for (int j = 0; j < 8; ++j) {
                    acc[i][i%2 == 1 ? -j + 7 : j] =
                        cfma(conj(ra[0][i]), rb[0][i%2 == 1 ? -j + 7 : j], acc[i][i%2 == 1 ? -j + 7 : j]);
                }
            }
        }
        __syncthreads();
    }
    {
        const int m = 128*by + 8*ty;
        const int n = 128*bx + 8*tx;
        float2* c = &C[(long long)m*ldc + n];
        #pragma unroll
        for (int i = 0; i < 8; ++i) {
            #pragma unroll
            for (int j = 0; j < 8; ++j) {
                if (beta0) c[(long long)i*ldc + j] = cmul(alpha, acc[i][j]);
                else c[(long long)i*ldc + j] = cfma(alpha, acc[i][j], cmul(beta, c[(long long)i*ldc + j]));
            }
        }
    }
}

// Grid: ceil_div(N, 128)*ceil_div(M, 128) blocks of 256 threads; 16384 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(256)
sgemm_block_tiling_2d_c64_cn_2(int M, int N, int K, float2 alpha, float2 beta, bool beta0,
    const float2* __restrict__ A, int lda, const float2* __restrict__ B, int ldb, float2* C, int ldc)
{
    const int tid = threadIdx.x;
    const int block = blockIdx.x;
    const int bx = block%ceil_div(N, 128);
    const int by = block/ceil_div(N, 128);
    const int ty = tid/16;
    const int tx = tid%16;
    __shared__ __align__(128) float2 As[8][128];
    __shared__ __align__(128) float2 Bs[8][128];

    float2 acc[8][8] = {};
    for (int ko = 0; ko < ceil_div(K, 8); ++ko) {
        {
            const int k = 8*ko + tid/128;
            const int m = 128*by + tid%128;
            #pragma unroll
            for (int u = 0; u < 4; ++u) {
                As[2*u + tid/128][tid%128] = k + 2*u < K && m < M ? A[(long long)(k + 2*u)*lda + m]
                    : make_float2(0.0f, 0.0f);
            }
        }
        {
            const int k = 8*ko + tid/128;
            const int n = 128*bx + tid%128;
            #pragma unroll
            for (int u = 0; u < 4; ++u) {
                Bs[2*u + tid/128][tid%128] = k + 2*u < K && n < N ? B[(long long)(k + 2*u)*ldb + n]
                    : make_float2(0.0f, 0.0f);
            }
        }
        __syncthreads();
        #pragma unroll
        for (int ki = 0; ki < 8; ++ki) {
            float2 ra[1][8];
            float2 rb[1][8];
            #pragma unroll
            for (int c = 0; c < 8; ++c) ra[0][c] = As[ki][8*ty + c];
            #pragma unroll
            for (int c = 0; c < 8; ++c) rb[0][c] = Bs[ki][8*tx + c];
            #pragma unroll
            for (int i = 0; i < 8; ++i) {
                #pragma unroll
                for (int j = 0; j < 8; ++j) {
                    acc[i][i%2 == 1 ? -j + 7 : j] =
                        cfma(conj(ra[0][i]), rb[0][i%2 == 1 ? -j + 7 : j], acc[i][i%2 == 1 ? -j + 7 : j]);
                }
            }
        }
        __syncthreads();
    }
    {
        const int m = 128*by + 8*ty;
        const int n = 128*bx + 8*tx;
        float2* c = &C[(long long)m*ldc + n];
        #pragma unroll
        for (int i = 0; i < 8; ++i) {
            #pragma unroll
            for (int j = 0; j < 8; ++j) {
                if (m + i < M && n + j < N) {
                    if (beta0) c[(long long)i*ldc + j] = cmul(alpha, acc[i][j]);
                    else {
                        c[(long long)i*ldc + j] = cfma(alpha, acc[i][j], cmul(beta, c[(long long)i*ldc + j]));
                    }
                }
            }
        }
    }
}
