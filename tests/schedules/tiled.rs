//! The family `tiled`: what is chosen for its parameters changes nothing of what it computes.

use std::collections::BTreeSet;

use warpwright::choose;
use warpwright::compile;
use warpwright::kernels;
use warpwright::kernels::family::{Choice, Family, Permissions, parse_parameter};
use warpwright::problem::Problem;
use warpwright_core::target;
use warpwright_sim::exact::{self, Trials};
use warpwright_sim::{Blocks, Mode, Options};

use crate::drawn;

fn family() -> &'static Family {
    kernels::family("tiled").unwrap()
}

fn problem(shape: &str) -> Problem {
    of_type("f32", "nn", shape)
}

fn of_type(dtype: &str, layout: &str, shape: &str) -> Problem {
    Problem::new(shape.parse().unwrap(), dtype.parse().unwrap(), layout.parse().unwrap())
}

fn choice(text: &str) -> Choice {
    let values: Vec<_> = text.split_whitespace().map(|word| parse_parameter(word).unwrap()).collect();
    Choice::of(&values)
}

/// The kernel of a choice is exactly equal to the specification, on threads without a hazard, with dense rows and with
/// rows that are padded so that no wide access is allowed; its shared memory is what the model counts.
fn holds(shape: &str, choice: &Choice) {
    holds_of(&problem(shape), choice);
}

fn holds_of(problem: &Problem, choice: &Choice) {
    let kernel =
        family().build(problem, choice).unwrap_or_else(|e| panic!("{} with {choice}: {e}", problem.shape));
    let place = format!("{} with {choice}", kernel.name);
    let valid =
        compile::validated(kernel.program(), target::DEFAULT).unwrap_or_else(|e| panic!("{place}: {e}"));
    let source = compile::cuda(&valid).unwrap_or_else(|e| panic!("{place}: {e}"));
    let expected = (family().footprint)(problem, choice, target::DEFAULT).shared_bytes;
    let found: Vec<i64> = source.kernels.iter().map(|kernel| kernel.shared_bytes).collect();
    let near = found.iter().any(|bytes| (bytes - expected).abs() <= 1024 + expected / 20);
    assert!(near, "{place}: {expected} bytes of shared memory expected: {found:?}");
    let dense = [problem.ld.a, problem.ld.b, problem.ld.c];
    for padding in [0, 1] {
        let [lda, ldb, ldc] = dense.map(|ld| ld + padding);
        let sizes = [("lda", lda), ("ldb", ldb), ("ldc", ldc)];
        let trials = Trials {
            count: 1,
            seed: 3,
            options: Options { mode: Mode::Simt, checks: true, blocks: Blocks::All },
        };
        let report = exact::check(kernel.specification(), valid.program(), &sizes, &trials)
            .unwrap_or_else(|e| panic!("{place}: {e}"));
        assert!(report.passed(), "{place}, {padding} elements between rows: {:?}", report.run.hazards);
    }
}

/// So many choices with these values.
fn drawn(problem: &Problem, given: &str, count: usize) -> Vec<Choice> {
    let choices = drawn::drawn(family(), problem, Permissions::NONE, &choice(given), count);
    assert_eq!(choices.len(), count, "{} with {given}", problem.shape);
    choices
}

#[test]
fn the_usual_choice_serves_every_size() {
    for shape in [
        "1x1x1",
        "1x40x33",
        "3x37x130",
        "16x128x64",
        "17x129x65",
        "37x50x7",
        "64x100x40",
        "100x1000x3",
        "130x70x50",
    ] {
        let usual = family().complete(&Choice::default(), &problem(shape), target::DEFAULT).unwrap();
        holds(shape, &usual);
    }
}

#[test]
fn tiles_that_pass_through_registers_compute_the_same() {
    let older = target::Target::by_name("rtx2080ti").unwrap();
    for shape in ["5x130x270", "24x100x130", "80x130x70"] {
        let usual = family().complete(&Choice::default(), &problem(shape), older).unwrap();
        assert_eq!(usual.word("copy"), "registers");
        holds(shape, &usual);
    }
}

#[test]
fn what_is_reproducible_is_the_same_on_every_gpu_and_adds_in_one_order() {
    for shape in ["5x130x270", "40x100x130", "80x130x70"] {
        let kernel = choose::reproducible(Some(family()), &Choice::default(), &problem(shape)).unwrap();
        assert_eq!((kernel.family.as_str(), kernel.parameters.int("parts")), ("tiled", 1), "{shape}");
        let sets = if shape.starts_with('5') { 16 } else { 1 };
        assert_eq!(kernel.parameters.int("sets"), sets, "{shape}");
        holds(shape, &kernel.parameters);
    }
}

#[test]
fn choices_drawn_from_the_space_compute_the_same() {
    for (shape, given) in [
        ("1x72x300", ""),
        ("5x130x270", "a_tile=rows"),
        ("16x136x520", "a_tile=rows"),
        ("24x100x260", "a_tile=rows team=block"),
        ("16x136x1030", "a_tile=rows team=warp"),
        ("7x50x600", "a_tile=rows team=warp"),
        ("48x200x100", "a_tile=turned"),
        ("80x130x70", "a_tile=turned"),
        ("100x257x66", "a_tile=turned"),
        ("1x72x300", "unit=mma"),
        ("16x136x1030", "unit=mma team=warp"),
        ("20x131x520", "unit=mma team=block"),
        ("48x200x260", "unit=mma"),
        ("100x257x66", "unit=mma"),
        ("130x70x270", "unit=mma"),
    ] {
        for choice in drawn(&problem(shape), given, 6) {
            holds(shape, &choice);
        }
    }
}

#[test]
fn elements_of_16_bits_compute_the_same() {
    for (shape, dtype) in [
        ("1x8x8", "bf16"),
        ("1x40x32", "f16"),
        ("3x40x136", "bf16-f32"),
        ("16x128x64", "f16-f32"),
        ("17x136x72", "bf16"),
        ("37x56x8", "f16"),
        ("64x104x40", "bf16"),
        ("130x72x56", "bf16-f32"),
    ] {
        for layout in ["nn", "nt"] {
            let problem = of_type(dtype, layout, shape);
            holds_of(&problem, &family().complete(&Choice::default(), &problem, target::DEFAULT).unwrap());
        }
    }
    for (shape, given) in [
        ("1x72x304", ""),
        ("16x136x1032", "team=warp"),
        ("20x136x520", "team=block"),
        ("48x200x264", ""),
        ("100x264x64", ""),
        ("130x72x272", ""),
    ] {
        for layout in ["nn", "nt"] {
            for (at, choice) in drawn(&of_type("bf16", layout, shape), given, 4).iter().enumerate() {
                holds_of(&of_type(["bf16", "f16-f32"][at % 2], layout, shape), choice);
            }
        }
    }
    // One square of either operand, several of one, several of both; C, a part of it, or sums of sets as what is left behind.
    for (shape, given) in [
        ("16x64x96", "rows=16 columns=64 depth=32 sets=1 wm=1 wn=4 stages=2 swizzled=true"),
        ("40x136x136", "rows=48 columns=64 depth=32 sets=1 wm=1 wn=4 stages=3 swizzled=false"),
        ("70x72x256", "rows=64 columns=32 depth=64 sets=1 wm=2 wn=1 stages=2 parts=2 swizzled=true"),
        ("16x136x392", "rows=16 columns=32 depth=128 sets=4 wm=1 wn=2 stages=2 parts=3 swizzled=true"),
        ("30x96x400", "rows=32 columns=64 depth=128 sets=4 wm=1 wn=1 stages=1 team=block swizzled=false"),
    ] {
        for layout in ["nn", "nt"] {
            let problem = of_type("bf16", layout, shape);
            let complete = family().complete(&choice(given), &problem, target::DEFAULT);
            holds_of(&problem, &complete.unwrap_or_else(|e| panic!("{shape} {layout} with {given}: {e}")));
        }
    }
}

#[test]
fn weights_that_are_stored_by_columns_compute_the_same() {
    for shape in ["1x40x50", "3x37x130", "16x128x64", "17x129x65", "64x100x40", "130x70x50"] {
        let problem = of_type("f32", "nt", shape);
        holds_of(&problem, &family().complete(&Choice::default(), &problem, target::DEFAULT).unwrap());
    }
    for (shape, given) in [
        ("1x72x300", ""),
        ("16x136x1030", "team=warp"),
        ("20x131x520", "team=block"),
        ("48x200x260", "swizzled=true"),
        ("100x257x66", ""),
        ("130x70x270", ""),
    ] {
        let problem = of_type("f32", "nt", shape);
        for choice in drawn(&problem, given, 4) {
            holds_of(&problem, &choice);
        }
    }
    let [long, short] = ["7x40000x64", "7x40000x63"].map(|shape| of_type("f32", "nt", shape));
    assert!(choose::family(&long).is_some() && choose::family(&short).is_none());
    let older = target::Target::by_name("rtx2080ti").unwrap();
    let refusal = family().complete(&Choice::default(), &long, older).unwrap_err().to_string();
    assert!(refusal.contains("instructions that this GPU does not have"), "{refusal}");
}

#[test]
fn elements_of_16_bits_need_rows_in_pieces_and_a_gpu_that_multiplies_them() {
    let odd = of_type("bf16", "nn", "16x1004x4096");
    let mut late = of_type("f16", "nn", "16x1000x4096");
    late.offset.b = 1;
    for refused in [odd, late] {
        let refusal = (family().fixed)(&refused).unwrap_err().to_string();
        assert!(refusal.contains("start at multiples of 16 bytes"), "{refusal}");
    }
    let problem = of_type("bf16", "nn", "16x1000x4096");
    let older = target::Target::by_name("v100-sxm2").unwrap();
    let refusal = family().complete(&Choice::default(), &problem, older).unwrap_err().to_string();
    assert!(refusal.contains("instructions that this GPU does not have"), "{refusal}");
    assert!(choose::family(&problem).is_some() && choose::family(&odd).is_none());
    // Many rows times B^T are for the instructions of four warps.
    let turned = |shape: &str| choose::family(&of_type("bf16", "nt", shape)).is_some();
    assert!(turned("256x4096x4096") && !turned("257x4096x4096"));
    assert!((family().fixed)(&of_type("bf16", "tn", "16x4096x4096")).is_err());
    // It is a rung of a ladder that is chosen where bits have to be the same on every GPU.
    let reproducible = choose::reproducible(Some(family()), &Choice::default(), &problem).unwrap();
    assert_eq!(reproducible.family, "sgemm");
}

#[test]
fn lanes_that_read_pieces_of_rows_compute_the_same() {
    // Pieces of 1, 2 and 4 columns; several instructions beside each other that each have one column of a piece; C, a part of it, or
    // sums of sets as what is left behind.
    for (shape, given) in [
        ("33x136x300", "rows=32 columns=64 depth=64 sets=1 wm=2 wn=2 stages=2"),
        ("40x130x129", "rows=32 columns=64 depth=64 sets=2 wm=2 wn=1 stages=2"),
        ("20x200x260", "rows=16 columns=64 depth=128 sets=4 wm=1 wn=2 stages=3"),
        ("70x72x256", "rows=64 columns=32 depth=32 sets=1 wm=2 wn=2 stages=2 parts=2"),
        ("16x133x390", "rows=16 columns=32 depth=128 sets=4 wm=1 wn=4 stages=2 parts=3"),
        ("16x96x1030", "rows=16 columns=32 depth=256 sets=8 wm=1 wn=1 stages=3 team=warp"),
        ("30x96x400", "rows=32 columns=32 depth=256 sets=4 wm=1 wn=1 stages=1 team=block"),
    ] {
        let choice = choice(&format!("unit=mma numbers=split a_tile=rows swizzled=true {given}"));
        let complete = family().complete(&choice, &problem(shape), target::DEFAULT);
        holds(shape, &complete.unwrap_or_else(|e| panic!("{shape} with {choice}: {e}")));
    }
}

#[test]
fn short_sums_go_to_matrix_units_only_where_somebody_asks_for_it_or_permits_it() {
    let units = |problem: &Problem, permissions| {
        let mut units = BTreeSet::new();
        family().choices(problem, target::DEFAULT, permissions, &Choice::default(), &mut |choice| {
            units.insert(choice.word("unit").to_string());
            true
        });
        units
    };
    let permitted = Permissions { split: true, ..Permissions::NONE };
    for (shape, is_short) in [("64x4096x4096", false), ("64x4096x20", true)] {
        let problem = problem(shape);
        assert_eq!(units(&problem, Permissions::NONE).contains("mma"), !is_short, "{shape}");
        assert!(units(&problem, permitted).contains("mma"), "{shape}");
        let [by_unit, by_numbers] = ["unit=mma", "unit=mma numbers=split"]
            .map(|given| family().complete(&choice(given), &problem, target::DEFAULT));
        assert_eq!(by_unit.is_err(), is_short, "{shape}");
        let needs = family().needs(problem.precision, problem.shape.k, &by_numbers.unwrap());
        assert_eq!(needs.split, is_short, "{shape}");
    }
}
