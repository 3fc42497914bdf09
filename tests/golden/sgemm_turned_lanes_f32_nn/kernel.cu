// C = alpha op(A) op(B) + beta C

__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

// Copies 16 bytes to shared memory.
template <class T> __device__ __forceinline__ void cp_async16(T* dst, const T* src) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                 :: "r"(shared_address(dst)), "l"(src) : "memory");
}

__device__ __forceinline__ int ceil_div(int a, int b) { return (a + b - 1)/b; }
__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Where element (s, r, c) of As is kept.
__device__ __forceinline__ int As_at(int s, int r, int c) { return 2108*s + 132*c + r; }

// Waits for all but the last N groups of this thread's cp.async copies.
template <int N> __device__ __forceinline__ void cp_async_wait() {
    asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory");
}

// Grid: ceil_div(N, 256)*ceil_div(M, 128) blocks of 256 threads; 49664 bytes of dynamic shared memory.
extern "C" __global__ void __launch_bounds__(256)
sgemm_turned_lanes_f32_nn_1(int N, int K, float alpha, float beta, bool beta0, const float* A, int lda,
    const float* __restrict__ B, int ldb, float* C, int ldc)
{
    const int tid = threadIdx.x;
    const int block = blockIdx.x;
    const int bx = block%ceil_div(N, 256);
    const int by = block/ceil_div(N, 256);
    const int wi = tid/128;
    const int wj = tid%128/32;
    const int tj = tid%32/4;
    const int ti = tid%4;
    extern __shared__ __align__(1024) unsigned char smem[];
    float* const As = (float*)(smem + 0);
    auto& Bs = *(float (*)[2][16][256])(smem + 16896);

    float acc[4][2][4][4] = {};
    __align__(16) float As_next[2][4];
    if (ceil_div(K, 16) > 0) {
        #pragma unroll
        for (int u = 0; u < 4; ++u) {
            cp_async16(&Bs[0][4*u + tid/64][4*(tid%64)],
                &B[(long long)(4*u + tid/64)*ldb + 256*bx + 4*(tid%64)]);
        }
    }
    cp_async_commit();
    if (ceil_div(K, 16) > 0) {
        const float* a = &A[(long long)(128*by + tid/4)*lda + 4*(tid%4)];
        #pragma unroll
        for (int u = 0; u < 2; ++u) *(float4*)&As_next[u][0] = *(const float4*)&a[(long long)(64*u)*lda];
    }
    const float* a = &A[(long long)(128*by + tid/4)*lda + 4*(tid%4) + 16];
    const float* b = &B[(long long)(tid/64 + 16)*ldb + 256*bx + 4*(tid%64)];
    int slot = 0;
    for (int ko = 0; ko < ceil_div(K, 16); ++ko) {
        #pragma unroll
        for (int u = 0; u < 2; ++u) {
            #pragma unroll
            for (int v = 0; v < 4; ++v) As[As_at(slot, 64*u + tid/4, 4*(tid%4) + v)] = As_next[u][v];
        }
        if (ko + 1 < ceil_div(K, 16)) {
            #pragma unroll
            for (int u = 0; u < 2; ++u) *(float4*)&As_next[u][0] = *(const float4*)&a[(long long)(64*u)*lda];
        }
        cp_async_wait<0>();
        __syncthreads();
        if (ko + 1 < ceil_div(K, 16)) {
            #pragma unroll
            for (int u = 0; u < 4; ++u) {
                cp_async16(&Bs[1 - slot][4*u + tid/64][4*(tid%64)], &b[(long long)(4*u)*ldb]);
            }
        }
        cp_async_commit();
        #pragma unroll
        for (int ki = 0; ki < 16; ++ki) {
            __align__(16) float ra[4][4][1];
            __align__(16) float rb[2][1][4];
            #pragma unroll
            for (int vi = 0; vi < 4; ++vi) {
                *(float4*)&ra[vi][0][0] = *(const float4*)&As[As_at(slot, 64*wi + 16*vi + 4*ti, ki)];
            }
            #pragma unroll
            for (int vj = 0; vj < 2; ++vj) {
                *(float4*)&rb[vj][0][0] = *(const float4*)&Bs[slot][ki][64*wj + 32*vj + 4*tj];
            }
            #pragma unroll
            for (int vi = 0; vi < 4; ++vi) {
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
        a += 16;
        b += 16ll*ldb;
        slot = 1 - slot;
    }
    {
        const int m = 128*by + 64*wi;
        const int n = 256*bx + 64*wj;
        float* c = &C[(long long)(m + 4*ti)*ldc + n + 4*tj];
        #pragma unroll
        for (int i = 0; i < 4; ++i) {
            if (beta0) {
                #pragma unroll
                for (int vj = 0; vj < 2; ++vj) {
                    #pragma unroll
                    for (int vi = 0; vi < 4; ++vi) {
                        *(float4*)&c[(long long)(16*vi + i)*ldc + 32*vj] =
                            make_float4(alpha*acc[vi][vj][i][0], alpha*acc[vi][vj][i][1],
                                alpha*acc[vi][vj][i][2], alpha*acc[vi][vj][i][3]);
                    }
                }
            } else {
                #pragma unroll
                for (int vj = 0; vj < 2; ++vj) {
                    #pragma unroll
                    for (int vi = 0; vi < 4; ++vi) {
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

// Grid: ceil_div(N, 256)*ceil_div(M, 128) blocks of 256 threads; 49664 bytes of dynamic shared memory.
extern "C" __global__ void __launch_bounds__(256)
sgemm_turned_lanes_f32_nn_2(int M, int N, int K, float alpha, float beta, bool beta0, const float* A, int lda,
    const float* B, int ldb, float* C, int ldc)
{
    const int tid = threadIdx.x;
    const int block = blockIdx.x;
    const int bx = block%ceil_div(N, 256);
    const int by = block/ceil_div(N, 256);
    const int wi = tid/128;
    const int wj = tid%128/32;
    const int tj = tid%32/4;
    const int ti = tid%4;
    extern __shared__ __align__(1024) unsigned char smem[];
    float* const As = (float*)(smem + 0);
    auto& Bs = *(float (*)[2][16][256])(smem + 16896);

    float acc[4][2][4][4] = {};
    float As_next[2][4];
    float Bs_next[4][4];
    if (ceil_div(K, 16) > 0) {
        {
            const int m = 128*by + tid/4;
            #pragma unroll
            for (int u = 0; u < 2; ++u) {
                #pragma unroll
                for (int v = 0; v < 4; ++v) {
                    const int k = 4*(tid%4) + v;
                    As_next[u][v] = m + 64*u < M && k < K ? A[(long long)(m + 64*u)*lda + k] : 0.0f;
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
                for (int v = 0; v < 4; ++v) Bs_next[u][v] = k < K && n + v < N ? b[v] : 0.0f;
            }
        }
    }
    int slot = 0;
    for (int ko = 0; ko < ceil_div(K, 16); ++ko) {
        #pragma unroll
        for (int u = 0; u < 2; ++u) {
            #pragma unroll
            for (int v = 0; v < 4; ++v) As[As_at(slot, 64*u + tid/4, 4*(tid%4) + v)] = As_next[u][v];
        }
        #pragma unroll
        for (int u = 0; u < 4; ++u) {
            #pragma unroll
            for (int v = 0; v < 4; ++v) Bs[slot][4*u + tid/64][4*(tid%64) + v] = Bs_next[u][v];
        }
        if (ko + 1 < ceil_div(K, 16)) {
            {
                const int m = 128*by + tid/4;
                const int k = 16*ko + 4*(tid%4);
                #pragma unroll
                for (int u = 0; u < 2; ++u) {
                    #pragma unroll
                    for (int v = 0; v < 4; ++v) {
                        As_next[u][v] = m + 64*u < M && k + v + 16 < K
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
                        Bs_next[u][v] = k + 4*u + 16 < K && n + v < N
                            ? B[(long long)(k + 4*u + 16)*ldb + n + v] : 0.0f;
                    }
                }
            }
        }
        __syncthreads();
        #pragma unroll
        for (int ki = 0; ki < 16; ++ki) {
            __align__(16) float ra[4][4][1];
            __align__(16) float rb[2][1][4];
            #pragma unroll
            for (int vi = 0; vi < 4; ++vi) {
                *(float4*)&ra[vi][0][0] = *(const float4*)&As[As_at(slot, 64*wi + 16*vi + 4*ti, ki)];
            }
            #pragma unroll
            for (int vj = 0; vj < 2; ++vj) {
                *(float4*)&rb[vj][0][0] = *(const float4*)&Bs[slot][ki][64*wj + 32*vj + 4*tj];
            }
            #pragma unroll
            for (int vi = 0; vi < 4; ++vi) {
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
        slot = 1 - slot;
    }
    {
        const int m = 128*by + 64*wi;
        const int n = 256*bx + 64*wj;
        float* c = &C[(long long)(m + 4*ti)*ldc + n + 4*tj];
        #pragma unroll
        for (int i = 0; i < 4; ++i) {
            #pragma unroll
            for (int v = 0; v < 4; ++v) {
                #pragma unroll
                for (int vj = 0; vj < 2; ++vj) {
                    #pragma unroll
                    for (int vi = 0; vi < 4; ++vi) {
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
