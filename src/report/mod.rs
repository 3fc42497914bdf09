//! Results, as data for programs and as tables for people.
//!
//! [`Report`] is the contract of `--json`: the fields and their names are stable. Numbers are bare numbers in
//! the base unit (seconds, bytes, counts); each group of numbers says by its `kind` whether it was measured on
//! a GPU, counted by the simulator or computed by a model. What is not known is `null`, never left out.

pub mod diff;
pub mod ladder;
pub mod number;
pub mod occupancy;
pub mod page;
pub mod progress;
pub mod roofline;
pub mod svg;
pub mod table;
pub mod targets;
pub mod text;

use std::fmt;

use num_complex::Complex64;
use serde::{Deserialize, Serialize, Serializer};

use crate::kernels::family::Choice;
use crate::problem::{Offsets, Problem, Strides};
use crate::reference::Comparison;

/// The result of one kernel on one problem.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What was computed.
    pub problem: ProblemReport,
    /// On what.
    pub device: DeviceReport,
    /// By what.
    pub kernel: KernelReport,
    /// Whether it is right.
    pub check: CheckReport,
    /// What the simulator counted.
    pub counters: Option<Counters>,
    /// How long one product takes.
    pub time: Time,
    /// The rate that follows from the time, in 10^12 floating-point operations per second.
    pub tflops: Option<f64>,
    /// The same product by cuBLAS in the same run.
    pub cublas: Option<Cublas>,
}

/// One rung of a ladder: a report, and what the rung is about.
#[derive(Clone, Debug, Serialize)]
pub struct RungReport {
    /// The number of the rung.
    pub rung: u32,
    /// Its name.
    pub name: String,
    /// What it changes in the rung before, in one sentence.
    pub change: String,
    /// Why that helps, or why it does not, in one more.
    pub why: String,
    /// The result.
    #[serde(flatten)]
    pub report: Report,
}

/// The problem in a report.
#[derive(Clone, Debug, Serialize)]
pub struct ProblemReport {
    /// Rows of C.
    pub m: i64,
    /// Columns of C.
    pub n: i64,
    /// Terms of each sum.
    pub k: i64,
    /// The element type.
    pub dtype: &'static str,
    /// A letter for each operand.
    pub layout: String,
    /// Factor of the product.
    pub alpha: Factor,
    /// Factor of the old C.
    pub beta: Factor,
    /// Whether B is A; left out where it is not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub same: bool,
    /// The row strides of A, B and C in elements; left out where all rows lie one behind the other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row_strides: Option<[i64; 3]>,
    /// By how many elements A, B and C start behind an aligned address; left out where all start at one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<[i64; 3]>,
}

/// A factor: a number, or a pair where there is an imaginary part.
#[derive(Clone, Copy, Debug)]
pub struct Factor(pub Complex64);

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.im == 0.0 { self.0.re.fmt(f) } else { self.0.fmt(f) }
    }
}

impl Serialize for Factor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.im == 0.0 {
            self.0.re.serialize(serializer)
        } else {
            [self.0.re, self.0.im].serialize(serializer)
        }
    }
}

/// The device in a report.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceReport {
    /// `sim` or `cuda`.
    pub kind: &'static str,
    /// The name of the GPU: of the tables for a simulated one, of the driver for a real one.
    pub gpu: String,
}

/// The kernel in a report.
#[derive(Clone, Debug, Serialize)]
pub struct KernelReport {
    /// Its full name.
    pub name: String,
    /// The family it belongs to.
    pub family: String,
    /// What was chosen for the parameters of the family, if it has any.
    #[serde(skip_serializing_if = "Choice::is_empty")]
    pub parameters: Choice,
    /// Who chose it and its parameters.
    pub chosen_by: ChosenBy,
    /// Its launches in order.
    pub launches: Vec<LaunchReport>,
    /// The schedule that made it, in the text form that can be run from a file.
    pub schedule: String,
    /// Whether the same input gives the same bits every time.
    pub deterministic: bool,
}

/// Who chose a kernel and its parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChosenBy {
    /// Whoever named it.
    #[default]
    Named,
    /// It was measured to be the best for this problem on this GPU.
    Wisdom,
    /// It was measured to be the best for a problem nearby.
    Neighbour,
    /// The model ranks it first.
    Model,
    /// A rule that knows the kernels of the ladders.
    Rule,
}

impl ChosenBy {
    /// The word that stands for it in results.
    pub fn name(self) -> &'static str {
        match self {
            ChosenBy::Named => "named",
            ChosenBy::Wisdom => "wisdom",
            ChosenBy::Neighbour => "neighbour",
            ChosenBy::Model => "model",
            ChosenBy::Rule => "rule",
        }
    }
}

/// One launch of a kernel.
#[derive(Clone, Debug, Serialize)]
pub struct LaunchReport {
    /// Blocks in x, y and z.
    pub grid: [u64; 3],
    /// Threads of a block in x, y and z.
    pub block: [u32; 3],
    /// Bytes of shared memory of a block.
    pub shared_bytes: u64,
    /// Registers of a thread, where a compiler has said.
    pub registers: Option<u32>,
}

/// The verdict in a report.
#[derive(Clone, Debug, Serialize)]
pub struct CheckReport {
    /// Equality with the specification over a prime field.
    pub exact: Option<ExactCheck>,
    /// Closeness to the f64 reference.
    pub float: FloatCheck,
    /// Races found.
    pub races: u64,
    /// Accesses out of bounds found.
    pub out_of_bounds: u64,
    /// Reads of uninitialised memory found.
    pub uninitialized: u64,
    /// Missed barriers, wrong phases and other faults of synchronisation found.
    pub barrier_faults: u64,
    /// Whether the above holds for the whole launch or for a sample of its blocks.
    pub claims: Claims,
    /// Whether everything is right.
    pub passed: bool,
}

/// How much of a launch was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Claims {
    /// Every block.
    Launch,
    /// Some blocks: interior, edges and corner.
    Sample,
}

/// Equality with the specification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExactCheck {
    /// Random inputs that were tried.
    pub trials: u32,
    /// Whether all agreed.
    pub passed: bool,
    /// The size at which they did, as `MxNxK`, where another stood in for a large problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// Closeness to the reference.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FloatCheck {
    /// The error of the element that comes closest to its bound.
    pub max_error: f64,
    /// The bound of that element.
    pub bound: f64,
    /// Whether every element is within its bound, and those that are not finite are of the right class.
    pub passed: bool,
}

/// What the simulator counted, summed over the simulated blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Where the numbers come from: always the simulator.
    pub kind: Kind,
    /// Warp-level loads from global memory with at least one active lane.
    pub global_load_requests: u64,
    /// Distinct 32-byte sectors of each such request, summed.
    pub global_load_sectors: u64,
    /// Warp-level stores to global memory.
    pub global_store_requests: u64,
    /// Their sectors.
    pub global_store_sectors: u64,
    /// Warp-level loads from shared memory.
    pub shared_load_requests: u64,
    /// Passes over the banks that they take.
    pub shared_load_wavefronts: u64,
    /// Warp-level stores to shared memory.
    pub shared_store_requests: u64,
    /// Passes over the banks that they take.
    pub shared_store_wavefronts: u64,
    /// Real multiply-adds of active lanes.
    pub fma: u64,
    /// Barriers that a block executes.
    pub barriers: u64,
    /// Branches at which the lanes of a warp part.
    pub divergent_branches: u64,
    /// Blocks that were simulated.
    pub blocks_simulated: u64,
    /// Blocks of the launches.
    pub blocks_total: u64,
}

/// Where a group of numbers comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Timed on a GPU.
    Measured,
    /// Counted by the simulator.
    #[default]
    Simulated,
    /// Computed by a model.
    Modelled,
}

/// How long a product takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Time {
    /// Seconds of one product.
    pub seconds: Option<f64>,
    /// Where the number comes from.
    pub kind: Option<Kind>,
}

/// cuBLAS on the same product.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cublas {
    /// Seconds of one product.
    pub seconds: f64,
    /// The rate that follows.
    pub tflops: f64,
}

impl ProblemReport {
    /// The problem in a report.
    pub fn of(problem: &Problem) -> ProblemReport {
        let dense = Problem::new(problem.shape, problem.precision, problem.layout);
        ProblemReport {
            m: problem.shape.m,
            n: problem.shape.n,
            k: problem.shape.k,
            dtype: problem.precision.name(),
            layout: problem.layout.to_string(),
            alpha: Factor(problem.alpha),
            beta: Factor(problem.beta),
            same: problem.same,
            row_strides: (problem.ld != dense.ld).then(|| {
                let Strides { a, b, c } = problem.ld;
                [a, b, c]
            }),
            offset: (problem.offset != Offsets::default()).then(|| {
                let Offsets { a, b, c } = problem.offset;
                [a, b, c]
            }),
        }
    }
}

impl ProblemReport {
    /// What is unusual about it, if anything is: factors, that B is A, and how the matrices lie where they are not dense and aligned. Words to put
    /// behind the layout.
    pub fn particulars(&self) -> String {
        let factor = |name: &str, given: Factor, usual: f64| {
            let is_usual = given.0 == Complex64::from(usual);
            if is_usual { String::new() } else { format!(" {name} {given}") }
        };
        let places = |name: &str, places: Option<[i64; 3]>| {
            places.map_or(String::new(), |[a, b, c]| format!(" {name} {a},{b},{c}"))
        };
        [
            factor("alpha", self.alpha, 1.0),
            factor("beta", self.beta, 0.0),
            if self.same { " same".to_string() } else { String::new() },
            places("ld", self.row_strides),
            places("offset", self.offset),
        ]
        .concat()
    }
}

impl fmt::Display for ProblemReport {
    /// Its size, type and layout, and what is unusual about it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ProblemReport { m, n, k, dtype, layout, .. } = self;
        write!(f, "{m}x{n}x{k} {dtype} {layout}{}", self.particulars())
    }
}

impl FloatCheck {
    /// The outcome of a comparison in a report.
    pub fn of(comparison: &Comparison) -> FloatCheck {
        FloatCheck { max_error: comparison.max_error, bound: comparison.bound, passed: comparison.passed() }
    }
}

/// The rate of a problem that takes `seconds`, in 10^12 operations per second.
pub fn tflops(problem: &Problem, seconds: f64) -> f64 {
    problem.flops() / seconds / 1e12
}

#[cfg(test)]
mod tests;
