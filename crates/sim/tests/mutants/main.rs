//! The checker is itself tested: mutants of the programs must be caught, the programs themselves must pass, and what
//! real threads in random order get wrong must have been reported.

mod cases;

use warpwright_sim::coroutine::{self, Policy};

#[test]
fn every_program_is_right_whatever_the_order() {
    for case in cases::nine_programs() {
        for shape in &case.shapes {
            for seed in 0..3 {
                let before = cases::arguments(&case.program, shape, seed);
                assert!(coroutine::assumptions_hold(&case.program, &before), "{}", case.name);
                let mut after = before.clone();
                let policy = if seed == 0 { Policy::latest(seed) } else { Policy::from_seed(seed) };
                let result = coroutine::run(&case.program, &mut after, policy);
                assert_eq!(result, Ok(()), "{} {shape:?} seed {seed}", case.name);
                assert_eq!(
                    cases::first_difference(&case, &before, &after),
                    None,
                    "{} seed {seed}",
                    case.name
                );
            }
        }
    }
}
