//! One kernel on one problem on one device, and everything there is to say about it.

use num_complex::Complex64;
use warpwright_core::diag::Diagnosis;
use warpwright_core::dtype::DType;
use warpwright_core::instr::{self, Behaviour};
use warpwright_core::ir::validate::Valid;
use warpwright_core::ir::{Buffer, ParamKind, Program, Stmt, walk};
use warpwright_core::sym::Sym;
use warpwright_core::target::Target;
use warpwright_cuda::{MeasureOptions, Timing};

use crate::compile;
use crate::device::Device;
use crate::gpu::{self, GpuOptions};
use crate::inputs::Operands;
use crate::kernels::family::Choice;
use crate::kernels::{Kernel, Variant, gemm};
use crate::matrix::Matrix;
use crate::problem::{Multiplications, Problem};
use crate::reference::Comparison;
use crate::report::{
    CheckReport, ChosenBy, Cublas, FloatCheck, KernelReport, Kind, LaunchReport, ProblemReport, Report, Time,
    tflops,
};
use crate::simulator::{self, Checked, SimOptions};

/// A kernel as it is run: what it computes, what it was specified to compute, and how it came about.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Its full name.
    pub name: String,
    /// The family it belongs to.
    pub family: String,
    /// What was chosen for the parameters of the family, if it has any.
    pub parameters: Choice,
    /// Of how many real products it makes a complex one.
    pub multiplications: Multiplications,
    /// Who chose it and its parameters.
    pub chosen_by: ChosenBy,
    /// The schedule that made it, in text form; empty for a program that was written by hand.
    pub schedule: String,
    /// The finished program.
    pub program: Program,
    /// The product as mathematics.
    pub specification: Program,
}

impl From<&Kernel> for Subject {
    fn from(kernel: &Kernel) -> Subject {
        Subject {
            name: kernel.name.clone(),
            family: kernel.family.clone(),
            parameters: kernel.parameters.clone(),
            multiplications: kernel.multiplications(),
            chosen_by: ChosenBy::Named,
            schedule: kernel.schedule.text(),
            program: kernel.program().clone(),
            specification: kernel.specification().clone(),
        }
    }
}

impl Subject {
    /// A program of the GEMM kind that was written by hand.
    pub fn written(program: Program, variant: Variant) -> Subject {
        Subject {
            name: program.name.clone(),
            family: "program".to_string(),
            parameters: Choice::default(),
            multiplications: Multiplications::Four,
            chosen_by: ChosenBy::Named,
            schedule: String::new(),
            specification: gemm::specification(variant),
            program,
        }
    }
}

/// How much is to be found out.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// How the simulator is used: on its own, or beside a GPU for what a GPU cannot tell.
    pub simulation: SimOptions,
    /// How to time on a GPU; not at all where absent.
    pub timing: Option<MeasureOptions>,
    /// Whether to compare with cuBLAS on a GPU.
    pub cublas: bool,
}

/// What came of it.
#[derive(Debug)]
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

/// Runs a kernel on a problem.
pub fn run(
    device: &Device,
    subject: &Subject,
    problem: &Problem,
    operands: Operands,
    effort: &Effort,
) -> Result<Outcome, Diagnosis> {
    let (given, operands) = effective(problem, operands)?;
    let valid = compile::validated(&subject.program, device.target()).map_err(|d| d.at(&subject.name))?;
    let mut outcome = match device {
        Device::Sim(target) => on_simulator(subject, &valid, &given, target, &operands, effort)?,
        Device::Cuda(gpu, target) => {
            let by = subject.multiplications;
            let options = GpuOptions { timing: effort.timing, cublas: effort.cublas, multiplications: by };
            let run = gpu::run(gpu, target, &valid, &given, &operands, &options)?;
            beside_gpu(subject, &valid, &given, target, run, effort)?
        }
    };
    outcome.report.device = device.report();
    outcome.report.problem = ProblemReport::of(problem);
    Ok(outcome)
}

/// Everything from the simulator.
fn on_simulator(
    subject: &Subject,
    valid: &Valid,
    problem: &Problem,
    target: &Target,
    operands: &Operands,
    effort: &Effort,
) -> Result<Outcome, Diagnosis> {
    let checked = simulator::check(subject, valid, problem, target, &effort.simulation)?;
    let simulated = simulator::run(valid, problem, operands, &effort.simulation, subject.multiplications)?;
    let comparison = simulated.comparison.clone().and(checked.comparison.clone());
    let mut faults = simulated.faults;
    faults.extend(checked.faults.iter().cloned());
    let mut check = verdict(&checked, &comparison);
    if simulated.hazards.any() {
        check.set_hazards(&simulated.hazards);
    }
    check.claims = simulated.claims;
    Ok(Outcome {
        report: report(subject, problem, simulated.launches, check, Some(simulated.counters), (None, None)),
        c: simulated.c,
        faults,
        notices: Vec::new(),
    })
}

/// The result and its time from the GPU; what a GPU cannot tell from the simulator.
fn beside_gpu(
    subject: &Subject,
    valid: &Valid,
    problem: &Problem,
    target: &Target,
    run: gpu::GpuRun,
    effort: &Effort,
) -> Result<Outcome, Diagnosis> {
    let checked = simulator::check(subject, valid, problem, target, &effort.simulation)?;
    let comparison = run.comparison.clone().and(checked.comparison.clone());
    let mut faults: Vec<String> = run.comparison.first_wrong.iter().map(ToString::to_string).collect();
    faults.extend(checked.faults.iter().cloned());
    let counters = simulator::count(valid, problem, &effort.simulation)?;
    let check = verdict(&checked, &comparison);
    Ok(Outcome {
        report: report(
            subject,
            problem,
            run.launches,
            check,
            counters,
            (run.timing.as_ref(), run.cublas.as_ref()),
        ),
        c: Some(run.c),
        faults,
        notices: run.notices,
    })
}

/// The product that kernels are given. With alpha = 0 BLAS does not read A and B, which comes to the same as a
/// product with no terms.
fn effective(problem: &Problem, operands: Operands) -> Result<(Problem, Operands), Diagnosis> {
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
    let is_exact = |sym: &Sym| buffers.get(sym).is_some_and(|b: &Buffer| b.dtype == DType::I32);
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

/// The verdict of the checks on a simulator and of a comparison with the reference.
fn verdict(checked: &Checked, comparison: &Comparison) -> CheckReport {
    let mut check = CheckReport {
        exact: Some(checked.exact.clone()),
        float: FloatCheck::of(comparison),
        races: 0,
        out_of_bounds: 0,
        uninitialized: 0,
        barrier_faults: 0,
        claims: checked.claims,
        passed: checked.exact.passed && comparison.passed(),
    };
    check.set_hazards(&checked.hazards);
    check
}

fn report(
    subject: &Subject,
    problem: &Problem,
    launches: Vec<LaunchReport>,
    check: CheckReport,
    counters: Option<crate::report::Counters>,
    (timing, cublas): (Option<&Timing>, Option<&Timing>),
) -> Report {
    let time = timing.map(|t| Time { seconds: Some(t.median), kind: Some(Kind::Measured) });
    Report {
        problem: ProblemReport::of(problem),
        device: crate::report::DeviceReport { kind: "sim", gpu: String::new() },
        kernel: KernelReport {
            name: subject.name.clone(),
            family: subject.family.clone(),
            parameters: subject.parameters.clone(),
            chosen_by: subject.chosen_by,
            launches,
            schedule: subject.schedule.clone(),
            deterministic: deterministic(&subject.program),
        },
        check,
        counters,
        time: time.unwrap_or_default(),
        tflops: timing.map(|t| tflops(problem, t.median)),
        cublas: cublas.map(|t| Cublas { seconds: t.median, tflops: tflops(problem, t.median) }),
    }
}
