//! The ladder `sgemm`: the rungs of the well-known worklog on SGEMM, with its numbers and tile parameters, and then
//! our own. Every rung starts from the same specification and differs from the one before by one idea.

use super::{Recipe, Variant};
use warpwright_core::diag::Diagnosis;

/// The rungs in order.
pub const RUNGS: &[Recipe] = &[
    Recipe {
        name: "sgemm_naive",
        family: "sgemm",
        rung: 1,
        title: "naive",
        change: "One thread computes one element of C; neighbouring threads stand below one another, in rows.",
        schedule: naive,
    },
    Recipe {
        name: "sgemm_coalesced",
        family: "sgemm",
        rung: 2,
        title: "coalesced",
        change: "Neighbouring threads stand side by side, in columns, so that a warp reads and writes whole sectors.",
        schedule: coalesced,
    },
];

/// 32 x 32 threads a block, threadIdx.x along the rows of C.
fn naive(_: Variant) -> Result<String, Diagnosis> {
    Ok("split(C.i, 32) -> bx, tx
split(C.j, 32) -> by, ty
reorder(C.bx, C.by, C.ty, C.tx)
bind(C.bx, block.x)
bind(C.by, block.y)
bind(C.ty, C.tx, threads)
set_scope(acc, reg)
compute_at(acc, C.tx)
"
    .to_string())
}

/// 32 x 32 threads a block, threadIdx.x along the columns of C.
fn coalesced(_: Variant) -> Result<String, Diagnosis> {
    Ok("split(C.i, 32) -> by, ty
split(C.j, 32) -> bx, tx
reorder(C.by, C.bx, C.ty, C.tx)
bind(C.by, block.y)
bind(C.bx, block.x)
bind(C.ty, C.tx, threads)
set_scope(acc, reg)
compute_at(acc, C.tx)
"
    .to_string())
}
