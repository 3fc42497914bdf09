//! Elements that follow each other in a matrix, as one bulk copy, or as one for each row of a tile.
//!
//! A copy begins and ends at multiples of 16 bytes. Where the first element that is wanted stands behind such a place, the copy begins with the elements
//! before it, if they are there for certain; what lies behind the last one is copied too, and read by nobody.

use super::fill::Fill;
use crate::index::{Cond, Index};
use crate::instr::{self, Behaviour};
use crate::ir::{Access, Buffer, For, Instruction, Mode, Operand, Range, Space, Span, Stmt, Window};
use crate::layout::Layout;
use crate::schedule::facts::Facts;
use crate::sym::Sym;

/// Bytes that a bulk copy moves a multiple of, from and to a multiple of as many.
pub(super) const PIECE: i64 = 16;

/// Bytes of a line of a cache, and of all banks of shared memory. A copy whose lines lie across those of shared memory takes longer:
/// A^H B in complex128 of 35, 39 and 41 columns, whose slots were 16 to 112 bytes longer than groups, is 1.03 to 1.05 times as fast where slots
/// begin at multiples of it (an H200, bench/results/h200-2026-11-28-lines-of-shared-memory.txt).
pub(super) const LINE: i64 = 128;

/// A fill that is one bulk copy, or one for each row of a buffer.
pub(super) struct Run {
    /// The buffer that it fills.
    pub tile: Sym,
    /// The copy, in a loop over the rows if there are any, or by one thread if it is a box.
    pub copy: Stmt,
    pub bytes: i64,
    /// Bytes at multiples of which slots begin: as runs do in device memory, [`LINE`] at most, or as boxes have to.
    pub aligned: i64,
    /// Columns of the tile, with those that are its padding, if it is a box.
    pub columns: Option<i64>,
    /// Elements of a run, and how many of them come before the first that is wanted, so that it begins at a multiple of 16 bytes.
    pub elements: i64,
    pub before: i64,
}

/// A fill as bulk copies that fill its larger version and report to a barrier; why it is none.
pub(super) fn run(
    fill: &Fill,
    signal: (Sym, Index),
    larger: &[Buffer],
    facts: &Facts,
) -> Result<Run, String> {
    let Fill { tile, source, target, access, loops, whole } = fill;
    let filled = larger.iter().find(|b| b.sym == tile.sym).unwrap_or(tile);
    let Consecutive { start, elements, row } = consecutive(filled, source, target, access, loops)?;
    let mut facts = facts.clone();
    if let Some((r, rows)) = &row {
        facts.enter_range(r, &(*rows).into());
    }
    let piece = PIECE / tile.dtype.bytes();
    let before = elements_before(&start, piece, row.is_some(), &facts);
    let (Some(before), 0, 0) = (before, elements % piece, source.align % PIECE) else {
        return Err(format!("what `{}` holds may not start and end at multiples of {PIECE} bytes", tile.sym));
    };
    let elements = match tile.constant_extents().as_deref() {
        Some([extent]) if before > 0 => (extent + before + piece - 1) / piece * piece,
        _ => elements,
    };
    let (start, whole) = (start.offset(-before), *whole && before == 0);
    let there = &source.dims[0].extent - &start;
    let valid = if whole || facts.proves(&Cond::le(elements.into(), there.clone())) {
        elements.into()
    } else {
        there.minimum(&elements.into()).maximum(&0.into())
    };
    let record = instr::all()
        .find(|r| {
            let wanted = r.operands.first().and_then(|o| o.window.as_ref());
            r.behaviour == Behaviour::BulkCopy && wanted.is_some_and(|w| w.dtype == Some(tile.dtype))
        })
        .ok_or_else(|| format!("there is no bulk copy of {}", tile.dtype))?;
    let at_row = row.iter().map(|(r, _)| Span::At(Index::var(r)));
    let to = Window { buffer: tile.sym.clone(), dims: at_row.chain([Span::All]).collect() };
    let begins_at = |bytes: &i64| facts.is_multiple(&start, bytes / tile.dtype.bytes());
    let aligned = [LINE, LINE / 2, LINE / 4].into_iter().find(begins_at).unwrap_or(PIECE);
    let from = Window { buffer: source.sym.clone(), dims: vec![Span::Slice(start, elements)] };
    let operands = vec![Operand::Window(to), Operand::Window(from), Operand::Scalar(valid)];
    let copy = Stmt::Instruction(Instruction { name: record.name.into(), operands, signal: Some(signal) });
    let rows = row.as_ref().map_or(1, |(_, rows)| *rows);
    let copy = match row {
        Some((r, _)) => For::with_mode(&r, Mode::Unroll, Range::upto(rows), vec![copy]),
        None => copy,
    };
    let bytes = rows * elements * tile.dtype.bytes();
    Ok(Run { tile: tile.sym.clone(), copy, bytes, aligned, columns: None, before, elements })
}

/// How many elements before the first a copy has to begin, which are there, so that it begins at a multiple of whole pieces; rows of a tile
/// cannot begin earlier.
fn elements_before(start: &Index, piece: i64, rows: bool, facts: &Facts) -> Option<i64> {
    let most = if rows { 1 } else { piece };
    let there = |before: &i64| *before == 0 || facts.proves(&Cond::le(0.into(), start.offset(-before)));
    (0..most).find(|before| facts.is_multiple(&start.offset(-before), piece)).filter(there)
}

/// Elements that follow each other in a matrix and in a tile, or in each row of a tile.
struct Consecutive {
    /// Where in the matrix they begin.
    start: Index,
    elements: i64,
    /// The loop over the rows, if there are any, and how many there are.
    row: Option<(Sym, i64)>,
}

/// The elements that a fill copies, if they follow each other.
fn consecutive(
    tile: &Buffer,
    source: &Buffer,
    target: &[Index],
    access: &Access,
    loops: &[Sym],
) -> Result<Consecutive, String> {
    let extents = tile.constant_extents().ok_or("the extents of a tile are not constant")?;
    let ([from], 1, Some(&elements)) = (&access.index[..], source.dims.len(), extents.last()) else {
        return Err(format!("`{}` is no run of consecutive elements", tile.sym));
    };
    let in_another_order = || format!("`{}` is stored in another order than it is read", tile.sym);
    let (row, to) = match target {
        [to] => (None, to),
        [row, to] => match row.as_var().filter(|r| loops.contains(r)) {
            Some(r) => (Some((r.clone(), extents[0])), to),
            None => return Err(in_another_order()),
        },
        _ => return Err(format!("`{}` has more than rows of consecutive elements", tile.sym)),
    };
    let start = from - to;
    let of_row = |v: &Sym| row.as_ref().is_some_and(|(r, _)| r == v);
    if loops.iter().any(|v| start.mentions(v) && !of_row(v)) || tile.space != Space::Shared {
        return Err(in_another_order());
    }
    let as_they_are = match &tile.layout {
        None => true,
        Some(layout) => row.is_some() && rows_at_pieces(layout, tile.dtype.bytes()),
    };
    if !as_they_are {
        return Err(format!(
            "rows of `{}` do not start at multiples of {PIECE} bytes, or are parted",
            tile.sym
        ));
    }
    Ok(Consecutive { start, elements, row })
}

/// Whether the elements of a row follow each other in this layout of two axes, and rows begin at multiples of what bulk copies move.
fn rows_at_pieces(layout: &Layout, bytes: i64) -> bool {
    let [_, column] = &layout.axes[..] else { return false };
    !(&layout.offset - &Index::var(column)).mentions(column) && layout.at(&[1, 0]) * bytes % PIECE == 0
}
