// C = alpha op(A) op(B) + beta C

__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

// Copies 16 bytes to shared memory.
template <class T> __device__ __forceinline__ void cp_async16(T* dst, const T* src) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                 :: "r"(shared_address(dst)), "l"(src) : "memory");
}

// Where element (w, s, r, c) of As is kept.
__device__ __forceinline__ int As_at(int w, int s, int r, int c) { return 2460*w + 1230*s + 22*r + c; }

// Copies 16 bytes to shared memory; the elements from `valid` on become zero and are not read.
template <class T> __device__ __forceinline__ void cp_async16(T* dst, const T* src, int valid) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(shared_address(dst)), "l"(src), "r"((int)sizeof(T)*valid) : "memory");
}

__device__ __forceinline__ int ceil_div(int a, int b) { return (a + b - 1)/b; }
__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits for all but the last N groups of this thread's cp.async copies.
template <int N> __device__ __forceinline__ void cp_async_wait() {
    asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory");
}

// Joins `threads` threads at hardware barrier `id`; barrier 0 is that of __syncthreads.
__device__ __forceinline__ void barrier_sync(int id, int threads) {
    asm volatile("barrier.sync %0, %1;" :: "r"(id), "r"(threads) : "memory");
}

// a b + c in four fused multiply-adds
__device__ __forceinline__ float2 cfma(float2 a, float2 b, float2 c) {
    return make_float2(fmaf(-a.y, b.y, fmaf(a.x, b.x, c.x)), fmaf(a.y, b.x, fmaf(a.x, b.y, c.y)));
}

__device__ __forceinline__ float2 cmul(float2 a, float2 b) {
    return make_float2(a.x*b.x - a.y*b.y, a.x*b.y + a.y*b.x);
}

// Grid: 8 blocks of 128 threads; 45120 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(128, 1)
tsmm_c64_nn_n36_k20(int M, float2 alpha, float2 beta, bool beta0, bool alpha1, const float2* __restrict__ A,
    const float2* __restrict__ B, int ldb, float2* __restrict__ C)
{
    const int tid = threadIdx.x;
    const int g = blockIdx.x;
    const int t = tid%64;
    __shared__ __align__(128) float2 Bs[20][36];
    __shared__ __align__(128) float2 As[4920];

    if (tid < 108) {
        const int r = tid/36;
        const int c = tid%36;
        const float2* b = &B[(long long)r*ldb + c];
        #pragma unroll
        for (int u = 0; u < 7; ++u) {
            if (u < 6 || r < 2) Bs[3*u + r][c] = b[(long long)(3*u)*ldb];
        }
    }
    __syncthreads();
    {
        const int w = tid/64;
        if (ceil_div(ceil_div(M, 56), 16) > 0) {
            if (112*g + 56*w + (t + 2)/10 + 51 < M) {
                #pragma unroll
                for (int u = 0; u < 9; ++u) {
                    if (u < 8 || t < 48) {
                        cp_async16(&As[As_at(w, 0, (64*u + t)/10, 2*((4*u + t)%10))],
                            &A[2240*g + 1120*w + 128*u + 2*t]);
                    }
                }
            } else {
                const float2* a = &A[2240*g + 1120*w + 2*t];
                #pragma unroll 1
                for (int u = 0; u < 9; ++u) {
                    if (64*u + t < 560) {
                        cp_async16(&As[As_at(w, 0, (64*u + t)/10, 2*((4*u + t)%10))], &a[0],
                            112*g + 56*w + (64*u + t)/10 < M ? 2 : 0);
                    }
                    a += 128;
                }
            }
        }
        cp_async_commit();
        const float2* a = &A[2240*g + 1120*w + 2*(tid%64) + 17920];
        int slot = 0;
        for (int blk = 0; blk < ceil_div(ceil_div(M, 56), 16); ++blk) {
            cp_async_wait<0>();
            barrier_sync(tid/64 + 1, 64);
            if (blk + 1 < ceil_div(ceil_div(M, 56), 16)) {
                if (896*blk + 112*g + 56*w + (t + 2)/10 + 947 < M) {
                    #pragma unroll
                    for (int u = 0; u < 9; ++u) {
                        if (u < 8 || t < 48) {
                            cp_async16(&As[As_at(w, 1 - slot, (64*u + t)/10, 2*((4*u + t)%10))], &a[128*u]);
                        }
                    }
                } else {
                    #pragma unroll 1
                    for (int u = 0; u < 9; ++u) {
                        if (64*u + t < 560) {
                            cp_async16(&As[As_at(w, 1 - slot, (64*u + t)/10, 2*((4*u + t)%10))],
                                &A[17920*(long long)blk + 2240*g + 1120*w + 128*u + 2*t + 17920],
                                    896*blk + 112*g + 56*w + (64*u + t)/10 + 896 < M ? 2 : 0);
                        }
                    }
                }
            }
            cp_async_commit();
            if (tid%64 < 63) {
                const int it = tid%64/9;
                const int jt = tid%64%9;
                float2 acc[8][2][1][2] = {};
                for (int ks = 0; ks < 5; ++ks) {
                    #pragma unroll
                    for (int kk = 0; kk < 2; ++kk) {
                        __align__(16) float2 a2[8][1][2];
                        #pragma unroll
                        for (int vi = 0; vi < 8; ++vi) {
                            *(float4*)&a2[vi][0][0] =
                                *(const float4*)&As[As_at(w, slot, 7*vi + it, 4*ks + 2*kk)];
                        }
                        #pragma unroll
                        for (int k = 0; k < 2; ++k) {
                            __align__(16) float2 b[2][1][2];
                            #pragma unroll
                            for (int vj = 0; vj < 2; ++vj) {
                                *(float4*)&b[vj][0][0] = *(const float4*)&Bs[4*ks + 2*kk + k][18*vj + 2*jt];
                            }
                            #pragma unroll
                            for (int vi = 0; vi < 8; ++vi) {
                                #pragma unroll
                                for (int vj = 0; vj < 2; ++vj) {
                                    #pragma unroll
                                    for (int j = 0; j < 2; ++j) {
                                        acc[vi][vi%2 == 1 ? -vj + 1 : vj][0][vi%2 == 1 ? -j + 1 : j] =
                                            cfma(a2[vi][0][k],
                                                b[vi%2 == 1 ? -vj + 1 : vj][0][vi%2 == 1 ? -j + 1 : j],
                                                    acc[vi][vi%2 == 1 ? -vj + 1 : vj][0][vi%2 == 1 ? -j + 1
                                                        : j]);
                                    }
                                }
                            }
                        }
                    }
                }
                #pragma unroll
                for (int vi = 0; vi < 8; ++vi) {
                    if (896*blk + 112*g + 56*w + 7*vi + it < M && 16*blk + 2*g + w < ceil_div(M, 56)) {
                        if (beta0) {
                            if (alpha1) {
                                #pragma unroll
                                for (int vj = 0; vj < 2; ++vj) {
                                    *(float4*)&C[32256*(long long)blk + 4032*g + 2016*w + 252*vi + 36*it + 18*vj + 2*jt] = *(const float4*)&acc[vi][vj][0][0];
                                }
                            } else {
                                #pragma unroll
                                for (int vj = 0; vj < 2; ++vj) {
                                    {
                                        const float2 z = cmul(alpha, acc[vi][vj][0][0]);
                                        const float2 z2 = cmul(alpha, acc[vi][vj][0][1]);
                                        *(float4*)&C[32256*(long long)blk + 4032*g + 2016*w + 252*vi + 36*it + 18*vj + 2*jt] = make_float4(z.x, z.y, z2.x, z2.y);
                                    }
                                }
                            }
                        } else {
                            #pragma unroll
                            for (int vj = 0; vj < 2; ++vj) {
                                {
                                    const float4 c =
                                        *(const float4*)&C[32256*(long long)blk + 4032*g + 2016*w + 252*vi + 36*it + 18*vj + 2*jt];
                                    const float2 z =
                                        cfma(alpha, acc[vi][vj][0][0], cmul(beta, make_float2(c.x, c.y)));
                                    const float2 z2 =
                                        cfma(alpha, acc[vi][vj][0][1], cmul(beta, make_float2(c.z, c.w)));
                                    *(float4*)&C[32256*(long long)blk + 4032*g + 2016*w + 252*vi + 36*it + 18*vj + 2*jt] = make_float4(z.x, z.y, z2.x, z2.y);
                                }
                            }
                        }
                    }
                }
            }
            a += 17920;
            slot = 1 - slot;
        }
    }
}
