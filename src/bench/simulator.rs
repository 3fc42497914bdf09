//! How many multiply-adds the simulator does in a second, compilation of the program included.

use std::collections::BTreeMap;
use std::time::Instant;

use num_complex::Complex64;
use serde::Serialize;
use warpwright_core::diag::Diagnosis;
use warpwright_core::ir::Program;
use warpwright_core::target;
use warpwright_sim::exact::{self, Trials};
use warpwright_sim::{Arguments, Blocks, Field, Mode, Options, Tensor, simulate};

use super::median;
use crate::compile;
use crate::inputs::Operands;
use crate::kernels::{self, Variant};
use crate::problem::{Layout, Precision, Problem, Shape};
use warpwright_core::dtype::DType;

/// One line of the benchmark.
#[derive(Clone, Debug, Serialize)]
pub struct Speed {
    /// The numbers in which the program ran.
    pub arithmetic: &'static str,
    /// Whether races, poison, bounds and all counters were on.
    pub checks: bool,
    /// Multiply-adds per second.
    pub fma_per_second: f64,
    /// Seconds of the whole grid.
    pub seconds: f64,
    /// Threads that ran.
    pub threads: usize,
}

/// The kernel that is simulated: 2D block tiling, 128 x 128 x 8.
const KERNEL: &str = "sgemm_block_tiling_2d";
/// Its size.
const SHAPE: Shape = Shape::cube(512);

/// Times the whole grid: f32 without and with all checks, and the prime field with all of them.
pub fn run(repeats: usize) -> Result<Vec<Speed>, Diagnosis> {
    let problem = Problem::new(SHAPE, Precision::Of(DType::F32), Layout::NN);
    let variant = Variant::of(&problem);
    let kernel = kernels::build(kernels::by_name(KERNEL)?, variant)?;
    let valid = compile::validated(kernel.program(), target::DEFAULT)?;
    let program = valid.program();
    let mut speeds = Vec::new();
    for checks in [false, true] {
        let seconds =
            (0..repeats.max(1)).map(|_| in_f32(program, &problem, checks)).collect::<Result<_, _>>()?;
        speeds.push(speed("f32", checks, &problem, median(seconds)));
    }
    let trials = Trials {
        count: 1,
        seed: 1,
        options: Options { mode: Mode::Simt, checks: true, blocks: Blocks::All },
    };
    let sizes = [("M", SHAPE.m), ("N", SHAPE.n), ("K", SHAPE.k)];
    let in_field = || exact::time(program, &sizes, &trials).map(|(seconds, _)| seconds);
    let seconds = (0..repeats.max(1)).map(|_| in_field()).collect::<Result<_, _>>()?;
    speeds.push(speed(<Field as warpwright_sim::Arithmetic>::NAME, true, &problem, median(seconds)));
    Ok(speeds)
}

fn speed(arithmetic: &'static str, checks: bool, problem: &Problem, seconds: f64) -> Speed {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    Speed { arithmetic, checks, fma_per_second: problem.multiply_adds() / seconds, seconds, threads }
}

/// Seconds of one simulation in f32, the arguments not counted.
fn in_f32(program: &Program, problem: &Problem, checks: bool) -> Result<f64, Diagnosis> {
    let operands = Operands::random(problem, 1)?;
    let tensor = |m: &crate::matrix::Matrix| Tensor::from(m.bytes().to_vec());
    let integers = [
        ("M", problem.shape.m),
        ("N", problem.shape.n),
        ("K", problem.shape.k),
        ("lda", problem.ld.a),
        ("ldb", problem.ld.b),
        ("ldc", problem.ld.c),
        ("beta0", 1),
    ];
    let scalars = [("alpha", Complex64::new(1.0, 0.0)), ("beta", Complex64::new(0.0, 0.0))];
    let mut arguments = Arguments {
        integers: integers.map(|(n, v)| (n.to_string(), v)).into(),
        scalars: scalars.map(|(n, v)| (n.to_string(), v)).into(),
        tensors: BTreeMap::from([
            ("A".to_string(), tensor(&operands.a)),
            ("B".to_string(), tensor(&operands.b)),
            ("C".to_string(), tensor(&operands.c)),
        ]),
    };
    let start = Instant::now();
    let report =
        simulate(program, &mut arguments, &Options { mode: Mode::Simt, checks, blocks: Blocks::All })?;
    let seconds = start.elapsed().as_secs_f64();
    if report.passed() {
        Ok(seconds)
    } else {
        Err(Diagnosis::new(format!("the benchmark found a hazard: {report}")))
    }
}
