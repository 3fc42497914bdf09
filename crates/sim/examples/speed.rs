//! Multiply-adds per second of the block-tiled sgemm on the simulator, compilation to flat code included.
//!
//! `cargo run --release -p warpwright-sim --example speed [SIZE [f32|field [plain|checked]]]`

use std::time::Instant;

use num_complex::Complex;
use warpwright_core::ir::parse;
use warpwright_sim::exact::{self, Trials};
use warpwright_sim::{Arguments, Options, Tensor, simulate};

const PROGRAM: &str = include_str!("../../../programs/sgemm_block_tiling.ww");

fn main() {
    let n: i64 = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(512);
    let program = parse::program(PROGRAM).expect("the program of the repository reads");
    let argument = |n: usize| std::env::args().nth(n);
    let wanted = |name: &str| argument(2).is_none_or(|a| a == name);
    let checks: &[bool] = match argument(3).as_deref() {
        Some("plain") => &[false],
        Some(_) => &[true],
        None => &[false, true],
    };
    for &checks in checks.iter().filter(|_| wanted("f32")) {
        let mut arguments = Arguments::default();
        for name in ["M", "N", "K", "lda", "ldb", "ldc"] {
            arguments.integers.insert(name.into(), n);
        }
        arguments.integers.insert("beta0".into(), 1);
        for name in ["alpha", "beta"] {
            arguments.scalars.insert(name.into(), Complex::new(1.0, 0.0));
        }
        for name in ["A", "B", "C"] {
            let bytes: Vec<u8> = (0..n * n).flat_map(|i| ((i % 17) as f32).to_le_bytes()).collect();
            arguments.tensors.insert(name.into(), Tensor::from(bytes));
        }
        let start = Instant::now();
        let options = Options { checks, ..Options::default() };
        let report = simulate(&program, &mut arguments, &options).expect("it runs");
        let seconds = start.elapsed().as_secs_f64();
        assert!(report.passed(), "{report}");
        let rate = (n * n * n) as f64 / seconds;
        println!("f32            checks {checks:5}  {rate:.2e} fma/s  ({seconds:.3} s)");
    }
    // Over the field through the exact check, of which the specification is the program itself in one block.
    for &checks in checks.iter().filter(|_| wanted("field")) {
        let options = Options { checks, ..Options::default() };
        let sizes = [("M", n), ("N", n), ("K", n)];
        let start = Instant::now();
        let (seconds, fma) =
            exact::time(&program, &sizes, &Trials { options, ..Trials::default() }).expect("it runs");
        let all = start.elapsed().as_secs_f64();
        let rate = fma as f64 / seconds;
        println!("GF(2^61-1)     checks {checks:5}  {rate:.2e} fma/s  ({seconds:.3} s of {all:.3})");
    }
}
