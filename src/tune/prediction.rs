//! A prediction: the model's time of one choice on one problem and one GPU, as it is reported. Nothing runs and nothing is
//! compiled; every number is modelled.

use serde::Serialize;
use warpwright_core::diag::Diagnosis;
use warpwright_core::target::Target;

use super::rank::{self, Estimate, Terms};
use super::why;
use crate::kernels::family::{Choice, Family};
use crate::problem::{Multiplications, Problem};
use crate::report::number::seconds;
use crate::report::table::{numbers, render, words};
use crate::report::{Kind, ProblemReport};
use crate::roofline::RooflineReport;

/// What the model says of a choice: the JSON of `predict`. All times are in seconds.
#[derive(Clone, Debug, Serialize)]
pub struct Prediction {
    /// What would be computed.
    pub problem: ProblemReport,
    /// On which GPU.
    pub gpu: &'static str,
    /// By what.
    pub kernel: PredictedKernel,
    /// How the numbers came about: always the model.
    pub kind: Kind,
    /// The time of one product.
    pub seconds: f64,
    /// What the time is made of. Terms overlap, so their sum is more than the time.
    pub terms: Terms,
    /// The name of the greatest term.
    pub limiter: &'static str,
    /// How blocks fill the GPU.
    pub residency: Residency,
    /// The bounds of the problem by what is known to be reached on the GPU; null where its table has no rate for the type.
    pub roofline: Option<RooflineReport>,
    /// Whether the time is less than any kernel of this kind could take: a constant that was fitted on one GPU does not suit
    /// another. Kernels that make products of fewer or of faster multiplications may be below the roofline, which counts the
    /// definition's.
    pub below_roofline: bool,
    #[serde(skip)]
    estimate: Estimate,
}

/// The kernel of a prediction.
#[derive(Clone, Debug, Serialize)]
pub struct PredictedKernel {
    /// Its family.
    pub family: &'static str,
    /// All its parameters.
    pub parameters: Choice,
    /// The names of those that were given; the family completed the others.
    pub given: Vec<&'static str>,
}

/// How the blocks of a kernel fill a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Residency {
    /// Warps that are resident on a multiprocessor.
    pub warps_per_sm: f64,
    /// Rounds in which the blocks are resident.
    pub rounds: f64,
    /// How many times the mean what the slowest multiprocessor has to do is.
    pub imbalance: f64,
}

impl Prediction {
    /// The prediction for a choice with these values in it, which the family completes by its most usual ones.
    ///
    /// # Errors
    /// A problem that the family does not serve, values that it does not know or that break a constraint, and a GPU on
    /// which the model has no time for it.
    pub fn of(
        family: &'static Family,
        given: &Choice,
        problem: &Problem,
        target: &'static Target,
    ) -> Result<Prediction, Diagnosis> {
        (family.fixed)(problem)?;
        let usual = family.complete(given, problem, target)?;
        let estimate = |parameters: Choice| {
            let found =
                rank::estimate(family, problem, &parameters, target).filter(|e| e.seconds.is_finite());
            found.map(|estimate| (parameters, estimate))
        };
        // What is usual may run on a unit for which the GPU's table has no rate; then on the first for which it has.
        let deciding = &family.parameters[0];
        let others = || {
            let is_free = given.get(deciding.name).is_none();
            let values =
                if is_free { (deciding.values)(&Choice::default(), problem, target) } else { Vec::new() };
            let completed =
                |value| family.complete(&given.clone().with(deciding.name, value), problem, target);
            values.into_iter().filter_map(|value| completed(value).ok()).find_map(estimate)
        };
        let (parameters, estimate) = estimate(usual.clone())
            .or_else(others)
            .ok_or_else(|| {
                Diagnosis::new(format!("the model has no time for {} with {usual}", family.name))
                    .because(format!(
                        "not one block of it fits on a multiprocessor of {}, or the GPU's table has no rate for {}",
                        target.name, problem.precision
                    ))
                    .instead("give smaller tiles, or another GPU")
            })?;
        let roofline = RooflineReport::reached(problem, target);
        let given = given.iter().map(|(name, _)| name).collect();
        let by_definition = family.multiplications(&parameters) == Multiplications::Four;
        Ok(Prediction {
            below_roofline: by_definition && roofline.is_some_and(|r| r.seconds > estimate.seconds),
            problem: ProblemReport::of(problem),
            gpu: target.name,
            kernel: PredictedKernel { family: family.name, parameters, given },
            kind: Kind::Modelled,
            seconds: estimate.seconds,
            terms: estimate.terms,
            limiter: estimate.terms.limiter().name,
            residency: Residency {
                warps_per_sm: estimate.warps,
                rounds: estimate.rounds,
                imbalance: estimate.imbalance,
            },
            roofline,
            estimate,
        })
    }

    /// The prediction for people.
    pub fn describe(&self) -> String {
        let (given, completed): (Vec<_>, Vec<_>) =
            self.kernel.parameters.iter().partition(|(name, _)| self.kernel.given.contains(name));
        let list = |parameters: Vec<(&str, _)>| match parameters.is_empty() {
            true => "nothing".to_string(),
            false => parameters.iter().map(|(n, v)| format!("{n}={v}")).collect::<Vec<_>>().join(" "),
        };
        let roofline = match &self.roofline {
            Some(r) => {
                let part = r.seconds / self.seconds;
                let doubt =
                    if self.below_roofline { ", which is impossible: the model is wrong here" } else { "" };
                format!("{} by {}, {part:.2} of the time{doubt} (modelled)", seconds(r.seconds), r.limiter)
            }
            None => "not known: the GPU's table has no rate for this type".to_string(),
        };
        let rows: Vec<Vec<String>> = self
            .terms
            .all()
            .iter()
            .map(|term| vec![term.name.to_string(), term.about.to_string(), seconds(term.seconds)])
            .collect();
        let terms = render(&[words("term"), words("what takes it"), numbers("alone (modelled)")], &rows);
        let indented: Vec<String> = terms.lines().map(|line| format!("  {line}")).collect();
        format!(
            "{} {} on {}\n  given      {}\n  completed  {}\n  time       {} (modelled)\n  roofline   {roofline}\n  limiter    {}\n\n{}",
            self.kernel.family,
            self.problem,
            self.gpu,
            list(given),
            list(completed),
            seconds(self.seconds),
            why::bound(&self.estimate),
            indented.join("\n")
        )
    }

    /// Several predictions for people, a line each. A time that is less than is possible has a mark.
    pub fn table(predictions: &[Prediction]) -> String {
        let columns = [
            words("gpu"),
            words("family"),
            words("problem"),
            words("type"),
            numbers("time (modelled)"),
            numbers("roofline"),
            numbers("of it"),
            words("limiter"),
        ];
        let rows: Vec<Vec<String>> = predictions
            .iter()
            .map(|p| {
                let ProblemReport { m, n, k, dtype, layout, .. } = &p.problem;
                let [roofline, of_it] = RooflineReport::cells(p.roofline, p.seconds, p.below_roofline);
                vec![
                    p.gpu.to_string(),
                    p.kernel.family.to_string(),
                    format!("{m}x{n}x{k}"),
                    format!("{dtype} {layout}"),
                    seconds(p.seconds),
                    roofline,
                    of_it,
                    p.limiter.to_string(),
                ]
            })
            .collect();
        let note = "\n! less than is possible: the model is wrong here";
        let doubtful = predictions.iter().any(|p| p.below_roofline);
        render(&columns, &rows) + if doubtful { note } else { "" }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Prediction;
    use crate::kernels;
    use crate::kernels::family::Choice;
    use crate::problem::Problem;
    use warpwright_core::target::{self, Target};

    fn problem(shape: &str, dtype: &str, layout: &str) -> Problem {
        Problem::new(shape.parse().unwrap(), dtype.parse().unwrap(), layout.parse().unwrap())
    }

    #[test]
    fn the_limiter_is_the_greatest_term_under_its_own_name() {
        let family = kernels::family("tsmttsm").unwrap();
        let h200 = Target::by_name("h200").unwrap();
        for (shape, limiter) in [("64x64x4000000", "memory"), ("64x64x0", "launch")] {
            let found =
                Prediction::of(family, &Choice::default(), &problem(shape, "f64", "tn"), h200).unwrap();
            assert_eq!(found.limiter, limiter, "{shape}");
            let terms = serde_json::to_value(found.terms).unwrap();
            let all = found.terms.all();
            let greatest = all.iter().map(|term| terms[term.name].as_f64().unwrap()).fold(0.0, f64::max);
            assert_eq!(terms[limiter], greatest);
            assert_eq!(terms.as_object().unwrap().len(), all.len());
        }
    }

    /// The median of several: a machine that others use too may stop any one of them. A debug build takes longer.
    fn median(family: &str, problem: &Problem, target: &'static Target) -> Duration {
        let family = kernels::family(family).unwrap();
        let mut times: Vec<Duration> = (0..9)
            .map(|_| {
                let begun = Instant::now();
                Prediction::of(family, &Choice::default(), problem, target).unwrap();
                begun.elapsed()
            })
            .collect();
        times.sort();
        times[4] / if cfg!(debug_assertions) { 20 } else { 1 }
    }

    #[test]
    fn a_prediction_takes_less_than_a_millisecond() {
        for (family, shape, layout) in [
            ("tsmttsm", "64x64x4000000", "tn"),
            ("tsmttsm", "33x17x10000", "tn"),
            ("tsmm", "4000000x57x57", "nn"),
        ] {
            for dtype in ["f32", "f64", "c64", "c128"] {
                let took = median(family, &problem(shape, dtype, layout), target::DEFAULT);
                assert!(took < Duration::from_millis(1), "{shape} {dtype}: {took:?}");
            }
        }
    }

    /// Where a GPU has little shared memory and products are wide, the family looks longer for a choice that fits: 10 ms, of
    /// these; 73 ms before a small matrix that does not fit ended the search at once.
    #[test]
    fn a_prediction_that_is_hard_to_complete_takes_some_milliseconds() {
        for (gpu, family, shape, layout) in
            [("a6000", "tsmm", "305040x110x110", "nn"), ("gtx980", "tsmttsm", "80x80x419430", "tn")]
        {
            let took = median(family, &problem(shape, "f64", layout), Target::by_name(gpu).unwrap());
            assert!(took < Duration::from_millis(40), "{gpu} {shape}: {took:?}");
        }
    }
}
