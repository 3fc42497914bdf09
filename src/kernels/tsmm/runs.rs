//! Groups of dense rows that arrive in runs of a few rows, each by a bulk copy of its own (`copy=span run=8`).
//!
//! Rows of a multiple of 128 bytes begin in the same bank of shared memory however many rows apart they are, and what arrives as one piece has no
//! padding. With some between runs, a matrix instruction that takes one row of each run finds them in different banks. Runs are cut where those of an
//! aligned matrix would be: rows that start behind such a place go on in the next run, and a group has 16 bytes more.

use super::banks;
use super::mapping::{group, makes_whole_numbers, stores_through_shared, warp_tile};
use super::spans;
use crate::kernels::family::{Choice, Parameter};
use crate::kernels::staging::ceil;
use crate::problem::{Alignment, Problem};
use warpwright_core::dtype::DType;

/// The parameter.
pub(super) const RUN: Parameter = Parameter {
    name: "run",
    about: "rows that arrive together of dense rows that come in spans: a whole group (0), or so many, with padding behind them, by which the lanes of a matrix instruction meet fewer others in banks",
    values: |choice, problem, _| {
        let mut ways = worth_trying(problem, choice);
        if spans::in_spans(choice) && !ways.is_empty() && spans::start_anywhere(problem) {
            ways.insert(0, 0);
        }
        if spans::in_spans(choice) { ways.into_iter().map(Into::into).collect() } else { Vec::new() }
    },
};

/// Rows of a run that are tried. A bulk copy takes 50 to 65 cycles of its multiprocessor however short it is
/// (bench/results/h200-2026-11-28-runs-of-rows.txt), so that runs of fewer are too many.
const ROWS: [i64; 3] = [8, 4, 16];

/// Rows of a run; none where groups come as one.
pub(super) fn rows(choice: &Choice) -> Option<i64> {
    Some(choice.int(RUN.name)).filter(|rows| *rows > 0)
}

/// Those that are worth trying: where lanes would meet in banks otherwise, and meet fewer.
pub(super) fn worth_trying(problem: &Problem, choice: &Choice) -> Vec<i64> {
    let of_a_warp = warp_tile(problem, choice).rows;
    let of_a_run = |rows: i64| rows * problem.shape.k * problem.dtype().bytes();
    let may = problem.ld.a == problem.shape.k
        && choice.word("unit") == "mma"
        && makes_whole_numbers(problem, choice)
        && stores_through_shared(choice);
    let whole = |rows: &i64| {
        of_a_warp % rows == 0 && group(problem, choice) % rows == 0 && of_a_run(*rows) % banks::LINE == 0
    };
    let mut found = Vec::new();
    let mut fewest = banks::reads_of_dense_rows(problem);
    for rows in ROWS.into_iter().filter(|rows| may && whole(rows)) {
        let passes = reads(problem, choice, rows);
        if passes < fewest || (passes > 1.0 && passes < banks::reads_of_dense_rows(problem)) {
            found.push(rows);
            fewest = fewest.min(passes);
        }
    }
    found
}

/// Passes of the loads of A by lanes where it comes in runs of so many rows, as multiples of the least.
pub(super) fn reads(problem: &Problem, choice: &Choice, run: i64) -> f64 {
    let words = problem.dtype().bytes() / 4;
    let row = words * problem.shape.k;
    let runs = (warp_tile(problem, choice).rows / run).max(1);
    let between = run * row + words * behind_a_run(problem);
    banks::passes_of(words, |lane| {
        let (nth, term) = (lane / banks::BESIDE, lane % banks::BESIDE);
        nth % runs * between + nth / runs * row + words * term
    })
}

/// Elements of padding behind a run of rows of A: those that the four lanes of a row read at once.
pub(super) fn behind_a_run(_: &Problem) -> i64 {
    banks::BESIDE
}

/// The same behind as many rows of results, of which lanes store two neighbours at once.
pub(super) fn behind_results(problem: &Problem) -> i64 {
    if problem.dtype() == DType::C128 { 1 } else { 2 * banks::BESIDE }
}

/// Bytes of so many rows in shared memory, in runs: with what comes before the first one.
pub(super) fn bytes(problem: &Problem, rows: i64, run: i64) -> i64 {
    let before = if spans::start_anywhere(problem) { Alignment::MOST / problem.dtype().bytes() } else { 0 };
    let elements = rows * problem.shape.k + before;
    let padding = (elements - 1) / (run * problem.shape.k) * behind_a_run(problem);
    ceil((elements + padding) * problem.dtype().bytes(), banks::LINE) * banks::LINE
}

/// The steps by which a warp takes one row of each of its runs after the other; none where rows do not come in runs.
#[derive(Default)]
pub(super) struct InTurn {
    /// Those that part the rows of what is added up.
    pub(super) split: String,
    /// The loop over the rows of a run, as the beginning of a list of loops.
    pub(super) over: String,
    /// Those that make one loop of both again.
    pub(super) fuse: String,
    /// Those by which results go back to their rows.
    pub(super) put_back: String,
}

impl InTurn {
    pub(super) fn of(choice: &Choice, [tiled, sum]: [&str; 2]) -> InTurn {
        let Some(run) = rows(choice) else { return InTurn::default() };
        let split = |stage: &str| format!("split({stage}.i, {run}) -> i, m\n");
        let fuse = |stage: &str| format!("fuse({stage}.m, {stage}.i) -> i\n");
        InTurn {
            split: split(sum),
            over: format!("{sum}.m, "),
            fuse: fuse(sum),
            put_back: format!(
                "storage_order({sum}, r%{run}, r/{run}, c)
{}reorder({tiled}.m, {tiled}.i, {tiled}.j)
{}",
                split(tiled),
                fuse(tiled),
            ),
        }
    }
}
