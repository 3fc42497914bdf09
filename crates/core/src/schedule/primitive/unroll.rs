//! `unroll`: a loop is written out. Register arrays indexed by it then have constant indices.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(y: out f32[4]) { for i in 0..4 { y[i] = 1 } }").unwrap();
//! let after = Schedule::run(before, "unroll(y.i)").unwrap();
//! assert!(after.program().to_string().contains("for i in unroll 0..4 {"));
//! ```

use crate::diag::Diagnosis;
use crate::ir::{For, Mode, Program, Stmt};
use crate::schedule::handle::LoopRef;
use crate::schedule::rewrite::at_loops;
use crate::schedule::step::{Argument, Call};

use super::Primitive;

pub(super) const USAGE: &str = "unroll(label.loop, ...)";

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct Unroll {
    /// The loops.
    pub targets: Vec<LoopRef>,
}

impl Unroll {
    pub(super) fn read(call: &Call) -> Result<Unroll, Diagnosis> {
        let targets: Vec<_> = (0..call.args.len()).map(|i| call.loop_at(i)).collect::<Result<_, _>>()?;
        if targets.is_empty() {
            return Err(call.wrong("a loop is wanted"));
        }
        Ok(Unroll { targets })
    }
}

impl Primitive for Unroll {
    fn call(&self) -> Call {
        let args = self.targets.iter().cloned().map(Argument::Loop).collect();
        Call { args, ..Call::new("unroll") }
    }

    fn apply(&self, program: &Program) -> Result<Program, Diagnosis> {
        self.targets.iter().try_fold(program.clone(), |program, target| {
            at_loops(&program, target, &mut |l, _| {
                if l.range.constant_trip_count().is_none() {
                    return Err(Diagnosis::new(format!("`{target}` cannot be unrolled"))
                        .because("its number of iterations is not a constant")
                        .instead("split it and unroll the inner loop"));
                }
                if !matches!(l.mode, Mode::Serial | Mode::Unroll) {
                    return Err(Diagnosis::new(format!("`{target}` is already bound or vectorized")));
                }
                Ok(vec![Stmt::For(For { mode: Mode::Unroll, ..l })])
            })
        })
    }
}
