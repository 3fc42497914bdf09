//! Machine code whose f32 multiply-adds stand in an order in which the register file keeps them waiting less.
//!
//! The register file of some GPUs (`Capability::TwoRegisterBanks`) has two banks, which give a warp one register each in a cycle. A multiply-add reads three,
//! and what the compiler makes of tall and skinny products takes 1.1 to 1.7 cycles for each
//! (bench/results/h200-2026-11-23-register-banks.txt). Neither the text nor PTX decide which multiply-add follows which, so this
//! is done afterwards: neighbouring multiply-adds that do not use each other's results change places, so that each finds in the operand
//! cache what the one before it has read. Nothing else is touched: every multiply-add has the operands it had, and sums
//! add up in the order in which they did, so that all results are the same bit for bit.
//!
//! ```text
//!   instruction   the fields of 128 bits
//!   segment       which multiply-adds may change places, and within what limits
//!   order         the search for a better order
//! ```

mod instruction;
mod order;
mod segment;

use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection};

use self::instruction::{Instruction, cycles};
use self::segment::{Constraints, segments, targets};

/// A number for how multiply-adds are ordered: raised with every change of what comes of it, so that nobody finds what an older
/// version has compiled.
pub const VERSION: u32 = 1;

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
    let before = register_cycles(code);
    let mut changed = Vec::new();
    for segment in segments(code, &targets) {
        let constraints = Constraints::of(code, &segment, &targets);
        let order = order::better(&code[segment.clone()], &constraints, last(code, segment.start));
        for (at, instruction) in segment.clone().zip(order.iter().flatten()) {
            code[at] = instruction.at_the_place_of(code[at]);
        }
        changed.extend(order.map(|_| segment));
    }
    for segment in changed {
        // What is kept where a segment begins and where it ends depends on what stands there now.
        keep(code, segment.start.wrapping_sub(1));
        keep(code, segment.end - 1);
    }
    let multiply_adds = code.iter().filter(|i| i.is_multiply_add()).count();
    Some(Reordered { functions: 1, multiply_adds, cycles: [before, register_cycles(code)] })
}

/// The multiply-add before a place, if one stands there.
fn last(code: &[Instruction], place: usize) -> Option<Instruction> {
    place.checked_sub(1).map(|at| code[at]).filter(|i| i.is_multiply_add())
}

/// Lets a multiply-add keep what the next one reads too. Anything else, and one that no multiply-add follows, keeps nothing.
fn keep(code: &mut [Instruction], at: usize) {
    let Some(instruction) = code.get(at).copied() else { return };
    let next = code.get(at + 1).filter(|next| next.is_multiply_add() && instruction.is_multiply_add());
    code[at] = match next {
        Some(next) => order::keeping_for(instruction, *next),
        None => instruction.keeping([false; 2]),
    };
}

/// Cycles in which the register file gives all multiply-adds their operands.
fn register_cycles(code: &[Instruction]) -> u64 {
    let one = |at: usize| u64::from(cycles(code[at], last(code, at)));
    (0..code.len()).filter(|at| code[*at].is_multiply_add()).map(one).sum()
}

#[cfg(test)]
mod tests;
