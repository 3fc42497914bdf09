//! Reductions taken apart: their initial stores, and their summands.

use warpwright_core::schedule::Schedule;

use crate::check::check;
use crate::pipelines::gemm;

const SIZES: [[(&str, i64); 3]; 5] = [
    [("M", 8), ("N", 8), ("K", 0)],
    [("M", 5), ("N", 3), ("K", 1)],
    [("M", 9), ("N", 7), ("K", 5)],
    [("M", 0), ("N", 8), ("K", 4)],
    [("M", 10), ("N", 9), ("K", 23)],
];

fn holds(steps: &str, threads: bool) {
    let schedule = Schedule::run(gemm(), steps).unwrap_or_else(|e| panic!("{e}"));
    for (at, sizes) in SIZES.iter().enumerate() {
        check(&schedule, sizes, 0, threads && at % 2 == 0, 7).unwrap_or_else(|e| panic!("{steps}\n{e}"));
    }
}

#[test]
fn initial_stores_stand_apart() {
    holds("decompose_reduction(acc.i)", false);
    holds("decompose_reduction(acc.j)\nreorder(acc.k, acc.j)", false);
    holds(
        "split(C.i, 4) -> io, ii\nset_scope(acc, reg)\ncompute_at(acc, C.io)\ndecompose_reduction(acc.i)\nunroll(acc.i)",
        false,
    );
    let twice = Schedule::run(gemm(), "decompose_reduction(acc.i)\ndecompose_reduction(acc.i)");
    assert!(twice.expect_err("is refused").to_string().contains("apart already"));
}
