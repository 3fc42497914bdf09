//! `ldmatrix` and `mma.sync`. Fragments of 16-bit elements are kept in pairs, as `unsigned`.

use super::{Helper, barrier};
use crate::dtype::DType;

pub(in crate::emit::cuda) static LDMATRIX_X4: Helper = Helper {
    needs: &[&barrier::SHARED_ADDRESS],
    text: r#"// Four 8 x 8 tiles of 16-bit elements; lane l gives the address of row l%8 of tile l/8.
__device__ __forceinline__ void ldmatrix_x4(unsigned (&d)[4], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]) : "r"(shared_address(row)) : "memory");
}"#,
};

pub(in crate::emit::cuda) static LDMATRIX_X4_TRANS: Helper = Helper {
    needs: &[&barrier::SHARED_ADDRESS],
    text: r#"// Four 8 x 8 tiles of 16-bit elements, each transposed; lane l gives the address of row l%8 of tile l/8.
__device__ __forceinline__ void ldmatrix_x4_trans(unsigned (&d)[4], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]) : "r"(shared_address(row)) : "memory");
}"#,
};

pub(in crate::emit::cuda) static MMA_M16N8K16_BF16: Helper = Helper {
    needs: &[],
    text: r#"// d += a b: 16 x 8 += (16 x 16) (16 x 8)
__device__ __forceinline__ void mma_m16n8k16_bf16(float (&d)[4], const unsigned (&a)[4], const unsigned* b) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}"#,
};

pub(in crate::emit::cuda) static MMA_M16N8K16_F16: Helper = Helper {
    needs: &[],
    text: r#"// d += a b: 16 x 8 += (16 x 16) (16 x 8)
__device__ __forceinline__ void mma_m16n8k16_f16(float (&d)[4], const unsigned (&a)[4], const unsigned* b) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}"#,
};

pub(in crate::emit::cuda) static MMA_M8N8K4_F64: Helper = Helper {
    needs: &[],
    text: r#"// d += a b: 8 x 8 += (8 x 4) (4 x 8)
__device__ __forceinline__ void mma_m8n8k4_f64(double (&d)[2], const double (&a)[1], const double (&b)[1]) {
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(d[0]), "+d"(d[1]) : "d"(a[0]), "d"(b[0]));
}"#,
};

pub(in crate::emit::cuda) static MMA_M16N8K4_F64: Helper = Helper {
    needs: &[],
    text: r#"// d += a b: 16 x 8 += (16 x 4) (4 x 8)
__device__ __forceinline__ void mma_m16n8k4_f64(double (&d)[4], const double (&a)[2], const double (&b)[1]) {
    asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
        : "d"(a[0]), "d"(a[1]),
          "d"(b[0]));
}"#,
};

pub(in crate::emit::cuda) static MMA_M16N8K8_F64: Helper = Helper {
    needs: &[],
    text: r#"// d += a b: 16 x 8 += (16 x 8) (8 x 8)
__device__ __forceinline__ void mma_m16n8k8_f64(double (&d)[4], const double (&a)[4], const double (&b)[2]) {
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]),
          "d"(b[0]), "d"(b[1]));
}"#,
};

pub(in crate::emit::cuda) static MMA_M16N8K16_F64: Helper = Helper {
    needs: &[],
    text: r#"// d += a b: 16 x 8 += (16 x 16) (16 x 8)
__device__ __forceinline__ void mma_m16n8k16_f64(double (&d)[4], const double (&a)[8], const double (&b)[4]) {
    asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7, %8, %9, %10, %11}, {%12, %13, %14, %15}, {%0, %1, %2, %3};"
        : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]),
          "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]));
}"#,
};

/// One instruction on tf32, which ignores what lies behind ten bits after the point.
static MMA_M16N8K8_TF32: Helper = Helper {
    needs: &[],
    text: r#"// d += a b: 16 x 8 += (16 x 8) (8 x 8), of which ten bits after the point are multiplied
__device__ __forceinline__ void mma_m16n8k8_tf32(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}"#,
};

/// The product of f32 fragments, of three of their tf32 parts: the leading eleven bits, and what is left, of which again
/// eleven are multiplied. The product of what is left over of both is too small to count. The small ones come first.
pub(in crate::emit::cuda) static MMA_M16N8K8_F32: Helper = Helper {
    needs: &[&MMA_M16N8K8_TF32],
    text: r#"// x as its leading eleven bits and the rest
template <int N> __device__ __forceinline__ void split(const float (&x)[N], unsigned (&leading)[N], unsigned (&rest)[N]) {
    #pragma unroll
    for (int i = 0; i < N; ++i) {
        leading[i] = __float_as_uint(x[i]) & 0xffffe000u;
        rest[i] = __float_as_uint(x[i] - __uint_as_float(leading[i]));
    }
}

// d += a b: 16 x 8 += (16 x 8) (8 x 8), each product of three of tf32 parts
__device__ __forceinline__ void mma_m16n8k8_f32(float (&d)[4], const float (&a)[4], const float (&b)[2]) {
    unsigned a0[4], a1[4], b0[2], b1[2];
    split(a, a0, a1);
    split(b, b0, b1);
    mma_m16n8k8_tf32(d, a1, b0);
    mma_m16n8k8_tf32(d, a0, b1);
    mma_m16n8k8_tf32(d, a0, b0);
}"#,
};

/// The product of complex fragments, in so many rows and terms, and the instruction on real ones that it is made of.
pub(in crate::emit::cuda) fn complex(
    dtype: DType,
    name: &str,
    [m, k]: [i64; 2],
    conjugate: bool,
) -> (&'static Helper, String) {
    let (real, helper) = match (dtype, m, k) {
        (DType::C64, ..) => ("mma_m16n8k8_f32", &MMA_M16N8K8_F32),
        (_, 8, _) => ("mma_m8n8k4_f64", &MMA_M8N8K4_F64),
        (_, _, 4) => ("mma_m16n8k4_f64", &MMA_M16N8K4_F64),
        _ => ("mma_m16n8k8_f64", &MMA_M16N8K8_F64),
    };
    let part = if dtype == DType::C64 { "float" } else { "double" };
    let (sums, left, right) = (m * 8 / 32, m * k / 32, k * 8 / 32);
    let op = operand(conjugate);
    // (x + iy)(u + iv) = xu - yv + i(xv + yu), and with the conjugate xu + yv + i(xv - yu).
    let (real_by_v, imaginary_by_u) = if conjugate { ("ay", "minus") } else { ("minus", "ay") };
    let text = format!(
        "// d += {op} b: {m} x 8 += ({m} x {k}) ({k} x 8), complex, by four products of real and imaginary parts
__device__ __forceinline__ void {name}({part}2 (&d)[{sums}], const {part}2 (&a)[{left}], const {part}2 (&b)[{right}]) {{
    {part} re[{sums}], im[{sums}], ax[{left}], ay[{left}], minus[{left}], bx[{right}], by[{right}];
    #pragma unroll
    for (int i = 0; i < {sums}; ++i) {{ re[i] = d[i].x; im[i] = d[i].y; }}
    #pragma unroll
    for (int i = 0; i < {left}; ++i) {{ ax[i] = a[i].x; ay[i] = a[i].y; minus[i] = -a[i].y; }}
    #pragma unroll
    for (int i = 0; i < {right}; ++i) {{ bx[i] = b[i].x; by[i] = b[i].y; }}
    {real}(re, ax, bx);
    {real}(im, ax, by);
    {real}(re, {real_by_v}, by);
    {real}(im, {imaginary_by_u}, bx);
    #pragma unroll
    for (int i = 0; i < {sums}; ++i) d[i] = make_{part}2(re[i], im[i]);
}}"
    );
    (helper, text)
}

/// The product of complex fragments of eight rows and four terms where there are instructions of sixteen rows: the real
/// parts of the eight rows stand on top of the imaginary ones, and so do those of the result. A lane's number is then
/// what it gives to the instruction, and two instructions make one product. Four of eight rows run at half the rate on
/// these GPUs; what this one pays are moves, a sixth of its speed (62 and 53 TFLOP/s for tiles of 16 x 32 by this and
/// by [`complex`] with 16 rows, one H200, 2026-11-22), and what it gains are fewer rows left over.
pub(in crate::emit::cuda) fn complex_stacked(name: &str, conjugate: bool) -> (&'static Helper, String) {
    let op = operand(conjugate);
    // By u, and by v where the other factor is u + iv.
    let (by_u, by_v) = if conjugate {
        ("{a[0].x, -a[0].y}", "{a[0].y, a[0].x}")
    } else {
        ("{a[0].x, a[0].y}", "{-a[0].y, a[0].x}")
    };
    let text = format!(
        "// d += {op} b: 8 x 8 += (8 x 4) (4 x 8), complex, real parts stacked on imaginary ones
__device__ __forceinline__ void {name}(double2 (&d)[2], const double2 (&a)[1], const double2 (&b)[1]) {{
    double sums[4] = {{d[0].x, d[1].x, d[0].y, d[1].y}};
    const double by_u[2] = {by_u}, u[1] = {{b[0].x}};
    const double by_v[2] = {by_v}, v[1] = {{b[0].y}};
    mma_m16n8k4_f64(sums, by_u, u);
    mma_m16n8k4_f64(sums, by_v, v);
    d[0] = make_double2(sums[0], sums[2]);
    d[1] = make_double2(sums[1], sums[3]);
}}"
    );
    (&MMA_M16N8K4_F64, text)
}

fn operand(conjugate: bool) -> &'static str {
    if conjugate { "conj(a)" } else { "a" }
}
