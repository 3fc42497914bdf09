// C = alpha op(A) op(B) + beta C

__device__ __forceinline__ int ceil_div(int a, int b) { return (a + b - 1)/b; }

// Grid: ceil_div(M, 32)*ceil_div(N, 32) blocks of 1024 threads.
extern "C" __global__ void __launch_bounds__(1024)
sgemm_naive_f32_nn_1(int M, int K, float alpha, float beta, bool beta0, const float* __restrict__ A, int lda,
    const float* __restrict__ B, int ldb, float* __restrict__ C, int ldc)
{
    const int tid = threadIdx.x;
    const int block = blockIdx.x;
    const int bx = block%ceil_div(M, 32);
    const int by = block/ceil_div(M, 32);

    const int ty = tid/32;
    const int n = 32*by + ty;
    const int tx = tid%32;
    float acc = 0.0f;
    const int m = 32*bx + tx;
    for (int k = 0; k < K; ++k) acc += A[(long long)m*lda + k]*B[(long long)k*ldb + n];
    if (beta0) C[(long long)m*ldc + n] = alpha*acc;
    else C[(long long)m*ldc + n] = alpha*acc + beta*C[(long long)m*ldc + n];
}

// Grid: ceil_div(M, 32)*ceil_div(N, 32) blocks of 1024 threads.
extern "C" __global__ void __launch_bounds__(1024)
sgemm_naive_f32_nn_2(int M, int N, int K, float alpha, float beta, bool beta0, const float* __restrict__ A,
    int lda, const float* __restrict__ B, int ldb, float* __restrict__ C, int ldc)
{
    const int tid = threadIdx.x;
    const int block = blockIdx.x;
    const int bx = block%ceil_div(M, 32);
    const int by = block/ceil_div(M, 32);

    const int ty = tid/32;
    const int n = 32*by + ty;
    const int tx = tid%32;
    float acc = 0.0f;
    const int m = 32*bx + tx;
    for (int k = 0; k < K; ++k) {
        acc += (m < M ? A[(long long)m*lda + k] : 0.0f)*(n < N ? B[(long long)k*ldb + n] : 0.0f);
    }
    if (m < M && n < N) {
        if (beta0) C[(long long)m*ldc + n] = alpha*acc;
        else C[(long long)m*ldc + n] = alpha*acc + beta*C[(long long)m*ldc + n];
    }
}
