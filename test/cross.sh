#!/bin/bash
# Builds for other processors, C libraries and compilers, where every warning is an error, and runs the unit tests that open no device: under
# qemu-user if the processor is another one. Prints a table of targets. Arguments: some of the targets; without them, all. LONG, NUMBERS: unit
# tests that only run with RLXVK_TEST_ALL=1.
set -u
skipped="${LONG:-} ${NUMBERS:-}"
. "$(dirname "$0")/check.sh"
targets=(gcc clang musl aarch64-linux-gnu arm-linux-gnueabihf i686-linux-gnu x86_64-w64-mingw32 i686-w64-mingw32)
(($#)) && targets=("$@")

# The unit tests that open no device and run no other program, by what they call.
opens='\bsystem\(|open_context|open_shared_context|shared_context|rlxvk_context_create|device_find|rlxvk_device_list|support/command\.h|program_path|test/rlxvk'
mapfile -t pure < <(grep -LE "$opens" test/unit/*/test_*.c | sed 's|.*/||; s|\.c$||' |
    grep -vxE "$([[ ${RLXVK_TEST_ALL:-} ]] || xargs <<<"$skipped" | sed 's/ /|/g')")

for target in "${targets[@]}"; do
    build=build/cross/$target log=build/cross/$target.log
    mkdir -p "$build"
    compiler=$target-gcc settings=("CROSS=$target-") run=() flags=-Werror
    case $target in
    gcc | clang) compiler=$target settings=("CC=$target") flags+=" -Wpedantic" ;;
    musl) settings+=(LD=ld AR=ar OBJCOPY=objcopy) ;;
    aarch64-linux-gnu) run=(qemu-aarch64 -L "/usr/$target") ;;
    arm-linux-gnueabihf) run=(qemu-arm -L "/usr/$target") ;;
    i686-linux-gnu) run=("/usr/$target/lib/ld-linux.so.2" --library-path "/usr/$target/lib") ;;
    *-mingw32) ;; # `make test-windows` runs those of x86_64
    *) compiler= ;;
    esac
    command -v "${compiler:-none}" >/dev/null || { row+=("$target - - - - no compiler"); failed=$((failed + 1)); continue; }
    tests=("${pure[@]}")
    [[ $target == *mingw32 ]] && tests=()
    began=$SECONDS
    CFLAGS=$flags make -k -s -j2 "${settings[@]}" BUILD="$build" all "${tests[@]/#/$build/test/}" >"$log" 2>&1
    built=$?
    warnings=$(grep -cE '(error|warning): .*\[-W' "$log")
    check "$target builds" test "$built" = 0
    ((built == 0)) || grep -E 'error|warning' "$log" | sort -u | head -n 20
    p=0 f=0
    for name in "${tests[@]}"; do
        out=$(timeout 600 "${run[@]}" "$build/test/$name" 2>&1)
        status=$?
        printf '==== %s\n%s\n' "$name" "$out" >>"$log"
        if ((status == 0)) && grep -q 'PASSED' <<<"$out"; then
            p=$((p + 1))
        else
            f=$((f + 1))
            printf 'FAILED: %s, %s (exit status %d)\n%s\n' "$target" "$name" "$status" "$(grep -E 'ERROR|error|FAILED' <<<"$out" | head -n 8)"
        fi
    done
    passed=$((passed + p)) failed=$((failed + f))
    row+=("$target $( ((built == 0)) && echo yes || echo no) $warnings ${#tests[@]} $p $((SECONDS - began))")
done
printf '%-22s %-7s %-9s %-6s %-7s %s\n' target builds warnings tests passed seconds
for line in "${row[@]}"; do printf '%-22s %-7s %-9s %-6s %-7s %s %s\n' $line; done
finish
