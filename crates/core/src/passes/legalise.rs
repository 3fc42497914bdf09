//! Gives every element statement a thread.
//!
//! *Takes* any program that runs in order. *Gives* one in which every statement of the host list is a launch, a
//! condition or scratch memory, and every element statement stands inside loops down to single threads: what has not
//! been bound yet is executed by one thread, which is right and slow. *Stands* before barriers are placed, because
//! they are placed between what threads do.
//!
//! ```
//! use warpwright_core::ir::{parse, print};
//! use warpwright_core::passes::legalise::legalise;
//!
//! let before = "
//! program scale(n: size, x: in f32[n], y: out f32[n])
//! {
//!   for i in 0..n { y[i] = 2 * x[i] }
//! }";
//! let after = "
//! program scale(n: size, x: in f32[n], y: out f32[n])
//! {
//!   for b in block.x(1) {
//!     for e in threads(1@1) {
//!       for i in 0..n { y[i] = 2 * x[i] }
//!     }
//!   }
//! }";
//! let (before, after) = (parse::program(before)?, parse::program(after)?);
//! assert_eq!(print::program(&legalise(before)?), print::program(&after));
//! # Ok::<(), warpwright_core::diag::Diagnosis>(())
//! ```
//!
//! Registers that many threads own cannot be given to one: a nest that touches them elementwise before it is bound or
//! tensorized runs in order only, and is refused here.

use std::collections::{HashMap, HashSet};

use super::uses::{self, Use};
use crate::diag::Diagnosis;
use crate::index::Index;
use crate::instr::by_name;
use crate::ir::{Axis, Body, Buffer, For, Mode, On, Program, Range, Space, Span, Stmt, walk};
use crate::sym::Sym;

/// Gives every element statement a thread.
///
/// # Errors
/// Block loops inside other loops; registers or shared memory whose size is not a constant; statements on registers
/// of many threads that no thread loop stands around.
pub fn legalise(program: Program) -> Result<Program, Diagnosis> {
    let mut program = program;
    let buffers = program.buffers();
    let body = std::mem::take(&mut program.body);
    program.body = Host { buffers: &buffers }.list(body)?;
    Ok(program)
}

/// The host list: launches stay, everything else that computes becomes a launch of one block.
struct Host<'a> {
    buffers: &'a HashMap<Sym, Buffer>,
}

impl Host<'_> {
    fn list(&self, stmts: Vec<Stmt>) -> Result<Vec<Stmt>, Diagnosis> {
        let mut out = Vec::new();
        let mut run = Vec::new();
        for stmt in stmts {
            match stmt {
                Stmt::If(mut i) => {
                    self.one_block(&mut run, &mut out)?;
                    i.then = self.list(i.then.take())?.into();
                    i.otherwise = self.list(i.otherwise.take())?.into();
                    out.push(Stmt::If(i));
                }
                Stmt::For(l) if is_block(&l) => {
                    self.one_block(&mut run, &mut out)?;
                    out.push(Stmt::For(self.launch(l)?));
                }
                Stmt::Alloc(buffer) => {
                    self.one_block(&mut run, &mut out)?;
                    out.push(Stmt::Alloc(scratch(buffer)?));
                }
                other => run.push(other),
            }
        }
        self.one_block(&mut run, &mut out)?;
        Ok(out)
    }

    fn launch(&self, l: For) -> Result<For, Diagnosis> {
        let mut l = l;
        l.body = match &mut l.body[..] {
            [Stmt::For(inner)] if is_block(inner) => {
                let inner = std::mem::replace(inner, empty(inner));
                vec![Stmt::For(self.launch(inner)?)].into()
            }
            _ => self.block(std::mem::take(&mut l.body)).map_err(|d| d.at(l.var.name()))?.into(),
        };
        Ok(l)
    }

    /// The statements at block scope.
    fn block(&self, body: Vec<Stmt>) -> Result<Vec<Stmt>, Diagnosis> {
        let mut fault = None;
        walk::for_each(&body, &mut |stmt| match stmt {
            Stmt::For(l) if is_block(l) => {
                fault = Some(
                    Diagnosis::new(format!("the blocks of `{}` stand inside other statements", l.var))
                        .because("a launch is a nest of block loops with nothing between them")
                        .instead("reorder the block loops to the outside, one directly inside the other"),
                );
            }
            Stmt::Alloc(b) if b.space != Space::Global && b.constant_extents().is_none() => {
                fault = Some(
                    Diagnosis::new(format!("the size of `{}` is not a constant", b.sym))
                        .because("registers and shared memory are laid out when the kernel is compiled")
                        .instead("split the loops it is indexed by, or keep it in global memory"),
                );
            }
            _ => {}
        });
        match fault {
            Some(diagnosis) => Err(diagnosis),
            None => Threads { buffers: self.buffers, first: Index::default(), number: None }.list(body),
        }
    }

    /// Makes a launch of one block of what has been collected.
    fn one_block(&self, run: &mut Vec<Stmt>, out: &mut Vec<Stmt>) -> Result<(), Diagnosis> {
        if run.is_empty() {
            return Ok(());
        }
        let outside = |b: &Buffer| b.space == Space::Global || b.constant_extents().is_none();
        if let Some((buffer, l)) = of_each_thread(run, &outside) {
            return Err(Diagnosis::new(format!("every iteration of `{l}` has a `{buffer}` of its own"))
                .because(
                    "scratch memory in device memory, or of a size that is no constant, is allocated once",
                )
                .instead(format!("keep it in registers: set_scope({buffer}, reg)")));
        }
        let (body, hoisted) = hoist(std::mem::take(run), &outside);
        for buffer in hoisted {
            let mentioned = uses::symbols(&[Stmt::Alloc(buffer.clone())]);
            if let Some(var) = walk::binders(&body).into_iter().find(|s| mentioned.contains(s)) {
                return Err(Diagnosis::new(format!("the size of `{}` depends on `{var}`", buffer.sym))
                    .because("scratch memory is allocated before the launch")
                    .instead("split the loops it is indexed by"));
            }
            out.push(Stmt::Alloc(scratch(buffer)?));
        }
        let mode = Mode::Block { axis: Axis::X, ordered: false, min_blocks: None };
        let body = self.block(body)?;
        out.push(For::with_mode(&Sym::new("b"), mode, Range::upto(1), body));
        Ok(())
    }
}

fn is_block(l: &For) -> bool {
    matches!(l.mode, Mode::Block { .. })
}

fn empty(l: &For) -> For {
    For { body: Body::default(), ..l.clone() }
}

/// A buffer of the host list: scratch in device memory, whatever it is to become later.
fn scratch(buffer: Buffer) -> Result<Buffer, Diagnosis> {
    if buffer.layout.is_some() || buffer.is_distributed() {
        return Err(Diagnosis::new(format!("`{}` has a layout but belongs to no block", buffer.sym))
            .because("it is allocated outside all launches")
            .instead("attach it inside the block loops with compute_at"));
    }
    Ok(Buffer { space: Space::Global, role: None, split: false, ..buffer })
}

/// An allocation for which `wanted` holds inside a loop over several threads, and that loop.
fn of_each_thread(stmts: &[Stmt], wanted: &dyn Fn(&Buffer) -> bool) -> Option<(Sym, Sym)> {
    let mut found = None;
    walk::for_each(stmts, &mut |stmt| {
        if let Stmt::For(l) = stmt
            && l.threads().is_some_and(|(count, _)| count > 1)
        {
            walk::for_each(&l.body, &mut |inner| {
                if let Stmt::Alloc(buffer) = inner
                    && wanted(buffer)
                {
                    found.get_or_insert((buffer.sym.clone(), l.var.clone()));
                }
            });
        }
    });
    found
}

/// Takes the allocations for which `wanted` holds out of statements, at any depth.
fn hoist(stmts: Vec<Stmt>, wanted: &dyn Fn(&Buffer) -> bool) -> (Vec<Stmt>, Vec<Buffer>) {
    let mut taken = Vec::new();
    let rest = walk::rewrite(stmts, &mut |stmt| match stmt {
        Stmt::Alloc(buffer) if wanted(&buffer) => {
            taken.push(buffer);
            Vec::new()
        }
        other => vec![other],
    });
    (rest, taken)
}

/// A list of statements that a range of threads executes together.
struct Threads<'a> {
    buffers: &'a HashMap<Sym, Buffer>,
    /// The first thread of the range, counted from that of the block or role.
    first: Index,
    /// How many threads; `None` for the whole block or role.
    number: Option<i64>,
}

impl Threads<'_> {
    fn list(&self, stmts: Vec<Stmt>) -> Result<Vec<Stmt>, Diagnosis> {
        if self.number == Some(1) {
            return Ok(stmts);
        }
        let mut out = Vec::new();
        let mut run = Vec::new();
        let mut stmts = std::collections::VecDeque::from(stmts);
        while let Some(stmt) = stmts.pop_front() {
            if for_one_thread(&stmt) {
                run.push(stmt);
                continue;
            }
            self.one_thread(&mut run, &mut out, stmts.make_contiguous(), Some(&stmt))?;
            out.push(self.inside(stmt)?);
        }
        self.one_thread(&mut run, &mut out, &[], None)?;
        Ok(out)
    }

    /// The same for the lists inside a statement.
    fn inside(&self, stmt: Stmt) -> Result<Stmt, Diagnosis> {
        let at = |l: &For, d: Diagnosis| d.at(l.var.name());
        Ok(match stmt {
            Stmt::For(mut l) => {
                let threads = match l.threads() {
                    Some((_, pitch)) => {
                        let first = &self.first + &Index::var(&l.var).scaled(pitch);
                        Threads { first, number: Some(pitch), ..*self }
                    }
                    None => self.same(),
                };
                l.body = threads.list(std::mem::take(&mut l.body)).map_err(|d| at(&l, d))?.into();
                Stmt::For(l)
            }
            Stmt::Tasks(mut t) => {
                t.body = self.list(t.body.take())?.into();
                Stmt::Tasks(t)
            }
            Stmt::If(mut i) => {
                i.then = self.list(i.then.take())?.into();
                i.otherwise = self.list(i.otherwise.take())?.into();
                Stmt::If(i)
            }
            Stmt::On(On { role, body }) => {
                let threads = Threads { first: Index::default(), number: None, ..*self };
                Stmt::On(On { role, body: threads.list(body.into())?.into() })
            }
            other => other,
        })
    }

    fn same(&self) -> Threads<'_> {
        Threads { first: self.first.clone(), ..*self }
    }

    /// Gives what has been collected to the first thread. `rest` and `next` are what follows.
    fn one_thread(
        &self,
        run: &mut Vec<Stmt>,
        out: &mut Vec<Stmt>,
        rest: &[Stmt],
        next: Option<&Stmt>,
    ) -> Result<(), Diagnosis> {
        let mut later = uses::symbols(rest);
        later.extend(next.into_iter().flat_map(|s| uses::symbols(std::slice::from_ref(s))));
        let (body, shared) = hoist(std::mem::take(run), &|b| b.space == Space::Shared);
        out.extend(shared.into_iter().map(Stmt::Alloc));
        let mut inside = Vec::new();
        for stmt in body {
            match &stmt {
                Stmt::Let(..) => out.push(stmt),
                Stmt::Alloc(buffer) if later.contains(&buffer.sym) => out.push(stmt),
                _ => inside.push(stmt),
            }
        }
        if inside.iter().all(|s| matches!(s, Stmt::Alloc(_))) {
            out.extend(inside);
            return Ok(());
        }
        self.check_owner(&inside)?;
        out.push(For::with_mode(&Sym::new("e"), Mode::Threads { pitch: 1 }, Range::upto(1), inside));
        Ok(())
    }

    /// Registers that the statements touch and do not allocate themselves must be the first thread's.
    fn check_owner(&self, stmts: &[Stmt]) -> Result<(), Diagnosis> {
        let own: HashSet<Sym> = walk::binders(stmts).into_iter().collect();
        let mut fault = None;
        uses::for_each(stmts, &mut |used| {
            let Some(buffer) = self.buffers.get(used.buffer()) else { return };
            if buffer.space != Space::Reg || own.contains(&buffer.sym) {
                return;
            }
            let owner = match used {
                _ if buffer.fragment.is_some() => None,
                Use::Element(access) => Some(owner(buffer, &access.index)),
                Use::Window(window) => {
                    let distributed =
                        |(d, s): (&crate::ir::Dim, &Span)| d.pitch.is_none() || matches!(s, Span::At(_));
                    let whole = buffer.dims.iter().zip(&window.dims).all(distributed);
                    whole.then(|| owner(buffer, &window.start()))
                }
            };
            if owner.as_ref() != Some(&self.first) {
                fault = Some(buffer.sym.clone());
            }
        });
        match fault {
            None => Ok(()),
            Some(buffer) => Err(Diagnosis::new(format!("elements of `{buffer}` are touched one by one outside thread loops"))
                .because("they are registers of many threads, and no other thread can touch them")
                .instead("bind the loops that number its elements to threads, or tensorize the nest; it runs in order as it is")),
        }
    }
}

/// The thread that owns an element, by the distributed dimensions.
fn owner(buffer: &Buffer, index: &[Index]) -> Index {
    let parts = buffer.dims.iter().zip(index).filter_map(|(d, i)| Some(i.scaled(d.pitch?)));
    parts.fold(Index::default(), |sum, part| &sum + &part)
}

/// Whether a statement is made of nothing but what a single thread can execute.
fn for_one_thread(stmt: &Stmt) -> bool {
    let mut fits = true;
    walk::for_each(std::slice::from_ref(stmt), &mut |s| {
        fits &= match s {
            Stmt::For(l) => {
                matches!(l.mode, Mode::Serial | Mode::Unroll | Mode::Vector) && l.counting.is_none()
            }
            Stmt::Instruction(i) => by_name(&i.name).is_some_and(|r| r.threads == 1),
            Stmt::Alloc(buffer) => !buffer.is_distributed() && buffer.role.is_none(),
            Stmt::If(_) | Stmt::Let(..) | Stmt::Assign(_) => true,
            _ => false,
        };
    });
    fits
}
