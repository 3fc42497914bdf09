// C = alpha op(A) op(B) + beta C

__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

// Copies 16 bytes to shared memory.
template <class T> __device__ __forceinline__ void cp_async16(T* dst, const T* src) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                 :: "r"(shared_address(dst)), "l"(src) : "memory");
}

// Where element (w, s, r, c) of As is kept.
__device__ __forceinline__ int As_at(int w, int s, int r, int c) { return 628*w + 314*s + 20*r + c; }

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

// negative ? -x : x
__device__ __forceinline__ double negated_if(bool negative, double x) {
    return __longlong_as_double(__double_as_longlong(x) ^ (negative ? 1ll << 63 : 0ll));
}

// d += a b: 16 x 8 += (16 x 4) (4 x 8)
__device__ __forceinline__ void mma_m16n8k4_f64(double (&d)[4], const double (&a)[2], const double (&b)[1]) {
    asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
        : "d"(a[0]), "d"(a[1]),
          "d"(b[0]));
}

__device__ __forceinline__ double2 cmul(double2 a, double2 b) {
    return make_double2(a.x*b.x - a.y*b.y, a.x*b.y + a.y*b.x);
}

// a b + c in four fused multiply-adds
__device__ __forceinline__ double2 cfma(double2 a, double2 b, double2 c) {
    return make_double2(fma(-a.y, b.y, fma(a.x, b.x, c.x)), fma(a.y, b.x, fma(a.x, b.y, c.y)));
}

// Grid: 8 blocks of 128 threads; 21632 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(128, 1)
tsmm_c128_nn_n9_k7_embedded(int M, double2 alpha, double2 beta, bool beta0, bool alpha1,
    const double* __restrict__ A, const double* __restrict__ B, int ldb, double2* __restrict__ C, int ldc)
{
    const int tid = threadIdx.x;
    const int g = blockIdx.x;
    const int t = tid%32;
    __shared__ __align__(128) double Bs[8][24];
    __shared__ __align__(128) double As[2512];

    if (tid < 120) {
        const int r = tid/24;
        const int c = tid%24;
        const double* b = &B[(long long)r*ldb + c];
        #pragma unroll
        for (int u = 0; u < 2; ++u) {
            if (u < 1 || r < 3) Bs[5*u + r][c] = 5*u + r < 7 && c < 18 ? b[(long long)(5*u)*ldb] : 0.0;
        }
    }
    __syncthreads();
    {
        const int w = tid/32;
        if (ceil_div(ceil_div(M, 16), 32) > 0) {
            if (64*g + 16*w + (t + 5)/7 + 13 < M) {
                #pragma unroll
                for (int u = 0; u < 4; ++u) {
                    if (u < 3 || t < 16) {
                        cp_async16(&As[As_at(w, 0, (32*u + t)/7, 2*((4*u + t)%7))],
                            &A[896*g + 224*w + 64*u + 2*t]);
                    }
                }
            } else {
                const double* a = &A[896*g + 224*w + 2*t];
                #pragma unroll 1
                for (int u = 0; u < 4; ++u) {
                    if (32*u + t < 112) {
                        cp_async16(&As[As_at(w, 0, (32*u + t)/7, 2*((4*u + t)%7))], &a[0],
                            64*g + 16*w + (32*u + t)/7 < M ? 2 : 0);
                    }
                    a += 64;
                }
            }
        }
        cp_async_commit();
        const int m = 64*g + 16*w;
        const double* a = &A[896*g + 224*w + 2*(tid%32) + 7168];
        int slot = 0;
        for (int blk = 0; blk < ceil_div(ceil_div(M, 16), 32); ++blk) {
            cp_async_wait<0>();
            __syncwarp();
            if (blk + 1 < ceil_div(ceil_div(M, 16), 32)) {
                if (m + 512*blk + (t + 5)/7 + 525 < M) {
                    #pragma unroll
                    for (int u = 0; u < 4; ++u) {
                        if (u < 3 || t < 16) {
                            cp_async16(&As[As_at(w, 1 - slot, (32*u + t)/7, 2*((4*u + t)%7))], &a[64*u]);
                        }
                    }
                } else {
                    #pragma unroll 1
                    for (int u = 0; u < 4; ++u) {
                        if (32*u + t < 112) {
                            cp_async16(&As[As_at(w, 1 - slot, (32*u + t)/7, 2*((4*u + t)%7))],
                                &A[7168*(long long)blk + 896*g + 224*w + 64*u + 2*t + 7168],
                                    m + 512*blk + (32*u + t)/7 + 512 < M ? 2 : 0);
                        }
                    }
                }
            }
            cp_async_commit();
            {
                double acc[3][4] = {};
                #pragma unroll
                for (int ks = 0; ks < 4; ++ks) {
                    double a2[2];
                    double b[3][1];
                    #pragma unroll
                    for (int r = 0; r < 2; ++r) {
                        const int r2 = 8*r + tid%32/4;
                        const int c = tid%4;
                        a2[r] = 4*ks + c < 14 ? As[As_at(w, slot, r2, 4*ks + c)] : 0.0;
                    }
                    #pragma unroll
                    for (int jo = 0; jo < 3; ++jo) {
                        #pragma unroll
                        for (int r = 0; r < 1; ++r) {
                            const int k = tid%4;
                            const int j = tid%32/4;
                            b[jo][r] = negated_if(j%2 < k%2, Bs[2*ks + k/2][8*jo + 2*(j/2) + (j + k)%2]);
                        }
                    }
                    #pragma unroll
                    for (int ni = 0; ni < 3; ++ni) mma_m16n8k4_f64(acc[ni], a2, b[ni]);
                }
                #pragma unroll
                for (int jo = 0; jo < 3; ++jo) {
                    #pragma unroll
                    for (int r = 0; r < 2; ++r) {
                        const int i = 8*r + tid%32/4;
                        const int j = 2*(tid%4);
                        if (m + 512*blk + i < M && 32*blk + 4*g + w < ceil_div(M, 16) && 4*jo + j/2 < 9) {
                            if (beta0) {
                                if (alpha1) {
                                    C[(long long)(m + 512*blk + i)*ldc + 4*jo + j/2] =
                                        make_double2(acc[jo][2*r], acc[jo][2*r + 1]);
                                } else {
                                    C[(long long)(m + 512*blk + i)*ldc + 4*jo + j/2] =
                                        cmul(alpha, make_double2(acc[jo][2*r], acc[jo][2*r + 1]));
                                }
                            } else {
                                C[(long long)(m + 512*blk + i)*ldc + 4*jo + j/2] =
                                    cfma(alpha, make_double2(acc[jo][2*r], acc[jo][2*r + 1]),
                                        cmul(beta, C[(long long)(m + 512*blk + i)*ldc + 4*jo + j/2]));
                            }
                        }
                    }
                }
            }
            a += 7168;
            slot = 1 - slot;
        }
    }
}
