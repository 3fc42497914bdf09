//! The tests of the repository as a whole, in one binary.

mod cli;
mod conformance;
mod laws;
mod programs;
