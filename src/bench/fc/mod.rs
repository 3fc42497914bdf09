//! The figures of fully connected layers: y = x W for few to many rows of x, beside cuBLAS.
//!
//! The layers are those of the networks that made them known (A. Krizhevsky, I. Sutskever, G. Hinton, "ImageNet classification with
//! deep convolutional neural networks", NIPS 2012; K. Simonyan, A. Zisserman, arXiv:1409.1556): 9216, 4096 and 4096 inputs, 4096, 4096
//! and 1000 outputs. Few rows of x leave the time to reading W, many to multiplying; in between a grid of tiles of C has too few
//! blocks for a GPU, and sums are split (`split_reduce`).
//!
//! Weights rotate among copies that together are larger than the second-level cache, as those of a network do whose layers
//! come one after the other; x and y stay where they are, as what the layer before has just written and the next one reads. (Until 2026-11-26
//! they rotated too, which made 0.1 to 0.4 us of 25 more with few rows on an H100.) Both paces are timed, as in
//! [`crate::bench::tsm`]: *sustained* is what counts where nothing else is said.

pub mod csv;
pub mod measure;
pub mod page;

use serde::{Deserialize, Serialize};
use warpwright_core::occupancy::blocks_per_sm;
use warpwright_core::target::{Limits, Target};
use warpwright_cuda::launched::Launched;

use crate::bench::tsm::Seconds;
use crate::kernels::family::Choice;
use crate::problem::{Layout, Precision, Problem, Shape};
use crate::report::{ChosenBy, LaunchReport};
use crate::tune::record::Status;

/// What records are filed under.
pub const NAME: &str = "fc";

/// Inputs and outputs of the layers: rows and columns of W.
pub const LAYERS: [(i64, i64); 3] = [(9216, 4096), (4096, 4096), (4096, 1000)];

/// Rows of x.
pub const ROWS: [i64; 36] = [
    1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224,
    256, 320, 384, 448, 512, 640, 768, 896, 1024,
];

/// The family of the kernels in f32.
pub const FAMILY: &str = "tiled";

/// What tells points apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Key {
    /// The element type.
    pub dtype: String,
    /// Rows of x.
    pub m: i64,
    /// Outputs: columns of W.
    pub n: i64,
    /// Inputs: rows of W.
    pub k: i64,
}

/// A launch, and how full it keeps a GPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Launch {
    /// The kernel.
    pub kernel: String,
    /// Blocks along x, y and z.
    pub grid: [u64; 3],
    /// Threads of a block along x, y and z.
    pub block: [u32; 3],
    /// Registers of a thread.
    pub registers: Option<u32>,
    /// Bytes of shared memory of a block.
    pub shared_bytes: u64,
    /// Blocks that a multiprocessor holds, as far as there are as many.
    pub blocks_per_sm: Option<u32>,
    /// The part of a multiprocessor's warps that these are.
    pub occupancy: Option<f64>,
}

/// A layer and a number of rows, and what was measured of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// What it is.
    #[serde(flatten)]
    pub key: Key,
    /// Whether the result was right.
    pub status: Status,
    /// What went wrong, where something did.
    pub message: Option<String>,
    /// The kernel.
    pub kernel: String,
    /// The values of its parameters, if it has any.
    pub parameters: Choice,
    /// Who chose it.
    pub chosen_by: ChosenBy,
    /// Its launches.
    pub launches: Vec<Launch>,
    /// Seconds of a product.
    pub seconds: Option<Seconds>,
    /// The same in bursts after a pause.
    pub rested: Option<Seconds>,
    /// Seconds of cuBLAS.
    pub cublas: Option<Seconds>,
    /// The same in bursts after a pause.
    pub cublas_rested: Option<Seconds>,
    /// What cuBLAS launches, where the driver says.
    pub cublas_launches: Option<Vec<Launch>>,
    /// The least seconds by what is reached on this GPU: of reading and writing, and of arithmetic.
    pub memory_seconds: Option<f64>,
    /// The same of arithmetic.
    pub arithmetic_seconds: Option<f64>,
    /// Copies of the operands that launches rotate among.
    pub copies: usize,
}

impl Point {
    /// The least seconds.
    pub fn roofline(&self) -> Option<f64> {
        Some(self.memory_seconds?.max(self.arithmetic_seconds?))
    }

    /// The fraction of the roofline that is reached.
    pub fn fraction(&self) -> Option<f64> {
        Some(self.roofline()? / self.seconds?.median)
    }

    /// The same of cuBLAS.
    pub fn fraction_of_cublas(&self) -> Option<f64> {
        Some(self.roofline()? / self.cublas?.median)
    }

    /// How many times as fast as cuBLAS.
    pub fn times_cublas(&self) -> Option<f64> {
        Some(self.cublas?.median / self.seconds?.median)
    }

    /// The same in bursts after a pause.
    pub fn rested_times_cublas(&self) -> Option<f64> {
        Some(self.cublas_rested?.median / self.rested?.median)
    }
}

/// The product of a layer and a number of rows.
pub fn problem(precision: Precision, (inputs, outputs): (i64, i64), rows: i64) -> Problem {
    Problem::new(Shape { m: rows, n: outputs, k: inputs }, precision, Layout::NN)
}

impl Key {
    /// The key of a product.
    pub fn of(problem: &Problem) -> Key {
        let Shape { m, n, k } = problem.shape;
        Key { dtype: problem.precision.name().to_string(), m, n, k }
    }
}

impl Launch {
    fn with_blocks(self, blocks: Option<u32>, target: &Target) -> Launch {
        let multiprocessors = u64::from(target.sm_count.value);
        let there = self.grid.iter().product::<u64>().div_ceil(multiprocessors.max(1));
        let resident = blocks.map(|blocks| u64::from(blocks).min(there));
        let warps = self.block.iter().product::<u32>().div_ceil(Limits::WARP);
        let occupancy =
            resident.map(|r| (r * u64::from(warps)) as f64 / f64::from(target.limits.warps_per_sm));
        Launch { blocks_per_sm: resident.map(|r| r as u32), occupancy, ..self }
    }

    /// A launch of one of our kernels.
    pub fn ours(kernel: &str, launch: &LaunchReport, target: &Target) -> Launch {
        let threads = i64::from(launch.block.iter().product::<u32>());
        let resident = |registers: u32| {
            blocks_per_sm(target, threads, registers.into(), launch.shared_bytes as i64) as u32
        };
        Launch {
            kernel: kernel.to_string(),
            grid: launch.grid,
            block: launch.block,
            registers: launch.registers,
            shared_bytes: launch.shared_bytes,
            blocks_per_sm: None,
            occupancy: None,
        }
        .with_blocks(launch.registers.map(resident), target)
    }

    /// A launch of a library.
    pub fn of_library(launched: &Launched, target: &Target) -> Launch {
        Launch {
            kernel: launched.name.clone(),
            grid: launched.grid.map(u64::from),
            block: launched.block,
            registers: Some(launched.registers),
            shared_bytes: launched.shared_bytes.into(),
            blocks_per_sm: None,
            occupancy: None,
        }
        .with_blocks(Some(launched.blocks_per_sm), target)
    }
}

impl Launch {
    /// Blocks of the grid.
    pub fn blocks(&self) -> u64 {
        self.grid.iter().product()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::{Key, LAYERS, Launch, Point, ROWS, problem};
    use crate::bench::record::Record;
    use crate::bench::tsm::Seconds;
    use crate::choose;
    use crate::kernels;
    use crate::kernels::family::parse_parameter;
    use crate::kernels::family::{Choice, Permissions};
    use crate::problem::Precision;
    use crate::report::{ChosenBy, LaunchReport};
    use crate::tune::record::{Gpu, Status};
    use crate::tune::wisdom::Wisdom;
    use warpwright_core::dtype::DType;
    use warpwright_core::target;

    fn launch(grid: [u64; 3]) -> LaunchReport {
        LaunchReport { grid, block: [256, 1, 1], shared_bytes: 70_000, registers: Some(100) }
    }

    pub fn point(m: i64, seconds: f64, cublas: Option<f64>) -> Point {
        let time = |median| Seconds { median, quartiles: (median, median), samples: 3 };
        let ours = [launch([32, 1, 4]), launch([64, 1, 1])];
        let of_cublas = Launch::ours("gemv", &launch([64, 1, 1]), target::DEFAULT);
        Point {
            key: Key { dtype: "f32".to_string(), m, n: 4096, k: 4096 },
            status: Status::Correct,
            message: None,
            kernel: "tiled".to_string(),
            parameters: Choice::of(&[parse_parameter("tm=4").unwrap()]),
            chosen_by: ChosenBy::Wisdom,
            launches: ours.iter().map(|l| Launch::ours("tiled", l, target::DEFAULT)).collect(),
            seconds: Some(time(seconds)),
            rested: Some(time(seconds)),
            cublas: cublas.map(time),
            cublas_rested: cublas.map(time),
            cublas_launches: cublas.map(|_| vec![of_cublas]),
            memory_seconds: Some(1.5e-5),
            arithmetic_seconds: Some(1e-6),
            copies: 3,
        }
    }

    pub fn record(results: Vec<Point>) -> Record<Point> {
        Record {
            version: "0.1.0".to_string(),
            date: "2026-11-26".to_string(),
            gpu: "Some GPU".to_string(),
            driver: "13.0".to_string(),
            driver_release: Some("580.1".to_string()),
            nvrtc: None,
            results,
        }
    }

    #[test]
    fn a_grid_that_is_smaller_than_the_gpu_does_not_fill_it() {
        let full = Launch::ours("k", &launch([264, 1, 1]), target::DEFAULT);
        assert_eq!((full.blocks_per_sm, full.occupancy), (Some(2), Some(0.25)));
        let small = Launch::ours("k", &launch([100, 1, 1]), target::DEFAULT);
        assert_eq!((small.blocks_per_sm, small.occupancy), (Some(1), Some(0.125)));
    }

    #[test]
    fn points_come_back_as_they_were_written() {
        let record = record(vec![point(1, 2e-5, Some(4e-5)), point(16, 4e-5, None)]);
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<Record<Point>>(&text).unwrap(), record);
        assert!(text.contains(r#""dtype":"f32","m":1,"n":4096,"k":4096"#), "{text}");
        assert!(text.contains(r#""cublas_launches":null"#), "what is not known is null");
    }

    #[test]
    fn the_roofline_is_the_larger_bound() {
        let p = point(1, 2e-5, Some(4e-5));
        assert_eq!((p.roofline(), p.fraction(), p.times_cublas()), (Some(1.5e-5), Some(0.75), Some(2.0)));
        let multiplies = Point { arithmetic_seconds: Some(3e-5), ..p };
        assert_eq!(multiplies.fraction(), Some(1.5));
    }

    #[test]
    fn there_is_a_kernel_for_every_layer_and_number_of_rows() {
        let family = kernels::family(super::FAMILY).unwrap();
        let gpu = Gpu::of_target(target::DEFAULT);
        for layer in LAYERS {
            for rows in ROWS.into_iter().step_by(5) {
                let p = problem(Precision::Of(DType::F32), layer, rows);
                let (none, wisdom) = (Permissions::NONE, Wisdom::default());
                let made = choose::parameters(family, &p, target::DEFAULT, &gpu, &wisdom, none);
                assert!(made.is_ok(), "{layer:?} {rows}: {:?}", made.err());
            }
        }
    }
}
