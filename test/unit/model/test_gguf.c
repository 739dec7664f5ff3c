/* The GGUF container: round trips, truncation, mutation, allocation failures and split models. */
#define _POSIX_C_SOURCE 200809L
#include "unit/model/gguf_builder.h"
#include "op/packed/quant_format.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h> /* after base.h, whose status_fail() it hides */

/* A file with a little of everything: 11 keys and 3 tensors. The last payload ends with the
 * file. */
static void build_valid(builder *b, uint32_t version)
{
    put_header(b, version, 3, 11);
    put_text(b, "general.architecture", "llama");
    put_u32(b, "a.u32", 7);
    put_key(b, "a.i8", GGUF_I8);
    put(b, 0xff, 1);
    put_key(b, "a.u64", GGUF_U64);
    put(b, UINT64_MAX, 8);
    put_key(b, "a.i64", GGUF_I64);
    put(b, (uint64_t)1 << 63, 8);
    put_key(b, "a.f32", GGUF_F32);
    put(b, 0x40490fdb, 4);
    put_bool(b, "a.bool", true);
    put_array(b, "a.words", GGUF_STRING, 3);
    put_string(b, "one");
    put_string(b, "");
    put_string(b, "thr\xff"
                  "ee");
    put_array(b, "a.shorts", GGUF_I16, 2);
    put(b, 0xfffe, 2);
    put(b, 3, 2);
    put_array(b, "a.none", GGUF_STRING, 0);
    put_u32(b, "general.alignment", 64);
    put_tensor(b, "scalar", QUANT_F32, 0, 0, NULL);
    put_tensor(b, "matrix", QUANT_Q8_0, 64, 2, (uint64_t[]){32, 2});
    put_tensor(b, "empty", QUANT_F16, 128, 3, (uint64_t[]){4, 0, 2});
    put_data(b, 64, 64 + 68);
}

static void check_values(gguf_file *file)
{
    uint64_t u;
    int64_t i;
    double f;
    bool flag;
    gguf_string string;
    const gguf_string *words;
    assert_true(gguf_get_string(file, "general.architecture", &string));
    assert_true(gguf_string_is(string, "llama"));
    assert_true(gguf_get_u64(file, "a.u32", &u) && u == 7);
    assert_true(gguf_get_i64(file, "a.i8", &i) && i == -1);
    assert_false(gguf_get_u64(file, "a.i8", &u));
    assert_true(gguf_get_u64(file, "a.u64", &u) && u == UINT64_MAX);
    assert_false(gguf_get_i64(file, "a.u64", &i));
    assert_false(gguf_get_f64(file, "a.u64", &f));
    assert_true(gguf_get_i64(file, "a.i64", &i) && i == INT64_MIN);
    assert_true(gguf_get_f64(file, "a.i64", &f) && f == -0x1p63);
    assert_true(gguf_get_f64(file, "a.f32", &f) && f == (double)3.14159274f);
    assert_false(gguf_get_i64(file, "a.f32", &i));
    assert_true(gguf_get_bool(file, "a.bool", &flag) && flag);
    assert_false(gguf_get_u64(file, "a.bool", &u));
    assert_false(gguf_get_u64(file, "a.absent", &u));
    assert_int_equal(gguf_get_strings(file, "a.words", &words, &u), RLXVK_OK);
    assert_true(u == 3 && gguf_string_is(words[0], "one") && gguf_string_is(words[1], "") &&
                gguf_string_is(words[2], "thr\xff"
                                         "ee"));
    assert_false(gguf_find(file, "a.words")->is_utf8);
    assert_int_equal(gguf_get_strings(file, "a.none", &words, &u), RLXVK_OK);
    assert_int_equal(u, 0);
    assert_int_equal(gguf_get_strings(file, "a.u32", &words, &u), RLXVK_E_UNKNOWN_NAME);
    assert_true(gguf_element_i64(gguf_find(file, "a.shorts"), 0, &i) && i == -2);
    assert_false(gguf_element_i64(gguf_find(file, "a.shorts"), 2, &i));
    assert_false(gguf_get_i64(file, "a.shorts", &i));
}

static void test_round_trip(void **state)
{
    (void)state;
    for (uint32_t version = 1; version <= 3; version++) {
        builder b;
        gguf_status status;
        uint8_t *copy;
        build_valid(&b, version);
        gguf_file *file = parse_copy(&b, b.length, &status, &copy);
        assert_int_equal(status, GGUF_OK);
        assert_true(file->version == version && file->alignment == 64 && file->pair_count == 11);
        check_values(file);
        const gguf_tensor *matrix = gguf_find_tensor(file, "matrix");
        assert_true(matrix->rank == 2 && matrix->dims[0] == 32 && matrix->dims[1] == 2 &&
                    matrix->dims[2] == 1 && matrix->numel == 64 && matrix->size == 68);
        assert_true(matrix->data == copy + file->data_start + 64 && matrix->data[0] == 64);
        assert_int_equal(gguf_find_tensor(file, "scalar")->numel, 1);
        assert_int_equal(gguf_find_tensor(file, "empty")->size, 0);
        assert_null(gguf_find_tensor(file, "matri"));
        gguf_close(file);
        free(copy);
    }
}

/* Files that are unusual but valid. */
static void test_accepted(void **state)
{
    builder b = {.fault = 0};
    gguf_status status;
    uint8_t *copy;
    (void)state;
    put_header(&b, 3, 0, 0); /* empty, and without a data section */
    gguf_close(parse_copy(&b, b.length, &status, &copy));
    assert_int_equal(status, GGUF_OK);
    free(copy);

    put_header(&b, 3, 3, 0); /* out of order, a gap, an empty payload at the end, no last padding */
    put_tensor(&b, "b", QUANT_F32, 64, 1, (uint64_t[]){1});
    put_tensor(&b, "a", QUANT_F32, 0, 1, (uint64_t[]){8});
    put_tensor(&b, "e", QUANT_F32, 64, 1, (uint64_t[]){0});
    put_data(&b, 32, 68);
    gguf_close(parse_copy(&b, b.length, &status, &copy));
    assert_int_equal(status, GGUF_OK);
    free(copy);
}

static void test_limits(void **state)
{
    builder b;
    gguf_file *file;
    (void)state;
    build_valid(&b, 3);
    const gguf_limits limits[] = {{.key_length = 3},
                                  {.string_length = 4},
                                  {.array_count = 2},
                                  {.pair_count = 10},
                                  {.tensor_count = 2}};
    for (size_t i = 0; i < ARRAY_COUNT(limits); i++)
        assert_int_equal(gguf_parse(b.bytes, b.length, &limits[i], &file), GGUF_E_COUNT);
    assert_int_equal(gguf_parse(b.bytes, b.length, &(gguf_limits){.name_length = 5}, &file),
                     GGUF_E_NAME);
    assert_int_equal(gguf_parse(b.bytes, b.length, &(gguf_limits){.alignment = 32}, &file),
                     GGUF_E_ALIGN);
}

static void test_truncation(void **state)
{
    (void)state;
    for (uint32_t version = 1; version <= 3; version++) {
        builder b;
        build_valid(&b, version);
        for (size_t length = 0; length < b.length; length++) {
            gguf_status status;
            uint8_t *copy;
            assert_null(parse_copy(&b, length, &status, &copy));
            assert_true(status == GGUF_E_TRUNCATED || status == GGUF_E_COUNT ||
                        status == GGUF_E_OFFSET);
            free(copy);
        }
    }
}

/* Reads everything in the file. */
static uint64_t touch(gguf_file *file)
{
    uint64_t sum = 0, u;
    for (uint64_t i = 0; i < file->pair_count; i++) {
        char key[64];
        const gguf_string *strings;
        double f;
        gguf_string k = file->pairs[i].key;
        snprintf(key, sizeof key, "%.*s", (int)MIN(k.length, 63), k.data);
        if (gguf_get_strings(file, key, &strings, &u) == RLXVK_OK)
            for (uint64_t j = 0; j < u; j++)
                sum += strings[j].length ? (uint8_t)strings[j].data[strings[j].length - 1] : 0;
        for (uint64_t j = 0; j < file->pairs[i].count && j < 64; j++)
            sum +=
                gguf_element_f64(&file->pairs[i], j, &f) + gguf_element_u64(&file->pairs[i], j, &u);
    }
    for (uint64_t i = 0; i < file->tensor_count; i++)
        for (uint64_t j = 0; j < file->tensors[i].size; j++)
            sum += file->tensors[i].data[j];
    return sum;
}

static uint32_t random_state = 12345;
static uint32_t random_below(uint32_t bound)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return random_state % bound;
}

static void test_mutation(void **state)
{
    static const uint8_t values[] = {0, 1, 2, 4, 8, 9, 12, 13, 0x20, 0x7f, 0x80, 0xfe, 0xff};
    unsigned accepted = 0;
    (void)state;
    for (int round = 0; round < 20000; round++) {
        builder b;
        gguf_status status;
        uint8_t *copy;
        build_valid(&b, 1 + random_below(3));
        for (uint32_t n = 1 + random_below(4); n > 0; n--) {
            uint8_t *byte = &b.bytes[random_below((uint32_t)b.length)];
            *byte = random_below(2) ? values[random_below(ARRAY_COUNT(values))]
                                    : (uint8_t)(*byte ^ 1u << random_below(8));
        }
        if (random_below(8) == 0)
            b.length = random_below((uint32_t)b.length);
        gguf_file *file = parse_copy(&b, b.length, &status, &copy);
        assert_true((file != NULL) == (status == GGUF_OK));
        if (file != NULL) {
            accepted++;
            touch(file);
        }
        gguf_close(file);
        free(copy);
    }
    assert_true(accepted > 1000); /* otherwise only the first check was tested */
}

static void test_allocation_failure(void **state)
{
    builder b;
    uint64_t n = 0;
    rlxvk_status status;
    (void)state;
    build_valid(&b, 3);
    do {
        gguf_file *file = NULL;
        const gguf_string *strings;
        uint64_t count;
        memory_fail_at(++n);
        status = gguf_result(gguf_parse(b.bytes, b.length, NULL, &file));
        assert_true((file != NULL) == (status == RLXVK_OK));
        if (status == RLXVK_OK)
            status = gguf_get_strings(file, "a.words", &strings, &count);
        memory_fail_at(0);
        if (file != NULL) /* after a failed view, a later one may succeed */
            assert_int_equal(gguf_get_strings(file, "a.words", &strings, &count), RLXVK_OK);
        gguf_close(file);
        assert_true(status == RLXVK_OK || status == RLXVK_E_OUT_OF_HOST_MEMORY);
    } while (status != RLXVK_OK);
    assert_true(n > 5);
}

/* ---- Split models ---- */

static void write_part(const char *directory, unsigned number, unsigned count,
                       unsigned declared_count, const char *tensor)
{
    builder b;
    char path[256];
    put_header(&b, 3, 1, 3);
    put_u32(&b, "split.no", number);
    put_u32(&b, "split.count", declared_count);
    put_u32(&b, "split.tensors.count", 2);
    put_tensor(&b, tensor, QUANT_F32, 0, 1, (uint64_t[]){number + 1});
    put_data(&b, 32, 4 * (number + 1));
    snprintf(path, sizeof path, "%s/m-%05u-of-%05u.gguf", directory, number + 1, count);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(b.bytes, 1, b.length, file), b.length);
    assert_int_equal(fclose(file), 0);
}

static void test_split(void **state)
{
    char directory[] = "/tmp/rlxvk-gguf-XXXXXX", first[256], second[256], other[256];
    gguf_file *file;
    (void)state;
    assert_non_null(mkdtemp(directory));
    snprintf(first, sizeof first, "%s/m-00001-of-00002.gguf", directory);
    snprintf(second, sizeof second, "%s/m-00002-of-00002.gguf", directory);
    snprintf(other, sizeof other, "%s/other.gguf", directory);

    write_part(directory, 0, 2, 2, "a");
    assert_int_equal(gguf_open(first, &file), GGUF_E_FILE);
    assert_non_null(strstr(rlxvk_last_error(), "m-00002-of-00002.gguf"));
    write_part(directory, 1, 2, 2, "b");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(gguf_open(i ? second : first, &file), GGUF_OK);
        assert_true(file->tensor_count == 2 && gguf_find_tensor(file, "a")->numel == 1 &&
                    gguf_find_tensor(file, "b")->numel == 2);
        touch(file);
        gguf_close(file);
    }
    gguf_status status;
    uint64_t n = 0;
    do {
        memory_fail_at(++n);
        status = gguf_open(first, &file);
        memory_fail_at(0);
        assert_true(status == GGUF_OK ? file != NULL : status == GGUF_E_MEMORY);
    } while (status != GGUF_OK);
    gguf_close(file);

    write_part(directory, 1, 2, 2, "a");
    assert_int_equal(gguf_open(first, &file), GGUF_E_NAME);
    write_part(directory, 1, 2, 3, "b");
    assert_int_equal(gguf_open(first, &file), GGUF_E_COUNT);
    assert_int_equal(rename(first, other), 0);
    assert_int_equal(gguf_open(other, &file), GGUF_E_FILE);
    assert_int_equal(gguf_open(first, &file), GGUF_E_FILE);
    assert_int_equal(gguf_open(directory, &file), GGUF_E_FILE);
    unlink(second);
    unlink(other);
    rmdir(directory);
}

/* The metadata is longer than the first read. A payload follows it. */
static void write_long_head(const char *path, uint32_t text_length)
{
    builder b;
    uint32_t payload[64];
    FILE *file = fopen(path, "wb");
    char *text = malloc(text_length);
    assert_non_null(file);
    memset(text, 'x', text_length);
    put_header(&b, 3, 1, 2);
    put_key(&b, "long", GGUF_STRING);
    put_count(&b, text_length);
    fwrite(b.bytes, 1, b.length, file);
    fwrite(text, 1, text_length, file);
    b.length = 0;
    put_u32(&b, "last", 77);
    put_tensor(&b, "t", QUANT_F32, 0, 1, (uint64_t[]){ARRAY_COUNT(payload)});
    fwrite(b.bytes, 1, b.length, file);
    while (ftell(file) % 32)
        fputc(0, file);
    for (uint32_t i = 0; i < ARRAY_COUNT(payload); i++)
        payload[i] = i;
    fwrite(payload, 1, sizeof payload, file);
    assert_int_equal(fclose(file), 0);
    free(text);
}

static void a_long_head_is_read_piece_by_piece(void **state)
{
    static const uint32_t lengths[] = {10, 1 << 20, 3 << 20, 9 << 20};
    char path[] = "/tmp/rlxvk-gguf-XXXXXX";
    (void)state;
    close(mkstemp(path));
    for (size_t i = 0; i < ARRAY_COUNT(lengths); i++) {
        gguf_file *file = NULL;
        gguf_string text;
        uint64_t last = 0;
        uint32_t payload[64] = {0};
        write_long_head(path, lengths[i]);
        assert_int_equal(gguf_open(path, &file), GGUF_OK);
        assert_true(gguf_get_u64(file, "last", &last) && last == 77);
        assert_true(gguf_get_string(file, "long", &text) && text.length == lengths[i]);
        assert_int_equal(text.data[text.length - 1], 'x');
        assert_int_equal(gguf_read_tensor(gguf_find_tensor(file, "t"), payload), RLXVK_OK);
        assert_int_equal(payload[63], 63);
        gguf_close(file);
    }
    unlink(path);
}

/* Reads must fail with an error. If the file were mapped, this would end the process. */
static void a_file_cut_short_while_open_is_an_error(void **state)
{
    char path[] = "/tmp/rlxvk-gguf-XXXXXX";
    gguf_file *file = NULL;
    uint32_t payload[64];
    (void)state;
    close(mkstemp(path));
    write_long_head(path, 5 << 20);
    assert_int_equal(truncate(path, 30 << 20), 0);
    assert_int_equal(gguf_open(path, &file), GGUF_OK);
    file->tensors[0].offset = 25 << 20; /* far behind the metadata */
    assert_int_equal(truncate(path, 4096), 0);
    assert_int_equal(gguf_read_tensor(&file->tensors[0], payload), RLXVK_E_FILE);
    assert_non_null(strstr(rlxvk_last_error(), "ends at byte 26214400, where 256 bytes from "
                                               "26214400 on were expected; it had 31457280 bytes"));
    gguf_close(file);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_truncation),
        cmocka_unit_test(test_mutation),
        cmocka_unit_test(test_allocation_failure),
        cmocka_unit_test(test_split),
        cmocka_unit_test(a_long_head_is_read_piece_by_piece),
        cmocka_unit_test(a_file_cut_short_while_open_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
