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

// Lets the blocks of the next launch, which waits for this one itself, take what room there is.
__device__ __forceinline__ void let_next_launch_begin() {
    asm volatile("griddepcontrol.launch_dependents;");
}

// Waits until the launch before this one has ended and what it wrote can be read.
__device__ __forceinline__ void wait_for_launch_before() {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

// Grid: 8 blocks of 128 threads; 29632 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(128, 1)
tsmttsm_f32_tn_m33_n33_1(int K, const float* __restrict__ A, const float* __restrict__ B,
    float* __restrict__ slice)
{
    let_next_launch_begin();
    const int tid = threadIdx.x;
    const int g = blockIdx.x;
    const int s = tid/9;
    const int it = tid%9/3;
    const int jt = tid%3;
    __shared__ __align__(128) float As[2][1848];
    __shared__ __align__(128) float Bs[2][1848];

    float mine[11][11][1][1][1][1] = {};
    if ((ceil_div(K, 56) - g + 7)/8 > 0) {
        if (tid < 126) {
            if (1848*g + 4*tid + 1515 < 33*(long long)K) {
                #pragma unroll
                for (int u = 0; u < 4; ++u) {
                    if (u < 3 || tid < 84) cp_async16(&As[0][504*u + 4*tid], &A[1848*g + 504*u + 4*tid]);
                }
            } else {
                const float* a = &A[1848*g + 4*tid];
                #pragma unroll 1
                for (int u = 0; u < 4; ++u) {
                    if (126*u + tid < 462) {
                        cp_async16(&As[0][504*u + 4*tid], &a[0],
                            max(0ll, min(4ll, 33*(long long)K - 1848*g - 504*u - 4*tid)));
                    }
                    a += 504;
                }
            }
        }
        if (tid < 126) {
            if (1848*g + 4*tid + 1515 < 33*(long long)K) {
                #pragma unroll
                for (int u = 0; u < 4; ++u) {
                    if (u < 3 || tid < 84) cp_async16(&Bs[0][504*u + 4*tid], &B[1848*g + 504*u + 4*tid]);
                }
            } else {
                const float* b = &B[1848*g + 4*tid];
                #pragma unroll 1
                for (int u = 0; u < 4; ++u) {
                    if (126*u + tid < 462) {
                        cp_async16(&Bs[0][504*u + 4*tid], &b[0],
                            max(0ll, min(4ll, 33*(long long)K - 1848*g - 504*u - 4*tid)));
                    }
                    b += 504;
                }
            }
        }
    }
    cp_async_commit();
    const float* a = &A[1848*g + 4*tid + 14784];
    const float* b = &B[1848*g + 4*tid + 14784];
    int slot = 0;
    for (int ko = 0; ko < (ceil_div(K, 56) - g + 7)/8; ++ko) {
        cp_async_wait<0>();
        __syncthreads();
        if (ko + 1 < (ceil_div(K, 56) - g + 7)/8) {
            if (tid < 126) {
                if (14784*(long long)ko + 1848*g + 4*tid + 16299 < 33*(long long)K) {
                    #pragma unroll
                    for (int u = 0; u < 4; ++u) {
                        if (u < 3 || tid < 84) cp_async16(&As[1 - slot][504*u + 4*tid], &a[504*u]);
                    }
                } else {
                    #pragma unroll 1
                    for (int u = 0; u < 4; ++u) {
                        if (126*u + tid < 462) {
                            cp_async16(&As[1 - slot][504*u + 4*tid],
                                &A[14784*(long long)ko + 1848*g + 504*u + 4*tid + 14784],
                                    max(0ll,
                                        min(4ll,
                                            33*(long long)K - 14784*(long long)ko - 1848*g - 504*u - 4*tid - 14784)));
                        }
                    }
                }
            }
            if (tid < 126) {
                if (14784*(long long)ko + 1848*g + 4*tid + 16299 < 33*(long long)K) {
                    #pragma unroll
                    for (int u = 0; u < 4; ++u) {
                        if (u < 3 || tid < 84) cp_async16(&Bs[1 - slot][504*u + 4*tid], &b[504*u]);
                    }
                } else {
                    #pragma unroll 1
                    for (int u = 0; u < 4; ++u) {
                        if (126*u + tid < 462) {
                            cp_async16(&Bs[1 - slot][504*u + 4*tid],
                                &B[14784*(long long)ko + 1848*g + 504*u + 4*tid + 14784],
                                    max(0ll,
                                        min(4ll,
                                            33*(long long)K - 14784*(long long)ko - 1848*g - 504*u - 4*tid - 14784)));
                        }
                    }
                }
            }
        }
        cp_async_commit();
        if (s < 14) {
            #pragma unroll
            for (int k = 0; k < 4; ++k) {
                float a2[11][1][1];
                float b2[11][1][1];
                #pragma unroll
                for (int vi = 0; vi < 11; ++vi) a2[vi][0][0] = As[slot][132*s + 33*k + 3*vi + it];
                #pragma unroll
                for (int vj = 0; vj < 11; ++vj) b2[vj][0][0] = Bs[slot][132*s + 33*k + 3*vj + jt];
                #pragma unroll
                for (int vi = 0; vi < 11; ++vi) {
                    #pragma unroll
                    for (int vj = 0; vj < 11; ++vj) {
                        mine[vi][vi%2 == 1 ? -vj + 10 : vj][0][0][0][0] +=
                            a2[vi][0][0]*b2[vi%2 == 1 ? -vj + 10 : vj][0][0];
                    }
                }
            }
        }
        a += 14784;
        b += 14784;
        slot = 1 - slot;
    }
    if (s < 14) {
        #pragma unroll
        for (int vj = 0; vj < 11; ++vj) {
            #pragma unroll
            for (int vi = 0; vi < 11; ++vi) {
                slice[8712*s + 1089*g + 99*vi + 33*it + 3*vj + jt] = mine[vi][vj][0][0][0][0];
            }
        }
    }
}

// Grid: 33 blocks of 288 threads; 1056 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(288)
tsmttsm_f32_tn_m33_n33_2(float alpha, float beta, bool beta0, float* __restrict__ C, int ldc,
    const float* slice)
{
    wait_for_launch_before();
    const int tid = threadIdx.x;
    const int i = blockIdx.x;
    __shared__ __align__(128) float sub[8][1][33];

    if (tid < 264) {
        const int t = tid/33;
        const int j = tid%33;
        float sum = 0.0f;
        float part = 0.0f;
        #pragma unroll
        for (int s = 0; s < 14; ++s) part += slice[8712*s + 1089*t + 33*i + j];
        sum += part;
        sub[t][0][j] = sum;
    }
    __syncthreads();
    if (tid < 33) {
        float acc = 0.0f;
        #pragma unroll
        for (int t = 0; t < 8; ++t) acc += sub[t][0][tid];
        if (beta0) C[(long long)i*ldc + tid] = alpha*acc;
        else C[(long long)i*ldc + tid] = alpha*acc + beta*C[(long long)i*ldc + tid];
    }
}
