//! `gemm`: one product, computed, checked and timed.

use std::path::PathBuf;

use clap::Args;
use warpwright_core::diag::Diagnosis;

use super::known::{gpu_of, wisdom};
use super::options::{
    DeviceOptions, EffortOptions, OutputOptions, PermissionOptions, ProductOptions, StorageOptions,
};
use super::output::{Failure, Outcome, notice, print, print_json};
use super::source;
use crate::device::Device;
use crate::inputs::{self, Operands};
use crate::kernels::family::{Choice, Value, Word, parse_parameter};
use crate::kernels::{self, Variant};
use crate::matrix::Matrix;
use crate::problem::{Problem, Shape};
use crate::report::progress::Progress;
use crate::report::{ChosenBy, text};
use crate::roofline::Roofline;
use crate::run::{self, Subject};
use crate::{choose, memory, npy};

/// Options of `gemm`.
#[derive(Args, Debug)]
pub struct Options {
    /// The size of the product: C has M rows and N columns, and each element is a sum of K terms.
    #[arg(value_name = "MxNxK")]
    shape: Shape,
    #[command(flatten)]
    product: ProductOptions,
    #[command(flatten)]
    storage: StorageOptions,
    #[command(flatten)]
    permissions: PermissionOptions,
    /// The kernel to use [default: by what was measured, else by model or rule].
    #[arg(long, value_name = "NAME|FILE", conflicts_with = "schedule")]
    kernel: Option<String>,
    /// A parameter of the kernel's family, such as tm=4; the others then keep their usual values.
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parse_parameter, value_delimiter = ',')]
    parameters: Vec<(Word, Value)>,
    /// Choose a kernel that gives the same bits on every GPU, from the problem alone: neither by what was measured nor
    /// by the GPU at hand.
    #[arg(long, conflicts_with_all = ["allow_atomics", "allow_three_multiplications", "allow_split", "schedule"])]
    reproducible: bool,
    /// Use the kernel that the schedule in this file makes.
    #[arg(long, value_name = "FILE")]
    schedule: Option<PathBuf>,
    /// Read A from a .npy file, as it is stored [default: random].
    #[arg(long, value_name = "FILE")]
    a: Option<PathBuf>,
    /// Read B from a .npy file, as it is stored [default: random].
    #[arg(long, value_name = "FILE")]
    b: Option<PathBuf>,
    /// Read the old C from a .npy file [default: random where it is read].
    #[arg(long, value_name = "FILE")]
    c: Option<PathBuf>,
    /// Write the result to a .npy file.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceOptions,
    #[command(flatten)]
    effort: EffortOptions,
    #[command(flatten)]
    output: OutputOptions,
}

/// Copies of the matrices that a run holds at once: the operands, the result, and what the simulator makes of them.
const COPIES: f64 = 3.0;

/// Runs `gemm`.
pub fn run(options: &Options) -> Outcome {
    let mut problem = options.storage.apply(options.product.problem(options.shape)?)?;
    if problem.same && options.b.is_some() {
        return Err(Diagnosis::new("--b and --same say different things of B")
            .because("with --same B is A")
            .instead("leave one of them out")
            .into());
    }
    // One file for both is one matrix, where it is stored alike for both.
    problem.same |= options.a.is_some()
        && options.a == options.b
        && problem.stored_a() == problem.stored_b()
        && problem.ld.a == problem.ld.b
        && problem.offset.a == problem.offset.b;
    memory::check_fits(&problem, COPIES)?;
    let (device, notices) = options.device.device.open()?;
    notices.iter().for_each(|n| notice(n));
    let operands = operands(options, &problem)?;
    let subject = subject(options, &problem, &device)?;
    let mut effort = options.effort.effort(&device);
    effort.simulation.every_element = options.out.is_some();
    let outcome = {
        let _progress = Progress::waiting(format!("{} on {}", subject.name, device.report().gpu));
        run::run(&device, &subject, &problem, operands, &effort)?
    };
    outcome.notices.iter().for_each(|n| notice(n));
    if let Some(path) = &options.out {
        write(path, outcome.c.as_ref())?;
    }
    if options.output.json {
        print_json(&outcome.report)?;
    } else {
        let roofline = Roofline::of(&problem, device.target()).filter(|_| matches!(device, Device::Cuda(..)));
        print(&text::describe(&outcome.report, roofline.as_ref()))?;
    }
    outcome.faults.iter().for_each(|f| notice(&format!("wrong: {f}")));
    if outcome.report.check.passed { Ok(()) } else { Err(Failure::Wrong) }
}

/// The operands from files, or random ones.
fn operands(options: &Options, problem: &Problem) -> Result<Operands, Diagnosis> {
    let seed = options.effort.seed;
    let random = Operands::random(problem, seed)?;
    let read =
        |path: &Option<PathBuf>, name: &str, (rows, columns): (i64, i64), stride: i64, other: Matrix| {
            match path {
                Some(path) => npy::read_operand(path, name, other.dtype(), rows as usize, columns as usize)?
                    .with_stride(stride as usize),
                None => Ok(other),
            }
        };
    let inputs::Operands { a, b, c } = random;
    let a = read(&options.a, "A", problem.stored_a(), problem.ld.a, a)?;
    let b = match problem.same {
        true => a.clone(),
        false => read(&options.b, "B", problem.stored_b(), problem.ld.b, b)?,
    };
    Ok(Operands { a, b, c: read(&options.c, "C", problem.stored_c(), problem.ld.c, c)? })
}

/// The kernel that is asked for, or a sensible one.
fn subject(options: &Options, problem: &Problem, device: &Device) -> Result<Subject, Diagnosis> {
    let variant = Variant::of(problem);
    let given = Choice::of(&options.parameters);
    let family = match &options.kernel {
        Some(name) => kernels::family(name),
        None if options.schedule.is_none() => choose::family(problem),
        None => None,
    };
    if options.reproducible && (family.is_some() || options.kernel.is_none()) {
        let kernel = choose::reproducible(family, &given, problem)?;
        return Ok(Subject { chosen_by: ChosenBy::Rule, ..Subject::from(&kernel) });
    }
    if let Some(family) = family {
        if !given.is_empty() {
            let permissions = options.permissions.of_kernels();
            let choice = family.complete_permitted(&given, problem, device.target(), permissions)?;
            return Ok(Subject::from(&family.build(problem, &choice)?));
        }
        let gpu = gpu_of(device);
        let (known, permissions) = (wisdom(family.name), options.permissions.of_kernels());
        match choose::parameters(family, problem, device.target(), &gpu, &known, permissions) {
            Ok((kernel, chosen_by)) => return Ok(Subject { chosen_by, ..Subject::from(&kernel) }),
            Err(refusal) if options.kernel.is_some() => return Err(refusal),
            Err(refusal) => notice(&format!("a general kernel is used: {refusal}")),
        }
    }
    if let Some((name, _)) = options.parameters.first() {
        return Err(Diagnosis::new(format!("--param {name} has no meaning here"))
            .because("the kernel is of no family with parameters")
            .instead(
                "name a family, such as --kernel tsmttsm, --kernel tsmm or --kernel tiled, or leave it out",
            ));
    }
    let source = match (&options.kernel, &options.schedule) {
        (Some(name), _) => source::find(name, variant)?,
        (None, Some(path)) => source::from_file(path, variant)?,
        (None, None) => {
            let kernel = choose::kernel(problem, device.target())?;
            return Ok(Subject { chosen_by: ChosenBy::Rule, ..Subject::from(&kernel) });
        }
    };
    Ok(source.into_subject(variant))
}

fn write(path: &std::path::Path, c: Option<&Matrix>) -> Result<(), Diagnosis> {
    match c {
        Some(c) => npy::write(path, c),
        None => Err(Diagnosis::new("not every element was computed, so there is nothing to write")),
    }
}
