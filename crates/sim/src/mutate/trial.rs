//! What each checker says of a program.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use warpwright_core::ir::Program;
use warpwright_core::ir::validate;
use warpwright_core::target::{self, Capability};

use super::Mutant;
use super::case::{Case, Tensors, arguments, first_difference};
use crate::coroutine::{self, Policy};

/// The complaints of the checkers; `None` where a checker has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The program is refused before it runs.
    pub refused: Option<String>,
    /// Threads in random order.
    pub threads: Option<String>,
}

impl Verdict {
    /// Whether the checkers that users rely on complain. Threads in random order only confirm.
    pub fn caught(&self) -> bool {
        self.refused.is_some()
    }
}

/// Runs a program, usually a mutant of the case's, on every shape until every checker has complained.
pub fn trial(case: &Case, program: &Program, seed: u64) -> Verdict {
    let mut verdict = Verdict { refused: refusal(program), ..Verdict::default() };
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

fn refusal(program: &Program) -> Option<String> {
    // The programs may use everything up to wgmma, so they are validated for a GPU that has it.
    let target = target::ALL.iter().find(|t| t.has(Capability::Wgmma)).expect("the table has such a GPU");
    let first = |faults: Vec<_>| faults.first().map(|f: &warpwright_core::diag::Diagnosis| f.to_string());
    match validate::check(program.clone()) {
        Err(faults) => first(faults),
        Ok(well_formed) => validate::validate(well_formed, target).err().and_then(first),
    }
}

/// The verdicts on many mutants, each with the case it is of, in the same order; two at a time.
pub fn trials(mutants: &[(&Case, Mutant)], seed: u64) -> Vec<Verdict> {
    let next = AtomicUsize::new(0);
    let verdicts = Mutex::new(vec![Verdict::default(); mutants.len()]);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some((case, mutant)) = mutants.get(at) else { return };
                    let verdict = trial(case, &mutant.program, seed);
                    verdicts.lock().unwrap_or_else(PoisonError::into_inner)[at] = verdict;
                }
            });
        }
    });
    verdicts.into_inner().unwrap_or_else(PoisonError::into_inner)
}
