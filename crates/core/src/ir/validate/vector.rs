//! A vector loop is one assignment (rule 30): its shape here, its contiguity and alignment in [`super::alignment`].

use std::collections::HashMap;

use super::place;
use crate::diag::Diagnosis;
use crate::index::Index;
use crate::ir::{AssignOp, Buffer, For, Mode, Program, Range, Stmt, Value, walk};
use crate::sym::Sym;

/// All faults of shape.
pub(super) fn check(program: &Program) -> Vec<Diagnosis> {
    let buffers = program.buffers();
    let mut faults = Vec::new();
    walk::for_each(&program.body, &mut |stmt| {
        if let Stmt::For(l) = stmt
            && l.mode == Mode::Vector
            && let Some(fault) = fault(l).or_else(|| moves_parts(l, &buffers))
        {
            faults.push(fault.at(place::of(program, stmt)));
        }
    });
    faults
}

/// The refusal of a wide access to a buffer whose elements are stored as tf32 parts, which do not lie side by side.
fn moves_parts(l: &For, buffers: &HashMap<Sym, Buffer>) -> Option<Diagnosis> {
    let mut found = None;
    walk::for_each_symbol(&l.body, &mut |sym| {
        if buffers.get(sym).is_some_and(|buffer| buffer.split) {
            found.get_or_insert_with(|| sym.clone());
        }
    });
    found.map(|sym| {
        Diagnosis::new(format!("the vector loop `{}` moves elements of `{sym}`", l.var))
            .because("it stores numbers as their tf32 parts, which do not lie side by side")
            .instead("unroll it")
    })
}

fn fault(l: &For) -> Option<Diagnosis> {
    let var = &l.var;
    let from_0 =
        matches!(&l.range, Range::Span { lo, step, .. } if *lo == Index::default() && *step == 1.into());
    if !from_0 || !matches!(l.range.constant_trip_count(), Some(2 | 4 | 8 | 16)) {
        return Some(
            Diagnosis::new(format!("the vector loop `{var}` is not 0..2, 4, 8 or 16"))
                .because("one access moves that many elements")
                .instead("split it, and vectorise the inner part"),
        );
    }
    let [Stmt::Assign(a)] = &l.body[..] else {
        return Some(
            Diagnosis::new(format!("the vector loop `{var}` is not one assignment"))
                .instead("put guards around the loop, and give each assignment a loop of its own"),
        );
    };
    if a.op != AssignOp::Store {
        return Some(
            Diagnosis::new(format!("the vector loop `{var}` is a reduction"))
                .because("a vector access only moves data")
                .instead("unroll it"),
        );
    }
    chooses_by(&a.value, var).then(|| {
        Diagnosis::new(format!("elements of the vector loop `{var}` differ in a condition"))
            .because("one access is done as a whole or not at all")
            .instead("guard the whole loop and give the rest to a scalar loop")
    })
}

fn chooses_by(value: &Value, var: &Sym) -> bool {
    match value {
        Value::Const(_) | Value::Scalar(_) | Value::Load(_) => false,
        Value::Unary(_, a) | Value::Cast(_, a) => chooses_by(a, var),
        Value::Binary(_, a, b) => chooses_by(a, var) || chooses_by(b, var),
        Value::Select(c, a, b) => c.mentions(var) || chooses_by(a, var) || chooses_by(b, var),
    }
}
