//! Measuring points on a GPU, beside cuBLAS on the same operands, with a record that a later run goes on from.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use warpwright_core::diag::Diagnosis;
use warpwright_core::target::Target;
use warpwright_cuda::nvrtc::Nvrtc;
use warpwright_cuda::turns::{self, Enqueue};
use warpwright_cuda::{Device, LaunchConfig, Library, Paces, Stream, Timing, TurnOptions, locate, measure};

use super::job::{Job, Maker, Wanted};
use super::log::{Log, Watch};
use super::{Ceiling, Figure, Key, Point, Seconds};
use crate::bench::bandwidth;
use crate::bench::record::Record;
use crate::bind::Binding;
use crate::gpu::stage::{Fault, Space, Stage, longest, may_repeat, shortened};
use crate::gpu::{self, Executable, OperandSets, Prepared, cublas, diagnosis};
use crate::parallel;
use crate::problem::Problem;
use crate::report::ChosenBy;
use crate::roofline::{self, Bandwidths, Ceilings, Roofline};
use crate::tune::record::{Gpu, Status};

/// What a kernel is timed on besides its operands, to see what stops it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Also {
    /// Matrices in the second-level cache.
    pub cached: bool,
    /// Operands that are all zeros.
    pub zeros: bool,
}

/// What a run is about.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// Where points are recorded, and looked up.
    pub directory: Option<&'a Path>,
    /// Whether to measure again what is on record.
    pub again: bool,
    /// What else to time each kernel on.
    pub also: Also,
    /// How much to measure of each product.
    pub turns: TurnOptions,
}

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// Points that are known now.
    pub done: usize,
    /// Points that are wanted.
    pub of: usize,
    /// Seconds that the others will take, as those before them did.
    pub left: f64,
    /// The latest.
    pub latest: &'a Point,
}

/// What came of a run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The points that were wanted, in order.
    pub points: Vec<Point>,
    /// The files in which they are recorded.
    pub files: Vec<PathBuf>,
    /// What is worth a line on standard error.
    pub notices: Vec<String>,
}

/// Measures points, and records each before the next is begun.
///
/// # Errors
/// Records that cannot be read or written, memory that cannot be had, and a GPU that an error has spoilt. A kernel that
/// fails is a point that failed.
pub fn run(
    run: &Run,
    device: &Device,
    target: &Target,
    wanted: &[Wanted],
    tell: &mut dyn FnMut(&Progress),
) -> Result<Outcome, Diagnosis> {
    // Without it every point would fail, and be recorded as one that fails.
    let nvrtc = Nvrtc::get().map_err(diagnosis)?.version();
    let (maker, mut notices) = Maker::new(target, Gpu::of_device(device.info(), Some(nvrtc)))?;
    let mut log = Log::open(run.directory, Record::new(device, Vec::new()))?;
    let jobs: Vec<Result<Job, Diagnosis>> = parallel::map(wanted, |w| maker.make(w));
    let missing = locate::find(Library::Cublas).advice;
    let (free, _) = device.memory().map_err(diagnosis)?;
    let room = free / 10 * 9;
    let mut open = Vec::new();
    for (wanted, job) in wanted.iter().zip(&jobs) {
        match job {
            Err(refusal) => log.add(refused(wanted, refusal))?,
            Ok(job) if !run.again && log.has(&wanted.key, &job.text, missing.is_none(), run.also) => {}
            Ok(_) if 2 * longest(&wanted.problem) > room => {
                notices.push(format!("{} in {} does not fit the GPU", wanted.problem.shape, wanted.key.dtype))
            }
            Ok(job) => open.push((wanted, job)),
        }
    }
    if !open.is_empty() {
        if let Some(advice) = &missing {
            notices.push(format!("not compared with cuBLAS, which was not found; get it: {advice}"));
        }
        let recorded = run.directory.and_then(|d| bandwidth::recorded(d, &device.info().name));
        let here = recorded.map_or(Bandwidths::default(), |r| bandwidth::summary(&r.results));
        let mut bench = Bench::new(device, target, here, &open, missing.is_none(), run)?;
        let watch = Watch::new(log);
        let before = wanted.len() - open.len();
        beside(device, target, &open, &watch, |next| {
            let start = Instant::now();
            for (at, (wanted_point, job)) in open.iter().enumerate() {
                next.fetch_max(at + 1, Ordering::Relaxed);
                let begun = bench.begun(wanted_point, job);
                watch.begin(&begun);
                let point = bench.finished(begun, wanted_point, job);
                watch.end(point.clone())?;
                bench.still_works(&point)?;
                let each = start.elapsed().as_secs_f64() / (at + 1) as f64;
                let left = each * (open.len() - at - 1) as f64;
                tell(&Progress { done: before + at + 1, of: wanted.len(), left, latest: &point });
            }
            Ok(())
        })?;
        log = watch.into_log();
    }
    let points = wanted.iter().filter_map(|w| log.known.get(&w.key).cloned()).collect();
    Ok(Outcome { points, files: log.files, notices })
}

/// Does the work while other threads watch over it, and compile the kernels of the jobs into the user's cache, in order
/// and from the number on that the work says it has come to.
fn beside(
    device: &Device,
    target: &Target,
    open: &[(&Wanted, &Job)],
    watch: &Watch,
    work: impl FnOnce(&AtomicUsize) -> Result<(), Diagnosis>,
) -> Result<(), Diagnosis> {
    let (arch, launch_size) = (device.info().arch(), i64::from(device.info().sm_count));
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        // One core is left for the measurement.
        for _ in 0..parallel::threads().saturating_sub(1).max(1) {
            scope.spawn(|| {
                while let Some((wanted, job)) = open.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let binding = Binding::new(&job.program, &wanted.problem, launch_size);
                    // What does not compile says so where it is launched.
                    let _ =
                        binding.map(|b| gpu::compile_ahead(&arch, &job.source, target, &|sym| b.value(sym)));
                }
            });
        }
        scope.spawn(|| watch.look());
        let _stop = Stop { watch, next: &next, all: open.len() };
        work(&next)
    })
}

/// Tells the other threads to end, however the work ends.
struct Stop<'a> {
    watch: &'a Watch,
    next: &'a AtomicUsize,
    all: usize,
}

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.watch.stop();
        self.next.store(self.all, Ordering::Relaxed);
    }
}

/// A point that has no kernel.
fn refused(wanted: &Wanted, refusal: &Diagnosis) -> Point {
    let parameters = wanted.choice.clone().unwrap_or_default();
    let flops = wanted.problem.flops();
    Point {
        status: Status::Constraints,
        message: Some(refusal.to_string()),
        ..Point::unmeasured(wanted.key.clone(), parameters, ChosenBy::Named, String::new(), flops)
    }
}

/// What measures points: a GPU, and memory for the operands of all of them.
struct Bench<'a> {
    device: &'a Device,
    target: &'a Target,
    here: Bandwidths,
    stream: Stream,
    space: Space,
    /// Addresses for what is timed in the cache.
    cached: Option<Space>,
    zeros: bool,
    cublas: bool,
    turns: TurnOptions,
    empty_launch: OnceCell<Seconds>,
    /// The product of the latest point: several points in a row may share one.
    current: Option<Current>,
}

/// A product in the memory of the GPU.
struct Current {
    problem: Problem,
    /// At a short length, and at its own where that is another.
    stages: Vec<Stage>,
    /// The times of cuBLAS, where they were taken.
    cublas: Option<Paces>,
}

impl<'a> Bench<'a> {
    fn new(
        device: &'a Device,
        target: &'a Target,
        here: Bandwidths,
        open: &[(&Wanted, &Job)],
        cublas: bool,
        run: &Run,
    ) -> Result<Bench<'a>, Diagnosis> {
        let bytes = open.iter().map(|(w, _)| longest(&w.problem)).max().unwrap_or(1);
        Ok(Bench {
            device,
            target,
            here,
            stream: device.stream().map_err(diagnosis)?,
            space: Space::new(device, bytes)?,
            cached: run.also.cached.then(|| Space::in_cache(device, bytes)).transpose()?,
            zeros: run.also.zeros,
            cublas,
            turns: run.turns,
            empty_launch: OnceCell::new(),
            current: None,
        })
    }

    /// A point before it is measured.
    fn begun(&self, wanted: &Wanted, job: &Job) -> Point {
        let problem = &wanted.problem;
        let ceilings = Ceilings::of(problem.precision, self.target, &self.here);
        let (parameters, text) = (job.parameters.clone(), job.text.clone());
        Point {
            ceiling: ceilings.map(|c| Ceiling {
                seconds: Roofline::under(problem, &c).seconds(),
                bytes_per_second: c.bytes_per_second(problem),
                flops_per_second: c.flops_per_second,
                bytes: Some(roofline::compulsory_bytes(problem)),
            }),
            ..Point::unmeasured(wanted.key.clone(), parameters, job.chosen_by, text, problem.flops())
        }
    }

    /// Measures a point, whatever comes of it.
    fn finished(&mut self, mut point: Point, wanted: &Wanted, job: &Job) -> Point {
        if let Err((status, because)) = self.measure(wanted, job, &mut point) {
            (point.status, point.message) = (status, Some(because.to_string()));
        }
        point
    }

    /// Verifies a kernel at a short length and at its own, times it and cuBLAS, and verifies it again.
    fn measure(&mut self, wanted: &Wanted, job: &Job, point: &mut Point) -> Result<(), (Status, Diagnosis)> {
        let crashed = |d: Diagnosis| (Status::Runtime, d);
        let problem = wanted.problem;
        let mut current = match self.current.take() {
            Some(current) if current.problem == problem => current,
            _ => Current { problem, stages: self.stages(wanted).map_err(crashed)?, cublas: None },
        };
        let outcome = self.measure_on(&mut current, job, point);
        // Operands that have become zeros are of no use to the next point.
        self.current = (!self.zeros).then_some(current);
        outcome
    }

    fn measure_on(
        &self,
        current: &mut Current,
        job: &Job,
        point: &mut Point,
    ) -> Result<(), (Status, Diagnosis)> {
        let crashed = |d: Diagnosis| (Status::Runtime, d);
        let stages = &mut current.stages;
        let executable = Executable::new(self.device, job.program.clone(), job.source.clone(), self.target);
        let launch_size = i64::from(self.device.info().sm_count);
        let mut last: Option<Prepared> = None;
        for stage in stages.iter_mut() {
            let binding = Binding::new(&job.program, &stage.problem, launch_size)
                .map_err(|d| (Status::Constraints, d))?;
            let prepared =
                executable.prepare(self.device, &binding, &stage.sets).map_err(|d| (Status::Compile, d))?;
            stage.verify(&prepared, &self.stream, job.multiplications).map_err(status)?;
            last = Some(prepared);
        }
        let (Some(whole), Some(prepared)) = (stages.last_mut(), last) else { return Ok(()) };
        point.registers = executable.launches(&prepared).iter().filter_map(|l| l.registers).max();
        let cublas = match self.cublas && current.cublas.is_none() {
            true => cublas::Product::new(self.device, &whole.problem).map_err(|e| crashed(diagnosis(e)))?,
            false => None,
        };
        point.copies = Some(whole.sets.len());
        if point.key.figure == Figure::Short {
            point.empty_launch = Some(self.empty_launch().map_err(|e| crashed(diagnosis(e)))?);
        }
        let mut kinds: Vec<Box<Enqueue>> = vec![Box::new(|s, call| prepared.enqueue(s, call))];
        if let Some(product) = &cublas {
            kinds.push(Box::new(|s, call| product.enqueue(s, &whole.sets, call)));
        }
        let options = TurnOptions { fewest_launches: whole.sets.len(), ..self.turns };
        let paces = turns::in_turn(&self.stream, &options, &mut kinds);
        drop(kinds);
        let mut paces = paces.map_err(|e| crashed(diagnosis(e)))?.into_iter();
        let ours = paces.next();
        let mut beside = paces.next();
        if let (Some(found), Some(product), Some(_)) = (&mut beside, &cublas, job.source.fetches) {
            // Where device memory gave it as few bytes at a time as our kernel wants, it may have been slower for that.
            self.device.fetch_at_most(None).map_err(|e| crashed(diagnosis(e)))?;
            let usual = turns::alone(&self.stream, &options, |s, call| product.enqueue(s, &whole.sets, call));
            *found = faster(found, &usual.map_err(|e| crashed(diagnosis(e)))?);
        }
        current.cublas = beside.or(current.cublas.take());
        if let Some(cublas) = &current.cublas {
            (point.cublas, point.cublas_rested) =
                (Some(seconds(&cublas.sustained)), Some(seconds(&cublas.rested)));
        }
        // Timing may bring out what a single run does not: what is left in scratch memory, say.
        whole.verify(&prepared, &self.stream, job.multiplications).map_err(status)?;
        if let Some(ours) = &ours {
            (point.seconds, point.rested) = (Some(seconds(&ours.sustained)), Some(seconds(&ours.rested)));
        }
        if let Some(space) = &self.cached {
            let sets = whole.in_cache(&self.stream, space).map_err(crashed)?;
            let paces = self.alone(&executable, job, &whole.problem, &sets).map_err(crashed)?;
            (point.cached, point.cached_rested) =
                (Some(seconds(&paces.sustained)), Some(seconds(&paces.rested)));
        }
        if self.zeros {
            whole.sets.clear_operands(&self.stream).map_err(|e| crashed(diagnosis(e)))?;
            let paces = self.alone(&executable, job, &whole.problem, &whole.sets).map_err(crashed)?;
            (point.zeros, point.zeros_rested) =
                (Some(seconds(&paces.sustained)), Some(seconds(&paces.rested)));
        }
        Ok(())
    }

    /// Times a kernel by itself on these matrices.
    fn alone(
        &self,
        executable: &Executable,
        job: &Job,
        problem: &Problem,
        sets: &OperandSets,
    ) -> Result<Paces, Diagnosis> {
        let binding = Binding::new(&job.program, problem, i64::from(self.device.info().sm_count))?;
        let prepared = executable.prepare(self.device, &binding, sets)?;
        turns::alone(&self.stream, &self.turns, |s, call| prepared.enqueue(s, call)).map_err(diagnosis)
    }

    /// How long an empty launch takes: measured once, when it is first asked for.
    fn empty_launch(&self) -> warpwright_cuda::Result<Seconds> {
        if let Some(known) = self.empty_launch.get() {
            return Ok(*known);
        }
        let kernel = measure::empty(self.device)?;
        let config = LaunchConfig::new([1, 1, 1], [32, 1, 1]);
        let launch = |s: &Stream, _| kernel.launch(s, &config, &[]);
        let paces = turns::alone(&self.stream, &self.turns, launch)?;
        Ok(*self.empty_launch.get_or_init(|| seconds(&paces.rested)))
    }

    /// The product at a short length, and at its own where that is another.
    fn stages(&self, wanted: &Wanted) -> Result<Vec<Stage>, Diagnosis> {
        let long = wanted.problem;
        let short = shortened(wanted.family()?, &long)?;
        if may_repeat(self.device, &short, &long)? {
            return Stage::repeated(&self.stream, &self.space, short, long).map(Vec::from);
        }
        let whole = Stage::random(self.device, long, true)?;
        if short == long {
            return Ok(vec![whole]);
        }
        Ok(vec![Stage::random(self.device, short, false)?, whole])
    }

    /// Some errors spoil everything that comes after them.
    fn still_works(&self, point: &Point) -> Result<(), Diagnosis> {
        if point.status != Status::Runtime || self.stream.synchronize().is_ok() {
            return Ok(());
        }
        let Key { operation, dtype, size, .. } = &point.key;
        Err(Diagnosis::new("the GPU cannot be used any more by this process")
            .because(format!(
                "the kernel of {operation} {dtype} {}x{}x{} has spoilt it: {}",
                size.m,
                size.n,
                size.k,
                point.message.as_deref().unwrap_or_default()
            ))
            .instead("run this again with the same --record to go on with the next point"))
    }
}

fn status(fault: Fault) -> (Status, Diagnosis) {
    match fault {
        Fault::Crashed(diagnosis) => (Status::Runtime, diagnosis),
        Fault::Wrong(diagnosis) => (Status::Correctness, diagnosis),
    }
}

/// The faster of two measurements of the same, each at its pace.
fn faster(one: &Paces, other: &Paces) -> Paces {
    let of = |pace: fn(&Paces) -> &Timing| {
        let [one, other] = [one, other].map(pace);
        if other.median < one.median { other.clone() } else { one.clone() }
    };
    Paces { rested: of(|p| &p.rested), sustained: of(|p| &p.sustained) }
}

fn seconds(timing: &Timing) -> Seconds {
    Seconds { median: timing.median, quartiles: timing.quartiles, samples: timing.samples.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_measurements_the_faster_counts_at_each_pace() {
        let paces = |rested: f64, sustained: f64| {
            let [rested, sustained] = [rested, sustained].map(|t| Timing::of(vec![t, t, 2.0 * t], 8));
            Paces { rested, sustained }
        };
        assert_eq!(faster(&paces(1.0, 4.0), &paces(2.0, 3.0)), paces(1.0, 3.0));
        assert_eq!(faster(&paces(2.0, 3.0), &paces(2.0, 3.0)), paces(2.0, 3.0));
    }
}
