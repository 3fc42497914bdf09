#!/usr/bin/env bash
# How near the tuner comes to the best there is: `bench/tuner.sh [--shipped] [BINARY] [DIRECTORY] [SECONDS]`. Every candidate of a part of the
# space of each problem in bench/tuner.txt is tried, and beside that the tuner searches the whole space for a minute, with
# wisdom of its own and none that ships. With --shipped what it finds so is held against what ships for the problem, the best of all
# searches so far, instead of a part of the space. Problems are shared out among the GPUs of the machine. What was tried is on record
# in the directory, so a run that was cut, by itself after so many seconds or by somebody else, goes on where it was.
set -uo pipefail
cd "$(dirname "$0")/.."
against=part
[ "${1:-}" != --shipped ] || { against=shipped; shift; }
binary=${1:-target/release/warpwright}
out=${2:-bench/results}
limit=${3:-100000}
mkdir -p "$out"
if ! "$binary" gemm 8x8x8 --device cuda >/dev/null; then
    echo "bench/tuner.sh needs a machine with an NVIDIA GPU; skipped"
    exit 0
fi
gpus=$(nvidia-smi -L | wc -l)
cores=$(($(nproc) / gpus))

# Seconds of the best in the JSON of a tuning, and how many candidates it tried of how many.
best() {
    tr -d ' \n' | sed -E 's/.*"candidates":([0-9]+),.*"tried":([0-9]+),.*"best":\[\{"parameters":\{([^}]*)\},"seconds":([0-9.e-]+).*/\4 \2 \1 \3/'
}

# Tunes with wisdom in a file of its own: "seconds tried candidates parameters", or nothing where time is up.
tune() {
    local wisdom=$1 left=$((limit - SECONDS))
    shift
    [ $left -gt 5 ] || return 0
    WARPWRIGHT_WISDOM=$wisdom timeout --signal=INT $left \
        taskset -c "$cpus" "$binary" tune "$@" --json 2>/dev/null | best
}

for gpu in $(seq 0 $((gpus - 1))); do
    (
        export CUDA_VISIBLE_DEVICES=$gpu
        cpus=$((gpu * cores))-$((gpu * cores + cores - 1))
        number=0
        while read -r shape dtype layout part; do
            [ $((number++ % gpus)) -eq "$gpu" ] || continue
            problem="$shape --dtype $dtype --layout $layout"
            if [ $against = shipped ]; then
                # In a long product nothing varies: it is timed as it ships.
                of="what ships" which="--vary early --again"
            else
                of="$part" which="--alone --param $part"
            fi
            # The words of the problem, and of which candidates are tried, are arguments.
            # shellcheck disable=SC2086
            read -r all tried candidates parameters < <(tune "$out/$against-$gpu.jsonl" $problem $which --exhaustive)
            # shellcheck disable=SC2086
            read -r found looked space choice < <(tune "$out/minute-$gpu.jsonl" $problem --alone --budget 60)
            printf '%s %s %s: %s of %s candidates with %s: %s s (%s); in 60 s %s of %s: %s s (%s); ' "$shape" "$dtype" "$layout" \
                "${tried:-?}" "${candidates:-?}" "$of" "${all:-?}" "${parameters:-?}" "${looked:-?}" "${space:-?}" "${found:-?}" "${choice:-?}"
            awk -v a="${all:-0}" -v f="${found:-0}" 'BEGIN { print (a > 0 && f > 0) ? "ratio " f / a : "not finished" }'
        done <bench/tuner.txt >"$out/tuner-$gpu.txt"
    ) &
done
wait
cat "$out"/tuner-?.txt | tee "$out/tuner.txt"
