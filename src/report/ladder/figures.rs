//! The pictures of a ladder: its path below the roofline, and the rate of each rung.

use super::rung::small;
use super::{RATES, Rate, measured, rate};
use crate::ladder::{Ladder, Modelled, Rung};
use crate::report::number::{bytes_per_second, flops_per_second};
use crate::report::page::{Size, figure, side_by_side};
use crate::report::roofline::{Ceiling, Point, Roofline, Series, Slope};
use crate::report::svg::Bars;
use crate::roofline::fastest_pipe;

/// All pictures: the rungs below the rooflines of requests and of device memory, and the rate of each.
pub(super) fn all(ladder: &Ladder) -> String {
    let mut figures = rooflines(ladder);
    figures.extend(rates(ladder));
    side_by_side(&figures, Size::Large)
}

fn rooflines(ladder: &Ladder) -> Vec<String> {
    let target = ladder.target;
    let memory = target.dram_read_bytes_per_second.unwrap_or(target.dram_bytes_per_second).value;
    let slope = |name: &str, bytes: f64| Slope {
        name: format!("{name} {}", bytes_per_second(bytes)),
        bytes_per_second: bytes,
    };
    let device = || slope("device memory", memory);
    let l1 = target.levels.l1.bytes_per_cycle.map(|fact| {
        slope("first-level caches", fact.value * f64::from(target.sm_count.value) * target.boost_hz())
    });
    let mut requests =
        plot(ladder, Modelled::flops_per_requested_byte, l1.into_iter().chain([device()]).collect());
    let mut traffic = plot(ladder, Modelled::flops_per_device_byte, vec![device()]);
    let near = near_the_end(&requests);
    if let Some(near) = &near {
        [&mut requests, &mut traffic].into_iter().for_each(|plot| thin_out(plot, near));
    }
    let (legend, note) = legend(ladder);
    let of_requests = figure(
        "The path of the rungs, over what warps ask for",
        &format!(
            "Operations for each byte of the sectors that requests ask for. A rung above the line of device memory has \
             its requests answered by caches. {note}"
        ),
        &legend,
        &requests.svg(),
    );
    let of_traffic = figure(
        "The same rungs, over what comes from device memory",
        &format!(
            "Operations for each byte of device memory, if the second-level cache keeps what the blocks of one wave \
             share. {note}"
        ),
        &legend,
        &traffic.svg(),
    );
    let mut figures = vec![of_requests];
    figures.extend(near.map(|near| {
        figure(
            &format!("The upper end of that path, {} rungs", near.series[0].points.len()),
            "Those within a factor of three of the fastest, from near by.",
            &legend,
            &near.close_up(),
        )
    }));
    figures.push(of_traffic);
    figures
}

/// The points whose rates are within a factor of three of the best, if that is some and not all of them.
fn near_the_end(plot: &Roofline) -> Option<Roofline> {
    let first = plot.series.first()?;
    let best = first.points.iter().map(|p| p.flops_per_second).fold(0.0, f64::max);
    let is_near = |p: &Point| 3.0 * p.flops_per_second >= best;
    let number = first.points.iter().filter(|p| is_near(p)).count();
    if number < 4 || number == first.points.len() {
        return None;
    }
    let mut near = plot.clone();
    near.series.iter_mut().for_each(|s| s.points.retain(is_near));
    Some(near)
}

/// Leaves only the first and the last of those labels that the close-up has.
fn thin_out(plot: &mut Roofline, near: &Roofline) {
    let (all, close) = (&mut plot.series[0].points, &near.series[0].points);
    let inner = close.get(1..close.len() - 1).unwrap_or_default();
    for point in all.iter_mut().filter(|p| inner.iter().any(|n| n.label == p.label)) {
        point.label.clear();
    }
}

/// The names of the series that there are, and what the numbers are.
fn legend(ladder: &Ladder) -> (Vec<&'static str>, &'static str) {
    let measured_any = ladder.rungs.iter().any(|r| measured(ladder, r).is_some());
    let names = measured_any.then_some("measured").into_iter().chain(["predicted"]).collect();
    (names, "The operations for each byte are modelled; the lines are from the tables of the GPU.")
}

/// The rungs over one kind of intensity.
fn plot(ladder: &Ladder, intensity: fn(&Modelled) -> f64, slopes: Vec<Slope>) -> Roofline {
    let series = |(name, of): (&str, Rate)| {
        let point = |rung: &Rung| {
            Some(Point {
                label: String::new(),
                name: format!("{} {}", rung.report.rung, rung.report.name),
                flops_per_byte: intensity(&rung.model),
                flops_per_second: of(ladder, rung)?,
            })
        };
        let points = ladder.rungs.iter().filter_map(point).collect();
        Series { name: name.to_string(), joined: false, points }
    };
    let mut all: Vec<Series> = RATES.map(series).into_iter().filter(|s| !s.points.is_empty()).collect();
    // What was measured leads; where nothing was, the predictions do.
    if let Some(leader) = all.first_mut() {
        leader.joined = true;
        for point in &mut leader.points {
            point.label = point.name.split(' ').next().unwrap_or_default().to_string();
        }
    }
    let pipe = fastest_pipe(ladder.problem.precision, ladder.target).map(|(pipe, fma)| Ceiling {
        name: format!("{} at boost clock {}", pipe.name().replace('_', " "), flops_per_second(2.0 * fma)),
        flops_per_second: 2.0 * fma,
    });
    let cublas = ladder.cublas.map(|s| rate(ladder, s)).map(|of| Ceiling {
        name: format!("cuBLAS, measured {}", flops_per_second(of)),
        flops_per_second: of,
    });
    Roofline {
        label: format!("roofline of the ladder {} on {}", ladder.name, ladder.target.product),
        slopes,
        ceilings: pipe.into_iter().chain(cublas).collect(),
        series: all,
    }
}

/// A bar for each rung: measured, and predicted.
fn rates(ladder: &Ladder) -> Vec<String> {
    let bars_of = |of: Rate| -> Vec<(String, f64, String)> {
        let bar = |rung: &Rung| {
            let tflops = of(ladder, rung)? / 1e12;
            Some((format!("{} {}", rung.report.rung, rung.report.name), tflops, small(tflops)))
        };
        ladder.rungs.iter().filter_map(bar).collect()
    };
    let cublas = ladder.cublas.map(|s| rate(ladder, s) / 1e12);
    let mut figures = Vec::new();
    for (kind, of) in RATES {
        let bars = bars_of(of);
        if bars.is_empty() {
            continue;
        }
        let line = if cublas.is_some() { "the dashed line is cuBLAS, measured" } else { "" };
        let picture = Bars { label: format!("rate of each rung, {kind}"), bars, reference: cublas };
        figures.push(figure(&format!("TFLOP/s, {kind}"), line, &[], &picture.svg()));
    }
    figures
}
