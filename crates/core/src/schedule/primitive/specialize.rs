//! `specialize`: a version of its own for sizes that are multiples.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(n: size, y: out f32[n]) { for i in 0..n { y[i] = 1 } }").unwrap();
//! let after = Schedule::run(before, "specialize(n%32)\nsplit(y.i, 32) -> io, ii").unwrap();
//! assert_eq!(after.program().to_string(), "\
//! program p(n: size,
//!     y: out f32[n])
//! {
//!   if n%32 == 0 {
//!     for io in 0..ceil(n, 32), ii in 0..32 {
//!       y[32*io + ii] = 1
//!     }
//!   } else {
//!     for io in 0..ceil(n, 32), ii in 0..32 {
//!       if 32*io + ii < n {
//!         y[32*io + ii] = 1
//!       }
//!     }
//!   }
//! }
//! ");
//! ```
//!
//! Later steps apply to both versions; in the first, guards and alignment follow from the condition. The host chooses
//! at each call, so one compiled program still serves every size.

use crate::diag::Diagnosis;
use crate::index::{Cond, Index};
use crate::ir::{If, Program, Stmt, walk};
use crate::schedule::step::{Argument, Call};
use crate::sym::Sym;

use super::Primitive;

pub(super) const USAGE: &str = "specialize(size%factor, ...)";

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct Specialize {
    /// Names of sizes or row strides, with what they must be a multiple of.
    pub multiples: Vec<(String, i64)>,
}

impl Specialize {
    pub(super) fn read(call: &Call) -> Result<Specialize, Diagnosis> {
        let one = |arg: &Argument| match arg {
            Argument::Word(word) => {
                let (name, factor) = word.split_once('%')?;
                let factor = factor.parse::<i64>().ok().filter(|f| *f > 0)?;
                Some((name.trim().to_string(), factor))
            }
            _ => None,
        };
        let multiples: Option<Vec<_>> = call.args.iter().map(one).collect();
        match multiples {
            Some(multiples) if !multiples.is_empty() => Ok(Specialize { multiples }),
            _ => Err(call.wrong("sizes and what they are a multiple of are wanted")),
        }
    }
}

/// The size, launch parameter or row stride of that name.
fn size(program: &Program, name: &str) -> Option<Sym> {
    let strides = program.tensors().filter_map(|t| t.row_stride.as_ref());
    program.params.iter().map(|p| &p.sym).chain(strides).find(|s| s.name() == name).cloned()
}

impl Primitive for Specialize {
    fn call(&self) -> Call {
        self.multiples
            .iter()
            .fold(Call::new("specialize"), |call, (name, factor)| call.word(format!("{name}%{factor}")))
    }

    fn apply(&self, program: &Program) -> Result<Program, Diagnosis> {
        let mut cond = Cond::TRUE;
        for (name, factor) in &self.multiples {
            let sym =
                size(program, name).ok_or_else(|| Diagnosis::new(format!("there is no size `{name}`")))?;
            cond = cond.and(Cond::eq(Index::var(&sym).rem(*factor), 0.into()));
        }
        if cond == Cond::TRUE {
            return Err(Diagnosis::new("there is nothing to specialize for")
                .because("every number is a multiple of 1")
                .instead("name a factor of 2 at least"));
        }
        let otherwise = walk::refresh(&program.body);
        let body =
            vec![Stmt::If(If { cond, then: program.body.clone().into(), otherwise: otherwise.into() })];
        Ok(program.with_body(body))
    }
}

#[cfg(test)]
mod tests {
    use crate::ir::parse;
    use crate::schedule::Schedule;

    #[test]
    fn a_condition_that_always_holds_makes_no_second_version() {
        let run = |step: &str| {
            let text = "program p(n: size, x: in f32[n], y: out f32[n]) { for i in 0..n { y[i] = x[i] } }";
            Schedule::run(parse::program(text).expect("reads"), step).map(|s| s.program().to_string())
        };
        let refusal = run("specialize(n%1)").expect_err("is refused").to_string();
        assert!(refusal.contains("nothing to specialize for"), "{refusal}");
        assert!(run("specialize(n%1, n%4)").expect("is taken").contains("if n%4 == 0 {"));
    }
}
