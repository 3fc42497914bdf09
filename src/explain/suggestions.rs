//! What would change it, tried: edits of the schedule that the schedule machinery accepts and the model finds faster.

use serde::Serialize;
use warpwright_core::diag::Diagnosis;
use warpwright_core::model::time::{Terms, Time};
use warpwright_core::schedule::Schedule;
use warpwright_core::target::{Limits, Target};

use super::edits::{self, Facts, Idea};
use super::subject::Subject;
use crate::kernels::family::{Choice, Family, Value};
use crate::kernels::{self, Kernel, Recipe, Variant};
use crate::modelled;
use crate::parallel;
use crate::problem::Problem;
use crate::report::Kind;
use crate::report::diff::{Line, lines};

/// What is tried, at most.
const TRIES: usize = 40;
/// What is told, at most: of one idea, and in all.
const OF_AN_IDEA: usize = 2;
const IN_ALL: usize = 8;
/// The least part of the time that has to be saved.
const LEAST_GAIN: f64 = 0.01;

/// An edit of the schedule that helps by the model.
#[derive(Clone, Debug, Serialize)]
pub struct Suggestion {
    /// Its number, from 1: what `--apply` takes.
    pub number: usize,
    /// What kind of edit it is.
    pub idea: Idea,
    /// The edit in words.
    pub text: String,
    /// The steps that go and those that come, `-` and `+` before each.
    pub steps: Vec<String>,
    /// How the numbers came about: by the model.
    pub kind: Kind,
    /// Seconds of the edited kernel.
    pub seconds: f64,
    /// The part of the time that it saves.
    pub gain: f64,
    /// The term that becomes smaller by the most.
    pub reduces: &'static str,
    /// Seconds of that term before and after.
    pub reduced: [f64; 2],
    /// Seconds of the edited kernel on the GPU; null where nobody measured it.
    pub measured_seconds: Option<f64>,
    /// The edited schedule.
    pub schedule: String,
    /// The edited kernel.
    #[serde(skip)]
    pub made: Made,
}

/// How an edited kernel is made.
#[derive(Clone, Debug)]
pub enum Made {
    /// By this schedule, from the same specification.
    Text(String),
    /// By other parameters of its family.
    Choice(Choice),
    /// As the next rung is.
    Rung(&'static Recipe),
}

impl Made {
    /// The kernel.
    ///
    /// # Errors
    /// Schedules that are refused.
    pub fn kernel(&self, of: &Kernel, problem: &Problem) -> Result<Kernel, Diagnosis> {
        match self {
            Made::Text(text) => Ok(Kernel {
                name: of.name.clone(),
                family: of.family.clone(),
                parameters: of.parameters.clone(),
                schedule: Schedule::run(of.specification().clone(), text)?,
            }),
            Made::Choice(choice) => match kernels::family(&of.family) {
                Some(family) => family.build(problem, choice),
                None => Err(Diagnosis::new(format!("there is no family `{}`", of.family))),
            },
            Made::Rung(recipe) => kernels::build(recipe, Variant::of(problem)),
        }
    }
}

/// The suggestions for a kernel whose time is known, best first, and how many edits were tried.
pub fn of(
    subject: &Subject,
    time: &Time,
    facts: &Facts,
    target: &'static Target,
) -> (Vec<Suggestion>, usize) {
    let Some(kernel) = subject.kernel() else { return (Vec::new(), 0) };
    let mut attempts = attempts(kernel, &subject.problem, facts, target);
    attempts.truncate(TRIES);
    let fits_today = fits(time, target);
    let tried = parallel::map(&attempts, |(_, _, made)| {
        let kernel = made.kernel(kernel, &subject.problem).ok()?;
        let time = modelled::Subject::new(&kernel, &subject.problem, target, None).ok()?.time().ok()?;
        Some((kernel.schedule.text(), time)).filter(|(_, t)| !fits_today || fits(t, target))
    });
    let mut found: Vec<Suggestion> = attempts
        .iter()
        .zip(tried)
        .filter_map(|((idea, about, made), tried)| {
            let (schedule, new) = tried?;
            let gain = 1.0 - new.seconds / time.seconds;
            (gain >= LEAST_GAIN).then(|| {
                let (reduces, reduced) = reduction(&time.terms, &new.terms);
                Suggestion {
                    number: 0,
                    idea: *idea,
                    text: about.clone(),
                    steps: changed(&kernel.schedule.text(), &schedule),
                    kind: Kind::Modelled,
                    seconds: new.seconds,
                    gain,
                    reduces,
                    reduced,
                    measured_seconds: None,
                    schedule,
                    made: made.clone(),
                }
            })
        })
        .collect();
    found.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let mut told: Vec<Suggestion> = Vec::new();
    for suggestion in found {
        let alike = told.iter().filter(|t| t.idea == suggestion.idea).count();
        // What comes to the very same is told once.
        let is_new = told.iter().all(|t| t.seconds.to_bits() != suggestion.seconds.to_bits());
        if alike < OF_AN_IDEA && is_new && told.len() < IN_ALL {
            told.push(Suggestion { number: told.len() + 1, ..suggestion });
        }
    }
    (told, attempts.len())
}

type Attempt = (Idea, String, Made);

fn attempts(kernel: &Kernel, problem: &Problem, facts: &Facts, target: &'static Target) -> Vec<Attempt> {
    if kernels::family(&kernel.family).is_some() {
        return other_parameters(kernel, problem, target);
    }
    let mut attempts: Vec<Attempt> = Vec::new();
    if let Some(recipe) = next_rung(kernel) {
        attempts.push((Idea::Rung, format!("what the next rung does: {}", recipe.title), Made::Rung(recipe)));
    }
    let edits = edits::of_schedule(&kernel.schedule, facts);
    attempts.extend(edits.into_iter().map(|e| (e.idea, e.about, Made::Text(e.text))));
    attempts
}

/// The next rung of the ladder that a kernel is a rung of.
fn next_rung(kernel: &Kernel) -> Option<&'static Recipe> {
    let rungs = kernels::ladder(&kernel.family).ok()?;
    let here = rungs
        .iter()
        .position(|r| kernel.name.strip_prefix(r.name).is_some_and(|rest| rest.starts_with('_')))?;
    rungs.get(here + 1).copied()
}

/// The choices that differ in one parameter: for numbers the next smaller and the next larger ones, for others all.
fn other_parameters(kernel: &Kernel, problem: &Problem, target: &'static Target) -> Vec<Attempt> {
    let Some(family) = kernels::family(&kernel.family) else { return Vec::new() };
    let here = &kernel.parameters;
    let mut attempts = Vec::new();
    for parameter in family.parameters {
        let Some(value) = here.get(parameter.name) else { continue };
        let others = (parameter.values)(here, problem, target);
        let far = |v: &Value| match (v, value) {
            (Value::Int(a), Value::Int(b)) => (*a as f64 / (*b).max(1) as f64).ln(),
            _ => 0.0,
        };
        let mut near: Vec<&Value> = others.iter().filter(|v| *v != value).collect();
        if matches!(value, Value::Int(_)) {
            near.sort_by(|a, b| far(a).abs().total_cmp(&far(b).abs()));
            let below = near.iter().filter(|v| far(v) < 0.0).take(2);
            let above = near.iter().filter(|v| far(v) > 0.0).take(2);
            near = below.chain(above).copied().collect();
        }
        for other in near {
            let today = family.needs(problem.precision, problem.shape.k, here);
            let changed = having_meaning(family, &here.clone().with(parameter.name, *other), problem, target);
            if let Ok(choice) = family.complete_permitted(&changed, problem, target, today)
                && choice.get(parameter.name) == Some(other)
                && family.permits(today, problem, &choice)
            {
                let about = format!("{}={other} instead of {value}", parameter.name);
                attempts.push((Idea::Parameter, about, Made::Choice(choice)));
            }
        }
    }
    attempts
}

/// A choice without the values that have no meaning beside those before them.
fn having_meaning(family: &Family, choice: &Choice, problem: &Problem, target: &Target) -> Choice {
    family.parameters.iter().fold(Choice::default(), |kept, parameter| match choice.get(parameter.name) {
        Some(value) if (parameter.values)(&kept, problem, target).contains(value) => {
            kept.with(parameter.name, *value)
        }
        _ => kept,
    })
}

/// Whether the registers of every launch are as few as a thread can have, as far as the estimate goes.
fn fits(time: &Time, target: &Target) -> bool {
    time.launches.iter().all(|launch| {
        let warps = (launch.counts.threads + i64::from(Limits::WARP) - 1) / i64::from(Limits::WARP);
        launch.registers < target.limits.most_registers(warps.max(1))
    })
}

/// The term that becomes smaller by the most, before and after.
fn reduction(before: &Terms, after: &Terms) -> (&'static str, [f64; 2]) {
    let both = Terms::NAMES.iter().zip(before.values()).zip(after.values());
    both.map(|(((name, _), a), b)| (*name, [a, b]))
        .fold(("", [0.0, 0.0]), |most, t| if t.1[0] - t.1[1] > most.1[0] - most.1[1] { t } else { most })
}

/// The steps that go and those that come.
fn changed(before: &str, after: &str) -> Vec<String> {
    let changed = lines(before, after).into_iter().filter_map(|line| match line {
        Line::Same(_) => None,
        Line::Added(text) => Some(format!("+ {text}")),
        Line::Removed(text) => Some(format!("- {text}")),
    });
    changed.collect()
}
