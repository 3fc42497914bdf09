//! Vector loops are contiguous and aligned (rule 30): at least one access of the one assignment moves neighbours in
//! memory, and every access that does starts at a multiple of their number and moves 16 bytes at most. The others are
//! done element by element: a row of a tile can be read at once and stored as a column. So are those to shared memory
//! that start so many elements behind a multiple, wherever the loop is: what lies there need not lie as it does in device memory.

use std::collections::HashMap;

use super::operands::{keeps_pieces, row_misaligned, start_misaligned};
use crate::diag::Diagnosis;
use crate::index::{Facts, Index};
use crate::ir::{Access, Buffer, For, Space, Stmt};
use crate::layout::Layout;
use crate::sym::Sym;

/// Faults of a vector loop; `facts` is what is known outside it.
pub(super) fn faults(l: &For, buffers: &HashMap<Sym, Buffer>, facts: &Facts) -> Vec<Diagnosis> {
    let (Some(lanes), [Stmt::Assign(a)]) = (l.range.constant_trip_count(), &l.body[..]) else {
        return Vec::new();
    };
    let mut accesses = vec![&a.target];
    a.value.for_each_access(&mut |load| accesses.push(load));
    let wide: Vec<(&Buffer, Start)> = accesses
        .iter()
        .filter_map(|a| {
            neighbours(a, l, lanes, &buffers[&a.buffer], facts).map(|start| (&buffers[&a.buffer], start))
        })
        .collect();
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

/// What the iterations of a vector loop touch by one of its accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Neighbours in memory, at once.
    Neighbours,
    /// All the same element.
    One,
    /// Elements that lie apart, one by one.
    Apart,
}

/// What each access of a vector loop reaches; `facts` is what is known outside it.
pub fn reaches<'a>(l: &'a For, buffers: &HashMap<Sym, Buffer>, facts: &Facts) -> Vec<(&'a Access, Reach)> {
    let (Some(lanes), [Stmt::Assign(a)]) = (l.range.constant_trip_count(), &l.body[..]) else {
        return Vec::new();
    };
    let mut accesses = vec![&a.target];
    a.value.for_each_access(&mut |load| accesses.push(load));
    let reach = |access: &Access| match buffers.get(&access.buffer) {
        _ if !access.index.iter().any(|i| facts.expanded(i).mentions(&l.var)) => Reach::One,
        Some(buffer) if neighbours(access, l, lanes, buffer, facts).is_some() => Reach::Neighbours,
        _ => Reach::Apart,
    };
    accesses.into_iter().map(|access| (access, reach(access))).collect()
}

/// Where an access that moves to the next element with a vector loop starts.
enum Start {
    /// At this column of its row.
    Column(Index),
    /// At this offset in the buffer.
    Offset(Index),
}

/// Where an access that moves to the next element with the loop starts: at an offset if the buffer has a layout, or if
/// rows follow each other and the loop goes on from one to the next; else at a column. `None` for any other access.
fn neighbours(access: &Access, l: &For, lanes: i64, buffer: &Buffer, facts: &Facts) -> Option<Start> {
    let index: Vec<Index> = access.index.iter().map(|i| facts.expanded(i)).collect();
    let before = |moving: &Index| {
        let start = moving - &Index::var(&l.var);
        (!start.mentions(&l.var)).then_some(start)
    };
    let (last, outer) = index.split_last()?;
    let apart = |start: &Index| buffer.space == Space::Shared && start.is_behind_multiple(lanes);
    if buffer.layout.is_none() && !outer.iter().any(|i| i.mentions(&l.var)) {
        return before(last).filter(|start| !apart(start)).map(Start::Column);
    }
    let layout = match &buffer.layout {
        Some(layout) => layout.clone(),
        None if buffer.row_stride.is_some() || buffer.is_distributed() => return None,
        None => Layout::row_major(&buffer.constant_extents()?),
    };
    let mut inside = facts.clone();
    inside.runs_over(&l.var, &0.into(), &lanes.into(), &1.into());
    before(&inside.simplify(&layout.apply(&index))).filter(|start| !apart(start)).map(Start::Offset)
}

fn misplaced(buffer: &Buffer, start: &Start, lanes: i64, facts: &Facts) -> Option<Diagnosis> {
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
    let (what, first) = match start {
        Start::Column(column) => ("column", column),
        Start::Offset(offset) => ("offset", offset),
    };
    if !facts.is_multiple(first, lanes) {
        return Some(
            Diagnosis::new(format!("{what} {first} of `{}` may not be a multiple of {lanes}", buffer.sym))
                .because("a vector access is aligned to its size")
                .instead("let the vector loop be the inner part of a split by its length"),
        );
    }
    match (start, buffer.space) {
        (Start::Column(_), Space::Shared) => (!keeps_pieces(buffer, lanes)).then(|| {
            Diagnosis::new(format!(
                "{lanes} neighbours of `{}` are not contiguous, or not aligned",
                buffer.sym
            ))
            .because("a row is no multiple of them long")
            .instead("pad rows to multiples by a layout")
        }),
        (Start::Column(_), _) => row_misaligned(buffer, lanes, facts),
        (Start::Offset(_), Space::Shared) => None,
        (Start::Offset(_), _) => start_misaligned(buffer, lanes),
    }
}
