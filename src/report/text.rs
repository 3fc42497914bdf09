//! A report in a few lines, for people.

use super::number::{bytes, count, error, flops_per_second, seconds};
use super::{CheckReport, ChosenBy, Claims, Counters, LaunchReport, Report};
use crate::roofline::Roofline;

/// What was computed by what, whether it is right, what was counted, and how long it took.
pub fn describe(report: &Report, roofline: Option<&Roofline>) -> String {
    let (problem, device) = (&report.problem, &report.device);
    let mut lines = vec![format!("{}: {problem} on {} ({})", report.kernel.name, device.gpu, device.kind)];
    if !report.kernel.parameters.is_empty() {
        lines.push(format!(
            "  chosen   {}: {}",
            chosen_by(report.kernel.chosen_by),
            report.kernel.parameters
        ));
    }
    lines.extend(report.kernel.launches.iter().map(|l| format!("  launch   {}", launch(l))));
    if report.kernel.launches.is_empty() {
        lines.push("  launch   none: C has no element".to_string());
    }
    lines.extend(verdict(&report.check).into_iter().map(|l| format!("  check    {l}")));
    if let Some(counters) = &report.counters {
        lines.extend(counted(counters).into_iter().map(|l| format!("  counted  {l}")));
    }
    lines.extend(timing(report, roofline).map(|l| format!("  time     {l}")));
    lines.join("\n")
}

fn chosen_by(who: ChosenBy) -> &'static str {
    match who {
        ChosenBy::Named => "as named",
        ChosenBy::Wisdom => "by what was measured for this problem",
        ChosenBy::Neighbour => "by what was measured for a problem nearby",
        ChosenBy::Model => "by the model",
        ChosenBy::Rule => "by rule",
    }
}

fn launch(launch: &LaunchReport) -> String {
    let extents = |e: [String; 3]| e.join("x");
    let registers = launch.registers.map(|r| format!(", {r} registers a thread")).unwrap_or_default();
    format!(
        "grid {}, block {}, {} shared{registers}",
        extents(launch.grid.map(|n| n.to_string())),
        extents(launch.block.map(|n| n.to_string())),
        bytes(launch.shared_bytes),
    )
}

/// Whether the kernel is right, in one or more lines.
pub fn verdict(check: &CheckReport) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(exact) = &check.exact {
        let trials =
            if exact.trials == 1 { "1 trial".to_string() } else { format!("{} trials", exact.trials) };
        let verdict = if exact.passed { "equal" } else { "NOT EQUAL" };
        let at = exact.at.as_ref().map(|size| format!(", at {size}")).unwrap_or_default();
        lines.push(format!("{verdict} to the specification in {trials} over the prime field{at}"));
    }
    let float = check.float;
    lines.push(format!(
        "error {} of {} allowed against the f64 reference{}",
        error(float.max_error),
        error(float.bound),
        if float.passed { "" } else { ": WRONG" }
    ));
    let hazards = [
        (check.races, "races"),
        (check.out_of_bounds, "accesses out of bounds"),
        (check.uninitialized, "reads of uninitialised memory"),
        (check.barrier_faults, "faults of synchronisation"),
    ];
    let found: Vec<String> =
        hazards.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    let scope = match check.claims {
        Claims::Launch => "in the whole launch",
        Claims::Sample => "in a sample of its blocks",
    };
    lines.push(if found.is_empty() {
        format!("no races, no access out of bounds, nothing read uninitialised, no fault of synchronisation {scope}")
    } else {
        format!("FOUND {scope}: {}", found.join(", "))
    });
    lines
}

/// The counters that tell kernels apart, with the ratios that matter.
fn counted(counters: &Counters) -> Vec<String> {
    let per = |total: u64, of: u64| if of == 0 { 0.0 } else { total as f64 / of as f64 };
    let blocks = if counters.blocks_simulated == counters.blocks_total {
        format!("{} blocks", count(counters.blocks_total))
    } else {
        format!("{} of {} blocks", count(counters.blocks_simulated), count(counters.blocks_total))
    };
    vec![
        format!(
            "{blocks}: {} multiply-adds, {} barriers, {} divergent branches",
            count(counters.fma),
            count(counters.barriers),
            count(counters.divergent_branches)
        ),
        format!(
            "global  {} loads of {:.1} sectors, {} stores of {:.1} sectors",
            count(counters.global_load_requests),
            per(counters.global_load_sectors, counters.global_load_requests),
            count(counters.global_store_requests),
            per(counters.global_store_sectors, counters.global_store_requests)
        ),
        format!(
            "shared  {} loads of {:.2} wavefronts, {} stores of {:.2} wavefronts",
            count(counters.shared_load_requests),
            per(counters.shared_load_wavefronts, counters.shared_load_requests),
            count(counters.shared_store_requests),
            per(counters.shared_store_wavefronts, counters.shared_store_requests)
        ),
    ]
}

fn timing(report: &Report, roofline: Option<&Roofline>) -> Option<String> {
    let taken = report.time.seconds?;
    let rate = report.tflops.map(|t| format!(", {}", flops_per_second(t * 1e12))).unwrap_or_default();
    let roof = roofline
        .map(|r| {
            format!(", {:.0} % of the roofline ({}, modelled)", 100.0 * r.seconds() / taken, r.limiter())
        })
        .unwrap_or_default();
    let cublas = report
        .cublas
        .map(|c| {
            format!("; cuBLAS {} ({:.2} times as fast as cuBLAS)", seconds(c.seconds), c.seconds / taken)
        })
        .unwrap_or_default();
    let kind = match report.time.kind {
        Some(super::Kind::Modelled) => " modelled",
        Some(super::Kind::Simulated) => " simulated",
        Some(super::Kind::Measured) | None => " measured",
    };
    Some(format!("{}{kind}{rate}{roof}{cublas}", seconds(taken)))
}
