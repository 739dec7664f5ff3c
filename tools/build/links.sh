#!/bin/sh
# Checks links and paths in all documents (*.md). Prints each target that does not exist, and exits 1 if there is one.
#   links   relative ones, [text](path#heading): the file, and a heading of that name
#   paths   `folder/file` in backticks, if it begins with a folder of the root or next to the document. For a command, only
#           the first word. * may stand for names
# Lines between ``` and the folder build/ are left out.
set -u
cd "$(dirname "$0")/../.." || exit 1
pages=$(find . -name '*.md' ! -path './build*' ! -path './.git/*' | sed 's|^\./||' | sort)

# Prints "LINE KIND TARGET" for each link and path of a document.
targets() {
    awk '/^ *```/ { code = !code; next }
        code { next }
        { for (rest = $0; match(rest, /\]\([^) ]+\)/); rest = substr(rest, RSTART + RLENGTH))
              print NR, "link", substr(rest, RSTART + 2, RLENGTH - 3)
          for (i = split($0, part, "`") - 1; i > 1; i--)
              if (i % 2 == 0 && split(part[i], word, " ") && word[1] ~ /^[A-Za-z0-9_.*-]+\// && word[1] !~ /[^A-Za-z0-9_.*\/-]|^build\//)
                  print NR, "path", word[1] }' "$1"
}
headings() { sed -n 's/^##* //p' "$1" | tr 'A-Z ' 'a-z-' | sed 's/[^a-z0-9_-]//g'; }
exists() { for file in $1; do [ -e "$file" ] && return; done; false; } # $1 unquoted: names with *

found=$(for page in $pages; do
    folder=$(dirname "$page")
    targets "$page" | while read -r line kind target; do
        case $kind:$target in
        link:*://* | link:mailto:*) continue ;;
        link:*)
            file=${target%%#*}
            [ -n "$file" ] && file=$folder/$file || file=$page
            exists "$file" || { echo "$page:$line: no $target"; continue; }
            case $target in *#*) headings "$file" | grep -qxF -e "${target#*#}" || echo "$page:$line: no heading $target" ;; esac ;;
        path:*)
            first=${target%%/*}
            [ -d "$first" ] || [ -d "$folder/$first" ] || continue
            exists "$target" || exists "$folder/$target" || echo "$page:$line: no $target" ;;
        esac
    done
done)
[ -z "$found" ] && exit 0
printf '%s\n' "$found"
exit 1
