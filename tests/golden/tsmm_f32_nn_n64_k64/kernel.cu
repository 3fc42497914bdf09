// C = alpha op(A) op(B) + beta C

__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

// Copies 16 bytes to shared memory.
template <class T> __device__ __forceinline__ void cp_async16(T* dst, const T* src) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                 :: "r"(shared_address(dst)), "l"(src) : "memory");
}

// Where element (s, r, c) of As is kept.
__device__ __forceinline__ int As_at(int s, int r, int c) { return 4348*s + 68*r + c; }

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

// Grid: 8 blocks of 64 threads; 51200 bytes of dynamic shared memory.
extern "C" __global__ void __launch_bounds__(64, 1)
tsmm_f32_nn_n64_k64(int M, float alpha, float beta, bool beta0, bool alpha1, const float* __restrict__ A,
    const float* __restrict__ B, int ldb, float* __restrict__ C)
{
    const int tid = threadIdx.x;
    const int g = blockIdx.x;
    extern __shared__ __align__(1024) unsigned char smem[];
    float* const As = (float*)(smem + 0);
    auto& Bs = *(float (*)[64][64])(smem + 34816);

    for (int b = 0; b < 2; ++b) {
        #pragma unroll
        for (int u = 0; u < 32; ++u) Bs[32*b + u][tid] = B[(long long)(32*b + u)*ldb + tid];
    }
    if (ceil_div(ceil_div(M, 64), 8) > 0) {
        if (64*g + tid/16 + 60 < M) {
            #pragma unroll
            for (int u = 0; u < 16; ++u) {
                cp_async16(&As[As_at(0, 4*u + tid/16, 4*(tid%16))], &A[4096*g + 256*u + 4*tid]);
            }
        } else {
            const float* a = &A[4096*g + 4*tid];
            #pragma unroll 1
            for (int u = 0; u < 16; ++u) {
                cp_async16(&As[As_at(0, 4*u + tid/16, 4*(tid%16))], &a[0], 64*g + 4*u + tid/16 < M ? 4 : 0);
                a += 256;
            }
        }
    }
    cp_async_commit();
    const float* a = &A[4096*g + 4*tid + 32768];
    int slot2 = 0;
    for (int blk = 0; blk < ceil_div(ceil_div(M, 64), 8); ++blk) {
        cp_async_wait<0>();
        __syncthreads();
        if (blk + 1 < ceil_div(ceil_div(M, 64), 8)) {
            if (512*blk + 64*g + tid/16 + 572 < M) {
                #pragma unroll
                for (int u = 0; u < 16; ++u) {
                    cp_async16(&As[As_at(1 - slot2, 4*u + tid/16, 4*(tid%16))], &a[256*u]);
                }
            } else {
                #pragma unroll 1
                for (int u = 0; u < 16; ++u) {
                    cp_async16(&As[As_at(1 - slot2, 4*u + tid/16, 4*(tid%16))],
                        &A[32768*(long long)blk + 4096*g + 256*u + 4*tid + 32768],
                            512*blk + 64*g + 4*u + tid/16 + 512 < M ? 4 : 0);
                }
            }
        }
        cp_async_commit();
        {
            const int it = tid/8;
            const int jt = tid%8;
            float acc[8][2][1][4] = {};
            for (int ks = 0; ks < 4; ++ks) {
                #pragma unroll
                for (int kk = 0; kk < 4; ++kk) {
                    __align__(16) float a2[8][1][4];
                    #pragma unroll
                    for (int vi = 0; vi < 8; ++vi) {
                        *(float4*)&a2[vi][0][0] = *(const float4*)&As[As_at(slot2, 8*vi + it, 16*ks + 4*kk)];
                    }
                    #pragma unroll
                    for (int k = 0; k < 4; ++k) {
                        __align__(16) float b[2][1][4];
                        #pragma unroll
                        for (int vj = 0; vj < 2; ++vj) {
                            *(float4*)&b[vj][0][0] = *(const float4*)&Bs[16*ks + 4*kk + k][32*vj + 4*jt];
                        }
                        #pragma unroll
                        for (int vi = 0; vi < 8; ++vi) {
                            #pragma unroll
                            for (int vj = 0; vj < 2; ++vj) {
                                #pragma unroll
                                for (int j = 0; j < 4; ++j) {
                                    acc[vi][vi%2 == 1 ? -vj + 1 : vj][0][vi%2 == 1 ? -j + 3 : j] +=
                                        a2[vi][0][k]*b[vi%2 == 1 ? -vj + 1 : vj][0][vi%2 == 1 ? -j + 3 : j];
                                }
                            }
                        }
                    }
                }
            }
            #pragma unroll
            for (int vi = 0; vi < 8; ++vi) {
                if (512*blk + 64*g + 8*vi + it < M && 8*blk + g < ceil_div(M, 64)) {
                    if (beta0) {
                        if (alpha1) {
                            #pragma unroll
                            for (int vj = 0; vj < 2; ++vj) {
                                *(float4*)&C[32768*(long long)blk + 4096*g + 512*vi + 64*it + 32*vj + 4*jt] =
                                    *(const float4*)&acc[vi][vj][0][0];
                            }
                        } else {
                            #pragma unroll
                            for (int vj = 0; vj < 2; ++vj) {
                                *(float4*)&C[32768*(long long)blk + 4096*g + 512*vi + 64*it + 32*vj + 4*jt] =
                                    make_float4(alpha*acc[vi][vj][0][0], alpha*acc[vi][vj][0][1],
                                        alpha*acc[vi][vj][0][2], alpha*acc[vi][vj][0][3]);
                            }
                        }
                    } else {
                        #pragma unroll
                        for (int vj = 0; vj < 2; ++vj) {
                            {
                                const float4 c =
                                    *(const float4*)&C[32768*(long long)blk + 4096*g + 512*vi + 64*it + 32*vj + 4*jt];
                                *(float4*)&C[32768*(long long)blk + 4096*g + 512*vi + 64*it + 32*vj + 4*jt] =
                                    make_float4(alpha*acc[vi][vj][0][0] + beta*c.x,
                                        alpha*acc[vi][vj][0][1] + beta*c.y,
                                            alpha*acc[vi][vj][0][2] + beta*c.z,
                                                alpha*acc[vi][vj][0][3] + beta*c.w);
                            }
                        }
                    }
                }
            }
        }
        a += 32768;
        slot2 = 1 - slot2;
    }
}
