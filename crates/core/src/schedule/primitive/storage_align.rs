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
//! grows in proportion. Of the contiguous axis, the steps from one tile to the next may grow: after
//! `storage_align(s, c/13, 7)` every 13 columns begin 20 elements behind those before, so that tiles of 13 may be read in
//! pieces of 16 bytes. The layout must be plain strides, or have whole rows along the axis, whose elements may stand in any order: pad
//! before swizzling, not after.

use crate::diag::Diagnosis;
use crate::index::Index;
use crate::ir::Program;
use crate::schedule::rewrite::{Storage, strided, with_layout};
use crate::schedule::step::Call;

use super::Primitive;
use super::storage_order::Part;
use super::vectorize::check_vectors;

pub(super) const USAGE: &str =
    "storage_align(buffer, axis, pad), of an axis such as r, or of tiles of one such as c/13";

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct StorageAlign {
    /// The buffer.
    pub buffer: String,
    /// The axis whose steps grow, or the tiles of the contiguous one.
    pub axis: Part,
    /// By how many elements.
    pub pad: i64,
}

impl StorageAlign {
    pub(super) fn read(call: &Call) -> Result<StorageAlign, Diagnosis> {
        let axis = match Part::read(call.word_at(1)?) {
            Some(axis @ (Part::Whole(_) | Part::Over(..))) => axis,
            _ => return Err(call.wrong("an axis or tiles of one are wanted")),
        };
        let pad = call.int_at(2)?;
        if pad < 1 {
            return Err(call.wrong("the padding must be positive"));
        }
        Ok(StorageAlign { buffer: call.word_at(0)?.into(), axis, pad })
    }

    fn refuse(&self, because: &str) -> Diagnosis {
        Diagnosis::new(format!("`{}` cannot be padded along `{}`", self.buffer, self.axis.text()))
            .because(because)
    }

    fn strides(&self, storage: &Storage) -> Result<Vec<i64>, Diagnosis> {
        storage.strides().ok_or_else(|| {
            self.refuse("its layout is more than strides").instead("pad it before swizzling it")
        })
    }

    /// Where elements are if the steps along an axis grow.
    fn along(&self, axis: &str, storage: &Storage) -> Result<Index, Diagnosis> {
        let at = storage.axis(axis)?;
        if let Some(grown) = self.along_whole_rows(at, storage) {
            return Ok(grown);
        }
        let strides = self.strides(storage)?;
        let step = strides[at];
        // An axis with one element has no step.
        if step == 0 {
            return Err(self.refuse("it has one element").instead("pad another axis"));
        }
        if step == 1 {
            return Err(self
                .refuse("its elements are neighbours along it")
                .instead("pad the other axis, or tiles of this one"));
        }
        if strides.iter().any(|s| *s > step && s % step != 0) {
            return Err(self.refuse("another axis does not step over whole rows"));
        }
        let grown = |s: i64| if s >= step { s / step * (step + self.pad) } else { s };
        Ok(strided(&storage.axes, &strides.into_iter().map(grown).collect::<Vec<_>>()))
    }

    /// The same where each step along the axis leads over all that the other axes lead to, in whatever order that is.
    fn along_whole_rows(&self, at: usize, storage: &Storage) -> Option<Index> {
        let (axis, step) = (&storage.axes[at], storage.offset.coefficient(&storage.axes[at]));
        let row = &storage.offset - &Index::var(axis).scaled(step);
        let is_one = !row.mentions(axis) && storage.ranges().of(&row).within(0, step - 1);
        (step > 1 && is_one).then(|| &Index::var(axis).scaled(step + self.pad) + &row)
    }

    /// Where they are if the steps from one tile of neighbours to the next grow.
    fn between_tiles(&self, axis: &str, tile: i64, storage: &Storage) -> Result<Index, Diagnosis> {
        let (at, mut strides) = (storage.axis(axis)?, self.strides(storage)?);
        if strides[at] != 1 {
            return Err(self
                .refuse("its elements are no neighbours along it")
                .instead("pad the axis itself"));
        }
        // A row grows by what is between its tiles, and to whole tiles.
        let row = strides.iter().copied().filter(|s| *s > 1).min().unwrap_or(storage.extents[at]);
        if strides.iter().any(|s| *s > 1 && s % row != 0) {
            return Err(self.refuse("another axis does not step over whole rows"));
        }
        let tiles = (storage.extents[at] + tile - 1) / tile;
        let longer = tiles * (tile + self.pad) + (row - storage.extents[at]);
        for stride in strides.iter_mut().filter(|s| **s > 1) {
            *stride = *stride / row * longer;
        }
        strides[at] = 0;
        let place = Index::var(&storage.axes[at]);
        let in_tiles = &place.div(tile).scaled(tile + self.pad) + &place.rem(tile);
        Ok(&strided(&storage.axes, &strides) + &in_tiles)
    }
}

impl Primitive for StorageAlign {
    fn call(&self) -> Call {
        Call::new("storage_align").word(&self.buffer).word(self.axis.text()).int(self.pad)
    }

    fn apply(&self, program: &Program) -> Result<Program, Diagnosis> {
        let padded = with_layout(program, &self.buffer, &|storage| match &self.axis {
            Part::Over(axis, tile) => self.between_tiles(axis, *tile, storage),
            Part::Whole(axis) => self.along(axis, storage),
            Part::Rest(..) => Err(self.refuse("it is neither an axis nor tiles of one")),
        })?;
        check_vectors(padded)
    }
}
