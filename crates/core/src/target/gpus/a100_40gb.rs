//! Ampere, 2020.

use crate::target::{Fact, Level, Levels, Pipe, Rate, Target, limits};

/// NVIDIA A100-SXM4-40GB.
pub const GPU: Target = Target {
    name: "a100-40gb",
    product: "NVIDIA A100-SXM4-40GB",
    compute: limits::CC80.compute,
    limits: &limits::CC80,
    sm_count: Fact::published(108, "gpu-benches (te42kyfo), raw output"),
    boost_mhz: Fact::published(1410, "gpu-benches (te42kyfo), raw output"),
    sustained_mhz: Some(Fact::derived(
        1374,
        "19.0 of 19.5 TFLOP/s in f32, gpu-benches (te42kyfo), gpu-roofline; at least",
    )),
    memory_bytes: Fact::not_verified(40 << 30),
    dram_bytes_per_second: Fact::published(1555e9, "hmc-tech.com, data-centre GPU tables"),
    dram_read_bytes_per_second: Some(Fact::measured(
        1490e9,
        "gpu-benches (te42kyfo), raw output, read kernel",
    )),
    dram_copy_bytes_per_second: None,
    l2_bytes: Fact::published(40 << 20, "gpu-benches (te42kyfo), raw output: two halves of 20 MB"),
    levels: Levels {
        shared: Level::after(Fact::not_verified(29))
            .giving(Fact::derived(128.0, "32 banks of 4 bytes, each once in a cycle")),
        l1: Level::after(Fact::measured(36, "gpu-benches (te42kyfo), raw output, pointer chase"))
            .giving(Fact::measured(125.0, "gpu-benches (te42kyfo), raw output")),
        l2: Level::after(Fact::measured(
            212,
            "gpu-benches (te42kyfo), raw output, pointer chase: 211 to 213; about 408 in the further half",
        ))
        .giving(Fact::measured(29.0, "gpu-benches (te42kyfo), raw output: 4.4 to 5.4 TB/s")),
        dram: Level::after(Fact::measured(
            504,
            "gpu-benches (te42kyfo), raw output, pointer chase: 504 to 573, by footprint",
        )),
    },
    rates: &[
        Rate::new(
            Pipe::F32,
            Fact::derived(64, "peak of the datasheet / (multiprocessors x 2 x boost clock)"),
        ),
        Rate::new(
            Pipe::F64,
            Fact::derived(32, "peak of the datasheet / (multiprocessors x 2 x boost clock)"),
        ),
        Rate::new(
            Pipe::TensorF16,
            Fact::derived(1024, "peak of the datasheet / (multiprocessors x 2 x boost clock)"),
        ),
        Rate::new(
            Pipe::TensorBf16,
            Fact::derived(1024, "peak of the datasheet / (multiprocessors x 2 x boost clock)"),
        ),
        Rate::new(
            Pipe::TensorTf32,
            Fact::derived(512, "peak of the datasheet / (multiprocessors x 2 x boost clock)"),
        ),
        Rate::new(
            Pipe::TensorF64,
            Fact::derived(64, "peak of the datasheet / (multiprocessors x 2 x boost clock)"),
        ),
    ],
    product_flops_per_second: &[],
};
