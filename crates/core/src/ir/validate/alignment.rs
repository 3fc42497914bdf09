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
        accesses.iter().filter_map(|a| Some((&buffers[&a.buffer], neighbours(a, &l.var, facts)?))).collect();
    if wide.iter().all(|(buffer, _)| buffer.space == Space::Reg) {
        let fault = Diagnosis::new(format!("no access moves along its last dimension with `{}`", l.var))
            .because("a vector access moves neighbours in memory")
            .instead(format!(
                "vectorise a loop whose variable is added to the last index, such as c + {}",
                l.var
            ));
        return vec![fault];
    }
    wide.iter().filter_map(|(buffer, start)| misplaced(buffer, start, lanes, facts)).collect()
}

/// The first column of an access that moves along its last dimension one by one; `None` for any other.
fn neighbours(access: &Access, var: &Sym, facts: &Facts) -> Option<Index> {
    let index: Vec<Index> = access.index.iter().map(|i| facts.expanded(i)).collect();
    let (last, outer) = index.split_last()?;
    let start = last - &Index::var(var);
    (!start.mentions(var) && outer.iter().all(|i| !i.mentions(var))).then_some(start)
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
    if !facts.is_multiple(start, lanes) {
        return Some(
            Diagnosis::new(format!("column {start} of `{}` may not be a multiple of {lanes}", buffer.sym))
                .because("a vector access is aligned to its size")
                .instead("let the vector loop be the inner part of a split by its length"),
        );
    }
    if buffer.space == Space::Shared {
        return (!keeps_pieces(buffer, lanes)).then(|| {
            Diagnosis::new(format!(
                "{lanes} neighbours of `{}` are not contiguous, or not aligned",
                buffer.sym
            ))
            .because("its layout takes them apart, or a row is no multiple of them long")
            .instead("pad rows to multiples, or swizzle whole pieces")
        });
    }
    row_misaligned(buffer, lanes, facts)
}
