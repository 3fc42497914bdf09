//! Quasi-affine arithmetic: the language of bounds, conditions and indices.
//!
//! An [`Index`] is kept in canonical form: a constant plus integer multiples of distinct atoms, where an atom is a
//! variable, a floor division or remainder by a positive constant, a minimum, a maximum, an exclusive or, or a
//! choice. Two indices that are the same sum are the same value, so equality needs no prover, and the address that
//! the emitter prints is already collected. Products and quotients of two symbols cannot be built (rule 9).
//!
//! `/` and `%` are floor division and its remainder, also for negative operands.

mod bounds;
mod linear;
mod print;
mod prove;
mod simplify;

use std::ops::{Add, Mul, Neg, Sub};

pub use bounds::{Interval, Ranges};
pub use print::{Naming, PlainNames};
pub use prove::{Facts, Mark, Touch, disjoint_iterations, prove, strides_apart};

use crate::sym::Sym;

/// An integer expression over sizes and loop variables: a constant plus multiples of distinct atoms.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Index {
    /// Sorted by atom; no coefficient is zero.
    terms: Vec<(Atom, i64)>,
    constant: i64,
}

/// What an [`Index`] is a linear combination of.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Atom {
    /// A loop variable, a `let`, a size, a row stride, a launch parameter or an ordinal.
    Var(Sym),
    /// Floor division by a positive constant.
    Div(Box<Index>, i64),
    /// Remainder of floor division by a positive constant; never negative.
    Mod(Box<Index>, i64),
    /// The smaller of two.
    Min(Box<Index>, Box<Index>),
    /// The larger of two.
    Max(Box<Index>, Box<Index>),
    /// Bitwise exclusive or of two non-negative values.
    Xor(Box<Index>, Box<Index>),
    /// `condition ? this : that`; only the chosen arm is evaluated.
    Select(Box<Cond>, Box<Index>, Box<Index>),
}

/// A condition on sizes, flags and loop variables, never on data (rule 5).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cond {
    /// A comparison of two indices.
    Compare(Comparison, Index, Index),
    /// A flag computed by the host, such as "beta is 0".
    Flag(Sym),
    /// Negation.
    Not(Box<Cond>),
    /// All of them; true if empty.
    And(Vec<Cond>),
    /// Any of them; false if empty.
    Or(Vec<Cond>),
}

/// How two indices are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Comparison {
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `==`
    Eq,
    /// `!=`
    Ne,
}

impl Index {
    /// The constant `value`.
    pub fn constant(value: i64) -> Index {
        Index { terms: Vec::new(), constant: value }
    }

    /// The variable `sym`.
    pub fn var(sym: &Sym) -> Index {
        Index { terms: vec![(Atom::Var(sym.clone()), 1)], constant: 0 }
    }

    /// One atom, taken once.
    pub fn atom(atom: Atom) -> Index {
        Index { terms: vec![(atom, 1)], constant: 0 }
    }

    /// The terms: distinct atoms with their coefficients, none zero, sorted by atom.
    pub fn terms(&self) -> &[(Atom, i64)] {
        &self.terms
    }

    /// The constant term.
    pub fn constant_term(&self) -> i64 {
        self.constant
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
        if factor == 0 {
            return Index::default();
        }
        let terms = self.terms.iter().map(|(a, c)| (a.clone(), c.saturating_mul(factor))).collect();
        Index { terms, constant: self.constant.saturating_mul(factor) }
    }

    /// Floor division by a positive constant. Panics if `divisor` is not positive.
    pub fn div(&self, divisor: i64) -> Index {
        assert!(divisor > 0, "division by {divisor}");
        if divisor == 1 {
            return self.clone();
        }
        let (whole, rest) = self.split_multiples(divisor);
        if rest.terms.is_empty() {
            return whole.offset(rest.constant.div_euclid(divisor));
        }
        // floor((g r + c) / (g d)) = floor((r + floor(c / g)) / d)
        let g = rest.terms.iter().fold(divisor, |g, (_, c)| gcd(g, *c));
        let reduced = Index {
            terms: rest.terms.iter().map(|(a, c)| (a.clone(), c / g)).collect(),
            constant: rest.constant.div_euclid(g),
        };
        if divisor / g == 1 {
            return &whole + &reduced;
        }
        let nested = match (&reduced.terms[..], reduced.constant) {
            ([(Atom::Div(inner, d), 1)], 0) => Atom::Div(inner.clone(), d.saturating_mul(divisor / g)),
            _ => Atom::Div(Box::new(reduced), divisor / g),
        };
        &whole + &Index::atom(nested)
    }

    /// Remainder of floor division by a positive constant. Panics if `divisor` is not positive.
    pub fn rem(&self, divisor: i64) -> Index {
        assert!(divisor > 0, "remainder by {divisor}");
        let (_, rest) = self.split_multiples(divisor);
        if rest.terms.is_empty() {
            return Index::constant(rest.constant.rem_euclid(divisor));
        }
        // (g r + c) mod (g d) = g ((r + floor(c / g)) mod d) + c mod g
        let g = rest.terms.iter().fold(divisor, |g, (_, c)| gcd(g, *c));
        if g == divisor {
            return Index::constant(rest.constant.rem_euclid(divisor));
        }
        let reduced = Index {
            terms: rest.terms.iter().map(|(a, c)| (a.clone(), (c / g).rem_euclid(divisor / g))).collect(),
            constant: rest.constant.div_euclid(g).rem_euclid(divisor / g),
        };
        let reduced = match (&reduced.terms[..], reduced.constant) {
            // (x mod kd) mod d = x mod d
            ([(Atom::Mod(inner, d), 1)], 0) if d % (divisor / g) == 0 => (**inner).clone(),
            _ => reduced,
        };
        Index::atom(Atom::Mod(Box::new(reduced), divisor / g)).scaled(g).offset(rest.constant.rem_euclid(g))
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
            None => Index::atom(Atom::Min(Box::new(self.clone()), Box::new(other.clone()))),
        }
    }

    /// The larger of two.
    pub fn maximum(&self, other: &Index) -> Index {
        match (self - other).as_constant() {
            Some(d) if d >= 0 => self.clone(),
            Some(_) => other.clone(),
            None => Index::atom(Atom::Max(Box::new(self.clone()), Box::new(other.clone()))),
        }
    }

    /// Bitwise exclusive or of two values that are not negative.
    pub fn xor(&self, other: &Index) -> Index {
        match (self.as_constant(), other.as_constant()) {
            (Some(a), Some(b)) => Index::constant(a ^ b),
            (Some(0), _) => other.clone(),
            (_, Some(0)) => self.clone(),
            _ if self == other => Index::default(),
            _ => Index::atom(Atom::Xor(Box::new(self.clone()), Box::new(other.clone()))),
        }
    }

    /// `cond ? this : that`.
    pub fn select(cond: Cond, this: Index, that: Index) -> Index {
        match cond.as_constant() {
            Some(true) => this,
            Some(false) => that,
            None if this == that => this,
            None => Index::atom(Atom::Select(Box::new(cond), Box::new(this), Box::new(that))),
        }
    }

    /// Replaces variables; those for which `with` has nothing stay. Canonical form is restored.
    pub fn substitute(&self, with: &dyn Fn(&Sym) -> Option<Index>) -> Index {
        let mut sum = Index::constant(self.constant);
        for (atom, c) in &self.terms {
            sum = &sum + &atom.substitute(with).scaled(*c);
        }
        sum
    }

    /// Calls `visit` for each occurrence of a variable.
    pub fn for_each_var(&self, visit: &mut dyn FnMut(&Sym)) {
        for (atom, _) in &self.terms {
            atom.for_each_var(visit);
        }
    }

    /// Whether `sym` occurs.
    pub fn mentions(&self, sym: &Sym) -> bool {
        let mut found = false;
        self.for_each_var(&mut |s| found |= s == sym);
        found
    }

    /// The value under an assignment of all variables.
    ///
    /// # Errors
    /// The first variable for which `value` has nothing.
    pub fn eval(&self, value: &dyn Fn(&Sym) -> Option<i64>) -> Result<i64, Sym> {
        let mut sum = self.constant;
        for (atom, c) in &self.terms {
            sum = sum.wrapping_add(atom.eval(value)?.wrapping_mul(*c));
        }
        Ok(sum)
    }

    /// `(whole, rest)` with `self = divisor * whole + rest`: terms whose coefficient is a multiple go to `whole`,
    /// and so does the whole part of the constant; the constant of `rest` lies in `0..divisor`.
    fn split_multiples(&self, divisor: i64) -> (Index, Index) {
        let (mut whole, mut rest) = (Index::default(), Index::default());
        for (atom, c) in &self.terms {
            if c % divisor == 0 {
                whole.terms.push((atom.clone(), c / divisor));
            } else {
                rest.terms.push((atom.clone(), *c));
            }
        }
        whole.constant = self.constant.div_euclid(divisor);
        rest.constant = self.constant.rem_euclid(divisor);
        (whole, rest)
    }

    /// Adds `coefficient * atom`, keeping the form canonical: `d * (x / d) + x % d` becomes `x`.
    fn add_term(&mut self, atom: &Atom, coefficient: i64) {
        match self.terms.binary_search_by(|(a, _)| a.cmp(atom)) {
            Ok(at) => {
                self.terms[at].1 = self.terms[at].1.saturating_add(coefficient);
                if self.terms[at].1 == 0 {
                    self.terms.remove(at);
                }
            }
            Err(at) => self.terms.insert(at, (atom.clone(), coefficient)),
        }
    }

    fn join_division_and_remainder(self) -> Index {
        for (atom, c) in &self.terms {
            let Atom::Mod(x, d) = atom else { continue };
            let quotient = x.div(*d).scaled(c.saturating_mul(*d));
            let [(division @ Atom::Div(..), wanted)] = &quotient.terms[..] else { continue };
            let present = self.terms.iter().any(|(a, k)| a == division && k == wanted);
            if present {
                let mut rest = self.clone();
                rest.add_term(&atom.clone(), -c);
                rest.add_term(division, -wanted);
                return &rest.offset(-quotient.constant) + &x.scaled(*c);
            }
        }
        self
    }
}

impl Atom {
    fn substitute(&self, with: &dyn Fn(&Sym) -> Option<Index>) -> Index {
        match self {
            Atom::Var(sym) => with(sym).unwrap_or_else(|| Index::var(sym)),
            Atom::Div(x, d) => x.substitute(with).div(*d),
            Atom::Mod(x, d) => x.substitute(with).rem(*d),
            Atom::Min(a, b) => a.substitute(with).minimum(&b.substitute(with)),
            Atom::Max(a, b) => a.substitute(with).maximum(&b.substitute(with)),
            Atom::Xor(a, b) => a.substitute(with).xor(&b.substitute(with)),
            Atom::Select(c, a, b) => {
                Index::select(c.substitute(with), a.substitute(with), b.substitute(with))
            }
        }
    }

    fn for_each_var(&self, visit: &mut dyn FnMut(&Sym)) {
        match self {
            Atom::Var(sym) => visit(sym),
            Atom::Div(x, _) | Atom::Mod(x, _) => x.for_each_var(visit),
            Atom::Min(a, b) | Atom::Max(a, b) | Atom::Xor(a, b) => {
                a.for_each_var(visit);
                b.for_each_var(visit);
            }
            Atom::Select(c, a, b) => {
                c.for_each_var(visit);
                a.for_each_var(visit);
                b.for_each_var(visit);
            }
        }
    }

    fn eval(&self, value: &dyn Fn(&Sym) -> Option<i64>) -> Result<i64, Sym> {
        Ok(match self {
            Atom::Var(sym) => value(sym).ok_or_else(|| sym.clone())?,
            Atom::Div(x, d) => x.eval(value)?.div_euclid(*d),
            Atom::Mod(x, d) => x.eval(value)?.rem_euclid(*d),
            Atom::Min(a, b) => a.eval(value)?.min(b.eval(value)?),
            Atom::Max(a, b) => a.eval(value)?.max(b.eval(value)?),
            Atom::Xor(a, b) => a.eval(value)? ^ b.eval(value)?,
            Atom::Select(c, a, b) => {
                if c.eval(value)? {
                    a.eval(value)?
                } else {
                    b.eval(value)?
                }
            }
        })
    }
}

impl Cond {
    /// Always true.
    pub const TRUE: Cond = Cond::And(Vec::new());
    /// Always false.
    pub const FALSE: Cond = Cond::Or(Vec::new());

    /// `a < b`.
    pub fn lt(a: Index, b: Index) -> Cond {
        Cond::compare(Comparison::Lt, a, b)
    }

    /// `a <= b`.
    pub fn le(a: Index, b: Index) -> Cond {
        Cond::compare(Comparison::Le, a, b)
    }

    /// `a == b`.
    pub fn eq(a: Index, b: Index) -> Cond {
        Cond::compare(Comparison::Eq, a, b)
    }

    /// A comparison, decided at once where both sides differ by a constant.
    pub fn compare(how: Comparison, a: Index, b: Index) -> Cond {
        match (&a - &b).as_constant() {
            Some(d) => Cond::from(how.holds(d, 0)),
            None => Cond::Compare(how, a, b),
        }
    }

    /// Both.
    #[must_use]
    pub fn and(self, other: Cond) -> Cond {
        if self == Cond::FALSE || other == Cond::FALSE {
            return Cond::FALSE;
        }
        let mut all = self.into_conjuncts();
        for c in other.into_conjuncts() {
            if !all.contains(&c) {
                all.push(c);
            }
        }
        if all.len() == 1 { all.swap_remove(0) } else { Cond::And(all) }
    }

    /// Either.
    #[must_use]
    pub fn or(self, other: Cond) -> Cond {
        if self == Cond::TRUE || other == Cond::TRUE {
            return Cond::TRUE;
        }
        let parts = |c: Cond| if let Cond::Or(v) = c { v } else { vec![c] };
        let mut any = parts(self);
        any.extend(parts(other));
        if any.len() == 1 { any.swap_remove(0) } else { Cond::Or(any) }
    }

    /// Not this; comparisons are turned round instead of wrapped.
    #[must_use]
    pub fn negate(self) -> Cond {
        match self {
            Cond::Compare(Comparison::Lt, a, b) => Cond::Compare(Comparison::Le, b, a),
            Cond::Compare(Comparison::Le, a, b) => Cond::Compare(Comparison::Lt, b, a),
            Cond::Compare(Comparison::Eq, a, b) => Cond::Compare(Comparison::Ne, a, b),
            Cond::Compare(Comparison::Ne, a, b) => Cond::Compare(Comparison::Eq, a, b),
            Cond::Not(c) => *c,
            Cond::And(v) if v.is_empty() => Cond::FALSE,
            Cond::Or(v) if v.is_empty() => Cond::TRUE,
            other => Cond::Not(Box::new(other)),
        }
    }

    /// The conditions that must all hold.
    pub fn into_conjuncts(self) -> Vec<Cond> {
        if let Cond::And(v) = self { v } else { vec![self] }
    }

    /// The conditions that must all hold, borrowed.
    pub fn conjuncts(&self) -> &[Cond] {
        if let Cond::And(v) = self { v } else { std::slice::from_ref(self) }
    }

    /// The truth if it is constant on its face.
    pub fn as_constant(&self) -> Option<bool> {
        match self {
            Cond::And(v) if v.is_empty() => Some(true),
            Cond::Or(v) if v.is_empty() => Some(false),
            _ => None,
        }
    }

    /// Replaces variables as in [`Index::substitute`].
    #[must_use]
    pub fn substitute(&self, with: &dyn Fn(&Sym) -> Option<Index>) -> Cond {
        match self {
            Cond::Compare(how, a, b) => Cond::compare(*how, a.substitute(with), b.substitute(with)),
            Cond::Flag(sym) => match with(sym).as_ref().and_then(Index::as_var) {
                Some(renamed) => Cond::Flag(renamed.clone()),
                None => Cond::Flag(sym.clone()),
            },
            Cond::Not(c) => c.substitute(with).negate(),
            Cond::And(v) => v.iter().fold(Cond::TRUE, |all, c| all.and(c.substitute(with))),
            Cond::Or(v) => v.iter().fold(Cond::FALSE, |any, c| any.or(c.substitute(with))),
        }
    }

    /// Calls `visit` for each occurrence of a variable or flag.
    pub fn for_each_var(&self, visit: &mut dyn FnMut(&Sym)) {
        match self {
            Cond::Compare(_, a, b) => {
                a.for_each_var(visit);
                b.for_each_var(visit);
            }
            Cond::Flag(sym) => visit(sym),
            Cond::Not(c) => c.for_each_var(visit),
            Cond::And(v) | Cond::Or(v) => v.iter().for_each(|c| c.for_each_var(visit)),
        }
    }

    /// Whether `sym` occurs.
    pub fn mentions(&self, sym: &Sym) -> bool {
        let mut found = false;
        self.for_each_var(&mut |s| found |= s == sym);
        found
    }

    /// The truth under an assignment of all variables; a flag holds when its value is not 0.
    ///
    /// # Errors
    /// The first variable for which `value` has nothing.
    pub fn eval(&self, value: &dyn Fn(&Sym) -> Option<i64>) -> Result<bool, Sym> {
        Ok(match self {
            Cond::Compare(how, a, b) => how.holds(a.eval(value)?, b.eval(value)?),
            Cond::Flag(sym) => value(sym).ok_or_else(|| sym.clone())? != 0,
            Cond::Not(c) => !c.eval(value)?,
            Cond::And(v) => {
                for c in v {
                    if !c.eval(value)? {
                        return Ok(false);
                    }
                }
                true
            }
            Cond::Or(v) => {
                for c in v {
                    if c.eval(value)? {
                        return Ok(true);
                    }
                }
                false
            }
        })
    }
}

impl From<bool> for Cond {
    fn from(truth: bool) -> Cond {
        if truth { Cond::TRUE } else { Cond::FALSE }
    }
}

impl Comparison {
    /// Whether the comparison holds of two numbers.
    pub fn holds(self, a: i64, b: i64) -> bool {
        match self {
            Comparison::Lt => a < b,
            Comparison::Le => a <= b,
            Comparison::Eq => a == b,
            Comparison::Ne => a != b,
        }
    }

    /// The operator as written.
    pub fn symbol(self) -> &'static str {
        match self {
            Comparison::Lt => "<",
            Comparison::Le => "<=",
            Comparison::Eq => "==",
            Comparison::Ne => "!=",
        }
    }
}

impl Add for &Index {
    type Output = Index;

    fn add(self, other: &Index) -> Index {
        let (big, small) = if self.terms.len() >= other.terms.len() { (self, other) } else { (other, self) };
        let mut sum = big.offset(small.constant);
        for (atom, c) in &small.terms {
            sum.add_term(atom, *c);
        }
        sum.join_division_and_remainder()
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
