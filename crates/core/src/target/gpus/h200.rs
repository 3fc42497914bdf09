//! Hopper, 2023: the H100 with larger and faster memory.

use crate::dtype::DType;
use crate::target::{Fact, Level, Levels, Pipe, Rate, Target, limits};

/// NVIDIA H200.
pub const GPU: Target = Target {
    name: "h200",
    product: "NVIDIA H200",
    compute: limits::CC90.compute,
    limits: &limits::CC90,
    sm_count: Fact::published(132, "glennklockwood.com, H100 page: same die as the H100"),
    boost_mhz: Fact::published(1980, "glennklockwood.com, H100 page: same die as the H100"),
    sustained_mhz: Some(Fact::measured(
        1380,
        "one H200, driver 580, 2026-11-22: reads and f64 matrix units, bench/results/h200-2026-11-22-limits-of-power.txt",
    )),
    memory_bytes: Fact::not_verified(141_000_000_000),
    dram_bytes_per_second: Fact::not_verified(4800e9),
    dram_read_bytes_per_second: Some(Fact::measured(
        4552e9,
        "one H200, driver 580, CUDA 13.0, 2026-11-21: sum of 4 GiB of f64",
    )),
    dram_copy_bytes_per_second: Some(Fact::measured(
        4314e9,
        "one H200, driver 580.159.04, CUDA 13.0, 2026-11-26: as many reads as writes, by blocks that do not stay, bench/results/bandwidth-nvidia-h200-2026-11-26.json",
    )),
    l2_bytes: Fact::published(50 << 20, "glennklockwood.com, H100 page: same die as the H100"),
    levels: Levels {
        shared: Level::after(Fact::not_verified(29))
            .giving(Fact::derived(128.0, "32 banks of 4 bytes, each once in a cycle")),
        l1: Level::after(Fact::derived(34, "the H100 PCIe, whose multiprocessors are the same"))
            .giving(Fact::derived(126.0, "the H100 PCIe, whose multiprocessors are the same")),
        l2: Level::after(Fact::derived(265, "the H100 PCIe, of the same die"))
            .giving(Fact::derived(35.0, "the H100 PCIe, of the same die")),
        dram: Level::after(Fact::derived(
            735,
            "Little's law on bench/results/bandwidth-nvidia-h200-2026-11-22.json: 2.757 GB/s of 128 threads with a load each",
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
    product_flops_per_second: &[
        (DType::F32, Fact::measured(53.6e12, MOST_OF_CUBLAS)),
        (DType::F64, Fact::measured(56.4e12, MOST_OF_CUBLAS)),
    ],
};

const MOST_OF_CUBLAS: &str =
    "one H200, driver 580, CUDA 13.0, 2026-11-21: the most that cuBLAS reaches on any product";
