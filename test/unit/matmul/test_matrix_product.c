/*
 * The steps of a product on matrix units. If halves already have the right layout, they must not be
 * packed. Also tests products that are made in parts.
 */
#include "plan/schedule.h"
#include "support/harness.h"
#include "support/profiles.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Multiplies 512 rows by w^T, which is n rows of k, on a GPU. Returns how many operands are
 * packed. */
static int packs(rlxvk_precision precision, rlxvk_dtype dtype, int64_t n, int64_t k)
{
    static const rlxvk_matmul_options transposed = {.transpose_b = true};
    device_profile gpu = ORDINARY_GPU;
    schedule_options options = {.profile = &gpu, .precision = precision};
    rlxvk_graph *g = NULL;
    schedule s;
    int count = 0;
    gpu.matrix_f16 = gpu.matrix_bf16 = (matrix_shape){16, 16, 16};
    gpu.shared_memory_bytes = 49152;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(512, k));
    rlxvk_tensor w = rlxvk_param(g, "w", dtype, RLXVK_SHAPE(n, k));
    rlxvk_graph_output(g, rlxvk_matmul_with(g, x, w, &transposed));
    expect_ok(schedule_create(g, &options, &s));
    for (size_t i = 0; i < s.dispatches.count; i++)
        count += s.dispatches.items[i].kernel == KERNEL_MATRIX_PACK;
    schedule_destroy(&s);
    rlxvk_graph_destroy(g);
    return count;
}

static void halves_in_whole_steps_are_taken_as_they_are(void **state)
{
    (void)state;
    assert_int_equal(packs(RLXVK_PRECISION_F16, RLXVK_F16, 4096, 4096), 1);
    assert_int_equal(packs(RLXVK_PRECISION_F16, RLXVK_F16, 4097, 4096), 1);
    assert_int_equal(packs(RLXVK_PRECISION_BF16, RLXVK_BF16, 4096, 4096), 1);
    assert_int_equal(packs(RLXVK_PRECISION_F16, RLXVK_F16, 4096, 4098), 2);
    assert_int_equal(packs(RLXVK_PRECISION_F16, RLXVK_BF16, 4096, 4096), 2);
    assert_int_equal(packs(RLXVK_PRECISION_F16, RLXVK_F32, 4096, 4096), 2);
    assert_int_equal(packs(RLXVK_PRECISION_SPLIT, RLXVK_F16, 4096, 4096), 2);
}

/* Units for f32 take f32 operands, so weights that are decoded to halves would be useless to
 * them. */
static void f32_units_take_decoded_weights_as_words(void **state)
{
    device_profile gpu = ORDINARY_GPU;
    schedule_options options = {.profile = &gpu, .precision = RLXVK_PRECISION_F32};
    rlxvk_graph *g = NULL;
    schedule s;
    int packed = 0, multiplied = 0;
    (void)state;
    gpu.matrix_f32 = (matrix_shape){8, 8, 8};
    gpu.shared_memory_bytes = 49152;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(512, 4096));
    rlxvk_tensor w = rlxvk_param(g, "w", RLXVK_U8, RLXVK_SHAPE(4096, 2304));
    rlxvk_graph_output(g, rlxvk_dequant_matmul(g, x, w, RLXVK_Q4_K));
    expect_ok(schedule_create(g, &options, &s));
    for (size_t i = 0; i < s.dispatches.count; i++) {
        packed += s.dispatches.items[i].kernel == KERNEL_MATRIX_PACK;
        multiplied += s.dispatches.items[i].kernel == KERNEL_MATRIX_PRODUCT_F32;
    }
    assert_int_equal(packed, 2);
    assert_int_equal(multiplied, 1);
    schedule_destroy(&s);
    rlxvk_graph_destroy(g);
}

/* Multiplies two batches of 40 x 64 x 48. The units take f32, and `named` asks for rows of choice
 * tables. Counts the dispatches by the units, and those by the row "scalar_single". */
static void expect_products(const char *named, int by_units, int by_row)
{
    device_profile gpu = ORDINARY_GPU;
    schedule_options options = {.profile = &gpu, .precision = RLXVK_PRECISION_F32};
    rlxvk_graph *g = NULL;
    schedule s;
    int units = 0, rows = 0;
    gpu.matrix_f32 = (matrix_shape){8, 8, 8};
    gpu.shared_memory_bytes = 49152;
    expect_ok(variant_parse(named, "test", &options.variants));
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor a = rlxvk_input(g, "a", RLXVK_F32, RLXVK_SHAPE(2, 40, 64));
    rlxvk_tensor b = rlxvk_input(g, "b", RLXVK_F32, RLXVK_SHAPE(2, 64, 48));
    rlxvk_graph_output(g, rlxvk_matmul(g, a, b));
    expect_ok(schedule_create(g, &options, &s));
    for (size_t i = 0; i < s.dispatches.count; i++) {
        const dispatch *d = &s.dispatches.items[i];
        units += d->kernel == KERNEL_MATRIX_PRODUCT_F32;
        rows += d->variant && strcmp(d->variant, "scalar_single") == 0;
    }
    assert_int_equal(units, by_units);
    assert_int_equal(rows, by_row);
    schedule_destroy(&s);
    rlxvk_graph_destroy(g);
}

static void f32_units_take_batches(void **state)
{
    (void)state;
    expect_products("", 1, 0);
}

static void named_rows_go_before_units(void **state)
{
    (void)state;
    expect_products("matmul=scalar_single", 0, 1);
    expect_products("matrix=small", 1, 0);
    expect_products("matrix=small,matmul=scalar_single", 1, 0);
}

/* The same for packed weights, at every precision that has units. */
static void named_rows_of_packed_weights_go_before_units(void **state)
{
    static const rlxvk_precision precisions[] = {RLXVK_PRECISION_F32, RLXVK_PRECISION_F16};
    (void)state;
    for (size_t p = 0; p < ARRAY_COUNT(precisions); p++) {
        device_profile gpu = ORDINARY_GPU;
        schedule_options options = {.profile = &gpu, .precision = precisions[p]};
        rlxvk_graph *g = NULL;
        schedule s;
        int tiled = 0;
        gpu.matrix_f32 = (matrix_shape){8, 8, 8};
        gpu.matrix_f16 = (matrix_shape){16, 16, 16};
        gpu.shared_memory_bytes = 49152;
        expect_ok(variant_parse("dequant=tiled", "test", &options.variants));
        expect_ok(rlxvk_graph_create(&g));
        rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(64, 4096));
        rlxvk_tensor w = rlxvk_param(g, "w", RLXVK_U8, RLXVK_SHAPE(512, 2304));
        rlxvk_graph_output(g, rlxvk_dequant_matmul(g, x, w, RLXVK_Q4_K));
        expect_ok(schedule_create(g, &options, &s));
        for (size_t i = 0; i < s.dispatches.count; i++) {
            const dispatch *d = &s.dispatches.items[i];
            tiled += d->variant && strcmp(d->variant, "tiled") == 0;
        }
        assert_int_equal(tiled, 1);
        schedule_destroy(&s);
        rlxvk_graph_destroy(g);
    }
}

/* The columns of x w are read in parts of these widths, which are not multiples of 4. */
static void expect_parts(const char *class)
{
    enum { ROWS = 70, K = 12, PARTS = 3, COLUMNS = 18 };
    static const int64_t firsts[PARTS + 1] = {0, 5, 11, COLUMNS};
    static float x[ROWS * K], w[K * COLUMNS], y[PARTS][ROWS * 7];
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    rlxvk_run_output out[PARTS];
    const rlxvk_variant variant = {"matmul", class};
    const rlxvk_compile_options options = {.variants = &variant, .variant_count = 1};
    for (int i = 0; i < ROWS * K; i++)
        x[i] = (float)(i % 9 - 4);
    for (int i = 0; i < K * COLUMNS; i++)
        w[i] = (float)(i % 7 - 3);
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor whole =
        rlxvk_matmul(g, rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(ROWS, K)),
                     rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(K, COLUMNS), w, sizeof w));
    for (int p = 0; p < PARTS; p++) {
        int64_t width = firsts[p + 1] - firsts[p];
        rlxvk_tensor part = rlxvk_narrow(g, whole, 1, firsts[p], width);
        rlxvk_graph_output(g, rlxvk_neg(g, part));
        out[p] = (rlxvk_run_output){(size_t)p, y[p], (size_t)(ROWS * width), RLXVK_F32};
    }
    expect_ok(rlxvk_compile(shared_context, g, &options, &e));
    expect_ok(rlxvk_run(e, &(rlxvk_run_input){"x", x, ROWS * K, RLXVK_F32}, 1, out, PARTS));
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        int row = i / COLUMNS, column = i % COLUMNS, p = column < 5 ? 0 : column < 11 ? 1 : 2;
        int64_t width = firsts[p + 1] - firsts[p];
        float sum = 0;
        for (int k = 0; k < K; k++)
            sum -= x[row * K + k] * w[k * COLUMNS + column];
        assert_true(y[p][row * width + column - firsts[p]] == sum); /* small integers */
    }
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

static void parts_may_end_anywhere(void **state)
{
    (void)state;
    expect_parts("scalar_block");
    expect_parts("tiled_32x32");
    expect_parts("rows_1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves_in_whole_steps_are_taken_as_they_are),
        cmocka_unit_test(f32_units_take_decoded_weights_as_words),
        cmocka_unit_test(f32_units_take_batches),
        cmocka_unit_test(named_rows_go_before_units),
        cmocka_unit_test(named_rows_of_packed_weights_go_before_units),
        cmocka_unit_test(parts_may_end_anywhere),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
