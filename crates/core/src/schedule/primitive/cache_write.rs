//! `cache_write`: a result is computed in another memory, then copied.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(n: size, K: size, x: in f32[n, K], y: out f32[n]) {
//!   for i in 0..n {
//!     y[i] = 0
//!     for k in 0..K { y[i] += x[i, k] }
//!   }
//! }").unwrap();
//! let after = Schedule::run(before, "cache_write(y, reg) -> t").unwrap();
//! assert_eq!(after.program().to_string(), "\
//! program p(n: size, K: size,
//!     x: in f32[n, K], y: out f32[n])
//! {
//!   alloc t: f32[n] reg
//!   for i in 0..n {
//!     t[i] = 0
//!     for k in 0..K {
//!       t[i] += x[i, k]
//!     }
//!   }
//!   for i in 0..n {
//!     y[i] = t[i]
//!   }
//! }
//! ");
//! ```
//!
//! The result must not have been scheduled yet: one loop for each of its dimensions, in order.

use crate::diag::Diagnosis;
use crate::index::Index;
use crate::ir::{Access, Assign, AssignOp, Buffer, Dim, For, Program, Range, Space, Stmt, Value, walk};
use crate::schedule::handle::written;
use crate::schedule::step::Call;
use crate::sym::Sym;

use super::Primitive;
use super::compute_at::canonical_nest;
use super::set_scope::{space, space_name};

pub(super) const USAGE: &str = "cache_write(buffer, reg|shared) -> name";

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct CacheWrite {
    /// The result.
    pub buffer: String,
    /// The memory it is computed in.
    pub space: Space,
    /// The name of the computed copy.
    pub name: String,
}

impl CacheWrite {
    pub(super) fn read(call: &Call) -> Result<CacheWrite, Diagnosis> {
        Ok(CacheWrite {
            buffer: call.word_at(0)?.into(),
            space: space(call, call.word_at(1)?)?,
            name: call.results(1)?[0].clone(),
        })
    }

    fn split(&self, stmt: &Stmt, result: &Buffer) -> Result<Vec<Stmt>, Diagnosis> {
        let refuse = |because: &str| {
            Diagnosis::new(format!("`{}` cannot be computed elsewhere", self.buffer))
                .because(because)
                .instead("apply cache_write before other steps on it")
        };
        let (vars, _) =
            canonical_nest(stmt, result).ok_or_else(|| refuse("its loops have been changed already"))?;
        let mut reads = false;
        walk::for_each(std::slice::from_ref(stmt), &mut |s| {
            if let Stmt::Assign(a) = s {
                a.value.for_each_access(&mut |access| reads |= access.buffer == result.sym);
            }
        });
        if reads {
            return Err(refuse("its old value is read too"));
        }
        let dims = result.dims.iter().map(|d| Dim::new(d.extent.clone())).collect();
        let copy = Buffer::new(Sym::new(&self.name), result.dtype, dims, self.space);
        let fresh: Vec<Sym> = vars.iter().map(Sym::fresh).collect();
        let index: Vec<Index> = fresh.iter().map(Index::var).collect();
        let store = Stmt::Assign(Assign {
            target: Access::new(&result.sym, index.clone()),
            op: AssignOp::Store,
            atomic: false,
            value: Value::load(&copy.sym, index),
        });
        let nest = fresh
            .iter()
            .zip(&result.dims)
            .rev()
            .fold(store, |inner, (v, d)| For::serial(v, Range::upto(d.extent.clone()), vec![inner]));
        let computed = walk::substitute(std::slice::from_ref(stmt), &|s| {
            (*s == result.sym).then(|| Index::var(&copy.sym))
        });
        Ok([vec![Stmt::Alloc(copy)], computed, vec![nest]].concat())
    }

    fn insert(&self, stmts: &[Stmt], program: &Program, count: &mut usize) -> Result<Vec<Stmt>, Diagnosis> {
        let results: Vec<Option<Buffer>> = stmts.iter().map(|s| written(s, &self.buffer, program)).collect();
        if results.iter().flatten().count() > 1 {
            return Err(Diagnosis::new(format!("`{}` cannot be computed elsewhere", self.buffer))
                .because("several nests compute it, one after another")
                .instead("apply cache_write before decompose_reduction and the like"));
        }
        let mut out = Vec::new();
        for (stmt, result) in stmts.iter().zip(results) {
            match (stmt, result) {
                (Stmt::If(i), _) => {
                    let mut i = i.clone();
                    i.then = self.insert(&i.then, program, count)?.into();
                    i.otherwise = self.insert(&i.otherwise, program, count)?.into();
                    out.push(Stmt::If(i));
                }
                (_, Some(result)) => {
                    *count += 1;
                    out.extend(self.split(stmt, &result)?);
                }
                (other, None) => out.push(other.clone()),
            }
        }
        Ok(out)
    }
}

impl Primitive for CacheWrite {
    fn call(&self) -> Call {
        Call::new("cache_write").word(&self.buffer).word(space_name(self.space)).gives([&self.name])
    }

    fn apply(&self, program: &Program) -> Result<Program, Diagnosis> {
        if program.buffers().values().any(|b| b.sym.name() == self.name) {
            return Err(Diagnosis::new(format!("there is a buffer `{}` already", self.name))
                .instead("choose another name"));
        }
        let mut count = 0;
        let body = self.insert(&program.body, program, &mut count)?;
        if count == 0 {
            return Err(Diagnosis::new(format!("nothing computes `{}`", self.buffer)));
        }
        Ok(program.with_body(body))
    }
}
