//! Blackwell, 2024. Sources disagree about its L2 (65.5 MB and about 126 MB); the larger stands here, not verified.

use crate::target::{Fact, Level, Levels, Pipe, Rate, Target, limits};

/// NVIDIA B200.
pub const GPU: Target = Target {
    name: "b200",
    product: "NVIDIA B200",
    compute: limits::CC100.compute,
    limits: &limits::CC100,
    sm_count: Fact::published(148, "hmc-tech.com, data-centre GPU tables"),
    boost_mhz: Fact::published(1980, "hmc-tech.com, data-centre GPU tables"),
    sustained_mhz: None,
    memory_bytes: Fact::not_verified(180_000_000_000),
    dram_bytes_per_second: Fact::published(7700e9, "hmc-tech.com, data-centre GPU tables; others state 8000"),
    dram_read_bytes_per_second: None,
    dram_copy_bytes_per_second: None,
    l2_bytes: Fact::not_verified(126 << 20),
    levels: Levels {
        shared: Level::UNKNOWN.giving(Fact::derived(128.0, "32 banks of 4 bytes, each once in a cycle")),
        ..Levels::UNKNOWN
    },
    rates: &[
        Rate::new(
            Pipe::F32,
            Fact::derived(128, "peak of the datasheet / (multiprocessors x 2 x boost clock)"),
        ),
        Rate::new(
            Pipe::F64,
            Fact::derived(64, "peak of the datasheet / (multiprocessors x 2 x boost clock)"),
        ),
        Rate::new(
            Pipe::TensorF16,
            Fact::derived(4096, "datasheet peak / (148 x 2 x 1.86 GHz, the clock it is stated at)"),
        ),
        Rate::new(
            Pipe::TensorBf16,
            Fact::derived(4096, "datasheet peak / (148 x 2 x 1.86 GHz, the clock it is stated at)"),
        ),
        Rate::new(
            Pipe::TensorTf32,
            Fact::derived(2048, "datasheet peak / (148 x 2 x 1.86 GHz, the clock it is stated at)"),
        ),
    ],
    product_flops_per_second: &[],
};
