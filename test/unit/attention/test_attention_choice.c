/*
 * The choice of attention kernels, on made-up devices. Tests the choice, that it fits the device,
 * that splits cover all keys, and that partial results do not exceed the memory.
 */
#include "args/matmul.h"
#include "op/attention/attention_backward_choice.h"
#include "op/attention/attention_matrix.h"
#include "base/base.h"
#include "support/profiles.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static attention_shape of(uint64_t heads, uint64_t kv_heads, uint64_t queries, uint64_t keys,
                          uint64_t width)
{
    return (attention_shape){1, heads, kv_heads, queries, keys, width};
}

static void expect(const char *name, attention_shape s, device_profile p)
{
    assert_string_equal(attention_choose(&s, &p, VARIANT_NONE).class->row.name, name);
}

static void expect_backward(const char *name, attention_shape s, device_profile p)
{
    assert_string_equal(attention_backward_choose(&s, &p, VARIANT_NONE).class->row.name, name);
}

static void native_classes(void **state)
{
    (void)state;
    expect("rows_wide", of(32, 8, 1, 32768, 128), big_gpu());
    expect("rows_deep", of(64, 8, 1, 32768, 64), big_gpu());
    expect("rows_deep", of(1, 1, 8, 1, 256), big_gpu());
    expect("rows", of(64, 8, 1, 32768, 64), baseline());
    expect("tile_32x64", of(320, 32, 9, 200, 128), big_gpu());
    expect("tile_split", of(32, 32, 9, 2048, 128), big_gpu());
    expect("tile_split", of(1, 1, 100, 30000, 128), baseline());
    expect("tile_128x128", of(32, 32, 2048, 2048, 128), big_gpu());
    expect("tile_32x64", of(12, 12, 512, 512, 128), big_gpu());
    expect("tile_64x64", of(128, 16, 1024, 1024, 64), big_gpu());
    expect("tile_32x64", of(32, 32, 2048, 2048, 256), big_gpu());
    expect("tile_32x64", of(32, 32, 2048, 2048, 128), baseline());
    expect("tile_32x64", of(4, 4, 1, 16, 0), big_gpu());
    expect("tile_16x64", of(32, 32, 2048, 2048, 512), big_gpu());
    expect("tile_16x64_split", of(8, 8, 1, 2048, 257), big_gpu());
    expect("tile_16x64", of(8, 8, 1, 20, 300), baseline());
}

/* Apple's GPUs have 127 registers for a thread, and Adreno 192. */
static void few_registers(void **state)
{
    (void)state;
    device_profile p = big_gpu();
    p.unit_registers = 53248;
    p.thread_registers = 127;
    p.shared_memory_bytes = 32768;
    expect("tile_64x64", of(128, 16, 1024, 1024, 32), p);
    expect("tile_32x64", of(128, 16, 1024, 1024, 64), p);
    expect("tile_32x64", of(128, 16, 1024, 1024, 96), p);
    expect("tile_32x64", of(32, 32, 2048, 2048, 128), p);
    expect("tile_16x256", of(32, 32, 2048, 2048, 256), p);
    expect("tile_16x256", of(32, 32, 2048, 2048, 512), p);
    expect_backward("tile_64x64", of(32, 32, 2048, 2048, 64), p);
    expect_backward("tile_32x64", of(1, 1, 20, 20, 64), p);
    expect_backward("tile_32x128", of(32, 32, 2048, 2048, 128), p);
    expect_backward("tile_16x256", of(32, 32, 2048, 2048, 256), p);
    expect_backward("tile_16x256_apart", of(32, 32, 2048, 2048, 512), p);
    p.unit_registers = 49152;
    p.thread_registers = 192;
    expect("tile_32x64", of(32, 32, 2048, 2048, 256), p);
    expect("tile_16x128", of(32, 32, 2048, 2048, 512), p);
    expect_backward("tile_mixed", of(32, 32, 2048, 2048, 128), p);
    expect_backward("tile_16x128", of(32, 32, 2048, 2048, 256), p);
    expect_backward("tile_16x256", of(32, 32, 2048, 2048, 300), p);
    expect_backward("tile_16x256", of(32, 32, 2048, 2048, 512), p);
    expect_backward("tile_16x128", of(32, 32, 2048, 2048, 512), big_gpu());
    p.unit_registers = 65536; /* NVIDIA's GPUs, with Mesa's driver */
    p.thread_registers = 255;
    expect("tile_16x64", of(32, 32, 2048, 2048, 448), p);
    expect("tile_16x128", of(32, 32, 2048, 2048, 512), p);
}

static void portable_classes(void **state)
{
    (void)state;
    expect("rows_small", of(32, 8, 1, 32768, 128), software());
    expect("tile_32x64", of(32, 32, 2048, 2048, 128), software());
    expect("tile_split", of(1, 1, 9, 40000, 128), software());
    expect("tile_16x64", of(1, 1, 9, 400, 512), software());
    expect("tile_16x64_split", of(1, 1, 9, 40000, 512), software());
}

static void forced_classes(void **state)
{
    (void)state;
    attention_shape prefill = of(8, 8, 300, 300, 64), wide = of(8, 8, 300, 300, 256);
    device_profile devices[] = {big_gpu(), baseline(), software()};
    for (size_t i = 0; i < attention_choice.count; i++) {
        const attention_class *c = attention_choose(&prefill, &devices[0], i).class;
        bool able = attention_classes[i].form == ATTENTION_FORM_TILE &&
                    attention_classes[i].least_width <= prefill.width;
        assert_int_equal(c == &attention_classes[i], able);
        assert_true(attention_choose(&wide, &devices[2], i).class->most_width >= 256);
        for (size_t d = 0; d < ARRAY_COUNT(devices); d++) {
            attention_plan p = attention_choose(&prefill, &devices[d], i);
            assert_true(attention_shared_bytes(&p) <= devices[d].shared_memory_bytes);
        }
    }
}

static void check(attention_shape s, const device_profile *profile)
{
    attention_plan p = attention_choose(&s, profile, VARIANT_NONE);
    uint64_t kv_rows = s.heads / s.kv_heads * s.queries;
    assert_true(p.threads >= 1 && p.threads <= profile->max_workgroup_invocations);
    assert_true(attention_shared_bytes(&p) <= profile->shared_memory_bytes);
    assert_true(attention_partial_words(&p, &s) * sizeof(float) <= profile->max_binding_bytes);
    assert_true(p.chunks >= 1 && p.tile_keys >= 1);
    if (p.chunk) {
        assert_int_equal(p.chunk % p.tile_keys, 0);
        assert_int_equal(p.chunks, divide_up(s.keys, p.chunk));
        assert_true(p.chunks > 1);
    }
    if (p.class->form == ATTENTION_FORM_ROWS) {
        assert_true(4u * p.lanes * p.lane_quads >= s.width);
        assert_int_equal(p.tile_keys % (p.threads / p.lanes * p.keys), 0);
        assert_true(p.blocks >= s.batch * s.kv_heads * divide_up(kv_rows, p.rows));
        assert_true(p.chunk || p.tile_keys >= s.keys);
    } else {
        assert_true(4u * p.class->column_threads * p.column_quads >= s.width);
        assert_int_equal(p.value_keys % p.unroll, 0);
        assert_true(p.blocks >= s.batch * s.heads * divide_up(s.queries, p.rows));
    }
}

static void everything_fits(void **state)
{
    (void)state;
    static const uint64_t heads[][2] = {{1, 1}, {4, 1}, {32, 8}, {12, 12}, {64, 8}, {3, 1}};
    static const uint64_t lengths[] = {1, 2, 7, 8, 9, 16, 33, 100, 1000, 4096, 100000};
    static const uint64_t widths[] = {1, 8, 20, 64, 80, 96, 128, 132, 192, 256, 260, 512};
    device_profile devices[] = {big_gpu(), baseline(), software()};
    for (size_t d = 0; d < ARRAY_COUNT(devices); d++)
        for (size_t h = 0; h < ARRAY_COUNT(heads); h++)
            for (size_t q = 0; q < ARRAY_COUNT(lengths); q++)
                for (size_t k = 0; k < ARRAY_COUNT(lengths); k++)
                    for (size_t w = 0; w < ARRAY_COUNT(widths); w++)
                        check(of(heads[h][0], heads[h][1], lengths[q], lengths[k], widths[w]),
                              &devices[d]);
}

static void splits(void **state)
{
    (void)state;
    device_profile gpu = big_gpu(), cpu = software();
    attention_shape few = of(32, 8, 1, 32, 128), many = of(32, 8, 1, 32768, 128);
    attention_shape one_head = of(8, 1, 1, 32768, 128), cached = of(32, 8, 1, 608, 128);
    attention_shape chunked = of(8, 8, 64, 32768, 128), full = of(32, 32, 2048, 2048, 128);
    assert_int_equal(attention_choose(&few, &gpu, VARIANT_NONE).chunk, 0);
    assert_true(attention_choose(&many, &gpu, VARIANT_NONE).chunks >= 64);
    attention_plan near = attention_choose(&cached, &gpu, VARIANT_NONE);
    attention_plan far = attention_choose(&many, &gpu, VARIANT_NONE);
    assert_int_equal(near.lane_quads, 1); /* few keys: a lane sums fewer quads */
    assert_int_equal(far.lane_quads, 2);
    assert_true(near.keys * (near.threads / near.lanes) == near.tile_keys); /* a tile in one pass */
    assert_true(attention_choose(&many, &gpu, VARIANT_NONE).joins);
    assert_false(attention_choose(&few, &gpu, VARIANT_NONE).joins);      /* only one part */
    assert_false(attention_choose(&one_head, &gpu, VARIANT_NONE).joins); /* too many for one */
    device_profile translated = gpu;
    translated.portable = true;
    assert_true(attention_choose(&many, &translated, VARIANT_NONE).chunk);
    assert_false(attention_choose(&many, &translated, VARIANT_NONE).joins);
    attention_plan p = attention_choose(&chunked, &gpu, VARIANT_NONE);
    assert_true(p.blocks * p.chunks >= gpu.compute_units);
    assert_int_equal(attention_choose(&full, &gpu, VARIANT_NONE).chunk, 0);
    assert_int_equal(attention_choose(&full, &cpu, VARIANT_NONE).chunk, 0);
    assert_int_equal(attention_choose(&chunked, &cpu, VARIANT_NONE).chunks, 2);
    gpu.max_binding_bytes = 1 << 16; /* too small for partial results */
    assert_int_equal(attention_choose(&many, &gpu, VARIANT_NONE).chunk, 0);
}

static device_profile with_units(device_profile p, uint32_t m, uint32_t n, uint32_t k,
                                 uint32_t subgroup)
{
    p.matrix_f16 = (matrix_shape){m, n, k};
    p.subgroup_size = subgroup;
    p.subgroup_shuffle = true;
    return p;
}

static void check_matrix(attention_shape s, const device_profile *profile, bool in_lanes)
{
    attention_matrix_plan p =
        attention_matrix_make_plan(&s, profile, RLXVK_PRECISION_F16, in_lanes);
    assert_true(p.parts > 0);
    assert_int_equal(p.threads, p.parts * profile->subgroup_size);
    assert_true(p.threads <= profile->max_workgroup_invocations);
    assert_int_equal(p.rows * profile->subgroup_size, MATRIX_LANES * p.unit.m);
    assert_int_equal(p.tile % p.unit.k, 0);
    assert_int_equal(p.tile * (s.width / 4) % p.threads, 0);
    assert_true(attention_matrix_shared_bytes(&p, s.width) <= profile->shared_memory_bytes);
    assert_true(p.blocks * p.parts * p.unit.m >= s.heads * s.queries);
    assert_int_equal(p.direct, in_lanes);
}

/* The registers of a pass with `sums` sums: its own rows of two tensors, the sums, scores and dp of
 * the tile, and what is loaded ahead. */
static uint64_t held_by(const attention_matrix_plan *p, uint64_t width, uint64_t sums,
                        const device_profile *profile)
{
    uint64_t row = p->unit.m * sizeof(float) / profile->subgroup_size;
    return (row * (width * (1 + sums) + 2 * p->tile) + 8 * p->tile * width / p->threads) / 4;
}

static void matrix_passes(void **state)
{
    (void)state;
    device_profile large = with_units(big_gpu(), 16, 16, 16, 32);
    large.unit_registers = 65536;
    large.thread_registers = 255;
    for (uint64_t width = 16; width <= 128; width += 16) {
        attention_shape s = of(12, 6, 1024, 700, width);
        attention_matrix_passes p =
            attention_matrix_plan_passes(&s, &large, RLXVK_PRECISION_F16, true);
        assert_true(p.queries.parts > 0 && p.keys.parts > 0);
        assert_true(held_by(&p.queries, width, 1, &large) < 255);
        assert_true(held_by(&p.keys, width, p.apart ? 1 : 2, &large) < 255);
        assert_int_equal(p.apart, width > 96); /* both sums of wide heads are too many registers */
        assert_true(p.queries.blocks * p.queries.parts * 16 >= 12 * 1024);
        assert_true(p.keys.blocks * p.keys.parts * 16 >= 6 * 700);
    }
    device_profile indirect = with_units(big_gpu(), 16, 16, 16, 64); /* RDNA3 */
    indirect.unit_registers = 196608;
    indirect.thread_registers = 256;
    attention_shape small = of(4, 2, 130, 257, 64);
    assert_int_equal(
        attention_matrix_plan_passes(&small, &indirect, RLXVK_PRECISION_F16, true).keys.tile, 64);
    assert_true(
        attention_matrix_plan_passes(&small, &indirect, RLXVK_PRECISION_F16, false).keys.tile < 64);
    attention_shape odd = of(12, 12, 1024, 1024, 72), short_one = of(12, 12, 8, 1024, 64);
    assert_int_equal(
        attention_matrix_plan_passes(&odd, &large, RLXVK_PRECISION_F16, true).keys.parts, 0);
    assert_int_equal(
        attention_matrix_plan_passes(&short_one, &large, RLXVK_PRECISION_F16, true).queries.parts,
        0);
}

static void matrix_plans(void **state)
{
    (void)state;
    device_profile large = with_units(big_gpu(), 16, 16, 16, 32);
    device_profile small = with_units(baseline(), 8, 16, 16, 16);
    device_profile deep = with_units(big_gpu(), 8, 8, 16, 8);
    device_profile cpu = with_units(software(), 8, 8, 8, 8);
    const device_profile *devices[] = {&large, &small, &deep, &cpu};
    for (size_t d = 0; d < ARRAY_COUNT(devices); d++)
        for (uint64_t width = 16; width <= 128; width += 16) {
            check_matrix(of(32, 8, 2048, 2048, width), devices[d], false);
            check_matrix(of(4, 4, 33, 5, width), devices[d], devices[d] == &large);
        }
    attention_shape s = of(32, 32, 2048, 2048, 128);
    assert_int_equal(attention_matrix_make_plan(&s, &large, RLXVK_PRECISION_F16, true).parts, 8);
    assert_int_equal(attention_matrix_make_plan(&s, &large, RLXVK_PRECISION_F16, true).tile, 64);
    assert_int_equal(attention_matrix_make_plan(&s, &cpu, RLXVK_PRECISION_F16, true).tile, 16);
    large.matrix_bf16 = (matrix_shape){16, 16, 16};
    assert_int_equal(attention_matrix_make_plan(&s, &large, RLXVK_PRECISION_BF16, true).parts, 8);
    assert_int_equal(attention_matrix_make_plan(&s, &cpu, RLXVK_PRECISION_BF16, true).parts, 0);
    assert_int_equal(attention_matrix_make_plan(&s, &large, RLXVK_PRECISION_F32, true).parts, 0);
    /* Matrix units are not used in these cases: the device has none, or has no shuffles. A subgroup
     * does not divide the rows. The width is odd. There are few queries. */
    device_profile none = big_gpu(), wide = with_units(big_gpu(), 8, 16, 16, 64);
    device_profile silent = large;
    none.matrix_f16 = (matrix_shape){0};
    silent.subgroup_shuffle = false;
    attention_shape odd = of(32, 32, 2048, 2048, 72), short_one = of(32, 32, 8, 2048, 128);
    assert_int_equal(attention_matrix_make_plan(&s, &none, RLXVK_PRECISION_F16, false).parts, 0);
    assert_int_equal(attention_matrix_make_plan(&s, &silent, RLXVK_PRECISION_F16, false).parts, 0);
    assert_int_equal(attention_matrix_make_plan(&s, &wide, RLXVK_PRECISION_F16, false).parts, 0);
    assert_int_equal(attention_matrix_make_plan(&odd, &large, RLXVK_PRECISION_F16, false).parts, 0);
    assert_int_equal(
        attention_matrix_make_plan(&short_one, &large, RLXVK_PRECISION_F16, false).parts, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(native_classes),   cmocka_unit_test(few_registers),
        cmocka_unit_test(portable_classes), cmocka_unit_test(forced_classes),
        cmocka_unit_test(everything_fits),  cmocka_unit_test(splits),
        cmocka_unit_test(matrix_plans),     cmocka_unit_test(matrix_passes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
