//! What a choice asks of a GPU.

use warpwright_core::occupancy::blocks_per_sm;
use warpwright_core::target::Target;

use super::mapping::{Tiles, blocks, copied};
use crate::kernels::family::{Choice, Footprint};
use crate::kernels::staging::ceil;
use crate::problem::Problem;

/// Instructions that the model counts for each: those of these kernels were estimated from machine code, where multiply-adds
/// follow each other without a gap.
const ISSUE: f64 = 1.3;
/// Passes through the first-level cache that take a multiprocessor as long as a line of 128 bytes from the second-level cache. An
/// estimate from bandwidths, not fitted.
const FAR: f64 = 5.0;
/// What one warp of a scheduler lacks to keep its pipe busy. Chosen, not fitted.
const LONELY: f64 = 0.5;
/// Meetings of the model for each tile that a block waits for. Chosen, not fitted.
const MEETINGS: f64 = 0.25;

pub(super) fn footprint(problem: &Problem, choice: &Choice, target: &Target) -> Footprint {
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
    let reads = multiply_adds / 32.0 * (1.0 / tiles.tm as f64 + 1.0 / tiles.tn as f64) / 4.0;
    let staged = terms * (rows * across + columns * down);
    let [piece_a, piece_b] = copied(problem, choice).map(|c| c.piece as f64);
    let copies = terms * (rows * across / piece_a + columns * down / piece_b) / 32.0;
    let left_behind = if parts > 1 { 2.0 * parts as f64 * m * n } else { 0.0 };
    // Sets leave their sums in shared memory, and threads add them up.
    let put_together = if tiles.sets > 1 { 2.0 * (tiles.sets * parts) as f64 * rows * columns } else { 0.0 };
    let lines = |elements: f64| elements * 4.0 / 128.0;
    let near = 2.0 * reads + lines(staged + put_together);
    let far = FAR * lines(staged + left_behind);
    let others = reads + 6.0 * copies + 2.0 * put_together / 32.0 + 0.06 * multiply_adds / 32.0;
    let registers = tiles.tm * tiles.tn + tiles.tm * tiles.terms() + 2 * tiles.tn + 32;
    let (threads, shared_bytes) = (tiles.threads(), tiles.shared_bytes(stages));
    let resident = blocks_per_sm(target, threads, registers.min(255), shared_bytes) as f64;
    let there = resident.min(all_blocks / f64::from(target.sm_count.value)).max(1.0);
    let warps = there * threads as f64 / 32.0 / f64::from(target.limits.sub_partitions.max(1));
    Footprint {
        blocks: all_blocks,
        threads,
        registers,
        shared_bytes,
        multiply_adds,
        matrix_units: false,
        dram_bytes: 4.0 * (m * k + k * n + m * n),
        wavefronts: near.max(far),
        instructions: (others + multiply_adds / 32.0) / ISSUE - multiply_adds / 32.0,
        steps: steps / (stages - 1).max(1) as f64 + 2.0,
        start: 0.0,
        overlaps: stages > 1,
        ahead: stages > 2,
        meetings: if tiles.by_warps { 0.0 } else { steps * MEETINGS },
        teams: 1,
        launches: if parts > 1 { 2 } else { 1 },
        uneven: None,
        fed: Some(1.0 + LONELY / warps.powi(2)),
    }
}
