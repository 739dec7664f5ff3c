#!/bin/bash
# Some kernels need a newer glslang than many systems have. Their SPIR-V is checked in under spv/, with a manifest of source digests.
#   tools/build/spirv.sh update [NAME...] compiles all of them, or these, into spv/ with the glslang on PATH (2025 or newer), and checks
#                                       them
#   tools/build/spirv.sh raw NAME OUT   compiles NAME to OUT if the installed glslang can. Otherwise it copies spv/NAME.spv, and
#                                       fails if the sources changed since. It also writes a .d for make next to OUT
# A digest and a .d cover the kernel and every file that it includes.
set -eu
glslang=${GLSLANG:-$(command -v glslangValidator || command -v glslang)}
manifest=spv/MANIFEST

# Prints the kernel and the files that it includes, each once.
sources() {
    local seen=" " queue file
    queue=$(cd glsl && echo */"$1.comp")
    while [ -n "$queue" ]; do
        file=${queue%% *}
        queue=${queue#"$file"}; queue=${queue# }
        case $seen in *" $file "*) continue ;; esac
        seen="$seen$file "
        echo "glsl/$file"
        queue="$queue $(sed -n 's/^#include "\(.*\)"/\1/p' "glsl/$file" | tr '\n' ' ')"
        queue=$(echo $queue)
    done
}

digest() { cat $(sources "$1") | sha256sum | cut -d' ' -f1; }

compile() { "$glslang" --quiet -V --target-env vulkan1.2 -Iglsl -o "$2" "${@:3}" glsl/*/"$1.comp"; }

case ${1:-} in
update)
    all=$(grep -l 'GL_KHR_cooperative_matrix' glsl/*/*.comp | sed 's#.*/\(.*\)\.comp#\1#')
    for kernel in "${@:2}"; do
        grep -qx "$kernel" <<<"$all" || { echo "no kernel $kernel is compiled into spv/; these are:" $all >&2; exit 1; }
    done
    : >$manifest.new
    for kernel in $all; do
        if (($# > 1)) && [[ " ${*:2} " != *" $kernel "* ]]; then
            grep "^$kernel " $manifest >>$manifest.new || { echo "spv/ has no $kernel yet" >&2; exit 1; }
            continue
        fi
        compile "$kernel" "spv/$kernel.spv" --depfile $manifest.d
        for file in $(sed 's/.*://' $manifest.d); do
            sources "$kernel" | grep -qx "$file" || { echo "the digest of $kernel leaves out $file" >&2; exit 1; }
        done
        spirv-val --target-env vulkan1.2 "spv/$kernel.spv"
        echo "$kernel $(digest "$kernel")" >>$manifest.new
    done
    rm $manifest.d
    mv $manifest.new $manifest
    ;;
raw)
    echo "$3:" $(sources "$2") >"${3%.raw.spv}.d"
    compile "$2" "$3" >/dev/null 2>&1 && exit 0
    if ! grep -qx "$2 $(digest "$2")" $manifest; then
        echo "spv/$2.spv is older than glsl/$2.comp or what it includes, and $glslang cannot compile it:" >&2
        compile "$2" "$3" >&2 || true
        echo "put a glslang of 2025 or newer on PATH and run 'make spirv'" >&2
        exit 1
    fi
    cp "spv/$2.spv" "$3"
    ;;
*) echo "usage: tools/build/spirv.sh update | raw NAME OUT" >&2; exit 2 ;;
esac
