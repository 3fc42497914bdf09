//! The least time a product can take on a GPU: by its arithmetic, and by the memory it has to touch.

use warpwright_core::dtype::DType;
use warpwright_core::target::{Pipe, Target};

use crate::problem::{Precision, Problem};

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
        let rate =
            pipes(problem.precision).iter().filter_map(|p| target.fma_per_second(*p)).fold(0.0, f64::max);
        let bandwidth = target.dram_read_bytes_per_second.unwrap_or(target.dram_bytes_per_second).value;
        (rate > 0.0).then(|| Roofline {
            compute_seconds: problem.multiply_adds() / rate,
            memory_seconds: compulsory_bytes(problem) / bandwidth,
        })
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

/// Bytes that every kernel has to move: each operand once.
fn compulsory_bytes(problem: &Problem) -> f64 {
    let elements = |(rows, columns): (i64, i64)| rows as f64 * columns as f64;
    let passes_over_c = if problem.beta.norm() == 0.0 { 1.0 } else { 2.0 };
    let operands = elements(problem.stored_a()) + elements(problem.stored_b());
    operands * problem.dtype().bytes() as f64
        + passes_over_c * elements(problem.stored_c()) * problem.result_dtype().bytes() as f64
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

#[cfg(test)]
mod tests {
    use super::Roofline;
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
    fn a_complex_product_has_four_times_the_arithmetic() {
        let real = roofline("512x512x512", "f32").compute_seconds;
        assert_eq!(roofline("512x512x512", "c64").compute_seconds, 4.0 * real);
    }
}
