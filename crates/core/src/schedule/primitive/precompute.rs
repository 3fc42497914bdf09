//! `precompute`: a factor of a product is computed beforehand, once for all iterations that it does not depend on.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(K: size, x: in f32[K, 4], y: in f32[K, 8], z: inout f32[4, 8]) {
//!   for k in 0..K, i in 0..4, j in 0..8 {
//!     z[i, j] += (x[k, i] + x[k, 0]) * y[k, j]
//!   }
//! }").unwrap();
//! let after = Schedule::run(before, "precompute(z.k, 1) -> a").unwrap();
//! assert_eq!(after.program().to_string(), "\
//! program p(K: size,
//!     x: in f32[K, 4], y: in f32[K, 8], z: inout f32[4, 8])
//! {
//!   for k in 0..K {
//!     alloc a: f32[4] reg
//!     for i in 0..4 {
//!       a[i] = x[k, i] + x[k, 0]
//!     }
//!     for i in 0..4, j in 0..8 {
//!       z[i, j] += a[i] * y[k, j]
//!     }
//!   }
//! }
//! ");
//! ```
//!
//! Factors are counted from 1. The stage stands inside the given loop and in registers; it has a dimension, and a loop
//! of the same name, for each loop further inside that the factor depends on, in their order. `cache_read` copies what
//! is read as it is; this step is for what is made of it, and for tiles that are to be read as an instruction wants
//! them. Whatever the factor reads is read for every iteration, so no condition may stand around the product: apply the
//! step after `compute_at` has filled what hangs over.

use crate::diag::Diagnosis;
use crate::dtype::DType;
use crate::index::Index;
use crate::ir::{
    Access, Assign, AssignOp, BinaryOp, Buffer, Dim, For, Mode, Program, Range, Space, Stmt, Value,
};
use crate::schedule::handle::{LoopRef, writes};
use crate::schedule::rewrite::{at_loops, head, insert_alloc, mentions};
use crate::schedule::step::Call;
use crate::sym::Sym;

use super::Primitive;

pub(super) const USAGE: &str = "precompute(label.loop, 1|2) -> name";

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct Precompute {
    /// The loop inside which the factor is computed.
    pub at: LoopRef,
    /// Which factor of the product: 1 or 2.
    pub factor: i64,
    /// The name of the stage.
    pub name: String,
}

impl Precompute {
    pub(super) fn read(call: &Call) -> Result<Precompute, Diagnosis> {
        let (at, factor) = (call.loop_at(0)?, call.int_at(1)?);
        if !(1..=2).contains(&factor) {
            return Err(call.wrong("a product has factors 1 and 2"));
        }
        Ok(Precompute { at, factor, name: call.results(1)?[0].clone() })
    }

    fn refuse(&self, because: impl Into<String>) -> Diagnosis {
        let Precompute { at, factor, .. } = self;
        Diagnosis::new(format!("factor {factor} of `{}` cannot be computed at `{at}`", at.label))
            .because(because)
    }

    /// The body of the loop with the factor computed before the statement that uses it.
    fn body(&self, l: &For, dtype: DType) -> Result<Vec<Stmt>, Diagnosis> {
        let mut body = l.body.to_vec();
        let users: Vec<usize> =
            (0..body.len()).filter(|at| writes(std::slice::from_ref(&body[*at]), &self.at.label)).collect();
        let [user] = users[..] else {
            return Err(self
                .refuse(format!("{} statements write it there, not one", users.len()))
                .instead("apply decompose_reduction first, or name a loop further inside"));
        };
        let mut loops = Vec::new();
        let assign = self.product(&body[user], &mut loops)?.clone();
        let (first, second) = self.factors(&assign)?;
        let factor = if self.factor == 1 { first } else { second };
        let (tile, nest, load) = self.stage(factor, &loops, dtype);
        let product = match self.factor {
            1 => Value::binary(BinaryOp::Mul, load, second.clone()),
            _ => Value::binary(BinaryOp::Mul, first.clone(), load),
        };
        let update = Stmt::Assign(Assign { value: product, ..assign });
        body[user] = loops
            .iter()
            .rev()
            .fold(update, |inner, l| Stmt::For(For { body: vec![inner].into(), ..l.clone() }));
        body.insert(user, nest);
        insert_alloc(&mut body, tile);
        Ok(body)
    }

    /// The assignment in a statement that is one loop inside the other around it; the loops go to `loops`.
    fn product<'a>(&self, stmt: &'a Stmt, loops: &mut Vec<For>) -> Result<&'a Assign, Diagnosis> {
        match stmt {
            Stmt::Assign(assign) => Ok(assign),
            Stmt::For(l) => {
                if !matches!(l.mode, Mode::Serial | Mode::Unroll) {
                    return Err(self.refuse(format!("`{}` is bound or vectorized", l.var.name())));
                }
                let from_0 = matches!(&l.range, Range::Span { lo, step, .. }
                    if lo.as_constant() == Some(0) && step.as_constant() == Some(1));
                if !from_0 || l.range.constant_trip_count().is_none() {
                    return Err(self
                        .refuse(format!("`{}` has no constant number of iterations", l.var.name()))
                        .instead("split it, and name the outer loop"));
                }
                let [inner] = &l.body[..] else {
                    return Err(self
                        .refuse(format!("several statements stand in `{}`", l.var.name()))
                        .instead("name that loop, or one inside it"));
                };
                loops.push(head(l));
                self.product(inner, loops)
            }
            Stmt::If(_) => Err(self.refuse("a condition stands around the product").instead(
                "stage what it reads by cache_read and compute_at first, which fill what hangs over",
            )),
            _ => Err(self.refuse("it is no product of two values")),
        }
    }

    /// The factors of a product that is added up.
    fn factors<'a>(&self, assign: &'a Assign) -> Result<(&'a Value, &'a Value), Diagnosis> {
        match (&assign.op, &assign.value) {
            (AssignOp::Reduce(_), Value::Binary(BinaryOp::Mul, first, second)) => {
                let mut reads_itself = false;
                assign.value.for_each_access(&mut |a| reads_itself |= a.buffer == assign.target.buffer);
                if reads_itself { Err(self.refuse("it reads what it writes")) } else { Ok((first, second)) }
            }
            _ => Err(self.refuse("what is added up is no product of two values")),
        }
    }

    /// The buffer of a factor, the loops that compute it, and its use.
    fn stage(&self, factor: &Value, loops: &[For], dtype: DType) -> (Buffer, Stmt, Value) {
        let sym = Sym::new(&self.name);
        let stored = |target: Vec<Index>, value: Value| {
            let target = Access::new(&sym, target);
            Stmt::Assign(Assign { target, op: AssignOp::Store, atomic: false, value })
        };
        let alone = [stored(Vec::new(), factor.clone())];
        let depends: Vec<&For> = loops.iter().filter(|l| mentions(&alone, &l.var)).collect();
        let extent = |l: &For| Index::constant(l.range.constant_trip_count().unwrap_or_default());
        let dims = depends.iter().map(|l| Dim::new(extent(l))).collect();
        let at: Vec<Index> = depends.iter().map(|l| Index::var(&l.var)).collect();
        let fresh: Vec<Sym> = depends.iter().map(|l| l.var.fresh()).collect();
        let renamed = factor
            .substitute(&|s| depends.iter().position(|l| l.var == *s).map(|place| Index::var(&fresh[place])));
        let update = stored(fresh.iter().map(Index::var).collect(), renamed);
        let nest = fresh
            .iter()
            .zip(&depends)
            .rev()
            .fold(update, |inner, (var, l)| For::serial(var, Range::upto(extent(l)), vec![inner]));
        (Buffer::new(sym.clone(), dtype, dims, Space::Reg), nest, Value::load(&sym, at))
    }
}

impl Primitive for Precompute {
    fn call(&self) -> Call {
        Call::new("precompute").target(&self.at).int(self.factor).gives([&self.name])
    }

    fn apply(&self, program: &Program) -> Result<Program, Diagnosis> {
        let buffers = program.buffers();
        if buffers.values().any(|b| b.sym.name() == self.name) {
            return Err(Diagnosis::new(format!("there is a buffer `{}` already", self.name))
                .instead("choose another name"));
        }
        // What is added up has the type of the sum.
        let Some(sum) = buffers.values().find(|b| b.sym.name() == self.at.label) else {
            return Err(self.at.unknown(program));
        };
        at_loops(program, &self.at, &mut |l, _| {
            let body = self.body(&l, sum.dtype)?.into();
            Ok(vec![Stmt::For(For { body, ..head(&l) })])
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::ir::parse;
    use crate::schedule::Schedule;

    fn run(body: &str, steps: &str) -> Result<String, String> {
        let text =
            format!("program p(n: size, x: in f32[n, 8], y: in f32[n, 8], z: inout f32[8, 8]) {{ {body} }}");
        let spec = parse::program(&text).expect("the specification reads");
        Schedule::run(spec, steps).map(|s| s.program().to_string()).map_err(|e| e.to_string())
    }

    #[test]
    fn both_factors_have_the_loops_that_they_depend_on() {
        let body = "for k in 0..n, p in 0..2, i in 0..8, j in 0..8 {
            z[i, j] += (p < 1 ? x[k, i] : 0 - x[k, i]) * y[k, j]
        }";
        let text = run(body, "precompute(z.k, 1) -> a\nprecompute(z.k, 2) -> b").unwrap();
        for wanted in [
            "alloc a: f32[2, 8] reg\n    alloc b: f32[8] reg",
            "for p in 0..2, i in 0..8 {\n      a[p, i] = p < 1 ? x[k, i] : 0 - x[k, i]",
            "for j in 0..8 {\n      b[j] = y[k, j]",
            "z[i, j] += a[p, i] * b[j]",
        ] {
            assert!(text.contains(wanted), "{wanted}\n{text}");
        }
    }

    #[test]
    fn what_cannot_be_computed_before_is_refused() {
        for (body, step, because) in [
            (
                "for k in 0..n, i in 0..8 { if k < i { z[i, i] += x[k, i] * y[k, i] } }",
                "(z.k, 1)",
                "a condition",
            ),
            ("for i in 0..8, k in 0..n { z[i, i] += x[k, i] * y[k, i] }", "(z.i, 1)", "no constant number"),
            ("for k in 0..n, i in 0..8 { z[i, i] += x[k, i] + y[k, i] }", "(z.k, 1)", "no product"),
            ("for k in 0..n, i in 0..8 { z[i, 0] += z[i, 1] * y[k, i] }", "(z.k, 2)", "reads what it writes"),
            (
                "for i in 0..8 { z[i, i] = 0 for k in 0..8 { z[i, i] += x[i, k] * y[i, k] } }",
                "(z.i, 1)",
                "2 statements",
            ),
            ("for k in 0..n, i in 0..8 { z[i, i] += x[k, i] * y[k, i] }", "(z.k, 3)", "factors 1 and 2"),
            ("for k in 0..n, i in 0..8 { z[i, i] += x[k, i] * y[k, i] }", "(z.m, 1)", "no loop `z.m`"),
        ] {
            let refusal = run(body, &format!("precompute{step} -> a")).unwrap_err();
            assert!(refusal.contains(because), "{because}: {refusal}");
        }
        let again = "for k in 0..n, i in 0..8 { z[i, i] += x[k, i] * y[k, i] }";
        let refusal = run(again, "precompute(z.k, 1) -> a\nprecompute(z.k, 2) -> a").unwrap_err();
        assert!(refusal.contains("a buffer `a` already"), "{refusal}");
    }
}
