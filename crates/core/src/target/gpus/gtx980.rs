//! Maxwell, 2014. In the tables for old course material; NVRTC 13 no longer compiles for it.

use crate::target::{Fact, Level, Levels, Pipe, Rate, Target, limits};

/// NVIDIA GeForce GTX 980.
pub const GPU: Target = Target {
    name: "gtx980",
    product: "NVIDIA GeForce GTX 980",
    compute: limits::CC52.compute,
    limits: &limits::CC52,
    sm_count: Fact::not_verified(16),
    boost_mhz: Fact::not_verified(1216),
    sustained_mhz: None,
    memory_bytes: Fact::not_verified(4 << 30),
    dram_bytes_per_second: Fact::not_verified(224e9),
    dram_read_bytes_per_second: None,
    dram_copy_bytes_per_second: None,
    l2_bytes: Fact::not_verified(2 << 20),
    levels: Levels {
        shared: Level::UNKNOWN.giving(Fact::derived(128.0, "32 banks of 4 bytes, each once in a cycle")),
        ..Levels::UNKNOWN
    },
    rates: &[
        Rate::new(
            Pipe::F32,
            Fact::published(128, "NVIDIA forum copy of the Programming Guide's arithmetic throughput table"),
        ),
        Rate::new(
            Pipe::F64,
            Fact::published(4, "NVIDIA forum copy of the Programming Guide's arithmetic throughput table"),
        ),
    ],
    product_flops_per_second: &[],
};
