//! Hopper, 2023: the H100 with larger and faster memory.

use crate::dtype::DType;
use crate::target::{Fact, Pipe, Rate, Target, limits};

/// NVIDIA H200.
pub const GPU: Target = Target {
    name: "h200",
    product: "NVIDIA H200",
    compute: limits::CC90.compute,
    limits: &limits::CC90,
    sm_count: Fact::published(132, "glennklockwood.com, H100 page: same die as the H100"),
    boost_mhz: Fact::published(1980, "glennklockwood.com, H100 page: same die as the H100"),
    memory_bytes: Fact::not_verified(141_000_000_000),
    dram_bytes_per_second: Fact::not_verified(4800e9),
    dram_read_bytes_per_second: Some(Fact::measured(
        4552e9,
        "one H200, driver 580, CUDA 13.0, 2026-11-21: sum of 4 GiB of f64",
    )),
    dram_copy_bytes_per_second: Some(Fact::measured(
        4069e9,
        "one H200, driver 580, CUDA 13.0, 2026-11-21: scaling 4 GiB of f64",
    )),
    l2_bytes: Fact::published(50 << 20, "glennklockwood.com, H100 page: same die as the H100"),
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
