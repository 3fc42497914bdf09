//! The order of a segment's multiply-adds in which the register file keeps them waiting least.

use std::collections::HashSet;

use super::instruction::Instruction;
use super::registers::RegisterFile;
use super::segment::Constraints;

/// Comparisons of two multiply-adds that a segment is worth, and how few and how many orders are followed at once.
const WORTH: usize = 300_000;
const ORDERS: [usize; 2] = [12, 96];

/// A better order than the one that stands, where one is found, for a register file as the code before has left it: a beam
/// search (Lowerre 1976), which follows the best orders of the first so many multiply-adds.
pub(super) fn better(
    standing: &[Instruction],
    constraints: &Constraints,
    before: RegisterFile,
) -> Option<Vec<Instruction>> {
    let [fewest, most] = ORDERS;
    let width = (WORTH / (standing.len() * standing.len())).clamp(fewest, most);
    let mut followed = vec![Partial::none(standing.len(), before)];
    for place in 0..standing.len() {
        let mut next: Vec<(Rank, usize, usize, Instruction)> = Vec::new();
        for (from, partial) in followed.iter().enumerate() {
            partial.ready(constraints, place, |own| {
                for form in [Some(standing[own]), standing[own].swapped()].into_iter().flatten() {
                    // Whatever somebody reads again can be kept for it.
                    let form = form.keeping([true; 2]);
                    next.push((partial.rank(form), from, own, form));
                }
            });
        }
        next.sort_by_key(|(rank, from, own, _)| (*rank, *from, *own));
        let mut seen = HashSet::new();
        let mut chosen = Vec::with_capacity(width);
        for (_, from, own, form) in next {
            let partial = followed[from].with(place, own, form);
            if seen.insert((partial.members, partial.file.without_past())) {
                chosen.push(partial);
            }
            if chosen.len() == width {
                break;
            }
        }
        followed = chosen;
    }
    let mut stands = before;
    standing.iter().for_each(|multiply_add| stands.start(multiply_add.keeping([true; 2])));
    let best = followed.into_iter().min_by_key(|partial| (partial.file.cycles(), partial.file.reads()))?;
    (best.file.cycles() < stands.cycles()).then_some(best.order)
}

/// How good a beginning is: the cycles that it takes, those in which banks are asked for more after that, and the registers that it reads.
type Rank = (u32, u32, u32);

/// The beginning of an order.
#[derive(Clone)]
struct Partial {
    order: Vec<Instruction>,
    place_of: Vec<Option<usize>>,
    /// A sum of numbers, one for each multiply-add in it, which tells sets apart.
    members: u64,
    file: RegisterFile,
}

impl Partial {
    fn none(multiply_adds: usize, file: RegisterFile) -> Partial {
        Partial { order: Vec::new(), place_of: vec![None; multiply_adds], members: 0, file }
    }

    /// Calls for each multiply-add that may come next, at that place.
    fn ready(
        &self,
        Constraints { start, places, before }: &Constraints,
        place: usize,
        mut call: impl FnMut(usize),
    ) {
        let deadline = deadline(places, &self.place_of, place);
        for own in (0..places.len()).filter(|own| self.place_of[*own].is_none()) {
            let waited = |(earlier, distance): &(usize, i64)| {
                self.place_of[*earlier].is_some_and(|p| start[place] - start[p] >= *distance)
            };
            if places[own].contains(&place) && places[own].end <= deadline && before[own].iter().all(waited) {
                call(own);
            }
        }
    }

    fn rank(&self, form: Instruction) -> Rank {
        let mut file = self.file;
        file.start(form);
        (file.cycles(), file.behind(), file.reads())
    }

    fn with(&self, place: usize, own: usize, form: Instruction) -> Partial {
        let mut next = self.clone();
        next.order.push(form);
        next.place_of[own] = Some(place);
        next.members = next.members.wrapping_add(scattered(own as u64));
        next.file.start(form);
        next
    }
}

/// The place by which one has to be taken now, where those that have to come by then fill all places up to it.
fn deadline(places: &[std::ops::Range<usize>], place_of: &[Option<usize>], place: usize) -> usize {
    let mut due = vec![0usize; places.len() + 1];
    for (own, places) in places.iter().enumerate() {
        if place_of[own].is_none() {
            due[places.end] += 1;
        }
    }
    let mut so_many = 0;
    for (end, due) in due.iter().enumerate().skip(place + 1) {
        so_many += due;
        if so_many >= end - place {
            return end;
        }
    }
    places.len()
}

/// A number that looks drawn (the finalizer of splitmix64, Steele et al. 2014).
fn scattered(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}
