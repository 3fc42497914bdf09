//! Runs programs without a GPU.
