// C = alpha op(A) op(B) + beta C

__device__ __forceinline__ int ceil_div(int a, int b) { return (a + b - 1)/b; }

// Grid: ceil_div(N, 256)*ceil_div(M, 128) blocks of 256 threads; 49152 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(256)
sgemm_double_buffering_f32_nn_1(int N, int K, float alpha, float beta, bool beta0,
    const float* __restrict__ A, int lda, const float* __restrict__ B, int ldb, float* C, int ldc)
{
    const int tid = threadIdx.x;
    const int block = blockIdx.x;
    const int bx = block%ceil_div(N, 256);
    const int by = block/ceil_div(N, 256);
    const int wj = tid/32;
    const int ti = tid%32/4;
    const int tj = tid%4;
    __shared__ __align__(128) float As[2][16][128];
    __shared__ __align__(128) float Bs[2][16][256];

    float acc[2][8][8];
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
        #pragma unroll
        for (int j = 0; j < 8; ++j) {
            #pragma unroll
            for (int vi = 0; vi < 2; ++vi) acc[vi][i][j] = 0.0f;
        }
    }
    if (ceil_div(K, 16) > 0) {
        const float* a = &A[(long long)(128*by + tid/4)*lda + 4*(tid%4)];
        #pragma unroll
        for (int u = 0; u < 2; ++u) {
            {
                const float4 a2 = *(const float4*)&a[(long long)(64*u)*lda];
                As[0][4*(tid%4)][64*u + tid/4] = a2.x;
                As[0][4*(tid%4) + 1][64*u + tid/4] = a2.y;
                As[0][4*(tid%4) + 2][64*u + tid/4] = a2.z;
                As[0][4*(tid%4) + 3][64*u + tid/4] = a2.w;
            }
        }
        const float* b = &B[(long long)(tid/64)*ldb + 256*bx + 4*(tid%64)];
        #pragma unroll
        for (int u = 0; u < 4; ++u) {
            *(float4*)&Bs[0][4*u + tid/64][4*(tid%64)] = *(const float4*)&b[(long long)(4*u)*ldb];
        }
    }
    __syncthreads();
    int slot = 0;
    for (int ko = 0; ko < ceil_div(K, 16); ++ko) {
        if (ko + 1 < ceil_div(K, 16)) {
            #pragma unroll
            for (int u = 0; u < 2; ++u) {
                {
                    const float4 a =
                        *(const float4*)&A[(long long)(128*by + 64*u + tid/4)*lda + 16*ko + 4*(tid%4) + 16];
                    As[1 - slot][4*(tid%4)][64*u + tid/4] = a.x;
                    As[1 - slot][4*(tid%4) + 1][64*u + tid/4] = a.y;
                    As[1 - slot][4*(tid%4) + 2][64*u + tid/4] = a.z;
                    As[1 - slot][4*(tid%4) + 3][64*u + tid/4] = a.w;
                }
            }
            #pragma unroll
            for (int u = 0; u < 4; ++u) {
                *(float4*)&Bs[1 - slot][4*u + tid/64][4*(tid%64)] =
                    *(const float4*)&B[(long long)(16*ko + 4*u + tid/64 + 16)*ldb + 256*bx + 4*(tid%64)];
            }
        }
        #pragma unroll
        for (int ki = 0; ki < 16; ++ki) {
            __align__(16) float ra[2][8][1];
            __align__(16) float rb[1][8];
            #pragma unroll
            for (int r = 0; r < 2; ++r) {
                #pragma unroll
                for (int vi = 0; vi < 2; ++vi) {
                    *(float4*)&ra[vi][4*r][0] = *(const float4*)&As[slot][ki][64*vi + 8*ti + 4*r];
                }
            }
            #pragma unroll
            for (int c = 0; c < 2; ++c) {
                *(float4*)&rb[0][4*c] = *(const float4*)&Bs[slot][ki][32*wj + 8*tj + 4*c];
            }
            #pragma unroll
            for (int vi = 0; vi < 2; ++vi) {
                #pragma unroll
                for (int i = 0; i < 8; ++i) {
                    #pragma unroll
                    for (int j = 0; j < 8; ++j) {
                        acc[vi][i][i%2 == 1 ? -j + 7 : j] += ra[vi][i][0]*rb[0][i%2 == 1 ? -j + 7 : j];
                    }
                }
            }
        }
        __syncthreads();
        slot = 1 - slot;
    }
    {
        const int n = 256*bx + 32*wj;
        const int m = 128*by + 8*ti;
        float* c = &C[(long long)m*ldc + n + 8*tj];
        #pragma unroll
        for (int i = 0; i < 8; ++i) {
            #pragma unroll
            for (int j = 0; j < 2; ++j) {
                if (beta0) {
                    #pragma unroll
                    for (int vi = 0; vi < 2; ++vi) {
                        *(float4*)&c[(long long)(64*vi + i)*ldc + 4*j] =
                            make_float4(alpha*acc[vi][i][4*j], alpha*acc[vi][i][4*j + 1],
                                alpha*acc[vi][i][4*j + 2], alpha*acc[vi][i][4*j + 3]);
                    }
                } else {
                    #pragma unroll
                    for (int vi = 0; vi < 2; ++vi) {
                        {
                            const float4 c2 = *(const float4*)&c[(long long)(64*vi + i)*ldc + 4*j];
                            *(float4*)&c[(long long)(64*vi + i)*ldc + 4*j] =
                                make_float4(alpha*acc[vi][i][4*j] + beta*c2.x,
                                    alpha*acc[vi][i][4*j + 1] + beta*c2.y,
                                        alpha*acc[vi][i][4*j + 2] + beta*c2.z,
                                            alpha*acc[vi][i][4*j + 3] + beta*c2.w);
                        }
                    }
                }
            }
        }
    }
}

// Grid: ceil_div(N, 256)*ceil_div(M, 128) blocks of 256 threads; 49152 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(256)
sgemm_double_buffering_f32_nn_2(int M, int N, int K, float alpha, float beta, bool beta0,
    const float* __restrict__ A, int lda, const float* __restrict__ B, int ldb, float* C, int ldc)
{
    const int tid = threadIdx.x;
    const int block = blockIdx.x;
    const int bx = block%ceil_div(N, 256);
    const int by = block/ceil_div(N, 256);
    const int wj = tid/32;
    const int ti = tid%32/4;
    const int tj = tid%4;
    __shared__ __align__(128) float As[2][16][128];
    __shared__ __align__(128) float Bs[2][16][256];

    float acc[2][8][8];
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
        #pragma unroll
        for (int j = 0; j < 8; ++j) {
            #pragma unroll
            for (int vi = 0; vi < 2; ++vi) acc[vi][i][j] = 0.0f;
        }
    }
    if (ceil_div(K, 16) > 0) {
        {
            const int m = 128*by + tid/4;
            #pragma unroll
            for (int u = 0; u < 2; ++u) {
                #pragma unroll
                for (int v = 0; v < 4; ++v) {
                    const int k = 4*(tid%4) + v;
                    As[0][4*(tid%4) + v][64*u + tid/4] = m + 64*u < M && k < K
                        ? A[(long long)(m + 64*u)*lda + k] : 0.0f;
                }
            }
        }
        {
            const int n = 256*bx + 4*(tid%64);
            #pragma unroll
            for (int u = 0; u < 4; ++u) {
                const int k = 4*u + tid/64;
                const float* b = &B[(long long)k*ldb + n];
                #pragma unroll
                for (int v = 0; v < 4; ++v) {
                    Bs[0][4*u + tid/64][4*(tid%64) + v] = k < K && n + v < N ? b[v] : 0.0f;
                }
            }
        }
    }
    __syncthreads();
    int slot = 0;
    for (int ko = 0; ko < ceil_div(K, 16); ++ko) {
        if (ko + 1 < ceil_div(K, 16)) {
            {
                const int m = 128*by + tid/4;
                const int k = 16*ko + 4*(tid%4);
                #pragma unroll
                for (int u = 0; u < 2; ++u) {
                    #pragma unroll
                    for (int v = 0; v < 4; ++v) {
                        As[1 - slot][4*(tid%4) + v][64*u + tid/4] = m + 64*u < M && k + v + 16 < K
                            ? A[(long long)(m + 64*u)*lda + k + v + 16] : 0.0f;
                    }
                }
            }
            {
                const int k = 16*ko + tid/64;
                const int n = 256*bx + 4*(tid%64);
                #pragma unroll
                for (int u = 0; u < 4; ++u) {
                    #pragma unroll
                    for (int v = 0; v < 4; ++v) {
                        Bs[1 - slot][4*u + tid/64][4*(tid%64) + v] = k + 4*u + 16 < K && n + v < N
                            ? B[(long long)(k + 4*u + 16)*ldb + n + v] : 0.0f;
                    }
                }
            }
        }
        #pragma unroll
        for (int ki = 0; ki < 16; ++ki) {
            __align__(16) float ra[2][8][1];
            __align__(16) float rb[1][8];
            #pragma unroll
            for (int r = 0; r < 2; ++r) {
                #pragma unroll
                for (int vi = 0; vi < 2; ++vi) {
                    *(float4*)&ra[vi][4*r][0] = *(const float4*)&As[slot][ki][64*vi + 8*ti + 4*r];
                }
            }
            #pragma unroll
            for (int c = 0; c < 2; ++c) {
                *(float4*)&rb[0][4*c] = *(const float4*)&Bs[slot][ki][32*wj + 8*tj + 4*c];
            }
            #pragma unroll
            for (int vi = 0; vi < 2; ++vi) {
                #pragma unroll
                for (int i = 0; i < 8; ++i) {
                    #pragma unroll
                    for (int j = 0; j < 8; ++j) {
                        acc[vi][i][i%2 == 1 ? -j + 7 : j] += ra[vi][i][0]*rb[0][i%2 == 1 ? -j + 7 : j];
                    }
                }
            }
        }
        __syncthreads();
        slot = 1 - slot;
    }
    {
        const int n = 256*bx + 32*wj;
        const int m = 128*by + 8*ti;
        float* c = &C[(long long)m*ldc + n + 8*tj];
        #pragma unroll
        for (int i = 0; i < 8; ++i) {
            #pragma unroll
            for (int j = 0; j < 2; ++j) {
                #pragma unroll
                for (int v = 0; v < 4; ++v) {
                    #pragma unroll
                    for (int vi = 0; vi < 2; ++vi) {
                        if (m + 64*vi + i < M && n + 8*tj + 4*j + v < N) {
                            if (beta0) c[(long long)(64*vi + i)*ldc + 4*j + v] = alpha*acc[vi][i][4*j + v];
                            else {
                                c[(long long)(64*vi + i)*ldc + 4*j + v] =
                                    alpha*acc[vi][i][4*j + v] + beta*c[(long long)(64*vi + i)*ldc + 4*j + v];
                            }
                        }
                    }
                }
            }
        }
    }
}
