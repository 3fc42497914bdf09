//! How near to what the GPU can do: parts of the time that each of its pipes and memories is busy, what warps wait for,
//! and the limiter in one sentence.

use serde::Serialize;
use warpwright_core::model::time::{LaunchTime, Terms, Time};

use crate::report::number::seconds;

/// A line of the speed of light: how much of the time something would be busy if nothing else held it up.
#[derive(Clone, Debug, Serialize)]
pub struct Throughput {
    /// What it is called in Nsight Compute.
    pub name: &'static str,
    /// Which term of the model it is.
    pub term: &'static str,
    /// Seconds that it is busy.
    pub seconds: f64,
    /// The part of the time, from 0 to 1, of what kernels reach on the GPU.
    pub part: f64,
}

/// A reason for which warps stall, and its share of the time.
#[derive(Clone, Debug, Serialize)]
pub struct Stall {
    /// Nsight Compute's name of the reason that corresponds most nearly.
    pub name: &'static str,
    /// What it is here.
    pub about: &'static str,
    /// The term of the model that it is a part of.
    pub term: &'static str,
    /// The share, from 0 to 1; all of them add up to 1.
    pub share: f64,
}

/// The speed of light: compute and memory, each with what it is made of.
pub fn speed_of_light(time: &Time) -> Vec<Throughput> {
    let terms = &time.terms;
    let line = |name, term, seconds: f64| Throughput {
        name,
        term,
        seconds,
        part: (seconds / time.seconds.max(f64::MIN_POSITIVE)).min(1.0),
    };
    let greater = |name, pairs: &[(&'static str, f64)]| {
        let (term, seconds) = pairs.iter().fold(("", 0.0), |most, p| if p.1 >= most.1 { *p } else { most });
        line(name, term, seconds)
    };
    vec![
        greater("Compute (SM) Throughput", &[("arithmetic", terms.arithmetic), ("issue", terms.issue)]),
        greater("Memory Throughput", &[("l1", terms.l1), ("l2", terms.l2), ("memory", terms.memory)]),
        line("Math Pipes", "arithmetic", terms.arithmetic),
        line("Issue Slots", "issue", terms.issue),
        line("L1/TEX and Shared Memory", "l1", terms.l1),
        line("L2 Cache", "l2", terms.l2),
        line("DRAM", "memory", terms.memory),
    ]
}

/// What warps wait for, the largest share first; nothing that is less than a thousandth.
pub fn stalls(time: &Time) -> Vec<Stall> {
    let mut stalls: Vec<Stall> = Vec::new();
    let mut add = |name, about, term, share: f64| match stalls.iter_mut().find(|s| s.about == about) {
        Some(known) => known.share += share,
        None => stalls.push(Stall { name, about, term, share }),
    };
    for launch in &time.launches {
        let part = launch.seconds / time.seconds.max(f64::MIN_POSITIVE);
        let Terms { arithmetic, issue, l1, l2, memory, waits, launch: start } = launch.shares;
        let shared = part_of_shared(launch);
        let (all, of) = (launch.waits.sum().max(f64::MIN_POSITIVE), &launch.waits);
        add("Math Pipe Throttle", "multiply-adds", "arithmetic", part * arithmetic);
        add("Not Selected", "issue of instructions", "issue", part * issue);
        add("MIO Throttle", "passes through shared memory", "l1", part * l1 * shared);
        add(
            "LG Throttle",
            "passes of device memory through the first-level cache",
            "l1",
            part * l1 * (1.0 - shared),
        );
        add("Long Scoreboard", "traffic with the second-level cache", "l2", part * l2);
        add("Long Scoreboard", "traffic with device memory", "memory", part * memory);
        add("Long Scoreboard", "loads that nothing hides", "waits", part * waits * of.memory / all);
        add("Barrier", "barriers", "waits", part * waits * of.barriers / all);
        add("LG Throttle", "issue of copies to shared memory", "waits", part * waits * of.copies / all);
        add("Short Scoreboard", "loads from shared memory", "waits", part * waits * of.loads / all);
        add("Wait", "results of the operations before", "waits", part * waits * of.chains / all);
        add("none", "launches", "launch", part * start);
    }
    stalls.retain(|s| s.share >= 1e-3);
    stalls.sort_by(|a, b| b.share.total_cmp(&a.share));
    stalls
}

/// Which part of the passes through the first-level cache and shared memory is of shared memory.
fn part_of_shared(launch: &LaunchTime) -> f64 {
    let c = &launch.counts;
    let shared = c.shared_load_wavefronts + c.shared_store_wavefronts;
    shared / (shared + c.global_lines).max(f64::MIN_POSITIVE)
}

/// What bounds the kernel, in one sentence.
pub fn sentence(time: &Time) -> String {
    let about =
        |term: &str| Terms::NAMES.iter().find(|(name, _)| *name == term).map_or("", |(_, about)| about);
    let of = |values: [f64; 7]| Terms::NAMES.iter().zip(values).map(|((name, _), value)| (*name, value));
    let shares: Vec<(&str, f64)> = of(time.shares.values()).collect();
    let alone = |term: &str| of(time.terms.values()).find(|(name, _)| *name == term).map_or(0.0, |(_, s)| s);
    let next = shares
        .iter()
        .filter(|(name, _)| *name != time.limiter)
        .fold(("", 0.0), |most, s| if s.1 > most.1 { *s } else { most });
    let share = |term: &str| shares.iter().find(|(name, _)| *name == term).map_or(0.0, |(_, s)| 100.0 * s);
    let mut said = format!(
        "bound by {}: alone they take {} of {}, and {:.0} % of what could be gained is there (modelled)",
        about(time.limiter),
        seconds(alone(time.limiter)),
        seconds(time.seconds),
        share(time.limiter),
    );
    if next.1 >= 0.01 {
        said += &format!("; {:.0} % is in {}", 100.0 * next.1, about(next.0));
    }
    said
}
