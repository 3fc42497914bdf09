//! Loops whose iterations follow each other: what one iteration touches may meet what a later one does.

use std::collections::HashMap;
use std::rc::Rc;

use super::pending::Pending;
use super::touch::{Around, Values};
use super::{Scan, Stop};
use crate::index::Index;
use crate::ir::{For, Range, Stmt, Sync, Tasks, walk};
use crate::sym::Sym;

/// How many iterations back are looked at one by one; those before are any iterations. Rings are not deeper.
const DISTANCE: i64 = 8;

/// A loop as the scan sees it.
struct Repetition {
    around: Vec<Around>,
    /// The loop variable and its first value.
    first: Option<(Sym, Index)>,
    /// What the symbols of this iteration are called in the iteration before; missing ones are the same.
    before: HashMap<Sym, Index>,
    /// The symbols that differ in an unknown way.
    unknown: Vec<Sym>,
    /// The number of iterations, if it is known.
    trips: Option<i64>,
}

impl Scan<'_> {
    pub(super) fn repeated(&mut self, l: &mut For) -> Result<(), Stop> {
        let range = l.range.substitute(&|s| self.at.lets.get(s).cloned());
        let around = vec![Around { var: l.var.clone(), values: Values::of(&range), depth: self.depth() + 1 }];
        let (mut before, mut unknown) = (HashMap::new(), inner_ordinals(&l.body));
        let step = match &range {
            Range::Span { step, .. } => Some(step.clone()),
            Range::Part { .. } => Some(1.into()),
            Range::List(_) => None,
        };
        match step {
            Some(step) => {
                before.insert(l.var.clone(), &Index::var(&l.var) - &step);
            }
            None => unknown.push(l.var.clone()),
        }
        if let Some(ordinal) = &l.counting {
            before.insert(ordinal.clone(), Index::var(ordinal).offset(-1));
        }
        let first = match &range {
            Range::Span { lo, .. } => Some((l.var.clone(), lo.clone())),
            Range::List(values) => values.first().map(|v| (l.var.clone(), Index::constant(*v))),
            Range::Part { .. } => None,
        };
        let trips = range.constant_trip_count();
        self.iterate(&mut l.body, &Repetition { around, first, before, unknown, trips })?;
        if let Some(ordinal) = &l.counting {
            self.forget(std::slice::from_ref(ordinal));
        }
        Ok(())
    }

    pub(super) fn tasks(&mut self, t: &mut Tasks) -> Result<(), Stop> {
        let depth = self.depth() + 1;
        let around = t.vars.iter().map(|var| Around { var: var.clone(), values: Values::Unknown, depth });
        let mut unknown = inner_ordinals(&t.body);
        unknown.extend(t.vars.iter().cloned());
        let repetition = Repetition {
            around: around.collect(),
            first: None,
            before: HashMap::new(),
            unknown,
            trips: None,
        };
        self.iterate(&mut t.body, &repetition)
    }

    /// Scans a loop for conflicts within an iteration, with earlier iterations, and with what stands before the loop;
    /// again after each barrier that is placed inside.
    fn iterate(&mut self, body: &mut Vec<Stmt>, loop_: &Repetition) -> Result<(), Stop> {
        if !self.group().has_barrier() {
            return self.once(body, loop_);
        }
        let (at, outer) = (self.at.clone(), self.pending.clone());
        let depth = self.depth() + 1;
        loop {
            let placed = self.placed;
            match self.rounds(body, loop_, &outer) {
                Ok(()) if self.placed == placed => return Ok(()),
                Ok(()) => {}
                Err(Stop::AtEnd { depth: wanted }) if wanted == depth => {
                    if body.last().is_some_and(super::is_barrier) {
                        return Err(self.refuse(super::too_late()));
                    }
                    body.push(Stmt::Sync(Sync::Barrier));
                    self.placed += 1;
                }
                Err(stop) => return Err(stop),
            }
            self.at = at.clone();
        }
    }

    fn rounds(&mut self, body: &mut Vec<Stmt>, loop_: &Repetition, outer: &[Pending]) -> Result<(), Stop> {
        let probing = self.at.probing;
        let own = if probing { Vec::new() } else { self.own_conflicts(body, loop_)? };
        self.at.probing = true;
        self.pending = outer.to_vec();
        if let (Some((var, value)), false) = (&loop_.first, self.pending.is_empty()) {
            self.at.lets.insert(var.clone(), value.clone());
            self.once(body, loop_)?;
            self.at.lets.remove(var);
        }
        if !self.pending.is_empty() {
            self.once(body, loop_)?;
        }
        self.at.probing = probing;
        if loop_.trips.is_none_or(|n| n < 1) {
            super::merge(&mut self.pending, outer.to_vec());
        }
        self.pending.extend(own);
        Ok(())
    }

    /// Compares the touches of an iteration with each other and with those of the iterations before; gives those that
    /// are pending at its end.
    fn own_conflicts(&mut self, body: &mut Vec<Stmt>, loop_: &Repetition) -> Result<Vec<Pending>, Stop> {
        self.pending.clear();
        self.once(body, loop_)?;
        let own = std::mem::take(&mut self.pending);
        self.at.probing = true;
        self.pending.clone_from(&own);
        let farthest = loop_.trips.map_or(i64::MAX, |n| n - 1).min(DISTANCE + 1);
        for distance in 1..=farthest {
            if self.pending.is_empty() {
                break;
            }
            self.pending = self.pending.iter().map(|p| self.aged(p, loop_, distance > DISTANCE)).collect();
            self.once(body, loop_)?;
        }
        Ok(own)
    }

    fn once(&mut self, body: &mut Vec<Stmt>, loop_: &Repetition) -> Result<(), Stop> {
        let outside = self.at.around.len();
        self.at.around.extend(loop_.around.iter().cloned());
        let group = self.group().clone();
        self.inner(body, group)?;
        self.at.around.truncate(outside);
        Ok(())
    }

    /// A touch of one iteration as the next one sees it; or, if `any`, as all later ones do, of a touch that has been seen so
    /// [`DISTANCE`] times: as that of some other iteration.
    fn aged(&self, p: &Pending, loop_: &Repetition, any: bool) -> Pending {
        let fresh = |s: &Sym| (s.clone(), s.fresh());
        let unknown = loop_.unknown.iter().chain(loop_.before.keys().filter(|_| any));
        let renamed: HashMap<Sym, Sym> = unknown.map(fresh).collect();
        let with = |s: &Sym| match (renamed.get(s), loop_.before.get(s)) {
            // What it was called in that iteration, by which it is told from others.
            (Some(then), Some(before)) => {
                Some(&Index::var(then) + &(&Index::var(s) - before).scaled(DISTANCE))
            }
            (Some(then), None) => Some(Index::var(then)),
            (None, before) => before.cloned(),
        };
        let mut aged = p.clone();
        let then = |s: &Sym| Some((s.clone(), renamed.get(s)?.clone()));
        let tuple: Option<Vec<(Sym, Sym)>> = loop_.around.iter().map(|l| then(&l.var)).collect();
        aged.distinct.extend(tuple);
        aged.touch = Rc::new(p.touch.substitute(&with));
        aged.depth = self.depth() + 1;
        aged.carried = true;
        aged
    }

    /// Symbols that from here on have values other than those they had in the touches so far.
    fn forget(&mut self, syms: &[Sym]) {
        let renamed: HashMap<&Sym, Index> = syms.iter().map(|s| (s, Index::var(&s.fresh()))).collect();
        for p in &mut self.pending {
            let mentions = |i: &Index| syms.iter().any(|s| i.mentions(s));
            if p.touch.index.iter().any(mentions)
                || p.touch.guards.iter().any(|c| syms.iter().any(|s| c.mentions(s)))
            {
                p.touch = Rc::new(p.touch.substitute(&|s| renamed.get(s).cloned()));
            }
        }
    }
}

/// The ordinals of loops inside a body: they have grown by an unknown number when the body is run again.
fn inner_ordinals(body: &[Stmt]) -> Vec<Sym> {
    let mut out = Vec::new();
    walk::for_each(body, &mut |stmt| {
        if let Stmt::For(For { counting: Some(ordinal), .. }) = stmt {
            out.push(ordinal.clone());
        }
    });
    out
}
