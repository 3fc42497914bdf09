//! Sets of threads that share out the rows of a staged group: whether each leaves its sums for the second launch (`sets=apart`), or those of a block
//! are added up in its shared memory first (`sets=together`), so that tiles of threads may be large, and sets many, where C is small.

use super::mapping::{self, WHOLE, areas};
use crate::kernels::family::{Choice, Parameter};
use crate::kernels::staging::By;
use crate::problem::Problem;

/// The parameter.
pub(super) const SETS: Parameter = Parameter {
    name: NAME,
    about: "where the sums of sets of threads that share out the rows of a group come together: in the second launch (apart), or in shared memory before (together)",
    values: |choice, problem, _| {
        if may_come_together(problem, choice) { vec![APART.into(), TOGETHER.into()] } else { Vec::new() }
    },
};

pub(super) const NAME: &str = "sets";
const APART: &str = "apart";
const TOGETHER: &str = "together";

/// The most elements of C for which it is tried: each set leaves as many in shared memory.
const MOST_ELEMENTS: i64 = 256;

/// Whether they come together in shared memory.
pub(super) fn come_together(choice: &Choice) -> bool {
    choice.word(NAME) == TOGETHER
}

/// Bytes of shared memory that their sums take then, beside rows.
pub(super) fn bytes(problem: &Problem, choice: &Choice) -> i64 {
    if come_together(choice) { mapping::slices_bytes(problem, choice) } else { 0 }
}

/// Whether there are several sets, of threads that take rows one by one, and a second launch that may have less to add up. Barriers of bulk copies
/// count one loop of the block alone, which this one stands inside of.
fn may_come_together(problem: &Problem, choice: &Choice) -> bool {
    choice.word("unit") == "fma"
        && choice.word("staging") == "shared"
        && choice.word("reduction") == "two-pass"
        && By::of(choice) != By::Bulk
        && !choice.flag("panel")
        && !choice.flag(WHOLE)
        && areas(problem, choice) == 1
        && mapping::class_count(problem, choice) == 1
        && mapping::sums(problem, choice) == 1
        && mapping::area(problem, choice).iter().product::<i64>() <= MOST_ELEMENTS
        && mapping::slices_of_a_group(problem, choice) > 1
}
