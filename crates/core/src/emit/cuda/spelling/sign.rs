//! Signs that depend on a condition. To the compiler `c ? -x : x` of doubles is a subtraction and two choices; a bit that
//! is turned is one operation on integers, and where the condition is a lane's own all of it but that one stands before
//! the loop.

use super::Helper;

pub(in crate::emit::cuda) static NEGATED_IF_F64: Helper = Helper {
    needs: &[],
    text: "\
// negative ? -x : x
__device__ __forceinline__ double negated_if(bool negative, double x) {
    return __longlong_as_double(__double_as_longlong(x) ^ (negative ? 1ll << 63 : 0ll));
}",
};

pub(in crate::emit::cuda) static NEGATED_IF_F32: Helper = Helper {
    needs: &[],
    text: "\
// negative ? -x : x
__device__ __forceinline__ float negated_if(bool negative, float x) {
    return __int_as_float(__float_as_int(x) ^ (negative ? 0x80000000 : 0));
}",
};
