//! Warpwright.

pub mod bench;
pub mod bind;
pub mod choose;
pub mod cli;
pub mod compile;
pub mod csv;
pub mod device;
pub mod file;
pub mod gpu;
pub mod inputs;
pub mod kernels;
pub mod matrix;
pub mod memory;
pub mod npy;
pub mod parallel;
pub mod problem;
pub mod program;
pub mod reference;
pub mod report;
pub mod roofline;
pub mod run;
pub mod simulator;
pub mod target_file;
pub mod tune;
pub mod verify;
