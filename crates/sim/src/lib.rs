//! Runs programs without a GPU.
#![forbid(unsafe_code)]

pub mod coroutine;
