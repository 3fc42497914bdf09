//! The family `tsmttsm` where rows are added up by the residue classes of their numbers.

use warpwright::kernels::family::{Choice, Family};
use warpwright::kernels::gemm::{self, Fixed};
use warpwright::kernels::{self, Variant};
use warpwright::problem::Problem;
use warpwright_core::target;
use warpwright_sim::Mode;

use crate::check::exact;
use crate::tall_skinny::{holds, parameters, problem};

/// Widths whose rows start in 2 or in 4 ways, also differently in A and in B, and types.
const WIDTHS: [(&str, (i64, i64)); 11] = [
    ("f32", (5, 7)),
    ("f32", (33, 33)),
    ("f32", (31, 18)),
    ("f32", (62, 34)),
    ("f32", (63, 60)),
    ("f32", (119, 3)),
    ("f32", (125, 113)),
    ("f32", (127, 127)),
    ("c64", (5, 9)),
    ("c64", (33, 64)),
    ("c64", (63, 31)),
];

fn chosen(family: &Family, problem: &Problem, form: &str) -> Choice {
    let given = parameters(&format!("copy=classes,staging=shared,{form}"));
    family.complete(&given, problem, target::DEFAULT).unwrap_or_else(|d| panic!("{}: {d}", problem.shape))
}

#[test]
fn the_sums_of_all_classes_are_the_sums() {
    let family = kernels::family("tsmttsm").unwrap();
    for (dtype, widths) in WIDTHS {
        // Large products take the field long, and small ones have the same shifts.
        if widths.0 > 64 {
            continue;
        }
        let problem = problem(family, widths, dtype);
        let choice = chosen(family, &problem, "parts=4");
        let variant = Variant::of(&problem);
        let plain = Fixed { flat: (family.flat)(&problem, &choice), ..(family.fixed)(&problem).unwrap() };
        let classes = (family.classes)(&problem, &choice);
        assert!(classes.is_some(), "{dtype} {widths:?}");
        let [plain, by_classes] = [plain, Fixed { classes, ..plain }];
        let [plain, by_classes] = [plain, by_classes].map(|fixed| gemm::specification_at(variant, fixed));
        for k in [0, 1, 3, 4, 7, 18] {
            let place = format!("{dtype} {widths:?} at {k}");
            exact(&plain, &by_classes, &[("K", k)], Mode::InOrder, 5)
                .unwrap_or_else(|e| panic!("{place}: {e}"));
        }
    }
}

#[test]
fn rows_of_all_classes_are_added_up() {
    let family = kernels::family("tsmttsm").unwrap();
    for (at, (dtype, widths)) in WIDTHS.into_iter().enumerate() {
        let problem = problem(family, widths, dtype);
        let form =
            ["parts=4", "parts=8,stages=2,transposed=false", "parts=12,stages=3,transposed=true"][at % 3];
        let choice = chosen(family, &problem, form);
        let rounds = 4 * choice.int("depth") * choice.int("parts");
        holds(family, &problem, &choice, &[0, 3, 4, 133, rounds - 1, rounds + 1]);
        // Copies of 16 bytes, but where windows of such pieces would be wider than tiles are.
        let text = (family.schedule)(&problem, &choice);
        let bytes = if widths.0 == 127 { "cp_async8_" } else { "cp_async16_" };
        assert!(text.contains(bytes), "{dtype} {widths:?}: {text}");
    }
}

/// Tiles of which one threads in four or so would have none side by side, and far apart.
#[test]
fn tiles_beyond_the_window_are_copied_as_far_as_they_go() {
    let family = kernels::family("tsmttsm").unwrap();
    for (dtype, widths, form) in [
        ("f32", (5, 125), "tm=10,tn=2,transposed=false"),
        ("f32", (5, 125), "tm=10,tn=2,transposed=true"),
        ("c64", (5, 127), "tm=10,tn=2,transposed=false"),
        ("f32", (113, 116), "tm=8,tn=8,transposed=true"),
        ("f32", (113, 116), "tm=8,tn=8,transposed=false"),
        ("f32", (57, 59), "tm=4,tn=8,transposed=false"),
    ] {
        let problem = problem(family, widths, dtype);
        let choice = chosen(family, &problem, &format!("{form},parts=4,block=256,depth=8,stages=2"));
        holds(family, &problem, &choice, &[3, 257]);
    }
}

#[test]
fn rows_that_start_alike_or_are_copied_otherwise_have_no_classes() {
    let family = kernels::family("tsmttsm").unwrap();
    let refused = |problem: &Problem, form: &str| {
        let refusal = family.complete(&parameters(form), problem, target::DEFAULT).unwrap_err().to_string();
        assert!(refusal.contains("copy"), "{refusal}");
    };
    refused(&problem(family, (64, 32), "f32"), "copy=classes,staging=shared");
    refused(&problem(family, (33, 33), "f64"), "copy=classes");
    let mut apart = problem(family, (33, 33), "f32");
    apart.ld.a += 1;
    refused(&apart, "copy=classes,staging=shared");
    refused(&problem(family, (33, 33), "f32"), "copy=classes,staging=shared,tm=7");
    // Six blocks are not as many for each of four classes.
    let odd = problem(family, (33, 33), "f32");
    let refusal = family.complete(&parameters("copy=classes,staging=shared,parts=6"), &odd, target::DEFAULT);
    assert!(refusal.unwrap_err().to_string().contains("each class"));
}
