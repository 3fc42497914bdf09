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
    Recipe {
        name: "sgemm_shared_memory",
        family: "sgemm",
        rung: 3,
        title: "shared memory blocking",
        change: "A block copies 32 x 32 tiles of A and B to shared memory and reads every element 32 times from there.",
        schedule: shared_memory,
    },
    Recipe {
        name: "sgemm_block_tiling_1d",
        family: "sgemm",
        rung: 4,
        title: "1D block tiling",
        change: "A thread computes 8 elements of a column, so that one element of B serves them all.",
        schedule: |_| Ok(Tile { rows: 64, columns: 64, depth: 8, tm: 8, tn: 1 }.steps()),
    },
    Recipe {
        name: "sgemm_block_tiling_2d",
        family: "sgemm",
        rung: 5,
        title: "2D block tiling",
        change: "A thread computes 8 x 8 elements from 8 + 8 operands that it holds in registers.",
        schedule: |_| Ok(Tile { rows: 128, columns: 128, depth: 8, tm: 8, tn: 8 }.steps()),
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

/// 32 x 32 threads a block, one element each, both operands staged 32 terms at a time.
fn shared_memory(_: Variant) -> Result<String, Diagnosis> {
    let tile = "split(C.i, 32) -> by, ty
split(C.j, 32) -> bx, tx
reorder(C.by, C.bx, C.ty, C.tx)
bind(C.by, block.y)
bind(C.bx, block.x)
bind(C.ty, C.tx, threads)
set_scope(acc, reg)
compute_at(acc, C.tx)
split(acc.k, 32) -> ko, ki
reorder(acc.ko, acc.ki, acc.i, acc.j)
";
    Ok(format!("{tile}{}{}unroll(acc.ki, acc.i, acc.j)\n", stage("A", "As", 1024), stage("B", "Bs", 1024)))
}

/// Copies a tile of an operand to shared memory: all threads of the block, in the order of the stored elements.
fn stage(operand: &str, tile: &str, threads: i64) -> String {
    format!(
        "cache_read({operand}, acc, shared) -> {tile}
compute_at({tile}, acc.ko)
fuse({tile}.r, {tile}.c) -> f
split({tile}.f, {threads}) -> u, t
reorder({tile}.t, {tile}.u)
bind({tile}.t, threads)
unroll({tile}.u)
"
    )
}

/// A block tile of `rows` x `columns` elements, `depth` terms at a time, of which a thread computes `tm` x `tn`.
struct Tile {
    rows: i64,
    columns: i64,
    depth: i64,
    tm: i64,
    tn: i64,
}

impl Tile {
    fn threads(&self) -> i64 {
        self.rows * self.columns / (self.tm * self.tn)
    }

    fn steps(&self) -> String {
        let Tile { rows, columns, depth, tm, tn } = self;
        let mut steps = format!(
            "split(C.i, {rows}) -> by, i
split(C.i, {tm}) -> ty, i
split(C.j, {columns}) -> bx, j
split(C.j, {tn}) -> tx, j
reorder(C.by, C.bx, C.ty, C.tx, C.i, C.j)
bind(C.by, block.y)
bind(C.bx, block.x)
bind(C.ty, C.tx, threads)
set_scope(acc, reg)
compute_at(acc, C.tx)
split(acc.k, {depth}) -> ko, ki
reorder(acc.ko, acc.ki, acc.i, acc.j)
"
        );
        for (operand, tile) in [("A", "As"), ("B", "Bs")] {
            steps += &stage(operand, tile, self.threads());
        }
        for (tile, fragment) in [("As", "ra"), ("Bs", "rb")] {
            steps += &format!("cache_read({tile}, acc, reg) -> {fragment}\ncompute_at({fragment}, acc.ki)\n");
        }
        steps + "unroll(acc.ki, acc.i, acc.j, ra.r, ra.c, rb.r, rb.c, C.i, C.j)\n"
    }
}
