//! Hopper, 2022.

use crate::target::{Fact, Level, Levels, Pipe, Rate, Target, limits};

/// NVIDIA H100 SXM5 80GB.
pub const GPU: Target = Target {
    name: "h100-sxm",
    product: "NVIDIA H100 SXM5 80GB",
    compute: limits::CC90.compute,
    limits: &limits::CC90,
    sm_count: Fact::published(132, "glennklockwood.com, H100 page"),
    boost_mhz: Fact::published(1980, "glennklockwood.com, H100 page"),
    sustained_mhz: None,
    memory_bytes: Fact::not_verified(80 << 30),
    dram_bytes_per_second: Fact::published(3350e9, "glennklockwood.com, H100 page"),
    dram_read_bytes_per_second: Some(Fact::measured(3139e9, BANDWIDTH)),
    dram_copy_bytes_per_second: Some(Fact::measured(
        3014e9,
        "one H100 80GB HBM3, driver 580.159.04, 2026-11-26: by blocks that do not stay, through shared memory, bench/results/h100-2026-11-26-blocks-that-pass.txt",
    )),
    l2_bytes: Fact::published(50 << 20, "glennklockwood.com, H100 page: two halves of 25 MB"),
    levels: Levels {
        shared: Level::after(Fact::not_verified(29))
            .giving(Fact::derived(128.0, "32 banks of 4 bytes, each once in a cycle")),
        l1: Level::after(Fact::derived(34, "the H100 PCIe, whose multiprocessors are the same"))
            .giving(Fact::derived(126.0, "the H100 PCIe, whose multiprocessors are the same")),
        l2: Level::after(Fact::derived(265, "the H100 PCIe, of the same die"))
            .giving(Fact::derived(35.0, "the H100 PCIe, of the same die")),
        dram: Level::after(Fact::derived(
            767,
            "Little's law on bench/results/bandwidth-nvidia-h100-80gb-hbm3-2026-11-26.json: 2.644 GB/s of 128 threads with a load each",
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

const BANDWIDTH: &str = "one H100 80GB HBM3, driver 580.159.04, 2026-11-26: the most of reads, bench/results/bandwidth-nvidia-h100-80gb-hbm3-2026-11-26.json";
