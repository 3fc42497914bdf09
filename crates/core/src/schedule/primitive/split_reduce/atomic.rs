//! Parts added atomically: to the result, or to a sum in shared memory.
//!
//! To the result:
//!
//! ```text
//! for i { acc[i] = 0; for k { acc[i] += x[i, k] } }
//! for i { C[i] = alpha acc[i] + beta C[i] }
//!     =>
//! for i0 { C[i0] = beta C[i0] }
//! for s, i { part[s, i] = 0; for k in part(s, S) { part[s, i] += x[i, k] } }
//! for s, i { atomic C[i] += alpha part[s, i] }
//! ```
//!
//! The result must be linear in the sum: each of its values is `a sum + b`, where neither `a` nor `b` reads the sum.
//! It may be one that is added to atomically already; then nothing is stored first.
//! What stood between the sum and its result, a copy that the result reads or its buffer, stands before both.
//!
//! In shared memory, where the sum must be an intermediate buffer:
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(M: size, K: size, A: in f32[M, K], C: out f32[M]) {
//!   alloc acc: f32[M] global
//!   for i in 0..M {
//!     acc[i] = 0
//!     for k in 0..K { acc[i] += A[i, k] }
//!   }
//!   for i in 0..M { C[i] = acc[i] }
//! }").unwrap();
//! let after = Schedule::run(before, "split_reduce(acc.k, 4, combine=shared_atomic) -> part, s").unwrap();
//! assert_eq!(after.program().to_string(), "\
//! program p(M: size, K: size,
//!     A: in f32[M, K], C: out f32[M])
//! {
//!   alloc acc: f32[M] shared
//!   alloc part: f32[4, M] global
//!   for i0 in 0..M {
//!     acc[i0] = 0
//!   }
//!   for s in 0..4, i in 0..M {
//!     part[s, i] = 0
//!     for k in part(s, 4) 0..K {
//!       part[s, i] += A[i, k]
//!     }
//!   }
//!   for i in 0..M, s in 0..4 {
//!     atomic acc[i] += part[s, i]
//!   }
//!   for i in 0..M {
//!     C[i] = acc[i]
//!   }
//! }
//! ");
//! ```

use super::PartialSums;
use crate::index::Index;
use crate::ir::{
    Access, Assign, AssignOp, BinaryOp, For, If, Mode, Program, Range, Reduction, Space, Stmt, UnaryOp,
    Value, walk,
};
use crate::schedule::rewrite::{Effects, alike, mentions};
use crate::sym::Sym;

/// The list with the stage at position `at` and its one consumer rewritten. `nest` computes the parts.
pub(super) fn combine(
    stmts: &[Stmt],
    at: usize,
    nest: Vec<Stmt>,
    parts: &PartialSums,
    program: &Program,
) -> Result<Vec<Stmt>, String> {
    let sum = &parts.buffer.sym;
    if parts.reduction != Reduction::Sum {
        return Err("only sums can be added up atomically".into());
    }
    if !stmts.iter().any(|s| matches!(s, Stmt::Alloc(b) if b.sym == *sum)) {
        return Err(format!("`{sum}` is itself a result, so nothing says what is stored first"));
    }
    let users: Vec<usize> = (at + 1..stmts.len()).filter(|i| mentions(&stmts[*i..=*i], sum)).collect();
    let [user] = users[..] else { return Err(format!("`{sum}` is not used by exactly one nest")) };
    let consumer = std::slice::from_ref(&stmts[user]);
    let mut modes_plain = true;
    walk::for_each(consumer, &mut |s| {
        if let Stmt::For(l) = s {
            modes_plain &= l.mode == Mode::Serial;
        }
    });
    if !modes_plain {
        return Err("the loops of its result are bound already".into());
    }
    let written = Effects::of(consumer).stores;
    if let Some(b) = program.buffers().values().find(|b| b.space == Space::Reg && written.contains(&b.sym)) {
        return Err(format!("its result `{}` is in registers, to which nothing is added atomically", b.sym));
    }
    // What stands between the two does not touch the sum; it moves ahead of both, since the result may need it.
    let between = &stmts[at + 1..user];
    let ahead = Effects::of(between);
    if let Some(needed) = Effects::of(&stmts[at..=at]).reads.iter().find(|b| ahead.writes(b)) {
        return Err(format!("between `{sum}` and its result, `{needed}` is written, which the sum reads"));
    }
    let s = Sym::new(parts.name);
    let first = numbered(&leaves(consumer, &|a| without(a, sum))?);
    let then = leaves(&walk::refresh(consumer), &|a| with_part(a, parts, &s))?;
    let without_sum = |stmts: &[Stmt]| -> Vec<Stmt> {
        stmts.iter().filter(|s| !matches!(s, Stmt::Alloc(b) if b.sym == *sum)).cloned().collect()
    };
    // What is stored first comes before the parts, so that the two launches that follow each other share a grid.
    Ok([
        without_sum(&stmts[..at]),
        without_sum(between),
        first,
        vec![Stmt::Alloc(parts.partial.clone())],
        nest,
        vec![For::serial(&s, Range::upto(parts.count.clone()), then)],
        stmts[user + 1..].to_vec(),
    ]
    .concat())
}

/// What stands before the parts of a sum in shared memory, and what stands after them.
pub(super) fn in_shared(parts: &PartialSums) -> Result<[Vec<Stmt>; 2], String> {
    if parts.reduction != Reduction::Sum {
        return Err("only sums can be added up atomically".into());
    }
    let first: Vec<Sym> = parts.vars.iter().map(|v| Sym::new(&format!("{}0", v.name()))).collect();
    let then: Vec<Sym> = parts.vars.iter().map(Sym::fresh).collect();
    Ok([parts.nest(&first, vec![parts.start(&first)]), parts.nest(&then, vec![parts.add(&then, true)])])
}

/// Rebuilds statements with every assignment changed by `f`, or left out; arms that have become the same are joined,
/// and loops in which nothing is left fall away.
fn leaves(
    stmts: &[Stmt],
    f: &dyn Fn(&Assign) -> Result<Option<Assign>, String>,
) -> Result<Vec<Stmt>, String> {
    let mut out = Vec::new();
    for stmt in stmts {
        match stmt {
            Stmt::For(l) => {
                let body = leaves(&l.body, f)?;
                if !body.is_empty() {
                    out.push(Stmt::For(For { body: body.into(), ..l.clone() }));
                }
            }
            Stmt::If(i) => {
                let (then, otherwise) = (leaves(&i.then, f)?, leaves(&i.otherwise, f)?);
                if alike(&then, &otherwise) {
                    out.extend(then);
                } else {
                    out.push(Stmt::If(If {
                        cond: i.cond.clone(),
                        then: then.into(),
                        otherwise: otherwise.into(),
                    }));
                }
            }
            Stmt::Let(..) => out.push(stmt.clone()),
            Stmt::Assign(a) => out.extend(f(a)?.map(Stmt::Assign)),
            _ => return Err("its result is not computed by plain assignments".into()),
        }
    }
    Ok(out)
}

/// The same statements in loops with a 0 to their names, so that they can be bound on their own.
fn numbered(stmts: &[Stmt]) -> Vec<Stmt> {
    let named: Vec<(Sym, Index)> = walk::binders(stmts)
        .into_iter()
        .map(|s| (s.clone(), Index::var(&Sym::new(&format!("{}0", s.name())))))
        .collect();
    walk::substitute(stmts, &|s| named.iter().find(|(old, _)| old == s).map(|(_, new)| new.clone()))
}

/// The assignment without what depends on the sum; none where nothing is left of it.
fn without(a: &Assign, sum: &Sym) -> Result<Option<Assign>, String> {
    check(a, sum)?;
    let (_, rest) = linear(&a.value, sum)?;
    match a.op {
        AssignOp::Store => Ok(Some(Assign { value: rest.unwrap_or(Value::Const(0.0)), ..a.clone() })),
        AssignOp::Reduce(_) => Ok(rest.map(|value| Assign { value, ..a.clone() })),
    }
}

/// The atomic addition of what one part contributes.
fn with_part(a: &Assign, parts: &PartialSums, s: &Sym) -> Result<Option<Assign>, String> {
    let (part, _) = linear(&a.value, &parts.buffer.sym)?;
    let Some(part) = part else { return Ok(None) };
    let load = |access: &Access| {
        if access.buffer != parts.buffer.sym {
            return Value::Load(access.clone());
        }
        let index = std::iter::once(Index::var(s)).chain(access.index.iter().cloned()).collect();
        Value::load(&parts.partial.sym, index)
    };
    let value = part.map_accesses(&load, &Clone::clone);
    Ok(Some(Assign { target: a.target.clone(), op: AssignOp::Reduce(Reduction::Sum), atomic: true, value }))
}

fn check(a: &Assign, sum: &Sym) -> Result<(), String> {
    let adds = a.atomic && a.op == AssignOp::Reduce(Reduction::Sum);
    if !(adds || a.op == AssignOp::Store) || a.target.buffer == *sum {
        return Err("its result is neither stored once nor added to atomically".into());
    }
    let mut itself = true;
    a.value.for_each_access(&mut |access| {
        itself &= access.buffer != a.target.buffer || access.index == a.target.index;
    });
    if itself { Ok(()) } else { Err("its result reads other elements of itself".into()) }
}

/// A value as what depends linearly on the sum, and the rest.
fn linear(value: &Value, sum: &Sym) -> Result<(Option<Value>, Option<Value>), String> {
    let mut depends = false;
    value.for_each_access(&mut |a| depends |= a.buffer == *sum);
    if !depends {
        return Ok((None, Some(value.clone())));
    }
    let not_linear = || Err("its result is not linear in the sum".into());
    let both = |op: BinaryOp, a: Option<Value>, b: Option<Value>| match (a, b) {
        (Some(a), Some(b)) => Some(Value::binary(op, a, b)),
        (None, Some(b)) if op == BinaryOp::Sub => Some(Value::Unary(UnaryOp::Neg, Box::new(b))),
        (a, b) => a.or(b),
    };
    match value {
        Value::Load(_) => Ok((Some(value.clone()), None)),
        Value::Unary(UnaryOp::Neg, a) => {
            let (part, rest) = linear(a, sum)?;
            let negative = |v: Value| Value::Unary(UnaryOp::Neg, Box::new(v));
            Ok((part.map(negative), rest.map(negative)))
        }
        Value::Binary(op @ (BinaryOp::Add | BinaryOp::Sub), a, b) => {
            let ((part, rest), (other_part, other_rest)) = (linear(a, sum)?, linear(b, sum)?);
            Ok((both(*op, part, other_part), both(*op, rest, other_rest)))
        }
        Value::Binary(BinaryOp::Mul, a, b) => match (linear(a, sum)?, linear(b, sum)?) {
            ((part, rest), (None, Some(factor))) => {
                let times = |v: Value| Value::binary(BinaryOp::Mul, v, factor.clone());
                Ok((part.map(times), rest.map(times)))
            }
            ((None, Some(factor)), (part, rest)) => {
                let times = |v: Value| Value::binary(BinaryOp::Mul, factor.clone(), v);
                Ok((part.map(times), rest.map(times)))
            }
            _ => not_linear(),
        },
        _ => not_linear(),
    }
}
