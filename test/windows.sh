#!/bin/bash
# Tests the Windows build under Wine, which gives it the drivers of this machine: unit tests, examples, conformance, golden tokens, training,
# names in any script, and two processes with one cache. Prints failures and counts. BUILD: the folder of the cross build. LONG: unit tests
# that only run with RLXVK_TEST_ALL=1. Arguments: only these unit tests, and nothing else.
set -u
cross=$BUILD
mapfile -t tests < <(if (($#)); then printf '%s\n' "$@"; else
    ls "$BUILD"/test/test_*.exe | sed 's|.*/||; s|\.exe$||' | grep -vxE "$([[ ${RLXVK_TEST_ALL:-} ]] || sed 's/ /|/g' <<<"${LONG:-}")"; fi)
. "$(dirname "$0")/check.sh"
began=$SECONDS
# Without a display, Wine has no Vulkan. It finds drivers by the paths of this machine.
exec 3<>"$work/display"
Xvfb -displayfd 3 -screen 0 640x480x16 >/dev/null 2>&1 &
screen=$!
until [[ -s $work/display ]]; do sleep 0.1; done
export DISPLAY=:$(head -n 1 "$work/display")
start_wine
undo() { wineserver -k >/dev/null 2>&1; kill $screen; }
program=$cross/bin/rlxvk.exe

# Runs a program of Windows.
windows() { timeout "${limit:-900}" wine "$@"; }

# ---- Unit tests ----
for name in "${tests[@]}"; do
    unit_test "$name" wine "$cross/test/$name.exe"
done
echo "unit tests: ${#tests[@]} programs, $passed passed, $failed failed, $((SECONDS - began)) s"
(($#)) && finish

# ---- Examples ----
for example in "$cross"/examples/*.exe; do
    check "example $(basename "$example")" windows "$example"
done
model=test/data/docs-5m-q4_k_m.gguf
check "example generate_text" windows "$cross/examples/generate_text.exe" "$model" "The open() system call"

# ---- The program ----
for command in info conform bench run show generate train ops; do
    check "$command --help" prints '^usage: rlxvk' windows "$program" "$command" --help
done
prompt=(generate "$model" -p "The open() system call" --tokens 24 --greedy)
build/bin/rlxvk "${prompt[@]}" 2>/dev/null | sed '$d' >"$work/here" # the last line has times
windows "$program" "${prompt[@]}" 2>/dev/null | sed '$d' >"$work/there"
check "generate says something" test -s "$work/here"
check "generate prints the same text as here" cmp "$work/here" "$work/there"
check "train digits learns" prints '^[0-9]+ of [0-9]+ held back told right \((9[0-9]|100)\.' windows "$program" train digits --epochs 3
check "bench --start starts itself" prints 'warm again .* ms to the end' windows "$program" bench --start

# ---- Names ----
strange="$work/Grüße 世界 'a b' & %PATH%"
mkdir -p "$strange"
cp "$model" "$strange/modèle.gguf"
check "a model whose name has any letters" prints '^a language model in GGUF' windows "$program" show "$strange/modèle.gguf"
check "a file whose name has any letters" windows "$program" show "$strange/modèle.gguf" --svg "$strange/图.dot"
check "it is there" test -s "$strange/图.dot"
check "a missing file is named" prints 'nö\.gguf' windows "$program" show "$strange/nö.gguf"
mkdir -p "$strange/bin" "$strange/share/rlxvk"
cp "$program" "$strange/bin"
cp test/data/digits.*.npy "$strange/share/rlxvk"
installed() { cd "$strange" && windows bin/rlxvk.exe "$@"; }
check "an installed program finds its pictures" prints ' held back told right ' installed train digits --epochs 1

# ---- The cache ----
# Wine itself sets LOCALAPPDATA to a folder of its home.
cache=$(echo "$WINEPREFIX"/drive_c/users/*/AppData/Local/rlxvk)
rm -rf "$cache"
both() {
    windows "$program" conform --jobs 0 --op softmax >"$work/one" 2>&1 &
    windows "$program" conform --jobs 0 --op softmax >"$work/two" 2>&1
    wait $!
    grep -qE ' 0 failed' "$work/one" && grep -qE ' 0 failed' "$work/two"
}
check "two processes with one cache" both
check "the cache is written" bash -c "ls '$cache'/*.bin"
check "nothing else is left beside it" bash -c "! ls '$cache'/*.rlxvk-new"

# ---- Conformance ----
limit=3000 windows "$program" conform --pipelines=${RLXVK_TEST_PIPELINES:-32} >"$work/conform" 2>&1
grep -E '^FAILED|^rlxvk' "$work/conform" | head -n 20
line=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$work/conform")
echo "conform: ${line:-no result}"
read -r p _ f _ <<<"${line:-0 passed, 1 failed}"
passed=$((passed + p)) failed=$((failed + f))
echo "$((SECONDS - began)) s"
finish
