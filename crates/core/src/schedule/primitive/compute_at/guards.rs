//! The conditions under which a consumer reads a stage, and those under which a stage reads.

use std::collections::HashMap;

use crate::index::{self, Atom, Comparison, Cond, Index, Interval};
use crate::ir::{Access, Buffer, Stmt, Value, walk};
use crate::schedule::facts::Facts;
use crate::schedule::rewrite::guard_loads;
use crate::sym::Sym;

/// Whether a condition follows from bounds that hold: `k < K` from `33*k + c < 33*K` where `c` is not negative.
pub(super) fn follows(cond: &Cond, bounds: &Cond, facts: &Facts) -> bool {
    let Cond::Compare(Comparison::Lt, x, y) = cond else { return false };
    let below = x - y;
    let Some((first, factor)) = below.terms().first() else { return false };
    bounds.conjuncts().iter().any(|bound| {
        let Cond::Compare(Comparison::Lt, x, y) = bound else { return false };
        let bound = x - y;
        let Some((_, times)) = bound.terms().iter().find(|(atom, _)| atom == first) else { return false };
        // bound = s below + rest < 0, so below < 0 where rest is not negative.
        let s = times / factor;
        s > 0
            && times % factor == 0
            && facts.ranges().of(&(&bound - &below.scaled(s))).lo.is_some_and(|rest| rest >= 0)
    })
}

/// Whether a condition follows from bounds that speak of quotients or remainders: `4*r + c < 4*R` from
/// `2*r + c/2 < 2*R`. That takes a proof.
pub(super) fn deduced(cond: &Cond, bounds: &Cond, facts: &Facts) -> bool {
    let divides =
        |index: &Index| index.terms().iter().any(|(a, _)| matches!(a, Atom::Div(..) | Atom::Mod(..)));
    let speaks_of_parts = |bound: &Cond| matches!(bound, Cond::Compare(_, a, b) if divides(a) || divides(b));
    if !bounds.conjuncts().iter().any(speaks_of_parts) {
        return false;
    }
    let mut vars: Vec<Sym> = Vec::new();
    cond.clone().and(bounds.clone()).for_each_var(&mut |s| {
        if !vars.contains(s) {
            vars.push(s.clone());
        }
    });
    let mut known = index::Facts::new();
    for var in &vars {
        match facts.ranges().get(var) {
            Interval { lo: Some(lo), hi: Some(hi) } => {
                known.runs_over(var, &lo.into(), &Index::constant(hi).offset(1), &1.into());
            }
            Interval { lo: Some(lo), hi: None } => known.at_least(var, lo),
            _ => return false,
        }
    }
    known.assume(bounds);
    index::prove(&known, cond) == Some(true)
}

/// Every load of a value, with the condition under which it takes place.
pub(in crate::schedule) fn for_each_guarded(
    value: &Value,
    guard: &Cond,
    visit: &mut dyn FnMut(&Access, &Cond),
) {
    match value {
        Value::Const(_) | Value::Scalar(_) => {}
        Value::Load(access) => visit(access, guard),
        Value::Unary(_, a) | Value::Cast(_, a) => for_each_guarded(a, guard, visit),
        Value::Binary(_, a, b) => {
            for_each_guarded(a, guard, visit);
            for_each_guarded(b, guard, visit);
        }
        Value::Select(cond, a, b) => {
            for_each_guarded(a, &guard.clone().and(cond.clone()), visit);
            for_each_guarded(b, guard, visit);
        }
    }
}

/// The index with what a guard keeps below a constant in it replaced by a variable of that range: of `8*r + c` where
/// `c < 5`, `8*r + v` with `v` from 0 to 4.
pub(super) fn clipped(index: &Index, guard: &Cond, facts: &mut Facts, inner: &mut Vec<Sym>) -> Index {
    let mut index = index.clone();
    for conjunct in guard.conjuncts() {
        let Cond::Compare(Comparison::Lt, small, limit) = conjunct else { continue };
        let (Some(limit), [(first, factor), ..]) = (limit.as_constant(), small.terms()) else { continue };
        let Some((_, of_index)) = index.terms().iter().find(|(atom, _)| atom == first) else { continue };
        let rest = &index - &small.scaled(of_index / factor);
        let apart = small.terms().iter().all(|(atom, _)| rest.terms().iter().all(|(other, _)| other != atom));
        let mut varies = true;
        small.for_each_var(&mut |var| varies &= inner.contains(var));
        if of_index % factor != 0 || of_index / factor < 0 || !apart || !varies {
            continue;
        }
        let known = facts.ranges().of(small);
        let within = Interval { lo: known.lo, hi: Some(known.hi.map_or(limit - 1, |hi| hi.min(limit - 1))) };
        if within == known {
            continue;
        }
        let var = Sym::new("v");
        facts.state(&var, within);
        inner.push(var.clone());
        index = &rest + &Index::var(&var).scaled(of_index / factor);
    }
    index
}

/// Guards every load of the statements by its own bounds.
pub(super) fn guard_all_loads(
    stmts: Vec<Stmt>,
    buffers: &HashMap<Sym, Buffer>,
    facts: &Facts,
    fill: f64,
) -> Vec<Stmt> {
    // Whole values: a load inside a choice that guards it already stays as it is.
    rewrite_values(stmts, facts, &|value, facts| Some(guard_loads(value, buffers, facts, fill)))
}

/// Offers every value, outer before inner, to `f` with what is known at its statement.
pub(super) fn rewrite_values(
    stmts: Vec<Stmt>,
    facts: &Facts,
    f: &dyn Fn(&Value, &Facts) -> Option<Value>,
) -> Vec<Stmt> {
    let mut out = Vec::with_capacity(stmts.len());
    for mut stmt in stmts {
        match &mut stmt {
            Stmt::For(l) => {
                let mut inside = facts.clone();
                inside.enter(l);
                l.body = rewrite_values(std::mem::take(&mut l.body), &inside, f).into();
            }
            Stmt::If(i) => {
                let (mut then, mut otherwise) = (facts.clone(), facts.clone());
                then.assume(&i.cond);
                otherwise.assume(&i.cond.clone().negate());
                i.then = rewrite_values(std::mem::take(&mut i.then), &then, f).into();
                i.otherwise = rewrite_values(std::mem::take(&mut i.otherwise), &otherwise, f).into();
            }
            Stmt::Assign(a) => a.value = replace(&a.value, &|v| f(v, facts)),
            other => {
                for body in walk::bodies_mut(other) {
                    *body = rewrite_values(std::mem::take(body), facts, f).into();
                }
            }
        }
        out.push(stmt);
    }
    out
}

fn replace(value: &Value, f: &dyn Fn(&Value) -> Option<Value>) -> Value {
    if let Some(new) = f(value) {
        return new;
    }
    let again = |v: &Value| Box::new(replace(v, f));
    match value {
        Value::Const(_) | Value::Scalar(_) | Value::Load(_) => value.clone(),
        Value::Unary(op, a) => Value::Unary(*op, again(a)),
        Value::Binary(op, a, b) => Value::Binary(*op, again(a), again(b)),
        Value::Select(c, a, b) => Value::Select(c.clone(), again(a), again(b)),
        Value::Cast(t, a) => Value::Cast(*t, again(a)),
    }
}

#[cfg(test)]
mod tests {
    use super::deduced;
    use crate::index::{Cond, Index};
    use crate::schedule::facts::Facts;
    use crate::sym::Sym;

    #[test]
    fn guards_on_whole_indices_follow_from_bounds_on_their_parts() {
        let (r, c, n) = (Sym::new("r"), Sym::new("c"), Sym::new("n"));
        let mut facts = Facts::default();
        facts.enter_range(&r, &10.into());
        facts.enter_range(&c, &4.into());
        let (whole, half) =
            (&Index::var(&r).scaled(4) + &Index::var(&c), &Index::var(&r).scaled(2) + &Index::var(&c).div(2));
        let guard = |limit: i64| Cond::lt(whole.clone(), limit.into());
        let bounds = Cond::lt(half.clone(), 7.into());
        assert!(deduced(&guard(14), &bounds, &facts));
        assert!(!deduced(&guard(13), &bounds, &facts), "13 is 2*6 + 1");
        // Of what nothing is known, and of bounds without parts, nothing is asked.
        assert!(!deduced(&guard(14), &Cond::lt(&half + &Index::var(&n), 7.into()), &facts));
        assert!(!deduced(&guard(14), &Cond::lt(whole.clone(), 14.into()), &facts));
    }
}
