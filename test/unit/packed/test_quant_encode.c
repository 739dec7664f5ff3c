/*
 * Encoders of packed rows. The test needs no second encoder. It fills the code bytes of a block
 * with every pattern and decodes them. This gives all values that the block's scales can express,
 * and the chosen code must be the nearest one. Another test checks that the scales are sensible.
 */
#include "op/packed/quant_format.h"
#include <rlxvk_quant.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h> /* after base.h, whose status_fail() it hides */

enum { ROW = 4096 };

typedef struct region {
    uint32_t offset, size;
} region;

/* Some formats round scales relative to each other, so they drift a little with every round. */
enum stability { DRIFTS, SAME_VALUES, SAME_BYTES };

/*
 * One line for each format:
 *   low, high   the bytes that hold the low and the high parts of the codes
 *   error       the largest |x - y|, in units of the block's largest |x|, if all sub-blocks are
 *               alike
 *   slack       how far a value may be from the nearest one, in units of the largest |y|; codes may
 *               miss it because they are chosen before the scale is rounded to binary16
 *   digest      of the bytes of sample_row, by an independent implementation of the rules; 0 if the
 *               format's rule is this library's own
 */
static const struct encoder_case {
    uint32_t type;
    region low, high;
    float error, slack;
    uint64_t digest;
    enum stability again; /* of encoding the decoded values */
} cases[] = {
    {QUANT_Q4_0, {2, 16}, {0, 0}, 1.01f / 8, 0x1p-10f, 0xfbe2952e4e9cd984, SAME_BYTES},
    {QUANT_Q4_1, {4, 16}, {0, 0}, 1.02f / 15, 0x1p-9f, 0x147894cace1d742d, SAME_BYTES},
    {QUANT_Q5_0, {6, 16}, {2, 4}, 1.01f / 16, 0x1p-10f, 0x66efc460a5222966, SAME_BYTES},
    {QUANT_Q5_1, {8, 16}, {4, 4}, 1.04f / 31, 0x1p-9f, 0x5406ad50c672a1ab, SAME_BYTES},
    {QUANT_Q8_0, {2, 32}, {0, 0}, 0.6f / 127, 0x1p-10f, 0x8e7fe1e70735a913, SAME_BYTES},
    {QUANT_IQ4_NL, {2, 16}, {0, 0}, 15.0f / 127, 0x1p-10f, 0xede9087cf7bcf76c, SAME_BYTES},
    {QUANT_MXFP4, {1, 16}, {0, 0}, 0.25f, 0, 0x8cc347ae065a1cf7, SAME_BYTES},
    {QUANT_NVFP4, {4, 32}, {0, 0}, 0.22f, 0, 0x2bd92d09729f6a9c, DRIFTS},
    {QUANT_Q1_0, {2, 16}, {0, 0}, 1, 0, 0x005e31f043a5eb69, SAME_BYTES},
    {QUANT_Q2_0, {2, 16}, {0, 0}, 0.501f, 0x1p-10f, 0, SAME_VALUES},
    {QUANT_Q2_K, {16, 64}, {0, 0}, 1.1f / 3, 0, 0x1b10b5608082ea75, DRIFTS},
    {QUANT_Q3_K, {32, 64}, {0, 32}, 1.1f / 4, 0, 0xf874e3bc0a3da920, DRIFTS},
    {QUANT_Q4_K, {16, 128}, {0, 0}, 1.3f / 15, 0, 0xf4f107bbe29554fe, DRIFTS},
    {QUANT_Q5_K, {48, 128}, {16, 32}, 1.6f / 31, 0, 0x18370c684975e48a, DRIFTS},
    {QUANT_Q6_K, {0, 128}, {128, 64}, 1.3f / 32, 0, 0x1412665cbaf87b86, DRIFTS},
    {QUANT_Q8_K, {4, 256}, {0, 0}, 0.51f / 127, 0, 0xcadbb61d46f086d9, SAME_VALUES},
    {QUANT_IQ4_XS, {8, 128}, {0, 0}, 17.0f / 127, 0, 0, DRIFTS},
    {QUANT_TQ1_0, {0, 52}, {0, 0}, 0.501f, 0x1p-10f, 0, SAME_BYTES},
    {QUANT_TQ2_0, {0, 64}, {0, 0}, 0.501f, 0x1p-10f, 0xfebee4cb5ce87f10, SAME_BYTES},
};

static const quant_format *format_of(const struct encoder_case *c)
{
    return quant_format_find(c->type);
}

/* ---- Rows of values ---- */

static int32_t next_integer(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (int32_t)(*seed >> 8) - (1 << 23);
}

static void uniform_row(float *x)
{
    uint32_t seed = 7;
    for (int i = 0; i < ROW; i++)
        x[i] = (float)next_integer(&seed) * 0x1p-22f;
}

/* Sixteen values each, whose magnitudes differ by up to 2^10. Among the groups of 32, one in eight
 * has only one sign, another has few values (ties), and one in sixteen is zeros. */
static void sample_row(float *x)
{
    uint32_t seed = 1;
    for (int i = 0; i < ROW; i++) {
        int32_t v = next_integer(&seed);
        if (i / 32 % 8 == 5)
            v = abs(v);
        if (i / 32 % 8 == 6)
            v = (v >> 20) * (1 << 20);
        if (i / 32 % 16 == 7)
            v = 0;
        x[i] = ldexpf((float)v, -23 - i / 16 * 7 % 11);
    }
}

static void encode(uint32_t type, const float *x, uint8_t *bytes)
{
    assert_int_equal(quant_encode_row(type, x, ROW, bytes), RLXVK_OK);
    assert_int_equal(quant_check_blocks(type, bytes, quant_row_bytes(type, ROW)), RLXVK_OK);
}

static void decode(uint32_t type, const uint8_t *bytes, float *y)
{
    assert_int_equal(quant_decode_row(type, bytes, ROW, y), RLXVK_OK);
}

/* ---- The nearest code ---- */

/* least[i] = distance from x[i] to the nearest value that element i of the block can have. */
static void nearest_distances(const struct encoder_case *c, const uint8_t *block, const float *x,
                              double *least)
{
    static const uint8_t high_patterns[] = {0x00, 0x55, 0xaa, 0xff};
    const quant_format *format = format_of(c);
    uint8_t filled[QUANT_MAX_BYTES];
    float y[QUANT_MAX_BLOCK];
    memcpy(filled, block, format->block_bytes);
    for (uint32_t i = 0; i < format->block_elements; i++)
        least[i] = INFINITY;
    for (uint32_t pattern = 0; pattern < 1024; pattern++) {
        memset(filled + c->low.offset, (int)(pattern / 4), c->low.size);
        memset(filled + c->high.offset, high_patterns[pattern % 4], c->high.size);
        assert_int_equal(quant_decode_row(c->type, filled, format->block_elements, y), RLXVK_OK);
        for (uint32_t i = 0; i < format->block_elements; i++)
            least[i] = fmin(least[i], fabs((double)x[i] - y[i]));
    }
}

static void check_nearest(const struct encoder_case *c, const float *x)
{
    const quant_format *format = format_of(c);
    uint32_t length = format->block_elements;
    uint8_t bytes[ROW * 2];
    float y[ROW];
    double least[QUANT_MAX_BLOCK];
    encode(c->type, x, bytes);
    decode(c->type, bytes, y);
    for (uint32_t block = 0; block < ROW / length; block += 256 / length + 1) {
        const float *from = x + block * length, *to = y + block * length;
        float largest = 0;
        nearest_distances(c, bytes + block * format->block_bytes, from, least);
        for (uint32_t i = 0; i < length; i++)
            largest = fmaxf(largest, fmaxf(fabsf(to[i]), fabsf(from[i])));
        for (uint32_t i = 0; i < length; i++)
            assert_true(fabs((double)from[i] - to[i]) <=
                        least[i] + (double)largest * (c->slack + 0x1p-22f));
    }
}

static void test_nearest(void **state)
{
    float x[ROW];
    (void)state;
    for (size_t c = 0; c < ARRAY_COUNT(cases); c++) {
        uniform_row(x);
        check_nearest(&cases[c], x);
        sample_row(x);
        check_nearest(&cases[c], x);
    }
}

/* ---- Scales ---- */

static void test_error(void **state)
{
    float x[ROW], y[ROW];
    uint8_t bytes[ROW * 2];
    (void)state;
    uniform_row(x);
    for (size_t c = 0; c < ARRAY_COUNT(cases); c++) {
        uint32_t length = format_of(&cases[c])->block_elements;
        encode(cases[c].type, x, bytes);
        decode(cases[c].type, bytes, y);
        for (uint32_t i = 0; i < ROW; i++) {
            const float *block = x + i / length * length;
            float largest = 0;
            for (uint32_t j = 0; j < length; j++)
                largest = fmaxf(largest, fabsf(block[j]));
            assert_true(fabsf(x[i] - y[i]) <= cases[c].error * largest);
        }
    }
}

static uint64_t digest(const uint8_t *bytes, uint64_t size)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (uint64_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash;
}

static void test_bytes(void **state)
{
    float x[ROW];
    uint8_t bytes[ROW * 2];
    (void)state;
    sample_row(x);
    for (size_t c = 0; c < ARRAY_COUNT(cases); c++) {
        encode(cases[c].type, x, bytes);
        if (cases[c].digest)
            assert_int_equal(digest(bytes, quant_row_bytes(cases[c].type, ROW)), cases[c].digest);
    }
}

/* ---- Fixed points, zeros, outliers ---- */

/* Encodes the decoded values again. If the block's extremes are codes that fix the scale, the
 * values stay the same. */
static void test_fixed_points(void **state)
{
    float x[ROW], y[ROW], z[ROW];
    uint8_t bytes[ROW * 2], again[ROW * 2];
    (void)state;
    for (size_t c = 0; c < ARRAY_COUNT(cases); c++) {
        sample_row(x);
        encode(cases[c].type, x, bytes);
        decode(cases[c].type, bytes, y);
        encode(cases[c].type, y, again);
        if (cases[c].again == SAME_BYTES)
            assert_memory_equal(bytes, again, quant_row_bytes(cases[c].type, ROW));
        decode(cases[c].type, again, z);
        for (int i = 0; i < ROW && cases[c].again != DRIFTS; i++)
            assert_true(y[i] == z[i]);
    }
}

/* Blocks of values that a format holds exactly, including its extremes. */
static const struct exact_case {
    uint32_t type;
    float scale, offset; /* value: scale * code + offset */
    int lowest, count;   /* codes */
} exact_cases[] = {
    {QUANT_Q4_0, 0.25f, 0, -8, 16},   {QUANT_Q4_0, -0.25f, 0, -8, 16},
    {QUANT_Q4_1, 0.5f, -3, 0, 16},    {QUANT_Q5_0, 3, 0, -16, 32},
    {QUANT_Q5_1, 2, 100, 0, 32},      {QUANT_Q8_0, 0.5f, 0, -127, 255},
    {QUANT_Q8_K, 0.5f, 0, -127, 255}, {QUANT_Q1_0, 7, 0, -1, 0},
    {QUANT_Q2_0, 0.5f, 0, -1, 4},     {QUANT_Q2_0, -0.5f, 0, -1, 4},
    {QUANT_TQ1_0, 3, 0, -1, 3},       {QUANT_TQ2_0, 3, 0, -1, 3},
    {QUANT_Q2_K, 15, 0, 0, 4},        {QUANT_Q2_K, 15, -15, 0, 4},
    {QUANT_Q3_K, 32, 0, -4, 8},       {QUANT_Q4_K, 63, 0, 0, 16},
    {QUANT_Q4_K, 63, -126, 0, 16},    {QUANT_Q5_K, 63, -63, 0, 32},
    {QUANT_Q6_K, 128, 0, -32, 64},
};

static void test_exact_values(void **state)
{
    float x[ROW], y[ROW];
    uint8_t bytes[ROW * 2];
    (void)state;
    for (size_t c = 0; c < ARRAY_COUNT(exact_cases); c++) {
        const struct exact_case *e = &exact_cases[c];
        int count = e->count ? e->count : 2, step = e->count ? 1 : 2;
        uint32_t length = quant_format_find(e->type)->block_elements;
        /* Each group of 16 values has both extremes. */
        for (uint32_t i = 0; i < ROW; i++) {
            int code = i % 16 == 0 ? 0 : i % 16 == 1 ? count - 1 : (int)(i * 7 % length) % count;
            x[i] = e->scale * (float)(e->lowest + step * code) + e->offset;
        }
        encode(e->type, x, bytes);
        decode(e->type, bytes, y);
        for (int i = 0; i < ROW; i++)
            assert_true(x[i] == y[i]);
    }
}

/* The levels of floating-point codes times a power of two. Each group has the largest level. */
static void test_exact_levels(void **state)
{
    static const uint32_t types[] = {QUANT_MXFP4, QUANT_NVFP4};
    float x[ROW], y[ROW];
    uint8_t bytes[ROW * 2];
    (void)state;
    for (size_t t = 0; t < ARRAY_COUNT(types); t++) {
        for (int i = 0; i < ROW; i++)
            x[i] = quant_fp4_levels[i % 16] * ldexpf(1, i / 64 % 8 - 5);
        encode(types[t], x, bytes);
        decode(types[t], bytes, y);
        for (int i = 0; i < ROW; i++)
            assert_true(x[i] == y[i]);
    }
    for (int i = 0; i < ROW; i++)
        x[i] = (float)quant_iq4_levels[i % 16] * (i / 32 % 2 ? 0.5f : -2.0f);
    encode(QUANT_IQ4_NL, x, bytes);
    decode(QUANT_IQ4_NL, bytes, y);
    for (int i = 0; i < ROW; i++)
        assert_true(x[i] == y[i]);
}

static void test_zeros(void **state)
{
    float x[ROW] = {0}, y[ROW];
    uint8_t bytes[ROW * 2];
    (void)state;
    for (size_t c = 0; c < ARRAY_COUNT(cases); c++) {
        encode(cases[c].type, x, bytes);
        decode(cases[c].type, bytes, y);
        for (int i = 0; i < ROW; i++)
            assert_true(y[i] == 0);
    }
}

/* If one value is a thousand times the others, it must survive, and no error may exceed the step of
 * a code. */
static void test_outlier(void **state)
{
    float x[ROW], y[ROW];
    uint8_t bytes[ROW * 2];
    (void)state;
    for (size_t c = 0; c < ARRAY_COUNT(cases); c++) {
        uint32_t length = format_of(&cases[c])->block_elements;
        float lost = cases[c].type == QUANT_MXFP4 ? 464 : 300; /* MXFP4: 6 of 7.8 units */
        uniform_row(x);
        for (uint32_t i = 5; i < ROW; i += length)
            x[i] = i / length % 2 ? -2000 : 2000;
        encode(cases[c].type, x, bytes);
        decode(cases[c].type, bytes, y);
        for (uint32_t i = 0; i < ROW; i++)
            assert_true(fabsf(x[i] - y[i]) <= cases[c].error * 2000);
        for (uint32_t i = 5; i < ROW && cases[c].type != QUANT_Q1_0; i += length)
            assert_true(fabsf(y[i] - x[i]) <= lost);
    }
}

/* If scales are too small for binary16, tiny values become zeros. No result may be infinite or
 * NaN. */
static void test_tiny(void **state)
{
    float x[ROW], y[ROW];
    uint8_t bytes[ROW * 2];
    (void)state;
    for (size_t c = 0; c < ARRAY_COUNT(cases); c++)
        for (int exponent = -149; exponent < -100; exponent += 7) {
            for (int i = 0; i < ROW; i++)
                x[i] = i % 3 ? ldexpf((float)(i % 5 - 2), exponent) : 0;
            encode(cases[c].type, x, bytes);
            decode(cases[c].type, bytes, y);
            for (int i = 0; i < ROW; i++)
                assert_true(fabsf(y[i]) <= ldexpf(4, exponent));
        }
}

/* ---- Refusals ---- */

static void expect_refusal(uint32_t type, const float *x, uint64_t k, rlxvk_status status,
                           const char *words)
{
    uint8_t bytes[ROW * 2], untouched[ROW * 2];
    memset(bytes, 0xa5, sizeof bytes);
    memset(untouched, 0xa5, sizeof untouched);
    assert_int_equal(quant_encode_row(type, x, k, bytes), status);
    assert_memory_equal(bytes, untouched, sizeof bytes);
    assert_non_null(strstr(rlxvk_last_error(), words));
}

static void test_refusals(void **state)
{
    static const uint32_t none[] = {QUANT_IQ1_S, QUANT_IQ2_XXS, QUANT_IQ3_S, QUANT_Q8_1,
                                    QUANT_I8,    QUANT_F64,     4,           1000};
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    float x[ROW];
    (void)state;
    uniform_row(x);
    for (size_t i = 0; i < ARRAY_COUNT(none); i++)
        expect_refusal(none[i], x, 0, RLXVK_E_UNSUPPORTED, "there are F32, F16, Q4_0");
    for (size_t c = 0; c < ARRAY_COUNT(cases); c++) {
        const quant_format *format = format_of(&cases[c]);
        expect_refusal(format->type, x, format->block_elements + 1, RLXVK_E_SHAPE, format->name);
        expect_refusal(format->type, x, format->block_elements / 2, RLXVK_E_SHAPE, "whole blocks");
        for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
            x[517] = bad[i];
            expect_refusal(format->type, x, ROW, RLXVK_E_RANGE, "value 517 of 4096");
        }
        x[517] = 0;
    }
}

/* Scales above 65504 are refused before anything is written. Formats with wider scales accept
 * them. */
static void test_overflow(void **state)
{
    static const uint32_t wide[] = {QUANT_Q8_K, QUANT_MXFP4, QUANT_NVFP4};
    float x[ROW];
    uint8_t bytes[ROW * 2];
    (void)state;
    for (size_t c = 0; c < ARRAY_COUNT(cases); c++) {
        bool takes = false;
        for (size_t i = 0; i < ARRAY_COUNT(wide); i++)
            takes = takes || wide[i] == cases[c].type;
        uniform_row(x);
        x[2050] = 3.4e38f;
        x[2051] = -3.4e38f;
        if (takes)
            encode(cases[c].type, x, bytes);
        else
            expect_refusal(cases[c].type, x, ROW, RLXVK_E_RANGE, "overflows binary16");
    }
    uniform_row(x);
    x[0] = 65504.0f * 8; /* the largest that Q4_0 holds */
    encode(QUANT_Q4_0, x, bytes);
}

/* ---- Plain elements ---- */

static void test_elements(void **state)
{
    const float x[] = {1, -0.0f, NAN, INFINITY, 65520, 1.00390625f};
    float y[6];
    uint8_t bytes[24];
    (void)state;
    assert_int_equal(rlxvk_quant_encode_row(RLXVK_QUANT_F32, x, 6, bytes), RLXVK_OK);
    assert_memory_equal(bytes, x, sizeof x);
    assert_int_equal(rlxvk_quant_encode_row(RLXVK_QUANT_F16, x, 6, bytes), RLXVK_OK);
    assert_int_equal(rlxvk_quant_decode_row(RLXVK_QUANT_F16, bytes, 6, y), RLXVK_OK);
    assert_true(y[0] == 1 && signbit(y[1]) && isnan(y[2]) && isinf(y[3]) && isinf(y[4]));
    assert_int_equal(rlxvk_quant_encode_row(RLXVK_QUANT_BF16, x, 6, bytes), RLXVK_OK);
    assert_int_equal(rlxvk_quant_decode_row(RLXVK_QUANT_BF16, bytes, 6, y), RLXVK_OK);
    assert_true(isnan(y[2]) && y[4] == 65536 && y[5] == 1);
    assert_int_equal(rlxvk_quant_row_bytes(RLXVK_Q6_K, 512), 420);
    assert_int_equal(rlxvk_quant_row_bytes(RLXVK_Q6_K, 100), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nearest),      cmocka_unit_test(test_error),
        cmocka_unit_test(test_bytes),        cmocka_unit_test(test_fixed_points),
        cmocka_unit_test(test_exact_values), cmocka_unit_test(test_exact_levels),
        cmocka_unit_test(test_zeros),        cmocka_unit_test(test_outlier),
        cmocka_unit_test(test_tiny),         cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_overflow),     cmocka_unit_test(test_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
