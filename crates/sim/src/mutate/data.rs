//! Mistakes in values and indices.

use warpwright_core::index::{Atom, Index};
use warpwright_core::ir::{Access, Assign, AssignOp, BinaryOp, If, Operand, Space, Span, Stmt, Value};
use warpwright_core::sym::Sym;

use super::edit::{self, Body, Site};

fn assign<'a>(site: &'a Site<'_>) -> Option<&'a Assign> {
    if let Stmt::Assign(assign) = site.stmt() { Some(assign) } else { None }
}

pub(super) fn init_dropped(site: &Site<'_>) -> Vec<Body> {
    match assign(site) {
        Some(Assign { op: AssignOp::Store, value: Value::Const(_), .. }) => vec![site.without()],
        _ => Vec::new(),
    }
}

pub(super) fn reduction_made_store(site: &Site<'_>) -> Vec<Body> {
    match assign(site) {
        Some(a @ Assign { op: AssignOp::Reduce(_), .. }) => {
            site.with_each([Stmt::Assign(Assign { op: AssignOp::Store, atomic: false, ..a.clone() })])
        }
        _ => Vec::new(),
    }
}

pub(super) fn done_twice(site: &Site<'_>) -> Vec<Body> {
    match site.stmt() {
        Stmt::Assign(Assign { op: AssignOp::Reduce(_), .. }) | Stmt::Instruction(_) => {
            vec![site.with(vec![site.stmt().clone(), site.stmt().clone()])]
        }
        _ => Vec::new(),
    }
}

fn atomic_made_plain(site: &Site<'_>, shared: bool) -> Vec<Body> {
    match assign(site) {
        Some(a) if a.atomic && (site.buffers[&a.target.buffer].space == Space::Shared) == shared => {
            site.with_each([Stmt::Assign(Assign { atomic: false, ..a.clone() })])
        }
        _ => Vec::new(),
    }
}

pub(super) fn shared_atomic_made_plain(site: &Site<'_>) -> Vec<Body> {
    atomic_made_plain(site, true)
}

pub(super) fn global_atomic_made_plain(site: &Site<'_>) -> Vec<Body> {
    atomic_made_plain(site, false)
}

/// Instead of the fill, the nearest element inside the tensor is read: harmless as long as the other operand is
/// filled and nothing is infinite.
pub(super) fn fill_dropped(site: &Site<'_>) -> Vec<Body> {
    let clamped = |access: &Access| {
        let extents = site.buffers[&access.buffer].dims.iter().map(|d| d.extent.offset(-1));
        let index = access.index.iter().zip(extents).map(|(i, last)| i.minimum(&last)).collect();
        Access { buffer: access.buffer.clone(), index }
    };
    site.with_each(edit::with_value(site.stmt(), &|value| match value {
        Value::Select(_, this, fill) => match (&**this, &**fill) {
            (Value::Load(access), Value::Const(_)) => vec![Value::Load(clamped(access))],
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }))
}

/// Where the guard does not hold nothing is stored: what was there before stays.
pub(super) fn fill_left_out(site: &Site<'_>) -> Vec<Body> {
    let Some(a) = assign(site) else { return Vec::new() };
    match &a.value {
        Value::Select(cond, this, fill) if matches!(**fill, Value::Const(_)) => {
            let store = Stmt::Assign(Assign { value: (**this).clone(), ..a.clone() });
            site.with_each([Stmt::If(If {
                cond: cond.clone(),
                then: vec![store].into(),
                otherwise: Vec::new().into(),
            })])
        }
        _ => Vec::new(),
    }
}

/// `alpha` is left out, or the term of `beta`.
pub(super) fn scalar_dropped(site: &Site<'_>) -> Vec<Body> {
    site.with_each(edit::with_value(site.stmt(), &|value| match value {
        Value::Binary(BinaryOp::Mul, a, b) if matches!(**a, Value::Scalar(_)) => vec![(**b).clone()],
        Value::Binary(BinaryOp::Add, a, b) => match &**b {
            Value::Binary(BinaryOp::Mul, scalar, _) if matches!(**scalar, Value::Scalar(_)) => {
                vec![(**a).clone()]
            }
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }))
}

/// Every index with one of its variables taken once more, or once less if its coefficient is not 1.
fn other_coefficients(index: &Index) -> Vec<Index> {
    let variables = index.terms().iter().filter(|(atom, _)| matches!(atom, Atom::Var(_)));
    let both = variables.flat_map(|(atom, c)| {
        let once = Index::atom(atom.clone());
        let less = (*c != 1).then(|| index - &once);
        [Some(index + &once), less]
    });
    both.flatten().collect()
}

pub(super) fn coefficient_wrong(site: &Site<'_>) -> Vec<Body> {
    let stmt = site.stmt();
    let mut wrong = edit::with_access(stmt, &|a| edit::indices(a, &|_, i| other_coefficients(i)));
    wrong.extend(edit::with_window_start(stmt, &|_, _, start, _| other_coefficients(start)));
    if let Stmt::Let(var, value) = stmt {
        wrong.extend(other_coefficients(value).into_iter().map(|v| Stmt::Let(var.clone(), v)));
    }
    site.with_each(wrong)
}

pub(super) fn index_off_by_one(site: &Site<'_>) -> Vec<Body> {
    let shifted = |a: &Access| edit::indices(a, &|_, i| vec![i.offset(1), i.offset(-1)]);
    site.with_each(edit::with_access(site.stmt(), &shifted))
}

/// Two neighbouring indices of an element or a window have changed places.
pub(super) fn indices_swapped(site: &Site<'_>) -> Vec<Body> {
    let mut wrong = edit::with_access(site.stmt(), &|access| {
        let swapped = |at: usize| {
            let mut access = access.clone();
            access.index.swap(at, at + 1);
            access
        };
        (0..access.index.len().saturating_sub(1)).map(swapped).collect()
    });
    wrong.extend(edit::with_operand(site.stmt(), &|_, operand| {
        let Operand::Window(window) = operand else { return Vec::new() };
        let starts = |at: &usize| match (&window.dims[*at], &window.dims[*at + 1]) {
            (Span::At(a), Span::At(b)) => Some([Span::At(b.clone()), Span::At(a.clone())]),
            (Span::Slice(a, n), Span::Slice(b, m)) => {
                Some([Span::Slice(b.clone(), *n), Span::Slice(a.clone(), *m)])
            }
            _ => None,
        };
        let pairs = (0..window.dims.len().saturating_sub(1)).filter_map(|at| starts(&at).map(|s| (at, s)));
        let swapped = |(at, spans): (usize, [Span; 2])| {
            let mut window = window.clone();
            window.dims.splice(at..at + 2, spans);
            Operand::Window(window)
        };
        pairs.map(swapped).collect()
    }));
    site.with_each(wrong)
}

/// `n % D` becomes `(n + 1) % D`, and a constant stage the next.
pub(super) fn stage_wrong(site: &Site<'_>) -> Vec<Body> {
    let next = |buffer: &Sym, dim: usize, index: &Index| match index.terms() {
        [(Atom::Mod(n, d), 1)] if site.is_stage(buffer, dim, *d) => vec![n.offset(1).rem(*d)],
        _ => Vec::new(),
    };
    let stmt = site.stmt();
    let mut wrong = edit::with_access(stmt, &|a| edit::indices(a, &|dim, i| next(&a.buffer, dim, i)));
    wrong.extend(edit::with_window_start(stmt, &|w, dim, start, _| next(&w.buffer, dim, start)));
    site.with_each(wrong)
}

/// A window starts one element, or its own length, further.
pub(super) fn window_shifted(site: &Site<'_>) -> Vec<Body> {
    site.with_each(edit::with_window_start(site.stmt(), &|_, _, start, length| {
        vec![start.offset(length), start.offset(1)]
    }))
}

pub(super) fn integer_operand_wrong(site: &Site<'_>) -> Vec<Body> {
    site.with_each(edit::with_operand(site.stmt(), &|_, operand| match operand {
        Operand::Scalar(value) => vec![Operand::Scalar(value.offset(1)), Operand::Scalar(value.offset(-1))],
        Operand::Window(_) => Vec::new(),
    }))
}

impl Site<'_> {
    /// Whether a dimension of a shared buffer is a ring of `depth` stages.
    fn is_stage(&self, buffer: &Sym, dim: usize, depth: i64) -> bool {
        let buffer = &self.buffers[buffer];
        buffer.space == Space::Shared && dim == 0 && buffer.dims[0].extent.as_constant() == Some(depth)
    }
}
