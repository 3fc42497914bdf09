//! The nine programs, with what they must compute and small shapes that reach every corner of them.

use warpwright_core::ir::parse;
use warpwright_sim::mutate::case::{Case, Shape};

/// The nine programs.
pub fn nine_programs() -> Vec<Case> {
    let case = |text: &str, specification: String, shapes: Vec<Shape>| {
        let read = |text| parse::program(text).expect("programs in the repository parse");
        let (program, specification) = (read(text), read(&specification));
        Case { name: program.name.clone(), specification, program, shapes }
    };
    vec![
        case(
            include_str!("../../../../programs/sgemm_block_tiling.ww"),
            gemm("f32", "f32"),
            vec![
                vec![("M", 130), ("N", 5), ("K", 9), ("beta0", 1), ("lda", 11)],
                vec![("M", 5), ("N", 131), ("K", 3), ("beta0", 0), ("ldc", 133)],
                vec![("M", 2), ("N", 3), ("K", 0), ("beta0", 0)],
            ],
        ),
        case(
            include_str!("../../../../programs/sgemm_virtual_threads.ww"),
            "program spec(M: size, N: size, K: size,
                A: in f32[K, N; lda], B: in f32[K, M; ldb], C: out f32[M, N; ldc]) {
              for i in 0..M, j in 0..N { C[i, j] = 0  for k in 0..K { C[i, j] += B[k, i] * A[k, j] } }
            }"
            .into(),
            vec![
                vec![("M", 70), ("N", 131), ("K", 17), ("lda", 136), ("ldb", 72)],
                vec![("M", 130), ("N", 6), ("K", 5), ("lda", 8), ("ldb", 132)],
            ],
        ),
        case(
            include_str!("../../../../programs/tsmttsm_atomic.ww"),
            tall(),
            vec![
                vec![("K", 61), ("G", 2), ("beta0", 0), ("lda", 21)],
                vec![("K", 7), ("G", 1), ("beta0", 1), ("ldc", 23)],
            ],
        ),
        case(
            // The same program with fewer partial sums, so that each is a sum of several rows here.
            &include_str!("../../../../programs/tsmttsm_two_pass.ww")
                .replace("3168", "36")
                .replace("264", "3"),
            tall(),
            vec![vec![("K", 100), ("beta0", 0), ("lda", 21)], vec![("K", 7), ("beta0", 1), ("ldc", 23)]],
        ),
        case(
            include_str!("../../../../programs/hgemm_cp_async.ww"),
            gemm("bf16", "f32"),
            vec![
                vec![("M", 1), ("N", 2), ("K", 0), ("lda", 8), ("ldb", 8), ("beta0", 0)],
                vec![("M", 1), ("N", 5), ("K", 40), ("lda", 40), ("ldb", 8), ("beta0", 1)],
                vec![("M", 2), ("N", 130), ("K", 72), ("lda", 72), ("ldb", 136), ("beta0", 1)],
                vec![("M", 130), ("N", 20), ("K", 99), ("lda", 104), ("ldb", 24), ("beta0", 0)],
            ],
        ),
        case(
            include_str!("../../../../programs/hgemm_tma_wgmma.ww"),
            "program spec(M: size, N: size, K: size, alpha: f32,
                A: in bf16[M, K; lda], B: in bf16[N, K; ldb], C: out bf16[M, N; ldc]) {
              alloc s: f32[M, N] global
              for i in 0..M, j in 0..N {
                s[i, j] = 0
                for k in 0..K { s[i, j] += f32(A[i, k]) * f32(B[j, k]) }
                C[i, j] = bf16(alpha * s[i, j])
              }
            }"
            .into(),
            vec![
                vec![("M", 1), ("N", 2), ("K", 0), ("G", 1), ("lda", 8), ("ldb", 8), ("ldc", 8)],
                vec![("M", 5), ("N", 520), ("K", 40), ("G", 2), ("lda", 40), ("ldb", 40), ("ldc", 520)],
                vec![("M", 130), ("N", 70), ("K", 330), ("G", 1), ("lda", 336), ("ldb", 344), ("ldc", 72)],
            ],
        ),
        case(
            include_str!("../../../../programs/reduce_two_pass.ww"),
            "program spec(n: size, x: in f32[n], y: out f32[1]) { y[0] = 0  for i in 0..n { y[0] += x[i] } }"
                .into(),
            vec![vec![("n", 5000)], vec![("n", 3)]],
        ),
        case(
            include_str!("../../../../programs/scan_look_back.ww"),
            "program spec(n: size, x: in f32[n], y: out f32[n]) {
              for i in 0..n { y[i] = x[i]  if 0 < i { y[i] += y[i - 1] } }
            }"
            .into(),
            vec![vec![("n", 2500)], vec![("n", 70)]],
        ),
        case(
            include_str!("../../../../programs/sgemm_split_k.ww"),
            gemm("f32", "f32"),
            vec![
                vec![("M", 65), ("N", 7), ("K", 84), ("beta0", 0)],
                vec![("M", 1), ("N", 257), ("K", 5), ("beta0", 1)],
            ],
        ),
    ]
}

/// C = alpha A B + beta C.
fn gemm(input: &str, output: &str) -> String {
    let cast = if input == output { String::new() } else { output.into() };
    format!(
        "program spec(M: size, N: size, K: size, alpha: f32, beta: f32, beta0: flag,
            A: in {input}[M, K; lda], B: in {input}[K, N; ldb], C: inout {output}[M, N; ldc]) {{
          alloc s: {output}[M, N] global
          for i in 0..M, j in 0..N {{
            s[i, j] = 0
            for k in 0..K {{ s[i, j] += {cast}(A[i, k]) * {cast}(B[k, j]) }}
            if beta0 {{ C[i, j] = alpha * s[i, j] }}
            else {{ C[i, j] = alpha * s[i, j] + beta * C[i, j] }}
          }}
        }}"
    )
}

/// C = alpha A^T B + beta C for A and B of 20 columns.
fn tall() -> String {
    "program spec(K: size, alpha: f64, beta: f64, beta0: flag,
        A: in f64[K, 20; lda], B: in f64[K, 20; ldb], C: inout f64[20, 20; ldc]) {
      alloc s: f64[20, 20] global
      for i in 0..20, j in 0..20 {
        s[i, j] = 0
        for k in 0..K { s[i, j] += A[k, i] * B[k, j] }
        if beta0 { C[i, j] = alpha * s[i, j] } else { C[i, j] = alpha * s[i, j] + beta * C[i, j] }
      }
    }"
    .into()
}
