/* Element types below 16 bits in ONNX models: values of their codes, and casts on the device. */
#include "model/onnx_float8.h"
#include "support/harness.h"
#include "support/onnx_writer.h"

#include <math.h>
#include <rlxvk_model.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { CODES = 256 };

/* Runs a model of one input x and one output y of `count` floats, and frees its graph. */
static void run_floats(onnx_message *graph, const float *x, size_t count, float *y)
{
    rlxvk_executable *e = onnx_make_executable(graph, 25);
    rlxvk_run_input in = {.name = "x", .data = x, .length = count};
    rlxvk_run_output out = {.buffer = y, .length = count};
    expect_ok(rlxvk_run(e, x ? &in : NULL, x ? 1 : 0, &out, 1));
    rlxvk_executable_destroy(e);
}

static bool same(float a, double b)
{
    return isnan(b) ? isnan(a) : a == b;
}

/* ---- Codes ---- */

static void test_values_of_codes(void **state)
{
    (void)state;
    assert_true(onnx_float8_value(ONNX_FLOAT8E4M3FN, 0x7e) == 448);
    assert_true(onnx_float8_value(ONNX_FLOAT8E4M3FN, 0x81) == -0x1p-9);
    assert_true(isnan(onnx_float8_value(ONNX_FLOAT8E4M3FN, 0xff)));
    assert_true(onnx_float8_value(ONNX_FLOAT8E4M3FNUZ, 0x7f) == 240);
    assert_true(isnan(onnx_float8_value(ONNX_FLOAT8E4M3FNUZ, 0x80)));
    assert_true(onnx_float8_value(ONNX_FLOAT8E5M2, 0x7b) == 57344);
    assert_true(onnx_float8_value(ONNX_FLOAT8E5M2, 0xfc) == -INFINITY);
    assert_true(isnan(onnx_float8_value(ONNX_FLOAT8E5M2, 0x7d)));
    assert_true(onnx_float8_value(ONNX_FLOAT8E5M2FNUZ, 0x01) == 0x1p-17);
    assert_true(onnx_float8_value(ONNX_FLOAT4E2M1, 0xf) == -6);
    assert_true(onnx_float8_value(ONNX_FLOAT4E2M1, 0x1) == 0.5);
    assert_true(onnx_float8_value(ONNX_FLOAT8E8M0, 0x80) == 2);
    assert_true(isnan(onnx_float8_value(ONNX_FLOAT8E8M0, 0xff)));
}

/* A weight of all codes of a type reaches the device. */
static void test_weights(void **state)
{
    (void)state;
    for (int32_t type = ONNX_FLOAT8E4M3FN; type <= ONNX_FLOAT8E5M2FNUZ; type++) {
        uint8_t codes[CODES];
        float y[CODES];
        onnx_message g = {0}, node = onnx_write_node("Cast", ONNX_NAMES("w"), ONNX_NAMES("y"));
        for (int i = 0; i < CODES; i++)
            codes[i] = (uint8_t)i;
        onnx_write_integer(&node, "to", ONNX_FLOAT);
        message_inner(&g, 1, &node);
        onnx_write_tensor(&g, "w", type, (const int64_t[]){CODES}, 1, codes, CODES);
        onnx_write_value(&g, 12, "y", ONNX_FLOAT, "256");
        run_floats(&g, NULL, CODES, y);
        for (uint32_t i = 0; i < CODES; i++)
            assert_true(same(y[i], onnx_float8_value(type, i)));
    }
}

/* Two codes in a byte, the first one lowest. */
static void test_packed_integers(void **state)
{
    static const uint8_t bytes[] = {0x87, 0x0f};
    static const float expected[][4] = {{7, 8, 15, 0}, {7, -8, -1, 0}};
    (void)state;
    for (int i = 0; i < 2; i++) {
        float y[4];
        onnx_message g = {0}, node = onnx_write_node("Cast", ONNX_NAMES("w"), ONNX_NAMES("y"));
        onnx_write_integer(&node, "to", ONNX_FLOAT);
        message_inner(&g, 1, &node);
        onnx_write_tensor(&g, "w", i ? ONNX_INT4 : ONNX_UINT4, (const int64_t[]){4}, 1, bytes, 2);
        onnx_write_value(&g, 12, "y", ONNX_FLOAT, "4");
        run_floats(&g, NULL, 4, y);
        assert_memory_equal(y, expected[i], sizeof y);
    }
}

/* Packed weights are params: they are uploaded once, shared and named as in the file. */
static void test_packed_weights_are_params(void **state)
{
    static const uint8_t codes[] = {0x98, 0x88, 0x88, 0x88, 0x88, 0x88, 0x88, 0x88,
                                    0x88, 0x88, 0x88, 0x88, 0x88, 0x88, 0x88, 0x0f};
    static const float scales[] = {0.5f, 2};
    float x[16] = {0}, y[2];
    onnx_message g = {0}, bytes;
    onnx_message node = onnx_write_node("MatMulNBits", ONNX_NAMES("x", "w", "s"), ONNX_NAMES("y"));
    rlxvk_model *m = NULL;
    rlxvk_executable *e[2] = {NULL};
    rlxvk_compile_options o = {0};
    rlxvk_run_input in = {.name = "x", .data = x, .length = 16};
    rlxvk_run_output out = {.buffer = y, .length = 2};
    rlxvk_tensor_info infos[4];
    size_t count;
    (void)state;
    message_text(&node, 7, "com.microsoft");
    onnx_write_integer(&node, "K", 16);
    onnx_write_integer(&node, "N", 2);
    onnx_write_integer(&node, "bits", 4);
    onnx_write_integer(&node, "block_size", 16);
    message_inner(&g, 1, &node);
    onnx_write_tensor(&g, "w", ONNX_UINT8, (const int64_t[]){2, 1, 8}, 3, codes, 16);
    onnx_write_floats(&g, "s", (const int64_t[]){2}, 1, scales, 2);
    onnx_write_value(&g, 11, "x", ONNX_FLOAT, "1,16");
    onnx_write_value(&g, 12, "y", ONNX_FLOAT, "1,2");
    bytes = onnx_write_model(&g, 17);
    expect_ok(rlxvk_model_open_bytes(bytes.bytes, bytes.size, NULL, &m));
    expect_ok(rlxvk_model_executable(m, shared_context, NULL, NULL, &e[0]));
    expect_ok(rlxvk_executable_params(e[0], infos, 4, &count));
    assert_int_equal(count, 2);
    assert_string_equal(infos[0].name, "w");
    assert_int_equal(infos[0].dtype, RLXVK_U8);
    assert_string_equal(infos[1].name, "s");
    o.share_with = e[0];
    expect_ok(rlxvk_set_param(e[0], "s", (const float[]){1, 1}, 2));
    expect_ok(rlxvk_model_executable(m, shared_context, NULL, &o, &e[1]));
    x[1] = 1;   /* code 9 of column 0: 9 - 8 */
    x[14] = 10; /* code 15 of column 1 */
    expect_ok(rlxvk_run(e[1], &in, 1, &out, 1));
    assert_true(y[0] == 1 && y[1] == 70); /* with the shared scales */
    rlxvk_executable_destroy(e[1]);
    rlxvk_executable_destroy(e[0]);
    rlxvk_model_destroy(m);
    message_free(&bytes);
}

/* ---- Casts ---- */

/* The nearest finite value of the type, ties to the even code, by looking at all of them. */
static double nearest(int32_t type, double x)
{
    double best = INFINITY;
    for (uint32_t code = 0; code < 128u; code++) {
        double v = onnx_float8_value(type, code), off = fabs(fabs(x) - v);
        if (code < (onnx_type_bits(type) == 4 ? 8u : 128u) && isfinite(v) &&
            (off < fabs(fabs(x) - best) || (off == fabs(fabs(x) - best) && code % 2 == 0)))
            best = v;
    }
    return copysign(best, x);
}

/* Each value of the type, each middle of two neighbours, and what is next to these in f32. */
static size_t make_points(int32_t type, float *x)
{
    size_t count = 0;
    for (uint32_t code = 0; code < (onnx_type_bits(type) == 4 ? 7u : 126u); code++) {
        float low = (float)onnx_float8_value(type, code);
        float high = (float)onnx_float8_value(type, code + 1), middle = (low + high) / 2;
        if (!isfinite(high))
            continue;
        x[count++] = low;
        x[count++] = middle;
        x[count++] = nextafterf(middle, 0);
        x[count++] = -nextafterf(middle, high);
        x[count++] = nextafterf(high, 0);
    }
    return count;
}

/* The standard allows scales that are integers. */
static void test_integer_scales(void **state)
{
    static const float x[] = {-9, 1, 3, 5, 600}, expected[] = {0, 3, 5, 5, 255};
    float y[5];
    onnx_message g = {0};
    (void)state;
    onnx_write_op(&g, "QuantizeLinear", ONNX_NAMES("x", "s", "z"), ONNX_NAMES("codes"));
    onnx_message node = onnx_write_node("Cast", ONNX_NAMES("codes"), ONNX_NAMES("y"));
    onnx_write_integer(&node, "to", ONNX_FLOAT);
    message_inner(&g, 1, &node);
    onnx_write_tensor(&g, "s", ONNX_INT32, NULL, 0, (const int32_t[]){2}, 4);
    onnx_write_tensor(&g, "z", ONNX_UINT8, NULL, 0, (const uint8_t[]){3}, 1);
    onnx_write_value(&g, 11, "x", ONNX_FLOAT, "5");
    onnx_write_value(&g, 12, "y", ONNX_FLOAT, "5");
    run_floats(&g, x, 5, y);
    assert_memory_equal(y, expected, sizeof y);
}

static void cast_floats(int32_t type, bool saturate, const float *x, size_t count, float *y)
{
    onnx_message g = {0}, node = onnx_write_node("Cast", ONNX_NAMES("x"), ONNX_NAMES("y"));
    onnx_write_integer(&node, "to", type);
    onnx_write_integer(&node, "saturate", saturate);
    message_inner(&g, 1, &node);
    onnx_write_value(&g, 11, "x", ONNX_FLOAT, count == 4 ? "4" : "N");
    onnx_write_value(&g, 12, "y", type, count == 4 ? "4" : "N");
    run_floats(&g, x, count, y);
}

static void test_casts_round_to_even(void **state)
{
    static const int32_t types[] = {ONNX_FLOAT8E4M3FN, ONNX_FLOAT8E4M3FNUZ, ONNX_FLOAT8E5M2,
                                    ONNX_FLOAT8E5M2FNUZ, ONNX_FLOAT4E2M1};
    (void)state;
    for (size_t t = 0; t < ARRAY_COUNT(types); t++) {
        float x[700], y[700];
        size_t count = make_points(types[t], x);
        assert_true(count > 30);
        cast_floats(types[t], true, x, count, y);
        for (size_t i = 0; i < count; i++)
            assert_true(y[i] == nearest(types[t], x[i]));
    }
}

/* Beyond the largest value: it, or without `saturate` an infinity or NaN. */
static void test_casts_saturate(void **state)
{
    static const float x[4] = {3e38f, -INFINITY, NAN, 500};
    float y[4];
    (void)state;
    cast_floats(ONNX_FLOAT8E4M3FN, true, x, 4, y);
    assert_true(y[0] == 448 && y[1] == -448 && isnan(y[2]) && y[3] == 448);
    cast_floats(ONNX_FLOAT8E4M3FN, false, x, 4, y);
    assert_true(isnan(y[0]) && isnan(y[1]) && isnan(y[2]) && isnan(y[3]));
    cast_floats(ONNX_FLOAT8E5M2, false, x, 4, y);
    assert_true(y[0] == INFINITY && y[1] == -INFINITY && isnan(y[2]) && y[3] == 512);
}

/* Powers of two, up and down. */
static void test_casts_to_powers(void **state)
{
    static const float x[4] = {3, 0x1p100f, 1e-30f, 0x1.8p-100f};
    static const char *const modes[] = {"up", "down", "nearest"};
    static const float expected[][4] = {{4, 0x1p100f, 0x1p-99f, 0x1p-99f},
                                        {2, 0x1p100f, 0x1p-100f, 0x1p-100f},
                                        {4, 0x1p100f, 0x1p-100f, 0x1p-99f}};
    float y[4];
    (void)state;
    for (size_t k = 0; k < ARRAY_COUNT(modes); k++) {
        onnx_message g = {0}, node = onnx_write_node("Cast", ONNX_NAMES("x"), ONNX_NAMES("y"));
        onnx_write_integer(&node, "to", ONNX_FLOAT8E8M0);
        onnx_write_text(&node, "round_mode", modes[k]);
        message_inner(&g, 1, &node);
        onnx_write_value(&g, 11, "x", ONNX_FLOAT, "4");
        onnx_write_value(&g, 12, "y", ONNX_FLOAT8E8M0, "4");
        run_floats(&g, x, 4, y);
        assert_memory_equal(y, expected[k], sizeof y);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_of_codes),
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_packed_integers),
        cmocka_unit_test(test_integer_scales),
        cmocka_unit_test(test_casts_round_to_even),
        cmocka_unit_test(test_packed_weights_are_params),
        cmocka_unit_test(test_casts_saturate),
        cmocka_unit_test(test_casts_to_powers),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
