//! What an index is a sum of.

use std::sync::Arc;

use super::{Cond, Index};
use crate::sym::Sym;

/// What an [`Index`] is a linear combination of.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Atom {
    /// A loop variable, a `let`, a size, a row stride, a launch parameter or an ordinal.
    Var(Sym),
    /// Floor division by a positive constant.
    Div(Index, i64),
    /// Remainder of floor division by a positive constant; never negative.
    Mod(Index, i64),
    /// The smaller of two.
    Min(Index, Index),
    /// The larger of two.
    Max(Index, Index),
    /// Bitwise exclusive or of two non-negative values.
    Xor(Index, Index),
    /// `condition ? this : that`; only the chosen arm is evaluated.
    Select(Arc<Cond>, Index, Index),
}

impl Atom {
    /// What becomes of the atom when variables are replaced; `None` where none is.
    pub(super) fn replaced(&self, with: &dyn Fn(&Sym) -> Option<Index>) -> Option<Index> {
        let both = |a: &Index, b: &Index| match (a.replaced(with), b.replaced(with)) {
            (None, None) => None,
            (x, y) => Some((x.unwrap_or_else(|| a.clone()), y.unwrap_or_else(|| b.clone()))),
        };
        match self {
            Atom::Var(sym) => with(sym),
            Atom::Div(x, d) => Some(x.replaced(with)?.div(*d)),
            Atom::Mod(x, d) => Some(x.replaced(with)?.rem(*d)),
            Atom::Min(a, b) => both(a, b).map(|(a, b)| a.minimum(&b)),
            Atom::Max(a, b) => both(a, b).map(|(a, b)| a.maximum(&b)),
            Atom::Xor(a, b) => both(a, b).map(|(a, b)| a.xor(&b)),
            Atom::Select(c, a, b) => match (c.replaced(with), both(a, b)) {
                (None, None) => None,
                (c_new, arms) => {
                    let (a, b) = arms.unwrap_or_else(|| (a.clone(), b.clone()));
                    Some(Index::select(c_new.unwrap_or_else(|| (**c).clone()), a, b))
                }
            },
        }
    }

    /// Whether `belongs` holds of some variable in it.
    pub fn mentions_any(&self, belongs: impl Fn(&Sym) -> bool) -> bool {
        let mut found = false;
        self.for_each_var(&mut |s| found = found || belongs(s));
        found
    }

    /// Calls `visit` for each occurrence of a variable.
    pub fn for_each_var(&self, visit: &mut dyn FnMut(&Sym)) {
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

    pub(super) fn eval(&self, value: &dyn Fn(&Sym) -> Option<i64>) -> Result<i64, Sym> {
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
