//! Rows that stand apart: how many bytes device memory gives at a time.
//!
//! The second-level cache asks device memory for 64 bytes where 32 are missed, unless the context of the process says that it should ask for no more
//! than those. Rows of 64 bytes that stand 96 apart are read in 0.69 of the time then (`bench/limits/granularity.cu` on an H200, 2026-11-29).

use warpwright_core::target::{Capability, Target};

use super::family::{Choice, Parameter};
use crate::problem::{Problem, touched_bytes};

/// The parameter that says how many bytes device memory should give at a time at most.
pub(super) const GRANULARITY: Parameter = Parameter {
    name: NAME,
    about: "how many bytes device memory gives at a time at most, by a setting of the CUDA context",
    values: |_, problem, target| {
        if matters(problem, target) { vec![USUAL.into(), LEAST.into()] } else { Vec::new() }
    },
};

const NAME: &str = "granularity";

/// Bytes that are asked for at a time unless somebody says otherwise, and the fewest.
const USUAL: i64 = 64;
const LEAST: i64 = 32;

/// How many bytes device memory gives at a time to the kernel of a choice.
pub(super) fn granularity(choice: &Choice) -> i64 {
    if choice.get(NAME).is_some() { choice.int(NAME) } else { USUAL }
}

/// Whether kernels of a choice want a context that is set for them.
pub(super) fn needs_context(choice: &Choice) -> bool {
    granularity(choice) != USUAL
}

/// Whether a choice that somebody found for another problem may be of use for this one: rows as far apart as these are not read faster by another setting
/// if the parameter has no meaning for them.
pub(crate) fn suits(choice: &Choice, problem: &Problem, target: &Target) -> bool {
    !needs_context(choice) || matters(problem, target)
}

/// Bytes between rows that device memory gives with those that the kernel of a choice reads.
pub(super) fn between_rows(problem: &Problem, choice: &Choice) -> f64 {
    let wanted = |(rows, columns): (i64, i64)| (rows * columns * problem.dtype().bytes()) as f64;
    let b = if problem.same { 0.0 } else { wanted(problem.stored_b()) };
    in_pieces(problem, granularity(choice)) - wanted(problem.stored_a()) - b
}

/// Whether rows that are read touch fewer bytes in pieces of 32 than in pieces of 64, and come from device memory.
fn matters(problem: &Problem, target: &Target) -> bool {
    let most = in_pieces(problem, USUAL);
    target.has(Capability::FetchGranularity)
        && most > target.l2_bytes.value as f64
        && in_pieces(problem, LEAST) < WORTH * most
}

/// Bytes of all pieces of so many bytes of device memory that hold some of A or B.
fn in_pieces(problem: &Problem, piece: i64) -> f64 {
    let of = |extents, stride, before| touched_bytes(extents, stride, before, problem.dtype().bytes(), piece);
    let a = of(problem.stored_a(), problem.ld.a, problem.offset.a);
    if problem.same { a } else { a + of(problem.stored_b(), problem.ld.b, problem.offset.b) }
}

/// A setting that saves less than this is not worth changing it.
const WORTH: f64 = 0.99;

/// The schedule, for kernels that want another granularity if the choice says so.
pub(super) fn scheduled(schedule: String, choice: &Choice) -> String {
    if needs_context(choice) {
        schedule + &format!("fetch_granularity({})\n", granularity(choice))
    } else {
        schedule
    }
}
