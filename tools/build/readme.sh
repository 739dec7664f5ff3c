#!/bin/bash
# Writes the op tables into include/OPS.md and include/ONNX.md, between their markers. With --check, only checks whether these files have
# the present tables.
set -eu
program=${BUILD:-build}/bin/rlxvk
fresh=$(mktemp)
trap 'rm -f "$fresh"' EXIT
"$program" ops --golden test/golden >"$fresh.ops"
awk -v table="$fresh.ops" '/<!-- ops begin -->/ { print; while ((getline line < table) > 0) print line; skip = 1 }
    /<!-- ops end -->/ { skip = 0 } !skip && !/<!-- ops begin -->/' include/OPS.md >"$fresh"
rm -f "$fresh.ops"
if [ "${1:-}" = --check ]; then
    cmp -s "$fresh" include/OPS.md || { echo "include/OPS.md: the op table is stale (make readme)"; exit 1; }
else
    cat "$fresh" >include/OPS.md
fi
"$(dirname "$0")/onnx.sh" "$@"
