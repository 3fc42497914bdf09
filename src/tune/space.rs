//! The candidates for a problem, ranked by the model: choices of a family that the constraints allow.

use std::collections::{HashMap, HashSet};

use warpwright_core::diag::Diagnosis;
use warpwright_core::target::Target;

use super::rank;
use crate::kernels::family::{Choice, Family, Permissions, Value, Word};
use crate::problem::Problem;

/// Candidates, the most promising first, and which of them differ in one parameter. What the model says nothing of counts as one
/// parameter, whose values are those of all of it: one alone may be of no use.
#[derive(Clone, Debug, Default)]
pub struct Space {
    candidates: Vec<Candidate>,
    /// The candidate of a choice. Choices with the same schedule are one candidate.
    places: HashMap<Choice, usize>,
    /// The names of the parameters, and every value that some candidate has.
    values: Vec<(Word, Vec<Value>)>,
    /// The parameters of which the model says nothing, and everything that is chosen of them in some candidate.
    unmodelled: (&'static [&'static str], Vec<Choice>),
    /// How many choices these are taken out of.
    choices: usize,
}

/// One candidate.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// What is chosen.
    pub choice: Choice,
    /// The hash of the schedule that it makes.
    pub schedule: String,
    /// Seconds of one product, modelled; infinite where the model has none.
    pub modelled: f64,
}

impl Space {
    /// The space of these candidates, which may come in any order, and in which the model says nothing of these parameters.
    pub fn from_candidates(mut found: Vec<Candidate>, unmodelled: &'static [&'static str]) -> Space {
        // The sort is stable: equals stay in the order of the family's values, the usual ones first.
        found.sort_by(|a, b| a.modelled.total_cmp(&b.modelled));
        let unmodelled = (unmodelled, ways(&found, unmodelled));
        let values = values(&found, unmodelled.0);
        let mut space = Space { values, unmodelled, choices: found.len(), ..Space::default() };
        let mut by_schedule: HashMap<String, usize> = HashMap::new();
        for candidate in found {
            let next = space.candidates.len();
            match by_schedule.get(&candidate.schedule) {
                Some(place) => {
                    space.places.insert(candidate.choice, *place);
                }
                None => {
                    by_schedule.insert(candidate.schedule.clone(), next);
                    space.places.insert(candidate.choice.clone(), next);
                    space.candidates.push(candidate);
                }
            }
        }
        space
    }

    /// The same space as one that was taken out of so many choices.
    #[must_use]
    pub fn out_of(self, choices: usize) -> Space {
        Space { choices, ..self }
    }

    /// How many choices these are taken out of: those with the same schedule count each, and those that were not kept.
    pub fn choices(&self) -> usize {
        self.choices
    }

    /// How many candidates there are.
    pub fn len(&self) -> usize {
        self.candidates.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.candidates.is_empty()
    }

    /// The candidates, the most promising first.
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// The place of a choice among the candidates.
    pub fn place(&self, choice: &Choice) -> Option<usize> {
        self.places.get(choice).copied()
    }

    /// In how many parameters two candidates differ.
    pub fn differences(&self, a: usize, b: usize) -> usize {
        let (a, b) = (&self.candidates[a].choice, &self.candidates[b].choice);
        let is_modelled = |name: &&str| !self.unmodelled.0.contains(name);
        let lacking = b.iter().filter(|(name, _)| is_modelled(name) && a.get(name).is_none()).count();
        let differing =
            a.iter().filter(|(name, value)| is_modelled(name) && b.get(name) != Some(value)).count();
        let otherwise = self.unmodelled.0.iter().any(|name| a.get(name) != b.get(name));
        differing + lacking + usize::from(otherwise)
    }

    /// For every parameter that is no number, and every value of it, the most promising candidate that has it: one of
    /// each kind.
    pub fn kinds(&self) -> Vec<usize> {
        let mut seen = HashSet::new();
        let mut kinds = Vec::new();
        for (place, candidate) in self.candidates.iter().enumerate() {
            let new = candidate.choice.iter().filter_map(kind_of).filter(|k| seen.insert(*k)).count();
            if new > 0 {
                kinds.push(place);
            }
        }
        kinds
    }

    /// The candidates that differ from one in a single parameter, the most promising first.
    pub fn neighbours(&self, place: usize) -> Vec<usize> {
        let choice = &self.candidates[place].choice;
        let modelled = choice.clone().without(self.unmodelled.0);
        let others = self.values.iter().flat_map(|(name, values)| values.iter().map(move |v| (name, v)));
        // What was not varied in what the model says nothing of is near as it is.
        let changed = others.filter_map(|(name, value)| {
            self.place(&choice.clone().with(*name, *value)).or_else(|| {
                let changed = modelled.clone().with(*name, *value);
                self.unmodelled.1.iter().find_map(|way| self.place(&with_all(&changed, way)))
            })
        });
        let otherwise = self.unmodelled.1.iter().filter_map(|way| self.place(&with_all(&modelled, way)));
        let mut places: Vec<usize> = changed.chain(otherwise).collect();
        places.sort_unstable();
        places.dedup();
        places.retain(|p| *p != place);
        places
    }
}

/// A word or a flag with the name of its parameter; numbers are no kinds.
pub(super) fn kind_of((name, value): (&'static str, &Value)) -> Option<(Word, Value)> {
    (!matches!(value, Value::Int(_))).then(|| (name.into(), *value))
}

/// The names of the parameters of candidates that the model knows, and every value that some candidate has, in the order of the candidates.
fn values(found: &[Candidate], unmodelled: &[&str]) -> Vec<(Word, Vec<Value>)> {
    let mut names: Vec<(Word, Vec<Value>)> = Vec::new();
    let all = found.iter().flat_map(|candidate| candidate.choice.iter());
    for (name, value) in all.filter(|(name, _)| !unmodelled.contains(name)) {
        match names.iter_mut().find(|(known, _)| **known == *name) {
            Some((_, values)) if values.contains(value) => {}
            Some((_, values)) => values.push(*value),
            None => names.push((name.into(), vec![*value])),
        }
    }
    names
}

/// A choice with all that another has.
fn with_all(choice: &Choice, other: &Choice) -> Choice {
    other.iter().fold(choice.clone(), |choice, (name, value)| choice.with(name, *value))
}

/// Everything that candidates have of these parameters, in their order.
fn ways(found: &[Candidate], of: &[&'static str]) -> Vec<Choice> {
    let mut ways: Vec<Choice> = Vec::new();
    for candidate in found {
        let parts = of.iter().filter_map(|name| candidate.choice.get(name).map(|value| (*name, *value)));
        let way = parts.fold(Choice::default(), |way, (name, value)| way.with(name, value));
        if !ways.contains(&way) {
            ways.push(way);
        }
    }
    ways
}

/// A choice for another problem as it suits this one: numbers become the nearest of those worth trying here, by their
/// ratio, and words that are not worth trying here are left out.
pub fn adapted(family: &Family, choice: &Choice, problem: &Problem, target: &Target) -> Choice {
    let mut adapted = Choice::default();
    for parameter in family.parameters {
        let values = (parameter.values)(&adapted, problem, target);
        let Some(wanted) = choice.get(parameter.name) else { continue };
        let far = |value: &Value| match (value, wanted) {
            (Value::Int(a), Value::Int(b)) => ((*a).max(1) as f64 / (*b).max(1) as f64).ln().abs(),
            (a, b) if a == b => 0.0,
            _ => f64::INFINITY,
        };
        let nearest = values.into_iter().map(|v| (far(&v), v)).min_by(|a, b| a.0.total_cmp(&b.0));
        if let Some((_, value)) = nearest.filter(|(distance, _)| distance.is_finite()) {
            adapted = adapted.with(parameter.name, value);
        }
    }
    adapted
}

/// The best choice by the model that changing one parameter at a time finds, beginning at the most usual one for every
/// value of the first parameter, for every word with it that another parameter has, and for every value with it that
/// needs a permission and has it: a bounded number of estimates, for where there is no time to rank the whole space.
/// Permissions suffice for it.
///
/// # Errors
/// Constraints that no choice fulfils.
pub fn descend(
    family: &Family,
    problem: &Problem,
    target: &Target,
    permissions: Permissions,
) -> Result<Choice, Diagnosis> {
    let usual = family.complete(&Choice::default(), problem, target)?;
    let seconds = |choice: &Choice| {
        rank::estimate(family, problem, choice, target).map_or(f64::INFINITY, |e| e.seconds)
    };
    let mut lowest = (seconds(&usual), usual);
    for (kept, start) in starts(family, problem, target, permissions) {
        let mut best = (seconds(&start), start);
        for _ in 0..ROUNDS {
            let before = best.0;
            for parameter in family.parameters.iter().filter(|p| kept.get(p.name).is_none()) {
                for value in (parameter.values)(&best.1, problem, target) {
                    if best.1.get(parameter.name) == Some(&value) {
                        continue;
                    }
                    let changed = best.1.clone().with(parameter.name, value);
                    // What has a meaning beside the new value stays as it is, or near it.
                    let adapted = adapted(family, &changed, problem, target);
                    let Ok(other) = family.complete(&adapted, problem, target) else { continue };
                    if other.get(parameter.name) != Some(&value)
                        || !family.permits(permissions, problem, &other)
                    {
                        continue;
                    }
                    let modelled = seconds(&other);
                    if modelled < best.0 {
                        best = (modelled, other);
                    }
                }
            }
            if best.0 == before {
                break;
            }
        }
        if best.0 < lowest.0 {
            lowest = best;
        }
    }
    Ok(lowest.1)
}

/// Where [`descend`] begins, and what it keeps on the way from there: the values that are the reason to begin there.
fn starts(
    family: &Family,
    problem: &Problem,
    target: &Target,
    permissions: Permissions,
) -> Vec<(Choice, Choice)> {
    let Some((first, others)) = family.parameters.split_first() else { return Vec::new() };
    fn names(choice: &Choice) -> impl Iterator<Item = &'static str> {
        choice.iter().map(|(name, _)| name)
    }
    let mut starts = Vec::new();
    for value in (first.values)(&Choice::default(), problem, target) {
        let given = Choice::default().with(first.name, value);
        // A form may be one that has to be permitted.
        let start = family
            .complete(&given, problem, target)
            .or_else(|_| family.complete_permitted(&given, problem, target, permissions));
        let Ok(start) = start else { continue };
        let asked = others.iter().flat_map(|parameter| {
            let values = (parameter.values)(&start, problem, target).into_iter();
            values.map(|value| given.clone().with(parameter.name, value))
        });
        let word = |given: &Choice| {
            given.iter().any(|(name, value)| name != first.name && matches!(value, Value::Word(_)))
        };
        // A flag that decides which other parameters there are: changing it alone leads nowhere.
        let decides = |given: &Choice, complete: &Choice| {
            given.iter().any(|(_, value)| *value == Value::Flag(true)) && !names(complete).eq(names(&start))
        };
        let others = asked.filter_map(|given| {
            let needing = !family.permits(Permissions::NONE, problem, &given);
            let complete = family.complete(&given, problem, target).ok().filter(|c| *c != start)?;
            let is_start = match needing {
                true => family.permits(permissions, problem, &given),
                false => word(&given) || decides(&given, &complete),
            };
            is_start.then_some((given, complete))
        });
        let others: Vec<_> = others.collect();
        starts.extend(others);
        starts.push((given, start));
    }
    starts
}

/// Rounds of [`descend`] at most; it ends sooner where a round finds nothing.
const ROUNDS: usize = 4;

#[cfg(test)]
mod tests {
    use super::{Candidate, Space, descend};
    use crate::kernels;
    use crate::kernels::family::{Choice, Permissions};
    use crate::problem::Problem;
    use warpwright_core::target::{self, Target};

    fn problem(shape: &str, layout: &str) -> Problem {
        Problem::new(shape.parse().unwrap(), "f64".parse().unwrap(), layout.parse().unwrap())
    }

    #[test]
    fn one_candidate_of_each_kind_is_named() {
        let candidate = |word: &'static str, flag: bool, x: i64, modelled: f64| {
            let choice = Choice::default().with("word", word).with("flag", flag).with("x", x);
            Candidate { schedule: choice.to_string(), choice, modelled }
        };
        let all = [
            candidate("a", true, 1, 1.0),
            candidate("a", true, 2, 2.0),
            candidate("a", false, 3, 3.0),
            candidate("b", false, 4, 4.0),
            candidate("b", true, 5, 5.0),
        ];
        let space = Space::from_candidates(all.to_vec(), &[]);
        assert_eq!(space.kinds(), [0, 2, 3]);
    }

    #[test]
    fn neighbours_differ_in_one_parameter() {
        let candidate = |x: i64, y: i64| Candidate {
            choice: Choice::default().with("x", x).with("y", y),
            schedule: format!("{x} {y}"),
            modelled: (x * 10 + y) as f64,
        };
        // The corner (2, 2) is missing.
        let all = (0..3).flat_map(|x| (0..3).map(move |y| (x, y))).filter(|p| *p != (2, 2));
        let space = Space::from_candidates(all.map(|(x, y)| candidate(x, y)).collect(), &[]);
        let place = space.place(&candidate(1, 2).choice).unwrap();
        let near: Vec<String> =
            space.neighbours(place).iter().map(|p| space.candidates()[*p].choice.to_string()).collect();
        assert_eq!(near, ["x=0 y=2", "x=1 y=0", "x=1 y=1"]);
    }

    /// Of `x=0` alone there are all ways, as of what promises most; `b` and `c` help together only.
    #[test]
    fn what_the_model_says_nothing_of_counts_as_one_parameter() {
        let choice = |x: i64| Choice::default().with("x", x).with("b", false);
        let way = |c: i64| choice(0).with("b", true).with("c", c);
        let all = [choice(0), way(1), way(2), choice(1), choice(2)];
        let candidate = |choice: &Choice| Candidate {
            choice: choice.clone(),
            schedule: choice.to_string(),
            modelled: choice.int("x") as f64,
        };
        let space = Space::from_candidates(all.iter().map(candidate).collect(), &["b", "c"]);
        let near = |choice: &Choice| -> Vec<Choice> {
            let places = space.neighbours(space.place(choice).unwrap()).into_iter();
            places.map(|place| space.candidates()[place].choice.clone()).collect()
        };
        assert_eq!(near(&choice(0)), [way(1), way(2), choice(1), choice(2)]);
        assert_eq!(near(&way(2)), [choice(0), way(1), choice(1), choice(2)]);
        assert_eq!(near(&choice(2)), [choice(0), choice(1)]);
        assert_eq!((space.differences(0, 2), space.differences(2, 4)), (1, 2));
    }

    /// Changing `passing` alone leads nowhere: a block that takes one group of rows has one stage, and no number of blocks.
    #[test]
    fn descending_finds_blocks_that_make_room() {
        let (family, p) = (kernels::family("tsmm").unwrap(), problem("10000000x20x20", "nn"));
        for gpu in ["a100-80gb", "h200"] {
            let found = descend(family, &p, Target::by_name(gpu).unwrap(), Permissions::NONE).unwrap();
            assert!(found.flag("passing"), "{gpu}: {found}");
        }
    }

    #[test]
    fn descending_the_model_ends_no_higher_than_the_usual_choice_and_near_the_lowest() {
        for (name, shape, layout) in [("tsmttsm", "64x64x1000000", "tn"), ("tsmm", "1000000x48x48", "nn")] {
            let (family, p) = (kernels::family(name).unwrap(), problem(shape, layout));
            let seconds = |c: &Choice| {
                super::rank::estimate(family, &p, c, target::DEFAULT).map_or(f64::INFINITY, |e| e.seconds)
            };
            let usual = family.complete(&Choice::default(), &p, target::DEFAULT).unwrap();
            let found = descend(family, &p, target::DEFAULT, Permissions::NONE).unwrap();
            assert!(family.allows(&found, &p, target::DEFAULT));
            assert!(seconds(&found) <= seconds(&usual));
            // The part in which the lowest are: the whole is walked through in a minute.
            let given = Choice::default().with("unit", "mma").with("bounded", true).with("stages", 2);
            let mut lowest = f64::INFINITY;
            family.choices(&p, target::DEFAULT, Permissions::NONE, &given, &mut |choice| {
                lowest = lowest.min(seconds(choice));
                true
            });
            assert!(seconds(&found) <= 1.5 * lowest, "{found}");
        }
    }
}
