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

use std::cell::Cell;
use std::collections::HashMap;

use super::linear::{Row, System};
use super::{Atom, Comparison, Cond, Index, Interval, Ranges};
use crate::sym::Sym;

/// Linear systems tried for one question, over all cases.
const MOST_CASES: u32 = 24;
/// Points tried for one question.
const MOST_POINTS: i64 = 1024;

/// What is known at a place of a program.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    ranges: Ranges,
    /// What was assumed, with all definitions expanded.
    known: Vec<Cond>,
    store: Store,
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
    atoms: usize,
    zero: usize,
    not_negative: usize,
    choices: usize,
    flags: usize,
    impossible: bool,
}

/// Whether `cond` always holds under `facts` (`Some(true)`), never holds (`Some(false)`), or cannot be told.
pub fn prove(facts: &Facts, cond: &Cond) -> Option<bool> {
    let cond = facts.expanded_cond(cond);
    if let Some(truth) = cond.as_constant().or_else(|| facts.ranges.decide(&cond)) {
        return Some(truth);
    }
    if refuted(facts, &cond.clone().negate()) {
        return Some(true);
    }
    if refuted(facts, &cond) {
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
        self.assume(&Cond::le(least.into(), Index::var(sym)));
    }

    /// `sym` runs over `lo..hi` in steps of `step`, which is positive.
    pub fn runs_over(&mut self, sym: &Sym, lo: &Index, hi: &Index, step: &Index) {
        let (lo, hi, step) = (self.expanded(lo), self.expanded(hi), self.expanded(step));
        let interval = Interval { lo: self.ranges.of(&lo).lo, hi: self.ranges.of(&hi.offset(-1)).hi };
        self.ranges.set(sym, interval);
        let var = Index::var(sym);
        self.assume(&Cond::le(lo.clone(), var.clone()));
        self.assume(&Cond::lt(var.clone(), hi));
        match step.as_constant() {
            Some(1) => {}
            Some(s) => {
                let count = Sym::new("count");
                self.at_least(&count, 0);
                self.assume(&Cond::eq(var, &lo + &Index::var(&count).scaled(s)));
                self.counts.push(count);
                self.steps.insert(sym.clone(), step);
            }
            None => {
                self.steps.insert(sym.clone(), step);
            }
        }
    }

    /// `sym` is one of `values`.
    pub fn is_one_of(&mut self, sym: &Sym, values: &[i64]) {
        let (Some(lo), Some(hi)) = (values.iter().min(), values.iter().max()) else {
            return self.assume(&Cond::FALSE);
        };
        self.ranges.set(sym, Interval::new(*lo, *hi));
        let equal = values.iter().map(|v| Cond::eq(Index::var(sym), (*v).into()));
        self.assume(&Cond::le((*lo).into(), Index::var(sym)));
        self.assume(&Cond::le(Index::var(sym), (*hi).into()));
        self.assume(&equal.fold(Cond::FALSE, Cond::or));
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
        self.store.assume(&cond, None, &self.ranges);
        self.known.push(cond);
    }

    /// The present state.
    pub fn mark(&self) -> Mark {
        Mark {
            known: self.known.len(),
            partitions: self.partitions.len(),
            atoms: self.store.atoms.len(),
            zero: self.store.system.zero.len(),
            not_negative: self.store.system.not_negative.len(),
            choices: self.store.choices.len(),
            flags: self.store.flags.len(),
            impossible: self.store.impossible,
        }
    }

    /// Forgets what was assumed since `mark`. Ranges and definitions of symbols stay: symbols are never reused.
    pub fn reset(&mut self, mark: Mark) {
        self.known.truncate(mark.known);
        self.partitions.truncate(mark.partitions);
        let store = &mut self.store;
        for atom in store.atoms.drain(mark.atoms..) {
            store.columns.remove(&atom);
        }
        store.system.zero.truncate(mark.zero);
        store.system.not_negative.truncate(mark.not_negative);
        store.choices.truncate(mark.choices);
        store.flags.truncate(mark.flags);
        store.impossible = mark.impossible;
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

/// A place from which an element is touched: what is known there, and the element.
#[derive(Clone, Copy, Debug)]
pub struct Touch<'a> {
    /// What is known where the element is touched, the ranges of all loops around it included.
    pub facts: &'a Facts,
    /// The index of the element.
    pub index: &'a [Index],
}

/// Whether no two different iterations of the loop over `var` touch the same element, the earlier or later one by `a`
/// and the other by `b`: `Some(true)` if so, `Some(false)` if all of them touch the same ones, `None` if it cannot be told.
/// `common` says which symbols have the same value in both iterations: those bound outside the loop.
pub fn disjoint_iterations(
    var: &Sym,
    common: &dyn Fn(&Sym) -> bool,
    a: Touch<'_>,
    b: Touch<'_>,
) -> Option<bool> {
    let nearer = a.index.iter().zip(b.index).any(|(x, y)| {
        strides_apart(var, common, &a.facts.expanded(x), &b.facts.expanded(y), &b.facts.ranges)
    });
    if nearer {
        return Some(true);
    }
    let moved = other_iteration(var, common, b);
    let other = &moved[var];
    let rename = |s: &Sym| moved.get(s).map(Index::var);
    let mut facts = a.facts.clone();
    for known in &b.facts.known {
        let renamed = known.substitute(&rename);
        if renamed != *known {
            facts.assume(&renamed);
        }
    }
    let elements: Vec<(Index, Index)> = (a.index.iter().zip(b.index))
        .map(|(x, y)| (a.facts.expanded(x), b.facts.expanded(y).substitute(&rename)))
        .collect();
    let same = elements.iter().fold(Cond::TRUE, |all, (x, y)| all.and(Cond::eq(x.clone(), y.clone())));
    if same == Cond::FALSE {
        return Some(true);
    }
    let apart = different_parts(var, &facts, &moved);
    let step = a.facts.steps.get(var).cloned().unwrap_or_else(|| 1.into());
    let (v, w) = (Index::var(var), Index::var(other));
    let before = Cond::le(&v + &step, w.clone());
    let after = Cond::le(&w + &step, v);
    let overlap = same.clone().and(apart);
    if refuted(&facts, &overlap.clone().and(before)) && refuted(&facts, &overlap.and(after)) {
        return Some(true);
    }
    // Nothing that the loop changes decides which elements these are: the same ones each time.
    let the_same = a.index.iter().zip(b.index).all(|(x, y)| {
        let (x, y) = (a.facts.expanded(x), b.facts.expanded(y));
        x == y && !x.mentions(var)
    });
    (the_same && !a.facts.is_guarded(var) && !b.facts.is_guarded(var)).then_some(false)
}

/// The common case, cheaply: whether `x` in one iteration and `y` in another are apart because each step of `var` moves
/// both by the same stride, and everything else that changes moves them by less. Definitions are expanded.
pub fn strides_apart(
    var: &Sym,
    common: &dyn Fn(&Sym) -> bool,
    x: &Index,
    y: &Index,
    ranges: &Ranges,
) -> bool {
    let stride = x.coefficient(var);
    if stride == 0 || y.coefficient(var) != stride {
        return false;
    }
    let own = Index::var(var).scaled(stride);
    let (Some((x_fixed, x_moves)), Some((y_fixed, y_moves))) =
        (parted(var, common, &(x - &own)), parted(var, common, &(y - &own)))
    else {
        return false;
    };
    let (x, y) = (ranges.of(&x_moves), ranges.of(&y_moves));
    let widest = |a: Interval, b: Interval| a.hi?.checked_sub(b.lo?);
    x_fixed == y_fixed
        && widest(x, y).is_some_and(|w| w < stride.abs())
        && widest(y, x).is_some_and(|w| w < stride.abs())
}

/// The terms that are the same in all iterations, and the others; `None` if `var` occurs.
fn parted(var: &Sym, common: &dyn Fn(&Sym) -> bool, index: &Index) -> Option<(Index, Index)> {
    if index.mentions(var) {
        return None;
    }
    let (moves, fixed) = index.parted(|atom| atom.mentions_any(|s| !common(s)));
    Some((fixed, moves))
}

/// New names, for another iteration, of everything in `touch` that an iteration may change.
fn other_iteration(var: &Sym, common: &dyn Fn(&Sym) -> bool, touch: Touch<'_>) -> HashMap<Sym, Sym> {
    let mut moved = HashMap::from([(var.clone(), var.fresh())]);
    let mut rename = |s: &Sym| {
        if (!common(s) || touch.facts.counts.contains(s)) && !moved.contains_key(s) {
            moved.insert(s.clone(), s.fresh());
        }
    };
    touch.index.iter().for_each(|i| touch.facts.expanded(i).for_each_var(&mut rename));
    touch.facts.known.iter().for_each(|c| c.for_each_var(&mut rename));
    moved
}

/// What is known of partitions by construction when `var` differs: each part's variables differ somewhere.
fn different_parts(var: &Sym, facts: &Facts, moved: &HashMap<Sym, Sym>) -> Cond {
    let the_same = |i: &Index| {
        let mut same = true;
        i.for_each_var(&mut |s| same &= !moved.contains_key(s));
        same
    };
    let own = facts.partitions.iter().filter(|p| p.by.as_var() == Some(var) && p.of.iter().all(the_same));
    own.fold(Cond::TRUE, |all, partition| {
        let differ = partition
            .vars
            .iter()
            .filter_map(|v| Some((v, moved.get(v)?)))
            .map(|(v, w)| Cond::compare(Comparison::Ne, Index::var(v), Index::var(w)));
        all.and(differ.fold(Cond::FALSE, Cond::or))
    })
}

impl Facts {
    /// Whether anything but its range is known of `var`: a guard may let only some of its values through, or a partition
    /// give each a share of its own.
    fn is_guarded(&self, var: &Sym) -> bool {
        let (mut bounds, mut others) = (0, 0);
        for cond in self.known.iter().filter(|c| c.mentions(var)) {
            match cond {
                Cond::Compare(Comparison::Lt | Comparison::Le, a, b)
                    if a.as_var() == Some(var) || b.as_var() == Some(var) =>
                {
                    bounds += 1;
                }
                _ => others += 1,
            }
        }
        bounds > 2 || others > 0 || self.partitions.iter().any(|p| p.by.mentions(var))
    }
}

/// Whether `facts` and `cond` certainly contradict each other.
fn refuted(facts: &Facts, cond: &Cond) -> bool {
    let mut store = Store { first: facts.store.atoms.len() as u32, ..Store::default() };
    store.assume(cond, Some(&facts.store), &facts.ranges);
    if store.impossible || facts.store.impossible || store.contradicts(&facts.store) {
        return true;
    }
    let (system, matters) = store.with_what_matters(&facts.store);
    if system.infeasible() {
        return true;
    }
    // Only choices about something that is connected with the question can help.
    let atoms = || facts.store.atoms.iter().chain(&store.atoms).zip(&matters).filter(|(_, m)| **m);
    let connected = |sym: &Sym| atoms().any(|(atom, _)| Index::atom(atom.clone()).mentions(sym));
    let choices = facts.store.choices.iter().filter(|options| {
        let mut matters = false;
        options.iter().for_each(|c| c.for_each_var(&mut |s| matters = matters || connected(s)));
        matters
    });
    let choices: Vec<&[Cond]> = choices.map(Vec::as_slice).collect();
    let cases = Cell::new(MOST_CASES);
    Refutation { facts, cases }.refutes_by_cases(store, &choices)
}

struct Refutation<'a> {
    facts: &'a Facts,
    cases: Cell<u32>,
}

impl Refutation<'_> {
    /// Whether `store`, what is known and one of each of `choices` contradict each other.
    fn refutes(&self, store: Store, choices: &[&[Cond]]) -> bool {
        let base = &self.facts.store;
        if store.impossible || base.impossible || store.contradicts(base) {
            return true;
        }
        if self.cases.get() == 0 {
            return false;
        }
        self.cases.set(self.cases.get() - 1);
        store.with_what_matters(base).0.infeasible() || self.refutes_by_cases(store, choices)
    }

    fn refutes_by_cases(&self, mut store: Store, choices: &[&[Cond]]) -> bool {
        let base = &self.facts.store;
        // Choices of the question first: they are about it for certain.
        let (options, choices) = match (store.choices.pop(), choices) {
            (Some(own), rest) => (own, rest),
            (None, [first, rest @ ..]) => (first.to_vec(), rest),
            (None, []) => return false,
        };
        options.iter().all(|option| {
            let mut case = store.clone();
            case.assume(option, Some(base), &self.facts.ranges);
            self.refutes(case, choices)
        })
    }
}

/// A linear system whose columns are atoms, and what is not linear beside it.
#[derive(Clone, Debug, Default)]
struct Store {
    /// The number of the first column: those before it belong to the store this one adds to.
    first: u32,
    atoms: Vec<Atom>,
    columns: HashMap<Atom, u32>,
    system: System,
    /// Of each of these, one holds.
    choices: Vec<Vec<Cond>>,
    flags: Vec<(Sym, bool)>,
    impossible: bool,
}

impl Store {
    fn assume(&mut self, cond: &Cond, base: Option<&Store>, ranges: &Ranges) {
        match cond {
            Cond::Compare(how, a, b) => {
                if let Comparison::Ne = how {
                    let either = [Cond::lt(a.clone(), b.clone()), Cond::lt(b.clone(), a.clone())];
                    return self.choices.push(either.into());
                }
                // An index too large for the arithmetic is dropped: less is known, nothing false is.
                let Some(mut row) = self.row(&(b - a), base, ranges) else { return };
                match how {
                    Comparison::Eq => self.system.zero.push(row),
                    Comparison::Lt => {
                        row.constant -= 1;
                        self.system.not_negative.push(row);
                    }
                    Comparison::Le | Comparison::Ne => self.system.not_negative.push(row),
                }
            }
            Cond::Flag(sym) => self.flag(sym, true),
            Cond::And(v) => v.iter().for_each(|c| self.assume(c, base, ranges)),
            Cond::Or(v) if v.is_empty() => self.impossible = true,
            Cond::Or(v) => self.choices.push(v.clone()),
            Cond::Not(c) => match &**c {
                Cond::Flag(sym) => self.flag(sym, false),
                Cond::Or(v) => v.iter().for_each(|c| self.assume(&c.clone().negate(), base, ranges)),
                Cond::And(v) => self.choices.push(v.iter().map(|c| c.clone().negate()).collect()),
                Cond::Compare(..) => self.assume(&(**c).clone().negate(), base, ranges),
                Cond::Not(c) => self.assume(c, base, ranges),
            },
        }
    }

    fn flag(&mut self, sym: &Sym, truth: bool) {
        self.impossible |= self.flags.contains(&(sym.clone(), !truth));
        self.flags.push((sym.clone(), truth));
    }

    fn contradicts(&self, base: &Store) -> bool {
        self.flags.iter().any(|(sym, truth)| base.flags.contains(&(sym.clone(), !truth)))
    }

    /// The linear form of an index; `None` if a number becomes too large.
    fn row(&mut self, index: &Index, base: Option<&Store>, ranges: &Ranges) -> Option<Row> {
        let mut sum = Row::constant(index.constant_term());
        for (atom, c) in index.terms() {
            let part = match atom {
                // x % d = x - d (x / d): one column for both
                Atom::Mod(x, d) => self.row(&(x - &x.div(*d).scaled(*d)), base, ranges)?,
                _ => Row::column(self.column(atom, base, ranges)?),
            };
            sum = sum.combined(1, &part, *c)?;
        }
        Some(sum)
    }

    /// The column of an atom, made and defined where it is new.
    fn column(&mut self, atom: &Atom, base: Option<&Store>, ranges: &Ranges) -> Option<u32> {
        if let Some(column) = base.and_then(|b| b.columns.get(atom)).or_else(|| self.columns.get(atom)) {
            return Some(*column);
        }
        let column = self.first + self.atoms.len() as u32;
        self.atoms.push(atom.clone());
        self.columns.insert(atom.clone(), column);
        let own = Index::atom(atom.clone());
        let mut state = |cond: Cond| self.assume(&cond, base, ranges);
        match atom {
            // What is known of a variable was assumed when it was declared.
            Atom::Var(_) | Atom::Mod(..) => {}
            Atom::Div(x, d) => {
                let (x, below) = (self.row(x, base, ranges)?, Row::column(column));
                let rest = x.combined(1, &below, -d)?;
                let mut room = Row::constant(0).combined(1, &rest, -1)?;
                room.constant += d - 1;
                self.system.not_negative.extend([rest, room]);
            }
            Atom::Min(a, b) => {
                state(Cond::le(own.clone(), a.clone()));
                state(Cond::le(own.clone(), b.clone()));
                self.choices.push(vec![Cond::le(a.clone(), own.clone()), Cond::le(b.clone(), own)]);
            }
            Atom::Max(a, b) => {
                state(Cond::le(a.clone(), own.clone()));
                state(Cond::le(b.clone(), own.clone()));
                self.choices.push(vec![Cond::le(own.clone(), a.clone()), Cond::le(own, b.clone())]);
            }
            Atom::Xor(a, b) => {
                let Interval { lo, hi } = ranges.of(&own);
                lo.into_iter().for_each(|lo| state(Cond::le(lo.into(), own.clone())));
                hi.into_iter().for_each(|hi| state(Cond::le(own.clone(), hi.into())));
                if lo.is_some_and(|lo| lo >= 0) {
                    state(Cond::le(own.clone(), a + b));
                }
            }
            Atom::Select(c, a, b) => {
                let this = (**c).clone().and(Cond::eq(own.clone(), a.clone()));
                let that = (**c).clone().negate().and(Cond::eq(own, b.clone()));
                self.choices.push(vec![this, that]);
            }
        }
        Some(column)
    }

    /// The rows of this store and those of `base` that are connected with them through common columns; and which
    /// columns those are.
    fn with_what_matters(&self, base: &Store) -> (System, Vec<bool>) {
        let mut matters = vec![false; self.first as usize + self.atoms.len()];
        let mut system = self.system.clone();
        for row in system.zero.iter().chain(&system.not_negative) {
            row.terms.iter().for_each(|(c, _)| matters[*c as usize] = true);
        }
        let mut taken = vec![false; base.system.zero.len() + base.system.not_negative.len()];
        loop {
            let mut grown = false;
            let zero = base.system.zero.iter().map(|r| (r, true));
            let rest = base.system.not_negative.iter().map(|r| (r, false));
            for (at, (row, is_zero)) in zero.chain(rest).enumerate() {
                if taken[at] || !row.terms.iter().any(|(c, _)| matters[*c as usize]) {
                    continue;
                }
                taken[at] = true;
                grown = true;
                row.terms.iter().for_each(|(c, _)| matters[*c as usize] = true);
                if is_zero { system.zero.push(row.clone()) } else { system.not_negative.push(row.clone()) }
            }
            if !grown {
                return (system, matters);
            }
        }
    }
}

#[cfg(test)]
mod tests;
