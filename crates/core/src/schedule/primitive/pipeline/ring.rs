//! Rings: iteration `k` uses slot `k % slots` while a later iteration's slot is filled.
//!
//! ```text
//! for k { fill(b, k); use(b, k) }
//!     =>
//! for p in unroll 0..S-1 { if p < n { fill(b[p], p) }  [cp.commit] }
//! for k {
//!   [cp.wait S-2; barrier]
//!   if k + S - 1 < n { fill(b[(k + S - 1)%S], k + S - 1) }
//!   [cp.commit]
//!   use(b[k%S], k)
//! }
//! ```
//!
//! In brackets what asynchronous copies need: a group is committed in each step, also where nothing is left to copy,
//! so that "all but the last S-2 groups" always means the data of this step. The barrier both publishes them and
//! frees the slot that the step before has used.

use super::{at_iteration, only_if};
use crate::index::{Cond, Index};
use crate::ir::{For, Mode, Range, Span, Stmt, Sync};
use crate::schedule::rewrite::{Place, Stages, head, map_accesses};
use crate::sym::Sym;

/// A loop that counts from 0 by 1, and its ring.
pub(super) struct Ring<'a> {
    pub l: &'a For,
    /// The staged buffers.
    pub rings: &'a [Sym],
    pub slots: i64,
    pub asynchronous: bool,
}

impl Ring<'_> {
    pub fn build(&self, extent: &Index, stages: Stages, place: &Place) -> Vec<Stmt> {
        let fill =
            |k: &Index, slot: &Index| in_slot(at_iteration(&stages.fills, &self.l.var, k), self.rings, slot);
        // What was allocated inside the loop now lives across its iterations.
        let mut out: Vec<Stmt> =
            stages.staged.iter().filter(|b| self.allocates(&b.sym)).cloned().map(Stmt::Alloc).collect();
        out.extend(self.prologue(&fill, extent, place));
        let k = Index::var(&self.l.var);
        let later = k.offset(self.slots - 1);
        let mut body = Vec::new();
        if self.asynchronous {
            body.extend([Stmt::Sync(Sync::CpWait(self.slots - 2)), Stmt::Sync(Sync::Barrier)]);
        }
        body.extend(only_if(
            Cond::lt(later.clone(), extent.clone()),
            fill(&later, &later.rem(self.slots)),
            place,
        ));
        if self.asynchronous {
            body.push(Stmt::Sync(Sync::CpCommit));
        }
        body.extend(in_slot(stages.uses.clone(), self.rings, &k.rem(self.slots)));
        out.push(Stmt::For(For { body: body.into(), ..head(self.l) }));
        out
    }

    /// The loop in the first slot alone: nothing is fetched ahead of a loop without a second iteration.
    pub fn only_step(&self, stages: Stages) -> Vec<Stmt> {
        let slot = |stmts| if self.slots > 1 { in_slot(stmts, self.rings, &Index::default()) } else { stmts };
        let mut body: Vec<Stmt> =
            stages.staged.iter().filter(|b| self.allocates(&b.sym)).cloned().map(Stmt::Alloc).collect();
        body.extend(slot(stages.fills));
        if self.asynchronous {
            body.extend([Sync::CpCommit, Sync::CpWait(0), Sync::Barrier].map(Stmt::Sync));
        }
        body.extend(slot(stages.uses));
        vec![Stmt::For(For { body: body.into(), ..head(self.l) })]
    }

    fn prologue(
        &self,
        fill: &dyn Fn(&Index, &Index) -> Vec<Stmt>,
        extent: &Index,
        place: &Place,
    ) -> Vec<Stmt> {
        let step = |p: &Index| {
            let mut stmts = only_if(Cond::lt(p.clone(), extent.clone()), fill(p, p), place);
            if self.asynchronous {
                stmts.push(Stmt::Sync(Sync::CpCommit));
            }
            stmts
        };
        if self.slots == 2 {
            return step(&Index::default());
        }
        let p = Sym::new("p");
        vec![For::with_mode(&p, Mode::Unroll, Range::upto(self.slots - 1), step(&Index::var(&p)))]
    }

    fn allocates(&self, sym: &Sym) -> bool {
        self.l.body.iter().any(|s| matches!(s, Stmt::Alloc(b) if b.sym == *sym))
    }
}

/// Every access to the buffers goes to the given slot.
pub(super) fn in_slot(stmts: Vec<Stmt>, buffers: &[Sym], slot: &Index) -> Vec<Stmt> {
    map_accesses(
        stmts,
        &|access| {
            if buffers.contains(&access.buffer) {
                access.index.insert(0, slot.clone());
            }
        },
        &|window| {
            if buffers.contains(&window.buffer) {
                window.dims.insert(0, Span::At(slot.clone()));
            }
        },
    )
}
