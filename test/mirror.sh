#!/bin/bash
# Prints the first mirror of packages that the sources of apt name. Fails if they name none.
mirror=$(sed -n 's/^URIs: *//p' /etc/apt/sources.list.d/*.sources 2>/dev/null | head -n 1)
[[ $mirror ]] || mirror=$(sed -n 's/^deb  *\(\[[^]]*\]  *\)\{0,1\}\([^ ]*\)  *[^ ]*  *main.*/\2/p' /etc/apt/sources.list 2>/dev/null | head -n 1)
[[ $mirror ]] || { echo "the sources of apt name no mirror" >&2; exit 1; }
echo "$mirror"
