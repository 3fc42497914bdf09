//! Layout is a value: where the element at a logical index is kept.
//!
//! A [`Layout`] sends the logical index of a shared buffer to an element offset; it may pad rows and may exclusive-or
//! parts of the index together (a swizzle). A [`Fragment`] sends the logical index of a small tile to a thread and a
//! register of it. Bank conflicts, ownership and injectivity are computed from these two, once, for every consumer.

mod bits;
mod fragment;

pub use fragment::Fragment;

use crate::diag::Diagnosis;
use crate::index::{Atom, Index};
use crate::sym::Sym;

/// The place of each element of a buffer, in elements from its start: `(s, r, c) => 4096*s + 32*r + c`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// One symbol for each dimension of the buffer.
    pub axes: Vec<Sym>,
    /// The offset as an expression over [`Layout::axes`].
    pub offset: Index,
}

impl Layout {
    /// The layout with the given stride for each dimension.
    pub fn strided(strides: &[i64]) -> Layout {
        const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
        let axes: Vec<Sym> = (0..strides.len()).map(|i| Sym::new(NAMES[i.min(5)])).collect();
        let offset =
            axes.iter().zip(strides).fold(Index::default(), |sum, (a, s)| &sum + &Index::var(a).scaled(*s));
        Layout { axes, offset }
    }

    /// The compact layout: the last dimension is contiguous, as in C.
    pub fn row_major(extents: &[i64]) -> Layout {
        Layout::strided(&row_major_strides(extents))
    }

    /// Whether parts of the index change others by exclusive-or.
    pub fn is_swizzled(&self) -> bool {
        self.offset.terms().iter().any(|(atom, _)| matches!(atom, Atom::Xor(..)))
    }

    /// The offset of the element at `index`.
    pub fn apply(&self, index: &[Index]) -> Index {
        self.offset.substitute(&|sym| self.axes.iter().position(|a| a == sym).map(|i| index[i].clone()))
    }

    /// The offset of the element at a constant index.
    pub fn at(&self, index: &[i64]) -> i64 {
        let value = |sym: &Sym| self.axes.iter().position(|a| a == sym).map(|i| index[i]);
        self.offset
            .eval(&value)
            .unwrap_or_else(|sym| unreachable!("layout mentions {sym}, which is no axis of it"))
    }

    /// How many elements a buffer of the given extents spans.
    ///
    /// # Errors
    /// Two elements at one offset, a negative offset, a number of axes that is not the number of dimensions, or a
    /// symbol that is not an axis.
    pub fn span(&self, extents: &[i64]) -> Result<i64, Diagnosis> {
        if self.axes.len() != extents.len() {
            return Err(Diagnosis::new(format!(
                "the layout has {} axes, the buffer {} dimensions",
                self.axes.len(),
                extents.len()
            )));
        }
        let mut foreign = None;
        self.offset.for_each_var(&mut |s| {
            if !self.axes.contains(s) {
                foreign = Some(s.clone());
            }
        });
        if let Some(s) = foreign {
            return Err(Diagnosis::new(format!("the layout mentions `{s}`, which is no axis of it")));
        }
        match bits::span(self, extents) {
            Some((true, elements)) => Ok(elements),
            // Also to name two elements that collide.
            Some((false, _)) | None => self.span_by_enumeration(extents),
        }
    }

    fn span_by_enumeration(&self, extents: &[i64]) -> Result<i64, Diagnosis> {
        let mut seen = std::collections::HashMap::new();
        let mut last = -1;
        for index in indices(extents) {
            let offset = self.at(&index);
            if offset < 0 {
                return Err(Diagnosis::new(format!("the layout puts element {index:?} at offset {offset}")));
            }
            if let Some(other) = seen.insert(offset, index.clone()) {
                return Err(Diagnosis::new(format!(
                    "the layout is not injective: elements {other:?} and {index:?} share offset {offset}"
                )));
            }
            last = last.max(offset);
        }
        Ok(last + 1)
    }
}

/// Strides of the compact C order.
pub fn row_major_strides(extents: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; extents.len()];
    for i in (1..extents.len()).rev() {
        strides[i - 1] = strides[i] * extents[i];
    }
    strides
}

/// All indices of a box, the last dimension fastest.
pub fn indices(extents: &[i64]) -> impl Iterator<Item = Vec<i64>> + '_ {
    let total: i64 = extents.iter().product();
    (0..total).map(move |mut flat| {
        let mut index = vec![0; extents.len()];
        for (i, extent) in extents.iter().enumerate().rev() {
            index[i] = flat % extent;
            flat /= extent;
        }
        index
    })
}

#[cfg(test)]
mod tests {
    use super::{Fragment, Layout, indices};
    use crate::index::Index;
    use crate::sym::Sym;

    #[test]
    fn a_swizzle_is_injective_and_a_bad_one_is_refused() {
        let (r, c) = (Sym::new("r"), Sym::new("c"));
        let swizzled = |period: i64| Layout {
            axes: vec![r.clone(), c.clone()],
            offset: &(&Index::var(&r).scaled(32)
                + &Index::var(&c).div(8).xor(&Index::var(&r).div(2).rem(period)).scaled(8))
                + &Index::var(&c).rem(8),
        };
        assert_eq!(swizzled(4).span(&[128, 32]), Ok(4096));
        assert!(swizzled(5).span(&[128, 32]).unwrap_err().to_string().contains("not injective"));
    }

    #[test]
    fn results_of_matrix_instructions_are_owned_in_pairs() {
        for fragment in Fragment::all() {
            let has = |run| fragment.has_runs(fragment.rows, fragment.columns.unwrap_or(24), run);
            let pairs = ["D16x8", "D8x8", "D64xN", "A16x16"].contains(&fragment.name);
            assert_eq!([has(1), has(2), has(4)], [true, pairs, false], "{}", fragment.name);
        }
        // Columns that are no multiple of a run, and a tile that there is not.
        let wide = Fragment::by_name("D64xN").expect("there is one");
        assert!(!wide.has_runs(64, 8, 3) && !wide.has_runs(64, 7, 1) && !wide.has_runs(64, 8, 0));
    }

    #[test]
    fn every_fragment_covers_its_tile_once() {
        for fragment in Fragment::all() {
            let columns = fragment.columns.unwrap_or(128);
            let owners = fragment.owners(fragment.rows, columns).expect("fits");
            assert_eq!(owners.len() as i64, fragment.rows * columns, "{}", fragment.name);
            for index in indices(&[fragment.rows, columns]) {
                assert!(owners.contains_key(&(index[0], index[1])), "{} misses {index:?}", fragment.name);
            }
        }
    }
}
