//! Printing indices and conditions in the syntax of the text form.

use std::fmt;

use super::{Atom, Cond, Index};
use crate::sym::Sym;

/// How symbols are written, and in which order equal terms stand.
pub trait Naming {
    /// The text of a symbol.
    fn name(&self, sym: &Sym) -> String;
    /// Smaller ranks are written first among terms with equal coefficients.
    fn rank(&self, sym: &Sym) -> u32 {
        sym.id()
    }
}

/// Every symbol under its own name: fine where names do not repeat.
pub struct PlainNames;

impl Naming for PlainNames {
    fn name(&self, sym: &Sym) -> String {
        sym.name().to_string()
    }
}

/// Binding strength of an operator; a part that binds more weakly than its place asks for is bracketed.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Strength {
    Choice,
    Or,
    And,
    Compare,
    Sum,
    Product,
    Primary,
}

impl Index {
    /// The text of this index under `names`.
    pub fn text(&self, names: &dyn Naming) -> String {
        sum(self, names).0
    }
}

impl Cond {
    /// The text of this condition under `names`.
    pub fn text(&self, names: &dyn Naming) -> String {
        condition(self, names).0
    }
}

fn bracket((text, strength): (String, Strength), least: Strength) -> String {
    if strength < least { format!("({text})") } else { text }
}

/// Positional notation: positive terms before negative ones, larger coefficients first. Among equal coefficients
/// variables come first, and then what is made of them: what names the smallest rank, then in the order of the texts,
/// so that an index which is read back, with other symbols, is printed alike.
fn sum(index: &Index, names: &dyn Naming) -> (String, Strength) {
    let mut terms: Vec<_> =
        index.terms().iter().map(|(a, c)| (*c, ranks(a, names), atom(a, names))).collect();
    terms.sort_by(|(c, ranks, (text, _)), (d, others, (other, _))| {
        let sized = |c: i64| (c < 0, c.unsigned_abs().wrapping_neg());
        (sized(*c), ranks, text).cmp(&(sized(*d), others, other))
    });
    let mut text = String::new();
    let mut strength = Strength::Sum;
    let parts = terms.len() + usize::from(index.constant_term() != 0);
    for (c, _, factor) in terms {
        let magnitude = c.unsigned_abs();
        let (term, s) = match magnitude {
            1 => factor,
            _ => (format!("{magnitude}*{}", bracket(factor, Strength::Primary)), Strength::Product),
        };
        if parts == 1 && c > 0 {
            strength = s;
        }
        let term = if parts == 1 && c > 0 { term } else { bracket((term, s), Strength::Product) };
        match (text.is_empty(), c < 0) {
            // A minus binds more strongly than a quotient: `-(x/2)` is another number than `-x/2`.
            (true, true) if s < Strength::Primary && magnitude == 1 => text = format!("-({term})"),
            (true, true) => text = format!("-{term}"),
            (true, false) => text = term,
            (false, true) => text = format!("{text} - {term}"),
            (false, false) => text = format!("{text} + {term}"),
        }
    }
    match index.constant_term() {
        0 if !text.is_empty() => {}
        c if text.is_empty() => {
            text = c.to_string();
            strength = if c < 0 { Strength::Sum } else { Strength::Primary };
        }
        c if c < 0 => text = format!("{text} - {}", c.unsigned_abs()),
        c => text = format!("{text} + {c}"),
    }
    (text, strength)
}

/// Whether an atom is made of variables, and the smallest rank of those that are in it.
fn ranks(atom: &Atom, names: &dyn Naming) -> (bool, u32) {
    let mut least = u32::MAX;
    atom.for_each_var(&mut |sym| least = least.min(names.rank(sym)));
    (!matches!(atom, Atom::Var(_)), least)
}

fn atom(atom: &Atom, names: &dyn Naming) -> (String, Strength) {
    let call = |f: &str, a: &Index, b: &Index| {
        (format!("{f}({}, {})", a.text(names), b.text(names)), Strength::Primary)
    };
    match atom {
        Atom::Var(sym) => (names.name(sym), Strength::Primary),
        Atom::Div(x, d) if x.constant_term() == d - 1 => {
            (format!("ceil({}, {d})", x.offset(1 - d).text(names)), Strength::Primary)
        }
        Atom::Div(x, d) => (format!("{}/{d}", bracket(sum(x, names), Strength::Primary)), Strength::Product),
        Atom::Mod(x, d) => (format!("{}%{d}", bracket(sum(x, names), Strength::Primary)), Strength::Product),
        Atom::Min(a, b) => call("min", a, b),
        Atom::Max(a, b) => call("max", a, b),
        Atom::Xor(a, b) => call("xor", a, b),
        Atom::Select(c, a, b) => {
            let c = bracket(condition(c, names), Strength::Or);
            (format!("{c} ? {} : {}", a.text(names), b.text(names)), Strength::Choice)
        }
    }
}

fn condition(cond: &Cond, names: &dyn Naming) -> (String, Strength) {
    let list = |v: &[Cond], operator: &str, own: Strength, least: Strength| {
        let parts: Vec<_> = v.iter().map(|c| bracket(condition(c, names), least)).collect();
        (parts.join(operator), own)
    };
    match cond {
        Cond::Compare(how, a, b) => {
            let side = |x: &Index| bracket(sum(x, names), Strength::Sum);
            (format!("{} {} {}", side(a), how.symbol(), side(b)), Strength::Compare)
        }
        Cond::Flag(sym) => (names.name(sym), Strength::Primary),
        Cond::Not(c) => (format!("!{}", bracket(condition(c, names), Strength::Primary)), Strength::Primary),
        Cond::And(v) if v.is_empty() => ("true".into(), Strength::Primary),
        Cond::Or(v) if v.is_empty() => ("false".into(), Strength::Primary),
        Cond::And(v) => list(v, " && ", Strength::And, Strength::Compare),
        Cond::Or(v) => list(v, " || ", Strength::Or, Strength::And),
    }
}

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(&PlainNames))
    }
}

impl fmt::Display for Cond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(&PlainNames))
    }
}
