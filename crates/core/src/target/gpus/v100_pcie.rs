//! Volta, 2017, the PCIe card. NVRTC 12 is the last that compiles for it.

use crate::target::{Fact, Level, Levels, Pipe, Rate, Target, limits};

/// NVIDIA Tesla V100-PCIE-16GB.
pub const GPU: Target = Target {
    name: "v100-pcie",
    product: "NVIDIA Tesla V100-PCIE-16GB",
    compute: limits::CC70.compute,
    limits: &limits::CC70,
    sm_count: Fact::published(80, "gpu-benches (te42kyfo), raw output"),
    boost_mhz: Fact::published(1380, "gpu-benches (te42kyfo), raw output"),
    sustained_mhz: None,
    memory_bytes: Fact::not_verified(16 << 30),
    dram_bytes_per_second: Fact::published(900e9, "gpu-benches (te42kyfo), raw output"),
    dram_read_bytes_per_second: Some(Fact::measured(
        866e9,
        "gpu-benches (te42kyfo), raw output, read kernel",
    )),
    dram_copy_bytes_per_second: None,
    l2_bytes: Fact::published(6 << 20, "gpu-benches (te42kyfo), raw output"),
    levels: Levels {
        shared: Level::after(Fact::not_verified(19))
            .giving(Fact::derived(128.0, "32 banks of 4 bytes, each once in a cycle")),
        l1: Level::after(Fact::measured(30, "gpu-benches (te42kyfo), raw output, pointer chase"))
            .giving(Fact::measured(125.0, "gpu-benches (te42kyfo), raw output")),
        l2: Level::after(Fact::measured(
            215,
            "gpu-benches (te42kyfo), raw output, pointer chase: 191 to 215",
        ))
        .giving(Fact::measured(22.0, "gpu-benches (te42kyfo), raw output: 2.43 TB/s")),
        dram: Level::after(Fact::measured(
            436,
            "gpu-benches (te42kyfo), raw output, pointer chase: 425 to 436",
        )),
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
