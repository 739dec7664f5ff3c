#!/bin/bash
# Tests the source archive: made twice, in different folders, it has the same bytes; and it builds where there are no tools for GLSL and SPIR-V
# and no headers of theirs are used. Prints failures; the last line counts.
set -u
. "$(dirname "$0")/check.sh"
unset CC CFLAGS

check "make dist" make -s -j2 dist
archive=$(ls -t build/rlxvk-*.tar.gz | head -n 1)
again() {
    mkdir "$work/another place"
    git ls-files | while IFS= read -r file; do [[ ! -e $file ]] || echo "$file"; done | tar -c -T - | tar -x -C "$work/another place"
    export GIT_DIR=$(git rev-parse --absolute-git-dir) GIT_WORK_TREE="$work/another place"
    cd "$work/another place" && umask 077 && TZ=Asia/Tokyo LC_ALL=C.UTF-8 make -s -j2 dist
}
(check "make dist in another folder, zone and mask" again; exit $failed) || failed=1
hashes=$(sha256sum "$archive" "$work/another place"/build/rlxvk-*.tar.gz | cut -d ' ' -f 1)
echo "$hashes"
check "two builds have one hash" test "$(sort -u <<<"$hashes" | wc -l)" = 1 -a "$(wc -l <<<"$hashes")" = 2

mkdir "$work/bin" "$work/source"
for tool in sh bash make gcc as ld ar objcopy nm awk sed grep cat cp mv rm mkdir ln touch tr sort uniq cut head tail expr dirname basename date nproc cmp test printf echo true wc; do
    path=$(type -P "$tool") && ln -s "$path" "$work/bin/$tool"
done
tar -x -C "$work/source" --strip-components=1 -f "$archive"
check "no tools for GLSL and SPIR-V are there" lacks . <(PATH=$work/bin type -P glslangValidator glslang spirv-val spirv-opt)
check "it builds with a C compiler and make" env -i PATH="$work/bin" HOME="$work" make -s -j2 -C "$work/source" FLAGS_release=-O0 all build/examples/custom_op
check "with its own headers" lacks -rlE --include='*.d' '/usr/include/(vulkan|spirv|vk_video)' "$work/source/build"
cd "$work/source" || exit 1
check "the program runs" build/bin/rlxvk conform --op softmax --sparse=16 --jobs 0
check "the example with its own kernel runs" build/examples/custom_op
check "its kernels are those of this tree" cmp "$tree/build/generated/kernel_table.c" prebuilt/kernel_table.c
finish
