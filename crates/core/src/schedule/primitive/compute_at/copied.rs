//! What a stage copies, if it is a plain copy: then the bounds of the source say which of its elements exist.

use crate::index::{Cond, Index};
use crate::ir::{Assign, AssignOp, Buffer, Stmt};
use crate::schedule::rewrite::guarded_load;
use crate::sym::Sym;

/// What a stage copies.
pub(super) enum Copied<'a> {
    /// The elements of a buffer, each at its own indices.
    AsIs(&'a Sym),
    /// A buffer of one dimension, in rows.
    InRows,
    /// The same with what is left over behind the last whole row: the elements for which this holds, and elsewhere a number.
    WithRest { exists: Cond, otherwise: f64 },
    /// A buffer of one dimension, in rows of so many elements that start with the piece in which they start.
    InPieces { columns: i64, piece: i64 },
}

impl Copied<'_> {
    /// What the nests of a stage, each of these loops around these statements, copy to its buffer.
    pub(super) fn of<'a>(buffer: &Buffer, nests: &'a [(Vec<Sym>, Vec<Stmt>)]) -> Option<Copied<'a>> {
        let [(vars, inner)] = nests else { return None };
        let [Stmt::Assign(Assign { op: AssignOp::Store, value, .. })] = &inner[..] else { return None };
        let (guard, access, otherwise) = guarded_load(value)?;
        let index: Vec<Index> = vars.iter().map(Index::var).collect();
        match (&access.index[..], &index[..]) {
            ([from], [r, p, v]) => {
                let [rows, _, piece] = &buffer.dims[..] else { return None };
                let piece = piece.extent.as_constant()?;
                // The elements of a row, told by where the first row starts that starts with a piece.
                let columns = from.eval(&|s| Some(if *s == vars[0] { piece } else { 0 })).ok()? / piece;
                let start = &(&r.scaled(columns).div(piece) + p).scaled(piece) + v;
                let exists = Cond::lt(start.clone(), rows.extent.scaled(columns));
                (*from == start && guard == exists).then_some(Copied::InPieces { columns, piece })
            }
            (from, to) if from == to && guard == Cond::TRUE => Some(Copied::AsIs(&access.buffer)),
            ([from], [r, c]) => {
                let columns = buffer.dims[1].extent.as_constant()?;
                let all = guard == Cond::TRUE;
                let copied = if all { Copied::InRows } else { Copied::WithRest { exists: guard, otherwise } };
                (*from == &r.scaled(columns) + c).then_some(copied)
            }
            _ => None,
        }
    }

    /// Whether it has this number where it copies nothing.
    pub(super) fn fills_with(&self, number: f64) -> bool {
        match self {
            Copied::WithRest { otherwise, .. } => *otherwise == number,
            _ => true,
        }
    }
}
