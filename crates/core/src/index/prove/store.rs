//! What is known as a linear system, and the refutation of a condition by it.

use std::cell::Cell;
use std::collections::HashMap;

use super::Facts;
use crate::index::linear::{Row, System};
use crate::index::{Atom, Comparison, Cond, Index, Interval, Ranges};
use crate::sym::Sym;

/// Linear systems tried for one question, over all cases.
const MOST_CASES: u32 = 24;

/// Whether `facts` and `cond` certainly contradict each other.
pub(super) fn refuted(facts: &Facts, cond: &Cond) -> bool {
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
pub(super) struct Store {
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

/// A state of a [`Store`] to which it can go back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    atoms: usize,
    zero: usize,
    not_negative: usize,
    choices: usize,
    flags: usize,
    impossible: bool,
}

impl Store {
    /// The present state.
    pub fn mark(&self) -> Mark {
        Mark {
            atoms: self.atoms.len(),
            zero: self.system.zero.len(),
            not_negative: self.system.not_negative.len(),
            choices: self.choices.len(),
            flags: self.flags.len(),
            impossible: self.impossible,
        }
    }

    /// Forgets what was assumed since `mark`.
    pub fn reset(&mut self, mark: Mark) {
        for atom in self.atoms.drain(mark.atoms..) {
            self.columns.remove(&atom);
        }
        self.system.zero.truncate(mark.zero);
        self.system.not_negative.truncate(mark.not_negative);
        self.choices.truncate(mark.choices);
        self.flags.truncate(mark.flags);
        self.impossible = mark.impossible;
    }

    pub fn assume(&mut self, cond: &Cond, base: Option<&Store>, ranges: &Ranges) {
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
