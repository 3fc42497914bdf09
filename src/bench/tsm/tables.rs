//! The parts of the page that are tables: means of points, and the figures of oblong, padded and short products.

use super::page::{Measured, dash, panels, percent, times};
use super::{Figure, Pace, Point, mean};
use crate::report::page::{escaped, table};

/// The headings of [`summary`].
pub const SUMMARY: [&str; 10] = [
    "product",
    "points",
    "rested: mean",
    "least",
    "cuBLAS",
    "times cuBLAS",
    "sustained: mean",
    "least",
    "cuBLAS",
    "times cuBLAS",
];

/// A line about some points: fractions of the roofline, and how many times as fast as cuBLAS, at both paces.
pub fn summary(name: String, points: &[&Measured]) -> Vec<String> {
    let mut cells = vec![name, points.len().to_string()];
    for pace in Pace::ALL {
        let mean =
            |of: fn(&Point, Pace) -> Option<f64>| mean(points.iter().filter_map(|m| of(m.point, pace)));
        let least = points.iter().filter_map(|m| m.point.fraction(pace)).reduce(f64::min);
        cells.extend([
            percent(mean(Point::fraction)),
            percent(least),
            percent(mean(Point::fraction_of_cublas)),
            times(mean(Point::times_cublas)),
        ]);
    }
    cells
}

/// The part of the page about a figure of chosen kernels; nothing where it has no points.
pub fn section(figure: Figure, points: &[&Measured], note: &str) -> String {
    if points.is_empty() {
        return String::new();
    }
    let (title, about) = match figure {
        Figure::Shapes => (
            "Products with M and N that differ",
            "Of C = AB the two numbers are the columns of A and those of C.",
        ),
        Figure::Strides => (
            "Rows that are padded, and matrices that start anywhere",
            "Strides and starts of A, B and C are in elements. The bytes of the roofline are the sectors of 32 bytes that \
             hold something of a matrix.",
        ),
        Figure::Split => (
            "Products in f32 and complex64 whose numbers are split into tf32 parts",
            "What is chosen with --allow-split: matrix units make each product of three of tf32 parts. Where the bound of the error \
             is no larger than that of plain sums, the main figure has the same without asking: of sums that threads add up in pieces from 16 \
             terms on, 11 complex ones, of others from 38, 21 complex ones. \
             R and cuBLAS are those of the main figure, in single precision.",
        ),
        _ => (
            "Short products",
            "Operands rotate among copies that together are larger than the second-level cache. The last column of each pace \
             compares with the time of two empty launches, measured in the same run, and of the bytes at the bandwidth of \
             the roofline: 100 % is as fast as that.",
        ),
    };
    let is_short = figure == Figure::Short;
    let mut rows = Vec::new();
    for (operation, dtype) in panels() {
        let of =
            |m: &&&Measured| (m.point.key.operation, m.point.key.dtype.as_str()) == (operation, dtype.name());
        let all: Vec<&Measured> = points.iter().filter(of).copied().collect();
        let mut lengths: Vec<i64> = all.iter().map(|m| m.point.length()).filter(|_| is_short).collect();
        lengths.sort_unstable();
        lengths.dedup();
        let name = format!("{} {dtype}", operation.formula(dtype));
        for length in &lengths {
            let some: Vec<&Measured> = all.iter().filter(|m| m.point.length() == *length).copied().collect();
            rows.push(summary(format!("{name}, {length}"), &some));
        }
        if !all.is_empty() && !is_short {
            rows.push(summary(name, &all));
        }
    }
    let mut headings = vec!["product", "type", "size", "length", "lies"];
    for pace in Pace::ALL {
        let of_pace = match pace {
            Pace::Rested => "us rested",
            Pace::Sustained => "us sustained",
        };
        headings.extend([of_pace, "of the roofline", "times cuBLAS"]);
        headings.extend(is_short.then_some("of two launches and the bytes"));
    }
    headings.extend(["chosen by", "parameters"]);
    let lines: Vec<Vec<String>> = points.iter().map(|m| row(m.point, is_short)).collect();
    format!(
        "<h2>{}</h2>\n<p>{}</p>\n{}<p class=\"quiet\">{}</p>\n<details><summary>The numbers</summary>\n{}</details>\n",
        escaped(title),
        escaped(about),
        table(&SUMMARY, &rows),
        escaped(note),
        table(&headings, &lines)
    )
}

/// A point as a line of the table.
fn row(point: &Point, is_short: bool) -> Vec<String> {
    let (key, (a, b)) = (&point.key, point.narrow());
    let mut cells = vec![
        key.operation.to_string(),
        key.dtype.clone(),
        format!("{a}x{b}"),
        point.length().to_string(),
        key.placement.map_or(dash(), |p| p.to_string()),
    ];
    for pace in Pace::ALL {
        cells.extend([
            point.at(pace).map_or(dash(), |s| format!("{:.1}", 1e6 * s.median)),
            percent(point.fraction(pace)),
            times(point.times_cublas(pace)),
        ]);
        cells.extend(is_short.then(|| percent(point.fraction_of_short(pace))));
    }
    cells.extend([point.chosen_by.name().to_string(), point.parameters.to_string()]);
    cells
}
