/*
 * The choice of matrix-product kernels, on made-up devices. Tests the choice, that it always fits
 * the device, and that splits cover K and stay within memory.
 */
#include "op/matmul/experts.h"
#include "op/matmul/matmul.h"
#include "support/profiles.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static matmul_shape of(uint64_t m, uint64_t n, uint64_t k)
{
    return (matmul_shape){.m = m, .n = n, .k = k, .batch = 1};
}

static void expect(const char *name, matmul_shape s, device_profile p)
{
    assert_string_equal(matmul_choose(&s, &p, VARIANT_NONE)->row.name, name);
}

/* The row whose tile is the best compromise between speed and waste, as timed on an H200. */
static void native_classes(void **state)
{
    (void)state;
    matmul_shape weights = of(4096, 4096, 4096);
    weights.transpose_b = true;
    expect("tiled_128x128", of(4096, 4096, 4096), big_gpu());
    expect("tiled_128x128", of(2048, 2048, 2048), big_gpu());
    expect("tiled_64x128_long", weights, big_gpu());
    weights.m = weights.n = 2048;
    expect("tiled_128x128_long", weights, big_gpu());
    expect("tiled_64x128", of(64, 4096, 4096), big_gpu());
    expect("tiled_32x128", of(32, 4096, 4096), big_gpu());
    expect("rows_1", of(17, 4096, 11008), big_gpu());
    expect("rows_2", of(33, 4096, 4096), big_gpu());
    expect("tiled_128x128", of(96, 4096, 4096), big_gpu());
    expect("tiled_16x128", of(16, 4096, 4096), big_gpu());
    expect("tiled_128x16", of(4096, 16, 4096), big_gpu());
    expect("tiled_32x32_deep", of(256, 256, 256), big_gpu());
    expect("vector", of(1, 4096, 14336), big_gpu());
    expect("vector", of(8, 4096, 14336), big_gpu());
    expect("vector_swapped", of(4096, 3, 4096), big_gpu());
    expect("scalar_element", of(4, 4, 4), big_gpu());
    expect("vector", of(4, 4, 100000), big_gpu());
    expect("tiled_64x128_long", of(4096, 4096, 4096), baseline());
}

/* K is split only if there are too few tiles to fill the device. */
static void splits(void **state)
{
    (void)state;
    device_profile gpu = big_gpu();
    static const matmul_shape split[] = {{16, 4096, 4096, 1, false, true},
                                         {128, 128, 16384, 1, false, false},
                                         {64, 64, 65536, 1, true, false}};
    static const matmul_shape whole[] = {{4096, 4096, 4096, 1, false, false},
                                         {256, 256, 256, 1, false, false},
                                         {64, 64, 64, 256, false, false}};
    for (size_t i = 0; i < ARRAY_COUNT(split); i++) {
        const matmul_class *c = matmul_choose(&split[i], &gpu, VARIANT_NONE);
        assert_true(matmul_slice(c, &split[i], &gpu) * 4 <= split[i].k);
        c = matmul_choose(&whole[i], &gpu, VARIANT_NONE);
        assert_int_equal(matmul_slice(c, &whole[i], &gpu), whole[i].k);
    }
}

/* The conditions that the kernel relies on. */
static void tiles_divide_evenly(void **state)
{
    (void)state;
    for (size_t i = 0; i < matmul_choice.count; i++) {
        const matmul_class *c = &matmul_classes[i];
        if (c->form != MATMUL_FORM_TILED)
            continue;
        uint32_t threads = c->tile_m / c->register_m * (c->tile_n / c->register_n);
        assert_int_equal(threads, c->threads);
        assert_int_equal(c->tile_m * c->step / 4 % threads, 0);
        assert_int_equal(c->tile_n * c->step / 4 % threads, 0);
        assert_int_equal(threads % (c->step / 4), 0);
        assert_int_equal(threads % (c->tile_m / 4), 0);
        assert_int_equal(threads % (c->tile_n / 4), 0);
        assert_int_equal(64 % c->step, 0);
    }
}

static void rows_divide_evenly(void **state)
{
    (void)state;
    for (size_t i = 0; i < matmul_choice.count; i++) {
        const matmul_class *c = &matmul_classes[i];
        if (c->form != MATMUL_FORM_ROWS)
            continue;
        uint32_t lanes = c->tile_m / c->register_m * MATMUL_ROWS_LANES, slices = c->threads / lanes;
        assert_int_equal(lanes * slices, c->threads);
        assert_int_equal(c->tile_n, 4 * MATMUL_ROWS_LANES);
        assert_int_equal(c->step / 4 % (slices * c->loop), 0);
        assert_int_equal(c->tile_n * c->step / 4 % c->threads, 0);
        assert_int_equal(64 % c->step, 0);
        assert_int_equal(matmul_rows(c, 1), 1);
        assert_int_equal(matmul_rows(c, c->tile_m), c->register_m);
        assert_int_equal(matmul_rows(c, c->tile_m + 1u), c->register_m / 2 + 1);
    }
}

/* A GPU behind a driver that translates to another API. */
static device_profile translated(void)
{
    device_profile p = big_gpu();
    p.portable = true;
    return p;
}

static void settings(void **state)
{
    (void)state;
    expect("scalar_block", of(4096, 4096, 64), software());
    expect("scalar_row", of(1, 4096, 64), software());
    expect("scalar_column", of(4096, 1, 64), software());
    expect("scalar_single", of(1, 1, 64), software());
    expect("scalar_block", of(4096, 4096, 64), translated());
}

static size_t named(const char *choices)
{
    variant_set set;
    assert_int_equal(variant_parse(choices, "test", &set), RLXVK_OK);
    return variant_named(&set, CHOICE_matmul);
}

static void forced(void **state)
{
    (void)state;
    matmul_shape s = of(64, 64, 64);
    device_profile gpu = big_gpu(), least = baseline();
    size_t large = named("conv=direct_block, matmul=tiled_128x128");
    size_t vector = named("matmul=vector"), single = named("matmul=scalar_single");
    assert_string_equal(matmul_choose(&s, &gpu, large)->row.name, "tiled_128x128");
    assert_string_not_equal(matmul_choose(&s, &least, large)->row.name, "tiled_128x128");
    assert_string_not_equal(matmul_choose(&s, &gpu, vector)->row.name, "vector");
    assert_string_equal(matmul_choose(&s, &gpu, single)->row.name, "scalar_single");
    device_profile cpu = software();
    size_t deep = named("matmul=tiled_32x32_deep");
    assert_string_equal(matmul_choose(&s, &cpu, deep)->row.name, "tiled_32x32_deep");
    assert_int_equal(named("conv=direct_block"), VARIANT_NONE);
    assert_int_equal(named(NULL), VARIANT_NONE);
}

static const char *chosen(uint64_t rows, bool packed, device_profile p, const char *variants)
{
    lowering l = {.profile = &p};
    assert_int_equal(variant_parse(variants, "test", &l.variants), RLXVK_OK);
    return experts_choose(&l, rows, packed)->row.name;
}

static void experts(void **state)
{
    (void)state;
    assert_string_equal(chosen(17, false, big_gpu(), NULL), "sorted");
    assert_string_equal(chosen(16, false, big_gpu(), NULL), "split");
    assert_string_equal(chosen(16, true, big_gpu(), NULL), "direct");
    assert_string_equal(chosen(1000, false, translated(), NULL), "split");
    assert_string_equal(chosen(1000, false, software(), NULL), "direct");
    assert_string_equal(chosen(1, false, software(), "experts=sorted"), "sorted");
    assert_string_equal(chosen(1, false, software(), "experts=split"), "split");
    assert_string_equal(chosen(1000, false, big_gpu(), "experts=direct"), "direct");
}

static void choices_are_checked(void **state)
{
    (void)state;
    variant_set set = {{0}}, before;
    assert_int_equal(variant_parse(NULL, "test", &set), RLXVK_OK);
    assert_int_equal(variant_parse("matmul=vector,,conv=direct_block,", "test", &set), RLXVK_OK);
    before = set;
    assert_int_equal(variant_parse("matmul=fastest", "test", &set), RLXVK_E_ATTR);
    assert_non_null(strstr(rlxvk_last_error(), "tiled_128x128"));
    assert_int_equal(variant_parse("softmax=vector", "test", &set), RLXVK_E_ATTR);
    assert_non_null(strstr(rlxvk_last_error(), "no kernel kind 'softmax'"));
    assert_int_equal(variant_parse("matmul", "test", &set), RLXVK_E_ATTR);
    assert_int_equal(variant_parse("matmul=", "test", &set), RLXVK_E_ATTR);
    assert_int_equal(variant_parse("conv=direct_few,matmul", "test", &set), RLXVK_E_ATTR);
    assert_memory_equal(&set, &before, sizeof set);
}

static const uint64_t extents[] = {1, 2, 3, 8, 9, 16, 31, 33, 128, 1000, 65537, 1 << 20, INT32_MAX};

/* Calls `check` for each shape of a grid of extents, if its matrices have fewer than 2^31
 * elements. */
static void for_each_shape(void (*check)(matmul_shape, const device_profile *), device_profile p)
{
    for (size_t m = 0; m < ARRAY_COUNT(extents); m++)
        for (size_t n = 0; n < ARRAY_COUNT(extents); n++)
            for (size_t k = 0; k <= ARRAY_COUNT(extents); k++) {
                uint64_t depth = k ? extents[k - 1] : 0;
                matmul_shape s = of(extents[m], extents[n], depth);
                if (s.m * s.n > INT32_MAX || s.m * depth > INT32_MAX || s.n * depth > INT32_MAX)
                    continue;
                for (unsigned flags = 0; flags < 4; flags++) {
                    s.transpose_a = flags & 1;
                    s.transpose_b = flags & 2;
                    check(s, &p);
                }
            }
}

static void check_fits(matmul_shape s, const device_profile *p)
{
    const matmul_class *c = matmul_choose(&s, p, VARIANT_NONE);
    assert_true(c->threads <= p->max_workgroup_invocations);
    assert_true(matmul_shared_bytes(c, &s) <= p->shared_memory_bytes);
    assert_true(matmul_groups(c, &s, p) >= 1);
    assert_true(matmul_groups(c, &s, p) <= UINT32_MAX);
}

static void check_slices(matmul_shape s, const device_profile *p)
{
    const matmul_class *c = matmul_choose(&s, p, VARIANT_NONE);
    uint64_t slice = matmul_slice(c, &s, p);
    if (slice >= s.k) {
        assert_int_equal(slice, s.k);
        return;
    }
    uint64_t splits = divide_up(s.k, slice);
    assert_int_equal(slice % 16, 0);
    assert_int_not_equal(c->form, MATMUL_FORM_SCALAR);
    assert_true(splits * s.m * s.n * sizeof(float) <= p->max_binding_bytes);
    assert_true(splits * matmul_groups(c, &s, p) <= 8 * p->compute_units);
}

static void everything_fits(void **state)
{
    (void)state;
    for_each_shape(check_fits, big_gpu());
    for_each_shape(check_fits, baseline());
    for_each_shape(check_fits, software());
    for_each_shape(check_fits, translated());
}

static void splits_cover_k(void **state)
{
    (void)state;
    for_each_shape(check_slices, big_gpu());
    for_each_shape(check_slices, baseline());
    for_each_shape(check_slices, software());
    for_each_shape(check_slices, translated());
}

/* ---- the problem behind operand shapes ---- */

static void batches_fold(void **state)
{
    (void)state;
    matmul_problem p;
    rlxvk_shape weights = RLXVK_SHAPE(16, 32);
    matmul_problem_make(&RLXVK_SHAPE(2, 3, 5, 16), &weights, false, false, &p);
    assert_int_equal(p.shape.m, 30);
    assert_int_equal(p.shape.batch, 1);
    assert_int_equal(p.axis_count, 0);
    matmul_problem_make(&RLXVK_SHAPE(2, 3, 16, 5), &weights, true, false, &p);
    assert_int_equal(p.shape.m, 5);
    assert_int_equal(p.shape.batch, 6);
    assert_int_equal(p.axis_count, 1);
    matmul_problem_make(&RLXVK_SHAPE(2, 1, 5, 16), &RLXVK_SHAPE(1, 3, 16, 4), false, false, &p);
    assert_int_equal(p.axis_count, 2);
    assert_int_equal(p.axes[0].a_stride, 0);
    assert_int_equal(p.axes[0].b_stride, 64);
    assert_int_equal(p.axes[1].a_stride, 80);
    assert_int_equal(p.axes[1].b_stride, 0);
}

static void batches_stay_within_six_axes(void **state)
{
    (void)state;
    matmul_problem p;
    matmul_problem_make(&RLXVK_SHAPE(2, 1, 2, 1, 2, 1, 5, 6), &RLXVK_SHAPE(1, 3, 1, 3, 1, 3, 6, 7),
                        false, false, &p);
    assert_int_equal(p.axis_count, MATMUL_BATCH_AXES);
    assert_int_equal(p.shape.batch, 216);
    matmul_problem_make(&RLXVK_SHAPE(2, 3, 2, 3, 2, 3, 5, 6), &RLXVK_SHAPE(2, 3, 2, 3, 2, 3, 6, 7),
                        false, false, &p);
    assert_int_equal(p.axis_count, 1);
    assert_int_equal(p.axes[0].extent, 216);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(native_classes),
        cmocka_unit_test(settings),
        cmocka_unit_test(splits),
        cmocka_unit_test(tiles_divide_evenly),
        cmocka_unit_test(rows_divide_evenly),
        cmocka_unit_test(forced),
        cmocka_unit_test(experts),
        cmocka_unit_test(choices_are_checked),
        cmocka_unit_test(everything_fits),
        cmocka_unit_test(splits_cover_k),
        cmocka_unit_test(batches_fold),
        cmocka_unit_test(batches_stay_within_six_axes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
