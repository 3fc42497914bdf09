//! Tests by text: every program in the repository is well-formed, and one edit of its text is refused for the reason
//! that the edit is wrong.

mod hostile;
mod order;
mod structure;
mod target;

use crate::diag::Diagnosis;
use crate::ir::parse;
use crate::ir::validate::{WellFormed, check};

/// The text of a program of the repository: `"scan_look_back"`, `"pictures/roles_inside"`.
fn text(name: &str) -> String {
    let path = format!("{}/../../programs/{name}.ww", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// The text of a program with `old` replaced by `new`; `old` must occur.
fn edited(name: &str, old: &str, new: &str) -> String {
    let text = text(name);
    assert!(text.contains(old), "`{old}` does not occur in {name}");
    text.replacen(old, new, 1)
}

fn checked(text: &str) -> Result<WellFormed, Vec<Diagnosis>> {
    check(parse::program(text).unwrap_or_else(|e| panic!("{e}\n{text}")))
}

/// Asserts that some fault mentions every one of `words`.
fn assert_fault(faults: &[Diagnosis], words: &[&str]) {
    let said: Vec<_> = faults.iter().map(ToString::to_string).collect();
    let hit = said.iter().any(|s| words.iter().all(|w| s.contains(w)));
    assert!(hit, "no fault says {words:?}:\n{}", said.join("\n"));
}

/// Asserts that `text` is refused by [`check`] with a fault that mentions every one of `words`.
fn refused(text: &str, words: &[&str]) {
    match checked(text) {
        Ok(_) => panic!("accepted, but should be refused for {words:?}:\n{text}"),
        Err(faults) => assert_fault(&faults, words),
    }
}

const FINISHED: [&str; 9] = [
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

const PICTURES: [&str; 7] = [
    "pictures/roles_inside",
    "pictures/thread_loop_not_split",
    "pictures/thread_loop_split",
    "pictures/tiling_0_specification",
    "pictures/tiling_1_bound",
    "pictures/tiling_2_staged",
    "pictures/warp_tile_before_tensorize",
];
