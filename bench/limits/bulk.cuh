// Barriers of shared memory, and bulk copies that report to them.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

__device__ __forceinline__ unsigned at(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

__device__ __forceinline__ void init(uint64_t* barrier, int count) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at(barrier)), "r"(count) : "memory");
}
__device__ __forceinline__ void arrive(uint64_t* barrier) {
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(at(barrier)) : "memory");
}
__device__ __forceinline__ void expect(uint64_t* barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(at(barrier)), "r"(bytes) : "memory");
}
__device__ __forceinline__ void wait(uint64_t* barrier, int parity) {
    asm volatile("{\n.reg .pred over;\nagain:\nmbarrier.try_wait.parity.shared.b64 over, [%0], %1;\n@!over bra again;\n}"
                 ::"r"(at(barrier)), "r"(parity) : "memory");
}
__device__ __forceinline__ void bring(void* to, const void* from, int bytes, uint64_t* barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(at(to)), "l"(from), "r"(bytes), "r"(at(barrier)) : "memory");
}

// A place in a ring, and whether the ring was passed an odd number of times.
struct Place {
    int stage = 0, parity = 0;
    __device__ __forceinline__ void next(int stages) {
        if (++stage == stages) stage = 0, parity ^= 1;
    }
};

// Bulk copies from shared memory, each a group of its own; at most so many of them may still be read.
__device__ __forceinline__ void take(void* to, const void* from, int bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\ncp.async.bulk.commit_group;"
                 ::"l"(to), "r"(at(from)), "r"(bytes) : "memory");
}
template <int MOST> __device__ __forceinline__ void wait_for_reads() { asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(MOST) : "memory"); }
__device__ __forceinline__ void wait_for_writes() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

// What a thread does that asks for groups of rows and takes them to `c` as they came: `ask` asks for the next one, if there is one. What is asked for is ahead of
// what is taken by all places of the ring but two, so that two are being taken.
template <class Ask> __device__ __forceinline__ void carry(char* c, const char* ring, uint64_t* full, int groups, int bytes, int stages, Ask ask) {
    for (int s = 0; s < stages - 2; ++s) ask();
    Place from;
    for (int g = blockIdx.x; g < groups; g += gridDim.x) {
        wait(&full[from.stage], from.parity);
        take(c + size_t(g) * bytes, ring + from.stage * bytes, bytes);
        from.next(stages);
        wait_for_reads<2>();
        ask();
    }
    wait_for_writes();
}
