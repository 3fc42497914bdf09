// C = alpha op(A) op(B) + beta C

__device__ __forceinline__ int ceil_div(int a, int b) { return (a + b - 1)/b; }

// Grid: ceil_div(N, 128)*ceil_div(M, 128) blocks of 128 threads; 16384 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(128)
sgemm_warp_tiling_f32_nn_1(int N, int K, float alpha, float beta, bool beta0, const float* __restrict__ A,
    int lda, const float* __restrict__ B, int ldb, float* C, int ldc)
{
    const int tid = threadIdx.x;
    const int block = blockIdx.x;
    const int bx = block%ceil_div(N, 128);
    const int by = block/ceil_div(N, 128);
    const int wi = tid/64;
    const int wj = tid%64/32;
    const int ti = tid%32/4;
    const int tj = tid%4;
    __shared__ __align__(128) float As[16][128];
    __shared__ __align__(128) float Bs[16][128];

    float acc[4][8][4] = {};
    for (int ko = 0; ko < ceil_div(K, 16); ++ko) {
        #pragma unroll
        for (int u = 0; u < 4; ++u) {
            {
                const float4 a =
                    *(const float4*)&A[(long long)(128*by + 32*u + tid/4)*lda + 16*ko + 4*(tid%4)];
                As[4*(tid%4)][32*u + tid/4] = a.x;
                As[4*(tid%4) + 1][32*u + tid/4] = a.y;
                As[4*(tid%4) + 2][32*u + tid/4] = a.z;
                As[4*(tid%4) + 3][32*u + tid/4] = a.w;
            }
        }
        #pragma unroll
        for (int u = 0; u < 4; ++u) {
            *(float4*)&Bs[4*u + tid/32][4*(tid%32)] =
                *(const float4*)&B[(long long)(16*ko + 4*u + tid/32)*ldb + 128*bx + 4*(tid%32)];
        }
        __syncthreads();
        #pragma unroll
        for (int ki = 0; ki < 16; ++ki) {
            __align__(16) float ra[8][1];
            __align__(16) float rb[4][1][4];
            #pragma unroll
            for (int r = 0; r < 2; ++r) *(float4*)&ra[4*r][0] = *(const float4*)&As[ki][64*wi + 8*ti + 4*r];
            #pragma unroll
            for (int vj = 0; vj < 4; ++vj) {
                *(float4*)&rb[vj][0][0] = *(const float4*)&Bs[ki][64*wj + 16*vj + 4*tj];
            }
            #pragma unroll
            for (int vj = 0; vj < 4; ++vj) {
                #pragma unroll
                for (int j = 0; j < 4; ++j) {
                    #pragma unroll
                    for (int i = 0; i < 8; ++i) {
                        acc[vj][j%2 == 1 ? -i + 7 : i][j] += ra[j%2 == 1 ? -i + 7 : i][0]*rb[vj][0][j];
                    }
                }
            }
        }
        __syncthreads();
    }
    {
        const int m = 128*by + 64*wi;
        const int n = 128*bx + 64*wj;
        float* c = &C[(long long)(m + 8*ti)*ldc + n + 4*tj];
        #pragma unroll
        for (int i = 0; i < 8; ++i) {
            if (beta0) {
                #pragma unroll
                for (int vj = 0; vj < 4; ++vj) {
                    *(float4*)&c[(long long)i*ldc + 16*vj] =
                        make_float4(alpha*acc[vj][i][0], alpha*acc[vj][i][1], alpha*acc[vj][i][2],
                            alpha*acc[vj][i][3]);
                }
            } else {
                #pragma unroll
                for (int vj = 0; vj < 4; ++vj) {
                    {
                        const float4 c2 = *(const float4*)&c[(long long)i*ldc + 16*vj];
                        *(float4*)&c[(long long)i*ldc + 16*vj] =
                            make_float4(alpha*acc[vj][i][0] + beta*c2.x, alpha*acc[vj][i][1] + beta*c2.y,
                                alpha*acc[vj][i][2] + beta*c2.z, alpha*acc[vj][i][3] + beta*c2.w);
                    }
                }
            }
        }
    }
}

// Grid: ceil_div(N, 128)*ceil_div(M, 128) blocks of 128 threads; 16384 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(128)
sgemm_warp_tiling_f32_nn_2(int M, int N, int K, float alpha, float beta, bool beta0,
    const float* __restrict__ A, int lda, const float* __restrict__ B, int ldb, float* C, int ldc)
{
    const int tid = threadIdx.x;
    const int block = blockIdx.x;
    const int bx = block%ceil_div(N, 128);
    const int by = block/ceil_div(N, 128);
    const int wi = tid/64;
    const int wj = tid%64/32;
    const int ti = tid%32/4;
    const int tj = tid%4;
    __shared__ __align__(128) float As[16][128];
    __shared__ __align__(128) float Bs[16][128];

    float acc[4][8][4] = {};
    for (int ko = 0; ko < ceil_div(K, 16); ++ko) {
        {
            const int m = 128*by + tid/4;
            const int k = 16*ko + 4*(tid%4);
            #pragma unroll
            for (int u = 0; u < 4; ++u) {
                #pragma unroll
                for (int v = 0; v < 4; ++v) {
                    As[4*(tid%4) + v][32*u + tid/4] = m + 32*u < M && k + v < K
                        ? A[(long long)(m + 32*u)*lda + k + v] : 0.0f;
                }
            }
        }
        {
            const int k = 16*ko + tid/32;
            const int n = 128*bx + 4*(tid%32);
            #pragma unroll
            for (int u = 0; u < 4; ++u) {
                #pragma unroll
                for (int v = 0; v < 4; ++v) {
                    Bs[4*u + tid/32][4*(tid%32) + v] = k + 4*u < K && n + v < N
                        ? B[(long long)(k + 4*u)*ldb + n + v] : 0.0f;
                }
            }
        }
        __syncthreads();
        #pragma unroll
        for (int ki = 0; ki < 16; ++ki) {
            __align__(16) float ra[8][1];
            __align__(16) float rb[4][1][4];
            #pragma unroll
            for (int r = 0; r < 2; ++r) *(float4*)&ra[4*r][0] = *(const float4*)&As[ki][64*wi + 8*ti + 4*r];
            #pragma unroll
            for (int vj = 0; vj < 4; ++vj) {
                *(float4*)&rb[vj][0][0] = *(const float4*)&Bs[ki][64*wj + 16*vj + 4*tj];
            }
            #pragma unroll
            for (int vj = 0; vj < 4; ++vj) {
                #pragma unroll
                for (int j = 0; j < 4; ++j) {
                    #pragma unroll
                    for (int i = 0; i < 8; ++i) {
                        acc[vj][j%2 == 1 ? -i + 7 : i][j] += ra[j%2 == 1 ? -i + 7 : i][0]*rb[vj][0][j];
                    }
                }
            }
        }
        __syncthreads();
    }
    {
        const int m = 128*by + 64*wi;
        const int n = 128*bx + 64*wj;
        float* c = &C[(long long)(m + 8*ti)*ldc + n + 4*tj];
        #pragma unroll
        for (int i = 0; i < 8; ++i) {
            #pragma unroll
            for (int v = 0; v < 4; ++v) {
                #pragma unroll
                for (int vj = 0; vj < 4; ++vj) {
                    if (m + 8*ti + i < M && n + 16*vj + 4*tj + v < N) {
                        if (beta0) c[(long long)i*ldc + 16*vj + v] = alpha*acc[vj][i][v];
                        else {
                            c[(long long)i*ldc + 16*vj + v] =
                                alpha*acc[vj][i][v] + beta*c[(long long)i*ldc + 16*vj + v];
                        }
                    }
                }
            }
        }
    }
}
