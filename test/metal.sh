#!/bin/bash
# Translates the pipelines of the conformance cases to Metal's language, as MoltenVK does on Apple's GPUs, and looks for what MoltenVK cannot
# take: more than 31 buffers, 64-bit atomics, more threadgroup memory than there is. Nothing compiles or runs the result.
#
#   test/metal.sh             those of every 8th case
#   test/metal.sh all         those of all cases
#   test/metal.sh variants    also those of every variant of every kernel kind
#
# The modules are those that a GPU with subgroups of 32 gets under the limits of apple-moltenvk (runtime/vk/limits.c). They are left in
# $BUILD/test/metal. It needs spirv-cross, of SPIRV-Cross.
set -euo pipefail
cd "$(dirname "$0")/.."
BUILD=${BUILD:-build}
out=$BUILD/test/metal
options=(--pipelines --modules "$out" --subgroups 32)
case ${1:-} in
'') options+=(--sparse 8) ;;
variants) options+=(--each-variant) ;;
esac
lavapipe=$(ls /usr/share/vulkan/icd.d/lvp_icd*.json 2>/dev/null | head -n 1)
export VK_ICD_FILENAMES=${lavapipe:-${VK_ICD_FILENAMES:-}} RLXVK_LIMITS=apple-moltenvk RLXVK_NO_TUNING=1

if ! command -v spirv-cross >/dev/null; then
    echo "there is no spirv-cross: tools/build/deps.sh test installs it" >&2
    exit 1
fi
rm -rf "$out"
mkdir -p "$out"
"$BUILD/bin/rlxvk" bench "${options[@]}" 2>"$out/log" || { tail -n 3 "$out/log"; exit 1; }
python3 test/metal/translate.py "$out"
