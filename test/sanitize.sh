#!/bin/bash
# Builds everything with ASan and UBSan and runs the unit tests and a sparse conformance pass under them. The drivers' own
# leaks are not ours to judge, so leaks are checked only by the tests that open no device.
set -u
unset BUILD BASE MAKEFLAGS
cd "$(dirname "$0")/.."
jobs=${JOBS:-2}
make -s -j"$jobs" config=asan all units fuzzers >build/asan.log 2>&1 || { tail -n 20 build/asan.log; exit 1; }

# Leaks are looked for (1) or not (0); then the command. Prints what failed, and its count.
run() {
    local out p
    if out=$(ASAN_OPTIONS=detect_leaks=$1 UBSAN_OPTIONS=print_stacktrace=1 "${@:2}" 2>&1); then
        p=$(grep -oE '\[  PASSED  \] [0-9]+|^[0-9]+ passed' <<<"$out" | grep -oE '[0-9]+' | tail -n 1)
        echo "${p:-1} passed, 0 failed"
    else
        echo "FAILED under sanitizers: ${*:2}"
        tail -n 30 <<<"$out"
        echo "0 passed, 1 failed"
    fi
}

run_unit() {
    case $1 in
    *test_exec | *test_fuzz | *test_llama) run 0 "$1" ;;
    *) run 1 "$1" ;;
    esac
}

export -f run run_unit
{
    find build/asan/test -maxdepth 1 -type f -executable -name 'test_*' | sort | xargs -P "$jobs" -I{} bash -c 'run_unit {}'
    run 0 build/asan/bin/rlxvk conform --sparse
} >build/asan/results
grep -v '^[0-9]* passed, 0 failed' build/asan/results
awk '/^[0-9]+ passed, [0-9]+ failed/ { p += $1; f += $3 } END { print p + 0 " passed, " f + 0 " failed"; exit f > 0 }' build/asan/results
