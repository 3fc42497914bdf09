//! How many blocks a multiprocessor holds at a time, by NVIDIA's rules (`cuda_occupancy.h`, see `core::target::limits`).

use warpwright_core::target::{Limits, Target};

/// Blocks of a kernel that are resident on one multiprocessor; 0 where not even one fits.
pub fn blocks_per_sm(target: &Target, threads: i64, registers: i64, shared_bytes: i64) -> i64 {
    let limits = target.limits;
    let up = |value: i64, unit: u32| (value + i64::from(unit) - 1) / i64::from(unit) * i64::from(unit);
    let warps = up(threads.max(1), Limits::WARP) / i64::from(Limits::WARP);
    if threads > i64::from(Limits::THREADS_PER_BLOCK) || registers > i64::from(Limits::REGISTERS_PER_THREAD) {
        return 0;
    }
    let by_warps = i64::from(limits.warps_per_sm) / warps;
    // Each sub-partition has its own registers, and warps are dealt out among them.
    let parts = i64::from(limits.sub_partitions);
    let of_a_warp = up(registers.max(1) * i64::from(Limits::WARP), Limits::REGISTER_ALLOCATION_UNIT);
    let warps_of_a_part = i64::from(limits.registers_per_sm) / parts / of_a_warp;
    let by_registers = warps_of_a_part * parts / warps;
    let reserved = i64::from(limits.shared_reserved_per_block);
    let shared = up(shared_bytes + reserved, limits.shared_allocation_unit);
    let by_shared = if shared == 0 { i64::MAX } else { i64::from(limits.shared_per_sm) / shared };
    if shared_bytes > i64::from(limits.shared_per_block_opt_in) {
        return 0;
    }
    by_warps.min(by_registers).min(by_shared).min(i64::from(limits.blocks_per_sm))
}

#[cfg(test)]
mod tests {
    use super::blocks_per_sm;
    use warpwright_core::target::Target;

    #[test]
    fn each_limit_can_be_the_one_that_counts() {
        let h200 = Target::by_name("h200").unwrap();
        // 64 warps, 65536 registers, 228 KiB less 1 KiB a block, 32 blocks.
        assert_eq!(blocks_per_sm(h200, 1024, 32, 0), 2);
        assert_eq!(blocks_per_sm(h200, 256, 32, 0), 8);
        assert_eq!(blocks_per_sm(h200, 256, 128, 0), 2);
        assert_eq!(blocks_per_sm(h200, 256, 200, 8192), 1, "NVIDIA's own formula gives one block too");
        assert_eq!(blocks_per_sm(h200, 128, 32, 100 << 10), 2);
        assert_eq!(blocks_per_sm(h200, 32, 16, 0), 32);
    }

    #[test]
    fn what_does_not_fit_at_all_has_no_block() {
        let h200 = Target::by_name("h200").unwrap();
        assert_eq!(blocks_per_sm(h200, 256, 256, 0), 0);
        assert_eq!(blocks_per_sm(h200, 1025, 16, 0), 0);
        assert_eq!(blocks_per_sm(h200, 128, 16, 228 << 10), 0);
    }
}
