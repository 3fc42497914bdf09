//! What tuning has tried of tiles, as points of the figure about them.

use std::collections::BTreeMap;
use std::path::Path;

use warpwright_core::target::Target;

use super::{Ceiling, Figure, Key, Operation, Pace, Point, Seconds, Size};
use crate::bench::record::Record;
use crate::kernels::family::Choice;
use crate::problem::Problem;
use crate::report::ChosenBy;
use crate::roofline::{Bandwidths, Ceilings, Roofline};
use crate::tune::file::{WisdomFile, on_family};
use crate::tune::record::{self, Status};

/// Of each tile of a thread that reads rows into registers, the best in the wisdom files (`*.jsonl`) of a directory on a
/// GPU, a record for each day. Files that cannot be read are passed over: the page has enough without them.
pub fn tiles(directory: &Path, gpu: &str) -> Vec<Record<Point>> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut paths: Vec<_> = entries.flatten().map(|e| e.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "jsonl"));
    paths.sort();
    let wanted = on_family(Operation::Tsmttsm.name());
    let files = paths.into_iter().filter_map(|path| WisdomFile::at(path).load_where(&wanted).ok());
    let mut best: BTreeMap<String, (record::Record, Point)> = BTreeMap::new();
    for line in files.flat_map(|loaded| loaded.records).filter(|r| r.gpu.name == gpu) {
        let Some(point) = point(&line) else { continue };
        let place = format!("{} {} {}", point.key.dtype, point.width(), point.key.varied);
        match best.get(&place) {
            Some((_, known)) if known.fraction(Pace::Sustained) >= point.fraction(Pace::Sustained) => {}
            _ => {
                best.insert(place, (line, point));
            }
        }
    }
    let mut days: BTreeMap<String, Record<Point>> = BTreeMap::new();
    for (line, point) in best.into_values() {
        let day = days.entry(line.date.clone()).or_insert_with(|| Record {
            version: line.version,
            date: line.date,
            gpu: gpu.to_string(),
            driver: line.gpu.driver.unwrap_or_default(),
            driver_release: None,
            nvrtc: line.gpu.nvrtc,
            results: Vec::new(),
        });
        day.results.push(point);
    }
    days.into_values().collect()
}

/// A line of wisdom as a point, if it is about the tile of a square C.
fn point(line: &record::Record) -> Option<Point> {
    let (trial, key) = (&line.trial, &line.problem);
    let choice = &trial.choice;
    let by_threads = choice.word("unit") == "fma" && choice.word("staging") == "registers";
    if !by_threads || trial.status != Status::Correct || key.m != key.n || !key.dense {
        return None;
    }
    let problem = Problem::new(key.shape(), key.dtype.parse().ok()?, key.layout.parse().ok()?);
    let target = Target::by_product(&line.gpu.name, line.gpu.sm_count)?;
    let ceilings = Ceilings::of(problem.precision, target, &Bandwidths::default())?;
    let varied = ["tm", "tn"].iter().filter_map(|name| Some((name, choice.get(name)?)));
    let varied = varied.fold(Choice::default(), |c, (name, value)| c.with(*name, *value));
    let median = trial.seconds?;
    let key = Key {
        figure: Figure::Tiles,
        operation: Operation::Tsmttsm,
        dtype: key.dtype.clone(),
        size: Size { m: key.m, n: key.n, k: key.k },
        placement: None,
        varied,
    };
    let text = line.schedule.clone();
    Some(Point {
        registers: trial.registers,
        ceiling: Some(Ceiling {
            seconds: Roofline::under(&problem, &ceilings).seconds(),
            bytes_per_second: ceilings.bytes_per_second(&problem),
            flops_per_second: ceilings.flops_per_second,
            bytes: None,
        }),
        seconds: Some(Seconds {
            median,
            quartiles: trial.quartiles.unwrap_or((median, median)),
            samples: trial.samples,
        }),
        ..Point::unmeasured(key, choice.clone(), ChosenBy::Wisdom, text, problem.flops())
    })
}

#[cfg(test)]
mod tests {
    use super::tiles;
    use crate::bench::tsm::Pace;
    use crate::kernels::family::Choice;
    use crate::problem::Problem;
    use crate::tune::file::WisdomFile;
    use crate::tune::record::{Gpu, Key, Record, Status, Trial};
    use warpwright_core::target;

    #[test]
    fn of_each_tile_the_best_that_was_right_is_a_point() {
        let gpu = Gpu::of_target(target::DEFAULT);
        let problem =
            Problem::new("32x32x4000000".parse().unwrap(), "f64".parse().unwrap(), "tn".parse().unwrap());
        let line = |staging: &'static str, tm: i64, date: &str, seconds: f64, status: Status| {
            let choice =
                Choice::default().with("unit", "fma").with("staging", staging).with("tm", tm).with("tn", 4);
            let trial = Trial { choice, seconds: Some(seconds), status, ..Trial::default() };
            Record::new(date, &gpu, "tsmttsm", &Key::of(&problem), "", trial)
        };
        let directory = std::env::temp_dir().join(format!("warpwright-tuned-{}", std::process::id()));
        let file = WisdomFile::at(directory.join("wisdom.jsonl"));
        file.append(&[
            line("registers", 4, "2026-11-21", 1e-3, Status::Correct),
            line("registers", 4, "2026-11-22", 0.9e-3, Status::Correct),
            line("registers", 4, "2026-11-23", 1.1e-3, Status::Correct),
            line("registers", 8, "2026-11-22", 0.5e-3, Status::Correctness),
            line("shared", 8, "2026-11-22", 0.5e-3, Status::Correct),
            line("registers", 2, "2026-11-21", 2e-3, Status::Correct),
        ])
        .unwrap();
        let days = tiles(&directory, &gpu.name);
        let found: Vec<_> = days
            .iter()
            .flat_map(|d| {
                d.results.iter().map(|p| (d.date.as_str(), p.key.varied.int("tm"), p.seconds.unwrap().median))
            })
            .collect();
        assert_eq!(found, [("2026-11-21", 2, 2e-3), ("2026-11-22", 4, 0.9e-3)]);
        let ideal = 2.0 * 32.0 * 4e6 * 8.0 / 4552e9;
        assert!((days[1].results[0].fraction(Pace::Sustained).unwrap() * 0.9e-3 / ideal - 1.0).abs() < 1e-3);
        assert!(tiles(&directory, "another").is_empty());
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
