//! Lowering changes no value: every prefix of a schedule and every program of the library, lowered, gives the same in
//! order, and on threads in random order, where a missing barrier shows.

use std::path::Path;

use warpwright_core::ir::{Program, Stmt, Sync, parse, walk};
use warpwright_core::passes::lower;
use warpwright_core::schedule::Schedule;
use warpwright_sim::Mode;

use crate::check::{exact, threads, with_aligned_rows};
use crate::pipelines::{TILED, gemm};

/// As [`TILED`], with two virtual threads for each thread in both directions.
const VIRTUAL: &str = "
split(C.i, 16) -> by, i
split(C.j, 16) -> bx, j
split(C.i, 8) -> vi, i
split(C.j, 8) -> vj, j
split(C.i, 2) -> ty, i
split(C.j, 2) -> tx, j
reorder(C.by, C.bx, C.vi, C.vj, C.ty, C.tx, C.i, C.j)
bind(C.by, block.y)
bind(C.bx, block.x)
bind(C.vi, vthread)
bind(C.vj, vthread)
bind(C.ty, C.tx, threads)
set_scope(acc, reg)
compute_at(acc, C.tx)
split(acc.k, 4) -> ko, ki
reorder(acc.ko, acc.ki, acc.i, acc.j)
cache_read(A, acc, shared) -> As
compute_at(As, acc.ko)
split(As.r, 4) -> u, r
reorder(As.r, As.c, As.u)
bind(As.r, As.c, threads)
unroll(As.u)
cache_read(As, acc, reg) -> ra
compute_at(ra, acc.ki)
unroll(acc.ki, acc.i, acc.j, ra.r, ra.c, C.i, C.j)
";

#[test]
fn every_prefix_means_the_same_lowered() {
    let specialized = format!("specialize(M%16, N%16, K%4){VIRTUAL}");
    // Of the last, which has everything twice, the later steps are enough.
    for (steps, first) in [(TILED, 0), (VIRTUAL, 0), (&specialized, 22)] {
        let schedule = Schedule::run(gemm(), steps).expect("a schedule");
        let prefixes = schedule.prefixes().expect("runs again");
        for (step, program) in prefixes.iter().enumerate().skip(first) {
            let lowered = lower(program).expect("lowers");
            for (m, n, k) in [(17, 9, 6), (16, 16, 8), (1, 1, 1), (3, 0, 2), (2, 3, 0)] {
                let sizes = [("M", m), ("N", n), ("K", k)];
                let sizes = with_aligned_rows(schedule.spec(), &sizes);
                exact(schedule.spec(), &lowered, &sizes, Mode::InOrder, 3)
                    .and_then(|()| exact(schedule.spec(), &lowered, &sizes, Mode::Simt, 3))
                    .and_then(|()| threads(schedule.spec(), &lowered, &sizes, 3))
                    .unwrap_or_else(|e| panic!("{e}, step {step}:\n{lowered}"));
            }
        }
    }
}

#[test]
fn barriers_put_back_into_finished_programs_are_enough() {
    let cases: [(&str, &[(&str, i64)]); 7] = [
        ("sgemm_block_tiling", &[("M", 130), ("N", 40), ("K", 20)]),
        ("sgemm_split_k", &[("M", 65), ("N", 20), ("K", 90)]),
        ("sgemm_virtual_threads", &[("M", 20), ("N", 130), ("K", 35)]),
        ("tsmttsm_atomic", &[("K", 40), ("G", 3)]),
        ("reduce_two_pass", &[("n", 3000)]),
        ("scan_look_back", &[("n", 2100)]),
        ("hgemm_cp_async", &[("M", 40), ("N", 24), ("K", 136)]),
    ];
    for (name, sizes) in cases {
        let (program, spec) = (read(name), read(&format!("specifications/{name}")));
        let mut stripped = program.clone();
        stripped.body = walk::rewrite(stripped.body, &mut |stmt| match stmt {
            Stmt::Sync(Sync::Barrier) => Vec::new(),
            other => vec![other],
        });
        assert_ne!(stripped, program, "{name} has no barrier to lose");
        let lowered = lower(&stripped).unwrap_or_else(|e| panic!("{name}: {e}"));
        let sizes = with_aligned_rows(&spec, sizes);
        exact(&spec, &lowered, &sizes, Mode::Simt, 5)
            .and_then(|()| threads(&spec, &lowered, &sizes, 5))
            .unwrap_or_else(|e| panic!("{name}: {e}\n{lowered}"));
    }
}

/// A program of the library.
fn read(name: &str) -> Program {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs").join(name).with_extension("ww");
    parse::program(&std::fs::read_to_string(path).expect("is there")).expect("reads")
}
