//! An explanation as text for people.

use std::collections::BTreeMap;

use warpwright_core::model::time::Terms;

use super::findings::Finding;
use super::pictures::Picture;
use super::{Applied, CountersPart, Explanation, LaunchPart};
use crate::report::ChosenBy;
use crate::report::number::{bytes, count, flops_per_second, seconds};
use crate::report::table::{Column, numbers, render, words};

/// Pictures that are shown, at most.
const PICTURES: usize = 2;

impl Explanation {
    /// All of it.
    pub fn describe(&self) -> String {
        let mut parts = vec![self.head()];
        parts.push(self.speed());
        parts.push(self.stalls());
        for (number, launch) in self.launches.iter().enumerate() {
            let which = if self.launches.len() > 1 { format!(", launch {number}") } else { String::new() };
            parts.push(launch_text(launch, &which));
        }
        parts.extend(self.roofline_text());
        parts.extend(self.mix());
        parts.push(self.findings_text());
        parts.push(self.suggestions_text());
        parts.join("\n\n")
    }

    fn head(&self) -> String {
        let mut lines = vec![format!("{}: {} on {}", self.kernel.name, self.problem, self.gpu)];
        if !self.kernel.parameters.is_empty() {
            lines.push(format!("  with     {}", self.kernel.parameters));
        }
        let rate = flops_per_second(self.tflops * 1e12);
        lines.push(format!("  time     {}, {rate} (modelled)", seconds(self.seconds)));
        if let Some(measured) = &self.measured {
            lines.push(format!("           {} (measured on {})", seconds(measured.seconds), measured.gpu));
        }
        if let Some(r) = &self.roofline {
            lines.push(format!(
                "  roofline {} by {}, {:.2} of the time (modelled)",
                seconds(r.seconds),
                r.limiter,
                r.seconds / self.seconds
            ));
        }
        lines.push(format!("  limiter  {}", self.because));
        lines.join("\n")
    }

    fn speed(&self) -> String {
        let rows: Vec<Vec<String>> = self
            .speed_of_light
            .iter()
            .map(|t| vec![t.name.to_string(), t.term.to_string(), seconds(t.seconds), percent(t.part)])
            .collect();
        let columns = [words("modelled"), words("term"), numbers("busy"), numbers("of the time")];
        section("GPU Speed Of Light Throughput", &table(&columns, &rows))
    }

    fn stalls(&self) -> String {
        let rows: Vec<Vec<String>> = self
            .stalls
            .iter()
            .map(|s| vec![s.name.to_string(), s.about.to_string(), percent(s.share), bar(s.share)])
            .collect();
        let columns = [words("stall (modelled)"), words("here"), numbers("share"), words("")];
        section("Warp State Statistics", &table(&columns, &rows))
    }

    fn roofline_text(&self) -> Option<String> {
        let r = self.roofline.as_ref()?;
        let lines = [
            format!(
                "compulsory  {:.1} operations for each of {} that have to move",
                r.compulsory_intensity,
                bytes(r.compulsory_bytes as u64)
            ),
            format!(
                "actual      {:.1} operations for each of {} that do (modelled)",
                r.actual_intensity,
                bytes(r.actual_bytes as u64)
            ),
            format!(
                "ceilings    {} and {:.0} GB/s, which meet at {:.1} operations for each byte",
                flops_per_second(r.flops_per_second),
                r.bytes_per_second / 1e9,
                r.flops_per_second / r.bytes_per_second
            ),
        ];
        Some(section("Roofline", &indented(&lines.join("\n"))))
    }

    fn mix(&self) -> Option<String> {
        let machine = self.machine_code.as_ref()?;
        let one = |m: &super::Machine| {
            let part = if m.part == "loop" { "the loop that multiplies most" } else { "the whole kernel" };
            let spilled = if m.spilled_bytes > 0 {
                format!(", {} spilled", bytes(m.spilled_bytes.into()))
            } else {
                String::new()
            };
            let rows: Vec<Vec<String>> = m
                .mix
                .iter()
                .map(|g| {
                    let named = g.operations.iter().take(4).map(|(name, n)| format!("{n} {name}"));
                    vec![
                        g.name.to_string(),
                        g.count.to_string(),
                        percent(g.part),
                        named.collect::<Vec<_>>().join(", "),
                    ]
                })
                .collect();
            let columns = [words("kind"), numbers("count"), numbers("part"), words("most of them")];
            format!(
                "  {}, {} by NVRTC {}: {} registers{spilled}; {} of {} instructions, {part}\n{}",
                m.kernel,
                m.arch,
                m.compiler,
                m.registers,
                m.counted,
                m.instructions,
                table(&columns, &rows)
            )
        };
        let all: Vec<String> = machine.iter().map(one).collect();
        Some(section("Instruction Mix, counted in machine code", &all.join("\n\n")))
    }

    fn findings_text(&self) -> String {
        let mut drawn = 0;
        let mut lines = Vec::new();
        for finding in &self.findings {
            lines.push(format!("  {} | {}: {}", finding.section, finding.name, finding.text));
            if let Some(place) = &finding.place {
                lines.push(format!("      line {}: {}", place.line, place.statement));
            }
            if !finding.consequence.is_empty() {
                lines.push(format!("      {}", finding.consequence));
            }
            if let Some(picture) = self.picture(finding).filter(|_| drawn < PICTURES) {
                drawn += 1;
                lines.extend(picture.text().lines().map(|l| format!("        {l}")));
            }
        }
        section("Findings (modelled)", &lines.join("\n"))
    }

    /// The picture of the access that a finding is about.
    pub(super) fn picture(&self, finding: &Finding) -> Option<Picture> {
        let site = self.access(finding)?;
        Some(Picture::of(site.site.memory, site.site.sample.as_ref()?))
    }

    /// The access that a finding is about.
    pub(super) fn access(&self, finding: &Finding) -> Option<&super::AccessPart> {
        let place = finding.place.as_ref()?;
        let near = |a: &&super::AccessPart| a.line == place.line && a.wasteful;
        let accesses = &self.launches.get(finding.launch)?.accesses;
        accesses.iter().filter(near).find(|a| (a.passes_per_request - finding.value).abs() < 1e-9)
    }

    fn suggestions_text(&self) -> String {
        if self.kernel.schedule.is_none() {
            return section(
                "What would change it",
                "  nothing is known of how a program from a file was made; write a schedule",
            );
        }
        if self.suggestions.is_empty() {
            let text = format!("  none of {} edits that were tried helps by the model", self.edits_tried);
            return section("What would change it", &text);
        }
        let mut lines = Vec::new();
        for s in &self.suggestions {
            let measured = match (&self.measured, s.measured_seconds) {
                (Some(before), Some(after)) => format!(
                    "; {} (measured, {:+.1} %)",
                    seconds(after),
                    100.0 * (after / before.seconds - 1.0)
                ),
                _ => String::new(),
            };
            lines.push(format!(
                "  {}  {}\n     {}, {:.1} % less (modelled){measured}: {} {} instead of {}",
                s.number,
                s.text,
                seconds(s.seconds),
                100.0 * s.gain,
                s.reduces,
                seconds(s.reduced[1]),
                seconds(s.reduced[0])
            ));
            const SHOWN: usize = 6;
            lines.extend(s.steps.iter().take(SHOWN).map(|step| format!("       {step}")));
            if s.steps.len() > SHOWN {
                lines.push(format!("       and {} more", s.steps.len() - SHOWN));
            }
        }
        let heading = format!(
            "What would change it: {} of {} edits of the schedule, each tried by the model; --apply N prints one",
            self.suggestions.len(),
            self.edits_tried
        );
        if self.kernel.chosen_by == ChosenBy::Wisdom {
            lines.push(format!("  {MEASURED_BEST}"));
        }
        section(&heading, &lines.join("\n"))
    }
}

/// A launch: how full the GPU is, what is counted, and where the bytes go.
fn launch_text(launch: &LaunchPart, which: &str) -> String {
    let o = &launch.occupancy;
    let limited: Vec<String> = o.limiters.iter().map(|l| l.replace('_', " ")).collect();
    let estimated = if launch.registers_estimated { " (estimated)" } else { " (the compiler's)" };
    let occupancy = [
        format!(
            "resident {} of {} warps, {} blocks, limited by {} (modelled)",
            o.warps_per_sm,
            o.max_warps_per_sm,
            o.blocks_per_sm,
            limited.join(", ")
        ),
        format!("registers {}{estimated}", launch.registers),
    ];
    let grid = [
        format!(
            "{} blocks of {} threads with {} shared, in {} (modelled)",
            count(launch.blocks.round() as u64),
            launch.threads,
            bytes(launch.shared_bytes as u64),
            rounds(launch.rounds)
        ),
        format!("the busiest multiprocessor has {:.2} times the mean to do (modelled)", launch.imbalance),
    ];
    let moved = |b: f64| bytes(b.max(0.0) as u64);
    let rows: Vec<Vec<String>> = launch
        .traffic
        .iter()
        .map(|t| {
            vec![
                t.buffer.clone(),
                moved(t.compulsory),
                moved(t.device_memory),
                moved(t.second_level_cache),
                moved(t.requested),
            ]
        })
        .collect();
    let columns = [
        words("bytes (modelled)"),
        numbers("least"),
        numbers("device memory"),
        numbers("L2 cache"),
        numbers("requested"),
    ];
    [
        section(
            &format!("Memory Workload Analysis{which}"),
            &format!("{}\n\n{}", table(&columns, &rows), counters(&launch.counters)),
        ),
        section(&format!("Occupancy{which}"), &indented(&occupancy.join("\n"))),
        section(&format!("Launch Statistics{which}"), &indented(&grid.join("\n"))),
    ]
    .join("\n\n")
}

/// Requests and what they take, a line for each kind.
fn counters(c: &CountersPart) -> String {
    let columns = [words("requests (modelled)"), numbers("number"), numbers("of each"), words("")];
    let row = |name: &str, requests: f64, passes: f64, unit: &str| {
        (requests > 0.0).then(|| {
            vec![
                name.to_string(),
                count(requests.round() as u64),
                format!("{:.2}", passes / requests),
                unit.to_string(),
            ]
        })
    };
    let rows: Vec<Vec<String>> = [
        row("global loads", c.global_load_requests, c.global_load_sectors, "sectors"),
        row("global stores", c.global_store_requests, c.global_store_sectors, "sectors"),
        row("shared loads", c.shared_load_requests, c.shared_load_wavefronts, "wavefronts"),
        row("shared stores", c.shared_store_requests, c.shared_store_wavefronts, "wavefronts"),
    ]
    .into_iter()
    .flatten()
    .collect();
    table(&columns, &rows)
}

impl Applied {
    /// The edited schedule, with what was said of it as comments: a file that `explain` and `gemm --schedule` read.
    pub fn describe(&self) -> String {
        let mut lines = vec![format!("# {}", self.suggestion.text)];
        if let super::suggestions::Made::Choice(choice) = &self.suggestion.made {
            lines.push(format!("# a kernel of a family: --param {}", choice.to_string().replace(' ', ",")));
        }
        let [before, after] = self.seconds;
        lines.push(format!(
            "# time {} instead of {} (modelled); limiter {} instead of {}",
            seconds(after),
            seconds(before),
            self.limiter[1],
            self.limiter[0]
        ));
        for (name, about) in Terms::NAMES {
            let [before, after] = self.terms.each_ref().map(|t| t[name]);
            lines.push(format!(
                "# {name:<10} {:>9} instead of {:>9}  {about}",
                seconds(after),
                seconds(before)
            ));
        }
        let sums = self.counters.each_ref().map(|c| sums(c));
        for (name, after) in &sums[1] {
            let before = sums[0].get(name).copied().unwrap_or(0.0);
            lines.push(format!(
                "# {name:<24} {:>16} instead of {:>16}",
                count(after.round() as u64),
                count(before.round() as u64)
            ));
        }
        lines.push(self.suggestion.schedule.trim_end().to_string());
        lines.join("\n")
    }
}

/// The counters of all launches together, by name.
fn sums(launches: &[CountersPart]) -> BTreeMap<&'static str, f64> {
    let mut sums = BTreeMap::new();
    for c in launches {
        for (name, value) in [
            ("global load requests", c.global_load_requests),
            ("global load sectors", c.global_load_sectors),
            ("global store requests", c.global_store_requests),
            ("global store sectors", c.global_store_sectors),
            ("shared load requests", c.shared_load_requests),
            ("shared load wavefronts", c.shared_load_wavefronts),
            ("shared store requests", c.shared_store_requests),
            ("shared store wavefronts", c.shared_store_wavefronts),
            ("multiply-adds", c.multiply_adds),
            ("barriers", c.barriers),
        ] {
            *sums.entry(name).or_insert(0.0) += value;
        }
    }
    sums
}

fn section(heading: &str, body: &str) -> String {
    format!("{heading}\n{body}")
}

fn table(columns: &[Column], rows: &[Vec<String>]) -> String {
    indented(&render(columns, rows))
}

fn indented(text: &str) -> String {
    text.lines().map(|l| format!("  {l}").trim_end().to_string()).collect::<Vec<_>>().join("\n")
}

/// What has to be said where somebody has measured, and the model promises more.
pub(super) const MEASURED_BEST: &str =
    "This kernel was measured to be the best of those tried; where the model promises more, it may be wrong.";

pub(super) fn rounds(number: f64) -> String {
    if number == 1.0 { "1 round".to_string() } else { format!("{number} rounds") }
}

pub(super) fn percent(part: f64) -> String {
    format!("{:.1} %", 100.0 * part)
}

fn bar(part: f64) -> String {
    "#".repeat((30.0 * part).round() as usize)
}
