//! Steps that go on from one iteration of a loop around to the next: `pipeline(.., across=label.outer)`.
//!
//! ```text
//! for b { before(b); for k in 0..P { fill(s, b, k); use(s, b, k) }; after(b) }
//!     =>
//! for p in unroll 0..S-1 { if p/P < n { fill(s[p], p/P, p%P) }  [cp.commit] }
//! for b {
//!   before(b)
//!   for k in 0..P {
//!     [cp.wait S-2; barrier]
//!     if b' < n { fill(s[(P*b + k + S - 1)%S], b', k') }            # of the step that comes S - 1 later
//!     [cp.commit]
//!     use(s[(P*b + k)%S], b, k)
//!   }
//!   after(b)
//! }
//! ```
//!
//! Without it each iteration of the loop around waits for its first steps with nothing to compute. The inner loop has
//! the same number of steps in each, at least one, and what fills the steps of a later iteration reads nothing that
//! the loop around writes.

use std::cell::RefCell;

use super::registers::Staging;
use super::ring::{Around, Landing, Ring};
use super::{Found, Pipeline, Via, has_async_copies, peers};
use crate::diag::Diagnosis;
use crate::index::Index;
use crate::ir::{For, Mode, Program, Range, Space, Stmt};
use crate::schedule::handle::LoopRef;
use crate::schedule::rewrite::{Effects, Place, Stages, at_loops, head, mentions};
use crate::sym::Sym;

impl Pipeline {
    /// The program with the loop pipelined in every copy of the loop around it, and what was found.
    pub(super) fn across(&self, program: &Program, around: &LoopRef) -> Result<(Program, Found), Diagnosis> {
        let found = RefCell::new(Found::default());
        let mut met = 0;
        // Where those who wait for copies stand is known at the loop itself.
        at_loops(program, &self.target, &mut |l, place| {
            met += 1;
            let stages = Stages::of(&l, &peers(program, &self.target), program)?;
            self.check(&l, &stages, self.via, place)?;
            Ok(vec![Stmt::For(l)])
        })?;
        let out = at_loops(program, around, &mut |outer, place| {
            met -= 1;
            self.rewrite_across(&outer, around, place, &mut found.borrow_mut())
        })?;
        if met != 0 {
            return Err(self.not_inside(around));
        }
        Ok((out, found.into_inner()))
    }

    fn not_inside(&self, around: &LoopRef) -> Diagnosis {
        self.refuse(format!("it does not stand in the body of `{around}`, once and under no condition"))
            .instead("name the loop right around it, or leave `across` out")
    }

    fn rewrite_across(
        &self,
        outer: &For,
        around: &LoopRef,
        place: &Place,
        found: &mut Found,
    ) -> Result<Vec<Stmt>, Diagnosis> {
        let inside = |s: &Stmt| matches!(s, Stmt::For(l) if self.target.means(l));
        let Some(at) = outer.body.iter().position(inside) else { return Err(self.not_inside(around)) };
        let Stmt::For(l) = &outer.body[at] else { return Err(self.not_inside(around)) };
        let (extent_around, steps) = (self.iterations(outer)?, self.iterations(l)?);
        let Some(steps) = steps.as_constant().filter(|steps| *steps > 0) else {
            return Err(self
                .refuse(format!("it has {steps} iterations in each of `{around}`"))
                .instead("only a loop of a constant number of iterations goes on across another"));
        };
        let stages = Stages::of(l, &peers(place.program, &self.target), place.program)?;
        self.check_around(outer, at, &stages)?;
        let asynchronous = has_async_copies(&stages.fills);
        found.asynchronous |= asynchronous;
        let rings: Vec<Sym> = stages.staged.iter().map(|b| b.sym.clone()).collect();
        found.ring(&rings, self.stages);
        let extent = Index::constant(steps);
        let ring = Ring {
            l,
            extent: &extent,
            around: Some(Around { l: outer, extent: &extent_around, steps }),
            rings: &rings,
            slots: self.stages,
            landing: if asynchronous { Landing::Committed } else { Landing::Stored },
        };
        let nothing = Staging { registers: Vec::new(), load: Vec::new(), store: Vec::new() };
        let mut out = ring.build(stages, nothing, place);
        let mut body = outer.body.to_vec();
        body.splice(at..=at, out.pop());
        out.push(Stmt::For(For { body: body.into(), ..head(outer) }));
        Ok(out)
    }

    /// How many iterations a loop has whose steps follow each other, counted from 0 by 1.
    fn iterations(&self, l: &For) -> Result<Index, Diagnosis> {
        let refuse = |because: &str| Err(self.refuse(format!("`{}` {because}", l.var)));
        match &l.range {
            _ if !matches!(l.mode, Mode::Serial | Mode::Unroll) => {
                refuse("has iterations that do not run one after another")
            }
            _ if l.counting.is_some() => refuse("has iterations that are counted already"),
            Range::Span { lo, hi, step } if lo.as_constant() == Some(0) && step.as_constant() == Some(1) => {
                Ok(hi.clone())
            }
            _ => refuse("does not count from 0 by 1"),
        }
    }

    /// Whether what fills a step may run in the iteration before of the loop around.
    fn check_around(&self, outer: &For, at: usize, stages: &Stages) -> Result<(), Diagnosis> {
        if stages.staged.iter().any(|b| b.space != Space::Shared)
            || matches!(self.via, Via::Registers | Via::Tma)
        {
            return Err(self
                .refuse("what it stages does not lie in a ring in shared memory")
                .instead("use via=shared or via=cp_async, or leave `across` out"));
        }
        let rest: Vec<Stmt> = outer.body[..at].iter().chain(&outer.body[at + 1..]).cloned().collect();
        let effects = Effects::of(&rest);
        if effects.synchronises {
            return Err(self
                .refuse(format!("the body of `{}` waits or signals already", outer.var))
                .instead("pipeline a loop once, and before barriers are placed"));
        }
        if let Some(read) = Effects::of(&stages.fills).reads.iter().find(|b| effects.writes(b)) {
            return Err(self.refuse(format!(
                "what it stages is read from `{read}`, which the body of `{}` writes",
                outer.var
            )));
        }
        let bound = rest.iter().find_map(|stmt| match stmt {
            Stmt::Let(sym, _) if mentions(&stages.fills, sym) => Some(sym.clone()),
            // As what is staged itself would be.
            Stmt::Alloc(buffer) if mentions(&stages.fills, &buffer.sym) => Some(buffer.sym.clone()),
            _ => None,
        });
        match bound {
            Some(sym) => Err(self.refuse(format!(
                "what it stages depends on `{sym}`, which each iteration of `{}` has anew",
                outer.var
            ))),
            None => Ok(()),
        }
    }
}
