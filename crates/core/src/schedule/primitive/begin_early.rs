//! `begin_early`: a call may begin while what was launched before it still runs.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(n: size, x: in f32[n], y: out f32[n]) {
//!   for b in block.x(ceil(n, 32)) {
//!     for t in threads(32@1) { if 32*b + t < n { y[32*b + t] = x[32*b + t] } }
//!   }
//! }").unwrap();
//! let after = Schedule::run(before, "begin_early()").unwrap();
//! assert!(after.program().to_string().contains("  begins_early\n"));
//! ```
//!
//! What is computed stays as it is. Where the target has programmatic dependent launches, blocks take what room there is while the launch before
//! ends, wait for it themselves before they read or write anything, and let those of the next launch do the same. Nothing is taken for unchanging then, since
//! what runs before may write it: the compiler moves loads less freely. Short calls one after another take 0.3 to 0.4 us less so
//! on an H200 where nothing but copies is done (`bench/limits/short.cu`).

use crate::diag::Diagnosis;
use crate::ir::Program;
use crate::schedule::step::Call;

use super::Primitive;

pub(super) const USAGE: &str = "begin_early()";

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct BeginEarly;

impl BeginEarly {
    pub(super) fn read(call: &Call) -> Result<BeginEarly, Diagnosis> {
        if !call.args.is_empty() {
            return Err(call.wrong("it takes nothing"));
        }
        Ok(BeginEarly)
    }
}

impl Primitive for BeginEarly {
    fn call(&self) -> Call {
        Call::new("begin_early")
    }

    fn apply(&self, program: &Program) -> Result<Program, Diagnosis> {
        if program.begins_early {
            return Err(Diagnosis::new("the program begins early already")
                .because("an earlier step of the schedule says so")
                .instead("leave one of the two out"));
        }
        Ok(Program { begins_early: true, ..program.clone() })
    }
}

#[cfg(test)]
mod tests {
    use crate::ir::parse;
    use crate::schedule::Schedule;

    #[test]
    fn it_is_said_once_and_read_again() {
        let text = "program p(y: out f32[32]) {
  for b in block.x(1) { for t in threads(32@1) { y[t] = 0 } }
}";
        let schedule = Schedule::run(parse::program(text).unwrap(), "begin_early()").unwrap();
        let program = schedule.program();
        assert!(program.begins_early && !schedule.spec().begins_early);
        assert_eq!(parse::program(&program.to_string()).unwrap().to_string(), program.to_string());
        let twice = Schedule::run(parse::program(text).unwrap(), "begin_early()\nbegin_early()").unwrap_err();
        assert!(twice.to_string().contains("begins early already"), "{twice}");
    }
}
