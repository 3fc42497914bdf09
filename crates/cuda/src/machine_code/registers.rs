//! The register file of a multiprocessor's part, as far as it makes multiply-adds wait.
//!
//! Two banks, of the registers with even and with odd numbers, give a warp one register each in a cycle. A multiply-add reads each of
//! its operands in some cycles after its start, and starts later where it could not. For each bank and for each place of a
//! factor the operand cache keeps one register (the hint is `.reuse` in machine code): it stays until that place reads another
//! register of that bank, and is found there only if it has come in time. Measured instruction by instruction:
//! bench/limits/register_file.py, whose results are in bench/results/h200-2026-11-24-register-file.txt, and so is how far
//! this model is off.

use super::instruction::{Instruction, ZERO};

/// In which cycles after its start a multiply-add may read each of its operands.
const WINDOWS: [std::ops::RangeInclusive<u32>; 3] = [0..=3, 1..=3, 2..=2];
/// By which cycle after its start a factor has to be in the operand cache that is taken from there.
const CACHED: [u32; 2] = [0, 1];

/// A register file while a warp goes through its code. Cycles are counted from the start of the last instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct RegisterFile {
    /// The cycles in which each bank is asked for a register, a bit each.
    asked: [u32; 2],
    /// What the operand cache keeps, by place and bank, and the cycle in which it is read.
    kept: [[(u8, u32); 2]; 2],
    /// When the last instruction has started.
    now: u32,
    /// Registers read from banks.
    reads: u32,
}

impl RegisterFile {
    /// One that has nothing to do and keeps nothing.
    pub(super) const IDLE: RegisterFile =
        RegisterFile { asked: [0; 2], kept: [[(ZERO, 0); 2]; 2], now: 0, reads: 0 };

    /// Starts a multiply-add as soon as it finds its operands in time. The factors are kept that its hints name.
    pub(super) fn start(&mut self, multiply_add: Instruction) {
        self.wait();
        let read = loop {
            match self.read(multiply_add) {
                Some(read) => break read,
                None => self.wait(),
            }
        };
        let sources = multiply_add.sources();
        for (place, cycle) in read.into_iter().enumerate() {
            let register = sources[place];
            if register == ZERO {
                continue;
            }
            let bank = usize::from(register % 2);
            if let Some(cycle) = cycle {
                self.asked[bank] |= 1 << cycle;
                self.reads += 1;
            }
            if let Some(kept) = self.kept.get_mut(place) {
                let since = if kept[bank].0 == register { kept[bank].1 } else { cycle.unwrap_or(0) };
                kept[bank] = if multiply_add.kept()[place] { (register, since) } else { (ZERO, 0) };
            }
        }
        self.forget(|register| register == multiply_add.destination());
    }

    /// The cycle in which a multiply-add that starts now reads each operand that it has to read, if there is one for each.
    fn read(&self, multiply_add: Instruction) -> Option<[Option<u32>; 3]> {
        let (sources, mut asked, mut read) = (multiply_add.sources(), self.asked, [None; 3]);
        for place in 0..3 {
            let register = sources[place];
            let bank = usize::from(register % 2);
            if let Some((_, cycle)) =
                self.kept.get(place).map(|kept| kept[bank]).filter(|kept| kept.0 == register)
            {
                if register != ZERO && cycle > CACHED[place] {
                    return None;
                }
            } else if register != ZERO && !sources[..place].contains(&register) {
                let cycle = WINDOWS[place].clone().find(|cycle| asked[bank] >> cycle & 1 == 0)?;
                asked[bank] |= 1 << cycle;
                read[place] = Some(cycle);
            }
        }
        Some(read)
    }

    /// Lets a cycle pass.
    fn wait(&mut self) {
        self.now += 1;
        self.asked = self.asked.map(|asked| asked >> 1);
        for (_, cycle) in self.kept.iter_mut().flatten() {
            *cycle = cycle.saturating_sub(1);
        }
    }

    /// Passes any other instruction, which starts in a cycle of its own.
    pub(super) fn pass(&mut self, other: Instruction) {
        self.wait();
        self.forget(|register| !other.leaves(register));
    }

    /// Keeps some registers no longer.
    fn forget(&mut self, which: impl Fn(u8) -> bool) {
        for kept in self.kept.iter_mut().flatten().filter(|kept| kept.0 != ZERO && which(kept.0)) {
            *kept = (ZERO, 0);
        }
    }

    /// When the last instruction has started, in cycles.
    pub(super) fn cycles(&self) -> u32 {
        self.now
    }

    /// Cycles in which banks still have to give a register.
    pub(super) fn behind(&self) -> u32 {
        self.asked.iter().map(|asked| asked.count_ones()).sum()
    }

    /// Registers read from banks.
    pub(super) fn reads(&self) -> u32 {
        self.reads
    }

    /// The same register file as far as it matters for what comes.
    pub(super) fn without_past(self) -> RegisterFile {
        RegisterFile { now: 0, reads: 0, ..self }
    }
}
