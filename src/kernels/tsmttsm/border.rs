//! The last rows and columns of C, where whole matrix instructions would leave most of a tile over: threads add them up, or
//! the last rows are turned (`turned.rs`).
//!
//! A^T B of 49 columns in f32 takes 4 x 7 tiles of 16 x 8, of which 3 x 6 are full: 48 rows and columns by matrix instructions,
//! and 97 sums by threads, take 0.64 of the instructions. Both read the same groups of rows in shared memory: the stage of C's
//! parts is partitioned (`partition`), and the stages are computed in one pass over the groups (`compute_with`).

use super::mapping::{self, areas, covered, read};
use super::turned;
use crate::kernels::family::Choice;
use crate::kernels::gemm::Numbers;
use crate::kernels::staging::{self, ACROSS, ceil, numbers};
use crate::problem::Problem;

/// The name of the parameter that says which of them threads add up, or whether the last rows are turned.
pub(super) const BORDER: &str = "border";

/// What it says.
pub(super) const ABOUT: &str = "which rows and columns of C threads add up, since whole matrix instructions leave them over: none, the last rows, the last columns, or both; or whether instructions take the last rows turned, as columns of theirs";

/// The value that says so.
const TURNED: &str = "turned";

/// More rows or columns than this are left to matrix instructions.
const MOST: i64 = 4;

/// Lanes that share out the rows of a group; the others of a warp stand side by side along C.
const ALONG_ROWS: i64 = 4;

/// Elements of C side by side that a warp's lanes add up at a time.
const SIDE_BY_SIDE: i64 = 32 / ALONG_ROWS;

/// Rows and columns of what tiles cover that are left over by whole instructions.
fn left_over(problem: &Problem, choice: &Choice) -> [i64; 2] {
    let ([rows, columns], (high, _)) =
        (covered(problem, choice), staging::instruction(choice.word("instruction")));
    [rows % high, columns % ACROSS]
}

/// Whether the last rows are turned.
pub(super) fn is_turned(choice: &Choice) -> bool {
    choice.word(BORDER) == TURNED
}

/// Whether threads add up rows or columns.
pub(super) fn threads_add_up(problem: &Problem, choice: &Choice) -> bool {
    !is_turned(choice) && border(problem, choice) != [0; 2]
}

/// The values of the parameter, the usual one first: dense rows that bulk copies bring, and few
/// rows or columns left over of them.
pub(super) fn values(problem: &Problem, choice: &Choice) -> Vec<&'static str> {
    let whole = choice.word(staging::COPY) == staging::BULK;
    let one = areas(problem, choice) == 1 && numbers(problem, choice) != Numbers::Three;
    let real = !read(problem, choice).dtype().is_complex();
    let (over, covered) = (left_over(problem, choice), covered(problem, choice));
    let few = [0, 1].map(|side| (1..=MOST).contains(&over[side]) && covered[side] > over[side]);
    let mut values = match (whole && one && real, few) {
        (true, [true, true]) => vec!["none", "both", "columns", "rows"],
        (true, [true, false]) => vec!["none", "rows"],
        (true, [false, true]) => vec!["none", "columns"],
        _ => Vec::new(),
    };
    if turned::may_turn(problem, choice, over[0]) {
        if values.is_empty() {
            values.push("none");
        }
        values.push(TURNED);
    }
    values
}

/// How many rows and columns threads add up, or are turned.
pub(super) fn border(problem: &Problem, choice: &Choice) -> [i64; 2] {
    let [rows, columns] = left_over(problem, choice);
    match choice.word(BORDER) {
        "both" => [rows, columns],
        "rows" | TURNED => [rows, 0],
        "columns" => [0, columns],
        _ => [0, 0],
    }
}

/// One side of the border.
struct Side {
    stage: &'static str,
    /// The loop over its few rows or columns, and that along them.
    across: &'static str,
    along: &'static str,
    /// Elements along it.
    length: i64,
    /// Rows or columns.
    few: i64,
}

/// The sides that there are: the last rows of C, all of them, and the last columns of the other rows.
fn sides(problem: &Problem, choice: &Choice) -> Vec<Side> {
    let ([rows, columns], [few_rows, few_columns]) = (covered(problem, choice), border(problem, choice));
    if is_turned(choice) {
        return Vec::new();
    }
    let below = Side { stage: "below", across: "i", along: "j", length: columns, few: few_rows };
    let beside = Side { stage: "beside", across: "j", along: "i", length: rows - few_rows, few: few_columns };
    [below, beside].into_iter().filter(|side| side.few > 0).collect()
}

/// The steps by which the sides become stages of their own, right after the parts of C are one.
pub(super) fn partitioned(problem: &Problem, choice: &Choice) -> String {
    if is_turned(choice) {
        let ([rows, _], [last, _]) = (covered(problem, choice), border(problem, choice));
        return format!("partition(slice.i, {}) -> rest\n", rows - last);
    }
    let steps = sides(problem, choice).into_iter().map(|Side { stage, across, few, .. }| {
        let [rows, columns] = covered(problem, choice);
        let all = if across == "i" { rows } else { columns };
        format!("partition(slice.{across}, {}) -> {stage}\n", all - few)
    });
    steps.collect()
}

/// How many of a lane's elements stand along a side.
fn of_a_lane(choice: &Choice, length: i64) -> i64 {
    ceil(ceil(length, SIDE_BY_SIDE), choice.int("wm") * choice.int("wn"))
}

/// How far apart the rows are that lanes read together: as far as keeps them out of each other's banks.
fn apart(problem: &Problem, choice: &Choice) -> i64 {
    let rows = choice.int("depth") / choice.int("wk").max(1);
    let least = mapping::fewest_passes(problem, choice, |apart| rows % (ALONG_ROWS * apart) == 0);
    least.unwrap_or(1)
}

/// How what tiles leave over is computed in the loop over groups.
#[derive(Default)]
pub(super) struct Computed {
    /// The steps once the tiles have the loop.
    pub(super) steps: String,
    /// The names of what reads the groups of A, and of B, each behind a comma.
    pub(super) readers: [String; 2],
    /// The steps that make matrix instructions of it.
    pub(super) instructions: String,
    /// The step by which warps with fewer of these have code of their own.
    pub(super) versions: String,
    /// The loops that are unrolled, each behind a comma.
    pub(super) unrolled: String,
}

/// The steps that compute the sides.
pub(super) fn computed(problem: &Problem, choice: &Choice) -> Computed {
    if is_turned(choice) {
        return turned::computed(problem, choice);
    }
    let (mut steps, mut readers) = (String::new(), String::new());
    let apart = apart(problem, choice);
    for Side { stage, across, along, length, .. } in sides(problem, choice) {
        let (parts, sums) = (format!("{stage}_parts"), format!("{stage}_sums"));
        let each = of_a_lane(choice, length);
        readers += &format!(", {sums}");
        steps += &format!(
            "split({stage}.k, {rows}) -> kc, k
split({stage}.k, {apart}) -> t, k
rfactor({stage}.t, combine=shared) -> {parts}
cache_write({parts}, reg) -> {sums}
cache_write({stage}, reg) -> {stage}_sum
reorder({stage}.g, {stage}.s, {stage}.i, {stage}.j)
bind({stage}.g, block.x, min_blocks=0)
compute_at({stage}_sum, {stage}.j)
compute_at({parts}, {stage}.g)
split({parts}.{along}, {SIDE_BY_SIDE}) -> u, c
split({parts}.u, {each}) -> w, u
reorder({parts}.u, {parts}.s, {parts}.w, {parts}.c, {parts}.t, {parts}.g, {parts}.{across})
bind({parts}.u, vthread)
bind({parts}.s, {parts}.w, {parts}.c, {parts}.t, threads)
compute_at({sums}, {parts}.t)
reorder({sums}.ko, {sums}.kc, {sums}.k, {sums}.i, {sums}.j)
unroll({sums}.kc, {sums}.k, {sums}.i, {sums}.j, {parts}.{across})
bind({stage}.s, {stage}.{along}, threads)
unroll({stage}_sum.t)
compute_with({sums}.ko, mine.ko)
",
            rows = ALONG_ROWS * apart,
        );
    }
    Computed { steps, readers: [readers.clone(), readers], ..Computed::default() }
}

/// What the sides ask of a GPU beside the tiles.
#[derive(Default)]
pub(super) struct Cost {
    /// Bytes of shared memory in which the sums of lanes come together.
    pub(super) shared_bytes: i64,
    /// 32-bit registers of a lane.
    pub(super) registers: i64,
    /// Loads from shared memory of all warps of a set, for a row of a group.
    pub(super) loads: f64,
    /// Turns that their products take of all warps of a set, for a row of a group.
    pub(super) turns: f64,
}

pub(super) fn cost(problem: &Problem, choice: &Choice) -> Cost {
    if is_turned(choice) {
        return turned::cost(problem, choice);
    }
    let bytes = read(problem, choice).dtype().bytes();
    let warps = (choice.int("wm") * choice.int("wn")) as f64;
    let mut cost = Cost::default();
    for Side { length, few, .. } in sides(problem, choice) {
        let each = of_a_lane(choice, length);
        cost.shared_bytes += ALONG_ROWS * choice.int("wk") * length * few * bytes;
        cost.registers += each * few * bytes / 4;
        cost.loads += warps * (each + few) as f64 / ALONG_ROWS as f64;
        // Those of doubles take two turns each.
        cost.turns += warps * (each * few) as f64 / ALONG_ROWS as f64 * (bytes / 4) as f64;
    }
    cost
}
