//! Which banks of shared memory the lanes of a warp meet when they read rows of A for a matrix instruction and store what it has
//! made, and the distances of terms and of columns by which fewer of them meet in one.
//!
//! Eight rows stand below each other, and four lanes beside each other in each: a lane reads one term of its row and stores two
//! neighbouring columns. Where rows are moved as one piece of memory they cannot grow, and for rows of 31, 33, 47, 49 or 63 numbers of
//! four bytes four lanes wait for each other. Then an instruction may take every so many terms instead of neighbours, and make every
//! so many columns. The small matrix is read accordingly; where lanes would then meet there, it has its columns in shared memory in the
//! order in which they take them.

use super::mapping::{
    self, band, depth, makes_fragments, moved_a, moved_c, numbers, staged, warp_tile, wider,
};
use super::pairs;
use super::schedule::pieces_are_aligned;
use crate::kernels::family::Choice;
use crate::kernels::gemm::Numbers;
use crate::kernels::staging::{self, ACROSS, Moved};
use crate::problem::Problem;

/// The name of the parameter that says how far apart the terms of a matrix instruction lie.
pub(super) const TERMS_APART: &str = "terms_apart";

/// The same of its columns.
pub(super) const COLUMNS_APART: &str = "columns_apart";

/// Passes of another distance, beside those of neighbours, from which on it is not worth trying.
const WORTH: f64 = 0.8;

/// Banks of 4 bytes.
const BANKS: usize = 32;

/// Lanes beside each other in a fragment.
const BESIDE: i64 = 4;

/// How far apart the terms of an instruction lie: neighbours, where nothing is said.
pub(super) fn terms_apart(choice: &Choice) -> i64 {
    choice.int(TERMS_APART).max(1)
}

/// How far apart its columns lie.
pub(super) fn columns_apart(choice: &Choice) -> i64 {
    choice.int(COLUMNS_APART).max(1)
}

/// Distances of terms that are worth trying.
pub(super) fn terms_worth_trying(problem: &Problem, choice: &Choice) -> Vec<i64> {
    let whole_rows = depth(problem, choice) >= problem.shape.k;
    if !are_whole(problem, choice) || !whole_rows {
        return vec![1];
    }
    worth_trying(instructions_together(problem, choice), |apart| reads(problem, choice, apart))
}

/// How many instructions, one after another, may share out their terms: those of a chain, without the one that threads replace.
pub(super) fn instructions_together(problem: &Problem, choice: &Choice) -> i64 {
    let chain = mapping::chain(problem, choice);
    let replaced = mapping::rest(problem, choice) > 0 && chain == mapping::steps_of_a_row(problem, choice);
    if replaced { chain - 1 } else { chain }
}

/// How many beside each other may share out their columns: those of a warp.
pub(super) fn instructions_beside(problem: &Problem, choice: &Choice) -> i64 {
    warp_tile(problem, choice).columns / ACROSS
}

/// Distances of columns that are.
pub(super) fn columns_worth_trying(problem: &Problem, choice: &Choice) -> Vec<i64> {
    if !are_whole(problem, choice) || !mapping::stores_through_shared(choice) {
        return vec![1];
    }
    worth_trying(instructions_beside(problem, choice), |apart| stores(problem, choice, apart))
}

/// Whether fragments are copies of what is staged, and that of what is in memory.
fn are_whole(problem: &Problem, choice: &Choice) -> bool {
    choice.word("unit") == "mma" && numbers(problem, choice) == Numbers::Whole
}

/// One, and the divisor of so many with the fewest passes, if it has fewer.
fn worth_trying(of: i64, passes: impl Fn(i64) -> f64) -> Vec<i64> {
    let beside = (2..=of).filter(|apart| of % apart == 0);
    let best = beside.min_by(|a, b| passes(*a).total_cmp(&passes(*b)));
    [1].into_iter().chain(best.filter(|apart| passes(*apart) < WORTH * passes(1))).collect()
}

/// Passes of the loads of A by lanes, as multiples of those that they would take without conflicts. Rows that are moved each for
/// itself are as long as it takes to have none.
pub(super) fn reads(problem: &Problem, choice: &Choice, apart: i64) -> f64 {
    // Of what fragments of three real products are made is read in pairs.
    if moved_a(problem, choice) != Moved::AsOne || makes_fragments(problem, choice) {
        return 1.0;
    }
    let (dtype, of_a_number) = staged(problem, choice);
    let words = (dtype.bytes() / 4).max(1);
    passes(words, words * of_a_number * problem.shape.k, words * apart)
}

/// Passes of the stores of results by lanes.
pub(super) fn stores(problem: &Problem, choice: &Choice, apart: i64) -> f64 {
    if moved_c(problem, choice) != Moved::AsOne {
        return 1.0;
    }
    let dtype = staged(problem, choice).0;
    let words = (dtype.bytes() / 4).max(1);
    let row = words * wider(problem, choice) * band(problem, choice);
    let at_once = !dtype.is_complex() && pieces_are_aligned(problem, choice, 2) || pairs::of_complex(choice);
    if apart == 1 && at_once {
        // Both columns at once.
        return passes(2 * words, row, 2 * words);
    }
    passes(words, row, 2 * words * apart)
}

/// How the small matrix lies in shared memory if columns lie apart.
pub(super) enum Small {
    /// As it is, in rows that are so much longer.
    AsItIs(i64),
    /// With columns in the order in which lanes take them, so that they are neighbours there.
    InOrder,
}

impl Small {
    /// How rows of so many columns lie there; `None` if columns do not lie apart.
    pub(super) fn of(problem: &Problem, choice: &Choice, columns: i64) -> Option<Small> {
        let (terms, apart) = (terms_apart(choice), columns_apart(choice));
        if apart == 1 {
            return None;
        }
        let words = match choice.flag(staging::SPLIT_ONCE) {
            true => 1,
            false => (staged(problem, choice).0.bytes() / 4).max(1),
        };
        // Eight columns of each of four rows, neighbouring rows first.
        let free = |row: i64| {
            passes_of(words, |lane| (lane % BESIDE * terms * row + lane / BESIDE * apart) * words) == 1.0
        };
        let longer = (0..=staging::MOST_PADDING).find(|more| free(columns + more));
        Some(longer.map_or(Small::InOrder, Small::AsItIs))
    }
}

/// Passes of an access of so many words (1, 2 or 4) by each lane, to rows so many words apart, of which the four lanes of a row take what lies so many
/// words apart, as multiples of the least. Where it begins makes no difference.
fn passes(words: i64, row: i64, step: i64) -> f64 {
    passes_of(words, |lane| lane / BESIDE * row + lane % BESIDE * step)
}

/// The same where this is the first word of each lane.
fn passes_of(words: i64, first: impl Fn(i64) -> i64) -> f64 {
    let at_a_time = BANKS as i64 / words;
    let mut sum = 0;
    for group in 0..words {
        let mut wanted = [0u8; BANKS];
        for lane in group * at_a_time..(group + 1) * at_a_time {
            let first = first(lane);
            (first..first + words).for_each(|word| wanted[word as usize % BANKS] += 1);
        }
        sum += i64::from(wanted.into_iter().max().unwrap_or(0));
    }
    sum as f64 / words as f64
}

/// How many terms instructions take together whose terms lie so far apart.
pub(super) fn terms_at_a_time(problem: &Problem, choice: &Choice) -> i64 {
    warp_tile(problem, choice).terms * terms_apart(choice)
}

#[cfg(test)]
mod tests {
    use super::{BANKS, passes};
    use warpwright_core::model::requests::Tally;

    /// The model counts passes of any addresses; here, where the constraints of millions of choices ask, lanes are known to want
    /// different words.
    #[test]
    fn passes_are_those_of_the_model() {
        let mut tally = Tally::default();
        for (words, row) in
            [1, 2, 4].into_iter().flat_map(|words| (9..70).map(move |row| (words, words * row)))
        {
            for step in (1..=16).map(|step| words * step).filter(|step| 3 * step + words <= row) {
                let address = |lane: i64| 4 * (lane / 4 * row + lane % 4 * step);
                let lanes: Vec<(u8, i64)> =
                    (0..BANKS as i64).map(|lane| (lane as u8, address(lane))).collect();
                let least = words as f64;
                let counted = tally.wavefronts(&lanes, 4 * words) as f64 / least;
                assert_eq!(passes(words, row, step), counted, "{words} words, rows of {row}, {step} apart");
            }
        }
    }

    #[test]
    fn lanes_that_meet_in_a_bank_wait_for_each_other() {
        // Rows of 49 numbers of 4 bytes: two neighbouring columns of each row, then seven columns apart.
        assert_eq!([passes(1, 49, 2), passes(1, 49, 14)], [4.0, 2.0]);
        // Rows of 63: four lanes in a bank, and none.
        assert_eq!([passes(1, 63, 2), passes(1, 63, 8)], [4.0, 1.0]);
        // Complex numbers of 8 bytes, 33 in a row: neighbouring terms, and five apart; 25 in a row, two columns of each: neighbours, and two apart.
        assert_eq!([passes(2, 66, 2), passes(2, 66, 10)], [4.0, 2.0]);
        assert_eq!([passes(2, 50, 4), passes(2, 50, 8)], [2.0, 1.0]);
    }
}
