//! Golden files: what representative kernels are made of, stage by stage, as it was when somebody last looked.
//!
//! A case is a directory under `tests/golden`: the specification, the steps of the schedule, the finished program, its
//! CUDA text, and what the simulator counts for one problem. Whoever changes one of them on purpose runs
//! `WARPWRIGHT_UPDATE_GOLDEN=1 cargo test --test it golden` and reads the difference before committing it.

use std::fs;
use std::path::Path;

use warpwright::compile::{cuda, validated};
use warpwright::kernels::family::{Choice, parse_parameter};
use warpwright::kernels::{self, Kernel, Variant};
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

/// Family, size, type, layout and parameters: each form, with rows that are whole pieces of 16 bytes and others.
const OF_FAMILIES: &[(&str, &str, &str, &str, &str)] = &[
    ("tsmttsm", "8x8x20000", "f64", "tn", "unit=fma,staging=registers,tm=4,tn=4,parts=8,block=128"),
    ("tsmttsm", "33x33x4000", "f32", "tn", "staging=shared,copy=one,tm=11,tn=11,parts=8,block=128,stages=2"),
    (
        "tsmttsm",
        "20x20x4000",
        "c128",
        "cn",
        "unit=mma,numbers=whole,instruction=m16n8k4,parts=8,depth=16,stages=3",
    ),
    (
        "tsmttsm",
        "9x12x4000",
        "c128",
        "cn",
        "unit=mma,numbers=parts,instruction=m16n8k8,parts=8,depth=16,stages=3",
    ),
    (
        "tsmttsm",
        "9x12x4000",
        "c128",
        "cn",
        "unit=mma,numbers=three,instruction=m16n8k4,parts=8,depth=16,stages=3",
    ),
    ("tsmttsm", "7x9x4000", "c128", "cn", "unit=mma,numbers=whole,instruction=m8n8k4,parts=8,depth=16"),
    (
        "tsmttsm",
        "17x9x4000",
        "f32",
        "tn",
        "unit=mma,numbers=split,copy=bulk,apart=8,wm=1,wn=1,wk=4,parts=8,depth=128,stages=2",
    ),
    (
        "tsmttsm",
        "11x9x4000",
        "f32",
        "tn",
        "staging=shared,copy=classes,tm=4,tn=4,transposed=false,parts=8,block=128,depth=32,stages=2",
    ),
    (
        "tsmttsm",
        "23x20x4000",
        "f64",
        "tn",
        "unit=mma,copy=bulk,release=warps,parts=8,depth=16,stages=3,lane_base=true",
    ),
    ("tsmm", "2000x12x12", "c128", "nn", "unit=mma,instruction=m8n8k4,rows=32,store=shared,blocks=8"),
    (
        "tsmm",
        "2000x9x7",
        "c128",
        "nn",
        "unit=mma,numbers=parts,instruction=m16n8k4,rows=64,team=part,store=direct,blocks=8",
    ),
    (
        "tsmm",
        "2000x48x50",
        "c64",
        "nn",
        "unit=mma,numbers=split,split_once=true,rows=64,team=part,store=shared,blocks=8",
    ),
    ("tsmm", "2000x64x64", "f32", "nn", "staging=shared,store=direct,rows=64,tm=8,tn=8,piece=4,blocks=8"),
    ("tsmm", "2000x37x37", "f64", "nn", "unit=mma,instruction=m16n8k4,rows=64,store=shared,blocks=8"),
    ("tsmm", "2000x20x24", "f64", "nn", "unit=mma,instruction=m16n8k8,rows=64,store=direct,blocks=8"),
    ("tsmm", "2000x36x20", "c64", "nn", "staging=shared,team=part,store=direct,wm=2,wn=2,tm=8,tn=4,blocks=8"),
    (
        "tiled",
        "20x136x520",
        "bf16",
        "nt",
        "unit=mma,rows=32,columns=32,depth=128,sets=4,wm=1,wn=1,stages=3,parts=1,swizzled=true,team=warp",
    ),
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
    let recipes = CASES.iter().map(|(name, dtype, layout)| {
        let variant = variant(dtype, layout);
        let recipe = kernels::by_name(name).expect("there is one");
        let kernel = kernels::build(recipe, variant).unwrap_or_else(|e| panic!("{e}"));
        (kernel, Problem::new(SHAPE, variant.precision, variant.layout), format!("{name}_{dtype}_{layout}"))
    });
    let of_families = OF_FAMILIES.iter().map(|(family, size, dtype, layout, parameters)| {
        let variant = variant(dtype, layout);
        let family = kernels::family(family).expect("there is one");
        let problem = Problem::new(size.parse().expect("a size"), variant.precision, variant.layout);
        let given = parameters.split(',').map(|p| parse_parameter(p).expect("a parameter"));
        let given = given.fold(Choice::default(), |choice, (name, value)| choice.with(name, value));
        let choice = family.complete(&given, &problem, target::DEFAULT).unwrap_or_else(|e| panic!("{e}"));
        let kernel = family.build(&problem, &choice).unwrap_or_else(|e| panic!("{e}"));
        let name = kernel.name.clone();
        (kernel, problem, name)
    });
    for (kernel, problem, name) in recipes.chain(of_families) {
        let directory = root.join(&name);
        for (file, text) in stages(&kernel, &problem) {
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

fn variant(dtype: &str, layout: &str) -> Variant {
    Variant::new(dtype.parse().expect("a type"), layout.parse().expect("a layout"))
}

/// The files of a case.
fn stages(kernel: &Kernel, problem: &Problem) -> [(&'static str, String); 5] {
    let valid = validated(kernel.program(), target::DEFAULT).unwrap_or_else(|e| panic!("{e}"));
    let source = cuda(&valid).unwrap_or_else(|e| panic!("{e}"));
    let whole = SimOptions { full: true, ..SimOptions::default() };
    let counters = count(&valid, problem, &whole).unwrap_or_else(|e| panic!("{e}"));
    let counters = serde_json::to_string_pretty(&counters).expect("is JSON");
    [
        ("specification.ww", kernel.specification().to_string()),
        ("schedule.txt", kernel.schedule.text()),
        ("program.ww", valid.program().to_string()),
        ("kernel.cu", source.text),
        ("counters.json", format!("{counters}\n")),
    ]
}
