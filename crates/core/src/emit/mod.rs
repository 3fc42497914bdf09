//! Programs become text for a compiler.

pub mod cuda;
