//! The families for tall and skinny products: what is chosen for their parameters changes nothing of what they compute.

use warpwright::compile;
use warpwright::kernels;
use warpwright::kernels::family::{Choice, Family, Permissions, parse_parameter};
use warpwright::problem::Problem;
use warpwright::run;
use warpwright_core::ir::parse;
use warpwright_core::target;
use warpwright_sim::exact::{self, Trials};
use warpwright_sim::{Blocks, Counters, Mode, Options};

use crate::check::check;
use crate::drawn::{drawn, forms};
use crate::skinny_footprint;

/// The choice is exactly equal to the specification, in order and on threads without a hazard, at these long extents.
pub fn holds(family: &Family, problem: &Problem, choice: &Choice, long: &[i64]) {
    holds_with(family, problem, choice, long, &[]);
}

/// The same where other sizes are given too.
pub fn holds_with(family: &Family, problem: &Problem, choice: &Choice, long: &[i64], given: &[(&str, i64)]) {
    let kernel = family.build(problem, choice).unwrap_or_else(|e| panic!("{e}"));
    let place = format!("{} with {choice}", kernel.name);
    let valid =
        compile::validated(kernel.program(), target::DEFAULT).unwrap_or_else(|e| panic!("{place}: {e}"));
    let source = compile::cuda(&valid).unwrap_or_else(|e| panic!("{place}: {e}"));
    skinny_footprint::agrees(family, problem, choice, &valid, &source);
    let name = if family.name == "tsmm" { "M" } else { "K" };
    for extent in long {
        let trials = Trials {
            count: 1,
            seed: 3,
            options: Options { mode: Mode::Simt, checks: true, blocks: Blocks::All },
        };
        let sizes = [&[(name, *extent)], given].concat();
        let report = exact::check(kernel.specification(), valid.program(), &sizes, &trials)
            .unwrap_or_else(|e| panic!("{place}: {e}"));
        assert!(report.passed(), "{place} at {name} = {extent}: {:?}", report.run.hazards);
    }
}

/// What a choice does with so many long rows, all its blocks simulated.
pub fn counted(family: &Family, problem: &Problem, choice: &Choice, rows: i64) -> Counters {
    let kernel = family.build(problem, choice).unwrap_or_else(|e| panic!("{e}"));
    let valid = compile::validated(kernel.program(), target::DEFAULT).unwrap_or_else(|e| panic!("{e}"));
    let options = Options { mode: Mode::Simt, checks: true, blocks: Blocks::All };
    let trials = Trials { count: 1, seed: 3, options };
    let name = if family.name == "tsmm" { "M" } else { "K" };
    let report = exact::check(kernel.specification(), valid.program(), &[(name, rows)], &trials);
    report.unwrap_or_else(|e| panic!("{} with {choice}: {e}", kernel.name)).run.counters
}

/// A problem of a family with these short extents.
pub fn problem(family: &Family, (wide, high): (i64, i64), dtype: &str) -> Problem {
    let (shape, layout) = match family.name {
        "tsmm" => (format!("100000x{wide}x{high}"), "nn"),
        _ => (format!("{high}x{wide}x100000"), if dtype.starts_with('c') { "cn" } else { "tn" }),
    };
    Problem::new(shape.parse().unwrap(), dtype.parse().unwrap(), layout.parse().unwrap())
}

#[test]
fn the_usual_choice_serves_every_type_and_width() {
    let widths = [(1, 1), (2, 2), (3, 1), (5, 7), (16, 16), (17, 3), (31, 33), (63, 2), (64, 64), (1, 128)];
    for family in kernels::TALL_SKINNY {
        for (at, widths) in widths.into_iter().enumerate() {
            let dtype = ["f64", "f32", "c128", "c64"][at % 4];
            let problem = problem(family, widths, dtype);
            let choice = family.complete(&Choice::default(), &problem, target::DEFAULT).unwrap();
            holds(family, &problem, &choice, &[0, 1, 533]);
        }
    }
}

#[test]
fn choices_drawn_from_the_space_compute_the_same() {
    for family in kernels::TALL_SKINNY {
        for (dtype, widths) in [("f64", (5, 7)), ("c64", (16, 12)), ("f32", (33, 31)), ("c128", (3, 8))] {
            let problem = problem(family, widths, dtype);
            let choices = drawn(family, &problem, Permissions::NONE, &Choice::default(), 9);
            assert_eq!(choices.len(), 9, "{} for {dtype}", family.name);
            for choice in &choices {
                holds(family, &problem, choice, &[0, 531]);
            }
        }
    }
}

#[test]
fn tiles_of_widths_that_are_no_whole_16_bytes_compute_the_same() {
    let family = kernels::family("tsmm").unwrap();
    for (dtype, widths, pieces) in [
        ("f32", (49, 33), vec![13, 7, 17]),
        ("f32", (54, 50), vec![9, 14, 6]),
        ("f32", (127, 3), vec![19, 11, 13]),
        ("c64", (35, 49), vec![5, 7, 9]),
        ("f64", (33, 6), vec![11, 7, 9]),
    ] {
        let mut problem = problem(family, widths, dtype);
        problem.ld.c += i64::from(widths.1 == 33);
        let mut found = Vec::new();
        for piece in pieces {
            let given = Choice::default().with("unit", "fma").with("staging", "shared").with("piece", piece);
            for choice in &drawn(family, &problem, Permissions::NONE, &given, 2) {
                holds(family, &problem, choice, &[203]);
                found.push(choice.int("piece"));
            }
        }
        assert!(found.len() >= 4, "{dtype} {widths:?}: {found:?}");
    }
}

#[test]
fn fifteen_tiles_beside_each_other_stand_as_sixteen_where_rows_are_copied() {
    let family = kernels::family("tsmttsm").unwrap();
    let by_rows = |tile: i64| {
        Choice::default()
            .with("unit", "fma")
            .with("staging", "shared")
            .with("copy", "rows")
            .with("block", 256)
            .with("tm", tile)
            .with("tn", tile)
            .with("depth", 16)
            .with("stages", 2)
            .with("parts", 2)
            .with("transposed", true)
    };
    for (width, tile, threads) in [(116, 8, 256), (128, 8, 256), (60, 4, 256), (104, 8, 169)] {
        let problem = problem(family, (width, width), "f32");
        let choice = family.complete(&by_rows(tile), &problem, target::DEFAULT).unwrap();
        assert_eq!((family.footprint)(&problem, &choice, target::DEFAULT).threads, threads, "{width}");
        if width == 116 {
            holds(family, &problem, &choice, &[0, 37]);
        }
    }
}

#[test]
fn choices_drawn_for_wide_products_can_be_made() {
    const WIDTHS: [(i64, i64); 6] = [(128, 128), (65, 128), (96, 127), (125, 77), (5, 128), (128, 3)];
    for family in kernels::TALL_SKINNY {
        let products = WIDTHS.into_iter().flat_map(|w| ["f64", "c128", "f32", "c64"].map(|d| (w, d)));
        for (widths, dtype) in products {
            let mut problem = problem(family, widths, dtype);
            problem.same = family.name == "tsmttsm" && widths == (128, 128);
            let choices = drawn(family, &problem, Permissions::ALL, &Choice::default(), 8);
            assert_eq!(choices.len(), 8, "{} for {widths:?} {dtype}", family.name);
            for choice in &choices {
                let kernel = family.build(&problem, choice).unwrap_or_else(|e| panic!("{e}"));
                compile::validated(kernel.program(), target::DEFAULT)
                    .unwrap_or_else(|e| panic!("{} with {choice}: {e}", kernel.name));
            }
        }
    }
}

#[test]
fn parts_come_together_by_atomics_where_that_is_permitted() {
    let family = kernels::family("tsmttsm").unwrap();
    let names = ["unit", "staging", "reduction"];
    for (dtype, widths, count) in [
        ("f64", (5, 7), 7),
        ("f64", (64, 33), 7),
        ("c64", (16, 2), 7),
        ("f32", (3, 1), 5),
        ("c128", (9, 8), 7),
    ] {
        let problem = problem(family, widths, dtype);
        let all = forms(family, &problem, &names, Permissions::ALL);
        assert_eq!(all.len(), count, "{all:?}");
        for (form, choice) in &all {
            let atomics = form.ends_with("global") || form.ends_with("local");
            let kernel = family.build(&problem, choice).unwrap();
            assert_eq!(run::deterministic(kernel.program()), !atomics, "{form}");
            assert_eq!((family.any_order)(choice), atomics, "{form}");
            if atomics {
                for transposed in [true, false] {
                    let choice = match choice.get("transposed") {
                        Some(_) => choice.clone().with("transposed", transposed),
                        None => choice.clone(),
                    };
                    holds(family, &problem, &choice, &[0, 331]);
                }
            }
        }
        let fixed = forms(family, &problem, &names, Permissions::NONE);
        assert!(!fixed.is_empty() && fixed.iter().all(|(form, _)| form.ends_with("two-pass")), "{fixed:?}");
        // Somebody who asks for it by name permits it.
        let asked = Choice::default().with("staging", "registers").with("reduction", "local");
        let choice = family.complete(&asked, &problem, target::DEFAULT).unwrap();
        assert_eq!(choice.word("reduction"), "local");
        let usual = family.complete(&Choice::default(), &problem, target::DEFAULT).unwrap();
        assert_eq!(usual.word("reduction"), "two-pass");
    }
}

#[test]
fn large_blocks_have_rows_for_all_their_slices() {
    let family = kernels::family("tsmttsm").unwrap();
    for (width, block) in [(1, 512), (1, 1024), (4, 1024)] {
        let mut problem = problem(family, (width, width), "f64");
        problem.shape.k = 10_000;
        let given = Choice::default().with("unit", "fma").with("staging", "shared").with("block", block);
        let choice = family.complete(&given.with("tm", 1), &problem, target::DEFAULT).unwrap();
        assert!(choice.int("depth") >= 64, "{choice}");
        holds(family, &problem, &choice, &[1000]);
    }
}

#[test]
fn areas_of_c_are_blocks_of_one_launch() {
    let family = kernels::family("tsmttsm").unwrap();
    for (dtype, widths) in [("f64", (5, 7)), ("c64", (64, 2)), ("f32", (17, 33)), ("c128", (1, 128))] {
        let mut problem = problem(family, widths, dtype);
        problem.shape.k = 300;
        for areas in [1, 4, 16, 64] {
            for (transposed, leapfrog) in [(true, false), (false, true)] {
                let given = Choice::default().with("staging", "registers").with("areas", areas);
                let given = given.with("transposed", transposed).with("leapfrog", leapfrog);
                let given = given.with("parts", 1);
                let choice = family.complete(&given, &problem, target::DEFAULT).unwrap();
                assert_eq!(choice.get("reduction"), None, "{choice}");
                holds(family, &problem, &choice, &[0, 300]);
            }
        }
    }
    for reduction in ["two-pass", "global", "local"] {
        let wide = problem(family, (33, 64), "f64");
        let given = Choice::default().with("areas", 4).with("parts", 5).with("reduction", reduction);
        let choice = family.complete(&given, &wide, target::DEFAULT).unwrap();
        holds(family, &wide, &choice, &[0, 1, 331]);
    }
}

#[test]
fn areas_of_a_large_c_are_staged_by_blocks_of_their_own() {
    let family = kernels::family("tsmttsm").unwrap();
    for (dtype, (high, wide), form, areas) in [
        ("f64", (96, 96), "unit=mma,wm=2", [1, 2]),
        ("f64", (127, 96), "unit=mma,reduction=global", [1, 2]),
        ("f64", (128, 65), "unit=mma", [2, 4]),
        ("f64", (127, 96), "unit=fma,staging=shared,tm=6,tn=14,transposed=false", [2, 4]),
        ("c128", (128, 128), "unit=mma,numbers=whole", [2, 4]),
        ("c128", (128, 128), "unit=mma,numbers=parts", [4, 8]),
        ("c128", (67, 65), "unit=mma,numbers=parts", [2, 4]),
        ("c128", (65, 65), "unit=mma,numbers=whole,reduction=global", [2, 4]),
        ("c128", (128, 67), "unit=mma,numbers=three", [2, 4]),
        ("c128", (128, 40), "unit=fma,staging=shared,transposed=true", [2, 4]),
        ("c64", (125, 128), "unit=fma,staging=shared,transposed=true", [2, 4]),
        ("f32", (128, 128), "unit=fma,staging=shared,transposed=false", [2, 4]),
        ("f32", (128, 128), "unit=fma,staging=shared,tm=8,tn=8,reduction=global", [1, 2]),
    ] {
        let problem = problem(family, (wide, high), dtype);
        for areas in areas {
            let given = parameters(form).with("areas", areas);
            let choice = family.complete(&given, &problem, target::DEFAULT).unwrap();
            holds(family, &problem, &choice, &[0, 70]);
        }
    }
    // Where C is small there is nothing to divide.
    let small = problem(family, (64, 64), "f64");
    let given = Choice::default().with("unit", "mma").with("areas", 2);
    assert!(family.complete(&given, &small, target::DEFAULT).is_err());
}

#[test]
fn areas_of_a_matrix_times_itself_read_their_columns() {
    let family = kernels::family("tsmttsm").unwrap();
    for (dtype, width, form) in [
        ("c128", 128, "unit=mma,areas=4,numbers=parts"),
        ("f64", 100, "unit=mma,areas=2"),
        ("c128", 65, "unit=mma,areas=2,numbers=whole"),
        ("c64", 96, "unit=fma,staging=shared,areas=2"),
    ] {
        let mut problem = problem(family, (width, width), dtype);
        problem.same = true;
        let choice = family.complete(&parameters(form), &problem, target::DEFAULT).unwrap();
        let kernel = family.build(&problem, &choice).unwrap();
        assert!(!kernel.program().to_string().contains("B["), "{form} reads B");
        holds(family, &problem, &choice, &[1, 150]);
    }
    let mut problem = problem(family, (128, 128), "c128");
    problem.same = true;
    let three = parameters("unit=mma,areas=2,numbers=three");
    assert!(family.complete(&three, &problem, target::DEFAULT).is_err());
}

#[test]
fn bands_of_a_large_small_matrix_have_blocks_of_their_own() {
    let family = kernels::family("tsmm").unwrap();
    for (dtype, (wide, deep), form, bands) in [
        ("f64", (96, 96), "unit=mma,store=direct", [1, 2]),
        ("f64", (128, 65), "unit=mma,store=shared", [2, 4]),
        ("f64", (65, 128), "unit=mma,store=direct", [2, 4]),
        ("c128", (128, 128), "unit=mma,rows=16,wm=1,wn=4,store=direct", [2, 4]),
        ("c128", (65, 65), "unit=mma,rows=32,wm=2,wn=2,store=shared", [2, 4]),
        ("c128", (96, 65), "unit=mma,numbers=three,rows=32,wm=2,wn=3,store=direct", [2, 4]),
        ("c128", (40, 128), "unit=fma,staging=shared,rows=32,store=direct", [2, 4]),
        ("c64", (128, 128), "unit=fma,staging=shared,rows=32,store=direct", [2, 4]),
        ("c64", (96, 65), "unit=fma,staging=shared,store=shared", [2, 4]),
        ("f32", (126, 128), "unit=fma,staging=shared,store=direct", [2, 4]),
        ("f32", (128, 66), "unit=fma,staging=shared,store=shared,rows=256", [2, 4]),
        ("f32", (127, 127), "unit=fma,staging=shared,store=shared", [1, 2]),
    ] {
        let problem = problem(family, (wide, deep), dtype);
        for bands in bands {
            let given = parameters(form).with("bands", bands).with("blocks", 2);
            let choice = family.complete(&given, &problem, target::DEFAULT).unwrap();
            holds(family, &problem, &choice, &[0, 150]);
        }
    }
}

#[test]
fn long_rows_are_copied_piece_after_piece() {
    let family = kernels::family("tsmm").unwrap();
    for (dtype, (wide, deep), form) in [
        ("f64", (64, 128), "unit=mma,store=direct,depth=16,stages=3"),
        ("f64", (33, 65), "unit=mma,store=shared,depth=16,stages=2"),
        ("c128", (128, 128), "unit=mma,store=direct,bands=4,depth=8,stages=3"),
        ("c128", (65, 65), "unit=mma,store=shared,bands=2,depth=16,stages=2"),
        ("c128", (40, 70), "unit=mma,numbers=three,store=shared,depth=16,stages=2"),
        ("c64", (64, 64), "unit=fma,staging=shared,store=direct,rows=128,depth=16,stages=3"),
        ("c64", (5, 70), "unit=fma,staging=shared,store=shared,depth=16,stages=4"),
        ("f32", (128, 128), "unit=fma,staging=shared,store=direct,bands=2,depth=32,stages=3"),
        ("f32", (31, 127), "unit=fma,staging=shared,store=shared,depth=32,stages=2"),
    ] {
        let problem = problem(family, (wide, deep), dtype);
        let given = parameters(form).with("blocks", 2);
        let choice = family.complete(&given, &problem, target::DEFAULT).unwrap();
        holds(family, &problem, &choice, &[0, 1, 400]);
    }
}

/// Parts of a block: of one warp and of several, with lanes that have no tile, with rows that are copied as one and in
/// pieces, and with bands.
#[test]
fn parts_of_a_block_wait_for_nobody_else() {
    let family = kernels::family("tsmm").unwrap();
    for (dtype, (wide, deep), form) in [
        ("f64", (24, 17), "unit=mma,store=shared,wm=4,wn=1"),
        ("f64", (64, 40), "unit=mma,store=direct,wm=2,wn=4,depth=16,stages=3"),
        ("c128", (33, 9), "unit=mma,store=direct,instruction=m8n8k4,rows=32,wm=4,wn=1"),
        ("c128", (66, 40), "unit=mma,store=shared,bands=2,rows=64,wm=2,wn=2"),
        ("c128", (40, 21), "unit=mma,numbers=three,store=direct,rows=64,wm=2,wn=2"),
        ("f32", (36, 20), "unit=fma,staging=shared,store=direct,wm=4,wn=1,tm=4,tn=12,piece=4"),
        ("f32", (63, 33), "unit=fma,staging=shared,store=shared,wm=2,wn=2,tm=8,tn=8,piece=4"),
        ("c64", (36, 36), "unit=fma,staging=shared,store=direct,wm=2,wn=2,tm=8,tn=4"),
        ("c64", (128, 48), "unit=fma,staging=shared,store=shared,bands=2,depth=16,wm=2,wn=4"),
    ] {
        let problem = problem(family, (wide, deep), dtype);
        let given = parameters(form).with("team", "part").with("blocks", 2);
        let choice = family.complete(&given, &problem, target::DEFAULT).unwrap_or_else(|e| panic!("{e}"));
        let kernel = family.build(&problem, &choice).unwrap();
        let program = compile::validated(kernel.program(), target::DEFAULT).unwrap();
        let text = program.program().to_string();
        let (_, rows) = text.split_once("for w in threads(").expect("a loop over the parts");
        assert!(rows.contains("barrier"), "parts wait inside their loop:\n{text}");
        holds(family, &problem, &choice, &[0, 1, 530]);
    }
}

/// A kernel in parts without one of its barriers, waits or commits is caught.
#[test]
fn parts_that_do_not_wait_are_caught() {
    let family = kernels::family("tsmm").unwrap();
    let problem = problem(family, (20, 24), "f64");
    let form = parameters("unit=mma,team=part,store=shared,rows=64,wm=4,wn=1,stages=3,blocks=2");
    let choice = family.complete(&form, &problem, target::DEFAULT).unwrap();
    let kernel = family.build(&problem, &choice).unwrap();
    let text = compile::validated(kernel.program(), target::DEFAULT).unwrap().program().to_string();
    let passes = |text: &str| {
        let program = parse::program(text).unwrap();
        let options = Options { mode: Mode::Simt, checks: true, blocks: Blocks::All };
        let trials = Trials { count: 1, seed: 3, options };
        exact::check(kernel.specification(), &program, &[("M", 530)], &trials).is_ok_and(|r| r.passed())
    };
    assert!(passes(&text));
    let lines: Vec<&str> = text.lines().collect();
    let inside = lines.iter().position(|line| line.contains("for w in threads(")).unwrap();
    let mut mutants = 0;
    for (at, line) in lines.iter().enumerate().skip(inside) {
        if !["barrier", "cp.wait 1", "cp.commit"].contains(&line.trim()) {
            continue;
        }
        let mutant = [&lines[..at], &lines[at + 1..]].concat().join("\n");
        assert!(!passes(&mutant), "nobody misses line {at}, `{line}`, of\n{text}");
        mutants += 1;
    }
    // A wait, a barrier and a commit for each step, one before the loop, and the barriers around the stores.
    assert!(mutants >= 5, "{mutants} mutants of\n{text}");
}

#[test]
fn forms_that_stage_rows_serve_every_width() {
    const WIDTHS: [i64; 9] = [2, 5, 33, 64, 65, 80, 96, 127, 128];
    for family in kernels::TALL_SKINNY {
        for (dtype, form) in
            [("f64", "unit=mma"), ("c128", "unit=mma"), ("f32", "staging=shared"), ("c64", "staging=shared")]
        {
            for (wide, high) in WIDTHS.into_iter().flat_map(|wide| WIDTHS.map(|high| (wide, high))) {
                let problem = problem(family, (wide, high), dtype);
                family
                    .complete(&parameters(form), &problem, target::DEFAULT)
                    .unwrap_or_else(|e| panic!("{e}"));
            }
        }
    }
}

/// The choice that a text such as `unit=mma,areas=2` gives.
pub fn parameters(text: &str) -> Choice {
    let given = text.split(',').map(|p| parse_parameter(p).unwrap());
    given.fold(Choice::default(), |choice, (name, value)| choice.with(name, value))
}

#[test]
fn a_matrix_times_itself_is_read_once() {
    let family = kernels::family("tsmttsm").unwrap();
    for (dtype, width) in [("f64", 17), ("c128", 8), ("f32", 33), ("c64", 5), ("f64", 1), ("f64", 40)] {
        let mut problem = problem(family, (width, width), dtype);
        problem.same = true;
        for (form, choice) in forms(family, &problem, &["unit", "staging", "reduction"], Permissions::ALL) {
            let kernel = family.build(&problem, &choice).unwrap();
            let program = compile::validated(kernel.program(), target::DEFAULT).unwrap();
            let text = program.program().to_string();
            assert!(!text.contains("B["), "{form} reads B:\n{text}");
            let staged = form.starts_with("mma") || form.contains("shared");
            assert!(!staged || !text.contains("alloc Bs"), "{form} stages rows twice:\n{text}");
            holds(family, &problem, &choice, &[1, 331]);
        }
        for choice in &drawn(family, &problem, Permissions::NONE, &Choice::default(), 3) {
            holds(family, &problem, choice, &[300]);
        }
    }
    // One operand is read element by element, the other 16 bytes at a time.
    let mut problem = problem(family, (17, 17), "f64");
    problem.same = true;
    let given = Choice::default().with("staging", "shared").with("copy", "rows").with("transposed", true);
    let given = given.with("block", 128).with("tm", 9).with("tn", 6);
    let choice = family.complete(&given.with("unit", "fma"), &problem, target::DEFAULT).unwrap();
    holds(family, &problem, &choice, &[300]);
}

#[test]
fn what_cannot_be_chosen_is_refused_with_what_to_change() {
    let family = kernels::family("tsmttsm").unwrap();
    let problem = problem(family, (64, 64), "c64");
    let complete = |name: &'static str, value: i64| {
        let choice = Choice::default().with(name, value);
        family.complete(&choice, &problem, target::DEFAULT).map(|c| c.to_string())
    };
    assert!(
        complete("tx", 1).unwrap_err().to_string().contains("use one of unit, granularity, staging, areas")
    );
    assert!(complete("tm", 64).unwrap_err().to_string().contains("cannot be made with"));
    // No number is 0, negative or beyond counting, and none is a word.
    for number in [0, -4, i64::MAX] {
        for name in ["tm", "tn", "block", "depth", "parts", "stages"] {
            assert!(
                complete(name, number).unwrap_err().to_string().contains("try one of"),
                "{name}={number}"
            );
        }
    }
    let given = Choice::default().with("tm", "four");
    let refused = family.complete(&given, &problem, target::DEFAULT).unwrap_err().to_string();
    assert!(refused.contains("tm=four is no choice"), "{refused}");
    assert!(complete("tm", 4).is_ok());
    // The values that are named are those of the form that comes first.
    let depth = complete("depth", 0).unwrap_err().to_string();
    let usual = family.complete(&Choice::default(), &problem, target::DEFAULT).unwrap().int("depth");
    assert!(depth.contains(&format!("try one of {usual}, ")), "{depth}; {usual} is the most usual");
    // What has a meaning in one form only asks for that form, and of both at once there is no kernel.
    let of_both = Choice::default().with("tm", 4).with("wk", 2);
    assert!(family.complete(&of_both, &problem, target::DEFAULT).is_err());
    let of_both = Choice::default().with("unit", "fma").with("wm", 1);
    let refused = family.complete(&of_both, &problem, target::DEFAULT).unwrap_err().to_string();
    assert!(refused.contains("wm has no meaning with"), "{refused}");
    // What is said to have no meaning is what has none beside the others, not the first that has none somewhere.
    let tsmm = kernels::family("tsmm").unwrap();
    let (long, short_sums) = (self::problem(tsmm, (36, 36), "f32"), self::problem(tsmm, (36, 15), "f32"));
    let parted = Choice::default().with("team", "part").with("rows", 64);
    let refused = tsmm.complete(&parted, &short_sums, target::DEFAULT).unwrap_err().to_string();
    assert!(refused.contains("rows has no meaning with") && refused.contains("team=part"), "{refused}");
    // Of several constraints that are broken, one on most of what is asked for.
    let large = parameters("team=part,tm=16,tn=12,piece=4");
    let refused = tsmm.complete(&large, &long, target::DEFAULT).unwrap_err().to_string();
    assert!(refused.contains("do not fit in its registers"), "{refused}");
    // What is chosen later takes no meaning from what was chosen before it.
    let apart_and_stored_in_pairs =
        parameters("store=bulk,copy=bulk,team=part,rest=threads,columns_apart=1,pairs=true");
    let wide = self::problem(tsmm, (58, 58), "c64");
    tsmm.complete(&apart_and_stored_in_pairs, &wide, target::DEFAULT).unwrap();
    let word = Choice::default().with("staging", "registers").with("leapfrog", "perhaps");
    assert!(family.complete(&word, &problem, target::DEFAULT).unwrap_err().to_string().contains("true"));
}

/// Every step on the way to a kernel of each form, rows being whole pieces of 16 bytes and not: equal in order to the
/// specification.
#[test]
fn every_prefix_of_every_form_is_equal_to_the_specification() {
    for (name, sizes, dtype, parameters) in [
        ("tsmttsm", (5, 3), "f64", "staging=registers,reduction=two-pass,block=128,parts=2"),
        ("tsmttsm", (4, 8), "f32", "staging=shared,block=128,parts=2"),
        ("tsmttsm", (5, 3), "c64", "staging=shared,copy=one,block=128,parts=2"),
        ("tsmttsm", (9, 4), "f64", "unit=mma,copy=one,wk=2,parts=2"),
        ("tsmttsm", (4, 3), "c128", "unit=mma,wk=2,parts=2"),
        ("tsmttsm", (65, 66), "c128", "unit=mma,areas=2,wk=1,depth=4,parts=2"),
        ("tsmttsm", (4, 3), "c128", "unit=mma,numbers=three,wk=2,parts=2"),
        ("tsmttsm", (65, 66), "c128", "unit=mma,numbers=three,areas=2,wk=1,depth=4,parts=2"),
        ("tsmttsm", (128, 64), "f64", "unit=fma,staging=shared,areas=2,block=128,depth=4,parts=2"),
        ("tsmm", (5, 3), "f64", "staging=registers,block=128"),
        ("tsmm", (4, 8), "f32", "staging=registers,block=128,vector=4"),
        ("tsmm", (4, 8), "f32", "staging=shared,store=direct,blocks=2"),
        ("tsmm", (5, 3), "c64", "staging=shared,store=shared,blocks=2"),
        ("tsmm", (9, 4), "f64", "unit=mma,store=shared,blocks=2"),
        ("tsmm", (4, 3), "c128", "unit=mma,store=direct,blocks=2"),
        ("tsmm", (65, 66), "c64", "staging=shared,store=shared,rows=32,bands=2,blocks=2"),
        ("tsmm", (96, 66), "f64", "unit=mma,store=direct,rows=32,wm=2,bands=2,blocks=2,depth=16"),
        ("tsmm", (16, 70), "c64", "staging=shared,store=shared,rows=64,tm=4,tn=4,depth=16,blocks=2"),
        ("tsmm", (9, 12), "f64", "unit=mma,team=part,wm=2,wn=2,store=direct,blocks=2"),
        ("tsmm", (5, 7), "f32", "staging=shared,team=part,wm=4,wn=1,store=shared,blocks=2"),
        ("tsmm", (36, 5), "c64", "staging=shared,team=part,wm=2,wn=3,tm=1,tn=6,piece=2,blocks=2"),
        ("tsmm", (20, 70), "c128", "unit=mma,team=part,rows=64,wm=4,wn=1,depth=16,store=shared,blocks=2"),
        ("tsmm", (4, 3), "c128", "unit=mma,numbers=three,rows=32,wm=2,store=direct,blocks=2"),
        ("tsmm", (5, 3), "c128", "unit=mma,numbers=parts,rows=32,wm=2,store=direct,blocks=2"),
        ("tsmm", (9, 17), "c64", "unit=mma,numbers=split-parts,team=part,wm=2,store=shared,blocks=2"),
        ("tsmm", (9, 17), "c64", "unit=mma,numbers=split-parts,rest=threads,wm=2,store=shared,blocks=2"),
        ("tsmm", (9, 17), "f32", "unit=mma,split_once=true,rest=threads,team=part,wm=2,blocks=2"),
        (
            "tsmm",
            (9, 34),
            "c128",
            "unit=mma,numbers=three,team=part,rows=64,wm=4,depth=8,store=shared,blocks=2",
        ),
    ] {
        let family = kernels::family(name).unwrap();
        let problem = problem(family, sizes, dtype);
        let choice = family.complete(&self::parameters(parameters), &problem, target::DEFAULT).unwrap();
        let kernel = family.build(&problem, &choice).unwrap();
        let long = if name == "tsmm" { "M" } else { "K" };
        let extent = if sizes.0 < 64 { 37 } else { 5 };
        check(&kernel.schedule, &[(long, extent)], 0, false, 5)
            .unwrap_or_else(|e| panic!("{} with {choice}: {e}", kernel.name));
    }
}
