//! Every rung of every ladder, step by step: each prefix of its schedule equals the specification exactly, in order
//! and on threads, where no hazard may be seen either.
//!
//! Sizes are drawn for each prefix from lists that hold nothing, one, primes, and what lies below, at and above the
//! tiles. A list is used up before it is begun again, so all prefixes together see all of it, and so do the 20 finished
//! kernels and sizes of a rung that serves all layouts and types that are tried; multiples of their tiles with aligned rows are among them.

use std::collections::HashSet;

use warpwright::choose;
use warpwright::compile::{cuda, validated};
use warpwright::kernels::{self, Recipe, Variant};
use warpwright::problem::Problem;
use warpwright_core::ir::Program;
use warpwright_core::passes::lower;
use warpwright_core::target;
use warpwright_sim::Mode;
use warpwright_sim::coroutine::Random;

use crate::check::{exact, threads, with_aligned_rows};

/// Rows of C: tiles have 1, 32, 64 and 128.
const ROWS: &[i64] = &[0, 1, 2, 7, 31, 32, 33, 63, 64, 65, 67, 127, 128, 129, 131];
/// Columns of C: tiles have 32, 64, 128 and 256.
const COLUMNS: &[i64] = &[0, 1, 3, 13, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257];
/// Terms of a sum: tiles have 8, 16 and 32.
const TERMS: &[i64] = &[0, 1, 2, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 48];
/// Multiples of every tile of C, with none, one or two of them along each axis; along a sum none, one of the smallest, and one or more of all.
const MULTIPLES: &[[i64; 3]] = &[[128, 256, 32], [256, 256, 8], [128, 256, 0], [0, 256, 32]];

/// Draws sizes; nothing comes back before all have come.
struct Draw {
    random: Random,
    left: [Vec<i64>; 3],
}

impl Draw {
    fn new(seed: u64) -> Draw {
        Draw { random: Random::new(seed), left: Default::default() }
    }

    fn shape(&mut self) -> [i64; 3] {
        let mut shape = [0; 3];
        for (axis, list) in [ROWS, COLUMNS, TERMS].into_iter().enumerate() {
            let left = &mut self.left[axis];
            if left.is_empty() {
                left.extend(list);
                self.random.shuffle(left);
            }
            shape[axis] = left.pop().expect("it was filled");
        }
        shape
    }
}

fn variant(dtype: &str, layout: &str) -> Variant {
    Variant::new(dtype.parse().expect("a type"), layout.parse().expect("a layout"))
}

/// Checks a program at a shape, with rows at multiples of 8 elements if they are `aligned`.
fn holds(spec: &Program, program: &Program, mode: Mode, shape: [i64; 3], aligned: bool, place: &str) {
    let mut sizes: Vec<_> = ["M", "N", "K"].into_iter().zip(shape).collect();
    if aligned {
        sizes = with_aligned_rows(spec, &sizes);
    }
    exact(spec, program, &sizes, mode, 1).unwrap_or_else(|e| panic!("{place}: {e}\n{program}"));
}

/// Checks every prefix of the schedule of a rung in order, and on threads wherever it is a kernel: only copies that a
/// step has made asynchronous and the next step waits for keep it from being one. Rungs begin alike; what was checked for
/// one before is not checked again.
fn every_prefix(recipe: &Recipe, seen: &mut HashSet<String>) {
    let mut draw = Draw::new(u64::from(recipe.rung));
    let kernel = kernels::build(recipe, variant("f32", "nn")).unwrap_or_else(|e| panic!("{e}"));
    let prefixes = kernel.schedule.prefixes().expect("the steps apply again");
    for (step, program) in prefixes.iter().enumerate() {
        let place = format!("{} after {step} steps", recipe.name);
        let text = program.to_string();
        // The name is the rung's.
        let body = text.split_once('(').map_or(text.as_str(), |(_, body)| body);
        if !seen.insert(body.to_string()) {
            continue;
        }
        let waits = text.contains("cp.wait") || !text.contains("cp_async");
        let is_large = step % 5 == 0;
        let (shape, aligned) = match step % 5 {
            0 => (MULTIPLES[draw.random.below(MULTIPLES.len())], true),
            n => (draw.shape(), n % 2 == 1),
        };
        // What is right on threads, in any order, at whole tiles has been right in order at others.
        if !(is_large && waits) {
            holds(kernel.specification(), program, Mode::InOrder, shape, aligned, &place);
        }
        if waits {
            let valid =
                validated(program, target::DEFAULT).unwrap_or_else(|e| panic!("{place}: {e}\n{program}"));
            holds(kernel.specification(), valid.program(), Mode::Simt, shape, aligned, &place);
        }
    }
    let lowered = lower(kernel.program()).expect("was lowered above");
    assert_eq!(lower(&lowered), Ok(lowered), "{}: lowering is done once", recipe.name);
}

/// Checks the kernel of a rung at sizes of a third of each list, and, at some, in other layouts and for other types.
fn finished(recipe: &Recipe) {
    let mut draw = Draw::new(u64::from(recipe.rung));
    for (dtype, layout, shapes) in [
        ("f32", "nn", COLUMNS.len() / 3),
        ("f32", "nt", 3),
        ("f32", "tn", 3),
        ("f32", "tt", 3),
        ("f64", "nn", 2),
        ("c128", "cn", 2),
        ("bf16", "nt", 2),
    ] {
        let variant = variant(dtype, layout);
        if (recipe.schedule)(variant).is_err() {
            continue;
        }
        let kernel = kernels::build(recipe, variant).unwrap_or_else(|e| panic!("{e}"));
        let valid =
            validated(kernel.program(), target::DEFAULT).unwrap_or_else(|e| panic!("{}: {e}", kernel.name));
        let holds = |shape, aligned| {
            holds(kernel.specification(), valid.program(), Mode::Simt, shape, aligned, &kernel.name);
        };
        MULTIPLES.iter().take(shapes).for_each(|shape| holds(*shape, true));
        (0..shapes).for_each(|n| holds(draw.shape(), n % 2 == 0));
    }
}

/// Checks every prefix of a rung for matrix units in order, and its kernel on threads. On the way to a matrix
/// instruction a product of register tiles belongs to a warp as a whole, so not every prefix is a kernel. Sums are long
/// enough for a ring to come round.
fn towards_matrix_units(recipe: &Recipe) {
    let mut forms = 0;
    let types: &[&str] = if recipe.family == "dgemm" { &["f64"] } else { &["bf16", "f16", "bf16-f32"] };
    for (dtype, layout) in types.iter().flat_map(|t| ["nn", "nt", "tn", "tt"].map(|layout| (*t, layout))) {
        let variant = variant(dtype, layout);
        if (recipe.schedule)(variant).is_err() {
            continue;
        }
        forms += 1;
        let kernel = kernels::build(recipe, variant).unwrap_or_else(|e| panic!("{e}"));
        let spec = kernel.specification();
        // The types differ in the names of instructions and in what is stored at the end, the layouts in how operands
        // come to the registers.
        let prefixes = kernel.schedule.prefixes().expect("the steps apply again");
        let is_first = dtype == types[0];
        let (first, shapes) = match layout {
            "nn" if is_first => (0, 4),
            "nt" if is_first => (0, 2),
            _ => (prefixes.len() - 1, 1),
        };
        for (step, program) in prefixes.iter().enumerate().skip(first) {
            let place = format!("{} after {step} steps", kernel.name);
            let shape = [[33, 17, 70], [0, 5, 3], [5, 9, 33]][step % 3];
            holds(spec, program, Mode::InOrder, shape, step % 2 == 0, &place);
        }
        let valid =
            validated(kernel.program(), target::DEFAULT).unwrap_or_else(|e| panic!("{}: {e}", kernel.name));
        let sizes = [([129, 65, 330], true), ([64, 257, 70], false), ([1, 1, 8], true), ([5, 300, 0], false)];
        for (shape, aligned) in sizes.into_iter().take(shapes) {
            holds(spec, valid.program(), Mode::Simt, shape, aligned, &kernel.name);
        }
        // The second engine takes matrix loads apart as the hardware does, tile by tile.
        if is_first {
            let sizes = with_aligned_rows(spec, &[("M", 65), ("N", 9), ("K", 40)]);
            threads(spec, valid.program(), &sizes, 3).unwrap_or_else(|e| panic!("{}: {e}", kernel.name));
        }
    }
    assert!(forms >= types.len(), "{} has a form for every type", recipe.name);
}

/// Applies a check to every rung of a ladder.
fn every_rung(ladder: &str, check: impl FnMut(&Recipe)) {
    kernels::ladder(ladder).expect("is there").into_iter().for_each(check);
}

/// Checks every prefix of every rung of a ladder once.
fn every_step(ladder: &str) {
    let mut seen = HashSet::new();
    every_rung(ladder, |recipe| every_prefix(recipe, &mut seen));
}

#[test]
fn every_step_of_the_sgemm_ladder_equals_the_specification() {
    every_step("sgemm");
}

#[test]
fn every_step_of_the_tvm_ladder_equals_the_specification() {
    every_step("tvm");
}

#[test]
fn every_step_of_the_hgemm_ladder_equals_the_specification() {
    every_rung("hgemm", towards_matrix_units);
}

#[test]
fn every_step_of_the_dgemm_ladder_equals_the_specification() {
    every_rung("dgemm", towards_matrix_units);
}

#[test]
fn finished_rungs_of_sgemm_equal_it_at_many_sizes_and_in_every_layout() {
    every_rung("sgemm", finished);
}

#[test]
fn finished_steps_of_tvm_equal_it_at_many_sizes_and_in_every_layout() {
    every_rung("tvm", finished);
}

#[test]
fn one_compiled_kernel_serves_ten_sizes() {
    let recipe = kernels::by_name("sgemm_padded_tile").expect("is there");
    let kernel = kernels::build(recipe, variant("f32", "nn")).unwrap_or_else(|e| panic!("{e}"));
    let valid = validated(kernel.program(), target::DEFAULT).unwrap_or_else(|e| panic!("{e}"));
    let source = cuda(&valid).unwrap_or_else(|e| panic!("{e}"));
    // What is fixed when the text is compiled are tiles; sizes and strides are parameters of each of its kernels.
    for kernel in &source.kernels {
        let (_, rest) = source.text.split_once(&format!("{}(", kernel.name)).expect("is in the text");
        let parameters = rest.split_once('{').expect("has a body").0;
        for size in ["N", "K", "lda", "ldb", "ldc"] {
            let is_one = |w: &str| w == size;
            assert!(parameters.split(|c: char| !c.is_alphanumeric()).any(is_one), "{size}: {parameters}");
        }
    }
    // Whole tiles and aligned rows take the first version, the others the second.
    assert_eq!(source.kernels.len(), 2);
    for (shape, aligned) in [
        ([0, 5, 3], false),
        ([1, 1, 1], false),
        ([7, 130, 0], true),
        ([127, 129, 17], false),
        ([128, 128, 16], true),
        ([128, 256, 48], true),
        ([129, 3, 65], true),
        ([131, 67, 33], false),
        ([256, 128, 32], true),
        ([300, 200, 100], true),
    ] {
        holds(kernel.specification(), valid.program(), Mode::Simt, shape, aligned, &kernel.name);
    }
}

#[test]
fn what_plain_gemm_uses_serves_matrices_that_start_anywhere() {
    for (dtype, layout, offset, rung) in [
        ("f32", "nn", "1,0,0", "sgemm_small_tile"),
        ("f32", "tn", "2,3,1", "sgemm_small_tile"),
        ("f32", "nt", "0,2,2", "sgemm_small_tile"),
        ("f64", "nn", "1,1,1", "sgemm_small_tile"),
        ("c64", "cn", "1,0,3", "sgemm_small_tile"),
        ("c128", "nn", "1,2,3", "sgemm_turned_lanes"),
        ("bf16", "nt", "1,0,0", "hgemm_matrix_units"),
        ("bf16-f32", "nn", "0,4,1", "hgemm_matrix_units"),
        ("bf16", "nt", "0,8,0", "hgemm_wide_warpgroups"),
        ("i32", "nn", "3,2,1", "sgemm_small_tile"),
    ] {
        let shape = "1000x1000x1000".parse().unwrap();
        let mut problem = Problem::new(shape, dtype.parse().unwrap(), layout.parse().unwrap());
        problem.offset = offset.parse().unwrap();
        let kernel = choose::kernel(&problem, target::DEFAULT).unwrap_or_else(|e| panic!("{e}"));
        assert!(kernel.name.starts_with(rung), "{dtype} {layout} {offset}: {}", kernel.name);
        let valid =
            validated(kernel.program(), target::DEFAULT).unwrap_or_else(|e| panic!("{}: {e}", kernel.name));
        cuda(&valid).unwrap_or_else(|e| panic!("{}: {e}", kernel.name));
        // The check takes tensors to start as badly aligned as they declare.
        for (shape, aligned) in [([128, 256, 32], true), ([129, 67, 33], false), ([5, 300, 9], true)] {
            holds(kernel.specification(), valid.program(), Mode::Simt, shape, aligned, &kernel.name);
        }
    }
}
