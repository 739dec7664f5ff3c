/*
 * The choice of tiles for matrix units, on made-up devices. Tests the choice, that it always fits
 * the device, and that each row can be reached on some device.
 */
#include "op/matmul/matrix_unit_choice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static device_profile large_gpu(void)
{
    return (device_profile){.kind = RLXVK_DEVICE_DISCRETE,
                            .subgroup_size = 32,
                            .max_workgroup_invocations = 1024,
                            .shared_memory_bytes = 49152,
                            .compute_units = 128,
                            .matrix_f16 = {16, 16, 16},
                            .matrix_bf16 = {16, 16, 16}};
}

static device_profile software(void)
{
    return (device_profile){.kind = RLXVK_DEVICE_CPU,
                            .subgroup_size = 8,
                            .max_workgroup_invocations = 1024,
                            .shared_memory_bytes = 32768,
                            .compute_units = 4,
                            .matrix_f16 = {8, 8, 8}};
}

/* Made up, because no driver at hand lists units for f32 operands. */
static device_profile units_for_words(void)
{
    device_profile p = large_gpu();
    p.matrix_f16 = p.matrix_bf16 = (matrix_shape){0};
    p.matrix_f32 = (matrix_shape){8, 8, 8};
    return p;
}

static matmul_shape of(uint64_t m, uint64_t n, uint64_t k)
{
    return (matmul_shape){.m = m, .n = n, .k = k, .batch = 1};
}

static void large_results_take_large_tiles(void **state)
{
    (void)state;
    device_profile gpu = large_gpu();
    matmul_shape large = of(4096, 4096, 4096), few = of(16, 4096, 4096), least = of(16, 16, 16);
    matmul_shape some = of(512, 512, 4096), more = of(1024, 1280, 4096);
    matmul_shape even = of(8192, 8192, 4096), one_round = of(512, 6144, 4096);
    matmul_shape more_than_four = of(520, 4096, 4096);
    const matrix_class *c =
        matrix_unit_choose(&large, RLXVK_PRECISION_F16, &gpu, false, VARIANT_NONE);
    assert_string_equal(c->row.name, "square_64");
    c = matrix_unit_choose(&even, RLXVK_PRECISION_F16, &gpu, false, VARIANT_NONE);
    assert_string_equal(c->row.name, "tall");
    c = matrix_unit_choose(&one_round, RLXVK_PRECISION_F16, &gpu, false, VARIANT_NONE);
    assert_string_equal(c->row.name, "wide"); /* two rounds of squares */
    /* One round of 110 tiles beats two of 160 squares. */
    c = matrix_unit_choose(&more_than_four, RLXVK_PRECISION_F16, &gpu, false, VARIANT_NONE);
    assert_string_equal(c->row.name, "wide");
    c = matrix_unit_choose(&one_round, RLXVK_PRECISION_SPLIT, &gpu, false, VARIANT_NONE);
    assert_string_equal(c->row.name, "square_32"); /* there is room for it */
    c = matrix_unit_choose(&few, RLXVK_PRECISION_F16, &gpu, false, VARIANT_NONE);
    assert_true(c->tile_m <= 32);
    c = matrix_unit_choose(&some, RLXVK_PRECISION_F16, &gpu, false, VARIANT_NONE);
    assert_string_equal(c->row.name, "small");
    c = matrix_unit_choose(&more, RLXVK_PRECISION_F16, &gpu, false, VARIANT_NONE);
    assert_string_equal(c->row.name, "medium");
    c = matrix_unit_choose(&least, RLXVK_PRECISION_SPLIT, &gpu, false, VARIANT_NONE);
    assert_string_equal(c->row.name, matrix_classes[matrix_choice.count - 1].row.name);
}

static const char *in_lanes(uint64_t m, uint64_t n, rlxvk_precision precision)
{
    device_profile gpu = large_gpu();
    matmul_shape s = of(m, n, 4096);
    return matrix_unit_choose(&s, precision, &gpu, true, VARIANT_NONE)->row.name;
}

/* Lanes that hold operands themselves need no shared memory. The rows are those that were fastest
 * on an H200. */
static void operands_in_lanes_come_straight_from_memory(void **state)
{
    (void)state;
    device_profile gpu = large_gpu(), small_units = software();
    matmul_shape large = of(4096, 4096, 4096);
    assert_string_equal(in_lanes(8192, 8192, RLXVK_PRECISION_F16), "direct");
    assert_string_equal(in_lanes(4096, 4096, RLXVK_PRECISION_BF16), "direct");
    assert_string_equal(in_lanes(512, 14336, RLXVK_PRECISION_F16), "direct");
    assert_string_equal(in_lanes(512, 4096, RLXVK_PRECISION_F16), "direct_deep");
    assert_string_equal(in_lanes(4096, 4096, RLXVK_PRECISION_SPLIT), "square_32"); /* two planes */
    for (size_t i = 0; i < matrix_choice.count; i++) {
        const matrix_class *c =
            matrix_unit_choose(&large, RLXVK_PRECISION_F16, &small_units, false, i);
        bool unrolls_less = !strcmp(c->row.name, "direct_small");
        if (matrix_classes[i].depth)
            assert_int_equal(c == &matrix_classes[i], unrolls_less);
        c = matrix_unit_choose(&large, RLXVK_PRECISION_F16, &gpu, false, VARIANT_NONE);
        assert_int_equal(c->depth, 0);
    }
}

static void without_units_there_is_none(void **state)
{
    (void)state;
    device_profile cpu = software(), plain = {.subgroup_size = 32};
    matmul_shape s = of(64, 64, 64);
    assert_null(matrix_unit_choose(&s, RLXVK_PRECISION_BF16, &cpu, false, VARIANT_NONE));
    assert_null(matrix_unit_choose(&s, RLXVK_PRECISION_F16, &plain, false, VARIANT_NONE));
    assert_null(matrix_unit_choose(&s, RLXVK_PRECISION_F32, &cpu, false, VARIANT_NONE));
    assert_non_null(matrix_unit_choose(&s, RLXVK_PRECISION_SPLIT, &cpu, false, VARIANT_NONE));
}

static void f32_takes_units_for_it(void **state)
{
    (void)state;
    device_profile words = units_for_words(), halves = large_gpu();
    matmul_shape s = of(4096, 4096, 4096), batch = s;
    batch.batch = 2;
    assert_string_equal(
        matrix_unit_choose(&s, RLXVK_PRECISION_F32, &words, false, VARIANT_NONE)->row.name,
        "square_32");
    assert_non_null(matrix_unit_choose(&batch, RLXVK_PRECISION_F32, &words, false, VARIANT_NONE));
    assert_null(matrix_unit_choose(&s, RLXVK_PRECISION_F32, &halves, false, VARIANT_NONE));
    assert_null(matrix_unit_choose(&s, RLXVK_PRECISION_F16, &words, false, VARIANT_NONE));
    assert_null(matrix_unit_packed_choose(&s, RLXVK_PRECISION_F32, &words, VARIANT_NONE));
}

static void check_fits(const matrix_class *c, rlxvk_precision precision, const device_profile *p)
{
    matrix_shape unit = matrix_unit(precision, p);
    uint32_t threads = matrix_unit_threads(c, p);
    assert_true(threads <= p->max_workgroup_invocations);
    assert_true(matrix_unit_shared_bytes(c, matrix_unit_planes(precision)) <=
                p->shared_memory_bytes);
    assert_int_equal(c->part_m % unit.m | c->part_n % unit.n | c->tile_k % unit.k, 0);
    if (c->depth) {
        assert_int_equal(c->tile_k / unit.k % c->depth, 0);
        return;
    }
    assert_int_equal(c->tile_m * c->tile_k / 8 % threads, 0);
    assert_int_equal(c->tile_n * c->tile_k / 8 % threads, 0);
}

static void everything_fits(void **state)
{
    (void)state;
    const device_profile devices[] = {large_gpu(), software(), units_for_words()};
    static const uint64_t extents[] = {16, 17, 33, 64, 65, 128, 1000, 16384};
    for (size_t d = 0; d < ARRAY_COUNT(devices); d++)
        for (size_t i = 0; i < ARRAY_COUNT(extents) * ARRAY_COUNT(extents); i++)
            for (rlxvk_precision p = RLXVK_PRECISION_F32; p <= RLXVK_PRECISION_SPLIT; p++) {
                matmul_shape s =
                    of(extents[i % ARRAY_COUNT(extents)], extents[i / ARRAY_COUNT(extents)], 64);
                for (int lanes = 0; lanes < 2 && matrix_unit(p, &devices[d]).m; lanes++)
                    check_fits(matrix_unit_choose(&s, p, &devices[d], lanes, VARIANT_NONE), p,
                               &devices[d]);
            }
}

static void every_row_can_be_forced(void **state)
{
    (void)state;
    device_profile gpu = large_gpu();
    matmul_shape s = of(64, 64, 64);
    for (size_t i = 0; i < matrix_choice.count; i++)
        assert_ptr_equal(matrix_unit_choose(&s, RLXVK_PRECISION_F16, &gpu, false, i),
                         &matrix_classes[i]);
}

/* ---- Packed weights ---- */

static const char *packed(uint64_t m, uint64_t n, uint64_t k, const device_profile *p)
{
    matmul_shape s = of(m, n, k);
    return matrix_unit_packed_choose(&s, RLXVK_PRECISION_F16, p, VARIANT_NONE)->row.name;
}

static void packed_weights_take_tiles_as_high_as_there_are_rows(void **state)
{
    (void)state;
    device_profile gpu = large_gpu(), halves = gpu, none = {.subgroup_size = 32};
    matmul_shape s = of(512, 4096, 4096);
    halves.matrix_bf16 = (matrix_shape){0};
    assert_string_equal(packed(128, 4096, 14336, &gpu), "square");
    assert_string_equal(packed(64, 4096, 14336, &gpu), "rows_32");
    assert_string_equal(packed(32, 4096, 4096, &gpu), "rows_32");
    assert_string_equal(packed(16, 4096, 4096, &gpu), "rows_16");
    assert_string_equal(
        matrix_unit_packed_choose(&s, RLXVK_PRECISION_BF16, &gpu, VARIANT_NONE)->row.name,
        "square");
    assert_null(matrix_unit_packed_choose(&s, RLXVK_PRECISION_F32, &gpu, VARIANT_NONE));
    assert_null(matrix_unit_packed_choose(&s, RLXVK_PRECISION_BF16, &halves, VARIANT_NONE));
    assert_null(matrix_unit_packed_choose(&s, RLXVK_PRECISION_SPLIT, &gpu, VARIANT_NONE));
    assert_null(matrix_unit_packed_choose(&s, RLXVK_PRECISION_F16, &none, VARIANT_NONE));
}

/* The conditions that dequant_matrix.glsl relies on. */
static void packed_rows_carry_whole_units(void **state)
{
    (void)state;
    const device_profile devices[] = {large_gpu(), software()};
    bool reached[16] = {false};
    matmul_shape s = of(100, 100, 4096);
    for (size_t d = 0; d < ARRAY_COUNT(devices); d++)
        for (size_t i = 0; i < matrix_packed_choice.count; i++) {
            const matrix_class *c =
                matrix_unit_packed_choose(&s, RLXVK_PRECISION_F16, &devices[d], i);
            uint32_t threads = matrix_unit_threads(c, &devices[d]);
            check_fits(c, RLXVK_PRECISION_F16, &devices[d]);
            assert_true(threads >= MATRIX_PACKED_LEVELS);
            assert_int_equal(c->tile_n * c->tile_k / MATRIX_PACKED_UNIT % threads, 0);
            assert_true(c->tile_n * c->tile_k / MATRIX_PACKED_UNIT / threads <=
                        MATRIX_PACKED_UNITS);
            assert_true(c->part_m * c->part_n <= MATRIX_PACKED_SUMS * MATRIX_PACKED_SUMS *
                                                     devices[d].matrix_f16.m *
                                                     devices[d].matrix_f16.n);
            reached[i] |= c == choice_row_at(&matrix_packed_choice, i);
        }
    for (size_t i = 0; i < matrix_packed_choice.count; i++)
        assert_true(reached[i]);
}

/* Slices are whole steps and cover K. If there are few tiles and K is long enough, the slices keep
 * every compute unit busy. */
static void few_tiles_split_k(void **state)
{
    (void)state;
    device_profile gpu = large_gpu();
    static const uint64_t depths[] = {32, 64, 256, 288, 4096, 14336};
    for (size_t i = 0; i < matrix_packed_choice.count; i++)
        for (size_t k = 0; k < ARRAY_COUNT(depths); k++)
            for (uint64_t n = 1; n < 200000; n = 3 * n + 7) {
                const matrix_class *c = choice_row_at(&matrix_packed_choice, i);
                matmul_shape s = of(16, n, depths[k]);
                uint64_t slice = matrix_slice(c, &s, &gpu), splits = divide_up(s.k, slice);
                assert_int_equal(slice % c->tile_k, 0);
                assert_true(slice > 0 && (c->splits || splits == 1));
                assert_true(splits == 1 || slice >= 4 * (uint64_t)c->tile_k);
            }
    matmul_shape s = of(16, 4096, 14336);
    const matrix_class *c = matrix_unit_packed_choose(&s, RLXVK_PRECISION_F16, &gpu, VARIANT_NONE);
    assert_true(divide_up(s.k, matrix_slice(c, &s, &gpu)) * divide_up(s.n, c->tile_n) >= 4 * 128);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_results_take_large_tiles),
        cmocka_unit_test(operands_in_lanes_come_straight_from_memory),
        cmocka_unit_test(without_units_there_is_none),
        cmocka_unit_test(f32_takes_units_for_it),
        cmocka_unit_test(everything_fits),
        cmocka_unit_test(every_row_can_be_forced),
        cmocka_unit_test(packed_weights_take_tiles_as_high_as_there_are_rows),
        cmocka_unit_test(packed_rows_carry_whole_units),
        cmocka_unit_test(few_tiles_split_k),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
