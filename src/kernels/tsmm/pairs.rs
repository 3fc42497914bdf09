//! Results of matrix units in complex64 on their way through shared memory: whether a lane stores the two neighbours of a row that it has at once
//! (`pairs=true`), 16 bytes, or one after the other. Real numbers are stored so wherever rows consist of pairs.

use warpwright_core::dtype::DType;

use super::mapping;
use super::schedule::pieces_are_aligned;
use crate::kernels::family::{Choice, Parameter};
use crate::kernels::gemm::Numbers;
use crate::problem::Problem;

/// The parameter.
pub(super) const PAIRS: Parameter = Parameter {
    name: NAME,
    about: "whether lanes store two neighbouring complex numbers at once in shared memory, where results are gathered before they are stored",
    values: |choice, problem, _| {
        if may_be(problem, choice) { vec![false.into(), true.into()] } else { Vec::new() }
    },
};

const NAME: &str = "pairs";

/// Whether lanes store two complex results at once.
pub(super) fn of_complex(choice: &Choice) -> bool {
    choice.flag(NAME)
}

/// Whether they may, and need not.
fn may_be(problem: &Problem, choice: &Choice) -> bool {
    choice.word("unit") == "mma"
        && problem.dtype() == DType::C64
        && mapping::numbers(problem, choice) == Numbers::Whole
        && mapping::stores_through_shared(choice)
        && super::banks::columns_apart(choice) == 1
        && pieces_are_aligned(problem, choice, 2)
}
