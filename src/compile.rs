//! From a finished schedule to something that runs: each line is one stage.

use warpwright_core::diag::Diagnosis;
use warpwright_core::emit::cuda::{self, Source};
use warpwright_core::ir::Program;
use warpwright_core::ir::validate::{self, Valid};
use warpwright_core::passes;
use warpwright_core::target::Target;

use crate::problem::{Problem, Shape};

/// Lowers a program to threads and barriers and proves that it fits a target.
pub fn validated(program: &Program, target: &Target) -> Result<Valid, Diagnosis> {
    let lowered = passes::lower(program)?;
    let well_formed = validate::check(lowered).map_err(all)?;
    validate::validate(well_formed, target).map_err(all)
}

/// The CUDA C of a validated program.
pub fn cuda(valid: &Valid) -> Result<Source, Diagnosis> {
    cuda::emit(valid)
}

/// The CUDA C of a validated program for a problem: where an extent does not fit in 32 bits, sizes are 64 bits long.
pub fn cuda_for(valid: &Valid, problem: &Problem) -> Result<Source, Diagnosis> {
    let Shape { m, n, k } = problem.shape;
    if m.max(n).max(k) > cuda::LARGEST_SIZE { cuda::emit_long(valid) } else { cuda::emit(valid) }
}

/// Several faults as one diagnosis: the first, and the others below it.
fn all(faults: Vec<Diagnosis>) -> Diagnosis {
    let text: Vec<String> = faults.iter().map(ToString::to_string).collect();
    Diagnosis::new(text.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::{cuda, validated};
    use crate::kernels::{self, Variant};
    use warpwright_core::target;

    #[test]
    fn every_rung_becomes_cuda_text() {
        let variant = Variant::new("f32".parse().unwrap(), "nn".parse().unwrap());
        for recipe in kernels::all().filter(|r| r.family == "sgemm") {
            let kernel = kernels::build(recipe, variant).unwrap();
            let valid = validated(kernel.program(), target::DEFAULT)
                .unwrap_or_else(|e| panic!("{}: {e}", kernel.name));
            let source = cuda(&valid).unwrap_or_else(|e| panic!("{}: {e}", kernel.name));
            assert_eq!(source.kernels.len(), valid.launches().len(), "{}", kernel.name);
        }
    }
}
