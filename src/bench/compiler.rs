//! How long it takes from the text of a schedule to CUDA text.

use std::time::Instant;

use serde::Serialize;
use warpwright_core::diag::Diagnosis;
use warpwright_core::target;

use super::median;
use crate::compile;
use crate::kernels::{self, Variant};

/// One line of the benchmark.
#[derive(Clone, Debug, Serialize)]
pub struct CompileTime {
    /// The kernel.
    pub kernel: String,
    /// Seconds from the text of the schedule to CUDA text, checks included.
    pub seconds: f64,
    /// Of these, seconds of the schedule.
    pub schedule_seconds: f64,
    /// Of these, seconds of lowering and validation.
    pub validate_seconds: f64,
    /// Of these, seconds of emission.
    pub emit_seconds: f64,
}

/// Times every recipe for a variant.
pub fn run(variant: Variant, repeats: usize) -> Result<Vec<CompileTime>, Diagnosis> {
    let mut times = Vec::new();
    for recipe in kernels::all() {
        if (recipe.schedule)(variant).is_err() {
            continue;
        }
        let (mut schedule, mut validate, mut emit) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..repeats.max(1) {
            let start = Instant::now();
            let kernel = kernels::build(recipe, variant)?;
            schedule.push(start.elapsed().as_secs_f64());
            let start = Instant::now();
            let valid = compile::validated(kernel.program(), target::DEFAULT)?;
            validate.push(start.elapsed().as_secs_f64());
            let start = Instant::now();
            compile::cuda(&valid)?;
            emit.push(start.elapsed().as_secs_f64());
        }
        let (schedule, validate, emit) = (median(schedule), median(validate), median(emit));
        times.push(CompileTime {
            kernel: recipe.name.to_string(),
            seconds: schedule + validate + emit,
            schedule_seconds: schedule,
            validate_seconds: validate,
            emit_seconds: emit,
        });
    }
    Ok(times)
}
