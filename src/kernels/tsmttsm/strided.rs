//! Rows that are some way apart, or start anywhere: how groups of them may come to shared memory.
//!
//! Device memory gives 64 bytes at a time, or 32 ([`super::super::granularity`]). Where less than that lies between two rows, it is read in any case; so a group of rows may come
//! by one bulk copy, with what lies between them (`copy=span`), as dense rows do. Rows that do not start at a multiple of 16 bytes come with the elements
//! before the first, which the memory that they are a part of has. Nobody looks at what lies between and before, and what lies behind the last row is
//! not touched. A kernel has to know how far apart rows are and where they start, so each way has a kernel of its own.

use warpwright_core::target::{Capability, Target};

use super::boxes;
use super::mapping;
use crate::kernels::family::{Choice, Value};
use crate::kernels::gemm::{Span, Strides};
use crate::kernels::granularity::granularity;
use crate::kernels::staging;
use crate::problem::{Alignment, Problem};

/// What kernels know of strides.
pub(super) fn strides(problem: &Problem, choice: &Choice) -> Strides {
    if boxes::in_boxes(choice) {
        Strides::OfWholePieces
    } else if in_spans(choice) {
        let span = |offset: i64, stride| Span { before: Span::before(problem.dtype(), offset), stride };
        Strides::Constant([span(problem.offset.a, problem.ld.a), span(problem.offset.b, problem.ld.b)])
    } else {
        Strides::Arguments
    }
}

/// Whether groups of rows come with what lies between them.
pub(super) fn in_spans(choice: &Choice) -> bool {
    choice.word(staging::COPY) == staging::SPAN
}

/// Whether rows come behind elements that lie before the first of them.
pub(super) fn begins_behind(problem: &Problem, choice: &Choice) -> bool {
    matches!(strides(problem, choice), Strides::Constant(spans) if spans.iter().any(|span| span.before > 0))
}

/// How groups of rows of both matrices may come where both are some way apart; none where there is nothing to choose.
pub(super) fn ways(problem: &Problem, choice: &Choice, target: &Target) -> Vec<Value> {
    let mut ways = vec![staging::BY_ROWS.into()];
    if boxes::may_arrive_in_boxes(problem, target) {
        ways.push(staging::BOXES.into());
    }
    if may_arrive_in_spans(problem, choice, target) {
        ways.push(staging::SPAN.into());
    }
    if ways.len() > 1 { ways } else { Vec::new() }
}

/// Whether rows may come with what lies between them: there is little, and something else than dense rows of aligned matrices.
pub(super) fn may_arrive_in_spans(problem: &Problem, choice: &Choice, target: &Target) -> bool {
    let between = [problem.ld.a - problem.shape.m, problem.ld.b - problem.shape.n];
    let starts = problem.alignment();
    let as_they_are = between == [0; 2] && [starts.a, starts.b] == [Alignment::MOST; 2];
    choice.word("unit") == "mma"
        && !as_they_are
        && between.iter().all(|elements| elements * problem.dtype().bytes() < granularity(choice))
        && mapping::areas(problem, choice) == 1
        && target.has(Capability::Tma)
}
