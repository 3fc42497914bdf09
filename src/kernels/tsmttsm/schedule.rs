//! The schedules of the three forms.

use super::mapping::{Threads, Warps, padding, piece, slices_of_a_group, staged_columns};
use super::reduction::{self, Parts};
use crate::kernels::family::Choice;
use crate::kernels::staging::{self, ACROSS, copied_at_once};
use crate::problem::{Op, Problem};

pub(super) fn by_threads(problem: &Problem, choice: &Choice) -> String {
    let Threads { mt, nt, slices, .. } = Threads::of(problem, choice);
    let (tm, tn) = (choice.int("tm"), choice.int("tn"));
    let Parts { split, taken_by: slice, last, .. } = reduction::of_slices(problem, choice);
    let mapping = if choice.flag("transposed") {
        format!(
            "split({slice}.i, {mt}) -> i, it
split({slice}.j, {nt}) -> j, jt
reorder({slice}.i, {slice}.j, {slice}.s, {slice}.it, {slice}.jt)
bind({slice}.i, vthread)
bind({slice}.j, vthread)
"
        )
    } else {
        format!(
            "split({slice}.i, {tm}) -> it, i
split({slice}.j, {tn}) -> jt, j
reorder({slice}.s, {slice}.it, {slice}.jt, {slice}.i, {slice}.j)
"
        )
    };
    let overlap = if choice.flag("leapfrog") { "pipeline(mine.ko, 2, via=registers)\n" } else { "" };
    format!(
        "split(acc.k, {slices}) -> ko, s
{split}{mapping}bind({slice}.s, {slice}.it, {slice}.jt, threads)
compute_at(mine, {slice}.jt)
reorder(mine.ko, mine.i, mine.j)
cache_read(A, mine, reg) -> a
compute_at(a, mine.ko)
cache_read(B, mine, reg) -> b
compute_at(b, mine.ko)
unroll(a.c, b.c, mine.i, mine.j)
{overlap}{last}"
    )
}

pub(super) fn by_threads_from_shared(problem: &Problem, choice: &Choice) -> String {
    let Threads { mt, nt, .. } = Threads::of(problem, choice);
    let slices = slices_of_a_group(problem, choice);
    let (tm, tn) = (choice.int("tm"), choice.int("tn"));
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
    let Parts { split, taken_by: slice, block, last } = reduction::of_sets(problem, choice, depth / slices);
    let order = if transposed {
        format!(
            "reorder({block}, {slice}.vi, {slice}.vj, {slice}.s, {slice}.it, {slice}.jt, {slice}.i, {slice}.j)
bind({slice}.vi, vthread)
bind({slice}.vj, vthread)
"
        )
    } else {
        format!("reorder({block}, {slice}.s, {slice}.it, {slice}.jt, {slice}.i, {slice}.j)\n")
    };
    let (specialize, staging) = staging(problem, staged_columns(problem, choice), slices * mt * nt);
    format!(
        "{specialize}split(acc.k, {depth}) -> ko, k
{split}{rows_of_c}{columns_of_c}{order}bind({block}, block.x)
bind({slice}.s, {slice}.it, {slice}.jt, threads)
compute_at(mine, {slice}.jt)
reorder(mine.ko, mine.k, mine.i, mine.j)
{staging}{reads}pipeline(mine.ko, {stages}, via=cp_async)
unroll(mine.k, mine.i, mine.j, {slice}.i, {slice}.j)
{last}",
        rows_of_c = shared_out(slice, "i", tm, mt, piece(problem, problem.shape.m, tm), transposed),
        columns_of_c = shared_out(slice, "j", tn, nt, piece(problem, problem.shape.n, tn), transposed),
    )
}

pub(super) fn by_matrix_units(problem: &Problem, choice: &Choice) -> String {
    let Warps { high, terms, rows, columns } = Warps::of(problem, choice);
    let (depth, stages) = (choice.int("depth"), choice.int("stages"));
    let Parts { split, taken_by: slice, block, last } =
        reduction::of_sets(problem, choice, depth / choice.int("wk"));
    let threads = 32 * choice.int("wm") * choice.int("wn") * choice.int("wk");
    let (instruction, dtype) = (choice.word("instruction"), problem.dtype());
    let conjugate =
        if dtype.is_complex() && problem.layout.a == Op::ConjugateTranspose { "_conj" } else { "" };
    let (specialize, staging) = staging(problem, staged_columns(problem, choice), threads);
    format!(
        "{specialize}split(acc.k, {depth}) -> ko, k
{split}split({slice}.i, {rows}) -> wm, i
split({slice}.j, {columns}) -> wn, j
reorder({block}, {slice}.s, {slice}.wm, {slice}.wn, {slice}.i, {slice}.j)
bind({block}, block.x)
bind({slice}.s, {slice}.wm, {slice}.wn, threads@32)
compute_at(mine, {slice}.wn)
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
{last}",
        tiles = [(rows > high, "a.co", "io"), (columns > ACROSS, "b.co", "jo")]
            .map(|(several, read, stored)| {
                if several { format!(", {read}, {slice}.{stored}") } else { String::new() }
            })
            .concat(),
    )
}

/// How the rows or columns of C are shared out among threads in a stage: the loops over them, those bound to virtual threads, and
/// the steps that make them from the loop `axis`. A thread's elements lie in pieces of `piece`, and the pieces side by
/// side, or as far apart as possible.
fn shared_out(stage: &str, axis: &str, tile: i64, threads: i64, piece: i64, transposed: bool) -> String {
    if transposed {
        format!(
            "split({stage}.{axis}, {}) -> v{axis}, {axis}\nsplit({stage}.{axis}, {piece}) -> {axis}t, {axis}\n",
            threads * piece
        )
    } else {
        format!("split({stage}.{axis}, {tile}) -> {axis}t, {axis}\n")
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
