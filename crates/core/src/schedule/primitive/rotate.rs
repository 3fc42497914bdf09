//! `rotate`: a loop begins elsewhere in each iteration of a loop around it.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(x: in f32[3, 4], y: out f32[3, 4]) {
//!   for i in 0..3, j in 0..4 { y[i, j] = x[i, j] }
//! }").unwrap();
//! let after = Schedule::run(before, "rotate(y.j, y.i)").unwrap();
//! assert_eq!(after.program().to_string(), "\
//! program p(x: in f32[3, 4], y: out f32[3, 4])
//! {
//!   for i in 0..3, j in 0..4 {
//!     y[i, (i + j)%4] = x[i, (i + j)%4]
//!   }
//! }
//! ");
//! ```
//!
//! Each iteration still runs once. What is bound to threads changes hands: of four rows of four warps, warp `w` of each stands on
//! scheduler `w`; where the parts of the last column are small, its scheduler has little to do. Rotated by their rows, each scheduler has
//! a warp of each row and of each column. (The name and its meaning are those of DISTAL's command,
//! <https://doi.org/10.1145/3519939.3523437>.)
//!
//! The loop counts from 0 to a constant, and its iterations are independent, or run in threads or blocks already.

use crate::diag::Diagnosis;
use crate::index::Index;
use crate::ir::{For, Mode, Program, Range, Stmt, walk};
use crate::schedule::handle::LoopRef;
use crate::schedule::rewrite::{at_loops, head, independent};
use crate::schedule::step::Call;

use super::Primitive;

pub(super) const USAGE: &str = "rotate(label.loop, label.outer)";

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct Rotate {
    /// The loop.
    pub target: LoopRef,
    /// The loop around it by which it is rotated.
    pub by: LoopRef,
}

impl Rotate {
    pub(super) fn read(call: &Call) -> Result<Rotate, Diagnosis> {
        if call.args.len() != 2 {
            return Err(call.wrong("a loop and one around it are wanted"));
        }
        Ok(Rotate { target: call.loop_at(0)?, by: call.loop_at(1)? })
    }

    fn refuse(&self, because: impl Into<String>) -> Diagnosis {
        Diagnosis::new(format!("`{}` cannot be rotated by `{}`", self.target, self.by)).because(because)
    }
}

impl Primitive for Rotate {
    fn call(&self) -> Call {
        Call::new("rotate").target(&self.target).target(&self.by)
    }

    fn apply(&self, program: &Program) -> Result<Program, Diagnosis> {
        at_loops(program, &self.target, &mut |l, place| {
            let extent = match &l.range {
                Range::Span { lo, hi, step }
                    if lo.as_constant() == Some(0) && step.as_constant() == Some(1) && l.counting.is_none() =>
                {
                    hi.as_constant()
                }
                _ => None,
            };
            let Some(extent) = extent.filter(|extent| *extent > 0) else {
                return Err(self
                    .refuse("it does not count from 0 by 1 to a constant")
                    .instead("split it and rotate the inner loop"));
            };
            let outer = place.outer();
            let Some(by) = outer.iter().find(|o| self.by.means(o)) else {
                return Err(self.refuse("the second is not around the first").instead("reorder them first"));
            };
            match l.mode {
                Mode::Block { .. } | Mode::Threads { .. } => {}
                Mode::Serial => independent(&l, &place.facts()).map_err(|because| self.refuse(because))?,
                _ => {
                    return Err(self
                        .refuse("it is unrolled, vectorized or interleaved already")
                        .instead("rotate it before"));
                }
            }
            let turned = (&Index::var(&l.var) + &Index::var(&by.var)).rem(extent);
            let body = walk::substitute(&l.body, &|s| (*s == l.var).then(|| turned.clone()));
            Ok(vec![Stmt::For(For { body: body.into(), ..head(&l) })])
        })
    }
}
