//! What kernels that stage rows in shared memory and multiply them by matrix units have in common.

use warpwright_core::dtype::DType;
use warpwright_core::target::{Capability, Target};

use super::family::{Choice, Value};
use super::gemm::Numbers;
use crate::problem::{Precision, Problem};

/// Columns of C of every instruction.
pub(super) const ACROSS: i64 = 8;

/// The smallest number of tiles that cover an extent.
pub(super) fn ceil(extent: i64, tile: i64) -> i64 {
    (extent + tile - 1) / tile.max(1)
}

/// What multiplies, the likelier first: matrix units where there are some for the type and the product is no product
/// by a vector, `narrow` being the shorter side of the small matrix and `outer` whether one side of it is 1.
pub(super) fn units(problem: &Problem, target: &Target, narrow: i64, outer: bool) -> Vec<Value> {
    let is_of = |types: [DType; 2]| types.map(Precision::Of).contains(&problem.precision);
    // Only where numbers may be split.
    if is_of([DType::F32, DType::C64]) && target.has(Capability::MmaTf32) && !outer {
        return vec!["fma".into(), "mma".into()];
    }
    let mma = is_of([DType::F64, DType::C128]) && target.has(Capability::MmaF64) && !outer;
    // Below this width threads have fewer products than loads to do.
    match (mma, narrow * problem.dtype().bytes() >= 96) {
        (true, true) => vec!["mma".into(), "fma".into()],
        (true, false) => vec!["fma".into(), "mma".into()],
        (false, _) => vec!["fma".into()],
    }
}

/// How a choice makes products of complex numbers. Of real ones there is nothing to choose.
pub(super) fn numbers(problem: &Problem, choice: &Choice) -> Numbers {
    match choice.word("numbers") {
        "parts" | "split-parts" if problem.dtype().is_complex() => Numbers::Parts,
        "expanded" if problem.dtype().is_complex() => Numbers::Expanded,
        "three" if problem.dtype().is_complex() => Numbers::Three,
        _ => Numbers::Whole,
    }
}

/// Whether a choice splits numbers of f32 into tf32 parts.
pub(super) fn splits(choice: &Choice) -> bool {
    choice.word("numbers").starts_with("split")
}

/// How many times as long as one product of tf32 at the rate of the data sheet those of three parts take: `mma.sync` on f32 113
/// wide reached 99 of 268 T multiply-adds of parts in a second. An estimate by one kernel (an H200, 2026-11-24).
const SPLIT: f64 = 5.0;

/// What a matrix instruction of a choice, of so many whose sum is added up apart, takes beside one that multiplies numbers as they are:
/// of the pipe that it occupies, of instructions, and of instructions for each element that is read. Three instructions multiply parts of
/// real numbers and eight scale and add the sum, twelve and sixteen where numbers are complex; a number is read by one, and split by five.
pub(super) fn cost_of_splitting(problem: &Problem, choice: &Choice, apart: i64) -> [f64; 3] {
    let whole = problem.dtype().is_complex() && numbers(problem, choice) == Numbers::Whole;
    match (splits(choice), whole) {
        (false, _) => [1.0; 3],
        (true, false) => [SPLIT, 3.0 + 8.0 / apart as f64, 6.0],
        (true, true) => [SPLIT, 12.0 + 16.0 / apart as f64, 11.0],
    }
}

/// How many times a lane's part of C is in its registers where so many instructions, one after another, add up sums of split numbers
/// apart from what is there, if something is: as the sum of leading parts and that of the others.
pub(super) fn sums_in_registers(choice: &Choice, apart: i64, there: bool) -> i64 {
    if splits(choice) && apart > 1 { if there { 3 } else { 2 } } else { 1 }
}

/// How many instructions on split numbers, one after another, add up their terms before threads add them to the sum.
pub(super) const CHAIN: &str = "chain";

/// The value of [`CHAIN`], where there is a choice.
pub(super) fn chain(choice: &Choice) -> Option<u8> {
    choice.get(CHAIN).and_then(|_| u8::try_from(choice.int(CHAIN)).ok())
}

/// Whether numbers of the small matrix are split once, where they are staged in shared memory, and not by every warp that reads them.
pub(super) const SPLIT_ONCE: &str = "split_once";

/// The matrix instructions on a type that a GPU has, the most usual first.
pub(super) fn instructions(dtype: DType, target: &Target) -> Vec<&'static str> {
    if dtype.real() == DType::F32 {
        return if target.has(Capability::MmaTf32) { vec!["m16n8k8"] } else { Vec::new() };
    }
    match (target.has(Capability::MmaF64Wide), dtype.is_complex()) {
        (true, false) => vec!["m16n8k8", "m16n8k16", "m16n8k4", "m8n8k4"],
        (true, true) => vec!["m16n8k4", "m16n8k8", "m8n8k4"],
        _ => vec!["m8n8k4"],
    }
}

/// Rows of C and terms of an instruction.
pub(super) fn instruction(name: &str) -> (i64, i64) {
    match name {
        "m8n8k4" => (8, 4),
        "m16n8k4" => (16, 4),
        "m16n8k8" => (16, 8),
        _ => (16, 16),
    }
}

/// What a warp multiplies by matrix instructions.
pub(super) struct WarpTile {
    /// Rows of an instruction.
    pub(super) high: i64,
    /// Terms of an instruction.
    pub(super) terms: i64,
    /// Rows of the warp.
    pub(super) rows: i64,
    /// Columns of the warp.
    pub(super) columns: i64,
}

/// Into how many parts so many instructions side by side may be shared out among warps: a few, and those that leave no
/// warp with less than the others.
pub(super) fn shares(instructions: i64) -> Vec<i64> {
    (1..=8).filter(|w| matches!(w, 1 | 2 | 4) || instructions % w == 0).collect()
}

/// How rows of so many elements are moved between device and shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moved {
    /// Row by row: they are some way apart in device memory.
    Strided,
    /// Row by row, though they lie densely: rows in shared memory may have padding between them, and as many columns as
    /// the tiles that read them.
    Rows,
    /// All rows as the one piece of memory that they are.
    AsOne,
}

impl Moved {
    /// For rows of so many elements, dense or not, of a matrix that is aligned to `align` bytes, where the choice is to
    /// `copy` dense rows as one or as rows. Where it says nothing, those go as rows that consist of the largest pieces that
    /// the start of the matrix allows.
    pub(super) fn of(copy: &str, dtype: DType, columns: i64, dense: bool, align: i64) -> Moved {
        let in_pieces = columns * dtype.bytes() % align == 0;
        // Rows of one element have no columns for tiles to stand over.
        match (dense && columns > 1, copy) {
            (false, _) => Moved::Strided,
            (true, BY_ROWS | THROUGH_REGISTERS) => Moved::Rows,
            (true, "one" | BULK) => Moved::AsOne,
            (true, _) if in_pieces => Moved::Rows,
            (true, _) => Moved::AsOne,
        }
    }
}

/// The name of the parameter that says how dense rows are copied.
pub(super) const COPY: &str = "copy";

/// Its value by which the rows of a group arrive by one bulk copy.
pub(super) const BULK: &str = "bulk";

/// Its value by which rows are copied one after the other.
pub(super) const BY_ROWS: &str = "rows";

/// Its value by which rows pass through the registers of the threads that share them out: they are loaded while the
/// group before is multiplied, and stored before the next one is.
pub(super) const THROUGH_REGISTERS: &str = "registers";

/// Its value by which rows are copied 16 bytes at a time wherever they start, those that start alike by blocks of their own.
pub(super) const BY_CLASSES: &str = "classes";

/// Its value by which rows that are some way apart arrive as boxes of a matrix.
pub(super) const BOXES: &str = "boxes";

/// Its value by which rows that are some way apart, or start anywhere, arrive with what lies between and before them, as the one piece of memory that
/// they are then.
pub(super) const SPAN: &str = "span";

/// Whether a group of rows arrives by one bulk copy of the one piece of memory that it is.
pub(super) fn arrives_as_one(choice: &Choice) -> bool {
    matches!(choice.word(COPY), BULK | SPAN)
}

/// What it is about.
pub(super) const ABOUT_COPY: &str = "how dense rows move between device and shared memory: as the one piece of memory that they are, shared out among threads or by one bulk copy; row by row, by asynchronous copies or through registers; or row by row in pieces of 16 bytes, those rows that start alike (classes) by blocks of their own. Rows that are some way apart move row by row, as boxes of the matrix by one copy each, or with what lies between them (span), as may those that start anywhere with what lies before them";

/// The name of the parameter that says when a group that a bulk copy has brought may be overwritten by the next one.
pub(super) const RELEASE: &str = "release";

/// Its value by which each warp gives a group back by itself. Without it the warps of a block meet for that.
pub(super) const BY_WARPS: &str = "warps";

/// Its value by which they do so too, and a warp that does not multiply asks for the copies.
pub(super) const BY_ROLE: &str = "role";

/// What it is about.
pub(super) const ABOUT_RELEASE: &str = "whether all warps of a block meet before the bulk copy of the next rows is asked for, or each gives the rows back that it has used (warps), to a warp more that does nothing but ask (role)";

/// Whether all threads of a block meet before a group of rows is overwritten, in each step.
pub(super) fn meets(choice: &Choice) -> bool {
    !matches!(choice.word(RELEASE), BY_WARPS | BY_ROLE)
}

/// How many times the mean what the fullest scheduler multiplies is, where so many warps multiply and another only asks for copies. Warps
/// stand on schedulers in turn.
pub(super) fn uneven(choice: &Choice, warps: i64, target: &Target) -> Option<f64> {
    let schedulers = i64::from(target.limits.sub_partitions.max(1));
    let asks = choice.word(RELEASE) == BY_ROLE;
    asks.then(|| (ceil(warps, schedulers) * schedulers) as f64 / warps.max(1) as f64)
}

/// Bytes of the barriers in shared memory by which it is known that a group has arrived, and that it has been used.
pub(super) fn barrier_bytes(choice: &Choice) -> i64 {
    match (By::of(choice), meets(choice)) {
        (By::Bulk, true) => 8,
        (By::Bulk, false) => 16,
        _ => 0,
    }
}

/// How the loop over groups is pipelined accordingly.
pub(super) fn via(choice: &Choice) -> &'static str {
    match By::of(choice) {
        By::Bulk if choice.word(RELEASE) == BY_ROLE => "bulk, release=role",
        By::Bulk if choice.word(RELEASE) == BY_WARPS => "bulk, release=warps",
        By::Bulk => "bulk",
        By::Loading => "registers",
        By::Asking => "cp_async",
    }
}

/// Its values where matrices are `moved` so by each, the likelier first; none where they make no difference.
pub(super) fn copies<M: PartialEq>(moved: impl Fn(&str) -> M) -> Vec<&'static str> {
    match (moved("one") == moved(BY_ROWS), moved("") == moved(BY_ROWS)) {
        (true, _) => Vec::new(),
        (false, true) => vec![BY_ROWS, "one"],
        (false, false) => vec!["one", BY_ROWS],
    }
}

/// The most elements that are added to a row in shared memory.
pub(super) const MOST_PADDING: i64 = 15;

/// By how many elements a row has to grow so that its length is `free` of bank conflicts and whole pieces fit in it;
/// by none where no length is.
pub(super) fn padding(columns: i64, piece: i64, free: impl Fn(i64) -> bool) -> i64 {
    // Rows of one element are a column.
    let most = if columns == 1 { 0 } else { MOST_PADDING };
    (0..=most).find(|p| free(columns + p) && (columns + p) % piece == 0).unwrap_or(0)
}

/// The steps by which threads copy a matrix of so many rows and columns to the `stage`, neighbours side by side, once and for all:
/// loads are on their way before the first element is stored, since nothing else hides their latency. Threads take whole rows, or
/// pieces of one, so that none divides to find its elements; less than half of them have nothing to do.
pub(super) fn copied_once(stage: &str, dtype: DType, (rows, columns): (i64, i64), threads: i64) -> String {
    let (rows_at_once, most) = (threads / columns, LOADED_AT_ONCE / dtype.bytes());
    // Which lanes do it, the loop of each of them that is unrolled, the loops around that, and how often it runs.
    let (mut steps, lanes, mut around, mut unrolled, rounds) = if rows_at_once > 0 {
        let rounds = ceil(rows, rows_at_once);
        (format!("split(S.r, {rows_at_once}) -> u, r\n"), "S.r, S.c", String::new(), "S.u", rounds)
    } else {
        (format!("split(S.c, {threads}) -> p, c\n"), "S.c", "S.p, ".to_string(), "S.r", rows)
    };
    if rounds > most {
        let each = ceil(rounds, ceil(rounds, most));
        steps += &format!("split({unrolled}, {each}) -> b, u\n");
        (around, unrolled) = (around + "S.b, ", "S.u");
    }
    steps += &format!("reorder({lanes}, {around}{unrolled})\nbind({lanes}, threads)\nunroll({unrolled})\n");
    steps.replace("S.", &format!("{stage}."))
}

/// Bytes that a thread loads before it stores them, if the compiler does as asked: 32 registers, which what is done later has, too.
const LOADED_AT_ONCE: i64 = 128;

/// The step that makes rows of a tile longer.
pub(super) fn pad(tile: &str, elements: i64) -> String {
    if elements > 0 { format!("storage_align({tile}, r, {elements})\n") } else { String::new() }
}

/// The steps by which lanes store the results of matrix instructions, which a stage takes from their fragments, two
/// neighbours in a row at once: 16 bytes of f64, 8 of f32, where rows of so many columns consist of such pairs.
pub(super) fn pairs(stage: &str, dtype: DType, columns: i64) -> String {
    if matches!(dtype, DType::F64 | DType::F32) && columns % 2 == 0 {
        two_at_once(stage)
    } else {
        String::new()
    }
}

/// The steps by which they store two at once, whatever they are.
pub(super) fn two_at_once(stage: &str) -> String {
    format!("split({stage}.j, 2) -> j, v\nvectorize({stage}.v)\n")
}

/// Elements that are copied at a time between shared memory and a matrix that is aligned to `align` bytes: as many as
/// divide the rows in either memory, and no more than the alignment.
pub(super) fn copied_at_once(dtype: DType, width: i64, staged: i64, align: i64) -> i64 {
    let most = align / dtype.bytes();
    (1..=most).rev().find(|p| most % p == 0 && width % p == 0 && staged % p == 0).unwrap_or(1)
}

/// Passes through the first-level cache that an asynchronous copy of fewer than 16 bytes a lane takes beyond its own, at most: of 4 bytes a
/// lane, from the second-level cache, a multiprocessor takes 4.0 cycles while all do so (bench/limits/copies.cu as it was on 2026-11-23, one H200;
/// what searches tried tells 3 from 6 hardly).
const SMALL_COPY: f64 = 3.0;

/// Instructions of a copy of 16 bytes by a lane that divides to find its piece. Estimated from machine code, not fitted.
const DIVIDED_COPY: f64 = 6.0;

/// Who moves the pieces of rows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// Threads, each of which asks for pieces that arrive later.
    Asking,
    /// Threads, each of which loads pieces and stores them.
    Loading,
    /// One thread, which asks for all of it at once.
    Bulk,
}

impl By {
    pub(super) fn of(choice: &Choice) -> By {
        match choice.word(COPY) {
            BULK | BOXES | SPAN => By::Bulk,
            THROUGH_REGISTERS => By::Loading,
            _ => By::Asking,
        }
    }
}

/// A copy of rows to shared memory, in pieces.
#[derive(Clone, Copy)]
pub(super) struct Copied {
    /// How the rows are moved.
    pub(super) moved: Moved,
    /// The type of their elements.
    pub(super) dtype: DType,
    /// Elements of a row that are copied.
    pub(super) columns: i64,
    /// Elements of a piece.
    pub(super) piece: i64,
    /// Threads that share the copy out.
    pub(super) threads: i64,
    /// Who moves them.
    pub(super) by: By,
    /// Whether it is asked for all pieces of a thread at once whether they are there; else for each.
    pub(super) asks_once: bool,
    /// Whether the first-level cache keeps pieces of 16 bytes too, as it does smaller ones.
    pub(super) cached: bool,
}

impl Copied {
    fn pieces_of_a_row(&self) -> i64 {
        ceil(self.columns, self.piece).max(1)
    }

    /// Rows that the threads copy at a time if each keeps to its place in a row.
    fn rows_at_a_time(&self) -> i64 {
        self.threads / self.pieces_of_a_row()
    }

    /// Whether it makes a difference if threads keep to their place in a row, so that they need not divide for every
    /// piece, and leaves at most a quarter of them idle.
    fn can_keep_place(&self) -> bool {
        let of_a_row = self.pieces_of_a_row();
        self.moved != Moved::AsOne
            && self.columns % self.piece == 0
            && self.threads % of_a_row != 0
            && 4 * self.rows_at_a_time() * of_a_row >= 3 * self.threads
    }

    /// Whether threads keep to their place in any case: where rows are some way apart, or are copied in small pieces.
    fn always_keeps_place(&self) -> bool {
        self.moved == Moved::Strided || self.dtype.bytes() * self.piece < 16
    }

    fn keeps_place(&self, wanted: bool) -> bool {
        self.can_keep_place() && (wanted || self.always_keeps_place())
    }

    /// Passes through the first-level cache that it takes beyond those of whole lines, for each row.
    pub(super) fn more_passes(&self) -> f64 {
        let is_small = self.dtype.bytes() * self.piece < 16;
        if is_small && self.by == By::Asking {
            SMALL_COPY * self.columns as f64 / self.piece as f64 / 32.0
        } else {
            0.0
        }
    }

    /// Instructions of a warp for each row: a lane that shares out all pieces divides to find each of its own, unless rows
    /// are one piece of memory.
    pub(super) fn instructions(&self, keep_place: bool) -> f64 {
        if self.by == By::Bulk {
            return 0.0;
        }
        let stored = if self.by == By::Loading { 1.0 } else { 0.0 };
        let of_a_piece = if self.moved == Moved::AsOne {
            2.0
        } else if self.keeps_place(keep_place) {
            3.0
        } else {
            DIVIDED_COPY
        };
        (of_a_piece + stored) * self.columns as f64 / self.piece as f64 / 32.0
    }

    /// Whether there is a choice.
    pub(super) fn may_keep_place(&self) -> bool {
        self.can_keep_place() && !self.always_keeps_place()
    }

    /// The steps for a tile. What a bulk copy brings is left as it is: the pipeline makes the copy.
    pub(super) fn steps(&self, tile: &str, keep_place: bool) -> String {
        let Copied { piece, threads, dtype, .. } = *self;
        if self.by == By::Bulk {
            return String::new();
        }
        let shared_out = if self.keeps_place(keep_place) {
            format!(
                "split({tile}.c, {piece}) -> c, e
split({tile}.r, {rows}) -> u, r
reorder({tile}.r, {tile}.c, {tile}.u, {tile}.e)
bind({tile}.r, {tile}.c, threads)
",
                rows = self.rows_at_a_time(),
            )
        } else {
            let (fuse, elements) = if self.moved == Moved::AsOne {
                (String::new(), "e")
            } else {
                (format!("fuse({tile}.r, {tile}.c) -> f\n"), "f")
            };
            format!(
                "{fuse}split({tile}.{elements}, {piece}) -> f, e
split({tile}.f, {threads}) -> u, t
reorder({tile}.t, {tile}.u, {tile}.e)
bind({tile}.t, threads)
"
            )
        };
        let moved = match self.by {
            By::Loading if piece > 1 => format!("vectorize({tile}.e)\n"),
            By::Loading => String::new(),
            _ => {
                let all = if self.cached && dtype.bytes() * piece == 16 { "_ca" } else { "" };
                let of = if dtype == DType::Bf16 { String::new() } else { format!("_{dtype}") };
                format!("tensorize({tile}.e, cp_async{}{all}{of})\n", dtype.bytes() * piece)
            }
        };
        let once = if self.asks_once { format!("tail({tile}.u, hoist)\n") } else { String::new() };
        format!("{shared_out}unroll({tile}.u)\n{once}{moved}")
    }
}

/// The name of the parameter by which the lanes that share out a tile of C stand in pairs.
pub(super) const INTERLEAVED: &str = "interleaved";

/// What it is about.
pub(super) const ABOUT_INTERLEAVED: &str = "whether neighbouring lanes stand below and beside each other in turn, so that pairs of them read the same 16 bytes of either operand; where all read a panel, whether an odd number of them is made even";

/// The steps by which the threads of a stage, `down` of which stand one below the other in the loop `it` and `across` beside
/// each other in the loop `jt`, stand interleaved, and the loops that are then bound to threads, the last one innermost.
/// A load of 16 bytes a lane takes half as many passes where lanes whose numbers differ in one of the lowest two
/// bits read the same.
pub(super) fn interleaved(stage: &str, across: i64, wanted: bool) -> (String, Vec<String>) {
    let (steps, loops): (String, &[&str]) = match (wanted, across % 2) {
        (false, _) => (String::new(), &["it", "jt"]),
        (true, 0) => (
            format!("split({stage}.it, 2) -> it, il\nsplit({stage}.jt, 2) -> jt, jl\n"),
            &["it", "jt", "jl", "il"],
        ),
        (true, _) => (format!("split({stage}.it, 2) -> it, il\n"), &["it", "jt", "il"]),
    };
    (steps, loops.iter().map(|l| format!("{stage}.{l}")).collect())
}

/// The same where whole fours of threads stand either way, and each 16 of them four by four: so 16 lanes read four
/// different pieces of either operand, which may lie 32 bytes apart without being in the same banks.
pub(super) fn in_squares(stage: &str) -> (String, Vec<String>) {
    let halved = ["i", "j"]
        .map(|x| format!("split({stage}.{x}t, 4) -> {x}t, {x}h\nsplit({stage}.{x}h, 2) -> {x}h, {x}l\n"));
    let loops = ["it", "jt", "ih", "jh", "jl", "il"];
    (halved.concat(), loops.iter().map(|l| format!("{stage}.{l}")).collect())
}

/// Passes through the first-level cache of a load of so many bytes a lane from shared memory without bank conflicts: 4 bytes
/// of 32 lanes at a time, 8 of 16, 16 of 8; twice as many lanes where those whose numbers differ in the lowest or
/// the second lowest bit read the same (`in_pairs`). By counters A C in f32 46 x 46, c64 28 x 28 and f32 35 x 35 take 2.82, 3.98
/// and 1.73 passes a load, by this rule 2.8, 4.0 and 1.6 (`ncu` on one H200, 2026-11-23).
pub(super) fn passes(bytes: i64, in_pairs: bool) -> f64 {
    let each = (bytes as f64 / 4.0).max(1.0);
    if in_pairs && bytes > 4 { each / 2.0 } else { each }
}

/// Whether pairs of lanes read the same of the operand whose rows the threads of a tile share out, and of the one whose
/// columns they do, where `across` lanes stand beside each other.
pub(super) fn read_in_pairs(across: i64, interleaved: bool) -> [bool; 2] {
    [across % 2 == 0, interleaved || across <= 2]
}

/// The name of the parameter that says whether the assembler is asked to keep registers for all blocks that come.
pub(super) const BOUNDED: &str = "bounded";

/// What it is about.
pub(super) const ABOUT_BOUNDED: &str = "whether the assembler is asked to keep registers for all blocks of a multiprocessor, or decides as it likes";

/// The option by which blocks are bound accordingly. How many registers it takes, and of which banks, differs with it for no
/// better reason: of 144 kernels in f32 and complex64 multiply-adds take 0.78 to 1.18 times as many cycles where nothing is asked
/// (bench/results/h200-2026-11-23-register-banks.txt).
pub(super) fn min_blocks(choice: &Choice) -> &'static str {
    let free = choice.get(BOUNDED).is_some() && !choice.flag(BOUNDED);
    if free { ", min_blocks=0" } else { "" }
}

/// The name of the parameter that says how what lanes read of staged rows is addressed.
pub(super) const LANE_BASE: &str = "lane_base";

/// What it is about.
pub(super) const ABOUT_LANE_BASE: &str = "whether a lane counts what it reads of staged rows from one place, by constants, or finds each place anew: fewer registers, and loads in another order";

/// Its values, where it is to be chosen: nobody has measured kernels of other numbers so.
pub(super) fn lane_base(dtype: DType, choice: &Choice) -> Vec<Value> {
    let measured = choice.word("unit") == "mma" && matches!(dtype, DType::F64 | DType::C128);
    if measured { vec![false.into(), true.into()] } else { Vec::new() }
}

/// The steps by which what lanes access for these fragments is counted from one place.
pub(super) fn lane_bases(choice: &Choice, fragments: &[&str]) -> String {
    if !choice.flag(LANE_BASE) {
        return String::new();
    }
    fragments.iter().map(|fragment| format!("lane_base({fragment})\n")).collect()
}

/// The name of the parameter that makes threads keep to their place in the rows that they copy, where they may.
pub(super) const KEEPS_PLACE: &str = "place";

/// What it is about.
pub(super) const ABOUT_KEEPING_PLACE: &str =
    "whether a thread keeps to its place in the rows that it copies, or threads share out all pieces of them";

#[cfg(test)]
mod tests {
    use super::{LOADED_AT_ONCE, copied_once};
    use warpwright_core::dtype::DType;

    #[test]
    fn threads_copy_whole_rows_or_pieces_of_one_as_many_at_once_as_registers_hold() {
        let of = |extents, threads| copied_once("Bs", DType::F32, extents, threads);
        let rows = of((50, 56), 128);
        assert!(
            rows.contains("split(Bs.r, 2) -> u, r") && rows.contains("bind(Bs.r, Bs.c, threads)"),
            "{rows}"
        );
        assert!(rows.ends_with("unroll(Bs.u)\n") && !rows.contains("fuse"), "{rows}");
        let pieces = of((20, 72), 64);
        assert!(
            pieces.contains("split(Bs.c, 64) -> p, c") && pieces.contains("bind(Bs.c, threads)"),
            "{pieces}"
        );
        // Of more, as many each time.
        let batches = of((70, 128), 128);
        assert!(batches.contains("split(Bs.u, 24) -> b, u"), "{batches}");
        assert!(24 * DType::F32.bytes() <= LOADED_AT_ONCE);
    }
}
