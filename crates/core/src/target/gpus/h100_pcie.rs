//! Hopper, 2022, the PCIe card.

use crate::target::{Fact, Level, Levels, Pipe, Rate, Target, limits};

/// NVIDIA H100 PCIe.
pub const GPU: Target = Target {
    name: "h100-pcie",
    product: "NVIDIA H100 PCIe",
    compute: limits::CC90.compute,
    limits: &limits::CC90,
    sm_count: Fact::published(114, "gpu-benches (te42kyfo), raw output"),
    boost_mhz: Fact::published(1755, "gpu-benches (te42kyfo), raw output"),
    sustained_mhz: None,
    memory_bytes: Fact::not_verified(80 << 30),
    dram_bytes_per_second: Fact::published(2039e9, "gpu-benches (te42kyfo), raw output"),
    dram_read_bytes_per_second: Some(Fact::measured(
        1942e9,
        "gpu-benches (te42kyfo), raw output, read kernel",
    )),
    dram_copy_bytes_per_second: None,
    l2_bytes: Fact::published(50 << 20, "gpu-benches (te42kyfo), raw output: two halves of 25 MB"),
    levels: Levels {
        shared: Level::after(Fact::not_verified(29))
            .giving(Fact::derived(128.0, "32 banks of 4 bytes, each once in a cycle")),
        l1: Level::after(Fact::measured(34, "gpu-benches (te42kyfo), raw output, pointer chase"))
            .giving(Fact::measured(126.0, "gpu-benches (te42kyfo), raw output")),
        l2: Level::after(Fact::measured(
            265,
            "gpu-benches (te42kyfo), raw output, pointer chase; about 403 in the further half",
        ))
        .giving(Fact::measured(35.0, "gpu-benches (te42kyfo), raw output: 7.0 TB/s")),
        dram: Level::after(Fact::measured(
            484,
            "gpu-benches (te42kyfo), raw output, pointer chase: 484 to 650, by footprint",
        )),
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
            Fact::derived(2048, "datasheet peak / (132 x 2 x 1.83 GHz, the clock it is stated at)"),
        ),
        Rate::new(
            Pipe::TensorBf16,
            Fact::derived(2048, "datasheet peak / (132 x 2 x 1.83 GHz, the clock it is stated at)"),
        ),
        Rate::new(
            Pipe::TensorTf32,
            Fact::derived(1024, "datasheet peak / (132 x 2 x 1.83 GHz, the clock it is stated at)"),
        ),
        Rate::new(
            Pipe::TensorF64,
            Fact::derived(128, "peak of the datasheet / (multiprocessors x 2 x boost clock)"),
        ),
    ],
    product_flops_per_second: &[],
};
