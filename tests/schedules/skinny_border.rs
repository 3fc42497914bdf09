//! The last rows and columns of C in the family `tsmttsm`, which threads add up beside whole matrix instructions.

use warpwright::compile;
use warpwright::kernels;
use warpwright::kernels::family::Choice;
use warpwright_core::target;

use crate::tall_skinny::{holds, parameters, problem};

/// One to four rows or columns, or both: of split numbers, of doubles, of complex numbers as columns of parts; every way in which
/// groups are given back, one warp along C and several.
#[test]
fn threads_add_up_the_last_rows_and_columns() {
    let family = kernels::family("tsmttsm").unwrap();
    for (dtype, (wide, high), form) in [
        ("f32", (49, 49), "border=both,wk=2,wm=1,wn=2,depth=128,stages=2,release=warps"),
        ("f32", (33, 33), "border=both,wk=4,wm=1,wn=1,depth=128,stages=2,release=role"),
        ("f32", (34, 50), "border=both,wk=2,wm=3,wn=2,depth=32,release=block"),
        ("f32", (41, 41), "border=columns,wk=2,wm=3,wn=1,depth=64"),
        ("f32", (16, 17), "border=rows,wk=4,wm=1,wn=1,depth=64"),
        ("f32", (51, 51), "border=both,depth=32"),
        ("f32", (9, 20), "border=both,wk=2,depth=16"),
        ("c64", (25, 25), "border=both,numbers=split-parts,wk=2,depth=64"),
        ("c64", (34, 17), "border=both,numbers=split-parts,wm=1,wn=2,wk=2,depth=64"),
        ("f64", (49, 33), "border=both,instruction=m16n8k4,depth=32"),
        ("f64", (9, 10), "border=both,instruction=m8n8k4,wk=4,depth=16"),
        ("c128", (49, 49), "border=both,numbers=parts,instruction=m8n8k4,depth=16,stages=2"),
        ("c128", (13, 25), "border=rows,numbers=parts,instruction=m16n8k4,depth=32"),
    ] {
        let problem = problem(family, (wide, high), dtype);
        let given = parameters(form).with("unit", "mma").with("copy", "bulk").with("parts", 3);
        let choice = family.complete(&given, &problem, target::DEFAULT).unwrap_or_else(|e| panic!("{e}"));
        holds(family, &problem, &choice, &[0, 1, 150, 3 * choice.int("depth") + 5]);
        let text = |choice: &Choice| {
            let kernel = family.build(&problem, choice).unwrap_or_else(|e| panic!("{e}"));
            compile::cuda(&compile::validated(kernel.program(), target::DEFAULT).unwrap()).unwrap().text
        };
        let none = given.clone().with("border", "none");
        if let Ok(none) = family.complete(&none, &problem, target::DEFAULT) {
            assert_ne!(text(&choice), text(&none), "{choice}");
        }
    }
}

/// A^T A and A^H A: one copy of a group serves tiles, rows and columns.
#[test]
fn threads_add_up_the_border_of_a_matrix_times_itself() {
    let family = kernels::family("tsmttsm").unwrap();
    for (dtype, width, form) in [
        ("f32", 49, "border=both,apart=1,wk=2,depth=64"),
        ("f32", 34, "border=both,apart=4,wk=2,depth=64"),
        ("f32", 18, "border=rows,apart=1,wk=4,depth=64"),
        ("c64", 25, "border=both,numbers=split-parts,wk=2,depth=64"),
        ("f64", 33, "border=columns,instruction=m16n8k4,depth=32"),
        ("c128", 17, "border=both,numbers=parts,instruction=m16n8k4,depth=16"),
    ] {
        let mut problem = problem(family, (width, width), dtype);
        problem.same = true;
        let given = parameters(form).with("unit", "mma").with("copy", "bulk").with("parts", 3);
        let choice = family.complete(&given, &problem, target::DEFAULT).unwrap_or_else(|e| panic!("{e}"));
        holds(family, &problem, &choice, &[0, 1, 150, 3 * choice.int("depth") + 5]);
    }
}

/// What is a large part of an instruction is left to one; so is what bulk copies do not bring.
#[test]
fn only_few_rows_and_columns_are_left_to_threads() {
    let family = kernels::family("tsmttsm").unwrap();
    for (dtype, widths, form) in [
        ("f32", (48, 48), "border=both"),
        ("f32", (53, 53), "border=columns"),
        ("f32", (49, 41), "border=both"),
        ("f32", (9, 9), "border=rows"),
        ("f32", (49, 49), "border=both,copy=one"),
        ("c128", (17, 17), "border=both,numbers=whole"),
    ] {
        let problem = problem(family, widths, dtype);
        let given = parameters(form).with("unit", "mma");
        let refused = family.complete(&given, &problem, target::DEFAULT).unwrap_err().to_string();
        assert!(refused.contains("border"), "{dtype} {widths:?}: {refused}");
    }
}
