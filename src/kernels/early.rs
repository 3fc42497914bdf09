//! Short products, whose launches count: calls that begin while what was launched before them still runs, and what they do meanwhile.

use warpwright_core::target::Capability;

use super::family::{Choice, Parameter, Value};
use crate::problem::Problem;

/// The parameter that says whether a call begins early, for the families that have it.
pub(super) const EARLY: Parameter = Parameter {
    name: NAME,
    about: "whether a call may begin while what was launched before it still runs, and waits for that itself",
    values: |_, problem, target| {
        let short = bytes(problem) <= MOST_BYTES && target.has(Capability::DependentLaunch);
        if short { vec![false.into(), true.into()] } else { Vec::new() }
    },
};

/// Which launches let what follows begin before they wait themselves, if calls begin early. One launch alone is not the last of several.
pub(super) const LETS: Parameter = Parameter {
    name: "lets",
    about: "which launches let what follows begin before they wait themselves: most (all but the last of several), none or all",
    values: |choice, _, _| {
        let several = choice.get("reduction").is_some_and(|_| choice.word("reduction") == TWO_PASS);
        let of = [MOST, "none"].into_iter().chain(several.then_some("all"));
        if begins(choice) { of.map(Value::from).collect() } else { Vec::new() }
    },
};

/// How much of each input blocks ask for before they wait, if calls begin early: MiB. What lies between rows that stand apart nobody wants.
pub(super) const ASKS: Parameter = Parameter {
    name: "asks",
    about: "how many MiB of each input are brought to the second-level cache before a call waits",
    values: |choice, problem, _| {
        let apart = !problem.rows_are_adjacent();
        if begins(choice) && !apart { [0, 1, 2, 4].map(Value::from).into() } else { Vec::new() }
    },
};

/// Who asks for it.
pub(super) const ASKED: Parameter = Parameter {
    name: "asked",
    about: "who asks for what a call brings before it waits: a thread of each block, in bulk, or all threads, by lines",
    values: |choice, _, _| {
        if asks(choice) > 0 { ["bulk", "lines"].map(Value::from).into() } else { Vec::new() }
    },
};

const NAME: &str = "early";

/// What launches do unless somebody says otherwise.
const MOST: &str = "most";

/// How `tsmttsm` brings sums together by several launches.
const TWO_PASS: &str = "two-pass";

/// Bytes of operands above which 0.4 us, what a call has been seen to gain on an H200 (`bench/limits/short.cu`), are less than 1 % of its time.
const MOST_BYTES: i64 = 160 << 20;

/// Whether the choice says so.
fn begins(choice: &Choice) -> bool {
    choice.get(NAME).is_some() && choice.flag(NAME)
}

/// How many MiB of each input are asked for.
fn asks(choice: &Choice) -> i64 {
    if choice.get(ASKS.name).is_some() { choice.int(ASKS.name) } else { 0 }
}

/// The schedule, for calls that begin early if the choice says so.
pub(super) fn scheduled(schedule: String, choice: &Choice) -> String {
    if !begins(choice) {
        return schedule;
    }
    let mut options = Vec::new();
    if asks(choice) > 0 {
        options.push(format!("asks={}, by={}", asks(choice) << 10, choice.word(ASKED.name)));
    }
    if choice.get(LETS.name).is_some_and(|_| choice.word(LETS.name) != MOST) {
        options.push(format!("lets={}", choice.word(LETS.name)));
    }
    schedule + &format!("begin_early({})\n", options.join(", "))
}

fn bytes(problem: &Problem) -> i64 {
    let shape = problem.shape;
    (shape.m * shape.k + shape.k * shape.n + shape.m * shape.n) * problem.dtype().bytes()
}
