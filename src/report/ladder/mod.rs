//! A ladder as one self-contained page: a worklog of what each rung changes and what that buys.
//!
//! Every number says whether it was measured on a GPU, counted by the simulator or computed by the model.

mod figures;
mod rung;
#[cfg(test)]
mod tests;

use warpwright_core::target::Target;

use super::number::{flops_per_second, seconds};
use super::page::{document, escaped};
use crate::ladder::{Counted, Ladder, Rung};

/// The page.
pub fn page(ladder: &Ladder) -> String {
    let mut body = introduction(ladder);
    body += &figures::all(ladder);
    body += &overview(ladder);
    for (at, this) in ladder.rungs.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| &ladder.rungs[before]);
        body += &rung::section(ladder, this, before);
    }
    document(&format!("Warpwright: the ladder {}", ladder.name), &body)
}

/// The rate that follows from a time.
fn rate(ladder: &Ladder, seconds: f64) -> f64 {
    ladder.problem.flops() / seconds
}

/// The measured rate of a rung.
fn measured(ladder: &Ladder, rung: &Rung) -> Option<f64> {
    rung.seconds.map(|s| rate(ladder, s))
}

/// The predicted rate of a rung.
fn predicted(ladder: &Ladder, rung: &Rung) -> f64 {
    rate(ladder, rung.model.prediction.seconds)
}

/// A kind of rate: of a rung, where it is known.
type Rate = fn(&Ladder, &Rung) -> Option<f64>;

/// Both kinds; the first that is known leads.
const RATES: [(&str, Rate); 2] =
    [("measured", measured), ("predicted", |ladder, rung| Some(predicted(ladder, rung)))];

/// The product, and where the numbers come from.
fn introduction(ladder: &Ladder) -> String {
    let Ladder { problem, target, .. } = ladder;
    let mut text = format!(
        "<p>C = alpha op(A) op(B) + beta C with {}, {}, layout {}, on {}. Every rung below is a schedule that differs from \
         the one before by one idea, and every one computes the same.</p>\n<ul>\n",
        escaped(&problem.shape.to_string()),
        problem.precision,
        escaped(&problem.layout.to_string()),
        escaped(target.product)
    );
    let measured = match &ladder.source {
        None => "nothing on this page.".to_string(),
        Some(source) => {
            let place = match (&source.file, &source.with) {
                (None, _) => "in the run that made this page".to_string(),
                (Some(file), None) => format!("in an earlier run, recorded in {file}"),
                (Some(file), Some(with)) => format!("in an earlier run ({with}), recorded in {file}"),
            };
            let missing = ladder.rungs.iter().filter(|r| r.seconds.is_none()).count();
            let missing = match missing {
                0 => String::new(),
                1 => "; one rung was not".to_string(),
                n => format!("; {n} rungs were not"),
            };
            format!("times and rates, on {} {place}{missing}.", source.gpu)
        }
    };
    text += &item("measured", &measured);
    if let Some(first) = ladder.rungs.first() {
        let (p, d) = (&first.report.report.problem, &first.report.report.device);
        let on = if d.kind == "sim" { "the simulator" } else { "the GPU and the simulator" };
        text += &item(
            "simulated",
            &format!("whether a rung is right, and free of races, at {}x{}x{}, on {on}.", p.m, p.n, p.k),
        );
    }
    let assumed = ladder.rungs.iter().filter(|r| r.model.registers.by == Counted::Assumption).count();
    let registers = match assumed {
        0 => "Registers were counted by NVIDIA's compiler.".to_string(),
        n if n == ladder.rungs.len() => {
            "Registers are assumed too, since NVIDIA's compiler is not here.".to_string()
        }
        n => format!(
            "Registers are assumed for {n} rungs, and were counted by NVIDIA's compiler for the others."
        ),
    };
    text += &item(
        "modelled",
        &format!(
            "everything else, from the programs and the tables of {}: what requests ask for, what comes from device \
             memory, occupancy, and predicted times. {registers}",
            target.name
        ),
    );
    text += "</ul>\n";
    let is_another = |gpu: &str| {
        gpu != target.product && Target::by_product_name(gpu).is_none_or(|t| t.name != target.name)
    };
    if let Some(source) = ladder.source.as_ref().filter(|s| is_another(&s.gpu)) {
        text += &format!(
            "<p class=\"wrong\">Times were measured on {}, the model is of {}: they cannot be compared.</p>\n",
            escaped(&source.gpu),
            escaped(target.product)
        );
    }
    text
}

fn item(kind: &str, text: &str) -> String {
    format!("<li><b>{kind}</b>: {}</li>\n", escaped(text))
}

/// One line for each rung.
fn overview(ladder: &Ladder) -> String {
    let measured_any = ladder.rungs.iter().any(|r| r.seconds.is_some());
    let mut headings = vec!["rung", "name"];
    if measured_any {
        headings.extend(["time, measured", "rate, measured"]);
        headings.extend(ladder.cublas.map(|_| "of cuBLAS, measured"));
    }
    headings.push("rate, predicted");
    headings.extend(["sectors / multiply-add", "wavefronts / multiply-add", "occupancy", "right"]);
    let mut table = String::from("<h2>The rungs</h2>\n<div class=\"wide\"><table class=\"named\"><tr>");
    headings.iter().for_each(|h| table += &format!("<th>{h}</th>"));
    table += "</tr>\n";
    for rung in &ladder.rungs {
        let mut cells = Vec::new();
        let text = |value: Option<String>| value.unwrap_or_else(|| "-".to_string());
        if measured_any {
            cells.push(text(rung.seconds.map(seconds)));
            cells.push(text(measured(ladder, rung).map(flops_per_second)));
            if let Some(cublas) = ladder.cublas {
                cells.push(text(rung.seconds.map(|s| format!("{:.2}", cublas / s))));
            }
        }
        cells.push(flops_per_second(predicted(ladder, rung)));
        cells.push(rung::small(rung.model.sectors_per_multiply_add()));
        cells.push(rung::small(rung.model.wavefronts_per_multiply_add()));
        cells.push(format!("{:.0} %", 100.0 * rung.model.occupancy.fraction()));
        let right = if rung.report.report.check.passed { "yes" } else { "<span class=\"wrong\">NO</span>" };
        table += &format!(
            "<tr><td>{0}</td><td><a href=\"#rung{0}\">{1}</a></td>",
            rung.report.rung,
            escaped(&rung.report.name)
        );
        cells.iter().for_each(|c| table += &format!("<td>{}</td>", escaped(c)));
        table += &format!("<td>{right}</td></tr>\n");
    }
    table
        + "</table></div>\n<p><small>Sectors, wavefronts and occupancy are modelled; whether a rung is right was simulated. \
           A sector is 32 bytes that a request to device memory asks for, a wavefront one pass over the banks of shared \
           memory.</small></p>\n"
}
