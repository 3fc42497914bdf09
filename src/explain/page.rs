//! An explanation as one self-contained page: what is said first, then the pictures, then the numbers, and at last the texts that they
//! are about.

use super::findings::Finding;
use super::sass::Machine;
use super::suggestions::Suggestion;
use super::text::{MEASURED_BEST, percent, rounds};
use super::{Explanation, LaunchPart};
use crate::report::ChosenBy;
use crate::report::number::{bytes, count, flops_per_second, seconds};
use crate::report::page::{Size, document, escaped, figure, side_by_side, table};
use crate::report::roofline::{Ceiling, Point, Roofline, Series, Slope};
use crate::report::svg::Bars;

impl Explanation {
    /// The page.
    pub fn page(&self) -> String {
        let mut body = self.overview();
        body += &self.charts();
        body += &self.findings_section();
        body += &self.what_helps();
        for (number, launch) in self.launches.iter().enumerate() {
            let which = if self.launches.len() > 1 { format!(", launch {number}") } else { String::new() };
            body += &launch_section(launch, &which);
        }
        for machine in self.machine_code.iter().flatten() {
            body += &mix(machine);
        }
        body += &self.texts();
        document(&format!("{} explained", self.kernel.name), &body)
    }

    /// What there is to know first.
    fn overview(&self) -> String {
        let p = &self.problem;
        let rate = flops_per_second(self.tflops * 1e12);
        let mut said = format!(
            "<p>C = alpha op(A) op(B) + beta C, {}x{}x{}, {}, layout {}{}, on {}. Every number is the model's unless it says that it was \
             measured or counted: nothing ran.</p>\n<p><b>{}</b>, {rate}",
            p.m,
            p.n,
            p.k,
            escaped(p.dtype),
            escaped(&p.layout),
            p.particulars(),
            escaped(self.gpu),
            seconds(self.seconds),
        );
        if let Some(r) = &self.roofline {
            said += &format!(
                "; the least is {} by {}, {:.2} of it",
                seconds(r.seconds),
                r.limiter,
                r.seconds / self.seconds
            );
        }
        said += &format!(". The kernel is {}.</p>\n", escaped(&self.because));
        if let Some(m) = &self.measured {
            said += &format!("<p>Measured on {}: {}.</p>\n", escaped(&m.gpu), seconds(m.seconds));
        }
        if !self.kernel.parameters.is_empty() {
            said += &format!("<p class=\"quiet\">{}</p>\n", escaped(&self.kernel.parameters.to_string()));
        }
        said
    }

    fn charts(&self) -> String {
        let busy = self.speed_of_light.iter().map(|t| (t.name.to_string(), t.part, percent(t.part)));
        let busy = Bars {
            label: "parts of the time that pipes and memories are busy".to_string(),
            bars: busy.collect(),
            reference: Some(1.0),
        };
        let stalls =
            self.stalls.iter().map(|s| (format!("{}, {}", s.name, s.term), s.share, percent(s.share)));
        let stalls = Bars {
            label: "shares of what warps wait for".to_string(),
            bars: stalls.collect(),
            reference: None,
        };
        let mut figures = vec![
            figure(
                "GPU Speed Of Light Throughput",
                "of the time, if nothing else held it up; modelled",
                &[],
                &busy.svg(),
            ),
            figure(
                "Stalls",
                "shares of what could be gained, by reason and term of the model; modelled",
                &[],
                &stalls.svg(),
            ),
        ];
        figures.extend(self.roofline_figure());
        side_by_side(&figures, Size::Large)
    }

    fn roofline_figure(&self) -> Option<String> {
        let r = self.roofline.as_ref()?;
        let rate = r.flops / self.seconds;
        let point = |label: &str, name: &str, flops_per_byte: f64, flops_per_second: f64| Point {
            label: label.to_string(),
            name: name.to_string(),
            flops_per_byte,
            flops_per_second,
        };
        let one = |name: &str, p: Point| Series { name: name.to_string(), joined: false, points: vec![p] };
        let mut series = vec![
            one(
                "by the bytes that move",
                point("actual", "the kernel, by the bytes that it moves", r.actual_intensity, rate),
            ),
            one(
                "by the bytes that have to",
                point(
                    "compulsory",
                    "the kernel, by the bytes that have to move",
                    r.compulsory_intensity,
                    rate,
                ),
            ),
        ];
        if let Some(m) = &self.measured {
            series.push(one(
                "measured",
                point("measured", "the kernel as measured", r.actual_intensity, r.flops / m.seconds),
            ));
        }
        let plot = Roofline {
            label: "rate of the kernel over its operations for each byte".to_string(),
            slopes: vec![Slope {
                name: format!("memory {:.1} TB/s", r.bytes_per_second / 1e12),
                bytes_per_second: r.bytes_per_second,
            }],
            ceilings: vec![Ceiling {
                name: flops_per_second(r.flops_per_second),
                flops_per_second: r.flops_per_second,
            }],
            series,
        };
        let names: Vec<&str> = plot.series.iter().map(|s| s.name.as_str()).collect();
        let note = format!(
            "{:.1} operations for each byte that has to move, {:.1} for each that does",
            r.compulsory_intensity, r.actual_intensity
        );
        Some(figure("Roofline", &note, &names, &plot.svg()))
    }

    fn findings_section(&self) -> String {
        let mut out = "<h2>Findings</h2>\n".to_string();
        let mut figures = Vec::new();
        for finding in &self.findings {
            out += &format!(
                "<p><b>{}</b> <small>{}</small><br>{}",
                finding.name,
                finding.section,
                escaped(&finding.text)
            );
            if let Some(place) = &finding.place {
                out += &format!(
                    "<br><a href=\"#line{0}\">line {0}</a>: <code>{1}</code>",
                    place.line,
                    escaped(&place.statement)
                );
            }
            if !finding.consequence.is_empty() {
                out += &format!("<br><span class=\"quiet\">{}</span>", escaped(&finding.consequence));
            }
            out += "</p>\n";
            figures.extend(self.picture_figure(finding));
        }
        if !figures.is_empty() {
            out += "<h2>Requests, lane by lane</h2>\n<p>One request of a warp of each access that takes more than it needs, the worst that was met. \
                    Of shared memory, what is blue comes in the first pass of \
                    each group of lanes, and what is orange in later ones, the darker the later.</p>\n";
            out += &side_by_side(&figures, Size::Large);
        }
        out
    }

    fn picture_figure(&self, finding: &Finding) -> Option<String> {
        let picture = self.picture(finding)?;
        let access = self.access(finding)?;
        let does = if access.writes { "store to" } else { "load of" };
        let title = format!("line {}: {does} {}", access.line, access.buffer);
        let note = format!(
            "{:.1} {}, {:.1} would do; modelled",
            access.passes_per_request, finding.unit, access.least_per_request
        );
        Some(figure(&title, &note, &[], &picture.svg(&format!("{title}, {note}"))))
    }

    fn what_helps(&self) -> String {
        let mut out = "<h2>What would change it</h2>\n".to_string();
        out += &match (&self.kernel.schedule, self.suggestions.len()) {
            (None, _) => "<p>Nothing is known of how a program from a file was made.</p>\n".to_string(),
            (_, 0) => {
                format!("<p>None of {} edits that were tried helps by the model.</p>\n", self.edits_tried)
            }
            (_, n) => format!(
                "<p>{n} of {} edits of the schedule, each applied and modelled on its own; --apply N prints one.</p>\n",
                self.edits_tried
            ),
        };
        if self.kernel.chosen_by == ChosenBy::Wisdom && !self.suggestions.is_empty() {
            out += &format!("<p>{MEASURED_BEST}</p>\n");
        }
        out + &self.suggestions.iter().map(|s| self.suggestion_text(s)).collect::<String>()
    }

    fn suggestion_text(&self, s: &Suggestion) -> String {
        let measured = match (&self.measured, s.measured_seconds) {
            (Some(before), Some(after)) => {
                format!("; {} ({:+.1} %, measured)", seconds(after), 100.0 * (after / before.seconds - 1.0))
            }
            _ => String::new(),
        };
        let mut out = format!(
            "<h3>{}. {}</h3>\n<p>{}, {:.1} % less (modelled){measured}: {} {} instead of {}.</p>\n<pre>",
            s.number,
            escaped(&s.text),
            seconds(s.seconds),
            100.0 * s.gain,
            s.reduces,
            seconds(s.reduced[1]),
            seconds(s.reduced[0])
        );
        for step in &s.steps {
            let tag = if step.starts_with('+') { "ins" } else { "del" };
            out += &format!("<{tag}>{}</{tag}>\n", escaped(step));
        }
        out + "</pre>\n"
    }

    /// The texts: the program, in whose lines findings are, and the schedule.
    fn texts(&self) -> String {
        let found: Vec<usize> = self.findings.iter().filter_map(|f| Some(f.place.as_ref()?.line)).collect();
        let mut out = "<h2>The program as threads run it</h2>\n<pre>".to_string();
        for (number, line) in (1..).zip(self.kernel.program.lines()) {
            let text = format!("{number:4}  {}", escaped(line));
            out += &match found.contains(&number) {
                true => format!("<mark id=\"line{number}\">{text}</mark>\n"),
                false => format!("{text}\n"),
            };
        }
        out += "</pre>\n";
        if let Some(schedule) = &self.kernel.schedule {
            out += &format!(
                "<details><summary>The schedule that makes it</summary>\n<pre>{}</pre>\n</details>\n",
                escaped(schedule)
            );
        }
        out
    }
}

/// A launch in numbers and curves.
fn launch_section(launch: &LaunchPart, which: &str) -> String {
    let moved = |b: f64| bytes(b.max(0.0) as u64);
    let rows: Vec<Vec<String>> = launch
        .traffic
        .iter()
        .map(|t| {
            let all = [t.compulsory, t.device_memory, t.second_level_cache, t.requested];
            [t.buffer.clone()].into_iter().chain(all.map(moved)).collect()
        })
        .collect();
    let mut out = format!("<h2>Memory Workload Analysis{which}</h2>\n<p>Where the bytes go.</p>\n");
    out += &table(&["buffer", "least", "device memory", "L2 cache", "requested"], &rows);
    out += "<p>Each access, in the order of the program.</p>\n";
    let rows: Vec<Vec<String>> = launch
        .accesses
        .iter()
        .map(|a| {
            let does = if a.writes { "store" } else { "load" };
            let unit = if a.memory == "device" { "sectors" } else { "wavefronts" };
            vec![
                format!("{does} {}, line {}", a.buffer, a.line),
                count(a.requests.round() as u64),
                format!("{:.2} {unit}", a.passes_per_request),
                format!("{:.2}", a.least_per_request),
            ]
        })
        .collect();
    out += &table(&["access", "requests", "of each", "would do"], &rows);
    let o = &launch.occupancy;
    let limited: Vec<String> = o.limiters.iter().map(|l| l.replace('_', " ")).collect();
    let estimated = if launch.registers_estimated { "estimated" } else { "the compiler's" };
    out += &format!(
        "<h2>Occupancy and launch{which}</h2>\n<p>{} of {} warps are resident in {} blocks, limited by {}: {} registers ({estimated}), {} shared. \
         {} blocks of {} threads in {}; the busiest multiprocessor has {:.2} times the mean to do.</p>\n",
        o.warps_per_sm,
        o.max_warps_per_sm,
        o.blocks_per_sm,
        limited.join(" and "),
        launch.registers,
        bytes(launch.shared_bytes as u64),
        count(launch.blocks.round() as u64),
        launch.threads,
        rounds(launch.rounds),
        launch.imbalance
    );
    let curves: Vec<String> = o
        .pictures()
        .into_iter()
        .map(|(title, svg)| figure(&title, "the kernel stands at the blue line", &[], &svg))
        .collect();
    out + &side_by_side(&curves, Size::Small)
}

/// The instructions of a launch.
fn mix(machine: &Machine) -> String {
    let part = if machine.part == "loop" { "the loop that multiplies most" } else { "the whole kernel" };
    let bars = Bars {
        label: "instructions by kind".to_string(),
        bars: machine.mix.iter().map(|g| (g.name.to_string(), g.part, percent(g.part))).collect(),
        reference: None,
    };
    let rows: Vec<Vec<String>> = machine
        .mix
        .iter()
        .map(|g| {
            let named = g.operations.iter().take(3).map(|(name, n)| format!("{n} {name}"));
            vec![g.name.to_string(), g.count.to_string(), named.collect::<Vec<_>>().join(", ")]
        })
        .collect();
    let note = format!(
        "{} of {} instructions, {part}; {} registers; counted in machine code for {} by NVRTC {}",
        machine.counted, machine.instructions, machine.registers, machine.arch, machine.compiler
    );
    let picture = figure(&machine.kernel, &note, &[], &bars.svg());
    format!(
        "<h2>Instruction Mix</h2>\n{}{}",
        side_by_side(&[picture], Size::Large),
        table(&["kind", "count", "most of them"], &rows)
    )
}
