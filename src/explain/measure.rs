//! The kernel and the edits that help by the model, timed on a GPU.

use serde::Serialize;
use warpwright_core::diag::Diagnosis;
use warpwright_core::target::Target;
use warpwright_cuda::{Device, MeasureOptions};

use super::Explanation;
use super::subject::Subject;
use crate::compile;
use crate::gpu::{self, GpuOptions};
use crate::inputs::Operands;
use crate::kernels::Kernel;
use crate::problem::Problem;
use crate::report::Kind;

/// What a GPU took.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// How the numbers came about: on the GPU.
    pub kind: Kind,
    /// The GPU's name.
    pub gpu: String,
    /// Seconds of one product by the kernel.
    pub seconds: f64,
}

/// Times a kernel and all its suggestions on random operands, and enters what was measured. What is wrong there has no time.
///
/// # Errors
/// What the GPU refuses, and a kernel whose result is wrong.
pub fn enter(
    explanation: &mut Explanation,
    subject: &Subject,
    device: &Device,
    target: &'static Target,
) -> Result<(), Diagnosis> {
    let Some(kernel) = subject.kernel() else { return Ok(()) };
    let operands = Operands::random(&subject.problem, 1)?;
    let of = |kernel: &Kernel| seconds(kernel, &subject.problem, &operands, device, target);
    let measured = of(kernel)?;
    for suggestion in &mut explanation.suggestions {
        suggestion.measured_seconds =
            suggestion.made.kernel(kernel, &subject.problem).and_then(|edited| of(&edited)).ok();
    }
    explanation.measured =
        Some(Measured { kind: Kind::Measured, gpu: device.info().name.clone(), seconds: measured });
    Ok(())
}

/// Seconds of one product, verified before and after they are taken.
fn seconds(
    kernel: &Kernel,
    problem: &Problem,
    operands: &Operands,
    device: &Device,
    target: &'static Target,
) -> Result<f64, Diagnosis> {
    let valid = compile::validated(kernel.program(), target)?;
    let options = GpuOptions {
        timing: Some(MeasureOptions::default()),
        cublas: false,
        multiplications: kernel.multiplications(),
    };
    let run = gpu::run(device, target, &valid, problem, operands, &options)?;
    match run.timing {
        Some(timing) if run.comparison.passed() => Ok(timing.median),
        _ => Err(Diagnosis::new(format!("{} gives a wrong result on this GPU", kernel.name))
            .instead("see `warpwright check`")),
    }
}
