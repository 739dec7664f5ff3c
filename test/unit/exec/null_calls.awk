# Writes the calls of test_null.c from null_arguments.txt and the public headers: one C function for
# each public function, and a table of all calls. At most one argument of a call is bad: NULL for a
# pointer, or RLXVK_NONE or a tensor of another graph for a tensor. All others are valid stand-ins.
# If there is no stand-in for the type of a parameter, the build fails, so that no function goes
# untested. This is plain awk without extensions of gawk or mawk.

function trim(s)
{
    gsub(/[ \t]+/, " ", s)
    sub(/^ /, "", s)
    sub(/ $/, "", s)
    return s
}

function complain(message)
{
    print "null_calls: " message > "/dev/stderr"
    failed = 1
}

# The stand-in for parameter `name` of `type`: from its own row, the row of its type, or a default.
function stand_in(call, type, name,    base)
{
    if ((call, name) in given) {
        used[call, name] = 1
        return given[call, name]
    }
    if (type in of_type)
        return of_type[type]
    base = type
    sub(/^const /, "", base)
    if (base in enums)
        return "(" base ")0"
    sub(/ \*$/, "", base)
    if (type == base " *" && base in structs)
        return "&(" base "){0}"
    if (type == "const " base " *" && base in structs)
        return "&(const " base "){0}"
    complain(call ": no stand-in for '" type " " name "'; add one to null_arguments.txt")
    return "0"
}

function add_row(call, kind, name, what, optional)
{
    rows[++row_count] = "    {\"" call "\", \"" name "\", " what ", " kind ", " optional ", " variant ", call_" call "},"
}

function is_optional(call, name, type)
{
    if ((call, name) in optional_names) {
        used[call, name, "optional"] = 1
        return 1
    }
    return type ~ /^const rlxvk_.*_(options|stream) \*$/
}

# One parameter: its expression, and the variants with a bad argument.
function argument(call, kind, text,    type, name, value)
{
    type = text
    sub(/[a-z_0-9]+$/, "", type)
    name = substr(text, length(type) + 1)
    type = trim(type)
    value = stand_in(call, type, name)
    if (type ~ /\*$/) {
        add_row(call, kind, name, "NULL_POINTER", is_optional(call, name, type))
        return "v == " variant++ " ? NULL : " value
    }
    if (type != "rlxvk_tensor")
        return value
    add_row(call, kind, name, "NO_TENSOR", 1)
    value = "v == " variant++ " ? RLXVK_NONE : v == " variant " ? foreign(s) : " value
    add_row(call, kind, name, "FOREIGN_TENSOR", kind == "GIVES_VALUE")
    variant++
    return value
}

function kind_of(type, parameters)
{
    if (type == "rlxvk_status")
        return "GIVES_STATUS"
    return parameters ~ /^rlxvk_graph \*/ && type != "const char *" ? "BUILDS" : "GIVES_VALUE"
}

function prototype(statement,    at, type, call, parameters, parts, count, i, body, kind)
{
    at = index(statement, "(")
    type = substr(statement, 1, at - 1)
    match(type, /rlxvk_[a-z0-9_]+$/)
    call = substr(type, RSTART)
    type = trim(substr(type, 1, RSTART - 1))
    sub(/^RLXVK_MUST_CHECK /, "", type)
    parameters = trim(substr(statement, at + 1))
    sub(/\)$/, "", parameters)
    function_count++
    if (parameters == "void")
        parameters = ""
    kind = kind_of(type, parameters)
    variant = 1
    count = split(parameters, parts, ",")
    for (i = 1; i <= count; i++)
        body = body (i > 1 ? ",\n        " : "\n        ") argument(call, kind, trim(parts[i]))
    variant = 0
    add_row(call, kind, "", "NOTHING_LEFT_OUT", 1)
    print "static void call_" call "(stand *s, int v)\n{\n    (void)s;\n    (void)v;"
    if (type == "rlxvk_status")
        print "    s->status = " call "(" body ");\n}\n"
    else if (type == "const char *")
        print "    s->text = " call "(" body ");\n}\n"
    else
        print "    (void)" call "(" body ");\n}\n"
}

# Handles one declaration that is outside braces.
function declaration(statement)
{
    statement = trim(statement)
    if (match(statement, /^typedef enum rlxvk_[a-z0-9_]+/))
        enums[substr(statement, 14, RLENGTH - 13)] = 1
    else if (match(statement, /^typedef struct rlxvk_[a-z0-9_]+/))
        structs[substr(statement, 16, RLENGTH - 15)] = 1
    else if (statement !~ /^typedef/ && statement ~ /rlxvk_[a-z0-9_]+\(/)
        prototype(statement)
}

FILENAME ~ /\.txt$/ {
    if ($0 ~ /^#/ || NF == 0)
        next
    split($0, columns, / *\| */)
    if (columns[1] == "type")
        of_type[columns[2]] = columns[3]
    else if (columns[1] == "optional")
        optional_names[columns[2], columns[3]] = 1
    else
        given[columns[1], columns[2]] = columns[3]
    next
}

FNR == 1 { cplusplus = 0 }
/^#ifdef __cplusplus/ { cplusplus = 1 }
/^#(else|endif)/ { cplusplus = 0 }
cplusplus { next }
/^#/ || continued { continued = $0 ~ /\\$/; next }
{ text = text " " $0 }

END {
    while ((start = index(text, "/*")) > 0) {
        rest = substr(text, start + 2)
        text = substr(text, 1, start - 1) " " substr(rest, index(rest, "*/") + 2)
    }
    # A declaration ends at a semicolon outside braces. Text inside braces is dropped.
    count = split(text, pieces, ";")
    for (i = 1; i <= count; i++) {
        piece = pieces[i]
        opened = gsub(/[{]/, "{", piece)
        closed = gsub(/[}]/, "}", piece)
        if (depth == 0) {
            whole = piece
            sub(/[{].*/, "", whole)
        }
        depth += opened - closed
        if (depth == 0)
            declaration(whole)
    }
    print "static const null_call null_calls[] = {"
    for (i = 1; i <= row_count; i++)
        print rows[i]
    print "};"
    print "enum { NULL_FUNCTIONS = " function_count " };"
    for (key in given) {
        split(key, columns, SUBSEP)
        if (!(key in used))
            complain("null_arguments.txt: there is no " columns[1] " with a parameter " columns[2])
    }
    for (key in optional_names)
        if (!((key SUBSEP "optional") in used))
            complain("null_arguments.txt: nothing is optional as in " key)
    exit failed
}
