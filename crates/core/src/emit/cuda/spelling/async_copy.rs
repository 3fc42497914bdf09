//! `cp.async`, and bulk copies of runs.

use super::{Helper, barrier, mbarrier};

/// The two helpers for copies of so many bytes, by a name and a cache operator: with a number of valid elements, and whole.
macro_rules! cp_async {
    ($counted:ident, $whole:ident, $name:literal, $caching:literal, $bytes:literal, $kept:literal) => {
        pub(in crate::emit::cuda) static $counted: Helper = Helper {
            needs: &[&barrier::SHARED_ADDRESS],
            text: concat!(
                "// Copies ",
                $bytes,
                " bytes to shared memory",
                $kept,
                "; the elements from `valid` on become zero and are not read.
template <class T> __device__ __forceinline__ void ",
                $name,
                "(T* dst, const T* src, int valid) {
    asm volatile(\"cp.async.",
                $caching,
                ".shared.global [%0], [%1], ",
                $bytes,
                ", %2;\"
                 :: \"r\"(shared_address(dst)), \"l\"(src), \"r\"((int)sizeof(T)*valid) : \"memory\");
}"
            ),
        };
        pub(in crate::emit::cuda) static $whole: Helper = Helper {
            needs: &[&barrier::SHARED_ADDRESS],
            text: concat!(
                "// Copies ",
                $bytes,
                " bytes to shared memory",
                $kept,
                ".
template <class T> __device__ __forceinline__ void ",
                $name,
                "(T* dst, const T* src) {
    asm volatile(\"cp.async.",
                $caching,
                ".shared.global [%0], [%1], ",
                $bytes,
                ";\"
                 :: \"r\"(shared_address(dst)), \"l\"(src) : \"memory\");
}"
            ),
        };
    };
}

cp_async!(CP_ASYNC16, CP_ASYNC16_WHOLE, "cp_async16", "cg", "16", "");
cp_async!(
    CP_ASYNC16_CA,
    CP_ASYNC16_CA_WHOLE,
    "cp_async16_ca",
    "ca",
    "16",
    ", which the first-level cache keeps too"
);
cp_async!(CP_ASYNC8, CP_ASYNC8_WHOLE, "cp_async8", "ca", "8", "");
cp_async!(CP_ASYNC4, CP_ASYNC4_WHOLE, "cp_async4", "ca", "4", "");

pub(in crate::emit::cuda) static PREFETCH_L2: Helper = Helper {
    needs: &[],
    text: r#"// Brings the sector of an element to the second-level cache.
__device__ __forceinline__ void prefetch_l2(const void* p) {
    asm volatile("prefetch.global.L2 [%0];" :: "l"(p));
}"#,
};

pub(in crate::emit::cuda) static BEGINS_SECTOR: Helper = Helper {
    needs: &[],
    text: r#"// Whether a sector of device memory begins here.
__device__ __forceinline__ bool begins_sector(const void* p) {
    return (unsigned long long)p % 32 == 0;
}"#,
};

pub(in crate::emit::cuda) static COPY_L2: Helper = Helper {
    needs: &[&barrier::SHARED_ADDRESS],
    text: r#"// Brings the sector of an element to the second-level cache by a copy to where nobody looks; it belongs to the thread's group of copies.
__device__ __forceinline__ void copy_l2(unsigned* landing, const void* p) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
                 :: "r"(shared_address(landing)), "l"((unsigned long long)p & ~3ull) : "memory");
}"#,
};

pub(in crate::emit::cuda) static BULK_COPY_WHOLE: Helper = Helper {
    needs: &[&mbarrier::INIT],
    text: r#"// One thread of a warp copies so many bytes to shared memory, which are reported to a barrier.
template <int BYTES> __device__ __forceinline__ void bulk_copy(void* dst, const void* src, mbarrier* bar) {
    if (threadIdx.x % 32 == 0) {
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                     :: "r"(shared_address(dst)), "l"(src), "r"(BYTES), "r"(shared_address(bar)) : "memory");
    }
}"#,
};

pub(in crate::emit::cuda) static BULK_COPY: Helper = Helper {
    needs: &[&BULK_COPY_WHOLE],
    text: r#"// The same where only so many bytes are there: the warp stores zeros in the place of the others. What is left over of 16
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
}"#,
};

pub(in crate::emit::cuda) static BULK_WRITE_WHOLE: Helper = Helper {
    needs: &[&barrier::SHARED_ADDRESS],
    text: r#"// This thread copies so many bytes from shared memory, as part of its next group.
template <int BYTES> __device__ __forceinline__ void bulk_write(void* dst, const void* src) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                 :: "l"(dst), "r"(shared_address(src)), "r"(BYTES) : "memory");
}"#,
};

pub(in crate::emit::cuda) static BULK_WRITE: Helper = Helper {
    needs: &[&BULK_WRITE_WHOLE],
    text: r#"// The same of so many elements; what is left over of 16 bytes the thread stores itself.
template <int BYTES, class T> __device__ __forceinline__ void bulk_write(T* dst, const void* src, long long valid) {
    if ((int)sizeof(T)*valid == BYTES) return bulk_write<BYTES>(dst, src);
    const int there = (int)sizeof(T)*(int)valid, pieces = there & ~15;
    if (pieces) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                     :: "l"(dst), "r"(shared_address(src)), "r"(pieces) : "memory");
    }
    #pragma unroll 1
    for (int i = pieces; i < there; i += 4) *(unsigned*)((char*)dst + i) = *(const unsigned*)((const char*)src + i);
}"#,
};
