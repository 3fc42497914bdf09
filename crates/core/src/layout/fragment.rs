//! Fragment layouts: which register of which thread holds each element of a tile that a matrix instruction works on.
//!
//! Source of the maps: PTX ISA 8.x, sections on matrix fragments of `mma.sync` and `wgmma` (figures of
//! m16n8k16, m16n8k8, m16n8k4, m8n8k4 and the 64xN accumulator).

use std::collections::HashMap;

use crate::index::Index;

/// How a tile is spread over the threads of a warp or warpgroup.
#[derive(Clone, Copy, Debug)]
pub struct Fragment {
    /// The name used in programs, such as `A16x16`.
    pub name: &'static str,
    /// Threads that share the tile: 32 or 128.
    pub threads: i64,
    /// Rows of the tile.
    pub rows: i64,
    /// Columns of the tile; `None` where the instruction leaves them open (any multiple of 8).
    pub columns: Option<i64>,
    /// `(thread, register) -> (row, column)`.
    pub place: fn(&Index, &Index) -> (Index, Index),
}

impl PartialEq for Fragment {
    fn eq(&self, other: &Fragment) -> bool {
        self.name == other.name
    }
}

impl Eq for Fragment {}

/// The table. A new shape is a new row.
static FRAGMENTS: [Fragment; 12] = [
    Fragment { name: "D16x8", threads: 32, rows: 16, columns: Some(8), place: d16x8 },
    Fragment { name: "A16x16", threads: 32, rows: 16, columns: Some(16), place: a16x16 },
    Fragment { name: "B16x16", threads: 32, rows: 16, columns: Some(16), place: b16x16 },
    Fragment { name: "D8x8", threads: 32, rows: 8, columns: Some(8), place: d8x8 },
    Fragment { name: "A8x4", threads: 32, rows: 8, columns: Some(4), place: a8x4 },
    Fragment { name: "B4x8", threads: 32, rows: 4, columns: Some(8), place: b4x8 },
    Fragment { name: "A16x4", threads: 32, rows: 16, columns: Some(4), place: a16_f64 },
    Fragment { name: "A16x8", threads: 32, rows: 16, columns: Some(8), place: a16_f64 },
    Fragment { name: "A16x16_f64", threads: 32, rows: 16, columns: Some(16), place: a16_f64 },
    Fragment { name: "B8x8", threads: 32, rows: 8, columns: Some(8), place: bx8_f64 },
    Fragment { name: "B16x8", threads: 32, rows: 16, columns: Some(8), place: bx8_f64 },
    Fragment { name: "D64xN", threads: 128, rows: 64, columns: None, place: d64xn },
];

impl Fragment {
    /// Every known fragment.
    pub fn all() -> &'static [Fragment] {
        &FRAGMENTS
    }

    /// The fragment of that name.
    pub fn by_name(name: &str) -> Option<&'static Fragment> {
        FRAGMENTS.iter().find(|f| f.name == name)
    }

    /// Registers (elements) per thread for a tile of the given extents; `None` if the fragment has no such tile.
    pub fn registers(&self, rows: i64, columns: i64) -> Option<i64> {
        let fits =
            rows == self.rows && self.columns.map_or(columns > 0 && columns % 8 == 0, |c| c == columns);
        fits.then(|| rows * columns / self.threads)
    }

    /// `(row, column) -> (thread, register)` for a tile of the given extents, by enumeration.
    pub fn owners(&self, rows: i64, columns: i64) -> Option<HashMap<(i64, i64), (i64, i64)>> {
        let registers = self.registers(rows, columns)?;
        let mut owners = HashMap::new();
        for thread in 0..self.threads {
            for register in 0..registers {
                let (row, column) = (self.place)(&thread.into(), &register.into());
                let element = (row.as_constant()?, column.as_constant()?);
                if element.0 >= rows
                    || element.1 >= columns
                    || owners.insert(element, (thread, register)).is_some()
                {
                    return None;
                }
            }
        }
        Some(owners)
    }

    /// Whether a thread has the elements of a row in runs: of every `run` of them, beginning at a multiple, one thread
    /// has all, in registers that follow one another from a multiple of `run` on.
    pub fn has_runs(&self, rows: i64, columns: i64, run: i64) -> bool {
        let Some(owners) = self.owners(rows, columns) else { return false };
        run > 0
            && columns % run == 0
            && owners.iter().all(|((row, column), (thread, register))| {
                let within = column % run;
                register % run == within
                    && owners.get(&(*row, column - within)) == Some(&(*thread, register - within))
            })
    }
}

fn d16x8(t: &Index, r: &Index) -> (Index, Index) {
    (&t.div(4) + &r.div(2).scaled(8), &t.rem(4).scaled(2) + &r.rem(2))
}

fn a16x16(t: &Index, r: &Index) -> (Index, Index) {
    (&t.div(4) + &r.div(2).rem(2).scaled(8), &(&t.rem(4).scaled(2) + &r.rem(2)) + &r.div(4).scaled(8))
}

fn b16x16(t: &Index, r: &Index) -> (Index, Index) {
    (&(&t.rem(4).scaled(2) + &r.rem(2)) + &r.div(2).rem(2).scaled(8), &t.div(4) + &r.div(4).scaled(8))
}

fn d8x8(t: &Index, r: &Index) -> (Index, Index) {
    (t.div(4), &t.rem(4).scaled(2) + r)
}

fn a8x4(t: &Index, r: &Index) -> (Index, Index) {
    (t.div(4), &t.rem(4) + r)
}

fn b4x8(t: &Index, r: &Index) -> (Index, Index) {
    (&t.rem(4) + r, t.div(4))
}

/// The left operand of the f64 instructions of 16 rows, whatever their number of terms.
fn a16_f64(t: &Index, r: &Index) -> (Index, Index) {
    (&t.div(4) + &r.rem(2).scaled(8), &t.rem(4) + &r.div(2).scaled(4))
}

/// The right operand of the same.
fn bx8_f64(t: &Index, r: &Index) -> (Index, Index) {
    (&t.rem(4) + &r.scaled(4), t.div(4))
}

fn d64xn(t: &Index, r: &Index) -> (Index, Index) {
    let row = &(&t.div(32).scaled(16) + &t.rem(32).div(4)) + &r.div(2).rem(2).scaled(8);
    (row, &(&r.div(4).scaled(8) + &t.rem(4).scaled(2)) + &r.rem(2))
}
