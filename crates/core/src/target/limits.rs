//! What a multiprocessor offers, by compute capability.

use std::fmt;

/// A generation of NVIDIA hardware, as the vendor numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ComputeCapability {
    /// The generation.
    pub major: u8,
    /// The variant within it.
    pub minor: u8,
}

impl ComputeCapability {
    /// The architecture that the compiler takes, such as `sm_90`.
    pub fn arch(self) -> String {
        format!("sm_{}{}", self.major, self.minor)
    }
}

impl fmt::Display for ComputeCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The limits that a compute capability sets on a block and on a multiprocessor.
///
/// Sources. Allocation units, sub-partitions, carve-outs and named barriers: `cuda_occupancy.h` as shipped in the
/// Python wheel `nvidia-cuda-runtime` 13.5.37. Warps, blocks, registers and shared memory from 7.0 on: NVIDIA's
/// CCCL, `libcudacxx/include/cuda/__device/arch_traits.h` (2026), which agrees with the header where both speak.
/// Warps, registers and shared memory of 5.2, which CCCL no longer has: not verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The compute capability that the row describes.
    pub compute: ComputeCapability,
    /// Warps that can be resident on a multiprocessor.
    pub warps_per_sm: u32,
    /// Blocks that can be resident on a multiprocessor.
    pub blocks_per_sm: u32,
    /// 32-bit registers of a multiprocessor.
    pub registers_per_sm: u32,
    /// 32-bit registers that one block may use.
    pub registers_per_block: u32,
    /// Groups of warp slots that share a register file of their own.
    pub sub_partitions: u32,
    /// Bytes of shared memory of a multiprocessor, with the largest carve-out.
    pub shared_per_sm: u32,
    /// Bytes of shared memory that one block may ask for, once it has opted in.
    pub shared_per_block_opt_in: u32,
    /// Shared memory is handed out in multiples of this many bytes.
    pub shared_allocation_unit: u32,
    /// Bytes of shared memory that the system keeps for itself in every block.
    pub shared_reserved_per_block: u32,
    /// The carve-outs a multiprocessor can be set to, in KiB, ascending.
    pub shared_carveouts_kib: &'static [u32],
    /// Blocks of a cluster that every device guarantees; 0 where there are no clusters.
    pub portable_cluster_blocks: u32,
}

impl Limits {
    /// Threads of a warp, on every GPU.
    pub const WARP: u32 = 32;
    /// Threads of a block, on every GPU since compute capability 2.0.
    pub const THREADS_PER_BLOCK: u32 = 1024;
    /// Registers that one thread can name.
    pub const REGISTERS_PER_THREAD: u32 = 255;
    /// Registers are handed out to a warp in multiples of this many.
    pub const REGISTER_ALLOCATION_UNIT: u32 = 256;
    /// Bytes of shared memory that a block gets without opting in.
    pub const SHARED_PER_BLOCK_DEFAULT: u32 = 48 * KIB;
    /// Named barriers that one block can use (`bar.sync 0` to `bar.sync 15`).
    pub const NAMED_BARRIERS_PER_BLOCK: u32 = 16;
    /// Largest extents of a grid in x, y and z.
    pub const GRID: [u32; 3] = [0x7fff_ffff, 65535, 65535];
    /// Largest extents of a block in x, y and z.
    pub const BLOCK: [u32; 3] = [1024, 1024, 64];

    /// The limits of a compute capability, if the table has it.
    pub fn of(compute: ComputeCapability) -> Option<&'static Limits> {
        TABLE.iter().copied().find(|l| l.compute == compute)
    }

    /// Threads that can be resident on a multiprocessor.
    pub fn threads_per_sm(&self) -> u32 {
        self.warps_per_sm * Limits::WARP
    }

    /// The most registers that a thread can have while so many warps are resident: a sub-partition has registers of its
    /// own for the warps that are dealt to it.
    pub fn most_registers(&self, warps: i64) -> i64 {
        let (parts, unit) = (i64::from(self.sub_partitions), i64::from(Limits::REGISTER_ALLOCATION_UNIT));
        let warps_of_a_part = (warps.max(1) + parts - 1) / parts;
        let of_a_warp = i64::from(self.registers_per_sm) / parts / warps_of_a_part / unit * unit;
        (of_a_warp / i64::from(Limits::WARP)).min(Limits::REGISTERS_PER_THREAD.into())
    }
}

const KIB: u32 = 1024;

const fn compute(major: u8, minor: u8) -> ComputeCapability {
    ComputeCapability { major, minor }
}

/// Compute capability 7.0: the common starting point of the rows below.
pub(super) const CC70: Limits = Limits {
    compute: compute(7, 0),
    warps_per_sm: 64,
    blocks_per_sm: 32,
    registers_per_sm: 65536,
    registers_per_block: 65536,
    sub_partitions: 4,
    shared_per_sm: 96 * KIB,
    shared_per_block_opt_in: 96 * KIB,
    shared_allocation_unit: 256,
    shared_reserved_per_block: 0,
    shared_carveouts_kib: &[0, 8, 16, 32, 64, 96],
    portable_cluster_blocks: 0,
};

pub(super) const CC52: Limits = Limits {
    compute: compute(5, 2),
    shared_per_sm: 96 * KIB,
    shared_per_block_opt_in: 48 * KIB,
    shared_carveouts_kib: &[96],
    ..CC70
};

pub(super) const CC75: Limits = Limits {
    compute: compute(7, 5),
    warps_per_sm: 32,
    blocks_per_sm: 16,
    shared_per_sm: 64 * KIB,
    shared_per_block_opt_in: 64 * KIB,
    shared_carveouts_kib: &[32, 64],
    ..CC70
};

pub(super) const CC80: Limits = Limits {
    compute: compute(8, 0),
    shared_per_sm: 164 * KIB,
    shared_per_block_opt_in: 163 * KIB,
    shared_allocation_unit: 128,
    shared_reserved_per_block: KIB,
    shared_carveouts_kib: &[0, 8, 16, 32, 64, 100, 132, 164],
    ..CC70
};

pub(super) const CC86: Limits = Limits {
    compute: compute(8, 6),
    warps_per_sm: 48,
    blocks_per_sm: 16,
    shared_per_sm: 100 * KIB,
    shared_per_block_opt_in: 99 * KIB,
    shared_carveouts_kib: &[0, 8, 16, 32, 64, 100],
    ..CC80
};

const CC87: Limits = Limits { compute: compute(8, 7), warps_per_sm: 48, blocks_per_sm: 16, ..CC80 };

pub(super) const CC89: Limits = Limits { compute: compute(8, 9), blocks_per_sm: 24, ..CC86 };

pub(super) const CC90: Limits = Limits {
    compute: compute(9, 0),
    shared_per_sm: 228 * KIB,
    shared_per_block_opt_in: 227 * KIB,
    shared_carveouts_kib: &[0, 8, 16, 32, 64, 100, 132, 164, 196, 228],
    portable_cluster_blocks: 8,
    ..CC80
};

pub(super) const CC100: Limits = Limits { compute: compute(10, 0), ..CC90 };

const CC103: Limits = Limits { compute: compute(10, 3), ..CC90 };

pub(super) const CC120: Limits =
    Limits { compute: compute(12, 0), blocks_per_sm: 24, portable_cluster_blocks: 8, ..CC86 };

const CC121: Limits = Limits { compute: compute(12, 1), ..CC120 };

/// Every compute capability in the tables, ascending.
const TABLE: &[&Limits] =
    &[&CC52, &CC70, &CC75, &CC80, &CC86, &CC87, &CC89, &CC90, &CC100, &CC103, &CC120, &CC121];

#[cfg(test)]
mod tests {
    use super::{Limits, TABLE};

    #[test]
    fn rows_ascend_and_are_consistent() {
        for pair in TABLE.windows(2) {
            assert!(pair[0].compute < pair[1].compute);
        }
        for limits in TABLE {
            let name = limits.compute;
            assert!(limits.registers_per_block <= limits.registers_per_sm, "{name}");
            assert!(limits.threads_per_sm() >= Limits::THREADS_PER_BLOCK, "{name}");
            assert!(
                limits.shared_per_block_opt_in + limits.shared_reserved_per_block <= limits.shared_per_sm,
                "{name}: a block that asks for all it may must fit"
            );
            assert_eq!(limits.shared_carveouts_kib.last(), Some(&(limits.shared_per_sm / 1024)), "{name}");
            assert_eq!(limits.warps_per_sm % limits.sub_partitions, 0, "{name}");
        }
    }
}
