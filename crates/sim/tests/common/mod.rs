//! The nine programs and their specifications.

// Each test file uses a part of this.
#![allow(dead_code)]

use warpwright_core::ir::{Program, parse};

/// A program of the repository, with some of its constants replaced in the text.
pub fn text(name: &str) -> String {
    let path = format!("{}/../../programs/{name}.ww", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Reads a program.
pub fn read(text: &str) -> Program {
    parse::program(text).unwrap_or_else(|d| panic!("{d}\n{text}"))
}

/// C = alpha op(A) op(B) + beta C by three loops; `a` and `b` are the indices of A and B.
fn product(params: &str, tensors: &str, beta: bool, a: &str, b: &str) -> String {
    let store = if beta {
        "if beta0 { C[i, j] = alpha * acc[0] } else { C[i, j] = alpha * acc[0] + beta * C[i, j] }"
    } else {
        "C[i, j] = alpha * acc[0]"
    };
    format!(
        "program spec({params}, {tensors}) {{
  for i in 0..M, j in 0..N {{
    alloc acc: f64[1] reg
    acc[0] = 0
    for k in 0..K {{ acc[0] += A[{a}] * B[{b}] }}
    {store}
  }}
}}"
    )
}

const BETA: &str = "M: size, N: size, K: size, alpha: f32, beta: f32, beta0: flag";
const TALL: &str = "program spec(K: size, alpha: f64, beta: f64, beta0: flag,
    A: in f64[K, 20; lda], B: in f64[K, 20; ldb], C: inout f64[20, 20; ldc])
{
  for i in 0..20, j in 0..20 {
    alloc acc: f64[1] reg
    acc[0] = 0
    for k in 0..K { acc[0] += A[k, i] * B[k, j] }
    if beta0 { C[i, j] = alpha * acc[0] } else { C[i, j] = alpha * acc[0] + beta * C[i, j] }
  }
}";

/// The specification of a program.
pub fn specification(name: &str) -> String {
    match name {
        "sgemm_block_tiling" | "sgemm_split_k" => product(
            BETA,
            "A: in f32[M, K; lda], B: in f32[K, N; ldb], C: inout f32[M, N; ldc]",
            true,
            "i, k",
            "k, j",
        ),
        "hgemm_cp_async" => product(
            BETA,
            "A: in bf16[M, K; lda], B: in bf16[K, N; ldb], C: inout f32[M, N; ldc]",
            true,
            "i, k",
            "k, j",
        ),
        "hgemm_tma_wgmma" => product(
            "M: size, N: size, K: size, alpha: f32",
            "A: in bf16[M, K; lda], B: in bf16[N, K; ldb], C: out bf16[M, N; ldc]",
            false,
            "i, k",
            "j, k",
        ),
        "sgemm_virtual_threads" => {
            let by_k = "A: in f32[K, N; lda], B: in f32[K, M; ldb], C: out f32[M, N; ldc]";
            product("M: size, N: size, K: size", by_k, false, "k, j", "k, i").replace("alpha * ", "")
        }
        "tsmttsm_atomic" | "tsmttsm_two_pass" => TALL.to_string(),
        "reduce_two_pass" => "program spec(n: size, x: in f32[n], y: out f32[1]) {
            y[0] = 0
            for i in 0..n { y[0] += x[i] }
        }"
        .to_string(),
        "scan_look_back" => "program spec(n: size, x: in f32[n], y: out f32[n]) {
            for i in 0..n { y[i] = x[i] if_earlier }
        }"
        .replace(
            "for i in 0..n { y[i] = x[i] if_earlier }",
            "for i in 0..n { y[i] = x[i]\n if 0 < i { y[i] += y[i - 1] } }",
        ),
        other => panic!("no specification for {other}"),
    }
}

/// Sizes to run a program with.
pub type Case = (&'static str, &'static [(&'static str, i64)]);

/// Programs with sizes: 0, 1, primes, ragged, several grids.
pub const CASES: &[Case] = &[
    ("sgemm_block_tiling", &[("M", 130), ("N", 129), ("K", 9)]),
    ("sgemm_block_tiling", &[("M", 5), ("N", 3), ("K", 0)]),
    ("sgemm_block_tiling", &[("M", 1), ("N", 1), ("K", 17)]),
    ("sgemm_block_tiling", &[("M", 0), ("N", 7), ("K", 3)]),
    ("sgemm_block_tiling", &[("M", 128), ("N", 256), ("K", 16)]),
    ("sgemm_block_tiling", &[("M", 127), ("N", 131), ("K", 23)]),
    ("sgemm_virtual_threads", &[("M", 68), ("N", 132), ("K", 17), ("lda", 136), ("ldb", 72)]),
    ("sgemm_virtual_threads", &[("M", 7), ("N", 5), ("K", 3), ("lda", 8), ("ldb", 8)]),
    ("sgemm_virtual_threads", &[("M", 131), ("N", 1), ("K", 0)]),
    ("tsmttsm_atomic", &[("K", 61), ("G", 2)]),
    ("tsmttsm_atomic", &[("K", 5), ("G", 3)]),
    ("tsmttsm_atomic", &[("K", 0), ("G", 1)]),
    ("tsmttsm_atomic", &[("K", 1), ("G", 4)]),
    ("tsmttsm_two_pass", &[("K", 100)]),
    ("tsmttsm_two_pass", &[("K", 0)]),
    ("tsmttsm_two_pass", &[("K", 6400)]),
    ("hgemm_cp_async", &[("M", 70), ("N", 130), ("K", 136), ("lda", 136), ("ldb", 136)]),
    ("hgemm_cp_async", &[("M", 16), ("N", 16), ("K", 0), ("lda", 8), ("ldb", 16)]),
    ("hgemm_cp_async", &[("M", 3), ("N", 9), ("K", 33), ("lda", 40), ("ldb", 16)]),
    ("hgemm_cp_async", &[("M", 129), ("N", 1), ("K", 1)]),
    ("hgemm_tma_wgmma", &[("M", 130), ("N", 70), ("K", 330), ("G", 2)]),
    ("hgemm_tma_wgmma", &[("M", 70), ("N", 70), ("K", 0), ("G", 1)]),
    ("hgemm_tma_wgmma", &[("M", 257), ("N", 200), ("K", 65), ("G", 3)]),
    ("hgemm_tma_wgmma", &[("M", 1), ("N", 1), ("K", 1), ("G", 2)]),
    ("reduce_two_pass", &[("n", 5000)]),
    ("reduce_two_pass", &[("n", 0)]),
    ("reduce_two_pass", &[("n", 1)]),
    ("scan_look_back", &[("n", 2500)]),
    ("scan_look_back", &[("n", 1)]),
    ("scan_look_back", &[("n", 0)]),
    ("scan_look_back", &[("n", 1024)]),
    ("sgemm_split_k", &[("M", 65), ("N", 67), ("K", 100)]),
    ("sgemm_split_k", &[("M", 3), ("N", 3), ("K", 5)]),
    ("sgemm_split_k", &[("M", 2), ("N", 2), ("K", 0)]),
    ("sgemm_split_k", &[("M", 0), ("N", 2), ("K", 5)]),
];
