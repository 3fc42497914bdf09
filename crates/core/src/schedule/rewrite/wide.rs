//! Wide accesses: whether neighbouring elements are neighbours in memory, the first of them aligned.

use crate::index::Index;
use crate::ir::{ALIGNMENT, Buffer};
use crate::schedule::facts::Facts;
use crate::sym::Sym;

/// Neighbouring elements that one access touches: `count` of them, as `var` goes from 0 to `count - 1`.
pub(in crate::schedule) struct Neighbours<'a> {
    /// What tells the elements apart.
    pub var: &'a Sym,
    /// How many there are.
    pub count: i64,
    /// What is known where the access stands.
    pub facts: &'a Facts,
}

impl Neighbours<'_> {
    /// Why the elements of `buffer` at `index` are not neighbours that start at a multiple of their number. Shared buffers
    /// themselves start at multiples of every access, tensors at multiples of their alignment.
    pub fn check(&self, index: &[Index], buffer: &Buffer) -> Result<(), String> {
        if self.are_neighbours(index, buffer)? {
            return Ok(());
        }
        Err(format!("its elements are not neighbours in `{}`", buffer.sym))
    }

    /// Whether the elements of `buffer` at `index` are neighbours; if they are, why the first is not aligned.
    pub fn are_neighbours(&self, index: &[Index], buffer: &Buffer) -> Result<bool, String> {
        let mut inside = self.facts.clone();
        inside.enter_range(self.var, &Index::constant(self.count));
        let index: Vec<Index> = index.iter().map(|i| inside.ranges().simplify(i)).collect();
        let (along, aligned) = match &buffer.layout {
            Some(layout) => {
                let offset = inside.ranges().simplify(&layout.apply(&index));
                let first = self.first(&offset);
                (&offset - &first == Index::var(self.var), self.facts.is_multiple(&first, self.count))
            }
            None => {
                let (last, rows) = index.split_last().ok_or("it has no dimensions")?;
                let first = self.first(last);
                let along =
                    last - &first == Index::var(self.var) && !rows.iter().any(|i| i.mentions(self.var));
                (along, self.facts.is_multiple(&first, self.count) && self.rows_are_aligned(rows, buffer))
            }
        };
        if !along {
            return Ok(false);
        }
        let bytes = self.count * buffer.dtype.bytes();
        if bytes.min(ALIGNMENT) > buffer.align {
            return Err(format!(
                "`{}` starts at a multiple of {} bytes, not of {bytes}",
                buffer.sym, buffer.align
            ));
        }
        if !aligned {
            return Err(format!(
                "the first of its elements in `{}` is not known to stand at a multiple of {}{}",
                buffer.sym,
                self.count,
                buffer.row_stride.as_ref().map(|s| format!(" (is `{s}` one?)")).unwrap_or_default()
            ));
        }
        Ok(true)
    }

    fn first(&self, index: &Index) -> Index {
        index.substitute(&|s| (s == self.var).then(Index::default))
    }

    /// Whether every row that `rows` names starts at a multiple of the count: its number, or the length of what each
    /// step skips, is one.
    fn rows_are_aligned(&self, rows: &[Index], buffer: &Buffer) -> bool {
        let inner = |dim: usize| match &buffer.row_stride {
            Some(stride) => vec![Index::var(stride)],
            None => buffer.dims[dim + 1..].iter().map(|d| d.extent.clone()).collect(),
        };
        rows.iter().enumerate().all(|(dim, row)| {
            let inner = inner(dim);
            let factors = inner.iter().chain([row]).map(|f| self.power_of_2_in(f));
            factors.product::<i64>() % self.count == 0
        })
    }

    /// The largest power of 2, at most the count, that an index is known to be a multiple of.
    fn power_of_2_in(&self, index: &Index) -> i64 {
        let mut power = self.count;
        while power > 1 && !self.facts.is_multiple(index, power) {
            power /= 2;
        }
        power
    }
}
