// C = alpha op(A) op(B) + beta C

__device__ __forceinline__ int ceil_div(int a, int b) { return (a + b - 1)/b; }

// Grid: ceil_div(N, 128)*ceil_div(M, 128) blocks of 256 threads; 16640 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(256, 2)
sgemm_padded_tile_f32_nn_1(int N, int K, float alpha, float beta, bool beta0, const float* __restrict__ A,
    int lda, const float* __restrict__ B, int ldb, float* C, int ldc)
{
    const int tid = threadIdx.x;
    const int block = blockIdx.x;
    const int bx = block%ceil_div(N, 128);
    const int by = block/ceil_div(N, 128);
    const int wi = tid/64;
    const int wj = tid%64/32;
    const int ti = tid%32/8;
    const int tj = tid%8;
    __shared__ __align__(128) float As[16][132];
    __shared__ __align__(128) float Bs[16][128];

    float acc[2][2][4][4] = {};
    for (int ko = 0; ko < ceil_div(K, 16); ++ko) {
        #pragma unroll
        for (int u = 0; u < 2; ++u) {
            {
                const float4 a =
                    *(const float4*)&A[(long long)(128*by + 64*u + tid/4)*lda + 16*ko + 4*(tid%4)];
                As[4*(tid%4)][64*u + tid/4] = a.x;
                As[4*(tid%4) + 1][64*u + tid/4] = a.y;
                As[4*(tid%4) + 2][64*u + tid/4] = a.z;
                As[4*(tid%4) + 3][64*u + tid/4] = a.w;
            }
        }
        #pragma unroll
        for (int u = 0; u < 2; ++u) {
            *(float4*)&Bs[8*u + tid/32][4*(tid%32)] =
                *(const float4*)&B[(long long)(16*ko + 8*u + tid/32)*ldb + 128*bx + 4*(tid%32)];
        }
        __syncthreads();
        #pragma unroll
        for (int ki = 0; ki < 16; ++ki) {
            __align__(16) float ra[2][4][1];
            __align__(16) float rb[2][1][4];
            #pragma unroll
            for (int vi = 0; vi < 2; ++vi) {
                *(float4*)&ra[vi][0][0] = *(const float4*)&As[ki][32*wi + 16*vi + 4*ti];
            }
            #pragma unroll
            for (int vj = 0; vj < 2; ++vj) {
                *(float4*)&rb[vj][0][0] = *(const float4*)&Bs[ki][64*wj + 32*vj + 4*tj];
            }
            #pragma unroll
            for (int vi = 0; vi < 2; ++vi) {
                #pragma unroll
                for (int i = 0; i < 4; ++i) {
                    #pragma unroll
                    for (int vj = 0; vj < 2; ++vj) {
                        #pragma unroll
                        for (int j = 0; j < 4; ++j) {
                            acc[vi][i%2 == 1 ? -vj + 1 : vj][i][i%2 == 1 ? -j + 3 : j] +=
                                ra[vi][i][0]*rb[i%2 == 1 ? -vj + 1 : vj][0][i%2 == 1 ? -j + 3 : j];
                        }
                    }
                }
            }
        }
        __syncthreads();
    }
    {
        const int m = 128*by + 32*wi;
        const int n = 128*bx + 64*wj;
        float* c = &C[(long long)(m + 4*ti)*ldc + n + 4*tj];
        #pragma unroll
        for (int i = 0; i < 4; ++i) {
            if (beta0) {
                #pragma unroll
                for (int vj = 0; vj < 2; ++vj) {
                    #pragma unroll
                    for (int vi = 0; vi < 2; ++vi) {
                        *(float4*)&c[(long long)(16*vi + i)*ldc + 32*vj] =
                            make_float4(alpha*acc[vi][vj][i][0], alpha*acc[vi][vj][i][1],
                                alpha*acc[vi][vj][i][2], alpha*acc[vi][vj][i][3]);
                    }
                }
            } else {
                #pragma unroll
                for (int vj = 0; vj < 2; ++vj) {
                    #pragma unroll
                    for (int vi = 0; vi < 2; ++vi) {
                        {
                            const float4 c2 = *(const float4*)&c[(long long)(16*vi + i)*ldc + 32*vj];
                            *(float4*)&c[(long long)(16*vi + i)*ldc + 32*vj] =
                                make_float4(alpha*acc[vi][vj][i][0] + beta*c2.x,
                                    alpha*acc[vi][vj][i][1] + beta*c2.y, alpha*acc[vi][vj][i][2] + beta*c2.z,
                                        alpha*acc[vi][vj][i][3] + beta*c2.w);
                        }
                    }
                }
            }
        }
    }
}

// Grid: ceil_div(N, 128)*ceil_div(M, 128) blocks of 256 threads; 16640 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(256, 2)
sgemm_padded_tile_f32_nn_2(int M, int N, int K, float alpha, float beta, bool beta0,
    const float* __restrict__ A, int lda, const float* __restrict__ B, int ldb, float* C, int ldc)
{
    const int tid = threadIdx.x;
    const int block = blockIdx.x;
    const int bx = block%ceil_div(N, 128);
    const int by = block/ceil_div(N, 128);
    const int wi = tid/64;
    const int wj = tid%64/32;
    const int ti = tid%32/8;
    const int tj = tid%8;
    __shared__ __align__(128) float As[16][132];
    __shared__ __align__(128) float Bs[16][128];

    float acc[2][2][4][4] = {};
    for (int ko = 0; ko < ceil_div(K, 16); ++ko) {
        {
            const int m = 128*by + tid/4;
            const int k = 16*ko + 4*(tid%4);
            #pragma unroll
            for (int u = 0; u < 2; ++u) {
                #pragma unroll
                for (int v = 0; v < 4; ++v) {
                    As[4*(tid%4) + v][64*u + tid/4] = m + 64*u < M && k + v < K
                        ? A[(long long)(m + 64*u)*lda + k + v] : 0.0f;
                }
            }
        }
        {
            const int k = 16*ko + tid/32;
            const int n = 128*bx + 4*(tid%32);
            #pragma unroll
            for (int u = 0; u < 2; ++u) {
                #pragma unroll
                for (int v = 0; v < 4; ++v) {
                    Bs[8*u + tid/32][4*(tid%32) + v] = k + 8*u < K && n + v < N
                        ? B[(long long)(k + 8*u)*ldb + n + v] : 0.0f;
                }
            }
        }
        __syncthreads();
        #pragma unroll
        for (int ki = 0; ki < 16; ++ki) {
            __align__(16) float ra[2][4][1];
            __align__(16) float rb[2][1][4];
            #pragma unroll
            for (int vi = 0; vi < 2; ++vi) {
                *(float4*)&ra[vi][0][0] = *(const float4*)&As[ki][32*wi + 16*vi + 4*ti];
            }
            #pragma unroll
            for (int vj = 0; vj < 2; ++vj) {
                *(float4*)&rb[vj][0][0] = *(const float4*)&Bs[ki][64*wj + 32*vj + 4*tj];
            }
            #pragma unroll
            for (int vi = 0; vi < 2; ++vi) {
                #pragma unroll
                for (int i = 0; i < 4; ++i) {
                    #pragma unroll
                    for (int vj = 0; vj < 2; ++vj) {
                        #pragma unroll
                        for (int j = 0; j < 4; ++j) {
                            acc[vi][i%2 == 1 ? -vj + 1 : vj][i][i%2 == 1 ? -j + 3 : j] +=
                                ra[vi][i][0]*rb[i%2 == 1 ? -vj + 1 : vj][0][i%2 == 1 ? -j + 3 : j];
                        }
                    }
                }
            }
        }
        __syncthreads();
    }
    {
        const int m = 128*by + 32*wi;
        const int n = 128*bx + 64*wj;
        float* c = &C[(long long)(m + 4*ti)*ldc + n + 4*tj];
        #pragma unroll
        for (int i = 0; i < 4; ++i) {
            #pragma unroll
            for (int v = 0; v < 4; ++v) {
                #pragma unroll
                for (int vj = 0; vj < 2; ++vj) {
                    #pragma unroll
                    for (int vi = 0; vi < 2; ++vi) {
                        if (m + 16*vi + 4*ti + i < M && n + 32*vj + 4*tj + v < N) {
                            if (beta0) c[(long long)(16*vi + i)*ldc + 32*vj + v] = alpha*acc[vi][vj][i][v];
                            else {
                                c[(long long)(16*vi + i)*ldc + 32*vj + v] =
                                    alpha*acc[vi][vj][i][v] + beta*c[(long long)(16*vi + i)*ldc + 32*vj + v];
                            }
                        }
                    }
                }
            }
        }
    }
}
