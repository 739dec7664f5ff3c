#!/bin/sh
# Installs what is missing, by package name: `tools/deps.sh build` to build and run, `tools/deps.sh test` for tests and lint too.
# Quiet when nothing is missing.
set -eu
purpose=${1:-build}

has_header() { printf '#include <%s>\n' "$1" | "${CC:-gcc}" -E -x c - >/dev/null 2>&1; }
have() { command -v "$1" >/dev/null 2>&1; }
have_driver() { ls /usr/share/vulkan/icd.d/*.json >/dev/null 2>&1 || ls /etc/vulkan/icd.d/*.json >/dev/null 2>&1 || [ -n "${VK_ICD_FILENAMES:-}${VK_DRIVER_FILES:-}" ]; }
have_loader() { ldconfig -p 2>/dev/null | grep -q 'libvulkan\.so\.1'; }

missing() {
    have gcc || echo compiler
    have make || echo make
    has_header vulkan/vulkan.h || echo headers
    has_header spirv/unified1/spirv.h || echo spirv-headers
    { have glslangValidator || have glslang; } || echo glslang
    have spirv-val || echo spirv
    have_loader || echo loader
    have_driver || echo driver
    [ "$purpose" = test ] || return 0
    has_header cmocka.h || echo cmocka
    has_header fftw3.h || echo fftw
    [ -e /usr/share/i18n/locales/de_DE ] || [ -e /usr/share/i18n/locales/de_DE.gz ] || echo locales
    ls /usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json >/dev/null 2>&1 || echo validation
    have clang-format || echo format
    have cppcheck || echo cppcheck
}

package() {
    case "$1:$2" in
    apt:compiler) echo gcc libc6-dev ;; dnf:compiler) echo gcc glibc-devel ;; pacman:compiler) echo gcc ;;
    *:make) echo make ;;
    apt:headers) echo libvulkan-dev ;; dnf:headers) echo vulkan-headers vulkan-loader-devel ;; pacman:headers) echo vulkan-headers ;;
    dnf:spirv-headers) echo spirv-headers-devel ;; *:spirv-headers) echo spirv-headers ;;
    apt:glslang) echo glslang-tools ;; *:glslang) echo glslang ;;
    *:spirv) echo spirv-tools ;;
    apt:loader) echo libvulkan1 ;; dnf:loader) echo vulkan-loader ;; pacman:loader) echo vulkan-icd-loader ;;
    pacman:driver) echo vulkan-swrast ;; *:driver) echo mesa-vulkan-drivers ;;
    apt:cmocka) echo libcmocka-dev ;; dnf:cmocka) echo libcmocka-devel ;; pacman:cmocka) echo cmocka ;;
    apt:locales) echo locales ;; dnf:locales) echo glibc-locale-source ;; pacman:locales) echo glibc ;;
    apt:fftw) echo libfftw3-dev ;; dnf:fftw) echo fftw-devel ;; *:fftw) echo fftw ;;
    apt:validation) echo vulkan-validationlayers ;; *:validation) echo vulkan-validation-layers ;;
    apt:format) echo clang-format ;; dnf:format) echo clang-tools-extra ;; pacman:format) echo clang ;;
    *:cppcheck) echo cppcheck ;;
    esac
}

wanted=$(missing)
[ -n "$wanted" ] || exit 0
for manager in apt-get dnf pacman none; do have "$manager" && break; done
kind=${manager%-get}
packages=$(for what in $wanted; do package "$kind" "$what"; done)
if [ "$manager" = none ]; then
    echo "deps: no apt, dnf or pacman here; please install: $(echo $wanted) (a C11 compiler, make, Vulkan and SPIR-V headers, glslang, SPIRV-Tools, the Vulkan loader and a driver)" >&2
    exit 1
fi
as_root=
[ "$(id -u)" = 0 ] || as_root=sudo
echo "deps: installing $(echo $packages)"
case $manager in
apt-get) $as_root apt-get -q -q update && DEBIAN_FRONTEND=noninteractive $as_root apt-get -q -q install -y --no-install-recommends $packages >/dev/null ;;
dnf) $as_root dnf -q -y install $packages ;;
pacman) $as_root pacman -Sy --noconfirm --needed $packages ;;
esac
