// C = alpha op(A) op(B) + beta C

__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

// Copies 16 bytes to shared memory; the elements from `valid` on become zero and are not read.
template <class T> __device__ __forceinline__ void cp_async16(T* dst, const T* src, int valid) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(shared_address(dst)), "l"(src), "r"((int)sizeof(T)*valid) : "memory");
}

// Where element (s, r, c) of As is kept.
__device__ __forceinline__ int As_at(int s, int r, int c) { return 572*s + 36*r + c; }

// Where element (s, r, c) of Bs is kept.
__device__ __forceinline__ int Bs_at(int s, int r, int c) { return 572*s + 36*r + c; }

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

// Grid: 8 blocks of 128 threads; 27552 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(128, 1)
tsmttsm_c128_cn_m9_n12_three_1(int K, const double* __restrict__ A, const double* __restrict__ B,
    double* __restrict__ slice)
{
    let_next_launch_begin();
    const int tid = threadIdx.x;
    const int g = blockIdx.x;
    const int s = tid/32;
    __shared__ __align__(128) double As[1716];
    __shared__ __align__(128) double Bs[1716];

    double mine[1][1][3][2][4];
    #pragma unroll
    for (int p = 0; p < 3; ++p) {
        #pragma unroll
        for (int ni = 0; ni < 2; ++ni) {
            #pragma unroll
            for (int r = 0; r < 4; ++r) mine[0][0][p][ni][r] = 0.0;
        }
    }
    #pragma unroll
    for (int p = 0; p < 2; ++p) {
        if (p < (ceil_div(K, 16) - g + 7)/8) {
            if (128*p + 16*g + tid/16 + 8 < K) {
                #pragma unroll
                for (int u = 0; u < 2; ++u) {
                    cp_async16(&As[As_at(p, 8*u + tid/16, 2*(tid%16))],
                        &A[2304*p + 288*g + 144*u + 18*(tid/16) + 2*(tid%16)], -2*(tid%16) > -18 ? 2 : 0);
                }
            } else {
                const double* a = &A[2304*p + 288*g + 18*(tid/16) + 2*(tid%16)];
                #pragma unroll 1
                for (int u = 0; u < 2; ++u) {
                    cp_async16(&As[As_at(p, 8*u + tid/16, 2*(tid%16))], &a[0],
                        128*p + 16*g + 8*u + tid/16 < K && -2*(tid%16) > -18 ? 2 : 0);
                    a += 144;
                }
            }
            if (128*p + 16*g + tid/16 + 8 < K) {
                #pragma unroll
                for (int u = 0; u < 2; ++u) {
                    cp_async16(&Bs[Bs_at(p, 8*u + tid/16, 2*(tid%16))],
                        &B[3072*p + 384*g + 192*u + 24*(tid/16) + 2*(tid%16)], -2*(tid%16) > -24 ? 2 : 0);
                }
            } else {
                const double* b = &B[3072*p + 384*g + 24*(tid/16) + 2*(tid%16)];
                #pragma unroll 1
                for (int u = 0; u < 2; ++u) {
                    cp_async16(&Bs[Bs_at(p, 8*u + tid/16, 2*(tid%16))], &b[0],
                        128*p + 16*g + 8*u + tid/16 < K && -2*(tid%16) > -24 ? 2 : 0);
                    b += 192;
                }
            }
        }
        cp_async_commit();
    }
    const double* a = &A[288*g + 18*(tid/16) + 2*(tid%16) + 4608];
    const double* b = &B[384*g + 24*(tid/16) + 2*(tid%16) + 6144];
    for (int ko = 0; ko < (ceil_div(K, 16) - g + 7)/8; ++ko) {
        cp_async_wait<1>();
        __syncthreads();
        if (ko + 2 < (ceil_div(K, 16) - g + 7)/8) {
            if (128*ko + 16*g + tid/16 + 264 < K) {
                #pragma unroll
                for (int u = 0; u < 2; ++u) {
                    cp_async16(&As[As_at((ko + 2)%3, 8*u + tid/16, 2*(tid%16))], &a[144*u], -2*(tid%16) > -18
                        ? 2 : 0);
                }
            } else {
                #pragma unroll 1
                for (int u = 0; u < 2; ++u) {
                    cp_async16(&As[As_at((ko + 2)%3, 8*u + tid/16, 2*(tid%16))],
                        &A[2304*(long long)ko + 288*g + 144*u + 18*(tid/16) + 2*(tid%16) + 4608],
                            128*ko + 16*g + 8*u + tid/16 + 256 < K && -2*(tid%16) > -18 ? 2 : 0);
                }
            }
            if (128*ko + 16*g + tid/16 + 264 < K) {
                #pragma unroll
                for (int u = 0; u < 2; ++u) {
                    cp_async16(&Bs[Bs_at((ko + 2)%3, 8*u + tid/16, 2*(tid%16))], &b[192*u], -2*(tid%16) > -24
                        ? 2 : 0);
                }
            } else {
                #pragma unroll 1
                for (int u = 0; u < 2; ++u) {
                    cp_async16(&Bs[Bs_at((ko + 2)%3, 8*u + tid/16, 2*(tid%16))],
                        &B[3072*(long long)ko + 384*g + 192*u + 24*(tid/16) + 2*(tid%16) + 6144],
                            128*ko + 16*g + 8*u + tid/16 + 256 < K && -2*(tid%16) > -24 ? 2 : 0);
                }
            }
        }
        cp_async_commit();
        {
            double a2[3][2];
            double b2[3][2][1];
            #pragma unroll
            for (int p = 0; p < 3; ++p) {
                #pragma unroll
                for (int r = 0; r < 2; ++r) {
                    const int i = 8*r + tid%32/4;
                    const int k = tid%4;
                    a2[p][r] = p < 1 ? As[As_at(ko%3, 4*s + k, 2*i)] : p < 2
                        ? As[As_at(ko%3, 4*s + k, 2*i + 1)]
                            : As[As_at(ko%3, 4*s + k, 2*i)] - As[As_at(ko%3, 4*s + k, 2*i + 1)];
                }
            }
            #pragma unroll
            for (int p = 0; p < 3; ++p) {
                #pragma unroll
                for (int jo = 0; jo < 2; ++jo) {
                    #pragma unroll
                    for (int r = 0; r < 1; ++r) {
                        const int k = tid%4;
                        const int j = tid%32/4;
                        b2[p][jo][r] = p < 1 ? Bs[Bs_at(ko%3, 4*s + k, 16*jo + 2*j)] : p < 2
                            ? Bs[Bs_at(ko%3, 4*s + k, 16*jo + 2*j + 1)]
                                : Bs[Bs_at(ko%3, 4*s + k, 16*jo + 2*j)] + Bs[Bs_at(ko%3, 4*s + k,
                                    16*jo + 2*j + 1)];
                    }
                }
            }
            #pragma unroll
            for (int p = 0; p < 3; ++p) {
                #pragma unroll
                for (int ni = 0; ni < 2; ++ni) mma_m16n8k4_f64(mine[0][0][p][ni], a2[p], b2[p][ni]);
            }
        }
        a += 2304;
        b += 3072;
    }
    #pragma unroll
    for (int p = 0; p < 3; ++p) {
        #pragma unroll
        for (int jo = 0; jo < 2; ++jo) {
            #pragma unroll
            for (int r = 0; r < 2; ++r) {
                const int i = 8*r + tid%32/4;
                const int j = 2*(tid%4);
                if (i < 9 && 8*jo + j <= 10) {
                    *(double2*)&slice[2592*s + 324*g + 108*p + 12*i + 8*jo + j] =
                        make_double2(mine[0][0][p][jo][2*r], mine[0][0][p][jo][2*r + 1]);
                }
            }
        }
    }
}

// Grid: 9 blocks of 96 threads; 2304 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(96)
tsmttsm_c128_cn_m9_n12_three_2(double2 alpha, double2 beta, bool beta0, double2* __restrict__ C, int ldc,
    const double* slice)
{
    wait_for_launch_before();
    const int tid = threadIdx.x;
    const int i = blockIdx.x;
    __shared__ __align__(128) double sub[8][3][1][12];

    {
        const int t = tid/12;
        const int j = tid%12;
        double sum[1][3][1][1];
        #pragma unroll
        for (int p = 0; p < 3; ++p) {
            sum[0][p][0][0] = 0.0;
            double part = 0.0;
            #pragma unroll
            for (int s = 0; s < 4; ++s) part += slice[2592*s + 324*t + 108*p + 12*i + j];
            sum[0][p][0][0] += part;
        }
        #pragma unroll
        for (int p = 0; p < 3; ++p) sub[t][p][0][j] = sum[0][p][0][0];
    }
    __syncthreads();
    if (tid < 12) {
        double acc[3][1][1];
        #pragma unroll
        for (int p = 0; p < 3; ++p) {
            acc[p][0][0] = 0.0;
            #pragma unroll
            for (int t = 0; t < 8; ++t) acc[p][0][0] += sub[t][p][0][tid];
        }
        if (beta0) {
            C[(long long)i*ldc + tid] =
                cmul(alpha,
                    make_double2(acc[0][0][0] + acc[1][0][0], acc[2][0][0] - acc[0][0][0] + acc[1][0][0]));
        } else {
            C[(long long)i*ldc + tid] =
                cfma(alpha,
                    make_double2(acc[0][0][0] + acc[1][0][0], acc[2][0][0] - acc[0][0][0] + acc[1][0][0]),
                        cmul(beta, C[(long long)i*ldc + tid]));
        }
    }
}
