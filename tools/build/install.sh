#!/bin/sh
# Installs files for users below $DESTDIR$PREFIX, or removes exactly these: `install.sh install`, `install.sh uninstall`. Both
# use one list, each_file. make sets BUILD and VERSION. LIBDIR (default PREFIX/lib) may be another folder below PREFIX.
set -eu
umask 022
: "${PREFIX:=/usr/local}" "${DESTDIR:=}" "${LIBDIR:=$PREFIX/lib}"
templates=$(dirname "$0")
major=${VERSION%%.*}
minor=${VERSION#*.} minor=${minor%.*}

refuse() { echo "install: $*" >&2; exit 1; }
case $PREFIX in /*) ;; *) refuse "PREFIX is '$PREFIX'; it must be an absolute path" ;; esac
case $LIBDIR in "$PREFIX"/?*) ;; *) refuse "LIBDIR is '$LIBDIR'; it must be a folder below PREFIX, '$PREFIX'" ;; esac

# Calls "$1 KIND SOURCE TARGET" for every file. KIND is a mode, `link`, or `fill` for a template.
each_file() {
    "$1" 644 "$BUILD/librlxvk.a" "$LIBDIR/librlxvk.a"
    "$1" 755 "$BUILD/librlxvk.so.$VERSION" "$LIBDIR/librlxvk.so.$VERSION"
    "$1" link "librlxvk.so.$VERSION" "$LIBDIR/librlxvk.so.$major"
    "$1" link "librlxvk.so.$major" "$LIBDIR/librlxvk.so"
    for header in include/*.h; do "$1" 644 "$header" "$PREFIX/$header"; done
    "$1" 755 "$BUILD/bin/rlxvk" "$PREFIX/bin/rlxvk"
    "$1" 644 "$BUILD/rlxvk.1" "$PREFIX/share/man/man1/rlxvk.1"
    for page in "$BUILD"/man3/*.3; do "$1" 644 "$page" "$PREFIX/share/man/man3/$(basename "$page")"; done
    "$1" 644 "$BUILD/rlxvk.bash" "$PREFIX/share/bash-completion/completions/rlxvk"
    for data in test/data/digits.*.npy; do "$1" 644 "$data" "$PREFIX/share/rlxvk/$(basename "$data")"; done
    for part in test/examples/*.c test/examples/*.h test/examples/*.comp test/examples/*.py test/examples/Makefile; do
        case $part in *.spv.h) ;; *) "$1" 644 "$part" "$PREFIX/share/doc/rlxvk/examples/$(basename "$part")" ;; esac
    done
    "$1" fill "$templates/rlxvk.pc.in" "$LIBDIR/pkgconfig/rlxvk.pc"
    "$1" fill "$templates/rlxvk-config.cmake.in" "$LIBDIR/cmake/rlxvk/rlxvk-config.cmake"
    "$1" fill "$templates/rlxvk-config-version.cmake.in" "$LIBDIR/cmake/rlxvk/rlxvk-config-version.cmake"
}

quoted() { printf '%s' "$1" | sed 's/[\\&|]/\\&/g'; } # for the right side of s|||
filled() {
    below=${LIBDIR#"$PREFIX"/}
    sed -e "s|@PREFIX@|$(quoted "$PREFIX")|g" -e "s|@LIBDIR@|$(quoted "$below")|g" -e "s|@VERSION@|$VERSION|g" \
        -e "s|@MAJOR@|$major|g" -e "s|@MINOR@|$minor|g" -e "s|@UP@|$(printf '%s' "$below" | sed 's|[^/][^/]*|..|g')|g" "$1"
}

put() {
    mkdir -p "$DESTDIR$(dirname "$3")"
    case $1 in
    link) ln -sf "$2" "$DESTDIR$3" ;;
    fill) filled "$2" >"$DESTDIR$3" && chmod 644 "$DESTDIR$3" ;;
    *) install -m "$1" "$2" "$DESTDIR$3" ;;
    esac
}
take_away() { rm -f "$DESTDIR$3"; }

# If LIBDIR is one of the dynamic linker's folders, it finds new libraries there only after ldconfig.
tell_linker() {
    [ -z "$DESTDIR" ] && [ "$(id -u)" = 0 ] || return 0
    PATH=$PATH:/usr/sbin:/sbin
    ! ldconfig -NXv 2>/dev/null | grep -q "^$LIBDIR:" || ldconfig
}

case ${1-} in
install) each_file put ;;
uninstall)
    each_file take_away
    for folder in "$LIBDIR/cmake/rlxvk" "$PREFIX/share/rlxvk" "$PREFIX/share/doc/rlxvk/examples" "$PREFIX/share/doc/rlxvk"; do
        [ ! -d "$DESTDIR$folder" ] || rmdir "$DESTDIR$folder"
    done ;;
*) refuse "install or uninstall?" ;;
esac
tell_linker
