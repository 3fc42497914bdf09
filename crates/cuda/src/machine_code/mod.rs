//! Machine code whose f32 multiply-adds stand in an order in which the register file keeps them waiting less.
//!
//! The register file of some GPUs (`Capability::TwoRegisterBanks`) has two banks, which give a warp one register each in a cycle. A multiply-add
//! reads three, so that one of them has to come from the operand cache, and what the compiler makes of tall and skinny products
//! waits for the banks nonetheless (bench/results/h200-2026-11-24-register-file.txt). Neither the text nor PTX decide
//! which multiply-add follows which, so this is done afterwards: neighbouring multiply-adds that do not use each other's
//! results change places and exchange their factors. Nothing else is touched: every multiply-add has the operands it had, and sums
//! add up in the order in which they did, so that all results are the same bit for bit.
//!
//! ```text
//!   instruction   the fields of 128 bits
//!   segment       which multiply-adds may change places, and within what limits
//!   registers     how long the register file keeps them waiting: a model of it, as measured
//!   order         the search for a better order
//! ```

mod instruction;
mod order;
mod registers;
mod segment;

use std::collections::HashSet;

use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection};

use self::instruction::{Flow, Instruction, ZERO};
use self::registers::RegisterFile;
use self::segment::{Constraints, segments, targets};

/// A number for how multiply-adds are ordered: raised with every change of what comes of it, so that nobody finds what an older
/// version has compiled.
pub const VERSION: u32 = 2;

/// Bytes of an instruction.
const BYTES: usize = 16;

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reordered {
    /// Functions that were looked at, those whose jumps are not known left out.
    pub functions: usize,
    /// Multiply-adds of f32 in them.
    pub multiply_adds: usize,
    /// Cycles in which the register file gives them their operands, each counted once: before and after.
    pub cycles: [u64; 2],
}

/// Reorders the multiply-adds of all functions in place. What is no machine code stays as it is, and so does a function with jumps
/// to places that are not known, or with matrix instructions.
pub fn reorder(cubin: &mut [u8]) -> Reordered {
    let mut all = Reordered::default();
    for range in functions(cubin) {
        let bytes = &mut cubin[range];
        let mut code: Vec<Instruction> = bytes.chunks_exact(BYTES).map(read).collect();
        let Some(of_function) = function(&mut code) else { continue };
        for (place, instruction) in bytes.chunks_exact_mut(BYTES).zip(&code) {
            place.copy_from_slice(&instruction.0.to_le_bytes());
        }
        all.functions += 1;
        all.multiply_adds += of_function.multiply_adds;
        all.cycles = [0, 1].map(|at| all.cycles[at] + of_function.cycles[at]);
    }
    all
}

fn read(bytes: &[u8]) -> Instruction {
    Instruction(bytes.iter().rev().fold(0, |all, byte| all << 8 | u128::from(*byte)))
}

/// Where in machine code its functions lie.
fn functions(cubin: &[u8]) -> Vec<std::ops::Range<usize>> {
    let Ok(file) = ElfFile64::<LittleEndian>::parse(cubin) else { return Vec::new() };
    let is_code = |name: object::Result<&str>| name.is_ok_and(|name| name.starts_with(".text."));
    let sections = file.sections().filter(|section| is_code(section.name()));
    let ranges = sections.filter_map(|section| section.file_range());
    ranges.map(|(from, bytes)| from as usize..(from + bytes) as usize).collect()
}

/// Reorders one function.
fn function(code: &mut [Instruction]) -> Option<Reordered> {
    let targets = targets(code)?;
    let before = register_cycles(code, &targets);
    let mut changed = vec![false; code.len()];
    let mut ahead = segments(code, &targets).into_iter().peekable();
    let mut file = RegisterFile::IDLE;
    for at in 0..code.len() {
        if targets.contains(&at) {
            file = RegisterFile::IDLE;
        }
        if let Some(segment) = ahead.next_if(|segment| segment.start == at) {
            let constraints = Constraints::of(code, &segment, &targets);
            let order = order::better(&code[segment.clone()], &constraints, file);
            for (at, instruction) in segment.zip(order.into_iter().flatten()) {
                code[at] = instruction.at_the_place_of(code[at]);
                changed[at] = true;
            }
        }
        match code[at].is_multiply_add() {
            true => file.start(code[at].keeping([true; 2])),
            false => file.pass(code[at]),
        }
    }
    if changed.contains(&true) {
        hint(code, &changed, &targets);
    }
    let multiply_adds = code.iter().filter(|i| i.is_multiply_add()).count();
    Some(Reordered { functions: 1, multiply_adds, cycles: [before, register_cycles(code, &targets)] })
}

/// Has the operand cache keep what a later multiply-add reads at the same place, where nothing in between replaces or overwrites it.
/// What other instructions kept is not kept any longer where multiply-adds behind them stand elsewhere.
fn hint(code: &mut [Instruction], changed: &[bool], targets: &HashSet<usize>) {
    for at in 0..code.len() {
        let straight_on = (at + 1..code.len())
            .take_while(|next| !targets.contains(next) && code[next - 1].flow() == Flow::On);
        if !code[at].is_multiply_add() {
            if straight_on.clone().any(|next| changed[next]) {
                code[at] = code[at].keeping([false; 2]);
            }
            continue;
        }
        let kept = [0, 1].map(|place| {
            let register = code[at].sources()[place];
            if register == ZERO || code[at].destination() == register {
                return false;
            }
            for next in straight_on.clone().map(|next| code[next]) {
                if next.is_multiply_add() {
                    let read = next.sources()[place];
                    if read == register {
                        return true;
                    }
                    let replaced = read != ZERO && read % 2 == register % 2;
                    if replaced || next.destination() == register {
                        return false;
                    }
                } else if !next.leaves(register) {
                    return false;
                }
            }
            false
        });
        code[at] = code[at].keeping(kept);
    }
}

/// Cycles in which the register file gives all multiply-adds their operands.
fn register_cycles(code: &[Instruction], targets: &HashSet<usize>) -> u64 {
    let (mut file, mut all) = (RegisterFile::IDLE, 0);
    for (at, instruction) in code.iter().enumerate() {
        if targets.contains(&at) {
            file = RegisterFile::IDLE;
        }
        let before = file.cycles();
        if instruction.is_multiply_add() {
            file.start(*instruction);
            all += u64::from(file.cycles() - before);
        } else {
            file.pass(*instruction);
        }
    }
    all
}

#[cfg(test)]
mod tests;
