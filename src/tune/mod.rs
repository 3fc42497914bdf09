//! Tuning: which choice of a family's parameters is fastest for a problem on a GPU, and remembering it.
//!
//! [`candidates`] solves the constraints of a family and keeps the choices that promise most, [`space`] is those in their order; [`rank`] says by a model how long each should
//! take ([`accuracy`]: how well it does that; [`prediction`]: what it says of one choice, as it is reported); [`search`] decides which to measure next, and [`measure`] measures them, each compiled ahead on all cores and
//! run in a process of its own ([`worker`]). [`session`] puts these together and writes everything that is tried into
//! the wisdom at once: [`record`] is one line of it, [`mod@file`] where the lines stand ([`summary`]: the best of them), [`wisdom`] what they say, and [`t4`]
//! the same for other tuners.
//!
//! Only `file` and `summary` touch files, `worker` processes, and `bench` a GPU.

pub mod accuracy;
pub mod alike;
pub mod bench;
pub mod candidates;
pub mod compilers;
pub mod file;
pub mod measure;
pub mod prediction;
pub mod rank;
pub mod record;
pub mod search;
pub mod session;
pub mod space;
pub mod summary;
pub mod t4;
pub mod why;
pub mod wisdom;
pub mod worker;

#[cfg(test)]
mod tests;
