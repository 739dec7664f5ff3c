# Public headers as those of a later version would be: each struct that may grow has more members. A struct that another holds stays
# in that other as it was.
function hold(name,    i) { # the first version of a struct, under a name of its own
    print "typedef struct " name "_held {"
    for (i = 1; i <= lines[name]; i++) print line[name, i]
    print "} " name "_held;"
}
/^typedef struct rlxvk_[a-z0-9_]+ \{/ { name = $3; sized[name] = 0; print; next }
name && /^}/ {
    if (sized[name]) print "    uint64_t grown[3];"
    print "} " name ";"
    if (sized[name]) hold(name)
    name = ""
    next
}
name {
    line[name, ++lines[name]] = $0
    if ($1 in sized && sized[$1] && $2 !~ /^\*/) sub($1, $1 "_held")
    print
    if (/^    size_t struct_size;/) { sized[name] = 1 }
    next
}
{ print }
