#!/bin/bash
# Every test on the software drivers. Counts tests, prints failures, writes $BUILD/test/summary.
set -u
BUILD=${BUILD:-build}
mkdir -p "$BUILD/test"
export BUILD
log=$BUILD/test/log counts=$BUILD/test/counts # of stages: passed, failed, seconds, name
: >"$log"
[[ ! -f $counts ]] || mv "$counts" "$counts.last"
: >"$counts"
started=$SECONDS

# A stage: its name, then the command. Tests are counted by the last lines "N passed, N failed" or cmocka's own.
stage() {
    local name=$1 begin=$SECONDS out status p f s
    shift
    out=$("$@" 2>&1)
    status=$?
    printf '==== %s\n%s\n' "$name" "$out" >>"$log"
    p=$(grep -oE '^[0-9]+ passed, [0-9]+ failed' <<<"$out" | tail -n 1)
    if [[ $p ]]; then
        f=$(awk '{ print $3 }' <<<"$p")
        p=$(awk '{ print $1 }' <<<"$p")
    else
        p=$(grep -oE '\[  PASSED  \] [0-9]+' <<<"$out" | awk '{ n += $4 } END { print n + 0 }')
        f=$(grep -oE '\[  FAILED  \] [0-9]+ test' <<<"$out" | awk '{ n += $4 } END { print n + 0 }')
    fi
    s=$(grep -oE '\[  SKIPPED \] [0-9]+ test' <<<"$out" | awk '{ n += $4 } END { print n + 0 }')
    ((status == 0 && p > 0)) || ((f > 0)) || f=1 # nothing run is no pass
    echo "$p $f $((SECONDS - begin)) $name" >>"$counts"
    printf '%-44s %5d passed %3d failed %4d s%s\n' "$name" "$p" "$f" $((SECONDS - begin)) "$( ((s)) && echo "  $s skipped")"
    ((f == 0)) || tail -n 25 <<<"$out"
}

# The cases by two processes at a time, a few ops each, those of most cases first: drivers compile pipelines, most of the time, on
# one thread, and cases of one op share them.
conform_by_ops() {
    local -x out=$BUILD/test/ops
    local status
    rm -rf "$out" && mkdir -p "$out" || return 1
    "$program" conform "$@" --list | cut -d ' ' -f 1 | sort | uniq -c | sort -k 1,1rn -k 2 | awk '{ print $2 }' | xargs -n 3 |
        tr ' ' ',' | xargs -P 2 -I{} bash -c '"$0" conform --op "$@" --jobs 1 >"$out/$1" 2>&1' "$program" {} "$@"
    status=$?
    cat "$out"/*
    cat "$out"/* | awk '/^[0-9]+ passed, [0-9]+ failed/ { p += $1; f += $3 } END { print p + 0 " passed, " f + 0 " failed" }'
    return $status
}

lavapipe=$(ls /usr/share/vulkan/icd.d/lvp_icd*.json 2>/dev/null | head -n 1)
[[ -n $lavapipe ]] && export VK_ICD_FILENAMES=$lavapipe
program=$BUILD/test/rlxvk # the program that also looks for what it left behind
export RLXVK_NO_TUNING=1 # kernels by table, whatever was measured on this machine

# Two at a time: most of a driver's work is compiling, on one thread. What took longest the last time begins, so that it does
# not run on alone.
export -f stage
export log counts
units=(test/unit/*/test_*.c)
units=("${units[@]##*/}")
printf '%s\n' "${units[@]%.c}" |
    awk -v last="$counts.last" 'BEGIN { while ((getline < last) > 0) seconds[$4] = $3 } { print seconds[$1] + 0, $1 }' |
    sort -k 1,1rn -k 2 | cut -d ' ' -f 2 | xargs -P 2 -I{} bash -c 'stage "$1" "$BUILD/test/$1"' _ {}
stage "conform" conform_by_ops
stage "conform, golden vectors" conform_by_ops --golden test/golden
stage "conform, gradients" conform_by_ops --gradients --sparse=2
if swiftshader=$(test/swiftshader.sh 2>>"$log"); then
    VK_ICD_FILENAMES=$swiftshader stage "conform on SwiftShader" conform_by_ops --sparse=4
    VK_ICD_FILENAMES=$swiftshader stage "golden vectors on SwiftShader" conform_by_ops --golden test/golden
    VK_ICD_FILENAMES=$swiftshader stage "gradients on SwiftShader" conform_by_ops --gradients --sparse=3
else
    echo "SwiftShader: not to be had here (see $log); skipped"
fi
RLXVK_VALIDATION=1 stage "conform under validation" "$program" conform --sparse --jobs 1 &
stage "conform, each kernel variant" conform_by_ops --each-variant --sparse=1000
wait
stage "sanitizers" test/sanitize.sh
# Fuzzing is of one thread, beside what mostly is, too. `make fuzz` takes longer.
fuzzing() {
    RLXVK_TEST_FUZZ_SECONDS=${RLXVK_TEST_FUZZ_SECONDS:-10} stage "fuzzing under sanitizers" test/fuzz.sh
    RLXVK_VALIDATION=1 RLXVK_TEST_FUZZ_RUNS=500 stage "sequences under validation" test/fuzz.sh build/asan/fuzz/sequence
}
BUILD=build/asan fuzzing &
stage "rebuilding after a change" test/rebuild.sh
stage "following the lists of how to add things" test/extend.sh
stage "installed copies" test/installed.sh
wait

read -r passed failed < <(awk '{ p += $1; f += $2 } END { print p + 0, f + 0 }' "$counts")
echo "$passed passed, $failed failed" | tee "$BUILD/test/summary.tmp"
mv "$BUILD/test/summary.tmp" "$BUILD/test/summary"
echo "tests took $((SECONDS - started)) s"
((failed == 0))
