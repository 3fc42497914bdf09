//! What is worth saying of a kernel, each finding under the name of the section in which Nsight Compute has it: with a number, the place
//! in the program, and what follows.

use serde::Serialize;
use warpwright_core::model::sites::{Memory, Site};
use warpwright_core::model::time::{LaunchTime, Time};
use warpwright_core::target::Target;

use super::limits;
use crate::report::number::{bytes, count, seconds};
use crate::report::occupancy::OccupancyReport;

/// Sections of Nsight Compute.
const SPEED_OF_LIGHT: &str = "GPU Speed Of Light Throughput";
const MEMORY: &str = "Memory Workload Analysis";
const OCCUPANCY: &str = "Occupancy";
const LAUNCH: &str = "Launch Statistics";
const SOURCE: &str = "Source Counters";
const STALLS: &str = "Warp State Statistics";

/// Something that was found.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// The section of Nsight Compute.
    pub section: &'static str,
    /// What it is, by its name there where it has one.
    pub name: &'static str,
    /// Of which launch, from 0.
    pub launch: usize,
    /// The number, and what it counts.
    pub value: f64,
    /// What the number counts.
    pub unit: &'static str,
    /// In words.
    pub text: String,
    /// Where in the program, if in one place.
    pub place: Option<Place>,
    /// What follows.
    pub consequence: String,
}

/// A place in the lowered program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Place {
    /// The line of its text, the first being 1.
    pub line: usize,
    /// What stands there.
    pub statement: String,
}

/// A launch with its accesses.
pub type Accesses<'a> = (&'a LaunchTime, &'a [Site], &'a OccupancyReport);

/// The findings, section by section; of launches that take less than a hundredth of the time nothing is said.
pub fn of(time: &Time, launches: &[Accesses<'_>], target: &Target) -> Vec<Finding> {
    let mut found = vec![Finding {
        section: SPEED_OF_LIGHT,
        name: "Bottleneck",
        launch: 0,
        value: limits::speed_of_light(time).iter().take(2).map(|t| 100.0 * t.part).fold(0.0, f64::max),
        unit: "per cent",
        text: bottleneck(time),
        place: None,
        consequence: String::new(),
    }];
    for (at, (launch, sites, occupancy)) in launches.iter().enumerate() {
        if launch.seconds < 0.01 * time.seconds {
            continue;
        }
        let mut of_launch = Vec::new();
        of_launch.extend(traffic(launch));
        of_launch.extend(resident(launch, occupancy));
        of_launch.extend(grid(launch, target));
        of_launch.extend(accesses(launch, sites));
        of_launch.extend(stalled(launch));
        found.extend(of_launch.into_iter().map(|f| Finding { launch: at, ..f }));
    }
    found
}

/// As Nsight Compute says it: above 60 % of one of both, that is the bottleneck, and below it is latency.
fn bottleneck(time: &Time) -> String {
    let all = limits::speed_of_light(time);
    let (compute, memory) = (100.0 * all[0].part, 100.0 * all[1].part);
    let both = format!("compute {compute:.0} %, memory {memory:.0} % of what the GPU sustains");
    match (compute >= 60.0, memory >= 60.0) {
        (true, true) => format!("compute and memory are well balanced: {both}"),
        (true, false) => format!("compute is more heavily used than memory: {both}"),
        (false, true) => format!("memory is more heavily used than compute: {both}"),
        (false, false) => format!("neither is used much, so latency is the limit: {both}"),
    }
}

/// Where the bytes go.
fn traffic(launch: &LaunchTime) -> Vec<Finding> {
    let least: f64 = launch.traffic.iter().map(|t| t.compulsory).sum();
    let ratio = launch.memory_bytes / least.max(1.0);
    if ratio < 1.1 || launch.terms.memory < 0.05 * launch.seconds {
        return Vec::new();
    }
    let most = launch
        .traffic
        .iter()
        .max_by(|a, b| (a.by_waves - a.compulsory).total_cmp(&(b.by_waves - b.compulsory)));
    let of = most.map_or(String::new(), |t| {
        format!(", most of it {}, {:.1} times", t.buffer, t.by_waves / t.compulsory.max(1.0))
    });
    vec![Finding {
        section: MEMORY,
        name: "Device Memory Traffic",
        launch: 0,
        value: ratio,
        unit: "times the least",
        text: format!("{} move where {} would do{of}", whole(launch.memory_bytes), whole(least)),
        place: None,
        consequence: format!("device memory alone takes {}", seconds(launch.terms.memory)),
    }]
}

/// How full the multiprocessors are.
fn resident(launch: &LaunchTime, occupancy: &OccupancyReport) -> Vec<Finding> {
    if occupancy.occupancy >= 0.5 {
        return Vec::new();
    }
    let limited: Vec<String> = occupancy.limiters.iter().map(|l| l.replace('_', " ")).collect();
    let step = match occupancy.suggestions.first() {
        Some(step) => format!("a step up is {}", step.text),
        None => "no single number would change it".to_string(),
    };
    let matters = if launch.shares.waits >= 0.05 {
        format!(
            "{:.0} % of what could be gained is in waits, which more warps would hide",
            100.0 * launch.shares.waits
        )
    } else {
        "little waits here for more warps".to_string()
    };
    let estimated = if launch.registers_estimated { " (estimated)" } else { "" };
    vec![Finding {
        section: OCCUPANCY,
        name: "Theoretical Occupancy",
        launch: 0,
        value: 100.0 * occupancy.occupancy,
        unit: "per cent",
        text: format!(
            "{} of {} warps are resident, limited by {}: {} registers of a thread{estimated}, {} shared of a block",
            occupancy.warps_per_sm,
            occupancy.max_warps_per_sm,
            limited.join(" and "),
            launch.registers,
            whole(launch.counts.shared_bytes as f64),
        ),
        place: None,
        consequence: format!("{matters}; {step}"),
    }]
}

/// Whether the grid fills the GPU.
fn grid(launch: &LaunchTime, target: &Target) -> Vec<Finding> {
    let (blocks, all) = (launch.counts.blocks, f64::from(target.sm_count.value));
    if blocks < all {
        return vec![Finding {
            section: LAUNCH,
            name: "Small Grid",
            launch: 0,
            value: blocks,
            unit: "blocks",
            text: format!("{blocks:.0} blocks for {all:.0} multiprocessors"),
            place: None,
            consequence: format!("{:.0} multiprocessors have nothing to do", all - blocks),
        }];
    }
    if launch.imbalance < 1.08 {
        return Vec::new();
    }
    vec![Finding {
        section: LAUNCH,
        name: "Tail Effect",
        launch: 0,
        value: launch.imbalance,
        unit: "times the mean",
        text: format!(
            "{} blocks on {all:.0} multiprocessors: the busiest has {:.2} times the mean to do",
            count(blocks.round() as u64),
            launch.imbalance
        ),
        place: None,
        consequence: format!(
            "up to {:.0} % of the time would go if all had as much",
            100.0 * (1.0 - 1.0 / launch.imbalance)
        ),
    }]
}

/// Whether the passes of an access are so many more than needed that it is a finding.
pub fn is_wasteful(launch: &LaunchTime, site: &Site) -> bool {
    let all = passes(launch, site.memory);
    // A sector more is what rows that begin anywhere cost, and little.
    site.passes > 1.2 * site.least && site.excess() > 0.005 * all
}

fn passes(launch: &LaunchTime, memory: Memory) -> f64 {
    let c = &launch.counts;
    match memory {
        Memory::Device => c.global_load_sectors + c.global_store_sectors,
        Memory::Shared => c.shared_load_wavefronts + c.shared_store_wavefronts,
    }
    .max(1.0)
}

/// Accesses that take more than they need, the most wasteful first.
fn accesses(launch: &LaunchTime, sites: &[Site]) -> Vec<Finding> {
    let mut wasteful: Vec<&Site> = sites.iter().filter(|site| is_wasteful(launch, site)).collect();
    let weight = |site: &Site| site.excess() / passes(launch, site.memory);
    wasteful.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
    wasteful.into_iter().map(|site| access(launch, site)).collect()
}

fn access(launch: &LaunchTime, site: &Site) -> Finding {
    let does = if site.writes { "store to" } else { "load of" };
    let (of_a_request, least) = (site.passes_of_a_request(), site.least_of_a_request());
    let part = 100.0 * site.excess() / passes(launch, site.memory);
    let (name, unit, text) = match site.memory {
        Memory::Device => (
            "Uncoalesced Global Accesses",
            "sectors of a request",
            format!(
                "the {does} {} takes {of_a_request:.1} sectors for a request, {least:.1} would do: {:.0} % of the bytes that move are wanted",
                site.buffer,
                100.0 * site.wanted / (32.0 * site.passes).max(1.0)
            ),
        ),
        Memory::Shared => (
            "Shared Memory Bank Conflicts",
            "wavefronts of a request",
            format!(
                "the {does} {} takes {of_a_request:.1} wavefronts for a request, {least:.1} without conflicts",
                site.buffer
            ),
        ),
    };
    let what = if site.memory == Memory::Device { "sectors" } else { "wavefronts" };
    let share = 100.0 * launch.shares.l1;
    Finding {
        section: SOURCE,
        name,
        launch: 0,
        value: of_a_request,
        unit,
        text,
        place: Some(Place { line: site.line, statement: site.statement.clone() }),
        consequence: format!(
            "{part:.0} % of all {what} are in excess here; {share:.0} % of what could be gained is in passes through first-level cache and shared memory"
        ),
    }
}

/// What warps wait for, where that is much.
fn stalled(launch: &LaunchTime) -> Vec<Finding> {
    let share = launch.shares.waits;
    if share < 0.1 {
        return Vec::new();
    }
    let w = &launch.waits;
    let all = w.sum().max(f64::MIN_POSITIVE);
    let parts = [
        (w.memory / all, "Long Scoreboard Stalls", "loads that nothing hides", launch.path.memory_waits),
        (w.barriers / all, "Barrier Stalls", "barriers", launch.path.barriers),
        (w.copies / all, "LG Throttle Stalls", "the issue of copies to shared memory", launch.path.copies),
        (w.loads / all, "Short Scoreboard Stalls", "loads from shared memory", launch.path.loads),
        (w.chains / all, "Wait Stalls", "the operation before, cycles in all", launch.path.chains),
    ];
    let (part, name, about, number) =
        parts.into_iter().fold((0.0, "", "", 0.0), |most, p| if p.0 > most.0 { p } else { most });
    vec![Finding {
        section: STALLS,
        name,
        launch: 0,
        value: 100.0 * share * part,
        unit: "per cent",
        text: format!(
            "a warp waits {} times for {about}, {:.0} % of all waits",
            count(number.round() as u64),
            100.0 * part
        ),
        place: None,
        consequence: format!(
            "{:.0} % of what could be gained is in waits for memory and at barriers",
            100.0 * share
        ),
    }]
}

fn whole(value: f64) -> String {
    bytes(value.max(0.0) as u64)
}
