// C = alpha op(A) op(B) + beta C

__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

// Copies 16 bytes to shared memory.
template <class T> __device__ __forceinline__ void cp_async16(T* dst, const T* src) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                 :: "r"(shared_address(dst)), "l"(src) : "memory");
}

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

// d += a b: 16 x 8 += (16 x 4) (4 x 8)
__device__ __forceinline__ void mma_m16n8k4_f64(double (&d)[4], const double (&a)[2], const double (&b)[1]) {
    asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
        : "d"(a[0]), "d"(a[1]),
          "d"(b[0]));
}

// Grid: 8 blocks of 128 threads; 70880 bytes of dynamic shared memory.
extern "C" __global__ void __launch_bounds__(128, 1)
tsmm_f64_nn_n37_k37(int M, double alpha, double beta, bool beta0, bool alpha1, const double* __restrict__ A,
    const double* __restrict__ B, int ldb, double* __restrict__ C)
{
    const int tid = threadIdx.x;
    const int g = blockIdx.x;
    extern __shared__ __align__(1024) unsigned char smem[];
    auto& acc = *(double (*)[64][37])(smem + 0);
    auto& As = *(double (*)[2][2368])(smem + 18944);
    auto& Bs = *(double (*)[40][44])(smem + 56832);

    if (tid < 120) {
        const int r = tid/40;
        const int c = tid%40;
        const double* b = &B[(long long)r*ldb + c];
        #pragma unroll
        for (int u = 0; u < 14; ++u) {
            if (u < 13 || r < 1) Bs[3*u + r][c] = 3*u + r < 37 && c < 37 ? b[(long long)(3*u)*ldb] : 0.0;
        }
    }
    if (ceil_div(ceil_div(M, 64), 8) > 0) {
        if (2368*g + 2*tid + 2305 < 37*(long long)M) {
            #pragma unroll
            for (int u = 0; u < 10; ++u) {
                if (u < 9 || tid < 32) cp_async16(&As[0][256*u + 2*tid], &A[2368*g + 256*u + 2*tid]);
            }
        } else {
            const double* a = &A[2368*g + 2*tid];
            #pragma unroll 1
            for (int u = 0; u < 10; ++u) {
                if (128*u + tid < 1184) {
                    cp_async16(&As[0][256*u + 2*tid], &a[0],
                        max(0ll, min(2ll, 37*(long long)M - 2368*g - 256*u - 2*tid)));
                }
                a += 256;
            }
        }
    }
    cp_async_commit();
    const double* a = &A[2368*g + 2*tid + 18944];
    int slot = 0;
    for (int blk = 0; blk < ceil_div(ceil_div(M, 64), 8); ++blk) {
        cp_async_wait<0>();
        __syncthreads();
        if (blk + 1 < ceil_div(ceil_div(M, 64), 8)) {
            if (18944*(long long)blk + 2368*g + 2*tid + 21249 < 37*(long long)M) {
                #pragma unroll
                for (int u = 0; u < 10; ++u) {
                    if (u < 9 || tid < 32) cp_async16(&As[1 - slot][256*u + 2*tid], &a[256*u]);
                }
            } else {
                #pragma unroll 1
                for (int u = 0; u < 10; ++u) {
                    if (128*u + tid < 1184) {
                        cp_async16(&As[1 - slot][256*u + 2*tid],
                            &A[18944*(long long)blk + 2368*g + 256*u + 2*tid + 18944],
                                max(0ll,
                                    min(2ll,
                                        37*(long long)M - 18944*(long long)blk - 2368*g - 256*u - 2*tid - 18944)));
                    }
                }
            }
        }
        cp_async_commit();
        {
            const int wm = tid/32;
            double mine[5][4] = {};
            #pragma unroll
            for (int ks = 0; ks < 10; ++ks) {
                double a2[2];
                double b[5][1];
                #pragma unroll
                for (int r = 0; r < 2; ++r) {
                    const int r2 = 8*r + tid%32/4;
                    const int c = tid%4;
                    a2[r] = 4*ks + c < 37 ? As[slot][592*wm + 37*r2 + 4*ks + c] : 0.0;
                }
                #pragma unroll
                for (int co = 0; co < 5; ++co) {
                    #pragma unroll
                    for (int r = 0; r < 1; ++r) {
                        const int r2 = tid%4;
                        const int c = tid%32/4;
                        b[co][r] = Bs[4*ks + r2][8*co + c];
                    }
                }
                #pragma unroll
                for (int ni = 0; ni < 5; ++ni) mma_m16n8k4_f64(mine[ni], a2, b[ni]);
            }
            #pragma unroll
            for (int jo = 0; jo < 5; ++jo) {
                #pragma unroll
                for (int r = 0; r < 4; ++r) {
                    const int i = 8*(r/2) + tid%32/4;
                    const int j = 2*(tid%4) + r%2;
                    if (jo < 4 || j < 5) {
                        acc[16*wm + i][8*jo + j] = 512*blk + 64*g + 16*wm + i < M ? mine[jo][r] : 0.0;
                    }
                }
            }
        }
        __syncthreads();
        if (512*blk + 64*g + (2*tid + 11)/37 + 62 < M && 8*blk + g < ceil_div(M, 64)) {
            #pragma unroll
            for (int u = 0; u < 10; ++u) {
                if (u < 9 || tid < 32) {
                    if (beta0) {
                        if (alpha1) {
                            *(double2*)&C[18944*(long long)blk + 2368*g + 256*u + 2*tid] =
                                *(const double2*)&(&acc[0][0])[256*u + 2*tid];
                        } else {
                            {
                                const double2 acc2 = *(const double2*)&(&acc[0][0])[256*u + 2*tid];
                                *(double2*)&C[18944*(long long)blk + 2368*g + 256*u + 2*tid] =
                                    make_double2(alpha*acc2.x, alpha*acc2.y);
                            }
                        }
                    } else {
                        {
                            const double2 acc2 = *(const double2*)&(&acc[0][0])[256*u + 2*tid];
                            const double2 c =
                                *(const double2*)&C[18944*(long long)blk + 2368*g + 256*u + 2*tid];
                            *(double2*)&C[18944*(long long)blk + 2368*g + 256*u + 2*tid] =
                                make_double2(alpha*acc2.x + beta*c.x, alpha*acc2.y + beta*c.y);
                        }
                    }
                }
            }
        } else {
            #pragma unroll 1
            for (int u = 0; u < 10; ++u) {
                if (512*blk + 64*g + (256*u + 2*tid)/37 < M && 512*blk + 64*g + (256*u + 2*tid + 1)/37 < M &&
                    8*blk + g < ceil_div(M, 64) && 128*u + tid < 1184) {
                    if (beta0) {
                        if (alpha1) {
                            *(double2*)&C[18944*(long long)blk + 2368*g + 256*u + 2*tid] =
                                *(const double2*)&(&acc[0][0])[256*u + 2*tid];
                        } else {
                            {
                                const double2 acc2 = *(const double2*)&(&acc[0][0])[256*u + 2*tid];
                                *(double2*)&C[18944*(long long)blk + 2368*g + 256*u + 2*tid] =
                                    make_double2(alpha*acc2.x, alpha*acc2.y);
                            }
                        }
                    } else {
                        {
                            const double2 acc2 = *(const double2*)&(&acc[0][0])[256*u + 2*tid];
                            const double2 c =
                                *(const double2*)&C[18944*(long long)blk + 2368*g + 256*u + 2*tid];
                            *(double2*)&C[18944*(long long)blk + 2368*g + 256*u + 2*tid] =
                                make_double2(alpha*acc2.x + beta*c.x, alpha*acc2.y + beta*c.y);
                        }
                    }
                } else {
                    #pragma unroll
                    for (int e = 0; e < 2; ++e) {
                        if (512*blk + 64*g + (256*u + 2*tid + e)/37 < M && 8*blk + g < ceil_div(M, 64) &&
                            128*u + tid < 1184) {
                            if (beta0) {
                                if (alpha1) {
                                    C[18944*(long long)blk + 2368*g + 256*u + 2*tid + e] =
                                        (&acc[0][0])[256*u + 2*tid + e];
                                } else {
                                    C[18944*(long long)blk + 2368*g + 256*u + 2*tid + e] =
                                        alpha*(&acc[0][0])[256*u + 2*tid + e];
                                }
                            } else {
                                C[18944*(long long)blk + 2368*g + 256*u + 2*tid + e] =
                                    alpha*(&acc[0][0])[256*u + 2*tid + e] + beta*C[18944*(long long)blk + 2368*g + 256*u + 2*tid + e];
                            }
                        }
                    }
                }
            }
        }
        a += 18944;
        slot = 1 - slot;
    }
}
