//! Fission: the one move on which staging, reordering and every barrier rest.
//!
//! A loop whose iterations are independent may be distributed over the statements of its body, and interchanged with
//! a loop directly inside whose bounds do not depend on it. Doing both down a path sinks the loop:
//!
//! ```text
//! for t { alloc acc: f32[8] reg            alloc acc: f32[T, 8] reg
//!         init(acc)                        for t { init(acc[t]) }
//!         for k { use(acc) }        =>     for k { for t { use(acc[t]) } }
//!         store(acc) }                     for t { store(acc[t]) }
//! ```
//!
//! What lives across the cut gains the loop as a dimension; of registers it is distributed over threads if the loop is a
//! thread loop.

use std::collections::HashMap;

use super::{Facts, head, independent, mentions};
use crate::diag::Diagnosis;
use crate::index::Index;
use crate::ir::{Access, Buffer, Dim, For, If, Mode, Operand, Range, Space, Span, Stmt, Value, Window, walk};
use crate::sym::Sym;

/// Moves the loop `l` inward until it stands directly inside the loop for which `target` holds.
///
/// # Errors
/// If iterations of `l` are not independent, or something on the way depends on `l`.
pub(in crate::schedule) fn sink(
    l: For,
    target: &dyn Fn(&For) -> bool,
    facts: &Facts,
) -> Result<Vec<Stmt>, Diagnosis> {
    independent(&l, facts).map_err(|because| {
        Diagnosis::new(format!("the loop `{}` cannot be split over its body", l.var))
            .because(because)
            .instead("move the loop by hand first, or keep it where it is")
    })?;
    sink_checked(l, target)
}

fn sink_checked(l: For, target: &dyn Fn(&For) -> bool) -> Result<Vec<Stmt>, Diagnosis> {
    let Some(at) = l.body.iter().position(|s| contains(s, target)) else {
        return Err(Diagnosis::new(format!("`{}` does not enclose the loop it should move into", l.var)));
    };
    let (mut pieces, hoisted) = distribute(&l, at)?;
    let middle = pieces.iter().position(|p| p.body.iter().any(|s| contains(s, target)));
    let mut out: Vec<Stmt> = hoisted;
    for (i, piece) in pieces.drain(..).enumerate() {
        if Some(i) == middle {
            out.extend(through(piece, target)?);
        } else {
            out.push(Stmt::For(piece));
        }
    }
    Ok(out)
}

/// Takes a loop whose body is one statement (after lets) on the path to the target inside that statement.
fn through(mut piece: For, target: &dyn Fn(&For) -> bool) -> Result<Vec<Stmt>, Diagnosis> {
    inline_lets(&mut piece.body);
    let Some(stmt) = piece.body.pop() else { return Ok(Vec::new()) };
    let depends = |what: &str| {
        Diagnosis::new(format!("`{}` cannot move into {what}", piece.var))
            .because(format!("its bounds depend on `{}`", piece.var))
            .instead("pad the loop to a uniform count and guard its body")
    };
    match stmt {
        Stmt::For(mut inner) => {
            not_into_vector(&piece, &inner)?;
            inner.range = inner.range.substitute(&|s| only_value(&piece).filter(|_| *s == piece.var));
            if range_mentions(&inner.range, &piece.var) {
                return Err(depends(&format!("the loop `{}`", inner.var)));
            }
            let is_target = target(&inner);
            let moved = For { body: inner.body.clone(), ..head(&piece) };
            let body = if is_target { vec![Stmt::For(moved)] } else { sink_checked(moved, target)? };
            Ok(vec![Stmt::For(For { body: body.into(), ..head(&inner) })])
        }
        Stmt::If(mut i) => {
            i.cond = i.cond.substitute(&|s| only_value(&piece).filter(|_| *s == piece.var));
            if i.cond.mentions(&piece.var) {
                return Err(depends("a condition"));
            }
            let arm = |body: Vec<Stmt>| {
                if body.is_empty() {
                    return Ok(body);
                }
                let moved = refresh_loop(For { body: body.into(), ..head(&piece) });
                if moved.body.iter().any(|s| contains(s, target)) {
                    sink_checked(moved, target)
                } else {
                    Ok(vec![Stmt::For(moved)])
                }
            };
            let (then, otherwise) = (arm(i.then.take())?, arm(i.otherwise.take())?);
            Ok(vec![Stmt::If(If { cond: i.cond, then: then.into(), otherwise: otherwise.into() })])
        }
        other => {
            piece.body.push(other);
            Err(Diagnosis::new(format!("`{}` cannot move inward here", piece.var)))
        }
    }
}

/// A vector loop is one access: nothing moves into it.
fn not_into_vector(l: &For, inner: &For) -> Result<(), Diagnosis> {
    if inner.mode != Mode::Vector {
        return Ok(());
    }
    Err(Diagnosis::new(format!("`{}` cannot move into the vector loop `{}`", l.var, inner.var))
        .because("a vector loop is one access")
        .instead("reorder the loops before vectorize"))
}

/// Swaps a loop with the loop directly inside it.
///
/// # Errors
/// If bounds depend on each other or the two carry dependences that the swap would turn round.
pub(in crate::schedule) fn interchange(outer: &For, mut inner: For, facts: &Facts) -> Result<For, Diagnosis> {
    not_into_vector(outer, &inner)?;
    inner.range = inner.range.substitute(&|s| only_value(outer).filter(|_| *s == outer.var));
    if range_mentions(&inner.range, &outer.var) {
        return Err(Diagnosis::new(format!("`{}` and `{}` cannot be swapped", outer.var, inner.var))
            .because(format!("the bounds of `{}` depend on `{}`", inner.var, outer.var)));
    }
    let mut inside = facts.clone();
    inside.enter(outer);
    let whole = For { body: vec![Stmt::For(inner.clone())].into(), ..head(outer) };
    if let Err(because) = independent(&whole, facts)
        && independent(&inner, &inside).is_err()
    {
        return Err(
            Diagnosis::new(format!("`{}` and `{}` cannot be swapped", outer.var, inner.var)).because(because)
        );
    }
    let body = vec![Stmt::For(For { body: inner.body.clone(), ..head(outer) })];
    Ok(For { body: body.into(), ..head(&inner) })
}

/// Splits a loop into one copy for the statements before `at`, one for statement `at`, one for those after. Returns
/// the copies and the allocations that had to move out, which now have the loop as their first dimension.
pub(in crate::schedule) fn distribute(l: &For, at: usize) -> Result<(Vec<For>, Vec<Stmt>), Diagnosis> {
    let mut groups: Vec<Vec<Stmt>> = vec![Vec::new(); 3];
    let mut allocs: Vec<Buffer> = Vec::new();
    let mut lets: Vec<Stmt> = Vec::new();
    for (i, stmt) in l.body.iter().enumerate() {
        match stmt {
            Stmt::Alloc(buffer) => allocs.push(buffer.clone()),
            Stmt::Let(..) => lets.push(stmt.clone()),
            _ => groups[(i > at) as usize + (i >= at) as usize].push(stmt.clone()),
        }
    }
    let mut hoisted = Vec::new();
    for buffer in allocs {
        let users: Vec<usize> = (0..3).filter(|g| mentions(&groups[*g], &buffer.sym)).collect();
        match users[..] {
            [] => {}
            // The middle piece is taken apart further: what it allocates must already stand outside.
            [only] if only != 1 => groups[only].insert(0, Stmt::Alloc(buffer)),
            _ => {
                let expanded = expand(&buffer, l)?;
                for group in &mut groups {
                    *group = index_by(std::mem::take(group), &buffer.sym, &l.var);
                }
                hoisted.push(Stmt::Alloc(expanded));
            }
        }
    }
    let mut copies = Vec::new();
    for (which, group) in groups.into_iter().enumerate().filter(|(_, g)| !g.is_empty()) {
        let needed = needed_lets(&lets, &group);
        let body = needed.into_iter().chain(group).collect();
        let copy = For { body, ..head(l) };
        // The middle piece is taken apart further, and is often the largest: it keeps the names.
        copies.push(if which == 1 { copy } else { refresh_loop(copy) });
    }
    Ok((copies, hoisted))
}

/// The lets that a group uses, directly or through each other.
fn needed_lets(lets: &[Stmt], group: &[Stmt]) -> Vec<Stmt> {
    let mut needed: Vec<Stmt> = Vec::new();
    for stmt in lets.iter().rev() {
        let Stmt::Let(sym, _) = stmt else { continue };
        if mentions(group, sym) || mentions(&needed, sym) {
            needed.insert(0, stmt.clone());
        }
    }
    needed
}

/// A copy of a loop with a new variable and new binders inside.
pub(in crate::schedule) fn refresh_loop(l: For) -> For {
    match walk::refresh(&[Stmt::For(l)]).pop() {
        Some(Stmt::For(l)) => l,
        _ => unreachable!("a copy of a loop is a loop"),
    }
}

/// The buffer with the loop as its first dimension.
fn expand(buffer: &Buffer, l: &For) -> Result<Buffer, Diagnosis> {
    let refuse = |because: &str| {
        Diagnosis::new(format!("`{}` lives across the place where `{}` is split", buffer.sym, l.var))
            .because(because)
    };
    let Some(count) = l.range.constant_trip_count() else {
        return Err(refuse(
            "the loop has no constant number of iterations, so the buffer cannot get a dimension for it",
        ));
    };
    if !matches!(&l.range, Range::Span { lo, step, .. } if lo.as_constant() == Some(0) && step.as_constant() == Some(1))
    {
        return Err(refuse("the loop does not count from 0 by 1"));
    }
    if count == 0 {
        return Err(refuse("the loop has no iterations, and no buffer is empty"));
    }
    let dim = match (l.mode, buffer.space) {
        (Mode::Threads { pitch }, Space::Reg) => Dim::distributed(count, pitch),
        _ => Dim::new(count),
    };
    let mut expanded = buffer.clone();
    expanded.dims.insert(0, dim);
    expanded.layout = None;
    Ok(expanded)
}

/// Gives every access to `buffer` the index `var` in front.
fn index_by(stmts: Vec<Stmt>, buffer: &Sym, var: &Sym) -> Vec<Stmt> {
    map_accesses(
        stmts,
        &|access| {
            if access.buffer == *buffer {
                access.index.insert(0, Index::var(var));
            }
        },
        &|window| {
            if window.buffer == *buffer {
                window.dims.insert(0, Span::At(Index::var(var)));
            }
        },
    )
}

/// Changes every element access and every window in place.
pub(in crate::schedule) fn map_accesses(
    stmts: Vec<Stmt>,
    element: &dyn Fn(&mut Access),
    window: &dyn Fn(&mut Window),
) -> Vec<Stmt> {
    walk::rewrite(stmts, &mut |mut stmt| {
        match &mut stmt {
            Stmt::Assign(a) => {
                element(&mut a.target);
                a.value = a.value.map_accesses(
                    &|access| {
                        let mut access = access.clone();
                        element(&mut access);
                        Value::Load(access)
                    },
                    &Clone::clone,
                );
            }
            Stmt::Instruction(i) => {
                for operand in &mut i.operands {
                    if let Operand::Window(w) = operand {
                        window(w);
                    }
                }
            }
            Stmt::Own(o) => window(&mut o.window),
            _ => {}
        }
        vec![stmt]
    })
}

/// Replaces lets by their values in what follows them, and removes them.
pub(in crate::schedule) fn inline_lets(body: &mut Vec<Stmt>) {
    let mut values: HashMap<Sym, Index> = HashMap::new();
    let mut out = Vec::with_capacity(body.len());
    for stmt in body.drain(..) {
        if let Stmt::Let(sym, value) = stmt {
            let value = value.substitute(&|s| values.get(s).cloned());
            values.insert(sym, value);
        } else if values.is_empty() {
            out.push(stmt);
        } else {
            out.extend(walk::substitute(&[stmt], &|s| values.get(s).cloned()));
        }
    }
    *body = out;
}

/// Whether a statement is, or holds at any depth, a loop for which `target` holds.
pub(in crate::schedule) fn contains(stmt: &Stmt, target: &dyn Fn(&For) -> bool) -> bool {
    let mut found = false;
    walk::for_each(std::slice::from_ref(stmt), &mut |s| {
        if let Stmt::For(l) = s {
            found |= target(l);
        }
    });
    found
}

/// The value of the variable of a loop that runs once: bounds inside need not depend on it.
fn only_value(l: &For) -> Option<Index> {
    match &l.range {
        Range::Span { lo, .. } if l.range.constant_trip_count() == Some(1) => Some(lo.clone()),
        _ => None,
    }
}

fn range_mentions(range: &Range, var: &Sym) -> bool {
    match range {
        Range::Span { lo, hi, step } => lo.mentions(var) || hi.mentions(var) || step.mentions(var),
        Range::List(_) => false,
        Range::Part { index, parts, lo, hi } => [index, parts, lo, hi].iter().any(|i| i.mentions(var)),
    }
}
