//! Blackwell, 2025. Its matrix units run at half rate when they accumulate in f32.

use crate::target::{Fact, Level, Levels, Pipe, Rate, Target, limits};

/// NVIDIA GeForce RTX 5090.
pub const GPU: Target = Target {
    name: "rtx5090",
    product: "NVIDIA GeForce RTX 5090",
    compute: limits::CC120.compute,
    limits: &limits::CC120,
    sm_count: Fact::not_verified(170),
    boost_mhz: Fact::not_verified(2407),
    sustained_mhz: None,
    memory_bytes: Fact::not_verified(32 << 30),
    dram_bytes_per_second: Fact::not_verified(1792e9),
    dram_read_bytes_per_second: None,
    dram_copy_bytes_per_second: None,
    l2_bytes: Fact::not_verified(96 << 20),
    levels: Levels {
        shared: Level::UNKNOWN.giving(Fact::derived(128.0, "32 banks of 4 bytes, each once in a cycle")),
        ..Levels::UNKNOWN
    },
    rates: &[
        Rate::new(
            Pipe::F32,
            Fact::derived(128, "peak of the datasheet / (multiprocessors x 2 x boost clock)"),
        ),
        Rate::new(Pipe::F64, Fact::not_verified(2)),
        Rate::new(Pipe::TensorF16, Fact::not_verified(256)),
        Rate::new(Pipe::TensorBf16, Fact::not_verified(256)),
        Rate::new(Pipe::TensorTf32, Fact::not_verified(128)),
    ],
    product_flops_per_second: &[],
};
