//! Layouts as matrices over the field of two elements.
//!
//! Where extents are powers of two, every layout in practice (strides of powers of two, swizzles) sends each bit of the
//! index to a set of bits of the offset, and the offset is their exclusive or. Such a map is injective exactly if its
//! columns are independent, which takes a hundred operations where enumeration takes ten thousand. Axes that only add a
//! stride larger than everything else, such as the stages of a ring, are taken off first, whatever their extent.

use super::Layout;
use crate::index::{Atom, Index};

/// For each bit of a value, the set of index bits that are added up (modulo 2) in it.
type Forms = [u64; 63];

/// `(injective, elements spanned)` for a layout that can be told without enumeration; else `None`.
pub(super) fn span(layout: &Layout, extents: &[i64]) -> Option<(bool, i64)> {
    if extents.iter().any(|e| *e < 1) {
        return None;
    }
    let mut left: Vec<usize> = (0..extents.len()).collect();
    let mut offset = layout.offset.clone();
    // (stride, extent) of the axes taken off, outermost first.
    let mut taken = Vec::new();
    while let Some((at, stride)) = outermost(layout, &left, &offset) {
        let axis = left.remove(at);
        offset = &offset - &Index::var(&layout.axes[axis]).scaled(stride);
        taken.push((stride, extents[axis]));
    }
    let mut spanned = matrix_span(layout, &offset, &left, extents)?;
    for (stride, extent) in taken.into_iter().rev() {
        if !spanned.0 {
            return Some((false, 0));
        }
        if stride < spanned.1 {
            // Perhaps injective all the same.
            return None;
        }
        spanned.1 = stride.checked_mul(extent - 1)?.checked_add(spanned.1)?;
    }
    Some(spanned)
}

/// The axis of largest stride among those that the offset mentions in one linear term and nowhere else.
fn outermost(layout: &Layout, left: &[usize], offset: &Index) -> Option<(usize, i64)> {
    let linear = left.iter().enumerate().filter_map(|(at, axis)| {
        let sym = &layout.axes[*axis];
        let stride = offset.coefficient(sym);
        let only = !(offset - &Index::var(sym).scaled(stride)).mentions(sym);
        (stride > 0 && only).then_some((at, stride))
    });
    linear.max_by_key(|(_, stride)| *stride)
}

fn matrix_span(layout: &Layout, offset: &Index, left: &[usize], extents: &[i64]) -> Option<(bool, i64)> {
    let mut first = 0;
    let mut axes = vec![(0, 0); extents.len()];
    for axis in left {
        let extent = extents[*axis];
        if extent.count_ones() != 1 {
            return None;
        }
        axes[*axis] = (first, extent.trailing_zeros());
        first += extent.trailing_zeros();
    }
    if first > 62 {
        return None;
    }
    let forms = linear(offset, layout, &axes)?;
    // Column `b`: the offset of the index that is 1 in bit `b` only.
    let columns = (0..first).map(|b| (0..63).fold(0u64, |x, bit| x | (((forms[bit] >> b) & 1) << bit)));
    let mut basis: Vec<u64> = Vec::new();
    for column in columns {
        let reduced = basis.iter().fold(column, |x, b| x.min(x ^ b));
        if reduced == 0 {
            return Some((false, 0));
        }
        basis.push(reduced);
        basis.sort_unstable_by(|a, b| b.cmp(a));
    }
    let largest = basis.iter().fold(0u64, |x, b| x.max(x ^ b));
    Some((true, i64::try_from(largest).ok()? + 1))
}

/// The forms of an index, if each of its bits is a sum of index bits: terms of a sum must not share a bit, so that
/// nothing is carried.
fn linear(index: &Index, layout: &Layout, axes: &[(u32, u32)]) -> Option<Forms> {
    if index.constant_term() != 0 {
        return None;
    }
    let mut sum = [0; 63];
    for (atom, c) in index.terms() {
        if *c < 1 || c.count_ones() != 1 {
            return None;
        }
        let part = shifted_up(&linear_atom(atom, layout, axes)?, c.trailing_zeros() as usize)?;
        for (total, form) in sum.iter_mut().zip(part) {
            if *total != 0 && form != 0 {
                return None;
            }
            *total |= form;
        }
    }
    Some(sum)
}

fn linear_atom(atom: &Atom, layout: &Layout, axes: &[(u32, u32)]) -> Option<Forms> {
    let power = |d: i64| (d.count_ones() == 1).then_some(d.trailing_zeros() as usize);
    let mut out = [0; 63];
    match atom {
        Atom::Var(sym) => {
            let (first, bits) = axes[layout.axes.iter().position(|a| a == sym)?];
            for bit in 0..bits {
                out[bit as usize] = 1 << (first + bit);
            }
        }
        Atom::Div(x, d) => {
            let (x, shift) = (linear(x, layout, axes)?, power(*d)?);
            out[..63 - shift].copy_from_slice(&x[shift..]);
        }
        Atom::Mod(x, d) => {
            let (x, kept) = (linear(x, layout, axes)?, power(*d)?);
            out[..kept].copy_from_slice(&x[..kept]);
        }
        Atom::Xor(a, b) => {
            let (a, b) = (linear(a, layout, axes)?, linear(b, layout, axes)?);
            out.iter_mut().zip(a.iter().zip(b)).for_each(|(o, (x, y))| *o = x ^ y);
        }
        Atom::Min(..) | Atom::Max(..) | Atom::Select(..) => return None,
    }
    Some(out)
}

fn shifted_up(forms: &Forms, by: usize) -> Option<Forms> {
    if forms[63 - by..].iter().any(|f| *f != 0) {
        return None;
    }
    let mut out = [0; 63];
    out[by..].copy_from_slice(&forms[..63 - by]);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::{Layout, span};
    use crate::index::Index;
    use crate::sym::Sym;

    /// The matrix and the enumeration agree on every layout that the matrix can tell, right and wrong ones.
    #[test]
    fn agrees_with_enumeration() {
        let (r, c) = (Sym::new("r"), Sym::new("c"));
        let (row, column) = (Index::var(&r), Index::var(&c));
        let mut told = 0;
        for stride in [16, 32, 64] {
            for (shift, period) in [(1, 1), (1, 4), (2, 4), (1, 8), (4, 2)] {
                for piece in [1, 4, 8] {
                    let swizzled = column.div(piece).xor(&row.div(shift).rem(period)).scaled(piece);
                    let offset = &(&row.scaled(stride) + &swizzled) + &column.rem(piece);
                    let layout = Layout { axes: vec![r.clone(), c.clone()], offset };
                    let Some((injective, elements)) = span(&layout, &[16, 32]) else { continue };
                    told += 1;
                    let enumerated = layout.span_by_enumeration(&[16, 32]);
                    assert_eq!(injective, enumerated.is_ok(), "{}", layout.offset);
                    if let Ok(expected) = enumerated {
                        assert_eq!(elements, expected, "{}", layout.offset);
                    }
                }
            }
        }
        assert!(told >= 20, "only {told} layouts told");
    }

    #[test]
    fn what_is_not_linear_is_left_to_enumeration() {
        let (r, c) = (Sym::new("r"), Sym::new("c"));
        let (row, column) = (Index::var(&r), Index::var(&c));
        let layout = |offset: Index| Layout { axes: vec![r.clone(), c.clone()], offset };
        assert_eq!(span(&layout(&row.scaled(16) + &column), &[16, 32]), None);
        assert_eq!(span(&layout(&row.scaled(3) + &column.scaled(2)), &[2, 2]), Some((true, 6)));
        let swizzled = &row.scaled(32) + &column.xor(&row.rem(12));
        assert_eq!(span(&layout(swizzled), &[12, 32]), None);
        assert_eq!(span(&layout(&row.scaled(33) + &column), &[16, 32]), Some((true, 15 * 33 + 32)));
        assert_eq!(span(&layout(&row.scaled(64) + &column), &[12, 32]), Some((true, 11 * 64 + 32)));
        // An axis that the offset does not mention: all its elements share a place.
        assert_eq!(span(&layout(row), &[16, 32]), Some((false, 0)));
    }
}
