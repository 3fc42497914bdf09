//! Elements of shared memory that a lane counts from where it begins.
//!
//! ```text
//! a[io][r] = As[ko%3][864*ks + 108*(4*(r/2) + tid%4) + 16*io + 8*(r%2) + tid%32/4];
//! =>
//! a[io][r] = (&As[ko%3][108*(tid%4) + tid%32/4])[864*ks + 432*(r/2) + 16*io + 8*(r%2)];
//! ```
//!
//! What registers and unrolled loops add, over all dimensions, is then a constant of the instruction. Of the first line the compiler was
//! seen to keep a register for every sum that is not the same, and to take two instructions for each (NVRTC 13.0). With those
//! registers back some kernels are up to 3 % faster; others are slower, since it puts loads elsewhere (bench/results): so a
//! schedule says where it is done, by `lane_base`.

use super::body::Body;
use crate::index::Index;
use crate::sym::Sym;

impl Body<'_> {
    /// An element that an `own` loop with a `lane_base` accesses.
    pub(super) fn element_of_a_lane(
        &mut self,
        name: &str,
        rows: &[(usize, i64)],
        index: &[Index],
    ) -> Option<String> {
        let owned = self.owned.last().filter(|owned| owned.lane_base)?;
        let place = |s: &Sym| {
            (*s == owned.row || *s == owned.column).then(|| self.thread_values.get(s).cloned()).flatten()
        };
        if !index.iter().any(|i| i.mentions(&owned.row) || i.mentions(&owned.column)) {
            return None;
        }
        let (mut from, mut count) = (Vec::new(), Index::default());
        let mut stride = 1;
        for (axis, extent) in rows.iter().rev() {
            let place = self.ranges.simplify(&index[*axis].substitute(&place));
            let (base, counted) = self.parted_by_unrolled_loops(&place);
            // No pointer before the first element.
            if self.ranges.of(&base).lo.is_none_or(|lo| lo < 0) {
                return None;
            }
            count = &count + &counted.scaled(stride);
            stride *= extent;
            from.push(base);
        }
        if count.terms().is_empty() {
            return None;
        }
        let from: String = from.iter().rev().map(|i| format!("[{}]", self.index(i).text)).collect();
        Some(format!("(&{name}{from})[{}]", self.index(&count).text))
    }
}
