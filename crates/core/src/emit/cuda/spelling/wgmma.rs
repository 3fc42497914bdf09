//! `wgmma`: a warpgroup multiplies tiles that lie in shared memory in the 128-byte swizzle.

use super::{Helper, barrier, convert};
use crate::dtype::DType;

pub(in crate::emit::cuda) static FENCE: Helper = Helper {
    needs: &[],
    text: r#"// Orders this warpgroup's accesses to accumulators before the wgmma that follow.
__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }"#,
};

pub(in crate::emit::cuda) static COMMIT: Helper = Helper {
    needs: &[],
    text: r#"__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }"#,
};

pub(in crate::emit::cuda) static WAIT: Helper = Helper {
    needs: &[],
    text: r#"// Waits for all but the last N groups of wgmma.
template <int N> __device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(N) : "memory");
}"#,
};

/// The descriptor's fields, from the table of the PTX manual: address / 16 in bits 0-13, bytes from one group of
/// eight rows to the next / 16 in bits 32-45, the 128-byte swizzle as 1 in bits 62-63.
pub(in crate::emit::cuda) static DESCRIPTOR: Helper = Helper {
    needs: &[&barrier::SHARED_ADDRESS],
    text: r#"// The matrix that starts at p: rows of 128 bytes in the 128-byte swizzle, groups of eight rows 1024 bytes apart.
__device__ __forceinline__ unsigned long long matrix_sw128(const void* p) {
    return (shared_address(p) & 0x3ffffull) >> 4 | 1ull << 16 | 64ull << 32 | 1ull << 62;
}"#,
};

static NEEDS_BF16: &[&Helper] = &[&convert::BF16, &DESCRIPTOR];
static NEEDS_F16: &[&Helper] = &[&convert::F16, &DESCRIPTOR];

/// A wgmma of bf16 or f16 with `columns` columns: what it needs, its name, and the function itself.
pub(in crate::emit::cuda) fn multiply(
    dtype: DType,
    columns: i64,
) -> (&'static [&'static Helper], String, String) {
    let needs = if dtype == DType::F16 { NEEDS_F16 } else { NEEDS_BF16 };
    let name = format!("wgmma_m64n{columns}k16_{dtype}");
    let registers = columns / 2;
    let listed = |what: &dyn Fn(i64) -> String, per_line: i64, indent: &str| {
        let mut text = String::new();
        for r in 0..registers {
            if r > 0 {
                text.push_str(if r % per_line == 0 { "," } else { ", " });
                if r % per_line == 0 {
                    text.push_str(indent);
                }
            }
            text.push_str(&what(r));
        }
        text
    };
    let operands = listed(&|r| format!("%{r}"), 16, " \"\n                 \"");
    let accumulators = listed(&|r| format!("\"+f\"(d[{r}])"), 8, "\n                   ");
    let text = format!(
        r#"// d += a b^T: 64 x {columns} += (64 x 16) ({columns} x 16)^T
__device__ __forceinline__ void {name}(float (&d)[{registers}], const {dtype}* a, const {dtype}* b) {{
    asm volatile("wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.{dtype}.{dtype} "
                 "{{{operands}}}, %{registers}, %{}, 1, 1, 1, 0, 0;"
                 : {accumulators}
                 : "l"(matrix_sw128(a)), "l"(matrix_sw128(b)));
}}"#,
        registers + 1
    );
    (needs, name, text)
}
