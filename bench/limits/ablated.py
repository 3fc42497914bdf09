#!/usr/bin/env python3
"""What parts of the kernels that ship cost: the same kernels with these parts taken out.

    python3 bench/limits/ablated.py target/release/warpwright [PRODUCT]... [--emit DIRECTORY]

f32:49 is A^T B in f32 of 49 columns (A^H B where numbers are complex), f32:32/40 A C in f32 of 32 columns whose rows, and those of C, stand 40
elements apart. The kernel that `gemm` would choose for an H200 is taken as CUDA C, and once more without

    copies            to shared memory and waits for them (A^T B): it multiplies what lies there, numbers between -1 and 1. No kernel of that form can
                      pass it, however memory is read
    products          of matrix units (A C): what is stored is not the product, but all else is done, apart from reads that only they need
    the small matrix  (A C): shared memory has one element of it everywhere

All are compiled by NVRTC, as the kernels that ship are (nvcc gives some of them other registers: one had 134 instead of 104, and took 1.07 times
as long), and timed in turn on one GPU, with 2 GiB from the first to the last row of each long operand: the median of 15 launches of the first kernel, three
at a time behind a pause of 0.1 s. P is the most that cuBLAS reaches in products of that type on an H200, 53.6 and 56.4 TFLOP/s. Needs nvcc and a GPU, for
--emit, which writes the programs, neither.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PRODUCTS = ["f32:49", "f32:50", "c64:25", "c64:34", "c64:37", "c64:49", "c64:52", "c128:33", "c128:36", "c128:37", "c128:40"]
PRODUCTS += ["f32:24/32", "f32:32/40", "c64:24/25", "c128:24/25", "c128:24/27", "c128:32/33"]
BYTES = {"f32": 4, "f64": 8, "c64": 8, "c128": 16}
NUMBER = {"f32": "float", "f64": "double", "c64": "float2", "c128": "double2"}
ONE = {"f32": "1.0f", "f64": "1.0", "c64": "make_float2(1, 0)", "c128": "make_double2(1, 0)"}
MOST = {"f32": 53.6, "c64": 53.6, "f64": 56.4, "c128": 56.4}
OPERAND = 2 << 30
# What brings rows to shared memory, and what waits for it. Each stays a barrier for the compiler, which else would read them once.
COPIES = r"bulk_copy\w*|cp_async\d+\w*|mbarrier_wait|mbarrier_arrive\w*"
BARRIER = '{ asm volatile("" ::: "memory"); }'
PRODUCTS_OF_UNITS = r"mma_m\d+n\d+k\d+_(?:tf32|f64)"

BEGIN = r"""
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cuda.h>
#include <nvrtc.h>
#include <string>
#include <thread>
#include <vector>
__global__ void fill(unsigned* to, size_t n, bool doubles) {
    for (size_t i = blockIdx.x*(size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x*blockDim.x) {
        unsigned h = (unsigned)i*2654435761u;
        h = (h ^ h >> 15)*2246822519u;
        const float x = (int)(h ^ h >> 13)*4.6e-10f;
        if (doubles) ((double*)to)[i] = x;
        else ((float*)to)[i] = x;
    }
}
"""

END = r"""
[[maybe_unused]] static int ceil_div(int a, int b) { return (a + b - 1)/b; }
static void check(bool right, const char* what) {
    if (!right) fprintf(stderr, "%s failed\n", what), exit(1);
}
// A kernel of a text, with so much dynamic shared memory.
static CUfunction compiled(const char* text, const char* name, int room) {
    nvrtcProgram program;
    check(!nvrtcCreateProgram(&program, text, "kernel.cu", 0, nullptr, nullptr), "nvrtcCreateProgram");
    const char* options[] = {"--gpu-architecture=sm_90a", "--std=c++17"};
    const bool right = !nvrtcCompileProgram(program, 2, options);
    size_t size;
    nvrtcGetProgramLogSize(program, &size);
    std::string log(size, 0), cubin;
    nvrtcGetProgramLog(program, log.data());
    if (!right) fprintf(stderr, "%s\n", log.c_str()), exit(1);
    nvrtcGetCUBINSize(program, &size);
    cubin.resize(size);
    nvrtcGetCUBIN(program, cubin.data());
    CUmodule module;
    CUfunction kernel;
    check(!cuModuleLoadData(&module, cubin.data()), "cuModuleLoadData");
    check(!cuModuleGetFunction(&kernel, module, name), "cuModuleGetFunction");
    check(!cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, room), "cuFuncSetAttribute");
    return kernel;
}
int main() {
    void *a, *b, *c;
    const size_t bytes = BYTES_OF_OPERAND;
    cudaDeviceSetLimit(cudaLimitMaxL2FetchGranularity, GRANULARITY);
    cudaMalloc(&a, bytes); cudaMalloc(&b, bytes); cudaMalloc(&c, bytes);
    for (void* each : {a, b, c}) fill<<<1024, 256>>>((unsigned*)each, bytes/(DOUBLES ? 8 : 4), DOUBLES);
    cudaEvent_t events[2];
    for (auto& event : events) cudaEventCreate(&event);
    std::vector<CUfunction> kernels;
    for (const char* text : texts) kernels.push_back(compiled(text, "KERNEL", ROOM));
DECLARATIONS
    void* arguments[] = {ADDRESSES};
    const auto launch = [&](CUfunction kernel) {
        check(!cuLaunchKernel(kernel, GRID, 1, 1, THREADS, 1, 1, ROOM, nullptr, arguments, nullptr), "cuLaunchKernel");
    };
    std::vector<std::vector<float>> times(kernels.size());
    for (int round = 0; round < 5; ++round) {
        for (size_t i = 0; i < kernels.size(); ++i) {
            check(!cudaDeviceSynchronize(), "a launch");
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
            launch(kernels[i]);
            for (int each = 0; each < 3; ++each) {
                cudaEventRecord(events[0]);
                launch(kernels[i]);
                cudaEventRecord(events[1]);
                cudaEventSynchronize(events[1]);
                float ms;
                cudaEventElapsedTime(&ms, events[0], events[1]);
                times[i].push_back(ms);
            }
        }
    }
    check(!cudaDeviceSynchronize(), "a launch");
    for (size_t i = 0; i < kernels.size(); ++i) {
        int registers;
        cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, kernels[i]);
        std::sort(times[i].begin(), times[i].end());
        printf("%.6f %d\n", times[i][times[i].size()/2], registers);
    }
}
"""


class Product:
    """A product that somebody named."""

    def __init__(self, text):
        found = re.fullmatch(r"(f32|f64|c64|c128):(\d+)(?:/(\d+))?", text)
        if found is None:
            raise argparse.ArgumentTypeError(f"{text} is no product; f32:49 is one of A^T B, f32:32/40 one of A C")
        self.name, self.dtype, self.width = text, found.group(1), int(found.group(2))
        self.stride = int(found.group(3) or self.width)
        self.of_rows = found.group(3) is not None
        self.rows = OPERAND // (self.stride * BYTES[self.dtype])
        if not self.of_rows:
            self.rows = self.rows // 4096 * 4096

    def words(self):
        """The arguments of the program that say it, size first."""
        if self.of_rows:
            size, layout = f"{self.rows}x{self.width}x{self.width}", "nn"
            strides = ["--lda", str(self.stride), "--ldc", str(self.stride)]
        else:
            size, layout, strides = f"{self.width}x{self.width}x{self.rows}", "cn" if self.dtype[0] == "c" else "tn", []
        return size, ["--dtype", self.dtype, "--layout", layout, *strides]

    def operations(self):
        return (8 if self.dtype[0] == "c" else 2) * self.width * self.width * self.rows

    def parts(self):
        """What is taken out, and how."""
        if self.of_rows:
            return {"products": without_products, "the small matrix": without_small}
        return {"copies": without_copies}


def say(binary, *words):
    done = subprocess.run([binary, *words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{binary} {' '.join(words)} failed: {done.stderr.strip()}")
    return done.stdout


def emitted(binary, product):
    """The CUDA text of the kernel that is chosen for an H200, and its parameters."""
    size, words = product.words()
    kernel = json.loads(say(binary, "explain", size, *words, "--gpu", "h200", "--json"))["kernel"]
    value = lambda v: str(v).lower() if isinstance(v, bool) else str(v)
    named = [f"{name}={value(v)}" for name, v in kernel["parameters"].items()]
    parameters = [word for each in named for word in ("--param", each)]
    return say(binary, "show", kernel["family"], "--size", size, *words, *parameters, "--stage", "cuda"), " ".join(named)


def emptied(text, what, functions, body):
    """The text with another body of these device functions, which do what is called so."""
    definition = re.compile(r"(__device__ __forceinline__ void (?:" + functions + r")\([^{]*\) )\{")
    out, at = "", 0
    while found := definition.search(text, at):
        end, depth = found.end(), 1
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        out += text[at : found.start()] + found.group(1) + body
        at = end
    if at == 0:
        sys.exit(f"this kernel has no {what} that could be taken out; name another product")
    return out + text[at:]


def without_products(text, _):
    return emptied(text, "products of matrix units", PRODUCTS_OF_UNITS, "{}")


def without_small(text, _):
    """One element of the small matrix everywhere, which is loaded once."""
    stored = re.compile(r"(\bBs\[[^;]*?)\b[bB]\[[^\[\];]*\](\)*;)")
    found, count = stored.subn(lambda m: f"{m.group(1)}B[0]{m.group(2)}", text)
    if count == 0:
        sys.exit("this kernel reads no small matrix")
    return found


def without_copies(text, bytes_of_shared):
    """Copies and waits taken out, and numbers in shared memory."""
    text = emptied(text, "copies to shared memory", COPIES, BARRIER)
    # Behind the declarations: a ring in dynamic shared memory, or arrays of their own.
    begin = text.index('extern "C"')
    first = re.compile(r"    (?:extern )?__shared__ [^;]*?\b(\w+)((?:\[\d*\])+);\n")
    declared = list(first.finditer(text, begin, text.index("\n}\n", begin)))
    numbers = ""
    for each in declared:
        size = bytes_of_shared if each.group(2) == "[]" else f"sizeof({each.group(1)})"
        numbers += (
            f"    for (int i = tid; i < (int)({size}/4); i += blockDim.x) ((unsigned*){each.group(1)})[i] = "
            + "(0x3f000000u | (i*2654435761u >> 9 & 0x7fffff)) ^ (i & 1) << 31;\n"
        )
    end = declared[-1].end()
    return text[:end] + numbers + "    __syncthreads();\n" + text[end:]


def program(text, product):
    """The kernel as it is and without each of its parts, with a `main` that times its first launch in turn."""
    heads = list(re.finditer(
        r"// Grid: ([^\n]*) blocks of (\d+) threads; (\d+) bytes of (dynamic )?shared memory\.\n"
        r'extern "C" __global__ void [^\n]*\n(\w+)\(([^)]*)\)',
        text,
    ))
    if not heads:
        sys.exit("the first launch has no shared memory; only such kernels are timed")
    blocks, threads, shared, dynamic, kernel, parameters = heads[0].groups()
    if product.of_rows and len(heads) > 1:
        # The first takes rows that start where these do.
        text = text[: heads[1].start()]
    number = NUMBER[product.dtype]
    given = {"M": product.rows, "K": product.rows, "lda": product.stride, "ldb": product.width, "ldc": product.stride}
    given |= {"alpha": ONE[product.dtype], "beta": ONE[product.dtype], "beta0": "true", "alpha1": "true", "A": "a", "B": "b"}
    declarations, addresses = "", []
    for at, parameter in enumerate(parameters.split(",")):
        kind, name = re.fullmatch(r"\s*(.*?)(?: __restrict__)? (\w+)\s*", parameter, re.S).groups()
        pointer = "*" in kind
        declarations += f"    {'void*' if pointer else kind.strip()} argument_{at} = {given.get(name, 'c')};\n"
        addresses.append(f"&argument_{at}")
    variants = {"": text} | {name: strip(text, int(shared)) for name, strip in product.parts().items()}
    constants = {
        "BYTES_OF_OPERAND": f"(size_t){OPERAND}",
        "GRANULARITY": 32 if "fetches 32 bytes" in text else 64,
        "DOUBLES": "true" if number.startswith("double") else "false",
        "KERNEL": kernel,
        "ROOM": shared if dynamic else 0,
        "GRID": re.sub(r"\bM\b", str(product.rows), blocks),
        "THREADS": threads,
        "DECLARATIONS": declarations.rstrip("\n"),
        "ADDRESSES": ", ".join(addresses),
    }
    end = END
    for name, value in constants.items():
        end = re.sub(rf"\b{name}\b", lambda _: str(value), end)
    texts = ",\n".join(f'R"CUDA({each})CUDA"' for each in variants.values())
    return f"{BEGIN}static const char* const texts[] = {{\n{texts}}};\n{end}", list(variants)


def timed(source, directory):
    """The milliseconds and the registers of each kernel."""
    path, built = Path(directory, "kernel.cu"), Path(directory, "kernel")
    path.write_text(source)
    subprocess.run(
        ["nvcc", "-O3", "-std=c++17", "-gencode=arch=compute_90a,code=sm_90a", "-o", built, path, "-lnvrtc", "-lcuda"], check=True
    )
    said = subprocess.run([built], check=True, capture_output=True, text=True).stdout
    return [(float(ms), int(registers)) for ms, registers in (line.split() for line in said.splitlines())]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", help="the program, such as target/release/warpwright")
    parser.add_argument("products", nargs="*", type=Product, metavar="PRODUCT", help="such as f32:49 or f32:32/40; some of each otherwise")
    parser.add_argument("--emit", type=Path, metavar="DIRECTORY", help="write the programs there instead of timing them")
    given = parser.parse_intermixed_args()
    if shutil.which(given.binary) is None:
        sys.exit(f"{given.binary} is no program; build it with: cargo build --release")
    if given.emit is not None:
        given.emit.mkdir(parents=True, exist_ok=True)
    elif shutil.which("nvcc") is None:
        print("nvcc is not on the PATH; kernels without their parts are skipped")
        return
    for product in given.products or [Product(name) for name in PRODUCTS]:
        text, named = emitted(given.binary, product)
        source, variants = program(text, product)
        if given.emit is not None:
            Path(given.emit, re.sub(r"\W", "_", product.name) + ".cu").write_text(source)
            continue
        with tempfile.TemporaryDirectory() as directory:
            times = timed(source, directory)
        print(f"{product.name}, chosen for an H200: {named}")
        for name, (ms, registers) in zip(variants, times):
            rate = product.operations() / ms * 1e-9
            cell = "as it is" if name == "" else f"without {name}"
            print(f"    {cell:26s} {ms:.4f} ms {rate:5.1f} T {rate / MOST[product.dtype]:.2f} P, {registers} registers", flush=True)


main()
