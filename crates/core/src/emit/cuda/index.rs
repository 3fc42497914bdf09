//! Indices and conditions as C: simplified under what is known of their variables, in `int` where intervals prove
//! that nothing passes 2^31, in `long long` elsewhere (rule 40).

use super::body::Body;
use super::spelling::integer;
use super::text::{Strength, Text};
use crate::index::{Atom, Comparison, Cond, Index, Interval};
use crate::sym::Sym;

impl Body<'_> {
    /// The text of an index.
    pub(super) fn index(&mut self, index: &Index) -> Text {
        let index = self.ranges.simplify(index);
        self.sum(&index)
    }

    /// The text of an index that is computed in `long long`, whatever its size.
    pub(super) fn long_index(&mut self, index: &Index) -> Text {
        let index = self.ranges.simplify(index);
        let text = self.sum(&index);
        if self.is_long(&index) {
            return text;
        }
        if index.as_constant().is_some() {
            return Text::primary(format!("{}ll", text.at_least(Strength::Primary)));
        }
        Text::new(format!("(long long){}", text.at_least(Strength::Unary)), Strength::Unary)
    }

    /// The C type that holds every value of an index.
    pub(super) fn index_type(&self, index: &Index) -> &'static str {
        if self.is_long(&self.ranges.simplify(index)) { "long long" } else { "int" }
    }

    /// The C type of a variable that takes every value of an interval.
    pub(super) fn interval_type(interval: Interval) -> &'static str {
        if interval.within(i64::from(i32::MIN), i64::from(i32::MAX)) { "int" } else { "long long" }
    }

    /// Whether the text of an index has type `long long`.
    fn is_long(&self, index: &Index) -> bool {
        !self.sum_fits(index) || index.terms().iter().any(|(atom, _)| self.atom_is_long(atom))
    }

    fn atom_is_long(&self, atom: &Atom) -> bool {
        match atom {
            Atom::Var(sym) => self.long_variables.contains(sym),
            Atom::Div(x, _) | Atom::Mod(x, _) => self.is_long(x),
            Atom::Min(a, b) | Atom::Max(a, b) | Atom::Xor(a, b) | Atom::Select(_, a, b) => {
                self.is_long(a) || self.is_long(b)
            }
        }
    }

    /// Whether every partial sum of an index stays in 32 bits.
    fn sum_fits(&self, index: &Index) -> bool {
        let constant = index.constant_term();
        let (mut lo, mut hi) = (constant.min(0), constant.max(0));
        for (atom, c) in index.terms() {
            let (Some(l), Some(h)) = self.term_bounds(atom, *c) else { return false };
            lo = lo.saturating_add(l.min(0));
            hi = hi.saturating_add(h.max(0));
        }
        lo >= i64::from(i32::MIN) && hi <= i64::from(i32::MAX)
    }

    /// Whether an atom is a name that a `let` gave.
    fn is_bound(&self, atom: &Atom) -> bool {
        matches!(atom, Atom::Var(sym) if self.bound.contains(sym))
    }

    fn term_bounds(&self, atom: &Atom, coefficient: i64) -> (Option<i64>, Option<i64>) {
        let bounds = self.ranges.of(&Index::atom(atom.clone()).scaled(coefficient));
        (bounds.lo, bounds.hi)
    }

    fn term_fits(&self, atom: &Atom, coefficient: i64) -> bool {
        let (lo, hi) = self.term_bounds(atom, coefficient);
        lo.is_some_and(|l| l >= i64::from(i32::MIN)) && hi.is_some_and(|h| h <= i64::from(i32::MAX))
    }

    /// Positional notation: positive terms before negative ones, names for sums first, then larger coefficients.
    fn sum(&mut self, index: &Index) -> Text {
        let long = !self.sum_fits(index);
        let mut terms: Vec<_> = index.terms().iter().collect();
        terms.sort_by_key(|(atom, c)| {
            (*c < 0, !self.is_bound(atom), c.unsigned_abs().wrapping_neg(), rank(atom))
        });
        let parts = terms.len() + usize::from(index.constant_term() != 0);
        let mut text = String::new();
        let mut strength = Strength::Sum;
        for (i, (atom, c)) in terms.into_iter().enumerate() {
            let mut factor = self.atom(atom);
            // The first operand of a long sum makes the rest of it long, and so does the factor of a long product.
            if !self.atom_is_long(atom) && ((long && i == 0) || !self.term_fits(atom, *c)) {
                factor =
                    Text::new(format!("(long long){}", factor.at_least(Strength::Unary)), Strength::Unary);
            }
            let term = match c.unsigned_abs() {
                1 => factor,
                m => Text::new(format!("{m}*{}", factor.at_least(Strength::Unary)), Strength::Product),
            };
            if parts == 1 && *c > 0 {
                return term;
            }
            let term = term.at_least(Strength::Product);
            match (text.is_empty(), *c < 0) {
                (true, true) => text = format!("-{term}"),
                (true, false) => text = term,
                (false, negative) => text = format!("{text} {} {term}", if negative { '-' } else { '+' }),
            }
        }
        match index.constant_term() {
            0 if !text.is_empty() => {}
            c if text.is_empty() => {
                text = c.to_string();
                strength = if c < 0 { Strength::Unary } else { Strength::Primary };
            }
            c if c < 0 => text = format!("{text} - {}", c.unsigned_abs()),
            c => text = format!("{text} + {c}"),
        }
        Text::new(text, strength)
    }

    fn atom(&mut self, atom: &Atom) -> Text {
        match atom {
            Atom::Var(sym) => self.variable(sym),
            Atom::Div(x, d) => self.quotient(x, *d),
            Atom::Mod(x, d) => self.remainder(x, *d),
            Atom::Min(a, b) => self.extremum("min", a, b),
            Atom::Max(a, b) => self.extremum("max", a, b),
            Atom::Xor(a, b) => {
                let side = |s: &mut Self, x: &Index| s.sum(x).at_least(Strength::Shift);
                Text::new(format!("{} ^ {}", side(self, a), side(self, b)), Strength::Bits)
            }
            Atom::Select(c, a, b) => {
                let c = self.condition(c).at_least(Strength::Or);
                let (a, b) = (self.sum(a).at_least(Strength::Choice), self.sum(b).at_least(Strength::Choice));
                Text::new(format!("{c} ? {a} : {b}"), Strength::Choice)
            }
        }
    }

    /// A variable, which thereby is used.
    pub(super) fn variable(&mut self, sym: &Sym) -> Text {
        let sym = self.aliases.get(sym).unwrap_or(sym);
        self.used.insert(sym.clone());
        Text::primary(self.names.of(sym))
    }

    fn is_negative_possible(&self, x: &Index) -> bool {
        self.ranges.of(x).lo.is_none_or(|lo| lo < 0)
    }

    /// Floor division. C rounds towards zero, which is the same for what cannot be negative.
    fn quotient(&mut self, x: &Index, d: i64) -> Text {
        let whole = x.offset(1 - d);
        if x.constant_term() == d - 1 && !self.is_negative_possible(&whole) && !self.is_long(x) {
            self.prelude.require(&integer::CEIL_DIV);
            return Text::primary(format!("ceil_div({}, {d})", self.sum(&whole).text));
        }
        if !self.is_negative_possible(x) {
            return Text::new(format!("{}/{d}", self.sum(x).at_least(Strength::Product)), Strength::Product);
        }
        if d.count_ones() == 1 {
            let shift = d.trailing_zeros();
            return Text::new(format!("{} >> {shift}", self.sum(x).at_least(Strength::Sum)), Strength::Shift);
        }
        self.prelude.require(&integer::FLOOR_DIV);
        Text::primary(format!("floor_div({}, {d})", self.sum(x).text))
    }

    /// The remainder of floor division.
    fn remainder(&mut self, x: &Index, d: i64) -> Text {
        if d == 2
            && let Some((slot, other)) = self.slot(x)
        {
            return if other { Text::new(format!("1 - {slot}"), Strength::Sum) } else { Text::primary(slot) };
        }
        if !self.is_negative_possible(x) {
            let dividend = if self.is_taken_apart(x, d) {
                self.prelude.require(&integer::OPAQUE);
                Text::primary(format!("opaque({})", self.sum(x).text))
            } else {
                self.sum(x)
            };
            return Text::new(format!("{}%{d}", dividend.at_least(Strength::Product)), Strength::Product);
        }
        if d.count_ones() == 1 {
            return Text::new(
                format!("{} & {}", self.sum(x).at_least(Strength::Shift), d - 1),
                Strength::Bits,
            );
        }
        self.prelude.require(&integer::FLOOR_MOD);
        Text::primary(format!("floor_mod({}, {d})", self.sum(x).text))
    }

    /// Whether a compiler may take the constant out of a dividend of which it knows that it has few values, though the
    /// remainder wraps: NVRTC 13.0 was seen to (H200, 2026-11-22), where a loop of three iterations fetched ahead.
    fn is_taken_apart(&self, x: &Index, d: i64) -> bool {
        let few = self.ranges.of(x).within(0, i64::from(u16::MAX));
        let stepped = self.serial_loops.iter().any(|var| x.mentions(var));
        d.count_ones() > 1 && x.constant_term() != 0 && few && stepped && !self.is_long(x)
    }

    fn extremum(&mut self, function: &str, a: &Index, b: &Index) -> Text {
        let long = self.is_long(a) || self.is_long(b);
        // Both sides must have one type.
        let side = |s: &mut Self, x: &Index| if long { s.long_index(x).text } else { s.sum(x).text };
        Text::primary(format!("{function}({}, {})", side(self, a), side(self, b)))
    }

    /// The text of a condition.
    pub(super) fn cond(&mut self, cond: &Cond) -> Text {
        let cond = self.ranges.simplify_cond(cond);
        self.condition(&cond)
    }

    fn condition(&mut self, cond: &Cond) -> Text {
        match cond {
            Cond::Compare(how, a, b) => self.comparison(*how, a, b),
            Cond::Flag(sym) => self.variable(sym),
            Cond::Not(c) => {
                Text::new(format!("!{}", self.condition(c).at_least(Strength::Unary)), Strength::Unary)
            }
            Cond::And(v) if v.is_empty() => Text::primary("true"),
            Cond::Or(v) if v.is_empty() => Text::primary("false"),
            Cond::And(v) => self.conditions(v, " && ", Strength::And, Strength::Compare),
            Cond::Or(v) => self.conditions(v, " || ", Strength::Or, Strength::Compare),
        }
    }

    fn conditions(&mut self, v: &[Cond], operator: &str, own: Strength, least: Strength) -> Text {
        let parts: Vec<_> = v.iter().map(|c| self.condition(c).at_least(least)).collect();
        Text::new(parts.join(operator), own)
    }

    /// A comparison; what is constant stands on the right, as people write it.
    fn comparison(&mut self, how: Comparison, a: &Index, b: &Index) -> Text {
        let (a, b) = &match (a.as_constant(), b.as_constant()) {
            (None, Some(_)) => (a.offset(-a.constant_term()), b.offset(-a.constant_term())),
            (Some(_), None) => (a.offset(-b.constant_term()), b.offset(-b.constant_term())),
            _ => (a.clone(), b.clone()),
        };
        let (left, symbol, right) = match (a.as_constant(), how) {
            (Some(_), Comparison::Lt) => (b, ">", a),
            (Some(_), Comparison::Le) => (b, ">=", a),
            (Some(_), _) => (b, how.symbol(), a),
            (None, _) => (a, how.symbol(), b),
        };
        let (left, right) = (self.sum(left), self.sum(right));
        let text = format!("{} {symbol} {}", left.at_least(Strength::Shift), right.at_least(Strength::Shift));
        Text::new(text, Strength::Compare)
    }
}

fn rank(atom: &Atom) -> u32 {
    match atom {
        Atom::Var(sym) => sym.id(),
        _ => u32::MAX,
    }
}
