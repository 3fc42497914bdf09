//! Whether the iterations of a loop are independent: no two of them touch one element, unless both only reduce it.

use std::collections::HashMap;

use crate::index::{Atom, Cond, Index, Interval, Ranges};
use crate::ir::{Access, Assign, AssignOp, For, Operand, Reduction, Stmt, walk};
use crate::schedule::facts::Facts;
use crate::sym::Sym;

/// An element that a body uses, and the conditions in the body around that.
struct Used {
    index: Vec<Index>,
    given: Vec<Cond>,
}

/// An element that is used under the conditions of one of these lists, or of several.
struct Touched {
    index: Vec<Index>,
    given: Vec<Vec<Cond>>,
}

impl Touched {
    /// Whether conditions say that it is not used where variables have these values.
    fn never(&self, value: &dyn Fn(&Sym) -> Option<i64>) -> bool {
        let fails = |c: &Cond| c.conjuncts().iter().any(|c| c.eval(value) == Ok(false));
        self.given.iter().all(|given| given.iter().any(fails))
    }
}

/// How a body uses one buffer.
#[derive(Default)]
struct Uses {
    accesses: Vec<Used>,
    written: bool,
    /// All accesses are reductions by this operation, none a load.
    reduced_by: Option<Reduction>,
    plain: bool,
    /// Some reduction is not atomic.
    unordered: bool,
}

/// Why the iterations of `l` may touch one element; `None` if they are independent.
///
/// Buffers allocated inside are private to an iteration. For any other buffer that the body writes, some dimension
/// must tell the iterations apart: its index is `c * var + rest` where `rest` varies by less than `|c|` over the loops
/// inside, and is otherwise the same in every access.
pub(in crate::schedule) fn independent(l: &For, facts: &Facts) -> Result<(), String> {
    check(l, facts, false)
}

/// Why the iterations of `l` cannot run at the same time; as [`independent`], but reductions into one element must be
/// atomic.
pub(in crate::schedule) fn parallel(l: &For, facts: &Facts) -> Result<(), String> {
    check(l, facts, true)
}

fn check(l: &For, facts: &Facts, at_once: bool) -> Result<(), String> {
    if l.range.constant_trip_count().is_some_and(|n| n <= 1) {
        return Ok(());
    }
    let mut facts = facts.clone();
    facts.enter(l);
    let mut uses: HashMap<Sym, Uses> = HashMap::new();
    let mut inner: Vec<Sym> = Vec::new();
    let mut private: Vec<Sym> = Vec::new();
    let mut lets: HashMap<Sym, Index> = HashMap::new();
    let mut opaque = false;
    for_each_given(&l.body, &mut Vec::new(), &mut |stmt, given| match stmt {
        Stmt::For(i) => {
            facts.enter(i);
            inner.push(i.var.clone());
            inner.extend(i.counting.clone());
        }
        Stmt::Own(o) => inner.extend(o.vars.iter().cloned()),
        Stmt::Tasks(t) => {
            t.vars.iter().zip(&t.extents).for_each(|(v, e)| facts.enter_range(v, e));
            inner.extend(t.vars.iter().cloned());
        }
        Stmt::Let(sym, value) => {
            let value = value.substitute(&|s| lets.get(s).cloned());
            lets.insert(sym.clone(), value);
        }
        Stmt::Alloc(buffer) => private.push(buffer.sym.clone()),
        Stmt::AllocRing(_) | Stmt::Roles(_) | Stmt::On(_) | Stmt::Arrive { .. } | Stmt::Await { .. } => {
            opaque = true
        }
        Stmt::Assign(a) => assign(a, given, &mut uses),
        Stmt::Instruction(i) => {
            for operand in &i.operands {
                if let Operand::Window(w) = operand {
                    let uses = uses.entry(w.buffer.clone()).or_default();
                    uses.accesses.push(Used { index: w.start(), given: given.to_vec() });
                    uses.written = true;
                    uses.plain = true;
                }
            }
        }
        Stmt::If(_) | Stmt::Sync(_) => {}
    });
    if opaque {
        return Err("its body synchronises threads".into());
    }
    for (buffer, uses) in uses.iter().filter(|(sym, u)| u.written && !private.contains(sym)) {
        if uses.reduced_by.is_some() && !uses.plain && !(at_once && uses.unordered) {
            continue;
        }
        let mut accesses: Vec<Touched> = Vec::new();
        for Used { index, given } in &uses.accesses {
            let value = |s: &Sym| lets.get(s).cloned();
            let index: Vec<Index> = index.iter().map(|i| i.substitute(&value)).collect();
            let given: Vec<Cond> = given.iter().map(|c| c.substitute(&value)).collect();
            // What is loaded is often stored at the same place.
            match accesses.iter_mut().find(|access| access.index == index) {
                Some(access) => access.given.push(given),
                None => accesses.push(Touched { index, given: vec![given] }),
            }
        }
        let loops = Loops { var: &l.var, inner: &inner, ranges: facts.ranges() };
        let indices: Vec<&[Index]> = accesses.iter().map(|access| &access.index[..]).collect();
        let told_apart = loops.told_apart_by_one_dimension(&indices)
            || loops.told_apart_by_two_dimensions(&indices)
            || loops.told_apart_by_enumeration(&accesses);
        if !told_apart {
            return Err(format!("two iterations may touch one element of `{buffer}`"));
        }
    }
    Ok(())
}

/// Calls `visit` for each statement with the conditions around it.
fn for_each_given<'a>(stmts: &'a [Stmt], given: &mut Vec<Cond>, visit: &mut dyn FnMut(&'a Stmt, &[Cond])) {
    for stmt in stmts {
        visit(stmt, given);
        if let Stmt::If(i) = stmt {
            for (cond, body) in [(i.cond.clone(), &i.then), (i.cond.clone().negate(), &i.otherwise)] {
                given.push(cond);
                for_each_given(body, given, visit);
                given.pop();
            }
        } else {
            walk::bodies(stmt).for_each(|body| for_each_given(body, given, visit));
        }
    }
}

fn assign(a: &Assign, given: &[Cond], uses: &mut HashMap<Sym, Uses>) {
    let used = |index: &[Index]| Used { index: index.to_vec(), given: given.to_vec() };
    a.value.for_each_access(&mut |Access { buffer, index }| {
        let uses = uses.entry(buffer.clone()).or_default();
        uses.accesses.push(used(index));
        uses.plain = true;
    });
    let uses = uses.entry(a.target.buffer.clone()).or_default();
    uses.accesses.push(used(&a.target.index));
    uses.written = true;
    match a.op {
        AssignOp::Reduce(r) if uses.reduced_by.is_none_or(|other| other == r) => {
            uses.reduced_by = Some(r);
            uses.unordered |= !a.atomic;
        }
        _ => uses.plain = true,
    }
}

/// A loop, the loops inside it, and what their variables can be.
struct Loops<'a> {
    var: &'a Sym,
    inner: &'a [Sym],
    ranges: &'a Ranges,
}

/// More points than this are not enumerated.
const MOST_POINTS: i64 = 1 << 15;

impl Loops<'_> {
    /// The part of an index that is the same in all iterations, and the part that is not.
    fn split(&self, index: &Index) -> (Index, Index) {
        index.parted(|atom| !atom.mentions_any(|s| s == self.var || self.inner.contains(s)))
    }

    /// Whether in some dimension equal indices imply equal values of the variable: `c * var + g * coarse + fine` with
    /// `fine` varying by less than `|c|` and `c * var + fine` by less than `g`.
    fn told_apart_by_one_dimension(&self, accesses: &[&[Index]]) -> bool {
        let rank = accesses.first().map_or(0, |index| index.len());
        (0..rank).any(|dim| {
            let c = accesses[0][dim].coefficient(self.var);
            if c == 0 || accesses.iter().any(|a| a[dim].coefficient(self.var) != c) {
                return false;
            }
            let column: Vec<(Index, Index)> = accesses.iter().map(|a| self.split(&a[dim])).collect();
            if column.iter().any(|(common, _)| *common != column[0].0) {
                return false;
            }
            let moving: Vec<Index> = column.into_iter().map(|(_, moving)| moving).collect();
            let mut periods: Vec<i64> = moving[0].terms().iter().map(|(_, k)| k.abs()).collect();
            periods.retain(|g| *g > c.abs());
            periods.push(i64::MAX);
            periods.iter().any(|g| self.told_apart_modulo(&moving, c, *g))
        })
    }

    /// Whether two dimensions that together hold quotient and remainder of one index tell iterations apart: with
    /// `x / d` in one and `x % d` in the other, `d` times the first plus the second is known from the element too.
    fn told_apart_by_two_dimensions(&self, accesses: &[&[Index]]) -> bool {
        let rank = accesses.first().map_or(0, |index| index.len());
        let mut divisors: Vec<i64> = Vec::new();
        for index in accesses[0] {
            for (atom, _) in index.terms() {
                if let Atom::Mod(_, d) = atom {
                    divisors.push(*d);
                }
            }
        }
        let pairs = (0..rank).flat_map(|a| (0..rank).map(move |b| (a, b))).filter(|(a, b)| a != b);
        pairs.into_iter().any(|(a, b)| {
            divisors.iter().any(|d| {
                let joined: Vec<[Index; 1]> =
                    accesses.iter().map(|access| [&access[a].scaled(*d) + &access[b]]).collect();
                self.told_apart_by_one_dimension(&joined.iter().map(|j| &j[..]).collect::<Vec<_>>())
            })
        })
    }

    /// As [`Loops::told_apart_by_one_dimension`] for the moving parts of the indices and one `g`.
    fn told_apart_modulo(&self, column: &[Index], c: i64, period: i64) -> bool {
        let (mut low, mut high) = (i64::MAX, i64::MIN);
        for moving in column {
            let own = |atom: &Atom| matches!(atom, Atom::Var(s) if s == self.var);
            let mut fine = Interval::new(moving.constant_term(), moving.constant_term());
            for (atom, k) in moving.terms().iter().filter(|(atom, k)| k % period != 0 && !own(atom)) {
                if atom.mentions_any(|s| s == self.var) {
                    return false;
                }
                fine = fine.plus(self.ranges.of_term(atom, *k));
            }
            let (Some(lo), Some(hi)) = (fine.lo, fine.hi) else { return false };
            low = low.min(lo);
            high = high.max(hi);
        }
        let own = self.ranges.of(&Index::var(self.var).scaled(c));
        let (fine, own) = (high - low, own.hi.zip(own.lo).map(|(h, l)| h - l));
        fine < c.abs() && (period == i64::MAX || own.is_some_and(|own| own + fine < period))
    }

    /// Whether no element is touched for two values of the variable, by trying all values of the variables that occur
    /// in one dimension of constant range, or in all of them. Conditions that depend on nothing else are obeyed.
    fn told_apart_by_enumeration(&self, accesses: &[Touched]) -> bool {
        let rank = accesses.first().map_or(0, |access| access.index.len());
        let constant: Vec<(usize, Vec<Sym>)> =
            (0..rank).filter_map(|dim| Some((dim, self.vars_of(dim, accesses)?))).collect();
        let joined = |dims: &[(usize, Vec<Sym>)]| {
            let mut vars = vec![self.var.clone()];
            for s in dims.iter().flat_map(|(_, here)| here) {
                if !vars.contains(s) {
                    vars.push(s.clone());
                }
            }
            let dims: Vec<usize> = dims.iter().map(|(dim, _)| *dim).collect();
            self.told_apart_by_values(accesses, &dims, &vars)
        };
        constant.iter().any(|one| joined(std::slice::from_ref(one))) || joined(&constant)
    }

    /// The variables that move in a dimension, if all of them have constant ranges and the rest is the same in all accesses.
    fn vars_of(&self, dim: usize, accesses: &[Touched]) -> Option<Vec<Sym>> {
        let (common, _) = self.split(&accesses[0].index[dim]);
        let mut vars = Vec::new();
        let mut constant = true;
        for access in accesses {
            let (rest, moving) = self.split(&access.index[dim]);
            constant &= rest == common;
            moving.for_each_var(&mut |s| {
                let range = self.ranges.get(s);
                constant &= range.lo.is_some() && range.hi.is_some();
                vars.push(s.clone());
            });
        }
        constant.then_some(vars)
    }

    fn told_apart_by_values(&self, accesses: &[Touched], dims: &[usize], vars: &[Sym]) -> bool {
        let ranges: Option<Vec<(i64, i64)>> =
            vars.iter().map(|s| self.ranges.get(s).lo.zip(self.ranges.get(s).hi)).collect();
        let Some(ranges) = ranges else { return false };
        let extents: Vec<i64> = ranges.iter().map(|(lo, hi)| (hi - lo).saturating_add(1)).collect();
        let points = extents.iter().fold(1i64, |n, e| n.saturating_mul(*e));
        if dims.is_empty() || points.saturating_mul(accesses.len() as i64) > MOST_POINTS {
            return false;
        }
        let mut owner: HashMap<Vec<i64>, i64> = HashMap::new();
        for point in crate::layout::indices(&extents) {
            let value = |s: &Sym| vars.iter().position(|v| v == s).map(|i| ranges[i].0 + point[i]);
            for access in accesses.iter().filter(|access| !access.never(&value)) {
                // Loops around are at the same iteration for both.
                let around = |i: &usize| vars[*i] != *self.var && !self.inner.contains(&vars[*i]);
                let around = (0..vars.len()).filter(around).map(|i| Some(point[i]));
                let here = dims.iter().map(|d| self.split(&access.index[*d]).1.eval(&value).ok());
                let element: Option<Vec<i64>> = around.chain(here).collect();
                let Some(element) = element else { return false };
                if *owner.entry(element).or_insert(point[0]) != point[0] {
                    return false;
                }
            }
        }
        true
    }
}
