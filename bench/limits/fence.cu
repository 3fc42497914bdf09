// What the fence before a slot of a ring is given back costs, and what happens without it: pairs of kernels that fence.py wrote are
// timed in turn, and launched again and again on the same operands, and each result is compared with the first bit by bit.
//
//     ./fence DIRECTORY LIST ROUNDS LAUNCHES SECONDS
//
// For each pair: the part of the roofline without and with the fence (medians of ROUNDS times three launches, each time after 0.1 s of
// rest; the second pass is not part of it), whether the first results are the same, and how many of LAUNCHES had other parts of C than the first
// launch. After SECONDS no pair is begun. How to make DIRECTORY and LIST is in fence.py; what was found is in
// bench/results/h200-2026-11-28-the-fence-and-tiles-left-out.txt.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <cuda.h>
#include <string>
#include <unistd.h>
#include <vector>

#include "driver.cuh"

struct Kernel {
    std::string file;
    int real, rows, blocks, threads, shared, arguments;
    double roofline;
    CUfunction function;
    std::vector<float> times;
    u64 first = 0;
    int others = 0;

    double median() const { return times[times.size() / 2] * 1e-3; }
};

int main(int argc, char** argv) {
    if (argc < 6) {
        printf("usage: fence DIRECTORY LIST ROUNDS LAUNCHES SECONDS\n");
        return 1;
    }
    cudaSetDevice(0);
    cudaFree(0);
    std::string directory = argv[1];
    const int rounds = atoi(argv[3]), launches = atoi(argv[4]), seconds = atoi(argv[5]);
    std::vector<Kernel> kernels;
    Kernel k;
    char file[100], name[200];
    FILE* list = fopen(argv[2], "r");
    while (list && fscanf(list, "%99s %199s %d %d %d %d %d %d %lf", file, name, &k.real, &k.rows, &k.blocks, &k.threads,
                          &k.shared, &k.arguments, &k.roofline) == 9) {
        k.file = file;
        CUmodule module;
        CHECK(cuModuleLoad(&module, (directory + "/" + file + ".cubin").c_str()));
        CHECK(cuModuleGetFunction(&k.function, module, name));
        CHECK(cuFuncSetAttribute(k.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, k.shared));
        kernels.push_back(k);
    }
    const size_t operand = ((size_t)1 << 31) + (1 << 20), parts = (size_t)1 << 27;
    void *a, *b, *slices[3];
    u64* sum;
    cudaMalloc(&a, operand);
    cudaMalloc(&b, operand);
    for (auto& s : slices) cudaMalloc(&s, parts);
    cudaMalloc(&sum, 8);
    cudaEvent_t begin, end;
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    cudaDeviceProp device;
    cudaGetDeviceProperties(&device, 0);
    printf("%s\n", device.name);
    const time_t start = time(0);
    int filled = 0;
    for (size_t i = 0; i + 1 < kernels.size(); i += 2) {
        if (time(0) - start > seconds) {
            printf("time is up at pair %zu of %zu\n", i / 2, kernels.size() / 2);
            break;
        }
        if (filled != kernels[i].real) {
            filled = kernels[i].real;
            if (filled == 8) {
                fill<<<2048, 256>>>((double*)a, operand / 8);
                fill<<<2048, 256>>>((double*)b, operand / 8 - 12345);
            } else {
                fill<<<2048, 256>>>((float*)a, operand / 4);
                fill<<<2048, 256>>>((float*)b, operand / 4 - 12345);
            }
        }
        for (int round = 0; round <= rounds; ++round)
            for (int form = 0; form < 2; ++form) {
                Kernel& k = kernels[i + form];
                void* arguments[] = {&k.rows, &a, &b, &slices[0], &slices[1], &slices[2]};
                auto launch = [&] {
                    CHECK(cuLaunchKernel(k.function, k.blocks, 1, 1, k.threads, 1, 1, k.shared, 0, arguments, 0));
                };
                auto bits = [&] {
                    u64 found = 0;
                    cudaMemset(sum, 0, 8);
                    for (int s = 0; s < k.arguments - 3; ++s) hash<<<512, 256>>>((unsigned*)slices[s], sum, parts / 4);
                    cudaMemcpy(&found, sum, 8, cudaMemcpyDeviceToHost);
                    return found;
                };
                if (round == 0)
                    for (auto s : slices) cudaMemset(s, 0, parts);
                cudaDeviceSynchronize();
                if (round) usleep(100000);
                const int times = round ? 3 : 1;
                cudaEventRecord(begin);
                for (int n = 0; n < times; ++n) launch();
                cudaEventRecord(end);
                if (cudaError_t error = cudaDeviceSynchronize()) {
                    printf("%s failed: %s\n", k.file.c_str(), cudaGetErrorString(error));
                    return 1;
                }
                float ms;
                cudaEventElapsedTime(&ms, begin, end);
                if (round) k.times.push_back(ms / times);
                if (round == 0) k.first = bits();
                if (round == rounds) {
                    for (int n = 0; n < launches; ++n) {
                        launch();
                        k.others += bits() != k.first;
                    }
                    std::sort(k.times.begin(), k.times.end());
                }
            }
        const Kernel &without = kernels[i], &with = kernels[i + 1];
        printf("%s %.3f -> %.3f  x%.3f %s  others of %d: %d without, %d with\n", without.file.c_str(),
               without.roofline / without.median(), with.roofline / with.median(), without.median() / with.median(),
               without.first == with.first ? "same" : "DIFFERENT", launches, without.others, with.others);
        fflush(stdout);
    }
}
