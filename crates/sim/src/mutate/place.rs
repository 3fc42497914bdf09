//! Mistakes in layouts, fragments and sizes of buffers.

use warpwright_core::index::{Atom, Index};
use warpwright_core::ir::{Access, Buffer, Own, Space, Stmt};
use warpwright_core::layout::{Fragment, Layout};

use super::edit::{self, Body, Site};

fn with_layout(site: &Site<'_>, f: impl Fn(&Index) -> Vec<Index>) -> Vec<Body> {
    let Stmt::Alloc(buffer @ Buffer { layout: Some(layout), .. }) = site.stmt() else { return Vec::new() };
    let whole = |offset| {
        let layout = Some(Layout { axes: layout.axes.clone(), offset });
        Stmt::Alloc(Buffer { layout, ..buffer.clone() })
    };
    site.with_each(f(&layout.offset).into_iter().map(whole))
}

/// Every index with one of its atoms replaced.
fn atoms(index: &Index, f: &dyn Fn(&Atom) -> Vec<Index>) -> Vec<Index> {
    let mut out = Vec::new();
    for (atom, coefficient) in index.terms() {
        let rest = index - &Index::atom(atom.clone()).scaled(*coefficient);
        out.extend(f(atom).into_iter().map(|other| &rest + &other.scaled(*coefficient)));
    }
    out
}

/// A layout loses or turns its exclusive or, which the instructions keep; or one element access gains one.
pub(super) fn swizzle_on_one_side(site: &Site<'_>) -> Vec<Body> {
    let mut out = with_layout(site, |offset| {
        atoms(offset, &|atom| match atom {
            Atom::Xor(a, b) => vec![a.clone(), b.clone(), a.xor(&turned(b))],
            _ => Vec::new(),
        })
    });
    let swizzled = |access: &Access| {
        let buffer = &site.buffers[&access.buffer];
        let even = buffer.dims.last().and_then(|d| d.extent.as_constant()).is_some_and(|n| n % 2 == 0);
        match &access.index[..] {
            [.., row, column] if buffer.space == Space::Shared && even => {
                let mut access = access.clone();
                let last = access.index.len() - 1;
                access.index[last] = column.xor(&row.rem(2));
                vec![access]
            }
            _ => Vec::new(),
        }
    };
    out.extend(site.with_each(edit::with_access(site.stmt(), &swizzled)));
    out
}

/// A remainder whose argument is one further.
fn turned(index: &Index) -> Index {
    match index.terms() {
        [(Atom::Mod(x, d), 1)] => x.offset(1).rem(*d),
        _ => index.offset(1),
    }
}

/// A remainder in the layout has another period, or a stride is one short.
pub(super) fn layout_not_injective(site: &Site<'_>) -> Vec<Body> {
    with_layout(site, |offset| {
        let mut out = atoms(offset, &|atom| match atom {
            Atom::Xor(a, b) => match b.terms() {
                [(Atom::Mod(x, d), 1)] => vec![a.xor(&x.rem(d + 1))],
                _ => Vec::new(),
            },
            Atom::Mod(x, d) => vec![x.rem(d - 1)],
            _ => Vec::new(),
        });
        let strides = offset.terms().iter().filter(|(_, c)| *c > 1);
        out.extend(strides.map(|(atom, _)| offset - &Index::atom(atom.clone())));
        out
    })
}

/// The pieces that instructions take whole are rotated within themselves.
pub(super) fn layout_breaks_rows(site: &Site<'_>) -> Vec<Body> {
    with_layout(site, |offset| {
        atoms(offset, &|atom| match atom {
            Atom::Mod(x, d) if d % 2 == 0 => vec![x.offset(d / 2).rem(*d)],
            _ => Vec::new(),
        })
    })
}

/// The layout of another buffer of as many dimensions.
pub(super) fn layout_of_wrong_operand(site: &Site<'_>) -> Vec<Body> {
    let Stmt::Alloc(Buffer { sym, layout: Some(own), .. }) = site.stmt() else { return Vec::new() };
    let axes: Vec<Index> = own.axes.iter().map(Index::var).collect();
    let others = site.buffers.values().filter(|b| b.sym != *sym).filter_map(|b| b.layout.as_ref());
    let fitting = others.filter(|l| l.axes.len() == axes.len());
    let mut offsets: Vec<Index> = fitting.map(|l| l.apply(&axes)).collect();
    offsets.sort_by_key(ToString::to_string);
    with_layout(site, |_| offsets.clone())
}

/// Another fragment that has a tile of the same extents over as many threads.
pub(super) fn fragment_of_wrong_operand(site: &Site<'_>) -> Vec<Body> {
    let Stmt::Alloc(buffer @ Buffer { fragment: Some(fragment), .. }) = site.stmt() else {
        return Vec::new();
    };
    let fits = |other: &&Fragment| {
        other != fragment
            && (other.threads, other.rows, other.columns)
                == (fragment.threads, fragment.rows, fragment.columns)
    };
    let others = Fragment::all().iter().filter(fits).chain(rearranged(fragment));
    site.with_each(others.map(|f| Stmt::Alloc(Buffer { fragment: Some(f), ..buffer.clone() })))
}

/// The 16 x 8 and 64 x N accumulators with their two register bits exchanged.
static EXCHANGED: [Fragment; 2] = [
    Fragment {
        name: "D16x8exchanged",
        threads: 32,
        rows: 16,
        columns: Some(8),
        place: |t, r| (&t.div(4) + &r.rem(2).scaled(8), &t.rem(4).scaled(2) + &r.div(2)),
    },
    Fragment {
        name: "D64xNexchanged",
        threads: 128,
        rows: 64,
        columns: None,
        place: |t, r| {
            let row = &(&t.div(32).scaled(16) + &t.rem(32).div(4)) + &r.rem(2).scaled(8);
            (row, &(&r.div(4).scaled(8) + &t.rem(4).scaled(2)) + &r.div(2).rem(2))
        },
    },
];

fn rearranged(fragment: &Fragment) -> impl Iterator<Item = &'static Fragment> {
    let wanted = format!("{}exchanged", fragment.name);
    EXCHANGED.iter().filter(move |f| f.name == wanted)
}

/// The two variables of an `own` loop have changed places.
pub(super) fn fragment_transposed(site: &Site<'_>) -> Vec<Body> {
    let Stmt::Own(own) = site.stmt() else { return Vec::new() };
    let vars = own.vars.iter().rev().cloned().collect();
    site.with_each([Stmt::Own(Own { vars, ..own.clone() })])
}

/// An extent of an allocated buffer is one short.
pub(super) fn buffer_one_short(site: &Site<'_>) -> Vec<Body> {
    let Stmt::Alloc(buffer) = site.stmt() else { return Vec::new() };
    let short = |at: usize| {
        let mut buffer = buffer.clone();
        buffer.dims[at].extent = buffer.dims[at].extent.offset(-1);
        Stmt::Alloc(buffer)
    };
    site.with_each((0..buffer.dims.len()).map(short))
}
