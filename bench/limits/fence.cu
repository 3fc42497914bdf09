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
    begin();
    std::string directory = argv[1];
    const int rounds = atoi(argv[3]), launches = atoi(argv[4]), seconds = atoi(argv[5]);
    std::vector<Kernel> kernels;
    Kernel k;
    char file[100], name[200];
    FILE* list = fopen(argv[2], "r");
    if (!list) {
        printf("%s cannot be read\n", argv[2]);
        return 1;
    }
    while (fscanf(list, "%99s %199s %d %d %d %d %d %d %lf", file, name, &k.real, &k.rows, &k.blocks, &k.threads,
                          &k.shared, &k.arguments, &k.roofline) == 9) {
        k.file = file;
        CUmodule module;
        CHECK(cuModuleLoad(&module, (directory + "/" + file + ".cubin").c_str()));
        CHECK(cuModuleGetFunction(&k.function, module, name));
        CHECK(cuFuncSetAttribute(k.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, k.shared));
        kernels.push_back(k);
    }
    const time_t start = time(0);
    int filled = 0;
    for (size_t i = 0; i + 1 < kernels.size(); i += 2) {
        if (time(0) - start > seconds) {
            printf("time is up at pair %zu of %zu\n", i / 2, kernels.size() / 2);
            break;
        }
        if (filled != kernels[i].real) {
            filled = kernels[i].real;
            if (filled == 8) fill_operands<double>();
            else fill_operands<float>();
        }
        for (int round = 0; round <= rounds; ++round)
            for (int form = 0; form < 2; ++form) {
                Kernel& k = kernels[i + form];
                void* arguments[] = {&k.rows, &a, &b, &smalls[0], &smalls[1], &smalls[2]};
                auto launch = [&] {
                    CHECK(cuLaunchKernel(k.function, k.blocks, 1, 1, k.threads, 1, 1, k.shared, 0, arguments, 0));
                };
                auto bits = [&] { return hash_of(smalls, k.arguments - 3, SMALL); };
                if (round == 0)
                    for (auto s : smalls) cudaMemset(s, 0, SMALL);
                cudaDeviceSynchronize();
                if (round) usleep(100000);
                const float milliseconds = timed(round ? 3 : 1, k.file.c_str(), launch);
                if (round) k.times.push_back(milliseconds);
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
