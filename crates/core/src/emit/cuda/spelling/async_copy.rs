//! `cp.async`.

use super::{Helper, barrier};

pub(in crate::emit::cuda) static CP_ASYNC16: Helper = Helper {
    needs: &[&barrier::SHARED_ADDRESS],
    text: r#"// Copies 16 bytes to shared memory; the elements from `valid` on become zero and are not read.
template <class T> __device__ __forceinline__ void cp_async16(T* dst, const T* src, int valid) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(shared_address(dst)), "l"(src), "r"((int)sizeof(T)*valid) : "memory");
}"#,
};

pub(in crate::emit::cuda) static CP_ASYNC8: Helper = Helper {
    needs: &[&barrier::SHARED_ADDRESS],
    text: r#"// Copies 8 bytes to shared memory; the elements from `valid` on become zero and are not read.
template <class T> __device__ __forceinline__ void cp_async8(T* dst, const T* src, int valid) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;"
                 :: "r"(shared_address(dst)), "l"(src), "r"((int)sizeof(T)*valid) : "memory");
}"#,
};

pub(in crate::emit::cuda) static CP_ASYNC4: Helper = Helper {
    needs: &[&barrier::SHARED_ADDRESS],
    text: r#"// Copies 4 bytes to shared memory; the elements from `valid` on become zero and are not read.
template <class T> __device__ __forceinline__ void cp_async4(T* dst, const T* src, int valid) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
                 :: "r"(shared_address(dst)), "l"(src), "r"((int)sizeof(T)*valid) : "memory");
}"#,
};

pub(in crate::emit::cuda) static CP_ASYNC16_WHOLE: Helper = Helper {
    needs: &[&barrier::SHARED_ADDRESS],
    text: r#"// Copies 16 bytes to shared memory.
template <class T> __device__ __forceinline__ void cp_async16(T* dst, const T* src) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                 :: "r"(shared_address(dst)), "l"(src) : "memory");
}"#,
};

pub(in crate::emit::cuda) static CP_ASYNC8_WHOLE: Helper = Helper {
    needs: &[&barrier::SHARED_ADDRESS],
    text: r#"// Copies 8 bytes to shared memory.
template <class T> __device__ __forceinline__ void cp_async8(T* dst, const T* src) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;"
                 :: "r"(shared_address(dst)), "l"(src) : "memory");
}"#,
};

pub(in crate::emit::cuda) static CP_ASYNC4_WHOLE: Helper = Helper {
    needs: &[&barrier::SHARED_ADDRESS],
    text: r#"// Copies 4 bytes to shared memory.
template <class T> __device__ __forceinline__ void cp_async4(T* dst, const T* src) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
                 :: "r"(shared_address(dst)), "l"(src) : "memory");
}"#,
};
