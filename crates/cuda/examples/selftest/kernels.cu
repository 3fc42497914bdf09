// Kernels of the self-test. Each tries one thing that a generated kernel will do.

extern "C" __global__ void saxpy(int n, float a, const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

// Writes every argument back, so that a wrong size or place shows.
extern "C" __global__ void arguments(bool b, int i, long long l, unsigned u, float f, double d, float2 c, double2 z, double* out) {
  double values[] = {b ? 1.0 : 0.0, (double)i, (double)l, (double)u, f, d, c.x, c.y, z.x, z.y};
  for (int k = 0; k < 10; k++) out[k] = values[k];
}

// Reverses a row of `n` words through dynamic shared memory.
extern "C" __global__ void reverse(int n, const int* in, int* out) {
  extern __shared__ int words[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) words[i] = in[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = words[n - 1 - i];
}

// Waits until a clock has run, then sets a word: makes a launch that is surely still running.
extern "C" __global__ void slow_set(long long cycles, int value, int* out) {
  long long start = clock64();
  while (clock64() - start < cycles) {}
  *out = value;
}

extern "C" __global__ void naive_sgemm(int m, int n, int k, const float* a, const float* b, float* c) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || column >= n) return;
  float sum = 0.0f;
  for (int i = 0; i < k; i++) sum += a[(long long)row * k + i] * b[(long long)i * n + column];
  c[(long long)row * n + column] = sum;
}

extern "C" __global__ void touch_nowhere() { *(volatile int*)16 = 1; }
