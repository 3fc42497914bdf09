//! Ada, 2023. A 72 W part: no kernel that keeps it busy holds the boost clock.

use crate::target::{Fact, Level, Levels, Pipe, Rate, Target, limits};

/// NVIDIA L4.
pub const GPU: Target = Target {
    name: "l4",
    product: "NVIDIA L4",
    compute: limits::CC89.compute,
    limits: &limits::CC89,
    sm_count: Fact::derived(58, "datasheet peak of 30.3 TFLOP/s / (128 lanes x 2 x boost clock)"),
    boost_mhz: Fact::not_verified(2040),
    sustained_mhz: None,
    memory_bytes: Fact::not_verified(24 << 30),
    dram_bytes_per_second: Fact::not_verified(300e9),
    dram_read_bytes_per_second: None,
    dram_copy_bytes_per_second: None,
    l2_bytes: Fact::not_verified(48 << 20),
    levels: Levels {
        shared: Level::UNKNOWN.giving(Fact::derived(128.0, "32 banks of 4 bytes, each once in a cycle")),
        l1: Level::UNKNOWN.giving(Fact::derived(
            64.0,
            "an L40, whose multiprocessors are the same: gpu-benches (te42kyfo), raw output",
        )),
        ..Levels::UNKNOWN
    },
    rates: &[
        Rate::new(
            Pipe::F32,
            Fact::derived(128, "peak of the datasheet / (multiprocessors x 2 x boost clock)"),
        ),
        Rate::new(Pipe::F64, Fact::derived(2, "peak of the datasheet / (multiprocessors x 2 x boost clock)")),
        Rate::new(
            Pipe::TensorF16,
            Fact::derived(512, "peak of the datasheet / (multiprocessors x 2 x boost clock)"),
        ),
        Rate::new(
            Pipe::TensorBf16,
            Fact::derived(512, "peak of the datasheet / (multiprocessors x 2 x boost clock)"),
        ),
        Rate::new(
            Pipe::TensorTf32,
            Fact::derived(256, "peak of the datasheet / (multiprocessors x 2 x boost clock)"),
        ),
    ],
    product_flops_per_second: &[],
};
