//! Lowering: every step of every kernel's schedule becomes a program that threads can run.

use warpwright::kernels::{self, Variant};
use warpwright::problem::{Layout, Precision};
use warpwright_core::dtype::DType;
use warpwright_core::ir::validate::{check, validate};
use warpwright_core::passes::lower;
use warpwright_core::target;

#[test]
fn every_step_of_every_schedule_becomes_a_program_for_threads() {
    for recipe in kernels::all() {
        let variant = Variant { precision: Precision::Of(DType::F32), layout: Layout::NN };
        let kernel = kernels::build(recipe, variant).unwrap();
        let prefixes = kernel.schedule.prefixes().unwrap();
        for (step, program) in prefixes.iter().enumerate() {
            let place = format!("{} after {step} steps", recipe.name);
            let lowered = lower(program).unwrap_or_else(|d| panic!("{place}: {d}"));
            let fits = check(lowered.clone()).and_then(|p| validate(p, target::DEFAULT));
            let faults = fits.err().unwrap_or_default();
            assert!(faults.is_empty(), "{place}: {}\n{lowered}", faults[0]);
            if step + 1 < prefixes.len() {
                continue;
            }
            assert_eq!(lower(&lowered).unwrap().to_string(), lowered.to_string(), "{place}");
        }
    }
}
