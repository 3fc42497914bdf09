//! The region of a buffer that a body touches: a box that moves with the loops around it.

use crate::index::{Index, Interval, Ranges};
use crate::sym::Sym;

/// One dimension of a region.
#[derive(Clone, Debug)]
pub(in crate::schedule) struct Extent {
    /// The first index; it depends on what stands around the body alone.
    pub start: Index,
    /// How many indices from there on.
    pub length: Index,
}

/// The smallest box `start .. start + length` that holds the values of the indices while `inner` variables vary;
/// `None` if it is not of constant length.
pub(in crate::schedule) fn hull(column: &[Index], inner: &[Sym], ranges: &Ranges) -> Option<Extent> {
    let split = |index: &Index| index.parted(|atom| !atom.mentions_any(|s| inner.contains(s)));
    let (start, _) = split(column.first()?);
    let (mut low, mut high) = (i64::MAX, i64::MIN);
    for index in column {
        let (fixed, moving) = split(index);
        let Interval { lo: Some(lo), hi: Some(hi) } = ranges.of(&moving) else { return None };
        if fixed != start {
            return None;
        }
        low = low.min(lo);
        high = high.max(hi);
    }
    Some(Extent { start: start.offset(low), length: Index::constant(high - low + 1) })
}
