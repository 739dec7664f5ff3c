/*
 * Canonical composition (NFC) against Unicode's own test. The test uses a selection of its lines,
 * or the whole file: `test_nfc NormalizationTest.txt`.
 */
#include "model/language/tokenizer_internal.h"
#include "model/language/unicode.h"
#include "model/language/utf8.h"

#include "cli/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h> /* after base.h, whose status_fail() it hides */

enum { MOST_BYTES = 1024 };
static const char *path = "test/data/normalization.txt";

typedef struct bytes {
    char data[MOST_BYTES];
    size_t length;
} bytes;

static void add_point(bytes *b, uint32_t point)
{
    assert_true(b->length + 4 <= MOST_BYTES);
    b->length += utf8_encode(point, (uint8_t *)b->data + b->length);
}

/* Reads hexadecimal code points up to a semicolon. Returns the start of the next field. */
static const char *read_field(const char *at, bytes *out)
{
    out->length = 0;
    while (*at != ';') {
        char *end;
        add_point(out, (uint32_t)strtoul(at, &end, 16));
        assert_true(end > at);
        at = end + strspn(end, " ");
    }
    return at + 1;
}

static void check(const bytes *source, const bytes *want)
{
    token_text found = {0};
    assert_int_equal(tokenizer_append_nfc(&found, source->data, source->length), RLXVK_OK);
    if (found.count != want->length || memcmp(found.items, want->data, found.count) != 0)
        fail_msg("'%.*s' becomes '%.*s', not '%.*s'", (int)source->length, source->data,
                 (int)found.count, found.items, (int)want->length, want->data);
    VECTOR_FREE(&found);
}

static void unicode_lines(void **state)
{
    file_content content;
    unsigned lines = 0;
    (void)state;
    assert_int_equal(file_read(path, &content), RLXVK_OK);
    char *text = calloc(content.length + 1, 1);
    memcpy(text, content.data, content.length);
    for (char *next = text, *line; (line = strsep(&next, "\n")) != NULL;) {
        bytes source, composed;
        if (strchr("#@", *line) != NULL) /* or empty */
            continue;
        read_field(read_field(line, &source), &composed);
        check(&source, &composed);
        check(&composed, &composed);
        lines++;
    }
    assert_true(lines > 200);
    print_message("%u lines\n", lines);
    free(text);
    file_free(&content);
}

/* Each code point that decomposes must be composed again, unless Unicode excludes it. */
static void decompositions_compose(void **state)
{
    unsigned excluded = 0;
    (void)state;
    for (size_t i = 0; i < unicode_decompositions_count; i++) {
        const unicode_decomposition *d = &unicode_decompositions[i];
        bytes whole = {.length = 0}, parts = {.length = 0};
        token_text found = {0}, again = {0};
        add_point(&whole, d->point);
        for (size_t j = 0; j < ARRAY_COUNT(d->parts) && d->parts[j] != 0; j++)
            add_point(&parts, d->parts[j]);
        assert_int_equal(tokenizer_append_nfc(&found, parts.data, parts.length), RLXVK_OK);
        assert_int_equal(tokenizer_append_nfc(&again, whole.data, whole.length), RLXVK_OK);
        assert_int_equal(found.count, again.count);
        assert_memory_equal(found.items, again.items, found.count);
        excluded +=
            found.count != whole.length || memcmp(found.items, whole.data, whole.length) != 0;
        VECTOR_FREE(&found);
        VECTOR_FREE(&again);
    }
    assert_int_equal(excluded, unicode_decompositions_count - unicode_pairs_count);
}

static void hangul(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 11172; i++) {
        bytes parts = {.length = 0}, whole = {.length = 0};
        add_point(&whole, 0xac00 + i);
        add_point(&parts, 0x1100 + i / 588);
        add_point(&parts, 0x1161 + i / 28 % 21);
        if (i % 28)
            add_point(&parts, 0x11a7 + i % 28);
        check(&parts, &whole);
        check(&whole, &whole);
    }
}

/* Bytes that are not characters stay, and nothing is composed across them. Long runs of marks take
 * time in proportion to their length. */
static void hostile(void **state)
{
    static const bytes broken = {"e\xcc\xff\x81", 4}, joined = {"\xc3\xa9\xff\xcc\x81", 5},
                       apart = {"e\xcc\x81\xff\xcc\x81", 6};
    enum { MARKS = 200000 };
    token_text source = {0}, found = {0};
    (void)state;
    check(&broken, &broken);
    check(&apart, &joined);
    for (int i = 0; i < MARKS; i++) { /* classes 230 and 220 in turn */
        assert_true(VECTOR_PUSH(&source, (char)0xcc));
        assert_true(VECTOR_PUSH(&source, (char)(i % 2 ? 0x96 : 0x8e)));
    }
    assert_int_equal(tokenizer_append_nfc(&found, source.items, source.count), RLXVK_OK);
    assert_int_equal(found.count, source.count);
    for (size_t i = 1; i < found.count; i += 2)
        assert_int_equal((uint8_t)found.items[i], i < found.count / 2 ? 0x96 : 0x8e);
    VECTOR_FREE(&source);
    VECTOR_FREE(&found);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(unicode_lines),
                                       cmocka_unit_test(decompositions_compose),
                                       cmocka_unit_test(hangul), cmocka_unit_test(hostile)};
    if (argc > 1)
        path = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
