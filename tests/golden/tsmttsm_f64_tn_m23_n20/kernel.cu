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

// Waits until the phase of this parity is complete.
__device__ __forceinline__ void mbarrier_wait(mbarrier* bar, int parity) {
    asm volatile("{\n.reg .pred done;\n"
                 "again:\nmbarrier.try_wait.parity.acquire.cta.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n}" :: "r"(shared_address(bar)), "r"(parity) : "memory");
}

// d += a b: 16 x 8 += (16 x 8) (8 x 8)
__device__ __forceinline__ void mma_m16n8k8_f64(double (&d)[4], const double (&a)[4], const double (&b)[2]) {
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]),
          "d"(b[0]), "d"(b[1]));
}

// Makes this thread's writes to shared memory visible to bulk copies and wgmma.
__device__ __forceinline__ void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

__device__ __forceinline__ void mbarrier_arrive(mbarrier* bar) {
    asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" :: "r"(shared_address(bar)) : "memory");
}

// Lets the blocks of the next launch, which waits for this one itself, take what room there is.
__device__ __forceinline__ void let_next_launch_begin() {
    asm volatile("griddepcontrol.launch_dependents;");
}

// Waits until the launch before this one has ended and what it wrote can be read.
__device__ __forceinline__ void wait_for_launch_before() {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

// Grid: 8 blocks of 64 threads; 16560 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(64, 1)
tsmttsm_f64_tn_m23_n20_1(int K, const double* __restrict__ A, const double* __restrict__ B,
    double* __restrict__ slice)
{
    let_next_launch_begin();
    const int tid = threadIdx.x;
    const int g = blockIdx.x;
    const int s = tid/32;
    __shared__ __align__(128) double As[3][368];
    __shared__ __align__(128) double Bs[3][320];
    __shared__ mbarrier full[3];
    __shared__ mbarrier empty[3];
    if (tid == 0) {
        for (int i = 0; i < 3; ++i) mbarrier_init(&full[i], 1);
        for (int i = 0; i < 3; ++i) mbarrier_init(&empty[i], 2);
        mbarrier_init_fence();
    }
    __syncthreads();

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
        if (p < (ceil_div(K, 16) - g + 7)/8 && tid < 32) {
            bulk_copy<2944>(&As[p][0], &A[2944*p + 368*g],
                max(min(23*(long long)K - 2944*p - 368*g, 368ll), 0ll), &full[p]);
            bulk_copy<2560>(&Bs[p][0], &B[2560*p + 320*g],
                max(min(20*(long long)K - 2560*p - 320*g, 320ll), 0ll), &full[p]);
            if (tid == 0) mbarrier_arrive_expect(&full[p], 5504);
        }
    }
    for (int ko = 0; ko < (ceil_div(K, 16) - g + 7)/8; ++ko) {
        if (ko + 2 < (ceil_div(K, 16) - g + 7)/8 && tid < 32) {
            if (ko >= 1) mbarrier_wait(&empty[(ko + 2)%3], (ceil_div(ko, 3) + 1)%2);
            bulk_copy<2944>(&As[(ko + 2)%3][0], &A[2944*(long long)ko + 368*g + 5888],
                max(min(23*(long long)K - 2944*(long long)ko - 368*g - 5888, 368ll), 0ll), &full[(ko + 2)%3]);
            bulk_copy<2560>(&Bs[(ko + 2)%3][0], &B[2560*(long long)ko + 320*g + 5120],
                max(min(20*(long long)K - 2560*(long long)ko - 320*g - 5120, 320ll), 0ll), &full[(ko + 2)%3]);
            if (tid == 0) mbarrier_arrive_expect(&full[(ko + 2)%3], 5504);
        }
        mbarrier_wait(&full[ko%3], ko/3%2);
        {
            double a[2][4];
            double b[3][2];
            #pragma unroll
            for (int co = 0; co < 2; ++co) {
                #pragma unroll
                for (int r = 0; r < 4; ++r) {
                    const int c = 8*(r%2) + tid%32/4;
                    a[co][r] = 16*co + c < 23
                        ? (&As[ko%3][184*s + 23*(tid%4) + tid%32/4])[92*(r/2) + 16*co + 8*(r%2)] : 0.0;
                }
            }
            #pragma unroll
            for (int co = 0; co < 3; ++co) {
                #pragma unroll
                for (int r = 0; r < 2; ++r) {
                    const int c = tid%32/4;
                    b[co][r] = 8*co + c < 20 ? (&Bs[ko%3][160*s + 20*(tid%4) + tid%32/4])[80*r + 8*co] : 0.0;
                }
            }
            #pragma unroll
            for (int mi = 0; mi < 2; ++mi) {
                #pragma unroll
                for (int ni = 0; ni < 3; ++ni) mma_m16n8k8_f64(mine[0][0][mi][ni], a[mi], b[ni]);
            }
        }
        fence_proxy_async();
        __syncwarp();
        if (tid%32 == 0) mbarrier_arrive(&empty[ko%3]);
    }
    #pragma unroll
    for (int io = 0; io < 2; ++io) {
        #pragma unroll
        for (int jo = 0; jo < 3; ++jo) {
            #pragma unroll
            for (int r = 0; r < 2; ++r) {
                const int i = 8*r + tid%32/4;
                const int j = 2*(tid%4);
                if (16*io + i < 23 && 8*jo + j <= 18) {
                    *(double2*)&slice[3680*s + 460*g + 320*io + 20*i + 8*jo + j] =
                        make_double2(mine[0][0][io][jo][2*r], mine[0][0][io][jo][2*r + 1]);
                }
            }
        }
    }
}

// Grid: 23 blocks of 160 threads; 1280 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(160)
tsmttsm_f64_tn_m23_n20_2(double alpha, double beta, bool beta0, double* __restrict__ C, int ldc,
    const double* slice)
{
    wait_for_launch_before();
    const int tid = threadIdx.x;
    const int i = blockIdx.x;
    __shared__ __align__(128) double sub[8][1][20];

    {
        const int t = tid/20;
        const int j = tid%20;
        double sum = 0.0;
        double part = 0.0;
        #pragma unroll
        for (int s = 0; s < 2; ++s) part += slice[3680*s + 460*t + 20*i + j];
        sum += part;
        sub[t][0][j] = sum;
    }
    __syncthreads();
    if (tid < 20) {
        double acc = 0.0;
        #pragma unroll
        for (int t = 0; t < 8; ++t) acc += sub[t][0][tid];
        if (beta0) C[(long long)i*ldc + tid] = alpha*acc;
        else C[(long long)i*ldc + tid] = alpha*acc + beta*C[(long long)i*ldc + tid];
    }
}
