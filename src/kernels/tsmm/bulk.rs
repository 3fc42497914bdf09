//! Bulk copies: which groups of rows they may bring, which results may leave by them, and the ring of groups that the parts of a block use
//! in turn.

use warpwright_core::dtype::DType;
use warpwright_core::target::{Capability, Target};

use super::mapping::{IN_PLACE, bands, depth, group, in_parts, is_three, moved_a_as, staged_bytes};
use crate::kernels::family::Choice;
use crate::kernels::staging::{self, By, Moved};
use crate::problem::{Alignment, Problem};

/// The way that results leave by a bulk copy for each group of rows.
pub(super) const IN_BULK: &str = "bulk";

/// Whether bulk copies may bring groups of rows of A: they are one run of memory each, whole rows of it, from a multiple of 16 bytes on,
/// that a whole block shares and whose results go straight to C, or that its parts take in turn and that leave as they came. The first was tried
/// in complex128 alone, where nine products of 46 to 63 columns ship with it, up to 1.06 times as fast (H200s, 2026-11-26).
pub(super) fn may_bring(problem: &Problem, choice: &Choice, target: &Target) -> bool {
    (in_parts(choice) || problem.dtype() == DType::C128)
        && choice.word("unit") == "mma"
        && choice.word("store") == if in_parts(choice) { IN_BULK } else { "direct" }
        && depth(problem, choice) == problem.shape.k
        && moved_a_as(staging::BULK, problem, choice) == Moved::AsOne
        && problem.alignment().a == Alignment::MOST
        && group(problem, choice) * problem.shape.k * problem.dtype().bytes() % 16 == 0
        && target.has(Capability::Tma)
}

/// Whether results may leave by bulk copies: they may lie where the rows lay, which are one run of memory in whole pieces of 16 bytes, from a
/// multiple of 16 bytes on. What factors change on the way threads store, from the same place.
pub(super) fn may_leave(problem: &Problem, choice: &Choice, target: &Target) -> bool {
    let shape = problem.shape;
    choice.word("unit") == "mma"
        && target.has(Capability::Tma)
        && shape.k == shape.n
        && [problem.ld.a, problem.ld.c] == [shape.k, shape.n]
        && shape.n > 1
        && [problem.alignment().a, problem.alignment().c] == [Alignment::MOST; 2]
        && group(problem, choice) * shape.n * problem.dtype().bytes() % 16 == 0
        && depth(problem, choice) == shape.k
        && bands(problem, choice) == 1
        && !is_three(problem, choice)
}

/// Whether the parts of a block use a ring of groups in turn, to which bulk copies bring them.
pub(super) fn take_turns(choice: &Choice) -> bool {
    in_parts(choice) && By::of(choice) == By::Bulk
}

/// The most groups of such a ring for each part: one that is multiplied, and one that is on its way.
const MOST_TURNS: i64 = 2;

/// How many groups such a ring has: as many as there is room for, where that is more than there are parts.
pub(super) fn turns(problem: &Problem, choice: &Choice, target: &Target) -> Option<i64> {
    let with = |slots: i64| staged_bytes(problem, &choice.clone().with("stages", slots).with(IN_PLACE, true));
    let parts = choice.int("wm");
    let most = i64::from(target.limits.shared_per_block_opt_in);
    (parts + 1..=MOST_TURNS * parts).rev().find(|slots| with(*slots) <= most)
}
