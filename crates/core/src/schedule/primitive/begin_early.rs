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
//!
//! With `asks`, blocks ask for the first KiB of each input before they wait: device memory brings them to the second-level cache meanwhile. That reads nothing:
//! where the launch before still writes to them, its values are read afterwards. By `bulk` one thread of a block asks for pieces of 2048 bytes, by
//! `lines` every thread for lines of 128. With `lets`, `none` of the launches lets what follows begin before it has waited itself, or `all` of them do,
//! the last of several too. Which of it is fastest depends on how many blocks there are and how much room they leave: blocks that wait take some.

use crate::diag::Diagnosis;
use crate::ir::{AskedBy, Asks, Early, Lets, Program};
use crate::schedule::step::Call;

use super::Primitive;

pub(super) const USAGE: &str = "begin_early([asks=KiB of each input][, by=bulk|lines][, lets=most|none|all])";

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct BeginEarly {
    /// How calls overlap.
    pub early: Early,
}

impl BeginEarly {
    pub(super) fn read(call: &Call) -> Result<BeginEarly, Diagnosis> {
        if !call.args.is_empty() {
            return Err(call.wrong("it takes options only"));
        }
        let asks = match (call.option_of("asks").map(str::parse::<i64>), call.option_of("by")) {
            (None, None) => None,
            (Some(Ok(kib)), by) if (1..=Asks::MOST_KIB).contains(&kib) => {
                Some(Asks { kib, by: by.map_or(Ok(AskedBy::Bulk), AskedBy::by_name)? })
            }
            (None, Some(_)) => return Err(call.wrong("nothing is asked for: say how many KiB, as asks=1024")),
            (Some(_), _) => return Err(call.wrong("what is asked for is a positive number of KiB")),
        };
        let lets = call.option_of("lets").map_or(Ok(Lets::default()), Lets::by_name)?;
        Ok(BeginEarly { early: Early { asks, lets } })
    }
}

impl Primitive for BeginEarly {
    fn call(&self) -> Call {
        let call = Call::new("begin_early");
        let call = match self.early.asks {
            Some(asks) => call.option("asks", asks.kib).option("by", asks.by.name()),
            None => call,
        };
        if self.early.lets == Lets::default() { call } else { call.option("lets", self.early.lets.name()) }
    }

    fn apply(&self, program: &Program) -> Result<Program, Diagnosis> {
        if program.begins_early.is_some() {
            return Err(Diagnosis::new("the program begins early already")
                .because("an earlier step of the schedule says so")
                .instead("leave one of the two out"));
        }
        Ok(Program { begins_early: Some(self.early), ..program.clone() })
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
        assert!(program.begins_early.is_some() && schedule.spec().begins_early.is_none());
        assert_eq!(parse::program(&program.to_string()).unwrap().to_string(), program.to_string());
        let twice = Schedule::run(parse::program(text).unwrap(), "begin_early()\nbegin_early()").unwrap_err();
        assert!(twice.to_string().contains("begins early already"), "{twice}");
    }

    #[test]
    fn what_is_asked_for_and_who_lets_others_begin_are_read_again() {
        let text = "program p(x: in f32[32], y: out f32[32]) {
  for b in block.x(1) { for t in threads(32@1) { y[t] = x[t] } }
}";
        let run = |step: &str| Schedule::run(parse::program(text).unwrap(), step);
        for (step, says) in [
            ("begin_early(asks=1024)", "\n  begins_early asks 1024 KiB bulk\n"),
            ("begin_early(asks=16, by=lines, lets=all)", "\n  begins_early asks 16 KiB lines lets all\n"),
            ("begin_early(lets=none)", "\n  begins_early lets none\n"),
            ("begin_early(lets=most)", "\n  begins_early\n"),
        ] {
            let schedule = run(step).unwrap();
            let printed = schedule.program().to_string();
            assert!(printed.contains(says), "{printed}");
            assert_eq!(parse::program(&printed).unwrap().begins_early, schedule.program().begins_early);
        }
        for (step, why) in [
            ("begin_early(3)", "takes options only"),
            ("begin_early(asks=1048577)", "1048577"),
            ("begin_early(asks=0)", "a positive number of KiB"),
            ("begin_early(asks=much)", "a positive number of KiB"),
            ("begin_early(by=lines)", "nothing is asked for"),
            ("begin_early(asks=8, by=hand)", "ask by bulk or by lines"),
            ("begin_early(lets=some)", "most (all but the last of several), none or all"),
        ] {
            let error = run(step).unwrap_err().to_string();
            assert!(error.contains(why), "{step}: {error}");
        }
        for asks in ["0 KiB bulk", "1048577 KiB bulk", "8 bulk", "8 KiB", "8 KiB hand"] {
            let text = text.replace(") {\n  for b", &format!(") begins_early asks {asks} {{\n  for b"));
            assert!(text.contains("begins_early") && parse::program(&text).is_err(), "{text}");
        }
    }
}
