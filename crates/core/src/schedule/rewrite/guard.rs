//! Guards: conditions stand at the leaves, so that loops around them can be moved; loads are guarded by their own
//! bounds and filled with what a reduction does not see.

use std::collections::HashMap;

use crate::index::Cond;
use crate::ir::{Access, Body, Buffer, For, If, Mode, Own, Stmt, Tasks, Value};
use crate::schedule::facts::Facts;
use crate::sym::Sym;

/// Wraps every leaf statement (or run of leaf statements) of a body in `if cond`.
pub(in crate::schedule) fn guard_leaves(stmts: Vec<Stmt>, cond: &Cond) -> Vec<Stmt> {
    if *cond == Cond::TRUE {
        return stmts;
    }
    let mut out = Vec::new();
    let mut leaves = Vec::new();
    let flush = |leaves: &mut Vec<Stmt>, out: &mut Vec<Stmt>| {
        if let Some(guarded) = guard(std::mem::take(leaves), cond) {
            out.push(guarded);
        }
    };
    for stmt in stmts {
        match stmt {
            // A vector loop is one access.
            Stmt::For(For { body, var, mode, range, counting }) if mode != Mode::Vector => {
                flush(&mut leaves, &mut out);
                out.push(Stmt::For(For {
                    body: guard_leaves(body.into(), cond).into(),
                    var,
                    mode,
                    range,
                    counting,
                }));
            }
            Stmt::Tasks(Tasks { body, vars, extents, start, stride }) => {
                flush(&mut leaves, &mut out);
                out.push(Stmt::Tasks(Tasks {
                    body: guard_leaves(body.into(), cond).into(),
                    vars,
                    extents,
                    start,
                    stride,
                }));
            }
            Stmt::Own(own) => {
                flush(&mut leaves, &mut out);
                let body = guard_leaves(own.body.to_vec(), cond).into();
                out.push(Stmt::Own(Own { body, ..own }));
            }
            Stmt::Let(..) | Stmt::Alloc(_) | Stmt::AllocRing(_) | Stmt::Roles(_) | Stmt::Sync(_) => {
                flush(&mut leaves, &mut out);
                out.push(stmt);
            }
            leaf => leaves.push(leaf),
        }
    }
    flush(&mut leaves, &mut out);
    out
}

/// `if cond { leaves }`, merged with a lone inner `if` that has no `else`.
fn guard(leaves: Vec<Stmt>, cond: &Cond) -> Option<Stmt> {
    if leaves.is_empty() {
        return None;
    }
    if let [Stmt::If(inner)] = &leaves[..]
        && inner.otherwise.is_empty()
    {
        let cond = inner.cond.clone().and(cond.clone());
        return Some(Stmt::If(If { cond, then: inner.then.clone(), otherwise: Body::default() }));
    }
    Some(Stmt::If(If { cond: cond.clone(), then: leaves.into(), otherwise: Body::default() }))
}

/// The condition under which an access is inside its buffer, without what is certain.
pub(in crate::schedule) fn bounds(access: &Access, buffer: &Buffer, facts: &Facts) -> Cond {
    access.index.iter().zip(&buffer.dims).fold(Cond::TRUE, |all, (index, dim)| {
        let (low, high) = (Cond::le(0.into(), index.clone()), Cond::lt(index.clone(), dim.extent.clone()));
        let missing = [low, high].into_iter().filter(|c| !facts.proves(c));
        missing.fold(all, Cond::and)
    })
}

/// `cond ? load : fill` as one load with its guard and fill value.
pub(in crate::schedule) fn guarded_load(value: &Value) -> Option<(Cond, &Access, f64)> {
    match value {
        Value::Load(access) => Some((Cond::TRUE, access, 0.0)),
        Value::Select(cond, this, that) => match (&**this, &**that) {
            (Value::Load(access), Value::Const(fill)) => Some((cond.clone(), access, *fill)),
            _ => None,
        },
        _ => None,
    }
}

/// Guards every load by its own bounds and gives `fill` where they fail; adds to a guard that is already there.
pub(in crate::schedule) fn guard_loads(
    value: &Value,
    buffers: &HashMap<Sym, Buffer>,
    facts: &Facts,
    fill: f64,
) -> Value {
    let again = |v: &Value| Box::new(guard_loads(v, buffers, facts, fill));
    if let Some((cond, access, present)) = guarded_load(value)
        && let Some(buffer) = buffers.get(&access.buffer)
    {
        let mut facts = facts.clone();
        facts.assume(&cond);
        let guard = cond.and(bounds(access, buffer, &facts));
        if guard == Cond::TRUE {
            return value.clone();
        }
        let fill = if matches!(value, Value::Select(..)) { present } else { fill };
        return Value::Select(guard, Box::new(Value::Load(access.clone())), Box::new(Value::Const(fill)));
    }
    match value {
        Value::Const(_) | Value::Scalar(_) | Value::Load(_) => value.clone(),
        Value::Unary(op, a) => Value::Unary(*op, again(a)),
        Value::Binary(op, a, b) => Value::Binary(*op, again(a), again(b)),
        Value::Select(c, a, b) => {
            let mut inside = facts.clone();
            inside.assume(c);
            Value::Select(c.clone(), Box::new(guard_loads(a, buffers, &inside, fill)), again(b))
        }
        Value::Cast(t, a) => Value::Cast(*t, again(a)),
    }
}
