//! The family `tsmttsm`: groups of rows that stand apart by little, or start anywhere, arrive with what lies between and before them.

use warpwright::bind::Binding;
use warpwright::kernels;
use warpwright::kernels::family::Family;
use warpwright::problem::Problem;
use warpwright_core::target::Target;

use crate::skinny_reads::chosen;
use crate::tall_skinny::{holds, parameters, problem};

/// A product whose rows of A and of B stand so many elements apart.
fn padded(family: &Family, widths: (i64, i64), dtype: &str, strides: [i64; 2]) -> Problem {
    let mut problem = problem(family, widths, dtype);
    [problem.ld.a, problem.ld.b] = strides;
    problem
}

#[test]
fn what_is_computed_stays_the_same() {
    let family = kernels::family("tsmttsm").unwrap();
    for (dtype, widths, strides, form) in [
        ("f64", (9, 9), [10, 12], "release=block,depth=16,stages=3"),
        ("f64", (23, 20), [21, 24], "release=warps,depth=32,stages=2,zeros=false"),
        ("f64", (16, 16), [17, 18], "release=role,depth=32,stages=2"),
        ("c128", (9, 12), [13, 12], "numbers=parts,release=role,depth=16,stages=2"),
        ("c128", (12, 9), [10, 14], "numbers=whole,release=block,depth=16,stages=4,reduction=global"),
        ("c128", (9, 7), [8, 11], "numbers=three,release=role,depth=16,stages=3"),
        ("c64", (24, 24), [25, 27], "numbers=split-parts,release=role,depth=32,stages=2"),
        ("f32", (24, 17), [19, 25], "numbers=split,release=warps,depth=32,stages=2"),
    ] {
        let problem = padded(family, widths, dtype, strides);
        let choice = chosen(family, &problem, &format!("unit=mma,copy=span,parts=3,{form}"));
        let kernel = family.build(&problem, &choice).unwrap_or_else(|e| panic!("{choice}: {e}"));
        let program = kernel.program().to_string();
        assert!(program.contains("bulk_copy_") && !program.contains("cp_async"), "{program}");
        assert!(
            !program.contains("; lda]")
                && kernel.name.contains(&format!("lda{}_ldb{}", strides[0], strides[1]))
        );
        // Blocks of no group, of one and of more than stages, the last of which may hang over.
        let group = 3 * choice.int("depth");
        holds(family, &problem, &choice, &[0, 1, group, group + 1, 4 * group - 5]);
    }
}

#[test]
fn rows_that_start_anywhere_arrive_with_what_lies_before_them() {
    let family = kernels::family("tsmttsm").unwrap();
    for (dtype, widths, strides, starts, form) in [
        ("f64", (9, 9), [9, 9], [1, 0], "release=block,depth=16,stages=3"),
        ("f64", (16, 15), [17, 15], [1, 1], "release=role,depth=32,stages=2"),
        ("c64", (24, 24), [24, 24], [1, 0], "numbers=split-parts,release=role,depth=32,stages=2"),
        ("f32", (24, 17), [18, 24], [3, 2], "numbers=split,release=warps,depth=32,stages=2"),
        ("f32", (16, 16), [16, 16], [1, 2], "numbers=split,release=block,depth=32,stages=2,parts=1"),
    ] {
        let mut problem = padded(family, widths, dtype, strides);
        [problem.offset.a, problem.offset.b] = starts;
        let parts = if form.contains("parts=1") { "" } else { ",parts=3" };
        let choice = chosen(family, &problem, &format!("unit=mma,copy=span{parts},{form}"));
        let kernel = family.build(&problem, &choice).unwrap_or_else(|e| panic!("{choice}: {e}"));
        assert!(kernel.name.contains(&format!("_after{}_{}", starts[0], starts[1])), "{}", kernel.name);
        assert!(!kernel.program().to_string().contains("cp_async"), "{}", kernel.program());
        let group = 3 * choice.int("depth");
        holds(family, &problem, &choice, &[0, 1, group, group + 1, 4 * group - 5]);
    }
}

#[test]
fn one_matrix_arrives_once() {
    let family = kernels::family("tsmttsm").unwrap();
    let mut problem = padded(family, (16, 16), "f64", [18, 18]);
    problem.same = true;
    let choice = chosen(family, &problem, "unit=mma,copy=span,parts=3,depth=16,stages=2");
    let program = family.build(&problem, &choice).unwrap().program().to_string();
    assert!(program.contains("bulk_copy_f64(As") && !program.contains("Bs"), "{program}");
    holds(family, &problem, &choice, &[0, 1, 100]);
}

#[test]
fn a_kernel_serves_one_stride() {
    let family = kernels::family("tsmttsm").unwrap();
    let problem = padded(family, (16, 16), "f64", [17, 17]);
    let choice = chosen(family, &problem, "unit=mma,copy=span");
    let kernel = family.build(&problem, &choice).unwrap();
    assert!(Binding::new(kernel.program(), &problem, 1).is_ok());
    for strides in [[16, 16], [17, 18], [19, 19]] {
        let other = padded(family, (16, 16), "f64", strides);
        let refused = Binding::new(kernel.program(), &other, 1).unwrap_err().to_string();
        assert!(refused.contains("is stored as"), "{strides:?}: {refused}");
    }
}

#[test]
fn only_rows_with_little_between_them_arrive_so() {
    let family = kernels::family("tsmttsm").unwrap();
    let spans = |problem: &Problem, gpu: &str| {
        let given = parameters("unit=mma,copy=span");
        family.complete(&given, problem, Target::by_name(gpu).unwrap()).is_ok()
    };
    let padded = |strides| padded(family, (16, 16), "f64", strides);
    assert!(spans(&padded([17, 23]), "h200"));
    // 64 bytes between rows, dense rows of aligned matrices, and GPUs without bulk copies.
    assert!(!spans(&padded([17, 24]), "h200") && !spans(&padded([16, 16]), "h200"));
    assert!(!spans(&padded([17, 17]), "a100-80gb"));
    let mut shifted = padded([16, 16]);
    shifted.offset.a = 1;
    assert!(spans(&shifted, "h200"));
}

#[test]
fn rows_of_a_tall_matrix_arrive_so_too() {
    let family = kernels::family("tsmm").unwrap();
    for (dtype, widths, stride, start, form) in [
        ("f32", (32, 32), 32, 1, "numbers=split,store=shared,rows=32,wm=2,wn=1,stages=2"),
        ("f32", (9, 7), 8, 3, "numbers=split,store=direct,rows=64,wm=2,wn=1,stages=3"),
        ("f64", (16, 16), 17, 0, "store=shared,rows=32,wm=2,wn=1,stages=2,release=role"),
        ("f64", (24, 23), 24, 1, "store=direct,rows=32,wm=2,wn=2,stages=2,release=warps"),
        ("c64", (12, 16), 18, 1, "numbers=split,store=shared,rows=32,wm=2,wn=1,stages=2"),
        ("c128", (9, 9), 10, 0, "numbers=whole,store=direct,rows=32,wm=2,wn=1,stages=2"),
        ("c128", (5, 9), 11, 0, "numbers=parts,store=direct,rows=32,wm=2,wn=1,stages=2"),
        ("c128", (8, 8), 9, 0, "numbers=expanded,store=direct,rows=32,wm=2,wn=1,stages=2"),
        ("c128", (8, 8), 9, 0, "numbers=three,store=direct,rows=32,wm=2,wn=1,stages=2"),
    ] {
        let mut problem = crate::tall_skinny::problem(family, widths, dtype);
        problem.ld.a = stride;
        (problem.ld.b, problem.ld.c) = (widths.0 + 1, widths.0 + 2);
        [problem.offset.a, problem.offset.b, problem.offset.c] = [start, 1, 1];
        let choice = chosen(family, &problem, &format!("unit=mma,copy=span,team=block,{form}"));
        let kernel = family.build(&problem, &choice).unwrap_or_else(|e| panic!("{choice}: {e}"));
        let program = kernel.program().to_string();
        assert!(program.contains("bulk_copy_") && !program.contains("cp_async"), "{program}");
        let after = if start > 0 { format!("_after{start}_0") } else { String::new() };
        let known = format!("_lda{stride}_ldb{}{after}", widths.0 + 1);
        assert!(kernel.name.contains(&known), "{} without {known}", kernel.name);
        let rows = choice.int("rows");
        holds(family, &problem, &choice, &[0, 1, rows, rows + 1, 5 * rows - 3]);
    }
}
