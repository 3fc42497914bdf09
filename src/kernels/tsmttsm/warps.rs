//! How the warps of a block share out an area of C.

use super::mapping::tiled;
use crate::kernels::family::Choice;
use crate::kernels::staging::{self, ACROSS, WarpTile, ceil};
use crate::problem::Problem;

/// What a warp has of an area of C.
pub(super) fn warp_tile(problem: &Problem, choice: &Choice) -> WarpTile {
    let (high, terms) = staging::instruction(choice.word("instruction"));
    let [height, width] = tiled(problem, choice);
    let rows = ceil(ceil(height, high), choice.int("wm")) * high;
    let columns = ceil(ceil(width, ACROSS), choice.int("wn")) * ACROSS;
    WarpTile { high, terms, rows, columns }
}

/// The name of the parameter that says whether warps leave out the tiles beyond the end of C.
pub(super) const OMIT: &str = "omit";

/// What warps multiply where those that stand over the end of C leave out the tiles beyond it, beside what they would all multiply: in
/// the mean, and the fullest scheduler beside the mean. Warps stand on schedulers in turn.
pub(super) struct TilesShared {
    /// Tiles that are multiplied, as a part of those of all warps.
    pub(super) part: f64,
    /// How many times the mean the fullest scheduler has.
    pub(super) uneven: f64,
}

/// How tiles are shared out among the warps of a block, if some leave out those beyond the end of C.
pub(super) fn tiles_shared(problem: &Problem, choice: &Choice, schedulers: i64) -> Option<TilesShared> {
    if !choice.flag(OMIT) {
        return None;
    }
    let WarpTile { high, rows, columns, .. } = warp_tile(problem, choice);
    let [height, width] = tiled(problem, choice);
    let [along_m, along_n] = [(height, high, rows, "wm"), (width, ACROSS, columns, "wn")].map(
        |(covered, instruction, of_a_warp, warps)| -> Vec<i64> {
            let tiles = of_a_warp / instruction;
            let left = |w: i64| (ceil(covered, instruction) - w * tiles).clamp(0, tiles);
            (0..choice.int(warps)).map(left).collect()
        },
    );
    let sets = choice.int("wk").max(1);
    let of_warps = (0..sets).flat_map(|_| along_m.iter().flat_map(|r| along_n.iter().map(move |c| r * c)));
    let mut loads = vec![0; schedulers.max(1) as usize];
    let turns = loads.len();
    of_warps.enumerate().for_each(|(warp, tiles)| loads[warp % turns] += tiles);
    let warps = choice.int("wm") * choice.int("wn") * sets;
    let all = warps * (rows / high) * (columns / ACROSS);
    let mean = loads.iter().sum::<i64>() as f64 / turns as f64;
    let fullest = loads.into_iter().max().unwrap_or(0) as f64;
    Some(TilesShared { part: mean * turns as f64 / all as f64, uneven: fullest / mean })
}

/// Threads of a block whose warps multiply by matrix instructions, and of the warp that asks for copies, if one does nothing else.
pub(super) fn threads_of_warps(choice: &Choice) -> i64 {
    let asks = choice.word(staging::RELEASE) == staging::BY_ROLE;
    32 * (choice.int("wm") * choice.int("wn") * choice.int("wk") + i64::from(asks))
}

/// Instructions of a warp, one after another, in a group of rows.
pub(super) fn steps_of_a_group(problem: &Problem, choice: &Choice) -> i64 {
    (choice.int("depth") / (choice.int("wk") * warp_tile(problem, choice).terms).max(1)).max(1)
}
