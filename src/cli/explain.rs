//! `explain`: why a kernel takes as long as it does, and what would change it.

use std::path::PathBuf;

use clap::Args;
use warpwright_core::diag::Diagnosis;
use warpwright_core::target::Target;

use super::known::wisdom;
use super::options::{DeviceOptions, OutputOptions, ProductOptions, StorageOptions};
use super::output::{Outcome, notice, print, print_json};
use super::source::{self, Source};
use crate::device::Device;
use crate::explain::subject::{Origin, Subject};
use crate::explain::{Applied, Explanation, Wanted, measure};
use crate::file::write_whole;
use crate::kernels::family::{Permissions, Value, Word, parse_parameter};
use crate::kernels::{self, Kernel, Variant};
use crate::problem::{Problem, Shape};
use crate::report::ChosenBy;
use crate::report::progress::Progress;
use crate::tune::record::Gpu;
use crate::{choose, target_file};

/// Options of `explain`.
#[derive(Args, Debug)]
pub struct Options {
    /// A kernel, the number of a rung of the sgemm ladder, a family, a file with a schedule or a program; or the size of a product,
    /// for which a kernel is chosen as `gemm` does.
    #[arg(value_name = "KERNEL|FAMILY|FILE|MxNxK")]
    subject: String,
    /// The size of the product [default: 4096x4096x4096].
    #[arg(long, value_name = "MxNxK")]
    size: Option<Shape>,
    /// A parameter of the family, such as tm=4; the others keep their usual values.
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parse_parameter, value_delimiter = ',')]
    parameters: Vec<(Word, Value)>,
    /// The GPU: a name that `targets` lists, or a file that describes one [default: the one at hand, else the default of
    /// `targets`].
    #[arg(long, value_name = "GPU|FILE", value_parser = target_file::find)]
    gpu: Option<&'static Target>,
    #[command(flatten)]
    product: ProductOptions,
    #[command(flatten)]
    storage: StorageOptions,
    /// Compile the kernel, which needs NVRTC and nvdisasm and takes a second or more: counts its instructions, and takes
    /// the compiler's registers instead of an estimate.
    #[arg(long)]
    sass: bool,
    /// Print the schedule after the suggestion of this number, and what the model says of it.
    #[arg(long, value_name = "N", conflicts_with_all = ["html", "sass"])]
    apply: Option<usize>,
    /// Write a page that can be opened in a browser.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceOptions,
    #[command(flatten)]
    output: OutputOptions,
}

/// What is explained where no size is given.
const USUAL: i64 = 4096;

/// Runs `explain`.
pub fn run(options: &Options) -> Outcome {
    let (device, notices) = options.device.device.open()?;
    notices.iter().for_each(|n| notice(n));
    let gpu = options.gpu.unwrap_or_else(|| device.target());
    let subject = subject(options, gpu)?;
    if let Some(number) = options.apply {
        let explanation = Explanation::of(&subject, gpu, Wanted::default())?;
        let applied = Applied::of(&subject, explanation.suggestion(number)?, gpu)?;
        return if options.output.json { print_json(&applied) } else { print(&applied.describe()) };
    }
    let mut explanation = {
        let _progress = Progress::waiting(format!("{} on {}", subject.name(), gpu.name));
        Explanation::of(&subject, gpu, Wanted { machine_code: options.sass })?
    };
    match &device {
        Device::Cuda(here, target) if target.name == gpu.name => {
            let _progress = Progress::waiting(format!("{} on {}", subject.name(), here.info().name));
            measure::enter(&mut explanation, &subject, here, target)?;
        }
        Device::Cuda(here, _) => {
            notice(&format!("nothing is measured: the GPU here is {}", here.info().name))
        }
        Device::Sim(_) => notice("nothing is measured: there is no GPU, so all numbers are the model's"),
    }
    if let Some(path) = &options.html {
        write_whole(path, &explanation.page())?;
        notice(&format!("the page is in {}", path.display()));
    }
    if options.output.json { print_json(&explanation) } else { print(&explanation.describe()) }
}

/// What is to be explained.
fn subject(options: &Options, gpu: &'static Target) -> Result<Subject, Diagnosis> {
    let name = options.subject.as_str();
    if let Some(shape) = a_size(name)? {
        if options.size.is_some() {
            return Err(Diagnosis::new(format!("{name} is a size, and --size gives another"))
                .instead("give one of them, or name a kernel"));
        }
        let problem = problem(options, shape)?;
        let (kernel, chosen_by) = chosen(options, &problem, gpu)?;
        return Ok(Subject { chosen_by, origin: Origin::Kernel(Box::new(kernel)), problem });
    }
    let problem = problem(options, options.size.unwrap_or(Shape::cube(USUAL)))?;
    let of_a_family = options.size.and(kernels::family(name)).map(|_| &problem);
    let source = source::with_parameters(name, Variant::of(&problem), of_a_family, &options.parameters, gpu)?;
    let origin = match source {
        Source::Kernel(kernel) => Origin::Kernel(kernel),
        Source::Program(program) => Origin::Program(Box::new(program)),
    };
    Ok(Subject { chosen_by: ChosenBy::Named, origin, problem })
}

fn problem(options: &Options, shape: Shape) -> Result<Problem, Diagnosis> {
    options.storage.apply(options.product.problem(shape)?)
}

/// A size, where a word looks like one: digits and `x`.
fn a_size(word: &str) -> Result<Option<Shape>, Diagnosis> {
    let is_one = word.contains('x') && word.starts_with(|c: char| c.is_ascii_digit());
    if is_one && !std::path::Path::new(word).exists() { word.parse().map(Some) } else { Ok(None) }
}

/// The kernel that `gemm` would choose.
fn chosen(
    options: &Options,
    problem: &Problem,
    gpu: &'static Target,
) -> Result<(Kernel, ChosenBy), Diagnosis> {
    if let Some(family) = choose::family(problem) {
        if !options.parameters.is_empty() {
            let given = kernels::family::Choice::of(&options.parameters);
            let choice = family.complete(&given, problem, gpu)?;
            return Ok((family.build(problem, &choice)?, ChosenBy::Named));
        }
        let known = wisdom(family.name);
        match choose::parameters(family, problem, gpu, &Gpu::of_target(gpu), &known, Permissions::OWN_CONTEXT)
        {
            Ok(found) => return Ok(found),
            Err(refusal) => notice(&format!("a general kernel is explained: {refusal}")),
        }
    }
    if let Some((name, _)) = options.parameters.first() {
        return Err(Diagnosis::new(format!("--param {name} has no meaning here"))
            .because("the kernel for this product is of no family with parameters")
            .instead("name a family, such as tsmttsm or tsmm, or leave it out"));
    }
    Ok((choose::kernel(problem, gpu)?, ChosenBy::Rule))
}
