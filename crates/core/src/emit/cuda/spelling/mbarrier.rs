//! Transaction barriers in shared memory.

use super::{Helper, barrier};

pub(in crate::emit::cuda) static INIT: Helper = Helper {
    needs: &[&barrier::SHARED_ADDRESS],
    text: r#"typedef unsigned long long mbarrier;

__device__ __forceinline__ void mbarrier_init(mbarrier* bar, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(shared_address(bar)), "r"(arrivals) : "memory");
}

// Makes initialised barriers visible to bulk copies.
__device__ __forceinline__ void mbarrier_init_fence() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}"#,
};

pub(in crate::emit::cuda) static ARRIVE: Helper = Helper {
    needs: &[&INIT],
    text: r#"__device__ __forceinline__ void mbarrier_arrive(mbarrier* bar) {
    asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" :: "r"(shared_address(bar)) : "memory");
}"#,
};

pub(in crate::emit::cuda) static ARRIVE_EXPECT: Helper = Helper {
    needs: &[&INIT],
    text: r#"// Arrives, and lets the phase also wait for `bytes` of bulk copies.
__device__ __forceinline__ void mbarrier_arrive_expect(mbarrier* bar, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;"
                 :: "r"(shared_address(bar)), "r"(bytes) : "memory");
}"#,
};

pub(in crate::emit::cuda) static WAIT: Helper = Helper {
    needs: &[&INIT],
    text: r#"// Waits until the phase of this parity is complete.
__device__ __forceinline__ void mbarrier_wait(mbarrier* bar, int parity) {
    asm volatile("{\n.reg .pred done;\n"
                 "again:\nmbarrier.try_wait.parity.acquire.cta.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n}" :: "r"(shared_address(bar)), "r"(parity) : "memory");
}"#,
};
