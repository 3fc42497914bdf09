//! Systems of linear equations and inequalities over the integers, and a test that refutes them.
//!
//! Equations are removed by substitution, inequalities by Fourier-Motzkin elimination. Every row is divided by the
//! common divisor of its coefficients and its constant rounded towards the inside, which is what makes the test see
//! that `128*a <= 128*b + 127` means `a <= b`. The test is sound and incomplete: a system that it calls infeasible
//! has no integer solution; the converse may fail, and effort is bounded.

use super::gcd;

/// `sum of coefficient * column + constant`, compared with 0 by whoever holds it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Row {
    /// Sorted by column; no coefficient is zero.
    pub terms: Vec<(u32, i64)>,
    pub constant: i64,
}

/// Rows that are 0 and rows that are not negative.
#[derive(Clone, Debug, Default)]
pub(super) struct System {
    pub zero: Vec<Row>,
    pub not_negative: Vec<Row>,
}

/// More rows than this are not worth the effort; the answer is then "unknown".
const MOST_ROWS: usize = 240;

impl Row {
    pub fn constant(constant: i64) -> Row {
        Row { terms: Vec::new(), constant }
    }

    pub fn column(column: u32) -> Row {
        Row { terms: vec![(column, 1)], constant: 0 }
    }

    fn coefficient(&self, column: u32) -> i64 {
        self.terms.binary_search_by_key(&column, |(c, _)| *c).map_or(0, |at| self.terms[at].1)
    }

    /// `f * self + g * other`; `None` if a number becomes too large.
    pub fn combined(&self, f: i64, other: &Row, g: i64) -> Option<Row> {
        let mut terms = Vec::with_capacity(self.terms.len() + other.terms.len());
        let (mut a, mut b) = (self.terms.iter().peekable(), other.terms.iter().peekable());
        loop {
            let (column, value) = match (a.peek(), b.peek()) {
                (Some(&&(c, x)), Some(&&(d, y))) if c == d => {
                    a.next();
                    b.next();
                    (c, x.checked_mul(f)?.checked_add(y.checked_mul(g)?)?)
                }
                (Some(&&(c, x)), Some(&&(d, _))) if c < d => {
                    a.next();
                    (c, x.checked_mul(f)?)
                }
                (Some(&&(c, x)), None) => {
                    a.next();
                    (c, x.checked_mul(f)?)
                }
                (_, Some(&&(d, y))) => {
                    b.next();
                    (d, y.checked_mul(g)?)
                }
                (None, None) => break,
            };
            if value != 0 {
                terms.push((column, value));
            }
        }
        let constant = self.constant.checked_mul(f)?.checked_add(other.constant.checked_mul(g)?)?;
        Some(Row { terms, constant })
    }

    fn divisor(&self) -> i64 {
        self.terms.iter().fold(0, |g, (_, c)| gcd(g, *c))
    }

    fn divide(&mut self, by: i64) {
        self.terms.iter_mut().for_each(|(_, c)| *c /= by);
        self.constant = self.constant.div_euclid(by);
    }
}

impl System {
    /// Whether the rows certainly have no common integer solution.
    pub fn infeasible(mut self) -> bool {
        match self.substitute_equations() {
            None => true,
            Some(()) => eliminate(self.not_negative),
        }
    }

    /// Uses each equation that has a column with coefficient 1 or -1 to remove that column everywhere; other
    /// equations become two inequalities. `None` if an equation has no integer solution.
    fn substitute_equations(&mut self) -> Option<()> {
        while let Some(at) = self.next_equation()? {
            let equation = self.zero.swap_remove(at);
            let (column, unit) = *equation.terms.iter().find(|(_, c)| c.abs() == 1).expect("chosen for it");
            let remove = |row: &mut Row| {
                let k = row.coefficient(column);
                // Overflow: the row keeps its column, which is weaker and still true.
                if k != 0
                    && let Some(new) = row.combined(1, &equation, -k * unit)
                {
                    *row = new;
                }
            };
            self.zero.iter_mut().for_each(remove);
            self.not_negative.iter_mut().for_each(remove);
        }
        for row in std::mem::take(&mut self.zero) {
            let negative = Row::constant(0).combined(1, &row, -1);
            self.not_negative.push(row);
            self.not_negative.extend(negative);
        }
        Some(())
    }

    /// The place of an equation that can be solved for a column.
    #[allow(clippy::option_option, reason = "infeasible, nothing left, or a place: three answers")]
    fn next_equation(&mut self) -> Option<Option<usize>> {
        let mut found = None;
        for (at, row) in self.zero.iter_mut().enumerate() {
            let g = row.divisor();
            if g == 0 {
                if row.constant != 0 {
                    return None;
                }
                continue;
            }
            if row.constant % g != 0 {
                return None;
            }
            row.divide(g);
            if row.terms.iter().any(|(_, c)| c.abs() == 1) {
                found = Some(at);
            }
        }
        Some(found)
    }
}

/// Fourier-Motzkin: whether rows that are all not negative contradict each other.
fn eliminate(mut rows: Vec<Row>) -> bool {
    loop {
        if tidy(&mut rows) {
            return true;
        }
        let Some((column, growth)) = cheapest_column(&rows) else { return false };
        if rows.len() + growth > MOST_ROWS {
            return false;
        }
        let (mut lower, mut upper, mut next) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows {
            match row.coefficient(column) {
                0 => next.push(row),
                c if c > 0 => lower.push((row, c)),
                c => upper.push((row, -c)),
            }
        }
        for (a, x) in &lower {
            for (b, y) in &upper {
                let g = gcd(*x, *y);
                next.extend(a.combined(y / g, b, x / g));
            }
        }
        rows = next;
    }
}

/// Tightens every row, keeps the strongest of rows that differ only in their constant, drops those that say nothing.
/// True if one row is false by itself.
fn tidy(rows: &mut Vec<Row>) -> bool {
    for row in rows.iter_mut() {
        let g = row.divisor();
        if g == 0 {
            if row.constant < 0 {
                return true;
            }
        } else if g > 1 {
            row.divide(g);
        }
    }
    rows.retain(|row| !row.terms.is_empty());
    rows.sort_unstable();
    rows.dedup_by(|next, kept| next.terms == kept.terms);
    false
}

/// The column whose elimination adds the fewest rows, and how many; `None` when no columns are left.
fn cheapest_column(rows: &[Row]) -> Option<(u32, usize)> {
    let mut counts: Vec<(u32, usize, usize)> = Vec::new();
    for row in rows {
        for (column, c) in &row.terms {
            let at = match counts.binary_search_by_key(column, |(k, ..)| *k) {
                Ok(at) => at,
                Err(at) => {
                    counts.insert(at, (*column, 0, 0));
                    at
                }
            };
            if *c > 0 {
                counts[at].1 += 1;
            } else {
                counts[at].2 += 1;
            }
        }
    }
    let growth = |(_, lower, upper): &(u32, usize, usize)| (lower * upper) as i64 - (lower + upper) as i64;
    counts.iter().min_by_key(|c| growth(c)).map(|c| (c.0, growth(c).max(0) as usize))
}

#[cfg(test)]
mod tests {
    use super::{Row, System};

    fn row(terms: &[(u32, i64)], constant: i64) -> Row {
        Row { terms: terms.to_vec(), constant }
    }

    #[test]
    fn bounds_that_cross_are_refuted_and_bounds_that_touch_are_not() {
        let system = |hi| System {
            zero: Vec::new(),
            not_negative: vec![row(&[(0, 1), (1, -1)], 0), row(&[(1, 1)], -3), row(&[(0, -1)], hi)],
        };
        assert!(system(2).infeasible());
        assert!(!system(3).infeasible());
    }

    #[test]
    fn integer_tightening_sees_what_rationals_do_not() {
        // 1 <= 4a - 4b <= 3 has rational solutions and no integer ones.
        let gap = |lo: i64, hi: i64| System {
            zero: Vec::new(),
            not_negative: vec![row(&[(0, 4), (1, -4)], -lo), row(&[(0, -4), (1, 4)], hi)],
        };
        assert!(gap(1, 3).infeasible());
        assert!(!gap(1, 4).infeasible());
    }

    #[test]
    fn equations_are_solved_over_the_integers() {
        let equation =
            |constant| System { zero: vec![row(&[(0, 2), (1, 4)], constant)], not_negative: Vec::new() };
        assert!(equation(3).infeasible());
        assert!(!equation(2).infeasible());
        // a = 128 q and 0 < a < 128
        let system = System {
            zero: vec![row(&[(0, 1), (1, -128)], 0)],
            not_negative: vec![row(&[(0, 1)], -1), row(&[(0, -1)], 127)],
        };
        assert!(system.infeasible());
    }
}
