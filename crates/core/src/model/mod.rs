//! How long a program takes on a GPU, and why, without running it.
//!
//! [`count`] walks a program as a few of its warps would, and counts what a profiler would count on all of them: requests,
//! sectors and wavefronts of memory, multiply-adds, barriers. [`requests`] is what one request of a warp takes; the simulator
//! asks the same function.

mod lanes;

pub mod count;
pub mod requests;
