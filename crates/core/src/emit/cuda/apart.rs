//! Sums that matrix units add up apart from what is there already.
//!
//! A product of f32 numbers on matrix units is made of products of their tf32 parts ([`matrix::MMA_M16N8K8_F32`]). Matrix units cut
//! sums off towards zero, so a sum that they add to again and again shrinks, however long it is. They begin at zero in every
//! loop over terms, and threads add what comes of it to the sum, rounding to nearest:
//!
//! ```text
//! {
//!     float acc_sum[4][4] = {}, acc_rest[4][4] = {};
//!     for (int ks = 0; ks < 4; ++ks) ... mma_m16n8k8_f32(acc_sum[mi], acc_rest[mi], a[mi], b);
//!     add_parts(acc, acc_sum, acc_rest);
//! }
//! ```
//!
//! That loop is the innermost one around the instruction that goes over terms: the sum is the same in all of its iterations. It has
//! at most [`LONGEST`] of them, and nothing else in it touches the sum, which is behind until it ends; where there is no such
//! loop, each instruction begins at zero.

use super::body::Body;
use super::spelling::matrix;
use crate::diag::Diagnosis;
use crate::instr::{self, Behaviour, Record};
use crate::ir::{For, Mode, Operand, Stmt, Window, walk};
use crate::sym::Sym;
use crate::target::Capability;

/// The most instructions one after another whose sum matrix units add up: the bound of the error counts on it.
const LONGEST: i64 = 16;

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
        write: impl FnOnce(&mut Self) -> Result<(), Diagnosis>,
    ) -> Result<(), Diagnosis> {
        let mut sums = Vec::new();
        if l.range.constant_trip_count().is_some_and(|trips| trips <= LONGEST) {
            sums_over(&l.var, &l.body, &mut Vec::new(), &mut sums);
            sums.retain(|sum| !is_touched_otherwise(sum, &l.body));
        }
        if sums.is_empty() {
            return write(self);
        }
        self.prelude.require(&matrix::ADD_PARTS);
        let body = self.nested(|s| {
            let others = s.apart.len();
            let mut additions = Vec::new();
            for buffer in sums {
                let name = s.names.of(&buffer).to_string();
                s.used.insert(buffer.clone());
                let [sum, rest] = ["sum", "rest"].map(|part| s.names.reserve(&format!("{name}_{part}")));
                for part in [&sum, &rest] {
                    let declaration = s.register_declaration_of(part, s.unit.buffer(&buffer)?)?;
                    s.line(format!("{declaration} = {{}};"));
                }
                additions.push(format!("add_parts({name}, {sum}, {rest});"));
                s.apart.push(Apart { buffer, sum, rest });
            }
            let written = write(s);
            s.apart.truncate(others);
            additions.into_iter().for_each(|line| s.line(line));
            written
        })?;
        self.lines.block("", body);
        Ok(())
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
            self.line(format!("{}({sum}, {rest}, {left}, {right});", record.name));
            return Ok(());
        }
        self.prelude.require(&matrix::ADD_PARTS);
        let dtype = self.unit.buffer(&d.buffer)?.dtype;
        let c_type = self.c_type(dtype);
        let d = self.fragment(d)?;
        let body = self.nested(|s| {
            let [sum, rest] = ["sum", "rest"].map(|part| s.names.reserve(part));
            s.line(format!("{c_type} {sum}[4] = {{}}, {rest}[4] = {{}};"));
            s.line(format!("{}({sum}, {rest}, {left}, {right});", record.name));
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

/// The buffers that instructions on split numbers add to in every iteration of the loop over `var`, each in the same place, and in
/// no loop inside it: of those, `inside` are around the statements.
fn sums_over(var: &Sym, stmts: &[Stmt], inside: &mut Vec<Sym>, sums: &mut Vec<Sym>) {
    for stmt in stmts {
        match stmt {
            Stmt::Instruction(call) if instr::by_name(&call.name).is_some_and(is_split) => {
                let Some(Operand::Window(d)) = call.operands.first() else { continue };
                let mentions = |var: &Sym| d.start().iter().any(|index| index.mentions(var));
                if !mentions(var) && inside.iter().all(mentions) && !sums.contains(&d.buffer) {
                    sums.push(d.buffer.clone());
                }
            }
            // What is a sum of all threads here is one for each of them in there.
            Stmt::For(l) if matches!(l.mode, Mode::Threads { .. }) => {}
            Stmt::For(l) => {
                inside.push(l.var.clone());
                sums_over(var, &l.body, inside, sums);
                inside.pop();
            }
            _ => walk::bodies(stmt).for_each(|body| sums_over(var, body, inside, sums)),
        }
    }
}
