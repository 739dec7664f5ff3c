#!/bin/bash
# Builds for other processors, C libraries and compilers, where every warning is an error, and runs the unit tests that open no device: under
# qemu-user if the processor is another one, and under Wine of 32 bits, if that is installed, for its Windows. Prints a table of targets; its
# tests are programs. Arguments: some of the targets; without them, all. LONG, NUMBERS: unit tests that only run with RLXVK_TEST_ALL=1.
# POSIX: a pattern of what unit tests use that Windows lacks.
set -u
. "$(dirname "$0")/check.sh"
targets=(gcc clang musl aarch64-linux-gnu arm-linux-gnueabihf i686-linux-gnu x86_64-w64-mingw32 i686-w64-mingw32)
(($#)) && targets=("$@")

# What unit tests use that open a device or run another program.
opens='\bsystem\(|open_context|open_shared_context|shared_context|rlxvk_context_create|device_find|rlxvk_device_list|support/command\.h|program_path|test/rlxvk'
# The names of unit tests that match none of some patterns.
tests_without() {
    local skipped="${LONG:-} ${NUMBERS:-}"
    grep -LE "$(IFS='|'; echo "$*")" test/unit/*/test_*.c | sed 's|.*/||; s|\.c$||' |
        grep -vxE "$([[ ${RLXVK_TEST_ALL:-} ]] || xargs <<<"$skipped" | sed 's/ /|/g')"
}

for target in "${targets[@]}"; do
    build=build/cross/$target log=build/cross/$target.log
    mkdir -p "$build"
    compiler=$target-gcc settings=("CROSS=$target-") run=() end='' flags=-Werror
    mapfile -t tests < <(tests_without "$opens")
    case $target in
    gcc | clang) compiler=$target settings=("CC=$target") flags+=" -Wpedantic" ;;
    musl) settings+=(LD=ld AR=ar OBJCOPY=objcopy) ;;
    aarch64-linux-gnu) run=(qemu-aarch64 -L "/usr/$target") ;;
    arm-linux-gnueabihf) run=(qemu-arm -L "/usr/$target") ;;
    i686-linux-gnu) run=("/usr/$target/lib/ld-linux.so.2" --library-path "/usr/$target/lib") ;;
    x86_64-w64-mingw32) tests=() ;; # `make test-windows` runs them
    i686-w64-mingw32)
        mapfile -t tests < <([[ -x /usr/lib/wine/wine ]] && tests_without "$opens" "$POSIX")
        run=(wine) end=.exe
        ((${#tests[@]})) && start_wine ;;
    *) compiler= ;;
    esac
    command -v "${compiler:-none}" >/dev/null || { row+=("$target - - - - no compiler"); failed=$((failed + 1)); continue; }
    began=$SECONDS
    CFLAGS=$flags make -k -s -j2 "${settings[@]}" BUILD="$build" all "${tests[@]/#/$build/test/}" >"$log" 2>&1
    built=$?
    warnings=$(grep -cE '(error|warning): .*\[-W' "$log")
    check "$target builds" test "$built" = 0
    ((built == 0)) || { grep -E 'error|warning' "$log" | sort -u | head -n 20; tests=(); }
    p=0
    for name in "${tests[@]}"; do
        unit_test "$name" "${run[@]}" "$build/test/$name$end" && p=$((p + 1))
    done
    row+=("$target $( ((built == 0)) && echo yes || echo no) $warnings ${#tests[@]} $p $((SECONDS - began))")
done
printf '%-22s %-7s %-9s %-6s %-7s %s\n' target builds warnings tests passed seconds
for line in "${row[@]}"; do printf '%-22s %-7s %-9s %-6s %-7s %s %s\n' $line; done
finish
