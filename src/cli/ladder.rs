//! `ladder`: every rung of a ladder, each checked, with what it changes and what that buys.

use std::path::PathBuf;

use clap::Args;
use warpwright_core::diag::Diagnosis;

use super::options::{DeviceOptions, EffortOptions, OutputOptions, ProductOptions};
use super::output::{Failure, Outcome, notice, print, print_json};
use crate::device::Device;
use crate::inputs::Operands;
use crate::kernels::{self, Recipe, Variant};
use crate::memory;
use crate::problem::{Problem, Shape};
use crate::report::number::{bytes, flops_per_second, seconds};
use crate::report::progress::Progress;
use crate::report::table::{numbers, render, words};
use crate::report::{RungReport, html};
use crate::run::{self, Effort, Subject};

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
    /// Write a page that can be opened in a browser.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
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
    let (device, notices) = options.device.device.open()?;
    notices.iter().for_each(|n| notice(n));
    let usual = if matches!(device, Device::Sim(_)) { Shape::cube(512) } else { Shape::cube(4096) };
    let problem = options.product.problem(options.size.unwrap_or(usual))?;
    memory::check_fits(&problem, 3.0)?;
    let (reports, faults) =
        climb(&rungs, &device, &problem, &options.effort.effort(&device), options.effort.seed)?;
    if reports.is_empty() {
        let (dtype, layout) = (problem.precision, problem.layout);
        return Err(Diagnosis::new(format!("ladder {} has no rung for {dtype} {layout}", options.name))
            .instead("choose another --dtype or --layout, as said above")
            .into());
    }
    if let Some(path) = &options.html {
        let page = html::page(&format!("Warpwright: the ladder {}", options.name), &reports);
        std::fs::write(path, page).map_err(|e| {
            Diagnosis::new(format!("{}: cannot be written", path.display())).because(e.to_string())
        })?;
    }
    if options.output.json {
        print_json(&reports)?;
    } else {
        print(&table(&reports))?;
    }
    faults.iter().for_each(|f| notice(&format!("wrong: {f}")));
    if reports.iter().all(|r| r.report.check.passed) { Ok(()) } else { Err(Failure::Wrong) }
}

/// Runs the rungs one after another on the same operands.
fn climb(
    rungs: &[&'static Recipe],
    device: &Device,
    problem: &Problem,
    effort: &Effort,
    seed: u64,
) -> Result<(Vec<RungReport>, Vec<String>), Diagnosis> {
    let operands = Operands::random(problem, seed)?;
    let variant = Variant::of(problem);
    let progress = Progress::steps(rungs.len() as u64);
    let mut cublas = None;
    let (mut reports, mut faults) = (Vec::new(), Vec::new());
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
        reports.push(RungReport {
            rung: recipe.rung,
            name: recipe.title.to_string(),
            change: recipe.change.to_string(),
            report: outcome.report,
        });
        progress.step();
    }
    Ok((reports, faults))
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
