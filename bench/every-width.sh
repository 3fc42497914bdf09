#!/usr/bin/env bash
# Lists for bench/queue.sh: `bench/every-width.sh DIRECTORY [FROM] [TO] [SECONDS]` writes what tunes A^T B (A^H B) and A C of every
# width M = N from one to the other, in four types, with long operands of 290 MB, so many seconds each; products that were
# tuned before are left out when it runs. The lists lie in the directory, the queue's in DIRECTORY/queue.txt:
#
#     bench/every-width.sh lists 1 64 5 && bench/queue.sh target/release/warpwright results 3600 lists/queue.txt
set -euo pipefail
directory=${1:?the directory for the lists; usage: bench/every-width.sh DIRECTORY [FROM] [TO] [SECONDS]}
from=${2:-1}
to=${3:-128}
seconds=${4:-5}
# Products of one process, and bytes of a long operand: more than second-level caches hold several times over, and an eighth
# of what is measured.
each=6
bytes=290000000
# Operands of a multiple of this length are made by repetition, which takes a moment (SHORT in src/gpu/stage.rs).
short=50021

mkdir -p "$directory"
rm -f "$directory"/widths-*.txt
for width in $(seq "$from" "$to"); do
    for type in f32:4:tn f64:8:tn c64:8:cn c128:16:cn; do
        IFS=: read -r dtype size layout <<<"$type"
        rows=$((bytes / width / size / short * short))
        echo "${width}x${width}x$rows $dtype $layout"
        echo "${rows}x${width}x$width $dtype nn"
    done
done | split --lines $each --numeric-suffixes --suffix-length 3 --additional-suffix .txt - "$directory/widths-"
for list in "$directory"/widths-*.txt; do
    echo "tune --shapes $list --new --budget $seconds --json"
done >"$directory/queue.txt"
echo "$(cat "$directory"/widths-*.txt | wc -l) products in $directory/queue.txt"
