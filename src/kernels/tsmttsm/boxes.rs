//! Groups of rows that are some way apart, as boxes of a matrix: the tensor memory accelerator finds the rows, so a group of A and one of B
//! are one copy each, whatever lies between rows.
//!
//! What keeps lanes that read together in different banks, columns behind those of tiles, belongs to the boxes. The accelerator fills it with
//! zeros where it lies outside the matrix, and nobody reads it.

use warpwright_core::target::{Capability, Target};

use super::mapping::{LINE, one_copy, read, row_elements};
use crate::kernels::family::Choice;
use crate::kernels::staging;
use crate::problem::{Alignment, Problem};

/// Whether rows of a group come as boxes.
pub(super) fn in_boxes(choice: &Choice) -> bool {
    choice.word(staging::COPY) == staging::BOXES
}

/// Whether rows that are some way apart may: they start at multiples of 16 bytes, and are as many as the accelerator counts.
pub(super) fn may_arrive_in_boxes(problem: &Problem, target: &Target) -> bool {
    let (starts, rows) = (problem.alignment(), problem.alignment_of_rows());
    let aligned = [starts.a, starts.b, rows.a, rows.b].iter().all(|bytes| *bytes >= Alignment::MOST);
    aligned && problem.shape.k <= i64::from(i32::MAX) - MOST && target.has(Capability::Tma)
}

/// The most rows of a box, and numbers of one of them.
const MOST: i64 = 256;

/// Whether a group has no more rows than a box, and a row no more numbers, in whole pieces.
pub(super) fn fit(problem: &Problem, choice: &Choice) -> bool {
    let bytes = read(problem, choice).dtype().bytes();
    // Complex numbers of 16 bytes are moved as two.
    let most = if bytes > 8 { MOST / 2 } else { MOST };
    let rows = row_elements(problem, choice);
    choice.int("depth") <= MOST && rows.iter().all(|row| *row <= most && row * bytes % Alignment::MOST == 0)
}

/// Passes through the first-level cache in whose time 128 bytes of a box come. Where boxes were slower than other copies of A^H B in complex128,
/// a multiprocessor got 32 to 42 bytes in a ns, 16 to 21 in a cycle, with the zeros of padding and of tiles that stand over the end of a row (an H200,
/// bench/results/h200-2026-11-29-boxes-and-calls-that-begin-early.txt).
const PASSES: f64 = 6.5;

/// Passes in whose time a row of A and one of B come.
pub(super) fn passes(problem: &Problem, choice: &Choice) -> f64 {
    let operands = if one_copy(problem, choice) { 1 } else { 2 };
    let elements: i64 = row_elements(problem, choice)[..operands].iter().sum();
    PASSES * (elements * read(problem, choice).dtype().bytes()) as f64 / 128.0
}

/// Bytes between boxes, which begin at multiples of a line of shared memory.
pub(super) fn between(problem: &Problem, choice: &Choice) -> i64 {
    let bytes = read(problem, choice).dtype().bytes();
    let operands = if one_copy(problem, choice) { 1 } else { 2 };
    let boxes = row_elements(problem, choice).map(|row| choice.int("depth") * row * bytes);
    boxes[..operands].iter().map(|bytes| (LINE - bytes % LINE) % LINE).sum()
}
