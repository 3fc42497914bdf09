//! The checker is itself tested: mutants of the programs must be caught, the programs themselves must pass, and what
//! real threads in random order get wrong must have been reported.

mod cases;
mod pictures;
mod survivors;

use std::collections::HashSet;

use survivors::SURVIVORS;
use warpwright_sim::mutate::trial::{Effort, Verdict, trial, trials};

#[test]
fn every_program_passes_without_a_false_alarm() {
    for case in cases::nine_programs() {
        let verdict = trial(&case, &case.examples(1), &case.program, 1, Effort::All);
        assert_eq!(verdict, Verdict::default(), "{}", case.name);
    }
}

#[test]
fn every_mutant_is_caught_or_explained_and_threads_find_nothing_new() {
    let cases = cases::nine_programs();
    let trials = trials(&cases, 1, 1, Effort::UntilCaught);
    let kinds: HashSet<&str> = trials.iter().map(|t| t.mutant.kind.name).collect();
    assert!(trials.len() >= 200 && kinds.len() >= 12, "{} mutants of {} kinds", trials.len(), kinds.len());

    let mut expected: Vec<_> = SURVIVORS.iter().collect();
    let mut unexplained = Vec::new();
    for trial in trials.iter().filter(|t| !t.verdict.caught()) {
        let (program, kind, site) = (&trial.case.name, trial.mutant.kind.name, &trial.mutant.site);
        let known =
            |s: &&survivors::Survivor| s.program == program && s.kind == kind && site.starts_with(s.site);
        match expected.iter().position(known) {
            Some(at) => drop(expected.swap_remove(at)),
            None => unexplained.push(format!("{program}: {kind}: {site}")),
        }
    }
    assert!(unexplained.is_empty(), "nobody caught these, and nobody says why:\n{}", unexplained.join("\n"));
    let caught: Vec<_> = expected.iter().map(|s| format!("{}: {}: {}", s.program, s.kind, s.site)).collect();
    assert!(caught.is_empty(), "said to be right, but caught or no longer drawn:\n{}", caught.join("\n"));

    for trial in &trials {
        let verdict = &trial.verdict;
        let missed = verdict.threads.is_some() && verdict.simt.is_none() && verdict.refused.is_none();
        assert!(!missed, "the SIMT engine missed {}: {verdict:?}", trial.mutant.site);
    }
}
