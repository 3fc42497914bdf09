#!/usr/bin/env python3
"""What products A^T B and A^H B would take if memory cost nothing: kernels that ship, with their copies taken out.

    python3 bench/limits/without_copies.py target/release/warpwright [DTYPE:WIDTH]... [--emit DIRECTORY]

For each product, f32:49 being A^T B in f32 of 49 columns, the kernel that `gemm` would choose is taken as CUDA C, and once more with every
copy to shared memory and every wait for one removed: it multiplies what lies there, numbers between -1 and 1. Both are timed side by
side, as medians of 20 launches of the first kernel, with 2 GiB for each operand. What the second takes no kernel of that form can pass, however memory is
read; P is the most that cuBLAS reaches in products of that type on an H200, 53.6 and 56.4 TFLOP/s. Needs nvcc and a GPU, for --emit neither.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PRODUCTS = ["f32:49", "f32:50", "c64:25", "c64:34", "c64:37", "c64:49", "c64:52", "c128:33", "c128:36", "c128:37", "c128:40"]
BYTES = {"f32": 4, "f64": 8, "c64": 8, "c128": 16}
MOST = {"f32": 53.6, "c64": 53.6, "f64": 56.4, "c128": 56.4}
OPERAND = 2 << 30
# What brings rows to shared memory, and what waits for it. Each stays a barrier for the compiler, which else would read them once.
COPIES = r"bulk_copy\w*|cp_async\d+|mbarrier_wait|mbarrier_arrive\w*"
NOTHING = '{ asm volatile("" ::: "memory"); }'

MAIN = r"""
#include <algorithm>
#include <cstdio>
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
int main() {
    void *a, *b, *parts;
    const size_t bytes = BYTES_OF_OPERAND;
    cudaMalloc(&a, bytes); cudaMalloc(&b, bytes); cudaMalloc(&parts, (size_t)1 << 30);
    fill<<<1024, 256>>>((unsigned*)a, bytes/(DOUBLES ? 8 : 4), DOUBLES);
    fill<<<1024, 256>>>((unsigned*)b, bytes/(DOUBLES ? 8 : 4), DOUBLES);
    cudaFuncSetAttribute(KERNEL, cudaFuncAttributeMaxDynamicSharedMemorySize, DYNAMIC);
    cudaEvent_t events[2];
    for (auto& event : events) cudaEventCreate(&event);
    std::vector<float> times;
    for (int i = 0; i < 25; ++i) {
        cudaEventRecord(events[0]);
        KERNEL<<<BLOCKS, THREADS, DYNAMIC>>>(ARGUMENTS);
        cudaEventRecord(events[1]);
        cudaEventSynchronize(events[1]);
        float ms;
        cudaEventElapsedTime(&ms, events[0], events[1]);
        if (i >= 5) times.push_back(ms);
    }
    if (cudaError_t error = cudaGetLastError()) return fprintf(stderr, "%s\n", cudaGetErrorString(error)), 1;
    std::sort(times.begin(), times.end());
    printf("%.6f\n", times[times.size()/2]);
}
"""


def say(binary, *words):
    done = subprocess.run([binary, *words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{binary} {' '.join(words)} failed: {done.stderr.strip()}")
    return done.stdout


def emitted(binary, dtype, width, rows):
    """The CUDA text of the kernel that is chosen for an H200, and its parameters."""
    layout = "cn" if dtype.startswith("c") else "tn"
    size = f"{width}x{width}x{rows}"
    kernel = json.loads(say(binary, "explain", size, "--dtype", dtype, "--layout", layout, "--gpu", "h200", "--json"))["kernel"]
    value = lambda v: str(v).lower() if isinstance(v, bool) else str(v)
    named = [f"{name}={value(v)}" for name, v in kernel["parameters"].items()]
    words = [word for each in named for word in ("--param", each)]
    text = say(binary, "show", kernel["family"], "--size", size, "--dtype", dtype, "--layout", layout, *words, "--stage", "cuda")
    return text, " ".join(named)


def without_copies(text, bytes_of_shared):
    """The same with copies and waits taken out, and numbers in shared memory."""
    definition = re.compile(r"(__device__ __forceinline__ void (?:" + COPIES + r")\([^{]*\) )\{")
    taken_out, at = "", 0
    while found := definition.search(text, at):
        end, depth = found.end(), 1
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        taken_out += text[at : found.start()] + found.group(1) + NOTHING
        at = end
    if at == 0:
        sys.exit("there is nothing that copies in this kernel")
    text = taken_out + text[at:]
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


def program(text, dtype, width, rows, strip):
    """The kernel with a `main` that times its first launch."""
    launch = re.search(
        r"// Grid: (\d+) blocks of (\d+) threads; (\d+) bytes of (dynamic )?shared memory\.\n"
        r'extern "C" __global__ void [^\n]*\n(\w+)\(([^)]*)\)',
        text,
    )
    if launch is None:
        sys.exit("the first launch has no constant grid, or no shared memory; only such kernels are timed")
    blocks, threads, shared, dynamic, kernel, parameters = launch.groups()
    if strip:
        text = without_copies(text, int(shared))
    given = {"K": str(rows), "A": "a", "B": "b"}
    arguments = []
    for parameter in parameters.split(","):
        kind, name = re.fullmatch(r"\s*(.*?)(?: __restrict__)? (\w+)\s*", parameter, re.S).groups()
        arguments.append(f"({kind.strip()}){given.get(name, 'parts')}")
    constants = {
        "BYTES_OF_OPERAND": rows * width * BYTES[dtype],
        "DOUBLES": "true" if dtype in ("f64", "c128") else "false",
        "KERNEL": kernel,
        "DYNAMIC": shared if dynamic else 0,
        "BLOCKS": blocks,
        "THREADS": threads,
        "ARGUMENTS": ", ".join(arguments),
    }
    main = MAIN
    for name, value in constants.items():
        main = re.sub(rf"\b{name}\b", str(value), main)
    return text + main


def milliseconds(source, directory):
    path, built = Path(directory, "kernel.cu"), Path(directory, "kernel")
    path.write_text(source)
    subprocess.run(
        ["nvcc", "-O3", "-std=c++17", "-gencode=arch=compute_90a,code=sm_90a", "-o", built, path], check=True
    )
    return float(subprocess.run([built], check=True, capture_output=True, text=True).stdout)


def main():
    words = sys.argv[1:]
    emit = None
    if "--emit" in words:
        at = words.index("--emit")
        emit = Path(words[at + 1])
        emit.mkdir(parents=True, exist_ok=True)
        del words[at : at + 2]
    if not words:
        sys.exit(__doc__)
    if emit is None and shutil.which("nvcc") is None:
        print("nvcc is not on the PATH; kernels without their copies are skipped")
        return
    binary, products = words[0], words[1:] or PRODUCTS
    if emit is None:
        print("product    with copies                  without copies               chosen for an H200", flush=True)
    for product in products:
        dtype, width = product.split(":")
        width = int(width)
        rows = OPERAND // (width * BYTES[dtype]) // 4096 * 4096
        text, named = emitted(binary, dtype, width, rows)
        sources = [program(text, dtype, width, rows, strip) for strip in (False, True)]
        if emit is not None:
            for source, name in zip(sources, ("with", "without")):
                Path(emit, f"{dtype}_{width}_{name}_copies.cu").write_text(source)
            continue
        with tempfile.TemporaryDirectory() as directory:
            times = [milliseconds(source, directory) for source in sources]
        operations = (8 if dtype.startswith("c") else 2) * width * width * rows
        cells = []
        for ms in times:
            rate = operations / ms * 1e-9
            cells.append(f"{ms:.4f} ms {rate:5.1f} T {rate / MOST[dtype]:.2f} P")
        print(f"{dtype:5s}{width:4d}  {cells[0]:28s} {cells[1]:28s} {named}", flush=True)


main()
