//! Products on a real GPU: operands in its memory, and cuBLAS beside them.

pub mod cublas;
mod operands;

pub use operands::OperandSets;

use warpwright_core::diag::Diagnosis;

/// An error of the CUDA layer as a diagnosis. Its text already says what to do.
pub fn diagnosis(error: warpwright_cuda::Error) -> Diagnosis {
    Diagnosis::new(error.to_string())
}
