//! `show`: a kernel at any stage of its making.

use clap::{Args, ValueEnum};
use serde::Serialize;
use warpwright_core::diag::Diagnosis;
use warpwright_core::ir::Program;
use warpwright_core::target::{self, Target};
use warpwright_cuda::disassemble::disassemble;

use super::options::{OutputOptions, StorageOptions, VariantOptions};
use super::output::{Outcome, print, print_json};
use super::source::{self, Source};
use crate::gpu::diagnosis;
use crate::kernels::family::{Value, Word, parse_parameter};
use crate::problem::Shape;
use crate::report::diff;
use crate::{compile, target_file};

/// Options of `show`.
#[derive(Args, Debug)]
pub struct Options {
    /// A kernel, the number of a rung of the sgemm ladder, a family, or a file with a schedule or a program.
    #[arg(value_name = "KERNEL|FAMILY|FILE")]
    kernel: String,
    /// The size of the product, of which a family's kernels depend.
    #[arg(long, value_name = "MxNxK")]
    size: Option<Shape>,
    /// A parameter of the family, such as tm=4; the others keep their usual values.
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parse_parameter, value_delimiter = ',')]
    parameters: Vec<(Word, Value)>,
    /// What to show.
    #[arg(long, value_enum, default_value = "program")]
    stage: Stage,
    /// The program after this many steps of the schedule [default: all].
    #[arg(long, value_name = "N")]
    step: Option<usize>,
    /// For which GPU lowering, CUDA, PTX and SASS are made: a name that `targets` lists, or a file that describes one.
    #[arg(long, value_name = "GPU|FILE", value_parser = target_file::find, default_value = target::DEFAULT.name)]
    gpu: &'static Target,
    /// What changed: by the last step shown, or since the specification where no step is given.
    #[arg(long)]
    diff: bool,
    #[command(flatten)]
    variant: VariantOptions,
    #[command(flatten)]
    storage: StorageOptions,
    #[command(flatten)]
    output: OutputOptions,
}

/// A stage of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum Stage {
    /// The product as mathematics.
    Spec,
    /// The program that the schedule makes of it.
    Program,
    /// The steps of the schedule.
    Trace,
    /// The program with its barriers, as threads run it.
    Lowered,
    /// CUDA C.
    Cuda,
    /// NVIDIA's virtual machine code; needs NVRTC.
    Ptx,
    /// Machine code; needs NVRTC and nvdisasm.
    Sass,
}

/// The JSON of `show`.
#[derive(Serialize)]
struct Shown {
    kernel: String,
    stage: Stage,
    step: usize,
    steps: usize,
    text: String,
}

/// Lines of unchanged text around each change.
const CONTEXT: usize = 3;

/// Runs `show`.
pub fn run(options: &Options) -> Outcome {
    let shown = show(options)?;
    if options.output.json { print_json(&shown) } else { print(shown.text.trim_end()) }
}

fn show(options: &Options) -> Result<Shown, Diagnosis> {
    let Options { kernel, size, parameters, gpu, variant, storage, .. } = options;
    let problem = storage.problem(*size, variant)?;
    let source = source::with_parameters(kernel, variant.variant(), problem.as_ref(), parameters, gpu)?;
    let prefixes = prefixes(&source)?;
    let steps = prefixes.len() - 1;
    let step = options.step.unwrap_or(steps);
    if step > steps {
        return Err(Diagnosis::new(format!("{} has no step {step}", source.name()))
            .because(format!("its schedule has {steps} steps"))
            .instead(format!("give a number from 0 to {steps}")));
    }
    let before = if options.step.is_some() { step.saturating_sub(1) } else { 0 };
    let text = match options.stage {
        Stage::Trace => trace(&source),
        Stage::Spec => prefixes[0].to_string(),
        stage if options.diff => {
            let at = |n: usize| text_of(&prefixes[n], stage, options.gpu);
            diff::unified(&at(before)?, &at(step)?, CONTEXT)
        }
        stage => text_of(&prefixes[step], stage, options.gpu)?,
    };
    Ok(Shown { kernel: source.name().to_string(), stage: options.stage, step, steps, text })
}

/// A program at a stage of its compilation.
fn text_of(program: &Program, stage: Stage, gpu: &Target) -> Result<String, Diagnosis> {
    if matches!(stage, Stage::Spec | Stage::Program | Stage::Trace) {
        return Ok(program.to_string());
    }
    let valid = compile::validated(program, gpu)?;
    if stage == Stage::Lowered {
        return Ok(valid.program().to_string());
    }
    let source = compile::cuda(&valid)?;
    if stage == Stage::Cuda {
        return Ok(source.text);
    }
    let file = format!("{}.cu", source.name);
    let options = crate::gpu::options(&gpu.arch_for(&[]), &source, gpu).with_ptx();
    let compiled =
        warpwright_cuda::compile::compile(&warpwright_cuda::Source::new(&file, &source.text), &options)
            .map_err(diagnosis)?;
    if stage == Stage::Ptx {
        return Ok(compiled.ptx.unwrap_or_default());
    }
    disassemble(&compiled.cubin).map(|d| d.text).map_err(diagnosis)
}

/// The program after each step; a program from a file has no steps.
fn prefixes(source: &Source) -> Result<Vec<Program>, Diagnosis> {
    match source {
        Source::Kernel(kernel) => kernel.schedule.prefixes(),
        Source::Program(program) => Ok(vec![program.clone()]),
    }
}

/// The steps with their numbers.
fn trace(source: &Source) -> String {
    match source {
        Source::Kernel(kernel) => {
            let text = kernel.schedule.text();
            text.lines().enumerate().map(|(i, line)| format!("{:3}  {line}\n", i + 1)).collect()
        }
        Source::Program(_) => "# a program from a file: no steps\n".to_string(),
    }
}
