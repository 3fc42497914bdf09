#!/usr/bin/env bash
# Everything that needs a GPU, in one command: `bench/gpu.sh [BINARY] [DIRECTORY] [PART]...`, the parts being `checks`,
# `bench`, `limits`, `tsm`, `fc`, `reorder`, `tune` and `sanitize`, all of them unless some are named.
# Says what the machine has, runs every finished program and every rung of every ladder and checks it, times the ladder
# beside cuBLAS, measures the figures of tall and skinny products and of fully connected layers, and what another order of multiply-adds does for them,
# tunes two problems for half a minute each, and runs programs and rungs under compute-sanitizer at odd sizes. Results go
# to the directory (bench/results by default).
set -uo pipefail
cd "$(dirname "$0")/.."
binary=${1:-target/release/warpwright}
out=${2:-bench/results}
parts=" ${*:3} "
part() { [ "$parts" = "  " ] || [[ "$parts" == *" $1 "* ]]; }
mkdir -p "$out"
failed=0

step() {
    echo "== $*"
    "$@" || { echo "== failed: $*"; failed=1; }
}

"$binary" doctor
if ! "$binary" gemm 8x8x8 --device cuda >/dev/null; then
    echo "bench/gpu.sh needs a machine with an NVIDIA GPU; skipped"
    exit 0
fi
# Compares a program with its specification, with what is left of the arguments before the command.
program() {
    local name=$1
    shift
    step "$@" "$binary" check "programs/$name.ww" --spec "programs/specifications/$name.ww" --device cuda
}

# Products by a kernel of each form of the families, with what is left of the arguments before the command.
skinny() {
    while read -r line; do
        # The words of the line are the arguments.
        # shellcheck disable=SC2086
        step "$@" "$binary" gemm $line --device cuda
    done <bench/skinny.txt
}

programs=$(basename -s .ww programs/*.ww)
if part checks; then
    for name in $programs; do
        program "$name"
    done
    step "$binary" gemm 512x384x256
    for ladder in sgemm tvm; do
        step "$binary" ladder "$ladder" --size 1021x509x253
    done
    # Matrices that start anywhere: what lies before and behind C has to stay as it is.
    step "$binary" gemm 1021x509x253 --offset 1,2,3
    step "$binary" gemm 1021x509x253 --dtype bf16-f32 --layout nt --offset 1,0,1
    for dtype in f32 f64 c64 c128; do
        for size in 40x36x100000 17x5x100000; do
            step "$binary" gemm $size --dtype $dtype --layout tn --beta 0.5 --offset 1,2,3
        done
        for size in 100000x40x36 100000x17x5; do
            step "$binary" gemm $size --dtype $dtype --ldc 41 --offset 1,2,3
        done
    done
    skinny
    # 16-bit elements on the matrix units: rows that start at multiples of 16 bytes, and others.
    for layout in nn nt tn tt; do
        for size in 1021x509x253 1000x520x1096; do
            step "$binary" ladder hgemm --dtype bf16 --layout $layout --size $size
        done
        step "$binary" ladder hgemm --dtype f16 --layout $layout --size 1000x520x1096
        step "$binary" ladder hgemm --dtype bf16-f32 --layout $layout --size 1000x520x1096
    done
    for size in 1021x509x253 1000x520x1096; do
        step "$binary" ladder dgemm --dtype f64 --size $size
    done
fi
if part bench; then
    step "$binary" bench first-call --sizes 512 --record "$out"
    step "$binary" bench sgemm --sizes 4096 --record "$out"
    step "$binary" bench sgemm_turned_lanes sgemm_small_tile \
        --sizes 1024,2048,4095,4096,4097,8192,16384 --record "$out"
    step "$binary" bench tvm --sizes 4096 --record "$out"
    for layout in nn nt; do
        step "$binary" bench hgemm --dtype bf16 --layout $layout --sizes 1024,4096,8192 --record "$out"
    done
    step "$binary" bench dgemm --dtype f64 --sizes 1024,4096 --record "$out"
fi
if part limits; then
    # The errors of split numbers beside those of threads; and what no kernel can pass that reads and multiplies, reads and
    # writes padded rows, or is short: programs of their own, for which there has to be nvcc.
    python3 bench/limits/split_errors.py "$binary" | tee "$out/limits-split_errors.txt"
    if command -v nvcc >/dev/null; then
        python3 bench/limits/register_file.py | tee "$out/limits-register_file.txt"
        python3 bench/limits/ablated.py "$binary" | tee "$out/limits-ablated.txt"
        limits=$(mktemp)
        for source in bench/limits/*.cu; do
            if nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a -o "$limits" "$source"; then
                "$limits" | tee "$out/limits-$(basename "$source" .cu).txt" && continue
            fi
            echo "== failed: $source"
            failed=1
        done
        rm -f "$limits"
    else
        echo "nvcc is not on the PATH; the limits are skipped"
    fi
fi
if part tsm; then
    # What was measured before is not measured again: a run that was cut goes on where it was.
    for record in bench/results/bandwidth-*.json bench/results/tsm-*.json; do
        [ -e "$record" ] && [ ! "$out" -ef bench/results ] && cp -n "$record" "$out"
    done
    if ! ls "$out"/bandwidth-*.json >/dev/null 2>&1; then
        step "$binary" bench bandwidth --record "$out"
    fi
    step "$binary" bench tsm --record "$out"
    for sweep in short shapes strides reductions options tiles; do
        step "$binary" bench tsm --sweep $sweep --record "$out"
    done
    step "$binary" bench tsm --html "$out/tsm.html" --from "$out"
fi
if part fc; then
    step "$binary" bench fc --record "$out"
    step "$binary" bench fc --rows 1,4,16,64,256,1024 --dtypes bf16 --record "$out"
fi
if part reorder; then
    # Multiply-adds where the assembler has put them and in the order that the register file likes, one after the other on the same GPU.
    for dtype in f32 c64; do
        for widths in 33,37,41,45,49,53,57,61 36,40,44,48,52,56,60,64 113,117,121,125,127,128; do
            for order in 0 1; do
                WARPWRIGHT_REORDER=$order step "$binary" bench tsm --quick --cached --bytes 512M \
                    --dtypes $dtype --widths $widths --record "$out/reorder-$order"
            done
        done
    done
fi
if part tune; then
    # In a file of its own: what a few seconds find is not what should be shipped or used.
    export WARPWRIGHT_WISDOM="$out/wisdom-try.jsonl"
    step "$binary" tune 64x64x4000000 --dtype f64 --layout tn --budget 30
    step "$binary" tune 4000000x20x20 --dtype c128 --budget 30
    step "$binary" wisdom list
    unset WARPWRIGHT_WISDOM
fi
if ! part sanitize; then
    exit $failed
fi
if command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck synccheck; do
        sanitized="compute-sanitizer --tool $tool --report-api-errors no --error-exitcode 9"
        step $sanitized "$binary" ladder sgemm --size 255x129x67
        for layout in nn nt; do
            step $sanitized "$binary" ladder hgemm --dtype bf16 --layout $layout --size 264x136x328
        done
        step $sanitized "$binary" ladder dgemm --dtype f64 --size 264x136x328
        for name in $programs; do
            program "$name" $sanitized
        done
        skinny $sanitized
    done
else
    echo "compute-sanitizer is not on the PATH; skipped"
fi
exit $failed
