//! Golden files: what representative kernels are made of, stage by stage, as it was when somebody last looked.
//!
//! A case is a directory under `tests/golden`: the specification, the steps of the schedule, the finished program, its
//! CUDA text, and what the simulator counts for one problem. Whoever changes one of them on purpose runs
//! `WARPWRIGHT_UPDATE_GOLDEN=1 cargo test --test it golden` and reads the difference before committing it.

use std::fs;
use std::path::Path;

use warpwright::compile::{cuda, validated};
use warpwright::kernels::{self, Variant};
use warpwright::problem::{Problem, Shape};
use warpwright::report::diff;
use warpwright::simulator::{SimOptions, count};
use warpwright_core::target;

/// Recipe, type and layout. A new case is a new line.
const CASES: &[(&str, &str, &str)] = &[
    ("sgemm_naive", "f32", "nn"),
    ("sgemm_block_tiling_2d", "f32", "nn"),
    ("sgemm_block_tiling_2d", "c64", "cn"),
    ("sgemm_vectorized", "f32", "nt"),
    ("sgemm_warp_tiling", "f32", "nn"),
    ("sgemm_double_buffering", "f32", "nn"),
    ("sgemm_padded_tile", "f32", "nn"),
    ("sgemm_turned_lanes", "f32", "nn"),
    ("tvm_virtual_threads", "f32", "tn"),
];

/// What is counted: two tiles along each axis, the last one cut.
const SHAPE: Shape = Shape { m: 200, n: 300, k: 40 };

/// The environment variable that makes the files anew.
const UPDATE: &str = "WARPWRIGHT_UPDATE_GOLDEN";

#[test]
fn kernels_are_made_as_the_golden_files_say() {
    let update = std::env::var_os(UPDATE).is_some();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut complaints = Vec::new();
    let mut known = Vec::new();
    for (recipe, dtype, layout) in CASES {
        let name = format!("{recipe}_{dtype}_{layout}");
        let directory = root.join(&name);
        for (file, text) in stages(recipe, dtype, layout) {
            let path = directory.join(file);
            if update {
                fs::create_dir_all(&directory).expect("the directory can be made");
                fs::write(&path, &text).expect("the file can be written");
            }
            let golden = fs::read_to_string(&path).unwrap_or_default();
            if golden != text {
                let difference = diff::unified(&golden, &text, 2);
                complaints.push(format!("{name}/{file}: - is the file, + is what is made now\n{difference}"));
            }
        }
        known.push(name);
    }
    for entry in fs::read_dir(&root).expect("the directory is there").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !known.contains(&name) {
            complaints.push(format!("{name}: no case is called so"));
        }
    }
    assert!(
        complaints.is_empty(),
        "{}\nif this is meant, set {UPDATE}=1 and run again",
        complaints.join("\n")
    );
}

/// The files of a case.
fn stages(recipe: &str, dtype: &str, layout: &str) -> [(&'static str, String); 5] {
    let variant =
        Variant { precision: dtype.parse().expect("a type"), layout: layout.parse().expect("a layout") };
    let recipe = kernels::by_name(recipe).expect("there is one");
    let kernel = kernels::build(recipe, variant).unwrap_or_else(|e| panic!("{e}"));
    let valid = validated(kernel.program(), target::DEFAULT).unwrap_or_else(|e| panic!("{e}"));
    let source = cuda(&valid).unwrap_or_else(|e| panic!("{e}"));
    let problem = Problem::new(SHAPE, variant.precision, variant.layout);
    let whole = SimOptions { full: true, ..SimOptions::default() };
    let counters = count(&valid, &problem, &whole).unwrap_or_else(|e| panic!("{e}"));
    let counters = serde_json::to_string_pretty(&counters).expect("is JSON");
    [
        ("specification.ww", kernel.specification().to_string()),
        ("schedule.txt", kernel.schedule.text()),
        ("program.ww", valid.program().to_string()),
        ("kernel.cu", source.text),
        ("counters.json", format!("{counters}\n")),
    ]
}
