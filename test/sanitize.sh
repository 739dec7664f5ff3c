#!/bin/bash
# Builds everything with ASan and UBSan and runs the unit tests and a sparse conformance pass under them. The drivers' own
# leaks are not ours to judge, so leaks are checked only by the tests that open no device.
set -u
unset BUILD BASE MAKEFLAGS
cd "$(dirname "$0")/.."
jobs=${JOBS:-2}
make -s -j"$jobs" config=asan all units >build/asan.log 2>&1 || { tail -n 20 build/asan.log; exit 1; }
passed=0 failed=0
run() {
    local leaks=$1 out p
    shift
    if out=$(ASAN_OPTIONS=detect_leaks=$leaks UBSAN_OPTIONS=print_stacktrace=1 "$@" 2>&1); then
        p=$(grep -oE '\[  PASSED  \] [0-9]+|^[0-9]+ passed' <<<"$out" | grep -oE '[0-9]+' | tail -n 1)
        passed=$((passed + ${p:-1}))
    else
        failed=$((failed + 1))
        echo "FAILED under sanitizers: $*"
        tail -n 30 <<<"$out"
    fi
}
for unit in build/asan/test/test_*; do
    [[ -x $unit && $unit != *.* ]] || continue
    case $unit in
    *test_exec | *test_fuzz | *test_llama) run 0 "$unit" ;;
    *) run 1 "$unit" ;;
    esac
done
run 0 build/asan/bin/rlxvk conform --sparse
echo "$passed passed, $failed failed"
((failed == 0))
