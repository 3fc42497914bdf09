use std::path::Path;

use super::lower;
use crate::ir::validate::check;
use crate::ir::{Program, parse};
use crate::schedule::Schedule;

fn text(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs").join(name).with_extension("ww");
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn program(name: &str) -> Program {
    parse::program(&text(name)).expect("reads")
}

const FINISHED: [&str; 9] = [
    "sgemm_block_tiling",
    "sgemm_split_k",
    "sgemm_virtual_threads",
    "tsmttsm_atomic",
    "tsmttsm_two_pass",
    "reduce_two_pass",
    "scan_look_back",
    "hgemm_cp_async",
    "hgemm_tma_wgmma",
];

/// The text of a program of `body` at block scope, lowered; or why it is not.
fn lowered(body: &str) -> String {
    let text =
        format!("program p(n: size, x: in f32[n], y: inout f32[n]) {{ for b in block.x(n) {{ {body} }} }}");
    lower(&parse::program(&text).expect("reads")).map_or_else(|d| d.to_string(), |p| p.to_string())
}

#[track_caller]
fn expect(before: &str, after: &str) {
    let wanted =
        format!("program p(n: size, x: in f32[n], y: inout f32[n]) {{ for b in block.x(n) {{ {after} }} }}");
    assert_eq!(lowered(before), parse::program(&wanted).expect("reads").to_string());
}

#[test]
fn finished_programs_come_back_as_they_were() {
    for name in FINISHED {
        // The one thread of `threads(1@1)` is number 0.
        let wanted = text(name).replace("v[w, e]", "v[w, 0]").replace("= u[e]", "= u[0]");
        let once = lower(&program(name)).expect(name);
        assert_eq!(once.to_string(), wanted);
        check(once).unwrap_or_else(|faults| panic!("{name}: {}", faults[0]));
    }
}

#[test]
fn a_specification_is_one_block_of_one_thread() {
    let lowered = lower(&program("pictures/tiling_0_specification")).expect("lowers");
    let wanted = "program tiling_specification(M: size, N: size, K: size,
            A: in f32[K, N; lda], B: in f32[K, M; ldb], C: out f32[M, N; ldc]) {
          for b in block.x(1) {
            for e in threads(1@1) {
              for i in 0..M, j in 0..N {
                C[i, j] = 0
                for k in 0..K { C[i, j] += A[k, j] * B[k, i] }
              }
            }
          }
        }";
    assert_eq!(lowered.to_string(), parse::program(wanted).expect("reads").to_string());
}

#[test]
fn every_picture_that_fits_threads_is_lowered_once_and_for_all() {
    for name in [
        "tiling_1_bound",
        "tiling_2_staged",
        "warp_tile_before_tensorize",
        "thread_loop_split",
        "roles_inside",
    ] {
        let once = lower(&program(&format!("pictures/{name}"))).expect(name);
        assert_eq!(lower(&once).expect(name).to_string(), once.to_string(), "{name}");
        check(once).unwrap_or_else(|faults| panic!("{name}: {}", faults[0]));
    }
}

#[test]
fn what_is_not_bound_is_done_by_the_first_thread_between_barriers() {
    let staged = lower(&program("pictures/tiling_2_staged")).expect("lowers").to_string();
    let fill = "      for e in threads(1@1) {
        for r in 0..16, c in 0..128 {
          AA[r, c] = 16*ko + r < K && 128*by + c < N ? A[16*ko + r, 128*by + c] : 0
        }
      }
      barrier
";
    assert!(staged.contains(fill), "{staged}");
    assert_eq!(staged.matches("barrier").count(), 2, "{staged}");
}

#[test]
fn scratch_that_belongs_to_no_block_is_global() {
    let text = "program p(n: size, x: in f32[n], y: out f32[n]) {
        alloc t: f32[n] reg
        for i in 0..n { t[i] = x[i] }
        for b in block.x(n) { for e in threads(1@1) { y[b] = t[b] } }
        for i in 0..n { alloc r: f32[n] reg  alloc s: f32[4] shared  r[i] = 1  s[i%4] = r[i]  y[i] += s[i%4] }
    }";
    let wanted = "program p(n: size, x: in f32[n], y: out f32[n]) {
        alloc t: f32[n] global
        for b in block.x(1) { for e in threads(1@1) { for i in 0..n { t[i] = x[i] } } }
        for b in block.x(n) { for e in threads(1@1) { y[b] = t[b] } }
        alloc r: f32[n] global
        for b in block.x(1) {
          alloc s: f32[4] shared
          for e in threads(1@1) { for i in 0..n { r[i] = 1  s[i%4] = r[i]  y[i] += s[i%4] } }
        }
    }";
    let lowered = lower(&parse::program(text).expect("reads")).expect("lowers");
    assert_eq!(lowered.to_string(), parse::program(wanted).expect("reads").to_string());
}

#[test]
fn registers_follow_their_owner() {
    // Thread 32 w owns the whole row, and is the thread that the nest is given to.
    expect(
        "alloc r: f32[2@32, 4] reg
         for w in threads(2@32) { for i in 0..4 { r[w, i] = x[i] } }
         for w in threads(2@32), l in threads(1@1) { y[w] = r[w, 0] }",
        "alloc r: f32[2@32, 4] reg
         for w in threads(2@32), e in threads(1@1) { for i in unroll 0..4 { r[w, i] = x[i] } }
         for w in threads(2@32), l in threads(1@1) { y[w] = r[w, 0] }",
    );
    let refused = lowered("alloc r: f32[64@1] reg  for i in 0..64 { r[i] = x[i] }");
    assert!(refused.contains("elements of `r` are touched one by one outside thread loops"), "{refused}");
    // A buffer that only the run uses goes with it, one that later statements use does not.
    expect(
        "alloc r: f32[1] reg  let i = b + 1  r[0] = x[b]  y[b] = r[0]  for t in threads(32@1) { y[i + t] = 1 }",
        "let i = b + 1
         for e in threads(1@1) { alloc r: f32[1] reg  r[0] = x[b]  y[b] = r[0] }
         for t in threads(32@1) { y[i + t] = 1 }",
    );
}

#[test]
fn loops_that_cannot_be_carried_out_are_refused() {
    let refused = lowered("for k in 0..4 { for c in block.y(2) { for t in threads(32@1) { y[t] = 1 } } }");
    assert!(refused.contains("the blocks of `c` stand inside other statements"), "{refused}");
    let refused = lowered("for t in threads(32@1) { alloc r: f32[n] reg  r[0] = x[t]  y[t] = r[0] }");
    assert!(refused.contains("b: the size of `r` is not a constant"), "{refused}");
    let refused = lowered("for v in interleave 0..2 { for t in threads(32@1) { y[t] = x[t + v] } }");
    assert!(refused.contains("two of its iterations may touch the same element of `y`"), "{refused}");
}

#[test]
fn virtual_threads_share_what_does_not_depend_on_them() {
    expect(
        "for v in interleave 0..2 { for t in threads(32@1) {
           alloc r: f32[4] reg
           alloc q: f32[1] reg
           for i in unroll 0..4 { r[i] = x[4*t + i] }
           let k = 2*t + v
           if t < n { q[0] = x[k] }
           if k < n { y[k] = q[0] + r[1] }
         } }",
        "for t in threads(32@1) {
           alloc r: f32[4] reg
           alloc q: f32[2, 1] reg
           for i in unroll 0..4 { r[i] = x[4*t + i] }
           if t < n { for v in unroll 0..2 { q[v, 0] = x[2*t + v] } }
           for v in unroll 0..2 { if 2*t + v < n { y[2*t + v] = q[v, 0] + r[1] } }
         }",
    );
}

#[test]
fn guards_go_where_the_host_or_the_caller_promises_whole_tiles() {
    let with = |promise: &str, statement: &str| {
        let text = format!(
            "program p(M: size, x: in f32[M, 8], y: out f32[M, 8]) {promise} {{
               for b in block.x(ceil(M, 64)) {{ for r in threads(64@1), u in unroll 0..8 {{ {statement} }} }}
             }}"
        );
        parse::program(&text).expect("reads")
    };
    let guarded = "if 64*b + r < M && u < 8 { y[64*b + r, u] = x[64*b + r, u] }";
    let promise = "assume M%64 == 0";
    let lowered = lower(&with(promise, guarded)).expect("lowers").to_string();
    assert_eq!(lowered, with(promise, "y[64*b + r, u] = x[64*b + r, u]").to_string());
    // The same in a branch of the host.
    let branch = |statement: &str| {
        let text = format!(
            "program p(M: size, x: in f32[M, 8], y: out f32[M, 8]) {{ if M%64 == 0 {{
               for b in block.x(ceil(M, 64)) {{ for r in threads(64@1), u in unroll 0..8 {{ {statement} }} }}
             }} }}"
        );
        parse::program(&text).expect("reads")
    };
    let lowered = lower(&branch(guarded)).expect("lowers").to_string();
    assert_eq!(lowered, branch("y[64*b + r, u] = x[64*b + r, u]").to_string());
    // Without the promise only the part that is certain goes.
    let lowered = lower(&with("", guarded)).expect("lowers").to_string();
    assert_eq!(lowered, with("", "if 64*b + r < M { y[64*b + r, u] = x[64*b + r, u] }").to_string());
}

/// A product of half-precision matrices, as mathematics.
const HALF: &str = "program hgemm(M: size, N: size, K: size, alpha: f32,
    A: in bf16[M, K; lda], B: in bf16[K, N; ldb], C: out f32[M, N; ldc]) {
  alloc acc: f32[M, N] global
  for i in 0..M, j in 0..N {
    acc[i, j] = 0
    for k in 0..K { acc[i, j] += f32(A[i, k]) * f32(B[k, j]) }
  }
  for i in 0..M, j in 0..N { C[i, j] = alpha * acc[i, j] }
}";

/// Its way to matrix instructions fed by a ring of asynchronous copies.
const WARPS: &str = "specialize(lda%8, ldb%8)
tile(C.i, C.j, 32, 32) -> by, bx, i, j
tile(C.i, C.j, 16, 16) -> wm, wn, i, j
bind(C.by, block.y)
bind(C.bx, block.x)
bind(C.wm, C.wn, threads@32)
set_scope(acc, reg)
compute_at(acc, C.wn)
split(acc.k, 32) -> ko, k
split(acc.k, 16) -> ks, k
reorder(acc.ko, acc.ks, acc.i, acc.j, acc.k)
cache_read(A, acc, shared) -> As
compute_at(As, acc.ko)
split(As.c, 8) -> c, e
bind(As.r, As.c, threads)
cache_read(B, acc, shared) -> Bs
compute_at(Bs, acc.ko)
split(Bs.c, 8) -> c, e
bind(Bs.r, Bs.c, threads)
cache_read(As, acc, reg) -> a
compute_at(a, acc.ks)
cache_read(Bs, acc, reg) -> b
compute_at(b, acc.ks)
split(acc.j, 8) -> ni, j
reorder(acc.ks, acc.ni, acc.i, acc.j, acc.k)
tensorize(As.e, cp_async16)
tensorize(Bs.e, cp_async16)
swizzle(As)
swizzle(Bs)
tensorize(acc.i, mma_m16n8k16_bf16)
tensorize(a.r, ldmatrix_x4)
tensorize(b.r, ldmatrix_x4_trans)
pipeline(acc.ko, 3, via=cp_async)
unroll(acc.ni, acc.ks, C.jo)
";

#[test]
fn a_warp_tile_is_lowered_before_and_after_tensorize() {
    let schedule = Schedule::run(parse::program(HALF).expect("reads"), WARPS).expect("a schedule");
    for (step, program) in schedule.prefixes().expect("runs again").iter().enumerate() {
        let once = lower(program).unwrap_or_else(|d| panic!("step {step}: {d}\n{program}"));
        check(once.clone()).unwrap_or_else(|faults| panic!("step {step}: {}\n{once}", faults[0]));
    }
    // Two versions, with one barrier a step: after the wait for asynchronous copies, and after the stores of what
    // came through registers.
    let lowered = lower(schedule.program()).expect("lowers").to_string();
    let (aligned, general) = lowered.split_once("\n  } else {\n").expect("two versions");
    assert_eq!((aligned.matches("barrier").count(), general.matches("barrier").count()), (1, 1), "{lowered}");
    assert!(aligned.contains("cp.wait 1\n        barrier\n"), "{lowered}");
}
