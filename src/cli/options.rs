//! Options that several subcommands share.

use clap::Args;

use crate::kernels::Variant;
use crate::problem::{Layout, Precision};

/// How results are printed.
#[derive(Args, Clone, Copy, Debug)]
pub struct OutputOptions {
    /// Print one JSON object or array on standard output, and nothing else there.
    #[arg(long)]
    pub json: bool,
}

/// For which element type and layout a kernel is made.
#[derive(Args, Clone, Copy, Debug)]
pub struct VariantOptions {
    /// Element type: f32, f64, c64, c128, bf16, f16, i32, or tf32 (stored as f32).
    #[arg(long, value_name = "TYPE", default_value = "f32")]
    pub dtype: Precision,
    /// A letter for each of A and B: n (as it is), t (transposed) or c (conjugate transposed).
    #[arg(long, value_name = "LETTERS", default_value = "nn")]
    pub layout: Layout,
}

impl VariantOptions {
    /// The variant that is asked for.
    pub fn variant(&self) -> Variant {
        Variant { precision: self.dtype, layout: self.layout }
    }
}
