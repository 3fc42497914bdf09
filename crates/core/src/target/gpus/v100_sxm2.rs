//! Volta, 2017. NVRTC 12 is the last that compiles for it.

use crate::target::{Fact, Level, Levels, Pipe, Rate, Target, limits};

/// NVIDIA Tesla V100-SXM2-16GB.
pub const GPU: Target = Target {
    name: "v100-sxm2",
    product: "NVIDIA Tesla V100-SXM2-16GB",
    compute: limits::CC70.compute,
    limits: &limits::CC70,
    sm_count: Fact::published(80, "gpu-benches (te42kyfo), raw output"),
    boost_mhz: Fact::not_verified(1530),
    sustained_mhz: None,
    memory_bytes: Fact::not_verified(16 << 30),
    dram_bytes_per_second: Fact::published(900e9, "gpu-benches (te42kyfo), raw output"),
    dram_read_bytes_per_second: None,
    dram_copy_bytes_per_second: None,
    l2_bytes: Fact::published(6 << 20, "gpu-benches (te42kyfo), raw output"),
    levels: Levels {
        shared: Level::after(Fact::not_verified(19))
            .giving(Fact::derived(128.0, "32 banks of 4 bytes, each once in a cycle")),
        l1: Level::after(Fact::derived(30, "the V100 PCIe, whose multiprocessors are the same"))
            .giving(Fact::derived(125.0, "the V100 PCIe, whose multiprocessors are the same")),
        ..Levels::UNKNOWN
    },
    rates: &[
        Rate::new(
            Pipe::F32,
            Fact::published(64, "NVIDIA forum copy of the Programming Guide's arithmetic throughput table"),
        ),
        Rate::new(
            Pipe::F64,
            Fact::published(32, "NVIDIA forum copy of the Programming Guide's arithmetic throughput table"),
        ),
        Rate::new(
            Pipe::TensorF16,
            Fact::derived(512, "peak of the datasheet / (multiprocessors x 2 x boost clock)"),
        ),
    ],
    product_flops_per_second: &[],
};
