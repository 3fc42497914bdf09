//! The same product by cuBLAS, for comparison.

use warpwright_core::dtype::DType;
use warpwright_cuda::cublas::{Cublas, Gemm, GemmType, Math, Op as CublasOp};
use warpwright_cuda::{Device, MeasureOptions, Result, Stream, Timing, measure};

use super::OperandSets;
use crate::problem::{Op, Precision, Problem};

/// Times `cublasXgemm` on a product, with operands that rotate. `None` where cuBLAS has no such product.
///
/// f32 is f32: TF32 is allowed only where the problem asks for it.
pub fn time(
    device: &Device,
    stream: &Stream,
    problem: &Problem,
    sets: &OperandSets,
    options: &MeasureOptions,
) -> Result<Option<Timing>> {
    let Some(product) = Product::new(device, problem)? else { return Ok(None) };
    measure::graph(stream, options, |s, launch| product.enqueue(s, sets, launch)).map(Some)
}

/// `cublasXgemm`, ready to be called on a product.
pub struct Product {
    cublas: Cublas,
    gemm: Gemm,
}

impl Product {
    /// The product on a GPU; `None` where cuBLAS has no such product.
    ///
    /// # Errors
    /// A library that cannot be loaded or begun with.
    pub fn new(device: &Device, problem: &Problem) -> Result<Option<Product>> {
        let Some(gemm) = description(problem) else { return Ok(None) };
        Ok(Some(Product { cublas: Cublas::new(device)?, gemm }))
    }

    /// Enqueues one call, on the operands of launch number `launch`.
    ///
    /// # Errors
    /// What cuBLAS says.
    pub fn enqueue(&self, stream: &Stream, sets: &OperandSets, launch: usize) -> Result<()> {
        self.cublas.gemm(stream, &self.gemm, sets.at(launch))
    }
}

/// The product in cuBLAS's words, if it has words for it.
pub fn description(problem: &Problem) -> Option<Gemm> {
    let (element, output) = (element(problem.dtype())?, element(problem.result_dtype())?);
    let size = |extent: i64| usize::try_from(extent).ok();
    let shape = [size(problem.shape.m)?, size(problem.shape.n)?, size(problem.shape.k)?];
    if shape.contains(&0) {
        return None;
    }
    let mut gemm =
        Gemm::new(element, shape).with_ops(operation(problem.layout.a), operation(problem.layout.b));
    gemm.output = output;
    gemm.leading = [size(problem.ld.a)?, size(problem.ld.b)?, size(problem.ld.c)?];
    gemm.alpha = [problem.alpha.re, problem.alpha.im];
    gemm.beta = [problem.beta.re, problem.beta.im];
    gemm.math = if problem.precision == Precision::Tf32 { Math::Tf32 } else { Math::Default };
    Some(gemm)
}

fn element(dtype: DType) -> Option<GemmType> {
    Some(match dtype {
        DType::F16 => GemmType::F16,
        DType::Bf16 => GemmType::Bf16,
        DType::F32 => GemmType::F32,
        DType::F64 => GemmType::F64,
        DType::C64 => GemmType::C64,
        DType::C128 => GemmType::C128,
        DType::I32 => return None,
    })
}

fn operation(op: Op) -> CublasOp {
    match op {
        Op::None => CublasOp::None,
        Op::Transpose => CublasOp::Transpose,
        Op::ConjugateTranspose => CublasOp::ConjugateTranspose,
    }
}

#[cfg(test)]
mod tests {
    use super::description;
    use crate::problem::Problem;
    use warpwright_cuda::cublas::{GemmType, Math, Op};

    fn problem(dtype: &str) -> Problem {
        Problem::new("2x3x4".parse().unwrap(), dtype.parse().unwrap(), "cn".parse().unwrap())
    }

    #[test]
    fn a_problem_is_put_in_the_words_of_cublas() {
        let gemm = description(&problem("c128")).unwrap();
        assert_eq!(
            (gemm.shape, gemm.element, gemm.op_a),
            ([2, 3, 4], GemmType::C128, Op::ConjugateTranspose)
        );
        assert_eq!(gemm.leading, [2, 3, 3]);
        assert_eq!(description(&problem("f32")).unwrap().math, Math::Default);
        assert_eq!(description(&problem("tf32")).unwrap().math, Math::Tf32);
        let widened = description(&problem("bf16-f32")).unwrap();
        assert_eq!((widened.element, widened.output), (GemmType::Bf16, GemmType::F32));
        assert!(description(&problem("i32")).is_none(), "cuBLAS has no product of 32-bit integers");
    }
}
