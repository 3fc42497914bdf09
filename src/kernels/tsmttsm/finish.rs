//! Where C is small: whether the threads that add up the parts of an element meet in shared memory, or are the lanes of a warp, which hand
//! sums to each other (`finish=shuffles`).
//!
//! What a product of few columns does last is a chain of waits: slices of a block are added up by one thread after the other's store, and in
//! the second launch one thread adds up what 32 have. Five shuffles take less.

use super::mapping::{self, areas, class_count, owners, shares, slices};
use super::reduction::second_pass_shares;
use super::sets;
use crate::kernels::family::{Choice, Parameter};
use crate::kernels::gemm::Numbers;
use crate::kernels::staging::numbers;
use crate::problem::Problem;

/// The parameter.
pub(super) const FINISH: Parameter = Parameter {
    name: "finish",
    about: "how the last threads that share out the parts of an element of a small C add up what they have: in shared memory, or by shuffles of a warp",
    values: |choice, problem, _| {
        if is_small(problem, choice) { vec!["shared".into(), SHUFFLES.into()] } else { Vec::new() }
    },
};

const SHUFFLES: &str = "shuffles";

/// The most elements of C: each takes a warp.
const MOST_ELEMENTS: i64 = 16;

/// The lanes of a warp.
const LANES: i64 = 32;

/// Whether a warp adds up the parts of an element in the second launch.
pub(super) fn by_shuffles(choice: &Choice) -> bool {
    choice.word(FINISH.name) == SHUFFLES
}

/// Whether a warp adds up the slices of an element in the block too: if they divide among lanes, and there are warps enough.
pub(super) fn in_blocks_too(problem: &Problem, choice: &Choice) -> bool {
    by_shuffles(choice)
        && (choice.word("staging") != "shared" || sets::come_together(choice))
        && slices(problem, choice) % LANES == 0
        && shares(problem, choice) > 1
        && owners(problem, choice) * LANES <= choice.int("block")
}

/// Whether there is a second launch whose blocks have a warp for each element, and few elements.
fn is_small(problem: &Problem, choice: &Choice) -> bool {
    choice.word("unit") == "fma"
        && choice.word("reduction") == "two-pass"
        && areas(problem, choice) == 1
        && class_count(problem, choice) == 1
        && numbers(problem, choice) == Numbers::Whole
        && mapping::area(problem, choice).iter().product::<i64>() <= MOST_ELEMENTS
        && second_pass_shares(problem, choice) == LANES
}
