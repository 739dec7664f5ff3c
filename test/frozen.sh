#!/bin/bash
# Runs programs that were built with other headers than the library. test/frozen has the headers of each older version. Headers of a later
# version are made, with more members in each struct that may grow. Prints failures; the last line counts. `test/frozen.sh freeze VERSION`
# stores today's headers as those of a version.
set -u
. "$(dirname "$0")/check.sh"
warnings="-std=gnu11 -Wall -Wextra -Wno-missing-field-initializers -Werror"

# Copies the headers of a folder without their comments.
strip_headers() {
    local header
    mkdir -p "$2"
    for header in "$1"/*.h; do
        gcc -w -fpreprocessed -dD -E -P "$header" | clang-format --assume-filename=x.h --style=file:"$tree/.clang-format" \
            >"$2/$(basename "$header")" || return 1
    done
}
if [[ ${1:-} == freeze ]]; then
    strip_headers include "test/frozen/$2"
    exit
fi

make -s -j2 build/librlxvk.so || exit 1
mkdir "$work/grown" "$work/objects"
for header in include/*.h; do awk -f test/frozen/grow.awk "$header" >"$work/grown/$(basename "$header")" || exit 1; done

# ---- A library whose structs have grown ----

compile() { ${CC:-gcc} -w -std=c11 -D_GNU_SOURCE -O0 -fPIC -I"$work/grown" -Iruntime -Iglsl -Ibuild/generated -c -o "$work/objects/${1//\//_}.o" "$1"; }
export -f compile && export work
grown_library() {
    find runtime -name '*.c' ! -name '*_windows.c' -print0 | xargs -0 -P 2 -I{} bash -c 'compile {}' &&
        gcc -shared -Wl,-soname,librlxvk.so.0 -o "$work/objects/librlxvk.so.0" "$work"/objects/*.o build/kernel_table.o -ldl -lm -lpthread
}
structs=$(grep -l '    size_t struct_size;' include/*.h | xargs grep -c '    size_t struct_size;' | awk -F: '{ n += $2 } END { print n }')
check "structs that may grow: $structs" test "$structs" -ge 60
check "each of them has grown" test "$(cat "$work"/grown/*.h | grep -c '    uint64_t grown\[3\];')" = "$structs"
check "a library whose structs have grown" grown_library

# ---- Programs of older versions ----

# Members that have another name since: their old names are macros for the new ones.
places() { gcc $warnings -w -I"$2" ${3:+-include "$3"} -o "$work/places" -x c <(awk -f test/frozen/places.awk "$1"/*.h) && "$work/places"; }
# The newer program prints all lines that the older one prints.
same_places() { comm -23 <(sort "$work/older_places") <(sort "$work/newer_places") | grep .; ((${PIPESTATUS[1]} == 1)); }
uses_all() { comm -23 <(awk '/^typedef struct/ { name = $3 } /size_t struct_size;/ { print name }' "$1"/*.h | sort) <(grep -oE 'rlxvk_[a-z0-9_]+' "$2" | sort -u) | grep .; ((${PIPESTATUS[1]} == 1)); }
with() {
    LD_LIBRARY_PATH=$1 "${@:2}"
    local status=$?
    ((status < 128)) || echo "ended by signal $((status - 128)): a struct was read or written beyond its end"
    return $status
}

for headers in test/frozen/*/; do
    version=$(basename "$headers")
    check "$version: the program compiles" gcc $warnings -I"$headers" -o "$work/older" test/frozen/older.c -Lbuild -lrlxvk
    check "$version: the program uses every struct that may grow" uses_all "$headers" test/frozen/older.c
    check "$version: its places" places "$headers" "$headers" && "$work/places" >"$work/older_places"
    check "$version: the places of its members now" places "$headers" include test/frozen/renamed.h && "$work/places" >"$work/newer_places"
    check "$version: no member has moved and no number changed (new members go behind struct_size)" same_places
    check "$version: there are places" test "$(wc -l <"$work/older_places")" -ge 500
    check "$version: the program with today's library" with build "$work/older" "$work/params.npz"
    check "$version: the program with a library whose structs have grown" with "$work/objects" "$work/older" "$work/params.npz"
done

# ---- A program of a later version ----

check "a later program compiles" gcc $warnings -I"$work/grown" -o "$work/newer" test/frozen/newer.c -Lbuild -lrlxvk
check "a later program with today's library" with build "$work/newer"
check "a later program with its own library" with "$work/objects" "$work/newer" own
finish
