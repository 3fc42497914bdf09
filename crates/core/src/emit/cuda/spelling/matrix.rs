//! `ldmatrix` and `mma.sync`. Fragments of 16-bit elements are kept in pairs, as `unsigned`.

use super::{Helper, barrier};

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

/// A number in f32 as two in tf32: the number rounded to eleven bits, and what is left of it, twelve bits, of which eleven are
/// multiplied. What is left is multiplied by 1024, so that it is no subnormal number where the number is small, and no product
/// with it is larger than the one that it belongs to. The leading part has to be finite: it meets zeros as what is left of other
/// numbers, and an infinity is in the rest. Where numbers are thought to be of a usual size it is not looked after, and then
/// what is left tells: it is infinite or no number.
static SPLIT: Helper = Helper {
    needs: &[],
    text: r#"// x rounded to eleven bits, and 1024 times what is left of it, which is not finite if rounding x gives no finite number, unless
// x may be any number
template <bool Any, int N> __device__ __forceinline__ void split(const float (&x)[N], unsigned (&leading)[N], unsigned (&rest)[N]) {
    const float largest = __uint_as_float(0x7f7fe000u);
    #pragma unroll
    for (int i = 0; i < N; ++i) {
        const float finite = Any ? fminf(fmaxf(x[i], -largest), largest) : x[i];
#if __CUDA_ARCH__ >= 900
        asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(leading[i]) : "f"(finite));
#else
        leading[i] = (__float_as_uint(finite) + 0x1000u) & 0xffffe000u;
#endif
        rest[i] = __float_as_uint(1024.0f*(x[i] - __uint_as_float(leading[i])));
    }
}"#,
};

/// Tells whether tiles have rows or columns of numbers that are not finite. A factor that cannot be split as it should makes every
/// element of its row or column infinite or no number, and of a lane's four elements of a tile the first and the last are in all of its
/// rows and columns, all lanes taken together.
pub(in crate::emit::cuda) static ZERO_IF_FINITE: Helper = Helper {
    needs: &[],
    text: r#"// 0 if this is finite, and no number else. Of tiles of 16 x 8 numbers, if no row and no column has any that is not finite in all of it: the
// first and the last of a lane's four are looked at, which are in every row and in every column. In f32 each adds to a zero of its own, so
// that they need not wait for one another; complex ones have more to do meanwhile, and are short of registers.
__device__ __forceinline__ void look_at(const float (&x)[4], float2& zero) {
    zero.x = fmaf(0.0f, x[0], zero.x);
    zero.y = fmaf(0.0f, x[3], zero.y);
}
__device__ __forceinline__ void look_at(const float2 (&z)[4], float2& zero) {
    zero.x = fmaf(0.0f, z[0].x, fmaf(0.0f, z[0].y, fmaf(0.0f, z[3].x, fmaf(0.0f, z[3].y, zero.x))));
}
template <typename T, int N> __device__ __forceinline__ void look_at(const T (&x)[N], float2& zero) {
    #pragma unroll
    for (int i = 0; i < N; ++i) look_at(x[i], zero);
}
template <typename T> __device__ __forceinline__ float zero_if_finite(const T& x) {
    float2 zero = make_float2(0.0f, 0.0f);
    look_at(x, zero);
    return zero.x + zero.y;
}"#,
};

/// What instructions on the parts of numbers have added up, added to what was there. The threads do this: matrix units cut sums off,
/// always towards zero, so a long sum that they add up themselves shrinks by as much with each instruction.
pub(in crate::emit::cuda) static ADD_PARTS: Helper = Helper {
    needs: &[],
    text: r#"// d += sum + rest/1024, of numbers, complex ones, and arrays of either
__device__ __forceinline__ void add_parts(float& d, float sum, float rest) { d += fmaf(rest, 1.0f/1024, sum); }
__device__ __forceinline__ void add_parts(float2& d, float2 sum, float2 rest) {
    add_parts(d.x, sum.x, rest.x);
    add_parts(d.y, sum.y, rest.y);
}
template <typename T, int N> __device__ __forceinline__ void add_parts(T (&d)[N], const T (&sum)[N], const T (&rest)[N]) {
    #pragma unroll
    for (int i = 0; i < N; ++i) add_parts(d[i], sum[i], rest[i]);
}"#,
};

/// The products of parts that make those of f32 fragments. The product of what is left over of both is too small to count.
static MULTIPLY_PARTS: Helper = Helper {
    needs: &[&MMA_M16N8K8_TF32, &SPLIT],
    text: r#"// sum += a0 b0, and rest += a1 b0 + a0 b1: 16 x 8 += (16 x 8) (8 x 8)
__device__ __forceinline__ void multiply_parts(float (&sum)[4], float (&rest)[4], const unsigned (&a0)[4], const unsigned (&a1)[4], const unsigned (&b0)[2], const unsigned (&b1)[2]) {
    mma_m16n8k8_tf32(rest, a1, b0);
    mma_m16n8k8_tf32(rest, a0, b1);
    mma_m16n8k8_tf32(sum, a0, b0);
}"#,
};

/// Numbers as they are stored in parts: the leading ones, and 1024 times what is left.
pub(in crate::emit::cuda) static IN_PARTS: Helper = Helper {
    needs: &[&SPLIT],
    text: r#"// Numbers in parts: the leading ones first
__device__ __forceinline__ float2 in_parts(float x) {
    const float number[1] = {x};
    unsigned leading[1], rest[1];
    split<true>(number, leading, rest);
    return make_float2(__uint_as_float(leading[0]), __uint_as_float(rest[0]));
}
__device__ __forceinline__ float4 in_parts(float2 z) {
    const float2 re = in_parts(z.x), im = in_parts(z.y);
    return make_float4(re.x, im.x, re.y, im.y);
}"#,
};

/// The numbers that are stored in parts.
pub(in crate::emit::cuda) static WHOLE: Helper = Helper {
    needs: &[],
    text: r#"// The numbers that are stored in parts
__device__ __forceinline__ float whole(float2 parts) { return fmaf(parts.y, 1.0f/1024, parts.x); }
__device__ __forceinline__ float2 whole(float4 parts) {
    return make_float2(fmaf(parts.z, 1.0f/1024, parts.x), fmaf(parts.w, 1.0f/1024, parts.y));
}"#,
};

/// Parts of numbers in shared memory, each in a plane of its own.
pub(in crate::emit::cuda) static LOAD_PARTS_F32: Helper = Helper {
    needs: &[],
    text: "\
// The parts of a number in shared memory, so far apart
__device__ __forceinline__ float2 load_parts_f32(const float* p, int plane) { return make_float2(p[0], p[plane]); }",
};

/// The same of complex numbers.
pub(in crate::emit::cuda) static LOAD_PARTS_C64: Helper = Helper {
    needs: &[],
    text: "\
// The parts of a complex number in shared memory, so far apart
__device__ __forceinline__ float4 load_parts_c64(const float* p, int plane) {
    return make_float4(p[0], p[plane], p[2*plane], p[3*plane]);
}",
};

/// The way back.
pub(in crate::emit::cuda) static STORE_PARTS: Helper = Helper {
    needs: &[],
    text: "\
// Stores the parts of a number, so far apart
__device__ __forceinline__ void store_parts(float* p, int plane, float2 parts) { p[0] = parts.x; p[plane] = parts.y; }
__device__ __forceinline__ void store_parts(float* p, int plane, float4 parts) {
    p[0] = parts.x;
    p[plane] = parts.y;
    p[2*plane] = parts.z;
    p[3*plane] = parts.w;
}",
};

/// The product of f32 fragments, the second of which is stored in parts.
pub(in crate::emit::cuda) static MMA_M16N8K8_F32_BY_PARTS: Helper = Helper {
    needs: &[&MULTIPLY_PARTS],
    text: r#"// sum + rest/1024 += a b: 16 x 8 += (16 x 8) (8 x 8), each product of three of tf32 parts, those of b as they are stored
template <bool Any> __device__ __forceinline__ void mma_m16n8k8_f32(float (&sum)[4], float (&rest)[4], const float (&a)[4], const float2 (&b)[2]) {
    unsigned a0[4], a1[4];
    split<Any>(a, a0, a1);
    const unsigned b0[2] = {__float_as_uint(b[0].x), __float_as_uint(b[1].x)};
    const unsigned b1[2] = {__float_as_uint(b[0].y), __float_as_uint(b[1].y)};
    multiply_parts(sum, rest, a0, a1, b0, b1);
}"#,
};

/// The product of f32 fragments, of three of their tf32 parts.
pub(in crate::emit::cuda) static MMA_M16N8K8_F32: Helper = Helper {
    needs: &[&MULTIPLY_PARTS],
    text: r#"// sum + rest/1024 += a b: 16 x 8 += (16 x 8) (8 x 8), each product of three of tf32 parts
template <bool Any> __device__ __forceinline__ void mma_m16n8k8_f32(float (&sum)[4], float (&rest)[4], const float (&a)[4], const float (&b)[2]) {
    unsigned a0[4], a1[4], b0[2], b1[2];
    split<Any>(a, a0, a1);
    split<Any>(b, b0, b1);
    multiply_parts(sum, rest, a0, a1, b0, b1);
}"#,
};

/// The product of complex fragments in f32. The parts of numbers are split once for all products that they are factors of, unless
/// the second fragment is stored in parts, and matrix units add up the two products that make a part of the result.
pub(in crate::emit::cuda) fn complex_split(
    name: &str,
    conjugate: bool,
    by_parts: bool,
) -> (&'static Helper, String) {
    let op = operand(conjugate);
    // (x + iy)(u + iv) = xu - yv + i(xv + yu), and with the conjugate xu + yv + i(xv - yu).
    let (by_v, by_u) = if conjugate { ("y", "m") } else { ("m", "y") };
    let (c_type, those_of_b, second) = if by_parts {
        (
            "float4",
            ", those of b as they are stored",
            "    #pragma unroll
    for (int i = 0; i < 2; ++i) {
        u0[i] = __float_as_uint(b[i].x); v0[i] = __float_as_uint(b[i].y);
        u1[i] = __float_as_uint(b[i].z); v1[i] = __float_as_uint(b[i].w);
    }",
        )
    } else {
        (
            "float2",
            "",
            "    float u[2], v[2];
    #pragma unroll
    for (int i = 0; i < 2; ++i) { u[i] = b[i].x; v[i] = b[i].y; }
    split<Any>(u, u0, u1);
    split<Any>(v, v0, v1);",
        )
    };
    let text = format!(
        "// sum + rest/1024 += {op} b: 16 x 8 += (16 x 8) (8 x 8), complex, each product of real parts of three of tf32 parts{those_of_b}
template <bool Any> __device__ __forceinline__ void {name}(float2 (&sum)[4], float2 (&rest)[4], const float2 (&a)[4], const {c_type} (&b)[2]) {{
    float x[4], y[4], re[4], im[4], rest_of_re[4], rest_of_im[4];
    #pragma unroll
    for (int i = 0; i < 4; ++i) {{
        x[i] = a[i].x; y[i] = a[i].y;
        re[i] = sum[i].x; im[i] = sum[i].y;
        rest_of_re[i] = rest[i].x; rest_of_im[i] = rest[i].y;
    }}
    // m is -y.
    unsigned x0[4], x1[4], y0[4], y1[4], m0[4], m1[4], u0[2], u1[2], v0[2], v1[2];
    split<Any>(x, x0, x1);
    split<Any>(y, y0, y1);
{second}
    #pragma unroll
    for (int i = 0; i < 4; ++i) {{ m0[i] = y0[i] ^ 0x80000000u; m1[i] = y1[i] ^ 0x80000000u; }}
    multiply_parts(re, rest_of_re, x0, x1, u0, u1);
    multiply_parts(im, rest_of_im, x0, x1, v0, v1);
    multiply_parts(re, rest_of_re, {by_v}0, {by_v}1, v0, v1);
    multiply_parts(im, rest_of_im, {by_u}0, {by_u}1, u0, u1);
    #pragma unroll
    for (int i = 0; i < 4; ++i) {{
        sum[i] = make_float2(re[i], im[i]);
        rest[i] = make_float2(rest_of_re[i], rest_of_im[i]);
    }}
}}"
    );
    (&MULTIPLY_PARTS, text)
}

/// The product of complex fragments in f64, in so many rows and terms, and the instruction on real ones that it is made of.
pub(in crate::emit::cuda) fn complex(
    name: &str,
    [m, k]: [i64; 2],
    conjugate: bool,
) -> (&'static Helper, String) {
    let (real, helper) = match (m, k) {
        (8, _) => ("mma_m8n8k4_f64", &MMA_M8N8K4_F64),
        (_, 4) => ("mma_m16n8k4_f64", &MMA_M16N8K4_F64),
        _ => ("mma_m16n8k8_f64", &MMA_M16N8K8_F64),
    };
    let (sums, left, right) = (m * 8 / 32, m * k / 32, k * 8 / 32);
    let op = operand(conjugate);
    // (x + iy)(u + iv) = xu - yv + i(xv + yu), and with the conjugate xu + yv + i(xv - yu).
    let (real_by_v, imaginary_by_u) = if conjugate { ("ay", "minus") } else { ("minus", "ay") };
    let text = format!(
        "// d += {op} b: {m} x 8 += ({m} x {k}) ({k} x 8), complex, by four products of real and imaginary parts
__device__ __forceinline__ void {name}(double2 (&d)[{sums}], const double2 (&a)[{left}], const double2 (&b)[{right}]) {{
    double re[{sums}], im[{sums}], ax[{left}], ay[{left}], minus[{left}], bx[{right}], by[{right}];
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
    for (int i = 0; i < {sums}; ++i) d[i] = make_double2(re[i], im[i]);
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
