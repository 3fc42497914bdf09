//! What the lanes of a warp make of an index or a condition.

use std::collections::HashMap;

use crate::index::{Atom, Cond, Index};
use crate::sym::Sym;

/// Threads of a warp.
pub const WARP: usize = 32;

/// A value for each lane.
pub type Lanes = [i64; WARP];

/// Which lanes are meant: bit `l` for lane `l`.
pub type Mask = u32;

/// What the symbols at a place stand for.
#[derive(Default)]
pub struct Values {
    known: HashMap<Sym, Value>,
}

/// The same number in all lanes, or one for each.
#[derive(Clone, Copy)]
#[expect(
    clippy::large_enum_variant,
    reason = "values live as long as it takes to add them; an allocation would cost more"
)]
pub enum Value {
    /// In all lanes.
    Same(i64),
    /// Lane by lane.
    Each(Lanes),
}

impl Value {
    /// The number of a lane.
    pub fn of(&self, lane: usize) -> i64 {
        match self {
            Value::Same(v) => *v,
            Value::Each(v) => v[lane],
        }
    }

    fn map(&self, f: impl Fn(i64) -> i64) -> Value {
        match self {
            Value::Same(v) => Value::Same(f(*v)),
            Value::Each(v) => Value::Each(v.map(f)),
        }
    }

    /// Both, lane by lane.
    pub fn zip(&self, other: &Value, f: impl Fn(i64, i64) -> i64) -> Value {
        match (self, other) {
            (Value::Same(a), Value::Same(b)) => Value::Same(f(*a, *b)),
            _ => Value::Each(std::array::from_fn(|l| f(self.of(l), other.of(l)))),
        }
    }
}

impl Values {
    /// States what a symbol stands for.
    pub fn set(&mut self, sym: &Sym, value: Value) {
        self.known.insert(sym.clone(), value);
    }

    /// What an index is; symbols of which nothing is known are 0.
    pub fn index(&self, index: &Index) -> Value {
        let mut sum = Value::Same(index.constant_term());
        for (atom, c) in index.terms() {
            sum = sum.zip(&self.atom(atom), |sum, a| sum.wrapping_add(c.wrapping_mul(a)));
        }
        sum
    }

    fn atom(&self, atom: &Atom) -> Value {
        match atom {
            Atom::Var(sym) => self.known.get(sym).copied().unwrap_or(Value::Same(0)),
            Atom::Div(x, d) => self.index(x).map(|v| v.div_euclid(*d)),
            Atom::Mod(x, d) => self.index(x).map(|v| v.rem_euclid(*d)),
            Atom::Min(a, b) => self.index(a).zip(&self.index(b), i64::min),
            Atom::Max(a, b) => self.index(a).zip(&self.index(b), i64::max),
            Atom::Xor(a, b) => self.index(a).zip(&self.index(b), |a, b| a ^ b),
            Atom::Select(c, a, b) => {
                let (chosen, a, b) = (self.cond(c), self.index(a), self.index(b));
                match chosen {
                    Mask::MAX => a,
                    0 => b,
                    _ => {
                        Value::Each(std::array::from_fn(
                            |l| {
                                if chosen >> l & 1 == 1 { a.of(l) } else { b.of(l) }
                            },
                        ))
                    }
                }
            }
        }
    }

    /// The lanes in which a condition holds. A flag holds where its value is not 0.
    pub fn cond(&self, cond: &Cond) -> Mask {
        let all = |truth: bool| if truth { Mask::MAX } else { 0 };
        match cond {
            Cond::Compare(how, a, b) => match (self.index(a), self.index(b)) {
                (Value::Same(a), Value::Same(b)) => all(how.holds(a, b)),
                (a, b) => (0..WARP).fold(0, |mask, l| mask | Mask::from(how.holds(a.of(l), b.of(l))) << l),
            },
            Cond::Flag(sym) => all(self.known.get(sym).is_some_and(|v| v.of(0) != 0)),
            Cond::Not(c) => !self.cond(c),
            Cond::And(v) => v.iter().fold(Mask::MAX, |mask, c| mask & self.cond(c)),
            Cond::Or(v) => v.iter().fold(0, |mask, c| mask | self.cond(c)),
        }
    }
}
