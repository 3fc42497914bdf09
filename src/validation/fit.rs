//! Fits the constants of the time model of programs: on tables that are named, on kernels or products that a seed draws, and says how it
//! does on those that were not drawn.
//!
//! What is made small, by changing one constant at a time, by less and less, is the mean over each table of the powers 1.5 of logarithms
//! of modelled over measured, of which none counts as more than 1: few candidates are far off, and the others matter. All tables weigh the same.
//! A constant that none of the kernels tells anything about keeps its value.

use std::collections::BTreeSet;

use fastrand::Rng;
use serde::Serialize;
use warpwright_core::diag::Diagnosis;
use warpwright_core::model::time::{CONSTANTS, Constants};
use warpwright_core::target::Target;

use super::measured::{Measured, Subject};
use super::{entries, program_of, text_of};
use crate::metrics::{self, Pair};
use crate::{modelled, parallel};

/// What to fit on.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The tables, by their files.
    pub tables: Vec<String>,
    /// Draws the kernels of ladders, and the products of candidates, that are fitted on.
    pub seed: u64,
    /// The part of them that is fitted on, above 0 and up to 1.
    pub part: f64,
    /// By what factors each constant is changed, round by round.
    pub steps: &'static [f64],
}

/// What came of it: the JSON of `validate-model --fit`.
#[derive(Clone, Debug, Serialize)]
pub struct Fit {
    /// The tables.
    pub tables: Vec<String>,
    /// The seed of the draw.
    pub seed: u64,
    /// The part that was asked for.
    pub part: f64,
    /// The kernels that were fitted on, each at all sizes that the tables have, and the products with all their candidates.
    pub drawn: Vec<String>,
    /// The others.
    pub left_out: Vec<String>,
    /// How well the constants of the program do.
    pub before: Errors,
    /// How well the fitted ones do.
    pub after: Errors,
    /// The constants: their names, those of the program, the fitted ones.
    pub constants: Vec<Fitted>,
}

/// One constant.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Fitted {
    /// Its name.
    pub name: &'static str,
    /// Its value in the program.
    pub before: f64,
    /// Its value by the fit.
    pub after: f64,
}

/// Mean absolute errors in per cent.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Errors {
    /// Over the kernels that were fitted on.
    pub drawn: Option<f64>,
    /// Over the others.
    pub left_out: Option<f64>,
}

/// A measured kernel, ready to be asked about.
struct Case {
    /// The kernel, or the product whose candidate it is.
    name: String,
    /// The table.
    table: usize,
    subject: modelled::Subject,
    seconds: f64,
}

impl Case {
    fn pair(&self, constants: &Constants) -> Option<Pair> {
        Some((self.subject.time_with(constants).ok()?.seconds, self.seconds))
    }
}

/// By less and less.
pub const STEPS: &[f64] = &[1.4, 1.4, 1.2, 1.2, 1.1, 1.1, 1.04, 1.04];

/// Fits the constants.
///
/// # Errors
/// A table that is not in the index or holds no programs, and a part that leaves nothing to fit on.
pub fn fit(plan: &Plan) -> Result<Fit, Diagnosis> {
    let mut cases = Vec::new();
    for (table, file) in plan.tables.iter().enumerate() {
        cases.extend(read(table, file)?);
    }
    let names: BTreeSet<String> = cases.iter().map(|c| c.name.clone()).collect();
    let mut names: Vec<String> = names.into_iter().collect();
    Rng::with_seed(plan.seed).shuffle(&mut names);
    let number = (names.len() as f64 * plan.part).round() as usize;
    if number == 0 || number > names.len() {
        return Err(Diagnosis::new(format!("{number} of {} kernels is no part to fit on", names.len()))
            .instead(
                "give --part above 0 and up to 1, such as 0.5; with 1, no kernel is left to test with",
            ));
    }
    let (mut drawn, mut left_out) = (names[..number].to_vec(), names[number..].to_vec());
    drawn.sort_unstable();
    left_out.sort_unstable();
    let of = |names: &[String]| cases.iter().filter(|c| names.contains(&c.name)).collect::<Vec<&Case>>();
    let (fitted_on, tested_on) = (of(&drawn), of(&left_out));
    let constants = descend(&fitted_on, plan.steps);
    let errors = |constants: &Constants| Errors {
        drawn: error(&fitted_on, constants),
        left_out: error(&tested_on, constants),
    };
    let (mut before, mut after) = (CONSTANTS, constants);
    Ok(Fit {
        tables: plan.tables.clone(),
        seed: plan.seed,
        part: plan.part,
        before: errors(&CONSTANTS),
        after: errors(&constants),
        constants: Constants::NAMED
            .iter()
            .map(|(name, of)| Fitted { name, before: *of(&mut before), after: *of(&mut after) })
            .collect(),
        drawn,
        left_out,
    })
}

/// The programs of a table.
fn read(table: usize, file: &str) -> Result<Vec<Case>, Diagnosis> {
    let place = |d: Diagnosis| d.at(file.to_string());
    let all = entries()?;
    let entry = all.iter().find(|entry| entry.file == file);
    let entry = entry.ok_or_else(|| {
        let known: Vec<&str> = all.iter().filter(|e| e.reader.is_some()).map(|e| e.file.as_str()).collect();
        Diagnosis::new(format!("there is no table `{file}`"))
            .instead(format!("use one of {}", known.join(", ")))
    })?;
    let target = Target::by_name(&entry.gpu).map_err(place)?;
    let reader = entry.reader.ok_or_else(|| place(Diagnosis::new("the model has nothing to say of it")))?;
    let measured = reader.read(text_of(entry)?).map_err(place)?;
    let known = |kernel: &Measured| match &kernel.subject {
        Subject::Choice { registers, .. } => registers.is_some(),
        Subject::Program { .. } => true,
    };
    if !measured.iter().all(known) {
        return Err(place(
            Diagnosis::new("it does not say how many registers its kernels have")
                .because("the constants are those of the time model of programs")
                .instead("use a table of rungs, or one of drawn candidates"),
        ));
    }
    let cases = parallel::map(&measured, |kernel| {
        let name = match &kernel.subject {
            Subject::Choice { .. } => kernel.group.clone(),
            Subject::Program { name, .. } => (*name).to_string(),
        };
        Ok(Case { name, table, subject: program_of(kernel, target)?, seconds: kernel.seconds })
    });
    cases.into_iter().collect::<Result<Vec<Case>, _>>().map_err(place)
}

fn pairs(cases: &[&Case], constants: &Constants) -> Vec<Pair> {
    parallel::map(cases, |case| case.pair(constants)).into_iter().flatten().collect()
}

fn error(cases: &[&Case], constants: &Constants) -> Option<f64> {
    metrics::mean_absolute_error(&pairs(cases, constants)).map(|e| 100.0 * e)
}

/// The constants with the least cost that is found from those of the program.
fn descend(cases: &[&Case], steps: &[f64]) -> Constants {
    let cost = |constants: &Constants| -> f64 {
        // No pipe gives more than its peak, and nobody waits for longer than a latency.
        if constants.threads.max(constants.matrix_units).max(constants.latency) > 1.0 {
            return f64::INFINITY;
        }
        let far = |(m, t): Pair| (m / t).ln().abs().min(1.0).powf(1.5);
        let found = parallel::map(cases, |case| (case.table, case.pair(constants).map(far)));
        let tables = found.iter().map(|(table, _)| *table).max().unwrap_or(0);
        let of = |table: usize| {
            let far = found.iter().filter_map(|(t, far)| far.filter(|_| *t == table));
            far.clone().sum::<f64>() / far.count().max(1) as f64
        };
        (0..=tables).map(of).sum()
    };
    let mut best = CONSTANTS;
    let mut least = cost(&best);
    for step in steps {
        for (_, of) in Constants::NAMED {
            for factor in [*step, 1.0 / step] {
                let mut other = best;
                *of(&mut other) *= factor;
                let found = cost(&other);
                // What changes nothing to speak of stays as it is.
                if found < least * (1.0 - 1e-6) {
                    (best, least) = (other, found);
                }
            }
        }
    }
    best
}
