//! The last rows of C where whole matrix instructions leave at most half of their rows over: turned, so that their few rows are
//! the columns of instructions, and their columns the rows.
//!
//! 104 rows and columns of C take 7 x 13 instructions of 16 rows and 8 columns, of which 13 are half empty. The last eight rows turned
//! are 104 rows and eight columns, which 7 instructions cover: 85 instructions in all instead of 91. The stage of C's parts is partitioned
//! (`partition`), the last rows have the operands of their products and their sums the other way round, and both stages are
//! computed in one pass over the groups (`compute_with`). One warp after the other has one of the instructions, or as
//! many as it takes.

use super::mapping::{self, areas, covered, one_copy, read};
use super::schedule::{each_read, rows_of_instructions};
use super::warps::warp_tile;
use crate::kernels::family::Choice;
use crate::kernels::gemm::Numbers;
use crate::kernels::staging::{self, ACROSS, ceil, numbers};
use crate::problem::Problem;

use super::border::{Computed, Cost};

/// Rows and columns of the instructions that the last rows of C take, before these are turned.
fn high(choice: &Choice) -> i64 {
    staging::instruction(choice.word("instruction")).0
}

/// Whether the last rows may be turned, if so many rows are left over, more than one: of dense rows that bulk copies bring, whose numbers
/// are taken as they are.
pub(super) fn may_turn(problem: &Problem, choice: &Choice, over: i64) -> bool {
    let as_they_are = numbers(problem, choice) != Numbers::Three
        && !staging::splits(choice)
        && !read(problem, choice).dtype().is_complex();
    let [rows, _] = covered(problem, choice);
    choice.word(staging::COPY) == staging::BULK
        && areas(problem, choice) == 1
        && as_they_are
        && high(choice) > ACROSS
        && (2..=ACROSS).contains(&over)
        && rows > over
}

/// Instructions side by side along the last rows, once they are turned.
fn tiles(problem: &Problem, choice: &Choice) -> i64 {
    let [_, columns] = covered(problem, choice);
    ceil(columns, high(choice))
}

/// How many of them a warp has at most.
fn of_a_warp(problem: &Problem, choice: &Choice) -> i64 {
    ceil(tiles(problem, choice), choice.int("wm") * choice.int("wn"))
}

/// The instructions of each warp of a set, as long as there are any.
pub(super) fn dealt(problem: &Problem, choice: &Choice) -> Vec<i64> {
    let (all, most) = (tiles(problem, choice), of_a_warp(problem, choice));
    (0..ceil(all, most)).map(|warp| (all - warp * most).min(most)).collect()
}

/// The columns of A and of B that they read.
pub(super) fn columns(problem: &Problem, choice: &Choice) -> [i64; 2] {
    let [rows, _] = covered(problem, choice);
    let warps = dealt(problem, choice).len() as i64;
    [ceil(rows, ACROSS) * ACROSS, warps * of_a_warp(problem, choice) * high(choice)]
}

/// The steps that compute them in the loop over groups, once the tiles of the other rows have it.
pub(super) fn computed(problem: &Problem, choice: &Choice) -> Computed {
    let (terms, high) = (warp_tile(problem, choice).terms, high(choice));
    let most = of_a_warp(problem, choice);
    let made = mapping::makes_fragments(problem, choice);
    let [row_of_a, row_of_b] =
        mapping::rows_in_memory(problem, choice).map(|width| format!(", rows={width}"));
    let names = ["last_a", "last_b"];
    // What reads groups: the fragments, or the sums themselves, of whose products fragments are made.
    let (reads, at_steps, readers) = if made {
        (String::new(), String::new(), [", last".to_string(), ", last".to_string()])
    } else if one_copy(problem, choice) {
        (
            each_read("last", "A", &names, &|_| row_of_a.clone()),
            "compute_at(last_a, last.ks)\ncompute_at(last_b, last.ks)\n".to_string(),
            [", last_a, last_b".to_string(), String::new()],
        )
    } else {
        let reads = each_read("last", "A", &names[..1], &|_| row_of_a.clone())
            + &each_read("last", "B", &names[1..], &|_| row_of_b.clone());
        (
            reads,
            "compute_at(last_a, last.ks)\ncompute_at(last_b, last.ks)\n".to_string(),
            names.map(|name| format!(", {name}")),
        )
    };
    // Of two factors of a product, the second is that of the rows of the instruction.
    let fragments = if made {
        "precompute(last.ks, 1) -> last_a\nprecompute(last.ks, 2) -> last_b\nstorage_order(last_a, c, r)\n"
    } else {
        "storage_order(last_b, c, r)\n"
    };
    let several = most > 1;
    let uneven = tiles(problem, choice) % most != 0;
    let (omit, versions) = if uneven { (", omit=unread", "unswitch(last.ks)\n") } else { ("", "") };
    let read_loop = if made { "jo" } else { "co" };
    Computed {
        steps: format!(
            "cache_write(rest, reg) -> last
{reads}split(rest.j, {columns}) -> w, j
split(rest.i, {ACROSS}) -> m, i
reorder(rest.g, rest.s, rest.w, rest.m, rest.j, rest.i)
bind(rest.g, block.x, min_blocks=0)
bind(rest.s, rest.w, threads@32)
compute_at(last, rest.m)
{rows}reorder(last.ko, last.ks, last.j, last.i, last.k)
compute_with(last.ko, mine.ko)
{at_steps}",
            columns = most * high,
            rows = rows_of_instructions("last", terms, mapping::apart(choice)),
        ),
        readers,
        instructions: format!(
            "{fragments}storage_order(last, c, r)
split(last.j, {high}) -> mj, j
reorder(last.ks, last.mj, last.j, last.i, last.k)
tensorize(last.j, mma_{instruction}_{dtype}{omit})
",
            instruction = choice.word("instruction"),
            dtype = read(problem, choice).dtype(),
        ),
        versions: versions.to_string(),
        unrolled: if several {
            format!(", last.ks, last.mj, last_b.{read_loop}, rest.jo")
        } else {
            ", last.ks".to_string()
        },
    }
}

/// What they ask of a GPU beside the other tiles.
pub(super) fn cost(problem: &Problem, choice: &Choice) -> Cost {
    let (terms, high, most) = (warp_tile(problem, choice).terms, high(choice), of_a_warp(problem, choice));
    let words = read(problem, choice).dtype().bytes() / 4;
    let (all, warps) = (tiles(problem, choice) as f64, dealt(problem, choice).len() as f64);
    let of_a_lane = |elements: i64| elements as f64 / 32.0;
    Cost {
        // Their sums, and their operands: those of the other tiles are read before or behind.
        registers: (most * high * ACROSS + (most * high + ACROSS) * terms) / 32 * words,
        loads: all * of_a_lane(high) + warps * of_a_lane(ACROSS),
        turns: all / terms as f64,
        ..Cost::default()
    }
}
