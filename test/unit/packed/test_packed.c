/*
 * Packed params on a device. Products must read the values that the encoders wrote. On matrix units
 * these are rounded to halves.
 *
 * The option check_packed must find every kind of bad scale or code, at any place, name it, and
 * write nothing.
 */
#include "args/packed.h"
#include "exec/executable.h"
#include "op/matmul/matmul.h"
#include "op/matmul/matrix_unit_choice.h"
#include "op/packed/dequant_choice.h"
#include "op/packed/quant_format.h"
#include "plan/schedule.h"
#include "support/harness.h"
#include "support/profiles.h"
#include <rlxvk_quant.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 3, K = 512 };

static const rlxvk_compile_options checked = {.check_packed = RLXVK_ON};

/* y = x w, with `ROWS` packed rows of w after `skip` unused bytes. The param is "w". */
static rlxvk_executable *product(uint32_t type, int64_t skip, const rlxvk_compile_options *options)
{
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    int64_t bytes = (int64_t)quant_row_bytes(type, K) * ROWS;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(1, K));
    rlxvk_tensor w = rlxvk_param(g, "w", RLXVK_U8, RLXVK_SHAPE(skip + bytes));
    if (skip)
        w = rlxvk_narrow(g, w, 0, skip, bytes);
    w = rlxvk_reshape(g, w, RLXVK_SHAPE(ROWS, bytes / ROWS));
    rlxvk_graph_output(g, rlxvk_dequant_matmul(g, x, w, (rlxvk_quant_format)type));
    expect_ok(rlxvk_compile(shared_context, g, options, &e));
    rlxvk_graph_destroy(g);
    return e;
}

/* Packs rows of values and reads each element by a product with a row of the identity. */
static void test_products(void **state)
{
    static const uint32_t types[] = {QUANT_Q4_0,  QUANT_Q5_1,  QUANT_Q3_K,  QUANT_Q5_K,
                                     QUANT_MXFP4, QUANT_TQ1_0, QUANT_IQ4_XS};
    float values[ROWS * K], decoded[ROWS * K], y[ROWS];
    uint8_t bytes[ROWS * K * 2];
    (void)state;
    for (int i = 0; i < ROWS * K; i++)
        values[i] = sinf((float)(i * i % 1009)) * (float)(1 + i % 7);
    for (size_t t = 0; t < ARRAY_COUNT(types); t++) {
        uint64_t row = quant_row_bytes(types[t], K);
        rlxvk_executable *e = product(types[t], 0, &checked);
        for (int r = 0; r < ROWS; r++) {
            expect_ok(rlxvk_quant_encode_row((rlxvk_quant_format)types[t], values + r * K, K,
                                             bytes + (uint64_t)r * row));
            expect_ok(rlxvk_quant_decode_row((rlxvk_quant_format)types[t],
                                             bytes + (uint64_t)r * row, K, decoded + r * K));
        }
        expect_ok(rlxvk_set_param_bytes(e, "w", bytes, ROWS * row));
        for (int p = 0; p < K; p += 37) {
            float x[K] = {0};
            rlxvk_run_input in = {"x", x, K, RLXVK_F32};
            rlxvk_run_output out = {0, y, ROWS, RLXVK_F32};
            x[p] = 1;
            expect_ok(rlxvk_run(e, &in, 1, &out, 1));
            for (int r = 0; r < ROWS; r++)
                assert_true(fabsf(y[r] - decoded[r * K + p]) <= 1e-5f);
        }
        rlxvk_executable_destroy(e);
    }
}

/* ---- On matrix units ---- */

#define F32      RLXVK_PRECISION_F32
#define F16      RLXVK_PRECISION_F16
#define BF16     RLXVK_PRECISION_BF16
#define SPLIT    RLXVK_PRECISION_SPLIT
#define PATIENCE 600000000000       /* ns, because software drivers compile in the first run */
enum { COLUMNS = 37, DEPTH = 256 }; /* columns of y: not a multiple of a tile, nor even */

/* Fills rows with values of many magnitudes. If the format has no encoder, they are bytes whose
 * halves are finite. */
static void fill_rows(uint32_t type, uint8_t *bytes)
{
    uint64_t row = quant_row_bytes(type, DEPTH);
    uint32_t state = type + 1;
    for (int j = 0; j < COLUMNS; j++) {
        float values[DEPTH], size = ldexpf(1, -2 * (j % 11));
        for (int p = 0; p < DEPTH; p++)
            values[p] = size * sinf((float)((j * DEPTH + p) * p % 1009));
        if (rlxvk_quant_encode_row((rlxvk_quant_format)type, values, DEPTH,
                                   bytes + (uint64_t)j * row) == RLXVK_OK)
            continue;
        for (uint64_t i = 0; i < row; i++) {
            state = state * 1664525 + 1013904223;
            bytes[(uint64_t)j * row + i] = state >> 24 & 0xbf;
        }
    }
}

/* y = w^T, because x is the identity. So y has the 16-bit values that `way` makes of the
 * weights. */
static void weights_by(const char *way, const char *tiles, rlxvk_precision precision, uint32_t type,
                       const uint8_t *bytes, float *y)
{
    const rlxvk_variant variants[] = {{"dequant", way}, {"matrix_packed", tiles}};
    const rlxvk_compile_options options = {.precision = precision,
                                           .variants = variants,
                                           .variant_count = 2,
                                           .timeout_ns = PATIENCE};
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    int64_t size = (int64_t)quant_row_bytes(type, DEPTH) * COLUMNS;
    float *x = calloc(DEPTH * DEPTH, sizeof *x);
    for (int p = 0; p < DEPTH; p++)
        x[p * (DEPTH + 1)] = 1;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor in = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(DEPTH, DEPTH));
    rlxvk_tensor w = rlxvk_param(g, "w", RLXVK_U8, RLXVK_SHAPE(size));
    rlxvk_graph_output(g, rlxvk_dequant_matmul(g, in, w, (rlxvk_quant_format)type));
    expect_ok(rlxvk_compile(shared_context, g, &options, &e));
    expect_ok(rlxvk_set_param_bytes(e, "w", bytes, (uint64_t)size));
    rlxvk_run_input input = {"x", x, DEPTH * DEPTH, RLXVK_F32};
    rlxvk_run_output output = {0, y, COLUMNS * DEPTH, RLXVK_F32};
    expect_ok(rlxvk_run(e, &input, 1, &output, 1));
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    free(x);
}

/* Weights may be unpacked before the product, or within it by tiles or in registers. Both must
 * round them to the same 16 bits. */
static void compare_ways(rlxvk_precision precision, const char *way, uint32_t type)
{
    static float before[COLUMNS * DEPTH], within[COLUMNS * DEPTH];
    static uint8_t bytes[COLUMNS * DEPTH * 4];
    fill_rows(type, bytes);
    weights_by("unpacked", "short", precision, type, bytes, before);
    weights_by(way, type % 2 ? "short" : "short_late", precision, type, bytes, within);
    for (int i = 0; i < COLUMNS * DEPTH; i++)
        if (!(before[i] == within[i]))
            fail_msg("%s in %s by %s: weight %d of row %d is %a, and %a before the product",
                     quant_format_find(type)->name, rlxvk_precision_name(precision), way,
                     i / COLUMNS, i % COLUMNS, (double)within[i], (double)before[i]);
}

/* Whether f16 arithmetic rounds a weight in registers more than once. */
static bool rounds_twice(uint32_t type)
{
    const quant_format *format = quant_format_find(type);
    return (format->affine && format->group <= DEQUANT_SMALL) || type == QUANT_Q6_K;
}

static void compare_on_units(rlxvk_precision precision, uint32_t type)
{
    const device_profile *profile = &shared_context->device->setup.profile;
    bool exact = precision == BF16 || !profile->half_rounding;
    if (matrix_unit(precision, profile).m == 0)
        return;
    compare_ways(precision, "matrix", type);
    if (exact || !rounds_twice(type))
        compare_ways(precision, "panel", type);
}

static void test_units(void **state)
{
    const device_profile *profile = &shared_context->device->setup.profile;
    (void)state;
    if (profile->matrix_f16.m == 0 && profile->matrix_bf16.m == 0)
        skip();
    for (uint32_t type = 0; type < QUANT_TYPES; type++) {
        const quant_format *format = quant_format_find(type);
        if (!format || !format->weight || format->block_elements == 1)
            continue;
        compare_on_units(F16, type);
        compare_on_units(BF16, type);
    }
}

/* Compares the weights by `way` with the decoded ones. The difference may be `part` of the weight
 * plus `rest` of the largest weight in its row. */
static void compare_weights(const char *way, uint32_t type, float part, float rest)
{
    static float y[COLUMNS * DEPTH], decoded[DEPTH];
    static uint8_t bytes[COLUMNS * DEPTH * 4];
    fill_rows(type, bytes);
    weights_by(way, "short", F16, type, bytes, y);
    for (int j = 0; j < COLUMNS; j++) {
        float largest = 0;
        expect_ok(rlxvk_quant_decode_row((rlxvk_quant_format)type,
                                         bytes + j * quant_row_bytes(type, DEPTH), DEPTH, decoded));
        for (int p = 0; p < DEPTH; p++)
            largest = fmaxf(largest, fabsf(decoded[p]));
        for (int p = 0; p < DEPTH; p++) {
            float w = decoded[p], got = y[p * COLUMNS + j];
            if (!(fabsf(got - w) <= part * fabsf(w) + rest * largest + 0x1p-24f))
                fail_msg("%s by %s: weight %d of row %d is %a, and %a decoded",
                         quant_format_find(type)->name, way, p, j, (double)got, (double)w);
        }
    }
}

/* How often weights are rounded in registers. For few rows, a weight of Q4_K and Q5_K is not
 * rounded, and one of Q6_K and Q8_0 is rounded once.
 *
 * For many rows, each weight is rounded once at the end. Before that, these are also rounded: for
 * Q6_K the code times its scale, and for Q4_K and Q5_K the min. If fma is two operations, so is the
 * value that the min is subtracted from or added to. These values together are at most three times
 * the row's largest. */
static void test_weights_from_registers(void **state)
{
    static const uint32_t few[] = {QUANT_Q8_0, QUANT_Q4_K, QUANT_Q5_K, QUANT_Q6_K};
    static const uint32_t twice[] = {QUANT_Q4_K, QUANT_Q5_K, QUANT_Q6_K, QUANT_Q4_1, QUANT_Q5_1};
    const device_profile *profile = &shared_context->device->setup.profile;
    const matmul_shape panel = {.m = DEPTH, .n = COLUMNS, .k = DEPTH, .batch = 1};
    (void)state;
    if (profile->matrix_f16.m == 0)
        skip();
    assert_non_null(dequant_panel_choose(&panel, F16, profile, VARIANT_NONE));
    for (size_t t = 0; t < ARRAY_COUNT(twice); t++) {
        assert_true(rounds_twice(twice[t]));
        compare_weights("panel", twice[t], twice[t] == QUANT_Q6_K ? 0x1p-10f : 0x1p-11f,
                        quant_format_find(twice[t])->affine ? 3 * 0x1p-11f : 0);
    }
    for (size_t t = 0; t < ARRAY_COUNT(few); t++) {
        bool affine = quant_format_find(few[t])->affine;
        const dequant_fragment_shape shape = {DEPTH, COLUMNS, !affine};
        if (dequant_fragment_choose(&shape, profile, VARIANT_NONE))
            compare_weights("fragment", few[t], affine ? 0 : 0x1p-11f, affine ? 0x1p-20f : 0);
    }
}

enum { MOST_KERNELS = 7 };

/* A product of `rows` rows and 4096 x 4096 weights on a GPU, and the kernels that it must use. */
typedef struct way_case {
    rlxvk_quant_format format;
    rlxvk_precision precision;
    int64_t rows;
    bool in_lanes;
    uint64_t prepared_bytes;
    uint16_t kernels[MOST_KERNELS]; /* the list ends with 0, which is none of them */
} way_case;

static void expect_kernels(const way_case *c, int products)
{
    device_profile gpu = ORDINARY_GPU;
    schedule_options options = {.profile = &gpu,
                                .precision = c->precision,
                                .matrix_in_lanes = c->in_lanes,
                                .prepared_bytes = c->prepared_bytes};
    int64_t bytes = (int64_t)quant_row_bytes((uint32_t)c->format, 4096);
    rlxvk_graph *g = NULL;
    schedule s;
    size_t count = 0;
    gpu.matrix_f16 = gpu.matrix_bf16 = (matrix_shape){16, 16, 16};
    gpu.shared_memory_bytes = 49152;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(c->rows, 4096));
    for (int i = 0; i < products; i++) {
        rlxvk_tensor w = rlxvk_param(g, i ? "v" : "w", RLXVK_U8, RLXVK_SHAPE(4096, bytes));
        rlxvk_graph_output(g, rlxvk_dequant_matmul(g, x, w, c->format));
    }
    expect_ok(schedule_create(g, &options, &s));
    while (count < MOST_KERNELS && c->kernels[count])
        count++;
    assert_int_equal(s.dispatches.count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(s.dispatches.items[i].kernel, c->kernels[i]);
    schedule_destroy(&s);
    rlxvk_graph_destroy(g);
}

#define HALVES   (2 * UINT64_C(4096) * 4096) /* bytes of the decoded weights */
#define PACK     KERNEL_MATRIX_PACK
#define SCALE    KERNEL_MATRIX_SCALE
#define SUM      KERNEL_MATMUL_SUM
#define FRAGMENT KERNEL_FRAGMENT_PACK, KERNEL_DEQUANT_FRAGMENT_F16
#define GATHER   KERNEL_DEQUANT_GATHER
#define BLOCKS   KERNEL_MATRIX_BLOCK_PACK

/* If the matrices are in lanes, weights are unpacked within the product, in registers, or to blocks
 * before it if rows are many. Otherwise they go through shared memory, and K is split for few rows.
 * They are unpacked before the product in split mode, and if that is done only once. */
static void test_kernels_of_units(void **state)
{
    /* clang-format off */
    static const way_case ways[] = {
        {RLXVK_Q4_K,  F16,  512,  false, 0, {PACK, KERNEL_DEQUANT_MATRIX_F16}},
        {RLXVK_Q4_K,  F16,  32,   false, 0, {PACK, KERNEL_DEQUANT_MATRIX_F16, SUM}},
        {RLXVK_Q4_K,  F16,  16,   false, 0, {PACK, KERNEL_DEQUANT_MATRIX_F16, SUM}},
        {RLXVK_Q4_0,  F16,  512,  false, 0, {PACK, KERNEL_DEQUANT_MATRIX_F16_SMALL}},
        {RLXVK_Q2_K,  F16,  512,  false, 0, {PACK, KERNEL_DEQUANT_MATRIX_F16_LARGE}},
        {RLXVK_IQ2_S, F16,  512,  false, 0, {PACK, KERNEL_DEQUANT_MATRIX_F16_GRID}},
        {RLXVK_Q6_K,  BF16, 512,  false, 0, {PACK, KERNEL_DEQUANT_MATRIX_BF16}},
        {RLXVK_NVFP4, BF16, 512,  false, 0, {PACK, KERNEL_DEQUANT_MATRIX_BF16_SMALL}},
        {RLXVK_Q3_K,  BF16, 512,  false, 0, {PACK, KERNEL_DEQUANT_MATRIX_BF16_LARGE}},
        {RLXVK_IQ1_M, BF16, 16,   false, 0, {PACK, KERNEL_DEQUANT_MATRIX_BF16_GRID, SUM}},
        {RLXVK_Q4_0,  F16,  257,  false, HALVES - 1, {PACK, KERNEL_DEQUANT_MATRIX_F16_SMALL}},
        {RLXVK_Q4_0,  F16,  257,  false, HALVES,
         {KERNEL_DEQUANT_GATHER_SMALL, PACK, KERNEL_MATRIX_PRODUCT_F16}},
        {RLXVK_Q4_K,  BF16, 512,  false, HALVES, {GATHER, PACK, KERNEL_MATRIX_PRODUCT_BF16}},
        {RLXVK_Q4_K,  SPLIT, 512, true,  0,
         {GATHER, SCALE, SCALE, PACK, PACK, KERNEL_MATRIX_PRODUCT_F16}},
        {RLXVK_Q4_K,  F32,  16,   true,  0, {KERNEL_DEQUANT_MATVEC}},
        {RLXVK_Q4_K,  F16,  4,    false, 0, {KERNEL_DEQUANT_MATVEC}},
        {RLXVK_Q4_0,  BF16, 4,    true,  0, {KERNEL_DEQUANT_MATVEC_SMALL}},
        {RLXVK_Q4_K,  F16,  4,    true,  0, {FRAGMENT}},
        {RLXVK_Q4_K,  F16,  64,   true,  0, {FRAGMENT}},
        {RLXVK_Q4_K,  BF16, 64,   true,  0, {PACK, KERNEL_DEQUANT_MATRIX_BF16, SUM}},
        {RLXVK_Q4_K,  F16,  2048, true,  0, {PACK, KERNEL_DEQUANT_PANEL_F16}},
        {RLXVK_Q4_K,  F16,  2048, true,  HALVES, {PACK, KERNEL_DEQUANT_PANEL_F16}},
        {RLXVK_Q4_0,  F16,  512,  true,  0, {PACK, KERNEL_DEQUANT_PANEL_F16_SMALL}},
        {RLXVK_Q2_K,  F16,  512,  true,  0, {PACK, KERNEL_DEQUANT_PANEL_F16_LARGE}},
        {RLXVK_IQ2_S, F16,  383,  true,  0, {PACK, KERNEL_DEQUANT_MATRIX_F16_GRID}},
        {RLXVK_Q6_K,  BF16, 383,  true,  0, {PACK, KERNEL_DEQUANT_PANEL_BF16}},
        {RLXVK_Q4_1,  BF16, 512,  true,  HALVES, {PACK, KERNEL_DEQUANT_PANEL_BF16_SMALL}},
        {RLXVK_TQ2_0, BF16, 512,  true,  0, {PACK, KERNEL_DEQUANT_PANEL_BF16_LARGE}},
        {RLXVK_IQ1_M, BF16, 383,  true,  0, {PACK, KERNEL_DEQUANT_MATRIX_BF16_GRID}},
        {RLXVK_Q4_K,  F16,  4096, true,  0, {BLOCKS, GATHER, KERNEL_MATRIX_DIRECT_F16}},
        {RLXVK_Q6_K,  BF16, 512,  true,  0, {BLOCKS, GATHER, KERNEL_MATRIX_DIRECT_BF16}},
        {RLXVK_IQ2_S, F16,  512,  true,  0,
         {BLOCKS, KERNEL_DEQUANT_GATHER_GRID, KERNEL_MATRIX_DIRECT_F16}},
        {RLXVK_Q6_K,  BF16, 512,  false, 0, {PACK, KERNEL_DEQUANT_MATRIX_BF16}},
    };
    /* clang-format on */
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(ways); i++)
        expect_kernels(&ways[i], 1);
}

/* There is memory for one of two decoded weights, so the second is unpacked within its product. */
static void test_memory_for_one(void **state)
{
    static const way_case way = {RLXVK_Q4_0,
                                 F16,
                                 512,
                                 false,
                                 2 * HALVES - 1,
                                 {KERNEL_DEQUANT_GATHER_SMALL, PACK, KERNEL_MATRIX_PRODUCT_F16,
                                  PACK, KERNEL_DEQUANT_MATRIX_F16_SMALL}};
    (void)state;
    expect_kernels(&way, 2);
}

/* ---- check_packed: blocks ---- */

/* Bytes that make block 1 of each format bad, and their offset in the block. */
static const struct bad_block {
    uint32_t type, offset;
    uint8_t bytes[4];
    uint32_t size;
    const char *words;
} bad_blocks[] = {
    {QUANT_Q4_0, 0, {0x00, 0x7c}, 2, "scale d at byte 0 is 0x7c00"},
    {QUANT_Q4_1, 2, {0x01, 0xfe}, 2, "scale m at byte 2 is 0xfe01"},
    {QUANT_Q5_0, 0, {0x00, 0xfc}, 2, "no finite f16"},
    {QUANT_Q5_1, 2, {0x00, 0x7e}, 2, "scale m"},
    {QUANT_Q8_0, 0, {0xff, 0x7f}, 2, "scale d"},
    {QUANT_Q2_K, 80, {0x00, 0x7c}, 2, "scale d at byte 80"},
    {QUANT_Q2_K, 82, {0x00, 0x7c}, 2, "scale dmin at byte 82"},
    {QUANT_Q3_K, 108, {0x00, 0x7c}, 2, "scale d at byte 108"},
    {QUANT_Q4_K, 0, {0x00, 0x7c}, 2, "scale d "},
    {QUANT_Q4_K, 2, {0x00, 0x7c}, 2, "scale dmin at byte 2"},
    {QUANT_Q5_K, 2, {0x00, 0x7c}, 2, "scale dmin"},
    {QUANT_Q6_K, 208, {0x00, 0x7c}, 2, "scale d at byte 208"},
    {QUANT_Q8_K, 0, {0x00, 0x00, 0x80, 0x7f}, 4, "no finite f32"},
    {QUANT_IQ2_XXS, 0, {0x00, 0x7c}, 2, "IQ2_XXS block 1 (byte 66)"},
    {QUANT_IQ2_XS, 0, {0x00, 0x7c}, 2, "IQ2_XS block 1"},
    {QUANT_IQ2_S, 0, {0x00, 0x7c}, 2, "IQ2_S block 1"},
    {QUANT_IQ3_XXS, 0, {0x00, 0x7c}, 2, "IQ3_XXS block 1"},
    {QUANT_IQ3_S, 0, {0x00, 0x7c}, 2, "IQ3_S block 1"},
    {QUANT_IQ1_S, 0, {0x00, 0x7c}, 2, "IQ1_S block 1"},
    {QUANT_IQ4_NL, 0, {0x00, 0x7c}, 2, "IQ4_NL block 1"},
    {QUANT_IQ4_XS, 0, {0x00, 0x7c}, 2, "IQ4_XS block 1"},
    {QUANT_TQ1_0, 52, {0x00, 0x7c}, 2, "scale d at byte 52"},
    {QUANT_TQ2_0, 64, {0x00, 0x7c}, 2, "scale d at byte 64"},
    {QUANT_MXFP4, 0, {0xff}, 1, "scale e at byte 0 is 0xff, no finite E8M0"},
    {QUANT_NVFP4, 3, {0x7f}, 1, "scale s at byte 3 is 0x7f, no finite UE4M3"},
    {QUANT_NVFP4, 1, {0x80}, 1, "scale s at byte 1 is 0x80"},
    {QUANT_Q1_0, 0, {0x00, 0x7c}, 2, "Q1_0 block 1 (byte 18)"},
    {QUANT_Q2_0, 0, {0x00, 0x7c}, 2, "Q2_0 block 1"},
};

static void test_bad_blocks(void **state)
{
    uint8_t bytes[ROWS * K * 2], back[ROWS * K * 2];
    (void)state;
    for (size_t b = 0; b < ARRAY_COUNT(bad_blocks); b++) {
        const struct bad_block *bad = &bad_blocks[b];
        const quant_format *format = quant_format_find(bad->type);
        size_t size = ROWS * quant_row_bytes(bad->type, K), skip = b % 2 ? 16 : 0;
        rlxvk_executable *e = product(bad->type, (int64_t)skip, &checked);
        memset(bytes, 1, sizeof bytes);
        expect_ok(rlxvk_set_param_bytes(e, "w", bytes, skip + size));
        memset(bytes, 2, sizeof bytes);
        memcpy(bytes + skip + format->block_bytes + bad->offset, bad->bytes, bad->size);
        expect_error(rlxvk_set_param_bytes(e, "w", bytes, skip + size), RLXVK_E_RANGE, bad->words);
        assert_non_null(strstr(rlxvk_last_error(), "set_param_bytes: param 'w': "));
        expect_ok(rlxvk_read_param_bytes(e, "w", back, skip + size));
        for (size_t i = 0; i < skip + size; i++)
            assert_int_equal(back[i], 1);
        rlxvk_executable_destroy(e);
    }
}

/* y = x w' with many columns. At most `bytes` bytes of weights are decoded at a time. */
static void run_parts(uint64_t bytes, const rlxvk_variant *variants, int64_t m, int64_t n, float *y)
{
    const rlxvk_compile_options o = {.variants = variants, .variant_count = 2};
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    float *x = malloc((size_t)(m * K) * sizeof *x);
    size_t size = (size_t)n * quant_row_bytes(QUANT_Q8_0, K);
    uint8_t *w = malloc(size);
    random_source r = {7};
    random_fill(&r, false, x, (size_t)(m * K));
    for (size_t i = 0; i < size; i++) /* scales of 2^-7 and below */
        w[i] = i % 34 == 0 ? (uint8_t)i : i % 34 == 1 ? 0x1f : (uint8_t)(i * i / 7);
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor in = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(m, K));
    rlxvk_tensor packed = rlxvk_param(g, "w", RLXVK_U8, RLXVK_SHAPE(n, (int64_t)size / n));
    rlxvk_graph_output(g, rlxvk_dequant_matmul(g, in, packed, RLXVK_Q8_0));
    uint64_t before = matmul_unpacked_bytes;
    matmul_unpacked_bytes = bytes;
    expect_ok(rlxvk_compile(shared_context, g, &o, &e));
    matmul_unpacked_bytes = before;
    expect_ok(rlxvk_set_param_bytes(e, "w", w, size));
    rlxvk_run_input given = {"x", x, (size_t)(m * K), RLXVK_F32};
    rlxvk_run_output wanted = {0, y, (size_t)(m * n), RLXVK_F32};
    expect_ok(rlxvk_run(e, &given, 1, &wanted, 1));
    rlxvk_memory_report memory;
    rlxvk_executable_memory(e, &memory);
    uint64_t all = 4 * (uint64_t)(n * K);
    assert_true(bytes > all ? memory.scratch_bytes >= all : memory.scratch_bytes < all);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    free(x);
    free(w);
}

/* If weights are decoded in parts, the result must be as if they were decoded at once, for any
 * kernel of the product. */
static void test_parts(void **state)
{
    static const struct {
        const char *row;
        int64_t m, n;
    } cases[] = {{"tiled_32x32", 40, 1300}, {"tiled_16x128", 10, 901}, {"rows_1", 30, 1028},
                 {"scalar_block", 33, 777}, {"vector", 3, 1100},       {"vector", 1, 1037}};
    (void)state;
    for (size_t c = 0; c < ARRAY_COUNT(cases); c++) {
        const rlxvk_variant variants[] = {{"dequant", "unpacked"}, {"matmul", cases[c].row}};
        size_t count = (size_t)(cases[c].m * cases[c].n);
        float *whole = malloc(count * sizeof *whole), *parts = malloc(count * sizeof *parts);
        run_parts(UINT64_C(1) << 30, variants, cases[c].m, cases[c].n, whole);
        run_parts(UINT64_C(1) << 19, variants, cases[c].m, cases[c].n, parts);
        for (size_t i = 0; i < count; i++)
            if (!(fabsf(whole[i] - parts[i]) <= 1e-5f * (1 + fabsf(whole[i]))))
                fail_msg("%s: element %zu is %g, of all at once %g", cases[c].row, i,
                         (double)parts[i], (double)whole[i]);
        free(whole);
        free(parts);
    }
}

/* IQ1_M keeps its scale in the top nibbles of four words. */
static void test_nibble_scale(void **state)
{
    uint8_t block[56];
    (void)state;
    memset(block, 0xff, sizeof block);
    block[55] = 0x7f;
    assert_int_equal(quant_check_blocks(QUANT_IQ1_M, block, 56), RLXVK_E_RANGE);
    block[55] = 0x0f; /* 0x0fff */
    assert_int_equal(quant_check_blocks(QUANT_IQ1_M, block, 56), RLXVK_OK);
}

/* Nothing is checked by default. If the check is on, skipped bytes and plain rows have no scales to
 * check. */
static void test_not_checked(void **state)
{
    uint8_t bytes[64 + ROWS * K * 4];
    (void)state;
    memset(bytes, 0xff, sizeof bytes);
    rlxvk_executable *e = product(QUANT_Q4_0, 0, NULL);
    expect_ok(rlxvk_set_param_bytes(e, "w", bytes, ROWS * quant_row_bytes(QUANT_Q4_0, K)));
    rlxvk_executable_destroy(e);
    e = product(QUANT_F32, 0, &checked);
    expect_ok(rlxvk_set_param_bytes(e, "w", bytes, ROWS * K * 4));
    rlxvk_executable_destroy(e);
    e = product(QUANT_Q4_0, 64, &checked);
    memset(bytes + 64, 0, sizeof bytes - 64);
    expect_ok(rlxvk_set_param_bytes(e, "w", bytes, 64 + ROWS * quant_row_bytes(QUANT_Q4_0, K)));
    rlxvk_executable_destroy(e);
}

/* The other readers of packed params: gather and the ops of experts. A clone checks in the same
 * way. */
static void test_other_readers(void **state)
{
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL, *copy = NULL;
    uint8_t bytes[2 * 8 * 34], good[2 * 8 * 34] = {0};
    const char *const names[] = {"table", "experts", "weights"};
    (void)state;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor index = rlxvk_input(g, "index", RLXVK_F32, RLXVK_SHAPE(4));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(4, 32));
    rlxvk_tensor leaf[3];
    for (int i = 0; i < 3; i++)
        leaf[i] = rlxvk_param(g, names[i], RLXVK_U8, RLXVK_SHAPE(sizeof bytes));
    rlxvk_graph_output(g, rlxvk_dequant_gather(g, leaf[0], index, RLXVK_Q8_0, 32));
    rlxvk_graph_output(g, rlxvk_dequant_grouped_matmul(g, x, leaf[1], index, RLXVK_Q8_0, 8));
    rlxvk_graph_output(g, rlxvk_dequant_moe_weights(g, leaf[2], RLXVK_Q8_0, 32, 8));
    expect_ok(rlxvk_compile(shared_context, g, &checked, &e));
    expect_ok(rlxvk_clone(e, &copy));
    memset(bytes, 0, sizeof bytes);
    bytes[15 * 34 + 1] = 0x7c;
    for (int i = 0; i < 3; i++) {
        expect_ok(rlxvk_set_param_bytes(e, names[i], good, sizeof good));
        expect_error(rlxvk_set_param_bytes(e, names[i], bytes, sizeof bytes), RLXVK_E_RANGE,
                     "Q8_0 block 15 (byte 510)");
        expect_error(rlxvk_set_param_bytes(copy, names[i], bytes, sizeof bytes), RLXVK_E_RANGE,
                     names[i]);
    }
    rlxvk_executable_destroy(copy);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

/* ---- check_packed: side scales ---- */

/* One column of 32. The params are "w", "scale" and, if the kind reads it, "extra". */
static rlxvk_executable *scaled(const rlxvk_quant_scheme *scheme, const rlxvk_quant_sizes *sizes,
                                bool byte_scales, bool ignored)
{
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(1, 32));
    rlxvk_tensor w = rlxvk_param(g, "w", RLXVK_U8, RLXVK_SHAPE((int64_t)sizes->code_bytes));
    rlxvk_tensor scale = rlxvk_param(g, "scale", byte_scales ? RLXVK_U8 : RLXVK_F32,
                                     RLXVK_SHAPE((int64_t)sizes->scale_count));
    rlxvk_tensor extra = RLXVK_NONE;
    if (sizes->extra_count || ignored)
        extra = rlxvk_param(g, "extra", RLXVK_F32,
                            RLXVK_SHAPE(ignored ? 1 : (int64_t)sizes->extra_count));
    rlxvk_graph_output(g, rlxvk_dequant_matmul_scaled(g, x, w, scale, extra, scheme));
    expect_ok(rlxvk_compile(shared_context, g, &checked, &e));
    rlxvk_graph_destroy(g);
    return e;
}

static void test_bad_scales(void **state)
{
    static const struct {
        rlxvk_quant_scheme scheme;
        int bad_code, bad_byte; /* -1: none is bad */
        const char *words;
    } rows[] = {
        {{RLXVK_QUANT_INT8, 16, 1}, -1, -1, "int8 scale 0"},
        {{RLXVK_QUANT_INT8_ASYM, 16, 1}, -1, -1, "int8a scale 0"},
        {{RLXVK_QUANT_INT4, 16, 1}, -1, -1, "int4 scale 0"},
        {{RLXVK_QUANT_FP8_E4M3, 0, 1}, 0xff, -1, "fp8e4m3 scale 0"},
        {{RLXVK_QUANT_FP8_E5M2, 0, 1}, 0xfc, -1, "fp8e5m2 scale 0"},
        {{RLXVK_QUANT_NVFP4, 0, 1}, -1, 0x90, "nvfp4 scale 0 is 0x90"},
        {{RLXVK_QUANT_MXFP4, 0, 1}, -1, 0xff, "mxfp4 scale 0 is 0xff"},
        {{RLXVK_QUANT_INT4_ASYM, 16, 1}, -1, -1, "int4a scale 0"},
    };
    const float bad_word[] = {INFINITY, NAN};
    (void)state;
    for (size_t r = 0; r < ARRAY_COUNT(rows); r++) {
        rlxvk_quant_sizes sizes;
        uint8_t bytes[32] = {0};
        expect_ok(rlxvk_quant_matrix_sizes(&rows[r].scheme, 32, &sizes));
        bool byte_scales = rows[r].bad_byte >= 0, ignored = r == 0;
        rlxvk_executable *e = scaled(&rows[r].scheme, &sizes, byte_scales, ignored);
        bytes[0] = (uint8_t)(byte_scales ? rows[r].bad_byte : 0);
        expect_error(byte_scales ? rlxvk_set_param_bytes(e, "scale", bytes, sizes.scale_count)
                                 : rlxvk_set_param(e, "scale", bad_word, sizes.scale_count),
                     RLXVK_E_RANGE, rows[r].words);
        memset(bytes, rows[r].bad_code >= 0 ? 0 : 0xff, sizeof bytes);
        expect_ok(rlxvk_set_param_bytes(e, "w", bytes, sizes.code_bytes));
        bytes[9] = (uint8_t)rows[r].bad_code;
        if (rows[r].bad_code >= 0)
            expect_error(rlxvk_set_param_bytes(e, "w", bytes, sizes.code_bytes), RLXVK_E_RANGE,
                         "code 9 is 0xf");
        if (sizes.extra_count)
            expect_error(rlxvk_set_param(e, "extra", bad_word, sizes.extra_count), RLXVK_E_RANGE,
                         "param 'extra'");
        if (ignored)
            expect_ok(rlxvk_set_param(e, "extra", bad_word, 1));
        rlxvk_executable_destroy(e);
    }
}

/* If scales are given in another type, they are checked in the type in which they will be held. If
 * many params are set at once and one is refused, none is written. */
static void test_many_at_once(void **state)
{
    rlxvk_quant_scheme scheme = {RLXVK_QUANT_INT8, 16, 1};
    rlxvk_quant_sizes sizes;
    int8_t codes[32] = {1, 2, 3}, back[32];
    double scales[] = {1, 1e300};
    rlxvk_param_item items[] = {{"w", codes, 32, RLXVK_I8}, {"scale", scales, 16, RLXVK_F64}};
    (void)state;
    expect_ok(rlxvk_quant_matrix_sizes(&scheme, 32, &sizes));
    rlxvk_executable *e = scaled(&scheme, &sizes, false, false);
    expect_error(rlxvk_set_params(e, items, 2), RLXVK_E_RANGE, "int8 scale 1 is inf");
    expect_ok(rlxvk_read_param_bytes(e, "w", back, 32));
    assert_int_equal(back[1], 0);
    scales[1] = 1e30;
    expect_ok(rlxvk_set_params(e, items, 2));
    expect_ok(rlxvk_read_param_bytes(e, "w", back, 32));
    assert_int_equal(back[1], 2);
    rlxvk_executable_destroy(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_bad_blocks),
        cmocka_unit_test(test_nibble_scale),
        cmocka_unit_test(test_not_checked),
        cmocka_unit_test(test_other_readers),
        cmocka_unit_test(test_bad_scales),
        cmocka_unit_test(test_many_at_once),
        cmocka_unit_test(test_units),
        cmocka_unit_test(test_weights_from_registers),
        cmocka_unit_test(test_kernels_of_units),
        cmocka_unit_test(test_memory_for_one),
        cmocka_unit_test(test_parts),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
