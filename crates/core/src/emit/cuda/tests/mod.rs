//! The CUDA text of small programs.

mod addresses;
mod copies;
mod launches;
mod split;

use super::{Argument, Source, Step, emit};
use crate::ir::parse;
use crate::ir::validate::{check, validate};
use crate::target::Target;

fn source(program: &str) -> Source {
    source_for("h200", program)
}

fn source_for(target: &str, program: &str) -> Source {
    let program = parse::program(program).expect("reads");
    let checked = check(program).expect("is well formed");
    let valid = validate(checked, Target::by_name(target).expect("is known")).expect("is valid");
    emit(&valid).expect("has a spelling")
}

/// The statements of the only kernel: what stands after the blank line that ends its declarations.
fn statements(program: &str) -> String {
    body(program).split_once("\n\n").expect("a blank line").1.to_string()
}

/// The only kernel, between its braces, less one level of indentation.
fn body(program: &str) -> String {
    let text = source(program).text;
    let (_, body) = text.split_once("\n{\n").expect("a kernel begins");
    let body = body.strip_suffix("\n}\n").expect("it ends");
    body.lines().map(|l| l.strip_prefix("    ").unwrap_or(l)).collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn assert_text(found: &str, expected: &str) {
    let expected = expected.trim_matches('\n');
    let indent = expected.lines().next().map_or(0, |l| l.len() - l.trim_start().len());
    let expected: Vec<_> = expected.lines().map(|l| l.get(indent..).unwrap_or("")).collect();
    assert_eq!(found.trim_end(), expected.join("\n").trim_end(), "\nfound:\n{found}");
}

#[test]
fn a_kernel_carries_only_what_it_uses() {
    let source = source(
        "program scale(M: size, N: size, alpha: f32, X: in f32[M, N; ldx], Y: out f32[M, N; ldy]) {
            for b in block.x(ceil(N, 128)) {
                for t in threads(128@1) {
                    let i = 128*b + t
                    let unused = i + M
                    alloc never: f32[4] reg
                    if i < N { Y[0, i] = alpha * X[0, i] }
                }
            }
        }",
    );
    assert_text(
        &source.text,
        r#"
// Grid: ceil_div(N, 128) blocks of 128 threads.
extern "C" __global__ void __launch_bounds__(128)
scale(int N, float alpha, const float* __restrict__ X, float* __restrict__ Y)
{
    const int tid = threadIdx.x;
    const int b = blockIdx.x;

    const int i = 128*b + tid;
    if (i < N) Y[i] = alpha*X[i];
}
"#,
    );
    let names: Vec<_> = source.kernels[0]
        .arguments
        .iter()
        .map(|a| match a {
            Argument::Size(s) | Argument::Scalar(s, _) | Argument::Tensor(s) => s.name().to_string(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(names, ["N", "alpha", "X", "Y"]);
}

#[test]
fn thread_decompositions_are_named_once_and_guard_what_they_do_not_cover() {
    assert_text(
        &body(
            "program p(x: in f32[252], y: out f32[252]) {
            for b in block.x(1) {
                alloc s: f32[12, 21] shared
                for i in threads(12@21), j in threads(21@1) { s[i, j] = x[21*i + j] }
                barrier
                for j in threads(21@12), i in threads(12@1) { y[12*j + i] = s[i, j] }
                for i in threads(12@21), j in threads(21@1) { y[21*i + j] = 1 }
            }
        }",
        ),
        "
        const int tid = threadIdx.x;
        const int i = tid/21;
        const int j = tid%21;
        __shared__ __align__(128) float s[12][21];

        if (i < 12) s[i][j] = x[21*i + j];
        __syncthreads();
        if (tid < 252) {
            const int j2 = tid/12;
            const int i2 = tid%12;
            y[12*j2 + i2] = s[i2][j2];
        }
        if (i < 12) y[21*i + j] = 1.0f;
        ",
    );
}

#[test]
fn offsets_are_computed_in_64_bits_where_they_may_pass_32() {
    assert_text(
        &statements("program p(M: size, N: size, P: size, T: in f32[M, N, P], U: out f32[M, 4, 8], V: out f32[M, N; ldv]) {
            for c in block.x(N) {
                for t in threads(32@1) {
                    U[3*c, 1, 2] = T[c, c + 1, 2*t]
                    V[c, t] = T[0, 0, (t + 5)/8]
                }
            }
        }"),
        "
        U[96*(long long)c + 10] = T[((long long)c*N + c + 1)*P + 2*tid];
        V[(long long)c*ldv + tid] = T[(tid + 5)/8];
        ",
    );
}

#[test]
fn an_axis_that_may_be_too_long_is_numbered_along_x() {
    let short = source(
        "program p(N: size, y: out f32[64, N]) assume N <= 1000 {
            for r in block.y(N), q in block.x(64) { for t in threads(32@1) { y[q, r] = 0 } }
        }",
    );
    assert!(short.text.contains("const int r = blockIdx.y;"), "{}", short.text);
    let long = source(
        "program p(N: size, y: out f32[64, N]) {
            for r in block.y(N), q in block.x(64) { for t in threads(32@1) { y[q, r] = 0 } }
        }",
    );
    assert!(long.text.contains("const int q = block%64;"), "{}", long.text);
    assert!(long.text.contains("const int r = block/64;"), "{}", long.text);
    let n = |_: &crate::sym::Sym| Some(100_000);
    assert_eq!(long.kernels[0].grid(&n), Ok([6_400_000, 1, 1]));
    assert_eq!(short.kernels[0].grid(&|_| Some(10)), Ok([64, 10, 1]));
}

#[test]
fn vector_loops_are_wide_moves() {
    assert_text(
        &statements(
            "program p(M: size, alpha: f32, beta: f32, A: in f32[M, 128; lda], C: inout f32[M, 128; ldc],
                H: in f16[M, 128], G: out f16[M, 128]) assume lda%4 == 0, ldc%4 == 0 {
            for m in block.x(M) {
                alloc S: f32[4, 32] shared layout (r, c) => 36*r + c
                for t in threads(32@1) {
                    alloc a: f32[4] reg
                    for v in vector 0..4 { a[v] = A[m, 4*t + v] }
                    for v in vector 0..4 { S[v, t] = A[m, 4*t + v] }
                    for v in vector 0..4 { C[m, 4*t + v] = alpha * a[v] + beta * C[m, 4*t + v] }
                    for v in vector 0..4 { G[m, 4*t + v] = H[m, 4*t + v] }
                }
            }
        }",
        ),
        "
        __align__(16) float a[4];
        *(float4*)&a[0] = *(const float4*)&A[(long long)m*lda + 4*tid];
        {
            const float4 a2 = *(const float4*)&A[(long long)m*lda + 4*tid];
            S[0][tid] = a2.x;
            S[1][tid] = a2.y;
            S[2][tid] = a2.z;
            S[3][tid] = a2.w;
        }
        {
            const float4 c = *(const float4*)&C[(long long)m*ldc + 4*tid];
            *(float4*)&C[(long long)m*ldc + 4*tid] =
                make_float4(alpha*a[0] + beta*c.x, alpha*a[1] + beta*c.y, alpha*a[2] + beta*c.z,
                    alpha*a[3] + beta*c.w);
        }
        *(uint2*)&G[128*(long long)m + 4*tid] = *(const uint2*)&H[128*(long long)m + 4*tid];
        ",
    );
}

#[test]
fn two_complex_numbers_are_stored_at_once_where_they_are_computed() {
    assert_text(
        &statements(
            "program p(M: size, alpha: c64, beta: c64, S: in c64[M, 64], C: inout c64[M, 64; ldc]) assume ldc%2 == 0 {
            for m in block.x(M) {
                for t in threads(32@1) {
                    for v in vector 0..2 { C[m, 2*t + v] = alpha * S[m, 2*t + v] + beta * C[m, 2*t + v] }
                }
            }
        }",
        ),
        "
        {
            const float4 s = *(const float4*)&S[64*(long long)m + 2*tid];
            const float4 c = *(const float4*)&C[(long long)m*ldc + 2*tid];
            const float2 z = cfma(alpha, make_float2(s.x, s.y), cmul(beta, make_float2(c.x, c.y)));
            const float2 z2 = cfma(alpha, make_float2(s.z, s.w), cmul(beta, make_float2(c.z, c.w)));
            *(float4*)&C[(long long)m*ldc + 2*tid] = make_float4(z.x, z.y, z2.x, z2.y);
        }
        ",
    );
}

#[test]
fn real_and_imaginary_parts_are_put_together_without_adding() {
    assert_text(
        &statements(
            "program whole(N: size, X: in f64[N, 2], Y: out c128[N]) {
                for b in block.x(ceil(N, 32)) {
                    for t in threads(32@1) {
                        if 32*b + t < N {
                            Y[32*b + t] = c128(X[32*b + t, 0]) + times_i(c128(X[32*b + t, 1]))
                        }
                    }
                }
            }",
        ),
        "
        const int n = 32*b + tid;
        if (n < N) Y[n] = make_double2(X[2*(long long)n], X[2*(long long)n + 1]);
        ",
    );
}

#[test]
fn complex_products_are_fused_and_conjugated() {
    assert_text(
        &statements(
            "program p(K: size, A: in c64[16, K; lda], B: in c64[K, 16; ldb], C: out c64[16, 16]) {
            for b in block.x(1) {
                for i in threads(16@16), j in threads(16@1) {
                    alloc s: c64[1] reg
                    s[0] = 0
                    for k in 0..K { s[0] += conj(A[i, k]) * B[k, j] }
                    C[i, j] = -s[0]
                }
            }
        }",
        ),
        "
        const int i = tid/16;
        const int j = tid%16;
        float2 s = make_float2(0.0f, 0.0f);
        for (int k = 0; k < K; ++k) s = cfma(conj(A[(long long)i*lda + k]), B[(long long)k*ldb + j], s);
        C[16*i + j] = cneg(s);
        ",
    );
}

#[test]
fn sixteen_bit_arithmetic_is_done_in_float_with_the_conversion_that_the_target_has() {
    let program =
        "program p(n: size, alpha: f32, x: in bf16[n], y: out bf16[n], x2: in f16[n], z: inout f16[n]) {
        for b in block.x(n) { for t in threads(1@1) {
            y[b] = bf16(alpha * f32(x[b]))
            z[b] += x2[b]
        } }
    }";
    assert_text(
        &statements(program),
        "
        if (tid == 0) {
            y[b] = float_to_bf16(alpha*bf16_to_float(x[b]));
            z[b] = float_to_f16(f16_to_float(z[b]) + f16_to_float(x2[b]));
        }
        ",
    );
    assert!(source(program).text.contains("cvt.rn.bf16.f32"));
    assert!(!source_for("rtx2080ti", program).text.contains("cvt.rn.bf16.f32"));
}

#[test]
fn lists_that_halve_or_double_are_loops_and_others_are_written_out() {
    assert_text(
        &statements(
            "program p(y: out f32[64]) {
            for b in block.x(1) { for t in threads(1@1) {
                for d in unroll [8, 4, 2, 1] { y[d] = 0 }
                for d in unroll [1, 2, 4] { y[2*d + 1] = 1 }
                for d in unroll [3, 5] { y[d + 20] = 2 }
            } }
        }",
        ),
        "
        if (tid == 0) {
            #pragma unroll
            for (int d = 8; d > 0; d /= 2) y[d] = 0.0f;
            #pragma unroll
            for (int d = 1; d <= 4; d *= 2) y[2*d + 1] = 1.0f;
            y[23] = 2.0f;
            y[25] = 2.0f;
        }
        ",
    );
}

#[test]
fn coordinates_have_names_and_a_tile_is_counted_from_its_corner() {
    assert_text(
        &statements(
            "program p(M: size, N: size, K: size, alpha: f32, A: in f32[M, K; lda], C: out f32[M, N; ldc]) {
                for by in block.y(ceil(M, 16)), bx in block.x(ceil(N, 64)) {
                    for t in threads(32@1) {
                        alloc acc: f32[2, 2] reg
                        for k in 0..ceil(K, 8) {
                            for i in unroll 0..2, j in unroll 0..2 {
                                acc[i, j] = 16*by + t/2 + i < M && 8*k + t%2 + j < K ? A[16*by + t/2 + i, 8*k + t%2 + j] : 0
                            }
                        }
                        for i in unroll 0..2, j in unroll 0..2 {
                            let m = 16*by + 8*i + t/4
                            let n = 64*bx + 2*t + j
                            if m < M && n < N { C[m, n] = alpha * acc[i, j] }
                        }
                    }
                }
            }",
        ),
        "
        float acc[2][2];
        const int m = 16*by + tid/2;
        for (int k = 0; k < ceil_div(K, 8); ++k) {
            const int k2 = 8*k + tid%2;
            #pragma unroll
            for (int i = 0; i < 2; ++i) {
                #pragma unroll
                for (int j = 0; j < 2; ++j) {
                    acc[i][j] = m + i < M && k2 + j < K ? A[(long long)(m + i)*lda + k2 + j] : 0.0f;
                }
            }
        }
        const int m2 = 16*by + tid/4;
        const int n = 64*bx + 2*tid;
        float* c = &C[(long long)m2*ldc + n];
        #pragma unroll
        for (int i = 0; i < 2; ++i) {
            #pragma unroll
            for (int j = 0; j < 2; ++j) {
                if (m2 + 8*i < M && n + j < N) c[(long long)(8*i)*ldc + j] = alpha*acc[i][j];
            }
        }
        ",
    );
}

#[test]
fn fragments_of_pairs_are_taken_apart_in_own_loops() {
    assert_text(
        &statements(
            "program p(A: in bf16[16, 16], C: out bf16[16, 16]) {
            for b in block.x(1) { for w in threads(1@32) {
                alloc a: bf16[16, 16] reg frag A16x16
                for (i, k) in own a[:, :] { a[i, k] = A[i, k] }
                for (i, k) in own a[:, :] { C[k, i] = a[i, k] }
            } }
        }",
        ),
        "
        unsigned a[4];
        #pragma unroll
        for (int r = 0; r < 8; ++r) {
            const int i = 8*(r/2%2) + tid/4;
            const int k = 8*(r/4) + 2*(tid%4) + r%2;
            set_half(a[r/2], r%2, A[16*i + k]);
        }
        #pragma unroll
        for (int r = 0; r < 8; ++r) {
            const int i = 8*(r/2%2) + tid/4;
            const int k = 8*(r/4) + 2*(tid%4) + r%2;
            C[16*k + i] = (bf16)(a[r/2] >> 16*(r%2));
        }
        ",
    );
}

#[test]
fn a_run_of_owned_elements_is_in_registers_side_by_side() {
    assert_text(
        &statements(
            "program p(x: in f64[128], y: out f64[128]) {
            for b in block.x(1) { for w in threads(1@32) {
                alloc acc: f64[16, 8] reg frag D16x8
                for (i, j by 2) in own acc[:, :] { acc[i, j] = 0 }
                for (i, j by 2) in own acc[:, :] { acc[i, j + 1] = x[8*i + j] }
                for (i, j by 2) in own acc[:, :] { for v in vector 0..2 { y[8*i + j + v] = acc[i, j + v] } }
            } }
        }",
        ),
        "
        double acc[4];
        #pragma unroll
        for (int r = 0; r < 2; ++r) acc[2*r] = 0.0;
        #pragma unroll
        for (int r = 0; r < 2; ++r) {
            const int i = 8*r + tid/4;
            const int j = 2*(tid%4);
            acc[2*r + 1] = x[8*i + j];
        }
        #pragma unroll
        for (int r = 0; r < 2; ++r) {
            const int i = 8*r + tid/4;
            const int j = 2*(tid%4);
            *(double2*)&y[8*i + j] = make_double2(acc[2*r], acc[2*r + 1]);
        }
        ",
    );
}

#[test]
fn barriers_join_their_range() {
    assert_text(
        &statements(
            "program p(x: in f32[128], y: out f32[128]) {
            for b in block.x(1) {
                alloc s: f32[128] shared
                for g in threads(2@64), t in threads(64@1) { s[64*g + t] = x[64*g + t] }
                for g in threads(2@64) { barrier }
                for w in threads(4@32) { barrier }
                barrier
                for g in threads(2@64), t in threads(64@1) { y[64*g + t] = s[64*g + 63 - t] }
            }
        }",
        ),
        "
        s[64*g + t] = x[64*g + t];
        barrier_sync(tid/64 + 1, 64);
        __syncwarp();
        __syncthreads();
        y[64*g + t] = s[64*g - t + 63];
        ",
    );
}

#[test]
fn the_host_list_keeps_its_conditions_and_scratch_its_size() {
    let source = source(
        "program p(n: size, beta0: flag, x: in f32[n], y: inout f32[n]) {
            alloc ws: f32[n, 3] global
            if beta0 { for b in block.x(n) { for t in threads(1@1) { ws[b, 0] = x[b] } } }
            for b in block.x(n) { for t in threads(1@1) { y[b] = x[b] } }
        }",
    );
    let [Step::If { then, otherwise, .. }, Step::Launch(1)] = &source.host[..] else {
        panic!("{:?}", source.host)
    };
    assert!(matches!((&then[..], &otherwise[..]), ([Step::Launch(0)], [])));
    assert_eq!(source.kernels[1].name, "p_2");
    assert_eq!(source.kernels[0].arguments.last(), Some(&Argument::Scratch(0)));
    assert_eq!(source.scratch[0].bytes(&|_| Some(10)), Ok(120));
    assert!(!source.scratch[0].zeroed);
}

#[test]
fn every_program_has_a_spelling_and_the_same_bytes_every_time() {
    let programs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../programs");
    let mut count = 0;
    for entry in std::fs::read_dir(programs).expect("the programs are there") {
        let path = entry.expect("is readable").path();
        if path.extension().is_some_and(|e| e == "ww") {
            let program = std::fs::read_to_string(&path).expect("is readable");
            assert_eq!(source(&program).text, source(&program).text, "{}", path.display());
            count += 1;
        }
    }
    assert_eq!(count, 9);
}

/// A step is loaded into registers while the one before it is summed from a ring of two.
const AHEAD: &str = "program ahead(n: size, A: in f32[n, 64; lda], C: out f32[64]) {
    for b in block.x(1) {
        alloc s: f32[2, 64] shared
        alloc next: f32[32@1, 2] reg
        alloc sum: f32[32@1] reg
        for t in threads(32@1) { sum[t] = 0 }
        if 0 < n {
            for t in threads(32@1) { for u in unroll 0..2 { next[t, u] = A[0, 32*u + t] } }
        }
        for k in 0..n {
            for t in threads(32@1) { for u in unroll 0..2 { s[k%2, 32*u + t] = next[t, u] } }
            if k + 1 < n {
                for t in threads(32@1) { for u in unroll 0..2 { next[t, u] = A[k + 1, 32*u + t] } }
            }
            barrier
            for t in threads(32@1) { sum[t] += s[k%2, 63 - t] }
        }
        for t in threads(32@1) { C[t] = sum[t] }
    }
}";

#[test]
fn what_is_loaded_ahead_of_a_barrier_stays_there() {
    let text = source(AHEAD).text;
    assert!(text.contains("const float* A, int lda, float* C)"), "{text}");
    // Without the barrier nothing is ahead of it.
    let alone = source(&AHEAD.replace("barrier", "")).text;
    assert!(alone.contains("const float* __restrict__ A, int lda, float* __restrict__ C)"), "{alone}");
}

#[test]
fn pointers_and_slots_travel_with_a_loop() {
    let text = source(AHEAD).text;
    let expected = "
    const float* a = &A[lda + tid];
    int slot = 0;
    for (int k = 0; k < n; ++k) {
        #pragma unroll
        for (int u = 0; u < 2; ++u) s[slot][32*u + tid] = next[u];
        if (k + 1 < n) {
            #pragma unroll
            for (int u = 0; u < 2; ++u) next[u] = a[32*u];
        }
        __syncwarp();
        sum += s[slot][-tid + 63];
        a += lda;
        slot = 1 - slot;
    }
";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn a_constant_in_a_remainder_of_few_values_is_kept_from_the_compiler() {
    let text = |steps: &str, row: &str| {
        source(&format!(
            "program rows(n: size, x: in f32[8, 32], y: out f32[32]) {{
                for b in block.x(1) {{
                    for t in threads(32@1) {{
                        alloc acc: f32[1] reg
                        acc[0] = 0
                        for k in {steps} {{ acc[0] += x[{row}, t] }}
                        y[t] = acc[0]
                    }}
                }}
            }}"
        ))
        .text
    };
    assert!(text("0..6", "(k + 1)%3").contains("x[32*(opaque(k + 1)%3) + tid]"));
    // What need not be divided, what is never a loop, and what has any number of values is left as it is.
    for (steps, row) in
        [("0..6", "(k + 1)%4"), ("0..6", "k%3"), ("unroll 0..6", "(k + 1)%3"), ("0..n", "(k + 1)%3")]
    {
        assert!(!text(steps, row).contains("opaque"), "{steps}: {row}");
    }
}

#[test]
fn a_sign_that_depends_on_a_condition_is_a_bit() {
    let of = |dtype: &str, value: &str| {
        body(&format!(
            "program p(x: in {dtype}[64], y: out {dtype}[64]) {{
               for b in block.x(1) {{ for t in threads(64@1) {{ y[t] = {value} }} }}
             }}"
        ))
    };
    for dtype in ["f32", "f64"] {
        let text = of(dtype, "t < 9 ? -x[t] : x[t]");
        assert!(text.contains("y[tid] = negated_if(tid < 9, x[tid]);"), "{text}");
        // Another element is another value.
        let text = of(dtype, "t < 9 ? -x[t] : x[63 - t]");
        assert!(text.contains("y[tid] = tid < 9 ? -x[tid] : x[-tid + 63];"), "{text}");
    }
    let text = of("c64", "t < 9 ? -x[t] : x[t]");
    assert!(text.contains("y[tid] = tid < 9 ? cneg(x[tid]) : x[tid];"), "{text}");
}
