#!/bin/bash
# Writes the op table into include/ONNX.md, between its markers, from runtime/model/onnx_ops.def. With --check, only checks whether
# include/ONNX.md has the present table.
set -eu
fresh=$(mktemp)
trap 'rm -f "$fresh" "$fresh.ops"' EXIT
# The file in which a lowering is: a function onnx_<name>, or a row of a macro that makes such functions.
{
    echo '| op | domain | opsets | lowering |'
    echo '|---|---|---|---|'
    awk -F'[(,)] *' '
        FILENAME ~ /\.c$/ {
            if (match($0, /^void onnx_[a-z0-9_]+\(call/)) at[substr($0, 11, RLENGTH - 15)] = FILENAME
            else if (match($0, /^[A-Z]+\([a-z0-9_]+,/)) { split($0, part, /[(,]/); if (!(part[2] in at)) at[part[2]] = FILENAME }
            next }
        /^OP\(/ {
            domain = $2; gsub(/"/, "", domain)
            file = at[$7]; sub(/.*\//, "", file)
            if (file == "") { print "onnx.sh: no lowering " $7 > "/dev/stderr"; exit 1 }
            print "| " $3 " | " (domain == "" ? "ai.onnx" : domain) " | " ($5 == 0 ? "from " $4 : $4 " to " $5) " | `" file "` |"
        }' runtime/model/onnx_*.c runtime/model/onnx_ops.def
} >"$fresh.ops"
awk -v table="$fresh.ops" '/<!-- ops begin -->/ { print; while ((getline line < table) > 0) print line; skip = 1 }
    /<!-- ops end -->/ { skip = 0 } !skip && !/<!-- ops begin -->/' include/ONNX.md >"$fresh"
if [ "${1:-}" = --check ]; then
    cmp -s "$fresh" include/ONNX.md || { echo "include/ONNX.md: the op table is stale (make readme)"; exit 1; }
else
    cat "$fresh" >include/ONNX.md
fi
