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

// d += a b: 8 x 8 += (8 x 4) (4 x 8), complex, real parts stacked on imaginary ones
__device__ __forceinline__ void mma_m8n8k4_c128(double2 (&d)[2], const double2 (&a)[1], const double2 (&b)[1]) {
    double sums[4] = {d[0].x, d[1].x, d[0].y, d[1].y};
    const double by_u[2] = {a[0].x, a[0].y}, u[1] = {b[0].x};
    const double by_v[2] = {-a[0].y, a[0].x}, v[1] = {b[0].y};
    mma_m16n8k4_f64(sums, by_u, u);
    mma_m16n8k4_f64(sums, by_v, v);
    d[0] = make_double2(sums[0], sums[2]);
    d[1] = make_double2(sums[1], sums[3]);
}

__device__ __forceinline__ double2 cmul(double2 a, double2 b) {
    return make_double2(a.x*b.x - a.y*b.y, a.x*b.y + a.y*b.x);
}

// a b + c in four fused multiply-adds
__device__ __forceinline__ double2 cfma(double2 a, double2 b, double2 c) {
    return make_double2(fma(-a.y, b.y, fma(a.x, b.x, c.x)), fma(a.y, b.x, fma(a.x, b.y, c.y)));
}

// Grid: 8 blocks of 128 threads; 22368 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(128, 1)
tsmm_c128_nn_n12_k12(int M, double2 alpha, double2 beta, bool beta0, bool alpha1,
    const double2* __restrict__ A, const double2* __restrict__ B, int ldb, double2* __restrict__ C)
{
    const int tid = threadIdx.x;
    const int g = blockIdx.x;
    __shared__ __align__(128) double2 acc[32][13];
    __shared__ __align__(128) double2 As[2][32][12];
    __shared__ __align__(128) double2 Bs[12][18];

    {
        const int r = tid/16;
        const int c = tid%16;
        const double2* b = &B[(long long)r*ldb + c];
        #pragma unroll
        for (int u = 0; u < 2; ++u) {
            if (u < 1 || r < 4) Bs[8*u + r][c] = c < 12 ? b[(long long)(8*u)*ldb] : make_double2(0.0, 0.0);
        }
    }
    if (ceil_div(ceil_div(M, 32), 8) > 0) {
        if (32*g + (tid + 4)/12 + 21 < M) {
            #pragma unroll
            for (int u = 0; u < 3; ++u) cp_async16(&(&As[0][0][0])[128*u + tid], &A[384*g + 128*u + tid]);
        } else {
            const double2* a = &A[384*g + tid];
            #pragma unroll 1
            for (int u = 0; u < 3; ++u) {
                cp_async16(&(&As[0][0][0])[128*u + tid], &a[0], 32*g + (128*u + tid)/12 < M ? 1 : 0);
                a += 128;
            }
        }
    }
    cp_async_commit();
    const double2* a = &A[384*g + tid + 3072];
    int slot = 0;
    for (int blk = 0; blk < ceil_div(ceil_div(M, 32), 8); ++blk) {
        cp_async_wait<0>();
        __syncthreads();
        if (blk + 1 < ceil_div(ceil_div(M, 32), 8)) {
            if (256*blk + 32*g + (tid + 4)/12 + 277 < M) {
                #pragma unroll
                for (int u = 0; u < 3; ++u) cp_async16(&(&As[1 - slot][0][0])[128*u + tid], &a[128*u]);
            } else {
                #pragma unroll 1
                for (int u = 0; u < 3; ++u) {
                    cp_async16(&(&As[1 - slot][0][0])[128*u + tid],
                        &A[3072*(long long)blk + 384*g + 128*u + tid + 3072],
                            256*blk + 32*g + (128*u + tid)/12 + 256 < M ? 1 : 0);
                }
            }
        }
        cp_async_commit();
        {
            const int wm = tid/32;
            double2 mine[2][2] = {};
            #pragma unroll
            for (int ks = 0; ks < 3; ++ks) {
                double2 a2[1];
                double2 b[2][1];
                #pragma unroll
                for (int r = 0; r < 1; ++r) {
                    const int r2 = tid%32/4;
                    const int c = tid%4;
                    a2[r] = As[slot][8*wm + r2][4*ks + c];
                }
                #pragma unroll
                for (int co = 0; co < 2; ++co) {
                    #pragma unroll
                    for (int r = 0; r < 1; ++r) {
                        const int r2 = tid%4;
                        const int c = tid%32/4;
                        b[co][r] = Bs[4*ks + r2][8*co + c];
                    }
                }
                #pragma unroll
                for (int ni = 0; ni < 2; ++ni) mma_m8n8k4_c128(mine[ni], a2, b[ni]);
            }
            #pragma unroll
            for (int jo = 0; jo < 2; ++jo) {
                #pragma unroll
                for (int r = 0; r < 2; ++r) {
                    const int i = tid%32/4;
                    const int j = 2*(tid%4) + r;
                    if (jo < 1 || j < 4) {
                        acc[8*wm + i][8*jo + j] = 256*blk + 32*g + 8*wm + i < M ? mine[jo][r]
                            : make_double2(0.0, 0.0);
                    }
                }
            }
        }
        __syncthreads();
        if (256*blk + 32*g + (tid + 4)/12 + 21 < M && 8*blk + g < ceil_div(M, 32)) {
            #pragma unroll
            for (int u = 0; u < 3; ++u) {
                if (beta0) {
                    if (alpha1) {
                        C[3072*(long long)blk + 384*g + 128*u + tid] = acc[(128*u + tid)/12][(8*u + tid)%12];
                    } else {
                        C[3072*(long long)blk + 384*g + 128*u + tid] =
                            cmul(alpha, acc[(128*u + tid)/12][(8*u + tid)%12]);
                    }
                } else {
                    C[3072*(long long)blk + 384*g + 128*u + tid] =
                        cfma(alpha, acc[(128*u + tid)/12][(8*u + tid)%12],
                            cmul(beta, C[3072*(long long)blk + 384*g + 128*u + tid]));
                }
            }
        } else {
            #pragma unroll 1
            for (int u = 0; u < 3; ++u) {
                if (256*blk + 32*g + (128*u + tid)/12 < M && 8*blk + g < ceil_div(M, 32)) {
                    if (beta0) {
                        if (alpha1) {
                            C[3072*(long long)blk + 384*g + 128*u + tid] =
                                acc[(128*u + tid)/12][(8*u + tid)%12];
                        } else {
                            C[3072*(long long)blk + 384*g + 128*u + tid] =
                                cmul(alpha, acc[(128*u + tid)/12][(8*u + tid)%12]);
                        }
                    } else {
                        C[3072*(long long)blk + 384*g + 128*u + tid] =
                            cfma(alpha, acc[(128*u + tid)/12][(8*u + tid)%12],
                                cmul(beta, C[3072*(long long)blk + 384*g + 128*u + tid]));
                    }
                }
            }
        }
        a += 3072;
        slot = 1 - slot;
    }
}
