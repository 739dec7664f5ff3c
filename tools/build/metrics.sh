#!/bin/bash
# Prints sizes for reviewers: lines and the share of comments in each folder, and p50, p95 and maximum of file and function
# lengths. Also counts two things that must not exist: literal indices of kernel constants, and circles of objects in a folder.
set -eu
percentiles() { sort -n | awk '{ v[NR] = $1 } END { if (NR) printf "p50 %d  p95 %d  max %d  (%d)\n", v[int((NR + 1) / 2)], v[int(NR * 0.95 + 0.5)], v[NR], NR }'; }
comments() { cat "$@" | awk '{ if (inside || /^[ \t]*\/[*\/]/ || /\/\*/) c++; if (/\/\*/) inside = 1; if (/\*\//) inside = 0; n++ } END { printf "%.1f %%", 100 * c / n }'; }
code=$(git ls-files '*.c' '*.h' '*.comp' '*.glsl' '*.def' | grep -v unicode_table)
for folder in include runtime/* glsl tools/* test; do
    files=$(git ls-files "$folder" | grep -E '\.(c|h|comp|glsl|def|sh)$' | grep -v unicode_table) || continue
    printf '%-16s %6d lines  %s comments\n' "$folder" "$(cat $files | wc -l)" "$(comments $files)"
done
printf 'files       '; for f in $code; do wc -l <"$f"; done | percentiles
functions() { for f in "$@"; do awk '/^\{/ { start = NR } /^\}$/ { if (start) print NR - start - 1; start = 0 }' "$f"; done | percentiles; }
printf 'functions   '; functions $(git ls-files 'runtime/*.c' 'tools/*.c' 'test/*.c')
printf '  in GLSL   '; functions $(git ls-files 'glsl/*.comp' 'glsl/*.glsl')
printf 'literal indices of kernel constants %d\n' "$(grep -rEo 'constants\[[0-9]+\]' runtime | wc -l)"
[ ! -f build/librlxvk.a ] || for folder in runtime/*/; do tools/build/circles.sh "${folder%/}" >/dev/null || printf 'circles in %s\n' "${folder%/}"; done
[ ! -f build/librlxvk.a ] || printf 'librlxvk.a  %d bytes, %d SPIR-V modules\n' "$(stat -c %s build/librlxvk.a)" "$(git ls-files 'glsl/*.comp' | wc -l)"
