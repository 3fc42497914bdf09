// C = alpha op(A) op(B) + beta C

__device__ __forceinline__ int ceil_div(int a, int b) { return (a + b - 1)/b; }

// Grid: ceil_div(M, 128)*ceil_div(N, 128) blocks of 256 threads; 16384 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(256, 2)
tvm_virtual_threads_f32_tn(int M, int N, int K, float alpha, float beta, bool beta0,
    const float* __restrict__ A, int lda, const float* __restrict__ B, int ldb, float* C, int ldc)
{
    const int tid = threadIdx.x;
    const int block = blockIdx.x;
    const int bx = block%ceil_div(M, 128);
    const int by = block/ceil_div(M, 128);
    const int ty = tid/16;
    const int tx = tid%16;
    __shared__ __align__(128) float As[16][128];
    __shared__ __align__(128) float Bs[16][128];

    float acc[2][2][4][4] = {};
    for (int ko = 0; ko < ceil_div(K, 16); ++ko) {
        {
            const int k = 16*ko + tid/128;
            const int m = 128*bx + tid%128;
            #pragma unroll
            for (int u = 0; u < 8; ++u) {
                As[2*u + tid/128][tid%128] = k + 2*u < K && m < M ? A[(long long)(k + 2*u)*lda + m] : 0.0f;
            }
        }
        {
            const int k = 16*ko + tid/128;
            const int n = 128*by + tid%128;
            #pragma unroll
            for (int u = 0; u < 8; ++u) {
                Bs[2*u + tid/128][tid%128] = k + 2*u < K && n < N ? B[(long long)(k + 2*u)*ldb + n] : 0.0f;
            }
        }
        __syncthreads();
        #pragma unroll
        for (int ki = 0; ki < 16; ++ki) {
            float ra[2][1][4];
            float rb[2][1][4];
            #pragma unroll
            for (int c = 0; c < 4; ++c) {
                #pragma unroll
                for (int vi = 0; vi < 2; ++vi) ra[vi][0][c] = As[ki][64*vi + 4*ty + c];
            }
            #pragma unroll
            for (int c = 0; c < 4; ++c) {
                #pragma unroll
                for (int vj = 0; vj < 2; ++vj) rb[vj][0][c] = Bs[ki][64*vj + 4*tx + c];
            }
            #pragma unroll
            for (int vi = 0; vi < 2; ++vi) {
                #pragma unroll
                for (int i = 0; i < 4; ++i) {
                    #pragma unroll
                    for (int vj = 0; vj < 2; ++vj) {
                        #pragma unroll
                        for (int j = 0; j < 4; ++j) {
                            acc[vi][i%2 == 1 ? -vj + 1 : vj][i][i%2 == 1 ? -j + 3 : j] +=
                                ra[vi][0][i]*rb[i%2 == 1 ? -vj + 1 : vj][0][i%2 == 1 ? -j + 3 : j];
                        }
                    }
                }
            }
        }
        __syncthreads();
    }
    {
        const int m = 128*bx + 4*ty;
        const int n = 128*by + 4*tx;
        float* c = &C[(long long)m*ldc + n];
        #pragma unroll
        for (int i = 0; i < 4; ++i) {
            #pragma unroll
            for (int j = 0; j < 4; ++j) {
                #pragma unroll
                for (int vj = 0; vj < 2; ++vj) {
                    #pragma unroll
                    for (int vi = 0; vi < 2; ++vi) {
                        if (m + 64*vi + i < M && n + 64*vj + j < N) {
                            if (beta0) c[(long long)(64*vi + i)*ldc + 64*vj + j] = alpha*acc[vi][vj][i][j];
                            else {
                                c[(long long)(64*vi + i)*ldc + 64*vj + j] =
                                    alpha*acc[vi][vj][i][j] + beta*c[(long long)(64*vi + i)*ldc + 64*vj + j];
                            }
                        }
                    }
                }
            }
        }
    }
}
