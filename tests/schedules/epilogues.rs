//! Consumers that follow their producer's loops.

use warpwright_core::ir::{Program, parse};
use warpwright_core::schedule::Schedule;

use crate::check::check;
use crate::pipelines::gemm;

const SIZES: [[(&str, i64); 3]; 6] = [
    [("M", 16), ("N", 8), ("K", 0)],
    [("M", 5), ("N", 3), ("K", 1)],
    [("M", 17), ("N", 9), ("K", 8)],
    [("M", 16), ("N", 8), ("K", 11)],
    [("M", 0), ("N", 8), ("K", 4)],
    [("M", 19), ("N", 11), ("K", 13)],
];

/// The loops of the sums in tiles of 16 x 8, threads of 4 x 2.
const TILES: &str = "
split(acc.i, 16) -> by, i
split(acc.j, 8) -> bx, j
split(acc.i, 4) -> ty, i
split(acc.j, 2) -> tx, j
reorder(acc.by, acc.bx, acc.ty, acc.tx, acc.i, acc.j)
";

fn holds(steps: &str, threads: bool) {
    let schedule = Schedule::run(gemm(), steps).unwrap_or_else(|e| panic!("{e}"));
    for (at, sizes) in SIZES.iter().enumerate() {
        check(&schedule, sizes, 0, threads && at % 2 == 0, 11).unwrap_or_else(|e| panic!("{steps}\n{e}"));
    }
}

#[test]
fn the_epilogue_of_a_product_follows_its_sums() {
    for at in ["by", "bx", "ty", "tx", "i", "j"] {
        holds(&format!("{TILES}reverse_compute_at(C, acc.{at})"), false);
    }
    holds("reverse_compute_at(C, acc.i)", false);
    holds("split(acc.i, 5) -> io, i\nreverse_compute_at(C, acc.io)", false);
}

#[test]
fn a_kernel_is_shaped_from_its_sums() {
    let steps = format!(
        "{TILES}
bind(acc.by, block.y)
bind(acc.bx, block.x)
bind(acc.ty, acc.tx, threads)
set_scope(acc, reg)
reverse_compute_at(C, acc.tx)
split(acc.k, 4) -> ko, ki
reorder(acc.ko, acc.ki, acc.i, acc.j)
cache_read(A, acc, shared) -> As
compute_at(As, acc.ko)
split(As.r, 4) -> u, r
bind(As.r, As.c, threads)
cache_read(B, acc, shared) -> Bs
compute_at(Bs, acc.ko)
split(Bs.r, 2) -> u, r
bind(Bs.r, Bs.c, threads)
unroll(acc.ki, acc.i, acc.j, C.i, C.j)
"
    );
    holds(&steps, true);
}

#[test]
fn a_tile_in_shared_memory_is_stored_by_the_whole_block() {
    // The sums of a block go to shared memory; the epilogue reads them transposed over its threads.
    let steps = "
cache_write(acc, reg) -> sum
split(acc.i, 16) -> by, i
split(acc.j, 8) -> bx, j
reorder(acc.by, acc.bx, acc.i, acc.j)
bind(acc.by, block.y)
bind(acc.bx, block.x)
set_scope(acc, shared)
reverse_compute_at(C, acc.bx)
bind(acc.i, acc.j, threads)
compute_at(sum, acc.j)
reorder(C.j, C.i)
bind(C.j, C.i, threads)
";
    holds(steps, true);
}

fn two_stages() -> Program {
    parse::program(
        "program p(M: size, N: size, x: in f32[M, N], u: out f32[M, N], y: out f32[N, M], z: out f32[M, N, 3]) {
          alloc t: f32[M, N] global
          for i in 0..M, j in 0..N { t[i, j] = x[i, j] * x[i, j] }
          for i in 0..M, j in 0..N { u[i, j] = t[i, j] + x[i, j] }
          for j in 0..N, i in 0..M { y[j, i] = t[i, j] + x[i, j] }
          for i in 0..M, j in 0..N, c in 0..3 { z[i, j, c] = t[i, j] * x[i, j] }
        }",
    )
    .expect("reads")
}

#[test]
fn several_consumers_follow_one_producer() {
    let steps = "
split(t.i, 4) -> io, i
reverse_compute_at(u, t.io)
reverse_compute_at(y, t.i)
reverse_compute_at(z, t.io)
";
    let schedule = Schedule::run(two_stages(), steps).unwrap_or_else(|e| panic!("{e}"));
    for (m, n) in [(0, 3), (1, 1), (9, 5), (8, 4)] {
        check(&schedule, &[("M", m), ("N", n)], 0, false, 3).unwrap_or_else(|e| panic!("{e}"));
    }
    let text = schedule.program().to_string();
    assert!(text.contains("t: f32[4, N]"), "with its last consumer inside, the stage shrinks: {text}");
}

#[test]
fn what_cannot_follow_is_said() {
    let refused = |steps: &str, words: &str| {
        let error = Schedule::run(gemm(), steps).expect_err("is refused").to_string();
        assert!(error.contains(words), "{error}");
    };
    refused("reverse_compute_at(C, acc.k)", "attach it further out");
    refused("reverse_compute_at(C, acc.z)", "there is no loop");
    refused("reverse_compute_at(A, acc.i)", "nothing beside that loop computes `A`");
    refused("reverse_compute_at(acc, C.i)", "is computed before that loop");
    refused("split(C.i, 2) -> io, i\nreverse_compute_at(C, acc.i)", "changed already");
    let uneven = "split(acc.i, 8) -> io, i\nsplit(acc.i, 3) -> it, i\nreverse_compute_at(C, acc.it)";
    refused(uneven, "choose factors that divide");
    refused(
        "split(acc.i, 4) -> by, i\nbind(acc.by, block.x)\nbind(acc.i, threads)\nset_scope(acc, shared)\nreverse_compute_at(C, acc.i)",
        "belongs to the block",
    );
}

#[test]
fn what_is_complete_only_after_the_loop_cannot_be_used_inside() {
    let program = parse::program(
        "program p(n: size, x: in f32[n, 3], y: out f32[n]) {
          alloc t: f32[n] global
          for r in 0..3, i in 0..n { t[i] = x[i, r] }
          for i in 0..n { y[i] = t[i] }
        }",
    );
    let error = Schedule::run(program.expect("reads"), "reverse_compute_at(y, t.i)").expect_err("is refused");
    assert!(error.to_string().contains("attach it outside `t.r`"), "{error}");
}

#[test]
fn what_stands_between_is_not_overtaken() {
    let program = |between: &str| {
        let text = format!(
            "program p(n: size, x: in f32[n], w: inout f32[n], y: inout f32[n]) {{
              alloc t: f32[n] global
              for i in 0..n {{ t[i] = x[i] }}
              {between}
              for i in 0..n {{ y[i] = t[i] * w[i] }}
            }}"
        );
        parse::program(&text).expect("reads")
    };
    let moved = Schedule::run(program("for i in 0..n { t[i] = x[i] }"), "reverse_compute_at(y, t.i)");
    assert!(moved.expect_err("t changes").to_string().contains("several"));
    for (between, words) in [
        ("for i in 0..n { w[i] = x[i] }", "it reads `w`"),
        ("for i in 0..n { w[i] = y[i] }", "it reads `w`"),
        ("for i in 0..n { y[i] = x[i] }", "computed by several nests"),
    ] {
        let error = Schedule::run(program(between), "reverse_compute_at(y, t.i)").expect_err("is refused");
        assert!(error.to_string().contains(words), "{error}");
    }
    let schedule = Schedule::run(program(""), "reverse_compute_at(y, t.i)").unwrap_or_else(|e| panic!("{e}"));
    check(&schedule, &[("n", 5)], 0, false, 5).unwrap_or_else(|e| panic!("{e}"));
}
