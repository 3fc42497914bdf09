//! The index of tables, and those that the model is compared with. They are part of the program, so that it can be asked
//! anywhere.

/// Which table says what.
pub(super) const INDEX: &str = include_str!("../../validation/index.toml");

/// The tables by the names that they have in the index.
pub(super) const TEXTS: &[(&str, &str)] = &[
    ("validation/sgemm_ladder_a6000.csv", include_str!("../../validation/sgemm_ladder_a6000.csv")),
    ("validation/sgemm_ladder_h200.csv", include_str!("../../validation/sgemm_ladder_h200.csv")),
    ("validation/tvm_ladder_rtx3090.csv", include_str!("../../validation/tvm_ladder_rtx3090.csv")),
    (
        "bench/results/drawn-candidates-nvidia-h100-80gb-hbm3-2026-11-26.csv",
        include_str!("../../bench/results/drawn-candidates-nvidia-h100-80gb-hbm3-2026-11-26.csv"),
    ),
    (
        "bench/results/drawn-candidates-nvidia-h100-80gb-hbm3-2026-11-26-seed-11.csv",
        include_str!("../../bench/results/drawn-candidates-nvidia-h100-80gb-hbm3-2026-11-26-seed-11.csv"),
    ),
    (
        "bench/results/drawn-candidates-tiled-mma-nvidia-h100-80gb-hbm3-2026-11-26-seed-12.csv",
        include_str!(
            "../../bench/results/drawn-candidates-tiled-mma-nvidia-h100-80gb-hbm3-2026-11-26-seed-12.csv"
        ),
    ),
    (
        "bench/results/drawn-candidates-nvidia-h200-2026-11-26-seed-11.csv",
        include_str!("../../bench/results/drawn-candidates-nvidia-h200-2026-11-26-seed-11.csv"),
    ),
    (
        "bench/results/tuner-trials-tiled-nvidia-h200-2026-11-26.csv",
        include_str!("../../bench/results/tuner-trials-tiled-nvidia-h200-2026-11-26.csv"),
    ),
    (
        "bench/results/ladders-nvidia-h200-2026-11-26.csv",
        include_str!("../../bench/results/ladders-nvidia-h200-2026-11-26.csv"),
    ),
    ("validation/tsmgen_h200.csv", include_str!("../../validation/tsmgen_h200.csv")),
    (
        "bench/results/tuner-candidates-nvidia-h200-2026-11-22.csv",
        include_str!("../../bench/results/tuner-candidates-nvidia-h200-2026-11-22.csv"),
    ),
    (
        "bench/results/tsm-nvidia-h200-2026-11-25.csv",
        include_str!("../../bench/results/tsm-nvidia-h200-2026-11-25.csv"),
    ),
];
