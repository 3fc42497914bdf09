// C = alpha op(A) op(B) + beta C

__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

// Copies 16 bytes to shared memory; the elements from `valid` on become zero and are not read.
template <class T> __device__ __forceinline__ void cp_async16(T* dst, const T* src, int valid) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(shared_address(dst)), "l"(src), "r"((int)sizeof(T)*valid) : "memory");
}

// Where element (s, r, c) of As is kept.
__device__ __forceinline__ int As_at(int s, int r, int c) { return 572*s + 36*r + c; }

// Copies 16 bytes to shared memory.
template <class T> __device__ __forceinline__ void cp_async16(T* dst, const T* src) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                 :: "r"(shared_address(dst)), "l"(src) : "memory");
}

// Where element (s, r, c) of Bs is kept.
__device__ __forceinline__ int Bs_at(int s, int r, int c) { return 444*s + 28*r + c; }

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

// Lets the blocks of the next launch, which waits for this one itself, take what room there is.
__device__ __forceinline__ void let_next_launch_begin() {
    asm volatile("griddepcontrol.launch_dependents;");
}

__device__ __forceinline__ double2 cmul(double2 a, double2 b) {
    return make_double2(a.x*b.x - a.y*b.y, a.x*b.y + a.y*b.x);
}

// a b + c in four fused multiply-adds
__device__ __forceinline__ double2 cfma(double2 a, double2 b, double2 c) {
    return make_double2(fma(-a.y, b.y, fma(a.x, b.x, c.x)), fma(a.y, b.x, fma(a.x, b.y, c.y)));
}

// Waits until the launch before this one has ended and what it wrote can be read.
__device__ __forceinline__ void wait_for_launch_before() {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

// Grid: 8 blocks of 64 threads; 24480 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(64, 1)
tsmttsm_c128_cn_m9_n12_parts_1(int K, const double* __restrict__ A, const double* __restrict__ B,
    double* __restrict__ slice)
{
    let_next_launch_begin();
    const int tid = threadIdx.x;
    const int g = blockIdx.x;
    const int s = tid/32;
    __shared__ __align__(128) double As[1716];
    __shared__ __align__(128) double Bs[1332];

    double mine[1][1][2][3][4];
    #pragma unroll
    for (int mi = 0; mi < 2; ++mi) {
        #pragma unroll
        for (int ni = 0; ni < 3; ++ni) {
            #pragma unroll
            for (int r = 0; r < 4; ++r) mine[0][0][mi][ni][r] = 0.0;
        }
    }
    #pragma unroll
    for (int p = 0; p < 2; ++p) {
        if (p < (ceil_div(K, 16) - g + 7)/8) {
            if (128*p + 16*g + tid/16 + 12 < K) {
                #pragma unroll
                for (int u = 0; u < 4; ++u) {
                    cp_async16(&As[As_at(p, 4*u + tid/16, 2*(tid%16))],
                        &A[2304*p + 288*g + 72*u + 18*(tid/16) + 2*(tid%16)], -2*(tid%16) > -18 ? 2 : 0);
                }
            } else {
                const double* a = &A[2304*p + 288*g + 18*(tid/16) + 2*(tid%16)];
                #pragma unroll 1
                for (int u = 0; u < 4; ++u) {
                    cp_async16(&As[As_at(p, 4*u + tid/16, 2*(tid%16))], &a[0],
                        128*p + 16*g + 4*u + tid/16 < K && -2*(tid%16) > -18 ? 2 : 0);
                    a += 72;
                }
            }
            if (128*p + 16*g + (tid + 8)/12 + 10 < K) {
                #pragma unroll
                for (int u = 0; u < 3; ++u) {
                    cp_async16(&Bs[Bs_at(p, (64*u + tid)/12, 2*((4*u + tid)%12))],
                        &B[3072*p + 384*g + 128*u + 2*tid]);
                }
            } else {
                const double* b = &B[3072*p + 384*g + 2*tid];
                #pragma unroll 1
                for (int u = 0; u < 3; ++u) {
                    cp_async16(&Bs[Bs_at(p, (64*u + tid)/12, 2*((4*u + tid)%12))], &b[0],
                        128*p + 16*g + (64*u + tid)/12 < K ? 2 : 0);
                    b += 128;
                }
            }
        }
        cp_async_commit();
    }
    const double* a = &A[288*g + 18*(tid/16) + 2*(tid%16) + 4608];
    const double* b = &B[384*g + 2*tid + 6144];
    for (int ko = 0; ko < (ceil_div(K, 16) - g + 7)/8; ++ko) {
        cp_async_wait<1>();
        __syncthreads();
        if (ko + 2 < (ceil_div(K, 16) - g + 7)/8) {
            if (128*ko + 16*g + tid/16 + 268 < K) {
                #pragma unroll
                for (int u = 0; u < 4; ++u) {
                    cp_async16(&As[As_at((ko + 2)%3, 4*u + tid/16, 2*(tid%16))], &a[72*u], -2*(tid%16) > -18
                        ? 2 : 0);
                }
            } else {
                #pragma unroll 1
                for (int u = 0; u < 4; ++u) {
                    cp_async16(&As[As_at((ko + 2)%3, 4*u + tid/16, 2*(tid%16))],
                        &A[2304*(long long)ko + 288*g + 72*u + 18*(tid/16) + 2*(tid%16) + 4608],
                            128*ko + 16*g + 4*u + tid/16 + 256 < K && -2*(tid%16) > -18 ? 2 : 0);
                }
            }
            if (128*ko + 16*g + (tid + 8)/12 + 266 < K) {
                #pragma unroll
                for (int u = 0; u < 3; ++u) {
                    cp_async16(&Bs[Bs_at((ko + 2)%3, (64*u + tid)/12, 2*((4*u + tid)%12))], &b[128*u]);
                }
            } else {
                #pragma unroll 1
                for (int u = 0; u < 3; ++u) {
                    cp_async16(&Bs[Bs_at((ko + 2)%3, (64*u + tid)/12, 2*((4*u + tid)%12))],
                        &B[3072*(long long)ko + 384*g + 128*u + 2*tid + 6144],
                            128*ko + 16*g + (64*u + tid)/12 + 256 < K ? 2 : 0);
                }
            }
        }
        cp_async_commit();
        {
            double a2[2][4];
            double b2[3][2];
            #pragma unroll
            for (int co = 0; co < 2; ++co) {
                #pragma unroll
                for (int r = 0; r < 4; ++r) {
                    const int c = 8*(r%2) + tid%32/4;
                    const int r2 = 4*(r/2) + tid%4;
                    a2[co][r] = As[As_at(ko%3, 8*s + r2, 16*co + c)];
                }
            }
            #pragma unroll
            for (int co = 0; co < 3; ++co) {
                #pragma unroll
                for (int r = 0; r < 2; ++r) {
                    const int r2 = 4*r + tid%4;
                    const int c = tid%32/4;
                    b2[co][r] = Bs[Bs_at(ko%3, 8*s + r2, 8*co + c)];
                }
            }
            #pragma unroll
            for (int mi = 0; mi < 2; ++mi) {
                #pragma unroll
                for (int ni = 0; ni < 3; ++ni) mma_m16n8k8_f64(mine[0][0][mi][ni], a2[mi], b2[ni]);
            }
        }
        a += 2304;
        b += 3072;
    }
    #pragma unroll
    for (int io = 0; io < 2; ++io) {
        #pragma unroll
        for (int jo = 0; jo < 3; ++jo) {
            #pragma unroll
            for (int r = 0; r < 2; ++r) {
                const int i = 8*r + tid%32/4;
                const int j = 2*(tid%4);
                if (io < 1 || i < 2) {
                    *(double2*)&slice[3456*s + 432*g + 384*io + 24*i + 8*jo + j] =
                        make_double2(mine[0][0][io][jo][2*r], mine[0][0][io][jo][2*r + 1]);
                }
            }
        }
    }
}

// Grid: 9 blocks of 192 threads; 3072 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(192)
tsmttsm_c128_cn_m9_n12_parts_2(double2 alpha, double2 beta, bool beta0, double2* __restrict__ C, int ldc,
    const double* slice)
{
    wait_for_launch_before();
    const int tid = threadIdx.x;
    const int i = blockIdx.x;
    __shared__ __align__(128) double sub[8][2][24];

    {
        const int t = tid/24;
        const int j = tid%24;
        double sum[1][2][1];
        #pragma unroll
        for (int i2 = 0; i2 < 2; ++i2) {
            sum[0][i2][0] = 0.0;
            double part = 0.0;
            #pragma unroll
            for (int s = 0; s < 2; ++s) part += slice[3456*s + 432*t + 48*i + 24*i2 + j];
            sum[0][i2][0] += part;
        }
        #pragma unroll
        for (int i2 = 0; i2 < 2; ++i2) sub[t][i2][j] = sum[0][i2][0];
    }
    __syncthreads();
    if (tid < 12) {
        double acc[2][2];
        #pragma unroll
        for (int i2 = 0; i2 < 2; ++i2) {
            #pragma unroll
            for (int j = 0; j < 2; ++j) {
                acc[i2][j] = 0.0;
                #pragma unroll
                for (int t = 0; t < 8; ++t) acc[i2][j] += sub[t][i2][2*tid + j];
            }
        }
        if (beta0) {
            C[(long long)i*ldc + tid] =
                cmul(alpha, make_double2(acc[0][0] + acc[1][1], acc[0][1] - acc[1][0]));
        } else {
            C[(long long)i*ldc + tid] =
                cfma(alpha, make_double2(acc[0][0] + acc[1][1], acc[0][1] - acc[1][0]),
                    cmul(beta, C[(long long)i*ldc + tid]));
        }
    }
}
