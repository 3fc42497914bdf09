//! `compile`: kernels compiled ahead, on a machine that need not have a GPU.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use warpwright_core::diag::Diagnosis;
use warpwright_core::target::{self, Target};
use warpwright_cuda::CompileCache;
use warpwright_cuda::nvrtc::Nvrtc;

use super::known::wisdom;
use super::options::{OutputOptions, PermissionOptions, ProblemsOptions};
use super::output::{Failure, Outcome, notice, print, print_json};
use crate::gpu::{self, Ahead, Site};
use crate::kernels::Kernel;
use crate::kernels::family::{Choice, Family, Value, Word, parse_parameter};
use crate::problem::Problem;
use crate::report::progress::Progress;
use crate::report::table::{numbers, render, words};
use crate::report::{ChosenBy, ProblemReport};
use crate::tune::file::WisdomFile;
use crate::tune::record::Gpu;
use crate::tune::session::Session;
use crate::{choose, parallel, target_file};

/// Options of `compile`.
#[derive(Args, Debug)]
pub struct Options {
    #[command(flatten)]
    problems: ProblemsOptions,
    #[command(flatten)]
    permissions: PermissionOptions,
    /// The GPU to compile for, which need not be here: a name, or a file that describes one.
    #[arg(long, value_name = "GPU|FILE", value_parser = target_file::find, default_value = target::DEFAULT.name)]
    gpu: &'static Target,
    /// Compile so many candidates of each product as well, those with which `tune` begins.
    #[arg(long, value_name = "N", default_value_t = 0)]
    candidates: usize,
    /// A value that each of them has, such as unit=mma, as with `tune`.
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parse_parameter, value_delimiter = ',', requires = "candidates")]
    parameters: Vec<(Word, Value)>,
    #[command(flatten)]
    output: OutputOptions,
}

/// The result: the JSON of `compile`.
#[derive(Debug, Serialize)]
struct Compiled {
    /// The GPU that was compiled for.
    gpu: &'static str,
    /// The version of NVRTC, which has to be the same where the kernels are to be found.
    nvrtc: String,
    /// Where compiled kernels are kept.
    directory: PathBuf,
    products: Vec<Product>,
}

/// What was compiled for a product.
#[derive(Debug, Serialize)]
struct Product {
    problem: ProblemReport,
    /// The kernel that `gemm` would choose.
    kernel: String,
    parameters: Choice,
    chosen_by: ChosenBy,
    /// Registers of a thread of it.
    registers: Option<u32>,
    /// Kernels that were compiled, those of candidates among them.
    compiled: usize,
    /// Kernels that were there already.
    found: usize,
    /// Candidates of which no kernel can be made.
    failed: usize,
}

/// Runs `compile`.
pub fn run(options: &Options) -> Outcome {
    let problems = options.problems.all()?;
    // Whether there can be candidates with these values is known without a compiler.
    let given = Choice::of(&options.parameters);
    for problem in problems.iter().filter(|_| !given.is_empty()) {
        if let Some(family) = choose::family(problem) {
            family.complete_permitted(&given, problem, options.gpu, options.permissions.of_kernels())?;
        }
    }
    let nvrtc = Nvrtc::get().map_err(gpu::diagnosis)?.version();
    let Some(directory) = CompileCache::standard().directory().map(PathBuf::from) else {
        return Err(Diagnosis::new("compiled kernels would be lost")
            .because("there is no directory to keep them in")
            .instead("set WARPWRIGHT_CACHE to a directory")
            .into());
    };
    let site = Site::elsewhere(options.gpu);
    let mut products = Vec::new();
    for problem in &problems {
        products.push(one(options, problem, &site)?);
    }
    let result =
        Compiled { gpu: options.gpu.name, nvrtc: format!("{}.{}", nvrtc.0, nvrtc.1), directory, products };
    if options.output.json {
        print_json(&result)?;
    } else {
        print(&text(&result))?;
    }
    if result.products.iter().all(|p| p.compiled + p.found > 0) { Ok(()) } else { Err(Failure::Wrong) }
}

/// Compiles for one product.
fn one(options: &Options, problem: &Problem, site: &Site) -> Result<Product, Diagnosis> {
    let (kernel, chosen_by) = chosen(options, problem)?;
    let mut total = site.source(kernel.program(), problem)?.compile()?;
    if let Some(lost) = &total.lost {
        return Err(Diagnosis::new("compiled kernels would be lost").because(lost.clone()));
    }
    let registers = total.registers;
    let mut failed = 0;
    if let Some(family) = choose::family(problem).filter(|_| options.candidates > 0) {
        let candidates = candidates(options, family, problem)?;
        let progress = Progress::steps(candidates.len() as u64);
        progress.say(format!("{} {}", problem.shape, problem.precision));
        let compiled = parallel::map(&candidates, |choice| {
            let ahead = family
                .build(problem, choice)
                .and_then(|kernel| site.source(kernel.program(), problem)?.compile());
            progress.step();
            ahead
        });
        for ahead in compiled {
            match ahead {
                Ok(Ahead { compiled, found, .. }) => {
                    total.compiled += compiled;
                    total.found += found;
                }
                Err(_) => failed += 1,
            }
        }
    }
    Ok(Product {
        problem: ProblemReport::of(problem),
        kernel: kernel.name.clone(),
        parameters: kernel.parameters.clone(),
        chosen_by,
        registers,
        compiled: total.compiled,
        found: total.found,
        failed,
    })
}

/// The kernel that `gemm` chooses for a product where nothing is named, and who chose it.
fn chosen(options: &Options, problem: &Problem) -> Result<(Kernel, ChosenBy), Diagnosis> {
    if let Some(family) = choose::family(problem) {
        let (known, permissions) = (wisdom(family.name), options.permissions.of_kernels());
        let gpu = Gpu::of_target(options.gpu);
        match choose::parameters(family, problem, options.gpu, &gpu, &known, permissions) {
            Ok(chosen) => return Ok(chosen),
            Err(refusal) => notice(&format!("a general kernel is used: {refusal}")),
        }
    }
    Ok((choose::kernel(problem, options.gpu)?, ChosenBy::Rule))
}

/// The candidates with which a tuner begins.
fn candidates(
    options: &Options,
    family: &'static Family,
    problem: &Problem,
) -> Result<Vec<Choice>, Diagnosis> {
    let (gpu, file, given) =
        (Gpu::of_target(options.gpu), WisdomFile::standard(), Choice::of(&options.parameters));
    let session = Session {
        gpu: &gpu,
        target: options.gpu,
        family,
        problem,
        permissions: options.permissions.of_kernels(),
        given: &given,
        file: file.as_ref(),
        again: false,
        alone: false,
        rested: false,
    };
    Ok(session.order()?.into_iter().take(options.candidates).map(|c| c.choice).collect())
}

fn text(result: &Compiled) -> String {
    let columns = [
        words("product"),
        words("kernel"),
        words("parameters"),
        numbers("registers"),
        numbers("compiled"),
        numbers("there already"),
        numbers("failed"),
    ];
    let row = |p: &Product| {
        let of = &p.problem;
        vec![
            format!("{}x{}x{} {} {}", of.m, of.n, of.k, of.dtype, of.layout),
            p.kernel.clone(),
            p.parameters.to_string(),
            p.registers.map_or_else(|| "-".to_string(), |n| n.to_string()),
            p.compiled.to_string(),
            p.found.to_string(),
            p.failed.to_string(),
        ]
    };
    let Compiled { gpu, nvrtc, directory, products } = result;
    format!(
        "kernels for {gpu} by NVRTC {nvrtc}\n{table}\n  they are in {place}: carry it to a machine with NVRTC {nvrtc} and name it there with WARPWRIGHT_CACHE",
        table = render(&columns, &products.iter().map(row).collect::<Vec<_>>()),
        place = directory.display(),
    )
}
