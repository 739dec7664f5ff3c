# Sourced by scripts that check what users see. It goes to the root of the tree and clears the variables of make. It makes a folder `work`
# with its own cache, which is removed at the end.
cd "$(dirname "$0")/.." || exit 1
unset BUILD BASE config MAKEFLAGS MAKELEVEL
tree=$PWD work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
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
# Prints the program of the README. C code without #include is none.
readme_program() {
    awk '/^```c$/ { inside = 1; lines = ""; next }
        /^```/ { if (inside && lines ~ /^#include/) printf "%s", lines; inside = 0 }
        inside { lines = lines $0 "\n" }' README.md
}
# Prints the last line of each script: the counts.
finish() {
    echo "$passed passed, $failed failed"
    exit $((failed != 0))
}
