#!/bin/bash
# Tests the installed library as a user sees it. Installs into a PREFIX and below a DESTDIR; both have spaces in their names. Uses it from
# another folder through pkg-config, CMake, C, C++ and Python, without the source tree. Then uninstalls it. Prints failures; the last line
# counts.
set -u
. "$(dirname "$0")/check.sh"
unset PREFIX DESTDIR LIBDIR CPATH C_INCLUDE_PATH LIBRARY_PATH LD_LIBRARY_PATH PKG_CONFIG_PATH
prefix="$work/a prefix" stage="$work/a stage" opt=/opt/rlxvk

# ---- Install. From here on the source tree is not used. ----

make -s -j2 all || exit 1
check "make install into a prefix" make -s install PREFIX="$prefix"
check "make install below DESTDIR" make -s install PREFIX="$opt" LIBDIR="$opt/lib/deep" DESTDIR="$stage/"
cp -a "$stage" "$work/a copy"
copy="$work/a copy$opt"
model=$PWD/test/data/docs-5m-q4_k_m.gguf # the only file of the tree that is used, as users have such files
mkdir "$work/elsewhere"
cp -r test/installed "$work/elsewhere"
cp -r "$prefix/share/doc/rlxvk/examples" "$work/elsewhere"
cp -r "$prefix/share/rlxvk" "$work/elsewhere/data"
readme_program >"$work/elsewhere/installed/program.c"
nm --defined-only build/inside.a 2>/dev/null | awk '$2 == "T" && $3 ~ /^rlxvk_/ { print $3 }' >"$work/inside"
grep -o 'rlxvk_[a-z0-9_]*' include/PYTORCH.md | sort -u >"$work/elsewhere/named"
cd "$work/elsewhere" || exit 1
check "nothing installed names the source tree" lacks -rlF "$tree" "$prefix" "$stage"
check "nothing installed names the stage" lacks -rlF "$stage" "$stage"
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib PATH=$prefix/bin:$PATH
version=$(pkg-config --modversion rlxvk)

# ---- Symbols: exactly those that the headers declare ----

for header in "$prefix"/include/*.h; do echo "#include <$(basename "$header")>"; done >headers.c
gcc -I"$prefix/include" -aux-info declarations -c -o /dev/null headers.c
sed -n 's/.*extern .*[ *]\(rlxvk_[a-z0-9_]*\) (.*/\1/p' declarations >declared
check "the headers declare functions" test "$(wc -l <declared)" -ge 200
check "the table for users of PyTorch names calls: $(wc -l <named)" test "$(wc -l <named)" -ge 60
check "all of them exist" test -z "$(comm -23 named <(sort declared))"
check "the shared library exports what the headers declare" same declared <(functions_of "$prefix/lib/librlxvk.so")
check "the archive defines what the headers declare" same declared <(functions_of "$prefix/lib/librlxvk.a")
check "no function with a public name is missing in the headers" same declared "$work/inside"
check "the soname has the major version" grep -q "SONAME.*\[librlxvk.so.${version%%.*}\]" <(readelf -d "$prefix/lib/librlxvk.so")
check "the shared library needs libc and libm alone" lacks NEEDED \
    <(readelf -d "$prefix/lib/librlxvk.so" | grep -vE '\[(libc\.so|libm\.so|libdl\.so|libpthread\.so|ld-linux)')

# ---- pkg-config, and the version, which must be the same everywhere ----

check "the pkg-config file is valid" pkg-config --validate rlxvk
check "the program has that version" test "$(rlxvk --version)" = "rlxvk $version"
check "the man page has that version" grep -qF "rlxvk $version" "$prefix/share/man/man1/rlxvk.1"
check "the shared library's name has that version" test -f "$prefix/lib/librlxvk.so.$version"
check "only a static program links what the library needs" test \
    "$(pkg-config --libs-only-l rlxvk | xargs), $(pkg-config --static --libs-only-l rlxvk | xargs)" = \
    "-lrlxvk, -lrlxvk -ldl -lm -lpthread"

# ---- Man page and completion ----

page=$prefix/share/man/man1/rlxvk.1
# The options of a command: those in its --help, those in the man page, and those that bash completes.
in_help() { rlxvk "$1" --help | grep -oE '^usage:.*|^ *(-[a-z], )?--[a-z-]+' | grep -oE -- '--[a-z-]+' | sort -u; }
in_page() { awk -v command="$1" '/^\.S[sh] / { inside = $2 == command } inside && /^\.It Fl/ { print }' "$page" | grep -oE ' -[a-z-]{2,}' | tr -d ' ' | sed 's/^/-/' | sort -u; }
completed() {
    COMP_WORDS=(rlxvk "${@}") COMP_CWORD=$#
    _rlxvk
    printf '%s\n' "${COMPREPLY[@]}"
}
source "$prefix/share/bash-completion/completions/rlxvk"
commands=$(rlxvk --help | awk '/^  [a-z]/ { print $1 }')
check "there are commands" test "$(wc -w <<<"$commands")" -ge 5
for command in $commands; do
    check "the man page has the options of $command" same <(in_help "$command") <(in_page "$command")
    check "$command is completed" grep -qx "$command" <(completed "${command%?}")
    check "the options of $command are completed" same <(in_help "$command"; echo --help) <(completed "$command" --)
    for option in $(in_help "$command"); do
        check "$option of $command is completed" grep -qx -- "$option" <(completed "$command" "${option%?}")
    done
done
check "the man page has the switches" same <(rlxvk info | grep -oE '^  RLXVK_[A-Z_]+' | tr -d ' ') \
    <(grep -oE '^\.It Ev RLXVK_[A-Z_]+' "$page" | cut -d ' ' -f 3)
check "words of an option are completed" test "$(completed conform --precision b)" = bf16
check "words of another option are completed" test "$(completed run --layout nh)" = nhwc
check "files are left to bash" test "$(completed generate mod)" = ""
if command -v man >/dev/null; then
    check "man has no warning" test -z "$(LC_ALL=C.UTF-8 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null)"
fi
for call in $(<declared); do test -s "$prefix/share/man/man3/$call.3" || echo "$call"; done >pageless
check "every call has a man page" test ! -s pageless
check "a page has prototype, contract and options" test "$(grep -cE '^rlxvk_tensor rlxvk_attention\(|never|int64_t num_heads|RLXVK_MASK_BIAS' \
    "$prefix/share/man/man3/rlxvk_attention.3")" -ge 3
mandoc_pages() { cd "$prefix/share/man/man3" && mandoc -Tlint -W warning $(grep -L '^\.so ' rlxvk_*.3); }
if command -v mandoc >/dev/null; then check "mandoc has no warning of the calls' pages" mandoc_pages; fi
if command -v mandoc >/dev/null; then check "mandoc has no warning" mandoc -Tlint -W warning "$page"; fi

# ---- The examples, with either library ----

cd examples || exit 1
for library in shared ${RLXVK_TEST_ALL:+static}; do
    make -s clean
    check "the examples build with the $library library" make -s -j2 LIBRARY=$library CFLAGS="-O1 -Wall -Wextra -Wpedantic -Werror"
    for example in *.c; do
        example=${example%.c}
        check "$example, $library" "./$example"
        if [[ $library == shared ]]; then
            check "$example is linked with the shared library" grep -q NEEDED.*librlxvk <(readelf -d "$example")
        else
            check "$example stands without the shared library" lacks NEEDED.*librlxvk <(readelf -d "$example")
        fi
    done
done
count=$(ls *.c *.py | wc -l)
check "there are examples: $count" test "$count" -ge 20
check "ctypes_train.py" python3 ctypes_train.py
check "model_file runs the model" grep -Eqx '([0-9]+ ){4}' <(./model_file "$model" 84 104 101 32)
said=$(rlxvk generate "$model" -p "The open() system call" -n 60 --greedy | sed '$d')
check "generate_text says what rlxvk generate says" test "$said" -a "$(./generate_text "$model" "The open() system call")" = "$said"
check "train digits finds what to learn from" rlxvk train digits --epochs 1
cd ../installed || exit 1

# ---- C, C++, Python, CMake ----

flags=$(pkg-config --cflags --libs rlxvk)
check "the README's program builds" eval "gcc -Wall -Wextra -Werror -o program program.c $flags"
check "the README's program is right" test "$(./program)" = "$readme_result"
check "C++17 builds" eval "g++ -std=c++17 -O1 -Wall -Wextra -Werror '-DVERSION=\"$version\"' -o smoke smoke.cpp $flags"
check "C++17" ./smoke
check "Python" python3 smoke.py "$prefix/lib/librlxvk.so.${version%%.*}" "$version"

unset LD_LIBRARY_PATH
for at in "$prefix/lib" "$copy/lib/deep"; do
    build="for ${at##*/}"
    check "CMake configures, $build" cmake -S . -B "$build" -Drlxvk_DIR="$at/cmake/rlxvk" -DWANTED="${version%.*}"
    check "CMake builds, $build" cmake --build "$build" -j 2
    check "CMake's program with the archive, $build" test "$("$build/with_archive")" = "$readme_result"
    check "CMake's program with the shared library, $build" test "$("$build/with_shared")" = "$readme_result"
    check "which is that one, $build" grep -qF "$at/librlxvk" <(ldd "$build/with_shared")
    check "and not in the other program, $build" lacks librlxvk <(ldd "$build/with_archive")
done
check "CMake finds it by its prefix" cmake -S . -B "by prefix" -DCMAKE_PREFIX_PATH="$prefix"
for wanted in 99 "${version%%.*}.99" "$version.1"; do
    check "CMake refuses version $wanted" lacks -q "Configuring done" \
        <(cmake -S . -B refused -DCMAKE_PREFIX_PATH="$prefix" -DWANTED="$wanted" 2>&1)
done
unset PKG_CONFIG_PATH
flags=$(PKG_CONFIG_LIBDIR=$copy/lib/deep/pkgconfig PKG_CONFIG_SYSROOT_DIR="$work/a copy" pkg-config --cflags --libs rlxvk)
check "a program builds with the copy of the stage" eval "gcc -o staged program.c $flags"
check "and runs with it" test "$(LD_LIBRARY_PATH=$copy/lib/deep ./staged)" = "$readme_result"

# ---- Uninstall, which must leave other files alone ----

touch "$prefix/lib/others.so" "$prefix/include/others.h"
cd "$tree" || exit 1
check "make uninstall" make -s uninstall PREFIX="$prefix"
check "make uninstall below DESTDIR" make -s uninstall PREFIX="$opt" LIBDIR="$opt/lib/deep" DESTDIR="$stage/"
check "what is others' is still there" test -e "$prefix/lib/others.so" -a -e "$prefix/include/others.h"
rm -f "$prefix/lib/others.so" "$prefix/include/others.h"
check "nothing is left" test -z "$(find "$prefix" "$stage" ! -type d)"
check "no folder of its own is left" test -z "$(find "$prefix" "$stage" -path '*/cmake/*')"
check "make uninstall where nothing is" make -s uninstall PREFIX="$prefix"
check "a relative PREFIX is refused" lacks -q . <(make -s install PREFIX=here DESTDIR="$stage/" 2>/dev/null && echo accepted)
check "a LIBDIR elsewhere is refused" lacks -q . <(make -s install PREFIX="$prefix" LIBDIR=/lib DESTDIR="$stage/" 2>/dev/null && echo accepted)
finish
