// C = alpha op(A) op(B) + beta C

__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

typedef unsigned long long mbarrier;

__device__ __forceinline__ void mbarrier_init(mbarrier* bar, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(shared_address(bar)), "r"(arrivals) : "memory");
}

// Makes initialised barriers visible to bulk copies.
__device__ __forceinline__ void mbarrier_init_fence() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// One thread of a warp copies so many bytes to shared memory, which are reported to a barrier.
template <int BYTES> __device__ __forceinline__ void bulk_copy(void* dst, const void* src, mbarrier* bar) {
    if (threadIdx.x % 32 == 0) {
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                     :: "r"(shared_address(dst)), "l"(src), "r"(BYTES), "r"(shared_address(bar)) : "memory");
    }
}

// The same where only so many bytes are there: the warp stores zeros in the place of the others. What is left over of 16
// bytes a thread copies itself; bytes that no copy brings are reported as if one had.
template <int BYTES>
__device__ __forceinline__ void bulk_copy_part(char* dst, const char* src, int there, mbarrier* bar) {
    const int lane = threadIdx.x % 32, pieces = there & ~15;
    #pragma unroll 1
    for (int i = pieces + 16 * lane; i < BYTES; i += 512) *(uint4*)(dst + i) = make_uint4(0, 0, 0, 0);
    __syncwarp();
    if (lane == 0) {
        #pragma unroll 1
        for (int i = pieces; i < there; i += 4) *(unsigned*)(dst + i) = *(const unsigned*)(src + i);
        if (pieces) {
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                         :: "r"(shared_address(dst)), "l"(src), "r"(pieces), "r"(shared_address(bar)) : "memory");
        }
        asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], %1;"
                     :: "r"(shared_address(bar)), "r"(BYTES - pieces) : "memory");
    }
}

template <int BYTES, class T>
__device__ __forceinline__ void bulk_copy(T* dst, const T* src, long long valid, mbarrier* bar) {
    if ((int)sizeof(T)*valid == BYTES) bulk_copy<BYTES>(dst, src, bar);
    else bulk_copy_part<BYTES>((char*)dst, (const char*)src, (int)sizeof(T)*(int)valid, bar);
}

// Arrives, and lets the phase also wait for `bytes` of bulk copies.
__device__ __forceinline__ void mbarrier_arrive_expect(mbarrier* bar, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;"
                 :: "r"(shared_address(bar)), "r"(bytes) : "memory");
}

__device__ __forceinline__ int ceil_div(int a, int b) { return (a + b - 1)/b; }

// Makes this thread's writes to shared memory visible to bulk copies and wgmma.
__device__ __forceinline__ void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Waits until the phase of this parity is complete.
__device__ __forceinline__ void mbarrier_wait(mbarrier* bar, int parity) {
    asm volatile("{\n.reg .pred done;\n"
                 "again:\nmbarrier.try_wait.parity.acquire.cta.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n}" :: "r"(shared_address(bar)), "r"(parity) : "memory");
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

// 0 if this is finite, and no number else. Of tiles of 16 x 8 numbers, if no row and no column has any that is not finite in all of it: the
// first and the last of a lane's four are looked at, which are in every row and in every column. In f32 each adds to a zero of its own, so
// that they need not wait for one another; complex ones have more to do meanwhile, and are short of registers.
__device__ __forceinline__ void look_at(const float (&x)[4], float2& zero) {
    zero.x = fmaf(0.0f, x[0], zero.x);
    zero.y = fmaf(0.0f, x[3], zero.y);
}
__device__ __forceinline__ void look_at(const float2 (&z)[4], float2& zero) {
    zero.x = fmaf(0.0f, z[0].x, fmaf(0.0f, z[0].y, fmaf(0.0f, z[3].x, fmaf(0.0f, z[3].y, zero.x))));
}
template <typename T, int N> __device__ __forceinline__ void look_at(const T (&x)[N], float2& zero) {
    #pragma unroll
    for (int i = 0; i < N; ++i) look_at(x[i], zero);
}
template <typename T> __device__ __forceinline__ float zero_if_finite(const T& x) {
    float2 zero = make_float2(0.0f, 0.0f);
    look_at(x, zero);
    return zero.x + zero.y;
}

// d += a b: 16 x 8 += (16 x 8) (8 x 8), of which ten bits after the point are multiplied
__device__ __forceinline__ void mma_m16n8k8_tf32(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

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

// sum += a0 b0, and rest += a1 b0 + a0 b1: 16 x 8 += (16 x 8) (8 x 8)
__device__ __forceinline__ void multiply_parts(float (&sum)[4], float (&rest)[4], const unsigned (&a0)[4], const unsigned (&a1)[4], const unsigned (&b0)[2], const unsigned (&b1)[2]) {
    mma_m16n8k8_tf32(rest, a1, b0);
    mma_m16n8k8_tf32(rest, a0, b1);
    mma_m16n8k8_tf32(sum, a0, b0);
}

// sum + rest/1024 += a b: 16 x 8 += (16 x 8) (8 x 8), each product of three of tf32 parts
template <bool Any> __device__ __forceinline__ void mma_m16n8k8_f32(float (&sum)[4], float (&rest)[4], const float (&a)[4], const float (&b)[2]) {
    unsigned a0[4], a1[4], b0[2], b1[2];
    split<Any>(a, a0, a1);
    split<Any>(b, b0, b1);
    multiply_parts(sum, rest, a0, a1, b0, b1);
}

// Lets the blocks of the next launch, which waits for this one itself, take what room there is.
__device__ __forceinline__ void let_next_launch_begin() {
    asm volatile("griddepcontrol.launch_dependents;");
}

// Waits until the launch before this one has ended and what it wrote can be read.
__device__ __forceinline__ void wait_for_launch_before() {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

// Grid: 8 blocks of 128 threads; 27056 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(128, 1)
tsmttsm_f32_tn_m17_n9_1(int K, const float* __restrict__ A, const float* __restrict__ B,
    float* __restrict__ slice)
{
    let_next_launch_begin();
    const int tid = threadIdx.x;
    const int g = blockIdx.x;
    const int s = tid/32;
    __shared__ __align__(128) float As[2][2208];
    __shared__ __align__(128) float Bs[2][1184];
    __shared__ mbarrier full[2];
    if (tid == 0) {
        for (int i = 0; i < 2; ++i) mbarrier_init(&full[i], 1);
        mbarrier_init_fence();
    }
    __syncthreads();

    float mine[1][1][2][2][4];
    #pragma unroll
    for (int mi = 0; mi < 2; ++mi) {
        #pragma unroll
        for (int ni = 0; ni < 2; ++ni) {
            #pragma unroll
            for (int r = 0; r < 4; ++r) mine[0][0][mi][ni][r] = 0.0f;
        }
    }
    if ((ceil_div(K, 128) - g + 7)/8 > 0 && tid < 32) {
        bulk_copy<8768>(&As[0][0], &A[2176*g], max(min(17*(long long)K - 2176*g, 2192ll), 0ll), &full[0]);
        bulk_copy<4640>(&Bs[0][0], &B[1152*g], max(min(9*(long long)K - 1152*g, 1160ll), 0ll), &full[0]);
        if (tid == 0) mbarrier_arrive_expect(&full[0], 13408);
    }
    int slot = 0;
    for (int ko = 0; ko < (ceil_div(K, 128) - g + 7)/8; ++ko) {
        fence_proxy_async();
        __syncthreads();
        if (ko + 1 < (ceil_div(K, 128) - g + 7)/8 && tid < 32) {
            bulk_copy<8768>(&As[1 - slot][0], &A[17408*(long long)ko + 2176*g + 17408],
                max(min(17*(long long)K - 17408*(long long)ko - 2176*g - 17408, 2192ll), 0ll),
                    &full[1 - slot]);
            bulk_copy<4640>(&Bs[1 - slot][0], &B[9216*(long long)ko + 1152*g + 9216],
                max(min(9*(long long)K - 9216*(long long)ko - 1152*g - 9216, 1160ll), 0ll), &full[1 - slot]);
            if (tid == 0) mbarrier_arrive_expect(&full[1 - slot], 13408);
        }
        mbarrier_wait(&full[slot], ko/2%2);
        {
            float mine_sum[1][1][2][2][4] = {};
            float mine_rest[1][1][2][2][4] = {};
            #pragma unroll
            for (int ks = 0; ks < 4; ++ks) {
                float a[2][4];
                float b[2][2];
                #pragma unroll
                for (int io = 0; io < 2; ++io) {
                    #pragma unroll
                    for (int r = 0; r < 4; ++r) {
                        const int i = 8*(r%2) + tid%32/4;
                        const int k = 4*(r/2) + tid%4;
                        a[io][r] = As[slot][544*s + 136*(k%4) + 34*ks + 17*(k/4) + 16*io + i];
                    }
                }
                #pragma unroll
                for (int jo = 0; jo < 2; ++jo) {
                    #pragma unroll
                    for (int r = 0; r < 2; ++r) {
                        const int k = 4*r + tid%4;
                        const int j = tid%32/4;
                        b[jo][r] = Bs[slot][288*s + 72*(k%4) + 18*ks + 9*(k/4) + 8*jo + j];
                    }
                }
                #pragma unroll
                for (int mi = 0; mi < 2; ++mi) {
                    #pragma unroll
                    for (int ni = 0; ni < 2; ++ni) {
                        mma_m16n8k8_f32<false>(mine_sum[0][0][mi][ni], mine_rest[0][0][mi][ni], a[mi], b[ni]);
                    }
                }
            }
            if (__any_sync(~0u, zero_if_finite(mine_rest) != 0.0f)) {
                float mine_sum[1][1][2][2][4] = {};
                float mine_rest[1][1][2][2][4] = {};
                #pragma unroll 1
                for (int ks = 0; ks < 4; ++ks) {
                    float a[2][4];
                    float b[2][2];
                    #pragma unroll
                    for (int io = 0; io < 2; ++io) {
                        #pragma unroll
                        for (int r = 0; r < 4; ++r) {
                            const int i = 8*(r%2) + tid%32/4;
                            const int k = 4*(r/2) + tid%4;
                            a[io][r] = (&As[slot][544*s + 136*(k%4) + 34*ks + 17*(k/4) + i])[16*io];
                        }
                    }
                    #pragma unroll
                    for (int jo = 0; jo < 2; ++jo) {
                        #pragma unroll
                        for (int r = 0; r < 2; ++r) {
                            const int k = 4*r + tid%4;
                            const int j = tid%32/4;
                            b[jo][r] = (&Bs[slot][288*s + 72*(k%4) + 18*ks + 9*(k/4) + j])[8*jo];
                        }
                    }
                    #pragma unroll
                    for (int mi = 0; mi < 2; ++mi) {
                        #pragma unroll
                        for (int ni = 0; ni < 2; ++ni) {
                            mma_m16n8k8_f32<true>(mine_sum[0][0][mi][ni], mine_rest[0][0][mi][ni], a[mi],
                                b[ni]);
                        }
                    }
                }
                add_parts(mine, mine_sum, mine_rest);
            } else {
                add_parts(mine, mine_sum, mine_rest);
            }
        }
        slot = 1 - slot;
    }
    #pragma unroll
    for (int io = 0; io < 2; ++io) {
        #pragma unroll
        for (int jo = 0; jo < 2; ++jo) {
            #pragma unroll
            for (int r = 0; r < 4; ++r) {
                const int i = 8*(r/2) + tid%32/4;
                const int j = 2*(tid%4) + r%2;
                if (16*io + i < 17 && 8*jo + j < 9) {
                    slice[1224*s + 153*g + 144*io + 9*i + 8*jo + j] = mine[0][0][io][jo][r];
                }
            }
        }
    }
}

// Grid: 17 blocks of 96 threads; 288 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(96)
tsmttsm_f32_tn_m17_n9_2(float alpha, float beta, bool beta0, float* __restrict__ C, int ldc,
    const float* slice)
{
    wait_for_launch_before();
    const int tid = threadIdx.x;
    const int i = blockIdx.x;
    __shared__ __align__(128) float sub[8][1][9];

    if (tid < 72) {
        const int t = tid/9;
        const int j = tid%9;
        float sum = 0.0f;
        float part = 0.0f;
        #pragma unroll
        for (int s = 0; s < 4; ++s) part += slice[1224*s + 153*t + 9*i + j];
        sum += part;
        sub[t][0][j] = sum;
    }
    __syncthreads();
    if (tid < 9) {
        float acc = 0.0f;
        #pragma unroll
        for (int t = 0; t < 8; ++t) acc += sub[t][0][tid];
        if (beta0) C[(long long)i*ldc + tid] = alpha*acc;
        else C[(long long)i*ldc + tid] = alpha*acc + beta*C[(long long)i*ldc + tid];
    }
}
