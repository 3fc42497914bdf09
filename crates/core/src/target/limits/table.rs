//! The limits of each compute capability, as rows that say in what they differ from an older one.
//!
//! Three sources, which agree wherever two of them speak (but for what is said at a row):
//!
//! - [`HEADER`]: allocation units, sub-partitions, blocks, carve-outs and barriers from 3.0 on;
//! - [`CCCL`]: warps, registers and shared memory from 6.0 on;
//! - [`SHEET`]: everything of 2.0 to 5.3.
//!
//! What stands in none of them is named by `not_verified`.

use super::{ComputeCapability, Limits};

const HEADER: &str = "cuda_occupancy.h of the Python wheel nvidia-cuda-runtime 13.5.37";

const CCCL: &str = "cuda_occupancy.h of the Python wheel nvidia-cuda-runtime 13.5.37; NVIDIA CCCL, \
                    libcudacxx/include/cuda/__device/arch_traits.h, 2026";

const SHEET: &str = "NVIDIA's CUDA occupancy calculator (spreadsheet), as data in fabiodrg/cuda-calculator, \
                     js/calculator.coffee; from 3.0 on cuda_occupancy.h of nvidia-cuda-runtime 13.5.37";

const KIB: u32 = 1024;

const fn compute(major: u8, minor: u8) -> ComputeCapability {
    ComputeCapability { major, minor }
}

/// Fermi. A thread can name 63 registers, and warps are dealt out to two schedulers.
const CC20: Limits = Limits {
    compute: compute(2, 0),
    warps_per_sm: 48,
    blocks_per_sm: 8,
    registers_per_sm: 32768,
    registers_per_block: 32768,
    registers_per_thread: 63,
    register_allocation_unit: 64,
    sub_partitions: 2,
    sub_partitions_of_check: 2,
    shared_per_sm: 48 * KIB,
    shared_per_block_opt_in: 48 * KIB,
    shared_allocation_unit: 128,
    shared_reserved_per_block: 0,
    shared_carveouts_kib: &[16, 48],
    barriers_per_sm: None,
    portable_cluster_blocks: 0,
    source: SHEET,
    not_verified: &["shared_carveouts_kib"],
};

const CC21: Limits = Limits { compute: compute(2, 1), ..CC20 };

/// Kepler. NVIDIA's header lets a thread of 3.0 name 255 registers; the spreadsheet and the instruction set, 63.
const CC30: Limits = Limits {
    compute: compute(3, 0),
    warps_per_sm: 64,
    blocks_per_sm: 16,
    registers_per_sm: 65536,
    registers_per_block: 65536,
    register_allocation_unit: 256,
    sub_partitions: 4,
    sub_partitions_of_check: 4,
    shared_allocation_unit: 256,
    shared_carveouts_kib: &[16, 32, 48],
    not_verified: &[],
    ..CC20
};

/// Tegra K1. The spreadsheet gives a block 65536 registers; NVIDIA's guide, as commonly quoted, half of that.
const CC32: Limits = Limits {
    compute: compute(3, 2),
    registers_per_block: 32768,
    registers_per_thread: 255,
    not_verified: &["registers_per_block"],
    ..CC30
};

const CC35: Limits = Limits { compute: compute(3, 5), registers_per_thread: 255, ..CC30 };

/// Tesla K80: twice the registers and more shared memory, neither of which one block can have for itself.
const CC37: Limits = Limits {
    compute: compute(3, 7),
    registers_per_sm: 131072,
    shared_per_sm: 112 * KIB,
    shared_carveouts_kib: &[80, 96, 112],
    ..CC35
};

/// Maxwell: shared memory of its own, apart from the first-level cache.
const CC50: Limits = Limits {
    compute: compute(5, 0),
    blocks_per_sm: 32,
    shared_per_sm: 64 * KIB,
    shared_carveouts_kib: &[64],
    ..CC35
};

/// The spreadsheet gives a block 32768 registers, which is what it gets with loads cached in the first level
/// (partitioned global caching); without, a device of this kind reports 65536.
pub(in super::super) const CC52: Limits = Limits {
    compute: compute(5, 2),
    shared_per_sm: 96 * KIB,
    shared_carveouts_kib: &[96],
    not_verified: &["registers_per_block"],
    ..CC50
};

const CC53: Limits = Limits { compute: compute(5, 3), registers_per_block: 32768, ..CC50 };

/// Pascal for data centres.
const CC60: Limits = Limits { compute: compute(6, 0), sub_partitions: 2, source: CCCL, ..CC50 };

const CC61: Limits = Limits {
    compute: compute(6, 1),
    sub_partitions: 4,
    shared_per_sm: 96 * KIB,
    shared_carveouts_kib: &[96],
    ..CC60
};

const CC62: Limits = Limits { compute: compute(6, 2), sub_partitions: 4, registers_per_block: 32768, ..CC60 };

/// Volta: shared memory and first-level cache share one memory, and a block can opt in to more than 48 KiB.
pub(in super::super) const CC70: Limits = Limits {
    compute: compute(7, 0),
    shared_per_sm: 96 * KIB,
    shared_per_block_opt_in: 96 * KIB,
    shared_carveouts_kib: &[0, 8, 16, 32, 64, 96],
    ..CC61
};

/// Xavier.
const CC72: Limits = Limits {
    compute: compute(7, 2),
    source: HEADER,
    not_verified: &[
        "warps_per_sm",
        "registers_per_sm",
        "registers_per_block",
        "shared_per_sm",
        "shared_per_block_opt_in",
    ],
    ..CC70
};

/// Turing.
pub(in super::super) const CC75: Limits = Limits {
    compute: compute(7, 5),
    warps_per_sm: 32,
    blocks_per_sm: 16,
    shared_per_sm: 64 * KIB,
    shared_per_block_opt_in: 64 * KIB,
    shared_carveouts_kib: &[32, 64],
    ..CC70
};

/// Ampere for data centres. From here on the system keeps 1 KiB of every block's shared memory.
pub(in super::super) const CC80: Limits = Limits {
    compute: compute(8, 0),
    shared_per_sm: 164 * KIB,
    shared_per_block_opt_in: 163 * KIB,
    shared_allocation_unit: 128,
    shared_reserved_per_block: KIB,
    shared_carveouts_kib: &[0, 8, 16, 32, 64, 100, 132, 164],
    ..CC70
};

pub(in super::super) const CC86: Limits = Limits {
    compute: compute(8, 6),
    warps_per_sm: 48,
    blocks_per_sm: 16,
    shared_per_sm: 100 * KIB,
    shared_per_block_opt_in: 99 * KIB,
    shared_carveouts_kib: &[0, 8, 16, 32, 64, 100],
    ..CC80
};

/// Orin.
const CC87: Limits = Limits { compute: compute(8, 7), warps_per_sm: 48, blocks_per_sm: 16, ..CC80 };

const CC88: Limits = Limits { compute: compute(8, 8), ..CC86 };

/// Ada.
pub(in super::super) const CC89: Limits = Limits { compute: compute(8, 9), blocks_per_sm: 24, ..CC86 };

/// Hopper. From here on the named barriers of a multiprocessor limit how many blocks are resident.
pub(in super::super) const CC90: Limits = Limits {
    compute: compute(9, 0),
    shared_per_sm: 228 * KIB,
    shared_per_block_opt_in: 227 * KIB,
    shared_carveouts_kib: &[0, 8, 16, 32, 64, 100, 132, 164, 196, 228],
    barriers_per_sm: Some(64),
    portable_cluster_blocks: 8,
    ..CC80
};

/// Blackwell for data centres.
pub(in super::super) const CC100: Limits = Limits { compute: compute(10, 0), ..CC90 };

/// The number under which CUDA 12 knew 11.0.
const CC101: Limits = Limits { compute: compute(10, 1), ..CC110 };

const CC103: Limits = Limits { compute: compute(10, 3), barriers_per_sm: Some(32), ..CC100 };

/// Rubin, of which the header knows blocks, barriers and carve-outs; warps and registers are those of 10.0.
const CC107: Limits = Limits {
    compute: compute(10, 7),
    blocks_per_sm: 16,
    shared_per_sm: 328 * KIB,
    shared_per_block_opt_in: 327 * KIB,
    shared_carveouts_kib: &[0, 8, 16, 32, 64, 100, 132, 164, 196, 228, 328],
    barriers_per_sm: Some(16),
    source: HEADER,
    not_verified: &[
        "warps_per_sm",
        "registers_per_sm",
        "registers_per_block",
        "shared_per_block_opt_in",
        "shared_reserved_per_block",
        "portable_cluster_blocks",
    ],
    ..CC100
};

/// Thor.
const CC110: Limits = Limits {
    compute: compute(11, 0),
    warps_per_sm: 48,
    blocks_per_sm: 24,
    barriers_per_sm: Some(24),
    ..CC100
};

/// Blackwell for workstations and games. NVIDIA's tuning guide for Blackwell states 32 blocks and 128 KB of shared
/// memory (that with the first-level cache); header and CCCL, 24 and 100 KiB.
pub(in super::super) const CC120: Limits = Limits {
    compute: compute(12, 0),
    blocks_per_sm: 24,
    barriers_per_sm: Some(24),
    portable_cluster_blocks: 8,
    ..CC86
};

const CC121: Limits = Limits { compute: compute(12, 1), ..CC120 };

/// Every compute capability, ascending.
pub(super) const TABLE: &[&Limits] = &[
    &CC20, &CC21, &CC30, &CC32, &CC35, &CC37, &CC50, &CC52, &CC53, &CC60, &CC61, &CC62, &CC70, &CC72, &CC75,
    &CC80, &CC86, &CC87, &CC88, &CC89, &CC90, &CC100, &CC101, &CC103, &CC107, &CC110, &CC120, &CC121,
];
