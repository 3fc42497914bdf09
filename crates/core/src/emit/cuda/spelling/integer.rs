//! Integer division other than C's.

use super::Helper;

pub(in crate::emit::cuda) static CEIL_DIV: Helper = Helper {
    needs: &[],
    text: "__device__ __forceinline__ int ceil_div(int a, int b) { return (a + b - 1)/b; }",
};

pub(in crate::emit::cuda) static OPAQUE: Helper = Helper {
    needs: &[],
    text: "\
// The number itself, of which the compiler knows nothing. Where NVRTC 13.0 knows that k has few values, it takes the
// constants in 16*((k + 1)%3) out of an address as if k + 1 could not reach 3.
__device__ __forceinline__ int opaque(int x) { asm(\"\" : \"+r\"(x)); return x; }",
};

pub(in crate::emit::cuda) static FLOOR_DIV: Helper = Helper {
    needs: &[],
    text: "\
// The quotient rounded down, also for negative a.
__device__ __forceinline__ int floor_div(int a, int b) { return a/b - (a%b < 0); }
__device__ __forceinline__ long long floor_div(long long a, int b) { return a/b - (a%b < 0); }",
};

pub(in crate::emit::cuda) static FLOOR_MOD: Helper = Helper {
    needs: &[],
    text: "\
// The remainder that is never negative.
__device__ __forceinline__ int floor_mod(int a, int b) { return a%b < 0 ? a%b + b : a%b; }
__device__ __forceinline__ int floor_mod(long long a, int b) { return (int)(a%b < 0 ? a%b + b : a%b); }",
};
