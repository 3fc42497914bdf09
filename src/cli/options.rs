//! Options that several subcommands share.

use std::path::PathBuf;

use clap::Args;
use num_complex::Complex64;
use warpwright_core::diag::Diagnosis;
use warpwright_core::target::Target;
use warpwright_cuda::MeasureOptions;

use super::output::notice;
use crate::device::{Device, DeviceChoice};
use crate::file::unreadable;
use crate::kernels::Variant;
use crate::kernels::family::Permissions;
use crate::problem::{Layout, Offsets, Precision, Problem, Shape, Strides, parse_factor};
use crate::run::Effort;
use crate::simulator::SimOptions;

/// How results are printed.
#[derive(Args, Clone, Copy, Debug)]
pub struct OutputOptions {
    /// Print one JSON object or array on standard output, and nothing else there.
    #[arg(long)]
    pub json: bool,
}

/// On what a product is computed.
#[derive(Args, Clone, Copy, Debug)]
pub struct DeviceOptions {
    /// Where to compute: auto (a GPU if there is one, else the simulator), sim, sim:GPU (a name that `targets`
    /// lists, or a file that describes one), cuda or cuda:NUMBER.
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub device: DeviceChoice,
}

impl DeviceOptions {
    /// The GPU, for what times on the simulator would say nothing about: `purpose` is the end of a sentence that begins
    /// with "there is no GPU", `instead` what to do without one.
    pub fn gpu(
        &self,
        purpose: &str,
        instead: &str,
    ) -> Result<(warpwright_cuda::Device, &'static Target), Diagnosis> {
        let (device, notices) = self.device.open()?;
        notices.iter().for_each(|n| notice(n));
        match device {
            Device::Cuda(gpu, target) => Ok((gpu, target)),
            Device::Sim(_) => Err(Diagnosis::new(format!("there is no GPU {purpose}"))
                .because("times on the simulator would say nothing about a GPU")
                .instead(instead)),
        }
    }
}

/// Everything about a product but its size.
#[derive(Args, Clone, Copy, Debug)]
pub struct ProductOptions {
    #[command(flatten)]
    pub variant: VariantOptions,
    /// Factor of the product; complex ones are written 1.5+2i.
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = parse_factor, allow_hyphen_values = true)]
    pub alpha: Complex64,
    /// Factor of the old C; with 0, C is not read.
    #[arg(long, value_name = "NUMBER", default_value = "0", value_parser = parse_factor, allow_hyphen_values = true)]
    pub beta: Complex64,
    /// B is A: one matrix, read once, as in A^T A with --layout tn.
    #[arg(long)]
    pub same: bool,
}

/// For which element type and layout a kernel is made.
#[derive(Args, Clone, Copy, Debug)]
pub struct VariantOptions {
    /// Element type: f32, f64, c64, c128, bf16, f16, i32, tf32 (stored as f32), or bf16-f32 and f16-f32 (16-bit
    /// operands, the result in f32).
    #[arg(long, value_name = "TYPE", default_value = "f32")]
    pub dtype: Precision,
    /// A letter for each of A and B: n (as it is), t (transposed) or c (conjugate transposed).
    #[arg(long, value_name = "LETTERS", default_value = "nn")]
    pub layout: Layout,
}

impl VariantOptions {
    /// The variant that is asked for.
    pub fn variant(&self) -> Variant {
        Variant::new(self.dtype, self.layout)
    }
}

/// How the matrices lie in memory, where they are not dense and aligned.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct StorageOptions {
    /// Row stride of A in elements [default: its number of stored columns].
    #[arg(long, value_name = "ELEMENTS")]
    pub lda: Option<i64>,
    /// Row stride of B in elements.
    #[arg(long, value_name = "ELEMENTS")]
    pub ldb: Option<i64>,
    /// Row stride of C in elements.
    #[arg(long, value_name = "ELEMENTS")]
    pub ldc: Option<i64>,
    /// By how many elements A, B and C start behind an address that is aligned to 16 bytes [default: 0,0,0].
    #[arg(long, value_name = "A,B,C")]
    pub offset: Option<Offsets>,
}

/// One product, or those of a file.
#[derive(Args, Debug)]
pub struct ProblemsOptions {
    /// The size of the product.
    #[arg(value_name = "MxNxK", required_unless_present = "shapes")]
    shape: Option<Shape>,
    /// Take every product in this file: a line has a size and, if they differ from the options, type and layout. Row strides and starts hold
    /// for all of them.
    #[arg(long, value_name = "FILE", conflicts_with = "shape")]
    shapes: Option<PathBuf>,
    #[command(flatten)]
    product: ProductOptions,
    #[command(flatten)]
    storage: StorageOptions,
}

/// What a kernel that nobody names may do.
#[derive(Args, Clone, Copy, Debug)]
pub struct PermissionOptions {
    /// Permit kernels that add by atomics, in any order, so that their bits differ from run to run.
    #[arg(long)]
    pub allow_atomics: bool,
    /// Permit kernels that make complex products of three real ones instead of four (3M): less work, but the bound of
    /// their error is half as large again, and does not tell real and imaginary parts apart.
    #[arg(long)]
    pub allow_three_multiplications: bool,
    /// Permit kernels that make products in f32 and complex64 on matrix units, of three products of tf32 parts (3xTF32), for short
    /// sums too, where the bound of their error is larger than that of plain sums: of less than 16 terms, 11 complex ones, and of less
    /// than 38, 21 complex ones, by kernels that do not add them up in pieces. For longer ones it is not, and they need no permission.
    #[arg(long)]
    pub allow_split: bool,
    /// Leave the CUDA context as it is. Otherwise kernels for rows that stand apart may have it set so that device memory gives 32 bytes at a time
    /// instead of 64, which holds for whatever else runs in this process.
    #[arg(long)]
    pub keep_context: bool,
}

impl PermissionOptions {
    /// What a kernel may do.
    pub fn of_kernels(&self) -> Permissions {
        Permissions {
            any_order: self.allow_atomics,
            three_multiplications: self.allow_three_multiplications,
            split: self.allow_split,
            context: !self.keep_context,
        }
    }
}

/// How much is to be found out.
#[derive(Args, Clone, Copy, Debug)]
pub struct EffortOptions {
    /// Simulate every block of a launch instead of a sample.
    #[arg(long)]
    pub full: bool,
    /// Random inputs of the exact check.
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub trials: u32,
    /// Seed of all random numbers.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

impl EffortOptions {
    /// What is wanted of a run on this device.
    pub fn effort(&self, device: &Device) -> Effort {
        let on_gpu = matches!(device, Device::Cuda(..));
        Effort {
            simulation: SimOptions {
                full: self.full,
                trials: self.trials,
                seed: self.seed,
                ..SimOptions::default()
            },
            timing: on_gpu.then(MeasureOptions::default),
            cublas: on_gpu,
        }
    }
}

impl ProductOptions {
    /// The product of this size, with dense matrices.
    pub fn problem(&self, shape: Shape) -> Result<Problem, Diagnosis> {
        let mut problem = Problem::new(shape, self.variant.dtype, self.variant.layout);
        problem.alpha = self.alpha;
        problem.beta = self.beta;
        problem.same = self.same;
        problem.check()?;
        Ok(problem)
    }
}

impl StorageOptions {
    /// The product that a kernel is made for, where its size is given.
    pub fn problem(
        &self,
        size: Option<Shape>,
        variant: &VariantOptions,
    ) -> Result<Option<Problem>, Diagnosis> {
        let Some(shape) = size else {
            let named =
                [("lda", self.lda.is_some()), ("ldb", self.ldb.is_some()), ("ldc", self.ldc.is_some())];
            let first =
                named.into_iter().chain([("offset", self.offset.is_some())]).find(|(_, given)| *given);
            return match first {
                None => Ok(None),
                Some((name, _)) => Err(Diagnosis::new(format!("--{name} has no meaning here"))
                    .because("no size is given, so that there are no matrices to lie anywhere")
                    .instead("give --size MxNxK and a family, or leave it out")),
            };
        };
        self.apply(Problem::new(shape, variant.dtype, variant.layout)).map(Some)
    }

    /// The problem with matrices that lie so.
    pub fn apply(&self, mut problem: Problem) -> Result<Problem, Diagnosis> {
        let Strides { a, b, c } = problem.ld;
        let of_b = if problem.same { self.lda.or(self.ldb) } else { self.ldb };
        problem.ld = Strides { a: self.lda.unwrap_or(a), b: of_b.unwrap_or(b), c: self.ldc.unwrap_or(c) };
        problem.offset = self.offset.unwrap_or_default();
        problem.check()?;
        Ok(problem)
    }
}

impl ProblemsOptions {
    /// Whether one product is asked for, and not those of a file.
    pub fn is_one(&self) -> bool {
        self.shapes.is_none()
    }

    /// The products that are asked for.
    pub fn all(&self) -> Result<Vec<Problem>, Diagnosis> {
        let Some(path) = &self.shapes else {
            let shape = self.shape.ok_or_else(|| Diagnosis::new("no size is given").instead("give MxNxK"))?;
            return Ok(vec![self.storage.apply(self.product.problem(shape)?)?]);
        };
        let place = path.display();
        let text = std::fs::read_to_string(path).map_err(|e| unreadable(path, &e))?;
        let mut problems = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if !line.is_empty() {
                problems.push(self.problem(line).map_err(|d| d.at(format!("{place}:{}", at + 1)))?);
            }
        }
        Ok(problems)
    }

    /// A line of a file of sizes: `64x64x1000000 f64 tn`.
    fn problem(&self, line: &str) -> Result<Problem, Diagnosis> {
        let mut product = self.product;
        let mut words = line.split_whitespace();
        let shape = words.next().unwrap_or_default().parse()?;
        if let Some(dtype) = words.next() {
            product.variant.dtype = dtype.parse()?;
        }
        if let Some(layout) = words.next() {
            product.variant.layout = layout.parse()?;
        }
        match words.next() {
            None => self.storage.apply(product.problem(shape)?),
            Some(word) => Err(Diagnosis::new(format!("`{word}` is one word too many"))
                .instead("write a size, a type and a layout, such as 64x64x1000000 f64 tn")),
        }
    }
}
