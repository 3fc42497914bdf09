//! How threads and warps stand over C and over rows, and what they find in shared memory.

use warpwright_core::dtype::DType;

use crate::kernels::family::Choice;
use crate::kernels::staging::{self, ACROSS, copied_at_once};
use crate::problem::Problem;

/// How the threads of a block stand over C and over rows.
pub(super) struct Threads {
    /// Threads along the rows of C.
    pub(super) mt: i64,
    /// Threads along the columns of C.
    pub(super) nt: i64,
    /// Groups of threads that each cover C.
    pub(super) slices: i64,
}

impl Threads {
    pub(super) fn of(problem: &Problem, choice: &Choice) -> Threads {
        let mt = ceil(problem.shape.m, choice.int("tm"));
        let nt = ceil(problem.shape.n, choice.int("tn"));
        Threads { mt, nt, slices: (choice.int("block") / (mt * nt).max(1)).max(1) }
    }

    /// Threads that cover C once.
    pub(super) fn covering(&self) -> i64 {
        self.mt * self.nt
    }
}

pub(super) fn ceil(a: i64, b: i64) -> i64 {
    (a + b - 1) / b.max(1)
}

/// Elements of a row of this many columns that a thread with `tile` of them reads at once: 16 bytes, if rows are made
/// of whole tiles.
pub(super) fn piece(problem: &Problem, columns: i64, tile: i64) -> i64 {
    let most = 16 / problem.dtype().bytes();
    if columns % tile == 0 && tile % most == 0 { most } else { 1 }
}

/// Slices among which the rows of a group are shared out: the most that there are threads for and that divide it.
pub(super) fn slices_of_a_group(problem: &Problem, choice: &Choice) -> i64 {
    let most = Threads::of(problem, choice).slices;
    (1..=most).rev().find(|s| choice.int("depth") % s == 0).unwrap_or(1)
}

/// How the warps of a block stand over C.
pub(super) struct Warps {
    /// Rows of C of an instruction.
    pub(super) high: i64,
    /// Terms of an instruction.
    pub(super) terms: i64,
    /// Rows of C of a warp.
    pub(super) rows: i64,
    /// Columns of C of a warp.
    pub(super) columns: i64,
}

impl Warps {
    pub(super) fn of(problem: &Problem, choice: &Choice) -> Warps {
        let (high, terms) = staging::instruction(choice.word("instruction"));
        let rows = ceil(ceil(problem.shape.m, high), choice.int("wm")) * high;
        let columns = ceil(ceil(problem.shape.n, ACROSS), choice.int("wn")) * ACROSS;
        Warps { high, terms, rows, columns }
    }
}

/// By how many elements a row of `columns` grows: as much as takes the four rows and eight columns that a warp reads for
/// a matrix instruction to different banks. Threads read the same row together, so other types stay as they are.
pub(super) fn padding(dtype: DType, columns: i64, piece: i64) -> i64 {
    match dtype {
        DType::F64 => staging::padding(columns, piece, |c| matches!(c % 16, 4 | 12) || c % 2 == 1),
        // A quarter of a warp reads two columns of four rows at a time.
        DType::C128 => staging::padding(columns, piece, |c| matches!(c % 8, 2 | 6)),
        _ => staging::padding(columns, piece, |_| true),
    }
}

/// Columns of A and B in shared memory: those of all tiles of C.
pub(super) fn staged_columns(problem: &Problem, choice: &Choice) -> [i64; 2] {
    if choice.word("unit") == "mma" {
        let Warps { rows, columns, .. } = Warps::of(problem, choice);
        [choice.int("wm") * rows, choice.int("wn") * columns]
    } else {
        let Threads { mt, nt, .. } = Threads::of(problem, choice);
        let (m, n) = (problem.shape.m, problem.shape.n);
        [(m, choice.int("tm"), mt), (n, choice.int("tn"), nt)].map(|(columns, tile, threads)| {
            // Pieces that lie far apart end with the last that is needed, tiles with the last thread's.
            let apart = threads * piece(problem, columns, tile);
            if choice.flag("transposed") { ceil(columns, apart) * apart } else { threads * tile }
        })
    }
}

/// Bytes that a row of A and one of B take in shared memory.
pub(super) fn row_bytes(problem: &Problem, choice: &Choice) -> i64 {
    let dtype = problem.dtype();
    let of = |width: i64, staged: i64| staged + padding(dtype, staged, copied_at_once(dtype, width, staged));
    let [a, b] = staged_columns(problem, choice);
    (of(problem.shape.m, a) + of(problem.shape.n, b)) * dtype.bytes()
}
