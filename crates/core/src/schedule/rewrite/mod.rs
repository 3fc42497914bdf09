//! Rewrites that several primitives share. Each keeps the meaning of the program it is given.

mod cover;
mod effects;
mod fission;
mod guard;
mod parallel;
mod region;
mod retile;
mod stages;
mod storage;
mod unify;
mod wide;

pub(super) use cover::{alike, covers};
pub(super) use effects::{Effects, count_uses};
pub(super) use fission::{contains, distribute, inline_lets, interchange, map_accesses, refresh_loop, sink};
pub(super) use guard::{bounds as guard_bounds, guard_leaves, guard_loads, guarded_load};
pub(super) use parallel::{independent, parallel};
pub(super) use region::{Extent, hull};
pub(super) use retile::{Tiling, own_nests, retile};
pub(super) use stages::Stages;
pub(super) use storage::{Storage, strided, with_layout};
pub(super) use unify::{Nest, Pattern};
pub(super) use wide::Neighbours;

use super::facts::Facts;
use super::handle::LoopRef;
use crate::diag::Diagnosis;
use crate::index::Cond;
use crate::ir::{For, If, On, Own, Program, Stmt, Tasks, walk};
use crate::sym::Sym;

/// A place in a program: what stands around it. What is known there is put together when somebody asks.
pub(super) struct Place<'a> {
    /// The program it is part of.
    pub program: &'a Program,
    /// The place outside the innermost statement around this one, and that statement.
    around: Option<(&'a Place<'a>, Around<'a>)>,
}

/// What a statement says to those inside it.
enum Around<'a> {
    For(&'a For),
    Tasks(&'a Tasks),
    Given(Cond),
}

impl<'a> Place<'a> {
    /// The host scope of a program.
    pub fn of(program: &'a Program) -> Place<'a> {
        Place { program, around: None }
    }

    fn inside(&'a self, around: Around<'a>) -> Place<'a> {
        Place { program: self.program, around: Some((self, around)) }
    }

    /// What is known here.
    pub fn facts(&self) -> Facts {
        let Some((outside, around)) = &self.around else { return Facts::of(self.program) };
        let mut facts = outside.facts();
        match around {
            Around::For(l) => facts.enter(l),
            Around::Tasks(t) => {
                t.vars.iter().zip(&t.extents).for_each(|(v, e)| facts.enter_range(v, e));
            }
            Around::Given(cond) => facts.assume(cond),
        }
        facts
    }

    /// The loops around this place, outermost first.
    pub fn outer(&self) -> Vec<&'a For> {
        let Some((outside, around)) = &self.around else { return Vec::new() };
        let mut outer = outside.outer();
        if let Around::For(l) = around {
            outer.push(*l);
        }
        outer
    }

    /// The statement with every body replaced by what `f` makes of it.
    ///
    /// # Errors
    /// Whatever `f` says.
    pub fn rebuild(&self, stmt: &Stmt, f: &mut Rebuild) -> Result<Stmt, Diagnosis> {
        Ok(match stmt {
            Stmt::For(l) => {
                let body = f(&l.body, &self.inside(Around::For(l)))?;
                Stmt::For(For { body, ..head(l) })
            }
            Stmt::If(i) => Stmt::If(If {
                cond: i.cond.clone(),
                then: f(&i.then, &self.inside(Around::Given(i.cond.clone())))?,
                otherwise: f(&i.otherwise, &self.inside(Around::Given(i.cond.clone().negate())))?,
            }),
            Stmt::Tasks(t) => Stmt::Tasks(Tasks {
                body: f(&t.body, &self.inside(Around::Tasks(t)))?,
                vars: t.vars.clone(),
                extents: t.extents.clone(),
                start: t.start.clone(),
                stride: t.stride.clone(),
            }),
            Stmt::Own(o) => {
                Stmt::Own(Own { vars: o.vars.clone(), window: o.window.clone(), body: f(&o.body, self)? })
            }
            Stmt::On(on) => Stmt::On(On { role: on.role.clone(), body: f(&on.body, self)? }),
            leaf => leaf.clone(),
        })
    }
}

/// Makes a body anew, at its place.
pub(super) type Rebuild<'f> = dyn FnMut(&[Stmt], &Place) -> Result<Vec<Stmt>, Diagnosis> + 'f;

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
    let mut count = 0;
    let body = rewrite_loops(&program.body, &Place::of(program), &mut |l, place| {
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
        let replacement = if let Stmt::For(l) = stmt { f(l, place)? } else { None };
        match replacement {
            Some(replacement) => out.extend(replacement),
            None => out.push(place.rebuild(stmt, &mut |body, place| rewrite_loops(body, place, f))?),
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
