//! `cp.async`.

use super::{Helper, barrier};

/// The two helpers for copies of so many bytes: with a number of valid elements, and whole.
macro_rules! cp_async {
    ($counted:ident, $whole:ident, $bytes:literal, $caching:literal) => {
        pub(in crate::emit::cuda) static $counted: Helper = Helper {
            needs: &[&barrier::SHARED_ADDRESS],
            text: concat!(
                "// Copies ",
                $bytes,
                " bytes to shared memory; the elements from `valid` on become zero and are not read.
template <class T> __device__ __forceinline__ void cp_async",
                $bytes,
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
                " bytes to shared memory.
template <class T> __device__ __forceinline__ void cp_async",
                $bytes,
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

cp_async!(CP_ASYNC16, CP_ASYNC16_WHOLE, "16", "cg");
cp_async!(CP_ASYNC8, CP_ASYNC8_WHOLE, "8", "ca");
cp_async!(CP_ASYNC4, CP_ASYNC4_WHOLE, "4", "ca");
