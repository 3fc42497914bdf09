//! Turing, 2018.

use crate::target::{Fact, Level, Levels, Pipe, Rate, Target, limits};

/// NVIDIA GeForce RTX 2080 Ti.
pub const GPU: Target = Target {
    name: "rtx2080ti",
    product: "NVIDIA GeForce RTX 2080 Ti",
    compute: limits::CC75.compute,
    limits: &limits::CC75,
    sm_count: Fact::published(68, "bit-tech.net and guru3d.com reviews"),
    boost_mhz: Fact::published(1545, "bit-tech.net and guru3d.com reviews"),
    sustained_mhz: None,
    memory_bytes: Fact::not_verified(11 << 30),
    dram_bytes_per_second: Fact::not_verified(616e9),
    dram_read_bytes_per_second: None,
    dram_copy_bytes_per_second: None,
    l2_bytes: Fact::not_verified(5632 << 10),
    levels: Levels {
        shared: Level::after(Fact::derived(
            23,
            "an RTX 2070, whose multiprocessors are the same: gpu-arch-microbenchmark (sjfeng1999)",
        ))
        .giving(Fact::derived(128.0, "32 banks of 4 bytes, each once in a cycle")),
        l1: Level::after(Fact::derived(
            32,
            "an RTX 2070, whose multiprocessors are the same: gpu-arch-microbenchmark (sjfeng1999)",
        )),
        l2: Level::after(Fact::derived(236, "an RTX 2070: gpu-arch-microbenchmark (sjfeng1999)")),
        ..Levels::UNKNOWN
    },
    rates: &[
        Rate::new(
            Pipe::F32,
            Fact::published(64, "NVIDIA forum copy of the Programming Guide's arithmetic throughput table"),
        ),
        Rate::new(
            Pipe::F64,
            Fact::published(2, "NVIDIA forum copy of the Programming Guide's arithmetic throughput table"),
        ),
        Rate::new(
            Pipe::TensorF16,
            Fact::derived(
                256,
                "peak of the datasheet / (multiprocessors x 2 x boost clock); f32 accumulation, half the f16 rate",
            ),
        ),
    ],
    product_flops_per_second: &[],
};
