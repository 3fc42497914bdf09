// Errors, and launches that are recorded in a graph, which is replayed: what a call costs besides its kernels is as little as can be.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

inline void check(cudaError_t error, int line = __builtin_LINE()) {
    if (error == cudaSuccess) return;
    printf("failed at line %d: %s\n", line, cudaGetErrorString(error));
    exit(1);
}

// So many calls one after another on a stream; `call(number)` launches one. Kernels that it launches have to be loaded already (CUDA_MODULE_LOADING=EAGER).
template <class Call> cudaGraphExec_t recorded(cudaStream_t stream, int calls, Call call) {
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int number = 0; number < calls; ++number) {
        call(number);
        check(cudaGetLastError());
    }
    check(cudaStreamEndCapture(stream, &graph));
    check(cudaGraphInstantiate(&executable, graph, 0));
    check(cudaGraphDestroy(graph));
    return executable;
}
