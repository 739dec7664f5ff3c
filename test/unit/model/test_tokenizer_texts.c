/*
 * Tokenizers against the original tokenizers. For each vocabulary in test/data/tokenizers there are
 * texts and the ids that Hugging Face's tokenizers library gives for them.
 *
 * test/tokenizers.mjs makes these files, and also compares whole vocabularies. For that,
 * `test_tokenizer_texts VOCABULARY TEXTS` writes the ids of every text, one line each. In TEXTS,
 * each text follows its length, which has four bytes.
 */
#include "base/base.h"
#include "cli/file.h"
#include "model/language/tokenizer.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h> /* after base.h, whose status_fail() it hides */

#define FOLDER "test/data/tokenizers"

static tokenizer *open_vocabulary(const char *path, gguf_file **file)
{
    tokenizer *t = NULL;
    if (gguf_result(gguf_open(path, file)) != RLXVK_OK || tokenizer_create(*file, &t) != RLXVK_OK)
        fprintf(stderr, "%s: %s\n", path, rlxvk_last_error());
    return t;
}

/* ---- The files ---- */

static void check_text(const char *name, const tokenizer *t, gguf_string string,
                       const gguf_pair *ids, uint64_t first, uint64_t count)
{
    token_list found = {0};
    uint64_t want = 0;
    assert_int_equal(tokenizer_encode(t, string.data, (size_t)string.length, false, &found),
                     RLXVK_OK);
    for (uint64_t i = 0; i < MIN(count, found.count); i++)
        if (!gguf_element_u64(ids, first + i, &want) || want != found.items[i])
            fail_msg("%s: token %llu of '%.*s' is %u, not %llu", name, (unsigned long long)i,
                     (int)string.length, string.data, found.items[i], (unsigned long long)want);
    if (found.count != count)
        fail_msg("%s: '%.*s' has %zu tokens, not %llu", name, (int)string.length, string.data,
                 found.count, (unsigned long long)count);
    VECTOR_FREE(&found);
}

/* The ids of all texts are in one list; `test.counts` has the number of ids of each text. */
static uint64_t check_texts(const char *name, gguf_file *file, const tokenizer *t)
{
    const gguf_pair *ids = gguf_find(file, "test.ids"), *counts = gguf_find(file, "test.counts");
    const gguf_string *texts;
    uint64_t text_count, first = 0, count = 0;
    assert_non_null(ids);
    assert_non_null(counts);
    assert_int_equal(gguf_get_strings(file, "test.texts", &texts, &text_count), RLXVK_OK);
    assert_int_equal(counts->count, text_count);
    for (uint64_t i = 0; i < text_count; i++, first += count) {
        assert_true(gguf_element_u64(counts, i, &count));
        check_text(name, t, texts[i], ids, first, count);
    }
    assert_int_equal(first, ids->count);
    return text_count;
}

static void check_ends(const char *name, gguf_file *file, const tokenizer *t)
{
    const gguf_pair *ends = gguf_find(file, "test.ends");
    assert_non_null(ends);
    for (uint32_t id = 0; id < tokenizer_size(t); id++) {
        bool want = false;
        for (uint64_t i = 0, end; i < ends->count; i++)
            want |= gguf_element_u64(ends, i, &end) && end == id;
        if (tokenizer_is_end(t, id) != want)
            fail_msg("%s: token %u must%s end a generation", name, id, want ? "" : " not");
    }
}

static void families(void **state)
{
    DIR *folder = opendir(FOLDER);
    unsigned count = 0;
    (void)state;
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        const char *ending = strstr(entry->d_name, ".gguf");
        char path[300];
        gguf_file *file = NULL;
        if (!ending)
            continue;
        snprintf(path, sizeof path, FOLDER "/%.200s", entry->d_name);
        tokenizer *t = open_vocabulary(path, &file);
        assert_non_null(t);
        uint64_t texts = check_texts(entry->d_name, file, t);
        check_ends(entry->d_name, file, t);
        print_message("%.*s: %llu texts\n", (int)(ending - entry->d_name), entry->d_name,
                      (unsigned long long)texts);
        tokenizer_destroy(t);
        gguf_close(file);
        count++;
    }
    closedir(folder);
    assert_true(count >= 12);
}

/* ---- Whole vocabularies ---- */

static int print_ids(const tokenizer *t, const char *bytes, size_t length)
{
    token_list ids = {0};
    if (tokenizer_encode(t, bytes, length, false, &ids) != RLXVK_OK) {
        fprintf(stderr, "%s\n", rlxvk_last_error());
        return 1;
    }
    for (size_t i = 0; i < ids.count; i++)
        printf("%s%u", i ? " " : "", ids.items[i]);
    printf("\n");
    VECTOR_FREE(&ids);
    return 0;
}

static int encode_file(const char *vocabulary, const char *path)
{
    gguf_file *file = NULL;
    file_content content = {0};
    tokenizer *t = open_vocabulary(vocabulary, &file);
    int failed = t == NULL || file_read(path, &content) != RLXVK_OK;
    for (size_t i = 0; !failed && i + 4 <= content.length;) {
        const uint8_t *b = (const uint8_t *)content.data + i;
        size_t length = b[0] | (size_t)b[1] << 8 | (size_t)b[2] << 16 | (size_t)b[3] << 24;
        failed = length > content.length - i - 4 || print_ids(t, (const char *)b + 4, length);
        i += 4 + length;
    }
    file_free(&content);
    tokenizer_destroy(t);
    gguf_close(file);
    return failed;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(families)};
    if (argc == 3)
        return encode_file(argv[1], argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
