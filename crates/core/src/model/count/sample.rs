//! Which warps of a block are walked for all of them.

use super::super::lanes::WARP;
use crate::ir::Launch;

/// Warps of each that are walked besides the first, at most.
const WARPS: usize = 4;

/// The warps of a block that are walked, and how many each stands for: the first of the block and of each role, which may do what one
/// thread does for all, stand for themselves, some of the others for all others.
pub(super) fn of_warps(launch: &Launch) -> Vec<(i64, f64)> {
    let all = (launch.threads / WARP as i64).max(1);
    let mut firsts: Vec<i64> = launch.roles.iter().map(|role| role.lo / WARP as i64).chain([0]).collect();
    firsts.sort_unstable();
    firsts.dedup();
    let others: Vec<i64> = (0..all).filter(|warp| !firsts.contains(warp)).collect();
    let number = others.len().min(WARPS);
    let chosen = (0..number).map(|i| others[(2 * i + 1) * others.len() / (2 * number)]);
    let mut sample: Vec<(i64, f64)> =
        chosen.map(|warp| (warp, others.len() as f64 / number as f64)).collect();
    sample.extend(firsts.into_iter().map(|warp| (warp, 1.0)));
    sample.sort_by_key(|(warp, _)| *warp);
    sample
}
