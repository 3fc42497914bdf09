//! Sums that matrix units add up apart from what is there already.
//!
//! A product of f32 numbers on matrix units is made of products of their tf32 parts ([`matrix::MMA_M16N8K8_F32`]). Matrix units cut
//! sums off towards zero, so a sum that they add to again and again shrinks, however long it is. They begin at zero in every
//! loop over terms, and threads add what comes of it to the sum, rounding to nearest:
//!
//! ```text
//! {
//!     float acc_sum[4][4] = {}, acc_rest[4][4] = {};
//!     for (int ks = 0; ks < 4; ++ks) ... mma_m16n8k8_f32<false>(acc_sum[mi], acc_rest[mi], a[mi], b);
//!     if (__any_sync(~0u, zero_if_finite(acc_rest) != 0.0f)) {
//!         ... the same with mma_m16n8k8_f32<true> ...
//!     } else {
//!         add_parts(acc, acc_sum, acc_rest);
//!     }
//! }
//! ```
//!
//! Numbers whose leading part would be infinite need two instructions more, each of them, to be split as they should. Nearly nobody
//! has such numbers, so it is tried without, which makes `rest` infinite or no number where there are some, in every element that
//! they have to do with: then it is done again. That takes a loop that may be repeated: nothing that it changes outlives it. And it
//! has to pay: an element of a sum costs an instruction to look at, and both loops together may take more registers.
//!
//! That loop is the innermost one around the instruction that goes over terms: the sum is the same in all of its iterations. It has
//! at most [`LONGEST`] of them, and nothing else in it touches the sum, which is behind until it ends; where there is no such
//! loop, each instruction begins at zero. Where factors for several iterations are read at once, it is the loop in which that is
//! done, if both have no more iterations together.

use super::body::Body;
use super::spelling::matrix;
use crate::diag::Diagnosis;
use crate::instr::{self, Behaviour, Record};
use crate::ir::{Buffer, For, Mode, Operand, Space, Stmt, Window, walk};
use crate::sym::Sym;
use crate::target::Capability;

/// The most instructions one after another whose sum matrix units add up: the bound of the error counts on it.
const LONGEST: i64 = 16;

/// How many times as many instructions it has to save to do without looking after infinities. Where it saved about twice as many or
/// less, kernels took between 1.16 times as long and 0.93 times (A B in complex64 of 30 and of 62 columns), where more than six times
/// as many, down to 0.89 (A^T B in f32 of 55; an H200, 2026-11-25, when all elements of sums were looked at).
const WORTH: i64 = 3;

/// A sum that is added up apart from its buffer: the names of what the leading parts and the others give.
pub(super) struct Apart {
    buffer: Sym,
    sum: String,
    rest: String,
}

/// Whether an instruction multiplies numbers that it splits into parts: all that need tf32 do.
pub(super) fn is_split(record: &Record) -> bool {
    matches!(record.behaviour, Behaviour::Multiply { .. }) && record.needs.contains(&Capability::MmaTf32)
}

impl Body<'_> {
    /// Writes a loop. Sums over its iterations that have to be added up apart are.
    pub(super) fn with_sums_apart(
        &mut self,
        l: &For,
        write: impl Fn(&mut Self, &For) -> Result<(), Diagnosis>,
    ) -> Result<(), Diagnosis> {
        let mut sums = Vec::new();
        if l.range.constant_trip_count().is_some_and(|trips| trips <= LONGEST) {
            Terms::over(l).sums(&l.body, &mut sums);
            sums.retain(|sum| {
                !is_touched_otherwise(sum, &l.body) && self.apart.iter().all(|a| a.buffer != *sum)
            });
        }
        if sums.is_empty() {
            return write(self, l);
        }
        self.prelude.require(&matrix::ADD_PARTS);
        let body = self.nested(|s| {
            let others = s.apart.len();
            for buffer in &sums {
                let name = s.names.of(buffer).to_string();
                s.used.insert(buffer.clone());
                let [sum, rest] = ["sum", "rest"].map(|part| s.names.reserve(&format!("{name}_{part}")));
                s.apart.push(Apart { buffer: buffer.clone(), sum, rest });
            }
            let written = if s.any_number || !may_be_repeated(l, &sums) || !s.pays_to_repeat(l, &sums)? {
                s.sums_apart(others, true, |s| write(s, l))
            } else {
                s.sums_apart_once_more_if_not_finite(l, others, write)
            };
            s.apart.truncate(others);
            written
        })?;
        self.lines.block("", body);
        Ok(())
    }

    /// Whether the instructions that are saved, two for each number that is split in each iteration, are more than [`WORTH`] times the
    /// elements of sums, of which half have to be looked at.
    fn pays_to_repeat(&self, l: &For, sums: &[Sym]) -> Result<bool, Diagnosis> {
        let elements = |buffer: &Buffer| -> i64 {
            // Of one warp.
            let own = buffer.dims.iter().filter(|dim| dim.pitch.is_none());
            own.map(|dim| dim.extent.as_constant().unwrap_or(0)).product()
        };
        let (mut split, mut looked_at) = (0, 0);
        for factor in factors(&l.body) {
            let buffer = self.unit.buffer(&factor)?;
            split += if buffer.split { 0 } else { elements(buffer) };
        }
        for sum in sums {
            looked_at += elements(self.unit.buffer(sum)?);
        }
        Ok(2 * split * l.range.constant_trip_count().unwrap_or(0) > WORTH * looked_at)
    }

    /// Writes the loop as if all numbers were finite, and behind it again, for the case that some are not.
    fn sums_apart_once_more_if_not_finite(
        &mut self,
        l: &For,
        others: usize,
        write: impl Fn(&mut Self, &For) -> Result<(), Diagnosis>,
    ) -> Result<(), Diagnosis> {
        self.prelude.require(&matrix::ZERO_IF_FINITE);
        self.declare_sums(others)?;
        write(self, l)?;
        // What is in registers has to stand in the text where it is; all else may be reached by a loop, which is shorter.
        let mode = if self.mentions_outer_registers_by(l) { l.mode } else { Mode::Serial };
        let again = For { mode, ..l.clone() };
        let was_rolled = !self.rolled.insert(l.var.clone());
        let slow = self.nested(|s| s.sums_apart(others, true, |s| write(s, &again)))?;
        if !was_rolled {
            self.rolled.remove(&l.var);
        }
        let rests: Vec<String> =
            self.apart[others..].iter().map(|a| format!("zero_if_finite({})", a.rest)).collect();
        self.lines.block(&format!("if (__any_sync(~0u, {} != 0.0f))", rests.join(" + ")), slow);
        let fast = self.nested(|s| {
            s.add_sums(others);
            Ok(())
        })?;
        self.lines.otherwise(fast);
        Ok(())
    }

    /// Writes the sums, a loop that adds to them, and what adds them to what was there.
    fn sums_apart(
        &mut self,
        others: usize,
        any_number: bool,
        write: impl FnOnce(&mut Self) -> Result<(), Diagnosis>,
    ) -> Result<(), Diagnosis> {
        self.declare_sums(others)?;
        let before = std::mem::replace(&mut self.any_number, any_number);
        let written = write(self);
        self.any_number = before;
        self.add_sums(others);
        written
    }

    fn declare_sums(&mut self, others: usize) -> Result<(), Diagnosis> {
        for at in others..self.apart.len() {
            let Apart { buffer, sum, rest } = &self.apart[at];
            let (buffer, parts) = (self.unit.buffer(buffer)?, [sum.clone(), rest.clone()]);
            for part in parts {
                let declaration = self.register_declaration_of(&part, buffer)?;
                self.line(format!("{declaration} = {{}};"));
            }
        }
        Ok(())
    }

    fn add_sums(&mut self, others: usize) {
        let added = |a: &Apart| format!("add_parts({}, {}, {});", self.names.of(&a.buffer), a.sum, a.rest);
        let lines: Vec<String> = self.apart[others..].iter().map(added).collect();
        lines.into_iter().for_each(|line| self.line(line));
    }

    /// Whether a statement in a loop mentions its variable together with registers that are declared outside it.
    fn mentions_outer_registers_by(&self, l: &For) -> bool {
        let inside = walk::binders(&l.body);
        let is_outer =
            |s: &Sym| !inside.contains(s) && self.unit.buffer(s).is_ok_and(|b| b.space == Space::Reg);
        let mut counted = vec![l.var.clone()];
        let mut picked = false;
        walk::for_each(&l.body, &mut |stmt| {
            let [mut counts, mut reads] = [false, false];
            walk::for_each_symbol_of(stmt, &mut |s| {
                counts |= counted.contains(s);
                reads |= is_outer(s);
            });
            match stmt {
                Stmt::Let(var, _) if counts => counted.push(var.clone()),
                _ => picked |= counts && reads,
            }
        });
        picked
    }

    /// Writes an instruction that adds products of split numbers to a sum.
    pub(super) fn multiply_apart(
        &mut self,
        record: &Record,
        d: &Window,
        a: &Window,
        b: &Window,
    ) -> Result<(), Diagnosis> {
        let (left, right) = (self.fragment(a)?, self.fragment(b)?);
        if let Some(apart) = self.apart.iter().rev().find(|apart| apart.buffer == d.buffer) {
            let (sum, rest) = (apart.sum.clone(), apart.rest.clone());
            let (sum, rest) = (self.fragment_of(&sum, d)?, self.fragment_of(&rest, d)?);
            self.line(format!("{}<{}>({sum}, {rest}, {left}, {right});", record.name, self.any_number));
            return Ok(());
        }
        self.prelude.require(&matrix::ADD_PARTS);
        let dtype = self.unit.buffer(&d.buffer)?.dtype;
        let c_type = self.c_type(dtype);
        let d = self.fragment(d)?;
        let body = self.nested(|s| {
            let [sum, rest] = ["sum", "rest"].map(|part| s.names.reserve(part));
            s.line(format!("{c_type} {sum}[4] = {{}}, {rest}[4] = {{}};"));
            s.line(format!("{}<true>({sum}, {rest}, {left}, {right});", record.name));
            s.line(format!("add_parts({d}, {sum}, {rest});"));
            Ok(())
        })?;
        self.lines.block("", body);
        Ok(())
    }
}

/// Whether statements declare a buffer, or do anything to it but add products of split numbers, each thread for itself.
fn is_touched_otherwise(buffer: &Sym, stmts: &[Stmt]) -> bool {
    let mut touched = false;
    walk::for_each(stmts, &mut |stmt| match stmt {
        Stmt::Alloc(declared) => touched |= declared.sym == *buffer,
        Stmt::Assign(a) => {
            touched |= a.target.buffer == *buffer;
            a.value.for_each_access(&mut |access| touched |= access.buffer == *buffer);
        }
        Stmt::Instruction(call) => {
            let adds = instr::by_name(&call.name).is_some_and(is_split);
            let others = call.operands.iter().skip(usize::from(adds));
            let is_it = |o: &Operand| matches!(o, Operand::Window(w) if w.buffer == *buffer);
            touched |= others.into_iter().any(is_it);
        }
        Stmt::For(l) if matches!(l.mode, Mode::Threads { .. }) => {
            walk::for_each_symbol(&l.body, &mut |sym| touched |= sym == buffer);
        }
        _ => {}
    });
    touched
}

/// The buffers of the factors of products of split numbers.
fn factors(stmts: &[Stmt]) -> Vec<Sym> {
    let mut found = Vec::new();
    walk::for_each(stmts, &mut |stmt| {
        if let Stmt::Instruction(call) = stmt
            && instr::by_name(&call.name).is_some_and(is_split)
        {
            for operand in call.operands.iter().skip(1) {
                if let Operand::Window(w) = operand
                    && !found.contains(&w.buffer)
                {
                    found.push(w.buffer.clone());
                }
            }
        }
    });
    found
}

/// Whether nothing outlives a loop that it changes, but for sums that are zero when it begins.
fn may_be_repeated(l: &For, sums: &[Sym]) -> bool {
    let inside = walk::binders(&l.body);
    let is_plain =
        |l: &For| l.counting.is_none() && matches!(l.mode, Mode::Serial | Mode::Unroll | Mode::Vector);
    let mut repeats = is_plain(l);
    walk::for_each(&l.body, &mut |stmt| {
        repeats &= match stmt {
            Stmt::For(l) => is_plain(l),
            Stmt::Own(_) | Stmt::If(_) | Stmt::Let(..) => true,
            Stmt::Alloc(buffer) => buffer.space == Space::Reg,
            Stmt::Assign(a) => inside.contains(&a.target.buffer),
            Stmt::Instruction(call) => {
                let record = instr::by_name(&call.name);
                let is_local = record.is_some_and(|r| {
                    matches!(r.behaviour, Behaviour::Multiply { .. } | Behaviour::LoadMatrix { .. })
                });
                let changed = match call.operands.first() {
                    Some(Operand::Window(w)) => inside.contains(&w.buffer) || sums.contains(&w.buffer),
                    _ => false,
                };
                is_local && changed
            }
            _ => false,
        }
    });
    repeats
}

/// The walk through the body of a loop over terms.
struct Terms {
    /// The loops from that one on, outermost first, with their variables and iterations.
    loops: Vec<(Sym, i64)>,
    /// Buffers in registers, and how many loops are around what declares them.
    declared: Vec<(Sym, usize)>,
}

impl Terms {
    fn over(l: &For) -> Terms {
        let mut terms = Terms { loops: Vec::new(), declared: Vec::new() };
        terms.enter(l);
        terms
    }

    fn enter(&mut self, l: &For) {
        self.loops.push((l.var.clone(), l.range.constant_trip_count().unwrap_or(i64::MAX)));
    }

    /// The buffers that instructions on split numbers add to in every iteration of the outermost loop, each in the same place, and in no
    /// other loop, unless what is multiplied is read outside that: it has to be read again where all is done again.
    fn sums(&mut self, stmts: &[Stmt], sums: &mut Vec<Sym>) {
        for stmt in stmts {
            match stmt {
                Stmt::Instruction(call) if instr::by_name(&call.name).is_some_and(is_split) => {
                    let Some(Operand::Window(d)) = call.operands.first() else { continue };
                    if self.is_sum(d, &call.operands[1..]) && !sums.contains(&d.buffer) {
                        sums.push(d.buffer.clone());
                    }
                }
                Stmt::Alloc(buffer) => self.declared.push((buffer.sym.clone(), self.loops.len())),
                // What is a sum of all threads here is one for each of them in there.
                Stmt::For(l) if matches!(l.mode, Mode::Threads { .. }) => {}
                Stmt::For(l) => {
                    self.enter(l);
                    self.sums(&l.body, sums);
                    self.loops.pop();
                }
                _ => walk::bodies(stmt).for_each(|body| self.sums(body, sums)),
            }
        }
    }

    fn is_sum(&self, d: &Window, factors: &[Operand]) -> bool {
        let over_terms = |(var, _): &&(Sym, i64)| !d.start().iter().any(|index| index.mentions(var));
        if !over_terms(&&self.loops[0]) {
            return false;
        }
        let Some(inner) = self.loops.iter().skip(1).position(|l| over_terms(&l)) else { return true };
        let together = self.loops.iter().filter(over_terms).try_fold(1i64, |all, (_, n)| all.checked_mul(*n));
        let is_read_outside = |o: &Operand| match o {
            Operand::Window(w) => self.declared.iter().any(|(sym, at)| *sym == w.buffer && *at <= inner + 1),
            Operand::Scalar(_) => false,
        };
        together.is_some_and(|n| n <= LONGEST) && factors.iter().any(is_read_outside)
    }
}
