//! Occupancy: what `occupancy --json` prints, as text for people, and as a picture.

use std::collections::BTreeMap;

use serde::Serialize;
use warpwright_core::latency;
use warpwright_core::occupancy::{
    self, Axis, Change, Demand, Limit, Occupancy, Point, Resource, curve, room, steps,
};
use warpwright_core::target::{Limits, Target};

use super::number::bytes;
use super::svg::{self, Chart, Line};
use super::table::{numbers, render, words};

/// The occupancy of one kernel on one GPU. Numbers are modelled: they follow from the GPU's limits by NVIDIA's rules.
#[derive(Clone, Debug, Serialize)]
pub struct OccupancyReport {
    /// The kernel, where it is one of ours: its registers are the compiler's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The GPU.
    pub gpu: &'static str,
    /// Its compute capability.
    pub compute_capability: String,
    /// How the numbers came about.
    pub kind: &'static str,
    /// Threads of a block.
    pub threads: u32,
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of shared memory that are declared.
    pub shared_static: u32,
    /// Bytes of shared memory that are asked for at launch.
    pub shared_dynamic: u32,
    /// Named barriers.
    pub barriers: u32,
    /// Whether the kernel may have more than 48 KiB of shared memory.
    pub opted_in: bool,
    /// The preferred carve-out in per cent; null is the largest.
    pub carveout: Option<u32>,
    /// Bytes of shared memory that the multiprocessor is set to.
    pub carveout_bytes: u32,
    /// Blocks that are resident on a multiprocessor.
    pub blocks_per_sm: u32,
    /// Warps that are.
    pub warps_per_sm: u32,
    /// Warps that could be.
    pub max_warps_per_sm: u32,
    /// The part of them, from 0 to 1.
    pub occupancy: f64,
    /// The first of what allows no more blocks.
    pub limiter: &'static str,
    /// All of it.
    pub limiters: Vec<&'static str>,
    /// Blocks that each resource allows; null where it sets no limit.
    pub limits: BTreeMap<&'static str, Option<u32>>,
    /// What the multiprocessor has of each resource, what a block takes, and what is left over.
    pub slack: BTreeMap<&'static str, Slack>,
    /// The most threads, registers and bytes of shared memory that a block can have without one less being resident.
    pub room: BTreeMap<&'static str, Option<u32>>,
    /// The least changes that each raise occupancy.
    pub suggestions: Vec<SuggestionReport>,
    /// What has to be done for the kernel to have its shared memory.
    pub notes: Vec<String>,
    /// What has to be under way to hide the latency of device memory; null where nobody measured it.
    pub latency: Option<LatencyReport>,
    /// Occupancy over each demand, where it is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub curves: Option<BTreeMap<&'static str, CurveReport>>,
    #[serde(skip)]
    demand: Demand,
    #[serde(skip)]
    all: &'static Limits,
}

/// What becomes of one resource.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Slack {
    /// What the multiprocessor has; null where it is not counted.
    pub available: Option<u64>,
    /// What one block takes.
    pub per_block: u64,
    /// What the resident blocks leave over.
    pub left: Option<u64>,
}

/// A change that raises occupancy.
#[derive(Clone, Debug, Serialize)]
pub struct SuggestionReport {
    /// In words.
    pub text: String,
    /// The numbers that change.
    pub changes: Vec<ChangeReport>,
    /// Blocks that are resident then.
    pub blocks_per_sm: u32,
    /// Warps that are.
    pub warps_per_sm: u32,
    /// Occupancy then.
    pub occupancy: f64,
}

/// A number that changes.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ChangeReport {
    /// Which.
    pub what: &'static str,
    /// What it is.
    pub from: u32,
    /// What it becomes.
    pub to: u32,
}

/// What Little's law asks of the resident threads.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct LatencyReport {
    /// Cycles of the boost clock that a load from device memory takes when nothing else is going on.
    pub dram_cycles: u32,
    /// Bytes that each multiprocessor has to have under way to read at full bandwidth: at least.
    pub bytes_in_flight_per_sm: f64,
    /// Bytes of them for each resident thread; null where none is.
    pub bytes_in_flight_per_thread: Option<f64>,
}

/// Occupancy over one demand.
#[derive(Clone, Debug, Serialize)]
pub struct CurveReport {
    /// Where the kernel stands.
    pub at: u32,
    /// A point wherever occupancy can change.
    pub points: Vec<CurvePoint>,
}

/// A point of a curve.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CurvePoint {
    /// Threads, registers or bytes.
    pub value: u32,
    /// Blocks that are resident on a multiprocessor.
    pub blocks_per_sm: u32,
    /// Warps that are.
    pub warps_per_sm: u32,
    /// The part of the warps that could be.
    pub occupancy: f64,
}

impl OccupancyReport {
    /// The occupancy of a kernel on a GPU.
    pub fn new(demand: &Demand, target: &'static Target) -> OccupancyReport {
        let limits = target.limits;
        let found = Occupancy::of(demand, limits);
        let slack = |limit: &Limit| {
            let left = found.left(limit.resource);
            (limit.resource.name(), Slack { available: limit.available, per_block: limit.per_block, left })
        };
        OccupancyReport {
            kernel: None,
            gpu: target.name,
            compute_capability: target.compute.to_string(),
            kind: "modelled",
            threads: demand.threads,
            registers: demand.registers,
            shared_static: demand.shared_static,
            shared_dynamic: demand.shared_dynamic,
            barriers: demand.barriers,
            opted_in: demand.opted_in,
            carveout: demand.carveout,
            carveout_bytes: found.carveout_bytes,
            blocks_per_sm: found.blocks,
            warps_per_sm: found.warps,
            max_warps_per_sm: found.warp_slots,
            occupancy: found.fraction(),
            limiter: found.limiter().name(),
            limiters: found.limiters().map(Resource::name).collect(),
            limits: found.limits.iter().map(|l| (l.resource.name(), l.blocks)).collect(),
            slack: found.limits.iter().map(slack).collect(),
            room: Axis::ALL.iter().map(|axis| (axis.name(), room(demand, limits, *axis))).collect(),
            suggestions: occupancy::suggestions(demand, limits).iter().map(suggestion).collect(),
            notes: notes(demand),
            latency: latency_report(target, found.blocks * demand.threads),
            curves: None,
            demand: *demand,
            all: limits,
        }
    }

    /// The same as that of a kernel with this name.
    #[must_use]
    pub fn of_kernel(self, name: &str) -> OccupancyReport {
        OccupancyReport { kernel: Some(name.to_string()), ..self }
    }

    /// The same with curves.
    #[must_use]
    pub fn with_curves(mut self) -> OccupancyReport {
        let one = |axis: Axis| {
            let points = self.curve(axis).into_iter().map(|point| self.point(point)).collect();
            (axis.name(), CurveReport { at: axis.value(&self.demand), points })
        };
        self.curves = Some(Axis::ALL.into_iter().map(one).collect());
        self
    }

    fn curve(&self, axis: Axis) -> Vec<Point> {
        curve(&self.demand, self.all, axis)
    }

    fn point(&self, point: Point) -> CurvePoint {
        CurvePoint {
            value: point.value,
            blocks_per_sm: point.blocks,
            warps_per_sm: point.warps,
            occupancy: f64::from(point.warps) / f64::from(self.max_warps_per_sm),
        }
    }

    /// The report in a few lines, for people.
    pub fn describe(&self) -> String {
        let shared = bytes(u64::from(self.shared_static) + u64::from(self.shared_dynamic));
        let name = self.kernel.as_ref().map(|k| format!("{k}: ")).unwrap_or_default();
        let mut lines = vec![
            format!(
                "{name}{} threads of {} registers, {shared} shared, on {} (compute capability {})",
                self.threads, self.registers, self.gpu, self.compute_capability
            ),
            format!(
                "  resident {} of {} warps in {}: occupancy {}",
                self.warps_per_sm,
                self.max_warps_per_sm,
                counted(self.blocks_per_sm, "block"),
                percent(self.occupancy)
            ),
            format!("  limit    {}", self.limiters.iter().map(|l| spoken(l)).collect::<Vec<_>>().join(", ")),
            format!("  carveout {}", bytes(self.carveout_bytes.into())),
            String::new(),
            indented(&self.table()),
            String::new(),
        ];
        if self.blocks_per_sm > 0 {
            lines.push(format!("  room     {}", self.rooms()));
        }
        match self.suggestions.as_slice() {
            [] if self.warps_per_sm == self.max_warps_per_sm => {
                lines.push("  step up  none: every warp slot is taken".to_string());
            }
            [] => lines.push("  step up  none by one of these numbers".to_string()),
            some => lines.extend(some.iter().map(|s| format!("  step up  {}", s.text))),
        }
        if let Some(of) = &self.latency {
            let each = match of.bytes_in_flight_per_thread {
                Some(each) => format!(", {each:.1} B for each resident thread"),
                None => String::new(),
            };
            lines.push(format!(
                "  latency  {} cycles: {} under way on each multiprocessor{each} keep device memory busy",
                of.dram_cycles,
                bytes(of.bytes_in_flight_per_sm.round() as u64)
            ));
        }
        lines.extend(self.notes.iter().map(|note| format!("  note     {note}")));
        if self.curves.is_some() {
            lines.extend(Axis::ALL.iter().map(|axis| format!("\n{}", indented(&self.steps(*axis)))));
        }
        lines.join("\n")
    }

    /// What each resource allows, and what is left over.
    fn table(&self) -> String {
        let columns = [
            words("resource"),
            numbers("blocks allowed"),
            numbers("has"),
            numbers("a block takes"),
            numbers("left over"),
        ];
        let row = |resource: Resource| {
            let (name, slack) = (resource.name(), &self.slack[resource.name()]);
            let amount = |n: u64| match resource {
                Resource::SharedMemory => bytes(n),
                _ => n.to_string(),
            };
            let or_dash = |n: Option<u64>| n.map_or_else(|| "-".to_string(), amount);
            vec![
                spoken(name),
                self.limits[name].map_or_else(|| "any".to_string(), |n| n.to_string()),
                or_dash(slack.available),
                amount(slack.per_block),
                or_dash(slack.left),
            ]
        };
        render(&columns, &Resource::ALL.map(row))
    }

    /// How much more a block could have for nothing.
    fn rooms(&self) -> String {
        let most = |axis: Axis| self.room[axis.name()].unwrap_or(axis.value(&self.demand));
        format!(
            "as many blocks with up to {} registers, or {} shared, or {} threads",
            most(Axis::Registers),
            bytes(most(Axis::SharedMemory).into()),
            most(Axis::Threads)
        )
    }

    /// A curve as a table of its steps, with today's marked.
    fn steps(&self, axis: Axis) -> String {
        const LONGEST: u32 = 32;
        let heading = match axis {
            Axis::Threads => "threads",
            Axis::Registers => "registers",
            Axis::SharedMemory => "shared memory",
        };
        let columns =
            [numbers(heading), numbers("blocks"), numbers("warps"), numbers("occupancy"), words("")];
        let (at, points) = (axis.value(&self.demand), self.curve(axis));
        let shown = |value: u32| match axis {
            Axis::SharedMemory => bytes(value.into()),
            _ => value.to_string(),
        };
        let all = steps(&points);
        let row = |(number, (first, last)): (usize, &(Point, Point))| {
            let from = if number == 0 { 0 } else { all[number - 1].1.value + 1 };
            let here = (from..=last.value).contains(&at);
            let range = if first.value == last.value {
                shown(first.value)
            } else {
                format!("{} to {}", shown(first.value), shown(last.value))
            };
            let blocks = if first.blocks == last.blocks {
                first.blocks.to_string()
            } else {
                format!("{} to {}", first.blocks, last.blocks)
            };
            let bar = "#".repeat((first.warps * LONGEST / self.max_warps_per_sm) as usize);
            vec![
                range,
                blocks,
                first.warps.to_string(),
                percent(self.point(*first).occupancy),
                if here { format!("{bar} <- here") } else { bar },
            ]
        };
        render(&columns, &all.iter().enumerate().map(row).collect::<Vec<_>>())
    }

    /// The curves as a picture of their own, one below the other, with today's points marked.
    pub fn svg(&self) -> String {
        let title = format!(
            "Warps per multiprocessor on {}: {} threads, {} registers, {} B shared: {} of {}",
            self.gpu,
            self.threads,
            self.registers,
            u64::from(self.shared_static) + u64::from(self.shared_dynamic),
            self.warps_per_sm,
            self.max_warps_per_sm
        );
        svg::document(&title, &Axis::ALL.map(|axis| self.chart(axis).svg()))
    }

    /// The curves as pictures for a page, each with its title.
    pub fn pictures(&self) -> Vec<(String, String)> {
        let one = |axis: Axis| {
            let chart = self.chart(axis);
            (chart.label.clone(), chart.svg())
        };
        Axis::ALL.map(one).to_vec()
    }

    fn chart(&self, axis: Axis) -> Chart {
        let points = self.curve(axis);
        let most = points.last().map_or(1, |p| p.value);
        // A step is as wide as it is, and between two there is nothing to see.
        let corners = steps(&points).into_iter().flat_map(|(first, last)| [first, last]);
        let curve = corners.map(|p| (f64::from(p.value), f64::from(p.warps))).collect();
        let here = f64::from(axis.value(&self.demand));
        let here = vec![(here, 0.0), (here, f64::from(self.warps_per_sm))];
        let (label, unit, ticks): (&str, f64, &[u32]) = match axis {
            Axis::Threads => ("threads of a block", 1.0, &[128, 256, 512, 768, 1024]),
            Axis::Registers => ("registers of a thread", 1.0, &[32, 64, 96, 128, 168, 255]),
            Axis::SharedMemory => {
                ("KiB of shared memory of a block", 1024.0, &[0, 16, 32, 48, 64, 96, 128, 160, 192, 224])
            }
        };
        let ticks = ticks.iter().map(|t| (f64::from(*t) * unit, t.to_string()));
        let all = self.max_warps_per_sm;
        Chart {
            label: format!("warps per multiprocessor over {label}"),
            x: svg::Axis {
                label: label.to_string(),
                range: (0.0, f64::from(most)),
                logarithmic: false,
                ticks: ticks.filter(|(t, _)| *t <= f64::from(most)).collect(),
            },
            y: svg::Axis {
                label: "warps".to_string(),
                range: (0.0, f64::from(all)),
                logarithmic: false,
                ticks: (0..=4).map(|n| (f64::from(all * n) / 4.0, (all * n / 4).to_string())).collect(),
            },
            lines: vec![
                Line { name: "here".to_string(), points: here },
                Line { name: "warps".to_string(), points: curve },
            ],
        }
    }
}

fn suggestion(found: &occupancy::Suggestion) -> SuggestionReport {
    let change = |c: &Change| ChangeReport { what: c.what, from: c.from, to: c.to };
    let in_words = |c: &Change| match c.what {
        "shared_memory" => format!("{} shared instead of {}", bytes(c.to.into()), bytes(c.from.into())),
        "carveout" => format!("a carve-out of {} % instead of {} %", c.to, c.from),
        what => format!("{} {what} instead of {}", c.to, c.from),
    };
    let changes: Vec<String> = found.changes.iter().map(in_words).collect();
    let now = &found.occupancy;
    SuggestionReport {
        text: format!(
            "{}: {}, {} warps, {}",
            changes.join(" and "),
            counted(now.blocks, "block"),
            now.warps,
            percent(now.fraction())
        ),
        changes: found.changes.iter().map(change).collect(),
        blocks_per_sm: now.blocks,
        warps_per_sm: now.warps,
        occupancy: now.fraction(),
    }
}

fn notes(demand: &Demand) -> Vec<String> {
    let default = Limits::SHARED_PER_BLOCK_DEFAULT;
    let mut notes = Vec::new();
    if demand.shared() > default.into() && demand.opted_in {
        notes.push(format!(
            "more than {} of shared memory have to be opted in to before the launch \
             (cudaFuncAttributeMaxDynamicSharedMemorySize)",
            bytes(default.into())
        ));
    }
    if demand.shared_static > default {
        notes.push(format!(
            "the compiler refuses to declare more than {} of shared memory; ask for the rest at launch",
            bytes(default.into())
        ));
    }
    notes
}

fn latency_report(target: &Target, threads: u32) -> Option<LatencyReport> {
    let wanted = latency::bytes_in_flight_per_sm(target)?;
    Some(LatencyReport {
        dram_cycles: target.levels.dram.latency_cycles?.value,
        bytes_in_flight_per_sm: wanted,
        bytes_in_flight_per_thread: (threads > 0).then(|| wanted / f64::from(threads)),
    })
}

fn counted(number: u32, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

fn spoken(name: &str) -> String {
    name.replace('_', " ")
}

fn percent(part: f64) -> String {
    let percent = 100.0 * part;
    if percent.fract() == 0.0 { format!("{percent:.0} %") } else { format!("{percent:.1} %") }
}

fn indented(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|l| format!("  {l}").trim_end().to_string()).collect();
    lines.join("\n")
}
