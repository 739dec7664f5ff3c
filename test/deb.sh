#!/bin/bash
# Tests the packages of `make deb`, which fails if lintian complains: installs them in a bare chroot, runs the program on lavapipe, builds the
# README's program with gcc and pkg-config alone, and removes them. Takes root, Debian or its kin, and 1.5 GB in the folder of temporary
# files. Prints failures; the last line counts.
set -u
. "$(dirname "$0")/check.sh"
tools/build/deps.sh deb chroot
. /etc/os-release
check "make deb, and lintian" make -s -j2 deb
root=$work/root
trap 'umount "$root/proc" 2>/dev/null; rm -rf "$work"' EXIT
check "a bare chroot" mmdebstrap --mode=root --variant=minbase "$VERSION_CODENAME" "$root" "$(test/mirror.sh)"
mount -t proc proc "$root/proc" # by which a program finds the files beside it
cp /etc/resolv.conf /etc/hosts "$root/etc/"
mkdir "$root/packages" "$root/home/user"
cp build/deb/*.deb "$root/packages"
readme_program >"$root/home/user/program.c"

inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/home/user LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive RLXVK_NO_TUNING=1 bash -c "cd /home/user && $*"; }
says() { inside "$2" 2>&1 | tee "$work/said" | grep -qF "$1" || { cat "$work/said"; return 1; }; }
version=$(sed -n 's/^Version: \(.*\)-.*/\1/p' build/deb/rlxvk_*.dsc)

check "lists of packages" inside apt-get -q update
check "the program is installed" inside apt-get -q install -y /packages/rlxvk_*.deb
check "it has its version" says "rlxvk $version" "rlxvk --version"
check "it finds lavapipe" says llvmpipe "rlxvk info"
check "conform" says " 0 failed" "rlxvk conform --op softmax --sparse=16 --jobs 0"
check "train digits finds its pictures" says "held back told right" "rlxvk train digits --epochs 1"
check "its man page" inside "zcat /usr/share/man/man1/rlxvk.1.gz"
check "the library and the headers are installed" inside "apt-get -q install -y --no-install-recommends gcc libc6-dev pkg-config /packages/librlxvk0_*.deb /packages/librlxvk-dev_*.deb"
check "a program with the shared library builds" inside 'gcc program.c $(pkg-config --cflags --libs rlxvk) -o shared'
check "it runs" says "0.119203 0.880797" ./shared
check "it needs the library" says librlxvk.so.0 "ldd shared"
check "a program with the archive builds" inside 'gcc program.c $(pkg-config --variable=libdir rlxvk)/librlxvk.a -ldl -lm -lpthread -o archive'
check "it runs, too" says "0.119203 0.880797" ./archive
check "the packages are removed" inside "apt-get -q purge -y rlxvk librlxvk-dev librlxvk0"
check "nothing of them is left" inside "rm -r /packages; ! find / -path /proc -prune -o -path /home -prune -o -iname '*rlxvk*' -print | grep ."
check "the program with the archive still runs" says "0.119203 0.880797" ./archive
finish
