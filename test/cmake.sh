#!/bin/bash
# Tests tools/cmake: builds by CMake, runs tests by ctest, installs, and builds a project that uses the installed copy, one that has the source
# tree as a folder, and one that fetches the source archive. Prints failures; the last line counts.
set -u
. "$(dirname "$0")/check.sh"
unset CC CFLAGS LD_LIBRARY_PATH
build=$work/build prefix="$work/a prefix"
fast=(-DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS_RELEASE=-O0) # these tests are about building

make -s -j2 dist >/dev/null || exit 1 # kernels are compiled once, by the Makefile
check "configures" cmake -S tools/cmake -B "$build" "${fast[@]}" -DRLXVK_BASE="$tree/build" -DRLXVK_TESTS=ON -DCMAKE_INSTALL_PREFIX="$prefix"
check "has every unit test" test "$(ctest --test-dir "$build" -N | sed -n 's/Total Tests: //p')" = "$(ls test/unit/*/test_*.c | wc -l)"
check "builds" cmake --build "$build" -j 2
check "builds tests" cmake --build "$build" -j 2 --target test_sized test_dims test_status
check "ctest" ctest --test-dir "$build" -R '^test_(sized|dims|status)$' --no-tests=error --output-on-failure
check "a second build builds nothing" lacks -qE 'Building|Compiling|Linking' <(cmake --build "$build" 2>&1)
check "installs" cmake --install "$build"

check "the shared library exports what the headers declare" same build/generated/public.txt <(functions_of "$prefix"/lib*/librlxvk.so)
check "the archive defines what the headers declare" same build/generated/public.txt <(functions_of "$prefix"/lib*/librlxvk.a)
check "the program runs" "$prefix/bin/rlxvk" conform --op softmax --sparse=16 --jobs 0
check "pkg-config has the version" test "$(PKG_CONFIG_PATH=$(echo "$prefix"/lib*/pkgconfig) pkg-config --modversion rlxvk)" = "$("$prefix/bin/rlxvk" --version | cut -d ' ' -f 2)"

cp -r test/installed "$work/consumer"
readme_program >"$work/consumer/program.c"
archive=$(ls -t build/rlxvk-*.tar.gz | head -n 1)
# Arguments: where the library comes from, and definitions.
consumer() {
    local how=$1 at="$work/by $1"
    shift
    check "$how configures" cmake -S "$work/consumer" -B "$at" -DHOW="$how" "${fast[@]}" "$@"
    check "$how builds" cmake --build "$at" -j 2 --target with_archive with_shared
    check "$how: the program with the archive" test "$("$at/with_archive")" = "$readme_result"
    check "$how: the program with the shared library" test "$("$at/with_shared")" = "$readme_result"
    check "$how: only one of them needs it at run time" test "$(ldd "$at"/with_* | grep -c librlxvk)" = 1
}
consumer find_package -DCMAKE_PREFIX_PATH="$prefix"
consumer add_subdirectory -DSOURCE="$tree" -DRLXVK_BASE="$tree/build"
consumer FetchContent -DSOURCE="file://$tree/$archive"
finish
