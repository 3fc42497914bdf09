//! The families for tall and skinny products on data: matrices that are not square, rows that are longer than they have
//! columns, infinities and NaNs, results that overflow. Every form of every family is held to the reference, bound and
//! class of each element.

use num_complex::Complex64;
use warpwright::choose;
use warpwright::compile;
use warpwright::inputs::{Operands, sprinkle};
use warpwright::kernels::family::{Choice, Family, Permissions};
use warpwright::kernels::{self, Kernel};
use warpwright::problem::{Problem, Shape};
use warpwright::simulator::{self, SimOptions};
use warpwright_core::target::{self, Target};

use crate::drawn::forms;

/// What makes two choices kernels of different forms.
const NAMES: [&str; 5] = ["unit", "staging", "reduction", "c_source", "numbers"];

/// A product that a family serves, of so many terms or rows; `wide` and `high` are its short extents.
pub fn problem(family: &Family, long: i64, (high, wide): (i64, i64), dtype: &str) -> Problem {
    let (shape, layout) = match family.name {
        "tsmm" => (format!("{long}x{wide}x{high}"), "nn"),
        _ => (format!("{high}x{wide}x{long}"), if dtype.starts_with('c') { "cn" } else { "tn" }),
    };
    Problem::new(shape.parse().unwrap(), dtype.parse().unwrap(), layout.parse().unwrap())
}

/// The result of a choice is right, every element of it, and nothing else happens.
pub fn is_right(family: &Family, problem: &Problem, choice: &Choice, operands: &Operands) {
    let kernel = family.build(problem, choice).unwrap_or_else(|e| panic!("{e}"));
    let place = format!("{} of {} with {choice}", kernel.name, problem.shape);
    let valid =
        compile::validated(kernel.program(), target::DEFAULT).unwrap_or_else(|e| panic!("{place}: {e}"));
    compile::cuda(&valid).unwrap_or_else(|e| panic!("{place}: {e}"));
    let options = SimOptions { full: true, every_element: true, ..SimOptions::default() };
    let run = simulator::run(&valid, problem, operands, &options, kernel.multiplications())
        .unwrap_or_else(|e| panic!("{place}: {e}"));
    assert_eq!(run.comparison.elements as i64, problem.shape.m * problem.shape.n, "{place}");
    assert!(run.comparison.passed() && !run.hazards.any(), "{place}: {:?}", run.faults);
}

/// The same for every form that a family has for a problem.
pub fn all_are_right(problem: &Problem, family: &Family, operands: &Operands) {
    let forms = forms(family, problem, &NAMES, Permissions::ALL);
    assert!(forms.len() >= 2, "{forms:?}");
    for (_, choice) in &forms {
        is_right(family, problem, choice, operands);
    }
}

/// Fills the old C with NaNs, which nobody may read.
fn poison(operands: &mut Operands) {
    operands.c.fill(|_, _| Complex64::new(f64::NAN, f64::NAN));
}

#[test]
fn matrices_need_not_be_square_nor_dense() {
    for family in kernels::TALL_SKINNY {
        for (at, widths) in [(1, 128), (128, 3), (17, 64), (2, 2)].into_iter().enumerate() {
            for (turn, longer) in [[0, 0, 0], [1, 0, 3], [3, 5, 0], [4, 8, 2]].into_iter().enumerate() {
                let dtype = ["f64", "f32", "c128", "c64"][(at + turn) % 4];
                let mut problem = problem(family, 133, widths, dtype);
                problem.alpha = Complex64::new(-1.5, 0.0);
                problem.beta = Complex64::new(if turn == 2 { 0.0 } else { 0.5 }, 0.0);
                problem.ld.a += longer[0];
                problem.ld.b += longer[1];
                problem.ld.c += longer[2];
                let mut operands = Operands::random(&problem, 5).unwrap();
                if turn == 2 {
                    poison(&mut operands);
                }
                all_are_right(&problem, family, &operands);
            }
        }
    }
}

#[test]
fn infinities_and_nans_travel_as_they_must() {
    for family in kernels::TALL_SKINNY {
        for (dtype, widths) in [("f64", (5, 9)), ("f32", (16, 3)), ("c128", (9, 8)), ("c64", (4, 7))] {
            let mut problem = problem(family, 101, widths, dtype);
            let mut operands = Operands::random(&problem, 6).unwrap();
            poison(&mut operands);
            sprinkle(&mut operands.a, 2, 7);
            sprinkle(&mut operands.b, 2, 8);
            all_are_right(&problem, family, &operands);
            // An infinity times zero is no number, also where the zero is the factor of the old C's neighbour.
            operands = Operands::random(&problem, 9).unwrap();
            operands.a.set(1, 0, Complex64::new(f64::INFINITY, 0.0));
            operands.b.fill(|_, _| Complex64::new(0.0, 0.0));
            sprinkle(&mut operands.c, 3, 10);
            problem.beta = Complex64::new(2.0, 0.0);
            all_are_right(&problem, family, &operands);
        }
    }
}

#[test]
fn short_and_empty_sums_overwrite_what_was_there() {
    let family = kernels::family("tsmttsm").unwrap();
    for (at, k) in [0, 1, 2, 31].into_iter().enumerate() {
        for (turn, beta) in [0.0, 2.0].into_iter().enumerate() {
            let dtype = ["f64", "c64", "f32", "c128"][(at + turn) % 4];
            let mut problem = problem(family, k, (3, 2), dtype);
            problem.beta = Complex64::new(beta, 0.0);
            let mut operands = Operands::random(&problem, 13).unwrap();
            if beta == 0.0 {
                poison(&mut operands);
            }
            all_are_right(&problem, family, &operands);
        }
    }
}

#[test]
fn what_overflows_is_infinite() {
    for family in kernels::TALL_SKINNY {
        for (dtype, large) in [("f64", 1e200), ("f32", 1e30), ("c128", 1e200), ("c64", 1e30)] {
            let problem = problem(family, 67, (6, 5), dtype);
            let mut operands = Operands::random(&problem, 11).unwrap();
            // A term of each sum in a row of C passes the largest number, in one direction.
            operands.a.set(3, 2, Complex64::new(large, 0.0));
            for column in 0..operands.b.columns() {
                let row = if family.name == "tsmm" { 2 } else { 3 };
                operands.b.set(row, column, Complex64::new(large, 0.0));
            }
            all_are_right(&problem, family, &operands);
        }
    }
}

/// The bits of the result of a kernel that is made for a GPU.
fn bits(kernel: &Kernel, problem: &Problem, operands: &Operands, gpu: &Target, launch_size: i64) -> Vec<u8> {
    let valid = compile::validated(kernel.program(), gpu).unwrap_or_else(|e| panic!("{}: {e}", gpu.name));
    compile::cuda(&valid).unwrap_or_else(|e| panic!("{}: {e}", gpu.name));
    let options = SimOptions { full: true, every_element: true, launch_size, ..SimOptions::default() };
    let run = simulator::run(&valid, problem, operands, &options, kernel.multiplications()).unwrap();
    assert!(run.comparison.passed(), "{} on {}: {:?}", kernel.name, gpu.name, run.faults);
    run.c.unwrap().bytes().to_vec()
}

#[test]
fn a_choice_has_the_same_bits_on_every_gpu() {
    let gpus =
        ["h200", "a100-40gb", "b200", "rtx2080ti", "gtx980"].map(|name| Target::by_name(name).unwrap());
    for family in kernels::TALL_SKINNY {
        for (dtype, widths) in [("f64", (7, 12)), ("f32", (3, 2)), ("c64", (20, 9)), ("c128", (64, 64))] {
            let problem = problem(family, 1100, widths, dtype);
            let operands = Operands::random(&problem, 12).unwrap();
            let kernel = choose::reproducible(Some(family), &Choice::default(), &problem).unwrap();
            let first = bits(&kernel, &problem, &operands, gpus[0], 1);
            for (at, gpu) in gpus.into_iter().enumerate().skip(1) {
                let place = format!("{} with {} on {}", kernel.name, kernel.parameters, gpu.name);
                assert!(bits(&kernel, &problem, &operands, gpu, 50 * at as i64) == first, "{place}");
            }
            // Another number of parts is another sum: what is chosen for a GPU may have other bits.
            if family.name == "tsmttsm" && widths.0 < 64 {
                let other = kernel.parameters.clone().with("parts", 13);
                let kernel = family.build(&problem, &other).unwrap();
                let second = bits(&kernel, &problem, &operands, gpus[0], 1);
                assert!(second != first, "{}", kernel.name);
                assert!(bits(&kernel, &problem, &operands, gpus[1], 9) == second, "{}", kernel.name);
            }
        }
    }
}

#[test]
fn every_width_has_a_kernel_with_the_same_bits_everywhere() {
    for family in kernels::TALL_SKINNY {
        for (at, widths) in [(1, 1), (128, 128), (33, 65), (64, 1), (2, 128)].into_iter().enumerate() {
            for dtype in ["f32", "f64", "c64", "c128"] {
                for long in [0, 5000, 3_000_000] {
                    let problem = problem(family, long + at as i64, widths, dtype);
                    let kernel = choose::reproducible(Some(family), &Choice::default(), &problem)
                        .unwrap_or_else(|e| panic!("{dtype} {widths:?}: {e}"));
                    let place = format!("{} with {}", kernel.name, kernel.parameters);
                    compile::validated(kernel.program(), Target::oldest())
                        .unwrap_or_else(|e| panic!("{place}: {e}"));
                }
            }
        }
    }
}

/// The lines of CUDA text that put what depends on a number of 64 bits, and is no remainder, into an `int`.
fn narrowed(text: &str) -> Vec<&str> {
    let words = |line: &'_ str| -> Vec<String> {
        line.split(|c: char| !c.is_alphanumeric() && c != '_').map(str::to_string).collect()
    };
    let mut long: Vec<String> = Vec::new();
    let mut found = Vec::new();
    for line in text.lines() {
        for after in line.split("long long ").skip(1) {
            long.extend(words(after).into_iter().next());
        }
        let declared = line.split_once("int ").and_then(|(_, rest)| rest.split_once(" = "));
        if let Some((_, value)) =
            declared.filter(|(name, _)| words(name).len() == 1 && !line.contains("long long"))
        {
            let value = value.split(';').next().unwrap_or_default();
            if !value.contains('%') && words(value).iter().any(|w| long.contains(w)) {
                found.push(line);
            }
        }
    }
    found
}

#[test]
fn extents_beyond_32_bits_have_kernels_with_wider_indices() {
    assert_eq!(
        narrowed("f(long long K) {\n  int k = 2*K + 1;\n  int r = K%7;\n  int j = 3;\n"),
        ["  int k = 2*K + 1;"]
    );
    for family in kernels::TALL_SKINNY {
        for (dtype, widths) in [("f32", (1, 1)), ("f64", (2, 3)), ("c64", (1, 2)), ("f64", (8, 8))] {
            let problem = problem(family, 3_000_000_000, widths, dtype);
            for (form, choice) in forms(family, &problem, &NAMES, Permissions::ALL) {
                let kernel = family.build(&problem, &choice).unwrap_or_else(|e| panic!("{form}: {e}"));
                let valid = compile::validated(kernel.program(), target::DEFAULT).unwrap();
                let source = compile::cuda_for(&valid, &problem).unwrap_or_else(|e| panic!("{form}: {e}"));
                let size = if family.name == "tsmm" { "M" } else { "K" };
                assert!(source.text.contains(&format!("long long {size}")), "{form}:\n{}", source.text);
                assert!(source.largest_size > problem.shape.k.max(problem.shape.m));
                assert_eq!(narrowed(&source.text), [] as [&str; 0], "{form}:\n{}", source.text);
                // What fits in 32 bits has the narrow text.
                let short =
                    Problem { shape: Shape { m: problem.shape.m.min(9), ..problem.shape }, ..problem };
                let short = Problem { shape: Shape { k: short.shape.k.min(9), ..short.shape }, ..short };
                assert!(
                    !compile::cuda_for(&valid, &short).unwrap().text.contains(&format!("long long {size}"))
                );
            }
        }
    }
}
