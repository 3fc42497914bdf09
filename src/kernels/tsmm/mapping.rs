//! How warps and threads stand over a group of rows, and how the group and the result lie in shared memory.

use warpwright_core::dtype::DType;
use warpwright_core::index::gcd;

use super::banks::{self, Small};
use super::bulk::{IN_BULK, take_turns};
use super::caching;
use super::spans;
use crate::kernels::family::Choice;
use crate::kernels::gemm::Numbers;
use crate::kernels::staging::{self, ACROSS, By, Copied, Moved, WarpTile, ceil, copied_at_once};
use crate::problem::{Multiplications, Problem};
use crate::reference::bound;

/// How products of complex numbers are made. Those of parts are the products of real matrices, of which the long one is A
/// as it is stored.
pub(super) fn numbers(problem: &Problem, choice: &Choice) -> Numbers {
    match staging::numbers(problem, choice) {
        Numbers::Parts if choice.flag(staging::SPLIT_ONCE) => Numbers::Expanded,
        Numbers::Parts => Numbers::Embedded,
        other => other,
    }
}

/// How many columns of what is added up stand for one of C, and how many of its terms for one of a row of A: two where
/// complex numbers are taken as their parts.
pub(super) fn wider(problem: &Problem, choice: &Choice) -> i64 {
    if numbers(problem, choice).are_embedded() { 2 } else { 1 }
}

/// Columns of C of a block of the forms that stage rows: those of a band. Bands begin where matrix instructions or
/// sectors of 32 bytes do.
pub(super) fn band(problem: &Problem, choice: &Choice) -> i64 {
    let (n, bands) = (problem.shape.n, choice.int("bands").max(1));
    let whole = match choice.word("unit") {
        "mma" => ACROSS / wider(problem, choice),
        _ => 32 / problem.dtype().bytes(),
    };
    if bands == 1 { n } else { ceil(ceil(n, bands), whole) * whole }
}

/// How many bands there are.
pub(super) fn bands(problem: &Problem, choice: &Choice) -> i64 {
    ceil(problem.shape.n, band(problem, choice))
}

/// Of what rows consist in shared memory, and how many of it make a number: the real numbers that complex ones are stored
/// as, where products are made of three real ones or of those of their parts.
pub(super) fn staged(problem: &Problem, choice: &Choice) -> (DType, i64) {
    let dtype = problem.dtype();
    if numbers(problem, choice) == Numbers::Whole { (dtype, 1) } else { (dtype.real(), 2) }
}

/// Whether a product of complex numbers is made of three real ones.
pub(super) fn is_three(problem: &Problem, choice: &Choice) -> bool {
    numbers(problem, choice) == Numbers::Three
}

/// Whether the fragments of A hold what is made of its rows: what three real products share, or rows that lie among others of a span.
pub(super) fn makes_fragments(problem: &Problem, choice: &Choice) -> bool {
    is_three(problem, choice) || spans::in_spans(choice)
}

/// Terms of the rows of A that a block copies at a time: all of them, or some.
pub(super) fn depth(problem: &Problem, choice: &Choice) -> i64 {
    choice.get("depth").map_or(problem.shape.k, |_| choice.int("depth"))
}

/// Whether the warps of a block are parts that take rows of their own, copy them and wait for no other.
pub(super) fn in_parts(choice: &Choice) -> bool {
    choice.word("team") == "part"
}

/// Rows of A that a block of the forms that stage rows takes at a time.
pub(super) fn rows(problem: &Problem, choice: &Choice) -> i64 {
    if in_parts(choice) && choice.word("unit") == "fma" {
        choice.int("wm") * Tiles::of(problem, choice).down * choice.int("tm")
    } else {
        choice.int("rows")
    }
}

/// Rows that are copied, waited for and multiplied together: those of a block, or of a part of it.
pub(super) fn group(problem: &Problem, choice: &Choice) -> i64 {
    let rows = rows(problem, choice);
    if in_parts(choice) { rows / choice.int("wm").max(1) } else { rows }
}

/// The name of the parameter that lets blocks take a few groups of rows and make room for the next.
pub(super) const PASSING: &str = "passing";

/// That of how many.
pub(super) const GROUPS: &str = "groups";

/// How many groups of rows a block takes, or each part of it, before it makes room; none where blocks stay.
pub(super) fn passing_groups(choice: &Choice) -> Option<i64> {
    choice.flag(PASSING).then(|| choice.int(GROUPS).max(1))
}

/// Whether a block takes one group only, so that there is no other to wait for meanwhile.
pub(super) fn takes_one_group(choice: &Choice) -> bool {
    passing_groups(choice) == Some(1)
}

/// Whether results lie in shared memory before they leave.
pub(super) fn stores_through_shared(choice: &Choice) -> bool {
    matches!(choice.word("store"), "shared" | IN_BULK)
}

/// The name of the parameter by which sectors that are stored in part are brought to the second-level cache ahead.
pub(super) const FETCH: &str = "fetch";

/// The name of the parameter that says how they are brought.
pub(super) const ENDS: &str = "ends";
/// What it may be: prefetches of the sectors of both ends of a row, or of those alone that are stored in part, or copies of a word of each of those,
/// asked for before rows of A or behind them.
pub(super) const SECTORS: &str = "sectors";
pub(super) const PARTS: &str = "parts";
pub(super) const COPIES_BEHIND: &str = "copies-behind";
pub(super) const ALL_COPIES: &[&str] = &["copies", COPIES_BEHIND];

/// Bytes of shared memory to which such copies go.
fn landing(problem: &Problem, choice: &Choice) -> i64 {
    if ALL_COPIES.contains(&choice.word(ENDS)) { 4 * threads(problem, choice) } else { 0 }
}

/// Whether that is worth trying: rows of C lie some way apart, and leave through shared memory from blocks that make room after one group
/// of them, so that many others are at work meanwhile. By hand, kernels of 2 GiB became 0.67 to 1.07 times as fast (an H200, 2026-11-29).
pub(super) fn may_fetch(problem: &Problem, choice: &Choice) -> bool {
    choice.word("store") == "shared"
        && takes_one_group(choice)
        && moved_c(problem, choice) == Moved::Strided
        && By::of(choice) == By::Asking
        && depth(problem, choice) == problem.shape.k
}

/// The name of the parameter that lets results lie in shared memory where the rows lay that they were made of.
pub(super) const IN_PLACE: &str = "in_place";

/// Whether they may: rows and results have as many numbers, and are both moved as one piece of memory, or both stand apart there and are the one group
/// of a block. Where several warps make results of the same rows, all of them have read before one stores; with several stages results lie in
/// the slot of the ring that the rows came to.
pub(super) fn may_be_in_place(problem: &Problem, choice: &Choice) -> bool {
    let shape = problem.shape;
    choice.word("unit") == "mma"
        && stores_through_shared(choice)
        && shape.k == shape.n
        && depth(problem, choice) == shape.k
        && bands(problem, choice) == 1
        && !spans::in_spans(choice)
        && !is_three(problem, choice)
        && match [moved_a(problem, choice), moved_c(problem, choice)] {
            [Moved::AsOne, Moved::AsOne] => true,
            [Moved::Strided, Moved::Strided] => takes_one_group(choice),
            _ => false,
        }
}

/// Rows of a group by which so many multiprocessors have one or two groups each, in multiples of eight, where they have few rows each.
/// The usual groups would leave some of them with one more than others: 10000 rows are 157 groups of 64 on 132, or 125 of 80.
pub(super) fn even_groups(rows: i64, multiprocessors: u32) -> Vec<i64> {
    let shares = [1, 2].map(|groups| ceil(ceil(rows, groups * i64::from(multiprocessors)), 8) * 8);
    let mut shares: Vec<i64> = shares.into_iter().filter(|share| *share <= MOST_EVEN_ROWS).collect();
    shares.dedup();
    shares
}

/// The most rows of such groups: of more, one group more or less does not count.
const MOST_EVEN_ROWS: i64 = 128;

/// Threads that copy them.
pub(super) fn team(problem: &Problem, choice: &Choice) -> i64 {
    if in_parts(choice) { 32 * choice.int("wn") } else { threads(problem, choice) }
}

/// Instructions side by side that cover a band.
pub(super) fn instructions_across(problem: &Problem, choice: &Choice) -> i64 {
    ceil(wider(problem, choice) * band(problem, choice), ACROSS)
}

/// Instructions, one after another, that add up the terms of a row of A that are there at a time.
pub(super) fn steps_of_a_row(problem: &Problem, choice: &Choice) -> i64 {
    let at_a_time = depth(problem, choice).min(problem.shape.k);
    ceil(wider(problem, choice) * at_a_time, warp_tile(problem, choice).terms.max(1)).max(1)
}

/// How many instructions on split numbers, one after another, may add up their terms before threads do: all of a short sum, which has a
/// larger bound of its error than one that threads add up, or, first, the most with which it has not, where there are such. They are
/// as many each time.
pub(super) fn chains(problem: &Problem, choice: &Choice) -> Vec<i64> {
    let (steps, terms) = (steps_of_a_row(problem, choice), problem.shape.k);
    // A step on numbers that are split in parts has half the terms that are counted on.
    if choice.word("numbers") != "split" || depth(problem, choice) < terms {
        return Vec::new();
    }
    let is_larger = |chain: &i64| {
        let chain = u8::try_from(*chain).unwrap_or(u8::MAX);
        bound::is_larger(problem.precision, terms, Multiplications::Split { chain })
    };
    let shorter = (1..=steps).rev().filter(|chain| steps % chain == 0).find(|chain| !is_larger(chain));
    shorter.into_iter().filter(|chain| *chain < steps).chain([steps]).collect()
}

/// Those of a choice: all that a row has at a time, where nothing else is said.
pub(super) fn chain(problem: &Problem, choice: &Choice) -> i64 {
    let steps = steps_of_a_row(problem, choice);
    staging::chain(choice).map_or(steps, i64::from).clamp(1, steps)
}

/// Who adds up what terms are left over beside whole matrix instructions.
pub(super) const REST: &str = "rest";

/// The most of these terms that threads are worth trying for. Beside one instruction of eight terms on split numbers of f32 a thread
/// makes a product for each of its elements and term.
const MOST_REST: i64 = 2;

/// Whether it is worth trying that threads add them up: one or two that would fill a quarter of an instruction, at most.
pub(super) fn may_leave_rest(problem: &Problem, choice: &Choice) -> bool {
    let terms = warp_tile(problem, choice).terms.max(1);
    let rest = wider(problem, choice) * problem.shape.k % terms;
    let whole_rows = depth(problem, choice) >= problem.shape.k;
    let chained = ![1, steps_of_a_row(problem, choice)].contains(&chain(problem, choice));
    (1..=MOST_REST.min(terms / 4)).contains(&rest)
        && wider(problem, choice) * problem.shape.k > terms
        && whole_rows
        && !chained
        && !is_three(problem, choice)
}

/// How many terms of each row threads add up.
pub(super) fn rest(problem: &Problem, choice: &Choice) -> i64 {
    match choice.word(REST) {
        "threads" => wider(problem, choice) * problem.shape.k % warp_tile(problem, choice).terms.max(1),
        _ => 0,
    }
}

/// What a warp has of the rows of a block: `columns` of C, or of the real and imaginary parts that are its.
pub(super) fn warp_tile(problem: &Problem, choice: &Choice) -> WarpTile {
    let (high, terms) = staging::instruction(choice.word("instruction"));
    WarpTile {
        high,
        terms,
        rows: choice.int("rows") / choice.int("wm").max(1),
        columns: ceil(instructions_across(problem, choice), choice.int("wn").max(1)) * ACROSS,
    }
}

/// How the threads of a block, or of a part of it, stand over its rows: each has `tm` rows, `down` apart, and its columns in pieces of
/// `piece`, `piece * across` apart. Pieces that are read at once are of 16 bytes or half of that; a larger one is all that a thread
/// has, and is read in several pieces of 16 bytes.
pub(super) struct Tiles {
    /// Threads along the rows.
    pub(super) down: i64,
    /// Threads along the columns.
    pub(super) across: i64,
    /// Columns of a piece.
    pub(super) piece: i64,
}

impl Tiles {
    pub(super) fn of(problem: &Problem, choice: &Choice) -> Tiles {
        let piece = choice.int("piece").max(1);
        let pieces = ceil(choice.int("tn"), piece).max(1);
        let across = ceil(band(problem, choice), piece * pieces).max(1);
        let down = if in_parts(choice) {
            32 * choice.int("wn") / across
        } else {
            choice.int("rows") / choice.int("tm").max(1)
        };
        Tiles { down, across, piece }
    }

    /// Columns of the small matrix that a thread reads at once.
    pub(super) fn at_once(&self, dtype: DType) -> i64 {
        self.piece.min(16 / dtype.bytes()).max(1)
    }

    /// Loads by which a thread reads so many columns of a row of it: those of as many as are read at once, and those of single
    /// ones, which are left of a piece that is no whole number of 16 bytes.
    pub(super) fn loads(&self, dtype: DType, columns: i64) -> [i64; 2] {
        let (at_once, pieces) = (self.at_once(dtype), ceil(columns, self.piece));
        [pieces * (self.piece / at_once), pieces * (self.piece % at_once)]
    }

    /// Elements from one piece to the next in a row of the small matrix in shared memory: as many as a piece has, or, where it
    /// is larger than 16 bytes, an odd number of 16 bytes, so that pieces begin at such and in different banks.
    pub(super) fn step(&self, dtype: DType) -> i64 {
        let whole = 16 / dtype.bytes();
        if self.piece <= whole {
            return self.piece;
        }
        let pieces = ceil(self.piece, whole);
        (pieces + i64::from(self.across > 1 && pieces % 2 == 0)) * whole
    }
}

/// The widest tiles of one piece, and the most widths of them that are worth trying.
const WIDEST_TILE: i64 = 20;
const MOST_TILES: usize = 6;

/// Widths of tiles that are no whole 16 bytes and share out a row among some threads with as little left over as can be:
/// 13 columns of 49 each for four threads, 7 for seven. Those that leave least over come first.
pub(super) fn odd_tiles(problem: &Problem, choice: &Choice) -> Vec<i64> {
    let (n, whole) = (band(problem, choice), 16 / problem.dtype().bytes());
    if whole == 1 {
        return Vec::new();
    }
    let over = |tile: i64| ceil(n, tile) * tile - n;
    let mut tiles: Vec<i64> = (2..=n).map(|across| ceil(n, across)).collect();
    tiles.dedup();
    tiles.retain(|t| (whole + 1..=WIDEST_TILE).contains(t) && t % whole != 0);
    tiles.sort_by_key(|t| (over(*t), (t - 10).abs()));
    tiles.truncate(MOST_TILES);
    tiles
}

/// Whether neighbouring lanes may stand below and beside each other in turn: there are several of them beside each other, and
/// an even number one below the other.
pub(super) fn may_interleave(problem: &Problem, choice: &Choice) -> bool {
    let Tiles { down, across, piece } = Tiles::of(problem, choice);
    // Loads of 4 bytes a lane take one pass in any case.
    let wide = piece.max(terms_at_once(problem, choice)) * problem.dtype().bytes() > 4;
    wide && across > 1 && down % 2 == 0
}

/// Threads of a block of the forms that stage rows.
pub(super) fn threads(problem: &Problem, choice: &Choice) -> i64 {
    if choice.word("unit") == "mma" || in_parts(choice) {
        32 * choice.int("wm") * choice.int("wn")
    } else {
        let Tiles { down, across, .. } = Tiles::of(problem, choice);
        down * across
    }
}

/// The same with those of the warp that asks for copies, if one does nothing else.
pub(super) fn threads_with_role(problem: &Problem, choice: &Choice) -> i64 {
    let asks = choice.word(staging::RELEASE) == staging::BY_ROLE;
    threads(problem, choice) + if asks { 32 } else { 0 }
}

/// How the rows of A are moved.
pub(super) fn moved_a(problem: &Problem, choice: &Choice) -> Moved {
    moved_a_as(choice.word(staging::COPY), problem, choice)
}

/// How they would be if the choice were to `copy` dense rows so. Pieces of rows are no whole rows.
pub(super) fn moved_a_as(copy: &str, problem: &Problem, choice: &Choice) -> Moved {
    let k = problem.shape.k;
    if copy == staging::SPAN {
        return Moved::AsOne;
    }
    match Moved::of(copy, problem.dtype(), k, problem.ld.a == k, problem.alignment().a) {
        Moved::AsOne if depth(problem, choice) < k => Moved::Rows,
        moved => moved,
    }
}

/// Whether groups of 48 and 96 rows, for three or six warps, are worth trying where a block shares them.
pub(super) fn may_be_of_three(problem: &Problem, choice: &Choice) -> bool {
    choice.word("unit") == "mma" && !in_parts(choice) && problem.dtype() == DType::C128
}

/// How rows of A, or what is copied of them, come to shared memory.
pub(super) fn copied_a(problem: &Problem, choice: &Choice) -> Copied {
    // A may be staged as the real numbers that it is stored as.
    let ((dtype, of_a_number), align) = (staged(problem, choice), problem.alignment_of_rows().a);
    let (moved, columns) = (moved_a(problem, choice), of_a_number * depth(problem, choice));
    let piece = match moved {
        Moved::AsOne => align / dtype.bytes(),
        _ => copied_at_once(dtype, of_a_number * problem.shape.k, columns, align),
    };
    Copied {
        moved,
        dtype,
        columns,
        piece,
        threads: team(problem, choice),
        by: By::of(choice),
        asks_once: true,
        cached: caching::keeps_all(choice),
    }
}

/// How the rows of C are moved.
pub(super) fn moved_c(problem: &Problem, choice: &Choice) -> Moved {
    moved_c_as(choice.word(staging::COPY), problem, choice)
}

/// How they would be if the choice were to `copy` dense rows so.
pub(super) fn moved_c_as(copy: &str, problem: &Problem, choice: &Choice) -> Moved {
    // Tiles that stand over the end of a row keep to rows, as do bands that do.
    let (n, band) = (problem.shape.n, band(problem, choice));
    let whole = stores_through_shared(choice) || small_extents(problem, choice).1 == band;
    let whole = whole && n % band == 0;
    Moved::of(copy, problem.dtype(), n, whole && problem.ld.c == n, problem.alignment().c)
}

/// Rows of the small matrix that whole pieces of rows of A are multiplied by.
pub(super) fn rows_of_pieces(problem: &Problem, choice: &Choice) -> i64 {
    let (k, depth) = (problem.shape.k, depth(problem, choice));
    if depth < k { ceil(k, depth) * depth } else { k }
}

/// Rows and columns of the small matrix of whole tiles and whole instructions.
pub(super) fn small_extents(problem: &Problem, choice: &Choice) -> (i64, i64) {
    let rows = rows_of_pieces(problem, choice);
    if choice.word("unit") == "mma" {
        let (columns, wider) = (warp_tile(problem, choice).columns, wider(problem, choice));
        let terms = banks::terms_at_a_time(problem, choice).max(1);
        (ceil(wider * rows, terms) * terms / wider, choice.int("wn") * columns / wider)
    } else {
        let Tiles { across, piece, .. } = Tiles::of(problem, choice);
        (rows, ceil(band(problem, choice), across * piece) * across * piece)
    }
}

/// Rows and columns of the small matrix as it is stored in shared memory: so many, and as a real matrix that is a stage of its own
/// no more than it has, of which a number takes two each way.
pub(super) fn stored_extents(problem: &Problem, choice: &Choice) -> (i64, i64) {
    if numbers(problem, choice) == Numbers::Expanded {
        (2 * problem.shape.k, small_extents(problem, choice).1.min(problem.shape.n))
    } else {
        small_extents(problem, choice)
    }
}

/// By how many elements rows of A, of the small matrix and of the result grow in shared memory, so that the lanes of a
/// warp meet different banks. Rows that are moved as one do not.
pub(super) fn paddings(problem: &Problem, choice: &Choice) -> [i64; 3] {
    let (dtype, of_a_number) = staged(problem, choice);
    let whole = 16 / dtype.bytes();
    let (_, columns_of_b) = stored_extents(problem, choice);
    let mma = choice.word("unit") == "mma";
    // What a warp reads: of A eight rows and four columns, of the small matrix four rows and eight columns, or, as
    // parts of numbers, two and eight. It writes eight rows of the result, every other column. Threads read a piece
    // of 16 bytes of several rows.
    let embedded = numbers(problem, choice) == Numbers::Embedded;
    let [of_a, of_b, of_c]: [fn(i64) -> bool; 3] = match (mma, dtype) {
        (true, DType::F64) if embedded => {
            [|c| matches!(c % 16, 4 | 12), |c| (4..=12).contains(&(c % 16)), |c| c % 16 == 8]
        }
        (true, DType::F64) if of_a_number == 2 && numbers(problem, choice) == Numbers::Expanded => {
            [|c| matches!(c % 16, 4 | 12), |c| matches!(c % 16, 4 | 12), |c| c % 16 == 8]
        }
        // Parts one by one.
        (true, DType::C64) if choice.flag(staging::SPLIT_ONCE) => {
            [|c| matches!(c % 16, 4 | 12), |c| c % 16 == 8, |c| c % 16 == 8]
        }
        (true, DType::F32) if embedded => [|c| c % 8 == 4, |c| (8..=24).contains(&(c % 32)), |c| c % 16 == 8],
        (true, DType::C128) => [|c| c % 8 == 4, |c| matches!(c % 8, 2 | 6), |c| c % 2 == 1],
        // Both parts of a number at once.
        (true, DType::F32) => [|c| c % 8 == 4, |c| c % 16 == 8, |c| c % 16 == 8],
        (true, _) if of_a_number == 2 => [|c| c % 16 == 8, |c| matches!(c % 16, 4 | 12), |c| c % 16 == 8],
        (true, _) => [|c| matches!(c % 16, 4 | 12), |c| matches!(c % 16, 4 | 12), |c| c % 16 == 8],
        (false, DType::F32) => [|c| c % 8 == 4, |c| c % 4 == 0, |c| c % 4 == 0],
        (false, DType::C128) => [|c| c % 2 == 1, |_| true, |_| true],
        (false, _) => [|c| c % 4 == 2, |c| c % 2 == 0, |c| c % 2 == 0],
    };
    let pad = |moved: Moved, columns: i64, piece: i64, free: fn(i64) -> bool| match moved {
        Moved::AsOne => 0,
        Moved::Strided if columns % whole != 0 => staging::padding(columns, 1, free),
        _ => staging::padding(columns, piece, free),
    };
    [
        pad(moved_a(problem, choice), of_a_number * depth(problem, choice), whole, of_a),
        // Rows of tiles with room between them are whole pieces of 16 bytes anyhow.
        if between_tiles(problem, choice) > 0 {
            0
        } else {
            // Lanes read rows that lie as far apart as the terms of an instruction.
            let (columns, apart) = (of_a_number * columns_of_b, banks::terms_apart(choice));
            match Small::of(problem, choice, columns) {
                Some(Small::AsItIs(longer)) => longer,
                _ => staging::padding(columns, if mma { 1 } else { whole }, |c| of_b(apart * c)),
            }
        },
        pad(moved_c(problem, choice), wider(problem, choice) * band(problem, choice), whole, of_c),
    ]
}

/// Elements by which a row of the small matrix is longer in shared memory because there is room between tiles.
fn between_tiles(problem: &Problem, choice: &Choice) -> i64 {
    if choice.word("unit") == "mma" {
        return 0;
    }
    let tiles = Tiles::of(problem, choice);
    small_extents(problem, choice).1 / tiles.piece * (tiles.step(problem.dtype()) - tiles.piece)
}

/// Rows of the small matrix in shared memory beyond those that are multiplied: threads that unroll several reads of terms have
/// room for all of the last ones.
fn beyond_the_last(problem: &Problem, choice: &Choice) -> i64 {
    if choice.word("unit") == "mma" {
        return 0;
    }
    let (depth, unrolled) =
        (depth(problem, choice), choice.int("steps").max(1) * terms_at_once(problem, choice));
    ceil(depth, unrolled) * unrolled - depth
}

/// Bytes of shared memory of a block of the forms that stage rows.
pub(super) fn staged_bytes(problem: &Problem, choice: &Choice) -> i64 {
    let [a, b, c] = paddings(problem, choice);
    let (dtype, of_a_number) = staged(problem, choice);
    let depth = depth(problem, choice);
    let (rows_of_b, columns_of_b) = stored_extents(problem, choice);
    let rows_of_b = rows_of_b + beyond_the_last(problem, choice);
    let rows = rows(problem, choice);
    let sums = if is_three(problem, choice) { 3 } else { 1 };
    let of_a_row = wider(problem, choice) * band(problem, choice) + c;
    let apart = stores_through_shared(choice) && !choice.flag(IN_PLACE);
    let result = if apart { sums * rows * of_a_row } else { 0 };
    let of_an_element = if choice.flag(staging::SPLIT_ONCE) { 2 } else { 1 };
    // What each part of a block has for itself begins at a multiple of 16 bytes; the small matrix, rows of A and the result lie one
    // behind the other, each at a multiple of 128 bytes, or of 1024 where rows or parts are longer than their elements.
    let parts = if in_parts(choice) && !take_turns(choice) { choice.int("wm").max(1) } else { 1 };
    let part = |elements: i64| ceil(elements * dtype.bytes(), parts);
    let begin = |after: i64, elements: i64, padding: i64| {
        let to = if padding > 0 || part(elements) % 16 != 0 { 1024 } else { 128 };
        ceil(after, to) * to
    };
    // What is there at a time is a group of each part, or so many of all.
    let at_a_time = if take_turns(choice) { group(problem, choice) } else { rows };
    let of_rows = match spans::in_spans(choice) {
        true => choice.int("stages") * spans::bytes(problem, at_a_time) / dtype.bytes(),
        false => choice.int("stages") * at_a_time * (of_a_number * depth + a),
    };
    let of_b = of_an_element
        * rows_of_b
        * (of_a_number * columns_of_b + b + between_tiles(problem, choice))
        * dtype.bytes();
    let barriers = if take_turns(choice) {
        let (slots, parts) = (choice.int("stages"), choice.int("wm"));
        // A barrier belongs to one part and one group of the ring.
        8 * slots / gcd(slots, parts) * parts
    } else {
        choice.int("stages") * staging::barrier_bytes(choice)
    };
    let after_rows = begin(of_b, of_rows, a) + parts * ceil(part(of_rows), 16) * 16 + barriers;
    let of_result = if result == 0 {
        after_rows
    } else {
        begin(after_rows, result, c) + parts * ceil(part(result), 16) * 16
    };
    of_result + landing(problem, choice)
}

/// Terms that a thread reads of a row of A at once: as many as divide what is copied of the row, in 16 bytes at most.
/// The last piece of a row that no pieces divide ends with zeros.
pub(super) fn terms_at_once(problem: &Problem, choice: &Choice) -> i64 {
    let (most, depth) = (16 / problem.dtype().bytes(), depth(problem, choice));
    (1..=most).rev().find(|t| most % t == 0 && depth % t == 0).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use warpwright_core::dtype::DType;

    use super::{Tiles, even_groups};

    #[test]
    fn tiles_begin_with_16_bytes_in_different_banks() {
        let step = |piece, across, dtype| Tiles { down: 8, across, piece }.step(dtype);
        assert_eq!([4, 2, 1].map(|piece| step(piece, 4, DType::F32)), [4, 2, 1]);
        assert_eq!([5, 9, 12, 13, 17].map(|piece| step(piece, 4, DType::F32)), [12, 12, 12, 20, 20]);
        assert_eq!([5, 7].map(|piece| step(piece, 4, DType::C64)), [6, 10]);
        // One beside the other needs no other banks.
        assert_eq!(step(13, 1, DType::F32), 16);
    }

    #[test]
    fn groups_of_short_matrices_share_out_evenly() {
        assert_eq!(even_groups(10_000, 132), [80, 40]);
        assert_eq!(even_groups(30_000, 132), [120], "228 rows for one group are too many");
        assert_eq!(even_groups(50, 132), [8]);
        assert!(even_groups(1_000_000, 132).is_empty());
    }

    #[test]
    fn what_is_left_of_a_tile_is_read_one_by_one() {
        let loads = |piece, columns, dtype| Tiles { down: 8, across: 4, piece }.loads(dtype, columns);
        assert_eq!(loads(13, 13, DType::F32), [3, 1]);
        assert_eq!(loads(7, 7, DType::C64), [3, 1]);
        assert_eq!(loads(4, 12, DType::F32), [3, 0]);
        assert_eq!(loads(1, 6, DType::F32), [6, 0]);
    }
}
