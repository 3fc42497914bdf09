//! Bulk copies of boxes of tensors.

use super::{Helper, barrier, mbarrier};

pub(in crate::emit::cuda) static TENSOR_MAP: Helper =
    Helper { needs: &[], text: "struct alignas(64) TensorMap { char opaque[128]; };" };

pub(in crate::emit::cuda) static LOAD: Helper = Helper {
    needs: &[&TENSOR_MAP, &mbarrier::INIT],
    text: r#"// Copies the box at (row, column) to shared memory and reports its bytes to a barrier.
__device__ __forceinline__ void tma_load(void* dst, const TensorMap& map, int row, int column, mbarrier* bar) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 :: "r"(shared_address(dst)), "l"(&map), "r"(column), "r"(row), "r"(shared_address(bar)) : "memory");
}"#,
};

pub(in crate::emit::cuda) static STORE: Helper = Helper {
    needs: &[&TENSOR_MAP, &barrier::SHARED_ADDRESS],
    text: r#"// Copies a box from shared memory to (row, column).
__device__ __forceinline__ void tma_store(const TensorMap& map, int row, int column, const void* src) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];"
                 :: "l"(&map), "r"(column), "r"(row), "r"(shared_address(src)) : "memory");
}"#,
};
