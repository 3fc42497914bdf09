/* Answers questions about occupancy with NVIDIA's cuda_occupancy.h, which is not part of this project: the test that
 * compiles this file says where the header is. Standard input holds one `struct question` after another, standard output
 * gets one `struct answer` for each. */
#include <limits.h>
#include <stdio.h>

#include "cuda_occupancy.h"

struct question {
    /* The device. */
    int major, minor;
    int threads_per_sm, registers_per_block, registers_per_sm;
    int shared_per_sm, shared_opt_in, shared_reserved;
    /* The kernel. */
    int threads, registers, shared_static, shared_dynamic, barriers, opted_in;
    /* The preferred split: per cent of the largest carve-out or -1, and the older preference of caches. */
    int carveout, cache;
};

struct answer {
    int status;
    int blocks;
    int by_warps, by_registers, by_shared, by_blocks, by_barriers;
    int limiters;
    int registers_of_block, shared_of_block;
};

int main(void) {
    struct question q;
    while (fread(&q, sizeof q, 1, stdin) == 1) {
        cudaOccDeviceProp device = {0};
        cudaOccFuncAttributes kernel = {0};
        cudaOccDeviceState state = {0};
        cudaOccResult result = {0};
        struct answer a = {0};

        device.computeMajor = q.major;
        device.computeMinor = q.minor;
        device.maxThreadsPerBlock = 1024;
        device.maxThreadsPerMultiprocessor = q.threads_per_sm;
        device.regsPerBlock = q.registers_per_block;
        device.regsPerMultiprocessor = q.registers_per_sm;
        device.warpSize = 32;
        device.sharedMemPerBlock = 48 * 1024;
        device.sharedMemPerMultiprocessor = (size_t)q.shared_per_sm;
        device.numSms = 1;
        device.sharedMemPerBlockOptin = (size_t)q.shared_opt_in;
        device.reservedSharedMemPerBlock = (size_t)q.shared_reserved;

        kernel.maxThreadsPerBlock = INT_MAX;
        kernel.numRegs = q.registers;
        kernel.sharedSizeBytes = (size_t)q.shared_static;
        kernel.partitionedGCConfig = PARTITIONED_GC_OFF;
        kernel.shmemLimitConfig = q.opted_in ? FUNC_SHMEM_LIMIT_OPTIN : FUNC_SHMEM_LIMIT_DEFAULT;
        kernel.maxDynamicSharedSizeBytes = (size_t)q.shared_dynamic;
        kernel.numBlockBarriers = q.barriers;

        state.carveoutConfig = q.carveout;
        state.cacheConfig = (cudaOccCacheConfig)q.cache;

        a.status = (int)cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state, q.threads,
                                                                (size_t)q.shared_dynamic);
        a.blocks = result.activeBlocksPerMultiprocessor;
        a.by_warps = result.blockLimitWarps;
        a.by_registers = result.blockLimitRegs;
        a.by_shared = result.blockLimitSharedMem;
        a.by_blocks = result.blockLimitBlocks;
        a.by_barriers = result.blockLimitBarriers;
        a.limiters = (int)result.limitingFactors;
        a.registers_of_block = result.allocatedRegistersPerBlock;
        a.shared_of_block = (int)result.allocatedSharedMemPerBlock;
        if (fwrite(&a, sizeof a, 1, stdout) != 1) return 1;
    }
    return 0;
}
