//! Reads what results are added to before any of them is stored.
//!
//! *Takes* a program whose statements belong to threads. *Gives* the same, but where a thread adds what it owns of a fragment
//! to memory (`C = alpha*acc + beta*C`), it has read all of the old elements into registers before it stores the first new
//! one. Otherwise each load would wait for the store before it, since the compiler cannot know that they are of different
//! elements, and hardly any would be on their way at once: 4 000 000 x 40 x 40 in f64 took 1.59 ms with beta = 1 where
//! memory takes 0.89 (an H200, 2026-11-27). *Stands* last: each thread reads the very
//! elements that it stores, for which no barrier is wanted.
//!
//! ```
//! use warpwright_core::ir::{parse, print};
//! use warpwright_core::passes::read_ahead::read_ahead;
//!
//! let before = "
//! program p(y: inout f64[32, 8], beta: f64)
//! {
//!   for b in block.x(1) { for w in threads(1@32) {
//!     alloc acc: f64[2, 16, 8] reg frag D16x8
//!     for io in unroll 0..2 {
//!       for (i, j by 2) in own acc[io, :, :] {
//!         for v in unroll 0..2 { y[16*io + i, j + v] = acc[io, i, j + v] + beta * y[16*io + i, j + v] }
//!       }
//!     }
//!   } }
//! }";
//! let after = "
//! program p(y: inout f64[32, 8], beta: f64)
//! {
//!   for b in block.x(1) { for w in threads(1@32) {
//!     alloc acc: f64[2, 16, 8] reg frag D16x8
//!     alloc old: f64[2, 16, 8] reg frag D16x8
//!     for io in unroll 0..2 {
//!       for (i, j by 2) in own acc[io, :, :] {
//!         for v in unroll 0..2 { old[io, i, j + v] = y[16*io + i, j + v] }
//!       }
//!     }
//!     for io in unroll 0..2 {
//!       for (i, j by 2) in own acc[io, :, :] {
//!         for v in unroll 0..2 { y[16*io + i, j + v] = acc[io, i, j + v] + beta * old[io, i, j + v] }
//!       }
//!     }
//!   } }
//! }";
//! let (before, after) = (parse::program(before)?, parse::program(after)?);
//! assert_eq!(print::program(&read_ahead(before)), print::program(&after));
//! # Ok::<(), warpwright_core::diag::Diagnosis>(())
//! ```
//!
//! No more than [`MOST_BYTES`] of a thread are read at once: where the loops go over more, the outer ones stay around it. Where a
//! flag decides whether elements are added to, nothing changes: most who call such a kernel add to nothing, and it would need
//! more registers for it all the same.

use std::collections::{HashMap, HashSet};

use crate::index::{Cond, Facts, Index};
use crate::ir::validate::iterations::independent;
use crate::ir::{
    Access, Assign, AssignOp, Body, Buffer, Dim, For, Mode, Own, Program, Range, Space, Span, Stmt, Value,
    facts, walk,
};
use crate::sym::Sym;

/// Bytes that a thread has read ahead at most: 32 registers, about as many as fragments of factors leave behind.
const MOST_BYTES: i64 = 128;

/// Reads what results are added to before any of them is stored.
pub fn read_ahead(program: Program) -> Program {
    let buffers = program.buffers();
    let mut found: HashSet<Sym> = HashSet::new();
    facts::at_those(&program, &|stmt| Nest::of(stmt, &buffers).is_some(), &mut |stmt, facts| {
        let nest = Nest::of(stmt, &buffers).filter(|nest| nest.is_apart(facts));
        found.extend(nest.and_then(|nest| variable(nest.outermost)).cloned());
    });
    let mut program = program;
    if !found.is_empty() {
        program.body = with_nests_read_ahead(std::mem::take(&mut program.body), &found, &buffers);
    }
    program
}

/// The statements with what stands for each nest that begins with one of these variables. One inside another goes with it.
fn with_nests_read_ahead(
    stmts: Vec<Stmt>,
    found: &HashSet<Sym>,
    buffers: &HashMap<Sym, Buffer>,
) -> Vec<Stmt> {
    let mut out = Vec::with_capacity(stmts.len());
    for mut stmt in stmts {
        let begins = variable(&stmt).is_some_and(|var| found.contains(var));
        if let Some(nest) = begins.then(|| Nest::of(&stmt, buffers)).flatten() {
            out.extend(nest.read_ahead());
            continue;
        }
        for body in walk::bodies_mut(&mut stmt) {
            *body = with_nests_read_ahead(body.take(), found, buffers).into();
        }
        out.push(stmt);
    }
    out
}

/// Loops and guards around one element that is added to; each is all that the one around it does.
struct Nest<'a> {
    outermost: &'a Stmt,
    /// What adds to an element.
    sum: &'a Assign,
    /// What is read ahead.
    old: Buffer,
    /// Where an element's old value is kept.
    place: Access,
    buffers: &'a HashMap<Sym, Buffer>,
}

impl<'a> Nest<'a> {
    /// The nest that begins with a loop, if one does and it goes over few enough elements of a thread.
    fn of(outermost: &'a Stmt, buffers: &'a HashMap<Sym, Buffer>) -> Option<Nest<'a>> {
        variable(outermost)?;
        // The loops around the one over owned elements tell their fragments apart.
        let (mut fragments, mut run, mut own): (Vec<(&Sym, i64)>, i64, Option<&Own>) = (Vec::new(), 1, None);
        let mut stmt = outermost;
        while let Some(body) = inside(stmt) {
            match (stmt, own) {
                (Stmt::For(l), None) => fragments.push((&l.var, trips(l)?)),
                (Stmt::For(l), Some(_)) => run *= trips(l)?,
                (Stmt::Own(o), None) => own = Some(o),
                (Stmt::Own(_), Some(_)) => return None,
                _ => {}
            }
            stmt = only(body)?;
        }
        let sum = added(stmt)?;
        let own = own?;
        let (target, owned) = (buffers.get(&sum.target.buffer)?, buffers.get(&own.window.buffer)?);
        let [.., rows, columns] = owned.constant_extents()?[..] else { return None };
        let registers = owned.fragment?.registers(rows, columns)? / own.run * run;
        let elements = registers * fragments.iter().map(|(_, trips)| trips).product::<i64>();
        if elements == 1 || elements * target.dtype.bytes() > MOST_BYTES {
            return None;
        }
        let is_whole = matches!(own.window.dims[..], [.., Span::All, Span::All]);
        if owned.dtype != target.dtype || owned.split || !is_whole {
            return None;
        }
        let mut of_owned = Vec::new();
        sum.value.for_each_access(&mut |a| of_owned.extend((a.buffer == owned.sym).then_some(a)));
        let [part] = of_owned[..] else { return None };
        let [.., row, column] = &part.index[..] else { return None };
        let extents = fragments.iter().map(|(_, trips)| *trips).chain([rows, columns]);
        let at = fragments.iter().map(|(var, _)| Index::var(var)).chain([row.clone(), column.clone()]);
        let dims = extents.map(Dim::new).collect();
        let old = Buffer {
            fragment: owned.fragment,
            role: owned.role.clone(),
            ..Buffer::new(Sym::new("old"), target.dtype, dims, Space::Reg)
        };
        let place = Access::new(&old.sym, at.collect());
        Some(Nest { outermost, sum, old, place, buffers })
    }

    /// Whether no two elements are the same one, in memory or of what is read ahead, so that all may be read before one is stored.
    fn is_apart(&self, facts: &Facts) -> bool {
        let mut buffers = self.buffers.clone();
        buffers.insert(self.old.sym.clone(), self.old.clone());
        let apart = |nest: &Stmt, buffer: &Sym| {
            let (mut stmt, mut facts) = (counted(nest, &buffers), facts.clone());
            loop {
                match &stmt {
                    Stmt::For(l) if independent(l, buffer, &facts, &buffers) != Some(true) => return false,
                    Stmt::For(l) => facts::enter_loop(&mut facts, l),
                    Stmt::If(i) => facts.assume(&i.cond),
                    _ => {}
                }
                match inside(&stmt).and_then(|body| body.first()).cloned() {
                    Some(next) => stmt = next,
                    None => return true,
                }
            }
        };
        let sum = with(self.outermost, &[Stmt::Assign(self.sum.clone())]);
        apart(&sum, &self.sum.target.buffer) && apart(&with(self.outermost, &[self.load()]), &self.old.sym)
    }

    /// What stands for the nest.
    fn read_ahead(&self) -> Vec<Stmt> {
        let kept =
            |a: &Access| Value::Load(if *a == self.sum.target { self.place.clone() } else { a.clone() });
        let sum = Assign { value: self.sum.value.map_accesses(&kept, &Cond::clone), ..self.sum.clone() };
        let mut ahead = vec![Stmt::Alloc(self.old.clone())];
        ahead.extend(walk::refresh(&[with(self.outermost, &[self.load()])]));
        ahead.push(with(self.outermost, &[Stmt::Assign(sum)]));
        ahead
    }

    /// Keeps an old element.
    fn load(&self) -> Stmt {
        let (target, value) = (self.place.clone(), Value::Load(self.sum.target.clone()));
        Stmt::Assign(Assign { target, op: AssignOp::Store, atomic: false, value })
    }
}

/// The first variable that a loop binds.
fn variable(stmt: &Stmt) -> Option<&Sym> {
    match stmt {
        Stmt::For(l) => Some(&l.var),
        Stmt::Own(o) => o.vars.first(),
        _ => None,
    }
}

/// What a loop or a guard of a nest is around.
fn inside(stmt: &Stmt) -> Option<&Body> {
    match stmt {
        Stmt::For(l) if matches!(l.mode, Mode::Serial | Mode::Unroll) && l.counting.is_none() => {
            Some(&l.body)
        }
        Stmt::Own(o) => Some(&o.body),
        Stmt::If(i) if i.otherwise.is_empty() => Some(&i.then),
        _ => None,
    }
}

/// The loops and guards of a nest around other statements.
fn with(stmt: &Stmt, innermost: &[Stmt]) -> Stmt {
    let deeper = inside(stmt).and_then(|body| body.first()).filter(|s| inside(s).is_some());
    let body = match deeper {
        Some(next) => vec![with(next, innermost)],
        None => innermost.to_vec(),
    };
    around(stmt, body)
}

/// A loop or a guard around other statements.
fn around(stmt: &Stmt, body: Vec<Stmt>) -> Stmt {
    let mut stmt = stmt.clone();
    if let Some(old) = walk::bodies_mut(&mut stmt).next() {
        *old = body.into();
    }
    stmt
}

/// A nest with loops that count in the place of one over owned elements: as if one thread had them all.
fn counted(stmt: &Stmt, buffers: &HashMap<Sym, Buffer>) -> Stmt {
    let Some(next) = inside(stmt).and_then(|body| body.first()) else { return stmt.clone() };
    let next = counted(next, buffers);
    let Stmt::Own(own) = stmt else { return around(stmt, vec![next]) };
    let Some(buffer) = buffers.get(&own.window.buffer) else { return stmt.clone() };
    own.steps(buffer).into_iter().rev().fold(next, |body, (var, extent, step)| {
        let range = Range::Span { lo: 0.into(), hi: extent, step: step.into() };
        Stmt::For(For {
            var: var.clone(),
            mode: Mode::Serial,
            range,
            counting: None,
            body: vec![body].into(),
        })
    })
}

/// The iterations of a loop that counts from 0.
fn trips(l: &For) -> Option<i64> {
    let Range::Span { lo, step, .. } = &l.range else { return None };
    let counts = lo.as_constant() == Some(0) && step.as_constant() == Some(1);
    counts.then(|| l.range.constant_trip_count()).flatten()
}

fn only(body: &Body) -> Option<&Stmt> {
    let [stmt] = &body[..] else { return None };
    Some(stmt)
}

/// A statement that stores an element of which it reads the old value.
fn added(stmt: &Stmt) -> Option<&Assign> {
    let Stmt::Assign(a) = stmt else { return None };
    let mut reads_it = false;
    a.value.for_each_access(&mut |access| reads_it |= *access == a.target);
    (a.op == AssignOp::Store && reads_it).then_some(a)
}
