# From headers without comments, a program that prints where each member of each struct is, how large the structs that never grow are,
# and the number of each enumerator.
BEGIN { print "#include <stddef.h>\n#include <stdio.h>" }
FNR == 1 { n = split(FILENAME, part, "/"); print "#include <" part[n] ">" }
function member(text,    names, count, i, one) {
    if (match(text, /\(\*[a-z_]+\)/)) { # a function
        out = out sprintf("    PLACE(%s, %s)\n", name, substr(text, RSTART + 2, RLENGTH - 3))
        return
    }
    gsub(/\[[^]]*\]/, "", text)
    count = split(text, names, ",")
    for (i = 1; i <= count; i++)
        if (match(names[i], /[A-Za-z0-9_]+ *$/)) {
            one = substr(names[i], RSTART, RLENGTH)
            gsub(/ /, "", one)
            out = out sprintf("    PLACE(%s, %s)\n", name, one)
            if (one == "struct_size") grows = 1
        }
}
/^typedef struct rlxvk_[a-z0-9_]+ \{/ { name = $3; text = ""; grows = 0; next }
name && /^}/ { if (!grows) out = out sprintf("    SIZE(%s)\n", name); name = ""; next }
name { text = text " " $0; if (/;/) { sub(/;.*/, "", text); member(text); text = "" }; next }
/^typedef enum rlxvk_[a-z0-9_]+ \{/ { inside = 1 }
inside { rest = $0; while (match(rest, /RLXVK_[A-Z0-9_]+[^(A-Z0-9_]/)) {
    constant = substr(rest, RSTART, RLENGTH - 1); rest = substr(rest, RSTART + RLENGTH)
    if (constant !~ /_(COUNT|ENUMERATOR|TABLE)$/ && !(constant in seen)) { seen[constant] = 1; out = out sprintf("    NUMBER(%s)\n", constant) } } }
/}/ { inside = 0 }
END {
    print "#define PLACE(type, member) printf(#type \".\" #member \" at %zu\\n\", offsetof(type, member));"
    print "#define SIZE(type) printf(#type \" has %zu bytes\\n\", sizeof(type));"
    print "#define NUMBER(name) printf(#name \" is %d\\n\", (int)name);"
    print "#define STATUS(name, number, text) printf(#name \" is %d\\n\", number);"
    print "int main(void)\n{\n    RLXVK_STATUS_TABLE(STATUS)\n" out "}"
}
