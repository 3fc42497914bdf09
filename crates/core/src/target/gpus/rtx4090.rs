//! Ada, 2022. Its matrix units run at half rate when they accumulate in f32.

use crate::target::{Fact, Level, Levels, Pipe, Rate, Target, limits};

/// NVIDIA GeForce RTX 4090.
pub const GPU: Target = Target {
    name: "rtx4090",
    product: "NVIDIA GeForce RTX 4090",
    compute: limits::CC89.compute,
    limits: &limits::CC89,
    sm_count: Fact::published(128, "thefpsreview.com review"),
    boost_mhz: Fact::published(2520, "thefpsreview.com review"),
    sustained_mhz: None,
    memory_bytes: Fact::not_verified(24 << 30),
    dram_bytes_per_second: Fact::published(1008e9, "thefpsreview.com review"),
    dram_read_bytes_per_second: None,
    dram_copy_bytes_per_second: None,
    l2_bytes: Fact::not_verified(72 << 20),
    levels: Levels {
        shared: Level::after(Fact::not_verified(30))
            .giving(Fact::derived(128.0, "32 banks of 4 bytes, each once in a cycle")),
        l1: Level::after(Fact::not_verified(43))
            .giving(Fact::derived(64.0, "an L40, of the same die: gpu-benches (te42kyfo), raw output")),
        l2: Level::after(Fact::not_verified(273)),
        dram: Level::after(Fact::not_verified(542)),
    },
    rates: &[
        Rate::new(
            Pipe::F32,
            Fact::derived(128, "peak of the datasheet / (multiprocessors x 2 x boost clock)"),
        ),
        Rate::new(Pipe::F64, Fact::derived(2, "peak of the datasheet / (multiprocessors x 2 x boost clock)")),
        Rate::new(
            Pipe::TensorF16,
            Fact::derived(256, "peak of the datasheet / (multiprocessors x 2 x boost clock)"),
        ),
        Rate::new(
            Pipe::TensorBf16,
            Fact::derived(256, "peak of the datasheet / (multiprocessors x 2 x boost clock)"),
        ),
        Rate::new(
            Pipe::TensorTf32,
            Fact::derived(128, "peak of the datasheet / (multiprocessors x 2 x boost clock)"),
        ),
    ],
    product_flops_per_second: &[],
};
