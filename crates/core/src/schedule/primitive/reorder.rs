//! `reorder`: loops of one nest in another order.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(K: size, A: in f32[4, K], C: out f32[4]) {
//!   for i in 0..4 {
//!     C[i] = 0
//!     for k in 0..K { C[i] += A[i, k] }
//!   }
//! }").unwrap();
//! let after = Schedule::run(before, "reorder(C.k, C.i)").unwrap();
//! assert_eq!(after.program().to_string(), "\
//! program p(K: size,
//!     A: in f32[4, K], C: out f32[4])
//! {
//!   for i in 0..4 {
//!     C[i] = 0
//!   }
//!   for k in 0..K, i in 0..4 {
//!     C[i] += A[i, k]
//!   }
//! }
//! ");
//! ```
//!
//! A loop that must move inside another is distributed over what stands beside it; two loops may change places if the
//! iterations of one are independent, or if both only reduce.

use crate::diag::Diagnosis;
use crate::ir::{For, Program, Stmt};
use crate::schedule::handle::LoopRef;
use crate::schedule::rewrite::{Place, interchange, rewrite_loops, sink};
use crate::schedule::step::{Argument, Call};
use crate::sym::Sym;

use super::Primitive;

pub(super) const USAGE: &str = "reorder(label.outermost, ..., label.innermost)";

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct Reorder {
    /// The loops in their new order, outermost first.
    pub order: Vec<LoopRef>,
}

impl Reorder {
    pub(super) fn read(call: &Call) -> Result<Reorder, Diagnosis> {
        let order: Vec<_> = (0..call.args.len()).map(|i| call.loop_at(i)).collect::<Result<_, _>>()?;
        let mut seen = std::collections::HashSet::new();
        if order.len() < 2 || !order.iter().all(|l| l.label == order[0].label && seen.insert(l.clone())) {
            return Err(call.wrong("two or more different loops of one label are wanted"));
        }
        Ok(Reorder { order })
    }

    /// Reorders the nest that starts at `l`, which is the outermost of the named loops; leaves it if it does not
    /// hold them all.
    fn reorder(&self, l: &For, place: &Place) -> Result<Option<Vec<Stmt>>, Diagnosis> {
        if self.path(l).is_none() {
            return Ok(None);
        }
        let mut stmts = vec![Stmt::For(l.clone())];
        // Bubble sort: as long as some loop stands outside one that should come before it, move it inside.
        for _ in 0..self.order.len() * self.order.len() {
            let Some(path) =
                stmts.iter().find_map(|s| if let Stmt::For(l) = s { self.path(l) } else { None })
            else {
                break;
            };
            let Some(at) = (1..path.len()).find(|i| path[i - 1].0 > path[*i].0) else { break };
            let (outer, inner) = (path[at - 1].1.clone(), path[at].1.clone());
            stmts = swap(&stmts, &outer, &inner, place)?;
        }
        Ok(Some(stmts))
    }

    /// The named loops from `l` inward with their wanted positions, if all are there.
    fn path(&self, l: &For) -> Option<Vec<(usize, Sym)>> {
        let mut found = Vec::new();
        self.descend(l, &mut found);
        (found.len() == self.order.len()).then_some(found)
    }

    fn descend(&self, l: &For, found: &mut Vec<(usize, Sym)>) {
        if let Some(position) = self.order.iter().position(|o| o.means(l)) {
            found.push((position, l.var.clone()));
        }
        let deepest = |body: &[Stmt]| {
            let mut best: Vec<(usize, Sym)> = Vec::new();
            for stmt in body {
                let mut here = Vec::new();
                match stmt {
                    Stmt::For(inner) => self.descend(inner, &mut here),
                    Stmt::If(i) => {
                        for inner in i.then.iter().chain(&i.otherwise) {
                            if let Stmt::For(inner) = inner {
                                let mut arm = Vec::new();
                                self.descend(inner, &mut arm);
                                if arm.len() > here.len() {
                                    here = arm;
                                }
                            }
                        }
                    }
                    _ => {}
                }
                if here.len() > best.len() {
                    best = here;
                }
            }
            best
        };
        found.extend(deepest(&l.body));
    }
}

/// Moves the loop `outer` directly inside the loop `inner`, wherever they are in these statements.
fn swap(stmts: &[Stmt], outer: &Sym, inner: &Sym, place: &Place) -> Result<Vec<Stmt>, Diagnosis> {
    rewrite_loops(stmts, place, &mut |l, place| {
        if l.var != *outer {
            return Ok(None);
        }
        let facts = place.facts();
        Ok(Some(match &l.body[..] {
            [Stmt::For(next)] if next.var == *inner => {
                vec![Stmt::For(interchange(l, next.clone(), &facts)?)]
            }
            _ => sink(l.clone(), &|t| t.var == *inner, &facts)?,
        }))
    })
}

impl Primitive for Reorder {
    fn call(&self) -> Call {
        let args = self.order.iter().cloned().map(Argument::Loop).collect();
        Call { args, ..Call::new("reorder") }
    }

    fn apply(&self, program: &Program) -> Result<Program, Diagnosis> {
        let mut applied = false;
        let body = rewrite_loops(&program.body, &Place::of(program), &mut |l, place| {
            if !self.order.iter().any(|o| o.means(l)) {
                return Ok(None);
            }
            let result = self.reorder(l, place)?;
            applied |= result.is_some();
            Ok(result)
        })?;
        if applied {
            return Ok(program.with_body(body));
        }
        if let Some(missing) = self.order.iter().find(|o| !exists(program, o)) {
            return Err(missing.unknown(program));
        }
        Err(Diagnosis::new("the loops are not nested in one another")
            .instead("name loops of one nest; fission may have put them side by side"))
    }
}

fn exists(program: &Program, target: &LoopRef) -> bool {
    let mut found = false;
    crate::ir::walk::for_each(&program.body, &mut |stmt| {
        if let Stmt::For(l) = stmt {
            found |= target.means(l);
        }
    });
    found
}
