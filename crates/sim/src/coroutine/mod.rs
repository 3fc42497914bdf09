//! A second opinion: programs run as a GPU would, thread by thread, in random order.
//!
//! The SIMT engine walks a program once, in the order of the text, and *infers* from happens-before that no other
//! order can give anything else. This engine infers nothing. Every thread of a block executes its own copy of the
//! program (the *projection*: a loop over threads becomes an index, `on` a branch, `own` a loop over what the thread
//! owns) as a resumable interpreter; barriers and collective instructions meet; asynchronous instructions take effect
//! at once, at random, or as late as their wait allows; mbarriers are a counter and a parity bit. A [`Policy`] drawn
//! from a seed decides who goes next. A program that is right gives the same values under every seed, so whatever
//! goes wrong here must have been reported by the SIMT engine. It exists only for that test: it is small and slow,
//! proves nothing, and shares no code with the engine it tests.
//!
//! What it does not show: accesses that race without changing a value, alignment and capacity, and hazards between
//! launches, which are ordered.

mod agent;
mod data;
mod element;
mod instruction;
mod machine;
mod memory;
mod names;
mod random;
mod sync;
mod thread;

use std::collections::HashMap;
use std::fmt;

use warpwright_core::index::Cond;
use warpwright_core::ir::{Program, Space};

pub use element::Element;
pub use machine::Policy;
pub use random::Random;

use machine::Machine;

/// What a program is called with, by the names of its parameters.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    /// Sizes, launch parameters, row strides, and flags as 0 or 1.
    pub integers: HashMap<String, i64>,
    /// Scalars.
    pub scalars: HashMap<String, Element>,
    /// Tensors in C order, row padding included.
    pub tensors: HashMap<String, Vec<Element>>,
}

/// How an execution went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An access outside the logical box of a buffer.
    OutOfBounds {
        /// The buffer.
        buffer: String,
        /// Where.
        index: Vec<i64>,
    },
    /// Poison was stored to an output.
    Poison {
        /// The output.
        buffer: String,
        /// The element, counted in memory.
        element: usize,
    },
    /// A thread touched a register of another.
    Ownership {
        /// The buffer.
        buffer: String,
        /// The element.
        index: Vec<i64>,
        /// Who touched it.
        thread: i64,
        /// Whose it is.
        owner: i64,
    },
    /// Threads wait for what never comes.
    Deadlock {
        /// How many.
        waiting: usize,
    },
    /// Something no machine executes: a misplaced instruction, a bad address, too many arrivals.
    Refused(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::OutOfBounds { buffer, index } => write!(f, "{buffer}{index:?} is out of bounds"),
            Fault::Poison { buffer, element } => write!(f, "poison is stored to {buffer} at {element}"),
            Fault::Ownership { buffer, index, thread, owner } => {
                write!(f, "thread {thread} touches {buffer}{index:?}, which lives in thread {owner}")
            }
            Fault::Deadlock { waiting } => write!(f, "deadlock: {waiting} threads wait"),
            Fault::Refused(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Fault {}

/// Runs a program under the given policy; its outputs are the changed tensors of `arguments`.
///
/// # Errors
/// The first fault. What the tensors hold then is unspecified.
///
/// # Panics
/// If an argument is missing, or a tensor is shorter than its sizes and stride say.
pub fn run(program: &Program, arguments: &mut Arguments, policy: Policy) -> Result<(), Fault> {
    let mut machine = Machine::new(program, arguments, policy)?;
    machine.host(&program.body)?;
    machine.give_back(arguments);
    Ok(())
}

/// Whether the caller keeps the promises of a program.
pub fn assumptions_hold(program: &Program, arguments: &Arguments) -> bool {
    let value = |sym: &warpwright_core::sym::Sym| arguments.integers.get(sym.name()).copied();
    program.assumes.iter().all(|c: &Cond| c.eval(&value) == Ok(true))
}

/// The extents of each tensor parameter, and its row stride in elements, under the given sizes.
///
/// # Panics
/// If a size is missing.
pub fn tensor_shapes(program: &Program, arguments: &Arguments) -> Vec<(String, Vec<i64>, i64)> {
    let value = |sym: &warpwright_core::sym::Sym| arguments.integers.get(sym.name()).copied();
    let shape = |buffer: &warpwright_core::ir::Buffer| {
        let extents: Vec<i64> =
            buffer.dims.iter().map(|d| d.extent.eval(&value).expect("sizes are given")).collect();
        let packed = extents.last().copied().unwrap_or(1);
        let stride = buffer.row_stride.as_ref().map_or(packed, |s| value(s).expect("strides are given"));
        (buffer.sym.name().to_owned(), extents, stride)
    };
    program.tensors().filter(|b| matches!(b.space, Space::Param(_))).map(shape).collect()
}
