// C = alpha op(A) op(B) + beta C

__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

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

// Lets the blocks of the next launch, which waits for this one itself, take what room there is.
__device__ __forceinline__ void let_next_launch_begin() {
    asm volatile("griddepcontrol.launch_dependents;");
}

// Waits until the launch before this one has ended and what it wrote can be read.
__device__ __forceinline__ void wait_for_launch_before() {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

// Grid: 4 x 2 blocks of 96 threads; 7168 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(96, 1)
tsmttsm_f32_tn_m11_n9_classes4_1(int K, const float* __restrict__ A, const float* __restrict__ B,
    float* __restrict__ slice)
{
    let_next_launch_begin();
    const int tid = threadIdx.x;
    const int g = blockIdx.y;
    const int q = blockIdx.x;
    const int s = tid/12;
    const int it = tid%12/3;
    const int jt = tid%3;
    __shared__ __align__(128) float As[2][32][16];
    __shared__ __align__(128) float Bs[2][32][12];

    float mine[1][1][1][4][4] = {};
    if ((ceil_div(K/4, 32) - g + 1)/2 > 0) {
        #pragma unroll
        for (int u = 0; u < 2; ++u) {
            if (u < 1 || tid < 32) {
                cp_async16(&As[0][24*u + tid/4][4*(tid%4)],
                    &A[1408*g + 1056*u + 44*(tid/4) + 4*(tid%4) + 4*min(11*q/4, 7)],
                        32*g + 24*u + tid/4 < K/4 ? 4 : 0);
            }
        }
        cp_async16(&Bs[0][tid/3][4*(tid%3)], &B[1152*g + 36*(tid/3) + 4*(9*q/4) + 4*(tid%3)],
            32*g + tid/3 < K/4 ? 4 : 0);
    }
    cp_async_commit();
    const float* a = &A[1408*g + 44*(tid/4) + 4*(tid%4) + 4*min(11*q/4, 7) + 2816];
    const float* b = &B[1152*g + 36*(tid/3) + 4*(9*q/4) + 4*(tid%3) + 2304];
    int slot = 0;
    for (int ko = 0; ko < (ceil_div(K/4, 32) - g + 1)/2; ++ko) {
        cp_async_wait<0>();
        __syncthreads();
        if (ko + 1 < (ceil_div(K/4, 32) - g + 1)/2) {
            #pragma unroll
            for (int u = 0; u < 2; ++u) {
                if (u < 1 || tid < 32) {
                    cp_async16(&As[1 - slot][24*u + tid/4][4*(tid%4)], &a[1056*u],
                        64*ko + 32*g + 24*u + tid/4 + 64 < K/4 ? 4 : 0);
                }
            }
            cp_async16(&Bs[1 - slot][tid/3][4*(tid%3)], &b[0], 64*ko + 32*g + tid/3 + 64 < K/4 ? 4 : 0);
        }
        cp_async_commit();
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
            __align__(16) float a2[1][4];
            __align__(16) float b2[1][4];
            *(float4*)&a2[0][0] = *(const float4*)&As[slot][4*s + k][4*it];
            *(float4*)&b2[0][0] = *(const float4*)&Bs[slot][4*s + k][4*jt];
            #pragma unroll
            for (int i = 0; i < 4; ++i) {
                #pragma unroll
                for (int j = 0; j < 4; ++j) {
                    mine[0][0][0][i][i%2 == 1 ? -j + 3 : j] += a2[0][i]*b2[0][i%2 == 1 ? -j + 3 : j];
                }
            }
        }
        a += 2816;
        b += 2304;
        slot = 1 - slot;
    }
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
        #pragma unroll
        for (int j = 0; j < 4; ++j) {
            slice[1536*s + 768*g + 192*q + 48*it + 12*i + 4*jt + j] = mine[0][0][0][i][j];
        }
    }
}

// Grid: 16 x 4 blocks of 32 threads; 96 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(32)
tsmttsm_f32_tn_m11_n9_classes4_2(float* __restrict__ each, const float* slice)
{
    let_next_launch_begin();
    wait_for_launch_before();
    const int tid = threadIdx.x;
    const int q = blockIdx.y;
    const int i = blockIdx.x;
    __shared__ __align__(128) float sub[2][1][1][12];

    if (tid < 24) {
        const int t = tid/12;
        const int j = tid%12;
        float sum = 0.0f;
        float part = 0.0f;
        #pragma unroll
        for (int s = 0; s < 8; ++s) part += slice[1536*s + 768*t + 192*q + 12*i + j];
        sum += part;
        sub[t][0][0][j] = sum;
    }
    __syncwarp();
    if (tid < 12) {
        float whole = 0.0f;
        #pragma unroll
        for (int t = 0; t < 2; ++t) whole += sub[t][0][0][tid];
        each[192*q + 12*i + tid] = whole;
    }
}

// Grid: 11 blocks of 32 threads.
extern "C" __global__ void __launch_bounds__(32)
tsmttsm_f32_tn_m11_n9_classes4_3(int K, float alpha, float beta, bool beta0, const float* __restrict__ A,
    const float* __restrict__ B, float* __restrict__ C, int ldc, const float* each)
{
    wait_for_launch_before();
    const int tid = threadIdx.x;
    const int i = blockIdx.x;

    if (tid < 9) {
        float acc = 0.0f;
        #pragma unroll
        for (int q = 0; q < 4; ++q) acc += each[333*q + 12*i + tid - 48*min(11*q/4, 7) - 4*(9*q/4)];
        float rest = 0.0f;
        for (int k = 0; k < K%4; ++k) {
            rest += A[44*(long long)(K/4) + 11*k + i]*B[36*(long long)(K/4) + 9*k + tid];
        }
        if (beta0) C[(long long)i*ldc + tid] = alpha*(acc + rest);
        else C[(long long)i*ldc + tid] = alpha*(acc + rest) + beta*C[(long long)i*ldc + tid];
    }
}
