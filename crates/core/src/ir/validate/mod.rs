//! What makes a program right: two predicates, each a function that alone can make the value it promises.
//!
//! [`check`] asks whether a program *runs in order*: every prefix of every schedule does. [`validate`] asks whether it
//! *fits a target*: the simulator's SIMT mode, the emitter and the model take only the result. Both return every
//! fault they find, not the first, and each [`Diagnosis`] says where, what, because of what, and what to do instead.
//!
//! Proof travels as a value: [`WellFormed`] and [`Valid`] cannot be built any other way, so a consumer that takes one
//! never has to ask again.

mod buffers;
mod effects;
mod initial;
pub mod iterations;
mod place;
mod ranges;
mod roles;
mod scope;
mod types;
mod vector;

use super::program::Program;
use crate::diag::Diagnosis;
use crate::target::Target;

/// A program that runs in order. Made by [`check`] only.
#[derive(Clone, Debug, PartialEq)]
pub struct WellFormed {
    program: Program,
}

/// A program that fits a target. Made by [`validate`] only.
#[derive(Clone, Debug, PartialEq)]
pub struct Valid {
    program: Program,
    target: &'static str,
}

/// Checks that a program runs in order.
///
/// # Errors
/// Every fault found, in text order within each check.
pub fn check(program: Program) -> Result<WellFormed, Vec<Diagnosis>> {
    // Everything after this looks symbols up in flat tables, which is right only if scoping is.
    fail_if_any(scope::check(&program))?;
    let checks: [fn(&Program) -> Vec<Diagnosis>; 7] = [
        types::check,
        buffers::check,
        ranges::check,
        effects::check,
        initial::check,
        roles::check,
        vector::check,
    ];
    fail_if_any(checks.iter().flat_map(|check| check(&program)).collect())?;
    Ok(WellFormed { program })
}

/// Checks that a program that runs in order fits a target.
///
/// # Errors
/// Every fault found, in text order within each check.
pub fn validate(program: WellFormed, target: &Target) -> Result<Valid, Vec<Diagnosis>> {
    Ok(Valid { program: program.program, target: target.name })
}

impl WellFormed {
    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The program, to be rewritten; what comes of it has to be checked again.
    pub fn into_program(self) -> Program {
        self.program
    }
}

impl Valid {
    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The name of the target that the program fits.
    pub fn target(&self) -> &'static str {
        self.target
    }
}

fn fail_if_any(faults: Vec<Diagnosis>) -> Result<(), Vec<Diagnosis>> {
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

#[cfg(test)]
mod tests;
