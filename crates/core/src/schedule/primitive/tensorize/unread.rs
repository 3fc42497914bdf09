//! Instructions whose results nobody reads are left out (`omit=unread`).
//!
//! Tiles that warps share out may stand over the end of a matrix: of 98 rows in tiles of 16, two of eight warps' tiles hold two
//! rows that count, or none. What is stored of them is stored under conditions; so an instruction on a tile of which no
//! element can pass these is of no use, and another warp may have its time.

use crate::diag::Diagnosis;
use crate::index::{Comparison, Cond, Index};
use crate::instr::{OperandAccess, Record};
use crate::ir::{Access, Body, If, Instruction, Operand, Program, Span, Stmt, Window};
use crate::schedule::facts::Facts;
use crate::schedule::rewrite::{Place, rewrite};
use crate::sym::Sym;

/// A place where elements of a buffer are read.
struct Read {
    index: Vec<Index>,
    /// The conditions around it.
    given: Vec<Cond>,
    facts: Facts,
}

/// The program in which these instructions, wherever they update one of the buffers, are executed only where something may be
/// read of what they update.
///
/// # Errors
/// Whatever walking the program says.
pub(super) fn omitted(program: &Program, record: &Record, buffers: &[Sym]) -> Result<Program, Diagnosis> {
    let mut body = program.body.to_vec();
    for buffer in buffers {
        let reads = reads(program, record, buffer)?;
        body = rewrite(&body, &Place::of(program), &mut |stmt, place| {
            let Stmt::Instruction(i) = stmt else { return Ok(None) };
            let Some(window) = updated(i, record).filter(|w| w.buffer == *buffer) else { return Ok(None) };
            let cond = place.facts().remaining(&needed(window, &reads, place));
            if cond == Cond::TRUE {
                return Ok(None);
            }
            let then = Body::from(vec![stmt.clone()]);
            Ok(Some(vec![Stmt::If(If { cond, then, otherwise: Body::default() })]))
        })?;
    }
    Ok(Program { body, ..program.clone() })
}

/// What an instruction of this kind updates.
pub(super) fn updated<'a>(instruction: &'a Instruction, record: &Record) -> Option<&'a Window> {
    if *instruction.name != *record.name {
        return None;
    }
    let operands = instruction.operands.iter().zip(record.operands);
    operands.filter(|(_, spec)| spec.access == OperandAccess::Update).find_map(|(operand, _)| match operand {
        Operand::Window(window) => Some(window),
        Operand::Scalar(_) => None,
    })
}

/// Every place where the buffer is read by other than these instructions, which read what they update.
fn reads(program: &Program, record: &Record, buffer: &Sym) -> Result<Vec<Read>, Diagnosis> {
    let mut reads = Vec::new();
    let mut note = |index: &[Index], place: &Place| {
        reads.push(Read { index: index.to_vec(), given: place.given(), facts: place.facts() });
    };
    rewrite(&program.body, &Place::of(program), &mut |stmt, place| {
        match stmt {
            Stmt::Assign(a) => {
                a.value.for_each_access(&mut |access: &Access| {
                    if access.buffer == *buffer {
                        note(&access.index, place);
                    }
                });
            }
            Stmt::Instruction(i) if updated(i, record).is_none_or(|w| w.buffer != *buffer) => {
                for operand in &i.operands {
                    // Whole windows: nothing is known of which of their elements count.
                    if let Operand::Window(w) = operand
                        && w.buffer == *buffer
                    {
                        note(&[], place);
                    }
                }
            }
            _ => {}
        }
        Ok(None)
    })?;
    Ok(reads)
}

/// What must hold where the window is updated if any of its elements is read: what all reads have in common.
fn needed(window: &Window, reads: &[Read], place: &Place) -> Cond {
    let outer = place.outer();
    let known = |s: &Sym| outer.iter().any(|l| l.var == *s);
    let mut common: Option<Vec<Cond>> = None;
    for read in reads {
        let here: Vec<Cond> = read.given.iter().flat_map(|c| in_terms(c, window, read, &known)).collect();
        common = Some(match common {
            None => here,
            Some(before) => before.into_iter().filter(|c| here.contains(c)).collect(),
        });
    }
    common.unwrap_or_default().into_iter().fold(Cond::TRUE, Cond::and)
}

/// The conjuncts of a condition at a read as far as they say something of the loops around the instruction: the elements of a window
/// are read where the loops there have the same values, and of all else what passes most easily is enough.
fn in_terms(cond: &Cond, window: &Window, read: &Read, known: &dyn Fn(&Sym) -> bool) -> Vec<Cond> {
    let same: Vec<(&Sym, Index)> = window
        .dims
        .iter()
        .zip(&read.index)
        .filter_map(|(span, at)| match span {
            Span::At(here) => Some((at.as_var()?, here.clone())),
            Span::Slice(..) | Span::All => None,
        })
        .collect();
    let mut found = Vec::new();
    for conjunct in cond.conjuncts() {
        let Cond::Compare(how @ (Comparison::Lt | Comparison::Le), a, b) = conjunct else { continue };
        // Of `a < b` what is greater than 0.
        let room = (b - a).offset(i64::from(*how == Comparison::Le));
        let (theirs, other) =
            room.parted(|atom| !atom.mentions_any(|s| same.iter().any(|(of_read, _)| *of_read == s)));
        let Some(most) = read.facts.ranges().of(&theirs).hi else { continue };
        let here =
            other.substitute(&|s| same.iter().find(|(of_read, _)| *of_read == s).map(|(_, i)| i.clone()));
        let mut all_known = true;
        here.for_each_var(&mut |s| all_known &= known(s));
        if all_known && !here.terms().is_empty() {
            let limit = here.constant_term() + most;
            found.push(Cond::lt(&Index::from(here.constant_term()) - &here, limit.into()));
        }
    }
    found
}
