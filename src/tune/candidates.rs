//! Which choices of a family become candidates: all of them or, where there are millions, those that promise most.
//!
//! A candidate costs microseconds and a kilobyte (its schedule is written, to find those that are the same), an estimate a tenth
//! of that. So all choices are looked at by the model first, and candidates are made of those that are kept. Parameters of which the model
//! says nothing are varied for the foremost of those only; the others have the most usual values of them.

use warpwright_core::target::Target;

use super::rank;
use super::record::hash;
use super::space::{Candidate, Space, kind_of};
use crate::kernels::family::{Choice, Family, Permissions, Value, Word};
use crate::parallel;
use crate::problem::Problem;

/// How many choices a search keeps unless it is to try all. What ships for the H200 was tuned without this limit: of 78 products
/// looked at (f32, f64 and complex64, both operations, 13 widths from 1 to 64; 2026-11-27), 60 of which have more choices, all
/// stand among the first 131 000 by the model, and 76 among the first 50 000.
pub const PROMISING: usize = 200_000;

/// One of so many that are kept is varied in what the model says nothing of, which makes up to 21 more of it.
const VARIED: usize = 40;

/// The choices of a family for a problem that have the values which are `given`, as far as permissions suffice for them.
#[derive(Clone, Copy, Debug)]
pub struct Choices<'a> {
    /// The family of kernels.
    pub family: &'a Family,
    /// The problem.
    pub problem: &'a Problem,
    /// The GPU's table.
    pub target: &'a Target,
    /// What choices may do.
    pub permissions: Permissions,
    /// What every choice has to have in it.
    pub given: &'a Choice,
}

/// What the model says of one part of the choices.
#[derive(Default)]
struct Looked {
    /// Seconds of each, in order; infinite where the model has none.
    seconds: Vec<f64>,
    /// For every value that is no number, the place of the first of the least seconds that has it.
    kinds: Vec<((Word, Value), usize)>,
    /// The places of those that are known.
    known: Vec<usize>,
}

impl Choices<'_> {
    /// The space of all of them.
    pub fn all(&self) -> Space {
        self.promising(usize::MAX, &[])
    }

    /// The space of so many that promise most by the model, of one more for each word and flag, and of those that are `known`,
    /// whatever the model says of them. The foremost of them, one of 40, and those that are known come with every way to choose what the
    /// model says nothing of.
    pub fn promising(&self, most: usize, known: &[Choice]) -> Space {
        let Choices { family, problem, target, permissions, given } = *self;
        let parts = family.parts_of_choices(problem, target, permissions, given);
        // Choices are told apart by their times first: to compare them takes longer.
        let modelled = |choice: &Choice| (self.seconds(choice), choice.clone().without(family.unmodelled));
        let known: Vec<(f64, Choice)> = known.iter().map(modelled).collect();
        let looked = parallel::map(&parts, |walk| {
            let mut looked = Looked::default();
            walk(&mut |choice| {
                let seconds = self.seconds(choice);
                looked.at(choice, seconds, known.iter().any(|(s, c)| *s == seconds && c == choice));
            });
            looked
        });
        let (kept, varied) = (keep(&looked, most), keep(&looked, most / VARIED));
        let of_parts: Vec<_> = parts.iter().zip(&looked).zip(kept.iter().zip(&varied)).collect();
        let found = parallel::map(&of_parts, |((walk, looked), (kept, varied))| {
            let mut found = Vec::with_capacity(kept.len());
            let (mut left, mut place) = (kept.iter().peekable(), 0);
            let mut varied = varied.iter().peekable();
            if left.peek().is_some() {
                walk(&mut |choice| {
                    let varies = varied.next_if_eq(&&place).is_some();
                    if left.next_if_eq(&&place).is_some() {
                        family.finished(problem, target, permissions, given, choice, &mut |whole| {
                            found.push(self.with_seconds(whole, looked.seconds[place]));
                            varies
                        });
                    }
                    place += 1;
                });
            }
            found
        });
        let looked: usize = looked.iter().map(|looked| looked.seconds.len()).sum();
        let kept: usize = kept.iter().map(Vec::len).sum();
        let found: Vec<Candidate> = found.into_iter().flatten().collect();
        let choices = looked + found.len() - kept;
        Space::from_candidates(found, family.unmodelled).out_of(choices)
    }

    fn seconds(&self, choice: &Choice) -> f64 {
        let estimate = rank::estimate(self.family, self.problem, choice, self.target);
        estimate.map_or(f64::INFINITY, |estimate| estimate.seconds)
    }

    /// The candidate that a choice is.
    pub fn candidate(&self, choice: &Choice) -> Candidate {
        self.with_seconds(choice, self.seconds(choice))
    }

    fn with_seconds(&self, choice: &Choice, modelled: f64) -> Candidate {
        let schedule = hash((self.family.schedule)(self.problem, choice).as_bytes());
        Candidate { choice: choice.clone(), schedule, modelled }
    }
}

impl Looked {
    /// Notes the next choice.
    fn at(&mut self, choice: &Choice, seconds: f64, is_known: bool) {
        let place = self.seconds.len();
        for kind in choice.iter().filter_map(kind_of) {
            match self.kinds.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, first)) if self.seconds[*first] <= seconds => {}
                Some((_, first)) => *first = place,
                None => self.kinds.push((kind, place)),
            }
        }
        if is_known {
            self.known.push(place);
        }
        self.seconds.push(seconds);
    }
}

/// The places to keep in each part, in order.
fn keep(looked: &[Looked], most: usize) -> Vec<Vec<usize>> {
    let mut all: Vec<f64> = looked.iter().flat_map(|part| part.seconds.iter().copied()).collect();
    if all.len() <= most {
        return looked.iter().map(|part| (0..part.seconds.len()).collect()).collect();
    }
    let (quicker, limit, _) = all.select_nth_unstable_by(most, f64::total_cmp);
    let limit = *limit;
    // Of those that take as long as the first that has no room, the foremost fill the room that is left.
    let mut room = most - quicker.iter().filter(|seconds| **seconds < limit).count();
    let mut kept: Vec<Vec<usize>> = Vec::with_capacity(looked.len());
    for part in looked {
        let is_kept = |(place, seconds): (usize, &f64)| {
            let has_room = *seconds == limit && room > 0;
            room -= usize::from(has_room);
            (*seconds < limit || has_room).then_some(place)
        };
        let promising: Vec<usize> = part.seconds.iter().enumerate().filter_map(is_kept).collect();
        kept.push(promising.into_iter().chain(part.known.iter().copied()).collect());
    }
    for (part, place) in first_of_kinds(looked) {
        kept[part].push(place);
    }
    for places in &mut kept {
        places.sort_unstable();
        places.dedup();
    }
    kept
}

/// The part and the place in it of the most promising choice of each kind.
fn first_of_kinds(looked: &[Looked]) -> Vec<(usize, usize)> {
    let mut firsts: Vec<((Word, Value), (usize, usize))> = Vec::new();
    let seconds = |(part, place): (usize, usize)| looked[part].seconds[place];
    for (part, (kind, place)) in
        looked.iter().enumerate().flat_map(|(part, looked)| looked.kinds.iter().map(move |k| (part, *k)))
    {
        match firsts.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, first)) if seconds(*first) <= seconds((part, place)) => {}
            Some((_, first)) => *first = (part, place),
            None => firsts.push((kind, (part, place))),
        }
    }
    firsts.into_iter().map(|(_, first)| first).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Choices, PROMISING};
    use crate::kernels;
    use crate::kernels::family::{Choice, Family, Permissions, parse_parameter};
    use crate::problem::Problem;
    use crate::tune::space::{Candidate, Space};
    use warpwright_core::target;

    fn problem(shape: &str, layout: &str) -> Problem {
        Problem::new(shape.parse().unwrap(), "f64".parse().unwrap(), layout.parse().unwrap())
    }

    fn choices<'a>(family: &'a Family, problem: &'a Problem, given: &'a Choice) -> Choices<'a> {
        Choices { family, problem, target: target::DEFAULT, permissions: Permissions::NONE, given }
    }

    #[test]
    fn candidates_are_ranked_and_no_schedule_stands_twice() {
        for (name, shape, layout) in [("tsmttsm", "20x20x1000000", "tn"), ("tsmm", "1000000x20x20", "nn")] {
            let family = kernels::family(name).unwrap();
            // A part of it is large enough.
            let given = Choice::default().with("unit", "mma").with("stages", 4).with("bounded", true);
            let problem = problem(shape, layout);
            let space = choices(family, &problem, &given).all();
            assert!(space.len() > 20, "{}", space.len());
            assert!(space.candidates().windows(2).all(|w| w[0].modelled <= w[1].modelled));
            let mut schedules: Vec<_> = space.candidates().iter().map(|c| &c.schedule).collect();
            schedules.sort();
            schedules.dedup();
            assert_eq!(schedules.len(), space.len());
            let usual = family.complete(&given, &problem, target::DEFAULT).unwrap();
            assert!(space.place(&usual).is_some(), "{usual}");
        }
    }

    #[test]
    fn the_most_promising_of_each_kind_and_what_is_known_are_kept() {
        let family = kernels::family("tsmm").unwrap();
        let given = Choice::default().with("blocks", 264).with("bounded", true).with("stages", 2);
        let problem = problem("1000000x20x20", "nn");
        let choices = choices(family, &problem, &given);
        let all = choices.all();
        // Nobody would look at it again by what the model says of it.
        let worst = all.candidates().iter().rfind(|c| c.modelled.is_finite()).unwrap().choice.clone();
        let absent = worst.clone().with("blocks", 265);
        let most = all.choices() / 50;
        let some = choices.promising(most, &[worst.clone(), absent.clone()]);
        assert_eq!((some.choices(), all.choices() > 10_000), (all.choices(), true));
        let of = |space: &Space| -> Vec<Choice> {
            space.kinds().into_iter().map(|place| space.candidates()[place].choice.clone()).collect()
        };
        assert_eq!(of(&some), of(&all));
        assert!(some.place(&worst).is_some() && some.place(&absent).is_none());
        // The first are the same, and what comes after them is of a kind or known.
        let number = some.candidates().iter().zip(all.candidates()).take_while(|(a, b)| a == b).count();
        assert!(number > most / 4 && number <= most, "{number} of {most}");
        let kept = |choice: &Choice| of(&some).contains(choice) || *choice == worst;
        assert!(some.candidates()[number..].iter().all(|c| kept(&c.choice)), "{number} of {}", some.len());
        assert!(some.candidates()[number..].iter().all(|c| c.modelled >= all.candidates()[number].modelled));
    }

    #[test]
    fn what_the_model_says_nothing_of_is_varied_for_the_foremost_and_what_is_known() {
        let family = kernels::family("tsmm").unwrap();
        // A part of it is large enough.
        let given = Choice::default().with("unit", "fma").with("staging", "registers").with("threads", 2);
        let problem = problem("10000x8x8", "nn");
        let choices = choices(family, &problem, &given);
        let all = choices.all();
        let modelled = |c: &Candidate| c.choice.clone().without(family.unmodelled);
        let of = |space: &Space, wanted: &Choice| {
            space
                .candidates()
                .iter()
                .filter(|c| modelled(c) == *wanted)
                .map(|c| c.choice.clone())
                .collect::<Vec<_>>()
        };
        let (first, last) = (modelled(&all.candidates()[0]), modelled(all.candidates().last().unwrap()));
        let ways = of(&all, &first).len();
        assert!(ways > 2 && of(&all, &last).len() == ways, "{ways}");
        assert_eq!(all.choices() % ways, 0);
        let kept = all.choices() / ways;
        let some = choices.promising(kept, &[]);
        assert_eq!((of(&some, &first).len(), of(&some, &last).len()), (ways, 1));
        assert!(some.choices() > kept && some.choices() < 2 * kept, "{} of {kept}", some.choices());
        let known = of(&all, &last).pop().unwrap();
        let some = choices.promising(kept / 2, &[known]);
        assert_eq!(of(&some, &last).len(), ways);
    }

    #[test]
    fn what_the_model_says_nothing_of_comes_last() {
        for family in kernels::FAMILIES {
            let names: Vec<&str> = family.parameters.iter().map(|p| p.name).collect();
            assert!(names.ends_with(family.unmodelled), "{}: {names:?}", family.name);
        }
    }

    #[test]
    fn a_space_that_is_small_enough_is_kept_as_a_whole() {
        let family = kernels::family("tsmttsm").unwrap();
        let given = Choice::default().with("unit", "fma").with("stages", 4);
        let problem = problem("5x5x10000000", "tn");
        let choices = choices(family, &problem, &given);
        let all = choices.all();
        let some = choices.promising(all.choices(), &[]);
        assert_eq!(some.candidates(), all.candidates());
        let fewer = choices.promising(all.choices() - 1, &[]);
        assert_eq!(fewer.choices(), all.choices());
    }

    /// Of twelve products every candidate of parts of their spaces was measured (`tune --exhaustive`, 2026-11-22).
    #[test]
    #[ignore = "takes a minute of two cores: cargo test --release --lib -- --ignored measured_to_be_best"]
    fn what_was_measured_to_be_best_is_kept_or_nearly_so() {
        let path = "bench/results/tuner-candidates-nvidia-h200-2026-11-22.csv";
        let text =
            std::fs::read_to_string(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
        let mut tried: BTreeMap<Vec<&str>, Vec<(f64, &str)>> = BTreeMap::new();
        for line in text.lines().skip(1) {
            let columns: Vec<&str> = line.splitn(10, ',').collect();
            if let ("correct", Ok(seconds)) = (columns[6], columns[7].parse()) {
                tried.entry(columns[..6].to_vec()).or_default().push((seconds, columns[9]));
            }
        }
        assert_eq!(tried.len(), 12);
        let h200 = target::Target::by_name("h200").unwrap();
        for (key, mut tried) in tried {
            let [name, m, n, k, dtype, layout] = key[..] else { panic!("{key:?}") };
            let family = kernels::family(name).unwrap();
            let shape = format!("{m}x{n}x{k}").parse().unwrap();
            let problem = Problem::new(shape, dtype.parse().unwrap(), layout.parse().unwrap());
            let given = Choice::default();
            let space =
                Choices { target: h200, ..choices(family, &problem, &given) }.promising(PROMISING, &[]);
            tried.sort_by(|a, b| a.0.total_cmp(&b.0));
            let kept = tried.iter().find(|(_, text)| {
                let named = text.split(' ').map(|word| parse_parameter(word).unwrap());
                let given = named.fold(Choice::default(), |choice, (name, value)| choice.with(name, value));
                family.complete(&given, &problem, h200).is_ok_and(|choice| space.place(&choice).is_some())
            });
            let ratio = kept.expect("something that was tried is kept").0 / tried[0].0;
            println!(
                "{key:?}: {ratio:.4} of the best of {} with {} of {} choices",
                tried.len(),
                space.len(),
                space.choices()
            );
            assert!(ratio < 1.03, "{key:?}: {ratio}");
        }
    }
}
