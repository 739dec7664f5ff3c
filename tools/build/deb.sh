#!/bin/bash
# Makes Debian packages from the source archive of `make dist`: `deb.sh ARCHIVE FOLDER`. FOLDER gets librlxvk0, librlxvk-dev and rlxvk, and
# the source package. Fails if lintian finds an error or a warning in them. The layout is tools/package/debian.
set -euo pipefail
archive=$(realpath "$1") out=$2
name=$(basename "$archive" .tar.gz) version=${archive##*-}
version=${version%.tar.gz}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
date=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
cp "$archive" "$work/rlxvk_$version.orig.tar.gz"
tar -x -C "$work" -f "$archive"
cp -r "$work/$name/tools/package/debian" "$work/$name/debian"
sed -e "s/@VERSION@/$version/" -e "s/@DATE@/$(LC_ALL=C TZ=UTC date -R -d "@$date")/" "$work/$name/debian/changelog.in" >"$work/$name/debian/changelog"
rm "$work/$name/debian/changelog.in"
(
    cd "$work/$name"
    # Settings of the make that called this are none of the package's. dpkg-buildpackage takes the place of this shell.
    unset MAKEFLAGS MAKELEVEL MFLAGS BUILD BASE CC CFLAGS CPPFLAGS LDFLAGS config
    DEB_BUILD_OPTIONS="${DEB_BUILD_OPTIONS:-} parallel=$(nproc)" dpkg-buildpackage -us -uc >"$work/log" 2>&1
) || { tail -n 30 "$work/log" >&2; exit 1; }
# The first upload of a package closes a bug of Debian's, but these are uploaded nowhere.
lintian --suppress-tags initial-upload-closes-no-bugs --allow-root "$work"/rlxvk_*.changes | tee "$work/lintian" >&2
[ ! -s "$work/lintian" ]
rm -rf "$out"
mkdir -p "$out"
mv "$work"/*.deb "$work"/rlxvk_*.{dsc,changes,buildinfo,orig.tar.gz,debian.tar.xz} "$out"
ls "$out"/*.deb
