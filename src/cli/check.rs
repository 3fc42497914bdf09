//! `check`: whether a kernel is right, on the simulator: the exact check, races, bounds, barriers.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use warpwright_core::diag::Diagnosis;
use warpwright_core::ir::Program;
use warpwright_core::target::{self, Target};
use warpwright_sim::exact::{self, Trials};
use warpwright_sim::{Blocks, Mode};

use super::ladder::parse_size;
use super::options::{EffortOptions, OutputOptions, VariantOptions};
use super::output::{Failure, Outcome, notice, print, print_json};
use super::source::{self, Source};
use crate::compile;
use crate::device::Device;
use crate::inputs::Operands;
use crate::problem::{Problem, Shape};
use crate::report::progress::Progress;
use crate::report::text;
use crate::report::{ExactCheck, Report};
use crate::run::{self, Subject};

/// Options of `check`.
#[derive(Args, Debug)]
pub struct Options {
    /// A kernel, the number of a rung of the sgemm ladder, or a file with a schedule or a program.
    #[arg(value_name = "KERNEL|FILE")]
    kernel: String,
    /// The size to check at: N for a square product, or MxNxK [default: several odd ones].
    #[arg(long, value_name = "N|MxNxK", value_parser = parse_size)]
    size: Option<Shape>,
    #[command(flatten)]
    variant: VariantOptions,
    /// For a program that is no matrix product: the program that it has to equal.
    #[arg(long, value_name = "FILE", requires = "set")]
    spec: Option<PathBuf>,
    /// For a program that is no matrix product: its sizes, as NAME=NUMBER, separated by commas.
    #[arg(long, value_name = "NAME=NUMBER", value_delimiter = ',', value_parser = parse_setting)]
    set: Vec<(String, i64)>,
    /// The GPU to check for.
    #[arg(long, value_name = "GPU", value_parser = Target::by_name, default_value = target::DEFAULT.name)]
    gpu: &'static Target,
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
    if let (Some(path), Source::Program(program)) = (&options.spec, &source) {
        let Source::Program(specification) = source::from_file(path, variant)? else {
            return Err(Diagnosis::new(format!("{} is a schedule, not a program", path.display())).into());
        };
        return against(options, program, &specification);
    }
    products(options, &source.into_subject(variant))
}

/// Checks a matrix product at one size or at several.
fn products(options: &Options, subject: &Subject) -> Outcome {
    let sizes = options.size.map_or_else(|| SIZES.to_vec(), |s| vec![s]);
    let device = Device::Sim(options.gpu);
    let progress = Progress::steps(sizes.len() as u64);
    let mut verdicts = Vec::new();
    let mut last = None;
    for shape in sizes {
        progress.say(shape.to_string());
        let problem = Problem::new(shape, options.variant.dtype, options.variant.layout);
        let operands = Operands::random(&problem, options.effort.seed)?;
        let outcome = run::run(&device, subject, &problem, operands, &options.effort.effort(&device))?;
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

/// The JSON of a check of one program against another.
#[derive(Serialize)]
struct Compared {
    kernel: String,
    specification: String,
    sizes: BTreeMap<String, i64>,
    exact: ExactCheck,
    races: u64,
    out_of_bounds: u64,
    uninitialized: u64,
    barrier_faults: u64,
    passed: bool,
}

/// Checks any program against any other.
fn against(options: &Options, program: &Program, specification: &Program) -> Outcome {
    let valid = compile::validated(program, options.gpu)?;
    let blocks = if options.effort.full { Blocks::All } else { Blocks::Sample(64) };
    let simt = warpwright_sim::Options { mode: Mode::Simt, checks: true, blocks };
    let trials = Trials { count: options.effort.trials, seed: options.effort.seed, options: simt };
    let sizes: Vec<(&str, i64)> = options.set.iter().map(|(n, v)| (n.as_str(), *v)).collect();
    let report = exact::check(specification, valid.program(), &sizes, &trials)?;
    let passed = report.passed();
    if options.output.json {
        print_json(&Compared {
            kernel: program.name.clone(),
            specification: specification.name.clone(),
            sizes: options.set.iter().cloned().collect(),
            exact: ExactCheck { trials: report.trials, passed: report.equal() },
            races: report.run.races(),
            out_of_bounds: report.run.out_of_bounds(),
            uninitialized: report.run.uninitialized(),
            barrier_faults: report.run.barrier_faults(),
            passed,
        })?;
    } else {
        let equal = if report.equal() { "equal to" } else { "NOT EQUAL to" };
        print(&format!(
            "{}: {equal} {} in {} trials ({} elements compared); {}",
            program.name, specification.name, report.trials, report.compared, report.run
        ))?;
    }
    if passed { Ok(()) } else { Err(Failure::Wrong) }
}
