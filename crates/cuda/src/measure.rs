//! How long launches take.
//!
//! A single launch is over before the host can say when it began, so launches are timed many at a time: twenty or
//! more are recorded in a CUDA graph, the graph is replayed back to back, and marks between the replays give one
//! sample each. What is enqueued is the caller's affair; it is told the launch's number, so that it can rotate
//! among operands that together exceed the second-level cache ([`rotation`]), as cold data would.
//!
//! [`cold`] times single launches instead, each after the cache was swept; [`crate::turns`] tells launches after a pause
//! from those that go on.

use crate::cache::CompileCache;
use crate::compile::{Options, Source};
use crate::device::Device;
use crate::error::Result;
use crate::graph::Graph;
use crate::memory::Buffer;
use crate::module::Kernel;
use crate::stream::{Event, Stream};

/// How much to measure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasureOptions {
    /// Launches per graph. Short launches get more, until a replay lasts [`MeasureOptions::replay_seconds`]; launches
    /// so long that the samples would not fit in [`MeasureOptions::seconds`] get fewer, down to one.
    pub launches: usize,
    /// How long a replay should last at least.
    pub replay_seconds: f64,
    /// How long to run before the first sample, for the clocks to settle.
    pub warm_up_seconds: f64,
    /// How long to sample.
    pub seconds: f64,
    /// The fewest samples, unless a single launch takes longer than all of them should: then that is the sample.
    pub min_samples: usize,
    /// The most samples.
    pub max_samples: usize,
}

impl Default for MeasureOptions {
    fn default() -> Self {
        Self {
            launches: 20,
            replay_seconds: 2e-3,
            warm_up_seconds: 0.05,
            seconds: 0.5,
            min_samples: 5,
            max_samples: 200,
        }
    }
}

impl MeasureOptions {
    /// For comparing candidates: a quick look.
    pub fn quick() -> Self {
        Self { warm_up_seconds: 0.004, seconds: 0.012, min_samples: 3, ..Self::default() }
    }
}

/// The seconds per launch, as a distribution.
#[derive(Debug, Clone, PartialEq)]
pub struct Timing {
    /// The middle of the samples.
    pub median: f64,
    /// The least of them.
    pub min: f64,
    /// The first and third quartile.
    pub quartiles: (f64, f64),
    /// Launches averaged in each sample.
    pub launches_per_sample: usize,
    /// The samples, in the order in which they were taken.
    pub samples: Vec<f64>,
}

impl Timing {
    /// Summarises samples of seconds per launch. There must be one at least.
    pub fn of(samples: Vec<f64>, launches_per_sample: usize) -> Self {
        let mut sorted = samples.clone();
        sorted.sort_by(f64::total_cmp);
        let at = |share| quantile(&sorted, share);
        Self { median: at(0.5), min: at(0.0), quartiles: (at(0.25), at(0.75)), launches_per_sample, samples }
    }
}

/// The value below which a share of sorted samples lies, interpolated.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = share * last as f64;
    let (low, part) = (place.floor() as usize, place.fract());
    sorted[low] + part * (sorted[(low + 1).min(last)] - sorted[low])
}

/// How many sets of operands to rotate among, so that they fill the second-level cache three times over.
pub fn rotation(set_bytes: usize, l2_bytes: usize) -> usize {
    (3 * l2_bytes).div_ceil(set_bytes.max(1)).clamp(1, 1024)
}

/// Times launches by replaying them from a graph. `enqueue` is given a launch's number, counted from 0.
pub fn graph(
    stream: &Stream,
    options: &MeasureOptions,
    mut enqueue: impl FnMut(&Stream, usize) -> Result<()>,
) -> Result<Timing> {
    // Once outside: whatever loads or allocates at first use does so now, and errors show before recording.
    enqueue(stream, 0)?;
    let before = stream.record()?;
    enqueue(stream, 1)?;
    let after = stream.record()?;
    stream.synchronize()?;
    let fewest = options.min_samples.max(1);
    let single = after.seconds_since(&before)?.max(1e-7);
    // Some libraries take seconds for products that should take microseconds: to ask them again teaches nothing, and
    // the host's part does not show in it.
    if single > 2.0 * options.seconds.max(0.5) {
        return Ok(Timing::of(vec![single], 1));
    }
    let affordable = (options.seconds / (single * fewest as f64)) as usize;
    let mut launches = options.launches.min(affordable).max(1);
    let mut graph = record(stream, launches, &mut enqueue)?;
    // The single launch was timed with the host's part in it; a replay tells how long one takes without.
    let mut estimate = replay(stream, &mut graph, 1)?[0].max(1e-7);
    if estimate < options.replay_seconds {
        let per_launch = estimate / launches as f64;
        launches =
            ((options.replay_seconds / per_launch).ceil() as usize).clamp(options.launches.max(1), 10_000);
        graph = record(stream, launches, &mut enqueue)?;
        estimate = replay(stream, &mut graph, 1)?[0].max(1e-7);
    }
    let times = |seconds: f64| (seconds / estimate) as usize;
    let warm_up = times(options.warm_up_seconds).min(1000);
    if warm_up > 0 {
        replay(stream, &mut graph, warm_up)?;
    }
    let count = times(options.seconds).clamp(fewest, options.max_samples.max(fewest));
    let samples = replay(stream, &mut graph, count)?;
    Ok(Timing::of(samples.into_iter().map(|s| s / launches as f64).collect(), launches))
}

/// So many launches as a graph.
pub(crate) fn record(
    stream: &Stream,
    launches: usize,
    enqueue: &mut (impl FnMut(&Stream, usize) -> Result<()> + ?Sized),
) -> Result<Graph> {
    let mut graph = stream.capture(|stream| (0..launches).try_for_each(|number| enqueue(stream, number)))?;
    graph.upload(stream)?;
    Ok(graph)
}

/// Seconds of each of `count` replays. They run back to back behind one untimed replay, so that the host's part
/// of a launch is hidden behind the GPU's work.
fn replay(stream: &Stream, graph: &mut Graph, count: usize) -> Result<Vec<f64>> {
    replay_behind(stream, graph, 1, count)
}

/// Seconds of each of `count` replays, back to back behind so many that are not timed.
pub(crate) fn replay_behind(
    stream: &Stream,
    graph: &mut Graph,
    untimed: usize,
    count: usize,
) -> Result<Vec<f64>> {
    for _ in 0..untimed {
        graph.launch(stream)?;
    }
    let mut marks = vec![stream.record()?];
    for _ in 0..count {
        graph.launch(stream)?;
        marks.push(stream.record()?);
    }
    stream.synchronize()?;
    marks.windows(2).map(|pair| pair[1].seconds_since(&pair[0])).collect()
}

/// Times single launches, each behind a sweep that writes more than the second-level cache holds.
///
/// A sample holds the gap between a mark and a launch as well, a few microseconds; and the sweep's own data is
/// still being written back while the launch begins. So this is the time of a launch on data not in the cache,
/// to be compared with other cold times only.
pub fn cold(
    stream: &Stream,
    options: &MeasureOptions,
    mut enqueue: impl FnMut(&Stream, usize) -> Result<()>,
) -> Result<Timing> {
    let sweep = Sweep::new(stream.device())?;
    let mut one = |number: usize| -> Result<(Event, Event)> {
        sweep.enqueue(stream)?;
        let before = stream.record()?;
        enqueue(stream, number)?;
        Ok((before, stream.record()?))
    };
    one(0)?;
    stream.synchronize()?;
    let (before, after) = one(0)?;
    stream.synchronize()?;
    let estimate = after.seconds_since(&before)?.max(1e-6);
    let fewest = options.min_samples.max(1);
    let count = ((options.seconds / estimate) as usize).clamp(fewest, options.max_samples.max(fewest));
    let marks: Vec<(Event, Event)> = (0..count).map(&mut one).collect::<Result<_>>()?;
    stream.synchronize()?;
    let samples = marks.iter().map(|(before, after)| after.seconds_since(before)).collect::<Result<_>>()?;
    Ok(Timing::of(samples, 1))
}

/// A kernel that does nothing: what a launch itself takes.
///
/// # Errors
/// No NVRTC to compile it.
pub fn empty(device: &Device) -> Result<Kernel> {
    let source = Source::new("empty.cu", "extern \"C\" __global__ void empty() {}");
    let options = Options::for_arch(device.info().arch());
    let compiled = CompileCache::standard().compile(&source, &options)?.compiled;
    device.load(&compiled.cubin)?.kernel("empty")
}

/// Memory twice the size of the second-level cache, to be written over.
struct Sweep {
    buffer: Buffer,
}

impl Sweep {
    fn new(device: &Device) -> Result<Self> {
        Ok(Self { buffer: device.alloc((2 * device.info().l2_bytes).max(1 << 20))? })
    }

    fn enqueue(&self, stream: &Stream) -> Result<()> {
        self.buffer.fill(stream, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::{Timing, rotation};

    #[test]
    fn the_summary_is_of_the_sorted_samples() {
        let timing = Timing::of(vec![5.0, 1.0, 4.0, 2.0, 3.0], 20);
        assert_eq!((timing.min, timing.median, timing.quartiles), (1.0, 3.0, (2.0, 4.0)));
        assert_eq!(timing.samples, [5.0, 1.0, 4.0, 2.0, 3.0]);
        assert_eq!(Timing::of(vec![1.0, 2.0], 1).median, 1.5);
        assert_eq!(Timing::of(vec![7.0], 1).quartiles, (7.0, 7.0));
    }

    #[test]
    fn rotated_operands_exceed_three_times_the_cache() {
        let l2 = 60 << 20;
        assert_eq!(rotation(1 << 20, l2), 180);
        assert_eq!(rotation(1 << 30, l2), 1);
        assert!(rotation(0, l2) <= 1024);
    }
}
