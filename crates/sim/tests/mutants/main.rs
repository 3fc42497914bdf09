//! The checker is itself tested: mutants of the programs must be caught, the programs themselves must pass, and what
//! real threads in random order get wrong must have been reported.

mod cases;
mod pictures;

use warpwright_sim::coroutine;
use warpwright_sim::mutate::{case, trial};

#[test]
fn every_program_is_right_whatever_the_order() {
    for case in cases::nine_programs() {
        for shape in &case.shapes {
            let arguments = case::arguments(&case.program, shape, 0);
            assert!(coroutine::assumptions_hold(&case.program, &arguments), "{} {shape:?}", case.name);
        }
        assert_eq!(trial::trial(&case, &case.program, 1), trial::Verdict::default(), "{}", case.name);
    }
}
