use super::Schedule;
use crate::dtype::DType;
use crate::ir::{Program, parse};
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
fn block_tiling_grows_from_the_specification() {
    let schedule = Schedule::run(gemm(), BLOCK_TILING).unwrap_or_else(|e| panic!("{e}"));
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/schedule/block_tiling.ww");
    let text = schedule.program().to_string();
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::write(path, &text).expect("writable");
    }
    assert_eq!(text, std::fs::read_to_string(path).expect("readable"), "UPDATE_GOLDENS=1 takes the new text");
}

#[test]
fn the_text_of_a_schedule_reads_back() {
    let schedule = Schedule::run(gemm(), BLOCK_TILING).unwrap_or_else(|e| panic!("{e}"));
    let again = Schedule::run(gemm(), &schedule.text()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(again.text(), schedule.text());
    assert_eq!(again.program().to_string(), schedule.program().to_string());
    assert_eq!(schedule.prefixes().expect("steps apply again").len(), schedule.trace().len() + 1);
}

#[test]
fn refusals_say_what_to_do() {
    let cases = [
        ("split(C.x, 32) -> a, b", "there is no loop `C.x`; the loops that compute `C` are C.i, C.j"),
        ("split(C.i, 0) -> a, b", "the factor must be positive; write split("),
        ("split(C.i, nparts=4) -> a, b", "nparts of a symbolic extent multiplies two symbols"),
        ("bind(acc.k, threads)", "its number of iterations is not a positive constant"),
        ("bind(acc.k, block.x)", "two iterations may touch one element of `acc`"),
        ("bind(C.j, block.x)", "blocks must be outermost"),
        ("unroll(C.i)", "its number of iterations is not a constant"),
        ("fuse(C.i, C.j) -> f", "the inner extent is no constant"),
        ("reorder(C.i, acc.k)", "different loops of one label"),
        ("compute_at(acc, acc.k)", "it is also read outside that loop; attach it further out"),
        ("cache_read(A, C, shared) -> As", "`C` does not read `A`"),
        ("cache_write(C, reg) -> CC", "its old value is read too"),
        ("specialize(Q%4)", "there is no size `Q`"),
        ("frobnicate(C.i)", "there is no primitive `frobnicate`; the primitives are split"),
        ("split C.i by 4", "not a step"),
        ("split(C.i, 9223372036854775807) -> a, b", "`9223372036854775807` is too large, because no tile"),
        ("split(C.i, nparts=2000000) -> a, b", "choose a smaller number"),
    ];
    for (step, expected) in cases {
        let message = Schedule::run(gemm(), step).expect_err(step).to_string();
        assert!(message.contains(expected), "{step}\n  said: {message}");
    }
}

#[test]
fn a_refused_step_changes_nothing() {
    let mut schedule = Schedule::run(gemm(), "split(C.i, 32) -> by, i").unwrap_or_else(|e| panic!("{e}"));
    let before = schedule.program().to_string();
    let step = super::primitive::Unroll { targets: vec![super::LoopRef::new("C", "by")] };
    assert!(schedule.apply(step).is_err());
    assert_eq!(schedule.program().to_string(), before);
    assert_eq!(schedule.trace().len(), 1);
}

#[test]
fn a_stage_that_is_moved_inwards_twice_asks_for_its_bounds_once() {
    let before = parse::program(
        "program p(n: size, x: in f32[n], y: out f32[n]) {
  alloc t: f32[n] global
  for i in 0..n { t[i] = 2 * x[i] }
  for i in 0..n { y[i] = t[i] }
}",
    )
    .unwrap();
    let steps = "split(y.i, 40) -> b, i\ncompute_at(t, y.b)\nsplit(y.i, 24) -> w, i\ncompute_at(t, y.w)";
    let text = Schedule::run(before, steps).unwrap().program().to_string();
    assert!(text.contains("t[i] = 2 * (40*b + 24*w + i < n ? x[40*b + 24*w + i] : 0)"), "{text}");
}

#[test]
fn elements_that_a_piece_has_of_the_row_before_keep_their_bounds() {
    // Behind the last row `t` has elements of that row, where its pieces go on: they are no zeros.
    let moved = |piece: &str, element: &str| {
        let text = format!(
            "program p(n: size, x: in f32[5*n], y: out f32[1]) {{
  alloc t: f32[n, 2, 4] global
  for r in 0..n, p in 0..2, v in 0..4 {{
    t[r, p, v] = 4*p + 4*((5*r)/4) + v < 5*n ? x[4*p + 4*((5*r)/4) + v] : 0
  }}
  for z in 0..1 {{ y[z] = 0 }}
  for ko in 0..ceil(n, 8), k in 0..8 {{ y[0] += 8*ko + k < n ? t[8*ko + k, {piece}, {element}] : 0 }}
}}"
        );
        let before = parse::program(&text).unwrap_or_else(|e| panic!("{e}"));
        let steps = "set_scope(t, reg)\ncompute_at(t, y.ko)";
        Schedule::run(before, steps).unwrap_or_else(|e| panic!("{e}")).program().to_string()
    };
    let of_its_row = moved("(k%4 + 1)/4", "(k%4 + 1)%4");
    assert!(!of_its_row.contains("8*ko + k < n"), "{of_its_row}");
    let before_it = moved("0", "0");
    assert!(before_it.contains("8*ko + k < n"), "{before_it}");
}
