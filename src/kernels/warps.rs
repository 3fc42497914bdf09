//! Tiles for matrix instructions of a warp: a block of 128 x 128 elements in 2 x 4 warps of 64 x 32.

use super::Variant;

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
    /// The loops down to the instructions, with both operands staged in shared memory and in registers of a warp,
    /// there with the rows and columns that the instructions take, whatever the layout.
    pub fn steps(&self, variant: Variant) -> String {
        let [turned_a, turned_b] = turned(variant);
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
        // A tile has as many columns as the sum has terms, or as the block has rows or columns of C.
        for (operand, tile, along_sum) in [("A", "As", !turned_a), ("B", "Bs", turned_b)] {
            let rows_at_a_time = THREADS / (if along_sum { *depth } else { 128 } / piece);
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
        for (tile, fragment, turned) in [("As", "a", turned_a), ("Bs", "b", turned_b)] {
            steps += &format!("cache_read({tile}, acc, reg) -> {fragment}\ncompute_at({fragment}, acc.ks)\n");
            if turned {
                steps += &format!("storage_order({fragment}, c, r)\n");
            }
        }
        steps
            + &format!(
                "split(acc.i, {rows}) -> mi, i
split(acc.j, {columns}) -> ni, j
reorder(acc.ks, acc.mi, acc.ni, acc.i, acc.j, acc.k)
"
            )
    }
}

/// Whether A is stored with its columns as rows, and whether B is.
pub(super) fn turned(variant: Variant) -> [bool; 2] {
    [variant.layout.a.transposes(), variant.layout.b.transposes()]
}

/// The loops that copy to registers, over rows of C for A and over columns of C for B.
pub(super) fn long_axes(variant: Variant) -> [&'static str; 2] {
    let [turned_a, turned_b] = turned(variant);
    [if turned_a { "c" } else { "r" }, if turned_b { "r" } else { "c" }]
}
