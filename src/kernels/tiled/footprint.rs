//! What a choice asks of a GPU.

use warpwright_core::target::Target;

use super::mapping::{Tiles, blocks, copied};
use crate::kernels::family::{Choice, Footprint};
use crate::kernels::staging::ceil;
use crate::problem::Problem;

pub(super) fn footprint(problem: &Problem, choice: &Choice, _: &Target) -> Footprint {
    let tiles = Tiles::of(choice);
    let (m, n, k) = (problem.shape.m as f64, problem.shape.n as f64, problem.shape.k as f64);
    let (parts, stages) = (choice.int("parts").max(1), choice.int("stages").max(1));
    let [down, across] = blocks(problem, choice).map(|b| b as f64);
    let (rows, columns) = (down * tiles.rows as f64, across * tiles.columns as f64);
    let steps = ceil(ceil(problem.shape.k, tiles.depth), parts) as f64;
    let terms = steps * (tiles.depth * parts) as f64;
    let multiply_adds = rows * columns * terms;
    // A thread reads its rows and columns of each term, in pieces of 16 bytes, each of which takes two passes of a warp.
    let reads = multiply_adds / 32.0 * (1.0 / tiles.tm as f64 + 1.0 / tiles.tn as f64) / 4.0;
    let staged = terms * (rows * across + columns * down);
    let [piece_a, piece_b] = copied(problem, choice).map(|c| c.piece as f64);
    let copies = terms * (rows * across / piece_a + columns * down / piece_b) / 32.0;
    let left_behind = if parts > 1 { 2.0 * parts as f64 * m * n } else { 0.0 };
    let registers = tiles.tm * tiles.tn + tiles.tm * tiles.terms() + 2 * tiles.tn + 32;
    Footprint {
        blocks: down * across * parts as f64,
        threads: tiles.threads(),
        registers,
        shared_bytes: tiles.shared_bytes(stages),
        multiply_adds,
        matrix_units: false,
        dram_bytes: 4.0 * (m * k + k * n + m * n),
        wavefronts: 2.0 * reads + staged * 4.0 / 128.0 + left_behind * 4.0 / 128.0,
        instructions: reads + 6.0 * copies + 0.1 * multiply_adds / 32.0,
        steps: steps / (stages - 1).max(1) as f64 + 2.0,
        start: 0.0,
        overlaps: stages > 1,
        ahead: stages > 2,
        meetings: steps * 0.25,
        teams: 1,
        launches: if parts > 1 { 2 } else { 1 },
        uneven: None,
    }
}
