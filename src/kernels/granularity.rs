//! Rows that stand apart: how many bytes device memory gives at a time.
//!
//! The second-level cache asks device memory for 64 bytes where 32 are missed, unless the context of the process says that it should ask for no more
//! than those. Rows of 64 bytes that stand 96 apart are read in 0.69 of the time then (`bench/limits/granularity.cu` on an H200, 2026-11-29).

use warpwright_core::target::{Capability, Target};

use super::family::{Choice, Constraint, Parameter};
use crate::problem::{Problem, moved_to_write, touched_bytes};

/// The parameter that says how many bytes device memory should give at a time at most.
pub(super) const GRANULARITY: Parameter = Parameter {
    name: NAME,
    about: "how many bytes device memory gives at a time at most, by a setting of the CUDA context",
    values: |_, problem, target| {
        if matters(problem, target) { vec![USUAL.into(), LEAST.into()] } else { Vec::new() }
    },
};

/// What that may be, whoever gives it.
pub(super) const GIVES: Constraint = Constraint {
    about: "device memory gives 32 or 64 bytes at a time",
    on: &[NAME],
    holds: |c, _, _| c.get(NAME).is_none() || [USUAL, LEAST].contains(&c.int(NAME)),
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

/// Whether rows that are read touch fewer bytes in pieces of 32 than in pieces of 64, or rows of C share sectors with what lies between them, which may
/// be read before they are written; and these come from device memory.
fn matters(problem: &Problem, target: &Target) -> bool {
    let far = |bytes: f64| bytes > target.l2_bytes.value as f64;
    let (most, fewest) = (in_pieces(problem, USUAL), in_pieces(problem, LEAST));
    let touched = touched_of_c(problem);
    target.has(Capability::FetchGranularity)
        && (far(most) && fewest < WORTH * most
            || far(touched) && shared_of_c(problem) > (1.0 - WORTH) * touched)
}

/// Whether rows of C share sectors with what lies between them.
pub(super) fn shares_sectors(problem: &Problem) -> bool {
    shared_of_c(problem) > 0.0
}

/// Bytes of the sectors that they share.
fn shared_of_c(problem: &Problem) -> f64 {
    written_of_c(problem, Some(LEAST)) - touched_of_c(problem)
}

/// Bytes of all sectors that hold some of C.
fn touched_of_c(problem: &Problem) -> f64 {
    touched_bytes(problem.stored_c(), problem.ld.c, problem.offset.c, problem.result_dtype().bytes(), LEAST)
}

/// Bytes that device memory moves where C is written, the sectors that it shares with gaps brought by so many bytes each.
fn written_of_c(problem: &Problem, brought: Option<i64>) -> f64 {
    let size = problem.result_dtype().bytes();
    moved_to_write(problem.stored_c(), problem.ld.c, problem.offset.c, size, brought)
}

/// Bytes that device memory moves beside those of C, where sectors that are written in part may have been `completed` before. C is read in any case if there
/// is a beta, and so are they.
pub(super) fn beside_c(problem: &Problem, choice: &Choice, completed: bool) -> f64 {
    let (rows, columns) = problem.stored_c();
    let wanted = (rows * columns * problem.result_dtype().bytes()) as f64;
    if problem.beta.norm() != 0.0 {
        return 2.0 * (touched_of_c(problem) - wanted);
    }
    written_of_c(problem, completed.then_some(granularity(choice))) - wanted
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
