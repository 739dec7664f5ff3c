/* Reads golden vectors; golden.h describes the format. A line without an op in this build is kept,
 * with an empty row, so that it can be counted. */
#include "conform/golden.h"
#include "cli/file.h"
#include "op/op.h"
#include "op/packed/quant_format.h"

#include <stdio.h>
#include <string.h>

/* ---- Names: outside op -> row ---- */

static const struct mapping {
    const char *op, *row; /* %s is replaced by the case's kind */
    const char *pair;     /* an extra pair for the case, for example a bound if it becomes several
                             ops */
} mappings[] = {
    {"activation", "%s"},
    {"binary", "%s"},
    {"reduce", "reduce_%s"},
    {"attention_gqa", "attention"},
    {"dequant", "dequant_gather"},
    {"pool", "pool_%s"},
    {"cumsum_backward", "cumsum", "within=1e-6"},
    {"welch_psd", "welch", "within=1e-6"},
    {"max_pool2d_backward", "pool_max_backward"},
    {"conv2d_backward_input", "conv_backward_input"},
    {"conv2d_backward_weight", "conv_backward_weight"},
};

/* If the format is not a weight format, no op fits the case. */
static bool format_known(const case_spec *s)
{
    const char *name = case_word(s, "format", NULL);
    const quant_format *format = name ? quant_format_find_name(name) : NULL;
    return !name || (format && format->weight);
}

static void map_row(case_spec *s, const char *op)
{
    const struct mapping *found = &(struct mapping){op, op, NULL};
    text row = {s->row, sizeof s->row, 0};
    for (size_t i = 0; i < ARRAY_COUNT(mappings); i++)
        if (strcmp(op, mappings[i].op) == 0)
            found = &mappings[i];
    const char *mark = strstr(found->row, "%s");
    if (found->pair && case_parse_pair(s, found->pair) != RLXVK_OK)
        return;
    if (mark)
        text_append(&row, "%.*s%s", (int)(mark - found->row), found->row, case_word(s, "kind", ""));
    else
        text_append(&row, "%s", found->row);
    if (op_find(s->row) == OP_COUNT || !case_find_family(s->row) || !format_known(s))
        s->row[0] = 0;
}

/* ---- Lines ---- */

/* Splits "tensor:file;tensor:file" into names and files, at most `capacity`. Returns how many. */
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

/* Names of files must stay inside the folder. */
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

static bool take_outputs(golden_case *c, char *list)
{
    char *names[CASE_MAX_INPUTS], *files[CASE_MAX_INPUTS];
    c->output_count = split_files(list, names, files, CASE_MAX_INPUTS);
    if (c->output_count == 0 || c->output_count > CASE_MAX_INPUTS)
        return false;
    for (size_t i = 0; i < c->output_count; i++)
        if (!copy_file(files[i], c->outputs[i], sizeof c->outputs[i]))
            return false;
    return true;
}

/* False if the line is malformed. A line with too many inputs gets no row. */
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
    return !c->spec.row[0] || (take_inputs(c, in) && take_outputs(c, out));
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

/* Complex contents are pairs along a last axis of 2. */
static void take_complex(case_spec *s)
{
    rlxvk_shape *shape = &s->inputs[0].shape;
    if (strcmp(case_word(s, "layout", ""), "interleaved") != 0 || shape->rank == 0 ||
        shape->dims[shape->rank - 1] != 2)
        return;
    s->inputs[0].dtype = RLXVK_C64;
    shape->rank--;
}

/* Several outputs become one array of all their elements, in the way that ops with several results
 * return them. */
static rlxvk_status append_output(npy_array *all, const npy_array *more)
{
    double *grown = memory_zeroed(all->numel + more->numel + 1, sizeof *grown);
    if (!grown)
        return status_fail_memory("golden outputs");
    for (uint64_t i = 0; i < all->numel; i++)
        grown[i] = npy_element(all, i);
    for (uint64_t i = 0; i < more->numel; i++)
        grown[all->numel + i] = npy_element(more, i);
    npy_array joined = {.dtype = RLXVK_F64,
                        .numel = all->numel + more->numel,
                        .size = (all->numel + more->numel) * sizeof *grown,
                        .data = grown};
    joined.shape = RLXVK_SHAPE((int64_t)joined.numel);
    npy_destroy(all);
    *all = joined;
    return RLXVK_OK;
}

static rlxvk_status load_outputs(const golden_set *set, golden_case *c)
{
    rlxvk_status status = load(set, c->outputs[0], &c->expected);
    c->ends[0] = c->expected.numel;
    for (size_t i = 1; i < c->output_count && status == RLXVK_OK; i++) {
        npy_array more = {0};
        status = load(set, c->outputs[i], &more);
        if (status == RLXVK_OK)
            status = append_output(&c->expected, &more);
        npy_destroy(&more);
        c->ends[i] = c->expected.numel;
    }
    return status;
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
    TRY(load_outputs(set, c));
    return RLXVK_OK;
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

bool golden_has_length(const golden_case *c, uint64_t length)
{
    for (size_t i = 0; i < c->output_count; i++)
        if (c->ends[i] == length)
            return true;
    return false;
}
