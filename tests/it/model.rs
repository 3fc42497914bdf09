//! The model counts what the simulator counts, without running anything.

use std::time::Instant;

use warpwright::bind::Binding;
use warpwright::compile::validated;
use warpwright::kernels::{self, Variant};
use warpwright::problem::Problem;
use warpwright::report::Counters;
use warpwright::simulator::{SimOptions, count};
use warpwright_core::model::count::{Counts, Reuse, launches};
use warpwright_core::target;

/// What the simulator and the model count of a recipe, over all launches.
fn both(name: &str, dtype: &str, layout: &str, shape: &str) -> (Counters, Counts, f64) {
    let variant = Variant::new(dtype.parse().unwrap(), layout.parse().unwrap());
    let kernel = kernels::build(kernels::by_name(name).unwrap(), variant).unwrap_or_else(|e| panic!("{e}"));
    let problem = Problem::new(shape.parse().unwrap(), variant.precision, variant.layout);
    let valid = validated(kernel.program(), target::DEFAULT).unwrap_or_else(|e| panic!("{e}"));
    let simulated = count(&valid, &problem, &SimOptions { full: true, ..SimOptions::default() });
    let binding = Binding::new(valid.program(), &problem, 8).unwrap();
    let start = Instant::now();
    let all =
        launches(valid.program(), &|s| binding.value(s), Reuse::AsWritten).unwrap_or_else(|e| panic!("{e}"));
    let seconds = start.elapsed().as_secs_f64();
    let sum = all.into_iter().reduce(|a, b| a.and(&b)).expect("a launch");
    (simulated.unwrap_or_else(|e| panic!("{name}: {e}")).expect("counters"), sum, seconds)
}

/// The counts that both have, by name: simulated, modelled.
fn pairs(simulated: &Counters, modelled: &Counts) -> [(&'static str, f64, f64); 10] {
    let (s, m) = (simulated, modelled);
    [
        ("global load requests", s.global_load_requests as f64, m.global_load_requests),
        ("global load sectors", s.global_load_sectors as f64, m.global_load_sectors),
        ("global store requests", s.global_store_requests as f64, m.global_store_requests),
        ("global store sectors", s.global_store_sectors as f64, m.global_store_sectors),
        ("shared load requests", s.shared_load_requests as f64, m.shared_load_requests),
        ("shared load wavefronts", s.shared_load_wavefronts as f64, m.shared_load_wavefronts),
        ("shared store requests", s.shared_store_requests as f64, m.shared_store_requests),
        ("shared store wavefronts", s.shared_store_wavefronts as f64, m.shared_store_wavefronts),
        ("multiply-adds", s.fma as f64, m.multiply_adds()),
        ("barriers", s.barriers as f64, m.barriers),
    ]
}

#[test]
fn where_all_warps_do_the_same_the_model_counts_what_the_simulator_does() {
    for (name, dtype, layout) in [
        ("sgemm_naive", "f32", "nn"),
        ("sgemm_coalesced", "f32", "nn"),
        ("sgemm_shared_memory", "f32", "nn"),
        ("sgemm_block_tiling_1d", "f32", "nn"),
        ("sgemm_block_tiling_2d", "f32", "nn"),
        ("sgemm_block_tiling_2d", "c64", "cn"),
        ("sgemm_vectorized", "f32", "nt"),
        ("sgemm_warp_tiling", "f32", "nn"),
        ("sgemm_double_buffering", "f32", "nn"),
        ("sgemm_padded_tile", "f32", "nn"),
        ("tvm_virtual_threads", "f32", "tn"),
    ] {
        let (simulated, modelled, _) = both(name, dtype, layout, "256x256x128");
        for (what, simulated, modelled) in pairs(&simulated, &modelled) {
            let same = (modelled - simulated).abs() <= 1e-9 * simulated.max(1.0);
            assert!(same, "{name} {dtype} {layout}: {what}: {simulated} simulated, {modelled} modelled");
        }
    }
}
