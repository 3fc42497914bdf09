//! Ada, 2022.

use crate::target::{Fact, Level, Levels, Pipe, Rate, Target, limits};

/// NVIDIA L40.
pub const GPU: Target = Target {
    name: "l40",
    product: "NVIDIA L40",
    compute: limits::CC89.compute,
    limits: &limits::CC89,
    sm_count: Fact::not_verified(142),
    boost_mhz: Fact::published(2490, "gpu-benches (te42kyfo), raw output"),
    sustained_mhz: None,
    memory_bytes: Fact::not_verified(48 << 30),
    dram_bytes_per_second: Fact::published(864e9, "gpu-benches (te42kyfo), raw output"),
    dram_read_bytes_per_second: Some(Fact::measured(
        844e9,
        "gpu-benches (te42kyfo), raw output, read kernel",
    )),
    dram_copy_bytes_per_second: None,
    l2_bytes: Fact::published(96 << 20, "gpu-benches (te42kyfo), raw output"),
    levels: Levels {
        shared: Level::UNKNOWN.giving(Fact::derived(128.0, "32 banks of 4 bytes, each once in a cycle")),
        l1: Level::after(Fact::measured(36, "gpu-benches (te42kyfo), raw output, pointer chase")).giving(Fact::measured(64.0, "gpu-benches (te42kyfo), raw output")),
        l2: Level::after(Fact::measured(277, "gpu-benches (te42kyfo), raw output, pointer chase; 222 to 339 by multiprocessor (arXiv 2606.22588)")).giving(Fact::measured(15.0, "gpu-benches (te42kyfo), raw output: 5.2 to 5.7 TB/s")),
        dram: Level::after(Fact::measured(531, "gpu-benches (te42kyfo), raw output, pointer chase: 531 to 632, by footprint")),
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
