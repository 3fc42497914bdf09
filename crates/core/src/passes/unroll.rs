//! Writes out the loops that number registers.
//!
//! *Takes* a program whose statements belong to threads. *Gives* the same with every loop of constant extent whose
//! variable indexes a thread's registers marked `unroll`. *Stands* after the passes that make and bind loops: a
//! register has no address, so its index must be a constant once all loops are written out (rule 16).
//!
//! ```
//! use warpwright_core::ir::{parse, print};
//! use warpwright_core::passes::unroll::unroll;
//!
//! let before = "
//! program p(n: size, x: in f32[n, 4], y: out f32[n])
//! {
//!   for b in block.x(n) { for e in threads(1@1) {
//!     alloc r: f32[4] reg
//!     for i in 0..4 { r[i] = x[b, i] }
//!     for k in 0..n { y[k] = r[2] }
//!   } }
//! }";
//! let after = "
//! program p(n: size, x: in f32[n, 4], y: out f32[n])
//! {
//!   for b in block.x(n) { for e in threads(1@1) {
//!     alloc r: f32[4] reg
//!     for i in unroll 0..4 { r[i] = x[b, i] }
//!     for k in 0..n { y[k] = r[2] }
//!   } }
//! }";
//! let (before, after) = (parse::program(before)?, parse::program(after)?);
//! assert_eq!(print::program(&unroll(before)), print::program(&after));
//! # Ok::<(), warpwright_core::diag::Diagnosis>(())
//! ```

use std::collections::{HashMap, HashSet};

use super::uses::{self, Use};
use crate::index::Index;
use crate::ir::{Buffer, For, Mode, Program, Space, Span, Stmt, walk};
use crate::sym::Sym;

/// Marks the loops whose variables index registers.
pub fn unroll(program: Program) -> Program {
    let mut program = program;
    let numbering = numbering(&program.body, &program.buffers());
    let body = std::mem::take(&mut program.body);
    program.body = walk::rewrite(body, &mut |stmt| match stmt {
        Stmt::For(l)
            if l.mode == Mode::Serial
                && numbering.contains(&l.var)
                && l.counting.is_none()
                && l.range.constant_trip_count().is_some() =>
        {
            vec![Stmt::For(For { mode: Mode::Unroll, ..l })]
        }
        other => vec![other],
    });
    program
}

/// The variables that occur in indices of registers, in dimensions that are not spread over threads.
fn numbering(stmts: &[Stmt], buffers: &HashMap<Sym, Buffer>) -> HashSet<Sym> {
    let mut lets: HashMap<&Sym, &Index> = HashMap::new();
    walk::for_each(stmts, &mut |stmt| {
        if let Stmt::Let(var, value) = stmt {
            lets.insert(var, value);
        }
    });
    let mut found = HashSet::new();
    let mut add = |index: &Index| {
        let mut open: Vec<Sym> = Vec::new();
        index.for_each_var(&mut |s| open.push(s.clone()));
        while let Some(sym) = open.pop() {
            if let Some(value) = lets.get(&sym) {
                value.for_each_var(&mut |s| open.push(s.clone()));
            }
            found.insert(sym);
        }
    };
    uses::for_each(stmts, &mut |used| {
        let Some(buffer) = buffers.get(used.buffer()).filter(|b| b.space == Space::Reg) else { return };
        let indices: Vec<Option<&Index>> = match used {
            Use::Element(access) => access.index.iter().map(Some).collect(),
            Use::Window(window) => window
                .dims
                .iter()
                .map(|span| match span {
                    Span::At(i) | Span::Slice(i, _) => Some(i),
                    Span::All => None,
                })
                .collect(),
        };
        for (dim, index) in buffer.dims.iter().zip(indices) {
            if let (None, Some(index)) = (dim.pitch, index) {
                add(index);
            }
        }
    });
    found
}
