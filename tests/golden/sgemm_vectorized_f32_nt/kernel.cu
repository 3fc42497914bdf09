// C = alpha op(A) op(B) + beta C

__device__ __forceinline__ int ceil_div(int a, int b) { return (a + b - 1)/b; }

// Grid: ceil_div(N, 128)*ceil_div(M, 128) blocks of 256 threads; 8192 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(256, 2)
sgemm_vectorized_f32_nt_1(int N, int K, float alpha, float beta, bool beta0, const float* __restrict__ A,
    int lda, const float* __restrict__ B, int ldb, float* C, int ldc)
{
    const int tid = threadIdx.x;
    const int block = blockIdx.x;
    const int bx = block%ceil_div(N, 128);
    const int by = block/ceil_div(N, 128);
    const int ty = tid/16;
    const int tx = tid%16;
    __shared__ __align__(128) float As[8][128];
    __shared__ __align__(128) float Bs[8][128];

    float acc[8][8] = {};
    for (int ko = 0; ko < ceil_div(K, 8); ++ko) {
        {
            const float4 a = *(const float4*)&A[(long long)(128*by + tid/2)*lda + 8*ko + 4*(tid%2)];
            As[4*(tid%2)][tid/2] = a.x;
            As[4*(tid%2) + 1][tid/2] = a.y;
            As[4*(tid%2) + 2][tid/2] = a.z;
            As[4*(tid%2) + 3][tid/2] = a.w;
        }
        {
            const float4 b = *(const float4*)&B[(long long)(128*bx + tid/2)*ldb + 8*ko + 4*(tid%2)];
            Bs[4*(tid%2)][tid/2] = b.x;
            Bs[4*(tid%2) + 1][tid/2] = b.y;
            Bs[4*(tid%2) + 2][tid/2] = b.z;
            Bs[4*(tid%2) + 3][tid/2] = b.w;
        }
        __syncthreads();
        #pragma unroll
        for (int ki = 0; ki < 8; ++ki) {
            __align__(16) float ra[8][1];
            __align__(16) float rb[8][1];
            #pragma unroll
            for (int r = 0; r < 2; ++r) *(float4*)&ra[4*r][0] = *(const float4*)&As[ki][8*ty + 4*r];
            #pragma unroll
            for (int r = 0; r < 2; ++r) *(float4*)&rb[4*r][0] = *(const float4*)&Bs[ki][8*tx + 4*r];
            #pragma unroll
            for (int i = 0; i < 8; ++i) {
                #pragma unroll
                for (int j = 0; j < 8; ++j) {
                    acc[i][i%2 == 1 ? -j + 7 : j] += ra[i][0]*rb[i%2 == 1 ? -j + 7 : j][0];
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
            for (int j = 0; j < 2; ++j) {
                if (beta0) {
                    *(float4*)&c[(long long)i*ldc + 4*j] =
                        make_float4(alpha*acc[i][4*j], alpha*acc[i][4*j + 1], alpha*acc[i][4*j + 2],
                            alpha*acc[i][4*j + 3]);
                } else {
                    {
                        const float4 c2 = *(const float4*)&c[(long long)i*ldc + 4*j];
                        *(float4*)&c[(long long)i*ldc + 4*j] =
                            make_float4(alpha*acc[i][4*j] + beta*c2.x, alpha*acc[i][4*j + 1] + beta*c2.y,
                                alpha*acc[i][4*j + 2] + beta*c2.z, alpha*acc[i][4*j + 3] + beta*c2.w);
                    }
                }
            }
        }
    }
}

// Grid: ceil_div(N, 128)*ceil_div(M, 128) blocks of 256 threads; 8192 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(256, 2)
sgemm_vectorized_f32_nt_2(int M, int N, int K, float alpha, float beta, bool beta0,
    const float* __restrict__ A, int lda, const float* __restrict__ B, int ldb, float* C, int ldc)
{
    const int tid = threadIdx.x;
    const int block = blockIdx.x;
    const int bx = block%ceil_div(N, 128);
    const int by = block/ceil_div(N, 128);
    const int ty = tid/16;
    const int tx = tid%16;
    __shared__ __align__(128) float As[8][128];
    __shared__ __align__(128) float Bs[8][128];

    float acc[8][8] = {};
    for (int ko = 0; ko < ceil_div(K, 8); ++ko) {
        {
            const int m = 128*by + tid/2;
            const int k = 8*ko + 4*(tid%2);
            #pragma unroll
            for (int v = 0; v < 4; ++v) {
                As[4*(tid%2) + v][tid/2] = m < M && k + v < K ? A[(long long)m*lda + k + v] : 0.0f;
            }
        }
        {
            const int n = 128*bx + tid/2;
            const int k = 8*ko + 4*(tid%2);
            #pragma unroll
            for (int v = 0; v < 4; ++v) {
                Bs[4*(tid%2) + v][tid/2] = n < N && k + v < K ? B[(long long)n*ldb + k + v] : 0.0f;
            }
        }
        __syncthreads();
        #pragma unroll
        for (int ki = 0; ki < 8; ++ki) {
            __align__(16) float ra[8][1];
            __align__(16) float rb[8][1];
            #pragma unroll
            for (int r = 0; r < 2; ++r) *(float4*)&ra[4*r][0] = *(const float4*)&As[ki][8*ty + 4*r];
            #pragma unroll
            for (int r = 0; r < 2; ++r) *(float4*)&rb[4*r][0] = *(const float4*)&Bs[ki][8*tx + 4*r];
            #pragma unroll
            for (int i = 0; i < 8; ++i) {
                #pragma unroll
                for (int j = 0; j < 8; ++j) {
                    acc[i][i%2 == 1 ? -j + 7 : j] += ra[i][0]*rb[i%2 == 1 ? -j + 7 : j][0];
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
            for (int j = 0; j < 2; ++j) {
                #pragma unroll
                for (int v = 0; v < 4; ++v) {
                    if (m + i < M && n + 4*j + v < N) {
                        if (beta0) c[(long long)i*ldc + 4*j + v] = alpha*acc[i][4*j + v];
                        else {
                            c[(long long)i*ldc + 4*j + v] =
                                alpha*acc[i][4*j + v] + beta*c[(long long)i*ldc + 4*j + v];
                        }
                    }
                }
            }
        }
    }
}
