//! What each checker says of a program.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use warpwright_core::ir::Program;
use warpwright_core::ir::validate;
use warpwright_core::target::{self, Capability};

use super::case::{Case, Example};
use super::{Mutant, mutants};
use crate::coroutine::Policy;

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

/// Runs a program, usually a mutant of the case's, on every example until every checker has complained.
pub fn trial(examples: &[Example], program: &Program, seed: u64) -> Verdict {
    let mut verdict = Verdict { refused: refusal(program), ..Verdict::default() };
    for example in examples {
        for policy in [Policy::latest(seed), Policy::from_seed(seed)] {
            verdict.threads = verdict.threads.or_else(|| example.complaint(program, policy));
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

/// A mutant and what is said of it.
pub struct Trial<'a> {
    /// The case whose program it is a mutant of.
    pub case: &'a Case,
    /// The mutant.
    pub mutant: Mutant,
    /// The complaints.
    pub verdict: Verdict,
}

/// Draws mutants of all cases, at most `most` of each kind and case, and tries them, two at a time.
pub fn trials(cases: &[Case], seed: u64, most: usize) -> Vec<Trial<'_>> {
    let examples: Vec<Vec<Example>> = cases.iter().map(|c| c.examples(seed)).collect();
    let of_case = |case: usize| mutants(&cases[case].program, seed, most).into_iter().map(move |m| (case, m));
    let mutants: Vec<(usize, Mutant)> = (0..cases.len()).flat_map(of_case).collect();
    let next = AtomicUsize::new(0);
    let verdicts = Mutex::new(vec![Verdict::default(); mutants.len()]);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some((case, mutant)) = mutants.get(at) else { return };
                    let verdict = trial(&examples[*case], &mutant.program, seed);
                    verdicts.lock().unwrap_or_else(PoisonError::into_inner)[at] = verdict;
                }
            });
        }
    });
    let verdicts = verdicts.into_inner().unwrap_or_else(PoisonError::into_inner);
    let pairs = mutants.into_iter().zip(verdicts);
    pairs.map(|((case, mutant), verdict)| Trial { case: &cases[case], mutant, verdict }).collect()
}
