/*
 * The choice of convolution kernels, on made-up devices. Tests the choice, that it fits the device
 * and the kernels' own conditions, and that splits cover K. Division by multipliers is compared
 * with division.
 */
#include "args/conv_matrix.h"
#include "op/conv/conv.h"
#include "op/conv/conv_choice.h"
#include "op/conv/conv_matrix_choice.h"
#include "support/profiles.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* A software device that has only the baseline. */
static device_profile least_software(void)
{
    device_profile p = baseline();
    p.kind = RLXVK_DEVICE_CPU;
    p.portable = true;
    return p;
}

static device_profile translated(void)
{
    device_profile p = big_gpu();
    p.portable = true;
    return p;
}

static void expect(const char *name, uint64_t m, uint64_t n, uint64_t groups, device_profile p)
{
    conv_shape s = {.m = m, .n = n, .k = 576, .groups = groups};
    assert_string_equal(conv_choose(&s, &p, VARIANT_NONE)->row.name, name);
}

/* Depthwise: each channel of y comes from one channel of x. The window is `across` taps wide and 7
 * high. */
static void expect_planes(const char *name, uint32_t across, uint32_t rows, uint32_t columns,
                          device_profile p)
{
    conv_shape s = {.m = 1,
                    .n = UINT64_C(8) * rows * columns,
                    .k = 7 * across,
                    .groups = 16,
                    .planes = {across, 7, 1, rows, columns, 128}};
    assert_string_equal(conv_choose(&s, &p, VARIANT_NONE)->row.name, name);
}

static void planes(void **state)
{
    (void)state;
    expect_planes("strips", 7, 28, 28, big_gpu());
    expect_planes("strips", 7, 3, 3, baseline());
    /* The weights of so many planes do not fit one workgroup. */
    expect_planes("direct_depthwise", 7, 1, 3, big_gpu());
    expect_planes("direct_depthwise", 7, 28, 2, big_gpu()); /* half of a strip would be outside */
    expect_planes("direct_depthwise", 0, 28, 28, big_gpu());
    expect_planes("direct_depthwise", 17, 28, 28, big_gpu());
    expect_planes("direct_single", 7, 28, 28, least_software());
}

static void expect_channels(const char *name, uint64_t m, uint64_t n, uint64_t channels)
{
    device_profile p = big_gpu();
    conv_shape s = {.m = m, .n = n, .k = channels * 9, .groups = 1, .channels = channels};
    assert_string_equal(conv_choose(&s, &p, VARIANT_NONE)->row.name, name);
}

/* A separate dispatch may put w into another order. */
static void packed(void **state)
{
    (void)state;
    expect_channels("packed_128x128", 256, 131072, 256);
    expect_channels("packed_64x128", 64, 131072, 64);
    expect_channels("tiled_64x128", 64, 131072, 63);
    expect_channels("tiled_64x128", 64, 16384, 64);
    expect_channels("tiled_64x64", 512, 49, 512);
}

static void expect_weights(const char *name, uint64_t m, uint64_t n, uint64_t groups, uint64_t taps)
{
    device_profile p = big_gpu();
    conv_shape s = {.m = m, .n = n, .k = 100352, .groups = groups, .long_k = true, .taps = taps};
    assert_string_equal(conv_choose(&s, &p, VARIANT_NONE)->row.name, name);
}

/* Gradients of weights: K is split to fill the device, so tiles may be large. */
static void weights(void **state)
{
    (void)state;
    expect_weights("tiled_128x128", 256, 2304, 1, 0);
    expect_weights("tiled_64x128", 64, 256, 1, 0);
    expect_weights("depthwise_weights", 1, 9, 256, 9);
    expect_weights("tiled_32x128", 1, 49, 256, 49);
}

static void classes(void **state)
{
    (void)state;
    expect("tiled_128x128", 256, 131072, 1, big_gpu());
    expect("tiled_64x128", 256, 12288, 1, big_gpu()); /* 384 tiles are 3 a unit, 192 are 2 */
    expect("tiled_64x128", 192, 100352, 1, big_gpu());
    expect("tiled_64x128", 64, 100352, 1, big_gpu());
    expect("tiled_32x128", 24, 100352, 1, big_gpu());
    expect("tiled_64x64", 512, 784, 1, big_gpu());
    expect("tiled_64x64", 512, 49, 1, big_gpu());
    expect("tiled_32x32", 512, 32, 1, big_gpu());
    expect("tiled_32x32", 24, 784, 1, big_gpu());
    expect("direct_few", 3, 100352, 1, big_gpu());
    expect("direct_depthwise", 1, 3136, 256, big_gpu());
    expect("tiled_64x128", 256, 100352, 1, baseline());
    expect("direct_block", 256, 100352, 1, least_software());
    expect("direct_single", 1, 100352, 256, least_software());
    expect("direct_block", 256, 100352, 1, translated());
}

/* A row that is asked for is also taken on software devices. They use tiles if sums are too long
 * for one invocation. */
static void forced(void **state)
{
    (void)state;
    device_profile cpu = least_software();
    conv_shape s = {.m = 1, .n = 1, .k = 576, .groups = 1}, deep = {2, 1, 100000, 1};
    assert_string_equal(conv_choose(&s, &cpu, 2)->row.name, "direct_depthwise");
    s.m = 2;
    assert_string_equal(conv_choose(&s, &cpu, 11)->row.name, "tiled_32x32");
    assert_string_equal(conv_choose(&deep, &cpu, 14)->row.name, "tiled_32x32");
    assert_string_equal(conv_choose(&deep, &cpu, VARIANT_NONE)->row.name, "tiled_32x32");
}

/* The conditions that conv_tiled.comp relies on. */
static void tiles_divide(void **state)
{
    (void)state;
    for (size_t i = 0; i < conv_choice.count; i++) {
        const conv_class *c = &conv_classes[i];
        if (c->form != CONV_FORM_TILED)
            continue;
        assert_int_equal(c->threads, c->tile_m / c->register_m * (c->tile_n / c->register_n));
        assert_int_equal(c->threads % c->tile_n, 0);
        assert_int_equal(c->register_m % 4 + c->register_n % 4, 0);
        assert_int_equal(c->tile_m * c->step / 4 % c->threads, 0);
        assert_int_equal(c->tile_n * c->step % (c->threads * 4), 0);
        assert_int_equal(32 % c->step, 0);
    }
}

static void slices_cover_k(void **state)
{
    (void)state;
    static const uint64_t extents[] = {1, 7, 33, 49, 512, 4608, 100352};
    const device_profile profiles[] = {big_gpu(), baseline(), least_software()};
    for (size_t i = 0; i < ARRAY_COUNT(profiles) * 343; i++) {
        const device_profile *p = &profiles[i / 343];
        conv_shape s = {extents[i % 7], extents[i / 7 % 7], extents[i / 49 % 7], 1};
        const conv_class *c = conv_choose(&s, p, VARIANT_NONE);
        uint64_t slice = conv_slice(c, &s, p), splits = divide_up(s.k, slice);
        assert_true(slice == s.k || slice % 32 == 0);
        assert_true(splits == 1 || splits * s.m * s.n * sizeof(float) <= p->max_binding_bytes);
        assert_true(c->threads <= p->max_workgroup_invocations);
    }
}

/* ---- Matrix units ---- */

static device_profile with_units(device_profile p, uint32_t subgroup, matrix_shape unit)
{
    p.subgroup_size = subgroup;
    p.matrix_f16 = p.matrix_bf16 = unit;
    return p;
}

/* An NVIDIA H200; wide subgroups; 8x16x16 and little shared memory; and a software driver's. */
static device_profile unit_device(size_t which)
{
    device_profile small = big_gpu(), h200 = big_gpu();
    small.shared_memory_bytes = 32768;
    h200.compute_units = 132;
    const device_profile all[] = {with_units(h200, 32, (matrix_shape){16, 16, 16}),
                                  with_units(big_gpu(), 64, (matrix_shape){16, 16, 16}),
                                  with_units(small, 16, (matrix_shape){8, 16, 16}),
                                  with_units(software(), 8, (matrix_shape){8, 8, 8})};
    return all[which];
}

enum { UNIT_DEVICES = 4 };

static const char *unit_tiles(uint64_t m, uint64_t n, uint64_t taps, uint64_t channels,
                              uint64_t to_pack, size_t device)
{
    device_profile p = unit_device(device);
    conv_matrix_shape s = {.m = m,
                           .n = n,
                           .k = taps * round_up(channels, 8),
                           .k_elements = taps * channels,
                           .groups = 1,
                           .to_pack = to_pack,
                           .octets = channels % 8 == 0};
    const conv_matrix_class *c = conv_matrix_choose(&s, RLXVK_PRECISION_F16, &p, VARIANT_NONE);
    return c ? c->tiles.row.name : "none";
}

static void units_take_tiles_by_size(void **state)
{
    (void)state;
    /* Measured on an NVIDIA H200: these are the fastest there, or within 7 % of them. */
    assert_string_equal(unit_tiles(256, 100352, 9, 256, 25690112, 0), "wide_32");
    assert_string_equal(unit_tiles(512, 1568, 9, 512, 802816, 0), "square_64");
    assert_string_equal(unit_tiles(64, 100352, 9, 64, 6422528, 0), "words_flat");
    assert_string_equal(unit_tiles(256, 6272, 9, 256, 1605632, 0), "words_medium");
    assert_string_equal(unit_tiles(256, 6272, 1, 1024, 6422528, 0), "words_medium");
    assert_string_equal(unit_tiles(64, 100352, 1, 256, 25690112, 0), "words_flat");
    assert_string_equal(unit_tiles(512, 49, 9, 512, 25088, 0), "words_small");
    /* These channels are no whole octets. */
    assert_string_equal(unit_tiles(256, 100352, 9, 255, 25589760, 0), "wide_32");
    /* 32 KiB of shared memory. */
    assert_string_equal(unit_tiles(256, 100352, 9, 256, 25690112, 2), "words_flat");
    assert_string_equal(unit_tiles(32, 100, 9, 32, 3200, 3), "words_small");
    /* Octets of three channels would be mostly padding. */
    assert_string_equal(unit_tiles(64, 401408, 49, 3, 4816896, 0), "scattered_flat");
    assert_string_equal(unit_tiles(32, 100, 9, 33, 3300, 3), "scattered_little");
}

/* The conditions that conv_matrix.glsl and conv_matrix_weight.glsl rely on. */
static void check_carries(const conv_matrix_class *c, bool weight, const device_profile *p)
{
    const matrix_class *t = &c->tiles;
    uint32_t threads = matrix_unit_threads(t, p), wide = t->tile_k / 8u;
    uint32_t octets[2] = {weight ? t->tile_m / 8u : wide, weight ? t->tile_n / 8u : wide};
    uint32_t rows[2] = {weight ? t->tile_k : t->tile_m, weight ? t->tile_k : t->tile_n};
    assert_true(threads <= p->max_workgroup_invocations);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(threads % octets[i], 0);
        assert_int_equal(rows[i] * octets[i] % threads, 0);
    }
    assert_true(c->form == CONV_MATRIX_PACKED || (!weight && threads % t->tile_n == 0));
    assert_int_equal(p->subgroup_size % p->matrix_f16.n, 0);
    assert_true(t->part_m / p->matrix_f16.m <= 4 && t->part_n / p->matrix_f16.n <= 4);
    assert_true(t->tile_k / p->matrix_f16.k <= 8);
}

static void units_carry_whole_octets(void **state)
{
    (void)state;
    bool reached[32] = {false};
    for (size_t d = 0; d < UNIT_DEVICES; d++)
        for (size_t i = 0; i < 2 * conv_matrix_choice.count; i++) {
            device_profile p = unit_device(d);
            conv_matrix_shape s = {.m = 512,
                                   .n = 100352,
                                   .k = 4608,
                                   .k_elements = 4608,
                                   .groups = 1,
                                   .weight = i % 2,
                                   .octets = true};
            const conv_matrix_class *c = conv_matrix_choose(&s, RLXVK_PRECISION_BF16, &p, i / 2);
            uint64_t slice = conv_matrix_slice(c, &s, &p);
            check_carries(c, s.weight, &p);
            reached[c - conv_matrix_classes] = true;
            assert_int_equal(slice % c->tiles.tile_k, 0);
            assert_true(slice >= c->tiles.tile_k && slice <= round_up(s.k, c->tiles.tile_k));
        }
    for (size_t i = 0; i < conv_matrix_choice.count; i++)
        assert_true(reached[i]);
}

static void units_are_asked_for(void **state)
{
    (void)state;
    device_profile gpu = unit_device(0), plain = big_gpu();
    conv_matrix_shape s = {.m = 64, .n = 64, .k = 64, .k_elements = 64, .groups = 1};
    assert_null(conv_matrix_choose(&s, RLXVK_PRECISION_F32, &gpu, VARIANT_NONE));
    assert_null(conv_matrix_choose(&s, RLXVK_PRECISION_SPLIT, &gpu, VARIANT_NONE));
    assert_null(conv_matrix_choose(&s, RLXVK_PRECISION_F16, &plain, VARIANT_NONE));
    assert_non_null(conv_matrix_choose(&s, RLXVK_PRECISION_F16, &gpu, VARIANT_NONE));
    /* A result of few tiles splits a long K: each compute unit gets two parts. */
    s = (conv_matrix_shape){
        .m = 256, .n = 2304, .k = 100352, .k_elements = 100352, .groups = 1, .weight = true};
    const conv_matrix_class *c = conv_matrix_choose(&s, RLXVK_PRECISION_F16, &gpu, VARIANT_NONE);
    uint64_t parts = divide_up(s.k, conv_matrix_slice(c, &s, &gpu));
    assert_in_range(conv_matrix_tiles(c, &s) * parts, gpu.compute_units, 2 * gpu.compute_units);
}

static uint32_t divide(uint32_t n, uint32_t by)
{
    uint32_t shift = 0;
    while (UINT64_C(1) << shift < by)
        shift++;
    return (uint32_t)(((uint64_t)n * conv_divide_multiplier(by)) >> 31 >> shift);
}

static void multipliers_divide(void **state)
{
    (void)state;
    for (uint32_t by = 1; by < 5000; by++)
        for (uint32_t n = 0; n < 100; n++) {
            uint32_t large = INT32_MAX - n;
            uint32_t edge = INT32_MAX / by * by - n % 2;
            assert_int_equal(divide(n * by, by), n);
            assert_int_equal(divide(n * by + by - 1, by), n);
            assert_int_equal(divide(large, by), large / by);
            assert_int_equal(divide(edge, by), edge / by);
        }
    for (uint32_t by = INT32_MAX; by > INT32_MAX - 5000u; by--)
        assert_int_equal(divide(by, by) + divide(by - 1, by), 1);
}

/* Where loads are moved far ahead, the next step needs registers, too: Apple's GPUs have 127 for a
 * thread, and Adreno 192. */
static void few_registers(void **state)
{
    (void)state;
    device_profile p = big_gpu();
    p.unit_registers = 53248;
    p.thread_registers = 127;
    expect("tiled_32x32", 24, 784, 1, p);
    p.loads_early = true;
    expect("tiled_32x32_short", 24, 784, 1, p);
    expect("tiled_64x64_short", 512, 784, 1, p);
    p.unit_registers = 49152;
    p.thread_registers = 192;
    expect("tiled_64x64", 512, 784, 1, p);
    expect("tiled_32x32", 24, 784, 1, p);
    expect("tiled_32x128", 24, 100352, 1, p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(classes),
                                       cmocka_unit_test(few_registers),
                                       cmocka_unit_test(planes),
                                       cmocka_unit_test(packed),
                                       cmocka_unit_test(weights),
                                       cmocka_unit_test(forced),
                                       cmocka_unit_test(tiles_divide),
                                       cmocka_unit_test(slices_cover_k),
                                       cmocka_unit_test(multipliers_divide),
                                       cmocka_unit_test(units_take_tiles_by_size),
                                       cmocka_unit_test(units_carry_whole_octets),
                                       cmocka_unit_test(units_are_asked_for)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
