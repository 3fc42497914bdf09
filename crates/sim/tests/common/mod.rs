//! The nine programs and their specifications.

// Each test file uses a part of this.
#![allow(dead_code)]

use warpwright_core::ir::{Program, parse};

/// The text of a program of the repository.
pub fn text(name: &str) -> String {
    let path = format!("{}/../../programs/{name}.ww", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Reads a program.
pub fn read(text: &str) -> Program {
    parse::program(text).unwrap_or_else(|d| panic!("{d}\n{text}"))
}

/// The specification of a program.
pub fn specification(name: &str) -> String {
    text(&format!("specifications/{name}"))
}

/// Sizes to run a program with.
pub type Case = (&'static str, &'static [(&'static str, i64)]);

/// Programs with sizes: 0, 1, primes, ragged, several grids.
pub const CASES: &[Case] = &[
    ("sgemm_block_tiling", &[("M", 130), ("N", 129), ("K", 9)]),
    ("sgemm_block_tiling", &[("M", 5), ("N", 3), ("K", 0)]),
    ("sgemm_block_tiling", &[("M", 1), ("N", 1), ("K", 17)]),
    ("sgemm_block_tiling", &[("M", 0), ("N", 7), ("K", 3)]),
    ("sgemm_block_tiling", &[("M", 128), ("N", 256), ("K", 16)]),
    ("sgemm_block_tiling", &[("M", 127), ("N", 131), ("K", 23)]),
    ("sgemm_virtual_threads", &[("M", 68), ("N", 132), ("K", 17), ("lda", 136), ("ldb", 72)]),
    ("sgemm_virtual_threads", &[("M", 7), ("N", 5), ("K", 3), ("lda", 8), ("ldb", 8)]),
    ("sgemm_virtual_threads", &[("M", 131), ("N", 1), ("K", 0)]),
    ("tsmttsm_atomic", &[("K", 61), ("G", 2)]),
    ("tsmttsm_atomic", &[("K", 5), ("G", 3)]),
    ("tsmttsm_atomic", &[("K", 0), ("G", 1)]),
    ("tsmttsm_atomic", &[("K", 1), ("G", 4)]),
    ("tsmttsm_two_pass", &[("K", 100)]),
    ("tsmttsm_two_pass", &[("K", 0)]),
    ("tsmttsm_two_pass", &[("K", 6400)]),
    ("hgemm_cp_async", &[("M", 70), ("N", 130), ("K", 136), ("lda", 136), ("ldb", 136)]),
    ("hgemm_cp_async", &[("M", 16), ("N", 16), ("K", 0), ("lda", 8), ("ldb", 16)]),
    ("hgemm_cp_async", &[("M", 3), ("N", 9), ("K", 33), ("lda", 40), ("ldb", 16)]),
    ("hgemm_cp_async", &[("M", 129), ("N", 1), ("K", 1)]),
    ("hgemm_tma_wgmma", &[("M", 130), ("N", 70), ("K", 330), ("G", 2)]),
    ("hgemm_tma_wgmma", &[("M", 70), ("N", 70), ("K", 0), ("G", 1)]),
    ("hgemm_tma_wgmma", &[("M", 257), ("N", 200), ("K", 65), ("G", 3)]),
    ("hgemm_tma_wgmma", &[("M", 1), ("N", 1), ("K", 1), ("G", 2)]),
    ("reduce_two_pass", &[("n", 5000)]),
    ("reduce_two_pass", &[("n", 0)]),
    ("reduce_two_pass", &[("n", 1)]),
    ("scan_look_back", &[("n", 2500)]),
    ("scan_look_back", &[("n", 1)]),
    ("scan_look_back", &[("n", 0)]),
    ("scan_look_back", &[("n", 1024)]),
    ("sgemm_split_k", &[("M", 65), ("N", 67), ("K", 100)]),
    ("sgemm_split_k", &[("M", 3), ("N", 3), ("K", 5)]),
    ("sgemm_split_k", &[("M", 2), ("N", 2), ("K", 0)]),
    ("sgemm_split_k", &[("M", 0), ("N", 2), ("K", 5)]),
];
