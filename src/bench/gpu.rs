//! Kernels on a GPU beside cuBLAS in the same run: medians of graph replays over rotating operands.

use serde::Serialize;
use warpwright_core::diag::Diagnosis;
use warpwright_core::target::Target;
use warpwright_cuda::{Device, MeasureOptions, Timing};

use crate::bind::Binding;
use crate::compile;
use crate::gpu::{self, Executable, OperandSets, cublas, diagnosis};
use crate::inputs::Operands;
use crate::problem::Problem;
use crate::report::{LaunchReport, ProblemReport, tflops};
use crate::run::Subject;
use crate::verify;

/// One kernel, or cuBLAS, at one size.
#[derive(Clone, Debug, Serialize)]
pub struct Measurement {
    /// The product.
    pub problem: ProblemReport,
    /// The kernel, or `cublas`.
    pub kernel: String,
    /// Its launches.
    pub launches: Vec<LaunchReport>,
    /// Whether the result was right, before and after the timing; null for cuBLAS.
    pub passed: Option<bool>,
    /// Seconds of one product: the median.
    pub seconds: f64,
    /// The quartiles of the samples.
    pub quartiles: (f64, f64),
    /// Launches averaged in each sample.
    pub launches_per_sample: usize,
    /// Samples.
    pub samples: usize,
    /// The rate.
    pub tflops: f64,
    /// The time of cuBLAS divided by that of the kernel.
    pub of_cublas: Option<f64>,
}

/// Measures kernels on a problem, and cuBLAS before them.
pub fn run(
    device: &Device,
    target: &Target,
    problem: &Problem,
    kernels: &[Subject],
    options: &MeasureOptions,
    mut tell: impl FnMut(&Measurement),
) -> Result<Vec<Measurement>, Diagnosis> {
    let operands = Operands::random(problem, 1)?;
    let stream = device.stream().map_err(diagnosis)?;
    let sets = OperandSets::rotating(device, problem, &operands).map_err(diagnosis)?;
    let mut measurements = Vec::new();
    let mut reference = None;
    if let Some(timing) = cublas::time(device, &stream, problem, &sets, options).map_err(diagnosis)? {
        reference = Some(timing.median);
        let measurement = measurement(problem, "cublas", Vec::new(), None, &timing, None);
        tell(&measurement);
        measurements.push(measurement);
    }
    for kernel in kernels {
        let valid = compile::validated(&kernel.program, target)?;
        let executable = Executable::new(device, valid.program().clone(), compile::cuda(&valid)?, target);
        let binding = Binding::new(valid.program(), problem, i64::from(device.info().sm_count))?;
        let prepared = executable.prepare(device, &binding, &sets)?;
        let before = gpu::result(&prepared, &sets, &stream, problem, &operands)?;
        let timing = warpwright_cuda::measure::graph(&stream, options, |s, call| prepared.enqueue(s, call))
            .map_err(diagnosis)?;
        let after = gpu::result(&prepared, &sets, &stream, problem, &operands)?;
        let passed = verify::compare(problem, &operands, &before, kernel.multiplications)
            .and(verify::compare(problem, &operands, &after, kernel.multiplications))
            .passed();
        let launches = executable.launches(&prepared);
        let of_cublas = reference.map(|seconds| seconds / timing.median);
        let measurement = measurement(problem, &kernel.name, launches, Some(passed), &timing, of_cublas);
        tell(&measurement);
        measurements.push(measurement);
    }
    Ok(measurements)
}

fn measurement(
    problem: &Problem,
    kernel: &str,
    launches: Vec<LaunchReport>,
    passed: Option<bool>,
    timing: &Timing,
    of_cublas: Option<f64>,
) -> Measurement {
    Measurement {
        problem: ProblemReport::of(problem),
        kernel: kernel.to_string(),
        launches,
        passed,
        seconds: timing.median,
        quartiles: timing.quartiles,
        launches_per_sample: timing.launches_per_sample,
        samples: timing.samples.len(),
        tflops: tflops(problem, timing.median),
        of_cublas,
    }
}
