//! The tests of the repository as a whole, in one binary.

mod cache;
mod cli;
mod conformance;
mod cuda_occupancy;
mod explain;
mod figures;
mod golden;
mod ladder;
mod laws;
mod model;
mod occupancy;
mod predict;
mod programs;
mod skinny;
mod tuner;
