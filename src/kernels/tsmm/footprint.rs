//! What a choice asks of a GPU.

use warpwright_core::target::{Capability, Target};

use super::banks;
use super::bulk;
use super::mapping::{
    self, Tiles, band, bands, copied_a, depth, in_parts, is_three, moved_a, moved_c, numbers, passing_groups,
    rows, small_extents, staged, staged_bytes, stored_extents, takes_one_group, team, terms_at_once, threads,
    threads_with_role, warp_tile, wider,
};
use super::schedule::{columns, pieces_are_aligned, written_at_once};
use crate::kernels::family::{Choice, Footprint};
use crate::kernels::gemm::Numbers;
use crate::kernels::granularity::{beside_c, between_rows};
use crate::kernels::staging::{self, ACROSS, Moved, WarpTile, ceil, copied_at_once};
use crate::problem::Problem;

pub(super) fn footprint(problem: &Problem, choice: &Choice, target: &Target) -> Footprint {
    match (choice.word("unit"), choice.word("staging")) {
        ("mma", _) => matrix_footprint(problem, choice, target),
        (_, "shared") => tile_footprint(problem, choice, target),
        _ => thread_footprint(problem, choice),
    }
}

/// What the forms that stage rows have in common: the copies in and out, and the waits.
fn staged_footprint(problem: &Problem, choice: &Choice, target: &Target) -> Footprint {
    let (m, n, k) = (problem.shape.m as f64, problem.shape.n as f64, problem.shape.k as f64);
    let (bytes, group) = (problem.dtype().bytes(), rows(problem, choice));
    let (passing, takes_one) = (passing_groups(choice), takes_one_group(choice));
    let (blocks, faster) = match passing {
        Some(groups) => {
            (ceil(problem.shape.m, group * groups), FASTER.powf(1.0 / (1.0 + (groups as f64).log2())))
        }
        None => (choice.int("blocks"), 1.0),
    };
    let (depth, stages) = (depth(problem, choice), choice.int("stages"));
    // Pieces of rows follow each other from group to group.
    let ahead = if bulk::take_turns(choice) { stages - choice.int("wm") } else { stages - 1 };
    let steps = ceil(problem.shape.k, depth) as f64 / ahead.max(1) as f64;
    // Blocks of each band copy the rows of A.
    let bands = bands(problem, choice);
    let over_bands = bands as f64;
    let passes_over_c = if problem.beta.norm() == 0.0 { 1.0 } else { 2.0 };
    // Elements of a row that are copied at a time.
    let align = problem.alignment_of_rows();
    let piece = |moved: Moved, width: i64, staged: i64, align: i64| match moved {
        Moved::Strided => copied_at_once(problem.dtype(), width, staged, align) as f64,
        _ => align as f64 / bytes as f64,
    };
    let (of_a, of_c) = (moved_a(problem, choice), moved_c(problem, choice));
    let copies_of_a = over_bands * m * k / piece(of_a, problem.shape.k, depth, align.a);
    let copies_of_c = passes_over_c * m * n / piece(of_c, problem.shape.n, band(problem, choice), align.c);
    // Times that a row of A is copied, or a piece of it.
    let rows_of_a = over_bands * m * k / depth as f64;
    let copied = copied_a(problem, choice);
    let of_a_piece_of_c = if of_c == Moved::AsOne { 3.0 } else { DIVIDED_STORE };
    Footprint {
        blocks: (blocks * bands) as f64,
        threads: threads_with_role(problem, choice),
        shared_bytes: staged_bytes(problem, choice),
        dram_bytes: (m * (k + passes_over_c * n) * bytes as f64 + beside_rows(problem, choice)) / faster,
        // A is written, the result written and read.
        wavefronts: m * (over_bands * k + 2.0 * n) * bytes as f64 / 128.0
            + (copies_of_a + copies_of_c) / 32.0
            + rows_of_a * copied.more_passes(),
        instructions: rows_of_a * copied.instructions(choice.flag(staging::KEEPS_PLACE))
            + copies_of_c / 32.0 * of_a_piece_of_c,
        steps: m / (blocks * group) as f64 * steps + 2.0,
        // The small matrix is on its way before anything else, or together with the rows.
        start: {
            let (rows, columns) = stored_extents(problem, choice);
            (staged(problem, choice).1 * rows * columns) as f64 / threads(problem, choice) as f64
                * if passing.is_some() { PASSING_START } else { 1.0 }
        },
        // While the threads of a block that takes one group meet, those of the others go on.
        meetings: if staging::meets(choice) && !takes_one && !bulk::take_turns(choice) {
            m / (blocks * group) as f64 * ceil(problem.shape.k, depth) as f64
        } else {
            0.0
        },
        teams: if in_parts(choice) { choice.int("wm") } else { 1 },
        bare: if passing.is_some() { BARE } else { 0.0 },
        overlaps: stages > 1 || takes_one,
        ahead: stages > 1,
        launches: 1,
        uneven: staging::uneven(choice, choice.int("wm") * choice.int("wn"), target),
        ..Footprint::default()
    }
}

/// Bytes that device memory moves beside those of the rows.
fn beside_rows(problem: &Problem, choice: &Choice) -> f64 {
    let completed = mapping::ALL_COPIES.contains(&choice.word(mapping::ENDS));
    between_rows(problem, choice) + beside_c(problem, choice, completed)
}

/// How much faster rows are read and written by blocks that take a group each than by blocks that stay. Not fitted: 26 products, 7 to 64
/// wide in four types, took 1.074 times as long by the best that stay as by the best that pass (geometric mean, one H100, 2026-11-26); on an H200 products
/// by registers, whose blocks never stay, reach 4239 GB/s in the median where those that stay reach 3955 (up to 24 wide, `bench tsm`). The more groups a block takes, the less it gains: with
/// 8 a quarter of it, which is what products of 29 to 36 columns have (one H200, 2026-11-26).
const FASTER: f64 = 1.07;

/// The part of the time of its small matrix that a block that passes costs, while others do something else. Chosen from 0, 0.5 and 1: of 160 products of
/// which both were measured (one H100, 2026-11-26) the model says of more of them which is faster than with 0 or 1.
const PASSING_START: f64 = 0.5;

/// The part of what a block that makes room computes that adds to the time where it is alone. Chosen from 0 to 0.25: of 146 products of which the best
/// with one group and the best that stays were measured (one H200, 2026-11-26) what the model takes is 0.5 % slower than the better one in the geometric mean, 1.9 % without;
/// of 87 with two or eight groups 1.1 %, and 2.4 %.
const BARE: f64 = 0.15;

/// Instructions by which a lane takes a piece of the result from shared memory to C, where it divides to find it.
/// Estimated from machine code, not fitted.
const DIVIDED_STORE: f64 = 7.0;

/// Passes through the first-level cache for each sector of a request that writes a part of it. Chosen from 2, 2.5 and 3 with [`ENDS`], with
/// which it makes no difference to the ranking of 422 problems; times held against the model are nearest to 1.
const PART_OF_SECTOR: f64 = 2.0;

/// The same where it writes 16 bytes of it. Fitted likewise (complex128, 687 candidates of 34 problems, one H200, 2026-11-23).
const HALF_OF_SECTOR: f64 = 1.3;

/// The same for the ends of what lanes write side by side, where they write whole pieces. Chosen from 0, 2, 3 and 5: of 51 problems in f32 the best
/// of the first 12 is 5.7 % slower than the best tried without it and 1.1 % with it, in f64 (44) 4.8 and 3.3 %, of all 422
/// 2.9 and 2.2 % (H200s, 2026-11-23).
const ENDS: f64 = 2.0;

/// Passes of results that go straight from registers to C, where `across` lanes have pieces of so many columns of what is
/// added up side by side: a request touches the sectors of all these pieces, and writes one element of each. None where
/// pieces go `whole`, which takes that rows are aligned to them.
fn lone_stores(problem: &Problem, choice: &Choice, piece: i64, across: i64, whole: bool) -> f64 {
    let bytes = problem.dtype().bytes();
    let whole = whole && piece > 1 && pieces_are_aligned(problem, choice, piece);
    // Elements of C.
    let piece = ceil(piece, wider(problem, choice));
    if mapping::stores_through_shared(choice) {
        return 0.0;
    }
    let requests = (problem.shape.m * problem.shape.n) as f64 / 32.0;
    let across = across.min(32);
    if whole {
        // About one sector at the ends of each row of a request is written in part, unless all begin and end with one.
        let ends = [problem.shape.n * bytes, across * piece * bytes].iter().any(|bytes| bytes % 32 != 0);
        let runs = if ends { 32.0 / across as f64 } else { 0.0 };
        return ENDS * requests / piece as f64 * runs;
    }
    // Half of the rows begin or end in a sector more.
    let sectors = 32.0 / across as f64 * ((across * piece * bytes) as f64 / 32.0 + 0.5);
    let passes = if bytes == 16 { HALF_OF_SECTOR } else { PART_OF_SECTOR };
    passes * requests * sectors.min(32.0)
}

/// Lanes that hold a row of the result of a matrix instruction, and the neighbouring columns of each.
const LANES_OF_A_ROW: i64 = 4;
const COLUMNS_OF_A_LANE: i64 = 2;

fn matrix_footprint(problem: &Problem, choice: &Choice, target: &Target) -> Footprint {
    let WarpTile { high, terms, rows, columns } = warp_tile(problem, choice);
    let (dtype, _) = staged(problem, choice);
    let (bytes, complex) = (dtype.bytes(), dtype.is_complex());
    let wider = wider(problem, choice);
    let over_rows = problem.shape.m as f64 / rows as f64 * (choice.int("wn") * bands(problem, choice)) as f64;
    // Steps of all warps, an instruction deep.
    let rest = mapping::rest(problem, choice);
    let instructions = ceil(wider * mapping::rows_of_pieces(problem, choice), terms);
    let steps = over_rows * (instructions - i64::from(rest > 0)) as f64;
    // What threads read and multiply of the terms that are left over; each row of a tile is read by the lanes that have it.
    let of_rest =
        rest * (rows * columns / 32 * if complex { 4 } else { 1 } + rows / high * 2 + columns / ACROSS * 2);
    // As in the family tsmttsm.
    let (products, parts_read) = if is_three(problem, choice) { (3, 2) } else { (1, 1) };
    let fragments = (rows + columns) * terms / 32;
    let apart = mapping::chain(problem, choice);
    let there = apart < mapping::steps_of_a_row(problem, choice);
    let [occupied, of_a_product, of_a_read] = staging::cost_of_splitting(problem, choice, apart);
    let sums = products * staging::sums_in_registers(choice, apart, there);
    let small = target.has(Capability::MmaF64Wide) && choice.word("instruction") == "m8n8k4" && !complex;
    // A lane gives each element of the small matrix that is read as parts its sign, and moves it.
    let signs = if numbers(problem, choice) == Numbers::Embedded { 2 * columns * terms / 32 } else { 0 };
    let common = staged_footprint(problem, choice, target);
    // Of the small matrix.
    let fragments_of_b = columns * terms / 32;
    let (b_at_once, of_a_read_of_b) =
        if choice.flag(staging::SPLIT_ONCE) { (2, 1.0) } else { (1, of_a_read) };
    let read = fragments + (b_at_once - 1) * fragments_of_b;
    // Lanes that meet in a bank of shared memory.
    let conflicts_of_reads = banks::reads(problem, choice, banks::terms_apart(choice));
    let conflicts_of_stores = banks::stores(problem, choice, banks::columns_apart(choice));
    let of_stores = if mapping::stores_through_shared(choice) {
        (problem.shape.m * problem.shape.n * problem.dtype().bytes()) as f64 / 128.0
    } else {
        0.0
    };
    Footprint {
        // Fragments of the next step are read while this one is multiplied, where there are registers for both.
        registers: {
            let with =
                |ahead: i64| (sums * rows * columns / 32 + ahead * products * fragments) * bytes / 4 + 24;
            let most = i64::from(target.limits.registers_per_block) / threads(problem, choice);
            with(2).min(with(1).max(most.min(255)))
        },
        multiply_adds: steps
            * (products * rows * columns * terms) as f64
            * if small { 1.9 } else { 1.0 }
            * if complex { 4.0 } else { 1.0 }
            * occupied,
        matrix_units: true,
        wavefronts: common.wavefronts
            + steps * (parts_read * read * bytes) as f64 / 4.0
            + steps * (parts_read * rows * terms / 32 * bytes) as f64 / 4.0 * (conflicts_of_reads - 1.0)
            + of_stores * (conflicts_of_stores - 1.0)
            + lone_stores(problem, choice, COLUMNS_OF_A_LANE, LANES_OF_A_ROW, !complex),
        instructions: common.instructions
            + steps
                * ((products * (fragments - fragments_of_b)) as f64 * of_a_read
                    + (products * fragments_of_b) as f64 * of_a_read_of_b
                    + signs as f64
                    + (products * (rows / high * columns / ACROSS)) as f64 * of_a_product
                    + 4.0)
            + over_rows * (rows * columns / 32 * 2 + of_rest) as f64,
        ..common
    }
}

fn tile_footprint(problem: &Problem, choice: &Choice, target: &Target) -> Footprint {
    let tiles = Tiles::of(problem, choice);
    let Tiles { down, across, piece } = tiles;
    let (tm, bytes, dtype) = (choice.int("tm"), problem.dtype().bytes(), problem.dtype());
    let tn = ceil(choice.int("tn"), piece) * piece;
    // The zeros at the end of the last piece of a row are multiplied too.
    let (k, at_once) = (small_extents(problem, choice).0 as f64, terms_at_once(problem, choice));
    // Warps times groups of rows.
    // Lanes that have no tile take as long as the others.
    let lanes = if in_parts(choice) { team(problem, choice) } else { ceil(down * across, 32) * 32 };
    let groups = problem.shape.m as f64 / (down * tm) as f64;
    let warps = groups * (lanes * bands(problem, choice)) as f64 / 32.0;
    let ([pieces, single], read) = (tiles.loads(dtype, tn), tiles.at_once(dtype));
    let loads = tm as f64 / at_once as f64 + (pieces + single) as f64;
    let [a_in_pairs, b_in_pairs] = staging::read_in_pairs(across, choice.flag(staging::INTERLEAVED));
    let of_a = tm as f64 / at_once as f64 * staging::passes(at_once * bytes, a_in_pairs);
    let of_b = pieces as f64 * staging::passes(read * bytes, b_in_pairs)
        + single as f64 * staging::passes(bytes, b_in_pairs);
    let common = staged_footprint(problem, choice, target);
    Footprint {
        registers: (tm * tn + tm * at_once + tn) * bytes / 4 + 30,
        multiply_adds: warps
            * 32.0
            * (tm * tn) as f64
            * k
            * if problem.dtype().is_complex() { 4.0 } else { 1.0 },
        wavefronts: common.wavefronts
            + warps * k * (of_a + of_b)
            + lone_stores(problem, choice, piece, across, piece == read),
        instructions: common.instructions + warps * k * (loads + 1.0),
        ..common
    }
}

/// Passes of a line that is written part by part, for each part. With it times by the model are those measured in the
/// mean, with a spread of a factor of 1.36; with one pass they were 0.83 of them, with 1.58 (189 candidates by registers
/// whose results have rows of 256 bytes and more, 5 problems, one H200, 2026-11-22).
const PARTS_OF_LINES: f64 = 2.0;

fn thread_footprint(problem: &Problem, choice: &Choice) -> Footprint {
    let (block, unroll, columns) = (choice.int("block"), choice.int("unroll"), columns(problem, choice));
    let across = (problem.shape.n + columns - 1) / columns;
    let rows = (block / across).max(1);
    let (m, n, k) = (problem.shape.m as f64, problem.shape.n as f64, problem.shape.k as f64);
    let bytes = problem.dtype().bytes();
    let (words, size) = (bytes / 4, bytes as f64);
    let parts_of_number = if problem.dtype().is_complex() { 4.0 } else { 1.0 };
    let blocks = (m / (rows * unroll) as f64).ceil();
    let warps = blocks * (rows * across) as f64 / 32.0;
    // A warp reads one element of each of its rows at a time, and writes pieces of `columns` elements.
    let rows_of_warp = (32.0 / across as f64).max(1.0);
    let small_bytes = problem.shape.k * problem.shape.n * bytes;
    let (small_passes, small_registers, shared_bytes) = match choice.word("c_source") {
        "registers" => (0.0, problem.shape.k * columns, 0),
        "shared" => ((across as f64).min(32.0) * size / 128.0, columns, small_bytes),
        _ => ((across as f64).min(32.0) * size.max(32.0) / 128.0, columns, 0),
    };
    // A line for each of its rows, or fewer where several rows fit in a line of 128 bytes.
    let lines = |width: f64| (rows_of_warp * (unroll as f64 * width * size / 128.0).min(1.0)).max(1.0);
    // Elements that are read and written at a time.
    let (read, written) = (choice.int("vector").max(1) as f64, written_at_once(problem, choice) as f64);
    let a_passes = unroll as f64 * k / read * lines(k);
    let b_passes = k * columns as f64 * small_passes.max(if small_passes > 0.0 { 1.0 } else { 0.0 });
    // Lanes side by side in a long row write to lines of their own, a part of each at a time.
    let of_a_row = PARTS_OF_LINES * (n * size / 128.0).min(across as f64).floor();
    let c_passes =
        (unroll * columns) as f64 / written * lines(n).max(rows_of_warp * of_a_row).max(32.0 * size / 128.0);
    let fill = if shared_bytes > 0 { blocks * small_bytes as f64 / 64.0 } else { 0.0 };
    let once_a_block = if choice.word("c_source") == "shared" { 1.0 } else { 0.0 };
    let passes_over_c = if problem.beta.norm() == 0.0 { 1.0 } else { 2.0 };
    Footprint {
        blocks,
        threads: rows * across,
        registers: (unroll * (columns + 2) + small_registers) * words + 20,
        shared_bytes,
        multiply_adds: blocks * (rows * unroll * across * columns) as f64 * k * parts_of_number,
        matrix_units: false,
        dram_bytes: (m * (k + passes_over_c * n) * size + beside_rows(problem, choice)) / FASTER,
        wavefronts: warps * (a_passes + b_passes + c_passes) + fill,
        instructions: warps
            * (unroll as f64 * k / read
                + b_passes.min(k * columns as f64)
                + (unroll * columns) as f64 / written * 3.0
                + 40.0),
        // Loads of four terms or so are in flight at once, and the small matrix is waited for before the first.
        steps: once_a_block * 1.5 + (k / 4.0).ceil(),
        start: 0.0,
        overlaps: true,
        ahead: false,
        meetings: 0.0,
        teams: 1,
        bare: 0.0,
        launches: 1,
        uneven: None,
        lonely: None,
    }
}
