//! What a choice asks of a GPU.

use warpwright_core::target::Target;

use super::mapping::{Elements, Tiles, Warps, blocks, copied};
use crate::kernels::family::{Choice, Footprint};
use crate::kernels::staging::{self, ceil};
use crate::problem::Problem;

// The constants are fitted together on 8882 trials of 104 products, those of two H100s (2026-11-26) that the space still has. Of the 94 products
// with twenty trials and more, the first by the model among what was tried takes 1.05 times as long as the best in the geometric mean, the
// best of the first eight 1.018 times; with constants that were guessed it was 1.11 and 1.06 times. All are in the fit, and all of
// them have 4096 or 9216 terms.

/// The part of what `tune::rank` counts for an instruction, which is more than one cycle: multiply-adds follow each other here without a gap.
const ISSUE: f64 = 0.86 / 1.3;
/// Instructions beside each multiply-add: of loops, and of waits.
const BESIDE: f64 = 0.077;
/// Instructions of an asynchronous copy, and of an element of A that is turned on its way.
const COPY: f64 = 0.35;
const TURN: f64 = 9.5;
/// Passes through the first-level cache that take a multiprocessor as long as a line of 128 bytes from the second-level cache.
const FAR: f64 = 2.6;
/// What one warp of a scheduler with 64 elements of C a thread lacks to keep its pipe busy, and how fast that vanishes with more elements.
const LONELY: f64 = 0.15;
const ELEMENTS: f64 = 0.3;
/// Meetings of the model for each tile that a block waits for: where the next one is asked for when this one is there, and where several
/// are on their way.
const MEETINGS: f64 = 0.36;
const MEETINGS_AHEAD: f64 = 0.056;
/// Loads of the model's start for what a block does besides, for each part that a second launch reads, and for each element of C of a
/// thread where sets come together.
const AROUND: f64 = 29.0;
const OF_A_PART: f64 = 2.3;
const OF_AN_ELEMENT: f64 = 0.15;

/// How many times as long as `staging::cost_of_splitting` says, which knows tall and skinny products, matrix instructions on split numbers
/// take here. Times by the model are then 0.9 of those measured in the median, with 1.0 they were 0.81 of them (4281 trials of 94
/// products on an H100, 2026-11-26); the order within a product hardly depends on it: the best of the first eight takes 1.024 times as
/// long as the best that was tried.
const LONGER: f64 = 1.25;

pub(super) fn footprint(problem: &Problem, choice: &Choice, _: &Target) -> Footprint {
    let tiles = Tiles::of(choice);
    let (m, n, k) = (problem.shape.m as f64, problem.shape.n as f64, problem.shape.k as f64);
    let (parts, stages) = (choice.int("parts").max(1), choice.int("stages").max(1));
    let [down, across] = blocks(problem, choice).map(|b| b as f64);
    let (rows, columns) = (down * tiles.rows as f64, across * tiles.columns as f64);
    let all_blocks = down * across * parts as f64;
    let steps = ceil(ceil(problem.shape.k, tiles.depth), parts) as f64;
    let terms = steps * (tiles.depth * parts) as f64;
    let multiply_adds = rows * columns * terms;
    // A thread reads its rows and columns of each term, in pieces of 16 bytes, each of which takes two passes of a warp.
    let by_threads = multiply_adds / 32.0 * (1.0 / tiles.tm as f64 + 1.0 / tiles.tn as f64) / 4.0;
    let warps = tiles.matrix_units.then(|| MatrixUnits::of(problem, choice, &tiles, multiply_adds));
    // Instructions that read operands, and their passes.
    let (reads, passes) = warps.as_ref().map_or((by_threads, 2.0 * by_threads), |w| (w.reads, w.passes));
    let staged = terms * (rows * across + columns * down);
    let [piece_a, piece_b] = copied(problem, choice).map(|c| c.piece as f64);
    let copies = terms * (rows * across / piece_a + columns * down / piece_b) / 32.0;
    let left_behind = if parts > 1 { 2.0 * parts as f64 * m * n } else { 0.0 };
    // Sets leave their sums in shared memory, and threads add them up.
    let put_together = if tiles.sets > 1 { 2.0 * (tiles.sets * parts) as f64 * rows * columns } else { 0.0 };
    let bytes = tiles.elements.bytes() as f64;
    let (lines, of_operands) = (|sums: f64| sums * 4.0 / 128.0, staged * bytes / 128.0);
    let near = passes + of_operands + lines(put_together);
    let far = FAR * (of_operands + lines(left_behind));
    let turned = if tiles.turned { TURN * terms * rows * across / 32.0 } else { 0.0 };
    let around = reads + COPY * copies + turned + 2.0 * put_together / 32.0;
    let instructions = match &warps {
        Some(warps) => around + warps.instructions,
        None => (around + (BESIDE + 1.0) * multiply_adds / 32.0) * ISSUE - multiply_adds / 32.0,
    };
    let registers = match tiles.matrix_units {
        true => Warps::of(choice).registers() + 32,
        false => tiles.tm * tiles.tn + tiles.tm * tiles.terms() + 2 * tiles.tn + 32,
    };
    let (threads, shared_bytes) = (tiles.threads(), tiles.shared_bytes(stages));
    let elements = (tiles.rows * tiles.columns / tiles.of_a_set) as f64;
    let with_parts = if parts > 1 { OF_A_PART * parts as f64 } else { 0.0 };
    let with_sets = if tiles.sets > 1 { OF_AN_ELEMENT * elements } else { 0.0 };
    let meetings = match stages {
        _ if tiles.by_warps => 0.0,
        ..=2 => MEETINGS,
        _ => MEETINGS_AHEAD,
    };
    Footprint {
        blocks: all_blocks,
        threads,
        registers,
        shared_bytes,
        multiply_adds: multiply_adds * warps.as_ref().map_or(1.0, |w| w.occupied),
        matrix_units: tiles.matrix_units,
        dram_bytes: bytes * (m * k + k * n) + problem.result_dtype().bytes() as f64 * m * n,
        wavefronts: near.max(far),
        instructions,
        steps: steps / (stages - 1).max(1) as f64 + 2.0,
        start: AROUND + with_parts + with_sets,
        overlaps: stages > 1,
        ahead: stages > 1,
        meetings: steps * meetings,
        teams: 1,
        bare: 0.0,
        launches: if parts > 1 { 2 } else { 1 },
        uneven: None,
        lonely: (!tiles.matrix_units).then(|| LONELY * (64.0 / elements).powf(ELEMENTS)),
    }
}

/// What warps do that multiply by matrix instructions.
struct MatrixUnits {
    /// How many times as long as instructions on numbers as they are those on split numbers keep matrix units busy.
    occupied: f64,
    /// Instructions that read fragments of the operands, and their passes.
    reads: f64,
    passes: f64,
    /// Instructions that split and multiply, and add up.
    instructions: f64,
}

impl MatrixUnits {
    fn of(problem: &Problem, choice: &Choice, tiles: &Tiles, multiply_adds: f64) -> MatrixUnits {
        let warps = Warps::of(choice);
        let [below, beside] = warps.instructions();
        let [terms, columns] = tiles.at_once().unwrap_or([1, 1]);
        let fragments = (4 * below + 2 * beside) as f64;
        let step = tiles.elements.step();
        let steps = multiply_adds / (warps.rows * warps.columns * step) as f64;
        if tiles.elements == Elements::Halves {
            // `ldmatrix` brings 16 x 16 elements of either operand in four passes.
            let loads = below as f64 + beside as f64 / 2.0;
            let instructions = steps * ((below * beside) as f64 + 4.0);
            return MatrixUnits {
                occupied: 1.0,
                reads: steps * loads,
                passes: steps * 4.0 * loads,
                instructions,
            };
        }
        let [occupied, of_a_product, of_a_read] =
            staging::cost_of_splitting(problem, choice, tiles.terms_of_a_set() / step);
        MatrixUnits {
            occupied: occupied * LONGER,
            reads: steps * (4.0 * below as f64 / terms as f64 + 2.0 * beside as f64 / columns as f64),
            passes: steps * fragments,
            instructions: steps
                * (fragments * (of_a_read - 1.0) + (below * beside) as f64 * of_a_product + 4.0),
        }
    }
}
