// C = alpha op(A) op(B) + beta C

// x rounded to eleven bits, and 1024 times what is left of it, which is not finite if rounding x gives no finite number, unless
// x may be any number
template <bool Any, int N> __device__ __forceinline__ void split(const float (&x)[N], unsigned (&leading)[N], unsigned (&rest)[N]) {
    const float largest = __uint_as_float(0x7f7fe000u);
    #pragma unroll
    for (int i = 0; i < N; ++i) {
        const float finite = Any ? fminf(fmaxf(x[i], -largest), largest) : x[i];
#if __CUDA_ARCH__ >= 900
        asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(leading[i]) : "f"(finite));
#else
        leading[i] = (__float_as_uint(finite) + 0x1000u) & 0xffffe000u;
#endif
        rest[i] = __float_as_uint(1024.0f*(x[i] - __uint_as_float(leading[i])));
    }
}

// Numbers in parts: the leading ones first
__device__ __forceinline__ float2 in_parts(float x) {
    const float number[1] = {x};
    unsigned leading[1], rest[1];
    split<true>(number, leading, rest);
    return make_float2(__uint_as_float(leading[0]), __uint_as_float(rest[0]));
}
__device__ __forceinline__ float4 in_parts(float2 z) {
    const float2 re = in_parts(z.x), im = in_parts(z.y);
    return make_float4(re.x, im.x, re.y, im.y);
}

// Stores the parts of a number, so far apart
__device__ __forceinline__ void store_parts(float* p, int plane, float2 parts) { p[0] = parts.x; p[plane] = parts.y; }
__device__ __forceinline__ void store_parts(float* p, int plane, float4 parts) {
    p[0] = parts.x;
    p[plane] = parts.y;
    p[2*plane] = parts.z;
    p[3*plane] = parts.w;
}

__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

// Copies 16 bytes to shared memory.
template <class T> __device__ __forceinline__ void cp_async16(T* dst, const T* src) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                 :: "r"(shared_address(dst)), "l"(src) : "memory");
}

// Where element (w, s, r, c) of As is kept.
__device__ __forceinline__ int As_at(int w, int s, int r, int c) { return 1660*w + 830*s + 52*r + c; }

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

// d += sum + rest/1024, of numbers, complex ones, and arrays of either
__device__ __forceinline__ void add_parts(float& d, float sum, float rest) { d += fmaf(rest, 1.0f/1024, sum); }
__device__ __forceinline__ void add_parts(float2& d, float2 sum, float2 rest) {
    add_parts(d.x, sum.x, rest.x);
    add_parts(d.y, sum.y, rest.y);
}
template <typename T, int N> __device__ __forceinline__ void add_parts(T (&d)[N], const T (&sum)[N], const T (&rest)[N]) {
    #pragma unroll
    for (int i = 0; i < N; ++i) add_parts(d[i], sum[i], rest[i]);
}

// The parts of a complex number in shared memory, so far apart
__device__ __forceinline__ float4 load_parts_c64(const float* p, int plane) {
    return make_float4(p[0], p[plane], p[2*plane], p[3*plane]);
}

// d += a b: 16 x 8 += (16 x 8) (8 x 8), of which ten bits after the point are multiplied
__device__ __forceinline__ void mma_m16n8k8_tf32(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// sum += a0 b0, and rest += a1 b0 + a0 b1: 16 x 8 += (16 x 8) (8 x 8)
__device__ __forceinline__ void multiply_parts(float (&sum)[4], float (&rest)[4], const unsigned (&a0)[4], const unsigned (&a1)[4], const unsigned (&b0)[2], const unsigned (&b1)[2]) {
    mma_m16n8k8_tf32(rest, a1, b0);
    mma_m16n8k8_tf32(rest, a0, b1);
    mma_m16n8k8_tf32(sum, a0, b0);
}

// sum + rest/1024 += a b: 16 x 8 += (16 x 8) (8 x 8), complex, each product of real parts of three of tf32 parts, those of b as they are stored
template <bool Any> __device__ __forceinline__ void mma_m16n8k8_c64(float2 (&sum)[4], float2 (&rest)[4], const float2 (&a)[4], const float4 (&b)[2]) {
    float x[4], y[4], re[4], im[4], rest_of_re[4], rest_of_im[4];
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
        x[i] = a[i].x; y[i] = a[i].y;
        re[i] = sum[i].x; im[i] = sum[i].y;
        rest_of_re[i] = rest[i].x; rest_of_im[i] = rest[i].y;
    }
    // m is -y.
    unsigned x0[4], x1[4], y0[4], y1[4], m0[4], m1[4], u0[2], u1[2], v0[2], v1[2];
    split<Any>(x, x0, x1);
    split<Any>(y, y0, y1);
    #pragma unroll
    for (int i = 0; i < 2; ++i) {
        u0[i] = __float_as_uint(b[i].x); v0[i] = __float_as_uint(b[i].y);
        u1[i] = __float_as_uint(b[i].z); v1[i] = __float_as_uint(b[i].w);
    }
    #pragma unroll
    for (int i = 0; i < 4; ++i) { m0[i] = y0[i] ^ 0x80000000u; m1[i] = y1[i] ^ 0x80000000u; }
    multiply_parts(re, rest_of_re, x0, x1, u0, u1);
    multiply_parts(im, rest_of_im, x0, x1, v0, v1);
    multiply_parts(re, rest_of_re, m0, m1, v0, v1);
    multiply_parts(im, rest_of_im, y0, y1, u0, u1);
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
        sum[i] = make_float2(re[i], im[i]);
        rest[i] = make_float2(rest_of_re[i], rest_of_im[i]);
    }
}

// Where element (w, r, c) of acc is kept.
__device__ __forceinline__ int acc_at(int w, int r, int c) { return 888*w + 56*r + c; }

__device__ __forceinline__ float2 cmul(float2 a, float2 b) {
    return make_float2(a.x*b.x - a.y*b.y, a.x*b.y + a.y*b.x);
}

// a b + c in four fused multiply-adds
__device__ __forceinline__ float2 cfma(float2 a, float2 b, float2 c) {
    return make_float2(fmaf(-a.y, b.y, fmaf(a.x, b.x, c.x)), fmaf(a.y, b.x, fmaf(a.x, b.y, c.y)));
}

// Grid: 8 blocks of 128 threads; 131712 bytes of dynamic shared memory.
extern "C" __global__ void __launch_bounds__(128, 1)
tsmm_c64_nn_n48_k50(int M, float2 alpha, float2 beta, bool beta0, bool alpha1, const float2* __restrict__ A,
    const float2* __restrict__ B, int ldb, float2* __restrict__ C)
{
    const int tid = threadIdx.x;
    const int g = blockIdx.x;
    const int t = tid%32;
    extern __shared__ __align__(1024) unsigned char smem[];
    auto& Bs = *(float (*)[4][56][56])(smem + 0);
    float2* const As = (float2*)(smem + 50176);
    float2* const acc = (float2*)(smem + 103296);

    if (tid < 96) {
        const int r = tid/48;
        const int c = tid%48;
        for (int b = 0; b < 2; ++b) {
            #pragma unroll
            for (int u = 0; u < 14; ++u) {
                store_parts(&Bs[0][28*b + 2*u + r][c], 3136,
                    in_parts(28*b + 2*u + r < 50 ? B[(long long)(28*b + 2*u + r)*ldb + c]
                        : make_float2(0.0f, 0.0f)));
            }
        }
    }
    __syncthreads();
    {
        const int w = tid/32;
        if (ceil_div(ceil_div(M, 16), 32) > 0) {
            if (64*g + 16*w + (t + 9)/25 + 15 < M) {
                #pragma unroll
                for (int u = 0; u < 13; ++u) {
                    if (u < 12 || t < 16) {
                        cp_async16(&As[As_at(w, 0, (32*u + t)/25, 2*((7*u + t)%25))],
                            &A[3200*g + 800*w + 64*u + 2*t]);
                    }
                }
            } else {
                const float2* a = &A[3200*g + 800*w + 2*t];
                #pragma unroll 1
                for (int u = 0; u < 13; ++u) {
                    if (32*u + t < 400) {
                        cp_async16(&As[As_at(w, 0, (32*u + t)/25, 2*((7*u + t)%25))], &a[0],
                            64*g + 16*w + (32*u + t)/25 < M ? 2 : 0);
                    }
                    a += 64;
                }
            }
        }
        cp_async_commit();
        const float2* a = &A[3200*g + 800*w + 2*(tid%32) + 25600];
        int slot = 0;
        for (int blk = 0; blk < ceil_div(ceil_div(M, 16), 32); ++blk) {
            cp_async_wait<0>();
            __syncwarp();
            if (blk + 1 < ceil_div(ceil_div(M, 16), 32)) {
                if (512*blk + 64*g + 16*w + (t + 9)/25 + 527 < M) {
                    #pragma unroll
                    for (int u = 0; u < 13; ++u) {
                        if (u < 12 || t < 16) {
                            cp_async16(&As[As_at(w, 1 - slot, (32*u + t)/25, 2*((7*u + t)%25))], &a[64*u]);
                        }
                    }
                } else {
                    #pragma unroll 1
                    for (int u = 0; u < 13; ++u) {
                        if (32*u + t < 400) {
                            cp_async16(&As[As_at(w, 1 - slot, (32*u + t)/25, 2*((7*u + t)%25))],
                                &A[25600*(long long)blk + 3200*g + 800*w + 64*u + 2*t + 25600],
                                    512*blk + 64*g + 16*w + (32*u + t)/25 + 512 < M ? 2 : 0);
                        }
                    }
                }
            }
            cp_async_commit();
            {
                float2 mine[6][4] = {};
                {
                    float2 mine_sum[6][4] = {};
                    float2 mine_rest[6][4] = {};
                    #pragma unroll
                    for (int ks = 0; ks < 7; ++ks) {
                        float2 a2[4];
                        float4 b[6][2];
                        #pragma unroll
                        for (int r = 0; r < 4; ++r) {
                            const int r2 = 8*(r%2) + tid%32/4;
                            const int c = 4*(r/2) + tid%4;
                            a2[r] = 8*ks + c < 50 ? As[As_at(w, slot, r2, 8*ks + c)]
                                : make_float2(0.0f, 0.0f);
                        }
                        #pragma unroll
                        for (int co = 0; co < 6; ++co) {
                            #pragma unroll
                            for (int r = 0; r < 2; ++r) {
                                const int r2 = 4*r + tid%4;
                                const int c = tid%32/4;
                                b[co][r] = load_parts_c64(&Bs[0][8*ks + r2][8*co + c], 3136);
                            }
                        }
                        #pragma unroll
                        for (int ni = 0; ni < 6; ++ni) {
                            mma_m16n8k8_c64<true>(mine_sum[ni], mine_rest[ni], a2, b[ni]);
                        }
                    }
                    add_parts(mine, mine_sum, mine_rest);
                }
                #pragma unroll
                for (int jo = 0; jo < 6; ++jo) {
                    #pragma unroll
                    for (int r = 0; r < 4; ++r) {
                        const int i = 8*(r/2) + tid%32/4;
                        const int j = 2*(tid%4) + r%2;
                        acc[acc_at(w, i, 8*jo + j)] = 512*blk + 64*g + 16*w + i < M ? mine[jo][r]
                            : make_float2(0.0f, 0.0f);
                    }
                }
            }
            __syncwarp();
            if (512*blk + 64*g + 16*w + (t + 16)/24 + 14 < M && 32*blk + 4*g + w < ceil_div(M, 16)) {
                #pragma unroll
                for (int u = 0; u < 12; ++u) {
                    if (beta0) {
                        if (alpha1) {
                            *(float4*)&C[24576*(long long)blk + 3072*g + 768*w + 64*u + 2*t] =
                                *(const float4*)&acc[acc_at(w, (32*u + t)/24, 2*((8*u + t)%24))];
                        } else {
                            {
                                const float4 acc2 =
                                    *(const float4*)&acc[acc_at(w, (32*u + t)/24, 2*((8*u + t)%24))];
                                const float2 z = cmul(alpha, make_float2(acc2.x, acc2.y));
                                const float2 z2 = cmul(alpha, make_float2(acc2.z, acc2.w));
                                *(float4*)&C[24576*(long long)blk + 3072*g + 768*w + 64*u + 2*t] =
                                    make_float4(z.x, z.y, z2.x, z2.y);
                            }
                        }
                    } else {
                        {
                            const float4 acc2 =
                                *(const float4*)&acc[acc_at(w, (32*u + t)/24, 2*((8*u + t)%24))];
                            const float4 c =
                                *(const float4*)&C[24576*(long long)blk + 3072*g + 768*w + 64*u + 2*t];
                            const float2 z =
                                cfma(alpha, make_float2(acc2.x, acc2.y), cmul(beta, make_float2(c.x, c.y)));
                            const float2 z2 =
                                cfma(alpha, make_float2(acc2.z, acc2.w), cmul(beta, make_float2(c.z, c.w)));
                            *(float4*)&C[24576*(long long)blk + 3072*g + 768*w + 64*u + 2*t] =
                                make_float4(z.x, z.y, z2.x, z2.y);
                        }
                    }
                }
            } else {
                #pragma unroll 1
                for (int u = 0; u < 12; ++u) {
                    if (512*blk + 64*g + 16*w + (32*u + t)/24 + 1 <= M &&
                        32*blk + 4*g + w < ceil_div(M, 16)) {
                        if (beta0) {
                            if (alpha1) {
                                *(float4*)&C[24576*(long long)blk + 3072*g + 768*w + 64*u + 2*t] =
                                    *(const float4*)&acc[acc_at(w, (32*u + t)/24, 2*((8*u + t)%24))];
                            } else {
                                {
                                    const float4 acc2 =
                                        *(const float4*)&acc[acc_at(w, (32*u + t)/24, 2*((8*u + t)%24))];
                                    const float2 z = cmul(alpha, make_float2(acc2.x, acc2.y));
                                    const float2 z2 = cmul(alpha, make_float2(acc2.z, acc2.w));
                                    *(float4*)&C[24576*(long long)blk + 3072*g + 768*w + 64*u + 2*t] =
                                        make_float4(z.x, z.y, z2.x, z2.y);
                                }
                            }
                        } else {
                            {
                                const float4 acc2 =
                                    *(const float4*)&acc[acc_at(w, (32*u + t)/24, 2*((8*u + t)%24))];
                                const float4 c =
                                    *(const float4*)&C[24576*(long long)blk + 3072*g + 768*w + 64*u + 2*t];
                                const float2 z =
                                    cfma(alpha, make_float2(acc2.x, acc2.y),
                                        cmul(beta, make_float2(c.x, c.y)));
                                const float2 z2 =
                                    cfma(alpha, make_float2(acc2.z, acc2.w),
                                        cmul(beta, make_float2(c.z, c.w)));
                                *(float4*)&C[24576*(long long)blk + 3072*g + 768*w + 64*u + 2*t] =
                                    make_float4(z.x, z.y, z2.x, z2.y);
                            }
                        }
                    }
                }
            }
            a += 25600;
            slot = 1 - slot;
        }
    }
}
