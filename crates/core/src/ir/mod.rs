//! The one program representation, an essay.
//!
//! A [`Program`] is a structured imperative loop program. Its parameters are tensors with symbolic or constant
//! sizes and row strides, scalars, and flags computed by the host ("beta is 0"). Its body is an ordered *host list*:
//! scratch buffers, conditions, and launches. A launch is a nest of block loops; the statements inside stand at block
//! scope. The naive triple loop that states a problem and the finished Hopper kernel are both `Program`s.
//!
//! **Run in order, with synchronisation ignored, a program means the same before and after every rewrite.** Three
//! habits make that true.
//!
//! *Thread loops are leaves.* Every statement is executed by a contiguous range of threads: the whole block at block
//! scope. `threads(E @ P)` splits the range into `E` ranges of `P` threads, so warps, warpgroups and threads are one
//! form. An element statement belongs to one thread, an instruction to exactly as many threads as its record says,
//! and a barrier joins exactly the range it stands in, *between* thread nests, never inside a smaller one. Divergent
//! barriers cannot be written. Shared memory that is allocated inside a thread loop is a part for each of its ranges;
//! for a launch, a pass puts the parts together into memory of the block.
//!
//! *Registers have owners.* A register buffer allocated for many threads carries distributed dimensions (`16@16` is
//! 16 elements, one every 16 threads) or a [`crate::layout::Fragment`], which give each element one owner. In order
//! it is an array; on the machine it is spread, and only the owner may touch an element. A loop over them
//! (`for (i, j) in own ...`) is in order over all, and on the machine over a thread's own: single elements, or runs of
//! neighbours that it has together (`(i, j by 2)`). With `lane_base` what a thread accesses in such a loop is written as one
//! place of its own and what is added to that.
//!
//! *Waiting is explicit and needs no clock.* Asynchronous instructions complete at once in order; an `await` only
//! asserts that the phase it names has completed. Phases are counted by ordinals, never by parity bits.
//!
//! Indices, bounds and conditions are [`crate::index::Index`] and [`crate::index::Cond`]: they cannot read data, so
//! control is the same in every execution, and one clean run proves a launch. Loop modes, memory spaces, layouts and
//! barriers say how a thing is carried out, never what it computes.

mod body;
mod buffer;
mod early;
pub mod facts;
mod launch;
pub mod parse;
pub mod print;
mod program;
mod statement;
pub mod validate;
mod value;
pub mod walk;

pub use body::Body;
pub use buffer::{ALIGNMENT, Buffer, Dim, Io, Ring, Space};
pub use early::{AskedBy, Asks, Early, Lets};
pub use launch::{BlockLoop, Launch, SharedBuffer, SharedPlan, shared_elements};
pub(crate) use launch::{alignment, block_threads};
pub use program::{Param, ParamKind, Program};
pub use statement::{
    Assign, AssignOp, Axis, For, If, Instruction, Mode, On, Operand, Own, Range, Role, Stmt, Sync, Tasks,
};
pub use value::{Access, BinaryOp, Reduction, Span, UnaryOp, Value, Window};
