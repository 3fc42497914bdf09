//! The schedules of the forms.

use super::mapping::{Moved, Tiles, Warps, paddings, terms_at_once, threads};
use crate::kernels::family::Choice;
use crate::kernels::staging::{self, ACROSS, copied_at_once};
use crate::problem::Problem;

/// Columns of the result of a thread of the form that reads rows into registers.
pub(super) fn columns(problem: &Problem, choice: &Choice) -> i64 {
    let threads = choice.int("threads").max(1);
    (problem.shape.n + threads - 1) / threads
}

pub(super) fn by_threads(problem: &Problem, choice: &Choice) -> String {
    let (block, unroll, columns) = (choice.int("block"), choice.int("unroll"), columns(problem, choice));
    let across = (problem.shape.n + columns - 1) / columns;
    let rows = (block / across).max(1);
    let small = match choice.word("c_source") {
        "registers" => "cache_read(B, acc, reg) -> b\ncompute_at(b, C.jt)\nunroll(b.r, b.c)\n".to_string(),
        "l1" => "cache_read(B, acc, reg) -> b\ncompute_at(b, acc.k)\nunroll(b.c)\n".to_string(),
        _ => format!(
            "cache_read(B, acc, shared) -> Bs
compute_at(Bs, C.block)
fuse(Bs.r, Bs.c) -> f
split(Bs.f, {threads}) -> u, t
reorder(Bs.t, Bs.u)
bind(Bs.t, threads)
cache_read(Bs, acc, reg) -> b
compute_at(b, acc.k)
unroll(b.c)
",
            threads = rows * across
        ),
    };
    format!(
        "split(C.i, {rows_of_a_block}) -> block, i
split(C.i, {unroll}) -> it, i
split(C.j, {columns}) -> jt, j
reorder(C.block, C.it, C.jt, C.i, C.j)
bind(C.block, block.x)
bind(C.it, C.jt, threads)
set_scope(acc, reg)
compute_at(acc, C.jt)
reorder(acc.k, acc.i, acc.j)
cache_read(A, acc, reg) -> a
compute_at(a, acc.k)
{small}unroll(acc.k, acc.i, acc.j, a.r, C.i, C.j)
",
        rows_of_a_block = rows * unroll,
    )
}

/// Blocks that take every so many groups of rows: A is copied to shared memory in the loop over them, and the result
/// leaves through shared memory, so that device memory sees whole lines, or straight from registers.
pub(super) fn from_shared(problem: &Problem, choice: &Choice) -> String {
    let threads = threads(problem, choice);
    let [pad_a, pad_b, pad_c] = paddings(problem, choice);
    let (moved_a, moved_c) = (Moved::of_a(problem), Moved::of_c(problem));
    let (dtype, n) = (problem.dtype(), problem.shape.n);
    let mma = choice.word("unit") == "mma";
    let piece_a = match moved_a {
        Moved::AsOne => 16 / dtype.bytes(),
        _ => copied_at_once(dtype, problem.shape.k, problem.shape.k),
    };
    let piece_c = match moved_c {
        Moved::AsOne => 16 / dtype.bytes(),
        _ => copied_at_once(dtype, n, n),
    };
    // What lies some way apart is copied in pieces where its rows start at multiples of them.
    let strided = [("lda", moved_a, piece_a), ("ldc", moved_c, piece_c)];
    let aligned: Vec<String> = strided
        .iter()
        .filter(|(_, moved, piece)| *moved == Moved::Strided && *piece > 1)
        .map(|(stride, _, piece)| format!("{stride}%{piece}"))
        .collect();
    let specialize =
        if aligned.is_empty() { String::new() } else { format!("specialize({})\n", aligned.join(", ")) };
    let in_rows = |moved: Moved, at: Moved, columns: i64| {
        if moved == at { format!(", rows={columns}") } else { String::new() }
    };
    let as_one = moved_a == Moved::AsOne;
    let k = problem.shape.k;
    let (tiles, products, written) = if mma {
        by_matrix_units(problem, choice)
    } else {
        by_tiles(problem, choice, (n + pad_c) % piece_c == 0)
    };
    format!(
        "{specialize}cache_write(acc, reg) -> mine
cache_read(A, mine, shared{rows_in_shared}) -> As
cache_read(B, mine, shared) -> Bs
split(C.i, {group}) -> blk, i
split(C.blk, {blocks}) -> blk, g
reorder(C.g, C.blk, C.i, C.j)
bind(C.g, block.x)
set_scope(acc, shared)
compute_at(acc, C.blk)
compute_at(mine, C.blk)
compute_at(As, C.blk)
{longer_a}{longer_c}cache_read(As, mine, reg{rows_in_registers}) -> a
{tiles}{copy}fuse(C.i, C.j) -> f
split(C.f, {piece_c}) -> f, e
split(C.f, {threads}) -> u, t
reorder(C.t, C.u, C.e)
bind(C.t, threads)
{products}compute_at(Bs, C.g)
{longer_b}fuse(Bs.r, Bs.c) -> f
split(Bs.f, {threads}) -> u, t
reorder(Bs.t, Bs.u)
bind(Bs.t, threads)
{vector}pipeline(C.blk, {stages}, via=cp_async)
unroll(C.u)
{written}",
        rows_in_shared = in_rows(moved_a, Moved::Rows, k),
        rows_in_registers = in_rows(moved_a, Moved::AsOne, k),
        group = choice.int("rows"),
        blocks = choice.int("blocks"),
        longer_a = staging::pad("As", pad_a),
        longer_b = staging::pad("Bs", pad_b),
        longer_c = staging::pad("acc", pad_c),
        copy = staging::copy_steps("As", as_one, piece_a, threads, dtype),
        vector = if piece_c > 1 { "vectorize(C.e)\n" } else { "" },
        stages = choice.int("stages"),
    )
}

/// Steps for the tiles of warps, for their products, and for what they write.
fn by_matrix_units(problem: &Problem, choice: &Choice) -> (String, String, String) {
    let Warps { high, terms, rows, columns } = Warps::of(problem, choice);
    let instruction = choice.word("instruction");
    let below = if rows > high { ", a.ro, acc.io" } else { "" };
    let beside = if columns > ACROSS { ", b.co, acc.jo" } else { "" };
    (
        format!(
            "split(acc.i, {rows}) -> wm, i
split(acc.j, {columns}) -> wn, j
reorder(acc.wm, acc.wn, acc.i, acc.j)
bind(acc.wm, acc.wn, threads@32)
compute_at(mine, acc.wn)
"
        ),
        format!(
            "split(mine.k, {terms}) -> ks, k
reorder(mine.ks, mine.i, mine.j, mine.k)
compute_at(a, mine.ks)
cache_read(Bs, mine, reg) -> b
compute_at(b, mine.ks)
split(mine.i, {high}) -> mi, i
split(mine.j, {ACROSS}) -> ni, j
reorder(mine.ks, mine.mi, mine.ni, mine.i, mine.j, mine.k)
tensorize(mine.i, mma_{instruction}_{dtype})
",
            dtype = problem.dtype(),
        ),
        format!("unroll(mine.ks, mine.mi, mine.ni{below}{beside})\n"),
    )
}

/// The same for the tiles of threads; the result is written in pieces where its rows are `aligned`.
fn by_tiles(problem: &Problem, choice: &Choice, aligned: bool) -> (String, String, String) {
    let Tiles { down, across, piece } = Tiles::of(problem, choice);
    let at_once = terms_at_once(problem);
    let wide = |step: &str, of: i64| if of > 1 { format!("vectorize({step})\n") } else { String::new() };
    (
        format!(
            "split(acc.i, {down}) -> vi, it
split(acc.j, {apart}) -> vj, j
split(acc.j, {piece}) -> jt, j
reorder(acc.vi, acc.vj, acc.it, acc.jt, acc.j)
bind(acc.vi, vthread)
bind(acc.vj, vthread)
bind(acc.it, acc.jt, threads)
compute_at(mine, acc.jt)
",
            apart = piece * across,
        ),
        format!(
            "split(mine.k, {at_once}) -> ks, k
reorder(mine.ks, mine.k, mine.i, mine.j)
compute_at(a, mine.ks)
cache_read(Bs, mine, reg) -> b
compute_at(b, mine.k)
{}",
            wide("a.c", at_once),
        ),
        format!(
            "{}{}unroll(mine.k, mine.i, mine.j)\n",
            wide("b.c", piece),
            if aligned && problem.shape.n % piece == 0 { wide("acc.j", piece) } else { String::new() }
        ),
    )
}
