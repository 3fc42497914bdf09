//! Schedules: a specification shaped step by step into a kernel.
//!
//! A [`Schedule`] holds the specification, the current program and the trace of steps between them. Every step is
//! applied at once and checks its own side conditions: it either leaves the schedule as it was and says why, or gives
//! a program that means the same. So after each step there is a program to print, run, simulate, count and compare.
//!
//! Steps are written one a line, in the call syntax of the text form; [`Schedule::run`] reads them and
//! [`Schedule::text`] writes them back:
//!
//! ```text
//! split(C.i, 32) -> bx, tx         # loops are addressed label.name; the label is the buffer that the loop computes
//! reorder(C.bx, C.by, C.tx, C.ty)
//! bind(C.bx, block.x)
//! bind(C.tx, C.ty, threads)
//! compute_at(acc, C.ty)
//! ```
//!
//! A loop that fission, staging or specialisation has copied keeps its name under each label, and a step that names
//! it applies to every copy.

mod facts;
mod handle;
pub mod primitive;
mod rewrite;
mod step;

pub use handle::{LoopRef, Loops};
pub use primitive::{Primitive, primitives};
pub use step::{Argument, Call};

use crate::diag::Diagnosis;
use crate::ir::Program;

/// A specification, the program it has become, and the steps that led there.
#[derive(Debug)]
pub struct Schedule {
    spec: Program,
    program: Program,
    trace: Vec<Box<dyn Primitive>>,
}

impl Schedule {
    /// The schedule with no steps.
    pub fn new(spec: Program) -> Schedule {
        Schedule { program: spec.clone(), spec, trace: Vec::new() }
    }

    /// Reads steps, one a line, and applies each. `#` starts a comment.
    ///
    /// # Errors
    /// The first line that is not a step or whose step is refused: which step, why, and what to do instead.
    pub fn run(spec: Program, text: &str) -> Result<Schedule, Diagnosis> {
        let mut schedule = Schedule::new(spec);
        schedule.steps(text)?;
        Ok(schedule)
    }

    /// Reads further steps, one a line, and applies each.
    ///
    /// # Errors
    /// As [`Schedule::run`]; the steps before the one that is refused remain applied.
    pub fn steps(&mut self, text: &str) -> Result<&mut Schedule, Diagnosis> {
        for (number, call) in step::calls(text)? {
            let place = || format!("line {number}, step {}: {call}", self.trace.len() + 1);
            let primitive = primitive::read(&call).map_err(|e| e.at(place()))?;
            let program = primitive.apply(&self.program).map_err(|e| e.at(place()))?;
            self.program = program;
            self.trace.push(primitive);
        }
        Ok(self)
    }

    /// Applies one step. On error the schedule is as it was.
    ///
    /// # Errors
    /// Why the step is not legal here, and what to do instead.
    pub fn apply(&mut self, primitive: impl Primitive + 'static) -> Result<&mut Schedule, Diagnosis> {
        self.program = primitive.apply(&self.program).map_err(|e| e.at(primitive.call().to_string()))?;
        self.trace.push(Box::new(primitive));
        Ok(self)
    }

    /// The specification.
    pub fn spec(&self) -> &Program {
        &self.spec
    }

    /// The current program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The steps so far.
    pub fn trace(&self) -> &[Box<dyn Primitive>] {
        &self.trace
    }

    /// The steps as text, one a line; [`Schedule::run`] reads it back.
    pub fn text(&self) -> String {
        self.trace.iter().map(|p| format!("{}\n", p.call())).collect()
    }

    /// The program after each prefix of the trace: the specification first, the current program last.
    ///
    /// # Errors
    /// None unless a primitive is not deterministic.
    pub fn prefixes(&self) -> Result<Vec<Program>, Diagnosis> {
        let mut out = vec![self.spec.clone()];
        for primitive in &self.trace {
            let next = primitive.apply(out.last().unwrap_or(&self.spec))?;
            out.push(next);
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests;
