#!/usr/bin/env python3
"""Errors of products of split numbers beside those of products by threads, on data of several kinds, against f64 (NumPy).

    python3 bench/limits/split_errors.py target/release/warpwright [WIDTH [PRODUCT [KIND]...]]

An error is in units of 2^-24 of the sum of magnitudes of what is added up: its root mean square and its mean, which tells
whether sums shrink. `classes` counts elements that are infinite or no number where the others are not. PRODUCT is one of
f32-tn, f32-nn, c64-cn and c64-nn, or f32-layer, 16 rows times a matrix of weights, and KIND one of those of data: without them, all.
Needs a GPU.
"""

import json
import os
import subprocess
import sys
import tempfile

import numpy as np

KINDS = ["-1..1", "0..1", "1e-37 (-1..1)", "10^(-6..6)", "whole numbers", "the largest", "an infinity", "a NaN", "infinities of B"]
PRODUCTS = [("f32", "tn", 100_000), ("f32", "nn", 20_000), ("c64", "cn", 100_000), ("c64", "nn", 20_000), ("f32", "layer", 4096)]
ROWS, OUTPUTS = 16, 512


def shape(form, long, width):
    """M, N and K."""
    if form == "layer":
        return ROWS, OUTPUTS, long
    return (long, width, width) if form == "nn" else (width, width, long)


def real(random, kind, rows, columns, is_a):
    x = random.uniform(-1, 1, (rows, columns))
    if kind == "0..1":
        x = abs(x)
    elif kind == "1e-37 (-1..1)" and is_a:
        x *= 1e-37
    elif kind == "10^(-6..6)":
        x *= 10.0 ** random.uniform(-6, 6, (rows, columns))
    elif kind == "whole numbers":
        x = np.round(60 * x)
    elif kind == "the largest":
        # Rounding it to eleven bits gives no finite number, and what it is multiplied by is small, or zero.
        if is_a:
            x[5, 3] = np.finfo(np.float32).max
        else:
            x *= 1e-3
            x[3, :4] = x[5, :4] = 0
    elif kind == "an infinity" and is_a:
        x[5, 3] = np.inf
    elif kind == "a NaN" and is_a:
        x[5, 3] = np.nan
    elif kind == "infinities of B" and not is_a:
        x[rows - 1, [2, 9]] = np.inf, -np.inf
    return x.astype(np.float32)


def matrix(random, kind, dtype, rows, columns, is_a):
    x = real(random, kind, rows, columns, is_a)
    if dtype == "f32":
        return x
    plain = kind in ("an infinity", "a NaN", "infinities of B")
    imaginary = real(random, "-1..1" if plain else kind, rows, columns, is_a)
    return (x + 1j * imaginary).astype(np.complex64)


def product(binary, size, dtype, form, unit, directory):
    a, b, c = (os.path.join(directory, f"{name}.npy") for name in "abc")
    layout = "nn" if form == "layer" else form
    words = ["gemm", size, "--dtype", dtype, "--layout", layout, "--device", "cuda", "--trials", "1", "--json"]
    if form == "layer":
        words += ["--kernel", "tiled", "--param", "swizzled=true"]
    words += ["--a", a, "--b", b, "--out", c, "--allow-split", "--param", f"unit={unit}"]
    report = subprocess.run([binary, *words], capture_output=True, text=True)
    if report.returncode == 2:
        sys.exit(report.stderr)
    return np.load(c), json.loads(report.stdout)["check"]["passed"]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    binary, width = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 48
    if subprocess.run([binary, "gemm", "8x8x8", "--device", "cuda"], capture_output=True).returncode:
        print("split_errors.py needs a machine with an NVIDIA GPU; skipped")
        return
    products = [p for p in PRODUCTS if len(sys.argv) < 4 or f"{p[0]}-{p[1]}" == sys.argv[3]]
    kinds = sys.argv[4:] or KINDS
    random = np.random.default_rng(5)
    print(f"{'product':24} {'data':15} {'by threads':>22} {'split':>22} classes passed")
    with tempfile.TemporaryDirectory() as directory:
        for dtype, form, long in products:
            m, n, k = shape(form, long, width)
            tall, size = form in ("tn", "cn"), f"{m}x{n}x{k}"
            for kind in kinds:
                a = matrix(random, kind, dtype, *((k, m) if tall else (m, k)), True)
                b = matrix(random, kind, dtype, k, n, False)
                np.save(os.path.join(directory, "a.npy"), a)
                np.save(os.path.join(directory, "b.npy"), b)
                wide = np.complex128 if dtype == "c64" else np.float64
                left = a.astype(wide).conj().T if tall else a.astype(wide)
                with np.errstate(all="ignore"):
                    right, magnitude = left @ b.astype(wide), abs(left) @ abs(b.astype(wide))
                finite = np.isfinite(magnitude)
                line, classes, passed = f"{dtype} {form} {size:18}", [], []
                line += f" {kind:15}"
                for unit in ("fma", "mma"):
                    found, right_by_bound = product(binary, size, dtype, form, unit, directory)
                    off = (found[finite].astype(wide) - right[finite]) / magnitude[finite] * 2**24
                    line += f" {np.sqrt(np.mean(abs(off) ** 2)):11.4f} {np.mean(off.real):+10.4f}"
                    classes.append(np.isfinite(found) | np.isnan(found) * 2)
                    passed.append(right_by_bound)
                print(f"{line} {int((classes[0] != classes[1]).sum()):7} {all(passed)}", flush=True)


if __name__ == "__main__":
    main()
