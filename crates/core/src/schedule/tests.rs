use super::Schedule;
use crate::dtype::DType;
use crate::ir::Program;
use crate::te::{Expression, by_flag, sum};

fn gemm() -> Program {
    let mut te = Expression::new("sgemm");
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

const BLOCK_TILING: &str = "
split(C.i, 128) -> by, i
split(C.j, 128) -> bx, j
split(C.i, 8) -> ty, i
split(C.j, 8) -> tx, j
reorder(C.by, C.bx, C.ty, C.tx, C.i, C.j)
bind(C.by, block.y)
bind(C.bx, block.x)
bind(C.ty, C.tx, threads)
set_scope(acc, reg)
compute_at(acc, C.tx)
split(acc.k, 8) -> ko, ki
reorder(acc.ko, acc.ki, acc.i, acc.j)
cache_read(A, acc, shared) -> As
compute_at(As, acc.ko)
split(As.r, 32) -> u, r
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

#[test]
fn show() {
    let s = Schedule::run(gemm(), BLOCK_TILING);
    match s {
        Ok(s) => println!("{}", s.program()),
        Err(e) => panic!("{e}"),
    }
}
