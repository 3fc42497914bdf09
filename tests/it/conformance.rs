//! Every finished program compiles for its targets: without spills, without warnings, with no more registers than
//! were measured when it was written down here.
//!
//! No GPU is needed, but NVRTC is; where it is absent the test says so and passes, unless the environment variable
//! `WARPWRIGHT_REQUIRE_NVRTC` is set, as in continuous integration.

use std::fs;
use std::path::Path;

use warpwright::compile::validated;
use warpwright::gpu::Site;
use warpwright::kernels::family::{Choice, parse_parameter};
use warpwright::kernels::{self, Variant};
use warpwright::problem::{Offsets, Problem};
use warpwright_core::emit::cuda::{self, Source};
use warpwright_core::ir::{parse, validate};
use warpwright_core::occupancy::blocks_per_sm;
use warpwright_core::target::Target;
use warpwright_cuda::{Library, Options, compile, locate};

/// Programs, a target that has what they need, and the registers that each kernel may use there.
const PROGRAMS: &[(&str, &str, &[u32])] = &[
    ("hgemm_cp_async", "a100-40gb", &[240]),
    ("hgemm_tma_wgmma", "h200", &[168]),
    ("reduce_two_pass", "a100-40gb", &[40, 32]),
    ("scan_look_back", "a100-40gb", &[40]),
    ("sgemm_block_tiling", "a100-40gb", &[128]),
    ("sgemm_split_k", "a100-40gb", &[80, 40]),
    ("sgemm_virtual_threads", "a100-40gb", &[128]),
    ("tsmttsm_atomic", "a100-40gb", &[40, 128]),
    ("tsmttsm_two_pass", "a100-40gb", &[128, 40]),
];

/// One target of each family that a program without special needs must compile for.
const FAMILIES: &[&str] = &["rtx2080ti", "a100-40gb", "rtx3090", "rtx4090", "h200", "b200"];

#[test]
fn every_program_compiles_without_spills() {
    if !nvrtc_is_here() {
        return;
    }
    for (name, target, registers) in PROGRAMS {
        let source = emit(name, target);
        let compiled = compiled(&source, target);
        assert_eq!(compiled.warnings(), "", "{name}: the compiler warns");
        assert_eq!(source.kernels.len(), registers.len(), "{name}");
        for (kernel, most) in source.kernels.iter().zip(*registers) {
            let used = compiled.kernel(&kernel.name).expect("the kernel is in the report");
            assert_eq!((used.spill_store_bytes, used.spill_load_bytes), (0, 0), "{name}: {used:?}");
            assert_eq!(used.stack_bytes, 0, "{name}: registers went to memory: {used:?}");
            assert!(used.registers <= *most, "{name}: {used:?}, at most {most} registers are expected");
        }
    }
}

#[test]
fn occupancy_of_a_kernel_is_that_of_the_registers_its_compiler_reports() {
    if !nvrtc_is_here() {
        return;
    }
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/programs/tsmttsm_two_pass.ww");
    let reports = crate::cli::json(&format!("occupancy {program} --gpu a100-40gb --json"), 0);
    let target = Target::by_name("a100-40gb").unwrap();
    let compiled = compiled(&emit("tsmttsm_two_pass", "a100-40gb"), "a100-40gb");
    let reports = reports.as_array().unwrap();
    assert_eq!(reports.len(), 2, "two launches");
    for report in reports {
        let kernel = compiled.kernel(report["kernel"].as_str().unwrap()).unwrap();
        assert_eq!(report["registers"], kernel.registers);
        let number = |field: &str| report[field].as_i64().unwrap();
        let shared = number("shared_static") + number("shared_dynamic");
        let blocks = blocks_per_sm(target, number("threads"), number("registers"), shared);
        assert_eq!(number("blocks_per_sm"), blocks, "{report}");
        assert!(blocks > 0);
    }
}

#[test]
fn plain_programs_compile_for_every_family_of_targets() {
    if !nvrtc_is_here() {
        return;
    }
    for target in FAMILIES {
        for name in ["sgemm_block_tiling", "scan_look_back", "tsmttsm_atomic"] {
            compiled(&emit(name, target), target);
        }
    }
}

#[test]
fn the_ladder_sgemm_compiles_for_every_family_of_targets() {
    every_rung_compiles("sgemm");
}

#[test]
fn the_other_ladders_compile_for_every_family_of_targets() {
    ["tvm", "hgemm", "dgemm"].into_iter().for_each(every_rung_compiles);
}

#[test]
fn tiled_products_compile_for_every_family_of_targets() {
    if !nvrtc_is_here() {
        return;
    }
    let family = kernels::family("tiled").expect("is known");
    for (shape, dtype, layout) in [
        ("2x1000x4096", "f32", "nn"),
        ("14x4096x4096", "f32", "nn"),
        ("40x1000x512", "f32", "nn"),
        ("96x1000x512", "f32", "nn"),
        ("37x129x65", "f32", "nn"),
        ("14x1000x4096", "f32", "nt"),
        ("14x1000x4096", "bf16", "nn"),
        ("96x1000x512", "f16", "nt"),
        ("40x1000x512", "bf16-f32", "nt"),
    ] {
        let problem = Problem::new(
            shape.parse().expect("a size"),
            dtype.parse().expect("a type"),
            layout.parse().expect("a layout"),
        );
        for name in FAMILIES {
            let target = Target::by_name(name).expect("is known");
            let by = |unit: &'static str| Choice::default().with("unit", unit);
            // By threads, but for 16-bit elements and B^T; by matrix units where there are some.
            let choices = ["fma", "mma"].map(|unit| family.complete(&by(unit), &problem, target));
            assert!((dtype, layout) != ("f32", "nn") || choices[0].is_ok(), "{choices:?}");
            for choice in choices.into_iter().flatten() {
                let kernel = family.build(&problem, &choice).unwrap_or_else(|e| panic!("{e}"));
                let valid = validated(kernel.program(), target)
                    .unwrap_or_else(|e| panic!("{} with {choice} for {name}: {e}", kernel.name));
                let compiled = compiled(&cuda::emit(&valid).expect("has a spelling"), name);
                assert_eq!(compiled.warnings(), "", "{} with {choice}: the compiler warns", kernel.name);
            }
        }
    }
}

#[test]
fn families_with_parameters_compile_for_every_family_of_targets() {
    if !nvrtc_is_here() {
        return;
    }
    for family in kernels::TALL_SKINNY {
        for (dtype, width, start) in [
            ("f32", 16, 0),
            ("f64", 24, 0),
            ("f64", 37, 0),
            ("c64", 7, 0),
            ("c128", 12, 0),
            ("f32", 24, 1),
            ("f32", 17, 2),
            ("f64", 24, 1),
        ] {
            let (shape, layout) = match family.name {
                "tsmm" => (format!("1000000x{width}x{width}"), "nn"),
                _ => (format!("{width}x{width}x1000000"), if dtype.starts_with('c') { "cn" } else { "tn" }),
            };
            let mut problem =
                Problem::new(shape.parse().unwrap(), dtype.parse().unwrap(), layout.parse().unwrap());
            problem.offset = Offsets { a: start, b: start, c: start };
            for name in FAMILIES {
                let target = Target::by_name(name).expect("is known");
                let choice =
                    family.complete(&Choice::default(), &problem, target).unwrap_or_else(|e| panic!("{e}"));
                let kernel = family.build(&problem, &choice).unwrap_or_else(|e| panic!("{e}"));
                let valid = validated(kernel.program(), target)
                    .unwrap_or_else(|e| panic!("{} with {choice} for {name}: {e}", kernel.name));
                let compiled = compiled(&cuda::emit(&valid).expect("has a spelling"), name);
                assert_eq!(compiled.warnings(), "", "{} with {choice}: the compiler warns", kernel.name);
            }
        }
    }
}

/// Forms that nobody gets by default, for one GPU: where a compiler once refused, or spilled.
const FORMS: &[(&str, &str, &str, &str, &str)] = &[
    // Nine warps, of which four blocks would have left a thread 56 registers.
    ("tsmttsm", "20x20x1000000", "c128", "cn", "numbers=whole,instruction=m8n8k4,wm=3,wn=3,wk=1,depth=32"),
    ("tsmttsm", "36x36x1000000", "c128", "cn", "numbers=parts,instruction=m16n8k8,wm=5,wn=3,wk=1,depth=32"),
    ("tsmttsm", "64x64x1000000", "c128", "cn", "numbers=three,instruction=m16n8k4,wm=4,wn=2,wk=1,depth=16"),
    ("tsmttsm", "64x64x1000000", "c128", "cn", "numbers=three,instruction=m16n8k8,wm=2,wn=2,wk=1,depth=16"),
    // Rows some way apart, and numbers that are split.
    (
        "tsmttsm",
        "97x97x1000000",
        "f64",
        "tn",
        "unit=mma,copy=bulk,apart=4,instruction=m16n8k4,wm=7,wn=1,wk=1,depth=64,stages=2",
    ),
    (
        "tsmttsm",
        "57x57x1000000",
        "f32",
        "tn",
        "unit=mma,numbers=split,copy=bulk,apart=8,wm=2,wn=2,wk=2,depth=64,stages=3",
    ),
    ("tsmttsm", "25x25x1000000", "c64", "cn", "unit=mma,numbers=split,wm=1,wn=2,wk=4,depth=32"),
    (
        "tsmttsm",
        "41x41x1000000",
        "c64",
        "cn",
        "unit=mma,numbers=split-parts,copy=bulk,apart=4,wm=3,wn=2,wk=1",
    ),
    ("tsmm", "1000000x57x57", "f32", "nn", "unit=mma,numbers=split,team=part,rows=256,wm=8,store=shared"),
    ("tsmm", "1000000x33x33", "c64", "nn", "unit=mma,numbers=split,rows=64,wm=4,store=direct"),
    (
        "tsmm",
        "1000000x49x49",
        "f32",
        "nn",
        "unit=mma,numbers=split,split_once=true,team=part,rows=128,wm=4,wn=1,store=shared",
    ),
    (
        "tsmm",
        "1000000x32x32",
        "f32",
        "nn",
        "unit=mma,numbers=split,team=part,rows=128,wm=4,wn=1,store=shared",
    ),
    (
        "tsmm",
        "1000000x64x64",
        "c64",
        "nn",
        "unit=mma,numbers=split,split_once=true,team=part,rows=64,wm=4,wn=1,store=shared",
    ),
    (
        "tsmm",
        "1000000x26x26",
        "c64",
        "nn",
        "unit=mma,numbers=split-parts,split_once=true,team=part,rows=128,wm=4,wn=1,store=shared",
    ),
    ("tsmm", "1000000x36x36", "c128", "nn", "unit=mma,instruction=m8n8k4,rows=32,wm=2,wn=5,store=shared"),
    (
        "tsmm",
        "1000000x64x64",
        "c128",
        "nn",
        "unit=mma,numbers=three,instruction=m16n8k4,rows=64,wm=4,wn=2,store=direct",
    ),
    (
        "tsmm",
        "1000000x57x57",
        "c128",
        "nn",
        "unit=mma,numbers=parts,instruction=m16n8k4,team=part,rows=128,wm=8,wn=1,depth=57,stages=1,store=direct",
    ),
    ("tsmm", "1000000x33x33", "c64", "nn", "unit=mma,numbers=split-parts,rows=64,wm=4,store=direct"),
    ("tsmm", "1000000x64x64", "f32", "nn", "staging=shared,rows=128,depth=32,tm=8,tn=8,steps=4"),
];

#[test]
fn forms_that_are_asked_for_compile_without_many_spills() {
    if !nvrtc_is_here() {
        return;
    }
    let target = Target::by_name("h200").expect("is known");
    for (family, shape, dtype, layout, parameters) in FORMS {
        let family = kernels::family(family).expect("is there");
        let problem = Problem::new(shape.parse().unwrap(), dtype.parse().unwrap(), layout.parse().unwrap());
        let given = parameters.split(',').map(|p| parse_parameter(p).unwrap());
        let given = given.fold(Choice::default(), |c, (name, value)| c.with(name, value));
        let choice = family.complete(&given, &problem, target).unwrap_or_else(|e| panic!("{e}"));
        let kernel = family.build(&problem, &choice).unwrap_or_else(|e| panic!("{e}"));
        let valid = validated(kernel.program(), target).unwrap_or_else(|e| panic!("{choice}: {e}"));
        let compiled = compiled(&cuda::emit(&valid).expect("has a spelling"), target.name);
        for used in &compiled.kernels {
            assert!(used.spill_store_bytes <= FEW_BYTES, "{} with {choice}: {used:?}", kernel.name);
        }
    }
}

/// Compiles the rungs of a ladder for the families that have their instructions; with next to no spills for the GPU
/// that they were tuned on.
fn every_rung_compiles(ladder: &str) {
    if !nvrtc_is_here() {
        return;
    }
    for recipe in kernels::ladder(ladder).expect("is there") {
        let variants = [("f32", "nn"), ("bf16", "nn"), ("f16", "nt"), ("f64", "nn")];
        let variants =
            variants.map(|(dtype, layout)| Variant::new(dtype.parse().unwrap(), layout.parse().unwrap()));
        let variant = variants.into_iter().find(|v| (recipe.schedule)(*v).is_ok()).expect("has a form");
        let kernel = kernels::build(recipe, variant).unwrap_or_else(|e| panic!("{e}"));
        let newer = ["hgemm", "dgemm"].contains(&ladder) || kernel.program().to_string().contains("cp_async");
        for target in FAMILIES {
            let valid = match validated(kernel.program(), Target::by_name(target).expect("is known")) {
                Ok(valid) => valid,
                Err(lacking) if newer => {
                    let why = lacking.to_string();
                    let lacks =
                        ["does not exist on", "bytes of shared memory"].iter().any(|w| why.contains(w));
                    assert!(lacks, "{}: {why}", kernel.name);
                    assert_ne!(*target, "h200", "{}", kernel.name);
                    continue;
                }
                Err(wrong) => panic!("{}: {wrong}", kernel.name),
            };
            let compiled = compiled(&cuda::emit(&valid).expect("has a spelling"), target);
            assert_eq!(compiled.warnings(), "", "{}: the compiler warns", kernel.name);
            if *target != "h200" {
                continue;
            }
            // For rows that start anywhere, 16-bit elements are copied one by one, and some wait in memory.
            let general = |name: &str| recipe.family == "hgemm" && name.ends_with("_2");
            for used in compiled.kernels.iter().filter(|k| !general(&k.name)) {
                assert!(used.spill_store_bytes <= FEW_BYTES, "{} for {target}: {used:?}", kernel.name);
                assert!(used.spill_load_bytes <= FEW_BYTES, "{} for {target}: {used:?}", kernel.name);
            }
        }
    }
}

/// What a thread may keep in memory of what should be in registers: a kernel that states how many of its blocks share
/// a multiprocessor may lack a register or two.
const FEW_BYTES: u32 = 16;

/// The CUDA C of a program of the repository.
pub fn emit(name: &str, target: &str) -> Source {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs").join(format!("{name}.ww"));
    let program = parse::program(&fs::read_to_string(path).expect("the program is there")).expect("reads");
    let checked = validate::check(program).expect("is well formed");
    let valid = validate::validate(checked, Target::by_name(target).expect("is known")).expect("is valid");
    cuda::emit(&valid).expect("has a spelling")
}

fn compiled(source: &Source, target: &str) -> compile::Compiled {
    let arch = Target::by_name(target).expect("is known").arch_for(&source.needs);
    let unit = compile::Source::new(&source.name, &source.text);
    compile::compile(&unit, &Options::for_arch(&arch))
        .unwrap_or_else(|error| panic!("{} for {arch}: {error}\n{}", source.name, source.text))
}

/// NVRTC 13.0 finds no registers for this kernel, and what it makes then gives wrong results on an H200.
#[test]
fn a_kernel_without_registers_is_refused() {
    if !nvrtc_is_here() {
        return;
    }
    let h200 = Target::by_name("h200").unwrap();
    let problem =
        Problem::new("33x33x2000000".parse().unwrap(), "c128".parse().unwrap(), "cn".parse().unwrap());
    let family = kernels::family("tsmttsm").unwrap();
    let ahead = |depth: i64| {
        let words =
            "unit=mma numbers=parts instruction=m16n8k4 reduction=two-pass wm=1 wn=3 wk=4 stages=2 parts=132";
        let choice = words.split(' ').map(|word| parse_parameter(word).unwrap());
        let choice =
            choice.fold(Choice::default(), |c, (name, value)| c.with(name, value)).with("depth", depth);
        let kernel = family.build(&problem, &choice).unwrap();
        let site = Site::elsewhere(h200);
        let ahead = site.source(kernel.program(), &problem).unwrap().compile();
        ahead.map(|ahead| ahead.registers).map_err(|d| d.to_string())
    };
    // 60 sums of doubles take 120 registers; with 16 rows at a time there are enough.
    assert!(ahead(16).unwrap() > Some(120));
    match ahead(64) {
        Err(refused) => {
            assert!(
                refused.contains("found no registers") && refused.contains("a smaller tile"),
                "{refused}"
            );
        }
        Ok(registers) => assert!(registers > Some(120), "another compiler finds some: {registers:?}"),
    }
}

/// Whether NVRTC can be loaded; if not, says what gets it.
pub fn nvrtc_is_here() -> bool {
    let found = locate::find(Library::Nvrtc);
    if found.path.is_none() {
        let advice = found.advice.unwrap_or_default();
        assert!(std::env::var_os("WARPWRIGHT_REQUIRE_NVRTC").is_none(), "NVRTC is required: {advice}");
        eprintln!("skipped: there is no NVRTC here, so nothing was compiled ({advice})");
    }
    found.path.is_some()
}
