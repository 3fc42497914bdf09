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
//! frees the slot that the step before has used. Fills that travel through registers are drawn in `registers.rs`.
//!
//! With one slot nothing is fetched ahead: each step waits for its own copies, while other warps compute.
//!
//! Bulk copies report to a ring of barriers instead (`full`, drawn in `bulk.rs`): nothing is committed, and each step waits
//! for its own phase after it has asked for the later one. The block still meets before a slot is filled anew, unless
//! warps give slots back (`empty`): then those who fill one wait for the phase of the step that used it, and each
//! step ends with an arrival of every warp.
//!
//! Steps may go on from one iteration of a loop around to the next, as `across.rs` draws it, or be taken in turn by parts of the block
//! (`turns.rs`).

use super::only_if;
use super::registers::Staging;
use crate::index::{Cond, Index};
use crate::ir::{self, Body, Buffer, For, If, Mode, Range, Span, Stmt, Sync, walk};
use crate::schedule::rewrite::{Place, Stages, head, map_accesses};
use crate::sym::Sym;

/// A loop that counts from 0 by 1, and its ring.
pub(super) struct Ring<'a> {
    pub l: &'a For,
    /// How many iterations the loop has.
    pub extent: &'a Index,
    /// The loop around it in which its steps go on, if they do.
    pub around: Option<Around<'a>>,
    /// The staged buffers that have a copy in every slot.
    pub rings: &'a [Sym],
    pub slots: i64,
    /// How it is known that a slot is filled.
    pub landing: Landing,
}

/// How it is known that a slot is filled.
#[derive(Clone, PartialEq)]
pub(super) enum Landing {
    /// Its stores are, once a barrier has been met.
    Stored,
    /// Asynchronous copies are committed in groups and waited for.
    Committed,
    /// Bulk copies report to the phase of the ring of barriers `full` that has the number of the step.
    Reported {
        full: Sym,
        /// The ring whose phases are complete when each warp has used the slot of a step; without it the block meets.
        empty: Option<ir::Ring>,
    },
}

/// A loop that counts from 0 by 1, in each iteration of which the loop of a ring has the same number of its own.
pub(super) struct Around<'a> {
    pub l: &'a For,
    /// How many iterations it has.
    pub extent: &'a Index,
    /// How many of the loop inside each of them has.
    pub steps: i64,
}

/// A step of a ring.
pub(super) struct Step {
    /// The variables of its loops.
    values: Vec<(Sym, Index)>,
    /// How many come before it.
    pub number: Index,
    /// That the loops get there.
    pub exists: Cond,
}

impl Step {
    /// A copy of statements for this step; everything bound inside is new.
    pub fn of(&self, stmts: &[Stmt]) -> Vec<Stmt> {
        let value = |s: &Sym| self.values.iter().find(|(var, _)| var == s).map(|(_, value)| value.clone());
        walk::substitute(&walk::refresh(stmts), &value)
    }
}

impl Ring<'_> {
    /// One of the first steps, by its number.
    pub fn first(&self, number: &Index) -> Step {
        let Some(around) = &self.around else { return self.alone(number.clone()) };
        let (outer, inner) = (number.div(around.steps), number.rem(around.steps));
        self.nested(around, number.clone(), outer, inner)
    }

    /// The step that comes so many after that of the present iterations. Of nested loops it is found without division.
    pub fn ahead(&self, by: i64) -> Step {
        let k = Index::var(&self.l.var);
        let Some(around) = &self.around else { return self.alone(k.offset(by)) };
        let (groups, steps) = (by / around.steps, by % around.steps);
        let later = k.offset(steps);
        let within = Cond::lt(later.clone(), around.steps.into());
        let (inner, next) = if steps == 0 {
            (k.clone(), Index::default())
        } else {
            let wrapped = later.offset(-around.steps);
            (Index::select(within.clone(), later, wrapped), Index::select(within, 0.into(), 1.into()))
        };
        let outer = &Index::var(&around.l.var).offset(groups) + &next;
        self.nested(around, self.present().offset(by), outer, inner)
    }

    fn alone(&self, number: Index) -> Step {
        Step {
            values: vec![(self.l.var.clone(), number.clone())],
            exists: Cond::lt(number.clone(), self.extent.clone()),
            number,
        }
    }

    fn nested(&self, around: &Around, number: Index, outer: Index, inner: Index) -> Step {
        Step {
            exists: Cond::lt(outer.clone(), around.extent.clone()),
            values: vec![(around.l.var.clone(), outer), (self.l.var.clone(), inner)],
            number,
        }
    }

    /// How many steps come before that of the present iterations.
    pub fn present(&self) -> Index {
        let k = Index::var(&self.l.var);
        self.around.as_ref().map_or(k.clone(), |a| &Index::var(&a.l.var).scaled(a.steps) + &k)
    }

    /// The pipelined loop. The fills of `stages` run `slots - 1` steps ahead, those of `staging` one step ahead in
    /// registers.
    pub fn build(&self, stages: Stages, staging: Staging, place: &Place) -> Vec<Stmt> {
        let mut out = self.outlived(&stages.staged);
        out.extend(staging.registers.iter().cloned().map(Stmt::Alloc));
        out.extend(self.prologue(&stages.fills, place));
        let (first, k) = (self.first(&Index::default()), self.present());
        out.extend(only_if(first.exists, staging.first_load(&self.l.var), place));
        let mut body = self.in_slot_of(&k, staging.store.clone());
        let next = self.ahead(1);
        body.extend(only_if(next.exists, staging.load_at(&self.l.var, &next.number), place));
        // Fills of the one slot there may be are those of this step.
        let fill = if self.slots == 1 {
            self.committed(stages.fills)
        } else {
            self.fill(&stages.fills, &self.ahead(self.slots - 1), self.given_back(), place)
        };
        let waits = match self.landing {
            Landing::Stored => Vec::new(),
            Landing::Committed => vec![Sync::CpWait((self.slots - 2).max(0)), Sync::Barrier],
            Landing::Reported { empty: Some(_), .. } => Vec::new(),
            // The slot that is filled next has been used by all.
            Landing::Reported { .. } => vec![Sync::FenceAsync, Sync::Barrier],
        };
        let waits = waits.into_iter().map(Stmt::Sync).collect();
        body.extend(if self.slots == 1 { [fill, waits] } else { [waits, fill] }.concat());
        if let Landing::Reported { full, .. } = &self.landing {
            body.push(Stmt::Await { ring: full.clone(), ordinal: k.clone() });
        }
        body.extend(self.in_slot_of(&k, stages.uses));
        if let Landing::Reported { empty: Some(empty), .. } = &self.landing {
            body.push(give_back(empty, &k));
        }
        out.push(Stmt::For(For { body: body.into(), ..head(self.l) }));
        out
    }

    /// The loop in the first slot alone: nothing is fetched ahead of a loop without a second iteration.
    pub fn only_step(&self, stages: Stages) -> Vec<Stmt> {
        let zero = Index::default();
        let mut body = self.outlived(&stages.staged);
        body.extend(self.in_slot_of(&zero, stages.fills));
        if self.landing == Landing::Committed {
            body.extend([Sync::CpCommit, Sync::CpWait(0), Sync::Barrier].map(Stmt::Sync));
        }
        body.extend(self.in_slot_of(&zero, stages.uses));
        vec![Stmt::For(For { body: body.into(), ..head(self.l) })]
    }

    fn prologue(&self, fills: &[Stmt], place: &Place) -> Vec<Stmt> {
        if fills.is_empty() || self.slots == 1 {
            return Vec::new();
        }
        if self.slots == 2 {
            return self.fill(fills, &self.first(&Index::default()), None, place);
        }
        let p = Sym::new("p");
        let step = self.fill(fills, &self.first(&Index::var(&p)), None, place);
        vec![For::with_mode(&p, Mode::Unroll, Range::upto(self.slots - 1), step)]
    }

    /// What those who fill a slot in the loop do first, if warps give slots back: they wait until all have used it in the step
    /// before this one. The first step is the first to use its slot.
    fn given_back(&self) -> Option<Stmt> {
        let Landing::Reported { empty: Some(empty), .. } = &self.landing else { return None };
        let k = self.present();
        let wait = Stmt::Await { ring: empty.sym.clone(), ordinal: k.offset(-1) };
        let cond = Cond::le(1.into(), k);
        Some(Stmt::If(If { cond, then: vec![wait].into(), otherwise: Body::default() }))
    }

    /// The fills of one step, if the loop gets there, as a group of copies if they are asynchronous. Those who fill do
    /// `first` before.
    fn fill(&self, fills: &[Stmt], step: &Step, first: Option<Stmt>, place: &Place) -> Vec<Stmt> {
        let mut filled = self.in_slot_of(&step.number, step.of(fills));
        if let (Some(first), Some(Stmt::For(nest))) = (first, filled.first_mut()) {
            nest.body.insert(0, first);
        }
        self.committed(only_if(step.exists.clone(), filled, place))
    }

    /// Fills as a group of copies if they are asynchronous.
    fn committed(&self, mut fills: Vec<Stmt>) -> Vec<Stmt> {
        if self.landing == Landing::Committed {
            fills.push(Stmt::Sync(Sync::CpCommit));
        }
        fills
    }

    pub fn in_slot_of(&self, at: &Index, stmts: Vec<Stmt>) -> Vec<Stmt> {
        if self.slots == 1 { stmts } else { in_slot(stmts, self.rings, &at.rem(self.slots)) }
    }

    /// What was allocated inside the loop and now lives across its iterations.
    fn outlived(&self, staged: &[Buffer]) -> Vec<Stmt> {
        let here = |b: &&Buffer| self.l.body.iter().any(|s| matches!(s, Stmt::Alloc(a) if a.sym == b.sym));
        staged.iter().filter(here).cloned().map(Stmt::Alloc).collect()
    }
}

/// Every warp arrives once: a lane of it, after all of them have used the slot. What they read came before the fence, and what a bulk
/// copy brings comes after it: without the fence it may overtake loads that wait for banks.
pub(super) fn give_back(empty: &ir::Ring, step: &Index) -> Stmt {
    let threads = |var: &str, count: i64, pitch: i64, body: Vec<Stmt>| {
        For::with_mode(&Sym::new(var), Mode::Threads { pitch }, Range::upto(count), body)
    };
    let arrive = Stmt::Arrive { ring: empty.sym.clone(), ordinal: step.clone(), bytes: None };
    let used = [Sync::FenceAsync, Sync::Barrier].map(Stmt::Sync);
    threads("w", empty.count, 32, [&used[..], &[threads("e", 1, 1, vec![arrive])]].concat())
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
