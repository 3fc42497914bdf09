//! The arithmetic pipes of a multiprocessor, and how fast each is.

use super::fact::Fact;

/// An arithmetic pipe. An instruction names the pipe it occupies; a GPU names the rate of each pipe it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pipe {
    /// Scalar f32 multiply-adds.
    F32,
    /// Scalar f64 multiply-adds.
    F64,
    /// Matrix units, f16 in and f32 out.
    TensorF16,
    /// Matrix units, bf16 in and f32 out.
    TensorBf16,
    /// Matrix units, tf32 in and f32 out.
    TensorTf32,
    /// Matrix units, f64.
    TensorF64,
}

impl Pipe {
    /// Every pipe.
    pub const ALL: [Pipe; 6] =
        [Pipe::F32, Pipe::F64, Pipe::TensorF16, Pipe::TensorBf16, Pipe::TensorTf32, Pipe::TensorF64];

    /// Its name in reports and files.
    pub fn name(self) -> &'static str {
        match self {
            Pipe::F32 => "f32",
            Pipe::F64 => "f64",
            Pipe::TensorF16 => "tensor_f16",
            Pipe::TensorBf16 => "tensor_bf16",
            Pipe::TensorTf32 => "tensor_tf32",
            Pipe::TensorF64 => "tensor_f64",
        }
    }
}

/// The rate of one pipe.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Which pipe.
    pub pipe: Pipe,
    /// Multiply-adds per clock and multiprocessor, dense.
    pub fma_per_clock: Fact<u32>,
}

impl Rate {
    /// A row of a GPU's table.
    pub const fn new(pipe: Pipe, fma_per_clock: Fact<u32>) -> Self {
        Rate { pipe, fma_per_clock }
    }
}
