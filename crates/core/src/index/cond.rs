//! Conditions on indices and flags.

use super::Index;
use crate::sym::Sym;

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
        self.replaced(with).unwrap_or_else(|| self.clone())
    }

    /// As [`Cond::substitute`], but `None` where nothing is replaced.
    pub(super) fn replaced(&self, with: &dyn Fn(&Sym) -> Option<Index>) -> Option<Cond> {
        let each = |v: &[Cond]| {
            let new: Vec<Option<Cond>> = v.iter().map(|c| c.replaced(with)).collect();
            let changed = new.iter().any(Option::is_some);
            changed.then(|| new.into_iter().zip(v.to_vec()).map(|(new, old)| new.unwrap_or(old)))
        };
        match self {
            Cond::Compare(how, a, b) => match (a.replaced(with), b.replaced(with)) {
                (None, None) => None,
                (x, y) => {
                    let (a, b) = (x.unwrap_or_else(|| a.clone()), y.unwrap_or_else(|| b.clone()));
                    Some(Cond::compare(*how, a, b))
                }
            },
            Cond::Flag(sym) => Some(Cond::Flag(with(sym)?.as_var()?.clone())),
            Cond::Not(c) => Some(c.replaced(with)?.negate()),
            Cond::And(v) => Some(each(v)?.fold(Cond::TRUE, Cond::and)),
            Cond::Or(v) => Some(each(v)?.fold(Cond::FALSE, Cond::or)),
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
