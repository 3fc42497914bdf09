//! `storage_align`: the steps along an axis of a shared buffer become longer, so that they begin in other banks.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(y: out f32[32, 32]) {
//!   for b in block.x(1) {
//!     alloc s: f32[32, 32] shared
//!     for i in 0..32, j in 0..32 { s[i, j] = 1 }
//!     for i in 0..32, j in 0..32 { y[j, i] = s[i, j] }
//!   }
//! }").unwrap();
//! let padded = Schedule::run(before, "storage_align(s, r, 1)").unwrap();
//! assert!(padded.program().to_string().contains("alloc s: f32[32, 32] shared layout (r, c) => 33*r + c"));
//! ```
//!
//! The axis, `r` or `c` (or `e` in one dimension), is one that is not contiguous; what steps over whole rows of it
//! grows in proportion. The layout must be plain strides: pad before swizzling, not after.

use crate::diag::Diagnosis;
use crate::ir::Program;
use crate::schedule::rewrite::{strided, with_layout};
use crate::schedule::step::Call;

use super::Primitive;
use super::vectorize::check_vectors;

pub(super) const USAGE: &str = "storage_align(buffer, axis, pad)";

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct StorageAlign {
    /// The buffer.
    pub buffer: String,
    /// The axis whose steps grow.
    pub axis: String,
    /// By how many elements.
    pub pad: i64,
}

impl StorageAlign {
    pub(super) fn read(call: &Call) -> Result<StorageAlign, Diagnosis> {
        let pad = call.int_at(2)?;
        if pad < 1 {
            return Err(call.wrong("the padding must be positive"));
        }
        Ok(StorageAlign { buffer: call.word_at(0)?.into(), axis: call.word_at(1)?.into(), pad })
    }
}

impl Primitive for StorageAlign {
    fn call(&self) -> Call {
        Call::new("storage_align").word(&self.buffer).word(&self.axis).int(self.pad)
    }

    fn apply(&self, program: &Program) -> Result<Program, Diagnosis> {
        let refuse = |because: &str| {
            Diagnosis::new(format!("`{}` cannot be padded along `{}`", self.buffer, self.axis))
                .because(because)
        };
        let padded = with_layout(program, &self.buffer, &|storage| {
            let at = storage.axis(&self.axis)?;
            let strides = storage.strides().ok_or_else(|| {
                refuse("its layout is more than strides").instead("pad it before swizzling it")
            })?;
            let step = strides[at];
            // An axis with one element has no step.
            if step == 0 {
                return Err(refuse("it has one element").instead("pad another axis"));
            }
            if step == 1 {
                return Err(refuse("its elements are neighbours along it").instead("pad the other axis"));
            }
            if strides.iter().any(|s| *s > step && s % step != 0) {
                return Err(refuse("another axis does not step over whole rows"));
            }
            let grown = |s: i64| if s >= step { s / step * (step + self.pad) } else { s };
            Ok(strided(&storage.axes, &strides.into_iter().map(grown).collect::<Vec<_>>()))
        })?;
        check_vectors(padded)
    }
}
