//! `fetch_granularity`: how many bytes device memory should give at a time.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(n: size, x: in f32[n, 8; ldx], y: out f32[n]) {
//!   for b in block.x(ceil(n, 32)) {
//!     for t in threads(32@1) { if 32*b + t < n { y[32*b + t] = x[32*b + t, 0] } }
//!   }
//! }").unwrap();
//! let after = Schedule::run(before, "fetch_granularity(32)").unwrap();
//! assert!(after.program().to_string().contains("  fetches 32\n"));
//! ```
//!
//! Nothing that is computed depends on it. The second-level cache asks device memory for more than the sectors of 32 bytes that somebody
//! misses: for 64 bytes on an H200, so that rows that stand apart come with sectors between them that nobody wants. A context can say that
//! it should ask for less (`CU_LIMIT_MAX_L2_FETCH_GRANULARITY`). Whoever launches the program on such a GPU sets this for its context; it holds for
//! everything that runs there, from then on and at once, and setting it takes the host 0.2 to 0.5 ms
//! (`bench/limits/granularity.cu`).

use crate::diag::Diagnosis;
use crate::ir::Program;
use crate::schedule::step::Call;

use super::Primitive;

pub(super) const USAGE: &str = "fetch_granularity(bytes), of 32, 64 or 128";

/// What a context can be asked for.
const KNOWN: [i64; 3] = [32, 64, 128];

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct FetchGranularity {
    /// Bytes that device memory should give at a time at most.
    pub bytes: i64,
}

impl FetchGranularity {
    pub(super) fn read(call: &Call) -> Result<FetchGranularity, Diagnosis> {
        let bytes = call.int_at(0)?;
        if !KNOWN.contains(&bytes) {
            return Err(call.wrong("bytes are 32, 64 or 128"));
        }
        Ok(FetchGranularity { bytes })
    }
}

impl Primitive for FetchGranularity {
    fn call(&self) -> Call {
        Call::new("fetch_granularity").int(self.bytes)
    }

    fn apply(&self, program: &Program) -> Result<Program, Diagnosis> {
        if let Some(bytes) = program.fetches {
            return Err(Diagnosis::new(format!("the program says already that {bytes} bytes are fetched"))
                .because("an earlier step of the schedule says so")
                .instead("leave one of the two out"));
        }
        Ok(Program { fetches: Some(self.bytes), ..program.clone() })
    }
}

#[cfg(test)]
mod tests {
    use crate::ir::parse;
    use crate::schedule::Schedule;

    const TEXT: &str = "program p(y: out f32[32]) {
  for b in block.x(1) { for t in threads(32@1) { y[t] = 0 } }
}";

    #[test]
    fn it_is_said_once_and_read_again() {
        let run = |steps: &str| Schedule::run(parse::program(TEXT).unwrap(), steps);
        let schedule = run("begin_early()\nfetch_granularity(32)").unwrap();
        let program = schedule.program();
        assert!(program.fetches == Some(32) && schedule.spec().fetches.is_none());
        assert_eq!(parse::program(&program.to_string()).unwrap().to_string(), program.to_string());
        let twice = run("fetch_granularity(32)\nfetch_granularity(64)").unwrap_err();
        assert!(twice.to_string().contains("already that 32 bytes"), "{twice}");
        let odd = run("fetch_granularity(48)").unwrap_err();
        assert!(odd.to_string().contains("32, 64 or 128"), "{odd}");
    }
}
