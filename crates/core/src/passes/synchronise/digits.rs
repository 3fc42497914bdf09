//! Indices as numbers whose digits are loop variables: what most footprints are, and the quick way to compare two.
//!
//! `64*u + 4*t + v` with `t` in `0..16` and `v` in `0..4` is a number in mixed radix: it has one value for each choice
//! of the variables, so it tells them, and two touches of one element that spell their indices alike agree in them.

use super::touch::{Touch, Values};
use crate::index::{Atom, Index};
use crate::sym::Sym;

/// One digit: a variable that counts from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Digit {
    pub var: Sym,
    pub weight: i64,
    pub count: i64,
}

/// An index as a number.
#[derive(Clone, Debug)]
pub(super) struct Digits {
    /// The heaviest first; each outweighs all after it together.
    digits: Vec<Digit>,
    constant: i64,
}

impl Digits {
    /// The index of a touch as a number; `None` if it is none, or if a variable does not count from 0 to a constant.
    pub fn of(index: &Index, touch: &Touch) -> Option<Digits> {
        let digit = |(atom, weight): &(Atom, i64)| {
            let Atom::Var(var) = atom else { return None };
            let count = touch.around.iter().find(|l| l.var == *var)?.values.count()?;
            (*weight > 0 && count > 0).then(|| Digit { var: var.clone(), weight: *weight, count })
        };
        let mut digits: Vec<Digit> = index.terms().iter().map(digit).collect::<Option<_>>()?;
        digits.retain(|d| d.count > 1);
        digits.sort_by_key(|d| std::cmp::Reverse(d.weight));
        let number = Digits { digits, constant: index.constant_term() };
        number.is_unique(|d| d.count).then_some(number)
    }

    /// Whether each digit outweighs all lighter ones together.
    fn is_unique(&self, count: impl Fn(&Digit) -> i64) -> bool {
        let mut below = 0i64;
        self.digits.iter().rev().all(|digit| {
            let outweighs = digit.weight > below;
            below = below.saturating_add(digit.weight.saturating_mul(count(digit) - 1));
            outweighs
        })
    }

    /// The variables of two numbers that agree wherever the numbers do, in pairs; `None` if they are spelt differently.
    fn paired<'a>(&'a self, other: &'a Digits) -> Option<impl Iterator<Item = (&'a Sym, &'a Sym)>> {
        let alike = self.constant == other.constant
            && self.digits.len() == other.digits.len()
            && self.digits.iter().zip(&other.digits).all(|(a, b)| a.weight == b.weight)
            && self.is_unique(|d| d.count.max(other.count_at(d.weight)));
        alike.then(|| self.digits.iter().zip(&other.digits).map(|(a, b)| (&a.var, &b.var)))
    }

    fn count_at(&self, weight: i64) -> i64 {
        self.digits.iter().find(|d| d.weight == weight).map_or(1, |d| d.count)
    }

    /// The values of the variables for which the number is `value`.
    pub fn solve(&self, value: i64) -> Option<Vec<(Sym, i64)>> {
        let mut rest = value.checked_sub(self.constant).filter(|rest| *rest >= 0)?;
        let mut solution = Vec::with_capacity(self.digits.len());
        for digit in &self.digits {
            let at = rest / digit.weight;
            if at >= digit.count {
                return None;
            }
            rest -= at * digit.weight;
            solution.push((digit.var.clone(), at));
        }
        (rest == 0).then_some(solution)
    }
}

/// Whether two touches of one element are certainly made by one thread: the element tells every thread variable of
/// each, and they are spread over the threads alike. `dims` are the dimensions in which both must agree.
pub(super) fn same_thread(a: &Touch, b: &Touch, dims: &[(&Index, &Index)]) -> bool {
    if a.size != 1 || b.size != 1 || a.base != b.base {
        return false;
    }
    let mut pairs: Vec<(Sym, Sym)> = Vec::new();
    let mut agree = |x: &Index, y: &Index| {
        if let (Some(x), Some(y)) = (Digits::of(x, a), Digits::of(y, b))
            && let Some(equal) = x.paired(&y)
        {
            pairs.extend(equal.map(|(x, y)| (x.clone(), y.clone())));
        }
    };
    dims.iter().for_each(|(x, y)| agree(x, y));
    // Quotient and remainder in two dimensions are one number.
    for divisor in divisors(dims) {
        for (at, (x, y)) in dims.iter().enumerate() {
            for (_, (u, v)) in dims.iter().enumerate().filter(|(other, _)| *other != at) {
                agree(&(&x.scaled(divisor) + u), &(&y.scaled(divisor) + v));
            }
        }
    }
    let threads = |touch: &Touch| -> Vec<(Sym, i64)> {
        let spread = |values: &Values| {
            if let Values::Threads { count: 2.., pitch } = values { Some(*pitch) } else { None }
        };
        touch.around.iter().filter_map(|l| Some((l.var.clone(), spread(&l.values)?))).collect()
    };
    let (mine, mut theirs) = (threads(a), threads(b));
    mine.len() == theirs.len()
        && mine.iter().all(|(var, pitch)| {
            let equal = |other: &Sym| pairs.iter().any(|(x, y)| x == var && y == other);
            let partner = theirs.iter().position(|(other, p)| p == pitch && equal(other));
            partner.map(|at| theirs.swap_remove(at)).is_some()
        })
}

/// By what a quotient in another dimension is multiplied to make one number with a remainder in some dimension.
fn divisors(dims: &[(&Index, &Index)]) -> Vec<i64> {
    let mut found = Vec::new();
    for (atom, c) in dims.iter().flat_map(|(x, _)| x.terms()) {
        if let Atom::Mod(_, d) = atom
            && !found.contains(&(c * d))
        {
            found.push(c * d);
        }
    }
    found
}
