//! What there is to say of the rungs of a ladder besides whether they are right: what the model makes of each on a GPU,
//! and what was measured.

pub mod measured;

use warpwright_core::diag::Diagnosis;
use warpwright_core::emit::cuda;
use warpwright_core::model::time::{self, LaunchTime, Terms, Time};
use warpwright_core::occupancy::Occupancy;
use warpwright_core::sym::Sym;
use warpwright_core::target::Target;

use self::measured::Source;
use crate::bind::Binding;
use crate::compile;
use crate::gpu::Site;
use crate::kernels::Kernel;
use crate::problem::Problem;
use crate::report::RungReport;

/// A ladder on one problem and one GPU: what its page is made of.
#[derive(Clone, Debug)]
pub struct Ladder {
    /// Its name.
    pub name: String,
    /// The product that the model's numbers and the measured times are of.
    pub problem: Problem,
    /// The GPU that the model's numbers are of.
    pub target: &'static Target,
    /// Where the times come from, if any were measured.
    pub source: Option<Source>,
    /// Seconds that cuBLAS takes, measured beside the rungs.
    pub cublas: Option<f64>,
    /// The rungs, in order.
    pub rungs: Vec<Rung>,
}

/// A rung of it.
#[derive(Clone, Debug)]
pub struct Rung {
    /// What it is about, and what its check found. The product that was checked may be a smaller one.
    pub report: RungReport,
    /// What the model says of it.
    pub model: Modelled,
    /// The CUDA C of the kernels that are launched for the problem.
    pub cuda: String,
    /// Seconds of one product, measured.
    pub seconds: Option<f64>,
}

/// Registers of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    /// How many.
    pub count: u32,
    /// Who says so.
    pub by: Counted,
}

/// Who counted registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// NVIDIA's compiler, on this machine.
    Compiler,
    /// The same where the times were measured.
    Record,
    /// Nobody: what a thread keeps in arrays, and what kernels were seen to take besides.
    Assumption,
}

impl Counted {
    /// What a table says of such a number.
    pub fn name(self) -> &'static str {
        match self {
            Counted::Compiler => "compiled",
            Counted::Record => "compiled, as recorded",
            Counted::Assumption => "modelled",
        }
    }
}

/// What the model says of a kernel on a problem and a GPU, of all its launches together.
#[derive(Clone, Debug)]
pub struct Modelled {
    /// Threads of a block of the launch that multiplies most.
    pub threads: i64,
    /// Bytes of shared memory of such a block.
    pub shared_bytes: i64,
    /// Registers of its threads.
    pub registers: Registers,
    /// How full it keeps a multiprocessor.
    pub occupancy: Occupancy,
    /// Multiply-adds of the product.
    pub multiply_adds: f64,
    /// Sectors of 32 bytes that requests to device memory ask for, however near the caches are that answer.
    pub sectors: f64,
    /// Passes over the banks of shared memory, of loads and stores.
    pub wavefronts: f64,
    /// Bytes that device memory gives and takes.
    pub device_bytes: f64,
    /// How long it takes.
    pub prediction: Prediction,
}

/// How long the model says that a kernel takes, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Seconds of one product.
    pub seconds: f64,
    /// What takes them, the weightiest first.
    pub terms: Vec<Term>,
}

/// Something that takes time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Term {
    /// What it is.
    pub name: &'static str,
    /// Seconds that it would take alone, beside nothing else.
    pub seconds: f64,
    /// By how much the time would be shorter without it, in parts of all such gains.
    pub share: f64,
}

/// Bytes of a sector, the least that moves between a GPU and its memory.
const SECTOR: f64 = 32.0;

impl Modelled {
    /// Sectors asked for, for each multiply-add.
    pub fn sectors_per_multiply_add(&self) -> f64 {
        self.sectors / self.multiply_adds
    }

    /// Wavefronts for each multiply-add.
    pub fn wavefronts_per_multiply_add(&self) -> f64 {
        self.wavefronts / self.multiply_adds
    }

    /// Floating-point operations for each byte that is asked for.
    pub fn flops_per_requested_byte(&self) -> f64 {
        2.0 * self.multiply_adds / (SECTOR * self.sectors)
    }

    /// Floating-point operations for each byte of device memory.
    pub fn flops_per_device_byte(&self) -> f64 {
        2.0 * self.multiply_adds / self.device_bytes
    }
}

/// What the model says of a kernel, and the CUDA C of what it launches. Registers are those that somebody counted, else
/// those of the compiler if it is here, else an assumption.
///
/// # Errors
/// Kernels that do not fit the GPU or the problem, and those that the compiler refuses.
pub fn modelled(
    kernel: &Kernel,
    problem: &Problem,
    target: &'static Target,
    known: Option<Registers>,
    compiler: bool,
) -> Result<(Modelled, String), Diagnosis> {
    let valid = compile::validated(kernel.program(), target)?;
    let source = compile::cuda_for(&valid, problem)?;
    let binding = Binding::new(valid.program(), problem, i64::from(target.sm_count.value))?;
    let value = |sym: &Sym| binding.value(sym);
    let no_value = |sym| Diagnosis::new(format!("{sym} has no value")).at(&kernel.name);
    let launched = source.launched(&value).map_err(no_value)?;
    let counted = match known {
        None if compiler => {
            let compiled = Site::elsewhere(target).source(kernel.program(), problem)?.compile()?;
            compiled.registers.map(|count| Registers { count, by: Counted::Compiler })
        }
        known => known,
    };
    let registers = counted.map(|r| vec![i64::from(r.count); launched.len()]);
    let time = time::of(valid.program(), &value, target, registers.as_deref())?;
    let more =
        |a: &&LaunchTime, b: &&LaunchTime| a.counts.multiply_adds().total_cmp(&b.counts.multiply_adds());
    let main = time.launches.iter().max_by(more).ok_or_else(|| {
        Diagnosis::new(format!("nothing is launched for {}", problem.shape)).at(&kernel.name)
    })?;
    let sum = |of: fn(&LaunchTime) -> f64| time.launches.iter().map(of).sum();
    let assumed = || u32::try_from(main.registers).unwrap_or(u32::MAX);
    let model = Modelled {
        threads: main.counts.threads,
        shared_bytes: main.counts.shared_bytes,
        registers: counted.unwrap_or_else(|| Registers { count: assumed(), by: Counted::Assumption }),
        occupancy: main.occupancy,
        multiply_adds: problem.multiply_adds(),
        sectors: sum(|l| l.counts.global_load_sectors + l.counts.global_store_sectors),
        wavefronts: sum(|l| l.counts.shared_load_wavefronts + l.counts.shared_store_wavefronts),
        device_bytes: sum(|l| l.memory_bytes),
        prediction: prediction(&time),
    };
    Ok((model, text(&source, &launched)))
}

/// The time with its terms in words, but those that take none.
fn prediction(time: &Time) -> Prediction {
    let (seconds, shares) = (time.terms.values(), time.shares.values());
    let named = Terms::NAMES.iter().zip(seconds).zip(shares);
    let term =
        |(((_, name), seconds), share): ((&(&str, &'static str), f64), f64)| Term { name, seconds, share };
    let mut terms: Vec<Term> = named.map(term).filter(|t| t.seconds > 0.0).collect();
    terms.sort_by(|a, b| b.share.total_cmp(&a.share));
    Prediction { seconds: time.seconds, terms }
}

/// The kernels that are launched, each called `kernel`, so that two rungs differ in what they do and not in their names.
fn text(source: &cuda::Source, launched: &[usize]) -> String {
    let unit = |number: &usize| source.units[*number].replace(&source.kernels[*number].name, "kernel");
    launched.iter().map(unit).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::{Counted, Modelled, Registers, modelled};
    use crate::kernels::{self, Variant};
    use crate::problem::{Problem, Shape};
    use warpwright_core::target;

    fn of(name: &str, size: i64, known: Option<u32>) -> (Modelled, String) {
        let problem = Problem::new(Shape::cube(size), "f32".parse().unwrap(), "nn".parse().unwrap());
        let kernel = kernels::build(kernels::by_name(name).unwrap(), Variant::of(&problem)).unwrap();
        let known = known.map(|count| Registers { count, by: Counted::Record });
        modelled(&kernel, &problem, target::DEFAULT, known, false).unwrap()
    }

    #[test]
    fn counts_are_those_of_tiles_and_intensities_follow_from_them() {
        let (model, _) = of("sgemm_warp_tiling", 4096, None);
        // Blocks of 128 x 128 load 256 elements for 128 * 128 multiply-adds, and C is stored once in 4096 of them.
        let sectors = (256.0 / (128.0 * 128.0) + 1.0 / 4096.0) * 4.0 / 32.0;
        assert!((model.sectors_per_multiply_add() / sectors - 1.0).abs() < 1e-9, "{model:?}");
        assert!((model.flops_per_requested_byte() / (2.0 / (32.0 * sectors)) - 1.0).abs() < 1e-9);
        // Device memory moves each matrix at least once, and less than what is asked for.
        let bytes = model.device_bytes;
        assert!((3.0 * 4.0 * 4096f64.powi(2)..32.0 * model.sectors).contains(&bytes), "{bytes}");
        assert!((model.flops_per_device_byte() * bytes / 2.0 / 4096f64.powi(3) - 1.0).abs() < 1e-9);
        let shares: f64 = model.prediction.terms.iter().map(|t| t.share).sum();
        assert!((shares - 1.0).abs() < 1e-9 && model.prediction.seconds > 0.0);
        assert!(model.prediction.terms.windows(2).all(|t| t[0].share >= t[1].share));
        // Nothing lies in shared memory before there is any; each load and each store is counted then.
        assert_eq!(of("sgemm_coalesced", 4096, None).0.wavefronts, 0.0);
        assert!(of("sgemm_shared_memory", 4096, None).0.wavefronts_per_multiply_add() > 1.25 / 32.0);
    }

    #[test]
    fn registers_that_somebody_counted_come_before_assumptions() {
        let [assumed, many] = [None, Some(250)].map(|known| of("sgemm_tuned_tile", 4096, known).0);
        assert_eq!((assumed.registers.by, many.registers.by), (Counted::Assumption, Counted::Record));
        assert!(
            assumed.registers.count > 80 && many.registers.count == 250,
            "8 x 8 sums, 8 + 8 operands, and more"
        );
        assert_eq!((assumed.occupancy.blocks, many.occupancy.blocks), (2, 1));
        assert!(many.prediction.seconds > assumed.prediction.seconds);
    }

    #[test]
    fn the_text_is_that_of_what_is_launched_and_has_no_name_of_its_own() {
        let [whole, ragged] = [4096, 4095].map(|size| of("sgemm_coalesced", size, None).1);
        assert!(
            !whole.contains("< M") && ragged.contains("< M"),
            "sizes that tiles divide need no guard: {whole}"
        );
        for text in [&whole, &ragged] {
            assert!(text.contains("\nkernel(") && !text.contains("sgemm"), "{text}");
            assert_eq!(text.matches("__global__").count(), 1);
        }
    }
}
