#!/bin/bash
# Compiles the pipelines of the conformance cases for GPUs that are not in this machine, and compares what their compilers say with
# test/compilers/table.txt: more spills, more scratch memory, more than 10 % more registers or a failure fail the test.
#
#   test/compilers.sh [DEVICE...]          all devices, or these: all pipelines that are chosen. NAME-variants: each variant of each kernel
#                                          kind. Of a variant and a kernel, 4 pipelines are made at most, and none that NAME makes, too
#   test/compilers.sh quick [DEVICE...]    every 128th case, on three devices
#   test/compilers.sh update [DEVICE...]   writes the table's sections of these devices
#   test/compilers.sh estimate [DEVICE...] compares the variants of products, convolutions and attention, on GPUs of AMD
#   test/compilers.sh fetch                only fetches the drivers
#
# Mesa's drivers and mesa-drm-shim, which plays the kernel's drivers, come from Debian sid. They are unpacked into the user's cache beside
# the libraries that they need; nothing is installed. Their compilers are the real ones. What is submitted is not executed.
set -euo pipefail
cd "$(dirname "$0")/.."
BUILD=${BUILD:-build}
home=${XDG_CACHE_HOME:-$HOME/.cache}/rlxvk/compilers
out=$BUILD/test/compilers
table=test/compilers/table.txt

# The shim of each device, and how it names the device. The comment tells what the device stands for.
kind_of() {
    case $1 in
    polaris12 | vega20) echo amdgpu ;;      # GCN: subgroups of 64; polaris12 has no float16
    navi10 | navi21) echo amdgpu ;;         # RDNA1 and RDNA2
    navi31 | navi33 | gfx1201) echo amdgpu ;; # RDNA3 and RDNA4: matrix units
    630 | 740) echo freedreno ;;            # Adreno; 630 has no 16-bit storage
    120 | 160 | 170 | 190) echo nouveau ;;  # Maxwell, Turing, Ampere, Ada
    m1) echo asahi ;;                       # Apple
    *) return 1 ;;
    esac
}
devices=(120 160 170 190 m1 630 740 polaris12 vega20 navi10 navi21 navi31 navi33 gfx1201) # those that take longest first
variants=(190-variants 740-variants vega20-variants navi31-variants)

fail() {
    echo "$*" >&2
    exit 1
}

# ---- Drivers ----

# Downloads and unpacks in a folder that gets its name when it is complete.
fetch() {
    [[ -d $home/root ]] && return
    command -v apt-get >/dev/null && command -v dpkg >/dev/null || fail "there is no apt-get: the drivers come from packages of Debian"
    local mirror
    mkdir -p "$home"
    work=$(mktemp -d "$home/new.XXXXXX")
    trap 'rm -rf "$work"' EXIT # $work is global, because this runs after the function's end
    mkdir -p "$work"/{lists/partial,cache/archives/partial,root}
    : >"$work/status"
    mirror=$(test/mirror.sh)
    echo "deb $mirror sid main" >"$work/sources.list"
    local apt=(apt-get -q -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists="$work/lists"
        -o Dir::State::status="$work/status" -o Dir::Cache="$work/cache" -o APT::Sandbox::User=root -o APT::Install-Recommends=false)
    "${apt[@]}" update >&2
    "${apt[@]}" -y install --download-only mesa-vulkan-drivers mesa-drm-shim libvulkan1 >&2
    for package in "$work"/cache/archives/*.deb; do dpkg -x "$package" "$work/root"; done
    [[ $(find "$work/root" -name 'lib*_noop_drm_shim.so') ]] || fail "the packages have no shim"
    mv "$work/root" "$home/root"
}

# Runs a program on a device: with the unpacked C library, because the installed one may be older than the drivers need.
on() {
    local device=$1 kind libraries loader icd
    shift
    kind=$(kind_of "$device")
    libraries=$(dirname "$(find "$home/root" -name "lib${kind}_noop_drm_shim.so" | head -n 1)")
    loader=$(find "$home/root" -name 'ld-linux*.so.*' -type f | head -n 1)
    icd=$kind
    case $kind in
    amdgpu) icd=radeon ; export AMDGPU_GPU_ID=$device ;;
    freedreno) export FD_GPU_ID=$device ;;
    nouveau) export NOUVEAU_CHIPSET=$device ;;
    esac
    export VK_DRIVER_FILES=$out/$icd.$$.json
    export VK_ICD_FILENAMES=$VK_DRIVER_FILES
    sed "s#\"library_path\": \"[^\"]*\"#\"library_path\": \"$libraries/libvulkan_$icd.so\"#" \
        "$home/root/usr/share/vulkan/icd.d/${icd}_icd.json" >"$VK_DRIVER_FILES"
    "$loader" --preload "$libraries/lib${kind}_noop_drm_shim.so" --library-path "$libraries" "$@"
}

# ---- One device ----

# Nothing that is submitted executes there: rlxvk info says so, and rlxvk conform refuses the device.
refuses() {
    local refused=0
    on "$1" "$BUILD/bin/rlxvk" info 2>/dev/null | grep 'executes nothing' >/dev/null || return 1
    on "$1" "$BUILD/bin/rlxvk" conform --op softmax --case 0 >"$out/$1.log" 2>&1 || refused=$?
    ((refused == 1)) && grep -q 'executes nothing' "$out/$1.log"
}

# Surveys a device, or `NAME-variants`. If the program ends early, no report is left.
survey() {
    local name=$1 options=(--pipelines --statistics --json) status=0
    if [[ $name == *-variants ]]; then
        options+=(--each-variant --at-most 4)
    elif [[ " ${variants[*]} " != *" $name-variants "* ]]; then
        options+=(--chosen) # variants that cases name are made on other devices
    fi
    [[ $sparse ]] && options+=(--sparse "$sparse")
    rm -f "$out/$name.json"
    refuses "${name%-variants}" || { echo "$name: rlxvk does not see that the device executes nothing"; return; }
    RLXVK_NO_TUNING=1 on "${name%-variants}" "$BUILD/bin/rlxvk" bench "${options[@]}" >"$out/$name.new" 2>"$out/$name.log" || status=$?
    if ((status > 1)) || [[ ! -s $out/$name.new ]]; then
        echo "$name: rlxvk bench ended with status $status: $(tail -n 1 "$out/$name.log")"
    else
        mv "$out/$name.new" "$out/$name.json"
    fi
}

# What test/compilers/estimate.py needs of a device. RADV prints each program that it compiles.
estimate() {
    local kind options
    export RADV_DEBUG=shaders,shaderstats RLXVK_NO_TUNING=1
    test/compilers/estimate.py shapes >"$out/$1.shapes"
    : >"$out/$1.asm"
    for kind in chosen each; do
        options=(--pipelines --statistics --json --shapes "$out/$1.shapes")
        [[ $kind == each ]] && options+=(--each-variant)
        on "$1" "$BUILD/bin/rlxvk" bench "${options[@]}" >"$out/$1-$kind.json" 2>>"$out/$1.asm" ||
            fail "$1: rlxvk bench ended with status $?"
    done
}

if [[ ${1:-} == --survey || ${1:-} == --estimate ]]; then # a process of xargs below
    trap 'rm -f "$out"/*.$$.json' EXIT
    "${1#--}" "$2"
    exit
fi

# ---- All ----

export BUILD
mode=compare
case ${1:-} in
quick | update | estimate | fetch) mode=$1 && shift ;;
esac
fetch
[[ $mode == fetch ]] && exit
names=("$@")
if ((${#names[@]} == 0)); then
    names=("${devices[@]}" "${variants[@]}")
    [[ $mode == quick ]] && names=(navi31 740 190)
    [[ $mode == estimate ]] && names=(navi31 navi21 vega20)
fi
for name in "${names[@]}"; do
    kind_of "${name%-variants}" >/dev/null || fail "no device '$name': there are ${devices[*]}"
done
[[ -x $BUILD/bin/rlxvk ]] || fail "$BUILD/bin/rlxvk is not built"
mkdir -p "$out"
if [[ $mode == estimate ]]; then
    printf '%s\n' "${names[@]}" | xargs -P 2 -I{} "$0" --estimate {}
    exec test/compilers/estimate.py table "$out" "${names[@]}" --all
fi
export sparse=
[[ $mode == quick ]] && sparse=128
printf '%s\n' "${names[@]}" | xargs -P 2 -I{} "$0" --survey {}
[[ $mode == quick ]] && mode=compare
python3 test/compilers/compare.py "$mode" "$table" "$out" "${names[@]}"
