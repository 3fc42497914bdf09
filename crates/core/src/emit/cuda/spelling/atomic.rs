//! Atomic reductions that CUDA has no function for: two parts, or compare and swap until nobody interfered.

use super::{Helper, convert};

pub(in crate::emit::cuda) static ADD_C64: Helper = Helper {
    needs: &[],
    text: "\
__device__ __forceinline__ void atomic_add(float2* p, float2 x) {
    atomicAdd(&p->x, x.x);
    atomicAdd(&p->y, x.y);
}",
};

pub(in crate::emit::cuda) static ADD_C128: Helper = Helper {
    needs: &[],
    text: "\
__device__ __forceinline__ void atomic_add(double2* p, double2 x) {
    atomicAdd(&p->x, x.x);
    atomicAdd(&p->y, x.y);
}",
};

pub(in crate::emit::cuda) static ADD_BF16: Helper = Helper {
    needs: &[&convert::BF16_TO_FLOAT],
    text: "\
__device__ __forceinline__ void atomic_add_bf16(bf16* p, bf16 x) {
    for (bf16 seen = *p, old;; seen = old) {
        old = atomicCAS(p, seen, float_to_bf16(bf16_to_float(seen) + bf16_to_float(x)));
        if (old == seen) return;
    }
}",
};

pub(in crate::emit::cuda) static ADD_F16: Helper = Helper {
    needs: &[&convert::F16_TO_FLOAT, &convert::FLOAT_TO_F16],
    text: "\
__device__ __forceinline__ void atomic_add_f16(f16* p, f16 x) {
    for (f16 seen = *p, old;; seen = old) {
        old = atomicCAS(p, seen, float_to_f16(f16_to_float(seen) + f16_to_float(x)));
        if (old == seen) return;
    }
}",
};

pub(in crate::emit::cuda) static MAX_F32: Helper = Helper {
    needs: &[],
    text: "\
__device__ __forceinline__ void atomic_max(float* p, float x) {
    for (int seen = __float_as_int(*p), old; __int_as_float(seen) < x; seen = old) {
        old = atomicCAS((int*)p, seen, __float_as_int(x));
        if (old == seen) return;
    }
}",
};

pub(in crate::emit::cuda) static MIN_F32: Helper = Helper {
    needs: &[],
    text: "\
__device__ __forceinline__ void atomic_min(float* p, float x) {
    for (int seen = __float_as_int(*p), old; __int_as_float(seen) > x; seen = old) {
        old = atomicCAS((int*)p, seen, __float_as_int(x));
        if (old == seen) return;
    }
}",
};

pub(in crate::emit::cuda) static MAX_F64: Helper = Helper {
    needs: &[],
    text: "\
__device__ __forceinline__ void atomic_max(double* p, double x) {
    for (unsigned long long seen = __double_as_longlong(*p), old; __longlong_as_double(seen) < x; seen = old) {
        old = atomicCAS((unsigned long long*)p, seen, (unsigned long long)__double_as_longlong(x));
        if (old == seen) return;
    }
}",
};

pub(in crate::emit::cuda) static MIN_F64: Helper = Helper {
    needs: &[],
    text: "\
__device__ __forceinline__ void atomic_min(double* p, double x) {
    for (unsigned long long seen = __double_as_longlong(*p), old; __longlong_as_double(seen) > x; seen = old) {
        old = atomicCAS((unsigned long long*)p, seen, (unsigned long long)__double_as_longlong(x));
        if (old == seen) return;
    }
}",
};
