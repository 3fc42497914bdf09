//! Rewrites that several primitives share. Each keeps the meaning of the program it is given.

mod cover;
mod effects;
mod fill;
mod fission;
mod guard;
mod parallel;
mod region;
mod retile;
mod sink;
mod stages;
mod storage;
mod touched;
mod unify;
mod wide;

pub(super) use cover::{alike, covers, values_of};
pub(super) use effects::{Effects, count_uses};
pub(super) use fill::fill;
pub(super) use fission::{contains, distribute, inline_lets, interchange, map_accesses, refresh_loop, sink};
pub(super) use guard::{bounds as guard_bounds, guard_leaves, guard_loads, guarded_load};
pub(super) use parallel::{independent, parallel};
pub(super) use region::{Extent, hull};
pub(super) use retile::{Tiling, own_nests, retile};
pub(super) use sink::{is_thread_like, over_warps, paths_to, sink_threads};
pub(super) use stages::Stages;
pub(super) use storage::{
    Storage, at_block_scope, insert_alloc, is_block, none_allocated_by_blocks, strided, with_layout,
};
pub(super) use touched::Touched;
pub(super) use unify::{Nest, Pattern};
pub(super) use wide::Neighbours;

use super::facts::Facts;
use super::handle::LoopRef;
use crate::diag::Diagnosis;
use crate::index::Cond;
use crate::ir::{Body, For, If, On, Own, Program, Stmt, Tasks, walk};
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
    Own(&'a Own),
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
            Around::Own(o) => facts.enter_own(o, &self.program.buffers()),
            Around::Given(cond) => facts.assume(cond),
        }
        facts
    }

    /// The conditions around this place.
    pub fn given(&self) -> Vec<Cond> {
        let Some((outside, around)) = &self.around else { return Vec::new() };
        let mut given = outside.given();
        if let Around::Given(cond) = around {
            given.push(cond.clone());
        }
        given
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

    /// The list with the bodies of its statements replaced by what `f` makes of them; `None` if it leaves them all.
    ///
    /// # Errors
    /// Whatever `f` says.
    pub fn rebuild_all(&self, stmts: &[Stmt], f: &mut Rebuild) -> Changed {
        each(stmts, |stmt| Ok(self.rebuild(stmt, f)?.map(|stmt| vec![stmt])))
    }

    /// As [`Place::rebuild_all`] for one statement.
    fn rebuild(&self, stmt: &Stmt, f: &mut Rebuild) -> Result<Option<Stmt>, Diagnosis> {
        let body = |new: Vec<Stmt>| Body::from(new);
        Ok(match stmt {
            Stmt::For(l) => {
                let new = f(&l.body, &self.inside(Around::For(l)))?.map(body);
                new.map(|body| Stmt::For(For { body, ..l.clone() }))
            }
            Stmt::If(i) => {
                let then = f(&i.then, &self.inside(Around::Given(i.cond.clone())))?.map(body);
                let otherwise =
                    f(&i.otherwise, &self.inside(Around::Given(i.cond.clone().negate())))?.map(body);
                (then.is_some() || otherwise.is_some()).then(|| {
                    Stmt::If(If {
                        cond: i.cond.clone(),
                        then: then.unwrap_or_else(|| i.then.clone()),
                        otherwise: otherwise.unwrap_or_else(|| i.otherwise.clone()),
                    })
                })
            }
            Stmt::Tasks(t) => {
                let new = f(&t.body, &self.inside(Around::Tasks(t)))?.map(body);
                new.map(|body| Stmt::Tasks(Tasks { body, ..t.clone() }))
            }
            Stmt::Own(o) => {
                let new = f(&o.body, &self.inside(Around::Own(o)))?.map(body);
                new.map(|body| Stmt::Own(Own { body, ..o.clone() }))
            }
            Stmt::On(on) => f(&on.body, self)?.map(body).map(|body| Stmt::On(On { body, ..on.clone() })),
            _ => None,
        })
    }
}

/// What becomes of statements; nothing if they stay as they are.
pub(super) type Changed = Result<Option<Vec<Stmt>>, Diagnosis>;

/// Makes a body anew, at its place, or leaves it.
pub(super) type Rebuild<'f> = dyn FnMut(&[Stmt], &Place) -> Changed + 'f;

/// The loop without its body.
pub(super) fn head(l: &For) -> For {
    For {
        var: l.var.clone(),
        mode: l.mode,
        range: l.range.clone(),
        counting: l.counting.clone(),
        body: Body::default(),
    }
}

/// Makes statements of a loop at a place.
pub(super) type Replace<'f> = dyn FnMut(For, &Place) -> Result<Vec<Stmt>, Diagnosis> + 'f;

/// Makes statements of a statement at a place, or leaves it to be walked into.
pub(super) type Offer<'f, S> = dyn FnMut(&S, &Place) -> Changed + 'f;

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
pub(super) fn rewrite_loops(
    stmts: &[Stmt],
    place: &Place,
    f: &mut Offer<For>,
) -> Result<Vec<Stmt>, Diagnosis> {
    rewrite(stmts, place, &mut |stmt, place| if let Stmt::For(l) = stmt { f(l, place) } else { Ok(None) })
}

/// Walks outer before inner and offers every statement to `f`, which replaces it or leaves it to be walked into. Bodies
/// in which nothing is replaced are shared with the statements as they were.
pub(super) fn rewrite(stmts: &[Stmt], place: &Place, f: &mut Offer<Stmt>) -> Result<Vec<Stmt>, Diagnosis> {
    Ok(replaced(stmts, place, f)?.unwrap_or_else(|| stmts.to_vec()))
}

fn replaced(stmts: &[Stmt], place: &Place, f: &mut Offer<Stmt>) -> Changed {
    each(stmts, |stmt| match f(stmt, place)? {
        Some(new) => Ok(Some(new)),
        None => Ok(place.rebuild(stmt, &mut |body, place| replaced(body, place, f))?.map(|stmt| vec![stmt])),
    })
}

/// The list with statements replaced by what `f` makes of them; `None` if it leaves them all.
fn each(stmts: &[Stmt], mut f: impl FnMut(&Stmt) -> Changed) -> Changed {
    let mut out: Option<Vec<Stmt>> = None;
    for (at, stmt) in stmts.iter().enumerate() {
        match f(stmt)? {
            Some(new) => out.get_or_insert_with(|| stmts[..at].to_vec()).extend(new),
            None => out.iter_mut().for_each(|out| out.push(stmt.clone())),
        }
    }
    Ok(out)
}

/// Whether statements mention a symbol as variable or buffer.
pub(super) fn mentions(stmts: &[Stmt], sym: &Sym) -> bool {
    let mut found = false;
    walk::for_each_symbol(stmts, &mut |s| found |= s == sym);
    found
}

/// Changes every element access in place; windows stay.
pub(super) fn map_elements(stmts: Vec<Stmt>, element: &dyn Fn(&mut crate::ir::Access)) -> Vec<Stmt> {
    map_accesses(stmts, element, &|_| {})
}
