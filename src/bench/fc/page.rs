//! The figures as one self-contained page.

use std::collections::BTreeMap;

use super::csv::main;
use super::{Launch, Point};
use crate::bench::record::Record;
use crate::bench::tsm::mean;
use crate::report::page::{Size, document, escaped, figure, side_by_side, table};
use crate::report::svg::{Axis, Chart, Line};

/// The page of one GPU; of records on the same point the last counts.
pub fn page(records: &[Record<Point>]) -> String {
    let mut latest = BTreeMap::new();
    for record in records {
        for point in &record.results {
            let key = &point.key;
            latest.insert((key.dtype.clone(), -key.k * key.n, key.k, key.n, key.m), (point, record));
        }
    }
    let gpu = records.last().map_or("", |r| r.gpu.as_str());
    let mut body = String::from(INTRODUCTION);
    let mut layers: BTreeMap<_, Vec<(&Point, &Record<Point>)>> = BTreeMap::new();
    for ((dtype, size, k, n, _), measured) in latest {
        layers.entry((dtype == "bf16", dtype, size, k, n)).or_default().push(measured);
    }
    for ((_, dtype, _, k, n), measured) in layers {
        let points: Vec<&Point> = measured.iter().map(|(point, _)| *point).collect();
        let mut notes: Vec<String> =
            measured.iter().map(|(_, r)| format!("{}, driver {}, {}", r.gpu, r.release(), r.date)).collect();
        notes.dedup();
        body += &layer(&format!("W of {k} x {n}, {dtype}"), &notes.join("; "), &points);
    }
    document(&format!("Fully connected layers on {gpu}"), &body)
}

const INTRODUCTION: &str = "<p>y = x W against the rows of x. The roofline is the larger of the bytes of x, W and y over what reads of the \
GPU's memory reach, and of the arithmetic over the most that any product of the type reaches. Every time is a median of graph \
replays without a pause, over copies of the weights that together are larger than the second-level cache, with x and y where they are, beside cuBLAS on the same \
operands in the same run; every result was compared with a reference before and after. Grids and occupancies are those of the launch \
with the most threads; occupancy is the part of a multiprocessor's warps that its blocks are, as far as there are as many \
blocks. Means are geometric.</p>\n";

fn layer(title: &str, note: &str, points: &[&Point]) -> String {
    let line = |name: &str, of: &dyn Fn(&Point) -> Option<f64>| Line {
        name: name.to_string(),
        points: points.iter().filter_map(|p| Some((p.key.m as f64, of(p)?))).collect(),
    };
    let of_launch = |of: fn(&Launch) -> Option<f64>| {
        let ours = move |p: &Point| main(&p.launches).and_then(of);
        let cublas = move |p: &Point| p.cublas_launches.as_deref().and_then(main).and_then(of);
        [line("warpwright", &ours), line("cuBLAS", &cublas)]
    };
    let micro = |seconds: Option<f64>| seconds.map(|s| 1e6 * s);
    let charts = [
        chart(
            "microseconds",
            true,
            vec![
                line("warpwright", &|p| micro(p.seconds.map(|s| s.median))),
                line("cuBLAS", &|p| micro(p.cublas.map(|s| s.median))),
                line("roofline", &|p| micro(p.roofline())),
            ],
        ),
        chart(
            "% of the roofline",
            false,
            vec![
                line("warpwright", &|p| p.fraction().map(|f| 100.0 * f)),
                line("cuBLAS", &|p| p.fraction_of_cublas().map(|f| 100.0 * f)),
            ],
        ),
        chart("blocks of the grid", true, of_launch(|l| Some(l.blocks() as f64)).to_vec()),
        chart("% occupancy", false, of_launch(|l| Some(100.0 * l.occupancy?)).to_vec()),
    ];
    let figures: Vec<String> = charts
        .iter()
        .map(|chart| {
            let names: Vec<&str> = chart.lines.iter().map(|l| l.name.as_str()).collect();
            figure(&format!("{title}: {}", chart.y.label), note, &names, &chart.svg())
        })
        .collect();
    let ratios = |from: i64, to: i64| {
        let of: Vec<f64> = points
            .iter()
            .filter(|p| (from..=to).contains(&p.key.m))
            .filter_map(|p| p.times_cublas())
            .collect();
        let least = of.iter().copied().reduce(f64::min)?;
        Some(format!("{from} to {to} rows: {:.2} times as fast as cuBLAS, {least:.2} at least", mean(of)?))
    };
    let said: Vec<String> = [ratios(1, 1024), ratios(2, 64)].into_iter().flatten().collect();
    let rows: Vec<Vec<String>> = points.iter().map(|p| row(p)).collect();
    format!(
        "<h2>{}</h2>\n<p>{}</p>\n{}<details><summary>The numbers</summary>\n{}</details>\n",
        escaped(title),
        escaped(&said.join("; ")),
        side_by_side(&figures, Size::Small),
        table(&HEADINGS, &rows)
    )
}

const HEADINGS: [&str; 15] = [
    "rows",
    "us",
    "us rested",
    "of the roofline",
    "cuBLAS us",
    "cuBLAS",
    "times cuBLAS",
    "grid",
    "threads",
    "occupancy",
    "cuBLAS grid",
    "occupancy",
    "cuBLAS kernel",
    "chosen by",
    "parameters",
];

fn row(point: &Point) -> Vec<String> {
    let dash = || "–".to_string();
    let micro = |s: Option<f64>| s.map_or_else(dash, |s| format!("{:.2}", 1e6 * s));
    let percent = |share: Option<f64>| share.map_or_else(dash, |s| format!("{:.1} %", 100.0 * s));
    let grid = |l: Option<&Launch>| l.map_or_else(dash, |l| l.grid.map(|e| e.to_string()).join("x"));
    let (ours, cublas) = (main(&point.launches), point.cublas_launches.as_deref().and_then(main));
    vec![
        point.key.m.to_string(),
        micro(point.seconds.map(|s| s.median)),
        micro(point.rested.map(|s| s.median)),
        percent(point.fraction()),
        micro(point.cublas.map(|s| s.median)),
        percent(point.fraction_of_cublas()),
        point.times_cublas().map_or_else(dash, |t| format!("{t:.2}")),
        grid(ours),
        ours.map_or_else(dash, |l| l.block.iter().product::<u32>().to_string()),
        percent(ours.and_then(|l| l.occupancy)),
        grid(cublas),
        percent(cublas.and_then(|l| l.occupancy)),
        cublas.map_or_else(dash, |l| l.kernel.clone()),
        point.chosen_by.name().to_string(),
        point.message.clone().unwrap_or_else(|| point.parameters.to_string()),
    ]
}

/// A chart against the rows of x; `decades` makes the other axis one of ratios.
fn chart(label: &str, decades: bool, lines: Vec<Line>) -> Chart {
    let values = || lines.iter().flat_map(|l| &l.points).map(|(_, y)| *y).filter(|y| *y > 0.0);
    let (least, most) = (values().fold(f64::MAX, f64::min), values().fold(1.0, f64::max));
    let y = if decades {
        let (low, high) = (least.min(most).log10().floor() as i32, most.log10().ceil() as i32);
        let ticks = (low..=high).map(|e| 10f64.powi(e)).map(|v| (v, v.to_string()));
        let range = (10f64.powi(low), 10f64.powi(high.max(low + 1)));
        Axis { label: label.to_string(), range, logarithmic: true, ticks: ticks.collect() }
    } else {
        let ticks = (0..=4).map(|n| 25.0 * f64::from(n)).map(|v| (v, format!("{v:.0} %"))).collect();
        Axis { label: label.to_string(), range: (0.0, most.max(100.0)), logarithmic: false, ticks }
    };
    let rows = lines.iter().flat_map(|l| &l.points).map(|(x, _)| *x).fold(2.0, f64::max);
    let ticks = (0..=rows.log2() as i32).step_by(2).map(|e| 2f64.powi(e)).map(|v| (v, v.to_string()));
    let x = Axis {
        label: "rows of x".to_string(),
        range: (1.0, rows),
        logarithmic: true,
        ticks: ticks.collect(),
    };
    Chart { label: label.to_string(), x, y, lines }
}

#[cfg(test)]
mod tests {
    use super::page;
    use crate::bench::fc::tests::{point, record};

    #[test]
    fn the_page_has_a_section_for_each_layer_and_shows_the_latest_of_each_point() {
        let old = record(vec![point(1, 9e-5, Some(4e-5)), point(16, 4e-5, None)]);
        let mut other = point(4, 5e-5, Some(5e-5));
        other.key.dtype = "bf16".to_string();
        let new = record(vec![point(1, 2e-5, Some(4e-5)), other]);
        let text = page(&[old, new]);
        assert_eq!(text.matches("<h2>").count(), 2, "{text}");
        assert!(text.contains("W of 4096 x 4096, f32") && text.contains("W of 4096 x 4096, bf16"));
        assert!(text.contains("20.00") && !text.contains("90.00"), "the latest counts");
        assert!(text.contains("1 to 1024 rows: 2.00 times as fast as cuBLAS, 2.00 at least"));
        assert!(text.contains("<td>32x1x4</td>") && text.contains("driver 580.1"));
    }
}
