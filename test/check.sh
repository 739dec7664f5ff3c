# Sourced by scripts that check what users see. It goes to the root of the tree and clears the variables of make. It makes a folder `work`
# with its own cache, which is removed at the end. A script that starts or mounts something defines `undo`, which runs before that.
cd "$(dirname "$0")/.." || exit 1
unset BUILD BASE config MAKEFLAGS MAKELEVEL
tree=$PWD work=$(mktemp -d)
undo() { :; }
trap 'undo; rm -rf "$work"' EXIT
lavapipe=$(ls /usr/share/vulkan/icd.d/lvp_icd*.json 2>/dev/null | head -n 1)
# Keeps Mesa's shader cache, because other tests have filled it.
export MESA_SHADER_CACHE_DIR=${MESA_SHADER_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}}
export VK_ICD_FILENAMES=${VK_ICD_FILENAMES:-$lavapipe} RLXVK_NO_TUNING=1 XDG_CACHE_HOME=$work/cache
passed=0 failed=0

# Arguments: what is checked, then a command that succeeds if it is true.
check() {
    local what=$1 out
    shift
    if out=$("$@" 2>&1); then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAILED: %s\n%s\n' "$what" "$(tail -n 15 <<<"$out")"
    fi
}
lacks() { ! grep "$@"; }
same() { diff <(sort "$1") <(sort "$2"); } # the same lines
# Succeeds if a command prints a line that matches the first argument.
prints() {
    local wanted=$1
    shift
    "$@" >"$work/printed" 2>&1
    grep -qE "$wanted" "$work/printed" || { cat "$work/printed"; return 1; }
}
# Runs a unit test program: its name, then the command. Counts its tests, and adds its output to the file `log` if there is one.
unit_test() {
    local name=$1 out status p f
    shift
    out=$(timeout 900 "$@" 2>&1)
    status=$?
    printf '==== %s\n%s\n' "$name" "$out" >>"${log:-/dev/null}"
    p=$(grep -oE '\[  PASSED  \] [0-9]+' <<<"$out" | awk '{ n += $4 } END { print n + 0 }')
    f=$(grep -oE '\[  FAILED  \] [0-9]+ test' <<<"$out" | awk '{ n += $4 } END { print n + 0 }')
    ((status == 0 && p > 0)) || ((f > 0)) || f=1
    passed=$((passed + p)) failed=$((failed + f))
    ((f == 0)) && return
    printf 'FAILED: %s (exit status %d)\n%s\n' "$name" "$status" "$(grep -E 'ERROR|error|FAILED|left behind' <<<"$out" | head -n 8)"
    return 1
}
# Makes a home for Wine, which writes names of files in the characters of the locale.
start_wine() {
    export LC_ALL=C.UTF-8 WINEPREFIX=$work/wine WINEDEBUG=-all WINEDLLOVERRIDES="mscoree,mshtml="
    undo() { wineserver -k >/dev/null 2>&1; }
    wineboot --init >/dev/null 2>&1
}
# Prints the program of the README. C code without #include is none.
readme_program() {
    awk '/^```c$/ { inside = 1; lines = ""; next }
        /^```/ { if (inside && lines ~ /^#include/) printf "%s", lines; inside = 0 }
        inside { lines = lines $0 "\n" }' README.md
}
readme_result="0.119203 0.880797" # what it prints: softmax(4, 6)
# The functions that a library of ours defines for its users: libraries with a name in .so or .a.
functions_of() {
    case $1 in
    *.so) nm -D --defined-only "$1" | awk '{ print $NF }' ;;
    *.a) nm -g --defined-only "$1" | awk 'NF == 3 { print $NF }' ;;
    esac
}
# Prints the last line of each script: the counts.
finish() {
    echo "$passed passed, $failed failed"
    exit $((failed != 0))
}
