//! What a multiprocessor offers, by compute capability.

mod table;

use std::fmt;

pub(super) use table::{CC52, CC70, CC75, CC80, CC86, CC89, CC90, CC100, CC120};

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
    /// Registers that a thread can name.
    pub registers_per_thread: u32,
    /// Registers are handed out to a warp in multiples of this many.
    pub register_allocation_unit: u32,
    /// Groups of warp slots that share a register file of their own.
    pub sub_partitions: u32,
    /// The sub-partitions over which a launch deals out a block's warps when it checks that the block's registers
    /// suffice. As many as there are, but on 6.0: what cannot run on its relatives of four must not run on its two.
    pub sub_partitions_of_check: u32,
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
    /// Named barriers that the blocks of a multiprocessor share, where they limit how many are resident.
    pub barriers_per_sm: Option<u32>,
    /// Blocks of a cluster that every device guarantees; 0 where there are no clusters.
    pub portable_cluster_blocks: u32,
    /// Where the row comes from.
    pub source: &'static str,
    /// The fields, by name, that are commonly stated or inferred but that we have checked against no document.
    pub not_verified: &'static [&'static str],
}

impl Limits {
    /// Threads of a warp, on every GPU.
    pub const WARP: u32 = 32;
    /// Threads of a block, on every GPU since compute capability 2.0.
    pub const THREADS_PER_BLOCK: u32 = 1024;
    /// Registers that one thread can name on GPUs that kernels are made for; two older ones have fewer.
    pub const REGISTERS_PER_THREAD: u32 = 255;
    /// Bytes of shared memory that a block gets without opting in.
    pub const SHARED_PER_BLOCK_DEFAULT: u32 = 48 * 1024;
    /// Named barriers that one block can use (`bar.sync 0` to `bar.sync 15`).
    pub const NAMED_BARRIERS_PER_BLOCK: u32 = 16;
    /// Largest extents of a grid in x, y and z.
    pub const GRID: [u32; 3] = [0x7fff_ffff, 65535, 65535];
    /// Largest extents of a block in x, y and z.
    pub const BLOCK: [u32; 3] = [1024, 1024, 64];

    /// The limits of a compute capability, if the table has it.
    pub fn of(compute: ComputeCapability) -> Option<&'static Limits> {
        Limits::all().iter().copied().find(|l| l.compute == compute)
    }

    /// Every compute capability of the table, ascending.
    pub fn all() -> &'static [&'static Limits] {
        table::TABLE
    }

    /// Threads that can be resident on a multiprocessor.
    pub fn threads_per_sm(&self) -> u32 {
        self.warps_per_sm * Limits::WARP
    }

    /// The registers that a warp is given when each of its threads uses so many.
    pub fn registers_of_warp(&self, registers: u32) -> u64 {
        let used = u64::from(registers) * u64::from(Limits::WARP);
        used.next_multiple_of(u64::from(self.register_allocation_unit))
    }

    /// The most registers that a thread can have while so many warps are resident: a sub-partition has registers of its
    /// own for the warps that are dealt to it.
    pub fn most_registers(&self, warps: i64) -> i64 {
        let (parts, unit) = (i64::from(self.sub_partitions), i64::from(self.register_allocation_unit));
        let warps_of_a_part = (warps.max(1) + parts - 1) / parts;
        let of_a_warp = i64::from(self.registers_per_sm) / parts / warps_of_a_part / unit * unit;
        (of_a_warp / i64::from(Limits::WARP)).min(self.registers_per_thread.into())
    }

    /// Whether the split of the on-chip memory between shared memory and first-level cache is a driver's hint that one
    /// block's need overrides in the smallest step that holds it (since 7.0), or else in the largest.
    pub fn carveout_grows_by_need(&self) -> bool {
        self.compute.major >= 7
    }
}

#[cfg(test)]
mod tests {
    use super::Limits;

    #[test]
    fn rows_ascend_and_are_consistent() {
        for pair in Limits::all().windows(2) {
            assert!(pair[0].compute < pair[1].compute);
        }
        for limits in Limits::all() {
            let name = limits.compute;
            assert!(limits.registers_per_block <= limits.registers_per_sm, "{name}");
            assert!(limits.threads_per_sm() >= Limits::THREADS_PER_BLOCK, "{name}");
            assert!(
                limits.shared_per_block_opt_in + limits.shared_reserved_per_block <= limits.shared_per_sm,
                "{name}: a block that asks for all it may must fit"
            );
            assert_eq!(limits.shared_carveouts_kib.last(), Some(&(limits.shared_per_sm / 1024)), "{name}");
            assert!(limits.shared_carveouts_kib.is_sorted(), "{name}");
            assert_eq!(limits.warps_per_sm % limits.sub_partitions, 0, "{name}");
            assert!(limits.source.len() > 8, "{name} states no source");
        }
    }

    #[test]
    fn the_table_reaches_from_fermi_to_blackwell() {
        let all: Vec<String> = Limits::all().iter().map(|l| l.compute.to_string()).collect();
        assert_eq!(
            all.join(" "),
            "2.0 2.1 3.0 3.2 3.5 3.7 5.0 5.2 5.3 6.0 6.1 6.2 7.0 7.2 7.5 8.0 8.6 8.7 8.8 8.9 9.0 10.0 10.1 \
             10.3 10.7 11.0 12.0 12.1"
        );
    }
}
