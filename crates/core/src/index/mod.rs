//! Quasi-affine arithmetic: the language of bounds, conditions and indices.
//!
//! An [`Index`] is kept in canonical form: a constant plus integer multiples of distinct atoms, where an atom is a
//! variable, a floor division or remainder by a positive constant, a minimum, a maximum, an exclusive or, or a
//! choice. Two indices that are the same sum are the same value, so equality needs no prover, and the address that
//! the emitter prints is already collected. Products and quotients of two symbols cannot be built (rule 9).
//!
//! `/` and `%` are floor division and its remainder, also for negative operands.

mod atom;
mod bounds;
mod cond;
mod linear;
mod print;
mod prove;
mod simplify;

use std::cmp::Ordering;
use std::ops::{Add, Mul, Neg, Sub};
use std::sync::Arc;

pub use atom::Atom;
pub use bounds::{Interval, Ranges};
pub use cond::{Comparison, Cond};
pub use print::{Naming, PlainNames};
pub use prove::{Facts, Mark, Touch, disjoint_iterations, prove, strides_apart};

use crate::sym::Sym;

/// An integer expression over sizes and loop variables: a constant plus multiples of distinct atoms.
///
/// Rewrites copy indices far more often than they make them, so copies share their terms.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Index {
    /// Sorted by atom; no coefficient is zero.
    terms: Arc<[Term]>,
    constant: i64,
}

/// An atom and its coefficient.
type Term = (Atom, i64);

impl Index {
    /// The constant `value`.
    pub fn constant(value: i64) -> Index {
        Index { terms: Arc::default(), constant: value }
    }

    /// The variable `sym`.
    pub fn var(sym: &Sym) -> Index {
        Index::atom(Atom::Var(sym.clone()))
    }

    /// One atom, taken once.
    pub fn atom(atom: Atom) -> Index {
        Index { terms: Arc::new([(atom, 1)]), constant: 0 }
    }

    /// The terms: distinct atoms with their coefficients, none zero, sorted by atom.
    #[inline]
    pub fn terms(&self) -> &[(Atom, i64)] {
        &self.terms
    }

    /// The constant term.
    #[inline]
    pub fn constant_term(&self) -> i64 {
        self.constant
    }

    /// Whether it is the same number of elements behind a multiple of `of` whatever its symbols are, and not a multiple itself, by its factors alone.
    pub fn is_behind_multiple(&self, of: i64) -> bool {
        self.terms().iter().all(|(_, factor)| factor % of == 0) && self.constant_term() % of != 0
    }

    /// The value if it is a constant.
    pub fn as_constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// The variable if it is just one.
    pub fn as_var(&self) -> Option<&Sym> {
        match (&self.terms[..], self.constant) {
            ([(Atom::Var(sym), 1)], 0) => Some(sym),
            _ => None,
        }
    }

    /// The coefficient of a variable in the linear part (0 if it does not occur there).
    pub fn coefficient(&self, sym: &Sym) -> i64 {
        self.terms.iter().find_map(|(a, c)| matches!(a, Atom::Var(s) if s == sym).then_some(*c)).unwrap_or(0)
    }

    /// The product, if one side is a constant; products of two symbols are outside the language (rule 9).
    pub fn times(&self, other: &Index) -> Option<Index> {
        match (self.as_constant(), other.as_constant()) {
            (Some(c), _) => Some(other.scaled(c)),
            (_, Some(c)) => Some(self.scaled(c)),
            _ => None,
        }
    }

    /// `self * factor`.
    pub fn scaled(&self, factor: i64) -> Index {
        match factor {
            0 => Index::default(),
            1 => self.clone(),
            _ => {
                let terms = self.terms.iter().map(|(a, c)| (a.clone(), c.saturating_mul(factor))).collect();
                Index { terms, constant: self.constant.saturating_mul(factor) }
            }
        }
    }

    /// Floor division by a positive constant. Panics if `divisor` is not positive.
    pub fn div(&self, divisor: i64) -> Index {
        assert!(divisor > 0, "division by {divisor}");
        if divisor == 1 {
            return self.clone();
        }
        let (whole, rest) = self.split_multiples(divisor);
        if rest.is_empty() {
            return whole;
        }
        // floor((g r + c) / (g d)) = floor((r + floor(c / g)) / d)
        let g = rest.iter().fold(divisor, |g, (_, c)| gcd(g, *c));
        let reduced = Index {
            terms: rest.into_iter().map(|(a, c)| (a.clone(), c / g)).collect(),
            constant: self.constant.rem_euclid(divisor).div_euclid(g),
        };
        if divisor / g == 1 {
            return &whole + &reduced;
        }
        let nested = match (&reduced.terms[..], reduced.constant) {
            ([(Atom::Div(inner, d), 1)], 0) => Atom::Div(inner.clone(), d.saturating_mul(divisor / g)),
            _ => Atom::Div(reduced, divisor / g),
        };
        &whole + &Index::atom(nested)
    }

    /// Remainder of floor division by a positive constant. Panics if `divisor` is not positive.
    pub fn rem(&self, divisor: i64) -> Index {
        assert!(divisor > 0, "remainder by {divisor}");
        let constant = self.constant.rem_euclid(divisor);
        // (g r + c) mod (g d) = g ((r + floor(c / g)) mod d) + c mod g
        let rest = || self.terms.iter().filter(|(_, c)| c % divisor != 0);
        let g = rest().fold(divisor, |g, (_, c)| gcd(g, *c));
        if g == divisor {
            return Index::constant(constant);
        }
        let reduced = Index {
            terms: rest().map(|(a, c)| (a.clone(), (c / g).rem_euclid(divisor / g))).collect(),
            constant: constant.div_euclid(g).rem_euclid(divisor / g),
        };
        let reduced = match (&reduced.terms[..], reduced.constant) {
            // (x mod kd) mod d = x mod d
            ([(Atom::Mod(inner, d), 1)], 0) if d % (divisor / g) == 0 => inner.clone(),
            _ => reduced,
        };
        Index::atom(Atom::Mod(reduced, divisor / g)).scaled(g).offset(constant.rem_euclid(g))
    }

    /// The smallest integer not below `self / divisor`. Panics if `divisor` is not positive.
    pub fn ceil_div(&self, divisor: i64) -> Index {
        self.offset(divisor - 1).div(divisor)
    }

    /// `self + delta`.
    pub fn offset(&self, delta: i64) -> Index {
        Index { terms: self.terms.clone(), constant: self.constant.saturating_add(delta) }
    }

    /// The smaller of two.
    pub fn minimum(&self, other: &Index) -> Index {
        match (self - other).as_constant() {
            Some(d) if d <= 0 => self.clone(),
            Some(_) => other.clone(),
            None => Index::atom(Atom::Min(self.clone(), other.clone())),
        }
    }

    /// The larger of two.
    pub fn maximum(&self, other: &Index) -> Index {
        match (self - other).as_constant() {
            Some(d) if d >= 0 => self.clone(),
            Some(_) => other.clone(),
            None => Index::atom(Atom::Max(self.clone(), other.clone())),
        }
    }

    /// Bitwise exclusive or of two values that are not negative.
    pub fn xor(&self, other: &Index) -> Index {
        match (self.as_constant(), other.as_constant()) {
            (Some(a), Some(b)) => Index::constant(a ^ b),
            (Some(0), _) => other.clone(),
            (_, Some(0)) => self.clone(),
            _ if self == other => Index::default(),
            _ => Index::atom(Atom::Xor(self.clone(), other.clone())),
        }
    }

    /// `cond ? this : that`.
    pub fn select(cond: Cond, this: Index, that: Index) -> Index {
        match cond.as_constant() {
            Some(true) => this,
            Some(false) => that,
            None if this == that => this,
            None => Index::atom(Atom::Select(Arc::new(cond), this, that)),
        }
    }

    /// Replaces variables; those for which `with` has nothing stay. Canonical form is restored.
    pub fn substitute(&self, with: &dyn Fn(&Sym) -> Option<Index>) -> Index {
        self.replaced(with).unwrap_or_else(|| self.clone())
    }

    /// As [`Index::substitute`], but `None` where nothing is replaced.
    fn replaced(&self, with: &dyn Fn(&Sym) -> Option<Index>) -> Option<Index> {
        let parts: Vec<Option<Index>> = self.terms.iter().map(|(atom, _)| atom.replaced(with)).collect();
        if parts.iter().all(Option::is_none) {
            return None;
        }
        let kept = self.terms.iter().zip(&parts).filter(|(_, part)| part.is_none());
        let kept = Index { terms: kept.map(|(term, _)| term.clone()).collect(), constant: self.constant };
        let new = self.terms.iter().zip(&parts).filter_map(|((_, c), part)| Some(part.as_ref()?.scaled(*c)));
        Some(new.fold(kept, |sum, part| &sum + &part))
    }

    /// Calls `visit` for each occurrence of a variable.
    pub fn for_each_var(&self, visit: &mut dyn FnMut(&Sym)) {
        for (atom, _) in &*self.terms {
            atom.for_each_var(visit);
        }
    }

    /// Whether `sym` occurs.
    pub fn mentions(&self, sym: &Sym) -> bool {
        let mut found = false;
        self.for_each_var(&mut |s| found |= s == sym);
        found
    }

    /// The terms whose atoms belong together by `belongs`, and the others with the constant.
    pub fn parted(&self, belongs: impl Fn(&Atom) -> bool) -> (Index, Index) {
        let count = self.terms.iter().filter(|(atom, _)| belongs(atom)).count();
        if count == 0 {
            return (Index::default(), self.clone());
        }
        if count == self.terms.len() {
            return (self.offset(-self.constant), Index::constant(self.constant));
        }
        let (own, rest): (Vec<&Term>, Vec<&Term>) = self.terms.iter().partition(|(atom, _)| belongs(atom));
        let index =
            |terms: Vec<&Term>, constant| Index { terms: terms.into_iter().cloned().collect(), constant };
        (index(own, 0), index(rest, self.constant))
    }

    /// The value under an assignment of all variables.
    ///
    /// # Errors
    /// The first variable for which `value` has nothing.
    pub fn eval(&self, value: &dyn Fn(&Sym) -> Option<i64>) -> Result<i64, Sym> {
        let mut sum = self.constant;
        for (atom, c) in &*self.terms {
            sum = sum.wrapping_add(atom.eval(value)?.wrapping_mul(*c));
        }
        Ok(sum)
    }

    /// `self / divisor` as far as it is no fraction, and the terms that are left: terms whose coefficient is a multiple go
    /// to the former, and so does the whole part of the constant.
    fn split_multiples(&self, divisor: i64) -> (Index, Vec<&Term>) {
        let (whole, rest): (Vec<&Term>, Vec<&Term>) = self.terms.iter().partition(|(_, c)| c % divisor == 0);
        let terms = whole.into_iter().map(|(a, c)| (a.clone(), c / divisor)).collect();
        (Index { terms, constant: self.constant.div_euclid(divisor) }, rest)
    }

    /// The same value, with `d * (x / d) + x % d` written `x`.
    fn join_division_and_remainder(self) -> Index {
        let is_division = |(atom, _): &Term| matches!(atom, Atom::Div(..));
        if !self.terms.iter().any(is_division) {
            return self;
        }
        for (atom, c) in &*self.terms {
            let Atom::Mod(x, d) = atom else { continue };
            let quotient = x.div(*d).scaled(c.saturating_mul(*d));
            let [division @ (Atom::Div(..), _)] = &quotient.terms[..] else { continue };
            if self.terms.contains(division) {
                let rest = self.terms.iter().filter(|t| t.0 != *atom && *t != division).cloned().collect();
                let rest = Index { terms: rest, constant: self.constant.saturating_sub(quotient.constant) };
                return &rest + &x.scaled(*c);
            }
        }
        self
    }
}

/// The terms of a sum.
fn merged(a: &[Term], b: &[Term]) -> Arc<[Term]> {
    let mut sum: Vec<Term> = Vec::with_capacity(a.len() + b.len());
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
        match x.0.cmp(&y.0) {
            Ordering::Less => sum.extend(a.next().cloned()),
            Ordering::Greater => sum.extend(b.next().cloned()),
            Ordering::Equal => {
                let c = x.1.saturating_add(y.1);
                if c != 0 {
                    sum.push((x.0.clone(), c));
                }
                a.next();
                b.next();
            }
        }
    }
    sum.extend(a.chain(b).cloned());
    sum.into()
}

impl Add for &Index {
    type Output = Index;

    fn add(self, other: &Index) -> Index {
        if other.terms.is_empty() {
            return self.offset(other.constant);
        }
        if self.terms.is_empty() {
            return other.offset(self.constant);
        }
        let terms = merged(&self.terms, &other.terms);
        let constant = self.constant.saturating_add(other.constant);
        Index { terms, constant }.join_division_and_remainder()
    }
}

impl Sub for &Index {
    type Output = Index;

    fn sub(self, other: &Index) -> Index {
        self + &other.scaled(-1)
    }
}

impl Mul<i64> for &Index {
    type Output = Index;

    fn mul(self, factor: i64) -> Index {
        self.scaled(factor)
    }
}

impl Neg for &Index {
    type Output = Index;

    fn neg(self) -> Index {
        self.scaled(-1)
    }
}

impl From<i64> for Index {
    fn from(value: i64) -> Index {
        Index::constant(value)
    }
}

impl From<&Sym> for Index {
    fn from(sym: &Sym) -> Index {
        Index::var(sym)
    }
}

/// The greatest common divisor; of 0 and 0 it is 0.
pub fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a.abs() } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests;
