#!/usr/bin/env bash
# The products that are hardest to bring to their goals beside kernels that do a part of their work and nothing else, on one GPU, in one go:
# `bench/beside-limits.sh BINARY DIRECTORY [complex128|strides|short]...`, all three by default. Tables of both go to the directory, and
# bench/goals.py says how many products take no longer than 1/0.98 of what such a kernel does.
#
#     complex128   A^H B and A C of 33 to 64 columns, and bulk_and_products.cu
#     strides      padded rows, and padded_copies.cu
#     short        a million rows, and short.cu and bulk_and_split.cu
#
# Each takes five to six minutes on an H200, where one call of ten minutes is room for one of them.
# The programs of bench/limits are compiled with nvcc, or taken from the directory that LIMITS names, where they are called like their
# sources, without `.cu`. What is on record in the directory is not measured again.
set -uo pipefail
binary=$(realpath "${1:?the program to run; usage: bench/beside-limits.sh BINARY DIRECTORY [complex128|strides|short]...}")
mkdir -p "${2:?the directory for tables}"
out=$(realpath "$2")
made=$(realpath "${LIMITS:-$(mktemp -d)}")
cd "$(dirname "$0")/.." || exit 1
parts=("${@:3}")
[ ${#parts[@]} -gt 0 ] || parts=(complex128 strides short)
for part in "${parts[@]}"; do
    case $part in
    complex128 | strides | short) ;;
    *)
        echo "there is no part $part; there are complex128, strides and short" >&2
        exit 2
        ;;
    esac
done
[ -x "$binary" ] || { echo "$binary is no program; build it with: cargo build --release" >&2; exit 2; }
if ! "$binary" gemm 8x8x8 --device cuda >/dev/null; then
    echo "bench/beside-limits.sh needs a machine with an NVIDIA GPU; skipped"
    exit 0
fi
date=$(date +%F)
gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1 | tr '[:upper:] ' '[:lower:]-')
failed=0

# A program of bench/limits with arguments.
limit() {
    local name=$1
    [ -x "$made/$name" ] ||
        nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a -o "$made/$name" "bench/limits/$name.cu" ||
        { echo "== $name cannot be compiled; LIMITS may name a directory with programs that are" >&2; failed=1; return; }
    "$made/$name" "${@:2}" || failed=1
    echo "$SECONDS s: $name" >&2
}
table() { echo "$out/limits-$gpu-$date-$1.csv"; }
products() {
    "$binary" bench tsm --record "$out" "$@" >>"$out/products.txt" 2>&1 || failed=1
    echo "$SECONDS s: bench tsm $*"
}

for part in "${parts[@]}"; do
    case $part in
    complex128)
        products --dtypes c128 --widths "$(seq -s, 33 64)"
        limit bulk_and_products random 4552 4314 left 41 62 "$(table left)" "$date" >"$out/left.txt"
        limit bulk_and_products random 4552 4314 right 33 62 "$(table right)" "$date" >"$out/right.txt"
        ;;
    strides)
        products --sweep strides
        limit padded_copies "$date" >"$(table strides)"
        ;;
    short)
        products --sweep short --lengths 1000000 --ops tsmm --dtypes f32 --widths "1,$(seq -s, 33 64)"
        products --sweep short --lengths 1000000 --ops tsmm --dtypes c64 --widths "$(seq -s, 17 32)"
        products --sweep short --lengths 1000000 --ops tsmttsm --widths 1,4,8
        limit short "$date" "$(table short)" >"$out/short.txt"
        limit bulk_and_split "$date" "$(table split)" >"$out/split.txt"
        ;;
    esac
done
python3 bench/goals.py "$out"/tsm-*.csv "$out"/limits-*.csv
exit $failed
