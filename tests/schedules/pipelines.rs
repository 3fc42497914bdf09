//! Pipelines of every kind, at sizes where the ring is longer than the loop, and where there is no loop at all.

use warpwright_core::dtype::DType;
use warpwright_core::ir::Program;
use warpwright_core::schedule::Schedule;
use warpwright_core::te::{Expression, by_flag, sum};

use crate::check::check;

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
    println!("{}", schedule.program());
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
fn fragments_of_an_unrolled_loop() {
    holds("pipeline(acc.ki, 2, via=registers)");
    holds("double_buffer(acc.ki)\npipeline(acc.ko, 2, via=registers)");
}
