//! Dense rows of matrices that start within a line of 128 bytes: whether the lanes of a warp copy and store what lies behind the start of a group of
//! rows, 128 bytes of two lines, or whole lines from the one on in which the group starts (`lines=true`), one access more in all.
//!
//! Kernels are right wherever matrices start; these meet lines where A and C start as far behind one as the problem says.

use super::mapping::{band, copied_a, depth, group, moved_c, team};
use super::schedule::piece_of_c;
use crate::kernels::family::{Choice, Parameter};
use crate::kernels::staging::{By, Moved};
use crate::problem::{Alignment, Problem};

/// The parameter.
pub(super) const LINES: Parameter = Parameter {
    name: NAME,
    about: "whether warps copy and store whole lines of 128 bytes of dense rows that start within one, or what lies behind their start",
    values: |choice, problem, _| {
        if may_be_whole(problem, choice) { vec![false.into(), true.into()] } else { Vec::new() }
    },
};

const NAME: &str = "lines";

/// Bytes that the lanes of a warp reach at once.
const LINE: i64 = 128;

/// How many pieces of so many bytes lie between the start of a line and that of a group of rows of A, if lanes begin with the line.
pub(super) fn ahead_of_a(problem: &Problem, choice: &Choice, piece: i64) -> i64 {
    if choice.flag(NAME) { behind_line(problem, problem.offset.a) / piece } else { 0 }
}

/// The same for C.
pub(super) fn ahead_of_c(problem: &Problem, choice: &Choice, piece: i64) -> i64 {
    let dense = moved_c(problem, choice) != Moved::Strided;
    if choice.flag(NAME) && dense { behind_line(problem, problem.offset.c) / piece } else { 0 }
}

/// How many bytes behind a line a matrix starts.
fn behind_line(problem: &Problem, offset: i64) -> i64 {
    (offset * problem.dtype().bytes()).rem_euclid(LINE)
}

/// Turns of threads of which the first and the last may stand apart.
const TURNS: i64 = 3;

/// Whether that makes a difference: whole rows of A that threads ask for, and of C that they store, and groups of whole lines of them that take some
/// turns. Pieces of 16 bytes that a warp moves at once lie in few lines wherever they start.
fn may_be_whole(problem: &Problem, choice: &Choice) -> bool {
    if !super::is_staged(choice) {
        return false;
    }
    let shape = problem.shape;
    let whole = |columns: i64, piece: i64| {
        let bytes = group(problem, choice) * columns * problem.dtype().bytes();
        bytes % LINE == 0 && bytes >= TURNS * piece * team(problem, choice)
    };
    let copied = copied_a(problem, choice);
    let of_a = copied.by == By::Asking && copied.moved != Moved::Strided && depth(problem, choice) == shape.k;
    let of_c = choice.word("store") == "shared"
        && moved_c(problem, choice) != Moved::Strided
        && band(problem, choice) == shape.n;
    of_a && of_c
        && whole(shape.k, copied.piece * copied.dtype.bytes())
        && whole(shape.n, piece_of_c(problem, choice) * problem.dtype().bytes())
        && [problem.offset.a, problem.offset.c]
            .iter()
            .any(|&offset| behind_line(problem, offset) % Alignment::MOST > 0)
}
