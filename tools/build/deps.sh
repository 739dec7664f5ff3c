#!/bin/sh
# Installs missing packages. `tools/build/deps.sh` installs those that building and running need, `tools/build/deps.sh test lint`
# also those of the tests and the lint; windows, cross and deb are for the targets of make with such names, chroot for test/deb.sh. Prints nothing if nothing is missing.
set -eu
purposes=" $* "
PATH=$PATH:/usr/sbin:/sbin # because it has ldconfig, and is not on the PATH of ordinary users

has_header() { printf '#include <%s>\n' "$1" | "${CC:-gcc}" -E -x c - >/dev/null 2>&1; }
sanitizes() { echo 'int main(void) { return 0; }' | "${CC:-gcc}" -fsanitize=address,undefined -x c -o /dev/null - 2>/dev/null; }
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
    has_header png.h || echo png # pictures of rlxvk run and of test/examples
    case $purposes in *" test "*)
        has_header cmocka.h || echo cmocka
        has_header fftw3.h || echo fftw
        [ -e /usr/share/i18n/locales/de_DE ] || [ -e /usr/share/i18n/locales/de_DE.gz ] || echo locales
        sanitizes || echo sanitizers
        have g++ || echo c++
        have cmake || echo cmake
        have pkg-config || echo pkg-config
        have python3 || echo python
        "$(dirname "$0")/../python/interpreter.sh" cffi numpy pytest setuptools wheel >/dev/null 2>&1 || echo python-modules
        have spirv-cross || have dnf || echo spirv-cross # Fedora has no package of it
        ! have apt-get || [ -d /usr/share/libonnx-testdata ] || echo onnx-tests # other systems have no such package
        ls /usr/share/vulkan/icd.d/lvp_icd*.json >/dev/null 2>&1 || echo driver
        ls /usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json >/dev/null 2>&1 || echo validation ;;
    esac
    case $purposes in *" windows "*)
        have x86_64-w64-mingw32-gcc || echo mingw
        have wine || echo wine
        have Xvfb || echo display ;;
    esac
    case $purposes in *" cross "*) # only Debian and its kin have all of them
        have x86_64-w64-mingw32-gcc || echo mingw
        have clang || echo clang
        if have apt-get; then
            have aarch64-linux-gnu-gcc || echo aarch64
            have arm-linux-gnueabihf-gcc || echo armhf
            have i686-linux-gnu-gcc || echo i686
            have i686-w64-mingw32-gcc || echo mingw-i686
            have musl-gcc || echo musl
            have qemu-aarch64 || echo qemu
        fi ;;
    esac
    case $purposes in *" deb "*) # only Debian and its kin have them
        have dh || echo debhelper
        have lintian || echo lintian ;;
    esac
    case $purposes in *" chroot "*) have mmdebstrap || echo chroot ;; esac
    case $purposes in *" lint "*)
        have clang-format || echo format
        have cppcheck || echo cppcheck
        have clang || echo clang
        have g++ || echo c++ ;;
    esac
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
    apt:png) echo libpng-dev ;; dnf:png) echo libpng-devel ;; pacman:png) echo libpng ;;
    apt:fftw) echo libfftw3-dev ;; dnf:fftw) echo fftw-devel ;; *:fftw) echo fftw ;;
    dnf:sanitizers) echo libasan libubsan ;; *:sanitizers) echo gcc ;;
    *:cmake) echo cmake ;;
    dnf:pkg-config) echo pkgconf-pkg-config ;; pacman:pkg-config) echo pkgconf ;; *:pkg-config) echo pkg-config ;;
    apt:onnx-tests) echo libonnx-testdata ;;
    pacman:python-modules) for module in cffi numpy pytest setuptools wheel; do echo python-$module; done ;;
    *:python-modules) for module in cffi numpy pytest setuptools wheel; do echo python3-$module; done ;;
    pacman:python) echo python ;; *:python) echo python3 ;;
    *:spirv-cross) echo spirv-cross ;;
    apt:validation) echo vulkan-validationlayers ;; *:validation) echo vulkan-validation-layers ;;
    apt:mingw) echo gcc-mingw-w64-x86-64 ;; dnf:mingw) echo mingw64-gcc ;; pacman:mingw) echo mingw-w64-gcc ;;
    apt:wine) echo wine wine64 ;; *:wine) echo wine ;;
    apt:display) echo xvfb ;; dnf:display) echo xorg-x11-server-Xvfb ;; pacman:display) echo xorg-server-xvfb ;;
    apt:aarch64) echo gcc-aarch64-linux-gnu libc6-dev-arm64-cross ;; apt:armhf) echo gcc-arm-linux-gnueabihf libc6-dev-armhf-cross ;;
    apt:i686) echo gcc-i686-linux-gnu libc6-dev-i386-cross ;; apt:musl) echo musl-tools ;; apt:mingw-i686) echo gcc-mingw-w64-i686 ;;
    apt:qemu) echo qemu-user ;; *:clang) echo clang ;;
    apt:debhelper) echo debhelper dpkg-dev ;; *:lintian) echo lintian ;; *:chroot) echo mmdebstrap ;;
    apt:format) echo clang-format ;; dnf:format) echo clang-tools-extra ;; pacman:format) echo clang ;;
    *:cppcheck) echo cppcheck ;;
    dnf:c++) echo gcc-c++ ;; pacman:c++) echo gcc ;; *:c++) echo g++ ;;
    esac
}

wanted=$(missing)
[ -n "$wanted" ] || exit 0
for manager in apt-get dnf pacman none; do have "$manager" && break; done
kind=${manager%-get}
packages=$(for what in $wanted; do package "$kind" "$what"; done | tr ' ' '\n' | sort -u | tr '\n' ' ')
packages=${packages% }
if [ "$manager" = none ]; then
    echo "deps: no apt, dnf or pacman here; please install: $(echo $wanted) (a C11 compiler, make, Vulkan and SPIR-V headers, glslang, SPIRV-Tools, the Vulkan loader and a driver; python-modules are cffi, NumPy, pytest, setuptools and wheel)" >&2
    exit 1
fi
as_root=
if [ "$(id -u)" != 0 ]; then
    as_root=sudo
    if ! have sudo || ! { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
        echo "deps: missing: $packages. To install them takes root, and $(have sudo && echo 'sudo wants a password but has no terminal' || echo 'there is no sudo'). Have an administrator install these packages, then run this again." >&2
        exit 1
    fi
fi
echo "deps: installing $packages"
case $manager in
apt-get) $as_root apt-get -q -q update && $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -q install -y --no-install-recommends $packages >/dev/null ;;
dnf) $as_root dnf -q -y install $packages ;;
pacman) $as_root pacman -Sy --noconfirm --needed $packages ;;
esac
