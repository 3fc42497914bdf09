//! One kernel on one problem on one device, and everything there is to say about it.

use num_complex::Complex64;
use warpwright_core::diag::Diagnosis;
use warpwright_core::dtype::DType;
use warpwright_core::instr::{self, Behaviour};
use warpwright_core::ir::{ParamKind, Program, Stmt, walk};
use warpwright_cuda::{MeasureOptions, Timing};

use crate::compile;
use crate::device::Device;
use crate::gpu::{self, GpuOptions};
use crate::inputs::Operands;
use crate::kernels::Kernel;
use crate::matrix::Matrix;
use crate::problem::Problem;
use crate::report::{
    CheckReport, Cublas, DeviceReport, FloatCheck, KernelReport, Kind, ProblemReport, Report, Time, tflops,
};

/// What is to be run.
pub struct Job<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// The product.
    pub problem: &'a Problem,
    /// Its operands.
    pub operands: &'a Operands,
}

/// How much is to be found out.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Simulate every block instead of a sample.
    pub full: bool,
    /// Compute every element of C.
    pub every_element: bool,
    /// Random inputs for the exact check.
    pub trials: u32,
    /// Seed of those inputs.
    pub seed: u64,
    /// How to time on a GPU; not at all where absent.
    pub timing: Option<MeasureOptions>,
    /// Whether to compare with cuBLAS on a GPU.
    pub cublas: bool,
}

/// What came of it.
pub struct Outcome {
    /// The report.
    pub report: Report,
    /// The result, where every element was computed.
    pub c: Option<Matrix>,
    /// Hazards and wrong elements, a line each.
    pub faults: Vec<String>,
    /// What is worth a line on standard error.
    pub notices: Vec<String>,
}

/// The product that kernels are given. With alpha = 0 BLAS does not read A and B, which comes to the same as a
/// product with no terms.
pub fn effective(problem: &Problem, operands: Operands) -> Result<(Problem, Operands), Diagnosis> {
    if problem.alpha != Complex64::new(0.0, 0.0) || problem.shape.k == 0 {
        return Ok((*problem, operands));
    }
    let mut empty = *problem;
    empty.shape.k = 0;
    let matrix = |(rows, columns): (i64, i64), stride: i64| {
        Matrix::zeros(problem.dtype(), rows as usize, columns as usize, stride as usize)
    };
    let a = matrix(empty.stored_a(), empty.ld.a)?;
    let b = matrix(empty.stored_b(), empty.ld.b)?;
    Ok((empty, Operands { a, b, c: operands.c }))
}

/// Whether a program gives the same bits every time (rule 38): it adds floating-point numbers atomically nowhere,
/// chains no sums through blocks, and takes nothing from the size of the launch.
pub fn deterministic(program: &Program) -> bool {
    let buffers = program.buffers();
    let is_exact =
        |sym| buffers.get(sym).is_some_and(|b: &warpwright_core::ir::Buffer| b.dtype == DType::I32);
    let mut deterministic = !program.params.iter().any(|p| p.kind == ParamKind::Launch);
    walk::for_each(&program.body, &mut |stmt| match stmt {
        Stmt::Assign(assign) if assign.atomic => deterministic &= is_exact(&assign.target.buffer),
        Stmt::Instruction(call) => {
            deterministic &= instr::by_name(&call.name).is_none_or(|r| r.behaviour != Behaviour::ChainedSum);
        }
        _ => {}
    });
    deterministic
}

/// The kernel in a report, without its launches.
fn kernel_report(kernel: &Kernel) -> KernelReport {
    KernelReport {
        name: kernel.name.clone(),
        family: kernel.family.clone(),
        launches: Vec::new(),
        schedule: kernel.schedule.text(),
        deterministic: deterministic(kernel.program()),
    }
}

/// A time and the rate that follows, in a report.
fn measured(problem: &Problem, timing: Option<&Timing>) -> (Time, Option<f64>) {
    match timing {
        Some(timing) => (
            Time { seconds: Some(timing.median), kind: Some(Kind::Measured) },
            Some(tflops(problem, timing.median)),
        ),
        None => (Time::default(), None),
    }
}

fn cublas_report(problem: &Problem, timing: Option<&Timing>) -> Option<Cublas> {
    timing.map(|t| Cublas { seconds: t.median, tflops: tflops(problem, t.median) })
}
