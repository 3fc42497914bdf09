//! The last rows of C where whole matrix instructions leave at most half of their rows over: turned, so that their few rows are
//! the columns of instructions, and their columns the rows.
//!
//! 104 rows and columns of C take 7 x 13 instructions of 16 rows and 8 columns, of which 13 are half empty. The last eight rows turned
//! are 104 rows and eight columns, which 7 instructions cover: 85 instructions in all instead of 91. The stage of C's parts is partitioned
//! (`partition`), the last rows have the operands of their products and their sums the other way round, and both stages are
//! computed in one pass over the groups (`compute_with`). Warps have one each of the instructions, or as
//! many as it takes, so that the fullest scheduler has least ([`Dealt`]).

use super::border::{Computed, Cost};
use super::mapping::{self, areas, covered, one_copy, read};
use super::schedule::{each_read, rows_of_instructions};
use super::warps::{self, warp_tile};
use crate::kernels::family::Choice;
use crate::kernels::gemm::Numbers;
use crate::kernels::staging::{self, ACROSS, ceil, numbers};
use crate::problem::Problem;

/// Rows of an instruction: as many columns of the last rows does it take.
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

/// Warps stand on so many schedulers in turn.
const SCHEDULERS: i64 = 4;

/// How the instructions are dealt to the warps of a set.
#[derive(Clone, Copy)]
pub(super) struct Dealt {
    /// By how many columns of warps each row of them begins further on, so that other schedulers have those with fewer tiles.
    pub(super) further: i64,
    /// How many warps of a scheduler have one each before the next scheduler has any; 0 if warps have them one after another.
    of_a_scheduler: i64,
}

impl Dealt {
    /// The way in which the fullest scheduler has least.
    pub(super) fn of(problem: &Problem, choice: &Choice) -> Dealt {
        let warps = choice.int("wm") * choice.int("wn");
        let by_schedulers = choice.int("wk") == 1
            && warps % SCHEDULERS == 0
            && of_a_warp(problem, choice) == 1
            && warps > SCHEDULERS;
        let beginnings = if warps::rotated(problem, choice) { SCHEDULERS.min(choice.int("wn")) } else { 1 };
        let of_schedulers = if by_schedulers { vec![0, warps / SCHEDULERS] } else { vec![0] };
        // Of ways that are as good the first.
        let ways = of_schedulers
            .into_iter()
            .flat_map(|of_a_scheduler| (0..beginnings).map(move |further| Dealt { further, of_a_scheduler }));
        ways.min_by_key(|way| way.fullest(problem, choice)).unwrap_or(Dealt { further: 0, of_a_scheduler: 0 })
    }

    /// The instructions of each warp of a set beside its other tiles, as long as there are any.
    pub(super) fn tiles(self, problem: &Problem, choice: &Choice) -> Vec<i64> {
        let (all, most) = (tiles(problem, choice), of_a_warp(problem, choice));
        if self.of_a_scheduler == 0 {
            return (0..ceil(all, most)).map(|warp| (all - warp * most).min(most)).collect();
        }
        let warps = 0..SCHEDULERS * self.of_a_scheduler;
        let place = |warp: i64| self.of_a_scheduler * (warp % SCHEDULERS) + warp / SCHEDULERS;
        warps.map(|warp| i64::from(place(warp) < all)).collect()
    }

    /// Instructions of the scheduler that has most of them.
    fn fullest(self, problem: &Problem, choice: &Choice) -> i64 {
        let mut loads = [0; SCHEDULERS as usize];
        for of_warps in [warps::multiplied(problem, choice, self.further), self.tiles(problem, choice)] {
            of_warps.iter().enumerate().for_each(|(w, tiles)| loads[w % SCHEDULERS as usize] += tiles);
        }
        loads.into_iter().max().unwrap_or(0)
    }
}

/// The columns of A and of B that they read.
pub(super) fn columns(problem: &Problem, choice: &Choice) -> [i64; 2] {
    let [rows, _] = covered(problem, choice);
    let at_a_time = of_a_warp(problem, choice).max(Dealt::of(problem, choice).of_a_scheduler);
    [ceil(rows, ACROSS) * ACROSS, ceil(tiles(problem, choice), at_a_time) * at_a_time * high(choice)]
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
    let (reads, readers) = if made {
        (String::new(), [", last".to_string(), ", last".to_string()])
    } else if one_copy(problem, choice) {
        let both = names.map(|name| format!(", {name}")).concat();
        (each_read("last", "A", &names, &|_| row_of_a.clone()), [both, String::new()])
    } else {
        let reads = each_read("last", "A", &names[..1], &|_| row_of_a.clone())
            + &each_read("last", "B", &names[1..], &|_| row_of_b.clone());
        (reads, names.map(|name| format!(", {name}")))
    };
    let at_steps = if made {
        String::new()
    } else {
        names.map(|name| format!("compute_at({name}, last.ks)\n")).concat()
    };
    // Of two factors of a product, the second is that of the rows of the instruction.
    let fragments = if made {
        "precompute(last.ks, 1) -> last_a\nprecompute(last.ks, 2) -> last_b\nstorage_order(last_a, c, r)\n"
    } else {
        "storage_order(last_b, c, r)\n"
    };
    let several = most > 1;
    let Dealt { of_a_scheduler, .. } = Dealt::of(problem, choice);
    let uneven = tiles(problem, choice) % most.max(of_a_scheduler) != 0;
    let (omit, versions) = if uneven { (", omit=unread", "unswitch(last.ks)\n") } else { ("", "") };
    let read_loop = if made { "jo" } else { "co" };
    // The warps of a scheduler have neighbours in hand, and the warps of a block stand on schedulers in turn.
    let (to_warps, warps, bind) = if of_a_scheduler > 0 {
        (
            format!("split(rest.w, {of_a_scheduler}) -> z, w\n"),
            "rest.s, rest.w, rest.z",
            format!("bind(rest.s, rest.w, threads@{})\nbind(rest.z, threads@32)\n", 32 * SCHEDULERS),
        )
    } else {
        (String::new(), "rest.s, rest.w", "bind(rest.s, rest.w, threads@32)\n".to_string())
    };
    Computed {
        steps: format!(
            "cache_write(rest, reg) -> last
{reads}split(rest.j, {columns}) -> w, j
split(rest.i, {ACROSS}) -> m, i
{to_warps}reorder(rest.g, {warps}, rest.m, rest.j, rest.i)
bind(rest.g, block.x, min_blocks=0)
{bind}compute_at(last, rest.m)
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
{bases}",
            bases = staging::lane_bases(choice, &names),
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
    let all = tiles(problem, choice) as f64;
    let warps = ceil(tiles(problem, choice), most) as f64;
    let of_a_lane = |elements: i64| elements as f64 / 32.0;
    Cost {
        // Their sums. Their operands take the place of those of the other tiles.
        registers: most * high * ACROSS / 32 * words,
        loads: all * of_a_lane(high) + warps * of_a_lane(ACROSS),
        turns: all / terms as f64,
        ..Cost::default()
    }
}

#[cfg(test)]
mod tests {
    use super::Dealt;
    use crate::kernels::family::Choice;
    use crate::problem::Problem;

    /// Whole instructions of 50 columns are 91, of 58 they are 120, and of 42 they are 66: a fourth is 23, 30 and 17.
    #[test]
    fn the_fullest_scheduler_has_hardly_more_than_a_fourth() {
        for (columns, [wm, wn], fullest, further, of_a_scheduler) in [
            (50, [3, 4], 22, 0, 0),
            (50, [2, 4], 23, 0, 0),
            (58, [3, 4], 29, 2, 3),
            (58, [4, 4], 29, 0, 0),
            (42, [3, 4], 16, 2, 0),
        ] {
            let shape = format!("{columns}x{columns}x100000").parse().unwrap();
            let problem = Problem::new(shape, "c128".parse().unwrap(), "cn".parse().unwrap());
            let choice = Choice::default()
                .with("unit", "mma")
                .with("copy", "bulk")
                .with("numbers", "parts")
                .with("areas", 1)
                .with("instruction", "m16n8k4")
                .with("border", "turned")
                .with("omit", true)
                .with("even", true)
                .with("wm", wm)
                .with("wn", wn)
                .with("wk", 1);
            let dealt = Dealt::of(&problem, &choice);
            let found = (dealt.fullest(&problem, &choice), dealt.further, dealt.of_a_scheduler);
            assert_eq!(found, (fullest, further, of_a_scheduler), "{columns} {wm} x {wn}");
        }
    }
}
