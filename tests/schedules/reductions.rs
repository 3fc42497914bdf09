//! Reductions taken apart: their initial stores, and their summands.

use warpwright::compile;
use warpwright_core::ir::parse;
use warpwright_core::passes;
use warpwright_core::schedule::Schedule;
use warpwright_core::target;
use warpwright_sim::exact::{self, Trials};

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

/// Whether the program is a kernel for a GPU, besides what running it shows.
fn is_a_kernel(steps: &str) {
    let schedule = Schedule::run(gemm(), steps).unwrap_or_else(|e| panic!("{e}"));
    let valid =
        compile::validated(schedule.program(), target::DEFAULT).unwrap_or_else(|e| panic!("{steps}\n{e}"));
    compile::cuda(&valid).unwrap_or_else(|e| panic!("{steps}\n{e}"));
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

#[test]
fn parts_are_added_in_order_or_atomically() {
    for order in ["", ", order=cyclic"] {
        holds(&format!("split_reduce(acc.k, 3{order}) -> part, s"), false);
        holds(&format!("split(acc.k, 2) -> ko, ki\nsplit_reduce(acc.ko, 4{order}) -> part, s"), false);
        holds(&format!("split_reduce(acc.k, 3, combine=atomic{order}) -> part, s"), false);
        holds(&format!("split_reduce(acc.k, 3, combine=shared{order}) -> part, s"), false);
    }
    holds("split(acc.k, 4) -> ko, s\nrfactor(acc.s) -> part", false);
    holds("split(acc.k, 4) -> ko, s\nrfactor(acc.ko, combine=atomic) -> part", false);
    holds("split_reduce(acc.k, 3, order=cyclic) -> a, s\nsplit_reduce(a.k, 2) -> b, t", false);
}

/// The parts of a product in tiles of 4 x 4, steps of 2, in a grid of their own.
fn tiled_parts(order: &str) -> String {
    format!(
        "
split(acc.k, 2) -> ko, ki
split_reduce(acc.ko, 3{order}) -> part, s
cache_write(part, reg) -> mine
split(part.i, 4) -> by, ty
split(part.j, 4) -> bx, tx
reorder(part.s, part.by, part.bx, part.ty, part.tx)
bind(part.s, block.z)
bind(part.by, block.y)
bind(part.bx, block.x)
bind(part.ty, part.tx, threads)
compute_at(mine, part.tx)
cache_read(A, mine, shared) -> As
compute_at(As, mine.ko)
bind(As.r, As.c, threads)
cache_read(B, mine, shared) -> Bs
compute_at(Bs, mine.ko)
bind(Bs.r, Bs.c, threads)
split(C.i, 4) -> by, ty
split(C.j, 4) -> bx, tx
"
    )
}

#[test]
fn two_launches_make_a_split_product() {
    let second = "
reorder(C.by, C.bx, C.ty, C.tx)
bind(C.by, block.y)
bind(C.bx, block.x)
bind(C.ty, C.tx, threads)
set_scope(acc, reg)
compute_at(acc, C.tx)
unroll(acc.s)
";
    holds(&format!("{}{second}", tiled_parts("")), true);
    holds(&format!("{}{second}pipeline(mine.ko, 3, via=shared)", tiled_parts(", order=cyclic")), true);
}

#[test]
fn atomic_additions_need_no_second_pass() {
    // The loops over C stand twice: before, with a 0, where beta C is stored, and after, where parts are added.
    let steps = "
split_reduce(acc.k, 3, combine=atomic) -> part, s
split(C.j0, 4) -> j0, t0
bind(C.i0, block.y)
bind(C.j0, block.x)
bind(C.t0, threads)
split(C.i, 4) -> by, ty
split(C.j, 4) -> bx, tx
reorder(C.by, C.bx, C.ty, C.tx)
bind(C.s, block.z)
bind(C.by, block.y)
bind(C.bx, block.x)
bind(C.ty, C.tx, threads)
set_scope(part, reg)
compute_at(part, C.tx)
";
    holds(steps, true);
    is_a_kernel(steps);
}

#[test]
fn atomic_additions_nest() {
    // The threads of a block each add to the result what they have of the block's part.
    let steps = "
split(acc.k, 4) -> ko, t
split_reduce(acc.ko, 3, combine=atomic) -> part, s
rfactor(part.t, combine=atomic) -> mine
split(C.j0, 4) -> j0, t0
bind(C.i0, block.y)
bind(C.j0, block.x)
bind(C.t0, threads)
split(C.j, 2) -> j, jt
reorder(C.s, C.i, C.j, C.t, C.jt)
bind(C.s, block.z)
bind(C.i, block.y)
bind(C.j, block.x)
bind(C.t, C.jt, threads)
set_scope(mine, reg)
compute_at(mine, C.jt)
";
    holds(steps, true);
    is_a_kernel(steps);
}

#[test]
fn a_block_adds_its_slices_in_shared_memory() {
    let steps = "
split(acc.k, 4) -> ko, s
rfactor(acc.s, combine=shared) -> part
split(C.i, 2) -> by, ty
split(C.j, 4) -> bx, tx
reorder(C.by, C.bx, C.ty, C.tx)
bind(C.by, block.y)
bind(C.bx, block.x)
bind(C.ty, C.tx, threads)
set_scope(acc, reg)
compute_at(acc, C.tx)
cache_write(part, reg) -> mine
compute_at(part, C.bx)
bind(part.s, part.i, part.j, threads)
compute_at(mine, part.j)
";
    holds(steps, true);
}

#[test]
fn lanes_of_a_warp_exchange_their_parts() {
    for order in ["", ", order=cyclic"] {
        holds(&format!("split_reduce(acc.k, 32, combine=shuffle{order}) -> part, s"), true);
    }
    // A warp for each element, four to a block; the epilogue follows.
    let steps = "
split_reduce(acc.k, 32, combine=shuffle, order=cyclic) -> part, s
set_scope(acc, reg)
reverse_compute_at(C, acc.s)
split(acc.j, 4) -> bx, w
bind(acc.i, block.y)
bind(acc.bx, block.x)
bind(acc.w, threads@32)
";
    holds(steps, true);
    is_a_kernel(steps);
    holds("split(acc.k, 32) -> ko, s\nrfactor(acc.s, combine=shuffle) -> part\nbind(acc.i, block.x)", true);
}

#[test]
fn lanes_find_the_largest() {
    let text = "program p(M: size, K: size, A: in f32[M, K], C: out f32[M]) {
      for i in 0..M { C[i] = -inf  for k in 0..K { C[i] max= A[i, k] } }
    }";
    let spec = parse::program(text).expect("reads");
    let steps = "split_reduce(C.k, 32, combine=shuffle) -> part, s\nbind(C.i, block.x)";
    let schedule = Schedule::run(spec, steps).unwrap_or_else(|e| panic!("{e}"));
    assert!(schedule.program().to_string().contains("part[s] max= other[s]"), "{}", schedule.program());
    let lowered = passes::lower(schedule.program()).expect("is a kernel");
    let sizes = [("M", 3), ("K", 70)];
    let report = exact::check(schedule.spec(), &lowered, &sizes, &Trials::default()).expect("runs");
    assert!(report.passed(), "{report:?}");
}

#[test]
fn threads_add_in_shared_memory_and_blocks_to_the_result() {
    let steps = "
split(acc.k, 4) -> ko, t
split_reduce(acc.ko, 3, combine=atomic) -> part, s
rfactor(part.t, combine=shared_atomic) -> mine
split(C.j0, 4) -> j0, t0
bind(C.i0, block.y)
bind(C.j0, block.x)
bind(C.t0, threads)
split(C.i, 4) -> by, ty
split(C.j, 4) -> bx, tx
reorder(C.by, C.bx, C.ty, C.tx)
bind(C.s, block.z)
bind(C.by, block.y)
bind(C.bx, block.x)
compute_at(part, C.bx)
bind(C.ty, C.tx, threads)
bind(part.i0, part.j0, threads)
reorder(part.t, part.s, part.i, part.j)
bind(part.t, threads)
set_scope(mine, reg)
compute_at(mine, part.t)
reorder(mine.ko, mine.i, mine.j)
unroll(mine.i, mine.j, part.i, part.j)
";
    holds(steps, true);
    is_a_kernel(steps);
    holds("split_reduce(acc.k, 3, combine=shared_atomic) -> part, s", false);
}

#[test]
fn what_cannot_be_split_is_said() {
    let refused = |steps: &str, words: &str| {
        let error = Schedule::run(gemm(), steps).expect_err("is refused").to_string();
        assert!(error.contains(words), "{error}");
    };
    refused("split_reduce(acc.i, 2) -> p, s", "initial store of the identity");
    refused("split_reduce(acc.k, 0) -> p, s", "number of parts");
    refused("split_reduce(acc.z, 2) -> p, s", "there is no loop");
    refused("reorder(acc.k, acc.j)\nsplit_reduce(acc.k, 2) -> p, s", "apply split_reduce before");
    refused("split_reduce(acc.k, 2) -> acc, s", "already");
    refused("split_reduce(acc.k, 16, combine=shuffle) -> p, s", "a warp has 32 lanes");
    refused("split_reduce(acc.k, 2, combine=tree) -> p, s", "cannot be combined by `tree`");
    let atomic = "split_reduce(acc.k, 2, combine=atomic) -> p, s";
    refused(&format!("cache_read(acc, C, reg) -> t\n{atomic}"), "`t` is in registers");
    let text = "program p(M: size, K: size, A: inout f32[M, K], C: out f32[M]) {
      alloc acc: f32[M] global
      for i in 0..M { acc[i] = 0  for k in 0..K { acc[i] += A[i, k] } }
      for i in 0..M, k in 0..K { A[i, k] = 1 }
      for i in 0..M { C[i] = acc[i] }
    }";
    let error =
        Schedule::run(parse::program(text).expect("reads"), atomic).expect_err("is refused").to_string();
    assert!(error.contains("`A` is written, which the sum reads"), "{error}");
}
