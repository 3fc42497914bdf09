//! The figures of tall and skinny products, beside cuBLAS: what is measured, and what is recorded.
//!
//! Every product is timed at two paces. *Sustained* is the pace of a GPU that multiplies on and on, at its limit of power
//! if it comes to that; *rested* that of short bursts with a pause before each, which published medians are taken with.
//! What is called `seconds`, `cublas` and `fraction` without more, in records and tables, is sustained, and so is all
//! that older records have; what is rested says so.
//!
//! `tsmttsm` is C = A^T B (of complex elements A^H B) with A and B of two gigabytes or so and a C of at most 128 x 128;
//! `tsmm` is C = A B with a small B. The main figure takes the kernels that `gemm` would choose, over widths; those beside it do
//! so for oblong products, padded rows and short ones; the others vary one thing about kernels of `tsmttsm`, as the figures of Ernst, Hager, Thies and Wellein do (IJHPCA 35(1),
//! 2021). Every point is a line of its own in a record, and a run that was cut short goes on where it was.

pub mod chosen;
pub mod csv;
pub mod job;
pub mod log;
pub mod measure;
mod memory;
pub mod page;
pub mod sweep;
mod tables;
pub mod tuned;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use warpwright_core::diag::Diagnosis;
use warpwright_core::dtype::DType;

use crate::gpu::stage::SHORT;
use crate::kernels::family::{Choice, Permissions};
use crate::problem::{Layout, Precision, Problem, Shape};
use crate::report::ChosenBy;
use crate::tune::record::Status;

/// What records are filed under.
pub const NAME: &str = "tsm";

/// A tall and skinny product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// C = A^T B, the sums long.
    Tsmttsm,
    /// C = A B, the columns long.
    Tsmm,
}

impl Operation {
    /// Both.
    pub const ALL: [Operation; 2] = [Operation::Tsmttsm, Operation::Tsmm];

    /// Its name, which is also that of its family of kernels.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Tsmttsm => "tsmttsm",
            Operation::Tsmm => "tsmm",
        }
    }

    /// What it computes, for people.
    pub fn formula(self, dtype: DType) -> &'static str {
        match self {
            Operation::Tsmttsm if dtype.is_complex() => "C = AᴴB",
            Operation::Tsmttsm => "C = AᵀB",
            Operation::Tsmm => "C = AB",
        }
    }

    /// The product of this width and length, dense.
    pub fn problem(self, dtype: DType, width: i64, length: i64) -> Problem {
        self.oblong(dtype, (width, width), length)
    }

    /// The product with these two short extents ([`Point::narrow`]) and this length, dense.
    pub fn oblong(self, dtype: DType, narrow: (i64, i64), length: i64) -> Problem {
        let layout = match self {
            Operation::Tsmttsm if dtype.is_complex() => "cn",
            Operation::Tsmttsm => "tn",
            Operation::Tsmm => "nn",
        };
        let shape = match self {
            Operation::Tsmttsm => Shape { m: narrow.0, n: narrow.1, k: length },
            Operation::Tsmm => Shape { m: length, n: narrow.1, k: narrow.0 },
        };
        Problem::new(shape, Precision::Of(dtype), layout.parse().unwrap_or(Layout::NN))
    }
}

impl FromStr for Operation {
    type Err = Diagnosis;

    fn from_str(text: &str) -> Result<Operation, Diagnosis> {
        Operation::ALL.into_iter().find(|o| o.name() == text.trim()).ok_or_else(|| {
            Diagnosis::new(format!("there is no tall and skinny product `{text}`"))
                .instead("use tsmttsm or tsmm")
        })
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a point belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Figure {
    /// The fraction of the roofline against the width, by the kernels that are chosen.
    Widths,
    /// Performance against the tiles of a thread.
    Tiles,
    /// The cost of each reduction against the length.
    Reductions,
    /// With and without leap frogging and transposed mapping.
    Options,
    /// Products with M and N that differ, by the kernels that are chosen.
    Shapes,
    /// Rows that are padded and matrices that start anywhere, by the kernels that are chosen.
    Strides,
    /// Products so short that launches count, by the kernels that are chosen.
    Short,
    /// The widths of the main figure in f32 and complex64, by the kernels that are chosen where numbers may be split.
    Split,
}

impl Figure {
    /// Those that show the kernels that are chosen for other products than the main figure's, or with a permission.
    pub const CHOSEN: [Figure; 4] = [Figure::Shapes, Figure::Strides, Figure::Short, Figure::Split];

    /// What its kernels may do.
    pub fn permissions(self) -> Permissions {
        Permissions { split: self == Figure::Split, ..Permissions::OWN_CONTEXT }
    }
}

/// Extents of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Size {
    /// Rows of C.
    pub m: i64,
    /// Columns of C.
    pub n: i64,
    /// Terms of each sum.
    pub k: i64,
}

/// How A, B and C lie in memory, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Placement {
    /// From the start of a row to that of the next.
    pub row_strides: [i64; 3],
    /// Before the first, behind an address that is aligned for every access.
    pub offsets: [i64; 3],
}

impl Placement {
    /// That of a problem; none where rows follow each other and begin at aligned addresses.
    pub fn of(problem: &Problem) -> Option<Placement> {
        let (ld, offset) = (problem.ld, problem.offset);
        let dense = Problem::new(problem.shape, problem.precision, problem.layout);
        let placement =
            Placement { row_strides: [ld.a, ld.b, ld.c], offsets: [offset.a, offset.b, offset.c] };
        ((ld, offset) != (dense.ld, dense.offset)).then_some(placement)
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |numbers: [i64; 3]| numbers.map(|n| n.to_string()).join(",");
        write!(f, "ld {}", list(self.row_strides))?;
        if self.offsets != [0; 3] {
            write!(f, " offset {}", list(self.offsets))?;
        }
        Ok(())
    }
}

/// What tells points apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Key {
    /// The figure.
    pub figure: Figure,
    /// The product.
    pub operation: Operation,
    /// The element type.
    pub dtype: String,
    /// The size.
    #[serde(flatten)]
    pub size: Size,
    /// How the matrices lie; none where their rows follow each other and begin at aligned addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// The parameters that the figure is about; none where kernels are those that are chosen.
    #[serde(default, skip_serializing_if = "Choice::is_empty")]
    pub varied: Choice,
}

/// Times of one product.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seconds {
    /// The median.
    pub median: f64,
    /// The first and third quartile of the samples.
    pub quartiles: (f64, f64),
    /// Samples.
    pub samples: usize,
}

/// What the roofline says of a product.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// The least seconds.
    pub seconds: f64,
    /// The bandwidth that it takes.
    pub bytes_per_second: f64,
    /// The rate of arithmetic that it takes.
    pub flops_per_second: f64,
    /// The bytes that have to be moved: each matrix once, of padded rows the sectors of 32 bytes that hold them. Not in
    /// older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<f64>,
}

/// A point of a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// What it is about.
    #[serde(flatten)]
    pub key: Key,
    /// The parameters of the kernel.
    pub parameters: Choice,
    /// Who chose them.
    pub chosen_by: ChosenBy,
    /// A hash of the CUDA text: what has another one is measured again.
    pub text: String,
    /// The largest number of registers of a thread of its launches.
    pub registers: Option<u32>,
    /// Whether it is right and could be timed.
    pub status: Status,
    /// What went wrong, where something did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Real floating-point operations of one product.
    pub flops: f64,
    /// The roofline, where there is one.
    pub ceiling: Option<Ceiling>,
    /// How long it took without a pause.
    pub seconds: Option<Seconds>,
    /// How long cuBLAS took without a pause.
    pub cublas: Option<Seconds>,
    /// How long it took in short bursts after a pause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rested: Option<Seconds>,
    /// How long cuBLAS took in short bursts after a pause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cublas_rested: Option<Seconds>,
    /// How long it took without a pause where all matrices lay in the second-level cache, if that was asked for: what is left where device
    /// memory costs nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<Seconds>,
    /// The same in short bursts after a pause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_rested: Option<Seconds>,
    /// How long it took without a pause on operands that are all zeros, if that was asked for: what is left where arithmetic and the way of
    /// its operands draw little power, so that clocks need not fall.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zeros: Option<Seconds>,
    /// The same in short bursts after a pause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zeros_rested: Option<Seconds>,
    /// Among how many copies of the operands timed launches rotate, so that none finds its own in the second-level cache:
    /// together they are three times as large as that, or a thousand. Not in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copies: Option<usize>,
    /// How long an empty launch took, timed in the same way, in bursts; where products are short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty_launch: Option<Seconds>,
}

impl Point {
    /// A point of which nothing is measured yet, by a kernel with these parameters and this text.
    fn unmeasured(key: Key, parameters: Choice, chosen_by: ChosenBy, text: String, flops: f64) -> Point {
        Point {
            key,
            parameters,
            chosen_by,
            text,
            registers: None,
            status: Status::Correct,
            message: None,
            flops,
            ceiling: None,
            seconds: None,
            cublas: None,
            rested: None,
            cublas_rested: None,
            cached: None,
            cached_rested: None,
            zeros: None,
            zeros_rested: None,
            copies: None,
            empty_launch: None,
        }
    }
}

/// How fast the GPU is asked for one product after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pace {
    /// In short bursts, with a pause before each.
    Rested,
    /// Without a pause.
    Sustained,
}

impl Pace {
    /// Both.
    pub const ALL: [Pace; 2] = [Pace::Rested, Pace::Sustained];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Pace::Rested => "rested",
            Pace::Sustained => "sustained",
        }
    }
}

impl Point {
    /// How long it took at a pace.
    pub fn at(&self, pace: Pace) -> Option<Seconds> {
        match pace {
            Pace::Rested => self.rested,
            Pace::Sustained => self.seconds,
        }
    }

    /// How long cuBLAS took at a pace.
    pub fn cublas_at(&self, pace: Pace) -> Option<Seconds> {
        match pace {
            Pace::Rested => self.cublas_rested,
            Pace::Sustained => self.cublas,
        }
    }

    /// How long it took at a pace with all matrices in the second-level cache.
    pub fn cached_at(&self, pace: Pace) -> Option<Seconds> {
        match pace {
            Pace::Rested => self.cached_rested,
            Pace::Sustained => self.cached,
        }
    }

    /// The fraction of the roofline that would be reached if device memory cost nothing: above 1 where the roofline is
    /// that of memory and the multiprocessors are fast enough for it.
    pub fn fraction_of_cached(&self, pace: Pace) -> Option<f64> {
        Some(self.ceiling?.seconds / self.cached_at(pace)?.median)
    }

    /// How long it took at a pace on zeros.
    pub fn zeros_at(&self, pace: Pace) -> Option<Seconds> {
        match pace {
            Pace::Rested => self.zeros_rested,
            Pace::Sustained => self.zeros,
        }
    }

    /// The fraction of the roofline that is reached on zeros: what it would be if power were no limit.
    pub fn fraction_of_zeros(&self, pace: Pace) -> Option<f64> {
        Some(self.ceiling?.seconds / self.zeros_at(pace)?.median)
    }

    /// The fraction of the roofline that is reached.
    pub fn fraction(&self, pace: Pace) -> Option<f64> {
        Some(self.ceiling?.seconds / self.at(pace)?.median)
    }

    /// The fraction of the roofline that cuBLAS reaches.
    pub fn fraction_of_cublas(&self, pace: Pace) -> Option<f64> {
        Some(self.ceiling?.seconds / self.cublas_at(pace)?.median)
    }

    /// How many times as fast as cuBLAS at the same pace.
    pub fn times_cublas(&self, pace: Pace) -> Option<f64> {
        Some(self.cublas_at(pace)?.median / self.at(pace)?.median)
    }

    /// Real floating-point operations in a second.
    pub fn flops_per_second(&self, pace: Pace) -> Option<f64> {
        Some(self.flops / self.at(pace)?.median)
    }

    /// The fraction of what a short product reaches that takes two empty launches, and the bytes it has to move at the
    /// bandwidth of the roofline: that time over its own.
    pub fn fraction_of_short(&self, pace: Pace) -> Option<f64> {
        let ceiling = self.ceiling?;
        let least = 2.0 * self.empty_launch?.median + ceiling.bytes? / ceiling.bytes_per_second;
        Some(least / self.at(pace)?.median)
    }

    /// The two short extents: M and N of `tsmttsm`, columns of A and of C of `tsmm`.
    pub fn narrow(&self) -> (i64, i64) {
        let Size { m, n, k } = self.key.size;
        match self.key.operation {
            Operation::Tsmttsm => (m, n),
            Operation::Tsmm => (k, n),
        }
    }

    /// The long extent: terms of the sums of `tsmttsm`, rows of `tsmm`.
    pub fn length(&self) -> i64 {
        match self.key.operation {
            Operation::Tsmttsm => self.key.size.k,
            Operation::Tsmm => self.key.size.m,
        }
    }

    /// The columns of C: the width of the product where C of `tsmttsm` and B of `tsmm` are square.
    pub fn width(&self) -> i64 {
        self.key.size.n
    }
}

/// The geometric mean, where there is anything to take it of.
pub fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let logarithms: Vec<f64> = values.into_iter().map(f64::ln).collect();
    (!logarithms.is_empty()).then(|| (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp())
}

/// The widths of the main figure where none are named: the powers of two, and between them where tiles do not divide.
pub const WIDTHS: [i64; 19] = [1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 28, 32, 36, 37, 40, 48, 56, 63, 64];

/// The length at which the longer operand has about this many bytes: a multiple of [`SHORT`], since operands repeat
/// those of that length.
pub fn length(dtype: DType, width: i64, bytes: usize) -> i64 {
    let rows = bytes as i64 / (width * dtype.bytes());
    (rows / SHORT).max(1) * SHORT
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{Ceiling, Figure, Key, Operation, Pace, Point, Seconds, Size, length};
    use crate::bench::record::Record;
    use crate::gpu::stage::SHORT;
    use crate::kernels::family::Choice;
    use crate::report::ChosenBy;
    use crate::tune::record::Status;
    use warpwright_core::dtype::DType;

    /// An f64 point of `tsmttsm` that takes this long without a pause and 0.8 of it after one; the roofline says 0.25 s,
    /// cuBLAS takes 1 s and 0.9 s.
    pub fn point(width: i64, seconds: f64) -> Point {
        let size = Size { m: width, n: width, k: 1_000_000 };
        let one = |median: f64| Seconds { median, quartiles: (0.9 * median, 1.1 * median), samples: 7 };
        let key = Key {
            figure: Figure::Widths,
            operation: Operation::Tsmttsm,
            dtype: "f64".to_string(),
            size,
            placement: None,
            varied: Choice::default(),
        };
        let parameters = Choice::default().with("tm", 4).with("unit", "fma").with("leapfrog", true);
        let text = "0123456789abcdef".to_string();
        Point {
            registers: Some(120),
            ceiling: Some(Ceiling {
                seconds: 0.25,
                bytes_per_second: 4552e9,
                flops_per_second: 56.4e12,
                bytes: None,
            }),
            seconds: Some(one(seconds)),
            cublas: Some(one(1.0)),
            rested: Some(one(0.8 * seconds)),
            cublas_rested: Some(one(0.9)),
            copies: Some(1),
            ..Point::unmeasured(key, parameters, ChosenBy::Neighbour, text, 2e12)
        }
    }

    pub fn record() -> Record<Point> {
        Record {
            version: "0.1.0".to_string(),
            date: "2026-11-22".to_string(),
            gpu: "Some GPU".to_string(),
            driver: "13.0".to_string(),
            driver_release: Some("580.159.04".to_string()),
            nvrtc: Some("13.0".to_string()),
            results: vec![point(8, 0.5), point(16, 0.25)],
        }
    }

    #[test]
    fn fractions_are_of_the_roofline() {
        let p = point(8, 0.5);
        let (on, rested) = (Pace::Sustained, Pace::Rested);
        assert_eq!((p.fraction(on), p.fraction_of_cublas(on)), (Some(0.5), Some(0.25)));
        assert_eq!((p.times_cublas(on), p.flops_per_second(on)), (Some(2.0), Some(4e12)));
        assert_eq!((p.fraction(rested), p.times_cublas(rested)), (Some(0.25 / 0.4), Some(0.9 / 0.4)));
        let failed = Point { status: Status::Timeout, seconds: None, ..p };
        assert_eq!((failed.fraction(on), failed.fraction_of_cublas(on)), (None, Some(0.25)));
    }

    #[test]
    fn short_products_are_measured_by_two_launches_and_their_bytes() {
        let one = |median: f64| Some(Seconds { median, quartiles: (median, median), samples: 3 });
        let mut p = Point { empty_launch: one(2e-6), rested: one(16e-6), ..point(8, 8e-6) };
        assert_eq!(p.fraction_of_short(Pace::Rested), None, "whose bytes are not known");
        p.ceiling = Some(Ceiling { bytes: Some(4e7), bytes_per_second: 1e13, ..p.ceiling.unwrap() });
        assert_eq!(p.fraction_of_short(Pace::Rested), Some(0.5));
        assert_eq!(p.fraction_of_short(Pace::Sustained), Some(1.0));
    }

    #[test]
    fn operands_have_about_as_many_bytes_as_asked_for_and_never_more() {
        for dtype in [DType::F32, DType::F64, DType::C64, DType::C128] {
            for width in [1, 37, 64, 128] {
                let k = length(dtype, width, 2 << 30);
                let bytes = k * width * dtype.bytes();
                assert!(k % SHORT == 0 && bytes <= 2 << 30 && bytes > 19 << 26, "{dtype} {width}: {bytes}");
            }
        }
    }

    #[test]
    fn products_are_those_of_the_families() {
        let skinny = Operation::Tsmttsm.problem(DType::C128, 20, 1_000_000);
        assert_eq!((skinny.layout.to_string().as_str(), skinny.shape.k), ("cn", 1_000_000));
        let tall = Operation::Tsmm.problem(DType::F32, 20, 1_000_000);
        assert_eq!((tall.layout.to_string().as_str(), tall.shape.m, tall.shape.k), ("nn", 1_000_000, 20));
        for (operation, problem) in [(Operation::Tsmttsm, skinny), (Operation::Tsmm, tall)] {
            assert_eq!(crate::choose::family(&problem).unwrap().name, operation.name());
        }
    }
}
