//! Walking and rebuilding statements.

use std::cell::Cell;

use super::body::Body;
use super::statement::{Assign, For, If, Instruction, On, Operand, Own, Role, Stmt, Tasks};
use super::value::rename;
use crate::index::Index;
use crate::sym::Sym;

/// The bodies directly inside a statement, in order.
pub fn bodies(stmt: &Stmt) -> impl Iterator<Item = &Body> {
    let (first, second) = match stmt {
        Stmt::For(For { body, .. })
        | Stmt::Tasks(Tasks { body, .. })
        | Stmt::Own(Own { body, .. })
        | Stmt::On(On { body, .. }) => (Some(body), None),
        Stmt::If(If { then, otherwise, .. }) => (Some(then), Some(otherwise)),
        _ => (None, None),
    };
    first.into_iter().chain(second)
}

/// The bodies directly inside a statement, to be changed in place.
pub fn bodies_mut(stmt: &mut Stmt) -> impl Iterator<Item = &mut Body> {
    let (first, second) = match stmt {
        Stmt::For(For { body, .. })
        | Stmt::Tasks(Tasks { body, .. })
        | Stmt::Own(Own { body, .. })
        | Stmt::On(On { body, .. }) => (Some(body), None),
        Stmt::If(If { then, otherwise, .. }) => (Some(then), Some(otherwise)),
        _ => (None, None),
    };
    first.into_iter().chain(second)
}

/// Calls `visit` for every statement at any depth, outer before inner, in text order.
pub fn for_each<'a>(stmts: &'a [Stmt], visit: &mut dyn FnMut(&'a Stmt)) {
    for stmt in stmts {
        visit(stmt);
        for body in bodies(stmt) {
            for_each(body, visit);
        }
    }
}

/// Replaces each statement, innermost first, by what `f` makes of it.
pub fn rewrite(stmts: Vec<Stmt>, f: &mut dyn FnMut(Stmt) -> Vec<Stmt>) -> Vec<Stmt> {
    let mut out = Vec::with_capacity(stmts.len());
    for mut stmt in stmts {
        for body in bodies_mut(&mut stmt) {
            *body = rewrite(body.take(), f).into();
        }
        out.extend(f(stmt));
    }
    out
}

/// Replaces free variables in a list of statements, and renames buffers, rings and roles for which `with` gives a
/// plain variable. Binders are left alone unless they too are renamed: symbols are unique, so nothing is captured.
pub fn substitute(stmts: &[Stmt], with: &dyn Fn(&Sym) -> Option<Index>) -> Vec<Stmt> {
    stmts.iter().map(|s| substitute_stmt(s, with)).collect()
}

/// The same body where nothing is replaced.
fn substitute_body(body: &Body, with: &dyn Fn(&Sym) -> Option<Index>) -> Body {
    let replaces = Cell::new(false);
    let noted = |s: &Sym| {
        let new = with(s);
        replaces.set(replaces.get() || new.is_some());
        new
    };
    let new = substitute(body, &noted);
    if replaces.get() { new.into() } else { body.clone() }
}

fn substitute_stmt(stmt: &Stmt, with: &dyn Fn(&Sym) -> Option<Index>) -> Stmt {
    let sym = |s: &Sym| rename(s, with);
    let syms = |v: &[Sym]| v.iter().map(sym).collect();
    match stmt {
        Stmt::For(l) => Stmt::For(For {
            var: sym(&l.var),
            mode: l.mode,
            range: l.range.substitute(with),
            counting: l.counting.as_ref().map(sym),
            body: substitute_body(&l.body, with),
        }),
        Stmt::Tasks(t) => Stmt::Tasks(Tasks {
            vars: syms(&t.vars),
            extents: t.extents.iter().map(|e| e.substitute(with)).collect(),
            start: t.start.substitute(with),
            stride: t.stride.substitute(with),
            body: substitute_body(&t.body, with),
        }),
        Stmt::Own(o) => Stmt::Own(Own {
            vars: syms(&o.vars),
            run: o.run,
            lane_base: o.lane_base,
            window: o.window.substitute(with),
            body: substitute_body(&o.body, with),
        }),
        Stmt::If(i) => Stmt::If(If {
            cond: i.cond.substitute(with),
            then: substitute_body(&i.then, with),
            otherwise: substitute_body(&i.otherwise, with),
        }),
        Stmt::Let(var, value) => Stmt::Let(sym(var), value.substitute(with)),
        Stmt::Alloc(buffer) => {
            let mut buffer = buffer.clone();
            buffer.sym = sym(&buffer.sym);
            buffer.role = buffer.role.as_ref().map(sym);
            for dim in &mut buffer.dims {
                dim.extent = dim.extent.substitute(with);
            }
            Stmt::Alloc(buffer)
        }
        Stmt::AllocRing(ring) => {
            let mut ring = ring.clone();
            ring.sym = sym(&ring.sym);
            Stmt::AllocRing(ring)
        }
        Stmt::Roles(roles) => {
            Stmt::Roles(roles.iter().map(|r| Role { sym: sym(&r.sym), ..r.clone() }).collect())
        }
        Stmt::On(on) => Stmt::On(On { role: sym(&on.role), body: substitute_body(&on.body, with) }),
        Stmt::Assign(a) => Stmt::Assign(Assign {
            target: a.target.substitute(with),
            op: a.op,
            atomic: a.atomic,
            value: a.value.substitute(with),
        }),
        Stmt::Instruction(i) => Stmt::Instruction(Instruction {
            name: i.name.clone(),
            operands: i.operands.iter().map(|o| substitute_operand(o, with)).collect(),
            signal: i.signal.as_ref().map(|(ring, n)| (sym(ring), n.substitute(with))),
        }),
        Stmt::Sync(s) => Stmt::Sync(*s),
        Stmt::Arrive { ring, ordinal, bytes } => Stmt::Arrive {
            ring: sym(ring),
            ordinal: ordinal.substitute(with),
            bytes: bytes.as_ref().map(|b| b.substitute(with)),
        },
        Stmt::Await { ring, ordinal } => Stmt::Await { ring: sym(ring), ordinal: ordinal.substitute(with) },
    }
}

fn substitute_operand(operand: &Operand, with: &dyn Fn(&Sym) -> Option<Index>) -> Operand {
    match operand {
        Operand::Window(w) => Operand::Window(w.substitute(with)),
        Operand::Scalar(i) => Operand::Scalar(i.substitute(with)),
    }
}

/// Calls `visit` for every symbol that statements mention at any depth, in indices, conditions, ranges and accesses or
/// as what they bind: all that [`substitute`] asks for.
pub fn for_each_symbol(stmts: &[Stmt], visit: &mut dyn FnMut(&Sym)) {
    for_each(stmts, &mut |stmt| for_each_symbol_of(stmt, visit));
}

/// As [`for_each_symbol`] for a statement itself, without those inside it.
pub fn for_each_symbol_of(stmt: &Stmt, visit: &mut dyn FnMut(&Sym)) {
    match stmt {
        Stmt::For(l) => {
            visit(&l.var);
            l.range.for_each_var(visit);
            l.counting.iter().for_each(visit);
        }
        Stmt::Tasks(t) => {
            t.vars.iter().for_each(&mut *visit);
            t.extents.iter().chain([&t.start, &t.stride]).for_each(|i| i.for_each_var(visit));
        }
        Stmt::Own(o) => {
            o.vars.iter().for_each(&mut *visit);
            o.window.for_each_symbol(visit);
        }
        Stmt::If(i) => i.cond.for_each_var(visit),
        Stmt::Let(var, value) => {
            visit(var);
            value.for_each_var(visit);
        }
        Stmt::Alloc(buffer) => {
            visit(&buffer.sym);
            buffer.role.iter().for_each(&mut *visit);
            buffer.dims.iter().for_each(|dim| dim.extent.for_each_var(visit));
        }
        Stmt::AllocRing(ring) => visit(&ring.sym),
        Stmt::Roles(roles) => roles.iter().for_each(|r| visit(&r.sym)),
        Stmt::Sync(_) => {}
        Stmt::On(on) => visit(&on.role),
        Stmt::Assign(a) => {
            a.target.for_each_symbol(visit);
            a.value.for_each_symbol(visit);
        }
        Stmt::Instruction(i) => {
            for operand in &i.operands {
                match operand {
                    Operand::Window(w) => w.for_each_symbol(visit),
                    Operand::Scalar(index) => index.for_each_var(visit),
                }
            }
            if let Some((ring, ordinal)) = &i.signal {
                visit(ring);
                ordinal.for_each_var(visit);
            }
        }
        Stmt::Arrive { ring, ordinal, bytes } => {
            visit(ring);
            ordinal.for_each_var(visit);
            bytes.iter().for_each(|b| b.for_each_var(visit));
        }
        Stmt::Await { ring, ordinal } => {
            visit(ring);
            ordinal.for_each_var(visit);
        }
    }
}

/// The symbols that statements bind at any depth: loop variables, ordinals, lets, buffers, rings and roles.
pub fn binders(stmts: &[Stmt]) -> Vec<Sym> {
    let mut out = Vec::new();
    for_each(stmts, &mut |stmt| match stmt {
        Stmt::For(l) => out.extend(std::iter::once(&l.var).chain(&l.counting).cloned()),
        Stmt::Tasks(Tasks { vars, .. }) | Stmt::Own(Own { vars, .. }) => out.extend(vars.iter().cloned()),
        Stmt::Let(var, _) => out.push(var.clone()),
        Stmt::Alloc(buffer) => out.push(buffer.sym.clone()),
        Stmt::AllocRing(ring) => out.push(ring.sym.clone()),
        Stmt::Roles(roles) => out.extend(roles.iter().map(|r| r.sym.clone())),
        _ => {}
    });
    out
}

/// A copy whose binders are all new symbols of the same names: what duplicating code must make.
pub fn refresh(stmts: &[Stmt]) -> Vec<Stmt> {
    let fresh: std::collections::HashMap<Sym, Index> =
        binders(stmts).into_iter().map(|s| (s.clone(), Index::var(&s.fresh()))).collect();
    substitute(stmts, &|s| fresh.get(s).cloned())
}
