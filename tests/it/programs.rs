//! The finished programs of the repository run by the command, and calculate on small integers what a GPU has to.

use std::fs;
use std::path::PathBuf;

use warpwright::compile;
use warpwright::gpu;
use warpwright::matrix::Matrix;
use warpwright::program::{calls, cases, differences};
use warpwright_core::ir::{Program, parse};
use warpwright_core::target::{self, Target};
use warpwright_cuda::{Device, Library, device, locate};
use warpwright_sim::{Arguments, Options, Tensor, simulate};

use crate::cli::{json, refusal};

/// The finished programs; the specification of each has the same name.
const PROGRAMS: [&str; 9] = [
    "hgemm_cp_async",
    "hgemm_tma_wgmma",
    "reduce_two_pass",
    "scan_look_back",
    "sgemm_block_tiling",
    "sgemm_split_k",
    "sgemm_virtual_threads",
    "tsmttsm_atomic",
    "tsmttsm_two_pass",
];

fn file(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("programs").join(format!("{name}.ww"));
    path.display().to_string()
}

fn read(name: &str) -> Program {
    parse::program(&fs::read_to_string(file(name)).expect("the file is there")).expect("reads")
}

fn specification(name: &str) -> Program {
    read(&format!("specifications/{name}"))
}

#[test]
fn the_command_checks_a_program_against_its_specification() {
    for name in PROGRAMS {
        let specification = file(&format!("specifications/{name}"));
        let found = json(&format!("check {} --spec {specification} --json", file(name)), 0);
        assert_eq!(found["passed"], true, "{name}");
        let cases = found["cases"].as_array().unwrap();
        assert!(cases.len() >= 5 && cases.iter().all(|c| c["hazards"].as_array().unwrap().is_empty()));
        assert!(cases.iter().any(|c| c["compared"].as_u64().unwrap() > 1), "{name}");
    }
}

#[test]
fn a_program_without_a_specification_is_compared_with_itself_in_order() {
    let found = json(&format!("check {} --set n=3000 --json", file("scan_look_back")), 0);
    assert_eq!(found["specification"], "itself, run in order");
    assert_eq!(found["cases"][0]["sizes"]["n"], 3000);
}

#[test]
fn a_program_that_is_not_its_specification_fails() {
    let (program, other) = (file("reduce_two_pass"), file("specifications/reduce_two_pass"));
    let wrong = std::env::temp_dir().join(format!("warpwright-wrong-{}.ww", std::process::id()));
    fs::write(&wrong, fs::read_to_string(other).unwrap().replace("0..n", "1..n")).unwrap();
    let found = json(&format!("check {program} --spec {} --set n=9 --json", wrong.display()), 1);
    fs::remove_file(&wrong).unwrap();
    assert_eq!((found["passed"].as_bool(), found["cases"][0]["first"].as_str()), (Some(false), Some("y[0]")));
}

#[test]
fn sizes_that_do_not_exist_and_kernels_with_a_specification_are_refused() {
    let message = refusal(&format!("check {} --set m=3", file("scan_look_back")));
    assert!(message.contains("has no size `m`; use one of n"), "{message}");
    assert!(refusal("check sgemm_naive --set M=3").contains("give the size by --size"));
}

/// What the comparison on a GPU does, with the simulator in the place of the GPU.
#[test]
fn on_small_integers_a_program_gives_the_numbers_of_its_specification() {
    for name in PROGRAMS {
        let (program, specification) = (read(name), specification(name));
        let valid = compile::validated(&program, target::DEFAULT).expect("is valid");
        for sizes in cases(&program, &Default::default(), 3).expect("have sizes") {
            for call in calls(valid.program(), &specification, &sizes, 1).expect("can be called") {
                let mut arguments = Arguments {
                    integers: call.integers.clone(),
                    scalars: call.scalars.clone(),
                    tensors: call.before.iter().map(|(n, m)| (n.clone(), tensor(m))).collect(),
                };
                simulate(valid.program(), &mut arguments, &Options::default()).expect("runs");
                let mut found = call.before.clone();
                found.retain(|name, _| call.expected.contains_key(name));
                for (name, matrix) in &mut found {
                    let bytes = &arguments.tensors[name].bytes;
                    let length = bytes.len().min(matrix.bytes().len());
                    matrix.bytes_mut()[..length].copy_from_slice(&bytes[..length]);
                }
                let (_, differing, first) = differences(&call, &found);
                assert_eq!((differing, first), (0, None), "{name} {sizes:?}");
                let Some(largest) = found.values_mut().max_by_key(|m| m.rows() * m.columns()) else {
                    continue;
                };
                if largest.rows() * largest.columns() > 0 {
                    largest.bytes_mut()[..2].fill(0xff);
                    assert_eq!(differences(&call, &found).1, 1, "{name}: a NaN is a difference");
                }
            }
        }
    }
}

fn tensor(matrix: &Matrix) -> Tensor {
    Tensor::from(matrix.bytes().to_vec())
}

#[test]
fn on_a_gpu_they_give_the_numbers_of_their_specifications() {
    if let Some(reason) = device::list().reason {
        eprintln!("skipped: no GPU here ({})", reason.to_string().lines().next().unwrap_or(""));
        return;
    }
    if let Some(advice) = locate::find(Library::Nvrtc).advice {
        eprintln!("skipped: no NVRTC here ({advice})");
        return;
    }
    let device = Device::open(0).expect("opens");
    let target: &Target = gpu::target_of(&device).expect("is known");
    for name in PROGRAMS {
        let program = read(name);
        let valid = match compile::validated(&program, target) {
            Ok(valid) => valid,
            Err(lacking) => {
                eprintln!("skipped: {name} is not for this GPU ({lacking})");
                continue;
            }
        };
        for sizes in cases(&program, &Default::default(), 5).expect("have sizes") {
            let case = gpu::program::check(&device, target, &valid, &specification(name), &sizes, 1)
                .unwrap_or_else(|e| panic!("{name} {sizes:?}: {e}"));
            assert!(case.passed, "{name}: {case:?}");
        }
    }
}
