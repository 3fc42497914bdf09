//! What a choice asks of a GPU.

use warpwright_core::index::gcd;
use warpwright_core::target::{Capability, Target};

use super::border;
use super::boxes;
use super::direct::{self, is_direct};
use super::mapping::{
    self, INSTRUCTION_BYTES, LONG_CODE, Threads, WHOLE, area, areas, code_bytes, conflicts, copied,
    group_bytes, one_copy, pieces, read, rows_at_once, rows_in_a_row, rows_of_a_panel, rows_of_a_thread,
    slices_bytes, slices_of_a_group, sums, whole_pieces,
};
use super::reduction;
use super::sets;
use super::warps::{self, warp_tile};
use crate::kernels::family::{Choice, Footprint};
use crate::kernels::gemm::Numbers;
use crate::kernels::granularity::between_rows;
use crate::kernels::staging::{self, ACROSS, Copied, WarpTile, ceil, numbers};
use crate::problem::Problem;

pub(super) fn footprint(problem: &Problem, choice: &Choice, target: &Target) -> Footprint {
    let (m, n, k) = (problem.shape.m as f64, problem.shape.n as f64, problem.shape.k as f64);
    let parts = choice.int("parts");
    // Every row once; a part of C for each block, written and read, or added to C.
    let (passes_over_parts, launches) = match choice.word("reduction") {
        // The sums of each class are put together by a launch of their own.
        "two-pass" if mapping::class_count(problem, choice) > 1 => (2.0, 3),
        "two-pass" => (2.0, 2),
        "" => (0.0, 1),
        _ => (1.0, 2),
    };
    // Sets of warps leave their own behind, as do slices of threads that stage rows; numbers in parts are four instead
    // of two, and three real products three.
    let of_threads = choice.word("unit") == "fma" && choice.word("staging") == "shared";
    let sets = match of_threads {
        true if sets::come_together(choice) => 1,
        true => slices_of_a_group(problem, choice),
        false => choice.int("wk").max(1),
    };
    let of_a_number = match sums(problem, choice) {
        1 => 1.0,
        real => real as f64 / 2.0,
    };
    let left_behind = passes_over_parts * (parts * sets) as f64 * of_a_number * m * n;
    // Waits before the first rows and after the last; the launch that adds up parts waits for them, and several times
    // where a thread has more of them to add up than it reads at a time.
    let around = if launches == 1 {
        2.0
    } else {
        let of_a_thread = (parts * sets / reduction::second_pass_shares(problem, choice)) as f64;
        4.0 + (of_a_thread * of_a_number / reduction::PARTS_AT_A_TIME as f64).floor()
    };
    let common = Footprint {
        blocks: (parts * areas(problem, choice)) as f64,
        dram_bytes: (k * if problem.same { m } else { m + n } + left_behind) * problem.dtype().bytes() as f64
            + between_rows(problem, choice),
        launches,
        uneven: None,
        steps: around,
        ..Footprint::default()
    };
    match choice.word("unit") {
        "mma" => matrix_footprint(problem, choice, target, common),
        _ if choice.word("staging") == "shared" => shared_footprint(problem, choice, common),
        _ => thread_footprint(problem, choice, target, common),
    }
}

/// Passes through the first-level cache for each register that a thread of the form by registers lacks where a row is loaded ahead of
/// this one. Chosen so that they lose, not fitted: such candidates took 1.9 to 7.2 times as long as the model said without it, in the geometric
/// mean by type and width, and up to 45 times; those that have all they need, and those that load nothing ahead, registers enough or not, 1.0 to 1.6
/// times (A^T B and A^H B in all types, 16 wide and more, 430 candidates, H200s, 2026-11-22 and -23).
const SPILLED: f64 = 8.0;

fn thread_footprint(problem: &Problem, choice: &Choice, target: &Target, common: Footprint) -> Footprint {
    let Threads { mt, nt, slices, .. } = Threads::of(problem, choice);
    let (tm, tn, parts) = (choice.int("tm"), choice.int("tn"), choice.int("parts"));
    let (k, bytes) = (problem.shape.k as f64, problem.dtype().bytes());
    let covering = (mt * nt) as f64;
    // A warp stands on so many rows, and in each on so many tiles along M and along N.
    let rows = (32.0 / covering).max(1.0);
    let along_n = (nt as f64).min(32.0);
    let along_m = (32.0 / nt as f64).clamp(1.0, mt as f64);
    // Threads that read side by side share sectors; those that read a tile apart do not.
    let passes = |neighbours: f64, tile: i64| {
        let apart = if choice.flag("transposed") { bytes } else { (tile * bytes).min(bytes.max(32)) };
        (rows * (neighbours * apart as f64 / 128.0).max(0.25)).max(1.0)
    };
    let warps = k * covering * areas(problem, choice) as f64 / 32.0;
    let loads = tm + tn;
    let at_once = rows_at_once(choice);
    let ahead = if choice.flag("leapfrog") { 2 } else { at_once };
    let registers = (tm * tn + ahead * loads) * bytes / 4 + 16;
    let given = target.limits.most_registers(ceil(choice.int("block"), 32));
    let lacking = if choice.flag("leapfrog") { (registers - given).max(0) } else { 0 };
    Footprint {
        threads: slices * mt * nt,
        registers,
        shared_bytes: slices_bytes(problem, choice),
        multiply_adds: warps * 32.0 * (tm * tn) as f64 * if problem.dtype().is_complex() { 4.0 } else { 1.0 },
        wavefronts: warps
            * (tm as f64 * passes(along_m, tm) + tn as f64 * passes(along_n, tn) + lacking as f64 * SPILLED),
        instructions: warps * (2 * loads + 8) as f64,
        steps: k / (parts * slices * at_once) as f64 + common.steps,
        overlaps: choice.flag("leapfrog"),
        ..common
    }
}

fn shared_footprint(problem: &Problem, choice: &Choice, common: Footprint) -> Footprint {
    let Threads { area: [height, width], mt, nt, .. } = Threads::of(problem, choice);
    let (tm, tn, parts) = (choice.int("tm"), choice.int("tn"), choice.int("parts"));
    let (depth, stages) = (choice.int("depth"), choice.int("stages"));
    let (k, bytes) = (problem.shape.k as f64, problem.dtype().bytes());
    // Blocks times rows of each.
    let rows = k * areas(problem, choice) as f64;
    // The threads of the last warp take as long as a whole one.
    let threads = slices_of_a_group(problem, choice) * mt * nt;
    let whole = ceil(threads, 32) as f64 * 32.0 / threads as f64;
    let warps = rows * (mt * nt) as f64 / 32.0 * whole;
    // Loads of a thread from shared memory for a row.
    let [of_a, of_b] = pieces(problem, choice);
    let panel = rows_of_a_panel(problem, choice);
    let (of_a, read) =
        if choice.flag("panel") { (16 / bytes, 8 + panel * tn) } else { (of_a, 2 * (tm + tn)) };
    let [loads_of_a, loads_of_b] = if choice.flag(WHOLE) {
        [whole_pieces(problem, problem.shape.m, tm), whole_pieces(problem, problem.shape.n, tn)]
    } else {
        [ceil(tm, of_a) as f64, (tn / of_b) as f64]
    };
    let loads = loads_of_a + loads_of_b;
    let [a_in_pairs, b_in_pairs] = staging::read_in_pairs(nt, choice.flag(staging::INTERLEAVED));
    // Of tiles side by side that are 32 bytes wide, or 64, every fourth or second one starts in the same bank.
    let in_squares = mapping::in_squares(problem, choice);
    let conflicts = |tile: i64, beside: i64| {
        let apart = gcd(tile * bytes / 16, 8);
        let at_once = if in_squares { 4 } else { beside };
        if choice.flag(WHOLE) { ceil(apart * at_once, 8).max(1) as f64 } else { 1.0 }
    };
    let of_rows =
        loads_of_a * staging::passes(of_a * bytes, a_in_pairs) * conflicts(tm, mt.min(ceil(16, nt)));
    let of_columns = loads_of_b * staging::passes(of_b * bytes, b_in_pairs) * conflicts(tn, nt.min(8));
    let in_a_row = if choice.flag("panel") { panel } else { rows_in_a_row(problem, choice) };
    let code = code_bytes(problem, choice, in_a_row);
    let each = loads + (code_bytes(problem, choice, 1) / INSTRUCTION_BYTES) as f64;
    // A long loop is fetched anew in every group; a short one has iterations.
    let long_code = if code >= LONG_CODE { warps * LONGER * each } else { 0.0 };
    let iterations = if in_a_row < rows_of_a_thread(problem, choice) { warps / in_a_row as f64 } else { 0.0 };
    Footprint {
        threads,
        registers: (tm * tn + read) * bytes / 4 + 28,
        shared_bytes: stages * group_bytes(problem, choice) + sets::bytes(problem, choice),
        multiply_adds: warps * 32.0 * (tm * tn) as f64 * if problem.dtype().is_complex() { 4.0 } else { 1.0 },
        wavefronts: warps * (of_rows + of_columns)
            + rows * ((height + width) * bytes) as f64 / 128.0
            + rows * copies(problem, choice, |copied, _| copied.more_passes()),
        instructions: warps * loads
            + long_code
            + iterations * OF_AN_ITERATION
            + rows * copies(problem, choice, Copied::instructions),
        steps: k / (parts * depth * (stages - 1).max(1)) as f64 + common.steps,
        meetings: meetings(choice, k / (parts * depth) as f64),
        teams: 1,
        overlaps: true,
        ahead: true,
        ..common
    }
}

/// By what part of its instructions a loop takes longer whose multiply-adds are [`LONG_CODE`]. Chosen from 0.2, 0.3 and 0.4: of
/// 56 problems A^H B in complex64 the best of the first 12 is 2.3, 2.3 and 1.3 % slower than the best tried, without it 7.6 %
/// (H200s, 2026-11-23).
const LONGER: f64 = 0.4;
/// Instructions of an iteration of the loop over rows that are multiplied in a row.
const OF_AN_ITERATION: f64 = 6.0;

/// How often all warps of a block meet in so many steps.
fn meetings(choice: &Choice, steps: f64) -> f64 {
    if staging::meets(choice) { steps } else { 0.0 }
}

/// What the copies of a row of A and of one of B take together, or the one copy that is both.
fn copies(problem: &Problem, choice: &Choice, take: impl Fn(&Copied, bool) -> f64) -> f64 {
    let operands = if one_copy(problem, choice) { 1 } else { 2 };
    let keep_place = choice.flag(staging::KEEPS_PLACE);
    copied(problem, choice)[..operands].iter().map(|copied| take(copied, keep_place)).sum()
}

fn matrix_footprint(problem: &Problem, choice: &Choice, target: &Target, common: Footprint) -> Footprint {
    let WarpTile { high, terms, rows, columns } = warp_tile(problem, choice);
    let (depth, parts, stages) = (choice.int("depth"), choice.int("parts"), choice.int("stages"));
    let k = problem.shape.k as f64;
    let over_c = choice.int("wm") * choice.int("wn");
    // Blocks times rows of each; steps of all warps, an instruction deep.
    let of_blocks = k * areas(problem, choice) as f64;
    let steps = of_blocks / terms as f64 * over_c as f64;
    let read = read(problem, choice);
    let bytes = read.dtype().bytes();
    let words = bytes as f64 / 4.0;
    // Three products share the tiles: a lane reads both parts of a number, and adds them up.
    let (products, parts_read) = if numbers(problem, choice) == Numbers::Three { (3, 2) } else { (1, 1) };
    let fragments = (rows + columns) * terms / 32;
    let [of_a, of_b] = conflicts(problem, choice);
    let apart = warps::steps_of_a_group(problem, choice);
    let [occupied, of_a_product, of_a_read] = staging::cost_of_splitting(problem, choice, apart);
    let sums = products * staging::sums_in_registers(choice, apart, true);
    let area = area(problem, choice).map(|width| parts_read * width);
    let border = border::cost(problem, choice);
    let small = target.has(Capability::MmaF64Wide)
        && choice.word("instruction") == "m8n8k4"
        && !read.dtype().is_complex();
    let schedulers = i64::from(target.limits.sub_partitions.max(1));
    let direct = is_direct(choice);
    // What lanes hold of the operands, and how many rows a block waits for at a time.
    let (held, at_once) = match (direct, choice.flag("leapfrog")) {
        (true, true) => (direct::held(problem, choice), depth),
        (true, false) => (direct::held(problem, choice), 2 * terms * choice.int("wk")),
        _ => (2 * products * fragments, depth * (stages - 1).max(1)),
    };
    let (passes_of_copies, copies) = if direct {
        (0.0, 0.0)
    } else {
        let passes = if boxes::in_boxes(choice) {
            boxes::passes(problem, choice)
        } else {
            (area.iter().sum::<i64>() * bytes) as f64 / 128.0
        };
        (passes, copies(problem, choice, Copied::instructions))
    };
    let (part, uneven) = match warps::tiles_shared(problem, choice, schedulers) {
        Some(shared) => (shared.part, Some(shared.uneven)),
        None => (1.0, staging::uneven(choice, over_c * choice.int("wk"), target)),
    };
    Footprint {
        threads: warps::threads_of_warps(choice),
        registers: (sums * rows * columns / 32 + held) * bytes / 4 + border.registers + 12,
        shared_bytes: stages * group_bytes(problem, choice) + border.shared_bytes,
        // Where there are larger instructions, this one reaches 30 of 56 TFLOP/s (one H200, 2026-11-21).
        multiply_adds: steps
            * (products * rows * columns * terms) as f64
            * part
            * if small { 1.9 } else { 1.0 }
            * if read.dtype().is_complex() { 4.0 } else { 1.0 }
            * occupied,
        matrix_units: true,
        wavefronts: steps * (parts_read * (rows * of_a + columns * of_b) * terms / 32 * bytes) as f64 / 4.0
            + of_blocks * (passes_of_copies + border.loads * words),
        instructions: steps
            * ((products * fragments) as f64 * of_a_read
                + (products * (rows / high * columns / ACROSS)) as f64 * of_a_product
                + 4.0)
            + of_blocks * (copies + border.loads + border.turns),
        steps: k / (parts * at_once) as f64 + common.steps,
        meetings: if direct { 0.0 } else { meetings(choice, k / (parts * depth) as f64) },
        teams: 1,
        overlaps: !direct || choice.flag("leapfrog"),
        ahead: !direct || choice.flag("leapfrog"),
        uneven,
        ..common
    }
}
