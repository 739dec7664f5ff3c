# For scripts that check what users see: sourced, it goes to the root of the tree, forgets what make was told, and makes `work`,
# a folder that goes away at the end, with a cache of its own in it.
cd "$(dirname "$0")/.." || exit 1
unset BUILD BASE config MAKEFLAGS MAKELEVEL
tree=$PWD work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
lavapipe=$(ls /usr/share/vulkan/icd.d/lvp_icd*.json 2>/dev/null | head -n 1)
# What other tests had Mesa's drivers compile stays of use.
export MESA_SHADER_CACHE_DIR=${MESA_SHADER_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}}
export VK_ICD_FILENAMES=${VK_ICD_FILENAMES:-$lavapipe} RLXVK_NO_TUNING=1 XDG_CACHE_HOME=$work/cache
passed=0 failed=0

# What is checked, then the command that succeeds if it holds.
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
# The last line of each: what is counted.
finish() {
    echo "$passed passed, $failed failed"
    exit $((failed != 0))
}
