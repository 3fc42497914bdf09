//! The worker's work on the GPU: a candidate is verified, timed, and verified again.
//!
//! Verified first at a short length, then at the one that is tuned ([`Stage`] says what is compared); a candidate that
//! is far from the best is not timed further.

use std::time::Instant;

use warpwright_core::diag::Diagnosis;
use warpwright_core::target::Target;
use warpwright_cuda::{Device, MeasureOptions, Stream, Timing, TurnOptions, measure, turns};

use super::measure::failure;
use super::record::{Status, Trial};
use super::worker::{Answer, Job, Request};
use crate::bind::Binding;
use crate::compile;
use crate::gpu::stage::{Fault, Space, Stage, longest, may_repeat, once, shortened};
use crate::gpu::{self, Executable, Prepared, diagnosis};
use crate::kernels;
use crate::kernels::family::Family;
use crate::problem::Problem;

/// What tries candidates of one family on one problem.
pub struct Bench {
    device: Device,
    target: &'static Target,
    family: &'static Family,
    stream: Stream,
    /// The problem where it is short; absent where the problem itself is.
    short: Option<Stage>,
    whole: Stage,
    /// Whether candidates are timed after pauses.
    rested: bool,
}

/// A candidate that takes this many times as long as the best in a single run is not timed further.
const HOPELESS: f64 = 4.0;

/// Seconds that the host may add to a run that stands alone: runs took up to 35 us whose launches take 1.5 to 5 us in a
/// graph (one H200, 2026-11-22).
const ALONE: f64 = 100e-6;

/// Whether a single run of so many seconds shows that a candidate need not be timed any further.
fn is_hopeless(single: f64, best: f64) -> bool {
    single > HOPELESS * best + ALONE
}

/// How the best few are timed in the end.
const SETTLE: MeasureOptions = MeasureOptions {
    launches: 20,
    replay_seconds: 2e-3,
    warm_up_seconds: 0.02,
    seconds: 0.15,
    min_samples: 5,
    max_samples: 200,
};

impl Bench {
    /// Takes a GPU into use and prepares the operands.
    ///
    /// # Errors
    /// No such GPU or family, and operands that do not fit.
    pub fn new(job: &Job) -> Result<Bench, Diagnosis> {
        let problem = job.problem()?;
        let family = kernels::family(&job.family)
            .ok_or_else(|| Diagnosis::new(format!("there is no family `{}`", job.family)))?;
        let device = Device::open(job.gpu).map_err(diagnosis)?;
        let target = gpu::target_of(&device)?;
        let stream = device.stream().map_err(diagnosis)?;
        let (short, whole) = stages(&device, &stream, family, problem)?;
        Ok(Bench { device, target, family, stream, short, whole, rested: job.rested })
    }

    /// Tries one candidate.
    pub fn answer(&mut self, request: &Request) -> Answer {
        let trial = self
            .attempt(request)
            .unwrap_or_else(|(status, d)| failure(&request.choice, status, d.to_string()));
        // An error that spoils the context comes back from whatever is asked of it next.
        let spoilt = trial.status == Status::Runtime && self.stream.synchronize().is_err();
        Answer { trial, spoilt }
    }

    fn attempt(&mut self, request: &Request) -> Result<Trial, (Status, Diagnosis)> {
        let mut trial = Trial { choice: request.choice.clone(), ..Trial::default() };
        let unmakeable = |d: Diagnosis| (Status::Constraints, d);
        let crashed = |d: Diagnosis| (Status::Runtime, d);
        let kernel = self.family.build(&self.whole.problem, &request.choice).map_err(unmakeable)?;
        let by = kernel.multiplications();
        let valid = compile::validated(kernel.program(), self.target).map_err(unmakeable)?;
        let source = compile::cuda_for(&valid, &self.whole.problem).map_err(unmakeable)?;
        let executable = Executable::new(&self.device, valid.program().clone(), source, self.target);
        let start = Instant::now();
        let launch_size = i64::from(self.device.info().sm_count);
        let prepare = |stage: &Stage| -> Result<Prepared, Diagnosis> {
            let binding = Binding::new(valid.program(), &stage.problem, launch_size)?;
            executable.prepare(&self.device, &binding, &stage.sets)
        };
        if let Some(short) = &mut self.short {
            let prepared = prepare(short).map_err(crashed)?;
            short.verify(&prepared, &self.stream, by).map_err(status)?;
        }
        let prepared = prepare(&self.whole).map_err(crashed)?;
        let first = self.whole.verify(&prepared, &self.stream, by).map_err(status)?;
        trial.times.verify = start.elapsed().as_secs_f64();
        if let Some(best) = request.best.filter(|best| is_hopeless(first, *best)) {
            // The first run may have loaded the kernel as well.
            let again = once(&prepared, &self.stream).map_err(|e| crashed(diagnosis(e)))?;
            if is_hopeless(again, best) {
                (trial.seconds, trial.samples) = (Some(again), 1);
                return Ok(trial);
            }
        }
        let start = Instant::now();
        let timing = self.time(&prepared, request.settle).map_err(|e| crashed(diagnosis(e)))?;
        trial.times.measure = start.elapsed().as_secs_f64();
        let start = Instant::now();
        // Timing may bring out what a single run does not: what is left in scratch memory, say.
        self.whole.verify(&prepared, &self.stream, by).map_err(status)?;
        trial.times.verify += start.elapsed().as_secs_f64();
        (trial.seconds, trial.quartiles) = (Some(timing.median), Some(timing.quartiles));
        trial.samples = timing.samples.len();
        Ok(trial)
    }

    /// Times a candidate: at a look, or, to `settle`, at length; after pauses, if the GPU is to be rested.
    fn time(&self, prepared: &Prepared, settle: bool) -> warpwright_cuda::Result<Timing> {
        let enqueue = |s: &Stream, call| prepared.enqueue(s, call);
        if !self.rested {
            let options = if settle { SETTLE } else { MeasureOptions::quick() };
            return measure::graph(&self.stream, &options, enqueue);
        }
        let paced =
            if settle { TurnOptions::default() } else { TurnOptions { bursts: 1, ..TurnOptions::quick() } };
        let options = TurnOptions { fewest_launches: SETTLE.launches, ..paced };
        turns::rested(&self.stream, &options, enqueue)
    }
}

/// A problem where it is short, if it is not, and at its own length, with operands.
fn stages(
    device: &Device,
    stream: &Stream,
    family: &Family,
    problem: Problem,
) -> Result<(Option<Stage>, Stage), Diagnosis> {
    let short = shortened(family, &problem)?;
    if may_repeat(device, &short, &problem)? {
        let space = Space::new(device, longest(&problem))?;
        let [short, whole] = Stage::repeated(stream, &space, short, problem)?;
        return Ok((Some(short), whole));
    }
    let short = if short == problem { None } else { Some(Stage::random(device, short, false)?) };
    Ok((short, Stage::random(device, problem, true)?))
}

/// A fault as it is recorded.
fn status(fault: Fault) -> (Status, Diagnosis) {
    match fault {
        Fault::Crashed(diagnosis) => (Status::Runtime, diagnosis),
        Fault::Wrong(diagnosis) => (Status::Correctness, diagnosis),
    }
}

#[cfg(test)]
mod tests {
    use super::is_hopeless;

    #[test]
    fn what_the_host_adds_to_a_short_run_tells_nothing() {
        assert!(is_hopeless(5e-3, 1e-3) && !is_hopeless(3e-3, 1e-3));
        assert!(!is_hopeless(35e-6, 1.5e-6), "the launches alone may take 3 us");
    }
}
