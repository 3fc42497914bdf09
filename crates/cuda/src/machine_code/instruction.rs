//! One instruction of machine code, as far as its order among others is concerned.
//!
//! From compute capability 7.0 on an instruction has 128 bits: its operation and guard in the lowest 16, registers in fields of eight,
//! and what the hardware does not find out by itself (how long to wait, and for what) in the highest 23 (Jia et al.,
//! "Dissecting the NVIDIA Volta GPU architecture via microbenchmarking", 2018, section 2). Fields were held against the
//! disassembler of CUDA 13.0.

/// The bits of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Instruction(pub(super) u128);

/// `FFMA d, a, b, c` of four registers.
const FFMA: u16 = 0x223;
/// An instruction that does nothing.
const NOP: u16 = 0x918;
/// A load from shared memory.
const LDS: u16 = 0x984;
/// The guard that is always true.
const ALWAYS: u8 = 7;
/// No scoreboard.
const NONE: u8 = 7;
/// The register that is always zero.
pub(super) const ZERO: u8 = 255;

/// Where an instruction may send a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// To the next instruction.
    On,
    /// To the next one, to one that lies this many instructions behind the next, or nowhere.
    Target(i64),
    /// Nowhere, or to where another instruction has said.
    Ends,
    /// Somewhere.
    Unknown,
}

impl Instruction {
    fn field(self, at: u32, bits: u32) -> u32 {
        (self.0 >> at) as u32 & ((1 << bits) - 1)
    }

    /// The operation with the form of its operands.
    pub(super) fn operation(self) -> u16 {
        self.field(0, 12) as u16
    }

    /// Whether it is an f32 multiply-add of registers that always runs and that nobody waits for by a scoreboard.
    pub(super) fn is_multiply_add(self) -> bool {
        let guard = self.field(12, 4) as u8;
        let [write, read] = [self.field(110, 3), self.field(113, 3)].map(|s| s as u8);
        self.operation() == FFMA && guard == ALWAYS && write == NONE && read == NONE
    }

    /// The register that it writes.
    pub(super) fn destination(self) -> u8 {
        self.field(16, 8) as u8
    }

    /// The registers that it reads, a multiply-add's factors first.
    pub(super) fn sources(self) -> [u8; 3] {
        [24, 32, 64].map(|at| self.field(at, 8) as u8)
    }

    /// Whether a multiply-add needs what an earlier one has written: it reads it, or writes the same register.
    pub(super) fn needs(self, earlier: Instruction) -> bool {
        let result = earlier.destination();
        self.sources().contains(&result) || self.destination() == result
    }

    /// Whether an instruction of any kind may touch a register. Of a load from shared memory it is known; any field of another may name
    /// the first of up to four, or be something else.
    pub(super) fn may_touch(self, register: u8) -> bool {
        let [a, b, c] = self.sources();
        if register == ZERO {
            return false;
        }
        if self.operation() == LDS {
            // The width stands as 4, 5 and 6.
            let registers = 1u16 << self.field(73, 3).saturating_sub(4);
            let loaded = u16::from(self.destination())..u16::from(self.destination()) + registers;
            return register == a || self.destination() != ZERO && loaded.contains(&u16::from(register));
        }
        [self.destination(), a, b, c].iter().any(|r| *r != ZERO && r / 4 == register / 4)
    }

    /// Whether the operand cache keeps a register while this instruction passes, which is no multiply-add: loads from shared memory
    /// and instructions that do nothing are known to leave what they do not touch.
    pub(super) fn leaves(self, register: u8) -> bool {
        self.operation() == NOP || self.operation() == LDS && !self.may_touch(register)
    }

    /// Whether somebody waits for what it writes by a scoreboard.
    pub(super) fn is_awaited(self) -> bool {
        self.field(110, 3) as u8 != NONE
    }

    /// Whether it waits for a scoreboard.
    pub(super) fn waits(self) -> bool {
        self.field(116, 6) != 0
    }

    /// Cycles before the next instruction of the warp may start.
    pub(super) fn stall(self) -> i64 {
        i64::from(self.field(105, 4))
    }

    /// The same instruction with the stall, the wait and the hint of another: those of a place among the instructions.
    pub(super) fn at_the_place_of(self, other: Instruction) -> Instruction {
        const CONTROL: u128 = ((1 << 17) - 1) << 105;
        Instruction(self.0 & !CONTROL | other.0 & CONTROL)
    }

    /// The same instruction, whose factors `[a, b]` are kept for the next one.
    pub(super) fn keeping(self, kept: [bool; 2]) -> Instruction {
        const KEPT: u128 = 0b1111 << 122;
        let bits = u128::from(kept[0]) | u128::from(kept[1]) << 1;
        Instruction(self.0 & !KEPT | bits << 122)
    }

    /// Which of the factors `[a, b]` are kept for the next instruction.
    pub(super) fn kept(self) -> [bool; 2] {
        [122, 123].map(|at| self.field(at, 1) == 1)
    }

    /// The multiply-add with its factors exchanged, where neither has a sign.
    pub(super) fn swapped(self) -> Option<Instruction> {
        let signs = self.field(62, 2) | self.field(72, 2);
        let [a, b] = [24, 32].map(|at| u128::from(self.field(at, 8) as u8));
        const FACTORS: u128 = 0xff << 24 | 0xff << 32;
        (signs == 0).then_some(Instruction(self.0 & !FACTORS | b << 24 | a << 32))
    }

    /// Whether it is one of the matrix instructions of a warp: HMMA, IMMA, BMMA or DMMA.
    pub(super) fn is_of_matrix_units(self) -> bool {
        matches!(self.operation() & 0x1ff, 0x03c | 0x037 | 0x03d | 0x03f)
    }

    /// Where it may send a warp.
    pub(super) fn flow(self) -> Flow {
        // Sixteen bytes an instruction; targets are counted in units of four.
        let signed = ((self.0 >> 34) as i64) << 16 >> 16;
        match self.operation() {
            // BRA and WARPSYNC.COLLECTIVE.
            0x947 | 0x348 => Flow::Target((signed << 8 | i64::from(self.field(16, 8))) / 4),
            // BSSY says where BSYNC goes.
            0x945 => Flow::Target(signed / 4),
            // BSYNC, BREAK, YIELD, WARPSYNC.ALL and EXIT.
            0x941 | 0x942 | 0x946 | 0x948 | 0x94d => Flow::Ends,
            other if (0x140..0x160).contains(&(other & 0x1ff)) => Flow::Unknown,
            _ => Flow::On,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Flow, Instruction};

    /// `FFMA R31, R18, R65.reuse, R31`, as CUDA 13.0 writes it.
    const FFMA: Instruction = Instruction(0x082fe200_0000001f_00000041_121f7223);

    #[test]
    fn fields_are_those_of_the_disassembler() {
        assert!(FFMA.is_multiply_add());
        assert_eq!((FFMA.destination(), FFMA.sources()), (31, [18, 65, 31]));
        assert_eq!((FFMA.kept(), FFMA.stall(), FFMA.waits()), ([false, true], 1, true));
        let branch = Instruction(0x000fec00_0383ffff_fffffffc_00847947);
        assert_eq!(branch.flow(), Flow::Target(-31));
        assert_eq!(Instruction(0x000fe200_03800000_000001d0_00007945).flow(), Flow::Target(29));
        assert_eq!(Instruction(0x94d).flow(), Flow::Ends);
        assert_eq!(Instruction(0x949).flow(), Flow::Unknown);
        assert!(!branch.is_multiply_add());
    }

    #[test]
    fn what_belongs_to_a_place_stays_there() {
        let other = Instruction(!0);
        let moved = FFMA.at_the_place_of(other);
        assert_eq!((moved.stall(), moved.waits(), moved.kept()), (15, true, FFMA.kept()));
        assert_eq!((moved.sources(), moved.destination()), (FFMA.sources(), FFMA.destination()));
        assert_eq!(moved.at_the_place_of(FFMA), FFMA);
    }

    #[test]
    fn of_a_load_it_is_known_what_it_touches() {
        // LDS.64 R6, [R16]
        let load = Instruction(0x001e2800_00000a00_00000000_10067984);
        assert_eq!((0..=255).filter(|r| load.may_touch(*r)).collect::<Vec<_>>(), [6, 7, 16]);
        assert!(load.is_awaited() && !FFMA.is_awaited());
        // LDS.128 R16, [R56]
        let load = Instruction(0x000fe800_00000c00_00000000_38107984);
        assert_eq!((0..=255).filter(|r| load.may_touch(*r)).collect::<Vec<_>>(), [16, 17, 18, 19, 56]);
    }

    #[test]
    fn factors_change_places_where_they_have_no_signs() {
        let swapped = FFMA.swapped().unwrap();
        assert_eq!(swapped.sources(), [65, 18, 31]);
        assert_eq!(swapped.swapped(), Some(FFMA));
        assert_eq!(Instruction(FFMA.0 | 1 << 63).swapped(), None);
    }
}
