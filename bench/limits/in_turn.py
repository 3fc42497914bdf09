#!/usr/bin/env python3
"""Writes kernels for in_turn.cu, which times them in turn and says at which clock they ran.

    bench/limits/in_turn.py BINARY DIRECTORY LIST
    cd DIRECTORY; for f in *.cu; do nvcc -cubin -arch=sm_90a -std=c++17 $f; done
    nvcc -O2 -std=c++17 -arch=sm_90a .../bench/limits/in_turn.cu -o in_turn -lcuda
    ./in_turn . list 7 500

BINARY is the program. A line of LIST is a group, a size and options, as

    A^H_B_54 54x54x2451029 --dtype c128 --layout cn
    A^H_B_54 54x54x2451029 --dtype c128 --layout cn --param lane_base=false

Options are those of `explain`; parameters that a line does not name are those that ship for H200s, so that the first of these two kernels is
what ships. Lines of one group, one after another, are compared. Products are A^T B, A^H B (layout tn, cn: K x M and K x N) and A C (nn), of f32, f64,
c64 and c128, whose long operands have up to 2 GiB. DIRECTORY gets a kernel and a line of `list` for each. Kernels are as the program writes them but for two readings of the
clocks, by one thread of one block. (NVRTC makes the same of the text as nvcc does, or nearly; the figures in bench/results were made with NVRTC.)
"""

import json
import pathlib
import re
import subprocess
import sys

LAUNCH = re.compile(
    r"// Grid: (\d+) blocks of (\d+) threads; (\d+) bytes of (dynamic )?[^\n]*\nextern[^\n]*\n(\w+)\(([^{]*)\{\n"
)
REAL = {"f32": 4, "f64": 8, "c64": 4, "c128": 8}
BYTES = {"f32": 4, "f64": 8, "c64": 8, "c128": 16}
RATE = {"f32": 53.6e12, "c64": 53.6e12, "f64": 56.4e12, "c128": 56.4e12}
READ, BOTH = 4552e9, 4314e9
TIME = 'long long time; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time)); volatile long long* p = clocks;'
FIRST = "    if (threadIdx.x == 0 && blockIdx.x == 0) { "


def said(binary, *arguments):
    """What the program prints."""
    try:
        done = subprocess.run([binary, *arguments], capture_output=True, text=True)
    except OSError as error:
        raise SystemExit(f"{binary} cannot be run ({error.strerror}); build it with `cargo build --release`") from None
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)}\n{done.stderr}")
    return done.stdout


def word(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


def clocked(text, start):
    """The text whose body from `start` on reads the clocks before and after."""
    depth, end = 1, start
    while depth:
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        end += 1
    head = text.rindex('extern "C"', 0, start)
    before = f"{FIRST}{TIME} p[0] = clock64(); p[1] = time; }}\n"
    after = f"    __syncthreads();\n{FIRST}{TIME} p[0] = clock64() - p[0]; p[1] = time - p[1]; }}\n"
    body = before + text[start : end - 1] + after
    return f"{text[:head]}__device__ long long clocks[2];\n{text[head:start]}{body}{text[end - 1:]}"


def argument(declared, tall):
    """What in_turn.cu is to give for a parameter of a kernel: a letter."""
    name = declared.split()[-1].lstrip("*")
    if name in ("M", "K"):
        return "l" if "long long" in declared else "i"
    if "*" not in declared:
        letters = {"alpha": "p", "beta": "q", "beta0": "y", "alpha1": "y", "lda": "w", "ldb": "w", "ldc": "w"}
        return letters[name]
    if name == "A" or (name == "B" and tall):
        return name.lower()
    return "o" if not tall and "const" not in declared else "s"


def kernel(binary, directory, line, number):
    """Writes a kernel, and returns its line of the list."""
    group, size, *options = line.split()
    m, n, k = (int(x) for x in size.split("x"))
    option = lambda name, other: options[options.index(name) + 1] if name in options else other
    dtype, tall = option("--dtype", "f32"), option("--layout", "nn") != "nn"
    given = {}
    while "--param" in options:
        at = options.index("--param")
        name, value = options[at + 1].split("=")
        given[name] = value
        del options[at : at + 2]
    explained = json.loads(said(binary, "explain", size, *options, "--gpu", "h200", "--json"))
    explained = explained[0] if isinstance(explained, list) else explained
    choice = {name: word(value) for name, value in explained["kernel"]["parameters"].items()} | given
    parameters = [x for name, value in sorted(choice.items()) for x in ("--param", f"{name}={value}")]
    family = "tsmttsm" if tall else "tsmm"
    text = said(binary, "show", family, "--size", size, *options, "--gpu", "h200", "--stage", "cuda", *parameters)
    return entry(directory, number, group, text, dtype, (m, n, k), tall)


def entry(directory, number, group, text, dtype, extents, tall):
    """Writes a kernel that is known by its text, and returns its line of the list."""
    m, n, k = extents
    found = LAUNCH.search(text)
    if not found:
        raise SystemExit(f"{group}: its grid is not constant, or it has no kernel of its own")
    blocks, threads, shared, dynamic, name, arguments = found.groups()
    letters = "".join(argument(a.strip(), tall) for a in arguments.strip().rstrip(")").split(","))
    (directory / f"{number}.cu").write_text(clocked(text, found.end()))
    long, width = (k, n) if tall else (m, n)
    flops = (8 if dtype[0] == "c" else 2) * m * n * k
    bytes_of_both = (m + n if tall else k + n) * long * BYTES[dtype]
    roofline = max(bytes_of_both / (READ if tall else BOTH), flops / RATE[dtype])
    launch = f"{blocks} {threads} {shared if dynamic else 0} {letters} {width}"
    return f"{group} {number} {name} {REAL[dtype]} {long} {launch} {roofline:.9f}"


def main():
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    directory = pathlib.Path(sys.argv[2])
    directory.mkdir(parents=True, exist_ok=True)
    lines = [l for l in pathlib.Path(sys.argv[3]).read_text().splitlines() if l.strip() and l[0] != "#"]
    kernels = []
    for number, line in enumerate(lines):
        kernels.append(kernel(sys.argv[1], directory, line, number))
        print(f"\r{number + 1} of {len(lines)} kernels ", end="", file=sys.stderr)
    (directory / "list").write_text("\n".join(kernels) + "\n")
    print(file=sys.stderr)


if __name__ == "__main__":
    main()
