//! Choices drawn from the space of a family without a walk through all of it, which has hundreds of thousands: words and flags that were
//! taken less often come first, numbers come in any order, so that a few draws have something of every kind.

use std::collections::HashMap;

use fastrand::Rng;
use warpwright::kernels::family::{Choice, Family, Permissions, Value};
use warpwright::problem::Problem;
use warpwright_core::target;

/// So many draws that bring nothing new are enough to know that nothing is left.
const IN_VAIN: usize = 48;

/// How often a choice is begun, and how many parameters are looked at from there on, before all that could follow is tried.
const ATTEMPTS: usize = 40;
const STEPS: usize = 400;

/// Draws choices of a family for a problem.
struct Lots<'a> {
    family: &'a Family,
    problem: &'a Problem,
    permissions: Permissions,
    given: Choice,
    random: Rng,
    /// How often each word or flag was the first to be tried beside the words that were chosen before it.
    taken: HashMap<String, usize>,
}

impl Lots<'_> {
    fn new<'a>(
        family: &'a Family,
        problem: &'a Problem,
        permissions: Permissions,
        given: &Choice,
    ) -> Lots<'a> {
        let (given, taken) = (given.clone(), HashMap::new());
        Lots { family, problem, permissions, given, random: Rng::with_seed(1), taken }
    }

    /// What was begun badly is begun anew: to try all that could follow takes longer, where something has been given that has no meaning
    /// beside it.
    fn draw(&mut self) -> Option<Choice> {
        (0..ATTEMPTS).find_map(|_| self.attempt(STEPS)).or_else(|| self.attempt(usize::MAX))
    }

    /// Gives up after so many steps.
    fn attempt(&mut self, most: usize) -> Option<Choice> {
        let Lots { family, problem, permissions, given, random, taken } = self;
        let mut steps = 0;
        family.first_by(problem, target::DEFAULT, *permissions, given, &mut |chosen, name, values| {
            steps += 1;
            if steps > most {
                values.clear();
                return;
            }
            // What is computed does not depend on when a call begins, and every choice has a dozen ways to begin early.
            values.retain(|value| name != "early" || *value == Value::Flag(false));
            random.shuffle(values);
            let words: Vec<_> = chosen.iter().filter(|(_, v)| matches!(v, Value::Word(_))).collect();
            let key = |value: &Value| format!("{words:?} {name}={value}");
            let times = |value: &Value| match value {
                Value::Int(_) => 0,
                _ => taken.get(&key(value)).copied().unwrap_or(0),
            };
            values.sort_by_cached_key(times);
            if let Some(first) = values.first().filter(|value| !matches!(value, Value::Int(_))) {
                *taken.entry(key(first)).or_default() += 1;
            }
        })
    }
}

/// So many choices of a family for a problem that have what is given, no two alike; fewer where it seems to have no more.
pub fn drawn(
    family: &Family,
    problem: &Problem,
    permissions: Permissions,
    given: &Choice,
    count: usize,
) -> Vec<Choice> {
    let mut lots = Lots::new(family, problem, permissions, given);
    let mut found: Vec<Choice> = Vec::new();
    let mut in_vain = 0;
    while found.len() < count && in_vain < IN_VAIN {
        match lots.draw() {
            Some(choice) if !found.contains(&choice) => {
                found.push(choice);
                in_vain = 0;
            }
            _ => in_vain += 1,
        }
    }
    found
}

/// Every combination of the values of these words that a family has for a problem, with the most usual choice of each, or the first that was
/// drawn of it where the most usual one has others of the words as well.
pub fn forms(
    family: &Family,
    problem: &Problem,
    names: &[&'static str],
    permissions: Permissions,
) -> Vec<(String, Choice)> {
    let form = |choice: &Choice| names.iter().map(|name| choice.word(name)).collect::<Vec<_>>().join(" ");
    let mut lots = Lots::new(family, problem, permissions, &Choice::default());
    let mut forms: Vec<(String, Choice)> = Vec::new();
    let mut in_vain = 0;
    while in_vain < IN_VAIN {
        let Some(choice) = lots.draw() else { break };
        let found = form(&choice);
        if forms.iter().any(|(known, _)| *known == found) {
            in_vain += 1;
            continue;
        }
        in_vain = 0;
        let words = names.iter().filter_map(|name| choice.get(name).map(|word| (*name, *word)));
        let given = words.fold(lots.given.clone(), |given, (name, word)| given.with(name, word));
        let usual = family.complete_permitted(&given, problem, target::DEFAULT, permissions);
        forms.push((found.clone(), usual.ok().filter(|c| form(c) == found).unwrap_or(choice)));
    }
    forms.sort();
    forms
}
