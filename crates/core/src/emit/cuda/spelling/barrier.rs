//! Barriers of a part of a block, fences, and the groups of asynchronous work.

use super::Helper;

pub(in crate::emit::cuda) static SHARED_ADDRESS: Helper = Helper {
    needs: &[],
    text: "\
__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }",
};

pub(in crate::emit::cuda) static BARRIER_SYNC: Helper = Helper {
    needs: &[],
    text: r#"// Joins `threads` threads at hardware barrier `id`; barrier 0 is that of __syncthreads.
__device__ __forceinline__ void barrier_sync(int id, int threads) {
    asm volatile("barrier.sync %0, %1;" :: "r"(id), "r"(threads) : "memory");
}"#,
};

pub(in crate::emit::cuda) static CP_ASYNC_COMMIT: Helper = Helper {
    needs: &[],
    text: r#"__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }"#,
};

pub(in crate::emit::cuda) static CP_ASYNC_WAIT: Helper = Helper {
    needs: &[],
    text: r#"// Waits for all but the last N groups of this thread's cp.async copies.
template <int N> __device__ __forceinline__ void cp_async_wait() {
    asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory");
}"#,
};

pub(in crate::emit::cuda) static BULK_COMMIT: Helper = Helper {
    needs: &[],
    text: r#"__device__ __forceinline__ void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }"#,
};

pub(in crate::emit::cuda) static BULK_WAIT: Helper = Helper {
    needs: &[],
    text: r#"// Waits until all but the last N groups of this thread's bulk stores are complete.
template <int N> __device__ __forceinline__ void bulk_wait() {
    asm volatile("cp.async.bulk.wait_group %0;" :: "n"(N) : "memory");
}"#,
};

pub(in crate::emit::cuda) static BULK_WAIT_READ: Helper = Helper {
    needs: &[],
    text: r#"// Waits until all but the last N groups of this thread's bulk stores have read shared memory.
template <int N> __device__ __forceinline__ void bulk_wait_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" :: "n"(N) : "memory");
}"#,
};

pub(in crate::emit::cuda) static FENCE_PROXY_ASYNC: Helper = Helper {
    needs: &[],
    text: r#"// Makes this thread's writes to shared memory visible to bulk copies and wgmma.
__device__ __forceinline__ void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }"#,
};

pub(in crate::emit::cuda) static SETMAXNREG_INC: Helper = Helper {
    needs: &[],
    text: r#"template <int N> __device__ __forceinline__ void setmaxnreg_inc() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(N));
}"#,
};

pub(in crate::emit::cuda) static SETMAXNREG_DEC: Helper = Helper {
    needs: &[],
    text: r#"template <int N> __device__ __forceinline__ void setmaxnreg_dec() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(N));
}"#,
};
