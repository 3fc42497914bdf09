// C = alpha op(A) op(B) + beta C

typedef unsigned short bf16;  // the upper half of a float
__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

// Copies 16 bytes to shared memory; the elements from `valid` on become zero and are not read.
template <class T> __device__ __forceinline__ void cp_async16(T* dst, const T* src, int valid) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(shared_address(dst)), "l"(src), "r"((int)sizeof(T)*valid) : "memory");
}

__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits for all but the last N groups of this thread's cp.async copies.
template <int N> __device__ __forceinline__ void cp_async_wait() {
    asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory");
}

// The number itself, of which the compiler knows nothing. Where NVRTC 13.0 knows that k has few values, it takes the
// constants in 16*((k + 1)%3) out of an address as if k + 1 could not reach 3.
__device__ __forceinline__ int opaque(int x) { asm("" : "+r"(x)); return x; }

// Four 8 x 8 tiles of 16-bit elements; lane l gives the address of row l%8 of tile l/8.
__device__ __forceinline__ void ldmatrix_x4(unsigned (&d)[4], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]) : "r"(shared_address(row)) : "memory");
}

// d += a b: 16 x 8 += (16 x 16) (16 x 8)
__device__ __forceinline__ void mma_m16n8k16_bf16(float (&d)[4], const unsigned (&a)[4], const unsigned* b) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ bf16 float_to_bf16(float x) {
    bf16 y;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ float bf16_to_float(bf16 x) { return __uint_as_float((unsigned)x << 16); }

// Grid: 5 blocks of 128 threads; 69632 bytes of dynamic shared memory.
extern "C" __global__ void __launch_bounds__(128)
tiled_bf16_nt_m20_n136_k520_1(float alpha, float beta, bool beta0, bool alpha1, const bf16* __restrict__ A,
    int lda, const bf16* __restrict__ B, int ldb, bf16* __restrict__ C, int ldc)
{
    const int tid = threadIdx.x;
    const int bj = blockIdx.x;
    const int t = tid%32;
    extern __shared__ __align__(1024) unsigned char smem[];
    auto& slice = *(float (*)[4][32][40])(smem + 0);
    bf16* const Bs = (bf16*)(smem + 20480);
    bf16* const As = (bf16*)(smem + 45056);

    {
        const int s = tid/32;
        float mine[1][2][4][4];
        #pragma unroll
        for (int mi = 0; mi < 2; ++mi) {
            #pragma unroll
            for (int ni = 0; ni < 4; ++ni) {
                #pragma unroll
                for (int r = 0; r < 4; ++r) mine[0][mi][ni][r] = 0.0f;
            }
        }
        const bf16* b = &B[(long long)(32*bj + tid%32/4)*ldb + 32*s + 8*(tid%4)];
        const bf16* a = &A[(long long)(tid%32/4)*lda + 32*s + 8*(tid%4)];
        const int Bs_place = 3072*s + 32*(tid%32/4) + 8*(tid%4 ^ tid%32/8);
        const int As_place = 3072*s + 32*(tid%32/4) + 8*(tid%4 ^ tid%32/8);
        #pragma unroll
        for (int p = 0; p < 2; ++p) {
            #pragma unroll
            for (int u = 0; u < 4; ++u) {
                cp_async16(&(&Bs[Bs_place])[1024*p + 256*u], &b[(long long)(8*u)*ldb],
                    32*bj + 8*u + t/4 < 136 ? 8 : 0);
            }
            #pragma unroll
            for (int u = 0; u < 4; ++u) {
                cp_async16(&(&As[As_place])[1024*p + 256*u], &a[(long long)(8*u)*lda], 8*u + t/4 < 20 ? 8
                    : 0);
            }
            cp_async_commit();
            b += 128;
            a += 128;
        }
        const bf16* b2 = &B[(long long)(32*bj + tid%32/4)*ldb + 32*s + 8*(tid%4) + 256];
        const bf16* a2 = &A[(long long)(tid%32/4)*lda + 32*s + 8*(tid%4) + 256];
        const int Bs_place2 = 3072*s + 32*(tid%32/4) + 8*(tid%4 ^ tid%32/8);
        const int As_place2 = 3072*s + 32*(tid%32/4) + 8*(tid%4 ^ tid%32/8);
        int As_place3[2];
        #pragma unroll
        for (int kk = 0; kk < 2; ++kk) {
            As_place3[kk] = 3072*s + 32*(tid%16) + 8*(2*kk + tid%32/16 ^ tid%16/2%4);
        }
        int Bs_place3[2];
        #pragma unroll
        for (int kk = 0; kk < 2; ++kk) {
            Bs_place3[kk] = 3072*s + 256*(tid%32/16) + 32*(tid%8) + 8*(2*kk + tid%32/8%2 ^ tid%8/2);
        }
        for (int ko = 0; ko < 5; ++ko) {
            cp_async_wait<1>();
            __syncwarp();
            if (ko < 3) {
                #pragma unroll
                for (int u = 0; u < 4; ++u) {
                    cp_async16(&(&Bs[Bs_place2 + 1024*(opaque(ko + 2)%3)])[256*u], &b2[(long long)(8*u)*ldb],
                        32*bj + 8*u + t/4 < 136 && -128*ko - 32*s - 8*(t%4) > -264 ? 8 : 0);
                }
                #pragma unroll
                for (int u = 0; u < 4; ++u) {
                    cp_async16(&(&As[As_place2 + 1024*(opaque(ko + 2)%3)])[256*u], &a2[(long long)(8*u)*lda],
                        8*u + t/4 < 20 && -128*ko - 32*s - 8*(t%4) > -264 ? 8 : 0);
                }
            }
            cp_async_commit();
            #pragma unroll
            for (int kk = 0; kk < 2; ++kk) {
                unsigned a3[2][4];
                unsigned b3[2][4];
                #pragma unroll
                for (int ai = 0; ai < 2; ++ai) {
                    ldmatrix_x4(a3[ai], &(&As[As_place3[kk] + 1024*(ko%3)])[512*ai]);
                }
                #pragma unroll
                for (int bj2 = 0; bj2 < 2; ++bj2) {
                    ldmatrix_x4(b3[bj2], &(&Bs[Bs_place3[kk] + 1024*(ko%3)])[512*bj2]);
                }
                #pragma unroll
                for (int mi = 0; mi < 2; ++mi) {
                    #pragma unroll
                    for (int ni = 0; ni < 4; ++ni) {
                        mma_m16n8k16_bf16(mine[0][mi][ni], a3[mi], b3[ni/2] + 2*(ni%2));
                    }
                }
            }
            b2 += 128;
            a2 += 128;
        }
        #pragma unroll
        for (int io = 0; io < 2; ++io) {
            #pragma unroll
            for (int jo = 0; jo < 4; ++jo) {
                #pragma unroll
                for (int r = 0; r < 2; ++r) {
                    const int i = 8*r + tid%32/4;
                    const int j = 2*(tid%4);
                    if (16*io + i < 20 && 32*bj + 8*jo + j <= 134) {
                        *(float2*)&slice[s][16*io + i][8*jo + j] =
                            make_float2(mine[0][io][jo][2*r], mine[0][io][jo][2*r + 1]);
                    } else {
                        *(float2*)&slice[s][16*io + i][8*jo + j] = make_float2(0.0f, 0.0f);
                    }
                }
            }
        }
    }
    __syncthreads();
    bf16* c = &C[(long long)(tid/32)*ldc + 32*bj + tid%32];
    #pragma unroll
    for (int u = 0; u < 8; ++u) {
        float acc = 0.0f;
        #pragma unroll
        for (int s = 0; s < 4; ++s) acc += slice[s][4*u + tid/32][tid%32];
        if (4*u + tid/32 < 20 && 32*bj + tid%32 < 136) {
            if (beta0) {
                if (alpha1) c[(long long)(4*u)*ldc] = float_to_bf16(acc);
                else c[(long long)(4*u)*ldc] = float_to_bf16(alpha*acc);
            } else {
                c[(long long)(4*u)*ldc] =
                    float_to_bf16(alpha*acc + beta*bf16_to_float(c[(long long)(4*u)*ldc]));
            }
        }
    }
}

// Grid: 5 blocks of 128 threads; 69632 bytes of dynamic shared memory.
extern "C" __global__ void __launch_bounds__(128)
tiled_bf16_nt_m20_n136_k520_2(float alpha, float beta, bool beta0, bool alpha1, const bf16* A, int lda,
    const bf16* B, int ldb, bf16* C, int ldc)
{
    const int tid = threadIdx.x;
    const int bj = blockIdx.x;
    const int t = tid%32;
    extern __shared__ __align__(1024) unsigned char smem[];
    auto& slice = *(float (*)[4][32][40])(smem + 0);
    bf16* const Bs = (bf16*)(smem + 20480);
    bf16* const As = (bf16*)(smem + 45056);

    {
        const int s = tid/32;
        float mine[1][2][4][4];
        #pragma unroll
        for (int mi = 0; mi < 2; ++mi) {
            #pragma unroll
            for (int ni = 0; ni < 4; ++ni) {
                #pragma unroll
                for (int r = 0; r < 4; ++r) mine[0][mi][ni][r] = 0.0f;
            }
        }
        bf16 Bs_next[4][8];
        bf16 As_next[4][8];
        const bf16* b = &B[(long long)(32*bj + t/4)*ldb + 32*s + 8*(t%4)];
        #pragma unroll
        for (int u = 0; u < 4; ++u) {
            #pragma unroll
            for (int e = 0; e < 8; ++e) {
                Bs_next[u][e] = 32*bj + 8*u + t/4 < 136 ? b[(long long)(8*u)*ldb + e] : 0;
            }
        }
        const bf16* a = &A[(long long)(t/4)*lda + 32*s + 8*(t%4)];
        #pragma unroll
        for (int u = 0; u < 4; ++u) {
            #pragma unroll
            for (int e = 0; e < 8; ++e) As_next[u][e] = 8*u + t/4 < 20 ? a[(long long)(8*u)*lda + e] : 0;
        }
        const int Bs_place = 3072*s + 32*(tid%32/4) + 8*(tid%4 ^ tid%32/8);
        const int As_place = 3072*s + 32*(tid%32/4) + 8*(tid%4 ^ tid%32/8);
        int As_place2[2];
        #pragma unroll
        for (int kk = 0; kk < 2; ++kk) {
            As_place2[kk] = 3072*s + 32*(tid%16) + 8*(2*kk + tid%32/16 ^ tid%16/2%4);
        }
        int Bs_place2[2];
        #pragma unroll
        for (int kk = 0; kk < 2; ++kk) {
            Bs_place2[kk] = 3072*s + 256*(tid%32/16) + 32*(tid%8) + 8*(2*kk + tid%32/8%2 ^ tid%8/2);
        }
        for (int ko = 0; ko < 5; ++ko) {
            #pragma unroll
            for (int u = 0; u < 4; ++u) {
                #pragma unroll
                for (int e = 0; e < 8; ++e) (&Bs[Bs_place + 1024*(ko%3)])[256*u + e] = Bs_next[u][e];
            }
            #pragma unroll
            for (int u = 0; u < 4; ++u) {
                #pragma unroll
                for (int e = 0; e < 8; ++e) (&As[As_place + 1024*(ko%3)])[256*u + e] = As_next[u][e];
            }
            if (ko < 4) {
                #pragma unroll
                for (int u = 0; u < 4; ++u) {
                    #pragma unroll
                    for (int e = 0; e < 8; ++e) {
                        Bs_next[u][e] = 32*bj + 8*u + t/4 < 136 && 128*ko + 32*s + 8*(t%4) + e < 392
                            ? B[(long long)(32*bj + 8*u + t/4)*ldb + 128*ko + 32*s + 8*(t%4) + e + 128] : 0;
                    }
                }
                #pragma unroll
                for (int u = 0; u < 4; ++u) {
                    #pragma unroll
                    for (int e = 0; e < 8; ++e) {
                        As_next[u][e] = 8*u + t/4 < 20 && 128*ko + 32*s + 8*(t%4) + e < 392
                            ? A[(long long)(8*u + t/4)*lda + 128*ko + 32*s + 8*(t%4) + e + 128] : 0;
                    }
                }
            }
            __syncwarp();
            #pragma unroll
            for (int kk = 0; kk < 2; ++kk) {
                unsigned a2[2][4];
                unsigned b2[2][4];
                #pragma unroll
                for (int ai = 0; ai < 2; ++ai) {
                    ldmatrix_x4(a2[ai], &(&As[As_place2[kk] + 1024*(ko%3)])[512*ai]);
                }
                #pragma unroll
                for (int bj2 = 0; bj2 < 2; ++bj2) {
                    ldmatrix_x4(b2[bj2], &(&Bs[Bs_place2[kk] + 1024*(ko%3)])[512*bj2]);
                }
                #pragma unroll
                for (int mi = 0; mi < 2; ++mi) {
                    #pragma unroll
                    for (int ni = 0; ni < 4; ++ni) {
                        mma_m16n8k16_bf16(mine[0][mi][ni], a2[mi], b2[ni/2] + 2*(ni%2));
                    }
                }
            }
        }
        #pragma unroll
        for (int io = 0; io < 2; ++io) {
            #pragma unroll
            for (int jo = 0; jo < 4; ++jo) {
                #pragma unroll
                for (int r = 0; r < 2; ++r) {
                    const int i = 8*r + tid%32/4;
                    const int j = 2*(tid%4);
                    if (16*io + i < 20 && 32*bj + 8*jo + j <= 134) {
                        *(float2*)&slice[s][16*io + i][8*jo + j] =
                            make_float2(mine[0][io][jo][2*r], mine[0][io][jo][2*r + 1]);
                    } else {
                        *(float2*)&slice[s][16*io + i][8*jo + j] = make_float2(0.0f, 0.0f);
                    }
                }
            }
        }
    }
    __syncthreads();
    bf16* c = &C[(long long)(tid/32)*ldc + 32*bj + tid%32];
    #pragma unroll
    for (int u = 0; u < 8; ++u) {
        float acc = 0.0f;
        #pragma unroll
        for (int s = 0; s < 4; ++s) acc += slice[s][4*u + tid/32][tid%32];
        if (4*u + tid/32 < 20 && 32*bj + tid%32 < 136) {
            if (beta0) {
                if (alpha1) c[(long long)(4*u)*ldc] = float_to_bf16(acc);
                else c[(long long)(4*u)*ldc] = float_to_bf16(alpha*acc);
            } else {
                c[(long long)(4*u)*ldc] =
                    float_to_bf16(alpha*acc + beta*bf16_to_float(c[(long long)(4*u)*ldc]));
            }
        }
    }
}
