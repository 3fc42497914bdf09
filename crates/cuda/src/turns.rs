//! How long launches take after a pause and when they go on and on, several kinds of launches side by side.
//!
//! A GPU that has rested runs at its highest clock. What keeps its memory and its arithmetic busy at once brings it to its
//! limit of power within some ten milliseconds, and it slows down. So there are two times: *rested*, of short bursts with
//! a pause before each, and *sustained*, of launches without a pause.
//!
//! Kinds of launches that are to be compared take turns, so that none always finds the GPU warmer than the others:
//! bursts one after the other, the sustained runs there and back (A B, then B A), each behind a warm-up of its own.

use std::time::Duration;

use crate::error::Result;
use crate::graph::Graph;
use crate::measure::{Timing, record, replay_behind};
use crate::stream::Stream;

/// How much to measure of each kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TurnOptions {
    /// How long the GPU rests before a burst.
    pub pause_seconds: f64,
    /// How long a burst is.
    pub burst_seconds: f64,
    /// Bursts.
    pub bursts: usize,
    /// How long launches are sampled without a pause, half of it on the way there and half on the way back.
    pub sustained_seconds: f64,
    /// How long launches of a kind run before each of the two halves.
    pub warm_up_seconds: f64,
    /// How long the replay of a graph lasts at least; each is a sample.
    pub replay_seconds: f64,
    /// Launches of a replay at least, as far as they fit in a burst: as many as there are copies of operands to rotate
    /// among, so that a replay does not find in the second-level cache what the one before has left there.
    pub fewest_launches: usize,
    /// A launch that takes longer than this is its own only sample, at either pace.
    pub longest_seconds: f64,
}

impl Default for TurnOptions {
    fn default() -> Self {
        Self {
            pause_seconds: 0.12,
            burst_seconds: 0.018,
            bursts: 3,
            sustained_seconds: 0.25,
            warm_up_seconds: 0.05,
            replay_seconds: 3e-3,
            fewest_launches: 1,
            longest_seconds: 0.5,
        }
    }
}

impl TurnOptions {
    /// A look at many products: a third of the time, and a wider spread.
    pub fn quick() -> Self {
        Self {
            pause_seconds: 0.06,
            burst_seconds: 0.012,
            bursts: 2,
            sustained_seconds: 0.06,
            warm_up_seconds: 0.03,
            ..Self::default()
        }
    }
}

/// The seconds per launch at both paces.
#[derive(Debug, Clone, PartialEq)]
pub struct Paces {
    /// In short bursts, with a pause before each.
    pub rested: Timing,
    /// Without a pause.
    pub sustained: Timing,
}

/// Enqueues a launch of some kind, given its number.
pub type Enqueue<'a> = dyn FnMut(&Stream, usize) -> Result<()> + 'a;

/// Times each kind of launches at both paces. A closure is given a launch's number, counted from 0, so that it can
/// rotate among operands, as with [`crate::measure::graph`].
///
/// # Errors
/// What the driver says.
pub fn in_turn(stream: &Stream, options: &TurnOptions, kinds: &mut [Box<Enqueue<'_>>]) -> Result<Vec<Paces>> {
    let mut kinds =
        kinds.iter_mut().map(|enqueue| Kind::new(stream, options, enqueue)).collect::<Result<Vec<Kind>>>()?;
    for _ in 0..options.bursts.max(1) {
        for kind in &mut kinds {
            kind.burst(stream, options)?;
        }
    }
    for kind in &mut kinds {
        kind.half(stream, options)?;
    }
    for kind in kinds.iter_mut().rev() {
        kind.half(stream, options)?;
    }
    Ok(kinds.into_iter().map(Kind::paces).collect())
}

/// Times one kind of launches rested, in bursts alone.
///
/// # Errors
/// What the driver says.
pub fn rested(
    stream: &Stream,
    options: &TurnOptions,
    mut enqueue: impl FnMut(&Stream, usize) -> Result<()>,
) -> Result<Timing> {
    let mut kind = Kind::new(stream, options, &mut enqueue)?;
    kind.bursts(stream, options)?;
    Ok(timing(kind.rested, kind.launches))
}

/// Times one kind of launches at both paces.
///
/// # Errors
/// What the driver says.
pub fn alone(
    stream: &Stream,
    options: &TurnOptions,
    mut enqueue: impl FnMut(&Stream, usize) -> Result<()>,
) -> Result<Paces> {
    let mut kind = Kind::new(stream, options, &mut enqueue)?;
    kind.bursts(stream, options)?;
    kind.half(stream, options)?;
    kind.half(stream, options)?;
    Ok(kind.paces())
}

/// Launches of one kind, and what was found of them: seconds of replays.
struct Kind {
    /// The graph, and the seconds of one replay; none where a launch takes so long that it is the only sample.
    graph: Option<(Graph, f64)>,
    /// Launches of a replay.
    launches: usize,
    rested: Vec<f64>,
    sustained: Vec<f64>,
}

impl Kind {
    fn new(stream: &Stream, options: &TurnOptions, enqueue: &mut Enqueue) -> Result<Kind> {
        // Once outside: whatever loads or allocates at first use does so now, and errors show before recording.
        enqueue(stream, 0)?;
        let before = stream.record()?;
        enqueue(stream, 1)?;
        let after = stream.record()?;
        stream.synchronize()?;
        let single = after.seconds_since(&before)?.max(1e-7);
        if single > options.longest_seconds {
            return Ok(Kind { graph: None, launches: 1, rested: vec![single], sustained: vec![single] });
        }
        let mut launches = options.launches(single);
        let mut graph = record(stream, launches, enqueue)?;
        let mut estimate = replay_behind(stream, &mut graph, 1, 1)?[0].max(1e-7);
        // The single launch was timed with the host's part in it; a replay tells how long one takes without.
        let fitting = options.launches(estimate / launches as f64);
        if 4 * fitting > 5 * launches {
            launches = fitting;
            graph = record(stream, launches, enqueue)?;
            estimate = replay_behind(stream, &mut graph, 1, 1)?[0].max(1e-7);
        }
        Ok(Kind { graph: Some((graph, estimate)), launches, rested: Vec::new(), sustained: Vec::new() })
    }

    /// All bursts of a kind that has no others beside it.
    fn bursts(&mut self, stream: &Stream, options: &TurnOptions) -> Result<()> {
        (0..options.bursts.max(1)).try_for_each(|_| self.burst(stream, options))
    }

    /// A pause and a burst.
    fn burst(&mut self, stream: &Stream, options: &TurnOptions) -> Result<()> {
        let Some((graph, estimate)) = &mut self.graph else { return Ok(()) };
        stream.synchronize()?;
        std::thread::sleep(Duration::from_secs_f64(options.pause_seconds));
        let (untimed, timed) = burst(options.burst_seconds, *estimate);
        self.rested.extend(replay_behind(stream, graph, untimed, timed)?);
        Ok(())
    }

    /// A warm-up and half of what is sampled without a pause.
    fn half(&mut self, stream: &Stream, options: &TurnOptions) -> Result<()> {
        let Some((graph, estimate)) = &mut self.graph else { return Ok(()) };
        let replays = |seconds: f64| ((seconds / *estimate).ceil() as usize).clamp(1, 1000);
        let (untimed, timed) = (replays(options.warm_up_seconds), replays(options.sustained_seconds / 2.0));
        self.sustained.extend(replay_behind(stream, graph, untimed, timed)?);
        Ok(())
    }

    fn paces(self) -> Paces {
        let one = |samples| timing(samples, self.launches);
        Paces { rested: one(self.rested), sustained: one(self.sustained) }
    }
}

/// The seconds of a launch, by those of replays of so many.
fn timing(replays: Vec<f64>, launches: usize) -> Timing {
    Timing::of(replays.into_iter().map(|s| s / launches as f64).collect(), launches)
}

impl TurnOptions {
    /// Launches of a replay, one of which takes so long.
    fn launches(&self, each: f64) -> usize {
        let of_a_burst = (self.burst_seconds / each) as usize;
        let fewest = if self.fewest_launches <= of_a_burst { self.fewest_launches } else { 1 };
        ((self.replay_seconds / each).ceil() as usize).clamp(fewest.clamp(1, 10_000), 10_000)
    }
}

/// Untimed and timed replays of a burst: one first that hides the host's part, unless a replay is a burst of its own.
fn burst(burst_seconds: f64, replay: f64) -> (usize, usize) {
    let all = (burst_seconds / replay).round() as usize;
    if all <= 1 { (0, 1) } else { (1, all - 1) }
}

#[cfg(test)]
mod tests {
    use super::{TurnOptions, burst};

    #[test]
    fn a_burst_is_as_long_as_it_should_be_and_never_empty() {
        let TurnOptions { burst_seconds, replay_seconds, .. } = TurnOptions::default();
        assert_eq!(burst(burst_seconds, replay_seconds), (1, 5));
        assert_eq!(burst(burst_seconds, burst_seconds / 2.0), (1, 1));
        assert_eq!(burst(burst_seconds, burst_seconds), (0, 1));
        assert_eq!(burst(burst_seconds, 0.4), (0, 1), "a long launch is a burst of its own");
    }

    #[test]
    fn a_replay_lasts_as_long_as_it_should() {
        let options = TurnOptions::default();
        assert_eq!((options.launches(1e-3), options.launches(0.9e-3)), (3, 4));
        assert_eq!((options.launches(0.1), options.launches(1e-9)), (1, 10_000));
    }

    #[test]
    fn a_replay_goes_round_all_copies_where_a_burst_is_long_enough_for_that() {
        let options = TurnOptions { fewest_launches: 1000, ..TurnOptions::default() };
        assert_eq!(options.launches(4e-6), 1000, "of 4 ms");
        assert_eq!(options.launches(2e-6), 1500, "which are 3 ms");
        assert_eq!(options.launches(1e-4), 30, "a thousand would be a tenth of a second");
    }
}
