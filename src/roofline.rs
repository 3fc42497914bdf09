//! The least time a product can take on a GPU: by its arithmetic, and by the memory it has to touch.

use serde::Serialize;
use warpwright_core::dtype::DType;
use warpwright_core::target::{Fact, Pipe, Target};

use crate::problem::{Precision, Problem, touched_bytes};
use crate::report::number::seconds;

/// The two bounds of a product on a GPU. Both are computed from the GPU's table, not measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Roofline {
    /// Seconds that the arithmetic takes at the peak rate of the fastest pipe for its element type.
    pub compute_seconds: f64,
    /// Seconds that reading A, B and (if beta is not 0) C once and writing C once take at full bandwidth.
    pub memory_seconds: f64,
}

impl Roofline {
    /// The bounds, or `None` where the GPU's table has no rate for the element type.
    pub fn of(problem: &Problem, target: &Target) -> Option<Roofline> {
        let rate = fma_per_second(problem.precision, target)?;
        let bandwidth = target.dram_read_bytes_per_second.unwrap_or(target.dram_bytes_per_second).value;
        Some(Roofline {
            compute_seconds: problem.multiply_adds() / rate,
            memory_seconds: compulsory_bytes(problem) / bandwidth,
        })
    }

    /// The least seconds that a kernel of the problem can take, whatever form it gives to the arithmetic: [`Roofline::of`], or less where
    /// products in f32 and complex64 are three of tf32 parts each on matrix units (3xTF32), or complex ones three real ones (3M).
    /// `None` where the GPU's table has no rate for the element type.
    pub fn floor(problem: &Problem, target: &Target, three_multiplications: bool) -> Option<f64> {
        let mut bounds = Roofline::of(problem, target)?;
        let split = match problem.precision {
            Precision::Of(DType::F32 | DType::C64) => target.fma_per_second(Pipe::TensorTf32),
            _ => None,
        };
        if let Some(rate) = split {
            bounds.compute_seconds = bounds.compute_seconds.min(3.0 * problem.multiply_adds() / rate);
        }
        if three_multiplications && problem.dtype().is_complex() {
            bounds.compute_seconds *= 0.75;
        }
        Some(bounds.seconds())
    }

    /// The bounds by what the GPU's table says was reached on it, at the problem's own mix of reads and writes; those of
    /// [`Roofline::of`] where nobody has measured.
    pub fn reached(problem: &Problem, target: &Target) -> Option<Roofline> {
        let ceilings = Ceilings::of(problem.precision, target, &Bandwidths::default())?;
        Some(Roofline::under(problem, &ceilings))
    }

    /// The bounds by what was measured to be reached on a GPU.
    pub fn under(problem: &Problem, ceilings: &Ceilings) -> Roofline {
        Roofline {
            compute_seconds: problem.flops() / ceilings.flops_per_second,
            memory_seconds: compulsory_bytes(problem) / ceilings.bytes_per_second(problem),
        }
    }

    /// The larger of the two: no kernel is faster.
    pub fn seconds(&self) -> f64 {
        self.compute_seconds.max(self.memory_seconds)
    }

    /// What bounds the product.
    pub fn limiter(&self) -> &'static str {
        if self.compute_seconds >= self.memory_seconds { "arithmetic" } else { "memory" }
    }
}

/// What a GPU reaches, by measurement, and by its table where nobody has measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ceilings {
    /// Bytes a second that are only read.
    pub read_bytes_per_second: f64,
    /// Bytes a second, as many read as written.
    pub copy_bytes_per_second: f64,
    /// Real floating-point operations a second of the best product of this element type.
    pub flops_per_second: f64,
}

/// Bandwidths that were measured on the GPU at hand, in bytes per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bandwidths {
    /// Read only.
    pub read: Option<f64>,
    /// As many bytes read as written.
    pub copy: Option<f64>,
}

impl Ceilings {
    /// What the table of a GPU says, or `None` where it has no rate for the element type. Of bandwidths that were measured
    /// on the GPU at hand, if any, and those in the table the larger count.
    pub fn of(precision: Precision, target: &Target, here: &Bandwidths) -> Option<Ceilings> {
        let larger = |here: Option<f64>, table: Option<Fact<f64>>| {
            let measured = here.into_iter().chain(table.map(|fact| fact.value)).reduce(f64::max);
            measured.unwrap_or(target.dram_bytes_per_second.value)
        };
        let of = |real: DType| matches!(precision, Precision::Of(dtype) if dtype.real() == real);
        let product = target.product_flops_per_second.iter().find(|(dtype, _)| of(*dtype));
        Some(Ceilings {
            read_bytes_per_second: larger(here.read, target.dram_read_bytes_per_second),
            copy_bytes_per_second: larger(here.copy, target.dram_copy_bytes_per_second),
            flops_per_second: match product {
                Some((_, fact)) => fact.value,
                None => 2.0 * fma_per_second(precision, target)?,
            },
        })
    }

    /// The bandwidth at the problem's own mix of reads and writes.
    pub fn bytes_per_second(&self, problem: &Problem) -> f64 {
        if only_reads(problem) { self.read_bytes_per_second } else { self.copy_bytes_per_second }
    }
}

/// Whether a product writes so little that it counts as one that only reads.
pub fn only_reads(problem: &Problem) -> bool {
    written_bytes(problem) <= READ_ONLY * compulsory_bytes(problem)
}

/// A product that writes no more than this part of what it moves counts as one that only reads.
const READ_ONLY: f64 = 0.05;

/// Bytes that every kernel has to move: each matrix once. Of a matrix whose rows are padded these are the sectors of
/// memory that hold something of it, since no less than a sector is moved.
pub fn compulsory_bytes(problem: &Problem) -> f64 {
    let passes_over_c = if problem.beta.norm() == 0.0 { 1.0 } else { 2.0 };
    let size = problem.dtype().bytes();
    let a = touched_bytes(problem.stored_a(), problem.ld.a, problem.offset.a, size, SECTOR);
    let b = match problem.same {
        true => 0.0,
        false => touched_bytes(problem.stored_b(), problem.ld.b, problem.offset.b, size, SECTOR),
    };
    a + b + passes_over_c * written_bytes(problem)
}

/// Bytes that every kernel has to write: the result once.
fn written_bytes(problem: &Problem) -> f64 {
    touched_bytes(problem.stored_c(), problem.ld.c, problem.offset.c, problem.result_dtype().bytes(), SECTOR)
}

/// Bytes of a sector, the least that moves between a GPU and its memory.
const SECTOR: i64 = 32;

/// Multiply-adds a second of the fastest pipe for a precision; `None` where the GPU's table has no rate.
fn fma_per_second(precision: Precision, target: &Target) -> Option<f64> {
    fastest_pipe(precision, target).map(|(_, rate)| rate)
}

/// The fastest pipe for a precision, and its multiply-adds a second at the boost clock; `None` where the GPU's table has
/// no rate.
pub fn fastest_pipe(precision: Precision, target: &Target) -> Option<(Pipe, f64)> {
    let rates = pipes(precision).iter().filter_map(|p| Some((*p, target.fma_per_second(*p)?)));
    rates.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// The pipes that can do the arithmetic of a precision without changing its rounding class.
fn pipes(precision: Precision) -> &'static [Pipe] {
    match precision {
        Precision::Tf32 => &[Pipe::TensorTf32],
        Precision::Of(DType::F16) | Precision::Widened(DType::F16) => &[Pipe::TensorF16, Pipe::F32],
        Precision::Of(DType::Bf16) | Precision::Widened(_) => &[Pipe::TensorBf16, Pipe::F32],
        // The tables have no rate for integers; those GPUs that matter here run them on half or all f32 lanes.
        Precision::Of(DType::I32) => &[],
        Precision::Of(DType::F32 | DType::C64) => &[Pipe::F32],
        Precision::Of(DType::F64 | DType::C128) => &[Pipe::F64, Pipe::TensorF64],
    }
}

/// The least time of a problem on a GPU, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RooflineReport {
    /// The larger of the two bounds.
    pub seconds: f64,
    /// By the memory that has to be touched.
    pub memory_seconds: f64,
    /// By the arithmetic.
    pub compute_seconds: f64,
    /// Which is the larger: `memory` or `arithmetic`.
    pub limiter: &'static str,
}

impl RooflineReport {
    /// Two cells of a table of predictions: the roofline, and what part of a modelled time it is, with a mark where that is impossible.
    pub fn cells(roofline: Option<RooflineReport>, modelled: f64, below: bool) -> [String; 2] {
        let Some(roofline) = roofline else { return ["?".to_string(), "?".to_string()] };
        let doubt = if below { "!" } else { "" };
        [seconds(roofline.seconds), format!("{:.2}{doubt}", roofline.seconds / modelled)]
    }

    /// By what is known to be reached on a GPU; `None` where its table has no rate for the type.
    pub fn reached(problem: &Problem, target: &Target) -> Option<RooflineReport> {
        Roofline::reached(problem, target).map(|r| RooflineReport {
            seconds: r.seconds(),
            memory_seconds: r.memory_seconds,
            compute_seconds: r.compute_seconds,
            limiter: r.limiter(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Bandwidths, Ceilings, Roofline, compulsory_bytes};
    use crate::problem::Problem;
    use warpwright_core::target::Target;

    fn roofline(shape: &str, dtype: &str) -> Roofline {
        let problem = Problem::new(shape.parse().unwrap(), dtype.parse().unwrap(), "tn".parse().unwrap());
        Roofline::of(&problem, Target::by_name("h200").unwrap()).unwrap()
    }

    #[test]
    fn square_products_are_bound_by_arithmetic_and_skinny_ones_by_memory() {
        let square = roofline("4096x4096x4096", "f32");
        assert_eq!(square.limiter(), "arithmetic");
        assert!((square.seconds() * 66.9e12 / (2.0 * 4096f64.powi(3)) - 1.0).abs() < 0.01);
        let skinny = roofline("32x32x4000000", "f64");
        assert_eq!(skinny.limiter(), "memory");
        assert!((skinny.seconds() - 64.0 * 4e6 * 8.0 / 4552e9).abs() < 1e-6);
    }

    #[test]
    fn what_was_measured_bounds_tall_and_skinny_products_by_their_mix_of_reads_and_writes() {
        let h200 = Target::by_name("h200").unwrap();
        let seconds = |shape: &str, dtype: &str, layout: &str| {
            let problem =
                Problem::new(shape.parse().unwrap(), dtype.parse().unwrap(), layout.parse().unwrap());
            Roofline::under(&problem, &Ceilings::of(problem.precision, h200, &Bandwidths::default()).unwrap())
                .seconds()
        };
        let close = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-4, "{a} {b}");
        close(seconds("32x32x4000000", "f64", "tn"), 64.0 * 4e6 * 8.0 / 4552e9);
        close(seconds("4000000x32x32", "f64", "nn"), 64.0 * 4e6 * 8.0 / 4314e9);
        close(seconds("64x64x4000000", "c128", "cn"), 8.0 * 4096.0 * 4e6 / 56.4e12);
        close(seconds("128x128x4000000", "f32", "tn"), 2.0 * 16384.0 * 4e6 / 53.6e12);
        // Where nobody measured, the vendor's numbers stand.
        let l4 = Target::by_name("l4").unwrap();
        let with = |target, here: &Bandwidths| Ceilings::of("f64".parse().unwrap(), target, here).unwrap();
        let nothing = Bandwidths::default();
        assert_eq!(with(l4, &nothing).copy_bytes_per_second, l4.dram_bytes_per_second.value);
        let here = Bandwidths { read: Some(4600e9), copy: Some(100e9) };
        assert_eq!(with(l4, &here).copy_bytes_per_second, 100e9);
        assert_eq!(with(h200, &here).read_bytes_per_second, 4600e9);
        assert_eq!(with(h200, &here).copy_bytes_per_second, 4314e9, "the larger counts");
        assert!(Ceilings::of("i32".parse().unwrap(), h200, &nothing).is_none());
    }

    #[test]
    fn of_padded_rows_the_sectors_that_hold_them_count() {
        let mut padded =
            Problem::new("1000000x4x4".parse().unwrap(), "f64".parse().unwrap(), "nn".parse().unwrap());
        padded.ld.a = 8;
        assert_eq!(
            compulsory_bytes(&padded),
            2.0 * 32e6 + 128.0,
            "padding that is whole sectors is not moved"
        );
        padded.ld.a = 5;
        assert_eq!(compulsory_bytes(&padded), 40e6 + 32e6 + 128.0);
    }

    #[test]
    fn split_numbers_and_three_multiplications_lower_the_floor_and_never_below_the_bytes() {
        let h200 = Target::by_name("h200").unwrap();
        let problem = |shape: &str, dtype: &str| {
            Problem::new(shape.parse().unwrap(), dtype.parse().unwrap(), "nn".parse().unwrap())
        };
        let floor = |problem: &Problem, three| Roofline::floor(problem, h200, three).unwrap();
        let table = |problem: &Problem| Roofline::of(problem, h200).unwrap();
        let close = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 0.01, "{a} {b}");
        // A multiprocessor does 1024 multiply-adds of tf32 in a clock, and 128 of f32.
        let c64 = problem("2100882x126x126", "c64");
        close(floor(&c64, false), table(&c64).seconds() * 3.0 * 128.0 / 1024.0);
        close(floor(&c64, true), (floor(&c64, false) * 0.75).max(table(&c64).memory_seconds));
        let c128 = problem("4096x4096x4096", "c128");
        close(floor(&c128, false), table(&c128).seconds());
        close(floor(&c128, true), table(&c128).seconds() * 0.75);
        let f32 = problem("16777216x32x32", "f32");
        assert_eq!(floor(&f32, false), table(&f32).memory_seconds);
    }

    #[test]
    fn a_complex_product_has_four_times_the_arithmetic() {
        let real = roofline("512x512x512", "f32").compute_seconds;
        assert_eq!(roofline("512x512x512", "c64").compute_seconds, 4.0 * real);
    }
}
