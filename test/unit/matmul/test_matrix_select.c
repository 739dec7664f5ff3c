/*
 * The choice of tiles for the matrix units on made-up devices: what is chosen, that it always fits
 * the device, and that every row can be reached on some device.
 */
#include "op/matmul/matrix_select.h"

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
    matmul_shape even = of(8192, 8192, 4096);
    const matrix_class *c = matrix_select(&large, RLXVK_PRECISION_F16, &gpu, VARIANT_NONE);
    assert_string_equal(c->row.name, "square_64");
    c = matrix_select(&even, RLXVK_PRECISION_F16, &gpu, VARIANT_NONE);
    assert_string_equal(c->row.name, "tall");
    c = matrix_select(&few, RLXVK_PRECISION_F16, &gpu, VARIANT_NONE);
    assert_true(c->tile_m <= 32);
    c = matrix_select(&some, RLXVK_PRECISION_F16, &gpu, VARIANT_NONE);
    assert_string_equal(c->row.name, "small");
    c = matrix_select(&more, RLXVK_PRECISION_F16, &gpu, VARIANT_NONE);
    assert_string_equal(c->row.name, "medium");
    c = matrix_select(&least, RLXVK_PRECISION_SPLIT, &gpu, VARIANT_NONE);
    assert_string_equal(c->row.name, matrix_classes[matrix_choice.count - 1].row.name);
}

static void without_units_there_is_none(void **state)
{
    (void)state;
    device_profile cpu = software(), plain = {.subgroup_size = 32};
    matmul_shape s = of(64, 64, 64);
    assert_null(matrix_select(&s, RLXVK_PRECISION_BF16, &cpu, VARIANT_NONE));
    assert_null(matrix_select(&s, RLXVK_PRECISION_F16, &plain, VARIANT_NONE));
    assert_null(matrix_select(&s, RLXVK_PRECISION_F32, &cpu, VARIANT_NONE));
    assert_non_null(matrix_select(&s, RLXVK_PRECISION_SPLIT, &cpu, VARIANT_NONE));
}

static void check_fits(const matrix_class *c, rlxvk_precision precision, const device_profile *p)
{
    matrix_shape unit = matrix_unit(precision, p);
    uint32_t threads = matrix_threads(c, p);
    assert_true(threads <= p->max_workgroup_invocations);
    assert_true(matrix_shared_bytes(c, matrix_planes(precision)) <= p->shared_memory_bytes);
    assert_int_equal(c->part_m % unit.m | c->part_n % unit.n | c->tile_k % unit.k, 0);
    assert_int_equal(c->tile_m * c->tile_k / 8 % threads, 0);
    assert_int_equal(c->tile_n * c->tile_k / 8 % threads, 0);
}

static void everything_fits(void **state)
{
    (void)state;
    const device_profile devices[] = {large_gpu(), software()};
    static const uint64_t extents[] = {16, 17, 33, 64, 65, 128, 1000, 16384};
    for (size_t d = 0; d < ARRAY_COUNT(devices); d++)
        for (size_t i = 0; i < ARRAY_COUNT(extents) * ARRAY_COUNT(extents); i++)
            for (rlxvk_precision p = RLXVK_PRECISION_F16; p <= RLXVK_PRECISION_SPLIT; p++) {
                matmul_shape s =
                    of(extents[i % ARRAY_COUNT(extents)], extents[i / ARRAY_COUNT(extents)], 64);
                const matrix_class *c = matrix_select(&s, p, &devices[d], VARIANT_NONE);
                if (matrix_unit(p, &devices[d]).m)
                    check_fits(c, p, &devices[d]);
            }
}

static void every_row_can_be_forced(void **state)
{
    (void)state;
    device_profile gpu = large_gpu();
    matmul_shape s = of(64, 64, 64);
    for (size_t i = 0; i < matrix_choice.count; i++)
        assert_ptr_equal(matrix_select(&s, RLXVK_PRECISION_F16, &gpu, i), &matrix_classes[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_results_take_large_tiles),
        cmocka_unit_test(without_units_there_is_none),
        cmocka_unit_test(everything_fits),
        cmocka_unit_test(every_row_can_be_forced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
