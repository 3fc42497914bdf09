//! Pipelines of every kind, at sizes where the ring is longer than the loop, and where there is no loop at all.

use warpwright_core::dtype::DType;
use warpwright_core::index::{Cond, Index};
use warpwright_core::ir::{Program, parse};
use warpwright_core::passes;
use warpwright_core::schedule::Schedule;
use warpwright_core::te::{Expression, by_flag, sum};
use warpwright_sim::Mode;

use crate::check::{check, exact};

pub fn gemm() -> Program {
    let mut te = Expression::new("gemm");
    let (m, n, k) = (te.size("M"), te.size("N"), te.size("K"));
    let (alpha, beta, beta0) =
        (te.scalar("alpha", DType::F32), te.scalar("beta", DType::F32), te.flag("beta0"));
    let a = te.placeholder("A", DType::F32, &[&m, &k]);
    let b = te.placeholder("B", DType::F32, &[&k, &n]);
    let c = te.update("C", DType::F32, &[&m, &n]);
    let acc = te.intermediate("acc", DType::F32, &[&m, &n]);
    let r = te.reduce_axis("k", &k);
    te.compute(&acc, &["i", "j"], |at| sum(a.at(&[&at[0], &r.var()]) * b.at(&[&r.var(), &at[1]]), &[&r]));
    te.compute(&c, &["i", "j"], |at| {
        let product = alpha * acc.at(&[&at[0], &at[1]]);
        by_flag(&beta0, product.clone(), product + beta * c.at(&[&at[0], &at[1]]))
    });
    te.program()
}

/// A small block-tiled product: 16 x 8 tile, 4 x 4 threads of 4 x 2, steps of 4.
pub const TILED: &str = "
split(C.i, 16) -> by, i
split(C.j, 8) -> bx, j
split(C.i, 4) -> ty, i
split(C.j, 2) -> tx, j
reorder(C.by, C.bx, C.ty, C.tx, C.i, C.j)
bind(C.by, block.y)
bind(C.bx, block.x)
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
cache_read(B, acc, shared) -> Bs
compute_at(Bs, acc.ko)
split(Bs.r, 2) -> u, r
reorder(Bs.r, Bs.c, Bs.u)
bind(Bs.r, Bs.c, threads)
unroll(Bs.u)
cache_read(As, acc, reg) -> ra
compute_at(ra, acc.ki)
cache_read(Bs, acc, reg) -> rb
compute_at(rb, acc.ki)
unroll(acc.ki, acc.i, acc.j, ra.r, ra.c, rb.r, rb.c, C.i, C.j)
";

fn tiled(steps: &str) -> Schedule {
    Schedule::run(gemm(), &format!("{TILED}{steps}")).unwrap_or_else(|e| panic!("{e}"))
}

/// Loops of 0, 1, 2, 3 and 6 steps, with and without tails.
const SIZES: [[(&str, i64); 3]; 6] = [
    [("M", 16), ("N", 8), ("K", 0)],
    [("M", 5), ("N", 3), ("K", 1)],
    [("M", 17), ("N", 9), ("K", 8)],
    [("M", 16), ("N", 8), ("K", 11)],
    [("M", 0), ("N", 8), ("K", 4)],
    [("M", 19), ("N", 11), ("K", 23)],
];

fn holds(steps: &str) {
    let schedule = tiled(steps);
    // The steps before are the same for all and checked once.
    let first = if steps.is_empty() { 0 } else { TILED.lines().count() };
    for (at, sizes) in SIZES.iter().enumerate() {
        check(&schedule, sizes, first, at % 2 == 1, 7).unwrap_or_else(|e| panic!("{steps}\n{e}"));
    }
}

#[test]
fn rings_in_shared_memory() {
    holds("");
    holds("double_buffer(acc.ko)");
    holds("pipeline(acc.ko, 3, via=shared)");
    holds("pipeline(acc.ko, 5, via=shared)");
}

#[test]
fn through_registers_to_shared_memory() {
    holds("pipeline(acc.ko, 1, via=registers)");
    holds("pipeline(acc.ko, 2, via=registers)");
}

#[test]
fn a_peeled_tail_shares_the_ring() {
    let text = |steps: &str| tiled(&format!("tail(acc.ko, peel)\n{steps}")).program().to_string();
    assert!(text("double_buffer(acc.ko)").contains("if ko + 1 < K/4"));
    assert_eq!(text("double_buffer(acc.ko)").matches("if ko + 1 <").count(), 1);
    holds("tail(acc.ko, peel)\ndouble_buffer(acc.ko)");
    holds("tail(acc.ko, peel)\npipeline(acc.ko, 1, via=registers)");
    holds("tail(acc.ko, peel)\npipeline(acc.ko, 2, via=registers)");
}

#[test]
fn fragments_of_an_unrolled_loop() {
    holds("pipeline(acc.ki, 2, via=registers)");
    holds("double_buffer(acc.ki)\npipeline(acc.ko, 2, via=registers)");
}

#[test]
fn vectorized_fills_share_their_registers() {
    let text = TILED.replace(
        "split(As.r, 4) -> u, r\nreorder(As.r, As.c, As.u)\nbind(As.r, As.c, threads)\nunroll(As.u)",
        "vectorize(As.c)\nbind(As.r, threads)",
    );
    let text = format!("{text}pipeline(acc.ko, 1, via=registers)");
    assert!(text.contains("vectorize"));
    let mut spec = gemm();
    let lda = spec.tensors().next().and_then(|t| t.row_stride.clone()).expect("rows have a stride");
    spec.assumes.push(Cond::eq(Index::var(&lda).rem(4), 0.into()));
    let schedule = Schedule::run(spec, &text).unwrap_or_else(|e| panic!("{e}"));
    for sizes in SIZES {
        check(&schedule, &sizes, TILED.lines().count() - 3, true, 11).unwrap_or_else(|e| panic!("{e}"));
    }
}

/// A step of a tall and skinny product: each thread sums its rows of A^T B for a tile of C.
const TALL: &str = "
program tall(K: size, A: in f64[K, 4; lda], B: in f64[K, 6; ldb], C: out f64[5, 4, 6])
{
  for b in block.x(1) {
    for s in threads(5@8), nt in threads(2@4), mt in threads(4@1) {
      alloc acc: f64[3] reg
      for j in unroll 0..3 { acc[j] = 0 }
      for k in s..K step 5 {
        alloc a: f64[1] reg
        alloc b: f64[3] reg
        a[0] = A[k, mt]
        for j in unroll 0..3 { b[j] = B[k, 2*j + nt] }
        for j in unroll 0..3 { acc[j] += a[0] * b[j] }
      }
      for j in unroll 0..3 { C[s, mt, 2*j + nt] = acc[j] }
    }
  }
}";

#[test]
fn from_register_to_register() {
    let uses_the_step = TALL.replace("* b[j] }", "* (k < 7 ? b[j] : 0) }");
    for text in [TALL, &uses_the_step] {
        let spec = parse::program(text).unwrap_or_else(|e| panic!("{e}"));
        let schedule = Schedule::run(spec, "double_buffer(acc.k)").unwrap_or_else(|e| panic!("{e}"));
        for k in [0, 1, 3, 5, 6, 10, 11, 23] {
            check(&schedule, &[("K", k)], 0, true, 5).unwrap_or_else(|e| panic!("{e}"));
        }
    }
}

/// Asynchronous copies, not yet pipelined. `A` is copied asynchronously, `B` by ordinary stores.
const ASYNCHRONOUS: &str = "
program asynchronous(N: size, K: size, A: in f32[8, K; lda], B: in f32[K, N; ldb], C: out f32[8, N; ldc])
  assume lda % 4 == 0
{
  for b in block.x(ceil(N, 4)) {
    alloc As: f32[8, 8] shared
    alloc Bs: f32[8, 4] shared
    alloc acc: f32[8@4, 4@1] reg
    for i in threads(8@4), j in threads(4@1) { acc[i, j] = 0 }
    for ko in 0..ceil(K, 8) {
      for r in threads(8@2), c in threads(2@1) {
        cp_async16_f32(As[r, 4*c +: 4], A[r, 8*ko + 4*c +: 4], max(0, min(4, K - 8*ko - 4*c)))
      }
      for r in threads(8@4), c in threads(4@1) {
        Bs[r, c] = 8*ko + r < K && 4*b + c < N ? B[8*ko + r, 4*b + c] : 0
      }
      for i in threads(8@4), j in threads(4@1) {
        for ki in unroll 0..8 { acc[i, j] += As[i, ki] * Bs[ki, j] }
      }
    }
    for i in threads(8@4), j in threads(4@1) { if 4*b + j < N { C[i, 4*b + j] = acc[i, j] } }
  }
}";

#[test]
fn asynchronous_copies() {
    for stages in 1..=5 {
        let spec = parse::program(ASYNCHRONOUS).unwrap_or_else(|e| panic!("{e}"));
        let steps = format!("pipeline(acc.ko, {stages}, via=cp_async)");
        let schedule = Schedule::run(spec, &steps).unwrap_or_else(|e| panic!("{e}"));
        for k in [0, 1, 8, 9, 24, 37] {
            check(&schedule, &[("N", 6), ("K", k)], 0, true, 3).unwrap_or_else(|e| panic!("{e}"));
        }
    }
}

/// Groups of eight rows, each multiplied in three steps; row `y[g]` notes which groups there were.
const GROUPS: &str = "
program groups(M: size, A: in f32[M, 24], B: in f32[24, 4], C: out f32[M, 4], y: out f32[ceil(M, 8)])
{
  for b in block.x(1) {
    for g in 0..ceil(M, 8) {
      alloc acc: f32[8@4, 4@1] reg
      for i in threads(8@4), j in threads(4@1) { acc[i, j] = 0 }
      for ko in 0..3 {
        alloc As: f32[8, 8] shared
        for r in threads(8@2), c in threads(2@1) {
          for e in 0..4 { As[r, 4*c + e] = 8*g + r < M ? A[8*g + r, 8*ko + 4*c + e] : 0 }
        }
        for i in threads(8@4), j in threads(4@1) {
          for ki in unroll 0..8 { acc[i, j] += As[i, ki] * B[8*ko + ki, j] }
        }
      }
      for i in threads(8@4), j in threads(4@1) { if 8*g + i < M { C[8*g + i, j] = acc[i, j] } }
      for t in threads(1@32) { y[g] = 1 }
    }
  }
}";

#[test]
fn steps_go_on_across_the_iterations_of_a_loop_around() {
    let run = |text: &str, steps: &str| {
        let spec = parse::program(text).unwrap_or_else(|e| panic!("{e}"));
        Schedule::run(spec, steps)
    };
    let copied = "tensorize(As.e, cp_async16_f32)\npipeline(acc.ko, 2, via=cp_async, across=acc.g)";
    for stages in 2..=6 {
        let through_registers = format!("pipeline(acc.ko, {stages}, via=shared, across=acc.g)");
        for steps in [copied.replace("2,", &format!("{stages},")), through_registers] {
            let schedule = run(GROUPS, &steps).unwrap_or_else(|e| panic!("{e}"));
            for m in [0, 1, 8, 17, 45] {
                check(&schedule, &[("M", m)], 0, true, 3).unwrap_or_else(|e| panic!("{steps}: {e}"));
            }
        }
    }
    let ahead = run(GROUPS, copied).unwrap().program().to_string();
    let (first, groups) = ahead.split_once("for g in").expect("the loop around stays");
    assert!(first.contains("cp_async16_f32(As[0,"), "the first step is copied before all groups:\n{ahead}");
    assert!(
        groups.contains("if g + (ko + 1 < 3 ? 0 : 1) < ceil(M, 8)"),
        "and the others a step ahead:\n{ahead}"
    );

    let refused = |text: &str, steps: &str, words: &str| {
        let error = run(text, steps).expect_err("is refused").to_string();
        assert!(error.contains(words), "{error}");
    };
    let step = "pipeline(acc.ko, 2, via=shared, across=acc.g)";
    refused(GROUPS, "pipeline(acc.ko, 2, via=shared, across=g)", "must be a loop");
    refused(GROUPS, "pipeline(acc.ko, 2, via=shared, across=acc.ki)", "does not stand in the body of");
    refused(GROUPS, "pipeline(acc.ko, 2, via=shared, across=acc.b)", "does not stand in the body of");
    refused(GROUPS, "pipeline(acc.ko, 2, via=registers, across=acc.g)", "does not lie in a ring");
    refused(&GROUPS.replace("0..3", "0..ceil(M, 8)"), step, "only a loop of a constant number");
    refused(&GROUPS.replace("0..3", "0..0"), step, "only a loop of a constant number");
    refused(&GROUPS.replace("0..ceil(M, 8) {", "1..ceil(M, 8) {"), step, "does not count from 0 by 1");
    // What is fetched a group early must be there by then, and mean the same.
    let result_is_read = GROUPS.replace("C: out f32[M, 4]", "C: out f32[M, 24]").replace("M ? A", "M ? C");
    refused(&result_is_read, step, "which the body of `g` writes");
    let by_group = GROUPS
        .replace("alloc acc", "let first = 8*g + 0*b\n      alloc acc")
        .replace("A[8*g + r", "A[first + r");
    refused(&by_group, step, "has anew");
}

/// Runs of 32 elements, the last of which may hang over.
const RUNS: &str = "
program runs(n: size, x: in f32[n], y: out f32[32])
{
  for b in block.x(1) {
    alloc s: f32[32] shared
    alloc acc: f32[32@1] reg
    for t in threads(32@1) { acc[t] = 0 }
    for k in 0..ceil(n, 32) {
      for e in 0..32 { s[e] = 32*k + e < n ? x[32*k + e] : 0 }
      for t in threads(32@1) { acc[t] += s[31 - t] }
    }
    for t in threads(32@1) { y[t] = acc[t] }
  }
}";

#[test]
fn runs_come_by_bulk_copies() {
    let run = |text: &str, steps: &str| {
        let spec = parse::program(text).unwrap_or_else(|e| panic!("{e}"));
        Schedule::run(spec, steps)
    };
    for stages in 2..=5 {
        let schedule =
            run(RUNS, &format!("pipeline(acc.k, {stages}, via=bulk)")).unwrap_or_else(|e| panic!("{e}"));
        for n in [0, 1, 32, 33, 70, 160, 323] {
            check(&schedule, &[("n", n)], 0, true, 3).unwrap_or_else(|e| panic!("{stages}, {n}: {e}"));
        }
    }
    let refused = |text: &str, steps: &str, words: &str| {
        let error = run(text, steps).expect_err("is refused").to_string();
        assert!(error.contains(words), "{error}");
    };
    let step = "pipeline(acc.k, 2, via=bulk)";
    refused(RUNS, "pipeline(acc.k, 1, via=bulk)", "two slots at least");
    refused(&RUNS.replace("s[e] =", "s[31 - e] ="), step, "in another order");
    refused(&RUNS.replace("x[32*k + e] : 0", "x[32*k + e] : 1"), step, "filled with 1 where it hangs over");
    refused(&RUNS.replace("e < n ?", "e < n && e < 9 ?"), step, "not filled with all that the matrix has");
    let multiples = "may not start and end at multiples of 16 bytes";
    refused(&RUNS.replace("32*k + e", "31*k + e"), step, multiples);
    // What comes before the first element is copied too, where it is there: not before the matrix.
    for before in 1..=3 {
        let behind = RUNS.replace("32*k + e", &format!("32*k + e + {before}"));
        let schedule = run(&behind, step).unwrap_or_else(|e| panic!("{e}"));
        for n in [0, 1, 32, 33, 70, 323] {
            check(&schedule, &[("n", n)], 0, true, 3).unwrap_or_else(|e| panic!("{before}, {n}: {e}"));
        }
    }
    refused(&RUNS.replace("32*k + e", "32*k + e - 1"), step, multiples);
    let whole = RUNS.replace("32*k + e", "32*k + e + 1").replace(
        "for t in threads(32@1) { acc[t] += s[31 - t] }",
        "for t in threads(32@1) { acc[t] += s[31 - t] }
      for e in threads(1@1) { bulk_write_f32(y[0 +: 32], s[:], 32) }",
    );
    refused(&whole, step, "instructions take `s`");
    refused(GROUPS, "pipeline(acc.ko, 2, via=bulk)", "inside another loop");
    refused(GROUPS, "pipeline(acc.ko, 2, via=bulk, across=acc.g)", "iterations of one loop");
}

/// The same for a block of five warps, of which three and a bit have something to do in the loop; what they add up goes
/// through shared memory afterwards.
const OF_FIVE_WARPS: &str = "
program runs(n: size, x: in f32[n], y: out f32[160])
{
  for b in block.x(1) {
    alloc s: f32[100] shared
    alloc q: f32[100] shared
    alloc acc: f32[100@1] reg
    for t in threads(100@1) { acc[t] = 0 }
    for k in 0..ceil(n, 100) {
      for e in 0..100 { s[e] = 100*k + e < n ? x[100*k + e] : 0 }
      for t in threads(100@1) { acc[t] += s[99 - t] }
      for t in threads(100@1) { acc[t] += 2*s[(t + 50)%100] }
    }
    for t in threads(100@1) { q[99 - t] = acc[t] }
    for t in threads(160@1) { y[t] = q[t%100] }
  }
}";

#[test]
fn warps_give_slots_back() {
    let run = |text: &str, steps: &str| {
        let spec = parse::program(text).unwrap_or_else(|e| panic!("{e}"));
        Schedule::run(spec, steps)
    };
    for (text, of_a_run, warps) in [(RUNS, 32, 1), (OF_FIVE_WARPS, 100, 5)] {
        for stages in 2..=5 {
            let steps = format!("pipeline(acc.k, {stages}, via=bulk, release=warps)");
            let schedule = run(text, &steps).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(schedule.text().trim(), steps, "the step is written as it was read");
            let program = schedule.program().to_string();
            assert!(program.contains(&format!("alloc empty: mbar ring {stages} count {warps}")), "{program}");
            let lowered = passes::lower(schedule.program()).unwrap_or_else(|e| panic!("{e}")).to_string();
            let in_loop = lowered.split("for k in").nth(1).and_then(|s| s.split("\n    }\n").next());
            assert_eq!(in_loop.map(|s| s.matches("barrier").count()), Some(1), "that of a warp:\n{lowered}");
            // Fewer steps than stages, as many, and rings that come round several times.
            for n in (0..=6).map(|k| k * of_a_run).chain([1, of_a_run + 1, 11 * of_a_run - 1]) {
                check(&schedule, &[("n", n)], 0, true, 3).unwrap_or_else(|e| panic!("{stages}, {n}: {e}"));
            }
        }
    }
    let usual = run(RUNS, "pipeline(acc.k, 2, via=bulk, release=block)").unwrap();
    assert_eq!(usual.text().trim(), "pipeline(acc.k, 2, via=bulk)");

    let refused = |text: &str, steps: &str, words: &str| {
        let error = run(text, steps).expect_err("is refused").to_string();
        assert!(error.contains(words), "{error}");
    };
    refused(RUNS, "pipeline(acc.k, 1, via=bulk, release=warps)", "two slots at least");
    refused(RUNS, "pipeline(acc.k, 2, via=bulk, release=lanes)", "must be block, warps or role");
    for (via, release) in ["shared", "registers", "cp_async", "tma"]
        .map(|via| (via, ["warps", "role"]))
        .iter()
        .flat_map(|(via, ways)| ways.map(|release| (via, release)))
    {
        let steps = format!("pipeline(acc.k, 2, via={via}, release={release})");
        refused(RUNS, &steps, "use via=bulk, or leave `release` out");
    }
    let unbound = RUNS.replace("32@1", "32").replace("in threads(32)", "in 0..32");
    refused(&unbound, "pipeline(acc.k, 2, via=bulk, release=warps)", "nobody knows how many warps");
    let step = "pipeline(acc.ko, 2, via=bulk, across=acc.g, release=warps)";
    refused(GROUPS, step, "iterations of one loop");
}

#[test]
fn a_role_of_its_own_asks_for_copies() {
    let run = |text: &str, steps: &str| {
        let spec = parse::program(text).unwrap_or_else(|e| panic!("{e}"));
        Schedule::run(spec, steps)
    };
    for (text, of_a_run, warps) in [(RUNS, 32, 1), (OF_FIVE_WARPS, 100, 5)] {
        for stages in 2..=5 {
            let steps = format!("pipeline(acc.k, {stages}, via=bulk, release=role)");
            let schedule = run(text, &steps).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(schedule.text().trim(), steps, "the step is written as it was read");
            let program = schedule.program().to_string();
            let others = 32 * warps;
            for part in [
                format!("roles consumer 0..{others}, producer {others}..{}", others + 32),
                format!("alloc empty: mbar ring {stages} count {warps}"),
                format!("if {stages} <= k {{\n            await(empty[k - {stages}])\n            barrier"),
            ] {
                assert!(program.contains(&part), "{part} in {program}");
            }
            for n in (0..=6).map(|k| k * of_a_run).chain([1, of_a_run + 1, 11 * of_a_run - 1]) {
                check(&schedule, &[("n", n)], 0, true, 3).unwrap_or_else(|e| panic!("{stages}, {n}: {e}"));
            }
        }
    }
    // What is wrong without the wait, or if those who ask do not meet after it, is seen.
    let schedule = run(OF_FIVE_WARPS, "pipeline(acc.k, 3, via=bulk, release=role)").unwrap();
    let lowered = passes::lower(schedule.program()).unwrap_or_else(|e| panic!("{e}")).to_string();
    let complaint = |text: &str| {
        let program = parse::program(text).unwrap_or_else(|e| panic!("{e}"));
        exact(schedule.spec(), &program, &[("n", 1500)], Mode::Simt, 3).err()
    };
    assert_eq!(complaint(&lowered), None);
    let (wait, meeting) = ("            await(empty[k - 3])\n", "            barrier\n");
    let waits = format!("{wait}{meeting}");
    assert_eq!(lowered.matches(&waits).count(), 1, "{lowered}");
    for left in ["", wait] {
        let wrong = lowered.replace(&waits, left);
        assert!(complaint(&wrong).is_some(), "{wrong}");
    }
    let refused = |text: &str, steps: &str, words: &str| {
        let error = run(text, steps).expect_err("is refused").to_string();
        assert!(error.contains(words), "{error}");
    };
    let step = "pipeline(acc.k, 2, via=bulk, release=role)";
    let unbound = RUNS.replace("32@1", "32").replace("in threads(32)", "in 0..32");
    refused(&unbound, step, "nobody knows how many warps");
    refused(GROUPS, "pipeline(acc.ko, 2, via=bulk, release=role)", "exactly this one loop");
    let again = run(RUNS, step).unwrap().program().to_string();
    refused(&again, step, "pipeline a loop once");
}

/// A bulk copy goes through the async proxy, where it may overtake loads of what it overwrites.
#[test]
fn ordinary_reads_of_a_slot_are_fenced_from_the_copy_that_fills_it_anew() {
    for release in ["", ", release=warps", ", release=role"] {
        for text in [RUNS, OF_FIVE_WARPS] {
            let spec = parse::program(text).unwrap_or_else(|e| panic!("{e}"));
            let schedule = Schedule::run(spec, &format!("pipeline(acc.k, 3, via=bulk{release})")).unwrap();
            let lowered = passes::lower(schedule.program()).unwrap_or_else(|e| panic!("{e}")).to_string();
            let complaint = |text: &str| {
                let program = parse::program(text).unwrap_or_else(|e| panic!("{e}"));
                exact(schedule.spec(), &program, &[("n", 900)], Mode::Simt, 3).err().map(|e| e.to_string())
            };
            assert_eq!(complaint(&lowered), None);
            assert_eq!(lowered.matches("fence.async\n").count(), 1, "{lowered}");
            let told = complaint(&lowered.replace("fence.async\n", "\n")).unwrap_or_default();
            let words = ["read by thread", "through the async proxy", "without fence.async"];
            assert!(words.iter().all(|w| told.contains(w)), "{release}: {told}");
        }
    }
}

#[test]
fn slots_that_are_given_back_too_early_are_seen() {
    let spec = parse::program(OF_FIVE_WARPS).unwrap_or_else(|e| panic!("{e}"));
    let schedule = Schedule::run(spec, "pipeline(acc.k, 3, via=bulk, release=warps)").unwrap();
    let lowered = passes::lower(schedule.program()).unwrap_or_else(|e| panic!("{e}")).to_string();
    let complaint = |text: &str| {
        let program = parse::program(text).unwrap_or_else(|e| panic!("{e}"));
        exact(schedule.spec(), &program, &[("n", 900)], Mode::Simt, 3).err()
    };
    assert_eq!(complaint(&lowered), None);
    let arrives = "      for w in threads(5@32) {
        fence.async
        barrier
        for e in threads(1@1) {
          arrive(empty[k])
        }
      }
";
    let awaits = "      await(full[k])\n";
    for (what, wrong) in [
        // The arrival of one lane says nothing of the others.
        ("no barrier of the warp", lowered.replace("        barrier\n        for e", "        for e")),
        (
            "a step early",
            lowered.replace("if 1 <= k", "if 2 <= k").replace("await(empty[k - 1])", "await(empty[k - 2])"),
        ),
        ("not awaited", lowered.replace("await(empty[k - 1])", "let nothing = 0")),
        (
            "one warp left out",
            lowered.replace("3 count 5", "3 count 4").replace("threads(5@32)", "threads(4@32)"),
        ),
        ("before the uses", lowered.replace(arrives, "").replace(awaits, &format!("{awaits}{arrives}"))),
    ] {
        assert_ne!(wrong, lowered, "{what}");
        assert!(complaint(&wrong).is_some(), "{what} passes:\n{wrong}");
    }
}

#[test]
fn copies_made_asynchronous_beside_a_pipeline_would_never_be_waited_for() {
    let spec = parse::program(ASYNCHRONOUS).unwrap_or_else(|e| panic!("{e}"));
    let steps = "pipeline(acc.ko, 2, via=cp_async)\ntensorize(Bs.c, cp_async4_f32)";
    let error = Schedule::run(spec, steps).expect_err("is refused").to_string();
    assert!(error.contains("nobody would wait for these"), "{error}");
}

/// Warps that copy rows of A for themselves, inside the loop over them.
const OF_WARPS: &str = "
split(C.i, 4) -> o, i
split(C.o, 2) -> o, w
split(C.j, 8) -> b, j
reorder(C.b, C.w, C.o, C.j, C.i)
bind(C.b, block.x)
bind(C.w, threads@32)
bind(C.j, threads)
set_scope(acc, reg)
compute_at(acc, C.j)
cache_read(A, acc, shared) -> As
";

#[test]
fn ranges_of_threads_stage_for_themselves_where_they_are_whole_warps() {
    let run = |steps: &str| Schedule::run(gemm(), &format!("{OF_WARPS}{steps}"));
    let refused = |steps: &str, words: &str| {
        let error = run(steps).expect_err("is refused").to_string();
        assert!(error.contains(words), "{error}");
    };
    let staged = "
split(acc.k, 8) -> ko, k
reorder(acc.ko, acc.i, acc.j, acc.k)
compute_at(As, acc.ko, private)
split(As.c, 1) -> c, e
bind(As.r, As.c, threads)
tensorize(As.e, cp_async4_f32)
";
    refused("compute_at(As, C.o, alone)", "can only be `private`");
    refused("set_scope(As, reg)\ncompute_at(As, C.o, private)", "registers belong to single threads");
    refused("set_scope(As, global)\ncompute_at(As, C.o, private)", "device memory belongs to all");
    let half = OF_WARPS.replace("threads@32", "threads@16");
    let error =
        Schedule::run(gemm(), &format!("{half}compute_at(As, C.o, private)")).expect_err("is refused");
    assert!(error.to_string().contains("bind such a loop first"), "{error}");
    // For the block, the loop over warps would have to move inside the loop over rows.
    refused(&staged.replace(", private", ""), "lives across the place");
    let private = run(staged).unwrap().program().to_string();
    let (_, inside) = private.split_once("for w in threads(2@32)").expect("the loop over warps stays");
    assert!(inside.contains("alloc As: f32[4, 8] shared"), "a warp stages for itself:\n{private}");
    for steps in ["pipeline(acc.ko, 2, via=cp_async)", "pipeline(acc.ko, 3, via=cp_async)"] {
        let schedule = run(&format!("{staged}{steps}")).unwrap_or_else(|e| panic!("{steps}: {e}"));
        for k in [0, 1, 19] {
            check(&schedule, &[("M", 11), ("N", 6), ("K", k)], 0, true, 3).unwrap_or_else(|e| panic!("{e}"));
        }
    }
}

#[test]
fn what_cannot_be_pipelined_is_said() {
    let refused = |steps: &str, words: &str| {
        let error = Schedule::run(gemm(), &format!("{TILED}{steps}")).expect_err("is refused").to_string();
        assert!(error.contains(words), "{error}");
    };
    refused("pipeline(acc.ko, 1, via=shared)", "two slots");
    refused("pipeline(acc.ko, 3, via=registers)", "use 1 or 2 stages");
    refused("pipeline(acc.ko, 2, via=cp_async)", "tensorize the fills");
    refused("pipeline(acc.ki, 2, via=shared)", "via=registers");
    refused("pipeline(C.i, 2, via=shared)", "cache_read, then compute_at");
    refused("double_buffer(acc.ko)\ndouble_buffer(acc.ko)", "cannot be pipelined");
    refused("pipeline(acc.ko, 2)", "write pipeline(");
    let unbound = TILED.replace("bind(As.r, As.c, threads)", "");
    let error = Schedule::run(gemm(), &format!("{unbound}pipeline(acc.ko, 1, via=registers)"));
    assert!(error.expect_err("is refused").to_string().contains("bind them to threads first"));
}
