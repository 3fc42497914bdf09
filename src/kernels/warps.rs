//! Tiles for matrix instructions of a warp: a block of 128 x 128 elements in 2 x 4 warps of 64 x 32.

use warpwright_core::diag::Diagnosis;

use super::Variant;
use crate::problem::Op;

/// How a block's tiles are cut for the instructions of one element type.
pub(super) struct WarpTiles {
    /// Terms of the sum in the tiles of a block.
    pub depth: i64,
    /// Terms of an instruction.
    pub step: i64,
    /// Elements in 16 bytes, which a thread copies at a time.
    pub piece: i64,
    /// Rows of C of an instruction.
    pub rows: i64,
    /// Columns of C of an instruction.
    pub columns: i64,
}

/// The threads of a block.
const THREADS: i64 = 256;

impl WarpTiles {
    /// The loops down to the instructions, with both operands staged in shared memory and in registers of a warp.
    /// Operands must lie in memory as the instructions take them: layout `nn`.
    pub fn steps(&self, variant: Variant) -> Result<String, Diagnosis> {
        only(variant, "nn")?;
        let WarpTiles { depth, step, piece, rows, columns } = self;
        let mut steps = format!(
            "specialize(lda%{piece}, ldb%{piece})
tile(C.i, C.j, 128, 128) -> by, bx, i, j
tile(C.i, C.j, 64, 32) -> wm, wn, i, j
bind(C.by, block.y)
bind(C.bx, block.x)
bind(C.wm, C.wn, threads@32)
set_scope(acc, reg)
compute_at(acc, C.wn)
split(acc.k, {depth}) -> ko, k
split(acc.k, {step}) -> ks, k
reorder(acc.ko, acc.ks, acc.i, acc.j, acc.k)
"
        );
        for (operand, tile, columns) in [("A", "As", *depth), ("B", "Bs", 128)] {
            let rows_at_a_time = THREADS / (columns / piece);
            steps += &format!(
                "cache_read({operand}, acc, shared) -> {tile}
compute_at({tile}, acc.ko)
split({tile}.r, {rows_at_a_time}) -> u, r
split({tile}.c, {piece}) -> c, e
reorder({tile}.r, {tile}.c, {tile}.u, {tile}.e)
bind({tile}.r, {tile}.c, threads)
"
            );
        }
        for (tile, fragment) in [("As", "a"), ("Bs", "b")] {
            steps += &format!("cache_read({tile}, acc, reg) -> {fragment}\ncompute_at({fragment}, acc.ks)\n");
        }
        Ok(steps
            + &format!(
                "split(acc.i, {rows}) -> mi, i
split(acc.j, {columns}) -> ni, j
reorder(acc.ks, acc.mi, acc.ni, acc.i, acc.j, acc.k)
"
            ))
    }
}

/// Refuses other layouts than the given one.
pub(super) fn only(variant: Variant, layout: &str) -> Result<(), Diagnosis> {
    let letter = |op: Op| if op.transposes() { 't' } else { 'n' };
    let found: String = [letter(variant.layout.a), letter(variant.layout.b)].iter().collect();
    if found == layout {
        return Ok(());
    }
    Err(Diagnosis::new(format!("this rung has no form for layout {}", variant.layout))
        .because("its instructions take operands as they lie in memory")
        .instead(format!("use --layout {layout}, or another rung")))
}
