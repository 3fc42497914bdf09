//! `ladder`: every rung of a ladder, each checked, with what it changes and what that buys.

use std::path::PathBuf;

use clap::Args;
use warpwright_core::diag::Diagnosis;
use warpwright_core::target::{self, Target};
use warpwright_cuda::nvrtc::Nvrtc;

use super::options::{DeviceOptions, EffortOptions, OutputOptions, ProductOptions};
use super::output::{Failure, Outcome, notice, print, print_json};
use crate::device::{Device, DeviceChoice};
use crate::file::write_whole;
use crate::inputs::Operands;
use crate::kernels::{self, Kernel, Recipe, Variant};
use crate::ladder::measured::{Measured, Source};
use crate::ladder::{self, Counted, Ladder, Registers, Rung};
use crate::problem::{Problem, Shape};
use crate::report::number::{bytes, flops_per_second, seconds};
use crate::report::progress::Progress;
use crate::report::table::{numbers, render, words};
use crate::report::{RungReport, ladder as page};
use crate::run::{self, Effort, Subject};
use crate::{memory, parallel};

/// Options of `ladder`.
#[derive(Args, Debug)]
pub struct Options {
    /// The ladder.
    #[arg(value_name = "NAME", default_value = "sgemm")]
    name: String,
    /// The size of the product: N for a square one, or MxNxK [default: 512 on the simulator, 4096 on a GPU].
    #[arg(long, value_name = "N|MxNxK", value_parser = parse_size)]
    size: Option<Shape>,
    /// Only these rungs, separated by commas.
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    rungs: Vec<u32>,
    #[command(flatten)]
    product: ProductOptions,
    /// Write a worklog of the rungs as a page that can be opened in a browser. Its numbers are of the size that is given,
    /// of the times in --measured, or of 4096; without a GPU rungs are checked at no more than 256.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Take measured times for the page from a file: what `ladder --json` printed on a GPU, or what `bench --record`
    /// wrote. Nothing is timed then, and no GPU is needed.
    #[arg(long, value_name = "RESULTS", requires = "html")]
    measured: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceOptions,
    #[command(flatten)]
    effort: EffortOptions,
    #[command(flatten)]
    output: OutputOptions,
}

/// Reads `N` or `MxNxK`.
pub fn parse_size(text: &str) -> Result<Shape, Diagnosis> {
    match text.trim().parse::<u32>() {
        Ok(n) => Ok(Shape::cube(i64::from(n))),
        Err(_) => text.parse(),
    }
}

/// Runs `ladder`.
pub fn run(options: &Options) -> Outcome {
    let mut rungs = kernels::ladder(&options.name)?;
    if !options.rungs.is_empty() {
        rungs.retain(|r| options.rungs.contains(&r.rung));
    }
    if rungs.is_empty() {
        return Err(Diagnosis::new(format!("ladder {} has none of these rungs", options.name))
            .instead("leave out --rungs to run all of them")
            .into());
    }
    let earlier = options.measured.as_deref().map(Measured::read).transpose()?;
    let device = open(options, earlier.as_ref())?;
    let shown = shown(options, &rungs, &device, earlier.as_ref())?;
    let problem = checked(options, &device, &shown);
    memory::check_fits(&problem, 3.0)?;
    let Climb { rungs: climbed, faults } =
        climb(&rungs, &device, &problem, &options.effort.effort(&device), options.effort.seed)?;
    if climbed.is_empty() {
        let (dtype, layout) = (problem.precision, problem.layout);
        return Err(Diagnosis::new(format!("ladder {} has no rung for {dtype} {layout}", options.name))
            .instead("choose another --dtype or --layout, as said above")
            .into());
    }
    let reports: Vec<RungReport> = climbed.iter().map(|(_, report)| report.clone()).collect();
    if let Some(path) = &options.html {
        let ladder = described(options, climbed, &device, shown, earlier.as_ref())?;
        write_whole(path, &page::page(&ladder))?;
    }
    if options.output.json {
        print_json(&reports)?;
    } else {
        print(&table(&reports))?;
    }
    faults.iter().for_each(|f| notice(&format!("wrong: {f}")));
    if reports.iter().all(|r| r.report.check.passed) { Ok(()) } else { Err(Failure::Wrong) }
}

/// The device. With times of an earlier run it is the simulator, as the GPU that they were measured on.
fn open(options: &Options, earlier: Option<&Measured>) -> Result<Device, Diagnosis> {
    let choice = match (options.device.device, earlier) {
        (DeviceChoice::Cuda(_), Some(_)) => {
            return Err(Diagnosis::new("--measured and --device cuda: there would be two measured times")
                .because("a GPU is timed by this run itself")
                .instead("leave out one of the two"));
        }
        (DeviceChoice::Auto, Some(earlier)) => {
            DeviceChoice::Sim(Target::by_product_name(&earlier.source.gpu).unwrap_or(target::DEFAULT))
        }
        (choice, _) => choice,
    };
    let (device, notices) = choice.open()?;
    notices.iter().for_each(|n| notice(n));
    Ok(device)
}

/// The product that the page is about, and that is run unless it is too large for the simulator.
fn shown(
    options: &Options,
    rungs: &[&Recipe],
    device: &Device,
    earlier: Option<&Measured>,
) -> Result<Problem, Diagnosis> {
    let simulated = matches!(device, Device::Sim(_)) && options.html.is_none();
    let usual = if simulated { Shape::cube(512) } else { Shape::cube(4096) };
    let problem = options.product.problem(options.size.unwrap_or(usual))?;
    let Some(earlier) = earlier else { return Ok(problem) };
    let variant = Variant::of(&problem);
    let names: Vec<String> = rungs.iter().map(|r| kernels::full_name(r, variant)).collect();
    let problem = options.product.problem(earlier.size(&problem, options.size, &names)?)?;
    for kernel in earlier.wrong(&problem) {
        notice(&format!("{kernel} was wrong when it was timed: its time is left out"));
    }
    Ok(problem)
}

/// The product that is run: for a page that is made on the simulator a smaller one, since the model's numbers need no run.
fn checked(options: &Options, device: &Device, shown: &Problem) -> Problem {
    if matches!(device, Device::Cuda(..)) || options.html.is_none() {
        return *shown;
    }
    let Shape { m, n, k } = shown.shape;
    let [m, n, k] = [m, n, k].map(stand_in);
    let smaller = Problem::new(Shape { m, n, k }, shown.precision, shown.layout);
    Problem { alpha: shown.alpha, beta: shown.beta, same: shown.same, ..smaller }
}

/// The largest extent that is simulated for a page: all rungs of a ladder take some seconds then.
const MOST_SIMULATED: i64 = 256;

/// An extent that is simulated in place of another: where tiles divide that, they divide this, and where some are ragged
/// there they are ragged here.
fn stand_in(extent: i64) -> i64 {
    let half = MOST_SIMULATED / 2;
    if extent <= MOST_SIMULATED || extent % MOST_SIMULATED == 0 {
        extent.min(MOST_SIMULATED)
    } else {
        half + extent % half
    }
}

/// What the page is made of: the reports, what the model says of each rung, and measured times.
fn described(
    options: &Options,
    climbed: Vec<(Kernel, RungReport)>,
    device: &Device,
    problem: Problem,
    earlier: Option<&Measured>,
) -> Result<Ladder, Diagnosis> {
    let target = device.target();
    let compiler = Nvrtc::get().is_ok();
    let of_run = |report: &RungReport| report.report.kernel.launches.iter().filter_map(|l| l.registers).max();
    let progress = Progress::steps(climbed.len() as u64);
    progress.say(format!("{} for {}", if compiler { "compiling" } else { "modelling" }, target.name));
    let described = parallel::map(&climbed, |(kernel, report)| {
        let known = match earlier {
            Some(earlier) => earlier.registers(&problem, &kernel.name),
            None => of_run(report).map(|count| Registers { count, by: Counted::Compiler }),
        };
        let described = ladder::modelled(kernel, &problem, target, known, compiler);
        progress.step();
        described
    });
    drop(progress);
    let mut rungs = Vec::new();
    for ((kernel, report), described) in climbed.into_iter().zip(described) {
        let (model, cuda) = described?;
        let seconds = match earlier {
            Some(earlier) if earlier.is_outdated(&problem, &kernel.name, &kernel.schedule.text()) => {
                let what = "its schedule was another one when it was timed: its time is left out";
                notice(&format!("rung {}: {what}", report.rung));
                None
            }
            Some(earlier) => earlier.seconds(&problem, &kernel.name),
            None => report.report.time.seconds,
        };
        rungs.push(Rung { report, model, cuda, seconds });
    }
    let (source, cublas) = match (earlier, device) {
        (Some(earlier), _) => (Some(earlier.source.clone()), earlier.cublas(&problem)),
        (None, Device::Cuda(..)) => {
            let gpu = device.report().gpu;
            let cublas = rungs.iter().find_map(|r| r.report.report.cublas).map(|c| c.seconds);
            (Some(Source { gpu, file: None, with: None }), cublas)
        }
        (None, Device::Sim(_)) => (None, None),
    };
    Ok(Ladder { name: options.name.clone(), problem, target, source, cublas, rungs })
}

/// What came of running the rungs.
struct Climb {
    rungs: Vec<(Kernel, RungReport)>,
    /// What is wrong, a line each.
    faults: Vec<String>,
}

/// Runs the rungs one after another on the same operands.
fn climb(
    rungs: &[&'static Recipe],
    device: &Device,
    problem: &Problem,
    effort: &Effort,
    seed: u64,
) -> Result<Climb, Diagnosis> {
    let operands = Operands::random(problem, seed)?;
    let variant = Variant::of(problem);
    let progress = Progress::steps(rungs.len() as u64);
    let mut cublas = None;
    let (mut climbed, mut faults) = (Vec::new(), Vec::new());
    for (i, recipe) in rungs.iter().enumerate() {
        progress.say(format!("{} {}", recipe.rung, recipe.title));
        if let Err(reason) = (recipe.schedule)(variant) {
            notice(&format!("rung {} is left out: {reason}", recipe.rung));
            continue;
        }
        let kernel = kernels::build(recipe, variant)?;
        // cuBLAS is timed once, beside the first rung.
        let effort = Effort { cublas: effort.cublas && i == 0, ..*effort };
        let mut outcome = run::run(device, &Subject::from(&kernel), problem, operands.clone(), &effort)?;
        cublas = cublas.or(outcome.report.cublas);
        outcome.report.cublas = cublas;
        outcome.notices.iter().for_each(|n| notice(n));
        faults.extend(outcome.faults.into_iter().map(|f| format!("rung {}: {f}", recipe.rung)));
        let report = RungReport {
            rung: recipe.rung,
            name: recipe.title.to_string(),
            change: recipe.change.to_string(),
            why: recipe.why.to_string(),
            report: outcome.report,
        };
        climbed.push((kernel, report));
        progress.step();
    }
    Ok(Climb { rungs: climbed, faults })
}

/// A line for each rung, and what each changes.
fn table(rungs: &[RungReport]) -> String {
    let columns = [
        numbers("rung"),
        words("name"),
        words("block"),
        numbers("shared"),
        numbers("registers"),
        numbers("sectors/load"),
        numbers("wavefronts/load"),
        numbers("time"),
        numbers("rate"),
        numbers("of cuBLAS"),
        words("right"),
    ];
    let rows: Vec<Vec<String>> = rungs.iter().map(row).collect();
    let changes: Vec<String> = rungs.iter().map(|r| format!("{:4}  {}", r.rung, r.change)).collect();
    format!("{}\n\n{}", render(&columns, &rows), changes.join("\n"))
}

fn row(rung: &RungReport) -> Vec<String> {
    let report = &rung.report;
    let unknown = || "-".to_string();
    let launch = report.kernel.launches.last();
    let ratio =
        |total: u64, of: u64| if of == 0 { unknown() } else { format!("{:.2}", total as f64 / of as f64) };
    let counters = report.counters.as_ref();
    vec![
        rung.rung.to_string(),
        rung.name.clone(),
        launch.map_or_else(unknown, |l| {
            l.block.iter().filter(|e| **e > 1).map(u32::to_string).collect::<Vec<_>>().join("x")
        }),
        launch.map_or_else(unknown, |l| bytes(l.shared_bytes)),
        launch.and_then(|l| l.registers).map_or_else(unknown, |r| r.to_string()),
        counters.map_or_else(unknown, |c| ratio(c.global_load_sectors, c.global_load_requests)),
        counters.map_or_else(unknown, |c| ratio(c.shared_load_wavefronts, c.shared_load_requests)),
        report.time.seconds.map_or_else(unknown, seconds),
        report.tflops.map_or_else(unknown, |t| flops_per_second(t * 1e12)),
        report.tflops.zip(report.cublas).map_or_else(unknown, |(t, c)| format!("{:.2}", t / c.tflops)),
        if report.check.passed { "yes" } else { "NO" }.to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use super::stand_in;

    #[test]
    fn small_extents_stand_in_for_large_ones_that_leave_the_same_remainders() {
        assert_eq!([1, 100, 255, 256].map(stand_in), [1, 100, 255, 256]);
        assert_eq!([4096, 4095, 4097, 4224, 1000].map(stand_in), [256, 255, 129, 128, 232]);
        for extent in 257..2000 {
            for tile in [4, 8, 16, 32, 64, 128, 256] {
                let divides = |extent: i64| extent % tile == 0;
                assert_eq!(divides(extent), divides(stand_in(extent)), "{extent} by {tile}");
            }
        }
    }
}
