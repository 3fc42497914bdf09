//! What is explained: a kernel with its steps, or a finished program, for one problem; and what the model says of it.

use std::fmt;

use warpwright_core::diag::Diagnosis;
use warpwright_core::ir::Program;
use warpwright_core::ir::validate::Valid;
use warpwright_core::model::time::{self, Time};
use warpwright_core::target::Target;

use crate::bind::Binding;
use crate::compile;
use crate::kernels::Kernel;
use crate::problem::Problem;
use crate::report::ChosenBy;

/// A kernel that is to be explained, and for what.
pub struct Subject {
    /// By whom it was chosen.
    pub chosen_by: ChosenBy,
    /// What it is.
    pub origin: Origin,
    /// The problem.
    pub problem: Problem,
}

/// Where a program comes from.
pub enum Origin {
    /// A schedule: it can be edited.
    Kernel(Box<Kernel>),
    /// A file with a finished program, of which nothing says how it was made.
    Program(Box<Program>),
}

impl Subject {
    /// The name to call it by.
    pub fn name(&self) -> &str {
        match &self.origin {
            Origin::Kernel(kernel) => &kernel.name,
            Origin::Program(program) => &program.name,
        }
    }

    /// The kernel, if it was made by a schedule.
    pub fn kernel(&self) -> Option<&Kernel> {
        match &self.origin {
            Origin::Kernel(kernel) => Some(kernel),
            Origin::Program(_) => None,
        }
    }

    /// The program before it is lowered.
    pub fn program(&self) -> &Program {
        match &self.origin {
            Origin::Kernel(kernel) => kernel.program(),
            Origin::Program(program) => program,
        }
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A program as it is launched for a problem on a GPU, with its time by the model.
pub struct Modelled {
    /// The lowered program.
    pub valid: Valid,
    /// Its arguments.
    pub binding: Binding,
    /// Its time, and what it is made of.
    pub time: Time,
}

impl Modelled {
    /// What the model says of a program; `registers` are those that a compiler gave the threads of each launch, where one was asked.
    ///
    /// # Errors
    /// Programs that do not fit the GPU or the problem, and arithmetic for which the GPU's table has no rate.
    pub fn of(
        program: &Program,
        problem: &Problem,
        target: &Target,
        registers: Option<&[i64]>,
    ) -> Result<Modelled, Diagnosis> {
        let valid = compile::validated(program, target)?;
        let binding = Binding::new(valid.program(), problem, i64::from(target.sm_count.value))?;
        let time = time::of(valid.program(), &|s| binding.value(s), target, registers)?;
        Ok(Modelled { valid, binding, time })
    }

    /// The same with what a compiler said of registers.
    ///
    /// # Errors
    /// Those of the model.
    pub fn with_registers(mut self, target: &Target, registers: &[i64]) -> Result<Modelled, Diagnosis> {
        self.time = time::of(self.valid.program(), &|s| self.binding.value(s), target, Some(registers))?;
        Ok(self)
    }
}
