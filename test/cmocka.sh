#!/bin/bash
# Builds the test library cmocka for a cross compiler ($CC) into a folder (the argument): cmocka.o and include/. Its source is the
# distribution's, as apt-get has it; nothing is installed. The user's cache keeps it.
set -euo pipefail
folder=$1 home=${XDG_CACHE_HOME:-$HOME/.cache}/rlxvk/cmocka
if [[ ! -f $home/src/cmocka.c ]]; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    . /etc/os-release
    mkdir -p "$work/lists/partial" "$home"
    mirror=$("$(dirname "$0")/mirror.sh")
    echo "deb-src $mirror $VERSION_CODENAME main" >"$work/src.list"
    apt() { apt-get -q -q -o Dir::Etc::SourceList="$work/src.list" -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$work/lists" -o APT::Sandbox::User=root "$@" >&2; }
    apt update
    (cd "$work" && apt source --download-only cmocka)
    tar -x -C "$home" --strip-components=1 -f "$work"/cmocka_*.orig.tar.xz
fi
mkdir -p "$folder"
for has in INTTYPES_H STDINT_H STRING_H STDLIB_H TIME_H MALLOC_H SETJMP_H SIGNAL_H STRUCT_TIMESPEC SNPRINTF VSNPRINTF; do echo "#define HAVE_$has 1"; done >"$folder/config.h"
cp -r "$home/include" "$folder/"
case $CC in *mingw*) sed -i 's/(__printf__,/(gnu_printf,/' "$folder/include/cmocka.h" ;; esac # formats as C11 has them
$CC -O1 -w -DHAVE_CONFIG_H -D__USE_MINGW_ANSI_STDIO=1 -I"$folder" -I"$home/include" -c -o "$folder/cmocka.o" "$home/src/cmocka.c"
