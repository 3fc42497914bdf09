//! What each checker says of a program.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use warpwright_core::ir::{ParamKind, Program, validate};
use warpwright_core::target::{self, Capability};

use super::case::{Case, Example, Shape};
use super::{Mutant, classes, mutants};
use crate::coroutine::Policy;
use crate::exact::{self, Trials};
use crate::{Blocks, HazardKind, Mode, Options};

/// The complaints of the checkers; `None` where a checker has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The program is refused before it runs.
    pub refused: Option<String>,
    /// Over the prime field, in order: another value, poison in an output, a wait that nothing satisfies, an index
    /// outside its buffer.
    pub in_order: Option<Complaint>,
    /// In order with infinities: an output of another class.
    pub classes: Option<String>,
    /// Over the prime field, as SIMT: all that, and races, missing fences, wrong owners and operands.
    pub simt: Option<Complaint>,
    /// Threads in random order: what the first of the orders that went wrong did.
    pub threads: Option<String>,
    /// How many orders were tried.
    pub orders: usize,
    /// In how many of them something went wrong.
    pub wrong_orders: usize,
}

/// What an engine says of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// The first hazard; `None` if nothing is wrong but values, or nothing could be run.
    pub hazard: Option<HazardKind>,
    /// All of it in words.
    pub text: String,
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// How threads in random order stand to what was said of a program without running threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// Nothing was said, and every order gives what the specification gives.
    Clean,
    /// A refusal or a hazard, and at least one order goes wrong; or wrong values without a hazard, and since then the
    /// order does not matter, every order goes wrong.
    Shown,
    /// A refusal or a hazard that no order has shown: there must be a reason.
    Unseen,
    /// Nothing was said, and an order goes wrong; or wrong values without a hazard, and an order gives right ones. One
    /// of the two engines is wrong.
    Disagreement,
}

impl Verdict {
    /// Whether the checkers that users rely on complain. Threads in random order only confirm.
    pub fn caught(&self) -> bool {
        self.refused.is_some() || self.in_order.is_some() || self.classes.is_some() || self.simt.is_some()
    }

    /// Whether what was said may depend on the order: a refusal, or a hazard.
    fn of_some_orders(&self) -> bool {
        self.refused.is_some() || self.simt.as_ref().is_some_and(|c| c.hazard.is_some())
    }

    /// How threads in random order stand to the refusal or to what the SIMT engine says.
    pub fn agreement(&self) -> Agreement {
        match (self.wrong_orders, &self.simt) {
            (0, _) if self.of_some_orders() => Agreement::Unseen,
            (_, _) if self.of_some_orders() => Agreement::Shown,
            (0, None) => Agreement::Clean,
            (wrong, Some(_)) if wrong == self.orders => Agreement::Shown,
            _ => Agreement::Disagreement,
        }
    }
}

/// Which checkers are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// All, on every example until each has complained: for tables.
    All,
    /// Threads and the SIMT engine, and the others only if the SIMT engine has nothing to say.
    UntilCaught,
}

/// The orders that threads run in: the two extremes, and as drawn.
fn orders(seed: u64) -> [Policy; 3] {
    [Policy::latest(seed), Policy::overtaking(seed), Policy::from_seed(seed)]
}

/// Tries a program, usually a mutant of the case's. What is refused is not run in the engines that take only what is
/// not.
pub fn trial(case: &Case, examples: &[Example], program: &Program, seed: u64, effort: Effort) -> Verdict {
    let mut verdict = Verdict { refused: refusal(program), ..Verdict::default() };
    let enough = |verdict: &Verdict| effort == Effort::UntilCaught && verdict.caught();
    if verdict.refused.is_none() {
        verdict.simt = examples.iter().find_map(|e| exact(case, program, &e.shape, seed, Mode::Simt));
        if !enough(&verdict) {
            verdict.in_order =
                examples.iter().find_map(|e| exact(case, program, &e.shape, seed, Mode::InOrder));
        }
        if !enough(&verdict) {
            verdict.classes = examples.iter().find_map(|e| {
                let difference = classes::first_difference(case, program, &e.shape, seed);
                difference.unwrap_or_else(|diagnosis| Some(diagnosis.to_string()))
            });
        }
    }
    // A hazard is shown once, wrong values by two orders, and what nobody complains of must be right in all.
    let only_values = verdict.simt.is_some() && !verdict.of_some_orders();
    for policy in orders(seed).into_iter().take(if only_values { 2 } else { 3 }) {
        verdict.orders += 1;
        if let Some(complaint) = examples.iter().find_map(|e| e.complaint(program, policy.clone())) {
            verdict.threads.get_or_insert(complaint);
            verdict.wrong_orders += 1;
            if verdict.of_some_orders() {
                break;
            }
        }
    }
    verdict
}

/// The first complaint of the exact check in a mode.
fn exact(case: &Case, program: &Program, shape: &Shape, seed: u64, mode: Mode) -> Option<Complaint> {
    // The check itself gives each flag both values.
    let is_flag = |name: &str| case.program.param(name).is_some_and(|p| p.kind == ParamKind::Flag);
    let sizes: Vec<(&str, i64)> = shape.iter().copied().filter(|(name, _)| !is_flag(name)).collect();
    let options = Options { mode, checks: true, blocks: Blocks::All };
    match exact::check(&case.specification, program, &sizes, &Trials { count: 1, seed, options }) {
        Err(diagnosis) => Some(Complaint { hazard: None, text: diagnosis.to_string() }),
        Ok(report) if report.passed() => None,
        Ok(report) => match (report.run.hazards.first(), report.first) {
            (Some(hazard), _) => Some(Complaint { hazard: Some(hazard.kind), text: hazard.to_string() }),
            (None, first) => {
                let text = first.map_or_else(String::new, |m| format!("{} differs", m.element));
                Some(Complaint { hazard: None, text })
            }
        },
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
