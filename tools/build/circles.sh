#!/bin/bash
# Finds files of a folder whose objects need each other in a circle, directly or through others. Usage: circles.sh FOLDER...
# Objects lie under $BUILD. Subfolders count as folders of their own. Prints each circle and exits 1 if there is one.
# Two kinds of uses are ignored. A table may point at its families (op/table.c). And files of runtime/op may make public calls,
# because the rules of gradients are written with calls of all ops.
set -u
BUILD=${BUILD:-build}
status=0
for folder; do
    mapfile -t objects < <(find "${folder%/}" -maxdepth 1 -name '*.c' ! -name '*_windows.c' | sed "s|^|$BUILD/|; s|c$|o|")
    # nm -A: "file.o:address type name" where a symbol is defined, "file.o: U name" where it is needed. tsort names each circle.
    circles=$(nm -A "${objects[@]}" |
        awk -v base="$BUILD/${folder%/}/" '
            { file = $1; sub(/\.o:.*/, "", file); file = substr(file, length(base) + 1) }
            $NF ~ /_family$/ || base ~ /runtime\/op\// && $NF ~ /^rlxvk_/ { next }
            $(NF - 1) == "U" { needs[file " " $NF] }
            $(NF - 1) ~ /^[A-TV-Z]$/ { at[$NF] = file }
            END {
                for (need in needs) {
                    split(need, part, " ")
                    if (part[2] in at && at[part[2]] != part[1])
                        print part[1], at[part[2]]
                }
            }' | sort | tsort 2>&1 >/dev/null | sed -n 's/^tsort: \([^:]*\)$/\1.c/p')
    [[ -z $circles ]] && continue
    echo "$folder: files that need each other: $(tr '\n' ' ' <<<"$circles")"
    status=1
done
exit $status
