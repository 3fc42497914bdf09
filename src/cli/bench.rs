//! `bench`: how fast kernels are on a GPU, beside cuBLAS; how fast the simulator and the compiler are.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use warpwright_core::diag::Diagnosis;
use warpwright_cuda::MeasureOptions;

use super::bandwidth;
use super::ladder::parse_size;
use super::options::{DeviceOptions, OutputOptions, ProductOptions};
use super::output::{Failure, Outcome, notice, print, print_json};
use super::{fc, source, tsm};
use crate::bench::first_call::{self, FirstCall};
use crate::bench::gpu::Measurement;
use crate::bench::{compiler, gpu, record, simulator};
use crate::kernels::{self, Recipe};
use crate::memory;
use crate::problem::Shape;
use crate::report::number::{count, flops_per_second, seconds};
use crate::report::progress::Progress;
use crate::report::table::{numbers, render, words};
use crate::run::Subject;

/// Options of `bench`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Options {
    #[command(subcommand)]
    special: Option<Special>,
    /// Ladders, kernels and files with schedules, timed on a GPU beside cuBLAS; or `simulator`, `compiler` or
    /// `first-call`.
    #[arg(value_name = "LADDER|KERNEL|FILE|simulator|compiler|first-call", default_value = "sgemm")]
    what: Vec<String>,
    /// The sizes, separated by commas: N for a square product, or MxNxK.
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = parse_size, default_value = "4096")]
    sizes: Vec<Shape>,
    /// Only these rungs of the ladder, separated by commas.
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    rungs: Vec<u32>,
    #[command(flatten)]
    product: ProductOptions,
    /// Repetitions of the simulator's and the compiler's benchmark, of which the median counts.
    #[arg(long, value_name = "N", default_value_t = 3)]
    repeats: usize,
    /// Fail if the compiler takes longer for some kernel.
    #[arg(long, value_name = "MILLISECONDS")]
    limit: Option<f64>,
    /// Write the results into this directory, with GPU, driver, CUDA version and date.
    #[arg(long, value_name = "DIRECTORY")]
    record: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceOptions,
    #[command(flatten)]
    output: OutputOptions,
}

/// Benchmarks with options of their own.
#[derive(Subcommand, Debug)]
enum Special {
    /// How fast a GPU reads and writes its memory: by loads in flight and occupancy, and by the mix of both.
    Bandwidth(bandwidth::Options),
    /// Tall and skinny products over widths and types, beside cuBLAS and the roofline.
    Tsm(tsm::Options),
    /// Fully connected layers over the rows of their input, beside cuBLAS and the roofline.
    Fc(fc::Options),
}

/// Runs `bench`.
pub fn run(options: &Options) -> Outcome {
    match &options.special {
        Some(Special::Bandwidth(options)) => return bandwidth::run(options),
        Some(Special::Tsm(options)) => return tsm::run(options),
        Some(Special::Fc(options)) => return fc::run(options),
        None => {}
    }
    match options.what.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["simulator"] => bench_simulator(options),
        ["compiler"] => bench_compiler(options),
        ["first-call"] => bench_first_call(options),
        _ => bench_gpu(options),
    }
}

fn bench_simulator(options: &Options) -> Outcome {
    let speeds = {
        let _progress = Progress::waiting("2D block tiling at 512x512x512 on the simulator");
        simulator::run(options.repeats)?
    };
    if options.output.json {
        return print_json(&speeds);
    }
    let columns =
        [words("arithmetic"), words("checks"), numbers("multiply-adds per second"), numbers("time")];
    let row = |s: &simulator::Speed| {
        vec![
            s.arithmetic.to_string(),
            if s.checks { "all" } else { "none" }.to_string(),
            count(s.fma_per_second as u64),
            seconds(s.seconds),
        ]
    };
    print(&render(&columns, &speeds.iter().map(row).collect::<Vec<_>>()))
}

fn bench_compiler(options: &Options) -> Outcome {
    let times = compiler::run(options.product.variant.variant(), options.repeats)?;
    if options.output.json {
        print_json(&times)?;
    } else {
        print(&compile_times(&times))?;
    }
    let limit = options.limit.unwrap_or(f64::INFINITY);
    let slow: Vec<_> = times.iter().filter(|t| t.seconds * 1e3 > limit).collect();
    for t in &slow {
        notice(&format!("{} takes {}, more than {limit} ms", t.kernel, seconds(t.seconds)));
    }
    if slow.is_empty() { Ok(()) } else { Err(Failure::Wrong) }
}

fn compile_times(times: &[compiler::CompileTime]) -> String {
    let columns =
        [words("kernel"), numbers("in all"), numbers("schedule"), numbers("validation"), numbers("emission")];
    let row = |t: &compiler::CompileTime| {
        let parts = [t.seconds, t.schedule_seconds, t.validate_seconds, t.emit_seconds];
        std::iter::once(t.kernel.clone()).chain(parts.map(seconds)).collect()
    };
    render(&columns, &times.iter().map(row).collect::<Vec<_>>())
}

/// The first call of every rung that serves the type, at the first size.
fn bench_first_call(options: &Options) -> Outcome {
    let instead = "use `bench compiler` here, which times what happens before";
    let (gpu, target) = &options.device.gpu("whose first call could be timed", instead)?;
    let problem = options.product.problem(options.sizes[0])?;
    memory::check_fits(&problem, 2.0)?;
    let variant = options.product.variant.variant();
    let serves = |r: &&Recipe| {
        let named = options.rungs.is_empty() || options.rungs.contains(&r.rung);
        named && (r.schedule)(variant).is_ok()
    };
    let recipes: Vec<_> = kernels::ladder("sgemm")?.into_iter().filter(serves).collect();
    let progress = Progress::waiting("NVRTC");
    let tell = |c: &FirstCall| progress.say(format!("{}: {}", c.kernel, seconds(c.cold_seconds)));
    let calls = first_call::run(gpu, target, &problem, &recipes, tell)?;
    drop(progress);
    if let Some(directory) = &options.record {
        let path = record::write(directory, &options.name(), gpu, &calls)?;
        notice(&format!("recorded in {}", path.display()));
    }
    if options.output.json {
        print_json(&calls)?;
    } else {
        let columns = [words("kernel"), numbers("cold cache"), numbers("warm cache"), words("right")];
        let row = |c: &FirstCall| {
            let right = if c.passed { "yes" } else { "NO" };
            vec![c.kernel.clone(), seconds(c.cold_seconds), seconds(c.warm_seconds), right.to_string()]
        };
        print(&render(&columns, &calls.iter().map(row).collect::<Vec<_>>()))?;
    }
    if calls.iter().all(|c| c.passed) { Ok(()) } else { Err(Failure::Wrong) }
}

fn bench_gpu(options: &Options) -> Outcome {
    let kernels = kernels(options)?;
    let instead = "use `bench simulator` or `bench compiler` here, or `ladder` for what kernels count";
    let (gpu, target) = &options.device.gpu("to time kernels on", instead)?;
    let progress = Progress::waiting("cuBLAS");
    let mut all = Vec::new();
    for shape in &options.sizes {
        let problem = options.product.problem(*shape)?;
        memory::check_fits(&problem, 2.0)?;
        let tell = |m: &Measurement| {
            progress.say(format!("{shape} {}: {}", m.kernel, flops_per_second(m.tflops * 1e12)))
        };
        all.extend(gpu::run(gpu, target, &problem, &kernels, &MeasureOptions::default(), tell)?);
    }
    drop(progress);
    if let Some(directory) = &options.record {
        let path = record::write(directory, &options.name(), gpu, &all)?;
        notice(&format!("recorded in {}", path.display()));
    }
    if options.output.json {
        print_json(&all)?;
    } else {
        print(&table(&all))?;
    }
    if all.iter().all(|m| m.passed != Some(false)) { Ok(()) } else { Err(Failure::Wrong) }
}

/// The kernels that are meant: of ladders, all or some of the rungs.
fn kernels(options: &Options) -> Result<Vec<Subject>, Diagnosis> {
    let variant = options.product.variant.variant();
    let mut subjects = Vec::new();
    for name in &options.what {
        match kernels::ladder(name) {
            Ok(rungs) => {
                let chosen = |r: &&Recipe| {
                    let named = options.rungs.is_empty() || options.rungs.contains(&r.rung);
                    named && (r.schedule)(variant).is_ok()
                };
                for recipe in rungs.into_iter().filter(chosen) {
                    subjects.push(Subject::from(&kernels::build(recipe, variant)?));
                }
            }
            Err(_) => subjects.push(source::find(name, variant)?.into_subject(variant)),
        }
    }
    Ok(subjects)
}

impl Options {
    /// What the results are filed under.
    fn name(&self) -> String {
        let stem = |name: &String| Path::new(name).file_stem().map(|s| s.to_string_lossy().into_owned());
        let variant = self.product.variant;
        let names = self.what.iter().filter_map(stem);
        names.chain([variant.dtype.to_string(), variant.layout.to_string()]).collect::<Vec<_>>().join("-")
    }
}

fn table(measurements: &[Measurement]) -> String {
    let columns = [
        words("size"),
        words("kernel"),
        numbers("registers"),
        numbers("time"),
        numbers("quartiles"),
        numbers("rate"),
        numbers("of cuBLAS"),
        words("right"),
    ];
    let row = |m: &Measurement| {
        let registers = m.launches.iter().filter_map(|l| l.registers).max();
        vec![
            format!("{}x{}x{}", m.problem.m, m.problem.n, m.problem.k),
            m.kernel.clone(),
            registers.map_or("-".to_string(), |r| r.to_string()),
            seconds(m.seconds),
            format!(
                "{:+.1} % {:+.1} %",
                percent(m.quartiles.0, m.seconds),
                percent(m.quartiles.1, m.seconds)
            ),
            flops_per_second(m.tflops * 1e12),
            m.of_cublas.map_or("-".to_string(), |r| format!("{r:.3}")),
            m.passed.map_or("-", |p| if p { "yes" } else { "NO" }).to_string(),
        ]
    };
    render(&columns, &measurements.iter().map(row).collect::<Vec<_>>())
}

fn percent(value: f64, of: f64) -> f64 {
    100.0 * (value / of - 1.0)
}
