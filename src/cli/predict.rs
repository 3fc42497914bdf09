//! `predict`: the model alone. How long a product should take on a GPU that need not be here, and why.

use std::path::PathBuf;

use clap::Args;
use num_complex::Complex64;
use warpwright_core::diag::Diagnosis;
use warpwright_core::target::{self, Target};

use super::batch;
use super::options::{OutputOptions, StorageOptions};
use super::output::{Outcome, print, print_json};
use super::source::{self, Source};
use crate::kernels::Variant;
use crate::kernels::family::{Choice, Family, Value, Word, parse_parameter};
use crate::modelled::{Named, ProgramPrediction};
use crate::problem::{Layout, Op, Precision, Problem, Shape, parse_factor};
use crate::tune::prediction::Prediction;
use crate::{choose, kernels, target_file};

/// Options of `predict`.
#[derive(Args, Debug)]
pub struct Options {
    /// The size of the product, as for `gemm`: the long side of `tsmm` is M, that of `tsmttsm` is K.
    #[arg(value_name = "MxNxK", required_unless_present = "batch")]
    shape: Option<Shape>,
    /// The GPU: a name that `targets` lists, or a file that describes one.
    #[arg(long, value_name = "GPU|FILE", value_parser = target_file::find, default_value = target::DEFAULT.name)]
    gpu: &'static Target,
    /// Predict for each of these GPUs, one beside the other.
    #[arg(long, value_name = "GPU,GPU,...", value_parser = target_file::find, value_delimiter = ',', conflicts_with = "gpu")]
    compare: Vec<&'static Target>,
    /// The family of kernels: tsmttsm, tsmm or tiled [default: the one that suits the product].
    #[arg(long, value_name = "FAMILY")]
    family: Option<String>,
    /// A parameter of the family, such as tm=4 or reduction=two-pass; the others get their usual values.
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parse_parameter, value_delimiter = ',')]
    parameters: Vec<(Word, Value)>,
    /// A kernel of a ladder, or a file with a schedule or a program, instead of a family: its program is read statement by statement.
    #[arg(long, value_name = "KERNEL|FILE", conflicts_with_all = ["family", "parameters"])]
    schedule: Option<String>,
    /// Element type, as for `gemm`.
    #[arg(long, value_name = "TYPE", default_value = "f32")]
    dtype: Precision,
    /// A letter for each of A and B: n (as it is), t (transposed) or c (conjugate transposed) [default: what the
    /// family named takes, else nn].
    #[arg(long, value_name = "LETTERS")]
    layout: Option<Layout>,
    /// Factor of the old C; with 0, C is not read.
    #[arg(long, value_name = "NUMBER", default_value = "0", value_parser = parse_factor, allow_hyphen_values = true)]
    beta: Complex64,
    /// B is A: one matrix, read once.
    #[arg(long)]
    same: bool,
    #[command(flatten)]
    storage: StorageOptions,
    /// Predict for every row of this file: its first row names the columns, which are gpu, family, m, n, k, dtype, layout
    /// if wanted, and parameters. A parameter's cell may be empty, and so may those of family and layout.
    #[arg(long, value_name = "FILE.csv", conflicts_with_all = ["shape", "gpu", "compare", "family", "parameters", "schedule", "dtype", "layout", "beta", "same", "StorageOptions"])]
    batch: Option<PathBuf>,
    #[command(flatten)]
    output: OutputOptions,
}

/// Runs `predict`.
pub fn run(options: &Options) -> Outcome {
    if let Some(found) = options.program()? {
        return match (options.output.json, found.as_slice()) {
            (true, [one]) if options.compare.is_empty() => print_json(one),
            (true, several) => print_json(&several),
            (false, [one]) if options.compare.is_empty() => print(&one.describe()),
            (false, several) => print(&ProgramPrediction::table(several)),
        };
    }
    // Every prediction is made before the first is printed, so that nothing half written is left of a wrong use.
    let predictions = match (&options.batch, options.compare.as_slice()) {
        (Some(path), _) => batch::predictions(path)?,
        (None, []) => {
            let one = options.prediction(options.gpu)?;
            return match options.output.json {
                true => print_json(&one),
                false => print(&one.describe()),
            };
        }
        (None, gpus) => gpus
            .iter()
            .map(|gpu| options.prediction(gpu).map_err(|d| d.at(gpu.name)))
            .collect::<Result<Vec<_>, _>>()?,
    };
    match options.output.json {
        true => print_json(&predictions),
        false => print(&Prediction::table(&predictions)),
    }
}

impl Options {
    /// The predictions for a kernel that is no choice of a family: one that is named, or that a product gets which no family suits.
    fn program(&self) -> Result<Option<Vec<ProgramPrediction>>, Diagnosis> {
        let Some(shape) = self.shape.filter(|_| self.family.is_none()) else { return Ok(None) };
        let asked = self.asked(shape);
        let problem = asked.stored(self.layout.unwrap_or(Layout::NN))?;
        let gpus = if self.compare.is_empty() { vec![self.gpu] } else { self.compare.clone() };
        // A family may suit a product and yet have no kernel of it for a GPU that lacks an instruction.
        let family = choose::family(&problem);
        let usual = |gpu: &'static Target| {
            family.and_then(|f| f.complete(&Choice::default(), &problem, gpu).ok().map(|choice| (f, choice)))
        };
        let of_a_family = !self.parameters.is_empty() || gpus.iter().all(|gpu| usual(gpu).is_some());
        if self.schedule.is_none() && of_a_family {
            return Ok(None);
        }
        let one = |gpu: &&'static Target| {
            let source = match &self.schedule {
                Some(name) => source::find(name, Variant::of(&problem))?,
                None => Source::Kernel(Box::new(match usual(gpu) {
                    Some((family, choice)) => family.build(&problem, &choice)?,
                    None => choose::kernel(&problem, gpu)?,
                })),
            };
            let (program, family) = match &source {
                Source::Kernel(kernel) => (kernel.program(), kernel.family.clone()),
                Source::Program(program) => (program, "program".to_string()),
            };
            let named = Named { name: source.name().to_string(), family };
            ProgramPrediction::of(program, named, &problem, gpu)
        };
        let at = |gpu: &&'static Target| {
            one(gpu).map_err(|d| if self.compare.is_empty() { d } else { d.at(gpu.name) })
        };
        gpus.iter().map(at).collect::<Result<Vec<_>, _>>().map(Some)
    }

    fn asked(&self, shape: Shape) -> Asked {
        let Options { dtype, layout, beta, same, storage, .. } = *self;
        Asked { shape, precision: dtype, layout, beta, same, storage }
    }

    fn prediction(&self, gpu: &'static Target) -> Result<Prediction, Diagnosis> {
        let shape = self.shape.ok_or_else(|| Diagnosis::new("no size is given").instead("give MxNxK"))?;
        let asked = self.asked(shape);
        asked.prediction(self.family.as_deref(), &Choice::of(&self.parameters), gpu)
    }
}

/// A product as it is asked about.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// Its extents.
    pub shape: Shape,
    /// Its arithmetic.
    pub precision: Precision,
    /// How A and B are stored, where that is said.
    pub layout: Option<Layout>,
    /// The factor of the old C.
    pub beta: Complex64,
    /// Whether B is A.
    pub same: bool,
    /// How the matrices lie.
    pub storage: StorageOptions,
}

impl Asked {
    /// The prediction by a family, or by the one that suits the product.
    pub fn prediction(
        &self,
        family: Option<&str>,
        given: &Choice,
        gpu: &'static Target,
    ) -> Result<Prediction, Diagnosis> {
        let (family, problem) = match family {
            Some(name) => {
                let family = named(name)?;
                (family, self.stored(self.layout.unwrap_or_else(|| self.layout_of(family)))?)
            }
            None => {
                let problem = self.stored(self.layout.unwrap_or(Layout::NN))?;
                let family = choose::family(&problem).ok_or_else(|| {
                    Diagnosis::new(format!(
                        "the model has nothing to say of {} {}",
                        problem.shape, problem.layout
                    ))
                    .because("it speaks of families with parameters, which serve tall and skinny products")
                    .instead("give --layout tn where K is long, or name a family: tsmttsm or tsmm")
                })?;
                (family, problem)
            }
        };
        Prediction::of(family, given, &problem, gpu)
    }

    fn stored(&self, layout: Layout) -> Result<Problem, Diagnosis> {
        let mut problem = Problem::new(self.shape, self.precision, layout);
        problem.beta = self.beta;
        problem.same = self.same;
        self.storage.apply(problem)
    }

    /// How a family takes its operands: the first of `nn` and `tn` for which it has a kernel of the smallest product.
    fn layout_of(&self, family: &Family) -> Layout {
        let transposed = Layout { a: Op::Transpose, b: Op::None };
        let serves =
            |layout: Layout| (family.fixed)(&Problem::new(Shape::cube(1), self.precision, layout)).is_ok();
        if !serves(Layout::NN) && serves(transposed) { transposed } else { Layout::NN }
    }
}

/// The family of that name.
pub fn named(name: &str) -> Result<&'static Family, Diagnosis> {
    kernels::family(name).ok_or_else(|| {
        let known: Vec<_> = kernels::FAMILIES.iter().map(|f| f.name).collect();
        Diagnosis::new(format!("there is no family `{name}`"))
            .instead(format!("use one of {}", known.join(", ")))
    })
}
