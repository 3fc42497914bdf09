//! The pure heart of Warpwright: what a program is, how a schedule rewrites it, what makes it valid, and how it
//! becomes CUDA C. No I/O, no clock, no threads, no unsafe.
//!
//! Start with [`ir`]: the one representation everything else is about.
#![forbid(unsafe_code)]

pub mod diag;
pub mod dtype;
pub mod emit;
pub mod index;
pub mod instr;
pub mod ir;
pub mod latency;
pub mod layout;
pub mod model;
pub mod occupancy;
pub mod passes;
pub mod schedule;
pub mod sym;
pub mod target;
pub mod te;
