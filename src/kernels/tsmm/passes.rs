//! Blocks that take a few groups of rows and make room for the next, instead of staying and taking every so many.

use warpwright_core::target::Target;

use super::mapping::{GROUPS, PASSING, bands};
use super::{bulk, mapping, with_stages};
use crate::kernels::family::{Choice, Parameter};
use crate::kernels::staging::{By, ceil};
use crate::problem::Problem;

/// Whether blocks do.
pub(super) const PASSES: Parameter = Parameter {
    name: PASSING,
    about: "whether a block takes a few groups of rows and makes room for the next, instead of staying and taking every so many",
    values: |c, problem, target| {
        let worth = !groups_of_a_pass(c, problem, target).is_empty() && !bulk::take_turns(c);
        with_stages(c, [false].into_iter().chain(worth.then_some(true)))
    },
};

/// How many groups they take.
pub(super) const GROUPS_OF_A_PASS: Parameter = Parameter {
    name: GROUPS,
    about: "groups of rows that a block takes, or each part of it, before it makes room for the next",
    values: |c, problem, target| {
        if !c.flag(PASSING) {
            return Vec::new();
        }
        let few = if By::of(c) == By::Bulk { 2 } else { 1 };
        let worth = groups_of_a_pass(c, problem, target);
        with_stages(c, if worth.is_empty() { vec![few] } else { worth })
    },
};

/// Blocks for each multiprocessor from which on it is worth trying that they make room for each other.
const MANY_BLOCKS: i64 = 16;

/// The most columns of C of which that is worth trying. Of products that are wider nobody has measured it, and of the 19 widths of f64 from 46 to 64 blocks that stay
/// are kept for 12 (one H200, 2026-11-26).
const MOST_COLUMNS_OF_A_PASS: i64 = 64;

/// How many groups of rows it is worth trying that a block takes before it makes room, so that there are many blocks. One that asks for a group
/// by a bulk copy while it multiplies another takes several.
fn groups_of_a_pass(choice: &Choice, problem: &Problem, target: &Target) -> Vec<i64> {
    let blocks = |groups: i64| {
        ceil(problem.shape.m, groups * mapping::rows(problem, choice).max(1)) * bands(problem, choice)
    };
    let several = By::of(choice) == By::Bulk;
    let many = |groups: &i64| blocks(*groups) >= MANY_BLOCKS * i64::from(target.sm_count.value);
    if problem.shape.n > MOST_COLUMNS_OF_A_PASS {
        return Vec::new();
    }
    [1, 2, 4, 8, 16, 32].into_iter().skip(several.into()).filter(many).collect()
}
