//! The figures as one self-contained page, from what is on record of a GPU.

use std::collections::BTreeMap;

use warpwright_core::dtype::DType;

use super::{Figure, Operation, Pace, Point, memory, tables};
use crate::bench::bandwidth::Bandwidth;
use crate::bench::record::Record;
use crate::kernels::family::{Choice, Value};
use crate::report::page::{Size, document, escaped, figure, side_by_side, table};
use crate::report::svg::{Axis, Chart, Line, Map};
use crate::roofline::only_reads;

/// A point, and where it was measured.
#[derive(Clone, Debug)]
pub(super) struct Measured<'a> {
    pub(super) point: &'a Point,
    date: &'a str,
    driver: String,
}

/// The page of one GPU; of records on the same point the last counts. Of its memory it says what is known.
pub fn page(records: &[Record<Point>], bandwidths: Option<&Record<Bandwidth>>) -> String {
    let records = &under_one_roofline(records);
    let all = latest(records, |_| true);
    let cached = latest(records, |point| point.cached_rested.is_some());
    let gpu = records.last().map_or("", |r| r.gpu.as_str());
    let page = Page { gpu, all: &all };
    let mut body = page.introduction();
    body += &page.widths();
    body += &Page { gpu, all: &cached }.cached();
    body += &Page { gpu, all: &latest(records, |point| point.zeros_rested.is_some()) }.zeros();
    for figure in Figure::CHOSEN {
        let points = page.of(|p| p.key.figure == figure);
        body += &tables::section(figure, &points, &page.note(&points));
    }
    for section in [page.tiles(), page.reductions(), page.options()] {
        body += &section;
    }
    body += &bandwidths.map_or(String::new(), memory::section);
    document(&format!("Tall and skinny products on {gpu}"), &body)
}

/// The records with all points under one roofline, that of the greatest bandwidth that any of them knows for reads, or for reads and writes: some
/// were measured before the GPU was seen to reach it.
fn under_one_roofline(records: &[Record<Point>]) -> Vec<Record<Point>> {
    let reads = |point: &Point| {
        let dtype = point.key.dtype.parse().unwrap_or(DType::F64);
        only_reads(&point.key.operation.oblong(dtype, point.narrow(), point.length()))
    };
    let known = |only: bool| {
        let of_this_kind = records.iter().flat_map(|r| &r.results).filter(|point| reads(point) == only);
        of_this_kind.filter_map(|point| point.ceiling).map(|c| c.bytes_per_second).fold(0.0, f64::max)
    };
    let (read, copied) = (known(true), known(false));
    let mut records = records.to_vec();
    for point in records.iter_mut().flat_map(|r| &mut r.results) {
        let greatest = if reads(point) { read } else { copied };
        let arithmetic = point.flops;
        let Some(ceiling) = &mut point.ceiling else { continue };
        let arithmetic = arithmetic / ceiling.flops_per_second;
        if ceiling.bytes_per_second < greatest {
            let memory = ceiling.seconds * ceiling.bytes_per_second / greatest;
            ceiling.seconds =
                if ceiling.seconds > arithmetic { memory.max(arithmetic) } else { ceiling.seconds };
            ceiling.bytes_per_second = greatest;
        }
    }
    records
}

/// The last of the points that are wanted of each identity.
fn latest<'a>(records: &'a [Record<Point>], wanted: impl Fn(&Point) -> bool) -> Vec<Measured<'a>> {
    let mut latest = BTreeMap::new();
    for record in records {
        for point in record.results.iter().filter(|point| wanted(point)) {
            latest.insert(identity(point), Measured { point, date: &record.date, driver: record.release() });
        }
    }
    latest.into_values().collect()
}

/// What tells points of the page apart. But for figures about lengths there is one of a shape, whatever its length.
fn identity(point: &Point) -> String {
    let key = &point.key;
    let length = if matches!(key.figure, Figure::Reductions | Figure::Short) { point.length() } else { 0 };
    let placement = key.placement.map_or(String::new(), |p| p.to_string());
    let (figure, (a, b)) = (key.figure, point.narrow());
    format!("{figure:?} {} {} {a}x{b} {length} {placement} {}", key.operation, key.dtype, key.varied)
}

struct Page<'a> {
    gpu: &'a str,
    all: &'a [Measured<'a>],
}

/// The types in the order of the page.
const DTYPES: [DType; 4] = [DType::F32, DType::F64, DType::C64, DType::C128];

impl<'a> Page<'a> {
    /// The points of a figure, by width.
    fn of(&self, wanted: impl Fn(&Point) -> bool) -> Vec<&'a Measured<'a>> {
        let mut points: Vec<_> = self.all.iter().filter(|m| wanted(m.point)).collect();
        points.sort_by_key(|m| (m.point.width(), m.point.key.size.k));
        points
    }

    /// GPU, driver and date of some points.
    fn note(&self, points: &[&Measured]) -> String {
        let all = |of: fn(&Measured) -> String| {
            let mut values: Vec<String> = points.iter().map(|m| of(m)).collect();
            values.sort();
            values.dedup();
            values.join(" and ")
        };
        let (driver, date) = (all(|m| m.driver.clone()), all(|m| m.date.to_string()));
        format!("{}, driver {driver}, {date}", self.gpu)
    }

    /// What is shown, and the means of the main figure.
    fn introduction(&self) -> String {
        let failed = self.all.iter().filter(|m| m.point.seconds.is_none()).count();
        let mut text = String::from(
            "<p>The roofline is the larger of the bytes of the operands over the bandwidth of the GPU's memory and of \
             the arithmetic over the most that any product of the type reaches; 100 % is as fast as that. Every time is \
             a median, measured beside cuBLAS on the same operands in the same run, and every result was compared with \
             a reference. <em>Rested</em> are short bursts with a pause before each; <em>sustained</em> is without a \
             pause: what keeps both the memory and the arithmetic busy may take the GPU to its limit of power, where \
             its clock goes down. Where nothing is said times are sustained. Means are geometric.</p>\n",
        );
        if failed > 0 {
            text += &format!(
                "<p>{failed} points have no time, since their kernels failed; they are left out.</p>\n"
            );
        }
        let mut rows = Vec::new();
        for (operation, dtype) in panels() {
            let points = self.of(|p| is_main(p, operation, dtype));
            if points.is_empty() {
                continue;
            }
            let name = format!("{} {dtype}", operation.formula(dtype));
            rows.push(tables::summary(name, &points));
        }
        if !rows.is_empty() {
            text += &table(&tables::SUMMARY, &rows);
        }
        text
    }

    /// The fraction of the roofline against the width, both products by four types.
    fn widths(&self) -> String {
        let mut figures = Vec::new();
        let mut rows = Vec::new();
        for (operation, dtype) in panels() {
            let points = self.of(|p| is_main(p, operation, dtype));
            if points.is_empty() {
                continue;
            }
            let mut lines = Vec::new();
            for pace in Pace::ALL.into_iter().rev() {
                lines.push(line("warpwright", pace, &points, |p| p.fraction(pace)));
                lines.push(line("cuBLAS", pace, &points, |p| p.fraction_of_cublas(pace)));
            }
            lines.retain(|l| !l.points.is_empty());
            let title = format!("{}, {dtype}: % of the roofline", operation.formula(dtype));
            figures.push(chart(&title, &self.note(&points), width_axis(&lines), lines));
            rows.extend(points.iter().map(|m| row(m.point)));
        }
        if figures.is_empty() {
            return String::new();
        }
        let headings = [
            "product",
            "type",
            "M = N",
            "K or rows",
            "ms rested",
            "quartiles",
            "TFLOP/s",
            "of the roofline",
            "cuBLAS",
            "times cuBLAS",
            "ms sustained",
            "quartiles",
            "TFLOP/s",
            "of the roofline",
            "cuBLAS",
            "times cuBLAS",
            "chosen by",
            "registers",
            "parameters",
        ];
        format!(
            "<h2>Percentage of the roofline against the width M = N</h2>\n{}<details><summary>The numbers</summary>\n{}</details>\n",
            side_by_side(&figures, Size::Small),
            table(&headings, &rows)
        )
    }

    /// The fraction of the roofline beside the one that would be reached if device memory cost nothing.
    fn cached(&self) -> String {
        self.beside("in the cache", |p| p.fraction_of_cached(Pace::Rested), [
            "If device memory cost nothing",
            "The same kernels on matrices that lie in the second-level cache: one piece of memory of a few megabytes at as many \
             addresses as the matrices have. Where both lines are the same, what is missing to the roofline is missing in the \
             multiprocessors: instructions, registers, shared memory, or matrix units that have rows and columns to spare.",
        ])
    }

    /// The fraction of the roofline beside the one that is reached on zeros.
    fn zeros(&self) -> String {
        self.beside("on zeros", |p| p.fraction_of_zeros(Pace::Rested), [
            "If power were no limit",
            "The same kernels on operands that are all zeros, whose products draw little power, so that the GPU need not lower its clocks. \
             What lies between the lines is taken by power; what is missing above both is missing in the kernel.",
        ])
    }

    /// The fraction of the roofline beside another one, with a heading and what it means; nothing where that was not measured.
    fn beside(&self, name: &str, other: fn(&Point) -> Option<f64>, [heading, text]: [&str; 2]) -> String {
        let mut figures = Vec::new();
        for (operation, dtype) in panels() {
            let points = self.of(|p| is_main(p, operation, dtype));
            if points.is_empty() {
                continue;
            }
            let lines = vec![
                line("as it is", Pace::Rested, &points, |p| p.fraction(Pace::Rested)),
                line(name, Pace::Rested, &points, other),
            ];
            let title = format!("{}, {dtype}: % of the roofline", operation.formula(dtype));
            figures.push(chart(&title, &self.note(&points), width_axis(&lines), lines));
        }
        if figures.is_empty() {
            return String::new();
        }
        format!("<h2>{heading}</h2>\n<p>{text}</p>\n{}", side_by_side(&figures, Size::Small))
    }

    /// Performance against the tiles of a thread.
    fn tiles(&self) -> String {
        let mut figures = Vec::new();
        for (dtype, width) in self.kinds(Figure::Tiles) {
            let points = self.of(|p| is_of(p, Figure::Tiles, &dtype, width));
            let extents = |name: &str| -> Vec<i64> {
                let mut all: Vec<i64> = points.iter().map(|m| m.point.key.varied.int(name)).collect();
                all.sort_unstable();
                all.dedup();
                all
            };
            let (rows, columns) = (extents("tm"), extents("tn"));
            let cell = |tm: i64, tn: i64| {
                let at = |m: &&&Measured| {
                    let varied = &m.point.key.varied;
                    (varied.int("tm"), varied.int("tn")) == (tm, tn)
                };
                let share = points.iter().find(at)?.point.fraction(Pace::Sustained)?;
                Some((share, format!("{:.0}", 100.0 * share)))
            };
            let title = format!("Tiles of a thread, {dtype}, M = N = {width}: % of the roofline");
            let map = Map {
                label: title.clone(),
                columns: ("columns of C of a thread (tn)".to_string(), names(&columns)),
                rows: ("rows (tm)".to_string(), names(&rows)),
                cells: rows.iter().map(|tm| columns.iter().map(|tn| cell(*tm, *tn)).collect()).collect(),
            };
            figures.push(figure(&title, &self.note(&points), &[], &map.svg()));
        }
        section(
            "Performance against tile sizes",
            "C = AᵀB by threads that read rows into registers; everything but the tile is what the model ranks first for it, or, where that was not measured, the best that tuning has tried.",
            &figures,
        )
    }

    /// The fraction of the roofline against the length for each reduction.
    fn reductions(&self) -> String {
        let mut figures = Vec::new();
        for (dtype, width) in self.kinds(Figure::Reductions) {
            let points = self.of(|p| is_of(p, Figure::Reductions, &dtype, width));
            let lines = by_variation(&points, |p| p.key.size.k as f64);
            let ticks = (3..=8).map(|e| (10f64.powi(e), power(e))).collect();
            let x = Axis {
                label: "length K of the sums".to_string(),
                range: (0.8e3, 1.3e8),
                logarithmic: true,
                ticks,
            };
            let title = format!("Reductions, {dtype}, M = N = {width}: % of the roofline");
            figures.push(chart(&title, &self.note(&points), x, lines));
        }
        section(
            "The cost of each reduction against K",
            "C = AᵀB by one kernel that adds up the parts of its blocks in several ways. Operands of up to three times the \
             second-level cache rotate among copies.",
            &figures,
        )
    }

    /// With and without leap frogging and transposed mapping.
    fn options(&self) -> String {
        let mut figures = Vec::new();
        let mut dtypes: Vec<String> = self.kinds(Figure::Options).into_iter().map(|(d, _)| d).collect();
        dtypes.dedup();
        for dtype in dtypes {
            let points = self.of(|p| p.key.figure == Figure::Options && p.key.dtype == dtype);
            let lines = by_variation(&points, |p| p.width() as f64);
            let title = format!("Leap frogging and transposed mapping, {dtype}: % of the roofline");
            figures.push(chart(&title, &self.note(&points), width_axis(&lines), lines));
        }
        section(
            "The permutations of the options",
            "C = AᵀB by threads that read rows into registers; tiles are what the model ranks first for each.",
            &figures,
        )
    }

    /// Types and widths of a figure.
    fn kinds(&self, figure: Figure) -> Vec<(String, i64)> {
        let points = self.of(|p| p.key.figure == figure);
        let mut kinds: Vec<_> = points.iter().map(|m| (m.point.key.dtype.clone(), m.point.width())).collect();
        kinds.sort();
        kinds.dedup();
        kinds
    }
}

/// The panels of the main figure.
pub(super) fn panels() -> impl Iterator<Item = (Operation, DType)> {
    Operation::ALL.into_iter().flat_map(|operation| DTYPES.map(|dtype| (operation, dtype)))
}

fn is_main(point: &Point, operation: Operation, dtype: DType) -> bool {
    let key = &point.key;
    key.figure == Figure::Widths && key.operation == operation && key.dtype == dtype.name()
}

fn is_of(point: &Point, figure: Figure, dtype: &str, width: i64) -> bool {
    point.key.figure == figure && point.key.dtype == dtype && point.width() == width
}

/// A line of percentages against the width; a line that is not sustained says so.
fn line(name: &str, pace: Pace, points: &[&Measured], of: impl Fn(&Point) -> Option<f64>) -> Line {
    let name = match pace {
        Pace::Rested => format!("{name}, rested"),
        Pace::Sustained => name.to_string(),
    };
    let place = |m: &&Measured| Some((m.point.width() as f64, 100.0 * of(m.point)?));
    Line { name, points: points.iter().filter_map(place).collect() }
}

/// A line of percentages for each combination of what is varied.
fn by_variation(points: &[&Measured], x: impl Fn(&Point) -> f64) -> Vec<Line> {
    let mut lines: BTreeMap<&Choice, Vec<(f64, f64)>> = BTreeMap::new();
    for point in points.iter().map(|m| m.point) {
        let line = lines.entry(&point.key.varied).or_default();
        line.extend(point.fraction(Pace::Sustained).map(|share| (x(point), 100.0 * share)));
    }
    lines.into_iter().map(|(varied, points)| Line { name: words(varied), points }).collect()
}

/// What is varied, in words: the values of words, the names of what is switched on.
fn words(varied: &Choice) -> String {
    let word = |(name, value): (&str, &Value)| match value {
        Value::Flag(true) => Some(name.to_string()),
        Value::Flag(false) => None,
        Value::Int(number) => Some(format!("{name}={number}")),
        Value::Word(word) => Some(word.to_string()),
    };
    let all: Vec<String> = varied.iter().filter_map(word).collect();
    if all.is_empty() { "neither".to_string() } else { all.join(" and ") }
}

/// A figure of percentages.
fn chart(title: &str, note: &str, x: Axis, lines: Vec<Line>) -> String {
    let most = lines.iter().flat_map(|l| &l.points).map(|(_, y)| *y).fold(100.0, f64::max);
    let ticks = (0..=4).map(|n| 25.0 * f64::from(n)).map(|v| (v, format!("{v:.0} %"))).collect();
    let y = Axis { label: "%".to_string(), range: (0.0, most.max(105.0)), logarithmic: false, ticks };
    let names: Vec<String> = lines.iter().map(|l| l.name.clone()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    figure(title, note, &names, &Chart { label: title.to_string(), x, y, lines }.svg())
}

/// Widths from 0 to the widest, marked at multiples of 8 or 16.
fn width_axis(lines: &[Line]) -> Axis {
    let widest = lines.iter().flat_map(|l| &l.points).map(|(x, _)| *x).fold(64.0, f64::max);
    let step = if widest > 64.0 { 16 } else { 8 };
    let marks = (0..=widest as i64).step_by(step);
    Axis {
        label: "width M = N".to_string(),
        range: (0.0, widest),
        logarithmic: false,
        ticks: marks.map(|w| (w as f64, w.to_string())).collect(),
    }
}

fn section(title: &str, about: &str, figures: &[String]) -> String {
    if figures.is_empty() {
        return String::new();
    }
    format!("<h2>{}</h2>\n<p>{}</p>\n{}", escaped(title), escaped(about), side_by_side(figures, Size::Large))
}

/// A point as a line of the table.
fn row(point: &Point) -> Vec<String> {
    let key = &point.key;
    let mut cells = vec![
        key.operation.to_string(),
        key.dtype.clone(),
        point.width().to_string(),
        key.size.k.max(key.size.m).to_string(),
    ];
    for pace in Pace::ALL {
        let quartiles = point.at(pace).map(|s| {
            let about = |q: f64| 100.0 * (q / s.median - 1.0);
            format!("{:+.1} {:+.1} %", about(s.quartiles.0), about(s.quartiles.1))
        });
        cells.extend([
            point.at(pace).map_or(dash(), |s| format!("{:.3}", 1e3 * s.median)),
            quartiles.unwrap_or(dash()),
            point.flops_per_second(pace).map_or(dash(), |f| format!("{:.2}", f / 1e12)),
            percent(point.fraction(pace)),
            percent(point.fraction_of_cublas(pace)),
            times(point.times_cublas(pace)),
        ]);
    }
    cells.extend([
        point.chosen_by.name().to_string(),
        point.registers.map_or(dash(), |r| r.to_string()),
        point.parameters.to_string(),
    ]);
    cells
}

fn names(extents: &[i64]) -> Vec<String> {
    extents.iter().map(i64::to_string).collect()
}

pub(super) fn percent(share: Option<f64>) -> String {
    share.map_or(dash(), |s| format!("{:.1} %", 100.0 * s))
}

/// How many times as fast.
pub(super) fn times(ratio: Option<f64>) -> String {
    ratio.map_or(dash(), |t| format!("{t:.2}"))
}

pub(super) fn dash() -> String {
    "–".to_string()
}

/// A power of ten.
fn power(exponent: i32) -> String {
    let digit = |d: char| "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().nth(d.to_digit(10).unwrap_or(0) as usize).unwrap_or(d);
    format!("10{}", exponent.to_string().chars().map(digit).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::{Operation, Point, page, under_one_roofline};
    use crate::bench::record::Record;
    use crate::bench::tsm::Size;
    use crate::bench::tsm::tests::record;

    /// What was measured before the GPU was seen to reach more stands under the roofline of today.
    #[test]
    fn all_points_stand_under_the_greatest_bandwidth_that_is_known() {
        let before = record();
        let mut after = record();
        let ceiling = |r: &Record<Point>| r.results[0].ceiling.unwrap();
        after.results.truncate(1);
        after.results[0].ceiling.as_mut().unwrap().bytes_per_second *= 2.0;
        let found = under_one_roofline(&[before.clone(), after.clone()]);
        assert_eq!(ceiling(&found[0]).bytes_per_second, ceiling(&after).bytes_per_second);
        let arithmetic = before.results[0].flops / ceiling(&before).flops_per_second;
        assert!(arithmetic < 0.5 * ceiling(&before).seconds, "the point is bound by memory");
        assert!((ceiling(&found[0]).seconds / ceiling(&before).seconds - 0.5).abs() < 1e-12);
        assert_eq!(found[1].results, after.results, "those of the greatest bandwidth stay");
        // What writes as much as it reads has a bandwidth of its own.
        let mut copied = before.results[0].clone();
        copied.key.operation = Operation::Tsmm;
        copied.key.size = Size { m: copied.key.size.k, n: 8, k: 8 };
        let other = Record { results: vec![copied], ..before };
        assert_eq!(under_one_roofline(&[other.clone(), after])[0].results, other.results);
    }

    #[test]
    fn what_kernels_take_on_zeros_or_in_the_cache_has_a_figure_where_it_was_measured() {
        let headings = ["If power were no limit", "If device memory cost nothing"];
        let shown = |text: &str| headings.map(|heading| text.contains(heading));
        assert_eq!(shown(&page(&[record()], None)), [false, false]);
        let mut measured = record();
        measured.results[0].zeros_rested = measured.results[0].rested;
        assert_eq!(shown(&page(&[measured.clone()], None)), [true, false]);
        measured.results[0].cached_rested = measured.results[0].rested;
        assert_eq!(shown(&page(&[measured], None)), [true, true]);
    }
}
