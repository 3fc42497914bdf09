//! Rows of A that stand apart by little, or start anywhere, and arrive with what lies between and before them, a group of them by one bulk copy
//! (`copy=span`), as dense aligned rows do: what `tsmttsm` does for both of its operands.

use warpwright_core::target::{Capability, Target};

use super::mapping::{depth, group, in_parts};
use crate::kernels::family::Choice;
use crate::kernels::gemm::{Span, Strides};
use crate::kernels::granularity::granularity;
use crate::kernels::staging;
use crate::problem::{Alignment, Problem};

/// Whether groups of rows come so.
pub(super) fn in_spans(choice: &Choice) -> bool {
    choice.word(staging::COPY) == staging::SPAN
}

/// What kernels know of strides. The small matrix is read by its rows.
pub(super) fn strides(problem: &Problem, choice: &Choice) -> Strides {
    if !in_spans(choice) {
        return Strides::Arguments;
    }
    let before = Span::before(problem.dtype(), problem.offset.a);
    let of_b = Span { before: 0, stride: problem.ld.b };
    Strides::Constant([Span { before, stride: problem.ld.a }, of_b])
}

/// Whether rows may come so: little lies between them, they are something else than dense rows of an aligned matrix, and each group of them begins
/// as far behind a multiple of 16 bytes as the first. A whole block shares them.
pub(super) fn may_arrive_in_spans(problem: &Problem, choice: &Choice, target: &Target) -> bool {
    let (width, bytes) = (problem.shape.k, problem.dtype().bytes());
    let between = problem.ld.a - width;
    choice.word("unit") == "mma"
        && matches!(choice.word("store"), "direct" | "shared")
        && !in_parts(choice)
        && depth(problem, choice) == width
        && (between > 0 || problem.alignment().a != Alignment::MOST)
        && between * bytes < granularity(choice)
        && group(problem, choice) * problem.ld.a * bytes % Alignment::MOST == 0
        && target.has(Capability::Tma)
}

/// Bytes of a group of so many rows in shared memory: with what lies between them and before the first.
pub(super) fn bytes(problem: &Problem, rows: i64) -> i64 {
    rows * problem.ld.a * problem.dtype().bytes() + Alignment::MOST
}
