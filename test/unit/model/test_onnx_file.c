/*
 * ONNX files as bytes: the wire format, names and order, and hostile files. A file is cut at every
 * length and each of its bits is flipped: it is refused, or what is read is consistent. No device
 * is needed.
 */
#include "base/input.h"
#include "base/memory_sizes.h"
#include "model/onnx.h"
#include "model/onnx_data.h"
#include "support/harness.h"
#include "support/onnx_writer.h"

#include <rlxvk_model.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

/* ---- Wire format ---- */

static rlxvk_status read_all(const void *bytes, size_t size, size_t *out_fields)
{
    wire_span span = {bytes, size};
    wire_cursor c = wire_begin(span, bytes);
    wire_field f;
    rlxvk_status status;
    *out_fields = 0;
    do {
        TRY(wire_next(&c, &f));
        *out_fields += f.number != 0;
    } while (f.number);
error:
    return status;
}

static void test_fields(void **state)
{
    onnx_message m = {0};
    wire_field f;
    wire_cursor c;
    uint64_t numbers[3], count;
    static const uint8_t packed[] = {1,    0x80, 1,    0xff, 0xff, 0xff, 0xff,
                                     0xff, 0xff, 0xff, 0xff, 0xff, 1};
    (void)state;
    message_number(&m, 1, UINT64_MAX);
    message_bytes(&m, 700, packed, sizeof packed);
    c = wire_begin((wire_span){m.bytes, m.size}, m.bytes);
    expect_ok(wire_next(&c, &f));
    assert_true(f.number == 1 && f.kind == WIRE_VARINT && f.value == UINT64_MAX);
    expect_ok(wire_next(&c, &f));
    assert_true(f.number == 700 && f.kind == WIRE_BYTES && f.bytes.size == sizeof packed);
    expect_ok(wire_count_numbers(&f, WIRE_VARINT, m.bytes, &count));
    assert_int_equal(count, 3);
    expect_ok(wire_read_numbers(&f, WIRE_VARINT, m.bytes, numbers));
    assert_true(numbers[0] == 1 && numbers[1] == 128 && numbers[2] == UINT64_MAX);
    expect_error(wire_count_numbers(&f, WIRE_FIXED32, m.bytes, &count), RLXVK_E_FILE, "kind");
    expect_ok(wire_next(&c, &f));
    assert_int_equal(f.number, 0);
    message_free(&m);
}

static void test_bad_fields(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
        const char *text;
    } cases[] = {
        {"\x08", 1, "cut off"},
        {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11, "64 bits"},
        {"\x0a\x05"
         "abcd",
         6, "longer than its message"},
        {"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, "longer than its message"},
        {"\x0d\x01\x02\x03", 4, "cut off"},
        {"\x09\x01\x02\x03\x04\x05\x06\x07", 8, "cut off"},
        {"\x0b", 1, "unknown kind"},
        {"\x00\x00", 2, "no valid number"},
    };
    size_t fields;
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
        expect_error(read_all(cases[i].bytes, cases[i].size, &fields), RLXVK_E_FILE, cases[i].text);
}

/* ---- Models ---- */

/* y = relu(x w + b) with a named dim, and a branch inside. */
static onnx_message small_model(void)
{
    static const float weight[6] = {1, 2, 3, 4, 5, 6}, bias[2] = {0.5f, -0.5f};
    onnx_message graph = {0}, branch = {0}, node;
    onnx_write_op(&branch, "Relu", ONNX_NAMES("sum"), ONNX_NAMES("inner"));
    onnx_write_value(&branch, 12, "inner", 1, "");
    onnx_write_op(&graph, "MatMul", ONNX_NAMES("x", "w"), ONNX_NAMES("product"));
    onnx_write_op(&graph, "Add", ONNX_NAMES("product", "b"), ONNX_NAMES("sum"));
    node = onnx_write_node("If", ONNX_NAMES("yes"), ONNX_NAMES("y"));
    {
        onnx_message other = {0};
        onnx_write_op(&other, "Neg", ONNX_NAMES("sum"), ONNX_NAMES("other"));
        onnx_write_value(&other, 12, "other", 1, "");
        onnx_write_graph(&node, "then_branch", &branch);
        onnx_write_graph(&node, "else_branch", &other);
    }
    message_inner(&graph, 1, &node);
    onnx_write_floats(&graph, "w", (const int64_t[]){3, 2}, 2, weight, 6);
    onnx_write_floats(&graph, "b", (const int64_t[]){2}, 1, bias, 2);
    onnx_write_row(&graph, "yes", (const int64_t[]){1}, 1);
    onnx_write_value(&graph, 11, "x", 1, "N,3");
    onnx_write_value(&graph, 12, "y", 1, "N,2");
    return onnx_write_model(&graph, 13);
}

static rlxvk_status open_bytes(const onnx_message *m, rlxvk_model **out)
{
    return rlxvk_model_open_bytes(m->bytes, m->size, NULL, out);
}

/* Opens and builds; both may fail, but with a sentence. */
static bool survives(const uint8_t *bytes, size_t size)
{
    rlxvk_model *model = NULL;
    rlxvk_graph *graph = NULL;
    rlxvk_status status = rlxvk_model_open_bytes(bytes, size, NULL, &model);
    if (status == RLXVK_OK)
        status = rlxvk_model_graph(model, NULL, &graph);
    bool good = status == RLXVK_OK ? graph != NULL : graph == NULL && *rlxvk_last_error();
    rlxvk_graph_destroy(graph);
    rlxvk_model_destroy(model);
    return good;
}

static void test_cut_anywhere(void **state)
{
    onnx_message m = small_model();
    rlxvk_model *model = NULL;
    (void)state;
    expect_ok(open_bytes(&m, &model));
    rlxvk_model_destroy(model);
    for (size_t size = 0; size < m.size; size++) {
        uint8_t *copy = malloc(size + 1); /* so that a sanitizer sees a byte too many */
        memcpy(copy, m.bytes, size);
        copy = realloc(copy, MAX(size, 1));
        expect_error(rlxvk_model_open_bytes(copy, size, NULL, &model), RLXVK_E_FILE, "");
        assert_null(model);
        free(copy);
    }
    message_free(&m);
}

static void test_each_bit(void **state)
{
    onnx_message m = small_model();
    (void)state;
    for (size_t bit = 0; bit < 8 * m.size; bit++) {
        m.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_true(survives(m.bytes, m.size));
        m.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    assert_true(survives(m.bytes, m.size));
    message_free(&m);
}

static void expect_refused(onnx_message *graph, rlxvk_status wanted, const char *text)
{
    onnx_message m = onnx_write_model(graph, 13);
    rlxvk_model *model = NULL;
    expect_error(open_bytes(&m, &model), wanted, text);
    assert_null(model);
    message_free(&m);
}

static void test_names(void **state)
{
    onnx_message g = {0};
    (void)state;
    onnx_write_value(&g, 11, "x", 1, "2");
    onnx_write_op(&g, "Neg", ONNX_NAMES("x"), ONNX_NAMES("y"));
    onnx_write_op(&g, "Abs", ONNX_NAMES("x"), ONNX_NAMES("y"));
    expect_refused(&g, RLXVK_E_DUP_NAME, "'y'");
    onnx_write_value(&g, 11, "x", 1, "2");
    onnx_write_op(&g, "Neg", ONNX_NAMES("z"), ONNX_NAMES("y"));
    expect_refused(&g, RLXVK_E_UNKNOWN_NAME, "'z'");
    onnx_write_value(&g, 11, "x", 1, "2");
    onnx_write_value(&g, 12, "y", 1, "2");
    expect_refused(&g, RLXVK_E_UNKNOWN_NAME, "'y'");
    /* A weight may be an input, too, but only once a weight. */
    for (int i = 0; i < 2; i++)
        onnx_write_row(&g, "x", (const int64_t[]){1}, 1);
    onnx_write_value(&g, 11, "x", 7, "1");
    expect_refused(&g, RLXVK_E_DUP_NAME, "'x'");
}

static void test_order(void **state)
{
    onnx_message g = {0}, m;
    rlxvk_model *model = NULL;
    rlxvk_graph *graph = NULL;
    (void)state;
    onnx_write_value(&g, 11, "x", 1, "2");
    onnx_write_op(&g, "Add", ONNX_NAMES("x", "b"), ONNX_NAMES("a"));
    onnx_write_op(&g, "Neg", ONNX_NAMES("a"), ONNX_NAMES("b"));
    expect_refused(&g, RLXVK_E_ORDER, "needs its own result");
    /* Nodes in any other order are sorted. */
    onnx_write_op(&g, "Neg", ONNX_NAMES("b"), ONNX_NAMES("c"));
    onnx_write_op(&g, "Neg", ONNX_NAMES("a"), ONNX_NAMES("b"));
    onnx_write_op(&g, "Neg", ONNX_NAMES("x"), ONNX_NAMES("a"));
    onnx_write_value(&g, 11, "x", 1, "2");
    onnx_write_value(&g, 12, "c", 1, "2");
    m = onnx_write_model(&g, 13);
    expect_ok(open_bytes(&m, &model));
    expect_ok(rlxvk_model_graph(model, NULL, &graph));
    rlxvk_graph_destroy(graph);
    rlxvk_model_destroy(model);
    message_free(&m);
}

static onnx_message nested(int depth)
{
    onnx_message g = {0}, node, other = {0};
    onnx_write_value(&g, 12, "x", 1, "2");
    for (int i = 0; i < depth; i++) {
        onnx_message outer = {0};
        node = onnx_write_node("If", ONNX_NAMES("nowhere"), ONNX_NAMES("x"));
        onnx_write_value(&other, 12, "x", 1, "2");
        onnx_write_graph(&node, "then_branch", &g);
        onnx_write_graph(&node, "else_branch", &other);
        message_inner(&outer, 1, &node);
        g = outer;
    }
    return g;
}

static void test_nesting(void **state)
{
    onnx_message g = nested(1000);
    (void)state;
    expect_refused(&g, RLXVK_E_UNSUPPORTED, "64 deep");
    g = nested(64);
    expect_refused(&g, RLXVK_E_UNSUPPORTED, "64 deep");
    g = nested(62);
    expect_refused(&g, RLXVK_E_UNKNOWN_NAME, "'nowhere'");
}

/* Function i, which calls another one twice. */
static void write_function(onnx_message *model, int i, int calls)
{
    onnx_message f = {0}, version = {0}, node;
    char name[16], called[16];
    snprintf(name, sizeof name, "f%d", i);
    snprintf(called, sizeof called, "f%d", calls);
    message_text(&f, 1, name);
    message_text(&f, 4, "a");
    message_text(&f, 5, "c");
    node = onnx_write_node(called, ONNX_NAMES("a"), ONNX_NAMES("b"));
    message_inner(&f, 7, &node);
    node = onnx_write_node(called, ONNX_NAMES("b"), ONNX_NAMES("c"));
    message_inner(&f, 7, &node);
    message_number(&version, 2, 13);
    message_inner(&f, 9, &version);
    message_inner(model, 25, &f);
}

/* Functions that call each other: f0 calls f1 twice, and so on; the last calls `last`. */
static void expect_endless(int count, const char *last, rlxvk_status wanted, const char *text)
{
    onnx_message g = {0}, m;
    rlxvk_model *model = NULL;
    rlxvk_graph *graph = NULL;
    onnx_write_op(&g, "f0", ONNX_NAMES("x"), ONNX_NAMES("y"));
    onnx_write_value(&g, 11, "x", 1, "2");
    onnx_write_value(&g, 12, "y", 1, "2");
    m = onnx_write_model(&g, 13);
    for (int i = 0; i < count; i++)
        write_function(&m, i, i + 1 < count ? i + 1 : atoi(last));
    expect_ok(open_bytes(&m, &model));
    expect_error(rlxvk_model_graph(model, NULL, &graph), wanted, text);
    assert_null(graph);
    rlxvk_model_destroy(model);
    message_free(&m);
}

static void test_functions_without_end(void **state)
{
    (void)state;
    expect_endless(1, "0", RLXVK_E_UNSUPPORTED, "calls itself");
    expect_endless(3, "1", RLXVK_E_UNSUPPORTED, "calls itself");
    expect_endless(30, "99", RLXVK_E_UNSUPPORTED, "there is no such op");
}

/* Files of 200 bytes that claim much. */
static void test_small_files_take_little(void **state)
{
    static const uint8_t fields[] = {0x0a, 0x2a, 0x5a, 0x62};
    (void)state;
    for (size_t k = 0; k < ARRAY_COUNT(fields); k++) {
        onnx_message g = {0}, m;
        uint64_t before = memory_requested_bytes();
        for (int i = 0; i < 80; i++) {
            message_bytes(&g, fields[k] >> 3, "", 0);
        }
        m = onnx_write_model(&g, 13);
        assert_true(m.size <= 200);
        assert_true(survives(m.bytes, m.size));
        assert_true(memory_requested_bytes() - before < 1 << 20);
        message_free(&m);
    }
}

/* A tensor that claims more elements than it has bytes. */
static void test_claims(void **state)
{
    onnx_message g = {0}, t = {0};
    (void)state;
    message_number(&t, 1, (uint64_t)1 << 40);
    message_number(&t, 2, 1);
    message_text(&t, 8, "w");
    message_bytes(&t, 9, "1234", 4);
    message_inner(&g, 5, &t);
    expect_refused(&g, RLXVK_E_FILE, "4 bytes for 1099511627776 elements");
    for (int i = 0; i < 2; i++)
        message_number(&t, 1, (uint64_t)1 << 40);
    message_text(&t, 8, "w");
    message_inner(&g, 5, &t);
    expect_refused(&g, RLXVK_E_FILE, "too large");
    for (int i = 0; i < 9; i++)
        message_number(&t, 1, 1);
    message_inner(&g, 5, &t);
    expect_refused(&g, RLXVK_E_UNSUPPORTED, "more than 8 axes");
}

/* ---- Weights beside the file ---- */

static void write_file(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static onnx_message external_model(const char *location)
{
    static const char *const keys[] = {"location", "offset", "length"};
    const char *values[] = {location, "4", "8"};
    onnx_message g = {0}, t = {0};
    message_number(&t, 1, 2);
    message_number(&t, 2, 1);
    message_text(&t, 8, "w");
    message_number(&t, 14, 1);
    for (int i = 0; i < 3; i++) {
        onnx_message entry = {0};
        message_text(&entry, 1, keys[i]);
        message_text(&entry, 2, values[i]);
        message_inner(&t, 13, &entry);
    }
    message_inner(&g, 5, &t);
    onnx_write_value(&g, 12, "w", 1, "2");
    return onnx_write_model(&g, 13);
}

static rlxvk_status read_weight(const char *folder, const char *location, float out[2])
{
    onnx_message m = external_model(location);
    arena a = {0};
    onnx_model model;
    onnx_data data = {0};
    rlxvk_status status;
    TRY(onnx_read((wire_span){m.bytes, m.size}, &a, &model));
    TRY(onnx_data_read(&model.graph.initializers[0], folder, m.bytes, &data));
    memcpy(out, data.bytes.bytes, 8);
error:
    onnx_data_free(&data);
    arena_destroy(&a);
    message_free(&m);
    return status;
}

static void test_external(void **state)
{
    static const float values[3] = {1, 2, 3};
    char folder[] = "/tmp/rlxvk-onnx-XXXXXX", path[64], secret[64];
    float w[2];
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/in", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(secret, sizeof secret, "%s/secret", folder);
    write_file(secret, values, sizeof values);
    snprintf(path, sizeof path, "%s/in/data", folder);
    write_file(path, values, sizeof values);
    snprintf(path, sizeof path, "%s/in/short", folder);
    write_file(path, values, 8);
    snprintf(path, sizeof path, "%s/in/link", folder);
    assert_int_equal(symlink("../secret", path), 0);
    snprintf(path, sizeof path, "%s/in/own", folder);
    assert_int_equal(symlink("data", path), 0);
    snprintf(path, sizeof path, "%s/in", folder);
    expect_ok(read_weight(path, "data", w));
    assert_true(w[0] == 2 && w[1] == 3);
    expect_ok(read_weight(path, "own", w));
    expect_error(read_weight(path, "../secret", w), RLXVK_E_FILE, "inside of its folder");
    expect_error(read_weight(path, "x/../../secret", w), RLXVK_E_FILE, "inside of its folder");
    expect_error(read_weight(path, secret, w), RLXVK_E_FILE, "inside of its folder");
    expect_error(read_weight(path, "link", w), RLXVK_E_FILE, "outside of its folder");
    expect_error(read_weight(path, "none", w), RLXVK_E_FILE, "cannot be opened");
    expect_error(read_weight(path, "short", w), RLXVK_E_FILE, "which has 8 bytes");
    expect_error(read_weight(NULL, "data", w), RLXVK_E_FILE, "came as bytes");
    assert_int_equal(remove_folder(folder), 0);
}

/* Elements in typed fields are the same as raw ones. */
static void test_typed_fields(void **state)
{
    onnx_message t = {0}, g = {0}, m;
    arena a = {0};
    onnx_model model;
    onnx_data data;
    int16_t got[3];
    (void)state;
    message_number(&t, 1, 3);
    message_number(&t, 2, ONNX_INT16);
    message_number(&t, 5, 7);
    message_bytes(&t, 5, "\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11);
    message_inner(&g, 5, &t);
    m = onnx_write_model(&g, 13);
    expect_ok(onnx_read((wire_span){m.bytes, m.size}, &a, &model));
    expect_ok(onnx_data_read(&model.graph.initializers[0], NULL, m.bytes, &data));
    memcpy(got, data.bytes.bytes, sizeof got);
    assert_true(got[0] == 7 && got[1] == 2 && got[2] == -1);
    onnx_data_free(&data);
    arena_destroy(&a);
    message_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_bad_fields),
        cmocka_unit_test(test_cut_anywhere),
        cmocka_unit_test(test_each_bit),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_nesting),
        cmocka_unit_test(test_functions_without_end),
        cmocka_unit_test(test_small_files_take_little),
        cmocka_unit_test(test_claims),
        cmocka_unit_test(test_external),
        cmocka_unit_test(test_typed_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
