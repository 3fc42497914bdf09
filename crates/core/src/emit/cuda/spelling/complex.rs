//! Complex arithmetic on `float2` and `double2`, real part first.

use super::{Helper, barrier};

/// The functions of one complex type.
#[derive(Debug)]
pub(in crate::emit::cuda) struct Complex {
    /// `a + b`
    pub(in crate::emit::cuda) add: Helper,
    /// `a - b`
    pub(in crate::emit::cuda) sub: Helper,
    /// `a b`
    pub(in crate::emit::cuda) mul: Helper,
    /// `a b + c`
    pub(in crate::emit::cuda) fma: Helper,
    /// `a / b`
    pub(in crate::emit::cuda) div: Helper,
    /// `-a`
    pub(in crate::emit::cuda) neg: Helper,
    /// The product with the imaginary unit.
    pub(in crate::emit::cuda) times_i: Helper,
    /// The complex conjugate.
    pub(in crate::emit::cuda) conj: Helper,
}

pub(in crate::emit::cuda) static FLOAT2: Complex = Complex {
    add: Helper {
        needs: &[],
        text: "\
__device__ __forceinline__ float2 cadd(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }",
    },
    sub: Helper {
        needs: &[],
        text: "\
__device__ __forceinline__ float2 csub(float2 a, float2 b) { return make_float2(a.x - b.x, a.y - b.y); }",
    },
    mul: Helper {
        needs: &[],
        text: "\
__device__ __forceinline__ float2 cmul(float2 a, float2 b) {
    return make_float2(a.x*b.x - a.y*b.y, a.x*b.y + a.y*b.x);
}",
    },
    fma: Helper {
        needs: &[],
        text: "\
// a b + c in four fused multiply-adds
__device__ __forceinline__ float2 cfma(float2 a, float2 b, float2 c) {
    return make_float2(fmaf(-a.y, b.y, fmaf(a.x, b.x, c.x)), fmaf(a.y, b.x, fmaf(a.x, b.y, c.y)));
}",
    },
    div: Helper {
        needs: &[],
        text: "\
__device__ __forceinline__ float2 cdiv(float2 a, float2 b) {
    const float s = 1.0f/(b.x*b.x + b.y*b.y);
    return make_float2((a.x*b.x + a.y*b.y)*s, (a.y*b.x - a.x*b.y)*s);
}",
    },
    neg: Helper {
        needs: &[],
        text: "__device__ __forceinline__ float2 cneg(float2 a) { return make_float2(-a.x, -a.y); }",
    },
    conj: Helper {
        needs: &[],
        text: "__device__ __forceinline__ float2 conj(float2 a) { return make_float2(a.x, -a.y); }",
    },
    times_i: Helper {
        needs: &[],
        text: "__device__ __forceinline__ float2 times_i(float2 a) { return make_float2(-a.y, a.x); }",
    },
};

pub(in crate::emit::cuda) static DOUBLE2: Complex = Complex {
    add: Helper {
        needs: &[],
        text: "\
__device__ __forceinline__ double2 cadd(double2 a, double2 b) { return make_double2(a.x + b.x, a.y + b.y); }",
    },
    sub: Helper {
        needs: &[],
        text: "\
__device__ __forceinline__ double2 csub(double2 a, double2 b) { return make_double2(a.x - b.x, a.y - b.y); }",
    },
    mul: Helper {
        needs: &[],
        text: "\
__device__ __forceinline__ double2 cmul(double2 a, double2 b) {
    return make_double2(a.x*b.x - a.y*b.y, a.x*b.y + a.y*b.x);
}",
    },
    fma: Helper {
        needs: &[],
        text: "\
// a b + c in four fused multiply-adds
__device__ __forceinline__ double2 cfma(double2 a, double2 b, double2 c) {
    return make_double2(fma(-a.y, b.y, fma(a.x, b.x, c.x)), fma(a.y, b.x, fma(a.x, b.y, c.y)));
}",
    },
    div: Helper {
        needs: &[],
        text: "\
__device__ __forceinline__ double2 cdiv(double2 a, double2 b) {
    const double s = 1.0/(b.x*b.x + b.y*b.y);
    return make_double2((a.x*b.x + a.y*b.y)*s, (a.y*b.x - a.x*b.y)*s);
}",
    },
    neg: Helper {
        needs: &[],
        text: "__device__ __forceinline__ double2 cneg(double2 a) { return make_double2(-a.x, -a.y); }",
    },
    conj: Helper {
        needs: &[],
        text: "__device__ __forceinline__ double2 conj(double2 a) { return make_double2(a.x, -a.y); }",
    },
    times_i: Helper {
        needs: &[],
        text: "__device__ __forceinline__ double2 times_i(double2 a) { return make_double2(-a.y, a.x); }",
    },
};

pub(in crate::emit::cuda) static LOAD_PARTS: Helper = Helper {
    needs: &[&barrier::SHARED_ADDRESS],
    text: r#"// Loads the parts of a number in shared memory one by one, so that each may go where an instruction wants it.
__device__ __forceinline__ double2 load_parts(const double2* p) {
    double2 v;
    asm volatile("ld.volatile.shared.f64 %0, [%2];\n\tld.volatile.shared.f64 %1, [%2 + 8];"
                 : "=d"(v.x), "=d"(v.y) : "r"(shared_address(p)));
    return v;
}"#,
};
