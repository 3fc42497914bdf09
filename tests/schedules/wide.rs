//! Vectors, layouts, tails and instructions, at sizes with and without tails, down to nothing.

use warpwright_core::dtype::DType;
use warpwright_core::ir::Program;
use warpwright_core::schedule::Schedule;
use warpwright_core::te::{Expression, by_flag, sum};

use crate::check::check;
use crate::pipelines::gemm;

/// A block-tiled product: 16 x 16 tile, 4 x 4 threads of 4 x 4, steps of 8, for rows at multiples of 4 elements and in
/// general.
const TILED: &str = "specialize(lda%4, ldb%4, ldc%4)
tile(C.i, C.j, 16, 16) -> by, bx, i, j
tile(C.i, C.j, 4, 4) -> ty, tx, i, j
bind(C.by, block.y)
bind(C.bx, block.x)
bind(C.ty, C.tx, threads)
set_scope(acc, reg)
compute_at(acc, C.tx)
split(acc.k, 8) -> ko, ki
reorder(acc.ko, acc.ki, acc.i, acc.j)
cache_read(A, acc, shared) -> As
compute_at(As, acc.ko)
split(As.c, 4) -> c, v
bind(As.r, As.c, threads)
cache_read(B, acc, shared) -> Bs
compute_at(Bs, acc.ko)
split(Bs.c, 4) -> c, v
bind(Bs.r, Bs.c, threads)
cache_read(As, acc, reg) -> ra
compute_at(ra, acc.ki)
cache_read(Bs, acc, reg) -> rb
compute_at(rb, acc.ki)
";

const UNROLLED: &str = "unroll(acc.ki, acc.i, acc.j, C.i, rb.r)\n";

/// Nothing, one element, tails in every direction, whole tiles.
const SIZES: [[(&str, i64); 3]; 6] = [
    [("M", 4), ("N", 4), ("K", 0)],
    [("M", 1), ("N", 1), ("K", 1)],
    [("M", 0), ("N", 3), ("K", 2)],
    [("M", 17), ("N", 21), ("K", 11)],
    [("M", 16), ("N", 16), ("K", 16)],
    [("M", 8), ("N", 20), ("K", 20)],
];

fn holds(spec: Program, before: &str, steps: &str) -> Schedule {
    let text = format!("{before}{steps}");
    let schedule = Schedule::run(spec, &text).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(
        Schedule::run(schedule.spec().clone(), &schedule.text()).map(|s| s.text()),
        Ok(schedule.text())
    );
    let first = before.lines().count();
    for (at, sizes) in SIZES.iter().enumerate() {
        check(&schedule, sizes, first, at == 3, 7).unwrap_or_else(|e| panic!("{steps}\n{e}"));
    }
    schedule
}

/// Of the tiled product; what is not made a vector is unrolled.
fn tiled(steps: &str) -> String {
    holds(gemm(), TILED, &format!("{steps}{UNROLLED}")).program().to_string()
}

#[test]
fn copies_and_results_four_at_a_time() {
    let text = tiled("vectorize(As.v, Bs.v)\nvectorize(rb.c)\nvectorize(C.j)\n");
    let (aligned, general) = text.split_once("\n  } else {\n").expect("two versions");
    // A, B, the fragment of B, and C with and without beta; in general only the fragment.
    assert_eq!(aligned.matches("in vector").count(), 5, "{text}");
    assert_eq!(general.matches("in vector").count(), 1, "{text}");
}

#[test]
fn layouts_change_no_values() {
    tiled("storage_order(As, c, r)\nvectorize(Bs.v)\nvectorize(ra.r)\n");
    tiled("storage_order(Bs, r, c%8, c/8)\nstorage_align(As, r, 1)\n");
    tiled("vectorize(As.v, Bs.v)\nstorage_align(As, r, 4)\nswizzle(Bs)\nvectorize(rb.c)\n");
    tiled("swizzle(As, 3, 0, 5)\nswizzle(Bs)\n");
}

#[test]
fn a_transposed_store_through_registers() {
    let text = tiled(
        "storage_order(As, c, r)\ncache_read(A, As, reg) -> ta\ncompute_at(ta, As.c)\nvectorize(ta.c)\nunroll(As.v)\n",
    );
    assert!(text.contains("vector 0..4 {\n                ta["), "{text}");
}

#[test]
fn tails_apart() {
    let text = tiled("tail(acc.ko, peel)\n");
    assert!(text.contains("for ko in 0..K/8 {") && text.contains("for ko in K/8..ceil(K, 8) {"), "{text}");
    tiled("vectorize(As.v, Bs.v)\ntail(acc.ko, peel)\n");
    holds(
        gemm(),
        "",
        "split(acc.k, 8) -> ko, ki\ntail(acc.ki, guard)\ntail(acc.ki, fill)\ntail(acc.ko, peel)\n",
    );
}

#[test]
fn asynchronous_copies_where_rows_are_aligned() {
    let text = tiled(
        "tensorize(As.v, cp_async16_f32)\ntensorize(Bs.v, cp_async16_f32)\npipeline(acc.ko, 3, via=cp_async)\n",
    );
    assert_eq!(text.matches("cp_async16_f32(").count(), 4, "{text}");
}

/// The product in bf16, summed in f32.
fn half() -> Program {
    let mut te = Expression::new("hgemm");
    let (m, n, k) = (te.size("M"), te.size("N"), te.size("K"));
    let (alpha, beta, beta0) =
        (te.scalar("alpha", DType::F32), te.scalar("beta", DType::F32), te.flag("beta0"));
    let a = te.placeholder("A", DType::Bf16, &[&m, &k]);
    let b = te.placeholder("B", DType::Bf16, &[&k, &n]);
    let c = te.update("C", DType::F32, &[&m, &n]);
    let acc = te.intermediate("acc", DType::F32, &[&m, &n]);
    let r = te.reduce_axis("k", &k);
    te.compute(&acc, &["i", "j"], |at| {
        let a = a.at(&[&at[0], &r.var()]).cast(DType::F32);
        sum(a * b.at(&[&r.var(), &at[1]]).cast(DType::F32), &[&r])
    });
    te.compute(&c, &["i", "j"], |at| {
        let product = alpha * acc.at(&[&at[0], &at[1]]);
        by_flag(&beta0, product.clone(), product + beta * c.at(&[&at[0], &at[1]]))
    });
    te.program()
}

/// 32 x 32 tile, 2 x 2 warps of 16 x 16, steps of 32 in two steps of 16, for rows at multiples of 8 elements.
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
";

#[test]
fn a_product_by_matrix_instructions() {
    let steps = "tensorize(As.e, cp_async16)
tensorize(Bs.e, cp_async16)
swizzle(As)
swizzle(Bs)
tensorize(acc.i, mma_m16n8k16_bf16)
tensorize(a.r, ldmatrix_x4)
tensorize(b.r, ldmatrix_x4_trans)
pipeline(acc.ko, 3, via=cp_async)
unroll(acc.ni, acc.ks, C.jo)
";
    let text = holds(half(), WARPS, steps).program().to_string();
    let (aligned, general) = text.split_once("\n  } else {\n").expect("two versions");
    for (wanted, times) in
        [("cp_async16(", 4), ("ldmatrix_x4(", 1), ("ldmatrix_x4_trans(", 1), ("mma_m16n8k16_bf16(", 1)]
    {
        assert_eq!(aligned.matches(wanted).count(), times, "{text}");
    }
    assert_eq!(general.matches("cp_async16(").count(), 0, "{text}");
    assert_eq!(general.matches("mma_m16n8k16_bf16(").count(), 1, "{text}");
}

#[test]
fn fragments_filled_element_by_element() {
    holds(half(), WARPS, "tensorize(acc.i, mma_m16n8k16_bf16)\nunroll(acc.ni, acc.ks, C.jo)\n");
}

#[test]
fn results_of_matrix_instructions_leave_in_pairs() {
    let steps = "tensorize(acc.i, mma_m16n8k16_bf16)
split(C.j, 2) -> j, v
vectorize(C.v)
unroll(acc.ni, acc.ks, C.jo)
";
    let before = WARPS.replacen("ldb%8)", "ldb%8, ldc%2)", 1);
    let text = holds(half(), &before, steps).program().to_string();
    let (aligned, general) = text.split_once("\n  } else {\n").expect("two versions");
    // With and without beta.
    assert_eq!(aligned.matches("for v in vector 0..2 {\n").count(), 2, "{text}");
    assert!(general.contains("(i, j by 2)") && !general.contains("in vector"), "{text}");
}
