//! The model beside measured times, as tables for people.

use super::fit::{Fit, Fitted};
use super::{Compared, Entry, Group, Point, Validation};
use crate::report::number::seconds;
use crate::report::table::{numbers, render, words};

/// Everything: the summary, then each table group by group, then what the model has nothing to say of.
pub fn describe(found: &Validation) -> String {
    let mut parts = vec![summary(found)];
    parts.extend(found.tables.iter().enumerate().map(|(at, table)| details(at + 1, table)));
    parts.push(not_covered(&found.not_covered));
    parts.join("\n\n")
}

/// A line for each table, and what the columns mean.
pub fn summary(found: &Validation) -> String {
    let columns = [
        numbers("#"),
        words("gpu"),
        words("the table is"),
        numbers("kernels"),
        numbers("problems"),
        numbers("Spearman"),
        numbers("least"),
        numbers("tau-b"),
        numbers("top 1"),
        numbers("top 10"),
        numbers("top 50"),
        numbers("error"),
        numbers("bias"),
    ];
    let row = |(at, table): (usize, &Compared)| {
        let s = &table.summary;
        let best = |at: usize| match (s.best_of.all()[at], s.worst_of.all()[at]) {
            (Some(mean), Some(worst)) => format!("{mean:.3} ({worst:.2})"),
            _ => "-".to_string(),
        };
        // Where each kernel has a problem of its own, there are as many problems as kernels.
        let problems = if s.spearman_median.is_some() { s.groups } else { s.kernels };
        vec![
            (at + 1).to_string(),
            table.entry.gpu.clone(),
            table.entry.fit.clone().unwrap_or_default(),
            s.kernels.to_string(),
            problems.to_string(),
            decimals(s.spearman_median),
            decimals(s.spearman_least),
            decimals(s.kendall_median),
            best(0),
            best(1),
            best(2),
            percent(s.mean_absolute_error_percent),
            decimals(s.geometric_bias),
        ]
    };
    let rows: Vec<Vec<String>> = found.tables.iter().enumerate().map(row).collect();
    let sources: Vec<String> = found
        .tables
        .iter()
        .enumerate()
        .map(|(at, t)| format!("{}  {}: {}", at + 1, t.entry.file, t.entry.what))
        .collect();
    format!(
        "The model (modelled) beside what was measured\n\n{}\n\n{}\n\n\
         Spearman, least, tau-b  rank correlation within a problem: the median, the least, and Kendall's tau-b in the median,\n\
         {:24}for which measured times within {:.0} % of each other have no order\n\
         top 1, 10, 50           the best measured time among the model's first over the optimum: geometric mean (worst)\n\
         error, bias             mean |modelled - measured| / measured, and the geometric mean of modelled / measured",
        render(&columns, &rows),
        sources.join("\n"),
        "",
        100.0 * found.closer,
    )
}

/// One table, group by group or point by point.
fn details(number: usize, table: &Compared) -> String {
    let Entry { file, what, source, fit, fit_because, .. } = &table.entry;
    let fit = [fit, fit_because].map(|text| text.as_deref().unwrap_or_default()).join(": ");
    let mut reasons: Vec<&String> = table.groups.iter().flat_map(|g| &g.not_modelled_because).collect();
    reasons.sort();
    reasons.dedup();
    let lacking =
        reasons.iter().map(|because| format!("\n\nnot modelled, because {because}")).collect::<String>();
    let body = if table.points.is_empty() { groups(&table.groups) } else { points(&table.points) };
    format!("{number}  {file} on {}\n   {what}\n   {source}\n   {fit}\n\n{body}{lacking}", table.entry.gpu)
}

fn groups(groups: &[Group]) -> String {
    let is_ranked = groups.iter().any(|g| g.ranking.is_some());
    let mut columns = vec![
        words(if is_ranked { "problem" } else { "products" }),
        numbers("kernels"),
        numbers("not modelled"),
    ];
    if is_ranked {
        columns.extend(["Spearman", "tau-b", "top 1", "top 10", "top 50"].map(numbers));
    }
    columns.extend(["error", "bias"].map(numbers));
    let row = |group: &Group| {
        let mut cells = vec![group.name.clone(), group.kernels.to_string(), group.not_modelled.to_string()];
        if let Some(ranking) = &group.ranking {
            cells.extend([ranking.spearman, ranking.kendall_tau_b].map(decimals));
            cells.extend(
                ranking.best_of.all().map(|best| best.map_or("-".to_string(), |b| format!("{b:.3}"))),
            );
        }
        cells.extend([percent(group.mean_absolute_error_percent), decimals(group.geometric_bias)]);
        cells
    };
    render(&columns, &groups.iter().map(row).collect::<Vec<_>>())
}

fn points(points: &[Point]) -> String {
    let columns = [
        words("family"),
        words("problem"),
        words("type"),
        numbers("measured"),
        numbers("modelled"),
        numbers("modelled / measured"),
        words("given"),
    ];
    let row = |p: &Point| {
        vec![
            p.family.to_string(),
            p.problem.clone(),
            p.dtype.to_string(),
            seconds(p.measured),
            p.modelled.map_or("-".to_string(), seconds),
            decimals(p.modelled.map(|modelled| modelled / p.measured)),
            p.given.clone(),
        ]
    };
    render(&columns, &points.iter().map(row).collect::<Vec<_>>())
}

/// What a fit came to.
pub fn fitted(fit: &Fit) -> String {
    let constant = |c: &Fitted| {
        // A launch takes so few seconds that they are better read in microseconds.
        let (unit, scale) = if c.name == "launch" { (" (us)", 1e6) } else { ("", 1.0) };
        let value = |v: f64| format!("{:.3}", v * scale);
        vec![format!("{}{unit}", c.name), value(c.before), value(c.after)]
    };
    let constants: Vec<Vec<String>> = fit.constants.iter().map(constant).collect();
    let errors = [
        ("fitted on", fit.drawn.len(), fit.before.drawn, fit.after.drawn),
        ("left out", fit.left_out.len(), fit.before.left_out, fit.after.left_out),
    ];
    let errors: Vec<Vec<String>> = errors
        .into_iter()
        .map(|(what, kernels, before, after)| {
            vec![what.to_string(), kernels.to_string(), tenths(before), tenths(after)]
        })
        .collect();
    format!(
        "Constants of the time model of programs, fitted on {}\nseed {}, {} of the kernels drawn\n\n{}\n\n{}\n\nfitted on: {}\nleft out: {}",
        fit.tables.join(", "),
        fit.seed,
        fit.part,
        render(&[words("constant"), numbers("in the program"), numbers("fitted")], &constants),
        render(
            &[words("error over kernels"), numbers("kernels"), numbers("in the program"), numbers("fitted")],
            &errors
        ),
        fit.drawn.join(", "),
        fit.left_out.join(", "),
    )
}

fn tenths(value: Option<f64>) -> String {
    value.map_or("-".to_string(), |v| format!("{v:.1} %"))
}

fn not_covered(entries: &[Entry]) -> String {
    let lines = entries.iter().map(|entry| {
        let because = entry.because.as_deref().unwrap_or_default();
        format!("  {} ({}): {}\n    not compared, because {because}", entry.file, entry.gpu, entry.what)
    });
    format!("Tables of which the model has nothing to say\n{}", lines.collect::<Vec<_>>().join("\n"))
}

fn decimals(value: Option<f64>) -> String {
    value.map_or("-".to_string(), |v| format!("{v:.2}"))
}

fn percent(value: Option<f64>) -> String {
    value.map_or("-".to_string(), |v| format!("{v:.0} %"))
}
