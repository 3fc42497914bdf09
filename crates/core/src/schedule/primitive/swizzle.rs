//! `swizzle`: pieces of the rows of a shared buffer change places by exclusive or with the row, so that a column is
//! spread over the banks and no memory is lost.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let text = "program p(y: out bf16[128, 32]) {
//!   for b in block.x(1) {
//!     alloc s: bf16[128, 32] shared
//!     for i in 0..128, j in 0..32 { s[i, j] = 1 }
//!     for i in 0..128, j in 0..32 { y[i, j] = s[i, j] }
//!   }
//! }";
//! let after = Schedule::run(parse::program(text).unwrap(), "swizzle(s)").unwrap();
//! assert!(after.program().to_string().contains("layout (r, c) => 32*r + 8*xor(c/8, (r/2)%4) + c%8"));
//! let same = Schedule::run(parse::program(text).unwrap(), "swizzle(s, 2, 3, 3)").unwrap();
//! assert_eq!(same.program().to_string(), after.program().to_string());
//! ```
//!
//! `swizzle(s, bits, base, shift)`: of the offset, the `bits` bits from bit `base` on are exclusive-ored with the
//! `bits` bits `shift` higher. By rule, pieces have 16 bytes (so that wide accesses and matrix loads stay whole), and
//! each 128 bytes of a row are permuted by the number of the row, or of the 128-byte line where rows are shorter: the
//! swizzle of the tensor memory accelerator for rows of 128 bytes.

use crate::diag::Diagnosis;
use crate::index::Index;
use crate::ir::Program;
use crate::schedule::rewrite::{Storage, with_layout};
use crate::schedule::step::Call;

use super::Primitive;
use super::vectorize::check_vectors;

pub(super) const USAGE: &str = "swizzle(buffer) or swizzle(buffer, bits, base, shift)";

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct Swizzle {
    /// The buffer.
    pub buffer: String,
    /// Which bits; by rule if `None`.
    pub bits: Option<Bits>,
}

/// The bits of an offset that a swizzle exclusive-ors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    /// How many.
    pub count: u32,
    /// The lowest that changes.
    pub base: u32,
    /// How much higher those stand that change them.
    pub shift: u32,
}

impl Swizzle {
    pub(super) fn read(call: &Call) -> Result<Swizzle, Diagnosis> {
        let buffer = call.word_at(0)?.into();
        if call.args.len() == 1 {
            return Ok(Swizzle { buffer, bits: None });
        }
        let small = |at: usize| match call.int_at(at)? {
            n @ 0..=16 => Ok(n as u32),
            n => Err(call.wrong(&format!("{n} is no number of bits"))),
        };
        let bits = Bits { count: small(1)?, base: small(2)?, shift: small(3)? };
        if bits.count == 0 || bits.shift < bits.count {
            return Err(call.wrong("at least one bit, and a shift of no fewer, are wanted"));
        }
        Ok(Swizzle { buffer, bits: Some(bits) })
    }

    /// The bits by rule for elements of so many bytes in rows of so many elements.
    fn by_rule(bytes: i64, row: i64) -> Option<Bits> {
        let base = (16 / bytes).checked_ilog2()?;
        let pieces = row.checked_ilog2()?.checked_sub(base).filter(|p| *p > 0 && row.count_ones() == 1)?;
        Some(Bits { count: pieces.min(3), base, shift: pieces.max(3) })
    }
}

impl Bits {
    /// The offset with the bits exchanged; `row` bits are those of a row.
    fn apply(self, offset: &Index, row: i64, storage: &Storage) -> Index {
        let ranges = storage.ranges();
        let piece = 1i64 << self.base;
        // The bits above those that change may take part, unchanged: to the end of the row reads best.
        let wide = row.checked_ilog2().unwrap_or(0).saturating_sub(self.base).clamp(self.count, self.shift);
        let (low, pieces) = (offset.rem(piece), offset.div(piece));
        let (middle, high) = (pieces.rem(1 << wide), pieces.div(1 << wide));
        let by = offset.div(1 << (self.base + self.shift)).rem(1 << self.count);
        let mixed = ranges.simplify(&middle).xor(&ranges.simplify(&by));
        &(&ranges.simplify(&high).scaled(piece << wide) + &mixed.scaled(piece)) + &low
    }
}

impl Primitive for Swizzle {
    fn call(&self) -> Call {
        let call = Call::new("swizzle").word(&self.buffer);
        match self.bits {
            None => call,
            Some(b) => call.int(b.count.into()).int(b.base.into()).int(b.shift.into()),
        }
    }

    fn apply(&self, program: &Program) -> Result<Program, Diagnosis> {
        let bytes =
            program.buffers().values().find(|b| b.sym.name() == self.buffer).map_or(4, |b| b.dtype.bytes());
        let swizzled = with_layout(program, &self.buffer, &|storage| {
            let refuse = |because: &str| {
                Diagnosis::new(format!("`{}` cannot be swizzled", self.buffer)).because(because)
            };
            let strides = storage.strides().ok_or_else(|| {
                refuse("its layout is more than strides").instead("swizzle once, after all else")
            })?;
            let row = strides.iter().copied().filter(|s| *s > 1).min().unwrap_or(1);
            let bits = self.bits.or_else(|| Swizzle::by_rule(bytes, row)).ok_or_else(|| {
                refuse(&format!("its rows of {row} elements are not 2, 4, 8, ... pieces of 16 bytes"))
                    .instead("give the bits, or pad the rows by storage_align")
            })?;
            Ok(bits.apply(&storage.offset, row, storage))
        })?;
        check_vectors(swizzled)
    }
}
