//! How true the model of times is: its estimates beside every table of measured times that the repository has.
//!
//! `validation/index.toml` lists the tables, where each is from, and whether the model was fitted on it. [`measured`] reads
//! a table as choices of families with their times; this module compares, and [`report`] says it to people. Tables that the
//! model has nothing to say of are listed with the reason.

pub mod fit;
pub mod measured;
pub mod report;
mod tables;

use fastrand::Rng;
use serde::{Deserialize, Serialize};
use warpwright_core::diag::Diagnosis;
use warpwright_core::target::Target;

use self::measured::{Measured, Reader, Subject};
use self::tables::{INDEX, TEXTS};
use crate::metrics::{self, Pair};
use crate::problem::Shape;
use crate::tune::prediction::Prediction;
use crate::{modelled, parallel};

/// Measured times of two candidates that differ by less than this part have no order for Kendall's tau.
pub const CLOSER: f64 = 0.05;

/// Candidates that are drawn of each problem of a table that has all there are.
pub const DRAWN: usize = 50;

/// The list of tables.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Index {
    table: Vec<Entry>,
}

/// A table of measured or published figures.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its file.
    pub file: String,
    /// The GPU by its name in the tables.
    pub gpu: String,
    /// What it holds.
    pub what: String,
    /// Who measured or published it, when, and by what.
    pub source: String,
    /// The licence of what it is from.
    pub licence: String,
    /// How it is read, where the model has something to say of it.
    #[serde(default, skip_serializing)]
    reader: Option<Reader>,
    /// Whether its candidates were drawn with equal chances and their registers are on record, so that the time model of programs can
    /// be compared too.
    #[serde(default, skip_serializing)]
    drawn: bool,
    /// The seed by which candidates of each problem are drawn from all that the table has, for the time model of programs.
    #[serde(default, skip_serializing)]
    draw: Option<u64>,
    /// Whether the model was fitted on it, in a few words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fit: Option<String>,
    /// The same in full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fit_because: Option<String>,
    /// Why the model has nothing to say of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

/// The model beside all tables: the JSON of `validate-model`.
#[derive(Clone, Debug, Serialize)]
pub struct Validation {
    /// How the numbers came about: `modelled beside measured`.
    pub kind: &'static str,
    /// The part of a measured time that two candidates have to differ by to have an order for Kendall's tau.
    pub closer: f64,
    /// The tables that the model speaks of.
    pub tables: Vec<Compared>,
    /// Those that it does not, and why.
    pub not_covered: Vec<Entry>,
}

/// The model beside one table.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// The table.
    #[serde(flatten)]
    pub entry: Entry,
    /// Over all its groups.
    pub summary: Summary,
    /// Each problem with its candidates; or products with one kernel each, by kind.
    pub groups: Vec<Group>,
    /// Single points, where the table has few.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<Point>,
}

/// The model beside measured times of a group.
#[derive(Clone, Debug, Serialize)]
pub struct Group {
    /// The problem, or the kind of products.
    pub name: String,
    /// The family of the kernels.
    pub family: &'static str,
    /// Kernels with a measured and a modelled time.
    pub kernels: usize,
    /// Kernels that were measured but have no modelled time.
    pub not_modelled: usize,
    /// Why, each reason once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_modelled_because: Vec<String>,
    /// How well the model ranks the candidates of this problem; null where each kernel has a problem of its own.
    pub ranking: Option<Ranking>,
    /// The mean of |modelled - measured| / measured, in per cent.
    pub mean_absolute_error_percent: Option<f64>,
    /// The geometric mean of modelled over measured.
    pub geometric_bias: Option<f64>,
}

/// How well the model ranks the candidates of one problem.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Ranking {
    /// Spearman's rank correlation.
    pub spearman: Option<f64>,
    /// Kendall's tau-b without pairs that were measured to be as good as equal.
    pub kendall_tau_b: Option<f64>,
    /// The least measured time among the model's first few over the optimum.
    pub best_of: FirstFew,
}

/// A number for the model's first 1, 10 and 50.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FirstFew {
    /// For its first.
    #[serde(rename = "1")]
    pub one: Option<f64>,
    /// For its first 10.
    #[serde(rename = "10")]
    pub ten: Option<f64>,
    /// For its first 50.
    #[serde(rename = "50")]
    pub fifty: Option<f64>,
}

/// The model beside a table as a whole.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Groups in it.
    pub groups: usize,
    /// Kernels with both times.
    pub kernels: usize,
    /// Kernels without a modelled time.
    pub not_modelled: usize,
    /// Over the problems: the median and the least Spearman correlation.
    pub spearman_median: Option<f64>,
    /// The least.
    pub spearman_least: Option<f64>,
    /// The median of Kendall's tau-b.
    pub kendall_median: Option<f64>,
    /// The best of the first few over the optimum: the geometric mean of the problems.
    pub best_of: FirstFew,
    /// The same of the problem for which it is worst.
    pub worst_of: FirstFew,
    /// The mean absolute error over all kernels, in per cent.
    pub mean_absolute_error_percent: Option<f64>,
    /// The geometric mean of modelled over measured over all kernels.
    pub geometric_bias: Option<f64>,
}

/// One kernel, measured and modelled.
#[derive(Clone, Debug, Serialize)]
pub struct Point {
    /// The family.
    pub family: &'static str,
    /// The size of the product.
    pub problem: String,
    /// Its type.
    pub dtype: &'static str,
    /// The parameters that the table gives, or the name of the kernel.
    pub given: String,
    /// Seconds, measured.
    pub measured: f64,
    /// Seconds, modelled; null where there is none.
    pub modelled: Option<f64>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

/// Compares the model with every table.
///
/// # Errors
/// A table that cannot be read, which would be a fault of the program.
pub fn validate() -> Result<Validation, Diagnosis> {
    let (mut tables, mut not_covered) = (Vec::new(), Vec::new());
    for entry in entries()? {
        match entry.reader {
            Some(reader) => tables.push(compared(entry, reader)?),
            None => not_covered.push(entry),
        }
    }
    Ok(Validation { kind: "modelled beside measured", closer: CLOSER, tables, not_covered })
}

/// Compares both models on the tables whose candidates were drawn: that of families, that of programs, and the geometric mean of the two.
/// Each candidate is made, lowered and validated, which takes some tens of milliseconds. Of tables that have all candidates there are, [`DRAWN`] of
/// each problem are drawn.
///
/// # Errors
/// As [`validate`].
pub fn validate_programs() -> Result<Validation, Diagnosis> {
    let mut tables = Vec::new();
    for entry in entries()?.into_iter().filter(|entry| entry.drawn || entry.draw.is_some()) {
        tables.extend(by_both_models(entry)?);
    }
    Ok(Validation { kind: "modelled beside measured", closer: CLOSER, tables, not_covered: Vec::new() })
}

/// A table as the model of families has it, the one of programs, and the geometric mean of both.
fn by_both_models(mut entry: Entry) -> Result<[Compared; 3], Diagnosis> {
    let reader = entry.reader.ok_or_else(|| Diagnosis::new("it has no reader").at(entry.file.clone()))?;
    let target = Target::by_name(&entry.gpu)?;
    let mut measured = reader.read(text_of(&entry)?).map_err(|d| d.at(entry.file.clone()))?;
    if let Some(seed) = entry.draw {
        measured = drawn(measured, seed);
        entry.what = format!("{DRAWN} of each product, drawn with seed {seed} from {}", entry.what);
    }
    let by_family = parallel::map(&measured, |kernel| seconds(kernel, target));
    let by_program = parallel::map(&measured, |kernel| seconds_of_program(kernel, target));
    let both = by_family.iter().zip(&by_program).map(|pair| match pair {
        (Ok(a), Ok(b)) => Ok((a * b).sqrt()),
        (Err(because), _) | (_, Err(because)) => Err(because.clone()),
    });
    let both = both.collect();
    let of = |how: &str, modelled| {
        let entry = Entry { what: format!("{how}: {}", entry.what), ..entry.clone() };
        Compared::of(entry, reader, &measured, modelled)
    };
    Ok([
        of("by what their families say", by_family),
        of("by their programs", by_program),
        of("by the geometric mean of both", both),
    ])
}

/// So many candidates of each problem, drawn by a seed, in the order of the table.
fn drawn(measured: Vec<Measured>, seed: u64) -> Vec<Measured> {
    let mut rng = Rng::with_seed(seed);
    let sizes: Vec<usize> = measured.chunk_by(|a, b| a.group == b.group).map(<[Measured]>::len).collect();
    let mut kept = Vec::with_capacity(measured.len());
    for size in sizes {
        let mut places: Vec<usize> = (0..size).collect();
        rng.shuffle(&mut places);
        let mut keep = vec![false; size];
        places.iter().take(DRAWN).for_each(|place| keep[*place] = true);
        kept.append(&mut keep);
    }
    measured.into_iter().zip(kept).filter_map(|(kernel, keep)| keep.then_some(kernel)).collect()
}

fn entries() -> Result<Vec<Entry>, Diagnosis> {
    let index: Index = toml::from_str(INDEX).map_err(|e| {
        Diagnosis::new("the index cannot be read").because(e.to_string()).at("validation/index.toml")
    })?;
    Ok(index.table)
}

fn compared(entry: Entry, reader: Reader) -> Result<Compared, Diagnosis> {
    let place = |d: Diagnosis| d.at(entry.file.clone());
    let text = text_of(&entry)?;
    let target = Target::by_name(&entry.gpu).map_err(place)?;
    let measured = reader.read(text).map_err(place)?;
    let modelled = parallel::map(&measured, |kernel| seconds(kernel, target));
    Ok(Compared::of(entry, reader, &measured, modelled))
}

impl Compared {
    fn of(
        entry: Entry,
        reader: Reader,
        measured: &[Measured],
        modelled: Vec<Result<f64, String>>,
    ) -> Compared {
        let kernels: Vec<Both<'_>> = measured.iter().zip(modelled).collect();
        let groups: Vec<Group> = kernels
            .chunk_by(|(a, _), (b, _)| a.group == b.group)
            .map(|group| Group::of(group, reader.has_candidates()))
            .collect();
        let points = if reader.has_points() { kernels.iter().map(point).collect() } else { Vec::new() };
        Compared { summary: Summary::of(&groups, &pairs(&kernels)), groups, points, entry }
    }
}

/// The text of a table.
fn text_of(entry: &Entry) -> Result<&'static str, Diagnosis> {
    let text = TEXTS.iter().find(|(file, _)| *file == entry.file).map(|(_, text)| *text);
    text.ok_or_else(|| Diagnosis::new("the table is not part of the program").at(entry.file.clone()))
}

/// A measured kernel with its modelled time in seconds, or why there is none.
type Both<'a> = (&'a Measured, Result<f64, String>);

/// The modelled time of a measured kernel, in seconds: of a choice by what its family says of it, of a program by what it does.
fn seconds(kernel: &Measured, target: &'static Target) -> Result<f64, String> {
    let seconds = match &kernel.subject {
        Subject::Choice { family, given, .. } => {
            Prediction::of(family, given, &kernel.problem, target).map(|prediction| prediction.seconds)
        }
        Subject::Program { .. } => program(kernel, target).and_then(|p| p.time()).map(|time| time.seconds),
    };
    seconds.map_err(reason)
}

/// The modelled time of a measured kernel by its program.
fn seconds_of_program(kernel: &Measured, target: &'static Target) -> Result<f64, String> {
    program_of(kernel, target).and_then(|p| p.time()).map(|time| time.seconds).map_err(reason)
}

/// A measured program, or the one that its family makes of a measured choice, ready to be asked about.
fn program_of(kernel: &Measured, target: &'static Target) -> Result<modelled::Subject, Diagnosis> {
    let Subject::Choice { family, given, registers } = &kernel.subject else {
        return program(kernel, target);
    };
    let choice = family.complete(given, &kernel.problem, target)?;
    let made = family.build(&kernel.problem, &choice)?;
    modelled::Subject::new(&made, &kernel.problem, target, registers.map(|r| vec![r]))
}

/// A measured program, ready to be asked about.
fn program(kernel: &Measured, target: &'static Target) -> Result<modelled::Subject, Diagnosis> {
    let Subject::Program { registers, .. } = &kernel.subject else {
        return Err(Diagnosis::new("a choice of a family is no program"));
    };
    let made = kernel.subject.kernel(&kernel.problem).transpose()?;
    let made = made.ok_or_else(|| Diagnosis::new("the table names no program"))?;
    modelled::Subject::new(&made, &kernel.problem, target, registers.map(|r| vec![r]))
}

/// Why a kernel of a table cannot be made today, without its other parameters.
fn reason(refusal: Diagnosis) -> String {
    match refusal.because.split_once(" has no meaning with ") {
        Some((name, _)) => format!("{name} has no meaning there in the family of today"),
        None if refusal.because.is_empty() => refusal.what,
        None => refusal.because,
    }
}

fn pairs(kernels: &[Both<'_>]) -> Vec<Pair> {
    kernels
        .iter()
        .filter_map(|(kernel, modelled)| {
            // By the work, so that a ladder whose steps were measured at several sizes has an order too.
            let Shape { m, n, k } = kernel.problem.shape;
            let work = m.max(1) as f64 * n.max(1) as f64 * k.max(1) as f64;
            Some((modelled.as_ref().copied().ok()? / work, kernel.seconds / work))
        })
        .collect()
}

fn point((kernel, modelled): &Both<'_>) -> Point {
    Point {
        family: kernel.subject.family(),
        problem: kernel.problem.shape.to_string(),
        dtype: kernel.problem.precision.name(),
        given: kernel.subject.name(),
        measured: kernel.seconds,
        modelled: modelled.as_ref().copied().ok(),
        because: modelled.as_ref().err().cloned(),
    }
}

impl Group {
    fn of(kernels: &[Both<'_>], has_candidates: bool) -> Group {
        let pairs = pairs(kernels);
        let mut reasons: Vec<String> =
            kernels.iter().filter_map(|(_, m)| m.as_ref().err().cloned()).collect();
        reasons.sort();
        reasons.dedup();
        Group {
            not_modelled_because: reasons,
            name: kernels[0].0.group.clone(),
            family: kernels[0].0.subject.family(),
            kernels: pairs.len(),
            not_modelled: kernels.len() - pairs.len(),
            ranking: has_candidates.then(|| Ranking::of(&pairs)),
            mean_absolute_error_percent: metrics::mean_absolute_error(&pairs).map(|e| 100.0 * e),
            geometric_bias: metrics::geometric_bias(&pairs),
        }
    }
}

impl Ranking {
    fn of(pairs: &[Pair]) -> Ranking {
        Ranking {
            spearman: metrics::spearman(pairs),
            kendall_tau_b: metrics::kendall_tau_b(pairs, CLOSER),
            best_of: FirstFew {
                one: metrics::best_of(pairs, 1),
                ten: metrics::best_of(pairs, 10),
                fifty: metrics::best_of(pairs, 50),
            },
        }
    }
}

impl FirstFew {
    /// One number made of those of several problems.
    fn over(several: &[FirstFew], one_of: impl Fn(Vec<f64>) -> Option<f64>) -> FirstFew {
        let each = |of: fn(&FirstFew) -> Option<f64>| one_of(several.iter().filter_map(of).collect());
        FirstFew { one: each(|f| f.one), ten: each(|f| f.ten), fifty: each(|f| f.fifty) }
    }

    /// The three in order.
    pub fn all(&self) -> [Option<f64>; 3] {
        [self.one, self.ten, self.fifty]
    }
}

impl Summary {
    fn of(groups: &[Group], pairs: &[Pair]) -> Summary {
        let rankings: Vec<Ranking> = groups.iter().filter_map(|g| g.ranking).collect();
        let spearman = || rankings.iter().filter_map(|r| r.spearman);
        let best: Vec<FirstFew> = rankings.iter().map(|r| r.best_of).collect();
        Summary {
            groups: groups.len(),
            kernels: pairs.len(),
            not_modelled: groups.iter().map(|g| g.not_modelled).sum(),
            spearman_median: metrics::median(spearman()),
            spearman_least: spearman().reduce(f64::min),
            kendall_median: metrics::median(rankings.iter().filter_map(|r| r.kendall_tau_b)),
            best_of: FirstFew::over(&best, metrics::geometric_mean),
            worst_of: FirstFew::over(&best, |of| of.into_iter().reduce(f64::max)),
            mean_absolute_error_percent: metrics::mean_absolute_error(pairs).map(|e| 100.0 * e),
            geometric_bias: metrics::geometric_bias(pairs),
        }
    }
}

#[cfg(test)]
mod tests;
