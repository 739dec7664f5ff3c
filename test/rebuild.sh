#!/bin/bash
# Checks what a change rebuilds, on a copy of the tree and of its build: exactly the kernels and C files that include the changed file. Also
# checks that the build fails if argument structs or constants do not match those of the kernels.
set -u
BUILD=${BUILD:-build}
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
mkdir "$copy/build"
cp -a Makefile include runtime glsl spv tools test "$copy"
cp -a "$BUILD"/{spv,spv2c,generated,bin,runtime,tools,*.o,*.a} "$copy/build"
unset MAKEFLAGS MAKELEVEL config BASE BUILD
passed=0 failed=0
check() { # name, result, expected result
    if [[ $2 == "$3" ]]; then passed=$((passed + 1)); else failed=$((failed + 1)) && echo "$1: $2, not $3"; fi
}
build() { make -j2 -C "$copy" --no-print-directory FLAGS_release=-O0 all 2>&1; }
count() { grep -c "^  $1 " <<<"$log"; }

# Prints FILE and all files that include it. It reads the #include lines, because the compilers' own lists are under test.
includers() {
    (cd "$copy" && find glsl runtime tools -type f -exec grep -oE '^#include "[^"]+"' /dev/null {} +) | awk -F '[:"]' -v file="$1" '
        function visit(f, users, n, i) {
            print f
            seen[f] = 1
            for (n = split(by[f], users, " "); n > 0; n--) if (!(users[n] in seen)) visit(users[n])
        }
        { user = $1; sub(/^[a-z]+\//, "", user); by[$3] = by[$3] " " user }
        END { visit(file) }'
}
touched() {
    local users begin=$(date +%s%N)
    touch "$copy/$1"
    log=$(build)
    echo "touched $1: $(count GLSL) kernels, $(count CC) C files, $((($(date +%s%N) - begin) / 1000000)) ms"
    users=$(includers "${1#*/}")
    check "$1: kernels" "$(count GLSL)" "$(grep -c '\.comp$' <<<"$users")"
    check "$1: C files" "$(count CC)" "$(grep -c '\.c$' <<<"$users")"
}
# Changes FILE by a sed script. The build must then fail with the given reason.
broken() {
    local outcome="builds"
    cp -a "$copy/$1" "$copy/kept"
    sed -i "$2" "$copy/$1"
    cmp -s "$copy/$1" "$copy/kept" && outcome="is not changed"
    log=$(build) || outcome=$(grep -o "$3" <<<"$log" | head -n 1)
    echo "changed $1: $outcome"
    check "changed $1" "$outcome" "$3"
    mv "$copy/kept" "$copy/$1"
    touch "$copy/$1"
}

log=$(build)
check "the copy as it is" "$(count GLSL) kernels, $(count CC) C files" "0 kernels, 0 C files"
touched glsl/rows/batch_norm.comp
touched glsl/rows/softmax.glsl
touched glsl/lib/row_quads.glsl
touched glsl/matmul/matrix_layout.glsl # one of its kernels may come from spv/
touched glsl/args/random.h
touched runtime/op/rows/softmax.c

swap='s/^\( *u32 \)rows, vocabulary, \(.*\)$/#ifdef __STDC_VERSION__\n\1vocabulary, rows, \2\n#else\n&\n#endif/'
broken glsl/args/random.h "$swap" "sample: place of vocabulary"
inner='s/^\( *u32 \)outputs, inner, \(.*\)$/#ifdef __STDC_VERSION__\n\1inner, outputs, \2\n#else\n&\n#endif/'
broken glsl/args/rows.h "$inner" "softmax: place of inner" # a struct within the arguments
broken glsl/rows/cumsum_rows.glsl 's/EXCLUSIVE/WITHOUT_ITSELF/' CUMSUM_ROWS_EXCLUSIVE
cmp -s spv/attention_matrix_f16.spv "$copy/build/spv/attention_matrix_f16.raw.spv" && # otherwise glslang compiled it
    broken glsl/args/attention.h 's/scale, softcap/softcap, scale/' "is older than"
build >"$copy/log" || { check "all of it restored" "does not build" builds && tail -n 5 "$copy/log"; }

echo "$passed passed, $failed failed"
((failed == 0))
