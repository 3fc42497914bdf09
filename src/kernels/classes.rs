//! Rows by the residue classes of their numbers: rows `k = classes * k' + q` with the same `q` start alike in pieces of 16 bytes.
//!
//! Dense rows whose length is no multiple of 16 bytes start anywhere: they can be copied 16 bytes at a time only together
//! with what lies before and behind them, and their elements are then some columns further to the right, by another number
//! in each row. But in `A^T B` rows may be added up in any order. Where a block takes rows of one class only, all of them
//! are shifted alike, so the block adds up a matrix of products that is a little larger, in which C lies at a place of its
//! own, and no element needs another treatment than that of rows that start at multiples of 16 bytes.

use warpwright_core::index::Index;

use super::staging::ceil;
use crate::problem::Problem;

/// How rows are divided into classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Classes {
    /// How many there are.
    pub count: i64,
    /// Elements of a piece: 16 bytes, or 8.
    pub piece: i64,
}

/// The part of `count` rows, one behind the other, that is read for the row of each class: whole pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The classes, those of A and of B alike.
    pub classes: Classes,
    /// Elements of a row.
    pub width: i64,
    /// Elements of the window.
    pub columns: i64,
}

impl Classes {
    /// As few as make rows start alike: two or more, since with one class there is nothing to gain. Where windows of whole
    /// pieces of 16 bytes would be wider than `widest`, those of half as many.
    pub fn of(problem: &Problem, widest: i64) -> Option<Classes> {
        let widths = [problem.shape.m, problem.shape.n];
        let whole = 16 / problem.dtype().bytes();
        [whole, whole / 2].into_iter().filter(|piece| *piece > 1).find_map(|piece| {
            let alike = |count: &i64| widths.iter().all(|width| count * width % piece == 0);
            let count = [1, 2, 4].into_iter().find(alike).filter(|count| *count > 1)?;
            let classes = Classes { count, piece };
            widths.iter().all(|width| classes.window(*width).columns <= widest).then_some(classes)
        })
    }

    /// The windows of rows of so many elements.
    pub fn window(self, width: i64) -> Window {
        let furthest = (0..self.count).map(|q| q * width % self.piece).max().unwrap_or(0);
        Window { classes: self, width, columns: ceil(furthest + width, self.piece) * self.piece }
    }
}

impl Window {
    /// Elements of as many rows as there are classes.
    pub fn rows(self) -> i64 {
        self.classes.count * self.width
    }

    /// Where the window of the class `q` starts in these rows: at a multiple of a piece, and so that it ends with them.
    pub fn start(self, q: &Index) -> Index {
        let Classes { count, piece } = self.classes;
        let row = q.scaled(self.width).div(piece);
        let last = (self.rows() - self.columns) / piece;
        let pieces =
            if (count - 1) * self.width / piece <= last { row } else { row.minimum(&Index::constant(last)) };
        pieces.scaled(piece)
    }

    /// By how many elements the row of the class `q` starts behind its window.
    pub fn shift(self, q: &Index) -> Index {
        &q.scaled(self.width) - &self.start(q)
    }
}

#[cfg(test)]
mod tests {
    use super::Classes;
    use warpwright_core::index::Index;

    #[test]
    fn windows_hold_their_rows_and_consist_of_whole_pieces() {
        for (piece, counts) in [(4, vec![2, 4]), (2, vec![2])] {
            for width in 5..=128 {
                for count in &counts {
                    let classes = Classes { count: *count, piece };
                    if count * width % piece != 0 {
                        continue;
                    }
                    let window = classes.window(width);
                    assert_eq!(window.columns % piece, 0);
                    assert!(window.columns - width < 2 * piece, "{width} {count}");
                    for q in 0..*count {
                        let at = Index::constant(q);
                        let start = window.start(&at).eval(&|_| None).unwrap();
                        let shift = window.shift(&at).eval(&|_| None).unwrap();
                        assert_eq!(start % piece, 0);
                        assert_eq!(start + shift, q * width);
                        assert!(0 <= shift && shift + width <= window.columns, "{width} {count} {q}");
                        assert!(start >= 0 && start + window.columns <= window.rows());
                    }
                }
            }
        }
    }
}
