#!/bin/bash
# Prints the driver manifest of SwiftShader, a second software driver (subgroup 4, 256 invocations, no 8/16-bit storage). It is unpacked
# from the distribution's chromium package into the user's cache; nothing is installed. If that package is not available, fails.
set -euo pipefail
home=${XDG_CACHE_HOME:-$HOME/.cache}/rlxvk/swiftshader
if [[ ! -f $home/vk_swiftshader_icd.json ]]; then
    command -v apt-get >/dev/null
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    (cd "$work" && apt-get -q -o APT::Sandbox::User=root download chromium-common >&2)
    mkdir -p "$home"
    dpkg --fsys-tarfile "$work"/chromium-common_*.deb | tar -x -C "$home" --strip-components=4 \
        ./usr/lib/chromium/libvk_swiftshader.so ./usr/lib/chromium/vk_swiftshader_icd.json
fi
echo "$home/vk_swiftshader_icd.json"
