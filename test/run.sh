#!/bin/bash
# Runs every test on the software drivers. Counts tests, prints failures, and writes $BUILD/test/summary.
#
# It leaves out most conformance cases that need a new pipeline, because compiling takes most of the time on a driver without a cache. It
# also leaves out long unit tests. With RLXVK_TEST_ALL=1, as in CI, samples are larger, and depend on the commit: of each kernel every third
# pipeline is compiled, and all cases run that need no others, so that every case runs at some commits. All unit tests run, a third of them
# under sanitizers. Each variant of each kernel runs, and copies of the tree are built after changes.
#
# A stage is a name and its jobs, which are commands. Two jobs of any stages run at a time, because drivers mostly compile, on one thread.
# The job that took longest last time starts first, because otherwise it may run alone at the end.
set -u
export BUILD=${BUILD:-build}
mkdir -p "$BUILD/test/jobs"
export log=$BUILD/test/log counts=$BUILD/test/counts jobs=$BUILD/test/jobs/list seconds=$BUILD/test/jobs/seconds
export lock=$BUILD/test/jobs/lock # one job at a time adds its results
: >"$log" && : >"$counts" && : >"$jobs" && touch "$seconds"
started=$SECONDS

# Runs a job: its stage, then the command. Counts tests by the last line "N passed, N failed", or by cmocka's own lines.
run() {
    local stage=$1 command=$2 begin=$SECONDS out status p f s
    out=$(bash -c "$command" 2>&1)
    status=$?
    p=$(grep -oE '^[0-9]+ passed, [0-9]+ failed' <<<"$out" | tail -n 1)
    if [[ $p ]]; then
        f=$(awk '{ print $3 }' <<<"$p")
        p=$(awk '{ print $1 }' <<<"$p")
    else
        p=$(grep -oE '\[  PASSED  \] [0-9]+' <<<"$out" | awk '{ n += $4 } END { print n + 0 }')
        f=$(grep -oE '\[  FAILED  \] [0-9]+ test' <<<"$out" | awk '{ n += $4 } END { print n + 0 }')
    fi
    s=$(grep -oE '\[  SKIPPED \] [0-9]+ test' <<<"$out" | awk '{ n += $4 } END { print n + 0 }')
    ((status == 0 && p > 0)) || ((f > 0)) || f=1 # if no test ran, the job failed
    exec 9>"$lock"
    flock 9
    printf '==== %s: %s\n%s\n' "$stage" "$command" "$out" >>"$log"
    printf '%s\t%s|%s\n' $((SECONDS - begin)) "$stage" "$command" >>"$seconds"
    printf '%s\t%s\t%s\t%s\t%s\n' "$p" "$f" "$s" $((SECONDS - begin)) "$stage" >>"$counts"
    ((f == 0)) || printf '%s: %s\n%s\n' "$stage" "$command" "$(tail -n 25 <<<"$out")"
    awk -F '\t' -v stage="$stage" -v total="$(grep -c "^$stage|" "$jobs")" '
        $5 == stage { n++; p += $1; f += $2; s += $3; t += $4 }
        END { if (n == total) printf "%-40s %5d passed %3d failed %4d s%s\n", stage, p, f, t, s ? "  " s " skipped" : "" }' "$counts"
}
export -f run

# Adds a job for each line of input.
add() {
    local stage=$1
    sed "s/^/$stage|/" >>"$jobs"
}

# Makes jobs of five ops each, because cases of one op share pipelines. The ops are dealt out in the order of their numbers of cases. This
# keeps similar ops apart, some of which have no gradients at all.
add_cases() {
    local stage=$1
    shift
    "$program" conform "$@" --list | cut -d ' ' -f 1 | sort | uniq -c | sort -k 1,1rn -k 2 | awk '{ print $2 }' |
        awk -v before="$program conform" -v after="$* --jobs 0" '
            { n = int((NR + 4) / 5); op[NR] = $1 }
            END { for (i = 1; i <= n; i++) { for (k = i; k <= NR; k += n) ops = k == i ? op[k] : ops "," op[k]
                  print before, "--op", ops, after } }' |
        add "$stage"
}

unit_tests() {
    find test/unit -name 'test_*.c' | sed 's|.*/||; s|\.c$||' | sort
}
# The names on standard input without those of a list.
without() { grep -vE "^(${1// /|})\$"; }

lavapipe=$(ls /usr/share/vulkan/icd.d/lvp_icd*.json 2>/dev/null | head -n 1)
[[ -n $lavapipe ]] && export VK_ICD_FILENAMES=$lavapipe
# The program that also checks that it leaves nothing behind. With --jobs 0 it does so for conform, too, because it starts no processes.
program=$BUILD/test/rlxvk
export RLXVK_NO_TUNING=1  # ignore measured choices of this machine: kernels by table

# Under ASan and UBSan: these unit tests, a sparse conformance pass, and fuzzing. The programs themselves find out what they left behind and
# whether to look for leaks (test/support/balance.c).
add_sanitized() {
    local fuzz="BUILD=build/asan test/fuzz.sh" tests
    tests=$(sed 's|^|build/asan/test/|')
    env -u BUILD -u BASE -u MAKEFLAGS make -s -j2 config=asan build/asan/test/rlxvk $tests fuzzers >build/asan.log 2>&1 ||
        { tail -n 20 build/asan.log; exit 1; }
    export ASAN_OPTIONS=quarantine_size_mb=16 # if it is larger, memory that drivers free while compiling fills it
    add "conform under sanitizers" <<<"build/asan/test/rlxvk conform --sparse=16 --jobs 0"
    add "sequences under validation" <<<"RLXVK_VALIDATION=1 RLXVK_TEST_FUZZ_RUNS=500 $fuzz build/asan/fuzz/sequence"
    find build/asan/fuzz -maxdepth 1 -type f -executable | sort | sed "s|^|$fuzz |" | add "fuzzing under sanitizers"
    add "unit tests under sanitizers" <<<"$tests"
}

# Jobs that compile most come first, because drivers keep the result for the others. `make fuzz` fuzzes longer.
export UBSAN_OPTIONS=print_stacktrace=1
# SwiftShader keeps nothing on disk. So one process runs all its cases, to share what it compiled. It takes long, so it comes first. The
# contents of inputs come from seed 1; in CI a sample has another seed, too, which depends on the commit. So does which cases a sample takes
# (`turn`).
fewer="--pipelines=64" minimal=16 sparse=16 sparser=96 swift=64 modes=64 orders=128 parts=1 turn=0 smaller="v3d all-off" stride=1024
# Thousandths of a second in which two processes, as many as later, compile and run the cases of one op.
measure() {
    local begin one=(env RLXVK_NO_CACHE=1 MESA_SHADER_CACHE_DISABLE=true "$program" conform --op cumsum --jobs 0)
    begin=$(date +%s%N)
    "${one[@]}" >>"$log" 2>&1 &
    "${one[@]}" >>"$log" 2>&1
    wait
    echo $((($(date +%s%N) - begin) / 1000000))
}
if [[ ${RLXVK_TEST_ALL:-} ]]; then
    # On a machine that is slower than usual by a whole number, samples are smaller by it, so that CI takes about as long.
    usual=7500 took=$(measure)
    slow=$(((took + usual / 2) / usual))
    ((slow = slow < 1 ? 1 : slow > 4 ? 4 : slow))
    minimal=$((4 * slow)) sparse=$((4 * slow)) sparser=$((6 * slow)) swift=$((32 * slow))
    modes=$((8 * slow)) orders=$((48 * slow)) stride=$((256 * slow))
    smaller=$("$program" conform --limits '?' 2>&1 | sed -n 's/.*it takes //; s/,//gp') # all
    commit=$((16#$(git rev-parse HEAD 2>/dev/null | cut -c 1-8 | grep . || echo 0)))
    parts=$((3 * slow)) turn=$((commit / 39)) fewer="--pipelines=$parts:$((turn % parts))"
    echo "turn $turn, samples 1/$slow ($took ms)"
fi
export RLXVK_TEST_FUZZ_SECONDS=${RLXVK_TEST_FUZZ_SECONDS:-10}
if swiftshader=$(test/swiftshader.sh 2>>"$log"); then
    on_swiftshader="VK_ICD_FILENAMES=$swiftshader $program conform --jobs 0"
    add "conform on SwiftShader" <<<"$on_swiftshader --sparse=$minimal --pipelines=$swift"
    add "gradients on SwiftShader" <<<"$on_swiftshader --gradients --sparse=$sparser"
    add "golden vectors on SwiftShader" <<<"$on_swiftshader --golden test/golden"
    # Only SwiftShader flushes denormals to 0; lavapipe does not.
    [[ ${RLXVK_TEST_ALL:-} ]] && add "contents on SwiftShader" <<<"VK_ICD_FILENAMES=$swiftshader $BUILD/test/test_contents"
else
    echo "SwiftShader: not to be had here (see $log); skipped"
fi
add_cases "conform" $fewer --bounds --canary
# Every Nth case of each op. `place` keeps the samples of modes apart. The division makes the sample independent of the part of the pipelines.
sample() {
    local every=$1 place=$2
    echo "--sparse=$every --phase $(((turn / parts + place) % every))"
}
[[ ${RLXVK_TEST_ALL:-} ]] && add "conform, other contents" <<<"$program conform --seed $((2 + commit % 39)) $fewer $(sample "$modes" 0) --jobs 0"
# Finds kernels that are right only in one order of invocations.
add "conform, invocations reversed" <<<"$program conform --invocations reversed $fewer $(sample "$orders" 0) --jobs 0"
add "conform, invocations permuted" <<<"$program conform --invocations permuted:7 $fewer $(sample "$orders" 2) --jobs 0"
# Finds errors with workgroups that have no work, and with operands and results that do not begin their slots.
add "conform, grids that fold" <<<"$program conform --folded --canary $fewer $(sample "$modes" 1) --jobs 0"
add "conform, dispatches in ranges" <<<"$program conform --sliced --folded $fewer $(sample $((2 * orders)) 2) --jobs 0"
add "conform, operands inside others" <<<"$program conform --shifted --canary $fewer $(sample "$modes" 3) --jobs 0"
# Finds choices and plans that do not fit smaller devices. Each profile takes other cases, because most cases are alike under all.
phase=20
for limits in $smaller; do
    add "conform, limits" <<<"$program conform --limits $limits --sparse=$stride --phase $phase --jobs 0"
    [[ ${RLXVK_TEST_ALL:-} ]] &&
        add "gradients, limits" <<<"$program conform --limits $limits --gradients --sparse=$((stride * 2)) --phase $phase --jobs 0"
    phase=$((phase + 13))
done
add "conform, host functions" <<<"$program conform --force-host --sparse=$((modes / 4)) --jobs 0"
add_cases "conform, gradients" --gradients --sparse=$sparse
add "conform under validation" <<<"RLXVK_VALIDATION=1 $program conform --sparse $fewer --jobs 0"
if [[ ${RLXVK_TEST_ALL:-} ]]; then
    add "conform, each kernel variant" <<<"$program conform --each-variant --sparse=100000 --jobs 0"
    add "rebuilding after a change" <<<"test/rebuild.sh"
    add "following the lists of how to add things" <<<"test/extend.sh"
    add "source archive" <<<"test/dist.sh"
    add "CMake" <<<"test/cmake.sh"
fi
# Sampled, of three devices. With RLXVK_TEST_COMPILERS=1, all pipelines of all devices, which takes long.
if test/compilers.sh fetch >>"$log" 2>&1; then
    if [[ ${RLXVK_TEST_COMPILERS:-} ]]; then
        add "compilers of absent GPUs" <<<"test/compilers.sh"
    else
        printf 'test/compilers.sh quick %s\n' navi31 740 190 | add "compilers of absent GPUs"
    fi
else
    echo "drivers of absent GPUs: not to be had here (see $log); skipped"
fi
# Sampled unless all cases run.
if command -v spirv-cross >/dev/null; then
    add "translation to Metal" <<<"test/metal.sh ${RLXVK_TEST_ALL:+all}"
else
    echo "SPIRV-Cross: not here; skipped"
fi
add "checking what is translated" <<<"test/metal/test_translate.py"
# The node tests of the standard, from the distribution's package. What is refused does not count.
nodes=/usr/share/libonnx-testdata/data/node
if [[ -d $nodes ]]; then
    add "node tests of ONNX" <<<"tools/onnx_nodes.py $nodes --program $program"
else
    echo "node tests of ONNX: no package libonnx-testdata here; skipped"
fi
add "node tests of com.microsoft" <<<"tools/onnx_nodes.py test/data/onnx_microsoft.tar.gz --program $program"
add "comparing statistics of pipelines" <<<"test/compilers/test_compare.py"
add "estimating variants" <<<"test/compilers/test_estimate.py"
add "installed copies" <<<"test/installed.sh"
add "Python" <<<"test/python.sh"
add "programs of other versions" <<<"test/frozen.sh"
add "bad drivers" <<<"test/faults.sh"
add_cases "conform, golden vectors" --golden test/golden
if [[ ${RLXVK_TEST_ALL:-} ]]; then
    # A third under sanitizers, the others plainly. Tests of numbers only are never sanitized, because they repeat the same host code.
    sanitized=$(unit_tests | without "$NUMBERS" | awk -v turn="$turn" 'NR % 3 == turn % 3')
    unit_tests | without "$(echo $sanitized)" | sed "s|^|$BUILD/test/|" | add "unit tests"
    add_sanitized <<<"$sanitized"
else
    unit_tests | without "$LONG" | sed "s|^|$BUILD/test/|" | add "unit tests"
fi
awk -F '\t' 'FILENAME == ARGV[1] { took[$2] = $1; next } { printf "%d\t%s\n", ($1 in took) ? took[$1] : 1000, $1 }' "$seconds" "$jobs" |
    sort -s -k 1,1rn | cut -f 2 | tr '\n' '\0' | xargs -0 -P 2 -I{} bash -c 'run "${1%%|*}" "${1#*|}"' _ {}

latest=$(awk -F '\t' 'NF > 1 { took[$2] = $1 } END { for (job in took) printf "%s\t%s\n", took[job], job }' "$seconds")
echo "$latest" >"$seconds"
read -r passed failed < <(awk '{ p += $1; f += $2 } END { print p + 0, f + 0 }' "$counts")
echo "$passed passed, $failed failed" | tee "$BUILD/test/summary.tmp"
mv "$BUILD/test/summary.tmp" "$BUILD/test/summary"
echo "tests took $((SECONDS - started)) s"
((failed == 0))
