// C = alpha op(A) op(B) + beta C

__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

// Copies 16 bytes to shared memory; the elements from `valid` on become zero and are not read.
template <class T> __device__ __forceinline__ void cp_async16(T* dst, const T* src, int valid) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(shared_address(dst)), "l"(src), "r"((int)sizeof(T)*valid) : "memory");
}

// Where element (s, r, c) of As is kept.
__device__ __forceinline__ int As_at(int s, int r, int c) { return 542*s + 34*r + c; }

// Where element (s, r, c) of Bs is kept.
__device__ __forceinline__ int Bs_at(int s, int r, int c) { return 414*s + 26*r + c; }

__device__ __forceinline__ int ceil_div(int a, int b) { return (a + b - 1)/b; }
__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits for all but the last N groups of this thread's cp.async copies.
template <int N> __device__ __forceinline__ void cp_async_wait() {
    asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory");
}

// Loads the parts of a number in shared memory one by one, so that each may go where an instruction wants it.
__device__ __forceinline__ double2 load_parts(const double2* p) {
    double2 v;
    asm volatile("ld.volatile.shared.f64 %0, [%2];\n\tld.volatile.shared.f64 %1, [%2 + 8];"
                 : "=d"(v.x), "=d"(v.y) : "r"(shared_address(p)));
    return v;
}

// d += a b: 16 x 8 += (16 x 4) (4 x 8)
__device__ __forceinline__ void mma_m16n8k4_f64(double (&d)[4], const double (&a)[2], const double (&b)[1]) {
    asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
        : "d"(a[0]), "d"(a[1]),
          "d"(b[0]));
}

// d += conj(a) b: 16 x 8 += (16 x 4) (4 x 8), complex, by four products of real and imaginary parts
__device__ __forceinline__ void mma_m16n8k4_c128_conj(double2 (&d)[4], const double2 (&a)[2], const double2 (&b)[1]) {
    double re[4], im[4], ax[2], ay[2], minus[2], bx[1], by[1];
    #pragma unroll
    for (int i = 0; i < 4; ++i) { re[i] = d[i].x; im[i] = d[i].y; }
    #pragma unroll
    for (int i = 0; i < 2; ++i) { ax[i] = a[i].x; ay[i] = a[i].y; minus[i] = -a[i].y; }
    #pragma unroll
    for (int i = 0; i < 1; ++i) { bx[i] = b[i].x; by[i] = b[i].y; }
    mma_m16n8k4_f64(re, ax, bx);
    mma_m16n8k4_f64(im, ax, by);
    mma_m16n8k4_f64(re, ay, by);
    mma_m16n8k4_f64(im, minus, bx);
    #pragma unroll
    for (int i = 0; i < 4; ++i) d[i] = make_double2(re[i], im[i]);
}

// Lets the blocks of the next launch, which waits for this one itself, take what room there is.
__device__ __forceinline__ void let_next_launch_begin() {
    asm volatile("griddepcontrol.launch_dependents;");
}

__device__ __forceinline__ double2 cadd(double2 a, double2 b) { return make_double2(a.x + b.x, a.y + b.y); }

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

// Grid: 8 blocks of 128 threads; 45984 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(128, 1)
tsmttsm_c128_cn_m20_n20_1(int K, const double2* __restrict__ A, const double2* __restrict__ B,
    double2* __restrict__ slice)
{
    let_next_launch_begin();
    const int tid = threadIdx.x;
    const int g = blockIdx.x;
    const int s = tid/32;
    __shared__ __align__(128) double2 As[1626];
    __shared__ __align__(128) double2 Bs[1242];

    double2 mine[1][1][2][3][4];
    #pragma unroll
    for (int mi = 0; mi < 2; ++mi) {
        #pragma unroll
        for (int ni = 0; ni < 3; ++ni) {
            #pragma unroll
            for (int r = 0; r < 4; ++r) mine[0][0][mi][ni][r] = make_double2(0.0, 0.0);
        }
    }
    #pragma unroll
    for (int p = 0; p < 2; ++p) {
        if (p < (ceil_div(K, 16) - g + 7)/8) {
            if (128*p + 16*g + tid/32 + 12 < K) {
                #pragma unroll
                for (int u = 0; u < 4; ++u) {
                    cp_async16(&As[As_at(p, 4*u + tid/32, tid%32)],
                        &A[2560*p + 320*g + 80*u + 20*(tid/32) + tid%32], tid%32 < 20 ? 1 : 0);
                }
            } else {
                const double2* a = &A[2560*p + 320*g + 20*(tid/32) + tid%32];
                #pragma unroll 1
                for (int u = 0; u < 4; ++u) {
                    cp_async16(&As[As_at(p, 4*u + tid/32, tid%32)], &a[0], 128*p + 16*g + 4*u + tid/32 < K &&
                        tid%32 < 20 ? 1 : 0);
                    a += 80;
                }
            }
            if (128*p + 16*g + (tid + 16)/24 + 10 < K) {
                #pragma unroll
                for (int u = 0; u < 3; ++u) {
                    cp_async16(&Bs[Bs_at(p, (128*u + tid)/24, (8*u + tid)%24)],
                        &B[2560*p + 320*g + 20*((128*u + tid)/24) + (8*u + tid)%24], (8*u + tid)%24 < 20 ? 1
                            : 0);
                }
            } else {
                #pragma unroll 1
                for (int u = 0; u < 3; ++u) {
                    cp_async16(&Bs[Bs_at(p, (128*u + tid)/24, (8*u + tid)%24)],
                        &B[2560*p + 320*g + 20*((128*u + tid)/24) + (8*u + tid)%24],
                            128*p + 16*g + (128*u + tid)/24 < K && (8*u + tid)%24 < 20 ? 1 : 0);
                }
            }
        }
        cp_async_commit();
    }
    const double2* a = &A[320*g + 20*(tid/32) + tid%32 + 5120];
    const double2* b = &B[320*g + 5120];
    for (int ko = 0; ko < (ceil_div(K, 16) - g + 7)/8; ++ko) {
        cp_async_wait<1>();
        __syncthreads();
        if (ko + 2 < (ceil_div(K, 16) - g + 7)/8) {
            if (128*ko + 16*g + tid/32 + 268 < K) {
                #pragma unroll
                for (int u = 0; u < 4; ++u) {
                    cp_async16(&As[As_at((ko + 2)%3, 4*u + tid/32, tid%32)], &a[80*u], tid%32 < 20 ? 1 : 0);
                }
            } else {
                #pragma unroll 1
                for (int u = 0; u < 4; ++u) {
                    cp_async16(&As[As_at((ko + 2)%3, 4*u + tid/32, tid%32)],
                        &A[2560*(long long)ko + 320*g + 80*u + 20*(tid/32) + tid%32 + 5120],
                            128*ko + 16*g + 4*u + tid/32 + 256 < K && tid%32 < 20 ? 1 : 0);
                }
            }
            if (128*ko + 16*g + (tid + 16)/24 + 266 < K) {
                #pragma unroll
                for (int u = 0; u < 3; ++u) {
                    cp_async16(&Bs[Bs_at((ko + 2)%3, (128*u + tid)/24, (8*u + tid)%24)],
                        &B[2560*(long long)ko + 320*g + 20*((128*u + tid)/24) + (8*u + tid)%24 + 5120],
                            (8*u + tid)%24 < 20 ? 1 : 0);
                }
            } else {
                #pragma unroll 1
                for (int u = 0; u < 3; ++u) {
                    cp_async16(&Bs[Bs_at((ko + 2)%3, (128*u + tid)/24, (8*u + tid)%24)],
                        &B[2560*(long long)ko + 320*g + 20*((128*u + tid)/24) + (8*u + tid)%24 + 5120],
                            128*ko + 16*g + (128*u + tid)/24 + 256 < K && (8*u + tid)%24 < 20 ? 1 : 0);
                }
            }
        }
        cp_async_commit();
        {
            double2 a2[2][2];
            double2 b2[3][1];
            #pragma unroll
            for (int co = 0; co < 2; ++co) {
                #pragma unroll
                for (int r = 0; r < 2; ++r) {
                    const int c = 8*r + tid%32/4;
                    const int r2 = tid%4;
                    a2[co][r] = load_parts(&As[As_at(ko%3, 4*s + r2, 16*co + c)]);
                }
            }
            #pragma unroll
            for (int co = 0; co < 3; ++co) {
                #pragma unroll
                for (int r = 0; r < 1; ++r) {
                    const int r2 = tid%4;
                    const int c = tid%32/4;
                    b2[co][r] = Bs[Bs_at(ko%3, 4*s + r2, 8*co + c)];
                }
            }
            #pragma unroll
            for (int mi = 0; mi < 2; ++mi) {
                #pragma unroll
                for (int ni = 0; ni < 3; ++ni) mma_m16n8k4_c128_conj(mine[0][0][mi][ni], a2[mi], b2[ni]);
            }
        }
        a += 2560;
        b += 2560;
    }
    #pragma unroll
    for (int io = 0; io < 2; ++io) {
        #pragma unroll
        for (int jo = 0; jo < 3; ++jo) {
            #pragma unroll
            for (int r = 0; r < 4; ++r) {
                const int i = 8*(r/2) + tid%32/4;
                const int j = 2*(tid%4) + r%2;
                if (16*io + i < 20 && 8*jo + j < 20) {
                    slice[3200*s + 400*g + 320*io + 20*i + 8*jo + j] = mine[0][0][io][jo][r];
                }
            }
        }
    }
}

// Grid: 20 blocks of 160 threads; 2560 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(160)
tsmttsm_c128_cn_m20_n20_2(double2 alpha, double2 beta, bool beta0, double2* __restrict__ C, int ldc,
    const double2* slice)
{
    wait_for_launch_before();
    const int tid = threadIdx.x;
    const int i = blockIdx.x;
    __shared__ __align__(128) double2 sub[8][1][20];

    {
        const int t = tid/20;
        const int j = tid%20;
        double2 sum = make_double2(0.0, 0.0);
        double2 part = make_double2(0.0, 0.0);
        #pragma unroll
        for (int s = 0; s < 4; ++s) part = cadd(part, slice[3200*s + 400*t + 20*i + j]);
        sum = cadd(sum, part);
        sub[t][0][j] = sum;
    }
    __syncthreads();
    if (tid < 20) {
        double2 acc = make_double2(0.0, 0.0);
        #pragma unroll
        for (int t = 0; t < 8; ++t) acc = cadd(acc, sub[t][0][tid]);
        if (beta0) C[(long long)i*ldc + tid] = cmul(alpha, acc);
        else C[(long long)i*ldc + tid] = cfma(alpha, acc, cmul(beta, C[(long long)i*ldc + tid]));
    }
}
