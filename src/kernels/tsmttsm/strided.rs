//! Rows that are some way apart: how groups of them may come to shared memory.
//!
//! Device memory gives 64 bytes at a time. Where no more than that lies between two rows, most of it is read in any case; so a group of rows may come
//! by one bulk copy, with what lies between them (`copy=span`), as dense rows do. Nobody looks at what lies between, and what lies behind the last row
//! is not touched. A kernel has to know how far apart rows are, so each stride has a kernel of its own.

use warpwright_core::target::{Capability, Target};

use super::boxes;
use super::mapping;
use crate::kernels::family::{Choice, Value};
use crate::kernels::gemm::Strides;
use crate::kernels::staging;
use crate::problem::{Alignment, Problem};

/// The most bytes between two rows that are brought along.
const MOST_BETWEEN: i64 = 64;

/// What kernels know of strides.
pub(super) fn strides(problem: &Problem, choice: &Choice) -> Strides {
    if boxes::in_boxes(choice) {
        Strides::OfWholePieces
    } else if in_spans(choice) {
        Strides::Constant([problem.ld.a, problem.ld.b])
    } else {
        Strides::Arguments
    }
}

/// Whether groups of rows come with what lies between them.
pub(super) fn in_spans(choice: &Choice) -> bool {
    choice.word(staging::COPY) == staging::SPAN
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

fn may_arrive_in_spans(problem: &Problem, choice: &Choice, target: &Target) -> bool {
    let between = [problem.ld.a - problem.shape.m, problem.ld.b - problem.shape.n];
    let starts = problem.alignment();
    between.iter().all(|elements| elements * problem.dtype().bytes() <= MOST_BETWEEN)
        && [starts.a, starts.b] == [Alignment::MOST; 2]
        && mapping::areas(problem, choice) == 1
        && target.has(Capability::Tma)
}
