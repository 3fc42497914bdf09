//! What each checker says of a program.

use warpwright_core::ir::Program;

use super::case::{Case, Tensors, arguments, first_difference};
use crate::coroutine::{self, Policy};

/// The complaints of the checkers; `None` where a checker has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Threads in random order.
    pub threads: Option<String>,
}

/// Runs a program, usually a mutant of the case's, on every shape until somebody complains.
pub fn trial(case: &Case, program: &Program, seed: u64) -> Verdict {
    let mut verdict = Verdict::default();
    for shape in &case.shapes {
        let before = arguments(&case.program, shape, seed);
        let expected = (case.specification)(&Tensors::new(&case.program, &before));
        for policy in [Policy::latest(seed), Policy::from_seed(seed)] {
            if verdict.threads.is_none() {
                let mut after = before.clone();
                verdict.threads = match coroutine::run(program, &mut after, policy) {
                    Err(fault) => Some(fault.to_string()),
                    Ok(()) => first_difference(&expected, &after),
                };
            }
        }
    }
    verdict
}
