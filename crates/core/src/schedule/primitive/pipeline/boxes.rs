//! Rows that stand apart, as one box of a matrix: the tensor memory accelerator finds them by itself.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(K: size, A: in f32[K, 24; lda], y: out f32[32]) assume lda%4 == 0 {
//!   for b in block.x(1) {
//!     alloc s: f32[8, 32] shared layout (r, c) => 36*r + c
//!     alloc acc: f32[32@1] reg
//!     for t in threads(32@1) { acc[t] = 0 }
//!     for k in 0..ceil(K, 8) {
//!       for r in 0..8, c in 0..32 { s[r, c] = 8*k + r < K && c < 24 ? A[8*k + r, c] : 0 }
//!       for t in threads(32@1) { acc[t] += s[t%8, t] }
//!     }
//!     for t in threads(32@1) { y[t] = acc[t] }
//!   }
//! }").unwrap();
//! let after = Schedule::run(before, "pipeline(acc.k, 2, via=bulk)").unwrap();
//! let text = after.program().to_string();
//! assert!(text.contains("alloc s: f32[2, 8, 36] shared\n"), "{text}");
//! assert!(text.contains("\
//!           for e in threads(1@1) {
//!             tma_load_f32(s[(k + 1)%2, :, :], A[8*k + 8 +: 8, 0 +: 36]) -> full[k + 1]
//!           }
//!           for e in threads(1@1) {
//!             arrive(full[k + 1], tx 1152)
//!           }
//! "), "{text}");
//! ```
//!
//! What a tile has of columns that the matrix has not is zeros, as the accelerator gives; so its padding (`storage_align`), which takes rows that
//! are read together to different banks, needs no instruction: it is columns of the box. (Where the matrix has such columns, they are copied too, and
//! read by nobody.) Rows have to begin at multiples of 16 bytes, as whoever calls has to promise.
//!
//! That is faster than asynchronous copies only where rows are long: of A^H B on an H200, rows of 512 bytes in 1.03 and 1.04 times, others as fast or
//! slower, down to 0.6 times for rows of 64 bytes (bench/results/h200-2026-11-29-boxes-and-calls-that-begin-early.txt).

use super::fill::Fill;
use super::roles::first;
use super::runs::{LINE, Run};
use crate::index::Index;
use crate::instr::Place as Where;
use crate::ir::{Instruction, Operand, Span, Stmt, Window};
use crate::layout::Layout;
use crate::schedule::facts::Facts;
use crate::sym::Sym;

/// A fill with rows that are some way apart as one copy of a box, which one thread asks for; why it is none.
pub(super) fn run(fill: &Fill, signal: (Sym, Index), facts: &Facts) -> Result<Run, String> {
    let tile = &fill.tile;
    let extents = tile.constant_extents().ok_or("the extents of a tile are not constants")?;
    let [rows, columns] = extents[..] else { return Err(format!("`{}` is no box of a matrix", tile.sym)) };
    let columns = match &tile.layout {
        None => columns,
        Some(layout) => row_length(layout).filter(|length| *length >= columns).ok_or_else(|| {
            format!("rows of `{}` do not follow each other at one distance in shared memory", tile.sym)
        })?,
    };
    let from = fill.window(&[rows, columns])?;
    let record = fill.load(&[rows, columns], Where::Box)?;
    fill.rows_at_pieces(facts)?;
    let to = Window { buffer: tile.sym.clone(), dims: vec![Span::All; 2] };
    let operands = vec![Operand::Window(to), Operand::Window(from)];
    let copy = Stmt::Instruction(Instruction { name: record.name.into(), operands, signal: Some(signal) });
    Ok(Run {
        tile: tile.sym.clone(),
        copy: first("e", 1, vec![copy]),
        bytes: rows * columns * tile.dtype.bytes(),
        aligned: LINE,
        columns: Some(columns),
        elements: rows * columns,
        before: 0,
    })
}

/// The elements from one row to the next in this layout of two axes, in which those of a row follow each other.
fn row_length(layout: &Layout) -> Option<i64> {
    let [row, column] = &layout.axes[..] else { return None };
    let length = layout.at(&[1, 0]);
    let rest = &layout.offset - &(&Index::var(row).scaled(length) + &Index::var(column));
    (rest == Index::default()).then_some(length)
}
