//! Ampere, 2020.

use crate::target::{Fact, Level, Levels, Pipe, Rate, Target, limits};

/// NVIDIA RTX A6000.
pub const GPU: Target = Target {
    name: "a6000",
    product: "NVIDIA RTX A6000",
    compute: limits::CC86.compute,
    limits: &limits::CC86,
    sm_count: Fact::not_verified(84),
    boost_mhz: Fact::not_verified(1800),
    sustained_mhz: None,
    memory_bytes: Fact::not_verified(48 << 30),
    dram_bytes_per_second: Fact::not_verified(768e9),
    dram_read_bytes_per_second: None,
    dram_copy_bytes_per_second: None,
    l2_bytes: Fact::not_verified(6 << 20),
    levels: Levels {
        shared: Level::after(Fact::derived(
            29,
            "an RTX 3070, whose multiprocessors are the same: configuration of Accel-Sim",
        ))
        .giving(Fact::derived(128.0, "32 banks of 4 bytes, each once in a cycle")),
        l1: Level::after(Fact::derived(
            39,
            "an RTX 3070, whose multiprocessors are the same: configuration of Accel-Sim",
        ))
        .giving(Fact::derived(64.0, "an A40, of the same die: gpu-benches (te42kyfo), raw output")),
        l2: Level::UNKNOWN.giving(Fact::derived(
            17.0,
            "an A40, of the same die: gpu-benches (te42kyfo), raw output, 2.44 TB/s",
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
