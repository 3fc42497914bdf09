//! The family `tsmttsm`: groups of rows that stand apart arrive as boxes of a matrix.

use warpwright::kernels;
use warpwright::kernels::family::{Choice, Family};
use warpwright::problem::Problem;
use warpwright_core::target::{self, Target};

use crate::skinny_reads::chosen;
use crate::tall_skinny::{holds_with, parameters, problem};

/// A product whose rows stand so many elements apart.
fn padded(family: &Family, widths: (i64, i64), dtype: &str, stride: i64) -> Problem {
    let mut problem = problem(family, widths, dtype);
    (problem.ld.a, problem.ld.b) = (stride, stride);
    problem
}

#[test]
fn what_is_computed_stays_the_same() {
    let family = kernels::family("tsmttsm").unwrap();
    for (dtype, widths, stride, form) in [
        ("f64", (9, 9), 16, "release=block,depth=16,stages=3"),
        ("f64", (23, 20), 26, "release=warps,depth=32,stages=2"),
        ("f64", (96, 96), 98, "areas=2,depth=16,stages=2"),
        ("c128", (9, 12), 13, "numbers=parts,release=role,depth=16,stages=2"),
        ("c128", (12, 9), 14, "numbers=whole,release=block,depth=16,stages=4,reduction=global"),
        ("c128", (9, 7), 11, "numbers=three,release=role,depth=16,stages=3"),
        ("c64", (9, 9), 16, "numbers=split-parts,release=role,depth=32,stages=2"),
        ("f32", (24, 17), 32, "numbers=split,release=warps,depth=32,stages=2"),
    ] {
        let problem = padded(family, widths, dtype, stride);
        let choice = chosen(family, &problem, &format!("unit=mma,copy=boxes,parts=3,{form}"));
        let kernel = family.build(&problem, &choice).unwrap_or_else(|e| panic!("{choice}: {e}"));
        let program = kernel.program().to_string();
        assert!(program.contains("tma_load_") && !program.contains("cp_async"), "{program}");
        let of_a_number = if program.contains("A: in f64") && dtype == "c128"
            || program.contains("A: in f32") && dtype == "c64"
        {
            2
        } else {
            1
        };
        let strides = ["lda", "ldb"].map(|name| (name, of_a_number * stride));
        // Blocks of no group, of one and of more than stages, the last of which may hang over.
        let group = 3 * choice.int("depth");
        holds_with(family, &problem, &choice, &[0, 1, group, group + 1, 4 * group - 5], &strides);
    }
}

#[test]
fn one_matrix_arrives_once() {
    let family = kernels::family("tsmttsm").unwrap();
    let mut problem = padded(family, (16, 16), "f64", 18);
    problem.same = true;
    let choice = chosen(family, &problem, "unit=mma,copy=boxes,parts=3,depth=16,stages=2");
    let program = family.build(&problem, &choice).unwrap().program().to_string();
    assert!(program.contains("tma_load_f64(As") && !program.contains("Bs"), "{program}");
    holds_with(family, &problem, &choice, &[0, 1, 100], &[("lda", 18)]);
}

#[test]
fn only_rows_that_stand_apart_by_whole_pieces_arrive_as_boxes() {
    let family = kernels::family("tsmttsm").unwrap();
    let boxes = |problem: &Problem, gpu: &str, form: &str| {
        let given = parameters(&format!("unit=mma,copy=boxes{form}"));
        family.complete(&given, problem, Target::by_name(gpu).unwrap()).is_ok()
    };
    let padded = |stride| padded(family, (16, 16), "f64", stride);
    assert!(boxes(&padded(18), "h200", ""));
    // Dense rows, those that start anywhere, and GPUs without the accelerator.
    assert!(!boxes(&padded(16), "h200", "") && !boxes(&padded(17), "h200", ""));
    assert!(!boxes(&padded(18), "a100-80gb", ""));
    let mut long = padded(18);
    long.shape.k = 1 << 31;
    assert!(!boxes(&long, "h200", ""), "the accelerator counts rows in 32 bits");
    let mut shifted = padded(18);
    shifted.offset.a = 1;
    assert!(!boxes(&shifted, "h200", ""));
    // A row of complex128 is as long as one of twice as many doubles, and a box has 256 of these.
    let wide = self::padded(family, (128, 128), "c128", 130);
    assert!(!boxes(&wide, "h200", ",numbers=whole,areas=1"));
    // Nothing said, they are copied row by row; and so are those of kernels that were tuned before boxes were known.
    let usual = family.complete(
        &Choice::default().with("unit", "mma").with("staging", "shared"),
        &padded(18),
        target::DEFAULT,
    );
    assert_eq!(usual.unwrap().word("copy"), "rows");
}

#[test]
fn whoever_calls_promises_where_rows_begin() {
    let family = kernels::family("tsmttsm").unwrap();
    let problem = padded(family, (16, 16), "f32", 20);
    let choice = chosen(family, &problem, "unit=mma,copy=boxes");
    let program = family.build(&problem, &choice).unwrap().program().to_string();
    assert!(program.contains("assume lda%4 == 0, ldb%4 == 0"), "{program}");
}
