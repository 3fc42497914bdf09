//! The families for tall and skinny products on matrices that start anywhere: copies and stores are in pieces that the
//! start allows, and the same kernels as ever where it allows all.

use num_complex::Complex64;
use warpwright::choose;
use warpwright::compile;
use warpwright::inputs::Operands;
use warpwright::kernels::family::{Choice, Family, Permissions};
use warpwright::kernels::{self, Kernel};
use warpwright::problem::{Alignment, Offsets, Problem};
use warpwright::tune::record::Gpu;
use warpwright::tune::wisdom::Wisdom;
use warpwright_core::target;

use crate::drawn::drawn;
use crate::skinny_data::{all_are_right, is_right, problem};
use crate::tall_skinny::holds;

#[test]
fn every_form_serves_matrices_that_start_anywhere() {
    let starts = [[1, 0, 0], [0, 2, 0], [0, 0, 3], [3, 1, 2]];
    for family in kernels::TALL_SKINNY {
        for (at, dtype) in ["f64", "f32", "c128", "c64"].into_iter().enumerate() {
            for (turn, [a, b, c]) in starts.into_iter().enumerate() {
                let widths = [(5, 7), (8, 4), (17, 6), (12, 3)][(at + turn) % 4];
                for longer in [0, 3, 4] {
                    let mut problem = problem(family, 101, widths, dtype);
                    problem.beta = Complex64::new(if longer == 0 { 0.0 } else { 0.5 }, 0.0);
                    problem.ld.a += longer;
                    problem.ld.b += longer;
                    problem.ld.c += longer;
                    problem.offset = Offsets { a, b, c };
                    let operands = Operands::random(&problem, 5).unwrap();
                    all_are_right(&problem, family, &operands);
                }
            }
        }
    }
}

#[test]
fn choices_drawn_from_the_space_serve_them_too() {
    for family in kernels::TALL_SKINNY {
        for (at, dtype) in ["f64", "f32", "c64"].into_iter().enumerate() {
            for (widths, start) in [((8, 16), 1), ((7, 5), 2), ((33, 12), 3)] {
                let mut problem = problem(family, 301, widths, dtype);
                problem.offset = Offsets { a: start, b: start + at as i64, c: start };
                let operands = Operands::random(&problem, 6).unwrap();
                for choice in drawn(family, &problem, Permissions::NONE, &Choice::default(), 4) {
                    is_right(family, &problem, &choice, &operands);
                    // Over the field the tensors start as badly aligned as they declare.
                    holds(family, &problem, &choice, &[0, 133]);
                }
            }
        }
    }
}

/// Rows that are some way apart: an odd number of elements, and a number of which pieces of 16 bytes come out even.
#[test]
fn choices_drawn_from_the_space_serve_padded_rows() {
    for family in kernels::TALL_SKINNY {
        for (at, dtype) in ["f64", "f32", "c64", "c128"].into_iter().enumerate() {
            for (turn, widths) in [(9, 9), (33, 12), (20, 36)].into_iter().enumerate() {
                let mut problem = problem(family, 301, widths, dtype);
                let longer = [1, 3, 4][(at + turn) % 3];
                problem.ld.a += longer;
                problem.ld.b += longer;
                problem.ld.c += longer;
                let operands = Operands::random(&problem, 7).unwrap();
                for choice in drawn(family, &problem, Permissions::NONE, &Choice::default(), 4) {
                    is_right(family, &problem, &choice, &operands);
                    holds(family, &problem, &choice, &[0, 133]);
                    // Rows of an odd number of elements are copied asynchronously too, or come in one piece.
                    let staged = choice.get("stages").is_some();
                    let program = family.build(&problem, &choice).unwrap();
                    let text = program.program().to_string();
                    let asynchronous = ["cp_async", "bulk_copy_", "tma_load_"];
                    assert!(
                        !staged || asynchronous.iter().any(|copy| text.contains(copy)),
                        "{choice}:\n{text}"
                    );
                    assert!(
                        longer != 1
                            || dtype == "c128"
                            || choice.word("numbers") == "split-parts"
                            || choice.word("copy") == "boxes"
                            || !text.contains("lda%"),
                        "{choice} asks what is known:\n{text}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_matrix_times_itself_may_start_anywhere() {
    let family = kernels::family("tsmttsm").unwrap();
    for (dtype, width, start) in [("f64", 8, 1), ("f32", 12, 2), ("f32", 9, 2), ("c64", 6, 3)] {
        let mut problem = problem(family, 203, (width, width), dtype);
        problem.same = true;
        problem.offset = Offsets { a: start, b: start, c: 1 };
        all_are_right(&problem, family, &Operands::random(&problem, 7).unwrap());
    }
}

/// What is chosen where nothing was measured.
fn chosen(family: &'static Family, problem: &Problem) -> Kernel {
    let (target, gpu) = (target::DEFAULT, Gpu::of_target(target::DEFAULT));
    choose::parameters(family, problem, target, &gpu, &Wisdom::default(), Permissions::NONE).unwrap().0
}

#[test]
fn a_start_at_whole_pieces_changes_nothing() {
    for family in kernels::TALL_SKINNY {
        for dtype in ["f64", "f32", "c128", "c64"] {
            let aligned = problem(family, 100_000, (24, 20), dtype);
            let whole = Alignment::MOST / aligned.dtype().bytes();
            let at = |elements: i64| {
                let offset = Offsets { a: elements, b: elements, c: elements };
                chosen(family, &Problem { offset, ..aligned })
            };
            let (usual, later) = (at(0), at(3 * whole));
            assert_eq!((&later.name, &later.parameters), (&usual.name, &usual.parameters));
            assert_eq!(later.program().to_string(), usual.program().to_string());
            if whole > 1 {
                let other = at(1);
                assert!(
                    other.name.ends_with(&format!("_a{0}_b{0}_c{0}", Alignment::MOST / whole)),
                    "{}",
                    other.name
                );
                let valid = compile::validated(other.program(), target::DEFAULT).unwrap();
                let text = compile::cuda(&valid).unwrap().text;
                let wide = |line: &&str| {
                    let of_a_matrix = ["&A[", "&B[", "&C["].iter().any(|m| line.contains(m));
                    of_a_matrix && ["4*)", "2*)", "cp_async16("].iter().any(|w| line.contains(w))
                };
                assert_eq!(text.lines().find(wide), None, "{} with {}", other.name, other.parameters);
            }
        }
    }
}

#[test]
fn copies_are_as_large_as_the_start_allows() {
    let tsmttsm = kernels::family("tsmttsm").unwrap();
    let staged = Choice::default().with("staging", "shared");
    let text = |dtype: &str, width: i64, start: i64| {
        let mut problem = problem(tsmttsm, 100_000, (width, width), dtype);
        problem.offset.a = start;
        let choice = tsmttsm.complete(&staged, &problem, target::DEFAULT).unwrap();
        tsmttsm.build(&problem, &choice).unwrap().program().to_string()
    };
    for (dtype, width, start, of_a) in [
        ("f32", 12, 4, "cp_async16_f32(As"),
        ("f32", 12, 2, "cp_async8_f32(As"),
        ("f32", 12, 1, "cp_async4_f32(As"),
        ("f32", 13, 2, "cp_async8_f32(As"),
        ("f32", 13, 0, "cp_async16_f32(As"),
        ("c64", 12, 1, "cp_async8_c64(As"),
        ("f64", 12, 1, "cp_async8_f64(As"),
        ("c128", 12, 1, "cp_async16_c128(As"),
    ] {
        let program = text(dtype, width, start);
        assert!(program.contains(of_a), "{dtype} {width} at {start}: no {of_a} in\n{program}");
        // The other operand is aligned.
        assert!(program.contains(&format!("cp_async16_{dtype}(Bs")), "{dtype} {width} at {start}\n{program}");
    }
}

#[test]
fn rows_that_are_copied_each_for_itself_are_read_in_whole_pieces() {
    let tsmttsm = kernels::family("tsmttsm").unwrap();
    for (dtype, width, tile, piece) in
        [("f32", 33, 4, "float4"), ("c64", 33, 6, "float4"), ("f64", 9, 2, "double2")]
    {
        let problem = problem(tsmttsm, 2_000, (width, width), dtype);
        let given = Choice::default().with("unit", "fma").with("staging", "shared").with("block", 128);
        let given = given.with("tm", tile).with("tn", tile);
        for (copy, whole) in [("rows", true), ("one", false)] {
            let choice =
                tsmttsm.complete(&given.clone().with("copy", copy), &problem, target::DEFAULT).unwrap();
            assert_eq!(choice.word("copy"), copy);
            let kernel = tsmttsm.build(&problem, &choice).unwrap();
            let valid = compile::validated(kernel.program(), target::DEFAULT).unwrap();
            let text = compile::cuda(&valid).unwrap().text;
            assert_eq!(
                text.contains(&format!("const {piece}*)&As[")),
                whole,
                "{dtype} copied as {copy}:\n{text}"
            );
            holds(tsmttsm, &problem, &choice, &[61]);
        }
    }
}
