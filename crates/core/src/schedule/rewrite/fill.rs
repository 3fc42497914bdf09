//! Reductions that run past the end of a loop on operands that they do not see.

use crate::index::Cond;
use crate::ir::{Assign, AssignOp, BinaryOp, Reduction, Stmt, Value, walk};
use crate::schedule::facts::Facts;

use super::guarded_load;

/// Gives the operands of each reduction a neutral value where `guard` fails; `None` if that cannot be done.
pub fn fill(body: Vec<Stmt>, guard: &Cond, facts: &Facts) -> Option<Vec<Stmt>> {
    let mut possible = true;
    let out = walk::rewrite(body, &mut |mut stmt| {
        if let Stmt::Assign(Assign { op: AssignOp::Reduce(reduction), value, .. }) = &mut stmt {
            match neutral(value, *reduction, guard, facts) {
                Some(filled) => *value = filled,
                None => possible = false,
            }
        }
        vec![stmt]
    });
    possible.then_some(out)
}

/// The value with every factor replaced by one that is 0 where `guard` fails (a sum), or the value itself made the
/// identity there (a maximum or minimum of single loads). A sum or a choice of what is 0 there is 0 too.
fn neutral(value: &Value, reduction: Reduction, guard: &Cond, facts: &Facts) -> Option<Value> {
    if reduction != Reduction::Sum {
        let (cond, access, _) = guarded_load(value)?;
        let load = Box::new(Value::Load(access.clone()));
        return Some(Value::Select(
            cond.and(facts.remaining(guard)),
            load,
            Box::new(Value::Const(reduction.identity())),
        ));
    }
    let again = |v: &Value| neutral(v, reduction, guard, facts).map(Box::new);
    match value {
        Value::Load(_) | Value::Select(..) if guarded_load(value).is_some() => {
            let (cond, access, fill) = guarded_load(value)?;
            (fill == 0.0).then(|| {
                let load = Box::new(Value::Load(access.clone()));
                Value::Select(cond.and(guard.clone()), load, Box::new(Value::Const(0.0)))
            })
        }
        Value::Select(cond, a, b) => Some(Value::Select(cond.clone(), again(a)?, again(b)?)),
        Value::Binary(op @ (BinaryOp::Mul | BinaryOp::Add | BinaryOp::Sub), a, b) => {
            Some(Value::Binary(*op, again(a)?, again(b)?))
        }
        Value::Unary(op, a) => Some(Value::Unary(*op, again(a)?)),
        Value::Cast(t, a) => Some(Value::Cast(*t, again(a)?)),
        Value::Scalar(_) => Some(value.clone()),
        Value::Const(_) | Value::Load(_) | Value::Binary(..) => None,
    }
}
