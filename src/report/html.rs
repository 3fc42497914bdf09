//! A ladder as one self-contained page: no script, no style sheet and no picture from elsewhere.

use super::diff::{Line, lines};
use super::number::{count, flops_per_second};
use super::page::{Size, document, escaped, figure, side_by_side};
use super::svg::Bars;
use super::text::verdict;
use super::{Counters, Kind, RungReport};

/// The page.
pub fn page(title: &str, rungs: &[RungReport]) -> String {
    let mut body = String::new();
    if let Some(first) = rungs.first() {
        let (p, d) = (&first.report.problem, &first.report.device);
        body.push_str(&format!(
            "<p>C = alpha op(A) op(B) + beta C, {}x{}x{}, {}, layout {}, on {} ({}).</p>\n",
            p.m,
            p.n,
            p.k,
            p.dtype,
            escaped(&p.layout),
            escaped(&d.gpu),
            d.kind
        ));
    }
    body.push_str(&chart(rungs));
    body.push_str(&overview(rungs));
    let mut schedule_before = None;
    for rung in rungs {
        body.push_str(&section(rung, schedule_before));
        schedule_before = Some(rung.report.kernel.schedule.as_str());
    }
    document(title, &body)
}

/// A bar for each rung that was timed, and a line for cuBLAS.
fn chart(rungs: &[RungReport]) -> String {
    let timed: Vec<(&RungReport, f64)> =
        rungs.iter().filter_map(|r| r.report.tflops.map(|t| (r, t))).collect();
    let reference = rungs.iter().filter_map(|r| r.report.cublas).map(|c| c.tflops).fold(0.0, f64::max);
    if timed.is_empty() {
        return String::new();
    }
    let line = if reference > 0.0 { "; the dashed line is cuBLAS in the same run" } else { "" };
    let kind = match timed[0].0.report.time.kind {
        Some(Kind::Modelled) => "modelled",
        Some(Kind::Simulated) => "simulated",
        Some(Kind::Measured) | None => "measured",
    };
    let bar = |(rung, tflops): &(&RungReport, f64)| {
        (format!("{} {}", rung.rung, rung.name), *tflops, format!("{tflops:.3}"))
    };
    let bars = Bars {
        label: "rate of each rung".to_string(),
        bars: timed.iter().map(bar).collect(),
        reference: (reference > 0.0).then_some(reference),
    };
    let title = format!("TFLOP/s, {kind}{line}");
    side_by_side(&[figure(&title, "", &[], &bars.svg())], Size::Large)
}

/// One line for each rung.
fn overview(rungs: &[RungReport]) -> String {
    let mut table = String::from(
        "<div class=\"wide\"><table class=\"named\"><tr><th>rung</th><th>name</th><th>rate</th><th>sectors per load</th><th>wavefronts per shared load</th><th>right</th></tr>\n",
    );
    for rung in rungs {
        let ratio = |of: fn(&Counters) -> (u64, u64)| {
            rung.report
                .counters
                .as_ref()
                .map(of)
                .filter(|(_, requests)| *requests > 0)
                .map_or("-".to_string(), |(total, requests)| format!("{:.2}", total as f64 / requests as f64))
        };
        let right = if rung.report.check.passed { "yes" } else { "<span class=\"wrong\">NO</span>" };
        table.push_str(&format!(
            "<tr><td>{0}</td><td><a href=\"#rung{0}\">{1}</a></td><td>{2}</td><td>{3}</td><td>{4}</td><td>{right}</td></tr>\n",
            rung.rung,
            escaped(&rung.name),
            rung.report.tflops.map_or("-".to_string(), |t| flops_per_second(t * 1e12)),
            ratio(|c| (c.global_load_sectors, c.global_load_requests)),
            ratio(|c| (c.shared_load_wavefronts, c.shared_load_requests)),
        ));
    }
    table.push_str("</table></div>\n");
    table
}

/// What a rung changes, how its schedule differs from the one before, and whether it is right.
fn section(rung: &RungReport, schedule_before: Option<&str>) -> String {
    let mut section = format!(
        "<h2 id=\"rung{0}\">{0} {1}</h2>\n<p>{2}</p>\n<pre>",
        rung.rung,
        escaped(&rung.name),
        escaped(&rung.change)
    );
    let schedule = &rung.report.kernel.schedule;
    for line in lines(schedule_before.unwrap_or(schedule), schedule) {
        section.push_str(&match line {
            Line::Same(text) => format!("{}\n", escaped(text)),
            Line::Added(text) => format!("<ins>{}</ins>\n", escaped(text)),
            Line::Removed(text) => format!("<del>{}</del>\n", escaped(text)),
        });
    }
    section.push_str("</pre>\n<ul>\n");
    for line in verdict(&rung.report.check) {
        section.push_str(&format!("<li>{}</li>\n", escaped(&line)));
    }
    if let Some(c) = &rung.report.counters {
        section.push_str(&format!(
            "<li>{} of {} blocks simulated: {} multiply-adds, {} global load requests, {} shared load requests, {} barriers</li>\n",
            count(c.blocks_simulated),
            count(c.blocks_total),
            count(c.fma),
            count(c.global_load_requests),
            count(c.shared_load_requests),
            count(c.barriers)
        ));
    }
    section.push_str("</ul>\n");
    section
}
