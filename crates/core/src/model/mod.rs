//! How long a program takes on a GPU, and why, without running it.
//!
//! [`count`] walks a program as a few of its warps would, and counts what a profiler would count on all of them: requests,
//! sectors and wavefronts of memory, multiply-adds, barriers. [`traffic`] is which bytes of device memory that are, and [`rows`] what lies beside them. [`requests`] is
//! what one request of a warp takes; the simulator asks the same function. [`sites`] is what each access in the text asks for. [`path`] is what one warp waits for. [`time`] makes seconds of
//! all that, and says what limits them.

mod constants;
mod lanes;
mod operations;
mod registers;

pub mod count;
pub mod path;
pub mod requests;
pub mod rows;
pub mod sites;
pub mod time;
pub mod traffic;

use crate::diag::Diagnosis;
use crate::ir::{Launch, Stmt};
use crate::sym::Sym;

/// The launches of a host list that are made, given what sizes, strides and flags are: of conditions those of one branch. What has no
/// value is 0.
fn made<'a>(stmts: &'a [Stmt], value: &dyn Fn(&Sym) -> Option<i64>) -> Result<Vec<Launch<'a>>, Diagnosis> {
    let mut out = Vec::new();
    for stmt in stmts {
        if let Stmt::If(i) = stmt {
            let holds = i.cond.eval(&|s| Some(value(s).unwrap_or(0))).unwrap_or(false);
            out.extend(made(if holds { &i.then } else { &i.otherwise }, value)?);
        } else {
            out.extend(Launch::of(stmt)?);
        }
    }
    Ok(out)
}
