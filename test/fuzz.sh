#!/bin/bash
# Runs fuzz targets (programs under $BUILD/fuzz; all when none is named) from their seeds, each for RLXVK_FUZZ_SECONDS,
# or RLXVK_FUZZ_RUNS executions. Failing inputs are left in $BUILD/fuzz.
set -u
cd "$(dirname "$0")/.."
BUILD=${BUILD:-build}
seconds=${RLXVK_FUZZ_SECONDS:-60} runs=${RLXVK_FUZZ_RUNS:-} seed=${RLXVK_FUZZ_SEED:-1}
export RLXVK_NO_TUNING=1
((seed)) || seed=$(date +%s)

run() {
    local program=$1 name=${1##*/} seeds=test/fuzz/seeds/${1##*/}
    [[ -d $seeds ]] || seeds=$BUILD/fuzz/seeds/$name # made by the build
    if nm "$program" 2>/dev/null | grep -q ' T LLVMFuzzerRunDriver'; then
        mkdir -p "$BUILD/fuzz/corpus/$name"
        "$program" ${runs:+-runs="$runs"} ${runs:--max_total_time="$seconds"} -seed="$seed" -rss_limit_mb=4096 \
            -artifact_prefix="$BUILD/fuzz/$name-" "$BUILD/fuzz/corpus/$name" "$seeds"
    else
        "$program" ${runs:+--runs "$runs"} ${runs:---seconds "$seconds"} --seed "$seed" --folder "$BUILD/fuzz" "$seeds"
    fi
}

(($#)) || set -- $(find "$BUILD/fuzz" -maxdepth 1 -type f -executable | sort)
status=0
for program; do
    echo "${program##*/}:"
    run "$program" || status=1
done
exit $status
