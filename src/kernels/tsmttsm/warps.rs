//! How the warps of a block share out an area of C.

use super::border;
use super::mapping::tiled;
use super::turned::Dealt;
use crate::kernels::family::Choice;
use crate::kernels::staging::{self, ACROSS, WarpTile, ceil};
use crate::problem::Problem;

/// What a warp has of an area of C.
pub(super) fn warp_tile(problem: &Problem, choice: &Choice) -> WarpTile {
    let (high, terms) = staging::instruction(choice.word("instruction"));
    let [along_m, along_n] = tiles(problem, choice);
    let rows = ceil(along_m, choice.int("wm")) * high;
    let columns = ceil(along_n, choice.int("wn")) * ACROSS;
    WarpTile { high, terms, rows, columns }
}

/// The name of the parameter that says whether warps leave out the tiles beyond the end of C.
pub(super) const OMIT: &str = "omit";

/// The name of the parameter that says whether warps then have as many tiles as each other, or one row or column of them less.
pub(super) const EVEN: &str = "even";

/// Instructions side by side along the rows and along the columns of what tiles cover.
fn tiles(problem: &Problem, choice: &Choice) -> [i64; 2] {
    let (high, _) = staging::instruction(choice.word("instruction"));
    let [height, width] = tiled(problem, choice);
    [ceil(height, high), ceil(width, ACROSS)]
}

/// Of so many instructions side by side those of each of so many warps: all have as many but the last, which have what is left, or
/// none has more than one more than another.
fn dealt(tiles: i64, warps: i64, evenly: bool) -> Vec<i64> {
    let most = ceil(tiles, warps);
    let of = |w: i64| {
        if evenly { (w + 1) * tiles / warps - w * tiles / warps } else { (tiles - w * most).clamp(0, most) }
    };
    (0..warps).map(of).collect()
}

/// The instructions that each warp has along the rows of C and along its columns.
pub(super) fn tiles_of_warps(problem: &Problem, choice: &Choice, evenly: bool) -> [Vec<i64>; 2] {
    let [rows, columns] = tiles(problem, choice);
    [dealt(rows, choice.int("wm"), evenly), dealt(columns, choice.int("wn"), evenly)]
}

/// The rows and columns that the tiles of all warps cover together.
pub(super) fn covered_by_warps(problem: &Problem, choice: &Choice) -> [i64; 2] {
    let WarpTile { high, rows, columns, .. } = warp_tile(problem, choice);
    if choice.flag(EVEN) {
        let [along_m, along_n] = tiles(problem, choice);
        return [along_m * high, along_n * ACROSS];
    }
    [choice.int("wm") * rows, choice.int("wn") * columns]
}

/// Whether warps side by side are rotated from row to row, so that no scheduler has the small ones of all rows: where some have fewer
/// columns than others.
pub(super) fn rotated(problem: &Problem, choice: &Choice) -> bool {
    let [rows, columns] = tiles_of_warps(problem, choice, true);
    choice.flag(EVEN) && rows.len() > 1 && columns.iter().any(|c| *c != columns[0])
}

/// What warps multiply where those that stand over the end of C leave out the tiles beyond it, beside what they would all multiply: in
/// the mean, and the fullest scheduler beside the mean. Warps stand on schedulers in turn.
pub(super) struct TilesShared {
    /// Tiles that are multiplied, as a part of those of all warps.
    pub(super) part: f64,
    /// How many times the mean the fullest scheduler has.
    pub(super) uneven: f64,
}

/// The tiles that each warp of a set multiplies, if each row of warps begins so many columns of warps further on.
pub(super) fn multiplied(problem: &Problem, choice: &Choice, further: i64) -> Vec<i64> {
    let WarpTile { high, rows, columns, .. } = warp_tile(problem, choice);
    if !choice.flag(OMIT) {
        let warps = choice.int("wm") * choice.int("wn");
        return vec![(rows / high) * (columns / ACROSS); warps as usize];
    }
    let [along_m, along_n] = tiles_of_warps(problem, choice, choice.flag(EVEN));
    let rotated = rotated(problem, choice);
    let begins = |m: usize| if rotated { m + further as usize } else { 0 };
    let of_rows = along_m.iter().enumerate();
    of_rows
        .flat_map(|(m, r)| along_n.iter().cycle().skip(begins(m)).take(along_n.len()).map(move |c| r * c))
        .collect()
}

/// Whether some warps multiply fewer tiles than others.
pub(super) fn some_omit(problem: &Problem, choice: &Choice) -> bool {
    let tiles = multiplied(problem, choice, 0);
    tiles.iter().any(|of_a_warp| *of_a_warp != tiles[0])
}

/// How tiles are shared out among the warps of a block, if some leave out those beyond the end of C, or some have others beside them,
/// those of the last rows where these are turned.
pub(super) fn tiles_shared(problem: &Problem, choice: &Choice, schedulers: i64) -> Option<TilesShared> {
    let turned = border::is_turned(choice);
    if !choice.flag(OMIT) && !turned {
        return None;
    }
    let sets = choice.int("wk").max(1);
    let (of_a_set, besides) = if turned {
        let dealt = Dealt::of(problem, choice);
        (multiplied(problem, choice, dealt.further), dealt.tiles(problem, choice))
    } else {
        (multiplied(problem, choice, 0), Vec::new())
    };
    let mut loads = vec![0; schedulers.max(1) as usize];
    let turns = loads.len();
    for of_each in [of_a_set, besides] {
        let of_warps = (0..sets).flat_map(|_| of_each.iter());
        of_warps.enumerate().for_each(|(warp, tiles)| loads[warp % turns] += tiles);
    }
    let warps = choice.int("wm") * choice.int("wn") * sets;
    let WarpTile { high, rows, columns, .. } = warp_tile(problem, choice);
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
