//! Simplification under known ranges: what makes `(8*ty + i)/8` print as `ty`.

use super::{Atom, Cond, Index, Interval, Ranges, gcd};

impl Ranges {
    /// The same index, with divisions, remainders, minima, maxima and choices resolved where the ranges allow.
    pub fn simplify(&self, index: &Index) -> Index {
        let mut sum = Index::constant(index.constant_term());
        for (atom, c) in index.terms() {
            sum = &sum + &self.simplify_atom(atom).scaled(*c);
        }
        joined(sum)
    }

    /// The same condition, with every part that the ranges decide replaced by its truth.
    pub fn simplify_cond(&self, cond: &Cond) -> Cond {
        if let Some(truth) = self.decide(cond) {
            return Cond::from(truth);
        }
        match cond {
            Cond::Compare(how, a, b) => Cond::compare(*how, self.simplify(a), self.simplify(b)),
            Cond::Flag(_) => cond.clone(),
            Cond::Not(c) => self.simplify_cond(c).negate(),
            Cond::And(v) => v.iter().fold(Cond::TRUE, |all, c| all.and(self.simplify_cond(c))),
            Cond::Or(v) => v.iter().fold(Cond::FALSE, |any, c| any.or(self.simplify_cond(c))),
        }
    }

    fn simplify_atom(&self, atom: &Atom) -> Index {
        match atom {
            Atom::Var(sym) => match self.get(sym).single() {
                Some(value) => Index::constant(value),
                None => Index::var(sym),
            },
            Atom::Div(x, d) => self.divide(&self.simplify(x), *d).0,
            Atom::Mod(x, d) => self.divide(&self.simplify(x), *d).1,
            Atom::Min(a, b) => {
                let (a, b) = (self.simplify(a), self.simplify(b));
                match self.decide(&Cond::le(a.clone(), b.clone())) {
                    Some(true) => a,
                    Some(false) => b,
                    None => a.minimum(&b),
                }
            }
            Atom::Max(a, b) => {
                let (a, b) = (self.simplify(a), self.simplify(b));
                match self.decide(&Cond::le(a.clone(), b.clone())) {
                    Some(true) => b,
                    Some(false) => a,
                    None => a.maximum(&b),
                }
            }
            Atom::Xor(a, b) => self.simplify(a).xor(&self.simplify(b)),
            Atom::Select(c, a, b) => Index::select(self.simplify_cond(c), self.simplify(a), self.simplify(b)),
        }
    }

    /// Quotient and remainder of `x / d`. Where `x = g*s + r` with `g` dividing `d` and `0 <= r < g`, the division
    /// only sees `s`: `x / d = s / (d/g)` and `x % d = g*(s % (d/g)) + r`.
    fn divide(&self, x: &Index, d: i64) -> (Index, Index) {
        if let Interval { lo: Some(lo), hi: Some(hi) } = self.of(x) {
            let q = lo.div_euclid(d);
            if q == hi.div_euclid(d) {
                return (Index::constant(q), x.offset(-q * d));
            }
        }
        let mut candidates: Vec<i64> = x.terms().iter().map(|(_, c)| gcd(*c, d)).filter(|g| *g > 1).collect();
        candidates.sort_unstable_by(|a, b| b.cmp(a));
        candidates.dedup();
        for g in candidates {
            let (mut s, mut r) = (Index::default(), Index::constant(x.constant_term().rem_euclid(g)));
            s = s.offset(x.constant_term().div_euclid(g));
            for (atom, c) in x.terms() {
                let part = Index::atom(atom.clone());
                if c % g == 0 {
                    s = &s + &part.scaled(c / g);
                } else {
                    r = &r + &part.scaled(*c);
                }
            }
            if self.of(&r).within(0, g - 1) {
                if g == d {
                    return (s, r);
                }
                return (s.div(d / g), &s.rem(d / g).scaled(g) + &r);
            }
        }
        (x.div(d), x.rem(d))
    }
}

/// The sum with the two parts of a number put together again: `d*(x/d) + x%d = x`.
fn joined(mut sum: Index) -> Index {
    while let Some((whole, parts)) = sum.terms().iter().find_map(|(atom, c)| {
        let Atom::Div(x, d) = atom else { return None };
        let remainder = x.rem(*d);
        let ([(rest, 1)], 0) = (remainder.terms(), remainder.constant_term()) else { return None };
        let factor = sum.terms().iter().find(|(other, _)| other == rest)?.1;
        let parts = &Index::atom(atom.clone()).scaled(*c) + &Index::atom(rest.clone()).scaled(factor);
        (factor.checked_mul(*d) == Some(*c)).then(|| (x.scaled(factor), parts))
    }) {
        sum = &(&sum - &parts) + &whole;
    }
    sum
}
