//! Moves to shared memory what several threads touch.
//!
//! *Takes* any program. *Gives* the same with every register buffer that is not spread over threads, and that more
//! than one thread touches, in shared memory: a register has one owner (rule 13), and until a schedule attaches the
//! buffer inside the thread loops, this is what the program means. *Stands* before statements are given to threads,
//! because one thread alone may not fill the registers of others.
//!
//! ```
//! use warpwright_core::ir::{parse, print};
//! use warpwright_core::passes::share::share;
//!
//! let before = "
//! program p(x: in f32[8], y: out f32[32, 8])
//! {
//!   for b in block.x(1) {
//!     alloc r: f32[8] reg
//!     for i in 0..8 { r[i] = x[i] }
//!     for t in threads(32@1) {
//!       for i in 0..8 { y[t, i] = r[i] }
//!     }
//!   }
//! }";
//! let after = before.replace("f32[8] reg", "f32[8] shared");
//! let (before, after) = (parse::program(before)?, parse::program(&after)?);
//! assert_eq!(print::program(&share(before)?), print::program(&after));
//! # Ok::<(), warpwright_core::diag::Diagnosis>(())
//! ```

use super::uses;
use crate::diag::Diagnosis;
use crate::ir::{Buffer, On, Program, Space, Stmt, walk};
use crate::sym::Sym;

/// Moves to shared memory what several threads touch.
///
/// # Errors
/// Such registers inside a thread loop, where there is no shared memory of their own.
pub fn share(program: Program) -> Result<Program, Diagnosis> {
    let mut program = program;
    list(&mut program.body, None)?;
    Ok(program)
}

/// One list of statements, executed by ranges of as many threads; `None` is a whole block.
fn list(stmts: &mut [Stmt], threads: Option<i64>) -> Result<(), Diagnosis> {
    if threads == Some(1) {
        return Ok(());
    }
    for at in 0..stmts.len() {
        let (stmt, rest) = stmts[at..].split_first_mut().expect("not past the end");
        match stmt {
            Stmt::Alloc(buffer) if is_plain_register(buffer) && touched_by_several(rest, &buffer.sym) => {
                if threads.is_some() {
                    return Err(Diagnosis::new(format!(
                        "the registers `{}` are touched by several threads",
                        buffer.sym
                    ))
                    .because("they are allocated for a range of threads but not spread over it")
                    .instead("attach the buffer inside the thread loops, or give it a dimension for each"));
                }
                buffer.space = Space::Shared;
            }
            Stmt::For(l) => {
                let inside = l.threads().map_or(threads, |(_, pitch)| Some(pitch));
                list(&mut l.body, inside).map_err(|d| d.at(l.var.name()))?;
            }
            other => walk::bodies_mut(other).try_for_each(|body| list(body, threads))?,
        }
    }
    Ok(())
}

fn is_plain_register(buffer: &Buffer) -> bool {
    buffer.space == Space::Reg && !buffer.is_distributed() && buffer.role.is_none()
}

/// Whether statements touch a buffer inside a loop over several threads or in a role.
fn touched_by_several(stmts: &[Stmt], buffer: &Sym) -> bool {
    stmts.iter().any(|stmt| match stmt {
        Stmt::For(l) if l.threads().is_some_and(|(count, _)| count > 1) => touched(&l.body, buffer),
        Stmt::On(On { body, .. }) => touched(body, buffer),
        other => walk::bodies(other).any(|body| touched_by_several(body, buffer)),
    })
}

fn touched(stmts: &[Stmt], buffer: &Sym) -> bool {
    let mut found = false;
    uses::for_each(stmts, &mut |used| found |= used.buffer() == buffer);
    found
}
