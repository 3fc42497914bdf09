//! The nine programs, with small shapes that reach every corner of them, and what they must compute.

use warpwright_core::ir::parse;
use warpwright_sim::coroutine::Element;
use warpwright_sim::mutate::case::{Case, Outputs, Shape, Specification, Tensors};

/// The nine programs.
pub fn nine_programs() -> Vec<Case> {
    let case = |name: &str, text: &str, shapes: Vec<Shape>, specification: Specification| {
        let program = parse::program(text).expect("programs in the repository parse");
        Case { name: name.into(), program, shapes, specification }
    };
    vec![
        case(
            "sgemm_block_tiling",
            include_str!("../../../../programs/sgemm_block_tiling.ww"),
            vec![
                vec![("M", 130), ("N", 5), ("K", 9), ("beta0", 1), ("lda", 11)],
                vec![("M", 5), ("N", 131), ("K", 3), ("beta0", 0), ("ldc", 133)],
            ],
            |t| t.product(t.mnk(), |i, k| t.at("A", i, k), |j, k| t.at("B", k, j)),
        ),
        case(
            "sgemm_virtual_threads",
            include_str!("../../../../programs/sgemm_virtual_threads.ww"),
            vec![
                vec![("M", 68), ("N", 131), ("K", 17), ("lda", 136), ("ldb", 72)],
                vec![("M", 3), ("N", 6), ("K", 5), ("lda", 8), ("ldb", 4)],
            ],
            |t| t.product(t.mnk(), |i, k| t.at("B", k, i), |j, k| t.at("A", k, j)),
        ),
        case(
            "tsmttsm_atomic",
            include_str!("../../../../programs/tsmttsm_atomic.ww"),
            vec![
                vec![("K", 61), ("G", 2), ("beta0", 0), ("lda", 21)],
                vec![("K", 7), ("G", 1), ("beta0", 1), ("ldc", 23)],
            ],
            tall,
        ),
        case(
            "tsmttsm_two_pass",
            // The same program with fewer partial sums, so that each is a sum of several rows here.
            &include_str!("../../../../programs/tsmttsm_two_pass.ww")
                .replace("3168", "36")
                .replace("264", "3"),
            vec![vec![("K", 100), ("beta0", 0), ("lda", 21)], vec![("K", 37), ("beta0", 1), ("ldc", 23)]],
            tall,
        ),
        case(
            "hgemm_cp_async",
            include_str!("../../../../programs/hgemm_cp_async.ww"),
            vec![
                vec![("M", 100), ("N", 20), ("K", 99), ("lda", 104), ("ldb", 24), ("beta0", 0)],
                vec![("M", 2), ("N", 130), ("K", 40), ("lda", 40), ("ldb", 136), ("beta0", 1)],
            ],
            |t| t.product(t.mnk(), |i, k| t.at("A", i, k), |j, k| t.at("B", k, j)),
        ),
        case(
            "hgemm_tma_wgmma",
            include_str!("../../../../programs/hgemm_tma_wgmma.ww"),
            vec![vec![("M", 130), ("N", 60), ("K", 330), ("G", 1), ("lda", 336), ("ldb", 344), ("ldc", 64)]],
            |t| t.product(t.mnk(), |i, k| t.at("A", i, k), |j, k| t.at("B", j, k)),
        ),
        case(
            "reduce_two_pass",
            include_str!("../../../../programs/reduce_two_pass.ww"),
            vec![vec![("n", 5000)]],
            |t| {
                let sum = (0..t.size("n")).fold(Element::ZERO, |sum, i| sum.plus(t.at("x", 0, i)));
                vec![("y", t.with("y", 1, 1, |_, _| sum))]
            },
        ),
        case(
            "scan_look_back",
            include_str!("../../../../programs/scan_look_back.ww"),
            vec![vec![("n", 2500)]],
            |t| {
                let sum = |_, last| (0..=last).fold(Element::ZERO, |sum, i| sum.plus(t.at("x", 0, i)));
                vec![("y", t.with("y", 1, t.size("n"), sum))]
            },
        ),
        case(
            "sgemm_split_k",
            include_str!("../../../../programs/sgemm_split_k.ww"),
            vec![
                vec![("M", 65), ("N", 7), ("K", 84), ("beta0", 0)],
                vec![("M", 3), ("N", 66), ("K", 5), ("beta0", 1)],
            ],
            |t| t.product(t.mnk(), |i, k| t.at("A", i, k), |j, k| t.at("B", k, j)),
        ),
    ]
}

fn tall(t: &Tensors<'_>) -> Outputs {
    t.product((20, 20, t.size("K")), |i, k| t.at("A", k, i), |j, k| t.at("B", k, j))
}
