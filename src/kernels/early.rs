//! Short products, whose launches count: calls that begin while what was launched before them still runs.

use warpwright_core::target::Capability;

use super::family::{Choice, Parameter};

/// The parameter that says whether a call begins early, for the families that have it.
pub(super) const EARLY: Parameter = Parameter {
    name: NAME,
    about: "whether a call may begin while what was launched before it still runs, and waits for that itself",
    values: |_, problem, target| {
        let shape = problem.shape;
        let elements = shape.m * shape.k + shape.k * shape.n + shape.m * shape.n;
        let short = elements <= MOST_BYTES / problem.dtype().bytes();
        if short && target.has(Capability::DependentLaunch) {
            vec![false.into(), true.into()]
        } else {
            Vec::new()
        }
    },
};

const NAME: &str = "early";

/// Bytes of operands above which 0.4 us, what a call has been seen to gain on an H200 (`bench/limits/short.cu`), are less than 1 % of its time.
const MOST_BYTES: i64 = 160 << 20;

/// The schedule, for calls that begin early if the choice says so.
pub(super) fn scheduled(schedule: String, choice: &Choice) -> String {
    if choice.flag(NAME) { schedule + "begin_early()\n" } else { schedule }
}
