#!/usr/bin/env bash
# Long work on every GPU of a machine: `bench/queue.sh BINARY DIRECTORY SECONDS [FILE]...`. Each line of the files is the arguments
# of a command, as `tune 64x64x4000000 --dtype f64 --layout tn` or `bench tsm --widths 65 --record @`; a GPU that is free takes
# the next. In a line, @ is a directory of the GPU's own; wisdom goes to one file for all. No line is begun when the seconds
# are over, and what runs then is told to stop. Files that lines name are looked for where the script was started.
# What was tuned or measured before in the same directory is not done again.
# With SAVE=FILE in the environment, the directory is packed into that file every 15 s, so that what is cut is not lost.
set -uo pipefail
binary=$(realpath "${1:?the program to run; usage: bench/queue.sh BINARY DIRECTORY SECONDS [FILE]...}")
mkdir -p "${2:?the directory for what is found}"
out=$(realpath "$2")
limit=${3:?the seconds after which nothing is begun}
[ -x "$binary" ] || { echo "$binary is no program; build it with: cargo build --release" >&2; exit 2; }
if ! "$binary" gemm 8x8x8 --device cuda >/dev/null; then
    echo "bench/queue.sh needs a machine with an NVIDIA GPU; skipped"
    exit 0
fi
gpus=$(nvidia-smi -L | wc -l)
cores=$(($(nproc) / gpus))
lines=$(mktemp)
cat "${@:4}" | grep -v '^ *\(#\|$\)' >"$lines"
export WARPWRIGHT_WISDOM=$out/wisdom.jsonl

save() {
    [ -n "${SAVE:-}" ] || return 0
    # 1 is that a file has grown meanwhile.
    tar --warning=no-file-changed -czf "$SAVE.part" -C "$out" . || [ $? -eq 1 ] || return 0
    mv "$SAVE.part" "$SAVE"
}

# Takes the first line off the file.
take() {
    flock "$lines.lock" sh -c "head -n 1 '$lines' && sed -i 1d '$lines'"
}

work() {
    local gpu=$1 line left
    export CUDA_VISIBLE_DEVICES=$gpu
    mkdir -p "$out/$gpu"
    while left=$((limit - SECONDS)) && [ $left -gt 5 ] && line=$(take) && [ -n "$line" ]; do
        # The words of the line are the arguments.
        # shellcheck disable=SC2086
        timeout --signal=INT --kill-after=10 $left taskset -c $((gpu * cores))-$((gpu * cores + cores - 1)) \
            "$binary" ${line//@/$out/$gpu} >"$out/$gpu/last" 2>&1
        printf '== %s s, GPU %s, %s: %s\n%s\n' $SECONDS "$gpu" $? "$line" "$(cat "$out/$gpu/last")" >>"$out/log.txt"
        printf '%s s, GPU %s: %s\n' $SECONDS "$gpu" "$line"
    done
}

workers=()
for gpu in $(seq 0 $((gpus - 1))); do
    work "$gpu" &
    workers+=($!)
done
while [ -n "${SAVE:-}" ] && kill -0 "${workers[@]}" 2>/dev/null; do
    sleep 15
    save
done
wait "${workers[@]}"
save
echo "$(wc -l <"$lines") lines are left"
rm -f "$lines" "$lines.lock"
