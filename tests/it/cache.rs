//! The cache of compiled kernels, with kernels and a compiler as users have them: entries that are damaged, and kernels
//! that are compiled ahead.
//!
//! No GPU is needed, but NVRTC is (see `conformance`). What the cache makes of every kind of damage, without NVRTC, is tested
//! beside it in `crates/cuda`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use warpwright_core::target::Target;
use warpwright_cuda::{CompileCache, Options, compile};

use crate::cli::refusal;
use crate::conformance::{emit, nvrtc_is_here};

const TARGET: &str = "a100-40gb";

#[test]
fn a_damaged_entry_is_said_and_compiled_anew() {
    if !nvrtc_is_here() {
        return;
    }
    let directory = std::env::temp_dir().join(format!("warpwright-damaged-cache-{}", std::process::id()));
    let cache = CompileCache::at(&directory);
    let source = emit("sgemm_block_tiling", TARGET);
    let options = Options::for_arch(Target::by_name(TARGET).expect("is known").arch_for(&source.needs));
    let unit = compile::Source::new(&source.name, &source.text);
    let ask = || cache.compile(&unit, &options).unwrap_or_else(|e| panic!("{e}"));

    let sound = ask();
    assert!(!sound.hit && sound.notices.is_empty(), "{:?}", sound.notices);
    let entries: Vec<PathBuf> = fs::read_dir(&directory).unwrap().map(|e| e.unwrap().path()).collect();
    let [entry] = &entries[..] else { panic!("one kernel is one entry: {entries:?}") };
    let bytes = fs::read(entry).unwrap();
    let mut flipped = bytes.clone();
    flipped[bytes.len() / 2] ^= 1;
    for (damaged, said) in [(flipped, "is damaged"), (bytes[..40].to_vec(), "is cut short")] {
        fs::write(entry, damaged).unwrap();
        let again = ask();
        let [notice] = &again.notices[..] else { panic!("one notice is wanted: {:?}", again.notices) };
        let notice = notice.to_string();
        assert!(notice.contains(said) && notice.contains("compiled anew"), "{notice}");
        // The compiler's log holds times, so only the machine code is the same.
        assert!(!again.hit && again.compiled.cubin == sound.compiled.cubin);
        assert!(ask().hit, "the entry is whole again");
    }
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn what_was_compiled_ahead_is_found_again() {
    if !nvrtc_is_here() {
        return;
    }
    let directory = std::env::temp_dir().join(format!("warpwright-compiled-ahead-{}", std::process::id()));
    let compile_with = |candidates: usize, parameters: &[&str]| -> [u64; 3] {
        let output = Command::new(env!("CARGO_BIN_EXE_warpwright"))
            .args("compile 20x20x100000 --dtype f64 --layout tn --json".split(' '))
            .args(["--candidates", &candidates.to_string()])
            .args(parameters.iter().flat_map(|p| ["--param", p]))
            .env("WARPWRIGHT_CACHE", &directory)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let product = &result["products"][0];
        assert!(product["registers"].as_u64() > Some(16), "{product}");
        ["compiled", "found", "failed"].map(|name| product[name].as_u64().unwrap())
    };
    let compile = |candidates| compile_with(candidates, &[]);
    let entries = || fs::read_dir(&directory).unwrap().count() as u64;

    let [of_chosen, 0, 0] = compile(0) else { panic!("nothing is there yet") };
    assert_eq!(entries(), of_chosen, "a kernel is an entry");
    let [compiled, _, 0] = compile(4) else { panic!("candidates that cannot be made") };
    assert_eq!((entries(), compiled > 0), (of_chosen + compiled, true));
    let [again, found, 0] = compile(4) else { panic!("as before") };
    assert_eq!((again, found >= of_chosen + compiled), (0, true));
    let [threads, _, 0] = compile_with(2, &["unit=fma", "copy=rows"]) else { panic!("as before") };
    assert!(threads > 0);
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn what_cannot_be_kept_is_not_said_to_be() {
    if !nvrtc_is_here() {
        return;
    }
    let file = std::env::temp_dir().join(format!("warpwright-no-directory-{}", std::process::id()));
    fs::write(&file, "").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_warpwright"))
        .args("compile 20x20x100000 --dtype f64 --layout tn".split(' '))
        .env("WARPWRIGHT_CACHE", file.join("kernels"))
        .output()
        .unwrap();
    fs::remove_file(&file).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("would be lost") && said.contains("set WARPWRIGHT_CACHE"), "{said}");
}

#[test]
fn compiling_ahead_says_for_which_gpus_it_can() {
    assert!(refusal("compile 20x20x1000 --gpu voodoo2").contains("use one of gtx980"));
    assert!(refusal("compile").contains("MxNxK"));
    assert!(refusal("compile 20x20x1000 --layout tn --param unit=fma").contains("--candidates"));
    assert!(refusal("compile 20x20x1000 --layout tn --candidates 2 --param unit=mma,tm=4").contains("tm"));
}
