//! A prover for quasi-affine conditions: what follows from ranges with symbolic bounds, assumptions and guards.
//!
//! [`Facts`] collects what is known at a place of a program; [`prove`] answers whether a condition always holds there,
//! never holds, or cannot be told. "Cannot be told" is an answer: a rewrite then keeps its guard or is refused, and a
//! check is left to the simulator. A condition is proved by refuting its negation. Divisions, minima and choices
//! become columns of a linear system together with what defines them; a disjunction is taken apart case by case; what
//! ranges over few points is tried out point by point (rule 9).
//!
//! ```
//! # use warpwright_core::index::{Cond, Facts, Index, prove};
//! # use warpwright_core::sym::Sym;
//! let (m, by, r) = (Sym::new("M"), Sym::new("by"), Sym::new("r"));
//! let mut facts = Facts::new();
//! facts.at_least(&m, 0);
//! facts.runs_over(&by, &0.into(), &Index::var(&m).ceil_div(128), &1.into());
//! facts.runs_over(&r, &0.into(), &128.into(), &1.into());
//! let guard = Cond::lt(&Index::var(&by).scaled(128) + &Index::var(&r), Index::var(&m));
//! assert_eq!(prove(&facts, &guard), None);
//! facts.assume(&Cond::eq(Index::var(&m).rem(128), 0.into()));
//! assert_eq!(prove(&facts, &guard), Some(true));
//! ```

mod iterations;
mod samples;
mod store;

use std::collections::HashMap;

pub use iterations::{Touch, disjoint_iterations, strides_apart};

use super::{Cond, Index, Interval, Ranges};
use crate::sym::Sym;
use samples::Samples;
use store::{Store, refuted};

/// Points tried for one question.
const MOST_POINTS: i64 = 1024;

/// What is known at a place of a program.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    ranges: Ranges,
    /// What was assumed, with all definitions expanded.
    known: Vec<Cond>,
    store: Store,
    samples: Samples,
    definitions: HashMap<Sym, Index>,
    steps: HashMap<Sym, Index>,
    /// Symbols made here, to count the steps of loops.
    counts: Vec<Sym>,
    partitions: Vec<Partition>,
}

/// A loop or several that share out a box.
#[derive(Clone, Debug)]
struct Partition {
    by: Index,
    vars: Vec<Sym>,
    of: Vec<Index>,
}

/// A state of [`Facts`] to which [`Facts::reset`] can go back.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    known: usize,
    partitions: usize,
    store: store::Mark,
}

/// Whether `cond` always holds under `facts` (`Some(true)`), never holds (`Some(false)`), or cannot be told.
pub fn prove(facts: &Facts, cond: &Cond) -> Option<bool> {
    let cond = facts.expanded_cond(cond);
    if let Some(truth) = cond.as_constant().or_else(|| facts.ranges.decide(&cond)) {
        return Some(truth);
    }
    if facts.known.contains(&cond) {
        return Some(true);
    }
    let (holds, fails) = facts.samples.outcomes(&cond);
    if holds && fails {
        return None;
    }
    if !fails && refuted(facts, &cond.clone().negate()) {
        return Some(true);
    }
    if !holds && refuted(facts, &cond) {
        return Some(false);
    }
    facts.by_trial(&cond)
}

impl Facts {
    /// Nothing is known.
    pub fn new() -> Facts {
        Facts::default()
    }

    /// `sym` is at least `least`: sizes at least 0, launch parameters at least 1.
    pub fn at_least(&mut self, sym: &Sym, least: i64) {
        self.ranges.set(sym, Interval { lo: Some(least), hi: None });
        self.declare(sym, |samples, _| samples.size(sym, least));
        self.state(Cond::le(least.into(), Index::var(sym)));
    }

    /// `sym` runs over `lo..hi` in steps of `step`, which is positive.
    pub fn runs_over(&mut self, sym: &Sym, lo: &Index, hi: &Index, step: &Index) {
        let (lo, hi, step) = (self.expanded(lo), self.expanded(hi), self.expanded(step));
        let interval = Interval { lo: self.ranges.of(&lo).lo, hi: self.ranges.of(&hi.offset(-1)).hi };
        self.ranges.set(sym, interval);
        let constant = step.as_constant();
        let stride = constant.unwrap_or(1).max(1);
        self.declare(sym, |samples, before| samples.runs_over(sym, &lo, &hi, stride, before));
        let var = Index::var(sym);
        self.state(Cond::le(lo.clone(), var.clone()));
        self.state(Cond::lt(var.clone(), hi));
        if constant == Some(1) {
            return;
        }
        self.steps.insert(sym.clone(), step);
        if constant == Some(stride) {
            let count = Sym::new("count");
            self.ranges.set(&count, Interval { lo: Some(0), hi: None });
            self.samples.counts(&count, sym, &lo, stride);
            self.state(Cond::le(0.into(), Index::var(&count)));
            self.state(Cond::eq(var, &lo + &Index::var(&count).scaled(stride)));
            self.counts.push(count);
        }
    }

    /// `sym` is one of `values`.
    pub fn is_one_of(&mut self, sym: &Sym, values: &[i64]) {
        let (Some(lo), Some(hi)) = (values.iter().min(), values.iter().max()) else {
            return self.assume(&Cond::FALSE);
        };
        self.ranges.set(sym, Interval::new(*lo, *hi));
        self.declare(sym, |samples, _| samples.is_one_of(sym, values));
        let equal = values.iter().map(|v| Cond::eq(Index::var(sym), (*v).into()));
        self.state(Cond::le((*lo).into(), Index::var(sym)));
        self.state(Cond::le(Index::var(sym), (*hi).into()));
        self.state(equal.fold(Cond::FALSE, Cond::or));
    }

    /// `sym` is `value`, from here on everywhere.
    pub fn define(&mut self, sym: &Sym, value: &Index) {
        let value = self.expanded(value);
        self.ranges.set(sym, self.ranges.of(&value));
        self.definitions.insert(sym.clone(), value);
    }

    /// `vars` together never take the same values for two different values of `by`, as long as everything in `of` (the
    /// bounds of what is shared out, and into how many shares) stays the same: a partition by construction (rule 7).
    pub fn partition(&mut self, by: &Index, vars: &[Sym], of: &[&Index]) {
        let of = of.iter().map(|i| self.expanded(i)).collect();
        self.partitions.push(Partition { by: self.expanded(by), vars: vars.to_vec(), of });
    }

    /// `cond` holds.
    pub fn assume(&mut self, cond: &Cond) {
        let cond = self.expanded_cond(cond);
        self.samples.assume(&cond, self.known.len());
        self.state(cond);
    }

    /// As [`Facts::assume`], of something that holds at all samples by construction.
    fn state(&mut self, cond: Cond) {
        self.store.assume(&cond, None, &self.ranges);
        self.known.push(cond);
    }

    /// Gives a symbol values at the sample points, with the number of assumptions so far.
    fn declare(&mut self, sym: &Sym, give: impl FnOnce(&mut Samples, usize)) {
        if self.known.iter().any(|c| c.mentions(sym)) {
            self.samples.give_up(self.known.len());
        }
        give(&mut self.samples, self.known.len());
    }

    /// The present state.
    pub fn mark(&self) -> Mark {
        Mark { known: self.known.len(), partitions: self.partitions.len(), store: self.store.mark() }
    }

    /// Forgets what was assumed since `mark`. Ranges and definitions of symbols stay: symbols are never reused.
    pub fn reset(&mut self, mark: Mark) {
        self.known.truncate(mark.known);
        self.partitions.truncate(mark.partitions);
        self.samples.reset(mark.known);
        self.store.reset(mark.store);
    }

    /// The intervals of symbols, for questions that need no more.
    pub fn ranges(&self) -> &Ranges {
        &self.ranges
    }

    /// The index with definitions expanded and simplified by intervals.
    pub fn simplify(&self, index: &Index) -> Index {
        self.ranges.simplify(&self.expanded(index))
    }

    /// What is left of a condition once every part that the facts decide is replaced by its truth: a guard without the
    /// conjuncts that always hold.
    pub fn simplify_cond(&self, cond: &Cond) -> Cond {
        if let Some(truth) = prove(self, cond) {
            return Cond::from(truth);
        }
        match cond {
            Cond::And(v) => v.iter().fold(Cond::TRUE, |all, c| all.and(self.simplify_cond(c))),
            Cond::Or(v) => v.iter().fold(Cond::FALSE, |any, c| any.or(self.simplify_cond(c))),
            Cond::Not(c) => self.simplify_cond(c).negate(),
            Cond::Compare(..) | Cond::Flag(_) => cond.clone(),
        }
    }

    /// Whether `index` is certainly a multiple of `divisor`.
    pub fn is_multiple(&self, index: &Index, divisor: i64) -> bool {
        let index = self.expanded(index);
        let rest = index.rem(divisor);
        rest == Index::default() || prove(self, &Cond::eq(rest, Index::default())) == Some(true)
    }

    /// The index with definitions expanded.
    pub fn expanded(&self, index: &Index) -> Index {
        if self.definitions.is_empty() {
            return index.clone();
        }
        index.substitute(&|s| self.definitions.get(s).cloned())
    }

    fn expanded_cond(&self, cond: &Cond) -> Cond {
        if self.definitions.is_empty() {
            return cond.clone();
        }
        cond.substitute(&|s| self.definitions.get(s).cloned())
    }

    /// Tries every point where all variables of `cond` have small constant ranges.
    fn by_trial(&self, cond: &Cond) -> Option<bool> {
        let mut vars: Vec<Sym> = Vec::new();
        cond.for_each_var(&mut |s| {
            if !vars.contains(s) {
                vars.push(s.clone());
            }
        });
        let mut points = 1i64;
        let mut boxes = Vec::new();
        for var in &vars {
            let Interval { lo: Some(lo), hi: Some(hi) } = self.ranges.get(var) else { return None };
            points = points.checked_mul(hi.checked_sub(lo)?.checked_add(1)?)?;
            if points > MOST_POINTS {
                return None;
            }
            boxes.push((lo, hi - lo + 1));
        }
        let mentions_only_these = |c: &&Cond| {
            let mut only = true;
            c.for_each_var(&mut |s| only &= vars.contains(s));
            only
        };
        let guards: Vec<&Cond> = self.known.iter().filter(mentions_only_these).collect();
        let mut verdict = None;
        for mut flat in 0..points {
            let mut point = Vec::with_capacity(boxes.len());
            for (lo, extent) in &boxes {
                point.push(lo + flat % extent);
                flat /= extent;
            }
            let value = |s: &Sym| vars.iter().position(|v| v == s).map(|at| point[at]);
            if guards.iter().any(|g| g.eval(&value) == Ok(false)) {
                continue;
            }
            let truth = cond.eval(&value).ok()?;
            if *verdict.get_or_insert(truth) != truth {
                return None;
            }
        }
        // No point at all: the place is never reached, and anything holds there.
        Some(verdict.unwrap_or(true))
    }
}

#[cfg(test)]
mod tests;
