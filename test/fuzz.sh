#!/bin/bash
# Runs fuzz targets, which are programs in $BUILD/fuzz, from their seeds. If none is named, runs all. Each runs for RLXVK_TEST_FUZZ_SECONDS
# or RLXVK_TEST_FUZZ_RUNS executions, $JOBS at a time. Inputs that fail stay in $BUILD/fuzz.
set -u
cd "$(dirname "$0")/.."
export BUILD=${BUILD:-build}
export seconds=${RLXVK_TEST_FUZZ_SECONDS:-60} runs=${RLXVK_TEST_FUZZ_RUNS:-} seed=${RLXVK_TEST_FUZZ_SEED:-1}
export RLXVK_NO_TUNING=1

run() {
    local program=$1 name=${1##*/} folder=$BUILD/fuzz
    local seeds=test/fuzz/seeds/$name log=$folder/$name.log how=(--seconds "$seconds")
    [[ ! $runs ]] || how=(--runs "$runs")
    if nm "$program" | grep -q ' T LLVMFuzzerRunDriver'; then
        mkdir -p "$folder/corpus/$name"
        [[ $runs ]] && how=(-runs="$runs") || how=(-max_total_time="$seconds")
        "$program" "${how[@]}" -seed="$seed" -artifact_prefix="$folder/$name-" "$folder/corpus/$name" "$seeds" \
            >"$log" 2>&1 &&
            echo "1 passed, 0 failed" >>"$log" || echo "0 passed, 1 failed" >>"$log"
    else
        "$program" "${how[@]}" --seed "$seed" --folder "$folder" "$seeds" >"$log" 2>&1 ||
            grep -q '^0 passed' "$log" || echo "0 passed, 1 failed" >>"$log"
    fi
    sed "s/^/$name: /" "$log" | tail -n 25
}

results=$(mktemp)
trap 'rm -f "$results"' EXIT
(($#)) || set -- $(find "$BUILD/fuzz" -maxdepth 1 -type f -executable | sort)
export -f run
printf '%s\n' "$@" | xargs -P "${JOBS:-1}" -I{} bash -c 'run {}' | tee "$results"
awk '/: [0-9]+ passed, [0-9]+ failed$/ { p += $2; f += $4 } END { print p + 0 " passed, " f + 0 " failed"; exit f || !p }' \
    "$results"
