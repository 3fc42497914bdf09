//! Fitting a target.

use super::{FINISHED, assert_fault, checked, edited, text};
use crate::diag::Diagnosis;
use crate::ir::validate::{Valid, validate};
use crate::target::Target;

fn valid_on(text: &str, gpu: &str) -> Result<Valid, Vec<Diagnosis>> {
    let target = Target::by_name(gpu).expect("is in the table");
    let program = checked(text).unwrap_or_else(|faults| panic!("{}\n{text}", said(&faults)));
    validate(program, target)
}

fn said(faults: &[Diagnosis]) -> String {
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_finished_program_fits_a_gpu_that_has_what_it_needs() {
    for name in FINISHED {
        if let Err(faults) = valid_on(&text(name), "h200") {
            panic!("{name}:\n{}", said(&faults));
        }
    }
}
