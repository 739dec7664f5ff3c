#!/bin/sh
# Prints a script that completes the arguments of `rlxvk` in bash: `completion.sh PROGRAM`. Commands, options and their words
# come from the program's --help, so that no second list must be kept up to date.
set -eu
commands=$("$1" --help | awk '/^  [a-z]/ { print $1 }')

# For a command, prints "options" and all its options; also "words", an option and its words if --help lists them.
options() {
    "$1" "$2" --help | awk '
        function add(option) {
            if (!(option in known))
                all = all " " option
            known[option] = 1
        }
        /^usage:/ {
            for (rest = $0; match(rest, /--[a-z-]+/); rest = substr(rest, RSTART + RLENGTH))
                add(substr(rest, RSTART, RLENGTH))
        }
        /^ *(-[a-z], )?--[a-z]/ {
            match($0, /--[a-z-]+/)
            add(option = substr($0, RSTART, RLENGTH))
            text = $0
            if (sub(/.*: /, "", text) && text ~ /^[a-z0-9]+( \(default\))?(, [a-z0-9]+)+$/) {
                gsub(/ \(default\)|,/, "", text)
                print "words", option, text
            }
        }
        END { print "options" all " --help" }'
}

echo "# Completes the rlxvk command in bash. Made from the program's --help."
echo '_rlxvk() {'
echo '    local command=${COMP_WORDS[1]-} current=${COMP_WORDS[COMP_CWORD]} words='
echo '    case $COMP_CWORD:$command:${COMP_WORDS[COMP_CWORD - 1]} in'
echo "    1:*) words='$(echo $commands) --help --version' ;;"
for command in $commands; do
    options "$1" "$command" | sort -r | while read -r kind rest; do
        case $kind in
        words) echo "    *:$command:${rest%% *}) words='${rest#* }' ;;" ;;
        options) echo "    *:$command:*) [[ \$current != -* ]] || words='$rest' ;;" ;;
        esac
    done
done
cat <<'END'
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -o default -F _rlxvk rlxvk # files where there are no words
END
