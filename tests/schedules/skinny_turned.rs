//! The last rows of C in the family `tsmttsm` where matrix instructions take them turned.

use warpwright::kernels;
use warpwright::kernels::family::{Choice, Family, Permissions};
use warpwright::problem::Problem;
use warpwright_core::target;

use crate::drawn::drawn;
use crate::skinny_reads::chosen;
use crate::tall_skinny::{counted, holds, parameters, problem};

/// Matrix instructions side by side of all warps, by the multiply-adds of more groups of rows.
fn side_by_side(family: &Family, problem: &Problem, choice: &Choice) -> f64 {
    let groups = choice.int("parts") * choice.int("depth");
    let [few, many] = [1, 2].map(|of_a_block| counted(family, problem, choice, of_a_block * groups).fma);
    (many - few) as f64 / (groups * 16 * 8) as f64
}

/// Two rows to eight, all instructions, ways in which groups are given back and in which rows lie in banks; fewer instructions along the last rows
/// than there are warps, as many, and more, of which some warps have fewer.
#[test]
fn the_last_rows_are_columns_of_instructions() {
    let family = kernels::family("tsmttsm").unwrap();
    for (dtype, (wide, high), form, [turned, plain]) in [
        ("c128", (50, 50), "wm=3,wn=4,depth=16,omit=true,even=true,zeros=true,release=role", [85.0, 91.0]),
        ("c128", (50, 50), "wm=3,wn=4,depth=32,omit=true,even=true,zeros=false,release=role", [85.0, 91.0]),
        (
            "c128",
            (51, 51),
            "wm=2,wn=4,depth=16,omit=true,even=true,apart=2,release=warps,lane_base=true",
            [85.0, 91.0],
        ),
        (
            "c128",
            (52, 52),
            "wm=3,wn=4,depth=32,omit=true,even=true,runs=4,release=role,lane_base=true",
            [85.0, 91.0],
        ),
        (
            "c128",
            (58, 58),
            "wm=2,wn=4,depth=16,omit=true,even=true,zeros=false,release=warps,lane_base=true",
            [113.0, 120.0],
        ),
        ("c128", (42, 42), "wm=3,wn=4,depth=16,omit=true,even=true,zeros=false", [61.0, 66.0]),
        ("c128", (25, 9), "wm=1,wn=2,depth=32,omit=true,release=block", [11.0, 14.0]),
        (
            "c128",
            (25, 9),
            "instruction=m16n8k16,wm=1,wn=2,depth=32,omit=true,apart=2,lane_base=true",
            [11.0, 14.0],
        ),
        ("f64", (72, 40), "instruction=m16n8k8,wm=1,wn=3,depth=32,omit=false", [23.0, 27.0]),
        ("f64", (33, 19), "instruction=m16n8k16,wm=1,wn=2,depth=32,omit=true", [8.0, 10.0]),
        ("f64", (104, 23), "instruction=m16n8k4,wm=1,wn=3,depth=16,omit=true", [20.0, 26.0]),
        ("f64", (80, 24), "instruction=m16n8k8,wm=1,wn=2,depth=32,runs=4,release=warps", [15.0, 20.0]),
        ("f64", (32, 24), "instruction=m16n8k4,wm=1,wn=2,wk=2,depth=32", [6.0, 8.0]),
    ] {
        let problem = problem(family, (wide, high), dtype);
        let given = format!("unit=mma,copy=bulk,parts=3,border=turned,{form}");
        let given = if dtype == "c128" { format!("numbers=parts,{given}") } else { given };
        let given = if form.contains("wk=") { given } else { format!("{given},wk=1") };
        let given = if form.contains("instruction") { given } else { format!("{given},instruction=m16n8k4") };
        let choice = chosen(family, &problem, &given);
        let depth = choice.int("depth");
        holds(family, &problem, &choice, &[0, 1, 3 * depth - 1, 3 * depth + depth / 4 + 1]);
        assert_eq!(side_by_side(family, &problem, &choice), turned, "{choice}");
        let none = chosen(family, &problem, &given.replace("border=turned", "border=none"));
        assert_eq!(side_by_side(family, &problem, &none), plain, "{none}");
        if wide == high {
            let of_one = Problem { same: true, ..problem };
            holds(family, &of_one, &chosen(family, &of_one, &given), &[0, 1, 2 * depth + depth / 4 + 1]);
        }
    }
}

/// The three warps of a scheduler have three instructions side by side before those of the next have any, as the model of it says, and the
/// other tiles begin two columns of warps further on.
#[test]
fn schedulers_are_given_instructions_one_after_the_other() {
    let family = kernels::family("tsmttsm").unwrap();
    let problem = problem(family, (58, 58), "c128");
    let form = "wm=3,wn=4,wk=1,depth=16,omit=true,even=true,zeros=false,instruction=m16n8k4";
    let choice = chosen(family, &problem, &format!("unit=mma,copy=bulk,numbers=parts,border=turned,{form}"));
    let text = family.build(&problem, &choice).unwrap().program().to_string();
    for wanted in ["w in threads(3@128), z in threads(3@32)", "48*z + 16*w + j", "(wm + wn + 2)%4"] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
}

/// Where more than half of an instruction is full, or all of it; where an instruction has no more rows than columns; and rows that do not
/// come by bulk copies.
#[test]
fn rows_are_turned_only_where_that_takes_fewer_instructions() {
    let family = kernels::family("tsmttsm").unwrap();
    for (dtype, widths, form) in [
        ("c128", (53, 53), "copy=bulk,numbers=parts,instruction=m16n8k4"),
        ("f64", (64, 64), "copy=bulk,instruction=m16n8k4"),
        ("f64", (8, 8), "copy=bulk,instruction=m16n8k4"),
        ("f64", (33, 17), "copy=bulk,instruction=m16n8k4"),
        ("f64", (72, 72), "copy=bulk,instruction=m8n8k4"),
        ("f64", (72, 72), "copy=rows,instruction=m16n8k4"),
        ("c128", (50, 50), "copy=bulk,numbers=whole"),
        ("c128", (50, 50), "copy=bulk,numbers=three"),
        ("f32", (72, 72), "copy=bulk"),
    ] {
        let problem = problem(family, widths, dtype);
        let given = parameters(form).with("unit", "mma").with("border", "turned");
        let refused = family.complete(&given, &problem, target::DEFAULT).unwrap_err().to_string();
        assert!(refused.contains("border"), "{dtype} {widths:?} {form}: {refused}");
    }
}

#[test]
fn choices_drawn_with_turned_rows_compute_the_same() {
    let family = kernels::family("tsmttsm").unwrap();
    for (dtype, widths) in [("c128", (36, 44)), ("c128", (9, 25)), ("f64", (72, 40)), ("f64", (33, 19))] {
        let problem = problem(family, widths, dtype);
        let given = parameters("unit=mma,copy=bulk,border=turned,parts=3");
        let choices = drawn(family, &problem, Permissions::NONE, &given, DRAWN);
        assert_eq!(choices.len(), DRAWN, "{dtype} {widths:?}");
        for choice in &choices {
            holds(family, &problem, choice, &[0, 3 * choice.int("depth") + 5]);
        }
    }
}

/// So many choices of each product.
const DRAWN: usize = 4;
