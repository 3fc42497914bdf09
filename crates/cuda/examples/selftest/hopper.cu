// Kernels of the self-test for GPUs with clusters and tensor maps.

// Every block writes its rank in the cluster and the cluster's size.
extern "C" __global__ void ranks(int* out) {
  unsigned rank, size;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  out[2 * blockIdx.x] = rank;
  out[2 * blockIdx.x + 1] = size;
}

struct __align__(64) TensorMap { unsigned long long opaque[16]; };

// Copies one tile by the copy engine and stores it as it lies in shared memory.
extern "C" __global__ void copy_tile(const __grid_constant__ TensorMap map, int row, int column, int words, unsigned* out) {
  extern __shared__ __align__(1024) unsigned tile[];
  __shared__ __align__(8) unsigned long long barrier;
  unsigned barrier_at = (unsigned)__cvta_generic_to_shared(&barrier);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier_at) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier_at), "r"(4 * words) : "memory");
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
        ::"r"((unsigned)__cvta_generic_to_shared(tile)), "l"(&map), "r"(column), "r"(row), "r"(barrier_at)
        : "memory");
  }
  unsigned done = 0;
  while (!done) {
    asm volatile(
        "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\nselp.u32 %0, 1, 0, p;\n}"
        : "=r"(done) : "r"(barrier_at) : "memory");
  }
  for (int i = threadIdx.x; i < words; i += blockDim.x) out[i] = tile[i];
}
