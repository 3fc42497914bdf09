//! `check`: whether a kernel is right, on the simulator (the exact check, races, bounds, barriers) or on a GPU.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use warpwright_core::diag::Diagnosis;
use warpwright_core::ir::Program;
use warpwright_sim::exact::Trials;
use warpwright_sim::{Blocks, Mode};

use super::ladder::parse_size;
use super::options::{EffortOptions, OutputOptions, VariantOptions};
use super::output::{Failure, Outcome, notice, print, print_json};
use super::source::{self, Source};
use crate::compile;
use crate::device::{Device, DeviceChoice};
use crate::gpu;
use crate::inputs::Operands;
use crate::kernels::Variant;
use crate::problem::{Problem, Shape};
use crate::program::{self, Case};
use crate::report::progress::Progress;
use crate::report::text;
use crate::report::{DeviceReport, Report};
use crate::run::{self, Effort, Subject};
use crate::simulator::SimOptions;

/// Options of `check`.
#[derive(Args, Debug)]
pub struct Options {
    /// A kernel, the number of a rung of the sgemm ladder, or a file with a schedule or a program.
    #[arg(value_name = "KERNEL|FILE")]
    kernel: String,
    /// The size to check at: N for a square product, or MxNxK [default: several odd ones]. A program in a file is then
    /// checked as the product of --dtype and --layout.
    #[arg(long, value_name = "N|MxNxK", value_parser = parse_size)]
    size: Option<Shape>,
    #[command(flatten)]
    variant: VariantOptions,
    /// For a program in a file: the program that it has to equal [default: itself, run in order].
    #[arg(long, value_name = "FILE", conflicts_with = "size")]
    spec: Option<PathBuf>,
    /// For a program in a file: sizes, launch sizes and row strides, as NAME=NUMBER, separated by commas [default:
    /// several odd sizes, and row strides wider than the rows].
    #[arg(long, value_name = "NAME=NUMBER", value_delimiter = ',', value_parser = parse_setting, conflicts_with = "size")]
    set: Vec<(String, i64)>,
    /// Where to check: sim, sim:GPU, cuda or cuda:NUMBER. Only the simulator finds races and the like.
    #[arg(long, value_name = "DEVICE", default_value = "sim")]
    device: DeviceChoice,
    #[command(flatten)]
    effort: EffortOptions,
    #[command(flatten)]
    output: OutputOptions,
}

/// Checked when no size is given, the last being the one that is reported in full: nothing to sum, one element, primes
/// below and above the tile extents, and one that every tile divides.
const SIZES: [Shape; 7] = [
    Shape { m: 5, n: 7, k: 0 },
    Shape { m: 0, n: 3, k: 2 },
    Shape { m: 1, n: 1, k: 1 },
    Shape { m: 17, n: 3, k: 29 },
    Shape { m: 128, n: 256, k: 64 },
    Shape { m: 31, n: 257, k: 5 },
    Shape { m: 131, n: 137, k: 67 },
];

/// The JSON of `check`: the report at the last size, and the verdict at each.
#[derive(Serialize)]
struct Checked {
    #[serde(flatten)]
    report: Report,
    sizes: Vec<SizeVerdict>,
}

#[derive(Serialize)]
struct SizeVerdict {
    m: i64,
    n: i64,
    k: i64,
    passed: bool,
}

fn parse_setting(text: &str) -> Result<(String, i64), Diagnosis> {
    let refuse =
        || Diagnosis::new(format!("`{text}` is not a setting")).instead("write NAME=NUMBER, such as n=1000");
    let (name, value) = text.split_once('=').ok_or_else(refuse)?;
    Ok((name.trim().to_string(), value.trim().parse().map_err(|_| refuse())?))
}

/// Runs `check`.
pub fn run(options: &Options) -> Outcome {
    let variant = options.variant.variant();
    let source = source::find(&options.kernel, variant)?;
    let (device, notices) = options.device.open()?;
    notices.iter().for_each(|n| notice(n));
    if let (None, Source::Program(program)) = (options.size, &source) {
        return written(options, &device, program);
    }
    if options.spec.is_some() || !options.set.is_empty() {
        return Err(Diagnosis::new(format!("{} is no program in a file", source.name()))
            .because("--spec and --set are for those; a kernel has its specification")
            .instead("give the size by --size")
            .into());
    }
    products(options, &device, &source.into_subject(variant))
}

/// Checks a matrix product at one size or at several.
fn products(options: &Options, device: &Device, subject: &Subject) -> Outcome {
    let sizes = options.size.map_or_else(|| SIZES.to_vec(), |s| vec![s]);
    let effort = Effort { timing: None, ..options.effort.effort(device) };
    let progress = Progress::steps(sizes.len() as u64);
    let mut verdicts = Vec::new();
    let mut last = None;
    for shape in sizes {
        progress.say(shape.to_string());
        let problem = Problem::new(shape, options.variant.dtype, options.variant.layout);
        let operands = Operands::random(&problem, options.effort.seed)?;
        let outcome = run::run(device, subject, &problem, operands, &effort)?;
        for fault in &outcome.faults {
            notice(&format!("wrong at {shape}: {fault}"));
        }
        verdicts.push(SizeVerdict {
            m: shape.m,
            n: shape.n,
            k: shape.k,
            passed: outcome.report.check.passed,
        });
        last = Some(outcome.report);
        progress.step();
    }
    drop(progress);
    let Some(mut report) = last else { return Ok(()) };
    let passed = verdicts.iter().all(|v| v.passed);
    report.check.passed = passed;
    if options.output.json {
        print_json(&Checked { report, sizes: verdicts })?;
    } else {
        let line =
            |v: &SizeVerdict| format!("{} {}x{}x{}", if v.passed { "ok   " } else { "WRONG" }, v.m, v.n, v.k);
        let sizes: Vec<String> = verdicts.iter().map(line).collect();
        print(&format!("{}\n{}", sizes.join("\n"), text::describe(&report, None)))?;
    }
    if passed { Ok(()) } else { Err(Failure::Wrong) }
}

/// The JSON of a check of a program in a file.
#[derive(Serialize)]
struct Compared {
    kernel: String,
    specification: String,
    device: DeviceReport,
    cases: Vec<Case>,
    passed: bool,
}

/// Checks a program in a file against its specification, or against itself run in order.
fn written(options: &Options, device: &Device, program: &Program) -> Outcome {
    let valid = compile::validated(program, device.target())?;
    let variant = options.variant.variant();
    let specification = options.spec.as_deref().map(|p| specification(p, variant)).transpose()?;
    let reference = specification.as_ref().unwrap_or(program);
    let given = options.set.iter().cloned().collect();
    let launch_size = match device {
        Device::Sim(_) => SimOptions::default().launch_size,
        Device::Cuda(gpu, _) => i64::from(gpu.info().sm_count),
    };
    let blocks = if options.effort.full { Blocks::All } else { Blocks::Sample(64) };
    let simt = warpwright_sim::Options { mode: Mode::Simt, checks: true, blocks };
    let trials = Trials { count: options.effort.trials, seed: options.effort.seed, options: simt };
    let mut cases = Vec::new();
    for sizes in program::cases(program, &given, launch_size)? {
        cases.push(match device {
            Device::Sim(_) => program::on_simulator(&valid, reference, &sizes, &trials)?,
            Device::Cuda(gpu, target) => {
                gpu::program::check(gpu, target, &valid, reference, &sizes, trials.seed)?
            }
        });
    }
    let compared = Compared {
        kernel: program.name.clone(),
        specification: specification.map_or("itself, run in order".to_string(), |s| s.name),
        device: device.report(),
        passed: cases.iter().all(|c| c.passed),
        cases,
    };
    if options.output.json {
        print_json(&compared)?;
    } else {
        print(&describe(&compared))?;
    }
    if compared.passed { Ok(()) } else { Err(Failure::Wrong) }
}

fn specification(path: &Path, variant: Variant) -> Result<Program, Diagnosis> {
    match source::from_file(path, variant)? {
        Source::Program(program) => Ok(program),
        Source::Kernel(_) => Err(Diagnosis::new(format!("{} is no program", path.display()))),
    }
}

/// A line for each case, and the hazards below it.
fn describe(compared: &Compared) -> String {
    let Compared { kernel, specification, device, cases, .. } = compared;
    let how = match device.kind {
        "sim" => "over the prime field, and for hazards",
        _ => "bit for bit on small integers",
    };
    let mut lines =
        vec![format!("{kernel}: compared with {specification} {how}, on {} ({})", device.gpu, device.kind)];
    for case in cases {
        let sizes: Vec<String> = case.sizes.iter().map(|(n, v)| format!("{n}={v}")).collect();
        let verdict = if case.passed { "ok   " } else { "WRONG" };
        let differing = match &case.first {
            Some(first) => {
                format!(": {} of {} elements differ, first {first}", case.differing, case.compared)
            }
            None => format!(": {} elements", case.compared),
        };
        lines.push(format!("  {verdict} {}{differing}", sizes.join(" ")));
        lines.extend(case.hazards.iter().map(|h| format!("        {h}")));
    }
    lines.join("\n")
}
