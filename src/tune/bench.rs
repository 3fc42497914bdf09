//! The worker's work on the GPU: a candidate is verified, timed, and verified again.
//!
//! Verified first at a length at which every element of C can be compared with the reference, an odd one, so that tiles
//! stand over the edge; then at the length that is tuned, where two corners of C are compared if it is small, and bands
//! of rows if it is long. C is poisoned before each. The operands, and what the results must be, are worked out once.

use std::time::Instant;

use warpwright_core::diag::Diagnosis;
use warpwright_core::target::Target;
use warpwright_cuda::{Device, MeasureOptions, Stream, measure};

use super::measure::failure;
use super::record::{Status, Trial};
use super::worker::{Answer, Job, Request};
use crate::bind::Binding;
use crate::compile;
use crate::gpu::{self, Executable, OperandSets, Prepared, diagnosis};
use crate::inputs::Operands;
use crate::kernels;
use crate::kernels::family::Family;
use crate::matrix::Matrix;
use crate::problem::Problem;
use crate::reference::{Comparison, Expected, Region, expected};

/// What tries candidates of one family on one problem.
pub struct Bench {
    device: Device,
    target: &'static Target,
    family: &'static Family,
    stream: Stream,
    /// The problem where it is short; absent where the problem itself is.
    short: Option<Stage>,
    whole: Stage,
}

/// A problem on the GPU, and what its result must be.
struct Stage {
    problem: Problem,
    operands: Operands,
    sets: OperandSets,
    /// The parts of C that are compared.
    expected: Vec<Expected>,
    /// Where C is downloaded to.
    found: Matrix,
}

/// The length at which all of C is compared: odd, and long enough for every block to have something to do.
const SHORT: i64 = 50_021;
/// C is compared whole at the length that is tuned where that takes no more multiply-adds than this.
const WHOLE: f64 = 1e9;
/// Elements along each side of the corners of a small C that are compared where comparing all would take long.
const CORNER: usize = 4;
/// Bands of a long C that are compared, and the rows of each.
const BANDS: usize = 64;
const BAND_ROWS: usize = 16;
/// A candidate that takes this many times as long as the best in a single run is not timed further.
const HOPELESS: f64 = 4.0;

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
        let short = shortened(family, &problem)?;
        let short = if short == problem { None } else { Some(Stage::new(&device, short, false)?) };
        let whole = Stage::new(&device, problem, true)?;
        Ok(Bench { device, target, family, stream, short, whole })
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
        let valid = compile::validated(kernel.program(), self.target).map_err(unmakeable)?;
        let source = compile::cuda(&valid).map_err(unmakeable)?;
        let executable = Executable::new(&self.device, valid.program().clone(), source, self.target);
        let start = Instant::now();
        let launch_size = i64::from(self.device.info().sm_count);
        let prepare = |stage: &Stage| -> Result<Prepared, Diagnosis> {
            let binding = Binding::new(valid.program(), &stage.problem, launch_size)?;
            executable.prepare(&self.device, &binding, &stage.sets)
        };
        if let Some(short) = &mut self.short {
            let prepared = prepare(short).map_err(crashed)?;
            short.verify(&prepared, &self.stream)?;
        }
        let prepared = prepare(&self.whole).map_err(crashed)?;
        let first = self.whole.verify(&prepared, &self.stream)?;
        trial.times.verify = start.elapsed().as_secs_f64();
        if let Some(limit) = request.best.map(|best| HOPELESS * best).filter(|limit| first > *limit) {
            // The first run may have loaded the kernel as well.
            let again = once(&prepared, &self.stream).map_err(|e| crashed(diagnosis(e)))?;
            if again > limit {
                (trial.seconds, trial.samples) = (Some(again), 1);
                return Ok(trial);
            }
        }
        let start = Instant::now();
        let options = if request.settle { MeasureOptions::default() } else { MeasureOptions::quick() };
        let timing = measure::graph(&self.stream, &options, |s, call| prepared.enqueue(s, call))
            .map_err(|e| crashed(diagnosis(e)))?;
        trial.times.measure = start.elapsed().as_secs_f64();
        let start = Instant::now();
        // Timing may bring out what a single run does not: what is left in scratch memory, say.
        self.whole.verify(&prepared, &self.stream)?;
        trial.times.verify += start.elapsed().as_secs_f64();
        (trial.seconds, trial.quartiles) = (Some(timing.median), Some(timing.quartiles));
        trial.samples = timing.samples.len();
        Ok(trial)
    }
}

/// The problem with those extents shortened that are arguments of the family's kernels.
fn shortened(family: &Family, problem: &Problem) -> Result<Problem, Diagnosis> {
    let fixed = (family.fixed)(problem)?;
    let mut shape = problem.shape;
    for (known, extent) in [(fixed.m, &mut shape.m), (fixed.n, &mut shape.n), (fixed.k, &mut shape.k)] {
        if known.is_none() {
            *extent = (*extent).min(SHORT);
        }
    }
    // The row strides stay: the family may have a constant of them.
    let mut short = *problem;
    short.shape = shape;
    Ok(short)
}

impl Stage {
    fn new(device: &Device, problem: Problem, timed: bool) -> Result<Stage, Diagnosis> {
        let operands = Operands::random(&problem, 1)?;
        let upload = if timed { OperandSets::rotating } else { OperandSets::single };
        let sets = upload(device, &operands).map_err(diagnosis)?;
        let expected = regions(&problem)
            .iter()
            .map(|region| expected(&problem, &operands.a, &operands.b, Some(&operands.c), region))
            .collect();
        let found = operands.c.clone();
        Ok(Stage { problem, operands, sets, expected, found })
    }

    /// Runs the kernel once on a poisoned C and compares; gives the seconds of the run.
    fn verify(&mut self, prepared: &Prepared, stream: &Stream) -> Result<f64, (Status, Diagnosis)> {
        let run = || -> warpwright_cuda::Result<f64> {
            gpu::reset_c(&self.sets, stream, &self.problem, &self.operands)?;
            once(prepared, stream)
        };
        let seconds = run().map_err(|e| (Status::Runtime, diagnosis(e)))?;
        let mut comparison = Comparison::empty();
        for expected in &self.expected {
            self.sets
                .download_rows(stream, 0, &mut self.found, expected.region().rows.clone())
                .map_err(|e| (Status::Runtime, diagnosis(e)))?;
            comparison = comparison.and(expected.compare(&self.found));
        }
        match comparison.first_wrong {
            None => Ok(seconds),
            Some(wrong) => Err((
                Status::Correctness,
                Diagnosis::new(format!("{} of {} elements are wrong", comparison.wrong, comparison.elements))
                    .at(self.problem.shape.to_string())
                    .because(wrong.to_string()),
            )),
        }
    }
}

/// Runs the kernel once; gives the seconds that it takes.
fn once(prepared: &Prepared, stream: &Stream) -> warpwright_cuda::Result<f64> {
    let before = stream.record()?;
    prepared.enqueue(stream, 0)?;
    let after = stream.record()?;
    stream.synchronize()?;
    after.seconds_since(&before)
}

/// The parts of C that are compared.
fn regions(problem: &Problem) -> Vec<Region> {
    let (m, n) = (problem.shape.m as usize, problem.shape.n as usize);
    if problem.multiply_adds() <= WHOLE {
        return vec![Region::whole(problem)];
    }
    if m > BANDS * BAND_ROWS {
        // The first and the last rows are among them.
        let starts = (0..BANDS).map(|band| (m - BAND_ROWS) * band / (BANDS - 1));
        return starts.map(|start| Region { rows: start..start + BAND_ROWS, columns: 0..n }).collect();
    }
    // Each element of a small C is a long sum: the first and the last corner have to do.
    let corner = |extent: usize| extent.min(CORNER);
    vec![
        Region { rows: 0..corner(m), columns: 0..corner(n) },
        Region { rows: m - corner(m)..m, columns: n - corner(n)..n },
    ]
}

#[cfg(test)]
mod tests {
    use super::{BAND_ROWS, BANDS, SHORT, regions, shortened};
    use crate::kernels;
    use crate::problem::Problem;

    fn problem(shape: &str, layout: &str) -> Problem {
        Problem::new(shape.parse().unwrap(), "f64".parse().unwrap(), layout.parse().unwrap())
    }

    #[test]
    fn what_is_compared_reaches_the_first_and_the_last_element() {
        for p in [problem("64x64x4000000", "tn"), problem("4000000x64x64", "nn"), problem("3x5x100", "tn")] {
            let regions = regions(&p);
            let last = (p.shape.m as usize, p.shape.n as usize);
            assert!(regions.iter().any(|r| r.rows.start == 0 && r.columns.start == 0), "{}", p.shape);
            assert!(regions.iter().any(|r| (r.rows.end, r.columns.end) == last), "{}", p.shape);
            assert!(regions.iter().all(|r| r.rows.end <= last.0 && r.columns.end <= last.1));
        }
        let long = regions(&problem("4000000x64x64", "nn"));
        assert_eq!((long.len(), long[7].rows.len()), (BANDS, BAND_ROWS));
    }

    #[test]
    fn only_extents_that_are_arguments_are_shortened() {
        let short = |name: &str, shape: &str, layout: &str| {
            let p = problem(shape, layout);
            let short = shortened(kernels::family(name).unwrap(), &p).unwrap();
            assert_eq!(short.ld, p.ld);
            (short.shape.m, short.shape.n, short.shape.k)
        };
        assert_eq!(short("tsmttsm", "64x48x4000000", "tn"), (64, 48, SHORT));
        assert_eq!(short("tsmttsm", "64x48x1000", "tn"), (64, 48, 1000));
        assert_eq!(short("tsmm", "4000000x64x48", "nn"), (SHORT, 64, 48));
    }
}
