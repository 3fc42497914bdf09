//! Whether the iterations of a loop keep apart.

use std::collections::HashMap;

use super::Facts;
use super::store::refuted;
use crate::index::{Comparison, Cond, Index, Interval, Ranges};
use crate::sym::Sym;

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
