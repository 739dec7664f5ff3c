#!/bin/sh
# Prints the man page: `man.sh PROGRAM VERSION`. The program lists its own switches; this needs no device.
set -eu
switches=$(VK_ICD_FILENAMES=/nosuch VK_DRIVER_FILES=/nosuch "$1" info 2>/dev/null |
    awk '/^Switches / { inside = 1; next } /^[^ ]/ { inside = 0 }
        inside { name = $1; sub(/^ *[^ ]+ +/, ""); gsub(/\\/, "\\e"); print ".It Ev " name "\n\\&" $0 }')
[ -n "$switches" ]
SWITCHES=$switches awk -v version="$2" '/^@SWITCHES@$/ { print ENVIRON["SWITCHES"]; next } { gsub(/@VERSION@/, version); print }' \
    "$(dirname "$0")/rlxvk.1.in"
