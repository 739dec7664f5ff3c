/*
 * Shared by the tests of language models: reads lists of numbers from JSON files of golden values.
 * Include it after cmocka.h.
 */
#ifndef GOLDEN_NUMBERS_H
#define GOLDEN_NUMBERS_H

#include "cli/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_VALUES = 512 };

#define assert_ok(call)                                                                            \
    do {                                                                                           \
        if ((call) != RLXVK_OK)                                                                    \
            fail_msg("%s: %s", #call, rlxvk_last_error());                                         \
    } while (0)

typedef struct numbers {
    double values[MOST_VALUES];
    size_t count;
} numbers;

typedef struct golden {
    numbers ids, logits, greedy, margin;
} golden;

/* Reads the array `name`. If `entry` is not NULL, it is the array in that object. The file must
 * have no nested objects with these names. */
static inline void read_numbers(const char *json, const char *entry, const char *name, numbers *out)
{
    char key[64];
    const char *at = json;
    snprintf(key, sizeof key, "\"%s\":", entry ? entry : "");
    if (entry)
        assert_non_null(at = strstr(at, key));
    snprintf(key, sizeof key, "\"%s\":", name);
    assert_non_null(at = strstr(at, key));
    assert_non_null(at = strchr(at, '['));
    for (out->count = 0; *at != ']' && out->count < MOST_VALUES;) {
        char *end;
        out->values[out->count++] = strtod(at + 1, &end);
        assert_true(end > at + 1);
        at = end + strspn(end, " \n\r\t");
    }
    assert_int_equal(*at, ']');
}

static inline void read_golden(const char *json, const char *entry, golden *out)
{
    read_numbers(json, entry, "ids", &out->ids);
    read_numbers(json, entry, "last_logits", &out->logits);
    read_numbers(json, entry, "greedy", &out->greedy);
    read_numbers(json, entry, "margin", &out->margin);
}

/* Reads a whole file. The caller frees the text with memory_free. */
static inline char *read_text(const char *path)
{
    file_content content;
    assert_ok(file_read(path, &content));
    char *copy = memory_zeroed(content.length + 1, 1);
    assert_non_null(copy);
    memcpy(copy, content.data, content.length);
    file_free(&content);
    return copy;
}

#endif
