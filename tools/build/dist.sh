#!/bin/sh
# Makes a source archive, NAME.tar.gz: `dist.sh GENERATED NAME`. It has the files of the repository as they are now, and a folder
# `prebuilt`: what `make generated` left in the folder GENERATED, and the headers of Vulkan and SPIR-V. The same tree and tools
# give the same bytes. SOURCE_DATE_EPOCH is the date of its files; without it, that of the last commit.
set -eu
umask 022
export LC_ALL=C TZ=UTC
generated=$1 archive=$2.tar.gz name=$(basename "$2")
date=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/$name
mkdir -p "$tree/prebuilt/headers"

# Files that were removed but not yet committed are still in the list.
git ls-files | while IFS= read -r file; do [ ! -e "$file" ] || echo "$file"; done >"$work/files"
tar -c -T "$work/files" | tar -x -C "$tree"
cp -r "$generated/." "$tree/prebuilt"

# Each header of Vulkan and SPIR-V that a file of ours includes, with the headers that it includes.
grep -rhoE '^ *#include <(vulkan|spirv)/[^>]*>' runtime tools test | sort -u >"$work/headers.c"
"${CC:-gcc}" -M "$work/headers.c" | tr ' \\' '\n\n' | sed -n 's!^\(.*/\)\(\(vulkan\|vk_video\|spirv\)/.*\.h\)$!\1 \2!p' | sort -u |
    while read -r folder header; do
        mkdir -p "$tree/prebuilt/headers/$(dirname "$header")"
        cp "$folder$header" "$tree/prebuilt/headers/$header"
    done

mkdir -p "$(dirname "$archive")"
tar -c -C "$work" --sort=name --format=ustar --mtime="@$date" --owner=0 --group=0 --numeric-owner --mode=u+rwX,go+rX,go-w "$name" | gzip -n -9 >"$archive.$$"
mv "$archive.$$" "$archive" # in one step, because others may read or make it
echo "$archive"
