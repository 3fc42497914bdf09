//! Points at which everything holds that is known.
//!
//! A condition that holds at one of them and fails at another cannot be told, so no proof need be looked for; one that
//! holds somewhere is not always false. Most guards that a program keeps are recognised so, and searching for proofs
//! that do not exist is what takes time.

use crate::index::{Cond, Index};
use crate::sym::Sym;

/// How many points there are: each of the sizes, with all loops in their first and in their last iteration.
const POINTS: usize = 2 * SIZES.len();
/// What sizes and strides are at the points: the smallest, two that are multiples of hardly anything, and one that is a
/// multiple of every tile.
const SIZES: [i64; 4] = [1, 100, 4133, 8192];

/// The points, with the values of symbols there.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples {
    values: Vec<(Sym, [i64; POINTS])>,
    /// For each point at which an assumption fails, the number of assumptions before.
    failed: [Option<usize>; POINTS],
}

impl Samples {
    /// `sym` is a size, at least `least`.
    pub fn size(&mut self, sym: &Sym, least: i64) {
        self.set(sym, |point, _| SIZES[point / 2].max(least));
    }

    /// `sym` is the variable of a loop over `lo..hi` in steps of `step`. Points at which it has no iteration are out;
    /// `before` is the number of assumptions so far.
    pub fn runs_over(&mut self, sym: &Sym, lo: &Index, hi: &Index, step: i64, before: usize) {
        let bounds: [_; POINTS] = std::array::from_fn(|point| (self.index(point, lo), self.index(point, hi)));
        for (failed, (lo, hi)) in self.failed.iter_mut().zip(bounds) {
            if lo >= hi {
                failed.get_or_insert(before);
            }
        }
        self.set(sym, |point, _| {
            let (lo, hi) = bounds[point];
            if is_last(point) && lo < hi { hi - 1 - (hi - 1 - lo) % step } else { lo }
        });
    }

    /// `sym` counts the steps of a loop: `var` is `lo + step * sym`.
    pub fn counts(&mut self, sym: &Sym, var: &Sym, lo: &Index, step: i64) {
        self.set(sym, |point, samples| {
            (samples.value(point, var) - samples.index(point, lo)).div_euclid(step)
        });
    }

    /// `sym` is one of `values`.
    pub fn is_one_of(&mut self, sym: &Sym, values: &[i64]) {
        let (first, last) = (values.first().copied(), values.last().copied());
        self.set(sym, |point, _| if is_last(point) { last } else { first }.unwrap_or(0));
    }

    /// `cond` holds besides `before` other assumptions: points at which it does not are out.
    pub fn assume(&mut self, cond: &Cond, before: usize) {
        for point in 0..POINTS {
            if self.failed[point].is_none() && !self.holds(point, cond) {
                self.failed[point] = Some(before);
            }
        }
    }

    /// No point is left, because assumptions were made about a symbol before its range was known.
    pub fn give_up(&mut self, before: usize) {
        self.failed.iter_mut().for_each(|failed| {
            failed.get_or_insert(before);
        });
    }

    /// Only the first `known` assumptions are left.
    pub fn reset(&mut self, known: usize) {
        self.failed.iter_mut().for_each(|f| *f = f.filter(|before| *before < known));
    }

    /// Whether there is a point at which `cond` holds, and one at which it fails.
    pub fn outcomes(&self, cond: &Cond) -> (bool, bool) {
        let (mut holds, mut fails) = (false, false);
        for point in (0..POINTS).filter(|p| self.failed[*p].is_none()) {
            if self.holds(point, cond) {
                holds = true;
            } else {
                fails = true;
            }
            if holds && fails {
                break;
            }
        }
        (holds, fails)
    }

    fn set(&mut self, sym: &Sym, value: impl Fn(usize, &Samples) -> i64) {
        let values = std::array::from_fn(|point| value(point, self));
        match self.values.iter_mut().rev().find(|(s, _)| s == sym) {
            Some((_, present)) => *present = values,
            None => self.values.push((sym.clone(), values)),
        }
    }

    /// The value of a symbol; one of which nothing was said can be anything, and a flag is set at every other size.
    fn value(&self, point: usize, sym: &Sym) -> i64 {
        let present = self.values.iter().rev().find(|(s, _)| s == sym);
        present.map_or(((point / 2 + point) % 2) as i64, |(_, values)| values[point])
    }

    fn index(&self, point: usize, index: &Index) -> i64 {
        index.eval(&|s| Some(self.value(point, s))).expect("every symbol has a value")
    }

    fn holds(&self, point: usize, cond: &Cond) -> bool {
        cond.eval(&|s| Some(self.value(point, s))).expect("every symbol has a value")
    }
}

/// Whether loops are in their last iteration at a point.
fn is_last(point: usize) -> bool {
    point % 2 == 1
}
