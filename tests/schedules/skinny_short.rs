//! Products A^T B with few rows in all: few threads, one launch.

use warpwright::choose;
use warpwright::kernels::family::Permissions;
use warpwright::kernels::{self, Kernel};
use warpwright::problem::Problem;
use warpwright::tune::record::Gpu;
use warpwright::tune::wisdom::Wisdom;
use warpwright_core::ir::Launch;
use warpwright_core::target;

use crate::tall_skinny::{holds, parameters, problem};

/// What `gemm` chooses where nothing was measured.
fn chosen(problem: &Problem) -> Kernel {
    let family = choose::family(problem).unwrap_or_else(|| kernels::family("tsmttsm").unwrap());
    let (target, gpu) = (target::DEFAULT, Gpu::of_target(target::DEFAULT));
    choose::parameters(family, problem, target, &gpu, &Wisdom::default(), Permissions::NONE).unwrap().0
}

#[test]
fn short_sums_take_few_threads_and_one_launch() {
    for (at, widths) in [(1, 1), (3, 2), (1, 3), (2, 2), (16, 5), (33, 64)].into_iter().enumerate() {
        for (turn, k) in [0, 1, 2, 5, 31, 1000].into_iter().enumerate() {
            let family = kernels::family("tsmttsm").unwrap();
            let mut problem = problem(family, widths, ["f64", "f32", "c128", "c64"][(at + turn) % 4]);
            problem.shape.k = k;
            let kernel = chosen(&problem);
            let launches = Launch::all(&kernel.program().body).unwrap();
            assert!(k > 32 || launches.len() == 1, "{} with {}", kernel.name, kernel.parameters);
            holds(family, &problem, &kernel.parameters, &[k]);
        }
    }
}

#[test]
fn few_threads_share_out_a_single_row() {
    let family = kernels::family("tsmttsm").unwrap();
    for (shape, form) in [
        ("1x3x2", "transposed=false"),
        ("1x5x3", "leapfrog=true"),
        ("1x5x4", "transposed=true,tn=5"),
        ("3x1x2", "transposed=false"),
        ("2x3x2", "transposed=false"),
    ] {
        let problem = Problem::new(shape.parse().unwrap(), "f64".parse().unwrap(), "tn".parse().unwrap());
        let given = parameters(form).with("staging", "registers").with("parts", 1);
        let choice = family.complete(&given, &problem, target::DEFAULT).unwrap_or_else(|e| panic!("{e}"));
        holds(family, &problem, &choice, &[0, 1, 4]);
    }
}
