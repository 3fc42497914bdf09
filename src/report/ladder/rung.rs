//! The section of one rung: the idea, how the schedule and the CUDA C change, what that changes in numbers, and whether
//! it is right.

use super::{measured, predicted};
use crate::ladder::{Ladder, Modelled, Rung, Term};
use crate::report::diff::{Line, hunks, lines};
use crate::report::number::{bytes, count, flops_per_second, seconds};
use crate::report::page::escaped;
use crate::report::text::verdict;

/// Lines of unchanged text around each change.
const CONTEXT: usize = 3;

/// A rung beside the one before, if there is one.
pub(super) fn section(ladder: &Ladder, rung: &Rung, before: Option<&Rung>) -> String {
    let report = &rung.report;
    let mut section = format!(
        "<h2 id=\"rung{0}\">{0} {1}</h2>\n<p>{2} {3}</p>\n",
        report.rung,
        escaped(&report.name),
        escaped(&report.change),
        escaped(&report.why)
    );
    section += &numbers(ladder, rung, before);
    section += &times(rung);
    section += &schedule(rung, before);
    section += &cuda(rung, before);
    section + &check(rung)
}

/// A number with three significant digits, whatever its size.
pub(super) fn small(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".to_string();
    }
    let before_point = value.abs().log10().floor() as i32;
    let decimals = usize::try_from(2 - before_point).unwrap_or(0).min(6);
    format!("{value:.decimals$}")
}

/// What a row of the table of numbers shows of a rung; nothing where it is not known.
type Cell<'a> = &'a dyn Fn(&Rung) -> Option<String>;

/// The numbers of a rung beside those of the rung before; those that changed are bold.
fn numbers(ladder: &Ladder, rung: &Rung, before: Option<&Rung>) -> String {
    let occupied = |r: &Rung| format!("{} of {}", r.model.occupancy.warps, r.model.occupancy.warp_slots);
    let model = |of: fn(&Modelled) -> f64| move |r: &Rung| Some(small(of(&r.model)));
    let by = |r: &Rung| r.model.registers.by.name();
    let registers = match before.filter(|b| by(b) != by(rung)) {
        Some(before) => format!("{}; {}", by(before), by(rung)),
        None => by(rung).to_string(),
    };
    let rows: [(&str, &str, Cell); 14] = [
        ("threads of a block", "program", &|r| Some(r.model.threads.to_string())),
        ("shared memory of a block", "program", &|r| {
            Some(bytes(u64::try_from(r.model.shared_bytes).unwrap_or(0)))
        }),
        ("registers of a thread", &registers, &|r| Some(r.model.registers.count.to_string())),
        ("warps resident", "modelled", &|r| Some(occupied(r))),
        ("limited by", "modelled", &|r| Some(r.model.occupancy.limiter().name().replace('_', " "))),
        ("sectors / multiply-add", "modelled", &model(Modelled::sectors_per_multiply_add)),
        ("wavefronts / multiply-add", "modelled", &model(Modelled::wavefronts_per_multiply_add)),
        ("FLOP / byte asked for", "modelled", &model(Modelled::flops_per_requested_byte)),
        ("FLOP / byte of device memory", "modelled", &model(Modelled::flops_per_device_byte)),
        ("time", "predicted", &|r| Some(seconds(r.model.prediction.seconds))),
        ("rate", "predicted", &|r| Some(flops_per_second(predicted(ladder, r)))),
        ("time", "measured", &|r| r.seconds.map(seconds)),
        ("rate", "measured", &|r| measured(ladder, r).map(flops_per_second)),
        ("times cuBLAS", "measured", &|r| Some(format!("{:.2}", ladder.cublas? / r.seconds?))),
    ];
    let mut table = String::from("<div class=\"wide\"><table class=\"change\"><tr><th></th>");
    if let Some(before) = before {
        table += &format!("<th>rung {}</th>", before.report.rung);
    }
    table += &format!("<th>rung {}</th><th>kind</th></tr>\n", rung.report.rung);
    for (name, kind, cell) in rows {
        let (now, then) = (cell(rung), before.and_then(cell));
        if now.is_none() && then.is_none() {
            continue;
        }
        let changed = before.is_some() && now != then;
        let text = |value: Option<String>| escaped(&value.unwrap_or_else(|| "-".to_string()));
        table += &format!("<tr><td>{name}</td>");
        if before.is_some() {
            table += &format!("<td>{}</td>", text(then));
        }
        let now = text(now);
        let now = if changed { format!("<b>{now}</b>") } else { now };
        table += &format!("<td>{now}</td><td class=\"quiet\">{kind}</td></tr>\n");
    }
    table + "</table></div>\n"
}

/// What takes the predicted time: what has at least a tenth of it, or else the weightiest.
fn times(rung: &Rung) -> String {
    let prediction = &rung.model.prediction;
    let weighty = prediction.terms.iter().enumerate().filter(|(at, term)| *at == 0 || term.share >= 0.1);
    let parts: Vec<String> = weighty.map(|(_, t)| format!("{} ({:.0} %)", t.name, 100.0 * t.share)).collect();
    let row = |term: &Term| {
        format!(
            "<tr><td>{}</td><td>{}</td><td>{:.0} %</td></tr>\n",
            escaped(term.name),
            // Not broken between number and unit.
            seconds(term.seconds).replace(' ', "\u{a0}"),
            100.0 * term.share
        )
    };
    format!(
        "<p>By the model its time goes into {}.</p>\n<details><summary>What takes the predicted {}</summary>\n\
         <div class=\"wide\"><table class=\"change\"><tr><th></th><th>alone</th><th>share</th></tr>\n{}</table></div>\n\
         <p><small>Modelled. Alone is how long it would take with nothing else to do; the share is by how much the whole \
         would be shorter without it, in parts of all such gains.</small></p></details>\n",
        escaped(&parts.join(", ")),
        seconds(prediction.seconds),
        prediction.terms.iter().map(row).collect::<String>()
    )
}

/// How the schedule changes; all of it for the first rung.
fn schedule(rung: &Rung, before: Option<&Rung>) -> String {
    let new = &rung.report.report.kernel.schedule;
    let Some(before) = before else {
        return format!("<h3>The schedule</h3>\n<pre>{}</pre>\n", escaped(new));
    };
    let old = &before.report.report.kernel.schedule;
    format!(
        "<h3>What changes in the schedule</h3>\n{}{}",
        difference(old, new, 1),
        folded("The whole schedule", new)
    )
}

/// How the CUDA C changes, and all of it, both folded.
fn cuda(rung: &Rung, before: Option<&Rung>) -> String {
    let whole = folded("The CUDA C of what is launched here", &rung.cuda);
    let Some(before) = before else { return whole };
    let difference = difference(&before.cuda, &rung.cuda, CONTEXT);
    format!("<details><summary>What changes in the CUDA C</summary>\n{difference}</details>\n{whole}")
}

fn folded(title: &str, text: &str) -> String {
    format!("<details><summary>{title}</summary>\n<pre>{}</pre></details>\n", escaped(text))
}

/// What is removed and added, with some lines around it.
fn difference(old: &str, new: &str, context: usize) -> String {
    let all = lines(old, new);
    let mut text = String::from("<pre>");
    for (number, hunk) in hunks(&all, context).into_iter().enumerate() {
        if number > 0 {
            text += "<span class=\"quiet\">...</span>\n";
        }
        for line in &all[hunk] {
            text += &match line {
                Line::Same(same) => format!("  {}\n", escaped(same)),
                Line::Added(added) => format!("<ins>+ {}</ins>\n", escaped(added)),
                Line::Removed(removed) => format!("<del>- {}</del>\n", escaped(removed)),
            };
        }
    }
    if text == "<pre>" { "<p>Nothing.</p>\n".to_string() } else { text + "</pre>\n" }
}

/// Whether it is right, and what the simulator counted.
fn check(rung: &Rung) -> String {
    let report = &rung.report.report;
    let p = &report.problem;
    let mut list = format!(
        "<details><summary>Whether it is right: {}</summary>\n<ul>\n",
        if report.check.passed { "yes" } else { "<span class=\"wrong\">NO</span>" }
    );
    for line in verdict(&report.check) {
        list += &format!("<li>{} [{}x{}x{}]</li>\n", escaped(&line), p.m, p.n, p.k);
    }
    if let Some(c) = &report.counters {
        list += &format!(
            "<li>simulated: {} of {} blocks, {} multiply-adds, {} loads from device memory of {} sectors, {} loads from \
             shared memory of {} wavefronts, {} barriers</li>\n",
            count(c.blocks_simulated),
            count(c.blocks_total),
            count(c.fma),
            count(c.global_load_requests),
            small(c.global_load_sectors as f64 / c.global_load_requests.max(1) as f64),
            count(c.shared_load_requests),
            small(c.shared_load_wavefronts as f64 / c.shared_load_requests.max(1) as f64),
            count(c.barriers)
        );
    }
    list + "</ul></details>\n"
}

#[cfg(test)]
mod tests {
    use super::{difference, small};

    #[test]
    fn numbers_keep_three_digits_whatever_their_size() {
        assert_eq!(
            [33.0 / 32.0, 0.15625, 0.00098, 63.9, 1234.5, 0.0].map(small),
            ["1.03", "0.156", "0.000980", "63.9", "1234", "0"]
        );
    }

    #[test]
    fn a_difference_marks_lines_by_signs_and_not_by_colour_alone() {
        assert_eq!(
            difference("a\nb\nc\nd", "a\nB\nc\nd", 1),
            "<pre>  a\n<del>- b</del>\n<ins>+ B</ins>\n  c\n</pre>\n"
        );
        assert_eq!(difference("a", "a", 1), "<p>Nothing.</p>\n");
        assert!(difference("a", "<b>", 1).contains("+ &lt;b&gt;"));
    }
}
