//! Runs programs without a GPU.
#![forbid(unsafe_code)]

pub mod coroutine;
pub mod mutate;
