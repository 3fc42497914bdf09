//! The checker is itself tested: mutants of the programs must be caught, the programs themselves must pass, and real
//! threads in random order must agree with the SIMT engine, mutant by mutant.

mod cases;
mod pictures;
mod survivors;

use std::collections::HashSet;

use survivors::{SURVIVORS, UNSEEN};
use warpwright_sim::mutate::explain::faults;
use warpwright_sim::mutate::trial::{Agreement, Effort, trial, trials};

#[test]
fn every_program_passes_without_a_false_alarm() {
    for case in cases::nine_programs() {
        let verdict = trial(&case, &case.examples(1), &case.program, 1, Effort::All);
        assert_eq!(
            (verdict.caught(), verdict.agreement()),
            (false, Agreement::Clean),
            "{}: {verdict:?}",
            case.name
        );
    }
}

#[test]
fn every_mutant_is_caught_or_explained_and_threads_agree() {
    let cases = cases::nine_programs();
    let trials = trials(&cases, 1, 1, Effort::UntilCaught);
    let kinds: HashSet<&str> = trials.iter().map(|t| t.mutant.kind.name).collect();
    assert!(trials.len() >= 200 && kinds.len() >= 12, "{} mutants of {} kinds", trials.len(), kinds.len());

    let faults = faults(&trials, SURVIVORS, UNSEEN);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
