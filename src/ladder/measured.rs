//! Measured times of an earlier run, from a file: what `ladder --json` printed on a GPU, or what `bench --record` wrote.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use warpwright_core::diag::Diagnosis;

use super::{Counted, Registers};
use crate::bench::record::Record;
use crate::file::unreadable;
use crate::problem::{Problem, Shape};
use crate::report::{Factor, ProblemReport};

/// What times were measured on, and where they are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The GPU, as its driver calls it.
    pub gpu: String,
    /// The file; `None` for a run of just now.
    pub file: Option<String>,
    /// The day and the versions of the software, where the file says.
    pub with: Option<String>,
}

/// The times in a file.
#[derive(Clone, Debug)]
pub struct Measured {
    /// What they were measured on.
    pub source: Source,
    timed: Vec<Timed>,
}

/// A kernel, or cuBLAS, on one product.
#[derive(Clone, Debug)]
struct Timed {
    problem: Product,
    kernel: String,
    seconds: f64,
    registers: Option<u32>,
    /// The schedule that made it, where the file says.
    schedule: Option<String>,
    right: bool,
}

/// The name of cuBLAS among kernels.
const CUBLAS: &str = "cublas";

/// A product in a file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Product {
    m: i64,
    n: i64,
    k: i64,
    dtype: String,
    layout: String,
    alpha: Value,
    beta: Value,
}

#[derive(Deserialize)]
struct Launched {
    registers: Option<u32>,
}

/// A result of `bench`.
#[derive(Deserialize)]
struct OfBench {
    problem: Product,
    kernel: String,
    launches: Vec<Launched>,
    passed: Option<bool>,
    seconds: f64,
}

/// A result of `ladder`.
#[derive(Deserialize)]
struct OfLadder {
    problem: Product,
    device: OnDevice,
    kernel: Named,
    check: Checked,
    time: Seconds,
    cublas: Option<Seconds>,
}

#[derive(Deserialize)]
struct OnDevice {
    kind: String,
    gpu: String,
}

#[derive(Deserialize)]
struct Named {
    name: String,
    launches: Vec<Launched>,
    schedule: Option<String>,
}

#[derive(Deserialize)]
struct Checked {
    passed: bool,
}

#[derive(Deserialize)]
struct Seconds {
    seconds: Option<f64>,
}

impl Measured {
    /// Reads a file.
    ///
    /// # Errors
    /// Files that cannot be read, are of another kind, or have no measured time.
    pub fn read(path: &Path) -> Result<Measured, Diagnosis> {
        let text = std::fs::read_to_string(path).map_err(|e| unreadable(path, &e))?;
        Measured::parse(&text, &path.display().to_string())
    }

    /// Reads the text of a file of this name.
    fn parse(text: &str, file: &str) -> Result<Measured, Diagnosis> {
        let wrong = |because: String| {
            Diagnosis::new(format!("{file}: no measured times of a ladder")).because(because).instead(ADVICE)
        };
        let value: Value = serde_json::from_str(text).map_err(|e| wrong(format!("it is no JSON: {e}")))?;
        let (source, timed) = match value {
            Value::Array(_) => {
                let rows: Vec<OfLadder> = serde_json::from_value(value)
                    .map_err(|e| wrong(format!("its array is not one that `ladder --json` prints: {e}")))?;
                of_ladder(rows, file).map_err(wrong)?
            }
            Value::Object(_) => {
                let record: Record<OfBench> = serde_json::from_value(value)
                    .map_err(|e| wrong(format!("its object is not one that `bench --record` writes: {e}")))?;
                of_bench(record, file)
            }
            _ => return Err(wrong("it is neither an array nor an object".to_string())),
        };
        let is_time = |t: &Timed| t.seconds.is_finite() && t.seconds > 0.0;
        match timed.iter().find(|t| !is_time(t)) {
            Some(t) => Err(wrong(format!("the time of {} is {} seconds", t.kernel, t.seconds))),
            None if timed.iter().all(|t| t.kernel == CUBLAS) => {
                Err(wrong(format!("nothing in it was timed on {}", source.gpu)))
            }
            None => Ok(Measured { source, timed }),
        }
    }

    /// The size of a product like this one of which most of these kernels were timed; where there are several, the largest.
    /// With `size`, that size.
    ///
    /// # Errors
    /// Files with no such kernel, or none at this size.
    pub fn size(&self, like: &Problem, size: Option<Shape>, kernels: &[String]) -> Result<Shape, Diagnosis> {
        let file = self.source.file.as_deref().unwrap_or_default();
        let of_them = |t: &&Timed| t.problem.is_like(like) && kernels.contains(&t.kernel);
        let mut sizes: Vec<(usize, Shape)> = Vec::new();
        for shape in self.timed.iter().filter(of_them).map(|t| t.problem.shape()) {
            match sizes.iter_mut().find(|(_, other)| *other == shape) {
                Some((number, _)) => *number += 1,
                None => sizes.push((1, shape)),
            }
        }
        if sizes.is_empty() {
            let mut there: Vec<&str> = self.timed.iter().map(|t| t.kernel.as_str()).collect();
            there.sort_unstable();
            there.dedup();
            let more = if there.len() > 4 { ", ..." } else { "" };
            there.truncate(4);
            return Err(Diagnosis::new(format!("{file}: no time of a rung of this ladder"))
                .because(format!("it has {}{more}; {} is wanted", there.join(", "), kernels.join(" or ")))
                .instead("name the file of this ladder, or give the --dtype, --layout, --alpha and --beta of the file"));
        }
        if let Some(size) = size {
            if sizes.iter().any(|(_, other)| *other == size) {
                return Ok(size);
            }
            let there: Vec<String> = sizes.iter().map(|(_, s)| s.to_string()).collect();
            return Err(Diagnosis::new(format!("{file}: no time of a rung at {size}"))
                .because(format!("its rungs were timed at {}", there.join(" and ")))
                .instead("leave out --size, or give one of these"));
        }
        let best = sizes.iter().max_by(|a, b| {
            (a.0, a.1.multiply_adds())
                .partial_cmp(&(b.0, b.1.multiply_adds()))
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        Ok(best.map(|(_, shape)| *shape).unwrap_or(like.shape))
    }

    /// Seconds of a kernel on a problem, if its result was right.
    pub fn seconds(&self, problem: &Problem, kernel: &str) -> Option<f64> {
        self.of(problem, kernel).filter(|t| t.right).map(|t| t.seconds)
    }

    /// Whether the schedule of a kernel was another one when it was timed, as far as the file says.
    pub fn is_outdated(&self, problem: &Problem, kernel: &str, schedule: &str) -> bool {
        let then = self.of(problem, kernel).and_then(|t| t.schedule.as_deref());
        then.is_some_and(|then| then.trim() != schedule.trim())
    }

    /// Seconds of cuBLAS.
    pub fn cublas(&self, problem: &Problem) -> Option<f64> {
        self.seconds(problem, CUBLAS)
    }

    /// Registers of a thread of a kernel, where the file says.
    pub fn registers(&self, problem: &Problem, kernel: &str) -> Option<Registers> {
        let count = self.of(problem, kernel)?.registers?;
        Some(Registers { count, by: Counted::Record })
    }

    /// The kernels whose results were wrong when they were timed.
    pub fn wrong(&self, problem: &Problem) -> Vec<&str> {
        let wrong = self.timed.iter().filter(|t| !t.right && t.problem.is(problem));
        wrong.map(|t| t.kernel.as_str()).collect()
    }

    /// The last result of a kernel on a problem.
    fn of(&self, problem: &Problem, kernel: &str) -> Option<&Timed> {
        self.timed.iter().rev().find(|t| t.kernel == kernel && t.problem.is(problem))
    }
}

/// What to do about a file that will not do.
const ADVICE: &str = "name what `ladder NAME --device cuda --json` printed or `bench NAME --record` wrote on a machine with a GPU";

impl Product {
    fn shape(&self) -> Shape {
        Shape { m: self.m, n: self.n, k: self.k }
    }

    /// Whether everything but the size is as in that problem.
    fn is_like(&self, problem: &Problem) -> bool {
        let of = ProblemReport::of(problem);
        let factor = |f: Factor| serde_json::to_value(f).ok();
        self.dtype == of.dtype
            && self.layout == of.layout
            && factor(of.alpha).as_ref() == Some(&self.alpha)
            && factor(of.beta).as_ref() == Some(&self.beta)
    }

    fn is(&self, problem: &Problem) -> bool {
        self.shape() == problem.shape && self.is_like(problem)
    }
}

/// The registers of the launch that has most.
fn most(launches: &[Launched]) -> Option<u32> {
    launches.iter().filter_map(|l| l.registers).max()
}

fn of_bench(record: Record<OfBench>, file: &str) -> (Source, Vec<Timed>) {
    let nvrtc = record.nvrtc.as_ref().map_or(String::new(), |v| format!(", NVRTC {v}"));
    let source = Source {
        gpu: record.gpu.clone(),
        file: Some(file.to_string()),
        with: Some(format!("{}, driver {}{nvrtc}", record.date, record.release())),
    };
    let timed = record.results.into_iter().map(|r| Timed {
        registers: most(&r.launches),
        problem: r.problem,
        kernel: r.kernel,
        seconds: r.seconds,
        schedule: None,
        right: r.passed != Some(false),
    });
    (source, timed.collect())
}

fn of_ladder(rows: Vec<OfLadder>, file: &str) -> Result<(Source, Vec<Timed>), String> {
    let Some(first) = rows.first() else { return Err("its array is empty".to_string()) };
    let gpu = first.device.gpu.clone();
    if let Some(other) = rows.iter().find(|r| r.device.kind != "cuda") {
        return Err(format!("{} ran on {} ({})", other.kernel.name, other.device.gpu, other.device.kind));
    }
    if let Some(other) = rows.iter().find(|r| r.device.gpu != gpu) {
        return Err(format!("its rungs ran on different GPUs: {gpu} and {}", other.device.gpu));
    }
    let mut timed = Vec::new();
    for row in rows {
        if let Some(seconds) = row.cublas.and_then(|c| c.seconds) {
            let (problem, kernel) = (row.problem.clone(), CUBLAS.to_string());
            timed.push(Timed { problem, kernel, seconds, registers: None, schedule: None, right: true });
        }
        if let Some(seconds) = row.time.seconds {
            timed.push(Timed {
                registers: most(&row.kernel.launches),
                problem: row.problem,
                kernel: row.kernel.name,
                schedule: row.kernel.schedule,
                seconds,
                right: row.check.passed,
            });
        }
    }
    Ok((Source { gpu, file: Some(file.to_string()), with: None }, timed))
}

#[cfg(test)]
mod tests {
    use super::Measured;
    use crate::ladder::Counted;
    use crate::problem::{Problem, Shape};

    fn problem(shape: &str) -> Problem {
        Problem::new(shape.parse().unwrap(), "f32".parse().unwrap(), "nn".parse().unwrap())
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    fn row(size: i64, kernel: &str, seconds: f64, passed: &str) -> String {
        format!(
            r#"{{"problem":{{"m":{size},"n":{size},"k":{size},"dtype":"f32","layout":"nn","alpha":1.0,"beta":0.0}},
            "kernel":"{kernel}","launches":[{{"registers":40}},{{"registers":null}}],"passed":{passed},"seconds":{seconds}}}"#
        )
    }

    fn record(rows: &[String]) -> String {
        let rows = rows.join(",");
        format!(
            r#"{{"version":"0","date":"2026-11-21","gpu":"G","driver":"13.0","nvrtc":"13.0","results":[{rows}]}}"#
        )
    }

    #[test]
    fn results_of_bench_are_read_with_what_they_were_measured_on() {
        let rows = [
            row(64, "cublas", 0.5, "null"),
            row(64, "a", 2.0, "true"),
            row(64, "b", 3.0, "false"),
            row(32, "a", 1.0, "true"),
        ];
        let measured = Measured::parse(&record(&rows), "f.json").unwrap();
        let source = &measured.source;
        assert_eq!((source.gpu.as_str(), source.file.as_deref()), ("G", Some("f.json")));
        assert_eq!(source.with.as_deref(), Some("2026-11-21, driver for CUDA 13.0, NVRTC 13.0"));
        let (large, small) = (problem("64x64x64"), problem("32x32x32"));
        assert_eq!(measured.seconds(&large, "a"), Some(2.0));
        assert_eq!(measured.seconds(&small, "a"), Some(1.0));
        assert_eq!(measured.seconds(&large, "b"), None, "its result was wrong");
        assert_eq!(measured.wrong(&large), ["b"]);
        assert_eq!((measured.cublas(&large), measured.cublas(&small)), (Some(0.5), None));
        let registers = measured.registers(&large, "a").unwrap();
        assert_eq!((registers.count, registers.by), (40, Counted::Record));
        let mut other = large;
        other.beta = num_complex::Complex64::new(1.0, 0.0);
        assert_eq!(measured.seconds(&other, "a"), None, "another product");
    }

    #[test]
    fn the_size_is_that_of_most_rungs_or_the_one_that_is_asked_for() {
        let rows = [
            row(64, "a", 2.0, "true"),
            row(32, "a", 1.0, "true"),
            row(32, "b", 1.0, "true"),
            row(16, "b", 1.0, "true"),
        ];
        let measured = Measured::parse(&record(&rows), "f.json").unwrap();
        let size = |size: Option<Shape>, of: &[&str]| measured.size(&problem("8x8x8"), size, &names(of));
        assert_eq!(size(None, &["a", "b"]), Ok(Shape::cube(32)));
        assert_eq!(size(None, &["a"]), Ok(Shape::cube(64)), "the largest of several");
        assert_eq!(size(Some(Shape::cube(16)), &["a", "b"]), Ok(Shape::cube(16)));
        let missing = size(Some(Shape::cube(7)), &["a"]).unwrap_err().to_string();
        assert!(missing.contains("f.json") && missing.contains("64x64x64 and 32x32x32"), "{missing}");
        let other = size(None, &["c"]).unwrap_err().to_string();
        assert!(other.contains("it has a, b; c is wanted"), "{other}");
    }

    #[test]
    fn what_ladder_prints_is_read_if_it_ran_on_a_gpu() {
        let of = |kind: &str, seconds: &str| {
            format!(
                r#"[{{"rung":1,"problem":{{"m":8,"n":8,"k":8,"dtype":"f32","layout":"nn","alpha":1.0,"beta":0.0}},
                "device":{{"kind":"{kind}","gpu":"G"}},"kernel":{{"name":"a","launches":[{{"registers":7}}],"schedule":"x\n"}},
                "check":{{"passed":true}},"time":{{"seconds":{seconds},"kind":null}},
                "cublas":{{"seconds":0.25,"tflops":1.0}}}}]"#
            )
        };
        let measured = Measured::parse(&of("cuda", "0.5"), "f.json").unwrap();
        let of_it = problem("8x8x8");
        assert_eq!((measured.seconds(&of_it, "a"), measured.cublas(&of_it)), (Some(0.5), Some(0.25)));
        assert_eq!(measured.registers(&of_it, "a").unwrap().count, 7);
        assert!(measured.is_outdated(&of_it, "a", "y") && !measured.is_outdated(&of_it, "a", "x"));
        for (text, part) in [
            (of("sim", "0.5"), "a ran on G (sim)"),
            (of("cuda", "null"), "nothing in it was timed on G"),
            (of("cuda", "-1"), "the time of a is -1 seconds"),
            ("[]".to_string(), "empty"),
            ("[1]".to_string(), "not one that `ladder --json` prints"),
            ("{}".to_string(), "not one that `bench --record` writes"),
            ("3".to_string(), "neither"),
            ("{".to_string(), "no JSON"),
        ] {
            let refused = Measured::parse(&text, "f.json").unwrap_err().to_string();
            assert!(refused.contains("f.json") && refused.contains(part), "{part}: {refused}");
        }
    }
}
