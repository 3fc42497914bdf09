//! Where matrices lie in memory: how far apart their rows are, where they start, and what is known of their addresses.

use std::fmt;
use std::str::FromStr;

use warpwright_core::diag::Diagnosis;
use warpwright_core::ir::ALIGNMENT;

/// Row strides of the three matrices as stored, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strides {
    /// Row stride of A.
    pub a: i64,
    /// Row stride of B.
    pub b: i64,
    /// Row stride of C.
    pub c: i64,
}

/// By how many elements each of the three matrices starts behind an address that is aligned for every access, as part of
/// a larger matrix may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offsets {
    /// Elements before A.
    pub a: i64,
    /// Elements before B.
    pub b: i64,
    /// Elements before C.
    pub c: i64,
}

impl FromStr for Offsets {
    type Err = Diagnosis;

    fn from_str(text: &str) -> Result<Offsets, Diagnosis> {
        let numbers: Result<Vec<i64>, _> = text.split(',').map(|n| n.trim().parse::<i64>()).collect();
        match numbers.as_deref() {
            Ok([a, b, c]) if [a, b, c].iter().all(|n| **n >= 0) => Ok(Offsets { a: *a, b: *b, c: *c }),
            _ => Err(Diagnosis::new(format!("`{text}` does not say where A, B and C start"))
                .instead("write three whole numbers of elements, none negative, such as 1,0,0")),
        }
    }
}

/// The bytes of which the addresses of the three matrices are known to be multiples: powers of two up to [`Alignment::MOST`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Alignment {
    /// That of A.
    pub a: i64,
    /// That of B.
    pub b: i64,
    /// That of C.
    pub c: i64,
}

impl Alignment {
    /// The bytes that the widest access moves: what is aligned to them is aligned for every access.
    pub const MOST: i64 = ALIGNMENT;
}

impl Default for Alignment {
    fn default() -> Alignment {
        Alignment { a: Alignment::MOST, b: Alignment::MOST, c: Alignment::MOST }
    }
}

impl fmt::Display for Alignment {
    /// As part of a kernel's name: `_a8_c4` where A and C are aligned to less than [`Alignment::MOST`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut less = [('a', self.a), ('b', self.b), ('c', self.c)]
            .into_iter()
            .filter(|(_, bytes)| *bytes < Alignment::MOST);
        less.try_for_each(|(name, bytes)| write!(f, "_{name}{bytes}"))
    }
}

/// The largest power of two, up to [`Alignment::MOST`], that divides so many bytes.
pub fn alignment(bytes: i64) -> i64 {
    1 << bytes.trailing_zeros().min(Alignment::MOST.trailing_zeros())
}
