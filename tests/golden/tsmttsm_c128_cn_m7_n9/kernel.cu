// C = alpha op(A) op(B) + beta C

__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

// Copies 16 bytes to shared memory; the elements from `valid` on become zero and are not read.
template <class T> __device__ __forceinline__ void cp_async16(T* dst, const T* src, int valid) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(shared_address(dst)), "l"(src), "r"((int)sizeof(T)*valid) : "memory");
}

// Where element (s, r, c) of As is kept.
__device__ __forceinline__ int As_at(int s, int r, int c) { return 158*s + 10*r + c; }

// Where element (s, r, c) of Bs is kept.
__device__ __forceinline__ int Bs_at(int s, int r, int c) { return 286*s + 18*r + c; }

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

// d += conj(a) b: 8 x 8 += (8 x 4) (4 x 8), complex, real parts stacked on imaginary ones
__device__ __forceinline__ void mma_m8n8k4_c128_conj(double2 (&d)[2], const double2 (&a)[1], const double2 (&b)[1]) {
    double sums[4] = {d[0].x, d[1].x, d[0].y, d[1].y};
    const double by_u[2] = {a[0].x, -a[0].y}, u[1] = {b[0].x};
    const double by_v[2] = {a[0].y, a[0].x}, v[1] = {b[0].y};
    mma_m16n8k4_f64(sums, by_u, u);
    mma_m16n8k4_f64(sums, by_v, v);
    d[0] = make_double2(sums[0], sums[2]);
    d[1] = make_double2(sums[1], sums[3]);
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

// Grid: 8 blocks of 128 threads; 28416 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(128, 1)
tsmttsm_c128_cn_m7_n9_1(int K, const double2* __restrict__ A, const double2* __restrict__ B,
    double2* __restrict__ slice)
{
    let_next_launch_begin();
    const int tid = threadIdx.x;
    const int g = blockIdx.x;
    const int s = tid/32;
    __shared__ __align__(128) double2 As[632];
    __shared__ __align__(128) double2 Bs[1144];

    double2 mine[1][1][2][2];
    #pragma unroll
    for (int ni = 0; ni < 2; ++ni) {
        #pragma unroll
        for (int r = 0; r < 2; ++r) mine[0][0][ni][r] = make_double2(0.0, 0.0);
    }
    #pragma unroll
    for (int p = 0; p < 3; ++p) {
        if (p < (ceil_div(K, 16) - g + 7)/8) {
            if (128*p + 16*g + tid/8 < K) {
                cp_async16(&As[As_at(p, tid/8, tid%8)], &A[896*p + 112*g + 7*(tid/8) + tid%8], tid%8 < 7 ? 1
                    : 0);
            } else {
                cp_async16(&As[As_at(p, tid/8, tid%8)], &A[896*p + 112*g + 7*(tid/8) + tid%8],
                    128*p + 16*g + tid/8 < K && tid%8 < 7 ? 1 : 0);
            }
            if (128*p + 16*g + tid/16 + 8 < K) {
                #pragma unroll
                for (int u = 0; u < 2; ++u) {
                    cp_async16(&Bs[Bs_at(p, 8*u + tid/16, tid%16)],
                        &B[1152*p + 144*g + 72*u + 9*(tid/16) + tid%16], tid%16 < 9 ? 1 : 0);
                }
            } else {
                const double2* b = &B[1152*p + 144*g + 9*(tid/16) + tid%16];
                #pragma unroll 1
                for (int u = 0; u < 2; ++u) {
                    cp_async16(&Bs[Bs_at(p, 8*u + tid/16, tid%16)], &b[0], 128*p + 16*g + 8*u + tid/16 < K &&
                        tid%16 < 9 ? 1 : 0);
                    b += 72;
                }
            }
        }
        cp_async_commit();
    }
    const double2* a = &A[112*g + 7*(tid/8) + tid%8 + 2688];
    const double2* b = &B[144*g + 9*(tid/16) + tid%16 + 3456];
    for (int ko = 0; ko < (ceil_div(K, 16) - g + 7)/8; ++ko) {
        cp_async_wait<2>();
        __syncthreads();
        if (ko + 3 < (ceil_div(K, 16) - g + 7)/8) {
            if (128*ko + 16*g + tid/8 + 384 < K) {
                cp_async16(&As[As_at((ko + 3)%4, tid/8, tid%8)], &a[0], tid%8 < 7 ? 1 : 0);
            } else {
                cp_async16(&As[As_at((ko + 3)%4, tid/8, tid%8)], &a[0], 128*ko + 16*g + tid/8 + 384 < K &&
                    tid%8 < 7 ? 1 : 0);
            }
            if (128*ko + 16*g + tid/16 + 392 < K) {
                #pragma unroll
                for (int u = 0; u < 2; ++u) {
                    cp_async16(&Bs[Bs_at((ko + 3)%4, 8*u + tid/16, tid%16)], &b[72*u], tid%16 < 9 ? 1 : 0);
                }
            } else {
                #pragma unroll 1
                for (int u = 0; u < 2; ++u) {
                    cp_async16(&Bs[Bs_at((ko + 3)%4, 8*u + tid/16, tid%16)],
                        &B[1152*(long long)ko + 144*g + 72*u + 9*(tid/16) + tid%16 + 3456],
                            128*ko + 16*g + 8*u + tid/16 + 384 < K && tid%16 < 9 ? 1 : 0);
                }
            }
        }
        cp_async_commit();
        {
            double2 a2[1];
            double2 b2[2][1];
            #pragma unroll
            for (int r = 0; r < 1; ++r) {
                const int c = tid%32/4;
                const int r2 = tid%4;
                a2[r] = As[As_at(ko%4, 4*s + r2, c)];
            }
            #pragma unroll
            for (int co = 0; co < 2; ++co) {
                #pragma unroll
                for (int r = 0; r < 1; ++r) {
                    const int r2 = tid%4;
                    const int c = tid%32/4;
                    b2[co][r] = Bs[Bs_at(ko%4, 4*s + r2, 8*co + c)];
                }
            }
            #pragma unroll
            for (int ni = 0; ni < 2; ++ni) mma_m8n8k4_c128_conj(mine[0][0][ni], a2, b2[ni]);
        }
        a += 896;
        b += 1152;
    }
    #pragma unroll
    for (int jo = 0; jo < 2; ++jo) {
        #pragma unroll
        for (int r = 0; r < 2; ++r) {
            const int i = tid%32/4;
            const int j = 2*(tid%4) + r;
            if (i < 7 && 8*jo + j < 9) slice[504*s + 63*g + 9*i + 8*jo + j] = mine[0][0][jo][r];
        }
    }
}

// Grid: 7 blocks of 96 threads; 1152 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(96)
tsmttsm_c128_cn_m7_n9_2(double2 alpha, double2 beta, bool beta0, double2* __restrict__ C, int ldc,
    const double2* slice)
{
    wait_for_launch_before();
    const int tid = threadIdx.x;
    const int i = blockIdx.x;
    __shared__ __align__(128) double2 sub[8][1][9];

    if (tid < 72) {
        const int t = tid/9;
        const int j = tid%9;
        double2 sum = make_double2(0.0, 0.0);
        double2 part = make_double2(0.0, 0.0);
        #pragma unroll
        for (int s = 0; s < 4; ++s) part = cadd(part, slice[504*s + 63*t + 9*i + j]);
        sum = cadd(sum, part);
        sub[t][0][j] = sum;
    }
    __syncthreads();
    if (tid < 9) {
        double2 acc = make_double2(0.0, 0.0);
        #pragma unroll
        for (int t = 0; t < 8; ++t) acc = cadd(acc, sub[t][0][tid]);
        if (beta0) C[(long long)i*ldc + tid] = cmul(alpha, acc);
        else C[(long long)i*ldc + tid] = cfma(alpha, acc, cmul(beta, C[(long long)i*ldc + tid]));
    }
}
