//! Kernels compiled ahead, for a GPU that need not be here: into the user's cache, where whoever runs them finds them, on
//! this machine or on one that the cache was carried to.

use warpwright_core::diag::Diagnosis;
use warpwright_core::emit::cuda::Source;
use warpwright_core::ir::Program;
use warpwright_core::target::Target;
use warpwright_cuda::Device;

use super::executable::{Ahead, compile_ahead};
use crate::bind::Binding;
use crate::compile;
use crate::problem::Problem;

/// A GPU to compile for.
#[derive(Clone, Debug)]
pub struct Site {
    target: &'static Target,
    arch: String,
    multiprocessors: i64,
}

impl Site {
    /// A GPU of this machine.
    pub fn here(device: &Device, target: &'static Target) -> Site {
        Site { target, arch: device.info().arch(), multiprocessors: i64::from(device.info().sm_count) }
    }

    /// A GPU of the tables, wherever it is.
    pub fn elsewhere(target: &'static Target) -> Site {
        Site { target, arch: target.arch_for(&[]), multiprocessors: i64::from(target.sm_count.value) }
    }

    /// The CUDA text of a program and what its parameters are for a problem on this GPU.
    ///
    /// # Errors
    /// Programs that do not fit the GPU or the problem.
    pub fn source(&self, program: &Program, problem: &Problem) -> Result<Text<'_>, Diagnosis> {
        let valid = compile::validated(program, self.target)?;
        let source = compile::cuda_for(&valid, problem)?;
        let binding = Binding::new(valid.program(), problem, self.multiprocessors)?;
        Ok(Text { site: self, source, binding })
    }
}

/// A kernel that is ready to be compiled.
pub struct Text<'a> {
    site: &'a Site,
    source: Source,
    binding: Binding,
}

impl Text<'_> {
    /// Compiles what the problem needs of it into the user's cache.
    ///
    /// # Errors
    /// Source that does not compile, and no NVRTC.
    pub fn compile(&self) -> Result<Ahead, Diagnosis> {
        let Site { target, arch, .. } = self.site;
        compile_ahead(arch, &self.source, target, &|sym| self.binding.value(sym))
    }
}
