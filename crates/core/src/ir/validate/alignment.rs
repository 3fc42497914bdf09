//! Vector loops are contiguous and aligned (rule 30): each access of the one assignment moves neighbours, from a
//! multiple of their number on, 16 bytes at most.

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
    let mut faults: Vec<Diagnosis> = access(&a.target, l, lanes, true, buffers, facts).into_iter().collect();
    a.value.for_each_access(&mut |load| faults.extend(access(load, l, lanes, false, buffers, facts)));
    faults
}

fn access(
    access: &Access,
    l: &For,
    lanes: i64,
    stored: bool,
    buffers: &HashMap<Sym, Buffer>,
    facts: &Facts,
) -> Option<Diagnosis> {
    let buffer = &buffers[&access.buffer];
    let index: Vec<Index> = access.index.iter().map(|i| facts.expanded(i)).collect();
    let (last, outer) = index.split_last()?;
    let start = last - &Index::var(&l.var);
    let moves_neighbours = !start.mentions(&l.var) && outer.iter().all(|i| !i.mentions(&l.var));
    if !moves_neighbours {
        let same = index.iter().all(|i| !i.mentions(&l.var));
        // A load of one element for all lanes is no vector access, and no harm.
        return (stored || !same).then(|| {
            Diagnosis::new(format!(
                "`{}` does not move along its last dimension with `{}`",
                buffer.sym, l.var
            ))
            .because("a vector access moves neighbours")
            .instead(format!(
                "vectorise a loop whose variable is added to the last index, such as c + {}",
                l.var
            ))
        });
    }
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
    if !facts.is_multiple(&start, lanes) {
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
