#!/bin/bash
# Sizes a reviewer asks for: lines per folder, p50/p95/max of file and function lengths, comment share of headers and sources.
set -eu
percentiles() { sort -n | awk '{ v[NR] = $1 } END { if (NR) printf "p50 %d  p95 %d  max %d  (%d)\n", v[int((NR + 1) / 2)], v[int(NR * 0.95 + 0.5)], v[NR], NR }'; }
code=$(git ls-files '*.c' '*.h' '*.comp' '*.glsl' '*.def' | grep -v unicode_table)
for folder in include runtime/{base,graph,op,rewrite,plan,vk,exec} glsl tools test; do
    printf '%-16s %6d lines\n' "$folder" "$(git ls-files "$folder" | grep -E '\.(c|h|comp|glsl|def|sh)$' | xargs cat | wc -l)"
done
printf 'files       '; for f in $code; do wc -l <"$f"; done | percentiles
printf 'functions   '; for f in $(git ls-files 'runtime/*.c' 'tools/*.c' 'test/*.c'); do
    awk '/^\{/ { start = NR } /^\}$/ { if (start) print NR - start - 1; start = 0 }' "$f"; done | percentiles
comments() { cat "$@" | awk '{ line = $0; if (inside || line ~ /^[ \t]*\/[*\/]/ || line ~ /\/\*/) c++; if (line ~ /\/\*/) inside = 1; if (line ~ /\*\//) inside = 0; n++ } END { printf "%d %%\n", 100 * c / n }'; }
printf 'comment lines in public headers '; comments include/*.h
printf 'comment lines in runtime sources '; comments $(git ls-files 'runtime/*.c')
[ ! -f build/librlxvk.a ] || printf 'librlxvk.a  %d bytes, %d SPIR-V modules\n' "$(stat -c %s build/librlxvk.a)" "$(ls glsl/*.comp | wc -l)"
