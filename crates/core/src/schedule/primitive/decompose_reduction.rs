//! `decompose_reduction`: the initial store of a reduction becomes a nest of its own, before a given loop.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(M: size, K: size, A: in f32[M, K], C: out f32[M]) {
//!   for io in 0..ceil(M, 4), ii in 0..4 {
//!     if 4*io + ii < M { C[4*io + ii] = 0 }
//!     for k in 0..K {
//!       if 4*io + ii < M { C[4*io + ii] += A[4*io + ii, k] }
//!     }
//!   }
//! }").unwrap();
//! let after = Schedule::run(before, "decompose_reduction(C.ii)").unwrap();
//! assert_eq!(after.program().to_string(), "\
//! program p(M: size, K: size,
//!     A: in f32[M, K], C: out f32[M])
//! {
//!   for io in 0..ceil(M, 4) {
//!     for ii in 0..4 {
//!       if 4*io + ii < M {
//!         C[4*io + ii] = 0
//!       }
//!     }
//!     for ii in 0..4, k in 0..K {
//!       if 4*io + ii < M {
//!         C[4*io + ii] += A[4*io + ii, k]
//!       }
//!     }
//!   }
//! }
//! ");
//! ```
//!
//! The store leaves every loop from the given one inward, so the iterations of each must be independent. Unlike a
//! first iteration peeled off, this also defines the result of an empty reduction.

use crate::diag::Diagnosis;
use crate::ir::{AssignOp, For, Program, Stmt, walk};
use crate::schedule::facts::Facts;
use crate::schedule::handle::{LoopRef, writes};
use crate::schedule::rewrite::{at_loops, distribute, head, independent};
use crate::schedule::step::Call;

use super::Primitive;

pub(super) const USAGE: &str = "decompose_reduction(label.loop)";

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct DecomposeReduction {
    /// The outermost loop that the initial store leaves.
    pub target: LoopRef,
}

impl DecomposeReduction {
    pub(super) fn read(call: &Call) -> Result<DecomposeReduction, Diagnosis> {
        Ok(DecomposeReduction { target: call.loop_at(0)? })
    }

    fn refuse(&self, because: impl Into<String>) -> Diagnosis {
        let what = format!("the initial store of `{}` cannot leave `{}`", self.target.label, self.target);
        Diagnosis::new(what).because(because)
    }

    /// The loop as a loop around the initial store and one around the rest, the store's first. `None` if the store
    /// does not stand inside.
    fn decompose(&self, l: &For, facts: &Facts) -> Result<Option<Vec<Stmt>>, Diagnosis> {
        let mut inside = facts.clone();
        inside.enter(l);
        let mut body = l.body.clone();
        // Take an inner loop apart first, so that the store stands directly here.
        let deeper = body.iter().position(|s| matches!(s, Stmt::For(_)) && self.holds_both(s));
        if let Some(at) = deeper
            && let Stmt::For(inner) = &body[at]
        {
            let Some(parts) = self.decompose(inner, &inside)? else { return Ok(None) };
            body.splice(at..=at, parts);
        }
        let Some(store) = body.iter().position(|s| self.only_initialises(s)) else { return Ok(None) };
        if !body[store + 1..].iter().any(|s| writes(std::slice::from_ref(s), &self.target.label)) {
            return Ok(None);
        }
        let whole = For { body, ..head(l) };
        independent(&whole, facts).map_err(|because| self.refuse(because))?;
        let (pieces, allocs) = distribute(&whole, store)?;
        Ok(Some(allocs.into_iter().chain(pieces.into_iter().map(Stmt::For)).collect()))
    }

    /// Whether a statement writes the label by stores and by reductions.
    fn holds_both(&self, stmt: &Stmt) -> bool {
        let (stores, reduces) = self.kinds(stmt);
        stores && reduces
    }

    fn only_initialises(&self, stmt: &Stmt) -> bool {
        self.kinds(stmt) == (true, false)
    }

    fn kinds(&self, stmt: &Stmt) -> (bool, bool) {
        let (mut stores, mut reduces) = (false, false);
        walk::for_each(std::slice::from_ref(stmt), &mut |s| match s {
            Stmt::Assign(a) if a.target.buffer.name() == self.target.label => match a.op {
                AssignOp::Store => stores = true,
                AssignOp::Reduce(_) => reduces = true,
            },
            Stmt::Instruction(_) => reduces |= writes(std::slice::from_ref(s), &self.target.label),
            _ => {}
        });
        (stores, reduces)
    }
}

impl Primitive for DecomposeReduction {
    fn call(&self) -> Call {
        Call::new("decompose_reduction").target(&self.target)
    }

    fn apply(&self, program: &Program) -> Result<Program, Diagnosis> {
        let mut found = false;
        let out = at_loops(program, &self.target, &mut |l, place| {
            let parts = self.decompose(&l, &place.facts())?;
            found |= parts.is_some();
            Ok(parts.unwrap_or_else(|| vec![Stmt::For(l)]))
        })?;
        if !found {
            return Err(self
                .refuse("the loop does not contain the store and the reduction, or they are apart already")
                .instead("name a loop around both"));
        }
        Ok(out)
    }
}
