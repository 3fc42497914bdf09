//! The checker is itself tested: mutants of the programs must be caught, the programs themselves must pass, and what
//! real threads in random order get wrong must have been reported.

mod cases;
mod pictures;

use warpwright_sim::mutate::trial::{Effort, Verdict, trial};

#[test]
fn every_program_passes_without_a_false_alarm() {
    for case in cases::nine_programs() {
        let verdict = trial(&case, &case.examples(1), &case.program, 1, Effort::All);
        assert_eq!(verdict, Verdict::default(), "{}", case.name);
    }
}
