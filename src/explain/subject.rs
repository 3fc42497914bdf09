//! What is explained: a kernel with its steps, or a finished program, for one problem.

use std::fmt;

use warpwright_core::ir::Program;

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
