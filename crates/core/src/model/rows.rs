//! Rows of a matrix that stand apart: which pieces of memory hold some of them, and what writing to a part of a sector costs.

use super::sites::SECTOR;

/// Bytes that a sector which is written in part, and was not brought to the second-level cache before, counts as. A profiler sees one sector read for it, but it
/// takes as long as 104 to 167 bytes (products A C beside what they touch: 16, 24 and 32 columns of f64 and c128, 32 of f32, rows one element
/// longer; an H200, 2026-11-29). With this number the model says 1.02 times (0.91 to 1.13) what the best of 43 such kernels took that prefetch them or do nothing about them.
const COMPLETED_LATE: f64 = 112.0;

/// Rows of so many bytes, one every `stride` bytes, of which the first begins `before` bytes behind the start of a piece of memory.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    /// Bytes of a row.
    pub bytes: i64,
    /// Bytes from row to row: no fewer.
    pub stride: i64,
    /// Bytes before the first row.
    pub before: i64,
}

/// Pieces of memory that hold something of some rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pieces {
    /// All of them.
    pub touched: f64,
    /// Those that hold something else too.
    pub in_part: f64,
}

impl Rows {
    /// The pieces of so many bytes that hold something of `count` rows, by how they repeat themselves.
    pub fn pieces(&self, count: i64, piece: i64) -> Pieces {
        // After as many rows as a piece has bytes everything stands in the same places of its pieces again.
        let (first, periods) = (count % piece + piece, (count / piece - 1).max(0));
        if periods == 0 {
            return self.counted(count, piece);
        }
        let [begun, once, twice] = [first, piece, 2 * piece].map(|rows| self.counted(rows, piece));
        let all = |of: fn(&Pieces) -> f64| of(&begun) + periods as f64 * (of(&twice) - of(&once));
        Pieces { touched: all(|p| p.touched), in_part: all(|p| p.in_part) }
    }

    fn counted(&self, count: i64, piece: i64) -> Pieces {
        let (mut touched, mut filled, mut next) = (0, 0, 0);
        for row in 0..count {
            let start = self.before + row * self.stride;
            let end = start + self.bytes;
            let (first, behind) = ((start / piece).max(next), (end - 1) / piece + 1);
            touched += (behind - first).max(0);
            filled += (end / piece - (start + piece - 1) / piece).max(0);
            next = behind;
        }
        Pieces { touched: touched as f64, in_part: (touched - filled) as f64 }
    }

    /// Bytes that device memory moves where `count` rows are written: whole sectors, and before them those that are written in part, by so many bytes
    /// each if they are `brought` to the second-level cache; but no more than all of them.
    pub fn moved_to_write(&self, count: i64, brought: Option<i64>) -> f64 {
        let Pieces { touched, in_part } = self.pieces(count, SECTOR);
        let written = touched * SECTOR as f64;
        written + (in_part * brought.map_or(COMPLETED_LATE, |bytes| bytes as f64)).min(written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_those_that_hold_some_of_the_rows() {
        for count in [1, 2, 31, 64, 65, 1000, 1023] {
            for (bytes, stride, before) in [(16, 20, 0), (32, 64, 8), (4, 12, 0), (36, 48, 8), (248, 320, 24)]
            {
                for piece in [32, 64] {
                    let held = |byte: i64| {
                        let from = byte - before;
                        from >= 0 && from / stride < count && from % stride < bytes
                    };
                    let all = (before + count * stride) / piece + 1;
                    let of = |p: &i64| (p * piece..(p + 1) * piece).filter(|b| held(*b)).count() as i64;
                    let touched = (0..all).filter(|p| of(p) > 0).count() as f64;
                    let in_part = (0..all).filter(|p| of(p) > 0 && of(p) < piece).count() as f64;
                    let found = Rows { bytes, stride, before }.pieces(count, piece);
                    assert_eq!(
                        found,
                        Pieces { touched, in_part },
                        "{count} {bytes} {stride} {before} {piece}"
                    );
                }
            }
        }
    }

    #[test]
    fn sectors_that_are_written_in_part_are_read_first() {
        let of = |bytes, stride| Rows { bytes, stride, before: 0 };
        // 24 numbers of 8 bytes: of 25 sectors for 4 rows each, one a row is shared with a gap of 8 bytes.
        assert_eq!(of(192, 200).moved_to_write(4000, Some(32)), (6.25 + 1.0) * 32.0 * 4000.0);
        assert_eq!(of(192, 200).moved_to_write(4000, Some(64)), (6.25 + 2.0) * 32.0 * 4000.0);
        assert_eq!(of(192, 200).moved_to_write(4000, None), (6.25 * 32.0 + COMPLETED_LATE) * 4000.0);
        assert_eq!(of(192, 256).moved_to_write(4000, None), 192.0 * 4000.0, "gaps of whole sectors");
        assert_eq!(of(16, 32).moved_to_write(4000, None), 64.0 * 4000.0, "no more than all sectors are read");
    }
}
