//! Choices drawn from the space of a family without a walk through all of it, which has hundreds of thousands: words and flags that were
//! taken less often come first, numbers come in any order, so that a few draws have something of every kind.

use std::collections::HashMap;

use fastrand::Rng;
use warpwright::kernels::family::{Choice, Family, Permissions, Value};
use warpwright::problem::Problem;
use warpwright_core::target;

/// So many draws that bring nothing new are enough to know that nothing is left.
const IN_VAIN: usize = 48;

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
    /// Without calls that begin early, unless all of them do: what is computed does not depend on it, and every other choice has a dozen of
    /// them.
    fn new<'a>(
        family: &'a Family,
        problem: &'a Problem,
        permissions: Permissions,
        given: &Choice,
    ) -> Lots<'a> {
        let quiet = Choice::default().with("early", false);
        let can_begin = family.complete_permitted(&quiet, problem, target::DEFAULT, permissions).is_ok();
        let given = if can_begin { given.clone().with("early", false) } else { given.clone() };
        Lots { family, problem, permissions, given, random: Rng::with_seed(1), taken: HashMap::new() }
    }

    fn draw(&mut self) -> Option<Choice> {
        let Lots { family, problem, permissions, given, random, taken } = self;
        family.first_by(problem, target::DEFAULT, *permissions, given, &mut |chosen, name, values| {
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
