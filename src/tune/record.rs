//! One line of wisdom: a configuration that was tried for a problem on a GPU, and what came of it.

use serde::{Deserialize, Serialize};
use warpwright_core::diag::Diagnosis;
use warpwright_core::target::Target;
use warpwright_cuda::DeviceInfo;

use crate::kernels::family::Choice;
use crate::problem::{Alignment, Problem, Shape};

/// The version of the form of a line. Lines of another form are passed over.
pub const FORMAT: u32 = 1;

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The form of the line: [`FORMAT`].
    pub format: u32,
    /// The version of the program that wrote it.
    pub version: String,
    /// The day, in UTC.
    pub date: String,
    /// The GPU.
    pub gpu: Gpu,
    /// The family of kernels.
    pub family: String,
    /// The problem.
    pub problem: Key,
    /// A hash of the schedule: the same schedule is not tried twice.
    pub schedule: String,
    /// What was tried, and what came of it.
    #[serde(flatten)]
    pub trial: Trial,
}

/// A configuration that was tried, and what came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The values of the parameters.
    pub choice: Choice,
    /// Whether it is right and could be timed.
    pub status: Status,
    /// What went wrong, where something did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Seconds of one product: the median.
    pub seconds: Option<f64>,
    /// The first and third quartile of the samples.
    #[serde(default)]
    pub quartiles: Option<(f64, f64)>,
    /// Samples.
    #[serde(default)]
    pub samples: usize,
    /// Whether it was timed at length, as the best few are, and not only for a quick look.
    #[serde(default)]
    pub settled: bool,
    /// Whether the GPU had rested before it was timed, in bursts; else it was timed right after others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rested: bool,
    /// The roofline's seconds over these.
    #[serde(default)]
    pub fraction: Option<f64>,
    /// Registers of a thread, as the compiler reported them.
    #[serde(default)]
    pub registers: Option<u32>,
    /// How long it took to try.
    #[serde(default)]
    pub times: Times,
}

/// Seconds that the stages of a trial took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// From the schedule to machine code.
    pub compile: f64,
    /// Running it once and comparing with the reference, before and after it was timed.
    pub verify: f64,
    /// Timing it.
    pub measure: f64,
    /// All that passed since the trial before was recorded: what it took from the budget.
    pub all: f64,
}

/// What came of a trial, in the words of Kernel Tuner's T4 format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It is right and was timed.
    #[default]
    Correct,
    /// It could not be compiled.
    Compile,
    /// It crashed.
    Runtime,
    /// It did not end within its limit.
    Timeout,
    /// Its result was wrong.
    Correctness,
    /// No kernel can be made of it for this GPU.
    Constraints,
}

/// The GPU that was measured, and the software beside it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gpu {
    /// Its marketing name.
    pub name: String,
    /// Its compute capability, as in 9.0.
    pub compute: String,
    /// Its multiprocessors.
    pub sm_count: u32,
    /// The CUDA version of the driver.
    #[serde(default)]
    pub driver: Option<String>,
    /// The version of NVRTC.
    #[serde(default)]
    pub nvrtc: Option<String>,
}

impl Gpu {
    /// A GPU of this machine.
    pub fn of_device(info: &DeviceInfo, nvrtc: Option<(u32, u32)>) -> Gpu {
        let version = |(major, minor): (u32, u32)| format!("{major}.{minor}");
        Gpu {
            name: info.name.clone(),
            compute: version(info.compute_capability),
            sm_count: info.sm_count,
            driver: Some(version(info.driver_version)),
            nvrtc: nvrtc.map(version),
        }
    }

    /// A GPU of the tables.
    pub fn of_target(target: &Target) -> Gpu {
        Gpu {
            name: target.product.to_string(),
            compute: target.compute.to_string(),
            sm_count: target.sm_count.value,
            driver: None,
            nvrtc: None,
        }
    }

    /// What tells kinds of GPUs apart: the name in the tables where there is one, since drivers spell products in
    /// several ways.
    pub fn kind(&self) -> String {
        let table = Target::by_product(&self.name, self.sm_count).map(|t| t.name);
        table.map_or_else(|| format!("{} ({})", self.name, self.sm_count), ToString::to_string)
    }
}

/// What tells problems apart: everything that may change which choice is best.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Key {
    /// Rows of C.
    pub m: i64,
    /// Columns of C.
    pub n: i64,
    /// Terms of each sum.
    pub k: i64,
    /// The element type.
    pub dtype: String,
    /// A letter for each operand: `n`, `t`, or `c` where there is something to conjugate.
    pub layout: String,
    /// The largest power of two that divides the start of every matrix and the bytes from row to row of those with the most
    /// rows: up to 16, or up to 32, a sector, where rows are padded.
    pub align: i64,
    /// The largest power of two, up to 16, that divides the start of every matrix, in bytes.
    #[serde(default = "aligned", skip_serializing_if = "is_aligned")]
    pub start: i64,
    /// Whether rows follow each other without padding.
    pub dense: bool,
    /// Of padded problems, the letters of those matrices with the most rows whose rows stand apart, or `none`; nothing is said where
    /// all of them do.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub apart: String,
    /// Whether alpha is 1: `one`, else `any`.
    pub alpha: String,
    /// Whether beta is 0: `zero`, else `any`.
    pub beta: String,
    /// Whether B is A.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub same: bool,
}

fn aligned() -> i64 {
    Alignment::MOST
}

/// The letters of a layout with every conjugate transposed operand merely transposed.
fn without_conjugates(layout: &str) -> String {
    layout.replace('c', "t")
}

fn is_aligned(bytes: &i64) -> bool {
    *bytes == Alignment::MOST
}

/// What [`Key::apart`] says of these matrices, each with whether its rows stand apart.
fn letters_apart(long: impl Iterator<Item = (char, bool)>) -> String {
    let (apart, close): (Vec<_>, Vec<_>) = long.partition(|(_, apart)| *apart);
    match (apart.is_empty(), close.is_empty()) {
        (_, true) => String::new(),
        (true, false) => "none".to_string(),
        (false, false) => apart.into_iter().map(|(letter, _)| letter).collect(),
    }
}

impl Key {
    /// The key of a problem.
    pub fn of(problem: &Problem) -> Key {
        let usual = problem.strides_of_adjacent_rows();
        let (ld, dense) = (problem.ld, problem.ld == usual);
        let (operand, result) = (problem.dtype().bytes(), problem.result_dtype().bytes());
        let Alignment { a, b, c } = problem.alignment();
        let start = a.min(b).min(c);
        // Where rows are some way apart, it matters whether they begin where sectors do. A small matrix is read once.
        let most = if dense { Alignment::MOST } else { SECTOR };
        let rows = [problem.stored_a().0, problem.stored_b().0, problem.stored_c().0];
        let longest = rows.into_iter().max().unwrap_or(0);
        let strides = [ld.a * operand, ld.b * operand, ld.c * result];
        let long = strides.into_iter().zip(rows).filter(|(_, rows)| *rows == longest);
        let padded = [('a', ld.a != usual.a), ('b', ld.b != usual.b), ('c', ld.c != usual.c)];
        let apart = letters_apart(
            padded.into_iter().zip(rows).filter(|(_, rows)| *rows == longest).map(|(of, _)| of),
        );
        let of_rows = long.map(|(bytes, _)| 1 << bytes.trailing_zeros().min(most.trailing_zeros())).min();
        let align = if start < Alignment::MOST {
            start.min(of_rows.unwrap_or(start))
        } else {
            of_rows.unwrap_or(most)
        };
        let is = |value: num_complex::Complex64, number: f64, word: &str| {
            if value.im == 0.0 && value.re == number { word } else { "any" }.to_string()
        };
        let layout = problem.layout.to_string();
        Key {
            m: problem.shape.m,
            n: problem.shape.n,
            k: problem.shape.k,
            dtype: problem.precision.name().to_string(),
            layout: if problem.dtype().is_complex() { layout } else { without_conjugates(&layout) },
            align,
            start,
            dense,
            apart: if dense { String::new() } else { apart },
            alpha: is(problem.alpha, 1.0, "one"),
            beta: is(problem.beta, 0.0, "zero"),
            same: problem.same,
        }
    }

    /// The size.
    pub fn shape(&self) -> Shape {
        Shape { m: self.m, n: self.n, k: self.k }
    }

    /// How far the size of another problem is: the length of the vector of logarithms of the ratios of its extents,
    /// where those of long extents count `LONG_COUNTS` times, since twice as many rows are done in the same way;
    /// `ALIGNED_OTHERWISE` more where starts or rows are aligned otherwise, `READ_OTHERWISE` more where B is A in one of them only, and a trifle
    /// more for each of alpha, beta and conjugation that differs: signs and factors hardly change what is fast. `None` where the problems
    /// differ in anything else.
    pub fn distance(&self, other: &Key) -> Option<f64> {
        let operands = |key: &Key| (key.dtype.clone(), without_conjugates(&key.layout));
        if operands(self) != operands(other) {
            return None;
        }
        let far = |a: i64, b: i64| {
            let ratio = (a.max(1) as f64 / b.max(1) as f64).ln();
            (if a.min(b) >= LONG { LONG_COUNTS * ratio } else { ratio }).powi(2)
        };
        let size = (far(self.m, other.m) + far(self.n, other.n) + far(self.k, other.k)).sqrt();
        let further = [
            (!self.lies_alike(other), ALIGNED_OTHERWISE),
            (self.same != other.same, READ_OTHERWISE),
            (self.layout != other.layout, TRIFLE),
            (self.alpha != other.alpha, TRIFLE),
            (self.beta != other.beta, TRIFLE),
        ];
        Some(size + further.into_iter().filter(|(differs, _)| *differs).map(|(_, by)| by).sum::<f64>())
    }

    /// Whether the matrices of two problems lie in memory alike.
    pub fn lies_alike(&self, other: &Key) -> bool {
        let how = |key: &Key| (key.align, key.start, key.dense, key.apart.clone());
        how(self) == how(other)
    }

    /// Whether another problem has the same factors and the same operands, whatever its extents and wherever its matrices lie.
    pub fn is_computed_alike(&self, other: &Key) -> bool {
        let how = |key: &'_ Key| (key.layout.clone(), key.alpha.clone(), key.beta.clone(), key.same);
        self.dtype == other.dtype && how(self) == how(other)
    }
}

/// Extents from which on a factor matters less.
pub const LONG: i64 = 1000;
const LONG_COUNTS: f64 = 0.2;
const ALIGNED_OTHERWISE: f64 = 0.7;
const READ_OTHERWISE: f64 = 0.3;
/// Less than a column more or less makes up to 128 columns.
const TRIFLE: f64 = 0.002;
/// Bytes that memory is read and written in at least.
const SECTOR: i64 = 32;

impl Record {
    /// A trial of this program as a record.
    pub fn new(date: &str, gpu: &Gpu, family: &str, problem: &Key, schedule: &str, trial: Trial) -> Record {
        Record {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_string(),
            date: date.to_string(),
            gpu: gpu.clone(),
            family: family.to_string(),
            problem: problem.clone(),
            schedule: schedule.to_string(),
            trial,
        }
    }

    /// The line, with its end.
    pub fn line(&self) -> Result<String, Diagnosis> {
        serde_json::to_string(self)
            .map(|line| line + "\n")
            .map_err(|e| Diagnosis::new("a result cannot be written as JSON").because(e.to_string()))
    }

    /// Reads a line.
    ///
    /// # Errors
    /// Why it is none of ours, as the end of a sentence that begins with "it".
    pub fn parse(line: &str) -> Result<Record, String> {
        #[derive(Deserialize)]
        struct Form {
            format: u32,
        }
        let record: Record = match serde_json::from_str(line) {
            Ok(record) => record,
            Err(e) if e.is_eof() => return Err("is cut short".to_string()),
            Err(e) => {
                return Err(match serde_json::from_str::<Form>(line) {
                    Ok(Form { format }) if format != FORMAT => other_form(format),
                    _ => format!("is no record of wisdom ({e})"),
                });
            }
        };
        if record.format != FORMAT {
            return Err(other_form(record.format));
        }
        let timed = record.trial.seconds.is_some_and(|s| s.is_finite() && s > 0.0);
        if record.trial.status == Status::Correct && !timed {
            return Err("claims to be correct without a time".to_string());
        }
        Ok(record)
    }
}

fn other_form(format: u32) -> String {
    format!("has form {format}, and this program reads form {FORMAT}")
}

/// A hash (64-bit FNV-1a), the same on every machine and in every version.
pub fn hash(bytes: &[u8]) -> String {
    let hash = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |h, byte| (h ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::{Gpu, Key, Record, Status, Trial, hash};
    use crate::problem::Problem;
    use crate::tune::tests::record;
    use warpwright_core::target::Target;

    fn problem(shape: &str) -> Problem {
        Problem::new(shape.parse().unwrap(), "f64".parse().unwrap(), "tn".parse().unwrap())
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let record = record(20, 4, 1.234_567_890_123e-3);
        let line = record.line().unwrap();
        assert!(line.ends_with("}\n") && line.matches('\n').count() == 1);
        assert_eq!(Record::parse(line.trim_end()), Ok(record));
        assert!(line.contains(r#""status":"correct""#) && line.contains(r#""leapfrog":true"#), "{line}");
    }

    #[test]
    fn every_beginning_of_a_line_is_refused_and_so_is_what_is_not_ours() {
        let line = record(20, 4, 1e-3).line().unwrap();
        let whole = line.trim_end();
        for cut in 0..whole.len() {
            assert!(Record::parse(&whole[..cut]).is_err(), "{cut}");
        }
        let refused = |text: &str| Record::parse(text).unwrap_err();
        assert_eq!(refused(&whole[..whole.len() / 2]), "is cut short");
        assert!(refused("{\"format\":2}").contains("has form 2"));
        assert!(refused("# a comment").contains("no record"));
        assert!(refused(&whole.replace("0.001", "0")).contains("without a time"));
        let failed = Trial { status: Status::Timeout, ..Trial::default() };
        let failed = Record { trial: failed, ..record(20, 4, 1.0) };
        assert!(Record::parse(failed.line().unwrap().trim()).is_ok(), "what failed needs no time");
    }

    #[test]
    fn keys_tell_apart_what_may_change_the_best_choice() {
        let dense = Key::of(&problem("20x20x1000"));
        assert_eq!(
            (dense.align, dense.dense, dense.alpha.as_str(), dense.beta.as_str()),
            (16, true, "one", "zero")
        );
        assert_eq!(Key::of(&problem("21x20x1000")).align, 8);
        let mut padded = problem("20x20x1000");
        padded.ld.a = 21;
        padded.beta.re = 1.0;
        let padded = Key::of(&padded);
        assert_eq!((padded.align, padded.dense, padded.beta.as_str()), (8, false, "any"));
        assert!(dense != padded && dense.distance(&padded).unwrap() > 0.7);
        let apart = |a: i64, b: i64, c: i64| {
            let mut apart = problem("20x20x1000");
            (apart.ld.a, apart.ld.b, apart.ld.c) = (a, b, c);
            Key::of(&apart)
        };
        let aligned = |a: i64, b: i64| apart(a, b, 20).align;
        assert_eq!(
            (aligned(22, 24), aligned(24, 28), aligned(24, 20)),
            (16, 32, 32),
            "sectors are 4 elements"
        );
        let (both, some) = (apart(21, 21, 20), [apart(21, 20, 20), apart(20, 21, 20), apart(20, 20, 21)]);
        assert_eq!(some.each_ref().map(|key| key.apart.as_str()), ["a", "b", "none"]);
        assert_eq!(
            (both.apart.as_str(), dense.apart.as_str()),
            ("", ""),
            "nothing is said of both and of neither"
        );
        assert!(some.iter().all(|key| !key.lies_alike(&both) && key.distance(&both).unwrap() > 0.5));
        let late = |a: i64, shape: &str| {
            let mut late = problem(shape);
            late.offset.a = a;
            Key::of(&late)
        };
        let (one, odd) = (late(1, "20x20x1000"), late(1, "21x20x1000"));
        assert_eq!((one.align, one.start, one.dense), (8, 8, true));
        assert!(one != dense && odd != Key::of(&problem("21x20x1000")), "another start is another problem");
        assert_eq!(late(2, "20x20x1000"), dense, "an aligned start is none");
        assert!(dense.distance(&one).unwrap() > 0.5);
        let far = dense.distance(&Key::of(&problem("40x20x1000"))).unwrap();
        assert!((far - 2f64.ln()).abs() < 1e-12);
        // Only the product of the extents is the same.
        assert!(dense.distance(&Key::of(&problem("2x2x100000"))).unwrap() > 3.0);
        let aligned_otherwise = dense.distance(&Key::of(&problem("21x20x1000"))).unwrap();
        assert!(aligned_otherwise > dense.distance(&Key::of(&problem("32x20x1000"))).unwrap());
    }

    #[test]
    fn a_driver_and_the_tables_mean_the_same_gpu() {
        let h100 = Target::by_name("h100-sxm").unwrap();
        let driver = Gpu { name: "NVIDIA H100 80GB HBM3".to_string(), ..Gpu::of_target(h100) };
        assert_eq!(driver.kind(), Gpu::of_target(h100).kind());
        let cut_down = Gpu { sm_count: 7, ..driver.clone() };
        assert_ne!(cut_down.kind(), driver.kind());
    }

    #[test]
    fn the_hash_never_changes() {
        assert_eq!(hash(b""), "cbf29ce484222325");
        assert_eq!(hash(b"a"), "af63dc4c8601ec8c");
    }
}
