//! What makes a program right: two predicates, each a function that alone can make the value it promises.
//!
//! [`check`] asks whether a program *runs in order*: every prefix of every schedule does. [`validate`] asks whether it
//! *fits a target*: the simulator's SIMT mode, the emitter and the model take only the result. Both return every
//! fault they find, not the first, and each [`Diagnosis`] says where, what, because of what, and what to do instead.
//!
//! Proof travels as a value: [`WellFormed`] and [`Valid`] cannot be built any other way, so a consumer that takes one
//! never has to ask again.
//!
//! ```
//! use warpwright_core::ir::parse;
//! use warpwright_core::ir::validate::{check, validate};
//! use warpwright_core::target::Target;
//!
//! let text = "program add_one(n: size, x: in f32[n], y: out f32[n]) {
//!   for b in block.x(ceil(n, 256)) {
//!     for t in threads(256@1) {
//!       if 256*b + t < n { y[256*b + t] = x[256*b + t] + 1 }
//!     }
//!   }
//! }";
//! let target = Target::by_name("h200").unwrap();
//! let program = check(parse::program(text).unwrap()).unwrap();
//! assert_eq!(validate(program, target).unwrap().facts()[0].threads, 256);
//!
//! // Warps instead of threads: in order that is one assignment each, on the machine it would be 32.
//! let program = check(parse::program(&text.replace("256@1", "8@32")).unwrap()).unwrap();
//! let faults = validate(program, target).unwrap_err();
//! assert!(faults[0].to_string().contains("32 threads execute one element statement"));
//! ```
//!
//! # What is checked, and where
//!
//! | file | rules | question |
//! |---|---|---|
//! | `scope` | 1, 5, 8, 13 | is every symbol bound once, before its use, and used as what it is? |
//! | `types` | 37 | do element types agree, are conversions explicit? |
//! | `buffers` | 1, 13 | do declarations suit their memory? |
//! | `ranges` | 2, 7, 8, 9 | do loops have ranges that mean something? |
//! | `effects` | 11, 15, 18, 25 | is only written what may be, are instructions called as recorded? |
//! | `initial` | 11, 12 | is nothing read or reduced into that nobody has written? |
//! | `roles` | 6, 8, 10, 22 | do roles stand inside the loops they share? |
//! | `vector` | 30 | is a vector loop one assignment? |
//! | `launches` | 1, 17, 27, 30 | are there launches only, do they fit the target? |
//! | `executors` | 2, 3, 4, 13, 17, 20 | can the threads that stand at a statement execute it? |
//! | `registers` | 13 to 16 | are registers touched by their owners, by constant number? |
//! | `operands` | 14, 17, 26 | do operands lie where the record says? |
//! | `alignment` | 30 | are vector loops contiguous and aligned? |
//! | `phases` | 20 to 23 | do arrivals, bytes and groups add up? |
//! | `blocks` | 19, 25, 39 | do blocks keep apart? |
//! | `determinism` | 38 | does it give the same bits every time? (asked by [`is_deterministic`]) |
//!
//! # What is not checked here, and who does
//!
//! *The simulator, in order*: accesses out of bounds that only some sizes have (rule 18; registers are checked here);
//! poison that reaches an output (rule 12: an initial store that exists but misses elements); an `await` whose phase is
//! not complete (rule 10); the values (the exact check against the specification).
//!
//! *The simulator, in SIMT mode*: races between threads, in shared and in device memory (rule 19), and hence missing
//! or misplaced barriers; copies used before their wait, fences (rules 20, 21, 24); phases missed or reused too early
//! (rules 22 and 23: here only counts and bytes are added up); what [`Valid::open_questions`] lists about blocks
//! (rule 39).
//!
//! *Whoever passes arguments* (binding a problem to a program): that assumptions hold, that tensors do not overlap
//! (rule 18), that they start at
//! multiples of what they declare, that a row stride is at least the number of columns, and that
//! a grid is not larger than the axis allows.
//!
//! *The schedule's primitives*: that a rewrite keeps the meaning; tails (rule 31); monoids (rule 32).
//!
//! *The CUDA compiler*: registers in all, spills.

mod alignment;
mod blocks;
mod buffers;
mod determinism;
mod effects;
mod executors;
mod initial;
pub mod iterations;
mod launch_facts;
mod launches;
mod operands;
mod phases;
pub mod place;
mod ranges;
mod registers;
mod roles;
mod scope;
mod types;
mod vector;

pub use alignment::{Reach, reaches};
pub use determinism::{is_deterministic, nondeterminism};
pub use launch_facts::{BarrierGroup, LaunchFacts};
pub use operands::swizzle;

use super::facts;
use super::launch::Launch;
use super::program::Program;
use super::statement::{Mode, Stmt};
use crate::diag::Diagnosis;
use crate::target::Target;
use executors::Executors;
use registers::{Constants, Registers};

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
    launches: Vec<LaunchFacts>,
    open: Vec<Diagnosis>,
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
    let (launches, open) = fits(&program.program, target)?;
    Ok(Valid { program: program.program, target: target.name, launches, open })
}

fn fits(program: &Program, target: &Target) -> Result<(Vec<LaunchFacts>, Vec<Diagnosis>), Vec<Diagnosis>> {
    let mut faults = launches::host(program);
    let launches = match Launch::all(&program.body) {
        Ok(launches) => launches,
        Err(fault) => {
            faults.push(fault);
            return Err(faults);
        }
    };
    let mut executors = Executors::default();
    for launch in &launches {
        faults.extend(launches::limits(launch, target).into_iter().map(|f| f.at(first_block(launch))));
        faults.extend(executors::assign(program, launch, &mut executors));
    }
    let buffers = program.buffers();
    let constants = Constants::of(program);
    let registers = Registers { buffers: &buffers, executors: &executors, constants: &constants };
    let mut open = Vec::new();
    let mut heads: Vec<&Stmt> = Vec::new();
    let mut known = facts::of_program(program);
    facts::at_each_of(&program.body, &mut known, &buffers, &mut |stmt, facts| {
        let Some(executor) = executors.of(stmt) else {
            if let Stmt::For(l) = stmt
                && launches.get(heads.len()).is_some_and(|next| next.blocks[0].var == l.var)
            {
                heads.push(stmt);
            }
            return;
        };
        let mut found = launches::needs(stmt, &buffers, target);
        match stmt {
            Stmt::Assign(a) => found.extend(registers.assign(a, executor, facts)),
            Stmt::Own(o) => found.extend(registers.own(o, executor, facts)),
            Stmt::For(l) if l.mode == Mode::Vector => found.extend(alignment::faults(l, &buffers, facts)),
            Stmt::Instruction(i) => {
                if let Some(launch) = heads.len().checked_sub(1).and_then(|at| launches.get(at)) {
                    found.extend(operands::faults(i, &registers, executor, launch, facts));
                }
            }
            _ => {}
        }
        faults.extend(found.into_iter().map(|f| f.at(place::of(program, stmt))));
    });
    for (launch, head) in launches.iter().zip(heads) {
        faults.extend(phases::faults(program, launch, &buffers, &executors));
        let verdict = blocks::apart(head, &known, &buffers);
        faults.extend(verdict.faults.into_iter().map(|f| f.at(place::of(program, head))));
        open.extend(verdict.open.into_iter().map(|f| f.at(place::of(program, head))));
    }
    match launch_facts::of(program, &launches, &executors) {
        Ok(shared) if faults.is_empty() => Ok((shared, open)),
        Ok(_) => Err(faults),
        Err(more) => {
            faults.extend(more);
            Err(faults)
        }
    }
}

fn first_block(launch: &Launch<'_>) -> String {
    launch.blocks.first().map_or_else(String::new, |b| format!("launch over `{}`", b.var))
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

    /// Its launches in order.
    pub fn launches(&self) -> Vec<Launch<'_>> {
        Launch::all(&self.program.body).expect("validated")
    }

    /// What is known of each launch, in the same order.
    pub fn facts(&self) -> &[LaunchFacts] {
        &self.launches
    }

    /// What the indices do not decide and the simulator has to (rule 39): blocks that may touch each other's elements.
    pub fn open_questions(&self) -> &[Diagnosis] {
        &self.open
    }
}

fn fail_if_any(faults: Vec<Diagnosis>) -> Result<(), Vec<Diagnosis>> {
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

#[cfg(test)]
mod tests;
