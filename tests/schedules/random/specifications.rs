//! What random schedules start from.

use warpwright::kernels::{Variant, gemm};
use warpwright_core::ir::{Program, parse};
use warpwright_sim::coroutine::Random;

use super::draw::pick;

/// The element types of products; 16-bit ones with results of their own type, and in f32.
const PRECISIONS: &[&str] = &["f32", "f64", "c64", "c128", "f16", "bf16", "i32", "f16-f32", "bf16-f32"];
/// How the operands of products are stored.
const LAYOUTS: &[&str] = &["nn", "nt", "tn", "tt", "cn", "nc"];

/// What else is computed: loops under various buffers, of all kinds of types and numbers of dimensions.
const OTHERS: &[&str] = &[
    "program gemm(M: size, N: size, K: size, alpha: f32, beta: f32, beta0: flag,
        A: in f32[M, K; lda], B: in f32[K, N; ldb], C: inout f32[M, N; ldc]) {
      alloc acc: f32[M, N] global
      for i in 0..M, j in 0..N { acc[i, j] = 0  for k in 0..K { acc[i, j] += A[i, k] * B[k, j] } }
      for i in 0..M, j in 0..N {
        if beta0 { C[i, j] = alpha * acc[i, j] } else { C[i, j] = alpha * acc[i, j] + beta * C[i, j] }
      }
    }",
    "program transposed(M: size, N: size, K: size, alpha: f64, beta: f64, beta0: flag,
        A: in f64[K, M; lda], B: in f64[N, K; ldb], C: inout f64[M, N; ldc]) {
      alloc acc: f64[M, N] global
      for i in 0..M, j in 0..N { acc[i, j] = 0  for k in 0..K { acc[i, j] += A[k, i] * B[j, k] } }
      for i in 0..M, j in 0..N {
        if beta0 { C[i, j] = alpha * acc[i, j] } else { C[i, j] = alpha * acc[i, j] + beta * C[i, j] }
      }
    }",
    "program direct(M: size, N: size, K: size, A: in i32[M, K; lda], B: in i32[K, N; ldb], C: out i32[M, N; ldc]) {
      for i in 0..M, j in 0..N { C[i, j] = 0  for k in 0..K { C[i, j] += A[i, k] * B[k, j] } }
    }",
    "program half(M: size, N: size, K: size, A: in bf16[M, K; lda], B: in bf16[K, N; ldb], C: out bf16[M, N; ldc]) {
      alloc acc: f32[M, N] global
      for i in 0..M, j in 0..N { acc[i, j] = 0  for k in 0..K { acc[i, j] += f32(A[i, k]) * f32(B[k, j]) } }
      for i in 0..M, j in 0..N { C[i, j] = bf16(acc[i, j]) }
    }",
    "program complex(M: size, N: size, K: size, alpha: c64,
        A: in c64[K, M; lda], B: in c64[K, N; ldb], C: out c64[M, N; ldc]) {
      alloc acc: c64[M, N] global
      for i in 0..M, j in 0..N { acc[i, j] = 0  for k in 0..K { acc[i, j] += conj(A[k, i]) * B[k, j] } }
      for i in 0..M, j in 0..N { C[i, j] = alpha * acc[i, j] }
    }",
    "program three_products(M: size, N: size, K: size,
        A: in f64[K, 2*M; lda], B: in f64[K, 2*N; ldb], C: out c128[M, N; ldc]) {
      alloc acc: f64[3, M, N] global
      for p in 0..3, i in 0..M, j in 0..N {
        acc[p, i, j] = 0
        for k in 0..K {
          acc[p, i, j] += (p < 1 ? A[k, 2*i] : p < 2 ? A[k, 2*i + 1] : A[k, 2*i] - A[k, 2*i + 1])
                        * (p < 1 ? B[k, 2*j] : p < 2 ? B[k, 2*j + 1] : B[k, 2*j] + B[k, 2*j + 1])
        }
      }
      for i in 0..M, j in 0..N {
        C[i, j] = c128(acc[0, i, j] + acc[1, i, j]) + times_i(c128(acc[2, i, j] - acc[0, i, j] + acc[1, i, j]))
      }
    }",
    "program matrix_vector(M: size, K: size, A: in f32[M, K; lda], x: in f32[K], y: out f32[M]) {
      for i in 0..M { y[i] = 0  for k in 0..K { y[i] += A[i, k] * x[k] } }
    }",
    "program chain(M: size, N: size, A: in f32[M, N; lda], B: in f32[N, M; ldb], C: out f32[M, N; ldc]) {
      alloc t: f32[M, N] global
      alloc u: f32[M, N] global
      for i in 0..M, j in 0..N { t[i, j] = A[i, j] + B[j, i] }
      for i in 0..M, j in 0..N { u[i, j] = t[i, j] * t[i, j] }
      for i in 0..M, j in 0..N { C[i, j] = u[i, j] - t[i, j] }
    }",
    "program contraction(M: size, N: size, K: size, A: in f64[M, N, K], x: in f64[K], C: out f64[N, M; ldc]) {
      alloc acc: f64[M, N] global
      for i in 0..M, j in 0..N { acc[i, j] = 0  for k in 0..K { acc[i, j] += A[i, j, k] * x[k] } }
      for j in 0..N, i in 0..M { C[j, i] = acc[i, j] }
    }",
    "program staged(M: size, A: in f32[M, 8; lda], C: out f32[M, 8; ldc]) {
      alloc t: f32[M, 8] global
      alloc u: f32[M, 8] global
      for i in 0..M, j in 0..8 { t[i, j] = A[i, j] + A[i, 7 - j] }
      for i in 0..M, j in 0..8 { u[i, j] = t[i, j] * t[i, 7 - j] }
      for i in 0..M, j in 0..8 { C[i, j] = u[i, 7 - j] - u[i, j] }
    }",
    "program flat(M: size, A: in f32[8*M], C: out f32[8*M]) {
      alloc t: f32[8*M] global
      for e in 0..8*M { t[e] = A[e] * A[e] }
      for e in 0..8*M { C[e] = t[e] }
    }",
    "program skinny(K: size, A: in f32[K, 9; lda], B: in f32[K, 5; ldb], C: out f32[9, 5; ldc]) {
      alloc acc: f32[9, 5] global
      for i in 0..9, j in 0..5 { acc[i, j] = 0  for k in 0..K { acc[i, j] += A[k, i] * B[k, j] } }
      for i in 0..9, j in 0..5 { C[i, j] = acc[i, j] }
    }",
    "program dense(K: size, A: in f32[9*K], B: in f32[5*K], C: out f32[9, 5; ldc]) {
      alloc acc: f32[9, 5] global
      for i in 0..9, j in 0..5 { acc[i, j] = 0  for k in 0..K { acc[i, j] += A[9*k + i] * B[5*k + j] } }
      for i in 0..9, j in 0..5 { C[i, j] = acc[i, j] }
    }",
    "program largest(M: size, K: size, A: in f32[M, K; lda], y: out f32[M]) {
      alloc acc: f32[M] global
      for i in 0..M { acc[i] = -inf  for k in 0..K { acc[i] max= A[i, k] } }
      for i in 0..M { y[i] = acc[i] + acc[i] }
    }",
    "program biased(M: size, N: size, K: size, A: in i32[K, M; lda], B: in i32[K, N; ldb], v: in i32[N],
        C: out i32[M, N; ldc]) {
      alloc acc: i32[M, N] global
      alloc t: i32[M, N] global
      for i in 0..M, j in 0..N { acc[i, j] = 0  for k in 0..K { acc[i, j] += A[k, i] * B[k, j] } }
      for i in 0..M, j in 0..N { t[i, j] = acc[i, j] + v[j] }
      for i in 0..M, j in 0..N { C[i, j] = t[i, j] * v[j] }
    }",
];

/// One of all.
pub fn draw(random: &mut Random) -> Program {
    if random.once_in(2) {
        return product(pick(random, PRECISIONS), pick(random, LAYOUTS));
    }
    parse::program(pick(random, OTHERS)).expect("reads")
}

/// The one of a name: `product_f16_tn` is the product of that type and layout.
pub fn by_name(name: &str) -> Program {
    if let Some((precision, layout)) = name.strip_prefix("product_").and_then(|n| n.rsplit_once('_')) {
        return product(&precision.replace('_', "-"), layout);
    }
    let mut all = OTHERS.iter().map(|text| parse::program(text).expect("reads"));
    all.find(|p| p.name == name).expect("is there")
}

/// C = alpha op(A) op(B) + beta C.
fn product(precision: &str, layout: &str) -> Program {
    let variant = Variant::new(precision.parse().expect("a type"), layout.parse().expect("a layout"));
    let name = format!("product_{}_{layout}", precision.replace('-', "_"));
    Program { name, ..gemm::specification(variant) }
}
