/* The case language: table of families, case lines, parser, attribute access for builders. */
#include "conform/cases/table.h"
#include "base/nearest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const case_family *const families[] = {
#define CASES(family) &family,
#include "case_families.h"
#undef CASES
};

const case_family *case_find_family(const char *row)
{
    for (size_t i = 0; i < ARRAY_COUNT(families); i++)
        for (const char *const *name = families[i]->rows; *name; name++)
            if (strcmp(*name, row) == 0)
                return families[i];
    return NULL;
}

const char *case_nearest_row(const char *row)
{
    nearest n = nearest_to(row);
    for (size_t i = 0; i < ARRAY_COUNT(families); i++)
        for (const char *const *name = families[i]->rows; *name; name++)
            nearest_consider(&n, *name);
    return n.word;
}

/* ---- Lines ---- */

void case_add(case_list *list, const char *format, ...)
{
    char line[CASE_TEXT];
    va_list arguments;
    va_start(arguments, format);
    int length = text_format(line, sizeof line, format, arguments);
    va_end(arguments);
    char *copy = length >= 0 && (size_t)length < sizeof line ? memory_copy_string(line) : NULL;
    if (!copy || !VECTOR_PUSH(&list->lines, copy)) {
        memory_free(copy);
        list->failed = true;
    }
}

void case_add_all(case_list *list, const char *head, const char *const *rests, size_t count)
{
    for (size_t i = 0; i < count; i++)
        case_add(list, *head ? "%s %s" : "%s%s", head, rests[i]);
}

rlxvk_status case_list_generate(case_list *out)
{
    *out = (case_list){0};
    for (size_t i = 0; i < ARRAY_COUNT(families); i++)
        families[i]->generate(out);
    if (!out->failed)
        return RLXVK_OK;
    case_list_destroy(out);
    return status_fail(RLXVK_E_LENGTH, "a case line is longer than %d bytes, or memory ran out",
                       CASE_TEXT - 1);
}

void case_list_destroy(case_list *list)
{
    for (size_t i = 0; i < list->lines.count; i++)
        memory_free(list->lines.items[i]);
    VECTOR_FREE(&list->lines);
}

/* ---- Parser ---- */

/* Copies [begin, end) into a fixed field; false if it does not fit. */
static bool take(const char *begin, const char *end, char *out, size_t size)
{
    size_t length = (size_t)(end - begin);
    if (length >= size)
        return false;
    memcpy(out, begin, length);
    out[length] = 0;
    return true;
}

static bool parse_dims(const char *word, rlxvk_shape *out)
{
    *out = RLXVK_SCALAR;
    if (strcmp(word, "scalar") == 0)
        return true;
    for (;;) {
        char *end;
        long long dim = strtoll(word, &end, 10);
        if (end == word || out->rank == RLXVK_MAX_RANK)
            return false;
        out->dims[out->rank++] = dim;
        if (*end != 'x')
            return *end == 0;
        word = end + 1;
    }
}

static bool parse_dtype(const char *word, rlxvk_dtype *out)
{
    for (int t = 0; t < RLXVK_DTYPE_COUNT; t++) {
        const char *name = rlxvk_dtype_name((rlxvk_dtype)t);
        size_t i = 0;
        while (word[i] && name[i] && (word[i] | 0x20) == (name[i] | 0x20))
            i++;
        if (!word[i] && !name[i]) {
            *out = (rlxvk_dtype)t;
            return true;
        }
    }
    return false;
}

/* Parses name:dtype:dims[:fill]; a fill may contain colons. */
static bool parse_input(const char *begin, const char *end, case_input *out)
{
    char word[160], dtype[16], dims[96];
    if (!take(begin, end, word, sizeof word))
        return false;
    const char *first = strchr(word, ':'), *second = first ? strchr(first + 1, ':') : NULL;
    if (!second)
        return false;
    const char *third = strchr(second + 1, ':'), *last = word + strlen(word);
    return take(word, first, out->name, sizeof out->name) &&
           take(first + 1, second, dtype, sizeof dtype) &&
           take(second + 1, third ? third : last, dims, sizeof dims) &&
           take(third ? third + 1 : last, last, out->fill, sizeof out->fill) &&
           parse_dtype(dtype, &out->dtype) && parse_dims(dims, &out->shape);
}

static bool parse_inputs(const char *word, case_spec *out)
{
    for (;;) {
        const char *end = word + strcspn(word, ";");
        if (out->input_count == CASE_MAX_INPUTS ||
            !parse_input(word, end, &out->inputs[out->input_count++]))
            return false;
        if (!*end)
            return true;
        word = end + 1;
    }
}

rlxvk_status case_parse_pair(case_spec *s, const char *token)
{
    const char *equals = strchr(token, '=');
    case_pair *pair = &s->pairs[s->pair_count];
    if (equals && s->pair_count < ARRAY_COUNT(s->pairs) &&
        take(token, equals, pair->key, sizeof pair->key) &&
        take(equals + 1, token + strlen(token), pair->value, sizeof pair->value)) {
        s->pair_count++;
        return RLXVK_OK;
    }
    return status_fail(RLXVK_E_ATTR, "case: '%s' is no key=value of at most %zu=%zu bytes", token,
                       sizeof pair->key - 1, sizeof pair->value - 1);
}

rlxvk_status case_parse(const char *line, case_spec *out)
{
    char copy[CASE_TEXT], *rest = NULL;
    *out = (case_spec){0};
    if (!take(line, line + strlen(line), copy, sizeof copy))
        return status_fail(RLXVK_E_ATTR, "case line longer than %d bytes", CASE_TEXT - 1);
    char *token = strtok_r(copy, " ", &rest);
    if (!token || !take(token, token + strlen(token), out->row, sizeof out->row))
        return status_fail(RLXVK_E_ATTR, "case '%s': no row name", line);
    while ((token = strtok_r(NULL, " ", &rest))) {
        if (strncmp(token, "in=", 3) != 0) {
            rlxvk_status status = case_parse_pair(out, token);
            if (status != RLXVK_OK)
                return status_fail_within(status, "case '%s': ", line);
        } else if (!parse_inputs(token + 3, out))
            return status_fail(RLXVK_E_ATTR, "case '%s': inputs are name:dtype:dims[:fill];...",
                               line);
    }
    return RLXVK_OK;
}

/* ---- Attribute access ---- */

const char *case_word(const case_spec *s, const char *key, const char *fallback)
{
    for (size_t i = 0; i < s->pair_count; i++)
        if (strcmp(s->pairs[i].key, key) == 0)
            return s->pairs[i].value;
    return fallback;
}

rlxvk_activation case_activation(const case_spec *s, const char *key)
{
    static const char *const names[] = {
        "none",
#define ACTIVATION(code, NAME, row, ...) #row,
#include "args/activation.def"
    };
    const char *name = case_word(s, key, names[0]);
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        if (strcmp(names[i], name) == 0)
            return (rlxvk_activation)i;
    return (rlxvk_activation)-1;
}

int64_t case_integer(const case_spec *s, const char *key, int64_t fallback)
{
    const char *value = case_word(s, key, "");
    return *value ? strtoll(value, NULL, 10) : fallback;
}

double case_real(const case_spec *s, const char *key, double fallback)
{
    const char *value = case_word(s, key, "");
    return *value ? text_to_real(value, NULL) : fallback;
}

size_t case_integers(const case_spec *s, const char *key, int32_t *values, size_t capacity)
{
    const char *word = case_word(s, key, "");
    size_t count = 0;
    while (*word && count < capacity) {
        char *end;
        long value = strtol(word, &end, 10);
        if (end == word)
            break;
        values[count++] = (int32_t)value;
        word = end + (*end == ',');
    }
    return count;
}

void case_entries(const case_spec *s, const char *key, int64_t out[3])
{
    int32_t values[3];
    size_t count = case_integers(s, key, values, COUNT(values));
    for (size_t i = 0; i < count; i++)
        out[i] = values[i];
}

void case_windows(const case_spec *s, rlxvk_pool_options *out)
{
    case_entries(s, "kernel", out->kernel);
    case_entries(s, "stride", out->stride);
    case_entries(s, "padding", out->padding);
    case_entries(s, "padding_after", out->padding_after);
    case_entries(s, "dilation", out->dilation);
    out->padding_kind =
        (rlxvk_pool_padding)case_integer(s, "padding_kind",
                                         case_word(s, "padding_after", NULL) != NULL);
    out->rounding = (rlxvk_pool_rounding)case_integer(s, "ceil", 0);
    out->struct_size = RLXVK_SIZE_OF(rlxvk_pool_options);
    for (size_t i = 0; i < COUNT(out->kernel); i++)
        if (out->kernel[i] && !case_word(s, "stride", NULL))
            out->stride[i] = 1;
}

rlxvk_precision case_precision(const case_spec *s, rlxvk_precision fallback)
{
    const char *word = case_word(s, "precision", ""), *name;
    for (unsigned i = 0; (name = rlxvk_precision_name((rlxvk_precision)i)); i++)
        if (strcmp(word, name) == 0)
            return (rlxvk_precision)i;
    return fallback;
}

rlxvk_shape case_shape(const case_spec *s, const char *key)
{
    rlxvk_shape shape;
    return parse_dims(case_word(s, key, "scalar"), &shape) ? shape : RLXVK_SCALAR;
}

rlxvk_tensor case_tensor(const case_spec *s, const rlxvk_tensor *inputs, const char *name)
{
    for (size_t i = 0; i < s->input_count; i++)
        if (strcmp(s->inputs[i].name, name) == 0)
            return inputs[i];
    return RLXVK_NONE;
}

rlxvk_tensor case_diagonal(rlxvk_graph *g, int64_t n, float value)
{
    rlxvk_tensor result = RLXVK_NONE;
    float *words = calloc((size_t)(n * n) + 1, sizeof *words);
    for (int64_t i = 0; words && i < n; i++)
        words[i * n + i] = value;
    if (words)
        result =
            rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(n, n), words, (size_t)(n * n) * sizeof *words);
    free(words);
    return result;
}

rlxvk_tensor case_shifted(rlxvk_graph *g, const case_spec *s, const char *key, rlxvk_tensor x)
{
    int64_t shift = case_integer(s, key, 0);
    return shift ? rlxvk_narrow(g, x, 0, shift, rlxvk_tensor_shape(g, x).dims[0] - shift) : x;
}

rlxvk_tensor case_operand(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs,
                          const char *name)
{
    for (size_t i = 0; i < s->input_count; i++)
        if (strcmp(s->inputs[i].name, name) == 0) {
            rlxvk_tensor x = case_shifted(g, s, "shift", inputs[i]);
            return case_integer(s, "scratch", 0) >> i & 1 ? rlxvk_copy(g, x) : x;
        }
    return RLXVK_NONE;
}

rlxvk_tensor case_turned(rlxvk_graph *g, const case_spec *s, rlxvk_tensor x)
{
    int32_t perm[] = {0, 1, 2, 3}, rank = (int32_t)rlxvk_tensor_shape(g, x).rank;
    if (!case_integer(s, "turned", 0) || rank < 3)
        return x;
    perm[rank - 3] = rank - 2;
    perm[rank - 2] = rank - 3;
    return rlxvk_transpose(g, x, perm, (size_t)rank);
}

rlxvk_tensor case_viewed(rlxvk_graph *g, const case_spec *s, rlxvk_tensor x)
{
    int64_t cut = case_integer(s, "cut", 0);
    rlxvk_shape shape = rlxvk_tensor_shape(g, x);
    if (cut)
        x = rlxvk_narrow(g, x, -1, cut, shape.dims[shape.rank - 1] - 2 * cut);
    return case_turned(g, s, x);
}
