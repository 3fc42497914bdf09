//! The time model's answer for a kernel and a problem: lowered, validated and bound, nothing run and nothing compiled.

use warpwright_core::diag::Diagnosis;
use warpwright_core::ir::validate::Valid;
use warpwright_core::model::time::{self, Constants, Time};
use warpwright_core::target::Target;

use crate::bind::Binding;
use crate::compile::validated;
use crate::kernels::Kernel;
use crate::problem::Problem;

/// A kernel with the sizes of a problem, ready to be asked about.
#[derive(Debug)]
pub struct Subject {
    valid: Valid,
    binding: Binding,
    target: &'static Target,
    registers: Option<Vec<i64>>,
}

impl Subject {
    /// A kernel on a GPU. `registers` are those that a compiler gave the threads of each launch, where one was asked.
    ///
    /// # Errors
    /// A kernel that the GPU cannot run, and a problem that it does not fit.
    pub fn new(
        kernel: &Kernel,
        problem: &Problem,
        target: &'static Target,
        registers: Option<Vec<i64>>,
    ) -> Result<Subject, Diagnosis> {
        let valid = validated(kernel.program(), target)?;
        // As on the GPU itself, one block for each multiprocessor where a kernel leaves their number open.
        let binding = Binding::new(valid.program(), problem, i64::from(target.sm_count.value))?;
        Ok(Subject { valid, binding, target, registers })
    }

    /// The lowered program.
    pub fn valid(&self) -> &Valid {
        &self.valid
    }

    /// What the model says.
    ///
    /// # Errors
    /// As [`time::of`].
    pub fn time(&self) -> Result<Time, Diagnosis> {
        self.time_with(&time::CONSTANTS)
    }

    /// What it would say with other constants.
    ///
    /// # Errors
    /// As [`time::of`].
    pub fn time_with(&self, constants: &Constants) -> Result<Time, Diagnosis> {
        let value = |sym: &_| self.binding.value(sym);
        time::with(self.valid.program(), &value, self.target, self.registers.as_deref(), constants)
    }
}
