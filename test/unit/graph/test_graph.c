/*
 * The graph layer, without a device: shapes, element types and their conversions, sticky errors and
 * names, and op_verify on damaged graphs.
 */
#include "graph/half.h"
#include "support/rewritten.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* ---- Shapes ---- */

static void shapes_multiply(void **state)
{
    const struct {
        rlxvk_shape shape;
        bool fits;
        uint64_t numel;
    } rows[] = {
        {RLXVK_SCALAR, true, 1},
        {RLXVK_SHAPE(0), true, 0},
        {RLXVK_SHAPE(2, 3, 4), true, 24},
        {RLXVK_SHAPE(2, 1, 2, 1, 2, 1, 2, 1), true, 16},
        {RLXVK_SHAPE(INT32_MAX), true, INT32_MAX},
        {RLXVK_SHAPE((int64_t)INT32_MAX + 1), false, 0},
        {RLXVK_SHAPE(65536, 32768), false, 0},
        {RLXVK_SHAPE(INT64_MAX, INT64_MAX, INT64_MAX), false, 0},
        {RLXVK_SHAPE((int64_t)1 << 32, (int64_t)1 << 32), false, 0}, /* 2^64 wraps to 0 */
        {RLXVK_SHAPE(65536, 0, 1000000), true, 0},
        {RLXVK_SHAPE((int64_t)1 << 32, 0, (int64_t)1 << 32), false, 0}, /* strides would overflow */
        {RLXVK_SHAPE(INT64_MAX, INT64_MAX, 0), false, 0},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        uint64_t numel = 77;
        assert_int_equal(shape_numel_checked(&rows[i].shape, &numel), rows[i].fits);
        assert_int_equal(numel, rows[i].fits ? rows[i].numel : 77);
        if (rows[i].fits)
            assert_int_equal(shape_numel(&rows[i].shape), rows[i].numel);
    }
}

static void public_shape_helpers(void **state)
{
    const rlxvk_shape deep = {.rank = 9};
    uint64_t count = 5;
    (void)state;
    assert_true(rlxvk_shape_equal(RLXVK_SHAPE(2, 3), RLXVK_SHAPE(2, 3)));
    assert_true(rlxvk_shape_equal(RLXVK_SCALAR, RLXVK_SCALAR));
    assert_false(rlxvk_shape_equal(RLXVK_SHAPE(2, 3), RLXVK_SHAPE(3, 2)));
    assert_false(rlxvk_shape_equal(RLXVK_SHAPE(2), RLXVK_SHAPE(2, 1)));
    assert_false(rlxvk_shape_equal(deep, deep));
    expect_error(rlxvk_shape_elements(deep, &count), RLXVK_E_SHAPE, "rank 9");
    expect_error(rlxvk_shape_elements(RLXVK_SHAPE(2, -1), &count), RLXVK_E_SHAPE, "dim 1 of 2x-1");
    expect_error(rlxvk_shape_elements(RLXVK_SHAPE(65536, 32768), &count), RLXVK_E_TOO_LARGE,
                 "65536x32768");
    expect_error(rlxvk_shape_elements(RLXVK_SHAPE(INT64_MAX, INT64_MAX), &count), RLXVK_E_TOO_LARGE,
                 "split the tensor");
    assert_int_equal(count, 5);
    expect_ok(rlxvk_shape_elements(RLXVK_SHAPE(65535, 32768), &count));
    assert_int_equal(count, 65535u * 32768u);
    expect_ok(rlxvk_shape_elements(RLXVK_SHAPE(3, 0, 7), &count));
    assert_int_equal(count, 0);
    expect_ok(rlxvk_shape_elements(RLXVK_SCALAR, &count));
    assert_int_equal(count, 1);
}

static void shapes_broadcast(void **state)
{
    const struct {
        rlxvk_shape a, b;
        bool agree;
        rlxvk_shape out;
    } rows[] = {
        {RLXVK_SHAPE(2, 3), RLXVK_SHAPE(3), true, RLXVK_SHAPE(2, 3)},
        {RLXVK_SHAPE(4, 1), RLXVK_SHAPE(4, 4), true, RLXVK_SHAPE(4, 4)},
        {RLXVK_SHAPE(2, 1, 4), RLXVK_SHAPE(3, 1), true, RLXVK_SHAPE(2, 3, 4)},
        {RLXVK_SCALAR, RLXVK_SCALAR, true, RLXVK_SCALAR},
        {RLXVK_SCALAR, RLXVK_SHAPE(2, 0), true, RLXVK_SHAPE(2, 0)},
        {RLXVK_SHAPE(1), RLXVK_SHAPE(0), true, RLXVK_SHAPE(0)},
        {RLXVK_SHAPE(0), RLXVK_SHAPE(2), false, RLXVK_SCALAR},
        {RLXVK_SHAPE(2, 3), RLXVK_SHAPE(2), false, RLXVK_SCALAR},
        {RLXVK_SHAPE(1, 1, 1, 1, 1, 1, 1, 2), RLXVK_SHAPE(3, 1, 1, 1, 1, 1, 1, 1), true,
         RLXVK_SHAPE(3, 1, 1, 1, 1, 1, 1, 2)},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        for (int swap = 0; swap < 2; swap++) {
            const rlxvk_shape *a = swap ? &rows[i].b : &rows[i].a;
            const rlxvk_shape *b = swap ? &rows[i].a : &rows[i].b;
            rlxvk_shape out = RLXVK_SHAPE(9, 9);
            assert_int_equal(shape_broadcast(a, b, &out), rows[i].agree);
            if (rows[i].agree)
                assert_true(shape_equal(&out, &rows[i].out));
        }
}

static void shapes_stride(void **state)
{
    int64_t s[RLXVK_MAX_RANK];
    char buffer[SHAPE_TEXT];
    rlxvk_shape x = RLXVK_SHAPE(2, 3, 4), target = RLXVK_SHAPE(5, 2, 3, 4);
    (void)state;
    shape_strides(&x, s);
    assert_memory_equal(s, ((int64_t[]){12, 4, 1}), 24);
    shape_broadcast_strides(&x, &target, s);
    assert_memory_equal(s, ((int64_t[]){0, 12, 4, 1}), 32);
    x = RLXVK_SHAPE(2, 1, 4);
    shape_broadcast_strides(&x, &target, s);
    assert_memory_equal(s, ((int64_t[]){0, 4, 0, 1}), 32);
    x = RLXVK_SCALAR;
    shape_broadcast_strides(&x, &target, s);
    assert_memory_equal(s, ((int64_t[]){0, 0, 0, 0}), 32);
    assert_string_equal(shape_text(&x, buffer), "scalar");
    assert_string_equal(shape_text(&target, buffer), "5x2x3x4");
    x = RLXVK_SHAPE(INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX,
                    INT64_MAX);
    assert_true(strlen(shape_text(&x, buffer)) < SHAPE_TEXT);
}

/* ---- Element types ---- */

/* promote(a, b) in row a and column b, in the order of rlxvk_dtype. It is the table of the data
 * model. */
static void dtypes_promote(void **state)
{
    enum { F = RLXVK_F32, H, B, D, A, S, I, L, U, V, O, C };
    static const uint8_t table[RLXVK_DTYPE_COUNT][RLXVK_DTYPE_COUNT] = {
        /*     F32 F16 BF16 F64 I8 I16 I32 I64 U8 U32 BOOL C64 */
        [F] = {F, F, F, D, F, F, F, D, F, F, F, C}, [H] = {F, H, F, D, F, F, F, D, F, F, H, C},
        [B] = {F, F, B, D, F, F, F, D, F, F, B, C}, [D] = {D, D, D, D, D, D, D, D, D, D, D, C},
        [A] = {F, F, F, D, A, S, I, L, A, V, A, C}, [S] = {F, F, F, D, S, S, I, L, S, V, S, C},
        [I] = {F, F, F, D, I, I, I, L, I, I, I, C}, [L] = {D, D, D, D, L, L, L, L, L, L, L, C},
        [U] = {F, F, F, D, U, S, I, L, U, V, U, C}, [V] = {F, F, F, D, V, V, V, L, V, V, V, C},
        [O] = {F, H, B, D, A, S, I, L, U, V, O, C}, [C] = {C, C, C, C, C, C, C, C, C, C, C, C},
    };
    (void)state;
    for (int a = 0; a < RLXVK_DTYPE_COUNT; a++)
        for (int b = 0; b < RLXVK_DTYPE_COUNT; b++)
            if (dtype_promote((rlxvk_dtype)a, (rlxvk_dtype)b) != table[a][b]) {
                print_error("%s with %s gives %s\n", rlxvk_dtype_name((rlxvk_dtype)a),
                            rlxvk_dtype_name((rlxvk_dtype)b),
                            rlxvk_dtype_name(dtype_promote((rlxvk_dtype)a, (rlxvk_dtype)b)));
                assert_true(false);
            }
}

static void dtypes_have_names_and_sizes(void **state)
{
    static const uint8_t sizes[] = {4, 2, 2, 8, 1, 2, 4, 8, 1, 4, 1, 8};
    (void)state;
    for (int t = 0; t < RLXVK_DTYPE_COUNT; t++)
        assert_int_equal(rlxvk_dtype_size((rlxvk_dtype)t), sizes[t]);
    assert_string_equal(rlxvk_dtype_name(RLXVK_BF16), "BF16");
    assert_string_equal(rlxvk_dtype_name((rlxvk_dtype)RLXVK_DTYPE_COUNT), "?");
    assert_string_equal(rlxvk_dtype_name((rlxvk_dtype)-1), "?");
    assert_int_equal(rlxvk_dtype_size((rlxvk_dtype)-1), 0);
    assert_int_equal(dtype_storage_bytes(STORAGE_WORD, 0), 4);
    assert_int_equal(dtype_storage_bytes(STORAGE_RAW, 5), 8);
    assert_int_equal(dtype_storage_bytes(STORAGE_HALF, 3), 8);
    assert_int_equal(dtype_storage_bytes(STORAGE_PAIR, 3), 24);
    assert_int_equal(dtype_storage_bytes(STORAGE_PAIR, INT32_MAX), 8 * (uint64_t)INT32_MAX);
}

static float widened(rlxvk_dtype from, const void *bytes)
{
    float word = -77;
    dtype_widen(from, bytes, 1, &word);
    return word;
}

#define WIDEN(dtype, T, value) widened(dtype, &(T){value})

static void dtypes_widen(void **state)
{
    float pair[2];
    (void)state;
    assert_int_equal(f32_bits(WIDEN(RLXVK_F32, uint32_t, 0x7f800001u)), 0x7f800001u);
    assert_int_equal(f32_bits(WIDEN(RLXVK_F32, uint32_t, 0x80000000u)), 0x80000000u);
    assert_true(WIDEN(RLXVK_F16, uint16_t, 0x3555) == 0x1.554p-2f);
    assert_true(WIDEN(RLXVK_F16, uint16_t, 0x0001) == 0x1p-24f);
    assert_true(WIDEN(RLXVK_F16, uint16_t, 0x83ff) == -0x3ffp-24f);
    assert_true(WIDEN(RLXVK_F16, uint16_t, 0xfc00) == -INFINITY);
    assert_true(isnan(WIDEN(RLXVK_F16, uint16_t, 0x7c01)));
    assert_true(WIDEN(RLXVK_BF16, uint16_t, 0x3f81) == 0x1.02p0f);
    assert_true(isnan(WIDEN(RLXVK_BF16, uint16_t, 0x7f81)));
    assert_true(WIDEN(RLXVK_F64, double, 0.1) == 0.1f);
    assert_true(WIDEN(RLXVK_F64, double, -1e39) == -INFINITY);
    assert_true(WIDEN(RLXVK_F64, double, 1e-50) == 0);
    assert_true(WIDEN(RLXVK_I8, int8_t, -128) == -128);
    assert_true(WIDEN(RLXVK_U8, uint8_t, 255) == 255);
    assert_true(WIDEN(RLXVK_I16, int16_t, -32768) == -32768);
    assert_true(WIDEN(RLXVK_I32, int32_t, 16777217) == 16777216);
    assert_true(WIDEN(RLXVK_I32, int32_t, INT32_MIN) == -0x1p31f);
    assert_true(WIDEN(RLXVK_U32, uint32_t, UINT32_MAX) == 0x1p32f);
    assert_true(WIDEN(RLXVK_I64, int64_t, INT64_MAX) == 0x1p63f);
    assert_true(WIDEN(RLXVK_I64, int64_t, -3) == -3);
    assert_true(WIDEN(RLXVK_BOOL, uint8_t, 255) == 1 && WIDEN(RLXVK_BOOL, uint8_t, 0) == 0);
    dtype_widen(RLXVK_C64, (float[]){1.5f, -2}, 1, pair);
    assert_true(pair[0] == 1.5f && pair[1] == -2);
}

static int64_t narrowed(rlxvk_dtype to, float word)
{
    uint64_t bits = 0x5555555555555555u;
    size_t size = rlxvk_dtype_size(to);
    dtype_narrow(to, &word, 1, &bits);
    assert_int_equal(bits >> (8 * size - 1) >> 1,
                     (0x5555555555555555u >> (8 * size - 1)) >> 1); /* no other bits are set */
    bits = bits << (64 - 8 * size) >> (64 - 8 * size);
    bool negative = to == RLXVK_I8 || to == RLXVK_I16 || to == RLXVK_I32;
    return negative && bits >> (8 * size - 1) ? (int64_t)(bits | UINT64_MAX << (8 * size))
                                              : (int64_t)bits;
}

static void dtypes_narrow(void **state)
{
    const struct {
        rlxvk_dtype to;
        float word;
        int64_t expected;
    } rows[] = {
        {RLXVK_I8, -200, -128},
        {RLXVK_I8, 127.9f, 127},
        {RLXVK_I8, -0.9f, 0},
        {RLXVK_U8, 300, 255},
        {RLXVK_U8, -1, 0},
        {RLXVK_U8, 12.9f, 12},
        {RLXVK_I16, 40000, 32767},
        {RLXVK_I16, -INFINITY, -32768},
        {RLXVK_I32, 3e9f, INT32_MAX},
        {RLXVK_I32, -3e9f, INT32_MIN},
        {RLXVK_I32, 0x1p31f, INT32_MAX},
        {RLXVK_I32, 0x1.fffffep30f, 2147483520},
        {RLXVK_I32, NAN, 0},
        {RLXVK_U32, 0x1p32f, UINT32_MAX},
        {RLXVK_U32, -5, 0},
        {RLXVK_U32, 0x1.8p31f, 3221225472},
        {RLXVK_I64, 0x1p63f, INT64_MAX},
        {RLXVK_I64, INFINITY, INT64_MAX},
        {RLXVK_I64, -0x1p63f, INT64_MIN},
        {RLXVK_I64, -1e30f, INT64_MIN},
        {RLXVK_I64, -2.5f, -2},
        {RLXVK_I64, NAN, 0},
        {RLXVK_BOOL, NAN, 1},
        {RLXVK_BOOL, -0.0f, 0},
        {RLXVK_BOOL, 1e-40f, 1},
        {RLXVK_F16, 1.0009765625f + 0x1p-12f, 0x3c01},
        {RLXVK_F16, 65519, 0x7bff},
        {RLXVK_F16, 65520, 0x7c00},
        {RLXVK_F16, -INFINITY, 0xfc00},
        {RLXVK_F16, 0x1p-24f, 1},
        {RLXVK_F16, 0x1p-25f, 0}, /* a tie, to even */
        {RLXVK_F16, 0x1.8p-24f, 2},
        {RLXVK_F16, 0x1.00002p-25f, 1},
        {RLXVK_F16, 0x1.ffep-15f, 0x0400}, /* just above the largest denormal */
        {RLXVK_F16, -0.0f, 0x8000},
        {RLXVK_F16, 1 + 0x1p-11f, 0x3c00},
        {RLXVK_F16, 1 + 0x3p-11f, 0x3c02},
        {RLXVK_BF16, 1 + 0x1p-8f, 0x3f80},
        {RLXVK_BF16, 1 + 0x3p-8f, 0x3f82},
        {RLXVK_BF16, 3.4e38f, 0x7f80},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        if (narrowed(rows[i].to, rows[i].word) != rows[i].expected) {
            print_error("%s of %a is %llx, wanted %llx\n", rlxvk_dtype_name(rows[i].to),
                        (double)rows[i].word,
                        (unsigned long long)narrowed(rows[i].to, rows[i].word),
                        (unsigned long long)rows[i].expected);
            assert_true(false);
        }
    double d;
    dtype_narrow(RLXVK_F64, (float[]){0.1f}, 1, &d);
    assert_true(d == (double)0.1f);
}

/* NaN stays NaN and becomes quiet, whatever its payload. Every half is the same after a conversion
 * to f32 and back. */
static void halves_round_trip(void **state)
{
    (void)state;
    for (uint32_t bit = 0; bit < 46; bit++) {
        float nan = f32_from_bits((bit < 23 ? 0x7f800000u : 0xff800000u) | 1u << bit % 23);
        assert_int_equal(narrowed(RLXVK_F16, nan) & 0x7e00, 0x7e00);
        assert_int_equal(narrowed(RLXVK_BF16, nan) & 0x7fc0, 0x7fc0);
    }
    for (uint32_t h = 0; h < 65536; h++) {
        uint16_t bits = (uint16_t)h;
        float f16 = widened(RLXVK_F16, &bits), bf16 = widened(RLXVK_BF16, &bits);
        float again[] = {f16, bf16};
        if (!isnan(f16))
            assert_int_equal(narrowed(RLXVK_F16, f16), h);
        if (!isnan(bf16))
            assert_int_equal(narrowed(RLXVK_BF16, bf16), h);
        dtype_round(RLXVK_F16, &again[0], 1);
        dtype_round(RLXVK_BF16, &again[1], 1);
        assert_true(isnan(f16) ? isnan(again[0]) : again[0] == f16);
        assert_true(isnan(bf16) ? isnan(again[1]) : again[1] == bf16);
    }
}

/* ---- Errors and names ---- */

static void errors_stick(void **state)
{
    rlxvk_graph *g = new_graph();
    char first[512];
    (void)state;
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(2, 3));
    assert_string_equal(rlxvk_graph_error(g), "");
    assert_int_equal(rlxvk_softmax(g, x, 4).id, 0);
    assert_int_equal(rlxvk_graph_status(g), RLXVK_E_AXIS);
    strcpy(first, rlxvk_graph_error(g));
    assert_non_null(strstr(first, "softmax (node 1 of 'x'): axis 4 outside rank 2"));
    size_t count = g->nodes.count;
    assert_int_equal(rlxvk_neg(g, x).id, 0);
    assert_int_equal(input(g, "y", RLXVK_SHAPE(2)).id, 0);
    assert_int_equal(rlxvk_reshape(g, RLXVK_NONE, RLXVK_SHAPE(-7)).id, 0);
    rlxvk_graph_output(g, RLXVK_NONE);
    rlxvk_graph_set_name(g, x, "renamed");
    assert_int_equal(g->nodes.count, count);
    assert_int_equal(g->outputs.count, 0);
    assert_int_equal(rlxvk_graph_status(g), RLXVK_E_AXIS);
    assert_string_equal(rlxvk_graph_error(g), first);
    assert_string_equal(graph_node(g, 0)->name, "x");
    expect_error(op_verify(g), RLXVK_E_AXIS, first);
    rlxvk_graph_destroy(g);
}

static void expect_sticky(rlxvk_graph *g, rlxvk_status status, const char *part)
{
    if (rlxvk_graph_status(g) != status || !strstr(rlxvk_graph_error(g), part))
        print_error("got %s '%s', wanted '%s'\n", rlxvk_status_name(rlxvk_graph_status(g)),
                    rlxvk_graph_error(g), part);
    assert_int_equal(rlxvk_graph_status(g), status);
    assert_non_null(strstr(rlxvk_graph_error(g), part));
    rlxvk_graph_destroy(g);
}

static void tensors_must_be_the_graphs(void **state)
{
    const rlxvk_tensor unknown[] = {RLXVK_NONE, {2, 0}, {UINT32_MAX, UINT32_MAX}};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(unknown); i++) {
        rlxvk_graph *g = new_graph();
        input(g, "x", RLXVK_SHAPE(2));
        assert_int_equal(rlxvk_tensor_shape(g, unknown[i]).rank, 0);
        assert_int_equal(rlxvk_tensor_dtype(g, unknown[i]), RLXVK_F32);
        rlxvk_graph_output(g, unknown[i]);
        expect_sticky(g, RLXVK_E_DANGLING, "graph_output: output 0");
        g = new_graph();
        rlxvk_graph_set_name(g, unknown[i], "n");
        expect_sticky(g, RLXVK_E_DANGLING, "graph_set_name");
        g = new_graph();
        rlxvk_neg(g, unknown[i]);
        expect_sticky(g, unknown[i].id ? RLXVK_E_DANGLING : RLXVK_E_ARITY,
                      "neg (node 0): operand 0");
    }
}

/* Two calls fail. The graph goes on without them. */
static void an_error_can_be_cleared(void **state)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(2, 3)), y = input(g, "y", RLXVK_SHAPE(4, 5));
    (void)state;
    assert_int_equal(rlxvk_matmul(g, x, y).id, 0);
    assert_int_equal(rlxvk_neg(g, x).id, 0); /* it sticks */
    assert_int_equal(rlxvk_graph_clear_error(g), RLXVK_E_SHAPE);
    assert_int_equal(rlxvk_graph_status(g), RLXVK_OK);
    assert_string_equal(rlxvk_graph_error(g), "");
    assert_int_equal(rlxvk_graph_clear_error(g), RLXVK_OK);
    assert_int_equal(rlxvk_concat(g, (rlxvk_tensor[]){x, y}, 2, 0).id, 0);
    assert_int_equal(rlxvk_graph_clear_error(g), RLXVK_E_SHAPE);
    rlxvk_graph_output(g, rlxvk_add(g, x, x));
    assert_int_equal(rlxvk_graph_status(g), RLXVK_OK);
    assert_int_equal(g->outputs.count, 1);
    expect_ok(op_verify(g));
    assert_int_equal(rlxvk_graph_clear_error(NULL), RLXVK_E_NULL);
    rlxvk_graph_destroy(g);
}

static void names_are_kept(void **state)
{
    rlxvk_graph *g = new_graph();
    char name[] = "first", line[256] = "";
    text t = {line, sizeof line, 0};
    (void)state;
    rlxvk_tensor x = input(g, name, RLXVK_SHAPE(2));
    strcpy(name, "other");
    assert_string_equal(graph_node(g, 0)->name, "first");
    rlxvk_tensor y = rlxvk_neg(g, x), c = rlxvk_constant(g, RLXVK_U8, RLXVK_SHAPE(0), NULL, 0);
    rlxvk_graph_set_name(g, y, "y");
    rlxvk_graph_set_name(g, y, "y again");
    op_node_describe(g, y.id - 1, &t);
    assert_string_equal(line, "%1 neg 'y again' F32 2 (%0)");
    rlxvk_graph_set_name(g, y, NULL);
    assert_null(graph_node(g, y.id - 1)->name);
    rlxvk_graph_set_name(g, c, "c"); /* a constant's name is only for display */
    rlxvk_graph_set_name(g, c, "c again");
    expect_ok(rlxvk_graph_status(g));
    rlxvk_graph_set_name(g, x, "x");
    expect_sticky(g, RLXVK_E_ATTR, "'first' is an input or param and keeps the name");
}

static void names_have_rules(void **state)
{
    rlxvk_graph *g = new_graph();
    (void)state;
    input(g, "a", RLXVK_SHAPE(2));
    rlxvk_param(g, "a", RLXVK_F32, RLXVK_SHAPE(2)); /* params have their own name space */
    expect_ok(rlxvk_graph_status(g));
    rlxvk_param(g, "a", RLXVK_F32, RLXVK_SHAPE(2));
    expect_sticky(g, RLXVK_E_DUP_NAME, "param 'a': node 1");
    static const struct {
        rlxvk_dtype dtype;
        rlxvk_shape shape;
        const char *part;
    } others[] = {{RLXVK_F32, {1, {3}}, "param 'a': F32 3, but node 0 has this name and is F32 2"},
                  {RLXVK_F16, {1, {2}}, "F16 2, but node 0 has this name and is F32 2"}};
    for (size_t i = 0; i < ARRAY_COUNT(others); i++) {
        g = new_graph();
        rlxvk_param(g, "a", RLXVK_F32, RLXVK_SHAPE(2));
        rlxvk_param(g, "a", others[i].dtype, others[i].shape);
        expect_sticky(g, RLXVK_E_PARAM_CONFLICT, others[i].part);
    }
    g = new_graph();
    input(g, "a", RLXVK_SHAPE(2));
    input(g, "a", RLXVK_SHAPE(3));
    expect_sticky(g, RLXVK_E_DUP_NAME, "input 'a': node 0");
    g = new_graph();
    input(g, "rlxvk.rng", RLXVK_SHAPE(8));
    expect_sticky(g, RLXVK_E_ATTR, "'rlxvk.rng': names that begin with 'rlxvk.' are the library's");
    g = new_graph();
    rlxvk_param(g, "rlxvk.", RLXVK_F32, RLXVK_SHAPE(2));
    expect_sticky(g, RLXVK_E_ATTR, "choose another");
    g = new_graph();
    input(g, "", RLXVK_SHAPE(2));
    expect_sticky(g, RLXVK_E_ATTR, "0 bytes");
    g = new_graph();
    rlxvk_param(g, "\xff", RLXVK_F32, RLXVK_SHAPE(2));
    expect_sticky(g, RLXVK_E_ATTR, "UTF-8");
}

/* Names are found by a hash, because a search among 100,000 names would take minutes. */
static void names_are_found(void **state)
{
    enum { COUNT = 100000 };
    rlxvk_graph *g = new_graph(), *after;
    char name[24];
    (void)state;
    assert_int_equal(graph_find(g, OP_param, "w0"), NODE_NONE);
    for (uint32_t i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "w%u", i);
        rlxvk_tensor x = i % 2 ? input(g, name, RLXVK_SHAPE(2))
                               : rlxvk_param(g, name, RLXVK_F32, RLXVK_SHAPE(2));
        if (i % 3 == 0)
            rlxvk_graph_output(g, rlxvk_neg(g, x));
    }
    expect_ok(rlxvk_graph_status(g));
    expect_ok(graph_clone(g, &after));
    expect_ok(rewrite_graph(after, &(rewrite_options){0})); /* assigns new node numbers */
    for (uint32_t i = 0; i < COUNT; i++) {
        uint16_t op = i % 2 ? OP_input : OP_param, other = i % 2 ? OP_param : OP_input;
        snprintf(name, sizeof name, "w%u", i);
        uint32_t before = graph_find(g, op, name), now = graph_find(after, op, name);
        assert_string_equal(graph_node(g, before)->name, name);
        assert_int_equal(graph_node(g, before)->op, op);
        assert_int_equal(graph_find(g, other, name), NODE_NONE);
        assert_int_equal(now != NODE_NONE, i % 3 == 0);
        if (i % 3 == 0)
            assert_string_equal(graph_node(after, now)->name, name);
    }
    rlxvk_graph_destroy(after);
    input(g, "w77777", RLXVK_SHAPE(2));
    expect_sticky(g, RLXVK_E_DUP_NAME, "input 'w77777': node");
}

static void constants_have_a_size(void **state)
{
    const uint8_t bytes[16] = {0};
    (void)state;
    rlxvk_graph *g = new_graph();
    rlxvk_constant(g, RLXVK_F16, RLXVK_SHAPE(3), bytes, 12);
    expect_sticky(g, RLXVK_E_CONST_SIZE, "12 bytes given; F16 of shape 3 takes 6");
    g = new_graph();
    rlxvk_constant(g, RLXVK_C64, RLXVK_SHAPE(2), NULL, 16);
    expect_sticky(g, RLXVK_E_NULL, "bytes is NULL with a count of 16");
    g = new_graph();
    rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(1), NULL, 0);
    expect_sticky(g, RLXVK_E_CONST_SIZE, "takes 4");
}

/* ---- Verifying damaged graphs ---- */

/* %0 x [2,3], %1 w [3,4], %2 matmul, %3 softmax, which is the output. */
static rlxvk_graph *sound_graph(void)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(2, 3)), w = input(g, "w", RLXVK_SHAPE(3, 4));
    rlxvk_graph_output(g, rlxvk_softmax(g, rlxvk_matmul(g, x, w), -1));
    expect_ok(op_verify(g));
    return g;
}

static void expect_damage(rlxvk_graph *g, rlxvk_status status, const char *part)
{
    expect_error(op_verify(g), status, part);
    rlxvk_graph_destroy(g);
}

static void damage_is_found(void **state)
{
    rlxvk_graph *g = sound_graph();
    (void)state;
    ((uint32_t *)g->nodes.items[2].inputs)[1] = 4;
    expect_damage(g, RLXVK_E_DANGLING, "matmul: operand 1 of node 2 is node 4 of 4");
    g = sound_graph();
    ((uint32_t *)g->nodes.items[2].inputs)[1] = NODE_NONE;
    expect_damage(g, RLXVK_E_DANGLING, "operand 1");
    g = sound_graph();
    g->outputs.items[0] = 4;
    expect_damage(g, RLXVK_E_DANGLING, "output 0 is node 4 of 4");
    g = sound_graph();
    ((uint32_t *)g->nodes.items[2].inputs)[0] = 3;
    expect_damage(g, RLXVK_E_ORDER, "node 2 reads node 3");
    g = sound_graph();
    ((uint32_t *)g->nodes.items[2].inputs)[0] = 2;
    expect_damage(g, RLXVK_E_ORDER, "node 2 reads node 2");
    g = sound_graph();
    g->nodes.items[2].input_count = 1;
    expect_damage(g, RLXVK_E_ARITY, "matmul: 1 operands; takes 2 to 2");
    g = sound_graph();
    g->nodes.items[3].input_count = 0;
    expect_damage(g, RLXVK_E_ARITY, "softmax: 0 operands");
    g = sound_graph();
    g->nodes.items[3].op = OP_input;
    g->nodes.items[3].attribute_size = 0;
    expect_damage(g, RLXVK_E_ARITY, "input: 1 operands");
    g = sound_graph();
    g->nodes.items[2].shape.dims[1] = 5;
    expect_damage(g, RLXVK_E_SHAPE, "node 2 is declared F32 2x5 but computes F32 2x4");
    g = sound_graph();
    g->nodes.items[2].dtype = RLXVK_I32;
    expect_damage(g, RLXVK_E_SHAPE, "declared I32 2x4");
    g = sound_graph();
    g->nodes.items[1].shape.dims[0] = 4;
    expect_damage(g, RLXVK_E_SHAPE, "K is 3");
    g = sound_graph();
    ((axis_attributes *)g->nodes.items[3].attributes)->axis = 2;
    expect_damage(g, RLXVK_E_AXIS, "axis 2");
    g = sound_graph();
    g->nodes.items[3].attribute_size = 0;
    expect_damage(g, RLXVK_E_ATTR, "0 bytes of attributes");
    g = sound_graph();
    g->nodes.items[0].dtype = RLXVK_U8;
    expect_damage(g, RLXVK_E_DTYPE, "raw U8 bytes");
    g = sound_graph();
    g->nodes.items[1].op = OP_COUNT;
    expect_damage(g, RLXVK_E_UNKNOWN_OP, "node 1");
    g = sound_graph();
    g->outputs.count = 0;
    expect_damage(g, RLXVK_E_NO_OUTPUTS, "no output");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_multiply),
        cmocka_unit_test(public_shape_helpers),
        cmocka_unit_test(shapes_broadcast),
        cmocka_unit_test(shapes_stride),
        cmocka_unit_test(dtypes_promote),
        cmocka_unit_test(dtypes_have_names_and_sizes),
        cmocka_unit_test(dtypes_widen),
        cmocka_unit_test(dtypes_narrow),
        cmocka_unit_test(halves_round_trip),
        cmocka_unit_test(errors_stick),
        cmocka_unit_test(tensors_must_be_the_graphs),
        cmocka_unit_test(an_error_can_be_cleared),
        cmocka_unit_test(names_are_kept),
        cmocka_unit_test(names_have_rules),
        cmocka_unit_test(names_are_found),
        cmocka_unit_test(constants_have_a_size),
        cmocka_unit_test(damage_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
