//! How threads and warps stand over C and over rows, and what they find in shared memory.

use warpwright_core::dtype::DType;

use super::WIDEST;
use super::border::{self, border};
use super::boxes;
use super::runs::{self, RUNS};
use super::strided;
use super::turned;
use super::warps::covered_by_warps;
use crate::kernels::classes::{Classes, Window};
use crate::kernels::family::Choice;
use crate::kernels::gemm::Numbers;
use crate::kernels::staging::{self, ACROSS, By, Copied, Moved, ceil, copied_at_once, numbers};
use crate::problem::{Alignment, Layout, Offsets, Op, Precision, Problem, Shape, Strides};

/// Sums that make an element of C.
pub(super) fn sums(problem: &Problem, choice: &Choice) -> i64 {
    match numbers(problem, choice) {
        Numbers::Whole => 1,
        Numbers::Three => 3,
        Numbers::Parts => 4,
        Numbers::Embedded | Numbers::Expanded => 2,
    }
}

/// The classes by which rows are added up, if they are.
pub(super) fn classes(problem: &Problem, choice: &Choice) -> Option<Classes> {
    if choice.word(staging::COPY) == staging::BY_CLASSES { Classes::of(problem, WIDEST) } else { None }
}

/// The windows of rows of A and of B where they are added up by classes.
fn windows(problem: &Problem, choice: &Choice) -> Option<[Window; 2]> {
    let classes = classes(problem, choice)?;
    Some([problem.shape.m, problem.shape.n].map(|width| classes.window(width)))
}

/// How many classes of rows there are, each of which has blocks of its own.
pub(super) fn class_count(problem: &Problem, choice: &Choice) -> i64 {
    classes(problem, choice).map_or(1, |classes| classes.count)
}

/// Whether rows can be added up by classes: dense ones of two matrices, whose products are not divided into areas. Doubles
/// are read one by one by matrix units, wherever they start.
pub(super) fn may_be_classed(problem: &Problem, choice: &Choice) -> bool {
    let doubles = problem.dtype().real() == DType::F64;
    !doubles && !problem.same && areas(problem, choice) == 1 && Classes::of(problem, WIDEST).is_some()
}

/// Elements after which the next row that a block reads of A and of B begins, where rows are dense, or are read with what lies between them.
pub(super) fn rows_in_memory(problem: &Problem, choice: &Choice) -> [i64; 2] {
    let read = read(problem, choice);
    if strided::in_spans(choice) {
        return [read.ld.a, read.ld.b];
    }
    windows(problem, choice).map_or([read.shape.m, read.shape.n], |windows| windows.map(Window::rows))
}

/// The product of the matrices that are read: where complex numbers are not taken whole, that of real ones of twice the
/// width; where rows are added up by classes, that of their windows. Of other products it is the product itself.
pub(super) fn read(problem: &Problem, choice: &Choice) -> Problem {
    if let Some([a, b]) = windows(problem, choice) {
        return Problem {
            shape: Shape { m: a.columns, n: b.columns, ..problem.shape },
            ld: Strides { a: a.rows(), b: b.rows(), ..problem.ld },
            ..*problem
        };
    }
    stored(problem, choice)
}

/// The product of the matrices as they are in memory: where complex numbers are not taken whole, that of real ones.
fn stored(problem: &Problem, choice: &Choice) -> Problem {
    if numbers(problem, choice) == Numbers::Whole {
        return *problem;
    }
    let Problem { shape, layout, ld, offset, .. } = *problem;
    Problem {
        shape: Shape { m: 2 * shape.m, n: 2 * shape.n, ..shape },
        precision: Precision::Of(problem.dtype().real()),
        layout: Layout { a: Op::Transpose, ..layout },
        ld: Strides { a: 2 * ld.a, b: 2 * ld.b, ..ld },
        offset: Offsets { a: 2 * offset.a, b: 2 * offset.b, c: 2 * offset.c },
        ..*problem
    }
}

/// The rows and columns that tiles cover: those of the product of what is read, or, where three real products share the
/// tiles, of C itself.
pub(super) fn covered(problem: &Problem, choice: &Choice) -> [i64; 2] {
    let three = numbers(problem, choice) == Numbers::Three;
    let shape = if three { problem.shape } else { read(problem, choice).shape };
    [shape.m, shape.n]
}

/// How the threads of a block stand over an area of C and over rows.
pub(super) struct Threads {
    /// Rows and columns of the area.
    pub(super) area: [i64; 2],
    /// Threads along the rows of C.
    pub(super) mt: i64,
    /// Threads along the columns of C.
    pub(super) nt: i64,
    /// Groups of threads that each cover the area.
    pub(super) slices: i64,
}

impl Threads {
    pub(super) fn of(problem: &Problem, choice: &Choice) -> Threads {
        let area = area(problem, choice);
        let (mt, nt) = (ceil(area[0], choice.int("tm")), ceil(area[1], choice.int("tn")));
        // Whole fours where that leaves few without a tile: so warps end where rows of tiles do. Tiles that lie side by side
        // are as many as there are.
        let by_rows = classes(problem, choice).is_some() || choice.word(staging::COPY) == staging::BY_ROWS;
        let in_fours = by_rows && choice.flag("transposed");
        let fours = [mt, nt].map(|threads| {
            let more = (4 - threads % 4) % 4;
            if in_fours && 8 * more <= threads { threads + more } else { threads }
        });
        let fit = fours.iter().product::<i64>() <= choice.int("block");
        let [mt, nt] = if fit { fours } else { [mt, nt] };
        // Neighbours read a panel in pairs, if the last of an odd number has one.
        let nt = if choice.flag("panel") && choice.flag(staging::INTERLEAVED) { nt + nt % 2 } else { nt };
        // No more than there are rows for, rounded up so that sums of similar length have the same kernel.
        let rows = ceil(problem.shape.k, choice.int("parts").max(1)).clamp(1, 1 << 20) as u64;
        let slices = (choice.int("block") / (mt * nt).max(1)).min(rows.next_power_of_two() as i64).max(1);
        Threads { area, mt, nt, slices }
    }

    /// Threads that cover the area once.
    pub(super) fn covering(&self) -> i64 {
        self.mt * self.nt
    }
}

/// Rows and columns of the areas that what tiles cover is divided into, each for blocks of its own: halves of
/// halves. What is staged is halved between pieces of 16 bytes, or between matrix instructions.
pub(super) fn area(problem: &Problem, choice: &Choice) -> [i64; 2] {
    let (mut area, mut areas) = (covered(problem, choice), choice.int("areas"));
    let whole = match (choice.word("unit"), choice.word("staging")) {
        ("mma", _) => ACROSS,
        (_, "shared") => 16 / problem.dtype().bytes(),
        _ => 1,
    };
    while areas > 1 {
        let longer = if area[0] >= area[1] { 0 } else { 1 };
        area[longer] = ceil(ceil(area[longer], 2), whole) * whole;
        areas /= 2;
    }
    area
}

/// Rows and columns of an area that the tiles of matrix instructions cover: all but those that threads add up or that are turned.
pub(super) fn tiled(problem: &Problem, choice: &Choice) -> [i64; 2] {
    let ([height, width], [rows, columns]) = (area(problem, choice), border(problem, choice));
    [height - rows, width - columns]
}

/// How many areas there are.
pub(super) fn areas(problem: &Problem, choice: &Choice) -> i64 {
    let ([height, width], [m, n]) = (area(problem, choice), covered(problem, choice));
    ceil(m, height) * ceil(n, width)
}

/// How many threads share out the slices of an element of C when they are added up: as many as there are to spare, and
/// about as many as each then finds slices.
pub(super) fn shares(problem: &Problem, choice: &Choice) -> i64 {
    let (slices, owners) = (slices(problem, choice), owners(problem, choice));
    let of_block = slices * Threads::of(problem, choice).covering();
    let fits = |q: &i64| slices % q == 0 && q * owners <= of_block;
    (1..=32).take_while(|q| q * q <= slices).filter(fits).last().unwrap_or(1)
}

/// How many threads share out the elements of an area when slices of it are added up.
pub(super) fn owners(problem: &Problem, choice: &Choice) -> i64 {
    let threads = Threads::of(problem, choice);
    (slices(problem, choice) * threads.covering()).min(threads.area[0] * threads.area[1])
}

/// Slices of a block: of the rows of a group where they are staged.
pub(super) fn slices(problem: &Problem, choice: &Choice) -> i64 {
    if choice.word("staging") == "shared" {
        slices_of_a_group(problem, choice)
    } else {
        Threads::of(problem, choice).slices
    }
}

/// Bytes of shared memory in which the slices of a block come together.
pub(super) fn slices_bytes(problem: &Problem, choice: &Choice) -> i64 {
    let area = area(problem, choice);
    let (slices, shares) = (slices(problem, choice), shares(problem, choice));
    let sums = match choice.word("reduction") {
        "local" => 1,
        _ if shares > 1 => slices + shares,
        _ => slices,
    };
    sums * area[0] * area[1] * problem.result_dtype().bytes()
}

/// Elements of a row of A and of one of B that a thread reads at once: 16 bytes, or 8, if the tiles of threads consist of
/// such pieces, and so do rows in shared memory. Matrix instructions take one by one.
pub(super) fn pieces(problem: &Problem, choice: &Choice) -> [i64; 2] {
    if choice.flag(WHOLE) { [16 / problem.dtype().bytes(); 2] } else { pieces_of_tiles(problem, choice) }
}

/// The same where tiles are read by themselves.
fn pieces_of_tiles(problem: &Problem, choice: &Choice) -> [i64; 2] {
    let (most, shape) = (16 / problem.dtype().bytes(), problem.shape);
    let [height, width] = area(problem, choice);
    let [of_a, of_b] = moved(problem, choice);
    [(shape.m, height, of_a, "tm"), (shape.n, width, of_b, "tn")].map(|(row, columns, moved, tile)| {
        let tile = choice.int(tile);
        let panel = moved == Moved::AsOne && choice.flag("panel");
        if tile == 0 || panel {
            return 1;
        }
        // Rows that are copied each for itself have as many columns there as tiles have.
        let whole = |piece: i64| columns % tile == 0 && row % piece == 0 || moved != Moved::AsOne;
        (1..=most).rev().find(|p| most % p == 0 && tile % p == 0 && whole(*p)).unwrap_or(1)
    })
}

/// Rows of A that a thread reads at a time: where it reads panels, as many as make whole pieces of 16 bytes.
pub(super) fn rows_of_a_panel(problem: &Problem, choice: &Choice) -> i64 {
    let bytes = problem.shape.m * problem.dtype().bytes();
    if choice.flag("panel") {
        [1, 2, 4, 8].into_iter().find(|r| r * bytes % 16 == 0).unwrap_or(16)
    } else {
        1
    }
}

/// The name of the parameter that says whether tiles are read in whole pieces wherever in one they start.
pub(super) const WHOLE: &str = "whole";

/// Rows of A and B of which each starts elsewhere in a piece of 16 bytes, until they start as the first one does.
pub(super) fn rows_of_a_round(problem: &Problem) -> i64 {
    let bytes = problem.dtype().bytes();
    let starts_alike = |r: &i64| [problem.shape.m, problem.shape.n].iter().all(|w| r * w * bytes % 16 == 0);
    [1, 2, 4].into_iter().find(starts_alike).unwrap_or(8)
}

/// Whether tiles can be read in whole pieces, and have not been otherwise: rows lie densely, and the tiles of threads consist of
/// pieces, side by side.
pub(super) fn may_read_whole(problem: &Problem, choice: &Choice) -> bool {
    let most = 16 / problem.dtype().bytes();
    let tiles = ["tm", "tn"].map(|tile| choice.int(tile));
    choice.word("staging") == "shared"
        && !choice.flag("panel")
        && !choice.flag("transposed")
        && moved(problem, choice) == [Moved::AsOne; 2]
        && tiles.iter().all(|tile| *tile > 0 && tile % most == 0)
        && most > 1
        && pieces_of_tiles(problem, choice) != [most; 2]
}

/// Whether lanes in pairs stand in squares of 16, too: where tiles are read in whole pieces, and there are whole fours of threads.
pub(super) fn in_squares(problem: &Problem, choice: &Choice) -> bool {
    let Threads { mt, nt, .. } = Threads::of(problem, choice);
    choice.flag(WHOLE) && choice.flag(staging::INTERLEAVED) && mt % 4 == 0 && nt % 4 == 0
}

/// Pieces that a thread reads of a row for each tile, in the mean over where rows start.
pub(super) fn whole_pieces(problem: &Problem, width: i64, tile: i64) -> f64 {
    let most = 16 / problem.dtype().bytes();
    let starts = (0..rows_of_a_round(problem)).map(|row| row * width % most);
    let pieces: i64 = starts.map(|start| ceil(start + tile, most)).sum();
    pieces as f64 / rows_of_a_round(problem) as f64
}

/// Slices among which the rows of a group are shared out: the most that there are threads for and that divide it.
pub(super) fn slices_of_a_group(problem: &Problem, choice: &Choice) -> i64 {
    let most = Threads::of(problem, choice).slices;
    (1..=most).rev().find(|s| choice.int("depth") % s == 0).unwrap_or(1)
}

/// Rows of a group that a thread multiplies.
pub(super) fn rows_of_a_thread(problem: &Problem, choice: &Choice) -> i64 {
    choice.int("depth") / slices_of_a_group(problem, choice)
}

/// Bytes of the multiply-adds of so many rows of a thread.
pub(super) fn code_bytes(problem: &Problem, choice: &Choice, rows: i64) -> i64 {
    let each = if problem.dtype().is_complex() { 4 } else { 1 };
    rows * choice.int("tm") * choice.int("tn") * each * INSTRUCTION_BYTES
}

/// Bytes of an instruction (since compute capability 7.0).
pub(super) const INSTRUCTION_BYTES: i64 = 16;

/// Bytes of instructions beyond which a loop takes longer than its instructions do. What searches tried of A^H B in complex64 and A^T B in
/// f32, 24 to 64 wide, took 1.2 times as long, held against the model, where the multiply-adds of a group were 32 KiB or more
/// as where they were 4 to 16 (4919 candidates, H200s, 2026-11-23).
pub(super) const LONG_CODE: i64 = 32 << 10;

/// How many of the rows of a group a thread may multiply in a row, unrolled: all of them, or, where that is much code, as
/// many as is little, or half as many.
pub(super) fn steps(problem: &Problem, choice: &Choice) -> Vec<i64> {
    let all = rows_of_a_thread(problem, choice);
    let little = |rows: &i64| code_bytes(problem, choice, *rows) <= LONG_CODE / 2;
    let fewer: Vec<i64> = (1..all).rev().filter(|rows| all % rows == 0 && little(rows)).take(2).collect();
    if fewer.is_empty() || little(&all) { Vec::new() } else { [vec![all], fewer].concat() }
}

/// Rows that a thread multiplies in a row, unrolled.
pub(super) fn rows_in_a_row(problem: &Problem, choice: &Choice) -> i64 {
    choice.get("steps").map_or_else(|| rows_of_a_thread(problem, choice), |_| choice.int("steps"))
}

/// Rows that a thread has under way at a time where it reads them into registers.
pub(super) fn rows_at_once(choice: &Choice) -> i64 {
    choice.int("unroll").max(1)
}

/// The name of the parameter that says how far apart the rows are that lanes read together for a matrix instruction.
pub(super) const APART: &str = "apart";

/// How far apart in shared memory the four rows are that lanes read together for a matrix instruction: where a group arrives in runs,
/// one of each.
pub(super) fn apart(choice: &Choice) -> i64 {
    if runs::in_runs(choice) { choice.int("depth") / RUNS } else { choice.int(APART).max(1) }
}

/// The name of the parameter that says whether lanes find zeros beyond the end of a row.
pub(super) const ZEROS: &str = "zeros";

/// Whether tiles stand over the end of rows that one bulk copy brings, so that lanes may find zeros there, or what follows. Of rows that
/// are some way apart they find what follows anyway.
pub(super) fn may_go_without_zeros(problem: &Problem, choice: &Choice) -> bool {
    let Problem { shape, .. } = read(problem, choice);
    let over =
        tiled_columns(problem, choice).iter().zip([shape.m, shape.n]).any(|(tiles, width)| *tiles > width);
    let as_they_lie = numbers(problem, choice) != Numbers::Three
        && apart(choice) == 1
        && !strided::begins_behind(problem, choice);
    staging::arrives_as_one(choice) && as_they_lie && over
}

/// Whether the fragments of matrix instructions hold what is made of rows, rows that are some way apart, what follows rows, or rows that begin behind
/// what is copied with them.
pub(super) fn makes_fragments(problem: &Problem, choice: &Choice) -> bool {
    let without_zeros = choice.get(ZEROS).is_some() && !choice.flag(ZEROS);
    numbers(problem, choice) == Numbers::Three
        || apart(choice) > 1
        || without_zeros
        || strided::begins_behind(problem, choice)
}

/// Distances between rows worth trying: neighbours, and, where dense rows are read with fewer bank conflicts that way, the
/// least distance with the fewest.
pub(super) fn distances(problem: &Problem, choice: &Choice) -> Vec<i64> {
    let best = fewest_passes(problem, choice, |_| true).unwrap_or(1);
    if best == 1 { Vec::new() } else { vec![1, best] }
}

/// The least distance between dense rows that lanes read together with the fewest bank conflicts, of those that are possible.
pub(super) fn fewest_passes(
    problem: &Problem,
    choice: &Choice,
    possible: impl Fn(&i64) -> bool,
) -> Option<i64> {
    [1, 2, 4, 8].into_iter().filter(possible).min_by_key(|apart| passes_of_both(problem, choice, *apart))
}

/// Passes in which lanes read four rows of A, and of B, that are so many rows apart.
pub(super) fn passes_of_both(problem: &Problem, choice: &Choice, apart: i64) -> i64 {
    let read = read(problem, choice);
    rows_in_memory(problem, choice).map(|row| passes_of_rows(row, read.dtype().bytes(), apart)).iter().sum()
}

/// Passes of each of the loads by which lanes read a matrix instruction's elements of A, and of B, through shared memory,
/// beside those without bank conflicts. Rows that are copied each for themselves are longer where that avoids them.
pub(super) fn conflicts(problem: &Problem, choice: &Choice) -> [i64; 2] {
    let read = read(problem, choice);
    let moved = moved(problem, choice);
    let rows = rows_in_memory(problem, choice);
    [(rows[0], moved[0]), (rows[1], moved[1])].map(|(row, moved)| match moved {
        Moved::AsOne if !runs::in_runs(choice) => passes_of_rows(row, read.dtype().bytes(), apart(choice)),
        _ => 1,
    })
}

/// Passes through shared memory in which lanes read one element each of four dense rows of so many, which are `apart` rows
/// from each other, for each 128 bytes: 32 lanes at a time, or 16 where elements have 8 bytes, or 8.
fn passes_of_rows(width: i64, bytes: i64, apart: i64) -> i64 {
    let words = bytes / 4;
    let mut of_banks = [0; 32];
    for row in 0..4 {
        for column in 0..8 / words {
            for word in 0..words {
                of_banks[(words * (row * apart * width + column) + word) as usize % 32] += 1;
            }
        }
    }
    of_banks.into_iter().max().unwrap_or(1)
}

/// By how many elements a row of `columns`, of which `width` are copied, grows: as much as takes the four rows and eight
/// columns that a warp reads for a matrix instruction to different banks. Threads read the same row together, so for
/// them rows stay as they are. Threads read `read` elements at once.
pub(super) fn padding(choice: &Choice, dtype: DType, width: i64, columns: i64, read: i64) -> i64 {
    // However small the pieces that are copied, those that are read are large.
    let piece = copied_at_once(dtype, width, columns, Alignment::MOST).max(read);
    match dtype {
        DType::F64 => staging::padding(columns, piece, |c| matches!(c % 16, 4 | 12) || c % 2 == 1),
        // A quarter of a warp reads two columns of four rows at a time.
        DType::C128 => staging::padding(columns, piece, |c| matches!(c % 8, 2 | 6)),
        DType::F32 if choice.word("unit") == "mma" => staging::padding(columns, piece, |c| c % 16 == 8),
        DType::C64 if choice.word("unit") == "mma" => {
            staging::padding(columns, piece, |c| matches!(c % 16, 4 | 12))
        }
        _ => staging::padding(columns, piece, |_| true),
    }
}

/// Columns of A and B in shared memory: those of all tiles of an area of C. Where one copy serves both, it has as many
/// as either needs.
pub(super) fn staged_columns(problem: &Problem, choice: &Choice) -> [i64; 2] {
    let [a, b] = tiled_columns(problem, choice);
    if one_copy(problem, choice) { [a.max(b); 2] } else { [a, b] }
}

/// Whether the rows in shared memory are those of A and of B at once: B is A, and a block needs the same columns of both.
pub(super) fn one_copy(problem: &Problem, choice: &Choice) -> bool {
    problem.same && areas(problem, choice) == 1
}

/// Columns of A and B that all tiles of an area of C need.
pub(super) fn tiled_columns(problem: &Problem, choice: &Choice) -> [i64; 2] {
    if choice.word("unit") == "mma" {
        // Those of real and of imaginary parts make one.
        let wider = if numbers(problem, choice) == Numbers::Three { 2 } else { 1 };
        let of_tiles = covered_by_warps(problem, choice).map(|tiles| wider * tiles);
        if !border::is_turned(choice) {
            return of_tiles;
        }
        let of_turned = turned::columns(problem, choice);
        [0, 1].map(|side| of_tiles[side].max(of_turned[side]))
    } else {
        let Threads { area: [height, width], mt, nt, .. } = Threads::of(problem, choice);
        let [of_a, of_b] = pieces(problem, choice);
        let axes = [(height, choice.int("tm"), mt, of_a), (width, choice.int("tn"), nt, of_b)];
        axes.map(|(columns, tile, threads, piece)| {
            // Pieces that lie far apart end with the last that is needed, tiles with the last thread's.
            let apart = threads * piece;
            if choice.flag("transposed") { ceil(columns, apart) * apart } else { threads * tile }
        })
    }
}

/// How the rows of A and B are copied to shared memory.
pub(super) fn moved(problem: &Problem, choice: &Choice) -> [Moved; 2] {
    moved_as(choice.word(staging::COPY), problem, choice)
}

/// How they would be if the choice were to `copy` dense rows so, or if it said nothing.
pub(super) fn moved_as(copy: &str, problem: &Problem, choice: &Choice) -> [Moved; 2] {
    match copy {
        staging::BY_CLASSES => return [Moved::Rows; 2],
        staging::SPAN => return [Moved::AsOne; 2],
        _ => {}
    }
    let problem = &stored(problem, choice);
    let (m, n, align) = (problem.shape.m, problem.shape.n, problem.alignment());
    [(m, problem.ld.a == m, align.a), (n, problem.ld.b == n, align.b)].map(|(columns, dense, align)| {
        match Moved::of(copy, problem.dtype(), columns, dense, align) {
            // A block that needs some of the columns copies these.
            Moved::AsOne if areas(problem, choice) > 1 => Moved::Rows,
            moved => moved,
        }
    })
}

/// How groups of rows of A and of B come to shared memory.
pub(super) fn copied(problem: &Problem, choice: &Choice) -> [Copied; 2] {
    let threads = if choice.word("unit") == "mma" {
        32 * choice.int("wm") * choice.int("wn") * choice.int("wk")
    } else {
        slices_of_a_group(problem, choice) * Threads::of(problem, choice).covering()
    };
    let [a, b] = staged_columns(problem, choice);
    let [of_a, of_b] = moved(problem, choice);
    let read = read(problem, choice);
    let (dtype, align) = (read.dtype(), read.alignment_of_rows());
    let rows = rows_in_memory(problem, choice);
    [(read.shape.m, rows[0], a, of_a, align.a), (read.shape.n, rows[1], b, of_b, align.b)].map(
        |(width, row, staged, moved, align)| {
            let (columns, piece) = match moved {
                Moved::AsOne => (row, align / dtype.bytes()),
                _ => (staged, copied_at_once(dtype, width, staged, align)),
            };
            // Two ways through a few copies are more instructions than what each of them asks. Matrix units leave time for them.
            let of_a_thread = ceil(choice.int("depth") * ceil(columns, piece), threads);
            let many = moved == Moved::AsOne || of_a_thread > FEW_COPIES;
            let asks_once = many || choice.word("unit") == "mma";
            Copied { moved, dtype, columns, piece, threads, by: By::of(choice), asks_once, cached: false }
        },
    )
}

/// As many copies of a thread are few. Of A^T B in f32 121 wide, 8 x 8 elements a thread, the loop over groups of 16 rows has
/// 1151 instructions where each of two copies asks, and 1231 in two ways otherwise, 1024 of them multiply-adds. Of 58 products in f32
/// and c64 whose rows are copied one by one nine gained 2 to 5 % and two lost 3 to 4; 13 by matrix units lost 0.7 % in the mean
/// (by the ratio to cuBLAS, bench/results/h200-2026-11-25-limits-and-odd-tiles.txt).
const FEW_COPIES: i64 = 4;

/// Elements at multiples of which rows of A and of B begin in shared memory, for those that are read at once. Where one
/// copy serves both, for those of either.
pub(super) fn aligned_for(problem: &Problem, choice: &Choice) -> [i64; 2] {
    // Rows of a box are whole pieces.
    let least =
        if boxes::in_boxes(choice) { Alignment::MOST / read(problem, choice).dtype().bytes() } else { 1 };
    let [a, b] = pieces(problem, choice).map(|piece| piece.max(least));
    if one_copy(problem, choice) { [a.max(b); 2] } else { [a, b] }
}

/// Elements that a row of A and one of B take in shared memory: those of the tiles, and padding; or their own where
/// rows are copied as one.
pub(super) fn row_elements(problem: &Problem, choice: &Choice) -> [i64; 2] {
    let [a, b] = staged_columns(problem, choice);
    let [of_a, of_b] = moved(problem, choice);
    let [read_a, read_b] = aligned_for(problem, choice);
    let read = read(problem, choice);
    let dtype = read.dtype();
    let [row_of_a, row_of_b] = rows_in_memory(problem, choice);
    let rows = [(read.shape.m, row_of_a, a, of_a, read_a), (read.shape.n, row_of_b, b, of_b, read_b)];
    rows.map(|(width, row, staged, moved, piece)| match moved {
        Moved::AsOne => row,
        _ => staged + padding(choice, dtype, width, staged, piece),
    })
}

/// Bytes that a group of rows of A and of B takes in shared memory: what tiles read beyond the last row counts, and so do
/// its barriers.
pub(super) fn group_bytes(problem: &Problem, choice: &Choice) -> i64 {
    let beyond = if runs::in_runs(choice) {
        runs::behind_rows(problem, choice)
    } else if choice.flag(WHOLE) || makes_fragments(problem, choice) {
        // Of dense rows the last one is read as far as tiles go.
        let read = read(problem, choice);
        let operands = if one_copy(problem, choice) { 1 } else { 2 };
        let rows = rows_in_memory(problem, choice).into_iter().zip(moved(problem, choice));
        let beyond = tiled_columns(problem, choice).into_iter().zip(rows).map(|(tiles, (width, moved))| {
            let beyond = (tiles - width).max(0) * read.dtype().bytes();
            match moved {
                Moved::AsOne if By::of(choice) == By::Bulk => ceil(beyond, LINE) * LINE,
                Moved::AsOne => beyond + 32,
                _ => 0,
            }
        });
        beyond.take(operands).sum()
    } else {
        0
    };
    let between = if boxes::in_boxes(choice) { boxes::between(problem, choice) } else { 0 };
    choice.int("depth") * row_bytes(problem, choice) + beyond + between + staging::barrier_bytes(choice)
}

/// Bytes at multiples of which a group begins in shared memory that a bulk copy brings.
pub(super) const LINE: i64 = 128;

/// Bytes that a row of A and one of B take in shared memory, or the one row that is both.
fn row_bytes(problem: &Problem, choice: &Choice) -> i64 {
    let operands = if one_copy(problem, choice) { 1 } else { 2 };
    row_elements(problem, choice)[..operands].iter().sum::<i64>() * read(problem, choice).dtype().bytes()
}

#[cfg(test)]
mod tests {
    use super::passes_of_rows;

    #[test]
    fn rows_some_way_apart_are_in_different_banks() {
        // Rows of 97 doubles begin two banks after each other, so four rows share six banks.
        assert_eq!([1, 2, 4].map(|apart| passes_of_rows(97, 8, apart)), [4, 2, 1]);
        // 98 doubles four banks after each other, 100 eight.
        assert_eq!([1, 2].map(|apart| passes_of_rows(98, 8, apart)), [2, 1]);
        assert_eq!(passes_of_rows(100, 8, 1), 1);
        // Rows of whole lines are in the same banks however far apart.
        assert_eq!([1, 2, 4, 8].map(|apart| passes_of_rows(64, 8, apart)), [4; 4]);
        // Elements of 4 and of 16 bytes.
        assert_eq!([1, 8].map(|apart| passes_of_rows(57, 4, apart)), [2, 1]);
        assert_eq!([1, 2].map(|apart| passes_of_rows(33, 16, apart)), [2, 1]);
    }
}
