#!/usr/bin/env python3
"""Writes pairs of kernels for fence.cu: every A^T B and A^H B that ships for H200s with rows by bulk copies, with the fence and without.

    bench/limits/fence.py BINARY DIRECTORY [TYPE...]        (f64 c128 f32 c64 by default; 2 GiB for each long operand)
    cd DIRECTORY; for f in *.cu; do nvcc -cubin -arch=sm_90a -std=c++17 $f; done
    nvcc -O2 -std=c++17 -arch=sm_90a .../bench/limits/fence.cu -o fence -lcuda
    ./fence . list 3 300 500

BINARY is the program. DIRECTORY gets TYPE_COLUMNS_f.cu as the program writes it, TYPE_COLUMNS_n.cu with the fence taken out, and a list of
both for fence.cu. The rooflines are those of bench/goals.py. (NVRTC makes the same of the text as nvcc does, or nearly; the figures in
bench/results were made with NVRTC.)
"""

import json
import pathlib
import re
import sys

from in_turn import BYTES, LAUNCH, RATE, READ, said, word

FENCE = re.compile(r"\n\s*fence_proxy_async\(\);")


def pair(binary, directory, dtype, columns):
    """The lines of the list for both kernels of a product; none if its rows come otherwise."""
    rows = (2 << 30) // (columns * BYTES[dtype])
    product = ["--dtype", dtype, "--layout", "cn" if dtype[0] == "c" else "tn", "--gpu", "h200"]
    size = f"{columns}x{columns}x{rows}"
    explained = json.loads(said(binary, "explain", size, *product, "--json"))
    explained = explained[0] if isinstance(explained, list) else explained
    choice = explained.get("kernel", explained).get("parameters") or explained["parameters"]
    if choice.get("copy") != "bulk":
        return []
    parameters = [x for name, value in sorted(choice.items()) for x in ("--param", f"{name}={word(value)}")]
    text = said(binary, "show", "tsmttsm", "--size", size, *product, "--stage", "cuda", *parameters)
    blocks, threads, shared, dynamic, name, arguments = LAUNCH.search(text).groups()
    if not FENCE.search(text):
        raise SystemExit(f"{dtype} {columns}: there is no fence to take out")
    (directory / f"{dtype}_{columns}_f.cu").write_text(text)
    (directory / f"{dtype}_{columns}_n.cu").write_text(FENCE.sub("", text))
    real = BYTES[dtype] // (2 if dtype[0] == "c" else 1)
    flops = (8 if dtype[0] == "c" else 2) * rows * columns**2
    roofline = max(2 * rows * columns * BYTES[dtype] / READ, flops / RATE[dtype])
    launch = f"{blocks} {threads} {shared if dynamic else 0} {arguments.count(',') + 1}"
    return [f"{dtype}_{columns}_{form} {name} {real} {rows} {launch} {roofline:.9f}" for form in "nf"]


def main():
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    binary, directory = sys.argv[1], pathlib.Path(sys.argv[2])
    directory.mkdir(parents=True, exist_ok=True)
    lines = []
    for dtype in sys.argv[3:] or ["f64", "c128", "f32", "c64"]:
        for columns in range(1, 129):
            lines += pair(binary, directory, dtype, columns)
            print(f"\r{dtype} {columns}: {len(lines) // 2} pairs ", end="", file=sys.stderr)
    (directory / "list").write_text("\n".join(lines) + "\n")
    print(file=sys.stderr)


main()
