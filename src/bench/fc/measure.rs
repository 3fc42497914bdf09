//! Measuring layers on a GPU, beside cuBLAS on the same operands.

use warpwright_core::diag::Diagnosis;
use warpwright_core::target::Target;
use warpwright_cuda::nvrtc::Nvrtc;
use warpwright_cuda::turns::{self, Enqueue};
use warpwright_cuda::{Device, Stream, Timing, TurnOptions};

use super::{FAMILY, Key, Launch, Point};
use crate::bench::tsm::Seconds;
use crate::bind::Binding;
use crate::gpu::stage::{Fault, Stage};
use crate::gpu::{Executable, compile_ahead, cublas, diagnosis};
use crate::kernels::family::Permissions;
use crate::kernels::{self, Kernel};
use crate::parallel;
use crate::problem::Problem;
use crate::report::ChosenBy;
use crate::roofline::{Ceilings, Roofline};
use crate::tune::record::{Gpu, Status};
use crate::tune::wisdom::Wisdom;
use crate::{choose, compile};

/// Copies of the operands at least.
const COPIES: usize = 3;

/// The kernel of a product that is chosen, and who chose it: of the family with parameters where it serves the type.
///
/// # Errors
/// Products for which there is none.
pub fn chosen(
    problem: &Problem,
    target: &Target,
    gpu: &Gpu,
    wisdom: &Wisdom,
) -> Result<(Kernel, ChosenBy), Diagnosis> {
    match kernels::family(FAMILY).filter(|family| (family.fixed)(problem).is_ok()) {
        Some(family) => choose::parameters(family, problem, target, gpu, wisdom, Permissions::NONE),
        None => Ok((choose::kernel(problem, target)?, ChosenBy::Rule)),
    }
}

/// Measures products, each by the kernel that is chosen for it.
///
/// # Errors
/// A GPU that cannot be used. A kernel that fails is a point that failed.
pub fn run(
    device: &Device,
    target: &Target,
    wisdom: &Wisdom,
    problems: &[Problem],
    turns: &TurnOptions,
    tell: &mut dyn FnMut(&Point) -> Result<(), Diagnosis>,
) -> Result<Vec<Point>, Diagnosis> {
    let nvrtc = Nvrtc::get().map_err(diagnosis)?.version();
    let gpu = Gpu::of_device(device.info(), Some(nvrtc));
    let stream = device.stream().map_err(diagnosis)?;
    let (arch, launch_size) = (device.info().arch(), i64::from(device.info().sm_count));
    let kernels = parallel::map(problems, |problem| {
        let chosen = chosen(problem, target, &gpu, wisdom)?;
        let valid = compile::validated(chosen.0.program(), target)?;
        let source = compile::cuda_for(&valid, problem)?;
        // What does not compile says so where it is launched.
        if let Ok(binding) = Binding::new(valid.program(), problem, launch_size) {
            let _ = compile_ahead(&arch, &source, target, &|sym| binding.value(sym));
        }
        Ok(chosen)
    });
    let mut points = Vec::new();
    for (problem, kernel) in problems.iter().zip(kernels) {
        let (kernel, by) = kernel?;
        let mut point = begun(problem, &kernel, by, target);
        if let Err((status, because)) =
            measured(&mut point, (device, &stream), target, problem, &kernel, turns)
        {
            (point.status, point.message) = (status, Some(because.to_string()));
            stream.synchronize().map_err(diagnosis)?;
        }
        tell(&point)?;
        points.push(point);
    }
    Ok(points)
}

fn begun(problem: &Problem, kernel: &Kernel, chosen_by: ChosenBy, target: &Target) -> Point {
    let ceilings = Ceilings::of(problem.precision, target, &Default::default());
    let roofline = ceilings.map(|c| Roofline::under(problem, &c));
    Point {
        key: Key::of(problem),
        status: Status::Correct,
        message: None,
        kernel: kernel.name.clone(),
        parameters: kernel.parameters.clone(),
        chosen_by,
        launches: Vec::new(),
        seconds: None,
        rested: None,
        cublas: None,
        cublas_rested: None,
        cublas_launches: None,
        memory_seconds: roofline.map(|r| r.memory_seconds),
        arithmetic_seconds: roofline.map(|r| r.compute_seconds),
        copies: 0,
    }
}

/// Verifies a kernel, times it and cuBLAS in turn, and verifies it again.
fn measured(
    point: &mut Point,
    (device, stream): (&Device, &Stream),
    target: &Target,
    problem: &Problem,
    kernel: &Kernel,
    turns: &TurnOptions,
) -> Result<(), (Status, Diagnosis)> {
    let crashed = |d: Diagnosis| (Status::Runtime, d);
    let of_driver = |e| (Status::Runtime, diagnosis(e));
    let constraints = |d: Diagnosis| (Status::Constraints, d);
    let mut stage = Stage::random_weights(device, *problem, COPIES).map_err(crashed)?;
    let valid = compile::validated(kernel.program(), target).map_err(constraints)?;
    let source = compile::cuda_for(&valid, problem).map_err(constraints)?;
    let executable = Executable::new(device, valid.program().clone(), source, target);
    let binding =
        Binding::new(valid.program(), problem, i64::from(device.info().sm_count)).map_err(constraints)?;
    let prepared = executable.prepare(device, &binding, &stage.sets).map_err(|d| (Status::Compile, d))?;
    stage.verify(&prepared, stream, kernel.multiplications()).map_err(fault)?;
    let launches = executable.launches(&prepared);
    point.launches = launches.iter().map(|launch| Launch::ours(&kernel.name, launch, target)).collect();
    point.copies = stage.sets.len();
    let product = cublas::Product::new(device, problem).map_err(of_driver)?;
    if let Some(product) = &product {
        product.enqueue(stream, &stage.sets, 0).map_err(of_driver)?;
        let launched = stream.launches_of(|s| product.enqueue(s, &stage.sets, 0)).map_err(of_driver)?;
        let launches =
            |all: Vec<_>| all.iter().map(|launched| Launch::of_library(launched, target)).collect();
        point.cublas_launches = launched.map(launches);
    }
    let mut kinds: Vec<Box<Enqueue>> = vec![Box::new(|s, call| prepared.enqueue(s, call))];
    if let Some(product) = &product {
        kinds.push(Box::new(|s, call| product.enqueue(s, &stage.sets, call)));
    }
    let options = TurnOptions { fewest_launches: stage.sets.len(), ..*turns };
    let paces = turns::in_turn(stream, &options, &mut kinds);
    drop(kinds);
    let mut paces = paces.map_err(of_driver)?.into_iter();
    let (ours, cublas) = (paces.next(), paces.next());
    stage.verify(&prepared, stream, kernel.multiplications()).map_err(fault)?;
    if let Some(paces) = ours {
        (point.seconds, point.rested) = (Some(seconds(&paces.sustained)), Some(seconds(&paces.rested)));
    }
    if let Some(paces) = cublas {
        (point.cublas, point.cublas_rested) = (Some(seconds(&paces.sustained)), Some(seconds(&paces.rested)));
    }
    Ok(())
}

fn fault(fault: Fault) -> (Status, Diagnosis) {
    match fault {
        Fault::Crashed(diagnosis) => (Status::Runtime, diagnosis),
        Fault::Wrong(diagnosis) => (Status::Correctness, diagnosis),
    }
}

fn seconds(timing: &Timing) -> Seconds {
    Seconds { median: timing.median, quartiles: timing.quartiles, samples: timing.samples.len() }
}
