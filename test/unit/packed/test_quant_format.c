/*
 * Packed formats: the table of formats, blocks with known values, blocks that can be checked by
 * hand, and 16-bit floats.
 */
#include "args/packed.h"
#include "graph/half.h"
#include "op/packed/quant_format.h"
#include "op/packed/quant_grid.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h> /* after base.h, whose status_fail() it hides */

typedef struct overwrite {
    int offset; /* -1: none */
    int size;
    uint8_t bytes[4];
} overwrite;

/* Byte o of the block is (29 o + 7) mod 256, except for the bytes that are overwritten. The
 * expected values are exact. */
static const struct block_case {
    const char *name;
    overwrite overwrites[2];
    struct {
        int index;
        float value;
    } values[8]; /* ends at the first index 0 that repeats */
    double sum, absolute_sum;
} block_cases[] = {
    {"Q4_0", {{0, 2, {0, 0x38}}}, {{0, -3.5f}, {1, 3}, {15, -2}, {16, -2}, {31, 3.5f}}, -2.5, 61.5},
    {"Q4_1",
     {{0, 2, {0, 0x38}}, {2, 2, {0, 0xb4}}},
     {{0, 5.25f}, {1, 3.75f}, {15, 6.75f}, {16, 3.25f}, {31, 0.75f}},
     114.5,
     115.5},
    {"Q5_0", {{0, 2, {0, 0x38}}}, {{0, 2.5f}, {1, -7}, {15, -4}, {16, 5.5f}, {31, 3}}, -8.5, 107.5},
    {"Q5_1",
     {{0, 2, {0, 0x38}}, {2, 2, {0, 0xb4}}},
     {{0, 15.25f}, {1, 13.75f}, {15, 8.75f}, {16, 14.75f}, {31, 12.75f}},
     252.5,
     253},
    {"Q8_0",
     {{0, 2, {0, 0x38}}},
     {{0, 32.5f}, {1, 47}, {15, -6}, {16, 8.5f}, {31, -30}},
     -88,
     1096},
    {"Q2_K",
     {{80, 2, {0, 0x38}}, {82, 2, {0, 0x34}}},
     {{0, 10.5f},
      {1, 0},
      {31, 3.5f},
      {32, -0.5f},
      {100, -0.25f},
      {128, 19},
      {200, 0},
      {255, 12.25f}},
     1056,
     1335.5},
    {"Q3_K",
     {{108, 2, {0, 0x38}}},
     {{0, 34.5f}, {1, -46}, {31, 28}, {32, -7.5f}, {100, 0}, {128, 9}, {200, 21}, {255, -31.5f}},
     84,
     4954},
    {"Q4_K",
     {{0, 2, {0, 0x38}}, {2, 2, {0, 0x34}}},
     {{0, 194.75f},
      {1, 106.25f},
      {31, 283.25f},
      {32, 153},
      {100, 124.5f},
      {128, 53},
      {200, 335.25f},
      {255, 80.25f}},
     35348,
     35562},
    {"Q5_K",
     {{0, 2, {0, 0x38}}, {2, 2, {0, 0x34}}},
     {{0, 666.75f},
      {1, 106.25f},
      {31, 283.25f},
      {32, 273},
      {100, 214.5f},
      {128, 205},
      {200, 335.25f},
      {255, 370.25f}},
     75188,
     75330.5},
    {"Q6_K",
     {{208, 2, {0, 0x20}}},
     {{0, -10.2421875f},
      {1, 12.46875f},
      {31, -2.1875f},
      {32, -0.0703125f},
      {100, 15.5390625f},
      {128, -14.5546875f},
      {200, -8.203125f},
      {255, 5.71875f}},
     -11.59375,
     2067.859375},
    {"Q8_K",
     {{0, 4, {0, 0, 0, 0x3f}}},
     {{0, 61.5f},
      {1, -52},
      {31, -1},
      {32, 13.5f},
      {100, -24.5f},
      {128, -2.5f},
      {200, 17.5f},
      {255, 47}},
     -64,
     8192},
    {"IQ4_NL",
     {{0, 2, {0, 0x38}}},
     {{0, -52}, {1, 44.5f}, {15, -24.5f}, {16, -24.5f}, {31, 56.5f}},
     -13,
     857},
    {"IQ4_XS",
     {{0, 2, {0, 0x30}}},
     {{0, -70.625f},
      {1, -33.125f},
      {31, -15.625f},
      {32, -353.125f},
      {100, 56.875f},
      {128, 70.625f},
      {200, 17.5f},
      {255, 13.125f}},
     803.875,
     24900.125},
    {"IQ2_XXS",
     {{0, 2, {0, 0x38}}},
     {{0, -0.5f},
      {1, 0.5f},
      {31, -1.5625f},
      {32, -48.4375f},
      {100, 12.5f},
      {128, -10.5f},
      {200, 7.5f},
      {255, 34.9375f}},
     -768.0625,
     5639.0625},
    {"IQ2_XS",
     {{0, 2, {0, 0x38}}},
     {{0, -8.0625f},
      {1, -8.0625f},
      {31, 8.5f},
      {32, -14.5f},
      {100, 45.6875f},
      {128, -29.5625f},
      {200, 83.3125f},
      {255, -4.5f}},
     51,
     4900.75},
    {"IQ2_S",
     {{0, 2, {0, 0x38}}},
     {{0, -9.5f},
      {1, 51.0625f},
      {31, 20.3125f},
      {32, -20.3125f},
      {100, -2.6875f},
      {128, -13.5f},
      {200, 23.4375f},
      {255, 3.5f}},
     301.1875,
     5208.5625},
    {"IQ3_XXS",
     {{0, 2, {0, 0x38}}},
     {{0, -67.5f},
      {1, 94.5f},
      {31, -13.5f},
      {32, -31.5f},
      {100, -3.5f},
      {128, -162.75f},
      {200, 66.5f},
      {255, 2.5f}},
     -205.25,
     11436.75},
    {"IQ3_S",
     {{0, 2, {0, 0x38}}},
     {{0, -142.5f},
      {1, 85.5f},
      {31, -47.5f},
      {32, -0.5f},
      {100, 7.5f},
      {128, -17.5f},
      {200, 1.5f},
      {255, -6.5f}},
     569,
     7117},
    {"IQ1_S",
     {{0, 2, {0, 0x38}}},
     {{0, -0.9375f},
      {1, -8.4375f},
      {31, 6.5625f},
      {32, 3.9375f},
      {100, -0.3125f},
      {128, -0.8125f},
      {200, 0.6875f},
      {255, -0.1875f}},
     -76,
     713.5},
    /* Byte o of 48 .. 55, with the top nibbles of its four u16 set to 0, 0, 8, 3, so that d =
     * 0.5. */
    {"IQ1_M",
     {{48, 4, {0x77, 0x04, 0xb1, 0x0e}}, {52, 4, {0xeb, 0x88, 0x25, 0x32}}},
     {{0, 8.4375f},
      {1, 0.9375f},
      {31, -0.8125f},
      {32, -1.3125f},
      {100, -2.1875f},
      {128, -3.9375f},
      {200, 6.1875f},
      {255, 0.1875f}},
     55,
     672.375},
    {"TQ1_0",
     {{52, 2, {0, 0x38}}},
     {{0, -0.5f},
      {1, -0.5f},
      {31, 0},
      {32, -0.5f},
      {100, 0.5f},
      {128, -0.5f},
      {200, -0.5f},
      {255, 0.5f}},
     -1.5,
     86.5},
    {"TQ2_0",
     {{64, 2, {0, 0x38}}},
     {{0, 1}, {1, -0.5f}, {31, 0.5f}, {32, 0}, {100, 0}, {128, 1}, {200, -0.5f}, {255, -0.5f}},
     62.5,
     127.5},
    {"MXFP4", {{0, 1, {126}}}, {{0, 1}, {1, 0.25f}, {15, 3}, {16, 0.5f}, {31, -1.5f}}, 2.5, 34.5},
    {"NVFP4",
     {{0, 4, {0x38, 0x30, 0x40, 0x01}}},
     {{0, -1.5f}, {1, -0.0f}, {15, 2}, {16, 0.75f}, {31, 0.5f}, {32, -3}, {63, -0.01171875f}},
     -17.7548828125,
     125.3271484375},
    {"Q1_0",
     {{0, 2, {0, 0x38}}},
     {{0, 0.5f}, {1, -0.5f}, {8, -0.5f}, {63, -0.5f}, {64, 0.5f}, {127, 0.5f}},
     2,
     64},
    {"Q2_0",
     {{0, 2, {0, 0x38}}},
     {{0, 0}, {1, -0.5f}, {15, 0.5f}, {16, 0}, {31, -0.5f}, {32, 0}, {63, 1}},
     17,
     31},
};

static void make_block(const struct block_case *test, uint8_t *block)
{
    for (uint32_t o = 0; o < quant_format_find_name(test->name)->block_bytes; o++)
        block[o] = (uint8_t)(29 * o + 7);
    for (size_t i = 0; i < 2; i++)
        memcpy(block + test->overwrites[i].offset, test->overwrites[i].bytes,
               (size_t)test->overwrites[i].size);
}

static void test_blocks(void **state)
{
    (void)state;
    for (size_t c = 0; c < ARRAY_COUNT(block_cases); c++) {
        const struct block_case *test = &block_cases[c];
        const quant_format *format = quant_format_find_name(test->name);
        uint8_t block[292];
        float y[QUANT_MAX_BLOCK];
        double sum = 0, absolute_sum = 0;
        assert_non_null(format);
        make_block(test, block);
        assert_int_equal(quant_decode_row(format->type, block, format->block_elements, y),
                         RLXVK_OK);
        for (size_t i = 0; i < 8 && (i == 0 || test->values[i].index > 0); i++)
            assert_int_equal(f32_bits(y[test->values[i].index]), f32_bits(test->values[i].value));
        for (uint32_t i = 0; i < format->block_elements; i++) {
            sum += y[i];
            absolute_sum += fabs(y[i]);
        }
        assert_true(sum == test->sum && absolute_sum == test->absolute_sum);
    }
}

/* Encodes the values of the same blocks again. They may change by `error`, the largest |difference|
 * in units of the largest |value|. Grid formats have no encoder. */
static void test_encoded_again(void **state)
{
    static const struct {
        const char *name;
        float error;
    } rows[] = {
        {"Q4_0", 1.0f / 8},      {"Q4_1", 0.5f / 15}, {"Q5_0", 1.0f / 16},  {"Q5_1", 0.5f / 31},
        {"Q8_0", 0.51f / 127},   {"Q2_K", 1.3f / 3},  {"Q3_K", 1.1f / 4},   {"Q4_K", 1.3f / 15},
        {"Q5_K", 1.6f / 31},     {"Q6_K", 1.3f / 32}, {"Q8_K", 0.5f / 127}, {"IQ4_NL", 15.0f / 127},
        {"IQ4_XS", 17.0f / 127}, {"TQ1_0", 0},        {"TQ2_0", 0.5f},      {"MXFP4", 0},
        {"NVFP4", 0.22f},        {"Q1_0", 0},         {"Q2_0", 0},
    };
    size_t encoders = 0;
    (void)state;
    for (size_t r = 0; r < ARRAY_COUNT(rows); r++)
        for (size_t c = 0; c < ARRAY_COUNT(block_cases); c++) {
            const quant_format *format = quant_format_find_name(rows[r].name);
            uint8_t block[QUANT_MAX_BYTES];
            float x[QUANT_MAX_BLOCK], y[QUANT_MAX_BLOCK], largest = 0;
            if (strcmp(block_cases[c].name, rows[r].name))
                continue;
            make_block(&block_cases[c], block);
            encoders++;
            assert_int_equal(quant_decode_row(format->type, block, format->block_elements, x),
                             RLXVK_OK);
            assert_int_equal(quant_encode_row(format->type, x, format->block_elements, block),
                             RLXVK_OK);
            assert_int_equal(quant_decode_row(format->type, block, format->block_elements, y),
                             RLXVK_OK);
            for (uint32_t i = 0; i < format->block_elements; i++)
                largest = fmaxf(largest, fabsf(x[i]));
            for (uint32_t i = 0; i < format->block_elements; i++)
                assert_true(fabsf(x[i] - y[i]) <= rows[r].error * largest);
        }
    assert_int_equal(encoders, 19);
}

/* Blocks whose values are simple enough to need no table. */
static void test_plain_blocks(void **state)
{
    uint8_t q4[144] = {0, 0x3c, 0, 0x3c, 1, 1, 1, 1}, q6[210] = {0}, q2[84], q3[110] = {0};
    float y[256];
    (void)state;
    memset(q4 + 16, 0x77, 128);
    assert_int_equal(quant_decode_row(QUANT_Q4_K, q4, 256, y), RLXVK_OK);
    for (int i = 0; i < 256; i++)
        assert_true(y[i] == (i < 128 ? 7 : 0));

    memset(q6 + 128, 0xff, 64);
    memset(q6 + 192, 0xff, 16);
    q6[209] = 0x3c;
    assert_int_equal(quant_decode_row(QUANT_Q6_K, q6, 256, y), RLXVK_OK);
    for (int i = 0; i < 256; i++)
        assert_true(y[i] == -16);

    memset(q2, 1, 16);
    memset(q2 + 16, 0xff, 64);
    memcpy(q2 + 80, "\0\x3c\0\0", 4);
    assert_int_equal(quant_decode_row(QUANT_Q2_K, q2, 256, y), RLXVK_OK);
    for (int i = 0; i < 256; i++)
        assert_true(y[i] == 3);

    q3[109] = 0x3c;
    assert_int_equal(quant_decode_row(QUANT_Q3_K, q3, 256, y), RLXVK_OK);
    for (int i = 0; i < 256; i++)
        assert_true(y[i] == 128);
}

static void test_table(void **state)
{
    static const uint32_t withdrawn[] = {4, 5, 31, 32, 33, 36, 37, 38, 43, 1000, UINT32_MAX};
    float y[1];
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(withdrawn); i++) {
        assert_null(quant_format_find(withdrawn[i]));
        assert_int_equal(quant_row_bytes(withdrawn[i], 256), 0);
        assert_int_equal(quant_decode_row(withdrawn[i], "", 0, y), RLXVK_E_UNSUPPORTED);
    }
    for (uint32_t i = 0; i < 43; i++)
        if (quant_format_find(i))
            assert_ptr_equal(quant_format_find_name(quant_format_find(i)->name),
                             quant_format_find(i));
    assert_int_equal(quant_format_find_name("q4_k")->type, QUANT_Q4_K);
    assert_null(quant_format_find_name("q4_"));
    assert_null(quant_format_find_name("q4_kk"));
    assert_int_equal(quant_row_bytes(QUANT_Q6_K, 512), 420);
    assert_int_equal(quant_row_bytes(QUANT_Q6_K, 511), 0);
    assert_int_equal(quant_row_bytes(QUANT_F64, UINT64_MAX), 0);
    assert_int_equal(quant_decode_row(QUANT_Q8_0, "", 31, y), RLXVK_E_SHAPE);
}

/* Each id of the public header needs a row, because otherwise no call accepts it. */
static void test_ids_have_rows(void **state)
{
    char line[256];
    uint32_t ids = 0, weights = 0;
    bool inside = false;
    FILE *header = fopen("include/rlxvk_ops.h", "r");
    (void)state;
    assert_non_null(header);
    while (fgets(line, sizeof line, header)) {
        inside = inside ? *line != '}' : strncmp(line, "typedef enum rlxvk_quant_format", 31) == 0;
        ids += inside && strncmp(line, "    RLXVK_", 10) == 0;
    }
    fclose(header);
    for (uint32_t type = 0; type < QUANT_TYPES; type++)
        weights += quant_format_find(type) && quant_format_find(type)->weight;
    assert_int_equal(ids, weights);
}

/* The data for kernels, checks and encoders must agree with the blocks. */
static void test_rows(void **state)
{
    (void)state;
    for (uint32_t type = 0; type < QUANT_TYPES; type++) {
        const quant_format *f = quant_format_find(type);
        uint32_t grid;
        if (!f)
            continue;
        quant_grid_find(type, &grid);
        assert_int_equal(f->type, type);
        assert_int_equal(f->weight && f->group == DEQUANT_GRID, grid != 0);
        assert_int_equal(f->weight && f->block_elements > 1, f->distance != 0);
        assert_true(f->group <= DEQUANT_GRID && f->distance % 16 == 0);
        assert_true(!f->integers || f->group == DEQUANT_COMMON);
        assert_true(!f->weight || f->scales[0].kind != QUANT_SCALE_NONE);
        assert_true(!quant_can_encode(type) || f->weight);
        for (int i = 0; f->scales[i].kind != QUANT_SCALE_NONE; i++)
            assert_true(f->scales[i].offset < f->block_bytes && *f->scales[i].name);
    }
}

/* The magnitude is |scale term| + |min term|, so it is at least |y|. y is the sum of the same
 * terms. */
static void test_magnitude(void **state)
{
    uint8_t block[144];
    float y[256], magnitude[256];
    (void)state;
    for (uint32_t o = 0; o < sizeof block; o++)
        block[o] = (uint8_t)(29 * o + 7);
    memcpy(block, "\0\x38\0\x34", 4);
    assert_int_equal(quant_decode_row(QUANT_Q4_K, block, 256, y), RLXVK_OK);
    assert_int_equal(quant_decode_row_magnitude(QUANT_Q4_K, block, 256, magnitude), RLXVK_OK);
    for (int i = 0; i < 256; i++)
        assert_true(magnitude[i] >= fabsf(y[i]));
    /* Element 0: scale code 59, quant 7, minimum code 47: 0.5 * 59 * 7 - 0.25 * 47. */
    assert_true(y[0] == 206.5f - 11.75f && magnitude[0] == 206.5f + 11.75f);
}

/* Each binary16 value survives conversion to f32 and back. The midpoint of two neighbours is
 * rounded to the even one. */
static void test_half(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        float value = f16_to_f32((uint16_t)h);
        if (isnan(value))
            assert_true((h & 0x7fff) > 0x7c00 && isnan(f16_to_f32(f32_to_f16(value))));
        else
            assert_int_equal(f32_to_f16(value), h);
        if ((h & 0x7fff) < 0x7bff) {
            float middle = (value + f16_to_f32((uint16_t)(h + 1))) / 2;
            float away = f32_from_bits(f32_bits(middle) + 1),
                  near = f32_from_bits(f32_bits(middle) - 1);
            assert_int_equal(f32_to_f16(middle), h & 1 ? h + 1 : h);
            assert_int_equal(f32_to_f16(away), h + 1);
            assert_int_equal(f32_to_f16(near), h);
        }
    }
    assert_int_equal(f32_to_f16(65519.996f), 0x7bff);
    assert_int_equal(f32_to_f16(65520.0f), 0x7c00);
    assert_int_equal(f32_to_f16(-1e30f), 0xfc00);
    assert_int_equal(f32_to_bf16(f32_from_bits(0x3f808000)), 0x3f80);
    assert_int_equal(f32_to_bf16(f32_from_bits(0x3f818000)), 0x3f82);
    assert_int_equal(f32_to_bf16(f32_from_bits(0xff800001)), 0xffc0);
    assert_true(bf16_to_f32(0xc2f7) == -123.5f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks),       cmocka_unit_test(test_encoded_again),
        cmocka_unit_test(test_plain_blocks), cmocka_unit_test(test_table),
        cmocka_unit_test(test_magnitude),    cmocka_unit_test(test_ids_have_rows),
        cmocka_unit_test(test_rows),         cmocka_unit_test(test_half),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
