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
undo() { umount "$root/proc" 2>/dev/null; }
check "a bare chroot" mmdebstrap --mode=root --variant=minbase "$VERSION_CODENAME" "$root" "$(test/mirror.sh)"
mount -t proc proc "$root/proc" # by which a program finds the files beside it
cp /etc/resolv.conf /etc/hosts "$root/etc/"
mkdir "$root/packages" "$root/home/user"
cp build/deb/*.deb "$root/packages"
readme_program >"$root/home/user/program.c"

inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/home/user LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive RLXVK_NO_TUNING=1 bash -c "cd /home/user && $*"; }
version=$(sed -n 's/^Version: \(.*\)-.*/\1/p' build/deb/rlxvk_*.dsc)

check "lists of packages" inside apt-get -q update
check "the program is installed" inside apt-get -q install -y /packages/rlxvk_*.deb
check "it has its version" prints "rlxvk $version" inside "rlxvk --version"
check "it finds lavapipe" prints llvmpipe inside "rlxvk info"
check "conform" prints " 0 failed" inside "rlxvk conform --op softmax --sparse=16 --jobs 0"
check "train digits finds its pictures" prints "held back told right" inside "rlxvk train digits --epochs 1"
check "its man page" inside "zcat /usr/share/man/man1/rlxvk.1.gz"
check "the library and the headers are installed" inside "apt-get -q install -y --no-install-recommends gcc libc6-dev pkg-config /packages/librlxvk0_*.deb /packages/librlxvk-dev_*.deb"
check "a program with the shared library builds" inside 'gcc program.c $(pkg-config --cflags --libs rlxvk) -o shared'
check "it runs" prints "$readme_result" inside ./shared
check "it needs the library" prints librlxvk.so.0 inside "ldd shared"
check "a program with the archive builds" inside 'gcc program.c $(pkg-config --variable=libdir rlxvk)/librlxvk.a -ldl -lm -lpthread -o archive'
check "it runs, too" prints "$readme_result" inside ./archive
check "the packages are removed" inside "apt-get -q purge -y rlxvk librlxvk-dev librlxvk0"
check "nothing of them is left" inside "rm -r /packages; ! find / -path /proc -prune -o -path /home -prune -o -iname '*rlxvk*' -print | grep ."
check "the program with the archive still runs" prints "$readme_result" inside ./archive
finish
