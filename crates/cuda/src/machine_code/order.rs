//! The order of a segment's multiply-adds in which the register file keeps them waiting least.

use super::instruction::{Instruction, cycles};
use super::segment::Constraints;

/// Comparisons of two multiply-adds that a segment is worth, and between how few and how many orders that is.
const WORTH: usize = 300_000;
const ORDERS: [usize; 2] = [8, 240];

/// The cycles of multiply-adds in this order, the first after one at the place before it, if there is one.
pub(super) fn in_all(order: &[Instruction], before: Option<Instruction>) -> u32 {
    let mut before = before;
    order.iter().map(|next| cycles(*next, before.replace(*next))).sum()
}

/// A better order than the one that stands, where one is found: each multiply-add keeps for the next one what both read at the same place.
/// The search draws from a fixed sequence of numbers, so that the same code always gets the same order.
pub(super) fn better(
    standing: &[Instruction],
    constraints: &Constraints,
    before: Option<Instruction>,
) -> Option<Vec<Instruction>> {
    let mut drawn = Draw(0x9e37_79b9_7f4a_7c15);
    let mut least = in_all(standing, before);
    let mut best = None;
    let [fewest, most] = ORDERS;
    for _ in 0..(WORTH / (standing.len() * standing.len())).clamp(fewest, most) {
        let Some(order) = attempt(standing, constraints, &mut drawn) else { continue };
        let cycles = in_all(&order, None);
        if cycles < least {
            (least, best) = (cycles, Some(order));
        }
    }
    best
}

/// One order: at each place the multiply-add that waits least there, or one of them.
fn attempt(
    standing: &[Instruction],
    constraints: &Constraints,
    drawn: &mut Draw,
) -> Option<Vec<Instruction>> {
    let Constraints { start, places, before } = constraints;
    let mut place_of: Vec<Option<usize>> = vec![None; standing.len()];
    let mut order: Vec<Instruction> = Vec::with_capacity(standing.len());
    for place in 0..standing.len() {
        let deadline = deadline(places, &place_of, place);
        let ready = |own: usize| {
            let waited = |(earlier, distance): &(usize, i64)| {
                place_of[*earlier].is_some_and(|p| start[place] - start[p] >= *distance)
            };
            places[own].contains(&place) && places[own].end <= deadline && before[own].iter().all(waited)
        };
        let mut chosen: Option<((u32, u32, u32), usize, Instruction)> = None;
        for own in (0..standing.len()).filter(|own| place_of[*own].is_none()) {
            if !ready(own) {
                continue;
            }
            for form in [Some(standing[own]), standing[own].swapped()].into_iter().flatten() {
                let last = order.last().map(|last| keeping_for(*last, form));
                let kept = last.map_or(0, |last| last.kept().iter().filter(|k| **k).count() as u32);
                let rank = (cycles(form, last), 2 - kept, drawn.next());
                if chosen.as_ref().is_none_or(|(least, ..)| rank < *least) {
                    chosen = Some((rank, own, form));
                }
            }
        }
        let (_, own, form) = chosen?;
        if let Some(last) = order.last_mut() {
            *last = keeping_for(*last, form);
        }
        place_of[own] = Some(place);
        order.push(form.keeping([false; 2]));
    }
    Some(order)
}

/// A multiply-add that keeps for the next one what both read at the same place, unless it overwrites that itself.
pub(super) fn keeping_for(last: Instruction, next: Instruction) -> Instruction {
    last.keeping([0, 1].map(|place| {
        let register = last.sources()[place];
        register == next.sources()[place] && register != last.destination()
    }))
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

/// Numbers that look drawn (xorshift, Marsaglia 2003).
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 40) as u32
    }
}
