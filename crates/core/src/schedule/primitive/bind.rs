//! `bind`: iterations become blocks, threads or virtual threads.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(n: size, x: in f32[n, 32], y: out f32[n, 32]) {
//!   for i in 0..n, r in 0..4, c in 0..8 { y[i, 8*r + c] = x[i, 8*r + c] }
//! }").unwrap();
//! let after = Schedule::run(before, "bind(y.i, block.x)\nbind(y.r, y.c, threads)").unwrap();
//! assert_eq!(after.program().to_string(), "\
//! program p(n: size,
//!     x: in f32[n, 32], y: out f32[n, 32])
//! {
//!   for i in block.x(n) {
//!     for r in threads(4@8), c in threads(8@1) {
//!       y[i, 8*r + c] = x[i, 8*r + c]
//!     }
//!   }
//! }
//! ");
//! ```
//!
//! Several loops bound to `threads` together number the threads in C order, the last fastest; `threads@32` numbers
//! warps instead, `threads@128` warpgroups. `vthread` interleaves the iterations in every thread.
//!
//! `min_blocks=N` on blocks asks the assembler to keep the registers of a thread few enough for N blocks on a
//! multiprocessor, 0 to decide as it likes. Where it is left out, the emitter asks for as many as come and fit.

use crate::diag::Diagnosis;
use crate::ir::{Axis, For, Mode, Program, Range, Stmt};
use crate::schedule::handle::LoopRef;
use crate::schedule::rewrite::{at_loops, none_allocated_by_blocks, parallel};
use crate::schedule::step::{Argument, Call};

use super::Primitive;

pub(super) const USAGE: &str = "bind(label.loop, block.x|block.y|block.z|vthread, min_blocks=N) or bind(label.outer, ..., label.inner, threads[@size])";

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct Bind {
    /// The loops, outermost first.
    pub targets: Vec<LoopRef>,
    /// What they become.
    pub to: BindTo,
    /// Of blocks: how many the assembler is asked to keep registers for on a multiprocessor, nothing if 0. `None` leaves it
    /// to the emitter.
    pub min_blocks: Option<i64>,
}

/// What a loop is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindTo {
    /// Blocks along an axis of the grid.
    Block(Axis),
    /// Ranges of this many threads.
    Threads(i64),
    /// Virtual threads.
    Virtual,
}

impl Bind {
    pub(super) fn read(call: &Call) -> Result<Bind, Diagnosis> {
        let Some((Argument::Word(word), loops)) = call.args.split_last() else {
            return Err(call.wrong("what to bind to is wanted"));
        };
        let to = match word.as_str() {
            "block.x" => BindTo::Block(Axis::X),
            "block.y" => BindTo::Block(Axis::Y),
            "block.z" => BindTo::Block(Axis::Z),
            "vthread" => BindTo::Virtual,
            "threads" => BindTo::Threads(1),
            other => match other.strip_prefix("threads@").and_then(|p| p.parse().ok()) {
                Some(pitch) if pitch > 0 => BindTo::Threads(pitch),
                _ => return Err(call.wrong(&format!("nothing can be bound to `{other}`"))),
            },
        };
        let targets: Vec<_> = (0..loops.len()).map(|i| call.loop_at(i)).collect::<Result<_, _>>()?;
        if targets.is_empty() || (targets.len() > 1 && !matches!(to, BindTo::Threads(_))) {
            return Err(call.wrong("one loop is wanted, or several for threads"));
        }
        let min_blocks = match (call.option_of("min_blocks").map(str::parse), to) {
            (None, _) => None,
            (Some(Ok(blocks)), BindTo::Block(_)) if (0..=Mode::MOST_MIN_BLOCKS).contains(&blocks) => {
                Some(blocks)
            }
            (Some(Ok(_)), BindTo::Block(_)) => {
                return Err(call.wrong(&Mode::about_min_blocks()));
            }
            (Some(Err(_)), BindTo::Block(_)) => return Err(call.wrong("min_blocks is a number")),
            (Some(_), _) => return Err(call.wrong("only blocks have min_blocks")),
        };
        Ok(Bind { targets, to, min_blocks })
    }

    fn bind_one(&self, program: &Program, target: &LoopRef, mode: Mode) -> Result<Program, Diagnosis> {
        let refuse = |because: String| Diagnosis::new(format!("`{target}` cannot be bound")).because(because);
        at_loops(program, target, &mut |l, place| {
            if l.mode != Mode::Serial {
                return Err(refuse("it is already bound, unrolled or vectorized".into()));
            }
            if !matches!(&l.range, Range::Span { lo, step, .. } if lo.as_constant() == Some(0) && step.as_constant() == Some(1))
            {
                return Err(refuse("it does not count from 0 by 1".into()));
            }
            parallel(&l, &place.facts()).map_err(|because| {
                refuse(because)
                    .instead("bind a loop over the result; split_reduce makes a reduction parallel")
            })?;
            if let Mode::Block { axis, .. } = mode
                && let Some(other) =
                    place.outer().iter().find(|o| !matches!(o.mode, Mode::Block { axis: a, .. } if a != axis))
            {
                return Err(refuse(format!(
                    "it stands inside `{}`, and blocks must be outermost",
                    other.var
                ))
                .instead("reorder the loops first, and bind each axis once"));
            }
            Ok(vec![Stmt::For(For { mode, ..l })])
        })
    }
}

impl Primitive for Bind {
    fn call(&self) -> Call {
        let args = self.targets.iter().cloned().map(Argument::Loop).collect();
        let to = match self.to {
            BindTo::Block(axis) => format!("block.{}", axis.name()),
            BindTo::Virtual => "vthread".into(),
            BindTo::Threads(1) => "threads".into(),
            BindTo::Threads(pitch) => format!("threads@{pitch}"),
        };
        let call = Call { args, ..Call::new("bind") }.word(to);
        match self.min_blocks {
            Some(blocks) => call.option("min_blocks", blocks),
            None => call,
        }
    }

    fn apply(&self, program: &Program) -> Result<Program, Diagnosis> {
        let mut program = program.clone();
        let mut pitch = if let BindTo::Threads(pitch) = self.to { pitch } else { 1 };
        for target in self.targets.iter().rev() {
            let mode = match self.to {
                BindTo::Block(axis) => Mode::Block { axis, ordered: false, min_blocks: self.min_blocks },
                BindTo::Virtual => Mode::Interleave,
                BindTo::Threads(_) => Mode::Threads { pitch },
            };
            if !matches!(self.to, BindTo::Block(_)) {
                pitch = pitch.saturating_mul(extent(&program, target)?);
            }
            program = self.bind_one(&program, target, mode)?;
        }
        none_allocated_by_blocks(program)
    }
}

/// The constant extent of a loop, the same for all its copies.
fn extent(program: &Program, target: &LoopRef) -> Result<i64, Diagnosis> {
    let mut extents = Vec::new();
    crate::ir::walk::for_each(&program.body, &mut |stmt| {
        if let Stmt::For(l) = stmt
            && target.means(l)
        {
            extents.push(l.range.constant_trip_count());
        }
    });
    match extents.first() {
        None => Err(target.unknown(program)),
        Some(Some(n)) if *n > 0 && extents.iter().all(|e| e == &Some(*n)) => Ok(*n),
        Some(_) => Err(Diagnosis::new(format!("`{target}` cannot be bound to threads"))
            .because("its number of iterations is not a positive constant")
            .instead("split it and bind the inner loop")),
    }
}

#[cfg(test)]
mod tests {
    use crate::ir::parse;
    use crate::schedule::Schedule;

    #[test]
    fn blocks_may_be_bound_with_what_is_asked_of_the_assembler() {
        let run = |step: &str| {
            let spec = "program p(n: size, x: in f32[n], y: out f32[n]) { for i in 0..n { y[i] = x[i] } }";
            Schedule::run(parse::program(spec).unwrap(), step)
        };
        for blocks in [0, 3, 32] {
            let step = format!("bind(y.i, block.x, min_blocks={blocks})");
            let schedule = run(&step).unwrap();
            let text = schedule.program().to_string();
            assert!(text.contains(&format!("for i in block.x(n) min_blocks {blocks} {{")), "{text}");
            assert_eq!(parse::program(&text).unwrap().to_string(), text);
            assert_eq!(schedule.text().trim(), step);
        }
        let refused = |step: &str| run(step).unwrap_err().to_string();
        assert!(refused("bind(y.i, block.x, min_blocks=33)").contains("or up to 32"));
        assert!(refused("bind(y.i, block.x, min_blocks=few)").contains("is a number"));
        assert!(refused("bind(y.i, vthread, min_blocks=1)").contains("only blocks"));
        let read = parse::program("program p() { for b in block.x(1) min_blocks 33 { } }");
        assert!(read.unwrap_err().to_string().contains("or up to 32"));
    }
}
