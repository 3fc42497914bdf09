//! What each checker says of a program.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use warpwright_core::ir::{ParamKind, Program, validate};
use warpwright_core::target::{self, Capability};

use super::case::{Case, Example, Shape};
use super::{Mutant, classes, mutants};
use crate::coroutine::Policy;
use crate::exact::{self, Trials};
use crate::{Blocks, Mode, Options};

/// The complaints of the checkers; `None` where a checker has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The program is refused before it runs.
    pub refused: Option<String>,
    /// Over the prime field, in order: another value, poison in an output, a wait that nothing satisfies, an index
    /// outside its buffer.
    pub in_order: Option<String>,
    /// In order with infinities: an output of another class.
    pub classes: Option<String>,
    /// Over the prime field, as SIMT: all that, and races, missing fences, wrong owners and operands.
    pub simt: Option<String>,
    /// Threads in random order.
    pub threads: Option<String>,
}

impl Verdict {
    /// Whether the checkers that users rely on complain. Threads in random order only confirm.
    pub fn caught(&self) -> bool {
        [&self.refused, &self.in_order, &self.classes, &self.simt].iter().any(|c| c.is_some())
    }
}

/// Which checkers are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// All, on every example until each has complained: for tables.
    All,
    /// The SIMT engine first, and the others only if it has nothing to say.
    UntilCaught,
}

/// Tries a program, usually a mutant of the case's. What is refused is not run in the engines that take only what is
/// not.
pub fn trial(case: &Case, examples: &[Example], program: &Program, seed: u64, effort: Effort) -> Verdict {
    let mut verdict = Verdict { refused: refusal(program), ..Verdict::default() };
    let enough = |verdict: &Verdict| effort == Effort::UntilCaught && verdict.caught();
    let first = |ask: &dyn Fn(&Example) -> Option<String>| examples.iter().find_map(ask);
    if verdict.refused.is_none() {
        verdict.simt = first(&|e| exact(case, program, &e.shape, seed, Mode::Simt));
        if !enough(&verdict) {
            verdict.in_order = first(&|e| exact(case, program, &e.shape, seed, Mode::InOrder));
        }
        if !enough(&verdict) {
            verdict.classes = first(&|e| {
                let difference = classes::first_difference(case, program, &e.shape, seed);
                difference.unwrap_or_else(|diagnosis| Some(diagnosis.to_string()))
            });
        }
    }
    if effort == Effort::All || verdict.simt.is_none() && verdict.refused.is_none() {
        verdict.threads = first(&|e| {
            let policies = [Policy::latest(seed), Policy::from_seed(seed)];
            policies.into_iter().find_map(|policy| e.complaint(program, policy))
        });
    }
    verdict
}

/// The first complaint of the exact check in a mode.
fn exact(case: &Case, program: &Program, shape: &Shape, seed: u64, mode: Mode) -> Option<String> {
    // The check itself gives each flag both values.
    let is_flag = |name: &str| case.program.param(name).is_some_and(|p| p.kind == ParamKind::Flag);
    let sizes: Vec<(&str, i64)> = shape.iter().copied().filter(|(name, _)| !is_flag(name)).collect();
    let options = Options { mode, checks: true, blocks: Blocks::All };
    match exact::check(&case.specification, program, &sizes, &Trials { count: 1, seed, options }) {
        Err(diagnosis) => Some(diagnosis.to_string()),
        Ok(report) if report.passed() => None,
        Ok(report) => {
            let hazard = report.run.hazards.first().map(ToString::to_string);
            let difference = report.first.map(|m| format!("{} differs", m.element));
            hazard.or(difference)
        }
    }
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
pub fn trials(cases: &[Case], seed: u64, most: usize, effort: Effort) -> Vec<Trial<'_>> {
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
                    let verdict = trial(&cases[*case], &examples[*case], &mutant.program, seed, effort);
                    verdicts.lock().unwrap_or_else(PoisonError::into_inner)[at] = verdict;
                }
            });
        }
    });
    let verdicts = verdicts.into_inner().unwrap_or_else(PoisonError::into_inner);
    let pairs = mutants.into_iter().zip(verdicts);
    pairs.map(|((case, mutant), verdict)| Trial { case: &cases[case], mutant, verdict }).collect()
}
