//! 16-bit floating point: kept as bits, computed as `float`.

use super::Helper;

pub(in crate::emit::cuda) static BF16: Helper =
    Helper { needs: &[], text: "typedef unsigned short bf16;  // the upper half of a float" };

pub(in crate::emit::cuda) static F16: Helper =
    Helper { needs: &[], text: "typedef unsigned short f16;  // IEEE binary16" };

pub(in crate::emit::cuda) static BF16_TO_FLOAT: Helper = Helper {
    needs: &[&BF16],
    text: "__device__ __forceinline__ float bf16_to_float(bf16 x) { return __uint_as_float((unsigned)x << 16); }",
};

pub(in crate::emit::cuda) static FLOAT_TO_BF16: Helper = Helper {
    needs: &[&BF16],
    text: r#"__device__ __forceinline__ bf16 float_to_bf16(float x) {
    bf16 y;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
    return y;
}"#,
};

/// For targets that have no such instruction: to nearest, ties to even, and NaN stays NaN.
pub(in crate::emit::cuda) static FLOAT_TO_BF16_BY_INTEGERS: Helper = Helper {
    needs: &[&BF16],
    text: "\
__device__ __forceinline__ bf16 float_to_bf16(float x) {
    const unsigned bits = __float_as_uint(x);
    return x == x ? (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16 : 0x7fffu;
}",
};

pub(in crate::emit::cuda) static F16_TO_FLOAT: Helper = Helper {
    needs: &[&F16],
    text: r#"__device__ __forceinline__ float f16_to_float(f16 x) {
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
    return y;
}"#,
};

pub(in crate::emit::cuda) static FLOAT_TO_F16: Helper = Helper {
    needs: &[&F16],
    text: r#"__device__ __forceinline__ f16 float_to_f16(float x) {
    f16 y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
    return y;
}"#,
};

pub(in crate::emit::cuda) static TO_DOUBLE2: Helper = Helper {
    needs: &[],
    text: "__device__ __forceinline__ double2 to_double2(float2 a) { return make_double2(a.x, a.y); }",
};

pub(in crate::emit::cuda) static TO_FLOAT2: Helper = Helper {
    needs: &[],
    text: "\
__device__ __forceinline__ float2 to_float2(double2 a) { return make_float2((float)a.x, (float)a.y); }",
};

pub(in crate::emit::cuda) static SET_HALF: Helper = Helper {
    needs: &[],
    text: "\
// Puts a 16-bit element into the lower (0) or upper (1) half of a pair.
__device__ __forceinline__ void set_half(unsigned& pair, int half, unsigned short x) {
    pair = half == 0 ? (pair & 0xffff0000u) | x : (pair & 0x0000ffffu) | (unsigned)x << 16;
}",
};
