//! The schedules of the three forms.

use super::mapping::{Threads, Warps, padding, piece, slices_of_a_group, staged_columns};
use crate::kernels::family::Choice;
use crate::kernels::staging::{self, ACROSS, copied_at_once};
use crate::problem::{Op, Problem};

pub(super) fn by_threads(problem: &Problem, choice: &Choice) -> String {
    let Threads { mt, nt, slices } = Threads::of(problem, choice);
    let (tm, tn, parts) = (choice.int("tm"), choice.int("tn"), choice.int("parts"));
    let threads = slices * mt * nt;
    let (split, order) = if choice.flag("transposed") {
        (
            format!("split(slice.i, {mt}) -> i, it\nsplit(slice.j, {nt}) -> j, jt\n"),
            "reorder(slice.i, slice.j, slice.s, slice.it, slice.jt)
bind(slice.i, vthread)
bind(slice.j, vthread)
",
        )
    } else {
        (
            format!("split(slice.i, {tm}) -> it, i\nsplit(slice.j, {tn}) -> jt, j\n"),
            "reorder(slice.s, slice.it, slice.jt, slice.i, slice.j)\n",
        )
    };
    let overlap = if choice.flag("leapfrog") { "pipeline(mine.ko, 2, via=registers)\n" } else { "" };
    format!(
        "split(acc.k, {slices}) -> ko, s
split_reduce(acc.ko, {parts}, order=cyclic) -> part, g
rfactor(part.s, combine=shared) -> slice
cache_write(slice, reg) -> mine
bind(part.g, block.x)
compute_at(slice, part.g)
{split}{order}bind(slice.s, slice.it, slice.jt, threads)
compute_at(mine, slice.jt)
reorder(mine.ko, mine.i, mine.j)
cache_read(A, mine, reg) -> a
compute_at(a, mine.ko)
cache_read(B, mine, reg) -> b
compute_at(b, mine.ko)
fuse(part.i, part.j) -> e
split(part.e, {threads}) -> u, t
reorder(part.t, part.u)
bind(part.t, threads)
unroll(a.c, b.c, mine.i, mine.j)
{overlap}{second_pass}",
        second_pass = second_pass(problem, choice),
    )
}

pub(super) fn by_threads_from_shared(problem: &Problem, choice: &Choice) -> String {
    let Threads { mt, nt, .. } = Threads::of(problem, choice);
    let slices = slices_of_a_group(problem, choice);
    let (tm, tn, parts) = (choice.int("tm"), choice.int("tn"), choice.int("parts"));
    let (depth, stages) = (choice.int("depth"), choice.int("stages"));
    let transposed = choice.flag("transposed");
    let mut reads = String::new();
    for (tile, fragment, columns, of_a_thread) in
        [("As", "a", problem.shape.m, tm), ("Bs", "b", problem.shape.n, tn)]
    {
        reads += &format!("cache_read({tile}, mine, reg) -> {fragment}\ncompute_at({fragment}, mine.k)\n");
        let at_once = piece(problem, columns, of_a_thread);
        reads += &if at_once > 1 {
            format!("split({fragment}.c, {at_once}) -> c, v\nvectorize({fragment}.v)\nunroll({fragment}.c)\n")
        } else {
            format!("unroll({fragment}.c)\n")
        };
    }
    let order = if transposed {
        "reorder(slice.g, slice.vi, slice.vj, slice.s, slice.it, slice.jt, slice.i, slice.j)
bind(slice.vi, vthread)
bind(slice.vj, vthread)
"
    } else {
        "reorder(slice.g, slice.s, slice.it, slice.jt, slice.i, slice.j)\n"
    };
    let (specialize, staging) = staging(problem, staged_columns(problem, choice), slices * mt * nt);
    format!(
        "{specialize}split(acc.k, {depth}) -> ko, k
split_reduce(acc.ko, {parts}, order=cyclic) -> part, g
split(part.k, {rows}) -> s, k
rfactor(part.s) -> slice
cache_write(slice, reg) -> mine
{rows_of_c}{columns_of_c}{order}bind(slice.g, block.x)
bind(slice.s, slice.it, slice.jt, threads)
compute_at(mine, slice.jt)
reorder(mine.ko, mine.k, mine.i, mine.j)
{staging}{reads}pipeline(mine.ko, {stages}, via=cp_async)
unroll(mine.k, mine.i, mine.j, slice.i, slice.j)
{second_pass}{SETS_AS_THEY_ARE_READ}",
        second_pass = second_pass(problem, choice),
        rows = depth / slices,
        rows_of_c = shared_out("i", tm, mt, piece(problem, problem.shape.m, tm), transposed),
        columns_of_c = shared_out("j", tn, nt, piece(problem, problem.shape.n, tn), transposed),
    )
}

pub(super) fn by_matrix_units(problem: &Problem, choice: &Choice) -> String {
    let Warps { high, terms, rows, columns } = Warps::of(problem, choice);
    let (depth, parts, stages) = (choice.int("depth"), choice.int("parts"), choice.int("stages"));
    let threads = 32 * choice.int("wm") * choice.int("wn") * choice.int("wk");
    let (instruction, dtype) = (choice.word("instruction"), problem.dtype());
    let conjugate =
        if dtype.is_complex() && problem.layout.a == Op::ConjugateTranspose { "_conj" } else { "" };
    let (specialize, staging) = staging(problem, staged_columns(problem, choice), threads);
    format!(
        "{specialize}split(acc.k, {depth}) -> ko, k
split_reduce(acc.ko, {parts}, order=cyclic) -> part, g
split(part.k, {slice}) -> s, k
rfactor(part.s) -> slice
cache_write(slice, reg) -> mine
split(slice.i, {rows}) -> wm, i
split(slice.j, {columns}) -> wn, j
reorder(slice.g, slice.s, slice.wm, slice.wn, slice.i, slice.j)
bind(slice.g, block.x)
bind(slice.s, slice.wm, slice.wn, threads@32)
compute_at(mine, slice.wn)
split(mine.k, {terms}) -> ks, k
reorder(mine.ko, mine.ks, mine.i, mine.j, mine.k)
{staging}cache_read(As, mine, reg) -> a
compute_at(a, mine.ks)
storage_order(a, c, r)
cache_read(Bs, mine, reg) -> b
compute_at(b, mine.ks)
split(mine.i, {high}) -> mi, i
split(mine.j, {ACROSS}) -> ni, j
reorder(mine.ks, mine.mi, mine.ni, mine.i, mine.j, mine.k)
tensorize(mine.i, mma_{instruction}_{dtype}{conjugate})
pipeline(mine.ko, {stages}, via=cp_async)
unroll(mine.ks, mine.mi, mine.ni{tiles})
{second_pass}{SETS_AS_THEY_ARE_READ}",
        second_pass = second_pass(problem, choice),
        slice = depth / choice.int("wk"),
        tiles = [(rows > high, ", a.co, slice.io"), (columns > ACROSS, ", b.co, slice.jo")]
            .map(|(several, loops)| if several { loops } else { "" })
            .concat(),
    )
}

/// How the rows or columns of C are shared out among threads: the loops over them, those bound to virtual threads, and
/// the steps that make them from the loop `axis`. A thread's elements lie in pieces of `piece`, and the pieces side by
/// side, or as far apart as possible.
fn shared_out(axis: &str, tile: i64, threads: i64, piece: i64, transposed: bool) -> String {
    if transposed {
        format!(
            "split(slice.{axis}, {}) -> v{axis}, {axis}\nsplit(slice.{axis}, {piece}) -> {axis}t, {axis}\n",
            threads * piece
        )
    } else {
        format!("split(slice.{axis}, {tile}) -> {axis}t, {axis}\n")
    }
}

/// The step that tells products whose rows start at multiples of 16 bytes from others, and the steps that copy groups
/// of rows of both operands to shared memory with so many threads. There the rows have as many elements as the tiles
/// that read them, in `staged`.
fn staging(problem: &Problem, staged: [i64; 2], threads: i64) -> (String, String) {
    let dtype = problem.dtype();
    let mut aligned = Vec::new();
    let mut steps = String::new();
    for (operand, tile, width, staged, stride) in
        [("A", "As", problem.shape.m, staged[0], "lda"), ("B", "Bs", problem.shape.n, staged[1], "ldb")]
    {
        let piece = copied_at_once(dtype, width, staged);
        if piece > 1 {
            aligned.push(format!("{stride}%{piece}"));
        }
        steps += &staging::copy(operand, "mine", tile, "mine.ko", piece, threads, dtype);
        steps += &staging::pad(tile, padding(dtype, staged, piece));
    }
    let specialize =
        if aligned.is_empty() { String::new() } else { format!("specialize({})\n", aligned.join(", ")) };
    (specialize, steps)
}

/// The launch that adds up the parts: a block for each row of C, in which several threads share out the parts of an
/// element and one adds up what they have, always in the same order.
fn second_pass(problem: &Problem, choice: &Choice) -> String {
    let most = (SECOND_PASS_THREADS / problem.shape.n).min(choice.int("parts")).min(32);
    let shares = (0..=5).map(|e| 1 << e).rfind(|shares| *shares <= most).unwrap_or(1);
    format!(
        "split_reduce(acc.g, {shares}, combine=shared, order=cyclic) -> sub, t
cache_write(sub, reg) -> sum
bind(C.i, block.x)
bind(C.j, threads)
set_scope(acc, reg)
compute_at(acc, C.j)
compute_at(sub, C.i)
reorder(sub.t, sub.i, sub.j)
bind(sub.t, sub.j, threads)
compute_at(sum, sub.j)
unroll(acc.t)
"
    )
}

/// Threads of a block that adds up parts, at most.
const SECOND_PASS_THREADS: i64 = 512;

/// The steps that make the sets of a part, which the first launch leaves behind, one sum as they are read.
const SETS_AS_THEY_ARE_READ: &str = "set_scope(part, reg)
compute_at(part, sum.g)
unroll(part.s)
";
