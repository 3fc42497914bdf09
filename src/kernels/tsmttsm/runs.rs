//! Groups of dense rows that arrive in four runs, each by a bulk copy of its own.
//!
//! Rows of a multiple of 128 bytes begin in the same banks of shared memory however many rows apart they are, and rows of an odd multiple of
//! 64 bytes in two. An instruction that takes one row from each of four runs finds them in different banks if there is padding between runs.

use super::border;
use super::mapping::{LINE, fewest_passes, one_copy, padding, passes_of_both, read, staged_columns};
use crate::kernels::family::Choice;
use crate::kernels::gemm::Numbers;
use crate::kernels::staging::{self, ceil, numbers};
use crate::problem::Problem;

/// The name of the parameter that says in how many runs a group of dense rows arrives, each by a bulk copy of its own.
pub(super) const RUNS_OF_A_GROUP: &str = "runs";

/// So many, if not one: one for each of the rows that lanes read together.
pub(super) const RUNS: i64 = 4;

/// Whether a group arrives in runs, with padding between them.
pub(super) fn in_runs(choice: &Choice) -> bool {
    choice.int(RUNS_OF_A_GROUP) == RUNS
}

/// Whether a group may arrive in runs: where dense rows meet in banks however far apart they are, all warps multiply all rows of a group,
/// and what tiles read beyond the end of rows are whole pieces of 16 bytes.
pub(super) fn may_arrive_in_runs(problem: &Problem, choice: &Choice) -> bool {
    let read = read(problem, choice);
    let [of_a, of_b] = staged_columns(problem, choice);
    let in_pieces = |width: i64, tiles: i64| (tiles - width) * read.dtype().bytes() % 16 == 0;
    choice.word(staging::COPY) == staging::BULK
        && choice.int("wk") == 1
        && in_pieces(read.shape.m, of_a)
        && in_pieces(read.shape.n, of_b)
        && numbers(problem, choice) != Numbers::Three
        && !border::threads_add_up(problem, choice)
        && fewest_passes(problem, choice, |_| true)
            .is_some_and(|apart| passes_of_both(problem, choice, apart) > 2)
}

/// A run of rows of a group.
pub(super) struct Run {
    /// The elements of its rows.
    pub(super) rows: i64,
    /// Those that are copied: as many more as tiles read beyond the last row.
    pub(super) copied: i64,
    /// Those of the padding behind them, by which the rows that lanes read together are in different banks.
    pub(super) padding: i64,
}

/// The runs of A and of B.
pub(super) fn runs(problem: &Problem, choice: &Choice) -> [Run; 2] {
    let read = read(problem, choice);
    let dtype = read.dtype();
    let run = |width: i64, tiles: i64| {
        let rows = choice.int("depth") / RUNS * width;
        let copied = rows + tiles - width;
        Run { rows, copied, padding: padding(choice, dtype, copied, copied, 1) }
    };
    let [of_a, of_b] = staged_columns(problem, choice);
    [run(read.shape.m, of_a), run(read.shape.n, of_b)]
}

/// Bytes of what stands behind the rows of each run of a group.
pub(super) fn behind_rows(problem: &Problem, choice: &Choice) -> i64 {
    let (bytes, operands) =
        (read(problem, choice).dtype().bytes(), if one_copy(problem, choice) { 1 } else { 2 });
    let behind = |run: &Run| ceil(RUNS * (run.copied - run.rows + run.padding) * bytes, LINE) * LINE;
    runs(problem, choice)[..operands].iter().map(behind).sum()
}
