//! Runs programs without a GPU, and says what a GPU would make of them.
//!
//! One engine, generic over the [`Arithmetic`], in two [`Mode`]s. *In order* is the definition of the language: all
//! loops one after another, on logical arrays. *SIMT* is the same walk, vectorised over the lanes of a warp, on
//! physical storage: layouts applied, registers owned by threads, each instruction with its own addresses, and for
//! every element a record of who touched it last. Control reads no data and every wait is satisfied in order, so one
//! clean run is the proof for that launch; no interleavings are tried.
//!
//! [`exact::check`] compares a program with its specification over the prime field, without any tolerance;
//! [`simulate`] runs a program on given matrices as a GPU would, and counts what a profiler would. Hazards are data:
//! see [`Hazard`].

mod arithmetic;
mod code;
pub mod coroutine;
mod count;
pub mod exact;
mod hazard;
mod lower;
mod machine;
mod memory;
pub mod mutate;
mod order;
mod points;
mod run;
mod sample;
mod shadow;
mod simulate;

pub use arithmetic::{Arithmetic, Field, FieldPair, Integer, MODULUS};
pub use count::{Counters, SiteCounters};
pub use hazard::{Hazard, HazardKind};
pub use lower::Mode;
pub use machine::Watch;
pub use run::LaunchShape;
pub use sample::Blocks;
pub use simulate::{Arguments, Claim, Domain, Options, Report, Tensor, simulate};
