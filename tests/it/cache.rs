//! A damaged entry of the cache of compiled kernels, with a kernel and a compiler as users have them.
//!
//! The command compiles only for a GPU that then runs the kernel, so this asks the library, which it asks too; no GPU is
//! needed, but NVRTC is (see `conformance`). What the cache makes of every kind of damage, without NVRTC, is tested
//! beside it in `crates/cuda`.

use std::fs;
use std::path::PathBuf;

use warpwright_core::target::Target;
use warpwright_cuda::{CompileCache, Options, compile};

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
