//! Sums along the blocks of an ordered launch.

use super::Helper;

/// Each block publishes first its own total, then the sum up to and including itself; a block adds the totals of
/// those before it until it meets one that has already published its sum (decoupled look-back).
pub(in crate::emit::cuda) static CHAINED_SUM: Helper = Helper {
    needs: &[],
    text: r#"// The state of a block's link in its upper half, a value in its lower half.
enum : unsigned { NOTHING = 0, TOTAL = 1, SUM = 2 };

__device__ __forceinline__ unsigned long long link_load(const unsigned long long* p) {
    unsigned long long link;
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(link) : "l"(p) : "memory");
    return link;
}

__device__ __forceinline__ void link_store(unsigned long long* p, unsigned state, unsigned bits) {
    asm volatile("st.release.gpu.global.u64 [%0], %1;"
                 :: "l"(p), "l"((unsigned long long)state << 32 | bits) : "memory");
}

// The sum of the totals of blocks 0 to b - 1, to every lane of the warp that calls it; link[b] is this block's.
template <class T> __device__ T chained_sum(T total, unsigned long long* link, int b) {
    const int lane = threadIdx.x%32;
    T before = 0;
    if (b > 0) {
        if (lane == 0) link_store(link, TOTAL, *(unsigned*)&total);
        for (int back = 1 + lane;; back += 32) {
            unsigned long long seen;
            do {
                seen = back <= b ? link_load(link - back) : (unsigned long long)SUM << 32;
            } while (__any_sync(~0u, seen >> 32 == NOTHING));
            const unsigned sums = __ballot_sync(~0u, seen >> 32 == SUM);
            const unsigned bits = sums != 0 && lane >= __ffs(sums) ? 0u : (unsigned)seen;
            T part = *(const T*)&bits;
            #pragma unroll
            for (int d = 16; d > 0; d /= 2) part += __shfl_xor_sync(~0u, part, d);
            before += part;
            if (sums != 0) break;
        }
    }
    const T sum = before + total;
    if (lane == 0) link_store(link, SUM, *(const unsigned*)&sum);
    return before;
}"#,
};
