//! Rewrites that several primitives share. Each keeps the meaning of the program it is given.

mod cover;
mod effects;
mod fission;
mod guard;
mod parallel;
mod retile;
mod stages;
mod storage;
mod unify;
mod wide;

pub(super) use cover::alike;
pub(super) use effects::count_uses;
pub(super) use fission::{distribute, inline_lets, interchange, map_accesses, refresh_loop, sink};
pub(super) use guard::{bounds as guard_bounds, guard_leaves, guard_loads, guarded_load};
pub(super) use parallel::{independent, parallel};
pub(super) use retile::{Tiling, own_nests, retile};
pub(super) use stages::Stages;
pub(super) use storage::{Storage, strided, with_layout};
pub(super) use unify::{Nest, Pattern};
pub(super) use wide::Neighbours;

use super::facts::Facts;
use super::handle::LoopRef;
use crate::diag::Diagnosis;
use crate::ir::{For, If, On, Own, Program, Stmt, Tasks, walk};
use crate::sym::Sym;

/// What a rewrite knows of its place.
pub(super) struct Place<'a> {
    /// The program it is part of.
    pub program: &'a Program,
    /// What is known there.
    pub facts: Facts,
    /// The loops around it, outermost first, without bodies.
    pub outer: Vec<For>,
}

impl Place<'_> {
    /// What is known inside a statement; conditions are left to the caller.
    pub fn inside(&self, stmt: &Stmt) -> Place<'_> {
        let mut facts = self.facts.clone();
        let mut outer = self.outer.clone();
        match stmt {
            Stmt::For(l) => {
                facts.enter(l);
                outer.push(head(l));
            }
            Stmt::Tasks(Tasks { vars, extents, .. }) => {
                vars.iter().zip(extents).for_each(|(v, e)| facts.enter_range(v, e));
            }
            _ => {}
        }
        Place { program: self.program, facts, outer }
    }
}

/// The loop without its body.
pub(super) fn head(l: &For) -> For {
    For {
        var: l.var.clone(),
        mode: l.mode,
        range: l.range.clone(),
        counting: l.counting.clone(),
        body: Vec::new(),
    }
}

/// Makes statements of a loop at a place.
pub(super) type Replace<'f> = dyn FnMut(For, &Place) -> Result<Vec<Stmt>, Diagnosis> + 'f;

/// Makes statements of a loop at a place, or leaves it to be walked into.
pub(super) type Offer<'f> = dyn FnMut(&For, &Place) -> Result<Option<Vec<Stmt>>, Diagnosis> + 'f;

/// Rebuilds a program by `f` at every loop that the handle means. `f` gets the loop and its place.
///
/// # Errors
/// Whatever `f` says, or that there is no such loop.
pub(super) fn at_loops(program: &Program, target: &LoopRef, f: &mut Replace) -> Result<Program, Diagnosis> {
    let place = Place { program, facts: Facts::of(program), outer: Vec::new() };
    let mut count = 0;
    let body = rewrite_loops(&program.body, &place, &mut |l, place| {
        if !target.means(l) {
            return Ok(None);
        }
        count += 1;
        f(l.clone(), place).map(Some)
    })?;
    if count == 0 {
        return Err(target.unknown(program));
    }
    Ok(program.with_body(body))
}

/// Walks outer before inner and offers every loop to `f`, which replaces it or leaves it to be walked into.
pub(super) fn rewrite_loops(stmts: &[Stmt], place: &Place, f: &mut Offer) -> Result<Vec<Stmt>, Diagnosis> {
    let mut out = Vec::with_capacity(stmts.len());
    for stmt in stmts {
        match stmt {
            Stmt::For(l) => match f(l, place)? {
                Some(replacement) => out.extend(replacement),
                None => {
                    let body = rewrite_loops(&l.body, &place.inside(stmt), f)?;
                    out.push(Stmt::For(For { body, ..head(l) }));
                }
            },
            Stmt::If(i) => {
                let mut then = place.inside(stmt);
                then.facts.assume(&i.cond);
                let mut otherwise = place.inside(stmt);
                otherwise.facts.assume(&i.cond.clone().negate());
                out.push(Stmt::If(If {
                    cond: i.cond.clone(),
                    then: rewrite_loops(&i.then, &then, f)?,
                    otherwise: rewrite_loops(&i.otherwise, &otherwise, f)?,
                }));
            }
            Stmt::Tasks(t) => {
                let body = rewrite_loops(&t.body, &place.inside(stmt), f)?;
                out.push(Stmt::Tasks(Tasks { body, ..t.clone() }));
            }
            Stmt::Own(o) => {
                let body = rewrite_loops(&o.body, place, f)?;
                out.push(Stmt::Own(Own { body, ..o.clone() }));
            }
            Stmt::On(on) => {
                let body = rewrite_loops(&on.body, place, f)?;
                out.push(Stmt::On(On { role: on.role.clone(), body }));
            }
            other => out.push(other.clone()),
        }
    }
    Ok(out)
}

/// Whether statements mention a symbol as variable or buffer.
pub(super) fn mentions(stmts: &[Stmt], sym: &Sym) -> bool {
    // A substitution visits every use; that it is asked for `sym` is the answer.
    let found = std::cell::Cell::new(false);
    let _ = walk::substitute(stmts, &|s| {
        if s == sym {
            found.set(true);
        }
        None
    });
    found.get()
}

/// Changes every element access in place; windows stay.
pub(super) fn map_elements(stmts: Vec<Stmt>, element: &dyn Fn(&mut crate::ir::Access)) -> Vec<Stmt> {
    map_accesses(stmts, element, &|_| {})
}
