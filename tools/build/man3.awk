# Makes man pages of the public calls from comments in the headers: awk -v folder=DIR -v version=V -v date=D -f man3.awk include/*.h
#
# If prototypes follow one comment without an empty line, they share a page. It is named after the first one, and the pages of
# the others refer to it. A comment at the end of a prototype is a sentence about only that call. A page also has the structs
# and enums of its header that its prototypes name.

function text_of(line) {
    sub(/^ *\/\* ?/, "", line); sub(/ *\*\/ *$/, "", line); sub(/^ \* ?/, "", line)
    return line
}
function escaped(s) {
    gsub(/\\/, "\\e", s)
    if (s ~ /^[.']/) s = "\\&" s
    return s
}
# Formats a comment as paragraphs. Lines that are indented by three or more spaces stay lines.
function paragraphs(comment,    lines, count, i, out, apart) {
    sub(/\n+$/, "", comment)
    count = split(comment, lines, "\n")
    for (i = 1; i <= count; i++) {
        if (lines[i] ~ /^ *$/) {
            if (apart) out = out ".fi\n"
            if (out != "" && out !~ /\.PP\n$/ && i < count) out = out ".PP\n"
            apart = 0
        } else {
            if (lines[i] ~ /^   / && !apart) { out = out ".nf\n"; apart = 1 }
            else if (lines[i] !~ /^ / && apart) { out = out ".fi\n"; apart = 0 }
            out = out escaped(lines[i]) "\n"
        }
    }
    return out (apart ? ".fi\n" : "")
}
# The purpose of a call, in one line.
function summary(comment,    s) {
    s = comment
    gsub(/\n+/, " ", s); gsub(/  +/, " ", s); sub(/^ /, "", s)
    if (match(s, /[.;]( |$)/)) s = substr(s, 1, RSTART - 1)
    if (length(s) > 70) { s = substr(s, 1, 70); sub(/ [^ ]*$/, " ...", s) }
    return s == "" ? "see the headers" : s
}
function name_of(prototype) {
    match(prototype, /rlxvk_[a-z0-9_]+\(/)
    return substr(prototype, RSTART, RLENGTH - 1)
}
# Prints the types that the prototypes name, and after each one the types that it names. Types that nearly every call has are
# left out.
function definitions(    text, out, used, word) {
    for (word in everywhere) used[word] = 1
    for (word = 1; word <= calls; word++) text = text prototypes[word]
    while (match(text, /rlxvk_[a-z0-9_]+/)) {
        word = substr(text, RSTART, RLENGTH)
        text = substr(text, RSTART + RLENGTH)
        if (word in type && !(word in used)) {
            used[word] = 1
            out = out (about_type[word] != "" ? ".PP\n" paragraphs(about_type[word]) : "") ".PP\n.nf\n" type[word] ".fi\n"
            text = text type[word]
        }
    }
    return out
}
# If a call has no comment of its own, the comment of a struct that it fills describes it.
function of_own_type(    text, word) {
    for (text = prototypes[1]; match(text, /rlxvk_[a-z0-9_]+/); text = substr(text, RSTART + RLENGTH)) {
        word = substr(text, RSTART, RLENGTH)
        if (about_type[word] != "" && !(word in everywhere)) return about_type[word]
    }
    return ""
}
function flush_page(    file, i, first, names) {
    if (calls) {
        first = name_of(prototypes[1])
        plain = first
        sub(/_[a-z]+$/, "", plain)
        if (comment == "" && sentences == "" && plain in known) sentences = "As " plain "(3), with options."
        for (i = 1; i <= calls; i++) known[name_of(prototypes[i])] = 1
        for (i = 1; i <= calls; i++) names = names (i > 1 ? ", " : "") name_of(prototypes[i])
        file = folder "/" first ".3"
        printf ".TH %s 3 \"%s\" \"rlxvk %s\" \"rlxvk\"\n.SH NAME\n%s \\- %s\n.SH SYNOPSIS\n.nf\n#include <%s>\n", first, date, version,
            names, escaped(summary(comment != "" ? comment : sentences != "" ? sentences : of_own_type())), header >file
        for (i = 1; i <= calls; i++) printf ".PP\n%s", prototypes[i] >file
        printf ".fi\n.SH DESCRIPTION\n%s", paragraphs(comment) >file
        if (sentences != "") printf "%s%s", (comment != "" ? ".PP\n" : ""), paragraphs(sentences) >file
        types = definitions()
        if (comment == "" && sentences == "") sub(/^\.PP\n/, "", types)
        printf "%s", types >file
        if (about != "") printf ".SH NOTES\n%s", paragraphs(about) >file
        printf ".SH SEE ALSO\nThe conventions of all calls, on statuses, errors and ownership, are at the head of\n.IR rlxvk.h .\n.PP\n.BR rlxvk (1)\n" >file
        close(file)
        for (i = 2; i <= calls; i++) {
            file = folder "/" name_of(prototypes[i]) ".3"
            printf ".so man3/%s.3\n", first >file
            close(file)
        }
    } else if (comment != "" && !is_section && !is_of_type)
        about = about (about != "" ? "\n\n" : "") comment
    calls = 0; comment = sentences = ""; is_section = is_of_type = 0
}

BEGIN { count = split("tensor shape status dtype", names, " "); for (i in names) everywhere["rlxvk_" names[i]] = 1 }
FNR == 1 { flush_page(); header = FILENAME; sub(/.*\//, "", header); about = ""; in_type = in_comment = in_call = in_macro = 0; at_head = 1 }
in_macro { in_macro = /\\$/; next }
/^#define/ { in_macro = /\\$/; next }
/^(#|extern "C"|}$)/ { at_head = 0; comment = ""; next }
in_type {
    body = body escaped($0) "\n"
    if (/^}/) { word = $2; sub(/;.*/, "", word); type[word] = body; about_type[word] = of_type; in_type = 0; comment = of_type; is_of_type = 1 }
    next
}
/^typedef (struct|enum) .*{$/ { body = escaped($0) "\n"; of_type = comment; comment = ""; in_type = 1; next }
/^typedef/ { next }
in_comment {
    comment = comment text_of($0) "\n"
    in_comment = !/\*\//
    next
}
!in_call && /^\/\*/ {
    flush_page()
    if (/^\/\* ---- /) { is_section = 1; about = ""; next }
    comment = text_of($0) "\n"
    in_comment = !/\*\//
    next
}
/^$/ { if (at_head) comment = ""; flush_page(); next }
/^[a-zA-Z].*[ *]rlxvk_[a-z0-9_]+\(/ && !/^(static|template)/ && !in_call { in_call = 1; prototypes[++calls] = "" }
in_call {
    line = $0
    if (match(line, /;.*\/\*.*\*\/ *$/)) {
        sentence = line
        sub(/^[^;]*; */, "", sentence)
        sentences = sentences name_of(prototypes[calls] line) ": " text_of(sentence) "\n\n"
        sub(/;.*/, ";", line)
    }
    sub(/^RLXVK_MUST_CHECK /, "", line)
    prototypes[calls] = prototypes[calls] escaped(line) "\n"
    in_call = line !~ /;$/
    next
}
END { flush_page() }
