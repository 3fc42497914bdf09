//! `fuse`: two nested loops become one.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(n: size, x: in f32[n, 4], y: out f32[n, 4]) {
//!   for i in 0..n, j in 0..4 { y[i, j] = x[i, j] }
//! }").unwrap();
//! let after = Schedule::run(before, "fuse(y.i, y.j) -> f").unwrap();
//! assert_eq!(after.program().to_string(), "\
//! program p(n: size,
//!     x: in f32[n, 4], y: out f32[n, 4])
//! {
//!   for f in 0..4*n {
//!     y[f/4, f%4] = x[f/4, f%4]
//!   }
//! }
//! ");
//! ```
//!
//! The inner extent must be a constant: the quotient by a symbol is outside the index language.

use crate::diag::Diagnosis;
use crate::index::Index;
use crate::ir::{For, Mode, Program, Range, Stmt, walk};
use crate::schedule::handle::LoopRef;
use crate::schedule::rewrite::{at_loops, head};
use crate::schedule::step::Call;
use crate::sym::Sym;

use super::Primitive;

pub(super) const USAGE: &str = "fuse(label.outer, label.inner) -> name";

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct Fuse {
    /// The outer loop.
    pub outer: LoopRef,
    /// The loop directly inside it.
    pub inner: LoopRef,
    /// The name of the fused loop.
    pub name: String,
}

impl Fuse {
    pub(super) fn read(call: &Call) -> Result<Fuse, Diagnosis> {
        Ok(Fuse { outer: call.loop_at(0)?, inner: call.loop_at(1)?, name: call.results(1)?[0].clone() })
    }

    fn fuse(&self, outer: For) -> Result<Vec<Stmt>, Diagnosis> {
        let refuse = |because: &str| {
            Diagnosis::new(format!("`{}` and `{}` cannot be fused", self.outer, self.inner)).because(because)
        };
        let [Stmt::For(inner)] = &outer.body[..] else {
            return Err(refuse("one is not directly inside the other"));
        };
        if !self.inner.means(inner) {
            return Err(refuse("one is not directly inside the other").instead("reorder them first"));
        }
        if outer.mode != Mode::Serial || inner.mode != Mode::Serial {
            return Err(refuse("one of them is already bound, unrolled or vectorized"));
        }
        let (Some(rows), Some(Some(columns))) =
            (from_zero(&outer.range), from_zero(&inner.range).map(Index::as_constant))
        else {
            return Err(refuse(
                "the inner extent is no constant, and a quotient by a symbol is outside the index language",
            ));
        };
        let fused = Sym::new(&self.name);
        let flat = Index::var(&fused);
        let extent = rows.scaled(columns);
        let divisor = columns.max(1);
        let body = walk::substitute(&inner.body, &|s| match () {
            () if *s == outer.var => Some(flat.div(divisor)),
            () if *s == inner.var => Some(flat.rem(divisor)),
            () => None,
        });
        Ok(vec![Stmt::For(For { var: fused, range: Range::upto(extent), body: body.into(), ..head(&outer) })])
    }
}

fn from_zero(range: &Range) -> Option<&Index> {
    match range {
        Range::Span { lo, hi, step } if lo.as_constant() == Some(0) && step.as_constant() == Some(1) => {
            Some(hi)
        }
        _ => None,
    }
}

impl Primitive for Fuse {
    fn call(&self) -> Call {
        Call::new("fuse").target(&self.outer).target(&self.inner).gives([&self.name])
    }

    fn apply(&self, program: &Program) -> Result<Program, Diagnosis> {
        at_loops(program, &self.outer, &mut |l, _| self.fuse(l))
    }
}
