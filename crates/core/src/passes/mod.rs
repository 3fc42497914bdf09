//! From any program that runs in order to one that can run on many threads at once.
//!
//! Schedules rewrite a program step by step, and every step runs in order. A simulator of threads and an emitter of
//! CUDA want more: every element statement belongs to a thread, virtual threads are gone, and a barrier stands
//! wherever one thread needs what another has made. [`lower`] makes such a copy, or says why there is none. It
//! changes no value, and a program that is finished comes back as it was.

pub mod interleave;
pub mod legalise;
pub mod share;
pub mod simplify;
pub mod spread;
pub mod synchronise;
pub mod unroll;
mod uses;

#[cfg(test)]
mod tests;

use crate::diag::Diagnosis;
use crate::ir::Program;

/// The copy of a program that threads can run. Each line is one pass; its file says what it takes and gives, and why
/// it stands where it does.
///
/// # Errors
/// Why there is no such copy.
pub fn lower(program: &Program) -> Result<Program, Diagnosis> {
    let program = interleave::interleave(program.clone())?;
    let program = share::share(program)?;
    let program = spread::spread(program)?;
    let program = legalise::legalise(program)?;
    let program = unroll::unroll(program);
    let program = simplify::simplify(program);
    synchronise::synchronise(program)
}
