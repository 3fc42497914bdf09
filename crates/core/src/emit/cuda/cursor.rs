//! What travels with a loop: pointers to what it fetches ahead, and the slot of a ring of two.
//!
//! ```text
//! for (int k = 0; k < n; ++k) { fetch(&A[(long long)m*lda + 16*k + j]); use(s[k%2]); }
//! =>
//! const float* a = &A[(long long)m*lda + j];
//! int slot = 0;
//! for (int k = 0; k < n; ++k) { fetch(a); use(s[slot]); a += 16; slot = 1 - slot; }
//! ```
//!
//! A loop that multiplies from shared memory and registers issues little else, so each instruction that computes an
//! address costs a multiply-add, and the compiler was not seen to reduce these addresses to sums by itself. Only
//! fetches that run ahead get a pointer, asynchronous copies and loads that stay in registers past a barrier. On an
//! H200 this makes the best SGEMM of the ladder 2 % faster (4096 x 4096 x 4096, bench/results).
//!
//! Pointers travel with an unrolled loop too that starts copies to swizzled tiles before there is anything to multiply: what is
//! computed before the first copy, everybody waits for. Of a layer with 16 rows that was 250 instructions, and is 92 by pointers and places.

use std::collections::{HashMap, HashSet};

use super::body::Body;
use super::threads::Executing;
use crate::diag::Diagnosis;
use crate::index::{Atom, Index};
use crate::instr::{self, Completion};
use crate::ir::{Access, For, Mode, Operand, Range, Stmt, Value, walk};
use crate::layout::Layout;
use crate::sym::Sym;

/// A pointer that is at `first` in iteration 0 of a loop and moves on by `step` in each.
#[derive(Clone, Debug)]
pub(super) struct Cursor {
    name: String,
    first: Access,
    /// Rows and columns from one iteration to the next.
    step: [i64; 2],
    var: Sym,
    /// The unrolled loops inside, whose variables may count from the pointer.
    inner: HashSet<Sym>,
}

/// The slot of a ring of two: `var % 2`.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    var: Sym,
    name: String,
    used: bool,
}

/// What the writer knew before a loop, for [`Body::end_travel`].
pub(super) struct Travel {
    cursors: usize,
    slots: usize,
    /// Whether this is a loop of which places in shared memory are computed before it.
    has_places: bool,
}

impl Body<'_> {
    /// Declares what travels with a loop. A loop that counts from 0 by 1 and stands in no other may have some.
    pub(super) fn begin_travel(&mut self, l: &For, executing: &Executing) -> Result<Travel, Diagnosis> {
        let mut before = Travel { cursors: self.cursors.len(), slots: self.slots.len(), has_places: false };
        let from_zero = matches!(&l.range, Range::Span { lo, step, .. }
            if lo.as_constant() == Some(0) && step.as_constant() == Some(1));
        let stands_alone = from_zero && l.counting.is_none() && self.serial_loops.is_empty();
        match l.mode {
            Mode::Serial if stands_alone => {
                let name = self.names.reserve("slot");
                self.slots.push(Slot { var: l.var.clone(), name, used: false });
            }
            Mode::Unroll if stands_alone && self.begins_to_copy(l)? => {}
            _ => return Ok(before),
        }
        before.has_places = true;
        self.bound_in_loop = Some(Self::bound_within(l));
        let mut fetches = Fetches { inner: HashSet::new(), accesses: Vec::new() };
        self.fetches(&l.body, executing, &mut fetches)?;
        let hidden: HashSet<Sym> = walk::binders(&l.body).into_iter().collect();
        for access in &fetches.accesses {
            let Some((first, step)) = self.path(access, &l.var, &fetches.inner, &hidden)? else { continue };
            if self.cursors[before.cursors..].iter().any(|c| c.first == first && c.step == step) {
                continue;
            }
            let address = self.address(&first)?;
            let c_type = self.c_type(self.unit.buffer(&first.buffer)?.dtype);
            let name = self.names.reserve(&first.buffer.name().to_lowercase());
            self.line(format!("const {c_type}* {name} = {address};"));
            let (var, inner) = (l.var.clone(), fetches.inner.clone());
            self.cursors.push(Cursor { name, first, step, var, inner });
        }
        Ok(before)
    }

    /// Whether an unrolled loop that is in no other one copies to swizzled tiles.
    fn begins_to_copy(&self, l: &For) -> Result<bool, Diagnosis> {
        let mut tiles = Vec::new();
        walk::for_each(&l.body, &mut |stmt| {
            if let Stmt::Instruction(i) = stmt
                && instr::by_name(&i.name).is_some_and(|r| r.completion == Completion::CpAsync)
                && let Some(Operand::Window(to)) = i.operands.first()
            {
                tiles.push(to.buffer.clone());
            }
        });
        for tile in &tiles {
            let layout = self.unit.buffer(tile)?.layout.as_ref();
            if self.unrolled_loops.is_empty() && layout.is_some_and(Layout::is_swizzled) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The statements at the end of the body that move everything on.
    pub(super) fn advance(&mut self, before: &Travel) -> Result<(), Diagnosis> {
        for at in before.cursors..self.cursors.len() {
            let cursor = self.cursors[at].clone();
            let [rows, columns] = cursor.step;
            let mut steps = Vec::new();
            if let (true, Some(stride)) = (rows != 0, &self.unit.buffer(&cursor.first.buffer)?.row_stride) {
                let stride = self.variable(stride).text;
                steps.push(match rows {
                    1 => stride,
                    _ => format!("{}*{stride}", self.long_index(&rows.into()).text),
                });
            }
            if columns != 0 {
                steps.push(columns.to_string());
            }
            self.line(format!("{} += {};", cursor.name, steps.join(" + ")));
        }
        for at in before.slots..self.slots.len() {
            if let Slot { name, used: true, .. } = &self.slots[at] {
                let line = format!("{name} = 1 - {name};");
                self.line(line);
            }
        }
        Ok(())
    }

    /// Declares the slots and the places that the body has used, and forgets what travelled.
    pub(super) fn end_travel(&mut self, before: &Travel) -> Result<(), Diagnosis> {
        for slot in self.slots.split_off(before.slots) {
            if slot.used {
                self.line(format!("int {} = 0;", slot.name));
            }
        }
        self.cursors.truncate(before.cursors);
        if before.has_places {
            self.bound_in_loop = None;
            self.declare_places()?;
        }
        Ok(())
    }

    /// The text of `x % 2` where it is the slot of a ring, or the other one.
    pub(super) fn slot(&mut self, x: &Index) -> Option<(String, bool)> {
        let [(Atom::Var(var), 1)] = x.terms() else { return None };
        let slot = self.slots.iter_mut().find(|s| s.var == *var)?;
        slot.used = true;
        Some((slot.name.clone(), x.constant_term().rem_euclid(2) == 1))
    }

    /// An element counted from a pointer that is near it in every iteration.
    pub(super) fn element_by_cursor(&mut self, access: &Access, stride: Option<&Sym>) -> Option<String> {
        if self.cursors.is_empty() {
            return None;
        }
        let [row, column] = rows_and_columns(self.in_thread(&access.index))?;
        let near = |cursor: &Cursor| {
            let first = rows_and_columns(cursor.first.index.clone())?;
            let rest = |i: &Index, dim: usize| {
                let travelled = Index::var(&cursor.var).scaled(cursor.step[dim]);
                let rest = &(i - &first[dim]) - &travelled;
                let mut all_inner = true;
                rest.for_each_var(&mut |s| all_inner &= cursor.inner.contains(s));
                all_inner.then_some(rest)
            };
            Some((cursor.name.clone(), rest(&row, 0)?, rest(&column, 1)?))
        };
        let of_buffer = self.cursors.iter().filter(|c| c.first.buffer == access.buffer);
        let (name, row, column) = of_buffer.rev().find_map(near)?;
        Some(self.counted_from(&name, &row, &column, stride))
    }

    /// An index in terms of `threadIdx.x` and of loops that are not over threads.
    pub(super) fn in_thread(&self, index: &[Index]) -> Vec<Index> {
        let value = |s: &Sym| self.thread_values.get(s).cloned();
        index.iter().map(|i| self.ranges.simplify(&i.substitute(&value))).collect()
    }

    /// Where an access is in the first iteration and how it moves, if it moves by constant rows and columns.
    fn path(
        &self,
        access: &Access,
        var: &Sym,
        inner: &HashSet<Sym>,
        hidden: &HashSet<Sym>,
    ) -> Result<Option<Path>, Diagnosis> {
        let buffer = self.unit.buffer(&access.buffer)?;
        let known = match access.index.len() {
            1 => buffer.row_stride.is_none(),
            dims => dims == 2 && buffer.row_stride.is_some(),
        };
        if !buffer.is_global() || !known {
            return Ok(None);
        }
        let (mut first, mut step) = (Vec::new(), [0, 0]);
        let row = 2 - access.index.len();
        for (dim, index) in self.in_thread(&access.index).into_iter().enumerate().map(|(d, i)| (d + row, i)) {
            let mut start = Index::constant(index.constant_term());
            for (atom, c) in index.terms() {
                let term = Index::atom(atom.clone());
                let (mut travels, mut counts, mut unknown) = (false, false, false);
                term.for_each_var(&mut |s| {
                    travels |= s == var;
                    counts |= inner.contains(s);
                    unknown |= hidden.contains(s) && !inner.contains(s);
                });
                match (travels, counts) {
                    _ if unknown => return Ok(None),
                    (true, _) if term.as_var() == Some(var) => step[dim] += c,
                    (true, _) => return Ok(None),
                    (false, true) => {}
                    (false, false) => start = &start + &term.scaled(*c),
                }
            }
            first.push(start);
        }
        let moves = step != [0, 0];
        Ok(moves.then(|| (Access { buffer: access.buffer.clone(), index: first }, step)))
    }

    /// Finds what a body fetches ahead, and what thread variables and names stand for in it.
    fn fetches(
        &mut self,
        stmts: &[Stmt],
        executing: &Executing,
        found: &mut Fetches,
    ) -> Result<(), Diagnosis> {
        for stmt in stmts {
            match stmt {
                Stmt::For(l) if matches!(l.mode, Mode::Threads { .. }) => {
                    let split = self.split(l, executing)?;
                    self.thread_values.insert(l.var.clone(), split.place);
                    self.fetches(&l.body, &split.inside, found)?;
                }
                Stmt::For(l) if matches!(l.mode, Mode::Unroll | Mode::Vector) => {
                    found.inner.insert(l.var.clone());
                    self.fetches(&l.body, executing, found)?;
                }
                Stmt::If(i) => {
                    self.fetches(&i.then, executing, found)?;
                    self.fetches(&i.otherwise, executing, found)?;
                }
                Stmt::Let(var, value) => {
                    let value = value.substitute(&|s| self.thread_values.get(s).cloned());
                    self.thread_values.insert(var.clone(), value);
                }
                // A guarded load needs its address only where the guard holds.
                Stmt::Assign(a) if matches!(a.value, Value::Select(..)) => {}
                Stmt::Assign(a) => a.value.for_each_access(&mut |access| {
                    if self.ahead.contains(&access.buffer) {
                        found.accesses.push(access.clone());
                    }
                }),
                Stmt::Instruction(i) => {
                    let record = instr::by_name(&i.name);
                    if let (true, [_, Operand::Window(from), ..]) =
                        (record.is_some_and(|r| r.completion == Completion::CpAsync), &i.operands[..])
                    {
                        found.accesses.push(Self::start(from));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// The row and the column of an element; of one row of elements the row is 0.
fn rows_and_columns(index: Vec<Index>) -> Option<[Index; 2]> {
    match <[Index; 1]>::try_from(index) {
        Ok([column]) => Some([Index::default(), column]),
        Err(index) => index.try_into().ok(),
    }
}

/// Where an access is in the first iteration, and rows and columns from one iteration to the next.
type Path = (Access, [i64; 2]);

/// What a loop body fetches ahead.
struct Fetches {
    /// The variables of unrolled loops.
    inner: HashSet<Sym>,
    accesses: Vec<Access>,
}

/// What variables of threads, and names, stand for in terms of `threadIdx.x`.
pub(super) type ThreadValues = HashMap<Sym, Index>;
