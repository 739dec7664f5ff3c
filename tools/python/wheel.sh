#!/bin/sh
# Makes a wheel of the package in FOLDER/rlxvk, with the library inside: tools/python/wheel.sh FOLDER OUT VERSION. Prints its path.
# Its tag says which C library it needs: that of the newest symbol that librlxvk.so takes from glibc. Equal contents make equal wheels.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=$(cd "$1" && pwd) out=$2 version=$3
python=$("$here/interpreter.sh" setuptools wheel)
mkdir -p "$out"
out=$(cd "$out" && pwd)
if [ -e "$folder/rlxvk/rlxvk.dll" ]; then
    tag=win_amd64
else
    glibc=$(${OBJDUMP:-objdump} -T "$folder/rlxvk/librlxvk.so" | grep -o 'GLIBC_2\.[0-9]*' | sort -t . -k 2 -n | tail -n 1)
    tag=manylinux_2_${glibc#GLIBC_2.}_$(uname -m)
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/rlxvk"
cp "$folder"/rlxvk/*.py "$folder"/rlxvk/py.typed "$folder"/rlxvk/*rlxvk.* "$work/rlxvk"
sed "s/@VERSION@/$version/" "$here/pyproject.toml.in" >"$work/pyproject.toml"
cd "$work"
# The time of the first day that a zip file can tell, so that two wheels of one content are equal.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-315532800} "$python" -W ignore - "$out" "$tag" 2>log <<'END' || { cat log >&2; exit 1; }
import contextlib
import os
import sys

from setuptools import build_meta

out, tag = sys.argv[1:]
with contextlib.redirect_stdout(sys.stderr):
    settings = {"--build-option": ["--plat-name", tag], "--global-option": ["--quiet"]}
    name = build_meta.build_wheel(out, settings)
print(os.path.join(out, name))
END
