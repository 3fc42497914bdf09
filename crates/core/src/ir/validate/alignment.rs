//! Vector loops are contiguous and aligned (rule 30): at least one access of the one assignment moves neighbours in
//! memory, and every access that does starts at a multiple of their number and moves 16 bytes at most. The others are
//! done element by element: a row of a tile can be read at once and stored as a column.

use std::collections::HashMap;

use super::operands::{keeps_pieces, row_misaligned};
use crate::diag::Diagnosis;
use crate::index::{Facts, Index};
use crate::ir::{Access, Buffer, For, Space, Stmt};
use crate::sym::Sym;

/// Faults of a vector loop; `facts` is what is known outside it.
pub(super) fn faults(l: &For, buffers: &HashMap<Sym, Buffer>, facts: &Facts) -> Vec<Diagnosis> {
    let (Some(lanes), [Stmt::Assign(a)]) = (l.range.constant_trip_count(), &l.body[..]) else {
        return Vec::new();
    };
    let mut accesses = vec![&a.target];
    a.value.for_each_access(&mut |load| accesses.push(load));
    let wide: Vec<(&Buffer, Index)> =
        accesses.iter().filter_map(|a| neighbours(a, l, lanes, &buffers[&a.buffer], facts)).collect();
    if wide.iter().all(|(buffer, _)| buffer.space == Space::Reg) {
        let fault = Diagnosis::new(format!("no access moves to the next element with `{}`", l.var))
            .because("a vector access moves neighbours in memory")
            .instead(format!(
                "vectorise a loop whose variable is added to the last index, such as c + {}, or the one that the layout makes contiguous",
                l.var
            ));
        return vec![fault];
    }
    wide.iter().filter_map(|(buffer, start)| misplaced(buffer, start, lanes, facts)).collect()
}

/// The buffer of an access that moves to the next element with the loop, and where it starts: the first offset if the
/// buffer has a layout, else the first column. `None` for any other access.
fn neighbours<'a>(
    access: &Access,
    l: &For,
    lanes: i64,
    buffer: &'a Buffer,
    facts: &Facts,
) -> Option<(&'a Buffer, Index)> {
    let index: Vec<Index> = access.index.iter().map(|i| facts.expanded(i)).collect();
    let moving = match &buffer.layout {
        Some(layout) => {
            let mut inside = facts.clone();
            inside.runs_over(&l.var, &0.into(), &lanes.into(), &1.into());
            inside.simplify(&layout.apply(&index))
        }
        None => {
            let (last, outer) = index.split_last()?;
            (!outer.iter().any(|i| i.mentions(&l.var))).then(|| last.clone())?
        }
    };
    let start = &moving - &Index::var(&l.var);
    (!start.mentions(&l.var)).then_some((buffer, start))
}

fn misplaced(buffer: &Buffer, start: &Index, lanes: i64, facts: &Facts) -> Option<Diagnosis> {
    if buffer.space == Space::Reg {
        return None;
    }
    let bytes = lanes * buffer.dtype.bytes();
    if !matches!(bytes, 4 | 8 | 16) {
        return Some(
            Diagnosis::new(format!("{lanes} elements of `{}` are {bytes} bytes", buffer.sym))
                .because("one access moves 4, 8 or 16")
                .instead("split the loop"),
        );
    }
    let what = if buffer.layout.is_some() { "offset" } else { "column" };
    if !facts.is_multiple(start, lanes) {
        return Some(
            Diagnosis::new(format!("{what} {start} of `{}` may not be a multiple of {lanes}", buffer.sym))
                .because("a vector access is aligned to its size")
                .instead("let the vector loop be the inner part of a split by its length"),
        );
    }
    if buffer.space == Space::Shared {
        return (buffer.layout.is_none() && !keeps_pieces(buffer, lanes)).then(|| {
            Diagnosis::new(format!(
                "{lanes} neighbours of `{}` are not contiguous, or not aligned",
                buffer.sym
            ))
            .because("a row is no multiple of them long")
            .instead("pad rows to multiples by a layout")
        });
    }
    row_misaligned(buffer, lanes, facts)
}
