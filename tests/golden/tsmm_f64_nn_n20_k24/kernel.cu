// C = alpha op(A) op(B) + beta C

__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

// Copies 16 bytes to shared memory.
template <class T> __device__ __forceinline__ void cp_async16(T* dst, const T* src) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                 :: "r"(shared_address(dst)), "l"(src) : "memory");
}

// Where element (s, r, c) of As is kept.
__device__ __forceinline__ int As_at(int s, int r, int c) { return 1788*s + 28*r + c; }

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

// d += a b: 16 x 8 += (16 x 8) (8 x 8)
__device__ __forceinline__ void mma_m16n8k8_f64(double (&d)[4], const double (&a)[4], const double (&b)[2]) {
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]),
          "d"(b[0]), "d"(b[1]));
}

// Grid: 8 blocks of 128 threads; 34016 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(128, 1)
tsmm_f64_nn_n20_k24_1(int M, double alpha, double beta, bool beta0, bool alpha1, const double* __restrict__ A,
    const double* __restrict__ B, int ldb, double* __restrict__ C, int ldc)
{
    const int tid = threadIdx.x;
    const int g = blockIdx.x;
    __shared__ __align__(128) double As[3576];
    __shared__ __align__(128) double Bs[24][28];

    if (tid < 120) {
        const int r = tid/24;
        const int c = tid%24;
        const double* b = &B[(long long)r*ldb + c];
        #pragma unroll
        for (int u = 0; u < 5; ++u) {
            if (u < 4 || r < 4) Bs[5*u + r][c] = c < 20 ? b[(long long)(5*u)*ldb] : 0.0;
        }
    }
    if (ceil_div(ceil_div(M, 64), 8) > 0) {
        if (64*g + (tid + 4)/12 + 53 < M) {
            #pragma unroll
            for (int u = 0; u < 6; ++u) {
                cp_async16(&As[As_at(0, (128*u + tid)/12, 2*((8*u + tid)%12))], &A[1536*g + 256*u + 2*tid]);
            }
        } else {
            const double* a = &A[1536*g + 2*tid];
            #pragma unroll 1
            for (int u = 0; u < 6; ++u) {
                cp_async16(&As[As_at(0, (128*u + tid)/12, 2*((8*u + tid)%12))], &a[0],
                    64*g + (128*u + tid)/12 < M ? 2 : 0);
                a += 256;
            }
        }
    }
    cp_async_commit();
    const double* a = &A[1536*g + 2*tid + 12288];
    int slot = 0;
    for (int blk = 0; blk < ceil_div(ceil_div(M, 64), 8); ++blk) {
        cp_async_wait<0>();
        __syncthreads();
        if (blk + 1 < ceil_div(ceil_div(M, 64), 8)) {
            if (512*blk + 64*g + (tid + 4)/12 + 565 < M) {
                #pragma unroll
                for (int u = 0; u < 6; ++u) {
                    cp_async16(&As[As_at(1 - slot, (128*u + tid)/12, 2*((8*u + tid)%12))], &a[256*u]);
                }
            } else {
                #pragma unroll 1
                for (int u = 0; u < 6; ++u) {
                    cp_async16(&As[As_at(1 - slot, (128*u + tid)/12, 2*((8*u + tid)%12))],
                        &A[12288*(long long)blk + 1536*g + 256*u + 2*tid + 12288],
                            512*blk + 64*g + (128*u + tid)/12 + 512 < M ? 2 : 0);
                }
            }
        }
        cp_async_commit();
        {
            const int wm = tid/32;
            const int m = 512*blk + 64*g + 16*wm;
            double acc[3][4] = {};
            #pragma unroll
            for (int ks = 0; ks < 3; ++ks) {
                double a2[4];
                double b[3][2];
                #pragma unroll
                for (int r = 0; r < 4; ++r) {
                    const int r2 = 8*(r%2) + tid%32/4;
                    const int c = 4*(r/2) + tid%4;
                    a2[r] = As[As_at(slot, 16*wm + r2, 8*ks + c)];
                }
                #pragma unroll
                for (int co = 0; co < 3; ++co) {
                    #pragma unroll
                    for (int r = 0; r < 2; ++r) {
                        const int r2 = 4*r + tid%4;
                        const int c = tid%32/4;
                        b[co][r] = Bs[8*ks + r2][8*co + c];
                    }
                }
                #pragma unroll
                for (int ni = 0; ni < 3; ++ni) mma_m16n8k8_f64(acc[ni], a2, b[ni]);
            }
            #pragma unroll
            for (int jo = 0; jo < 3; ++jo) {
                #pragma unroll
                for (int r = 0; r < 2; ++r) {
                    const int i = 8*r + tid%32/4;
                    const int j = 2*(tid%4);
                    if (m + i < M && 8*blk + g < ceil_div(M, 64) && 8*jo + j <= 18) {
                        if (beta0) {
                            if (alpha1) {
                                *(double2*)&C[(long long)(m + i)*ldc + 8*jo + j] =
                                    make_double2(acc[jo][2*r], acc[jo][2*r + 1]);
                            } else {
                                *(double2*)&C[(long long)(m + i)*ldc + 8*jo + j] =
                                    make_double2(alpha*acc[jo][2*r], alpha*acc[jo][2*r + 1]);
                            }
                        } else {
                            {
                                const double2 c = *(const double2*)&C[(long long)(m + i)*ldc + 8*jo + j];
                                *(double2*)&C[(long long)(m + i)*ldc + 8*jo + j] =
                                    make_double2(alpha*acc[jo][2*r] + beta*c.x,
                                        alpha*acc[jo][2*r + 1] + beta*c.y);
                            }
                        }
                    }
                }
            }
        }
        a += 12288;
        slot = 1 - slot;
    }
}

// Grid: 8 blocks of 128 threads; 34016 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(128, 1)
tsmm_f64_nn_n20_k24_2(int M, double alpha, double beta, bool beta0, bool alpha1, const double* __restrict__ A,
    const double* __restrict__ B, int ldb, double* __restrict__ C, int ldc)
{
    const int tid = threadIdx.x;
    const int g = blockIdx.x;
    __shared__ __align__(128) double As[3576];
    __shared__ __align__(128) double Bs[24][28];

    if (tid < 120) {
        const int r = tid/24;
        const int c = tid%24;
        const double* b = &B[(long long)r*ldb + c];
        #pragma unroll
        for (int u = 0; u < 5; ++u) {
            if (u < 4 || r < 4) Bs[5*u + r][c] = c < 20 ? b[(long long)(5*u)*ldb] : 0.0;
        }
    }
    if (ceil_div(ceil_div(M, 64), 8) > 0) {
        if (64*g + (tid + 4)/12 + 53 < M) {
            #pragma unroll
            for (int u = 0; u < 6; ++u) {
                cp_async16(&As[As_at(0, (128*u + tid)/12, 2*((8*u + tid)%12))], &A[1536*g + 256*u + 2*tid]);
            }
        } else {
            const double* a = &A[1536*g + 2*tid];
            #pragma unroll 1
            for (int u = 0; u < 6; ++u) {
                cp_async16(&As[As_at(0, (128*u + tid)/12, 2*((8*u + tid)%12))], &a[0],
                    64*g + (128*u + tid)/12 < M ? 2 : 0);
                a += 256;
            }
        }
    }
    cp_async_commit();
    const double* a = &A[1536*g + 2*tid + 12288];
    int slot = 0;
    for (int blk = 0; blk < ceil_div(ceil_div(M, 64), 8); ++blk) {
        cp_async_wait<0>();
        __syncthreads();
        if (blk + 1 < ceil_div(ceil_div(M, 64), 8)) {
            if (512*blk + 64*g + (tid + 4)/12 + 565 < M) {
                #pragma unroll
                for (int u = 0; u < 6; ++u) {
                    cp_async16(&As[As_at(1 - slot, (128*u + tid)/12, 2*((8*u + tid)%12))], &a[256*u]);
                }
            } else {
                #pragma unroll 1
                for (int u = 0; u < 6; ++u) {
                    cp_async16(&As[As_at(1 - slot, (128*u + tid)/12, 2*((8*u + tid)%12))],
                        &A[12288*(long long)blk + 1536*g + 256*u + 2*tid + 12288],
                            512*blk + 64*g + (128*u + tid)/12 + 512 < M ? 2 : 0);
                }
            }
        }
        cp_async_commit();
        {
            const int wm = tid/32;
            const int m = 512*blk + 64*g + 16*wm;
            double acc[3][4] = {};
            #pragma unroll
            for (int ks = 0; ks < 3; ++ks) {
                double a2[4];
                double b[3][2];
                #pragma unroll
                for (int r = 0; r < 4; ++r) {
                    const int r2 = 8*(r%2) + tid%32/4;
                    const int c = 4*(r/2) + tid%4;
                    a2[r] = As[As_at(slot, 16*wm + r2, 8*ks + c)];
                }
                #pragma unroll
                for (int co = 0; co < 3; ++co) {
                    #pragma unroll
                    for (int r = 0; r < 2; ++r) {
                        const int r2 = 4*r + tid%4;
                        const int c = tid%32/4;
                        b[co][r] = Bs[8*ks + r2][8*co + c];
                    }
                }
                #pragma unroll
                for (int ni = 0; ni < 3; ++ni) mma_m16n8k8_f64(acc[ni], a2, b[ni]);
            }
            #pragma unroll
            for (int jo = 0; jo < 3; ++jo) {
                #pragma unroll
                for (int r = 0; r < 2; ++r) {
                    const int i = 8*r + tid%32/4;
                    const int j = 2*(tid%4);
                    #pragma unroll
                    for (int v = 0; v < 2; ++v) {
                        if (m + i < M && 8*blk + g < ceil_div(M, 64) && 8*jo + j + v < 20) {
                            if (beta0) {
                                if (alpha1) C[(long long)(m + i)*ldc + 8*jo + j + v] = acc[jo][2*r + v];
                                else C[(long long)(m + i)*ldc + 8*jo + j + v] = alpha*acc[jo][2*r + v];
                            } else {
                                C[(long long)(m + i)*ldc + 8*jo + j + v] =
                                    alpha*acc[jo][2*r + v] + beta*C[(long long)(m + i)*ldc + 8*jo + j + v];
                            }
                        }
                    }
                }
            }
        }
        a += 12288;
        slot = 1 - slot;
    }
}
