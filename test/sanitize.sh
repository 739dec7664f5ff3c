#!/bin/bash
# Builds everything with ASan and UBSan and runs the unit tests and a sparse conformance pass under them. What is left
# behind, and where leaks are looked for, the programs decide themselves (test/support/balance.c). Tests of numbers alone, which
# take the same paths through the host's code again and again, are left out.
set -u
unset BUILD BASE MAKEFLAGS
cd "$(dirname "$0")/.."
jobs=${JOBS:-2}
make -s -j"$jobs" config=asan units fuzzers >build/asan.log 2>&1 || { tail -n 20 build/asan.log; exit 1; }

# Prints what failed, and its count.
run() {
    local out p
    if out=$(UBSAN_OPTIONS=print_stacktrace=1 "$@" 2>&1); then
        p=$(grep -oE '\[  PASSED  \] [0-9]+|^[0-9]+ passed' <<<"$out" | grep -oE '[0-9]+' | tail -n 1)
        echo "${p:-1} passed, 0 failed"
    else
        echo "FAILED under sanitizers: $*"
        tail -n 30 <<<"$out"
        echo "0 passed, 1 failed"
    fi
}

export -f run
numbers='^test_(extremes|fft|large)$'
units=(test/unit/*/test_*.c)
units=("${units[@]##*/}")
printf '%s\n' 'rlxvk conform --sparse=16 --jobs 1' "${units[@]%.c}" | grep -vE "$numbers" |
    xargs -P "$jobs" -I{} bash -c 'run build/asan/test/{}' >build/asan/results
grep -v '^[0-9]* passed, 0 failed' build/asan/results
awk '/^[0-9]+ passed, [0-9]+ failed/ { p += $1; f += $3 } END { print p + 0 " passed, " f + 0 " failed"; exit f > 0 }' build/asan/results
