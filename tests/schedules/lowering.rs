//! Lowering changes no value: every prefix of a schedule and every program of the library, lowered, gives the same in
//! order, and on threads in random order, where a missing barrier shows.

use std::path::Path;

use warpwright_core::ir::{Program, Stmt, Sync, parse, walk};
use warpwright_core::passes::lower;
use warpwright_core::schedule::Schedule;
use warpwright_sim::coroutine::{self, Arguments, Policy, Random};

use crate::check::arguments;
use crate::in_order;
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

/// Runs a lowered program on threads, in several orders, and compares with `expected`.
fn on_threads(lowered: &Program, args: &Arguments, expected: &Arguments, place: &str) {
    for policy in [Policy::latest(7), Policy::from_seed(1)] {
        let mut got = args.clone();
        coroutine::run(lowered, &mut got, policy)
            .unwrap_or_else(|e| panic!("{place}, on threads: {e}\n{lowered}"));
        assert_eq!(got.tensors, expected.tensors, "{place}, on threads:\n{lowered}");
    }
}

#[test]
fn every_prefix_means_the_same_lowered() {
    let specialized = format!("specialize(M%16, N%16, K%4){VIRTUAL}");
    // Of the last, which has everything twice, the later steps are enough.
    for (steps, first) in [(TILED, 0), (VIRTUAL, 0), (&specialized, 22)] {
        let schedule = Schedule::run(gemm(), steps).expect("a schedule");
        let prefixes = schedule.prefixes().expect("runs again");
        let lowered: Vec<Program> = prefixes.iter().map(|p| lower(p).expect("lowers")).collect();
        for (m, n, k) in [(17, 9, 6), (16, 16, 8), (1, 1, 1), (3, 0, 2), (2, 3, 0)] {
            let sizes = [("M", m), ("N", n), ("K", k)];
            let args = arguments(schedule.spec(), &sizes, m == 17, &mut Random::new(3));
            let mut expected = args.clone();
            in_order::run(schedule.spec(), &mut expected).expect("the specification runs");
            for (step, program) in lowered.iter().enumerate().skip(first) {
                let place = format!("step {step} at {sizes:?}");
                let mut got = args.clone();
                in_order::run(program, &mut got).unwrap_or_else(|e| panic!("{place}: {e}\n{program}"));
                assert_eq!(got.tensors, expected.tensors, "{place}, in order:\n{program}");
                on_threads(program, &args, &expected, &place);
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
        ("tsmttsm_atomic", &[("K", 40)]),
        ("reduce_two_pass", &[("n", 3000)]),
        ("scan_look_back", &[("n", 2100)]),
        ("hgemm_cp_async", &[("M", 40), ("N", 24), ("K", 136)]),
    ];
    for (name, sizes) in cases {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs").join(name).with_extension("ww");
        let program = parse::program(&std::fs::read_to_string(path).expect("is there")).expect("reads");
        let mut stripped = program.clone();
        stripped.body = walk::rewrite(stripped.body, &mut |stmt| match stmt {
            Stmt::Sync(Sync::Barrier) => Vec::new(),
            other => vec![other],
        });
        assert_ne!(stripped, program, "{name} has no barrier to lose");
        let args = arguments(&program, sizes, false, &mut Random::new(5));
        let mut expected = args.clone();
        coroutine::run(&program, &mut expected, Policy::from_seed(0))
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        on_threads(&lower(&stripped).expect(name), &args, &expected, name);
    }
}
