//! Multiply-adds that follow each other, and what decides in which order they may stand.

use std::collections::HashSet;
use std::ops::Range;

use super::instruction::{Flow, Instruction};

/// Cycles from a multiply-add's start until another may read its result: four on compute capability 7.0 to 9.0 (Jia et al., 2018,
/// table 4.1), and one to spare.
const LATENCY: i64 = 5;
/// Cycles after which no instruction of fixed latency is under way any more whose result a multiply-add reads or is read by.
const ANY_LATENCY: i64 = 16;

/// The multiply-adds at neighbouring places that no other place of the code jumps into and of which at most the first waits
/// for a scoreboard.
pub(super) fn segments(code: &[Instruction], targets: &HashSet<usize>) -> Vec<Range<usize>> {
    let mut all = Vec::new();
    let mut start = 0;
    while start < code.len() {
        let goes_on = |at: &usize| code[*at].is_multiply_add() && !code[*at].waits() && !targets.contains(at);
        let end = match code[start].is_multiply_add() {
            true => start + 1 + (start + 1..code.len()).take_while(goes_on).count(),
            false => start + 1,
        };
        if end - start > 1 {
            all.push(start..end);
        }
        start = end;
    }
    all
}

/// The places that the code may jump to. None where that is not known, and none of code with matrix instructions, whose results
/// of fixed latency are under way for longer than is looked back here.
pub(super) fn targets(code: &[Instruction]) -> Option<HashSet<usize>> {
    let mut targets = HashSet::new();
    for (at, instruction) in code.iter().enumerate() {
        if instruction.is_of_matrix_units() {
            return None;
        }
        match instruction.flow() {
            Flow::Target(behind) => {
                targets.insert(usize::try_from(at as i64 + 1 + behind).ok().filter(|t| *t < code.len())?);
            }
            Flow::Unknown => return None,
            Flow::On | Flow::Ends => {}
        }
    }
    Some(targets)
}

/// The order that multiply-adds of a segment have to keep. Places and multiply-adds are counted from the segment's first.
#[derive(Debug)]
pub(super) struct Constraints {
    /// When each place starts, in cycles after the first.
    pub(super) start: Vec<i64>,
    /// The first and the last place for each multiply-add.
    pub(super) places: Vec<Range<usize>>,
    /// For each multiply-add, those that have to start before it, and how many cycles.
    pub(super) before: Vec<Vec<(usize, i64)>>,
}

impl Constraints {
    /// Those of a segment.
    ///
    /// Distances between instructions of which one uses the other's result are at least what they were, or what any
    /// instruction of the kind needs: results of fixed latency are waited for by nothing else.
    pub(super) fn of(code: &[Instruction], segment: &Range<usize>, targets: &HashSet<usize>) -> Constraints {
        let inside = &code[segment.clone()];
        let mut start = Vec::with_capacity(inside.len());
        let mut end = 0;
        for instruction in inside {
            start.push(end);
            end += instruction.stall();
        }
        let (behind, ahead) = (Behind::of(code, segment.start, targets), Ahead::of(code, segment.end));
        let places = (0..inside.len())
            .map(|own| {
                let (early, late) =
                    (behind.least(inside[own], start[own]), ahead.least(inside[own], end - start[own]));
                let first = (0..own).find(|p| start[*p] >= early).unwrap_or(own);
                let last = (own + 1..inside.len()).rev().find(|p| end - start[*p] >= late).unwrap_or(own);
                first..last + 1
            })
            .collect();
        let before = (0..inside.len())
            .map(|later| {
                let needs = |earlier: usize| {
                    let (a, b) = (inside[earlier], inside[later]);
                    let overwritten = a.sources().contains(&b.destination());
                    match (b.needs(a), overwritten) {
                        (true, _) => Some((earlier, LATENCY.min(start[later] - start[earlier]))),
                        (false, true) => Some((earlier, 0)),
                        (false, false) => None,
                    }
                };
                (0..later).filter_map(needs).collect()
            })
            .collect();
        Constraints { start, places, before }
    }
}

/// The instructions before a segment that may still be under way when it starts.
struct Behind {
    /// With the cycles from each one's start to the segment's.
    known: Vec<(Instruction, i64)>,
    /// Those that are not known, since the code may come from elsewhere: the cycles from the last of them.
    unknown: Option<i64>,
}

impl Behind {
    fn of(code: &[Instruction], segment: usize, targets: &HashSet<usize>) -> Behind {
        let (mut known, mut distance) = (Vec::new(), 0);
        for at in (0..=segment).rev() {
            if distance >= ANY_LATENCY {
                return Behind { known, unknown: None };
            }
            if at < segment {
                distance += code[at].stall();
                known.push((code[at], distance));
            }
            if targets.contains(&at) {
                break;
            }
        }
        Behind { known, unknown: Some(distance) }
    }

    /// The least cycles after the segment's start at which a multiply-add may start that started at `own`.
    fn least(&self, multiply_add: Instruction, own: i64) -> i64 {
        let needs = |(other, distance): &(Instruction, i64)| {
            let latency = match other.is_multiply_add() {
                true => multiply_add.needs(*other).then_some(LATENCY)?,
                false => {
                    // Who needs the result of one that is awaited waits, which begins a segment.
                    let [a, b, c] = multiply_add.sources();
                    let registers = [a, b, c, multiply_add.destination()];
                    let touches = !other.is_awaited() && registers.iter().any(|r| other.may_touch(*r));
                    touches.then_some(ANY_LATENCY)?
                }
            };
            Some(latency.min(distance + own) - distance)
        };
        let unknown = self.unknown.map(|distance| ANY_LATENCY.min(distance + own) - distance);
        self.known.iter().filter_map(needs).chain(unknown).max().unwrap_or(0)
    }
}

/// The instructions behind a segment that may start while one of its results is on its way.
struct Ahead {
    /// With the cycles from the segment's end to each one's start.
    known: Vec<(Instruction, i64)>,
    /// Those that are not known, since the code may go on elsewhere: the cycles to the first of them.
    unknown: Option<i64>,
}

impl Ahead {
    fn of(code: &[Instruction], segment: usize) -> Ahead {
        let (mut known, mut distance) = (Vec::new(), 0);
        for instruction in &code[segment..] {
            if distance >= ANY_LATENCY {
                return Ahead { known, unknown: None };
            }
            known.push((*instruction, distance));
            if instruction.flow() != Flow::On {
                return Ahead { known, unknown: Some(distance) };
            }
            distance += instruction.stall();
        }
        Ahead { known, unknown: Some(distance) }
    }

    /// The least cycles before the segment's end at which a multiply-add may start that started so many before it.
    fn least(&self, multiply_add: Instruction, own: i64) -> i64 {
        let needs = |(other, distance): &(Instruction, i64)| {
            let latency = match other.is_multiply_add() {
                true => other.needs(multiply_add).then_some(LATENCY)?,
                false => other.may_touch(multiply_add.destination()).then_some(ANY_LATENCY)?,
            };
            Some(latency.min(distance + own) - distance)
        };
        let unknown = self.unknown.map(|distance| ANY_LATENCY.min(distance + own) - distance);
        self.known.iter().filter_map(needs).chain(unknown).max().unwrap_or(0)
    }
}
