//! Intervals: what an index can be when its variables are known to lie in ranges.

use super::{Atom, Comparison, Cond, Index};
use crate::sym::Sym;

/// An inclusive interval; `None` is unbounded on that side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The smallest possible value.
    pub lo: Option<i64>,
    /// The largest possible value.
    pub hi: Option<i64>,
}

impl Interval {
    /// Anything.
    pub const ALL: Interval = Interval { lo: None, hi: None };
    /// A size: not negative.
    pub const SIZE: Interval = Interval { lo: Some(0), hi: None };

    /// `lo..=hi`.
    pub fn new(lo: i64, hi: i64) -> Interval {
        Interval { lo: Some(lo), hi: Some(hi) }
    }

    /// Whether every value lies in `lo..=hi`.
    pub fn within(self, lo: i64, hi: i64) -> bool {
        self.lo.is_some_and(|l| l >= lo) && self.hi.is_some_and(|h| h <= hi)
    }

    /// The one value, if there is only one.
    pub fn single(self) -> Option<i64> {
        self.lo.filter(|_| self.lo == self.hi)
    }

    /// All sums of a value of each.
    pub fn plus(self, other: Interval) -> Interval {
        Interval { lo: add(self.lo, other.lo), hi: add(self.hi, other.hi) }
    }

    fn scaled(self, factor: i64) -> Interval {
        let times = |x: Option<i64>| x.and_then(|x| x.checked_mul(factor));
        if factor >= 0 {
            Interval { lo: times(self.lo), hi: times(self.hi) }
        } else {
            Interval { lo: times(self.hi), hi: times(self.lo) }
        }
    }

    fn union(self, other: Interval) -> Interval {
        let both = |a: Option<i64>, b: Option<i64>, f: fn(i64, i64) -> i64| Some(f(a?, b?));
        Interval { lo: both(self.lo, other.lo, i64::min), hi: both(self.hi, other.hi, i64::max) }
    }
}

fn add(a: Option<i64>, b: Option<i64>) -> Option<i64> {
    a?.checked_add(b?)
}

/// What is known of variables: an interval for each; one that is missing can be anything. What was stated last holds.
/// A list, because there are few variables at any place and ranges are copied more often than they are asked.
#[derive(Clone, Debug, Default)]
pub struct Ranges(Vec<(Sym, Interval)>);

impl Ranges {
    /// Nothing is known.
    pub fn new() -> Ranges {
        Ranges::default()
    }

    /// States that `sym` lies in `interval`.
    pub fn set(&mut self, sym: &Sym, interval: Interval) {
        match self.0.iter_mut().find(|(s, _)| s == sym) {
            Some((_, known)) => *known = interval,
            None => self.0.push((sym.clone(), interval)),
        }
    }

    /// What is known of `sym`.
    pub fn get(&self, sym: &Sym) -> Interval {
        self.0.iter().rev().find(|(s, _)| s == sym).map_or(Interval::ALL, |(_, known)| *known)
    }

    /// Bounds of an index; exact for linear indices of independent variables, else possibly wide.
    pub fn of(&self, index: &Index) -> Interval {
        let mut sum = Interval::new(index.constant_term(), index.constant_term());
        for (atom, c) in index.terms() {
            sum = sum.plus(self.of_term(atom, *c));
        }
        sum
    }

    /// Bounds of one term.
    pub fn of_term(&self, atom: &Atom, coefficient: i64) -> Interval {
        self.of_atom(atom).scaled(coefficient)
    }

    fn of_atom(&self, atom: &Atom) -> Interval {
        match atom {
            Atom::Var(sym) => self.get(sym),
            Atom::Div(x, d) => {
                let x = self.of(x);
                Interval { lo: x.lo.map(|v| v.div_euclid(*d)), hi: x.hi.map(|v| v.div_euclid(*d)) }
            }
            Atom::Mod(x, d) => {
                let x = self.of(x);
                match (x.lo, x.hi) {
                    (Some(lo), Some(hi)) if lo.div_euclid(*d) == hi.div_euclid(*d) => {
                        Interval::new(lo.rem_euclid(*d), hi.rem_euclid(*d))
                    }
                    _ => Interval::new(0, d - 1),
                }
            }
            Atom::Min(a, b) => {
                let (a, b) = (self.of(a), self.of(b));
                let lo = a.lo.zip(b.lo).map(|(x, y)| x.min(y));
                Interval { lo, hi: a.hi.into_iter().chain(b.hi).min() }
            }
            Atom::Max(a, b) => {
                let (a, b) = (self.of(a), self.of(b));
                let hi = a.hi.zip(b.hi).map(|(x, y)| x.max(y));
                Interval { lo: a.lo.into_iter().chain(b.lo).max(), hi }
            }
            Atom::Xor(a, b) => match (self.of(a), self.of(b)) {
                (Interval { lo: Some(0..), hi: Some(x) }, Interval { lo: Some(0..), hi: Some(y) }) => {
                    let bits = 64 - (x | y).leading_zeros();
                    Interval::new(0, if bits >= 63 { i64::MAX } else { (1 << bits) - 1 })
                }
                (Interval { lo: Some(0..), .. }, Interval { lo: Some(0..), .. }) => Interval::SIZE,
                _ => Interval::ALL,
            },
            Atom::Select(c, a, b) => match self.decide(c) {
                Some(true) => self.of(a),
                Some(false) => self.of(b),
                None => self.of(a).union(self.of(b)),
            },
        }
    }

    /// Whether a condition always holds, never holds, or cannot be told from intervals alone.
    pub fn decide(&self, cond: &Cond) -> Option<bool> {
        match cond {
            Cond::Compare(how, a, b) => {
                let d = self.of(&(a - b));
                let (below, above) = (d.hi.is_some_and(|h| h < 0), d.lo.is_some_and(|l| l > 0));
                let (not_above, not_below) = (d.hi.is_some_and(|h| h <= 0), d.lo.is_some_and(|l| l >= 0));
                match how {
                    Comparison::Lt if below => Some(true),
                    Comparison::Lt if not_below => Some(false),
                    Comparison::Le if not_above => Some(true),
                    Comparison::Le if above => Some(false),
                    Comparison::Eq if d.single() == Some(0) => Some(true),
                    Comparison::Eq if below || above => Some(false),
                    Comparison::Ne if below || above => Some(true),
                    Comparison::Ne if d.single() == Some(0) => Some(false),
                    _ => None,
                }
            }
            Cond::Flag(_) => None,
            Cond::Not(c) => self.decide(c).map(|t| !t),
            Cond::And(v) => {
                let parts: Vec<_> = v.iter().map(|c| self.decide(c)).collect();
                if parts.contains(&Some(false)) {
                    Some(false)
                } else {
                    parts.iter().all(|p| *p == Some(true)).then_some(true)
                }
            }
            Cond::Or(v) => {
                let parts: Vec<_> = v.iter().map(|c| self.decide(c)).collect();
                if parts.contains(&Some(true)) {
                    Some(true)
                } else {
                    parts.iter().all(|p| *p == Some(false)).then_some(false)
                }
            }
        }
    }
}
