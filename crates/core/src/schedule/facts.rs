//! What is known at a place in a program: ranges of variables, promises of the caller, conditions that hold.

use std::collections::HashMap;

use crate::index::{Atom, Comparison, Cond, Index, Interval, Ranges};
use crate::ir::{Buffer, For, Own, ParamKind, Program, Range};
use crate::sym::Sym;

/// What is known at a place.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    ranges: Ranges,
    /// Inclusive symbolic bounds of loop variables, innermost last.
    bounds: Vec<(Sym, Index, Index)>,
    /// Sizes and variables known to be multiples: `M` stands for `128 * M'`.
    multiples: Vec<(Sym, Index)>,
    known: Vec<Cond>,
}

impl Facts {
    /// What is known at host scope.
    pub fn of(program: &Program) -> Facts {
        let mut facts = Facts::default();
        for param in &program.params {
            match &param.kind {
                ParamKind::Size => facts.ranges.set(&param.sym, Interval::SIZE),
                ParamKind::Launch => facts.ranges.set(&param.sym, Interval { lo: Some(1), hi: None }),
                ParamKind::Tensor(buffer) => {
                    if let Some(stride) = &buffer.row_stride {
                        facts.ranges.set(stride, Interval::SIZE);
                    }
                }
                ParamKind::Flag | ParamKind::Scalar(_) => {}
            }
        }
        for cond in &program.assumes {
            facts.assume(cond);
        }
        facts
    }

    /// The intervals of all variables.
    pub fn ranges(&self) -> &Ranges {
        &self.ranges
    }

    /// Goes inside a loop.
    pub fn enter(&mut self, l: &For) {
        let (lo, hi) = match &l.range {
            Range::Span { lo, hi, .. } | Range::Part { lo, hi, .. } => (lo.clone(), hi.offset(-1)),
            Range::List(values) => {
                let (lo, hi) = (values.iter().min().copied(), values.iter().max().copied());
                (lo.unwrap_or(0).into(), hi.unwrap_or(0).into())
            }
        };
        self.ranges.set(&l.var, Interval { lo: self.ranges.of(&lo).lo, hi: self.ranges.of(&hi).hi });
        self.bounds.push((l.var.clone(), lo, hi));
    }

    /// States that `var` lies in an interval.
    pub fn state(&mut self, var: &Sym, interval: Interval) {
        self.ranges.set(var, interval);
    }

    /// States that `var` lies in `0..extent`.
    pub fn enter_range(&mut self, var: &Sym, extent: &Index) {
        self.ranges.set(var, Interval { lo: Some(0), hi: self.ranges.of(extent).hi.map(|h| h - 1) });
        self.bounds.push((var.clone(), Index::default(), extent.offset(-1)));
    }

    /// Goes inside a loop over owned elements.
    pub fn enter_own(&mut self, o: &Own, buffers: &HashMap<Sym, Buffer>) {
        let Some(buffer) = buffers.get(&o.window.buffer) else { return };
        for (var, extent, step) in o.steps(buffer) {
            self.enter_range(var, &extent.offset(1 - step));
            if step > 1 {
                let most = self.ranges.of(&Index::var(var)).hi.map(|hi| hi.div_euclid(step));
                self.steps_by(var, step, Interval { lo: Some(0), hi: most });
            }
        }
    }

    /// States that a condition holds here.
    pub fn assume(&mut self, cond: &Cond) {
        for c in cond.conjuncts() {
            if let Cond::Compare(Comparison::Eq, a, b) = c
                && let ([(Atom::Mod(x, d), 1)], 0, Some(0)) = (a.terms(), a.constant_term(), b.as_constant())
                && let Some(sym) = x.as_var()
            {
                self.steps_by(sym, *d, Interval::SIZE);
            }
            self.known.push(c.clone());
        }
    }

    /// `sym` is `step` times something in an interval.
    fn steps_by(&mut self, sym: &Sym, step: i64, quotients: Interval) {
        let quotient = sym.fresh();
        self.ranges.set(&quotient, quotients);
        self.multiples.push((sym.clone(), Index::var(&quotient).scaled(step)));
    }

    /// Whether a condition is certain to hold here. `false` means that it could not be shown.
    pub fn proves(&self, cond: &Cond) -> bool {
        match cond {
            Cond::And(all) => all.iter().all(|c| self.proves(c)),
            Cond::Or(any) => any.iter().any(|c| self.proves(c)),
            _ if self.known.contains(cond) => true,
            Cond::Compare(Comparison::Lt, a, b) => self.at_most(&(a - b), -1),
            Cond::Compare(Comparison::Le, a, b) => self.at_most(&(a - b), 0),
            Cond::Compare(Comparison::Eq, a, b) => {
                let d = self.as_multiples(&(a - b));
                self.ranges.of(&self.ranges.simplify(&d)).single() == Some(0)
            }
            _ => self.ranges.decide(cond) == Some(true),
        }
    }

    /// The condition without the parts that are certain.
    pub fn remaining(&self, cond: &Cond) -> Cond {
        cond.conjuncts().iter().filter(|c| !self.proves(c)).fold(Cond::TRUE, |all, c| all.and(c.clone()))
    }

    /// Whether `index` is certainly a multiple of `divisor`.
    pub fn is_multiple(&self, index: &Index, divisor: i64) -> bool {
        let rest = self.as_multiples(index).rem(divisor);
        self.ranges.simplify(&rest) == Index::default()
    }

    /// Whether `index <= limit` can be shown.
    fn at_most(&self, index: &Index, limit: i64) -> bool {
        let below = |x: &Index, limit: i64| {
            let x = self.as_multiples(x);
            self.ranges.of(&x).hi.is_some_and(|h| h <= limit)
                || self.ranges.of(&self.upper_bound(&x)).hi.is_some_and(|h| h <= limit)
        };
        if below(index, limit) {
            return true;
        }
        // With a known x - y <= c, it is enough that index - (x - y) <= limit - c.
        self.known.iter().any(|k| match k {
            Cond::Compare(Comparison::Lt, x, y) => below(&(index - &(x - y)), limit + 1),
            Cond::Compare(Comparison::Le, x, y) => below(&(index - &(x - y)), limit),
            _ => false,
        })
    }

    /// An index that is nowhere smaller: loop variables are replaced by their symbolic bounds, innermost first.
    fn upper_bound(&self, index: &Index) -> Index {
        let mut bound = index.clone();
        for (sym, lo, hi) in self.bounds.iter().rev() {
            let c = bound.coefficient(sym);
            if c != 0 {
                let extreme = if c > 0 { hi } else { lo };
                let rest = &bound - &Index::var(sym).scaled(c);
                bound = self.as_multiples(&(&rest + &extreme.scaled(c)));
            }
        }
        bound
    }

    fn as_multiples(&self, index: &Index) -> Index {
        if self.multiples.is_empty() {
            return index.clone();
        }
        index.substitute(&|sym| self.multiples.iter().find(|(s, _)| s == sym).map(|(_, m)| m.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::Facts;
    use crate::index::{Cond, Index};
    use crate::sym::Sym;

    #[test]
    fn a_tile_of_a_multiple_needs_no_guard() {
        let (m, by, r) = (Sym::new("M"), Sym::new("by"), Sym::new("r"));
        let (size, block, row) = (Index::var(&m), Index::var(&by), Index::var(&r));
        let guard = Cond::lt(&block.scaled(128) + &row, size.clone());
        let mut facts = Facts::default();
        facts.enter_range(&by, &size.ceil_div(128));
        facts.enter_range(&r, &Index::from(128));
        assert!(!facts.proves(&guard));
        facts.assume(&Cond::eq(size.rem(128), 0.into()));
        assert!(facts.proves(&guard));
        assert!(!facts.proves(&Cond::lt((&block.scaled(128) + &row).offset(1), size)));
    }

    #[test]
    fn a_known_condition_implies_weaker_ones() {
        let (m, x) = (Index::var(&Sym::new("M")), Index::var(&Sym::new("x")));
        let mut facts = Facts::default();
        facts.assume(&Cond::le(x.offset(4), m.clone()));
        assert!(facts.proves(&Cond::lt(x.offset(3), m.clone())));
        assert!(!facts.proves(&Cond::lt(x.offset(4), m)));
    }
}
