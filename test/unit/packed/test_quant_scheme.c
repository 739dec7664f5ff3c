/*
 * Schemes with side scales: worked examples with exact results, conversion of single codes in both
 * directions, and sizes.
 */
#include "graph/graph.h"
#include "graph/half.h"
#include "op/op.h"
#include "op/packed/quant_codec.h"
#include "op/packed/quant_format.h"
#include "op/packed/quant_scheme.h"
#include <rlxvk_ops.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h> /* after base.h, whose status_fail() it hides */

static const uint8_t bytes_of_8[] = {10, 0xfd, 20, 5, 0x80, 127, 4, 0};
static const uint8_t bytes_of_4[] = {0x87, 0x3f, 0x50, 0x2c};
static const uint8_t all_fp4[] = {0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe};
static const uint8_t half[] = {0x30}, exponent[] = {128};

/* x [k] times w [k, n] -> y [n]. If x is NULL, it is all ones. */
static const struct example {
    uint32_t kind;
    uint64_t k, n, block;
    const uint8_t *codes, *scale_bytes;
    float scales[4], extra[4], x[4], y[2];
    bool ones;
} examples[] = {
    {0, 4, 2, 2, bytes_of_8, NULL, {0.5f, 1, 0.25f, 2}, {0}, {1, 2, 0.5f, -1}, {8, 134}, false},
    {1,
     4,
     2,
     2,
     bytes_of_8,
     NULL,
     {0.5f, 1, 0.25f, 2},
     {2, 0, -4, 1},
     {1, 2, 0.5f, -1},
     {4.5f, 135},
     false},
    {2, 4, 2, 4, bytes_of_4, NULL, {0.5f, 0.5f}, {0}, {0}, {1, 1}, true},
    /* The same nibbles as unsigned codes: columns 7 15 0 12 and 8 3 5 2, minus 1.5 and 0. */
    {7, 4, 2, 4, bytes_of_4, NULL, {0.5f, 0.5f}, {1.5f, 0}, {0}, {14, 9}, true},
    {3,
     4,
     2,
     4,
     (const uint8_t[]){0x38, 0xc4, 0x01, 0x7e, 0x7f, 0x77, 0xff, 0x78},
     NULL,
     {2, 1},
     {0},
     {0},
     {2 + 0.00390625f, -3 + 448 + 240 + 256},
     true},
    {4, 4, 1, 4, (const uint8_t[]){0x3c, 0xc2, 0x7c, 0x7d}, NULL, {3}, {0}, {0}, {-6}, true},
};

static void test_examples(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(examples); i++) {
        const struct example *e = &examples[i];
        quant_matrix m = {quant_scheme_find(e->kind),
                          e->k,
                          e->n,
                          e->block,
                          e->codes,
                          e->scale_bytes,
                          e->scales,
                          e->extra,
                          false};
        for (uint64_t j = 0; j < e->n; j++) {
            float w[4], magnitude[4], sum = 0;
            quant_decode_column(&m, j, w, magnitude);
            for (uint64_t p = 0; p < e->k; p++) {
                sum += (e->ones ? 1 : e->x[p]) * w[p];
                assert_true(magnitude[p] >= fabsf(w[p]));
            }
            if (sum != e->y[j])
                fail_msg("example %zu column %d: %g", i, (int)j, (double)sum);
        }
    }
}

/* All sixteen levels of the 4-bit float, with a byte scale. x[p] = p. */
static void test_fp4(void **state)
{
    static const float global = 2;
    float w[16], magnitude[16], sum = 0;
    quant_matrix nvfp4 = {quant_scheme_find(5), 16, 1, 16, all_fp4, half, NULL, &global, false};
    quant_matrix mxfp4 = {quant_scheme_find(6), 16, 1, 32, all_fp4, exponent, NULL, NULL, false};
    (void)state;
    quant_decode_column(&nvfp4, 0, w, magnitude);
    for (int p = 0; p < 16; p++)
        sum += (float)p * w[p];
    assert_true(sum == -144);
    quant_decode_column(&mxfp4, 0, w, magnitude);
    assert_true(w[1] == 1 && w[7] == 12 && w[15] == -12 && magnitude[15] == 12);
    mxfp4.scale_bytes = (const uint8_t[]){255};
    quant_decode_column(&mxfp4, 0, w, magnitude);
    assert_true(w[7] == 0 && magnitude[7] == 0);
}

static void test_codes(void **state)
{
    const quant_scheme_traits *e4m3 = quant_scheme_find(3), *e5m2 = quant_scheme_find(4);
    (void)state;
    assert_true(e4m3->code(0x38) == 1 && e4m3->code(0xc4) == -3 && e4m3->code(1) == 0x1p-9f);
    assert_true(e4m3->code(0x7e) == 448 && e4m3->code(0x77) == 240 && e4m3->code(0x78) == 256);
    assert_true(isnan(e4m3->code(0x7f)) && isnan(e4m3->code(0xff)));
    assert_true(e5m2->code(0x3c) == 1 && e5m2->code(0xc2) == -3 && e5m2->code(1) == 0x1p-16f);
    assert_true(e5m2->code(0x7b) == 57344 && isinf(e5m2->code(0x7c)) && isnan(e5m2->code(0x7d)));
}

static void test_sizes(void **state)
{
    uint64_t bytes;
    (void)state;
    assert_null(quant_scheme_find(8));
    assert_true(quant_scheme_bytes(quant_scheme_find(0), 3, 5, &bytes) && bytes == 15);
    assert_true(quant_scheme_bytes(quant_scheme_find(2), 3, 5, &bytes) && bytes == 8);
    assert_false(quant_scheme_bytes(quant_scheme_find(2), UINT64_MAX / 2, 3, &bytes));
}

static void test_traits(void **state)
{
    rlxvk_quant_traits t;
    (void)state;
    assert_int_equal(rlxvk_quant_query(RLXVK_QUANT_NVFP4, &t), RLXVK_OK);
    assert_string_equal(t.name, "nvfp4/16");
    assert_true(t.has_side_scale && t.scale_is_byte && !t.has_zero_point && !t.is_gguf);
    assert_int_equal(rlxvk_quant_query(RLXVK_QUANT_INT4_ASYM, &t), RLXVK_OK);
    assert_true(t.has_zero_point && t.block_elements == 0 && t.block_bytes == 0);
    assert_int_equal(rlxvk_quant_query(256 + RLXVK_Q4_K, &t), RLXVK_OK);
    assert_string_equal(t.name, "gguf_q4_k");
    assert_true(t.is_gguf && t.block_elements == 256 && t.block_bytes == 144);
    assert_int_equal(rlxvk_quant_query(8, &t), RLXVK_E_UNSUPPORTED);
    assert_int_equal(rlxvk_quant_query(256 + 9, &t), RLXVK_E_UNSUPPORTED);
    assert_true(t.name[0] == 0);
}

/* ---- Small floats ---- */

static float e4m3_value(uint32_t code)
{
    return quant_ue4m3_to_f32(code & 0x7f) * (code & 0x80 ? -1.0f : 1.0f);
}

static float e5m2_value(uint32_t code)
{
    return f16_to_f32((uint16_t)(code << 8));
}

static float fp4_value(uint32_t code)
{
    return quant_fp4_levels[code];
}

static const struct small_float {
    uint8_t (*round)(float value);
    float (*value)(uint32_t code);
    uint32_t largest, sign; /* codes */
} small_floats[] = {
    {quant_e4m3_from_f32, e4m3_value, 0x7e, 0x80},
    {quant_e5m2_from_f32, e5m2_value, 0x7b, 0x80},
    {quant_fp4_from_f32, fp4_value, 7, 8},
};

/* Each value must survive. A midpoint is rounded to the even code, and its neighbours each to their
 * own side. If a value is too large, it saturates. */
static void test_small_floats(void **state)
{
    (void)state;
    for (size_t f = 0; f < ARRAY_COUNT(small_floats); f++) {
        const struct small_float *s = &small_floats[f];
        for (uint32_t code = 0; code <= s->largest; code++) {
            float value = s->value(code);
            assert_int_equal(s->round(value), code);
            assert_int_equal(s->round(-value), code | s->sign);
            if (code == s->largest)
                continue;
            float middle = (value + s->value(code + 1)) / 2;
            assert_int_equal(s->round(middle), code + code % 2);
            assert_int_equal(s->round(nextafterf(middle, 1e9f)), code + 1);
            assert_int_equal(s->round(nextafterf(middle, 0)), code);
        }
        assert_int_equal(s->round(INFINITY), s->largest);
        assert_int_equal(s->round(-3e38f), s->largest | s->sign);
        assert_int_equal(s->round(0x1p-149f), 0);
    }
    assert_int_equal(quant_e4m3_from_f32(NAN), 0x7f);
}

static void test_scale_codes(void **state)
{
    (void)state;
    for (uint32_t code = 0; code < 0x7f; code++)
        assert_int_equal(quant_ue4m3_from_f32(quant_ue4m3_to_f32(code)), code);
    assert_int_equal(quant_ue4m3_from_f32(-1), 0);
    assert_int_equal(quant_ue4m3_from_f32(1e9f), 0x7e);
    assert_int_equal(quant_ue4m3_from_f32(1.0625f), 0x39); /* half up */
    assert_int_equal(quant_ue4m3_from_f32(1.9375f), 0x40); /* carries */
    assert_int_equal(quant_ue4m3_from_f32(0x1.ffp-7f), 7); /* subnormal range: capped */
    assert_int_equal(quant_ue4m3_from_f32(0x1p-10f), 1);   /* half of the least */
    assert_int_equal(quant_ue4m3_from_f32(0x1.fp-11f), 0);
    assert_int_equal(quant_e8m0_for_fp4(6), 127);
    assert_int_equal(quant_e8m0_for_fp4(0.99f), 124);
    assert_int_equal(quant_e8m0_for_fp4(0), 0);
    assert_int_equal(quant_e8m0_for_fp4(0x1p-149f), 0);
    assert_int_equal(quant_e8m0_for_fp4(3e38f), 252);
    assert_int_equal(quant_fp4_nearest(0.25f, 1), 0); /* ties: the lowest code */
    assert_int_equal(quant_fp4_nearest(3.5f, 1), 5);
    assert_int_equal(quant_fp4_nearest(-2.5f, 1), 12);
    assert_int_equal(quant_fp4_nearest(100, 0), 0);
}

/* If ops use formats with the same grid, they share one constant for it. */
static void test_grids(void **state)
{
    rlxvk_graph *g = NULL;
    uint32_t constants = 0;
    (void)state;
    assert_int_equal(rlxvk_graph_create(&g), RLXVK_OK);
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(1, 256));
    rlxvk_tensor a = rlxvk_param(g, "a", RLXVK_U8, RLXVK_SHAPE(50 * 4));
    rlxvk_tensor b = rlxvk_param(g, "b", RLXVK_U8, RLXVK_SHAPE(56 * 4));
    rlxvk_tensor c = rlxvk_param(g, "c", RLXVK_U8, RLXVK_SHAPE(82 * 4));
    rlxvk_tensor index = rlxvk_dequant_matmul(g, x, a, RLXVK_IQ1_S);
    rlxvk_dequant_matmul(g, x, b, RLXVK_IQ1_M);
    rlxvk_dequant_matmul(g, x, c, RLXVK_IQ2_S);
    assert_true(rlxvk_dequant_gather(g, c, index, RLXVK_IQ2_S, 256).id != 0);
    for (uint32_t id = 0; id < g->nodes.count; id++)
        constants += graph_node(g, id)->op == OP_constant;
    assert_int_equal(constants, 2);
    rlxvk_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_examples),     cmocka_unit_test(test_fp4),
        cmocka_unit_test(test_codes),        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_traits),       cmocka_unit_test(test_grids),
        cmocka_unit_test(test_small_floats), cmocka_unit_test(test_scale_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
