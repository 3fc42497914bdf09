// Kernels that in_turn.py wrote, timed in turn on one GPU: those of a group again and again, one after the other, each time after 60 ms
// of rest, three launches at a time.
//
//     ./in_turn DIRECTORY LIST ROUNDS SECONDS
//
// For each kernel: the part of the roofline by the median of ROUNDS, how often that is what the first of its group reaches, the clock of its last launch in
// GHz, registers and bytes of a thread that are kept in memory, and OTHER where its first result has other bits than that of the first of its
// group. After SECONDS no group is begun. With 0 rounds each kernel is launched once and nothing is said, for a profiler:
//
//     ncu --clock-control none -k regex:tsm --metrics sm__pipe_tensor_op_dmma_cycles_active.avg.pct_of_peak_sustained_elapsed ./in_turn . list 0 100

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <cuda.h>
#include <string>
#include <unistd.h>
#include <vector>

#include "driver.cuh"

constexpr int LAUNCHES = 3;

struct Kernel {
    std::string group, file, arguments;
    int real, blocks, threads, shared, width, registers, in_memory;
    long long length, clocks[2];
    double roofline;
    CUfunction function;
    CUdeviceptr clocks_at;
    std::vector<float> times;
    u64 bits;

    double median() const { return times[times.size() / 2] * 1e-3; }
};

template <class T> void fill_all() {
    fill_operands<T>();
    for (auto s : smalls) fill<<<64, 256>>>((T*)s, ((size_t)1 << 19) / sizeof(T));
}

static void launch(Kernel& k) {
    int length = (int)k.length, small = 0;
    const double one[2] = {1, 0}, zero[2] = {0, 0};
    const float one_f32[2] = {1, 0}, zero_f32[2] = {0, 0};
    bool yes = true;
    std::vector<void*> v;
    for (char c : k.arguments) {
        switch (c) {
        case 'i': v.push_back(&length); break;
        case 'l': v.push_back(&k.length); break;
        case 'w': v.push_back(&k.width); break;
        case 'y': v.push_back(&yes); break;
        case 'p': v.push_back(k.real == 8 ? (void*)one : (void*)one_f32); break;
        case 'q': v.push_back(k.real == 8 ? (void*)zero : (void*)zero_f32); break;
        case 'a': v.push_back(&a); break;
        case 'b':
        case 'o': v.push_back(&b); break;
        default: v.push_back(&smalls[small++]);
        }
    }
    CHECK(cuLaunchKernel(k.function, k.blocks, 1, 1, k.threads, 1, 1, k.shared, 0, v.data(), 0));
}

static void load(Kernel& k, const std::string& directory, const char* name) {
    CUmodule module;
    size_t bytes;
    CHECK(cuModuleLoad(&module, (directory + "/" + k.file + ".cubin").c_str()));
    CHECK(cuModuleGetFunction(&k.function, module, name));
    CHECK(cuModuleGetGlobal(&k.clocks_at, &bytes, module, "clocks"));
    CHECK(cuFuncSetAttribute(k.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, k.shared));
    CHECK(cuFuncGetAttribute(&k.registers, CU_FUNC_ATTRIBUTE_NUM_REGS, k.function));
    CHECK(cuFuncGetAttribute(&k.in_memory, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, k.function));
}

// The bits of what it stores, as one number; what was there before is zero.
static u64 bits_of(Kernel& k) {
    const bool long_result = k.arguments.find('o') != std::string::npos;
    if (long_result) cudaMemset(b, 0, OPERAND);
    else for (auto s : smalls) cudaMemset(s, 0, SMALL);
    launch(k);
    return long_result ? hash_of(&b, 1, OPERAND) : hash_of(smalls, SMALLS, SMALL);
}

int main(int argc, char** argv) {
    if (argc < 5) {
        printf("usage: in_turn DIRECTORY LIST ROUNDS SECONDS\n");
        return 1;
    }
    begin();
    const std::string directory = argv[1];
    const int rounds = atoi(argv[3]), seconds = atoi(argv[4]);
    std::vector<Kernel> kernels;
    char group[100], file[100], name[200], letters[20];
    Kernel k;
    FILE* list = fopen(argv[2], "r");
    if (!list) {
        printf("%s cannot be read\n", argv[2]);
        return 1;
    }
    while (fscanf(list, "%99s %99s %199s %d %lld %d %d %d %19s %d %lf", group, file, name, &k.real, &k.length, &k.blocks,
                          &k.threads, &k.shared, letters, &k.width, &k.roofline) == 11) {
        k.group = group, k.file = file, k.arguments = letters;
        load(k, directory, name);
        kernels.push_back(k);
    }
    const time_t start = time(0);
    for (size_t first = 0, last; first < kernels.size(); first = last) {
        for (last = first; last < kernels.size() && kernels[last].group == kernels[first].group;) ++last;
        if (time(0) - start > seconds) {
            printf("time is up at %s\n", kernels[first].group.c_str());
            break;
        }
        if (kernels[first].real == 8) fill_all<double>();
        else fill_all<float>();
        for (size_t i = first; i < last; ++i) kernels[i].bits = bits_of(kernels[i]);
        for (int round = 0; round < rounds; ++round) {
            for (size_t i = first; i < last; ++i) {
                cudaDeviceSynchronize();
                usleep(60000);
                kernels[i].times.push_back(timed(LAUNCHES, kernels[i].file.c_str(), [&] { launch(kernels[i]); }));
                CHECK(cuMemcpyDtoH(kernels[i].clocks, kernels[i].clocks_at, sizeof kernels[i].clocks));
            }
        }
        for (size_t i = first; rounds && i < last; ++i) {
            Kernel& k = kernels[i];
            std::sort(k.times.begin(), k.times.end());
            printf("%-12s %-6s %.3f  x%.3f  %.3f GHz  %3d registers, %d bytes in memory%s\n", k.group.c_str(), k.file.c_str(),
                   k.roofline / k.median(), kernels[first].times[rounds / 2] / k.times[rounds / 2], (double)k.clocks[0] / k.clocks[1], k.registers,
                   k.in_memory, k.bits == kernels[first].bits ? "" : "  OTHER");
        }
        fflush(stdout);
    }
}
