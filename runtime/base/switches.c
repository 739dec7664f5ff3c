/*
 * Environment switches by table. Truth: unset, "", 0, false, off, no are off and anything else is
 * on, in any case. A switch with a fixed set of words takes those words, or one of the off words;
 * every other value is E_ATTR naming the variable. A failed read leaves *out as it was.
 */
#define _POSIX_C_SOURCE 200809L
#include "base/switches.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct word {
    const char *name;
    unsigned value;
} word;

static const word dump_words[] = {
    {"graph", DUMP_GRAPH},
    {"rewrite", DUMP_REWRITE},
    {"plan", DUMP_PLAN},
    {"barriers", DUMP_BARRIERS},
};
static const word check_words[] = {{"plan", CHECK_PLAN},
                                   {"index", CHECK_INDEX},
                                   {"packed", CHECK_PACKED}};
static const word matmul_words[] = {{"scalar", MATMUL_SCALAR},
                                    {"tiled", MATMUL_TILED},
                                    {"coop", MATMUL_COOP}};

#define OFFSET(member) offsetof(switches, member)

static const struct {
    const char *name;
    size_t offset;
} truth_rows[] = {
    {"RLXVK_NOCACHE", OFFSET(no_cache)},
    {"RLXVK_FULLBARRIER", OFFSET(full_barrier)},
    {"RLXVK_NOBARRIER", OFFSET(no_barrier)},
    {"RLXVK_DEBUG", OFFSET(debug)},
    {"RLXVK_FORCE_INPUT_UPLOAD", OFFSET(force_input_upload)},
    {"RLXVK_VALIDATION", OFFSET(validation)},
    {"RLXVK_NO_FUSION", OFFSET(no_fusion)},
    {"RLXVK_NO_REGIONS", OFFSET(no_regions)},
    {"RLXVK_NO_PACKED_ATTN", OFFSET(no_packed_attention)},
    {"RLXVK_NO_TUNING", OFFSET(no_tuning)},
    {"RLXVK_NAN_TRACE", OFFSET(nan_trace)},
    {"RLXVK_DUMP_NODES", OFFSET(dump_nodes)},
    {"RLXVK_DISPATCH_ONLY", OFFSET(dispatch_only)},
    {"RLXVK_NO_SPECIALIZATION", OFFSET(no_specialization)},
};

static const struct {
    const char *name;
    size_t offset, size;
} string_rows[] = {
    {"RLXVK_DEVICE", OFFSET(device), sizeof(((switches *)0)->device)},
    {"RLXVK_FORCE_HOST", OFFSET(force_host), sizeof(((switches *)0)->force_host)},
    {"RLXVK_TRACE", OFFSET(trace), sizeof(((switches *)0)->trace)},
    {"RLXVK_VARIANT", OFFSET(variant), sizeof(((switches *)0)->variant)},
};

static bool is_off(const char *value)
{
    static const char *const words[] = {"", "0", "false", "off", "no"};
    if (!value)
        return true;
    for (size_t i = 0; i < ARRAY_COUNT(words); i++)
        if (!strcasecmp(value, words[i]))
            return true;
    return false;
}

static const word *word_find(const word *words, size_t count, const char *name, size_t length)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(words[i].name) == length && !strncasecmp(words[i].name, name, length))
            return &words[i];
    return NULL;
}

static rlxvk_status fail_word(const char *what, const char *value, size_t length, const word *words,
                              size_t count)
{
    char allowed[128] = "";
    text t = {.buffer = allowed, .size = sizeof(allowed)};
    for (size_t i = 0; i < count; i++)
        text_append(&t, "%s%s", i ? ", " : "", words[i].name);
    return fail(RLXVK_E_ATTR, "%s: unknown value '%.*s'; it takes %s", what, (int)MIN(length, 200),
                value, allowed);
}

/* A comma-separated list of words as the union of their bits. Empty items are skipped. */
static rlxvk_status parse_set(const char *value, const char *what, const word *words, size_t count,
                              unsigned *out)
{
    unsigned bits = 0;
    if (!is_off(value))
        for (const char *item = value, *end; *item; item = *end ? end + 1 : end) {
            end = item + strcspn(item, ",");
            const word *found = word_find(words, count, item, (size_t)(end - item));
            if (!found && end != item)
                return fail_word(what, item, (size_t)(end - item), words, count);
            bits |= found ? found->value : 0;
        }
    *out = bits;
    return RLXVK_OK;
}

rlxvk_status switches_parse_dump(const char *value, const char *what, unsigned *out)
{
    return parse_set(value, what, dump_words, ARRAY_COUNT(dump_words), out);
}

rlxvk_status switches_parse_matmul(const char *value, const char *what, unsigned *out)
{
    if (is_off(value)) {
        *out = MATMUL_AUTO;
        return RLXVK_OK;
    }
    const word *found = word_find(matmul_words, ARRAY_COUNT(matmul_words), value, strlen(value));
    if (!found)
        return fail_word(what, value, strlen(value), matmul_words, ARRAY_COUNT(matmul_words));
    *out = found->value;
    return RLXVK_OK;
}

static rlxvk_status read_plan(bool *out_bump)
{
    static const word words[] = {{"bump", 1}};
    const char *value = getenv("RLXVK_PLAN");
    *out_bump = !is_off(value);
    if (*out_bump && strcasecmp(value, "bump"))
        return fail_word("RLXVK_PLAN", value, strlen(value), words, ARRAY_COUNT(words));
    return RLXVK_OK;
}

/* A whole decimal number of 0 or more; *out keeps its default when the variable is unset or empty.
 */
static rlxvk_status read_number(const char *name, int64_t *out)
{
    const char *value = getenv(name);
    if (!value || !*value)
        return RLXVK_OK;
    char *end;
    errno = 0;
    long long number = strtoll(value, &end, 10);
    if (errno || *end || end == value || number < 0)
        return fail(RLXVK_E_ATTR, "%s: '%.200s' is no whole number of 0 or more", name, value);
    *out = number;
    return RLXVK_OK;
}

static rlxvk_status read_string(const char *name, char *out, size_t size)
{
    const char *value = getenv(name);
    if (!value)
        return RLXVK_OK;
    if (strlen(value) >= size)
        return fail(RLXVK_E_ATTR, "%s: '%.100s...' is longer than %zu bytes", name, value,
                    size - 1);
    strcpy(out, value);
    return RLXVK_OK;
}

rlxvk_status switches_read(switches *out)
{
    rlxvk_status status;
    switches s = {0};
    int64_t limit = 40, flat = -1;
    for (size_t i = 0; i < ARRAY_COUNT(truth_rows); i++)
        *(bool *)((char *)&s + truth_rows[i].offset) = !is_off(getenv(truth_rows[i].name));
    for (size_t i = 0; i < ARRAY_COUNT(string_rows); i++)
        TRY(read_string(string_rows[i].name, (char *)&s + string_rows[i].offset,
                        string_rows[i].size));
    TRY(switches_parse_dump(getenv("RLXVK_DUMP"), "RLXVK_DUMP", &s.dump));
    TRY(parse_set(getenv("RLXVK_CHECK"), "RLXVK_CHECK", check_words, ARRAY_COUNT(check_words),
                  &s.check));
    TRY(switches_parse_matmul(getenv("RLXVK_MATMUL"), "RLXVK_MATMUL", &s.matmul));
    TRY(read_plan(&s.bump_plan));
    TRY(read_number("RLXVK_DUMP_NODES_LIMIT", &limit));
    TRY(read_number("RLXVK_DUMP_NODES_FLAT", &flat));
    s.dump_nodes_limit = (uint64_t)limit;
    s.dump_nodes_flat = flat;
    *out = s;
    return RLXVK_OK;
error:
    return status;
}
