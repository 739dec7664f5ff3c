/* Reader of golden vectors; the format is in golden.h. A line that names no row of this build is
 * kept, with an empty row, so that it can be counted. */
#include "conform/golden.h"
#include "cli/file.h"
#include "op/op.h"
#include "op/packed/quant_format.h"

#include <stdio.h>
#include <string.h>

/* ---- Names: outside op -> row ---- */

static const struct mapping {
    const char *op, *row; /* %s: the case's kind */
} mappings[] = {
    {"activation", "%s"},          {"binary", "%s"},
    {"reduce", "reduce_%s"},       {"attention_gqa", "attention"},
    {"dequant", "dequant_gather"}, {"pool", "pool_%s"},
};

/* A case of a format that is no weight format has no op. */
static bool format_known(const case_spec *s)
{
    const char *name = case_word(s, "format", NULL);
    const quant_format *format = name ? quant_format_find_name(name) : NULL;
    return !name || (format && format->weight);
}

static void map_row(case_spec *s, const char *op)
{
    const struct mapping *found = &(struct mapping){op, op};
    text row = {s->row, sizeof s->row, 0};
    for (size_t i = 0; i < ARRAY_COUNT(mappings); i++)
        if (strcmp(op, mappings[i].op) == 0)
            found = &mappings[i];
    const char *mark = strstr(found->row, "%s");
    if (mark)
        text_append(&row, "%.*s%s", (int)(mark - found->row), found->row, case_word(s, "kind", ""));
    else
        text_append(&row, "%s", found->row);
    if (op_find(s->row) == OP_COUNT || !case_find_family(s->row) || !format_known(s))
        s->row[0] = 0;
}

/* ---- Lines ---- */

/* "tensor:file;tensor:file" -> names and files; at most `capacity` of them, how many there are. */
static size_t split_files(char *list, char *names[], char *files[], size_t capacity)
{
    size_t count = 0;
    char *rest = NULL;
    for (char *item = strtok_r(list, ";", &rest); item; item = strtok_r(NULL, ";", &rest)) {
        char *colon = strchr(item, ':');
        if (!colon)
            return capacity + 1;
        *colon = 0;
        if (count < capacity) {
            names[count] = item;
            files[count] = colon + 1;
        }
        count++;
    }
    return count;
}

static bool copy_word(const char *from, char *to, size_t size)
{
    return (size_t)snprintf(to, size, "%s", from) < size;
}

/* Names of files stay inside the folder. */
static bool copy_file(const char *from, char *to, size_t size)
{
    return !strchr(from, '/') && copy_word(from, to, size);
}

static bool take_inputs(golden_case *c, char *list)
{
    char *names[CASE_MAX_INPUTS], *files[CASE_MAX_INPUTS];
    size_t count = split_files(list, names, files, CASE_MAX_INPUTS);
    if (count > CASE_MAX_INPUTS)
        return false;
    for (size_t i = 0; i < count; i++)
        if (!copy_word(names[i], c->spec.inputs[i].name, sizeof c->spec.inputs[i].name) ||
            !copy_file(files[i], c->files[i], sizeof c->files[i]))
            return false;
    c->spec.input_count = count;
    return true;
}

static bool take_output(golden_case *c, char *list)
{
    char *name, *file;
    return split_files(list, &name, &file, 1) >= 1 && copy_file(file, c->output, sizeof c->output);
}

/* False when the line is malformed; a line with more inputs than a case holds has no row. */
static bool parse_line(char *line, golden_case *c)
{
    char *rest = NULL, *op = NULL, *in = NULL, *out = NULL;
    char *token = strtok_r(line, " ", &rest);
    if (!token || !copy_word(token, c->name, sizeof c->name))
        return false;
    while ((token = strtok_r(NULL, " ", &rest))) {
        if (strncmp(token, "op=", 3) == 0)
            op = token + 3;
        else if (strncmp(token, "in=", 3) == 0)
            in = token + 3;
        else if (strncmp(token, "out=", 4) == 0)
            out = token + 4;
        else if (case_parse_pair(&c->spec, token) != RLXVK_OK)
            return false;
    }
    if (!op || !in || !out)
        return false;
    map_row(&c->spec, op);
    return !c->spec.row[0] || (take_inputs(c, in) && take_output(c, out));
}

static rlxvk_status add_line(golden_set *set, const char *begin, size_t length, size_t number)
{
    char buffer[4096];
    golden_case c = {0};
    if (length == 0 || *begin == '#')
        return RLXVK_OK;
    if (length >= sizeof buffer)
        return status_fail(RLXVK_E_ATTR, "%s/cases.txt line %zu: longer than %zu bytes",
                           set->directory, number, sizeof buffer - 1);
    memcpy(buffer, begin, length);
    buffer[length] = 0;
    c.line = memory_copy_string(buffer);
    if (c.line && !parse_line(buffer, &c)) {
        memory_free(c.line);
        return status_fail(
            RLXVK_E_ATTR,
            "%s/cases.txt line %zu: want 'name op=... key=value... in=tensor:file;... "
            "out=tensor:file'",
            set->directory, number);
    }
    if (c.line && VECTOR_PUSH(&set->cases, c))
        return RLXVK_OK;
    memory_free(c.line);
    return status_fail_memory("golden cases");
}

rlxvk_status golden_open(const char *directory, golden_set *out)
{
    char path[4096];
    rlxvk_status status = RLXVK_OK;
    file_content content = {0};
    *out = (golden_set){.directory = memory_copy_string(directory)};
    if (!out->directory)
        return status_fail_memory("golden cases");
    snprintf(path, sizeof path, "%s/cases.txt", directory);
    TRY(file_read(path, &content));
    const char *at = (const char *)content.data, *end = at + content.length;
    for (size_t number = 1; at < end; number++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t length = (size_t)((stop ? stop : end) - at);
        TRY(add_line(out, at, length, number));
        at += length + 1;
    }
error:
    file_free(&content);
    if (status != RLXVK_OK)
        golden_close(out);
    return status;
}

void golden_close(golden_set *set)
{
    for (size_t i = 0; i < set->cases.count; i++) {
        golden_unload(&set->cases.items[i]);
        memory_free(set->cases.items[i].line);
    }
    VECTOR_FREE(&set->cases);
    memory_free(set->directory);
    *set = (golden_set){0};
}

/* ---- Arrays ---- */

static rlxvk_status load(const golden_set *set, const char *file, npy_array *out)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", set->directory, file);
    return npy_read(path, out);
}

/* Complex contents come as pairs along a last axis of 2. */
static void take_complex(case_spec *s)
{
    rlxvk_shape *shape = &s->inputs[0].shape;
    if (strcmp(case_word(s, "layout", ""), "interleaved") != 0 || shape->rank == 0 ||
        shape->dims[shape->rank - 1] != 2)
        return;
    s->inputs[0].dtype = RLXVK_C64;
    shape->rank--;
}

rlxvk_status golden_load(const golden_set *set, golden_case *c)
{
    rlxvk_status status;
    for (size_t i = 0; i < c->spec.input_count; i++) {
        TRY(load(set, c->files[i], &c->contents[i]));
        c->spec.inputs[i].dtype = c->contents[i].dtype;
        c->spec.inputs[i].shape = c->contents[i].shape;
        if (c->contents[i].dtype != RLXVK_F32 && c->contents[i].dtype != RLXVK_U8)
            TRY(status_fail(RLXVK_E_DTYPE, "golden input %s is %s; it must be F32 or U8",
                            c->files[i], rlxvk_dtype_name(c->contents[i].dtype)));
    }
    take_complex(&c->spec);
    return load(set, c->output, &c->expected);
error:
    golden_unload(c);
    return status;
}

void golden_unload(golden_case *c)
{
    for (size_t i = 0; i < CASE_MAX_INPUTS; i++)
        npy_destroy(&c->contents[i]);
    npy_destroy(&c->expected);
}
