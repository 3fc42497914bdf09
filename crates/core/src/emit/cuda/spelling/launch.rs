//! Launches one after another: the next one may begin while this one still runs, and waits for it itself
//! (programmatic dependent launch).

use super::Helper;

pub(in crate::emit::cuda) static WAIT_FOR_LAUNCH_BEFORE: Helper = Helper {
    needs: &[],
    text: r#"// Waits until the launch before this one has ended and what it wrote can be read.
__device__ __forceinline__ void wait_for_launch_before() {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}"#,
};

pub(in crate::emit::cuda) static LET_NEXT_LAUNCH_BEGIN: Helper = Helper {
    needs: &[],
    text: r#"// Lets the blocks of the next launch, which waits for this one itself, take what room there is.
__device__ __forceinline__ void let_next_launch_begin() {
    asm volatile("griddepcontrol.launch_dependents;");
}"#,
};

pub(in crate::emit::cuda) static ASK_BY_BULK: Helper = Helper {
    needs: &[],
    text: r#"// Brings what lies behind an address to the second-level cache, whole pieces of 16 bytes: pieces of 2048, the blocks in turn.
__device__ __forceinline__ void ask_by_bulk(const void* from, long long bytes) {
    if (threadIdx.x != 0) return;
    const unsigned misplaced = (16 - (unsigned)(size_t)from % 16) % 16;
    const char* const first = (const char*)from + misplaced;
    bytes -= misplaced;
    const long long block = blockIdx.x + (long long)gridDim.x*(blockIdx.y + (long long)gridDim.y*blockIdx.z);
    const long long blocks = (long long)gridDim.x*gridDim.y*gridDim.z;
    for (long long at = block*2048; at + 16 <= bytes; at += blocks*2048) {
        const unsigned piece = (unsigned)min(bytes - at, 2048LL) & ~15u;
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(first + at), "r"(piece));
    }
}"#,
};

pub(in crate::emit::cuda) static ASK_BY_LINES: Helper = Helper {
    needs: &[],
    text: r#"// Brings what lies behind an address to the second-level cache: lines of 128 bytes, all threads in turn.
__device__ __forceinline__ void ask_by_lines(const void* from, long long bytes) {
    const long long block = blockIdx.x + (long long)gridDim.x*(blockIdx.y + (long long)gridDim.y*blockIdx.z);
    const long long blocks = (long long)gridDim.x*gridDim.y*gridDim.z;
    for (long long at = (block*blockDim.x + threadIdx.x)*128; at < bytes; at += blocks*blockDim.x*128) {
        asm volatile("prefetch.global.L2 [%0];" ::"l"((const char*)from + at));
    }
}"#,
};
