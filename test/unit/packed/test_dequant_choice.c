/*
 * How packed products with few rows are divided, on made-up devices. Tests the choice, that it fits
 * the device and the kernel's own conditions, and that the workgroups cover every output.
 */
#include "op/packed/dequant_choice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static device_profile big_gpu(void)
{
    return (device_profile){.kind = RLXVK_DEVICE_DISCRETE,
                            .max_workgroup_invocations = 1024,
                            .shared_memory_bytes = 49152,
                            .compute_units = 128};
}

static device_profile baseline(void)
{
    return (device_profile){.kind = RLXVK_DEVICE_INTEGRATED,
                            .max_workgroup_invocations = 128,
                            .shared_memory_bytes = 16384,
                            .compute_units = 16};
}

static device_profile software(void)
{
    device_profile p = baseline();
    p.kind = RLXVK_DEVICE_CPU;
    return p;
}

static void expect(const char *name, uint64_t m, uint64_t n, uint64_t k, device_profile p)
{
    dequant_vector_shape s = {m, n, k / 32, false};
    assert_string_equal(dequant_vector_choose(&s, &p, VARIANT_NONE).row.name, name);
}

static void classes(void **state)
{
    (void)state;
    expect("staged_512", 1, 4096, 14336, big_gpu());
    expect("staged_8", 1, 128256, 4096, big_gpu());
    expect("staged_8", 1, 32000, 4096, big_gpu());
    expect("staged_16", 1, 16384, 4096, big_gpu());
    expect("staged_32", 1, 8192, 4096, big_gpu());
    expect("staged_256", 1, 2048, 4096, big_gpu());
    expect("staged_128", 1, 64, 4096, big_gpu());
    expect("staged_128", 1, 4096, 14336, baseline());
    expect("direct_four", 4, 4096, 14336, baseline());
    expect("shared_512", 4, 4096, 14336, big_gpu());
    expect("direct_four", 4, 2048, 14336, big_gpu());
    expect("shared_512", 9, 2048, 14336, big_gpu());
    expect("direct_two", 32, 4096, 14336, baseline());
    expect("direct_four", 33, 4096, 14336, baseline()); /* five passes of seven rows */
    expect("alone", 1, 4096, 14336, software());
    expect("alone", 8, 4096, 14336, software());
    device_profile adreno = big_gpu(); /* 512 invocations have 96 registers each */
    adreno.unit_registers = 49152;
    adreno.thread_registers = 192;
    adreno.loads_early = true;
    expect("shared_four", 9, 2048, 14336, adreno);
}

static void integers_where_hardware_multiplies_bytes(void **state)
{
    (void)state;
    dequant_vector_shape s = {1, 4096, 448, .integers = true};
    device_profile p = big_gpu();
    p.byte_products = p.quick_byte_products = p.subgroup_shuffle = true, p.subgroup_size = 32;
    p.max_shuffle_invocations = 1024;
    assert_string_equal(dequant_vector_choose(&s, &p, VARIANT_NONE).row.name, "integer_512");
    assert_int_equal(dequant_vector_choose(&s, &p, VARIANT_NONE).team, 224);
    assert_int_equal(dequant_vector_choose(&s, &p, VARIANT_NONE).threads, 448);
    s.units = 8; /* a team has at least one subgroup */
    assert_int_equal(dequant_vector_choose(&s, &p, VARIANT_NONE).team, 32);
    s.units = 449;
    assert_string_equal(dequant_vector_choose(&s, &p, VARIANT_NONE).row.name, "staged_512");
    s.units = 1026; /* too long for a workgroup */
    assert_string_equal(dequant_vector_choose(&s, &p, VARIANT_NONE).row.name, "staged_512");
    s.units = 448, s.m = 2;
    assert_string_equal(dequant_vector_choose(&s, &p, VARIANT_NONE).row.name, "shared_512");
    s.m = 1, s.integers = false;
    assert_string_equal(dequant_vector_choose(&s, &p, VARIANT_NONE).row.name, "staged_512");
    s.integers = true, p.quick_byte_products = false;
    assert_string_equal(dequant_vector_choose(&s, &p, VARIANT_NONE).row.name, "staged_512");
    /* If the hardware lacks it, integers are used only on request. */
    size_t row = choice_find_row(&choice_kinds[CHOICE_dequant_vector], "integer_512", 11);
    assert_string_equal(dequant_vector_choose(&s, &p, row).row.name, "integer_512");
    p.max_shuffle_invocations = 256;
    assert_string_equal(dequant_vector_choose(&s, &p, row).row.name, "staged_512");
    p.max_shuffle_invocations = 1024, p.subgroup_shuffle = false;
    assert_string_equal(dequant_vector_choose(&s, &p, row).row.name, "staged_512");
}

/* Rows of the table `dequant`. */
enum { FRAGMENT, BLOCKS, PANEL, MATRIX, UNPACKED, TILED };

static const char *way(uint64_t rows, uint64_t weights, bool elements, device_profile p, size_t row)
{
    p.max_binding_bytes = UINT32_MAX;
    return dequant_choose(&(dequant_shape){rows, weights, elements}, &p, row)->row.name;
}

static void ways(void **state)
{
    (void)state;
    const uint64_t weights = 4096 * 4096;
    assert_string_equal(way(33, weights, false, big_gpu(), VARIANT_NONE), "unpacked");
    assert_string_equal(way(32, weights, false, big_gpu(), VARIANT_NONE), "vector");
    assert_string_equal(way(33, 16 * weights, false, big_gpu(), VARIANT_NONE), "tiled");
    assert_string_equal(way(33, weights, true, big_gpu(), VARIANT_NONE), "tiled");
    assert_string_equal(way(33, weights, true, software(), VARIANT_NONE), "vector");
    assert_string_equal(way(1, weights, false, software(), UNPACKED), "unpacked");
    assert_string_equal(way(1, weights, true, software(), UNPACKED), "vector");
    assert_string_equal(way(1, weights, true, software(), TILED), "tiled");
    for (size_t row = 0; row < UNPACKED; row++) /* none of these for f32 */
        assert_string_equal(way(512, weights, false, big_gpu(), row), "unpacked");
}

static const char *way_on_units(uint64_t rows, device_profile p, size_t row)
{
    p.max_binding_bytes = UINT32_MAX;
    return dequant_choose(&(dequant_shape){rows, 1 << 24, .units = true}, &p, row)->row.name;
}

/* The choice if decoded weights are kept. */
static const char *way_kept(uint64_t rows, uint64_t weights, bool units)
{
    device_profile p = big_gpu();
    p.max_binding_bytes = UINT32_MAX;
    return dequant_choose(&(dequant_shape){rows, weights, .units = units, .kept = true}, &p,
                          VARIANT_NONE)
        ->row.name;
}

static void ways_on_matrix_units(void **state)
{
    (void)state;
    assert_string_equal(way_on_units(512, big_gpu(), VARIANT_NONE), "matrix");
    assert_string_equal(way_on_units(65536, big_gpu(), VARIANT_NONE), "matrix");
    assert_string_equal(way_on_units(16, big_gpu(), VARIANT_NONE), "matrix");
    assert_string_equal(way_on_units(128, big_gpu(), VARIANT_NONE), "matrix");
    assert_string_equal(way_on_units(4, big_gpu(), VARIANT_NONE), "vector");
    assert_string_equal(way_on_units(512, big_gpu(), UNPACKED), "unpacked");
    assert_string_equal(way_on_units(512, software(), VARIANT_NONE), "vector");
    assert_string_equal(way_on_units(1, software(), MATRIX), "matrix");
    assert_string_equal(way_on_units(16, big_gpu(), FRAGMENT), "matrix");
}

/* If weights are decoded once and kept, a separate pass is worth it for many rows. */
static void ways_of_weights_that_stay(void **state)
{
    (void)state;
    assert_string_equal(way_kept(257, 1 << 24, true), "unpacked");
    assert_string_equal(way_kept(256, 1 << 24, true), "matrix");
    assert_string_equal(way_kept(257, 1 << 28, true), "matrix"); /* above the decoding limit */
    assert_string_equal(way_kept(64, 1 << 24, false), "unpacked");
    assert_string_equal(way_kept(257, 1 << 28, false), "tiled");
}

/* The rows of the table that take weights from registers, on devices whose matrices are or are not
 * in lanes. */
static void ways_from_registers(void **state)
{
    (void)state;
    device_profile gpu = big_gpu(), cpu = software();
    dequant_shape s = {
        .weights = 1 << 24, .units = true, .fragments = true, .panels = true, .in_lanes = true};
    static const struct {
        uint64_t rows;
        const char *way;
    } ways[] = {{1, "vector"}, {2, "fragment"}, {64, "fragment"}, {65, "panel"}, {4096, "panel"}};
    gpu.max_binding_bytes = cpu.max_binding_bytes = UINT32_MAX;
    for (size_t i = 0; i < ARRAY_COUNT(ways); i++) {
        s.rows = ways[i].rows;
        assert_string_equal(dequant_choose(&s, &gpu, VARIANT_NONE)->row.name, ways[i].way);
        assert_string_equal(dequant_choose(&s, &gpu, FRAGMENT)->row.name, "fragment");
        assert_string_equal(dequant_choose(&s, &cpu, VARIANT_NONE)->row.name, "vector");
    }
    s.rows = 4096, s.blocks_from = 2048;
    assert_string_equal(dequant_choose(&s, &gpu, VARIANT_NONE)->row.name, "blocks");
    s.rows = 2047;
    assert_string_equal(dequant_choose(&s, &gpu, VARIANT_NONE)->row.name, "panel");
    s.rows = 2048, s.weights = 1 << 28; /* above the decoding limit */
    assert_string_equal(dequant_choose(&s, &gpu, VARIANT_NONE)->row.name, "panel");
    assert_string_equal(dequant_choose(&s, &gpu, BLOCKS)->row.name, "panel");
    s.rows = 16, s.weights = 1 << 24, s.in_lanes = false;
    assert_string_equal(dequant_choose(&s, &gpu, VARIANT_NONE)->row.name, "matrix");
    assert_string_equal(dequant_choose(&s, &gpu, FRAGMENT)->row.name, "fragment");
    s.rows = 512;
    assert_string_equal(dequant_choose(&s, &gpu, VARIANT_NONE)->row.name, "matrix");
    assert_string_equal(dequant_choose(&s, &gpu, PANEL)->row.name, "panel");
    assert_string_equal(dequant_choose(&s, &gpu, BLOCKS)->row.name, "blocks");
    s.rows = 4096;
    assert_string_equal(dequant_choose(&s, &gpu, VARIANT_NONE)->row.name, "matrix");
}

/* The class that a device gets for a product from registers. */
static const char *parts(uint64_t n, bool rounds, matrix_shape unit, uint32_t lanes, bool rounding)
{
    device_profile p = big_gpu();
    p.matrix_f16 = unit, p.subgroup_size = lanes, p.half_rounding = rounding;
    p.shared_memory_bytes = 49152;
    const dequant_fragment_class *c =
        dequant_fragment_choose(&(dequant_fragment_shape){16, n, rounds}, &p, VARIANT_NONE);
    return c ? c->row.name : "none";
}

static void parts_from_registers(void **state)
{
    (void)state;
    const matrix_shape square = {16, 16, 16}, small = {8, 8, 8}, flat = {8, 16, 16}, none = {0};
    uint64_t few = 16 * (uint64_t)big_gpu().compute_units, many = 2 * few;
    assert_string_equal(parts(many, true, square, 32, true), "four_parts");
    assert_string_equal(parts(few, true, square, 32, true), "eight_parts");
    assert_string_equal(parts(few, true, square, 32, false), "none");
    assert_string_equal(parts(few, false, square, 32, false), "eight_parts");
    assert_string_equal(parts(few, false, small, 8, false), "four_parts");
    assert_string_equal(parts(few, false, square, 64, true), "none"); /* two words for each lane */
    assert_string_equal(parts(few, false, flat, 16, true), "none");
    assert_string_equal(parts(few, false, none, 32, true), "none");
}

static const char *panels(uint64_t m, uint64_t n, matrix_shape unit, uint32_t lanes)
{
    device_profile p = big_gpu();
    p.matrix_f16 = unit, p.subgroup_size = lanes;
    const dequant_panel_class *c =
        dequant_panel_choose(&(matmul_shape){.m = m, .n = n, .k = 4096, .batch = 1},
                             RLXVK_PRECISION_F16, &p, VARIANT_NONE);
    return c ? c->row.name : "none";
}

/* Panels depend on the number of rounds. K is split if there are too few columns to fill the
 * device. */
static void panels_from_registers(void **state)
{
    (void)state;
    const matrix_shape square = {16, 16, 16}, small = {8, 8, 8}, none = {0};
    device_profile p = big_gpu();
    matmul_shape s = {.m = 512, .n = 4096, .k = 4096, .batch = 1};
    assert_string_equal(panels(512, 28672, square, 32), "rows_128");
    assert_string_equal(panels(65, 16384, square, 32), "rows_128");
    assert_string_equal(panels(640, 4096, square, 32), "rows_128"); /* one round either way */
    assert_string_equal(panels(320, 8192, square, 32), "rows_128");
    assert_string_equal(panels(192, 16384, square, 32), "rows_128");
    assert_string_equal(panels(64, 16384, square, 32), "rows_64");
    assert_string_equal(panels(512, 28672, small, 8), "rows_128");
    assert_string_equal(panels(512, 28672, square, 64), "rows_128");
    assert_string_equal(panels(512, 28672, none, 32), "none");
    p.matrix_f16 = square, p.subgroup_size = 32;
    const dequant_panel_class *c = dequant_panel_choose(&s, RLXVK_PRECISION_F16, &p, VARIANT_NONE);
    assert_int_equal(dequant_panel_columns(c), 256);
    assert_int_equal(dequant_panel_slice(c, &s, &p), 16); /* 64 tiles for 128 units */
    s.n = 6144;
    assert_int_equal(dequant_panel_slice(c, &s, &p), 32);
    s.n = 256, s.m = 128, s.k = 300;
    assert_int_equal(dequant_panel_slice(c, &s, &p), 3); /* a part has 4 or more */
}

/* Panels need matrix units for the precision, with 16-bit operands. They also need f16
 * arithmetic. */
static void panels_of_precisions(void **state)
{
    (void)state;
    const matmul_shape s = {.m = 512, .n = 4096, .k = 4096, .batch = 1};
    device_profile p = big_gpu();
    p.matrix_f16 = p.matrix_f32 = (matrix_shape){16, 16, 16}, p.subgroup_size = 32;
    assert_non_null(dequant_panel_choose(&s, RLXVK_PRECISION_F16, &p, VARIANT_NONE));
    assert_null(dequant_panel_choose(&s, RLXVK_PRECISION_BF16, &p, VARIANT_NONE));
    assert_null(dequant_panel_choose(&s, RLXVK_PRECISION_F32, &p, VARIANT_NONE));
    assert_null(dequant_panel_choose(&s, RLXVK_PRECISION_SPLIT, &p, VARIANT_NONE));
    p.matrix_bf16 = p.matrix_f16;
    assert_non_null(dequant_panel_choose(&s, RLXVK_PRECISION_BF16, &p, VARIANT_NONE));
    p.matrix_f16 = (matrix_shape){0};
    assert_null(dequant_panel_choose(&s, RLXVK_PRECISION_BF16, &p, VARIANT_NONE));
}

static void experts_do_not_share_rows(void **state)
{
    (void)state;
    device_profile gpu = big_gpu(), cpu = software();
    dequant_vector_shape s = {8, 4096, 448, true};
    assert_int_equal(dequant_vector_choose(&s, &gpu, VARIANT_NONE).rows, 1);
    assert_int_equal(dequant_vector_choose(&s, &cpu, VARIANT_NONE).rows, 1);
}

/* The conditions that dequant_matvec.glsl relies on. */
static void check(const dequant_vector_class *c, const dequant_vector_shape *s)
{
    uint64_t columns = (uint64_t)c->threads / c->team * c->columns;
    assert_int_equal(c->threads % c->team, 0);
    assert_int_equal(c->team & (c->team - 1), 0);
    assert_true(c->chunk % 8 == 0);
    assert_true(c->chunk == 0 || (c->chunk >= c->team && c->chunk % c->team == 0));
    assert_true(c->chunk == 0 || c->rows == 1 || c->threads >= 2 * c->team);
    assert_true(!s->experts || c->rows == 1);
    assert_true(dequant_vector_groups(c, s) * columns * c->rows >= s->m * s->n);
}

/* The conditions that dequant_matvec_integer.comp relies on. */
static void check_integers(const dequant_vector_class *c, const dequant_vector_shape *s,
                           const device_profile *p)
{
    const team_division *d = &c->teams;
    assert_int_equal(c->team % p->subgroup_size, 0);
    assert_int_equal(c->threads % c->team, 0);
    assert_true(c->team * (uint64_t)DEQUANT_SPAN >= s->units);
    assert_true(c->columns <= p->subgroup_size && c->chunk >= 8 && s->integers);
    assert_true(d->groups * d->rounds * c->threads / c->team * c->columns >= s->n);
    assert_int_equal(dequant_vector_groups(c, s), s->m * d->groups);
}

static void every_shape_fits(void **state)
{
    (void)state;
    device_profile modern = big_gpu();
    modern.byte_products = modern.quick_byte_products = modern.subgroup_shuffle = true;
    modern.subgroup_size = 32, modern.max_shuffle_invocations = 1024;
    const device_profile profiles[] = {big_gpu(), baseline(), software(), modern};
    static const uint64_t sizes[] = {0, 1, 3, 8, 100, 448, 4096, 128256};
    for (size_t p = 0; p < ARRAY_COUNT(profiles); p++)
        for (size_t i = 0; i < ARRAY_COUNT(sizes) * ARRAY_COUNT(sizes); i++)
            for (uint64_t m = 1; m <= 16; m += 1 + m / 4)
                for (size_t forced = 0; forced <= dequant_vector_choice.count; forced++) {
                    dequant_vector_shape s = {m,
                                              sizes[i % 8],
                                              sizes[i / 8],
                                              m == 8,
                                              .integers = sizes[i / 8] % 8 == 0,
                                              .pieces = i % 2};
                    dequant_vector_class c = dequant_vector_choose(&s, &profiles[p], forced);
                    if (c.integers)
                        check_integers(&c, &s, &profiles[p]);
                    else
                        check(&c, &s);
                    assert_true(c.threads <= profiles[p].max_workgroup_invocations);
                    assert_true(dequant_vector_shared_bytes(&c, &s) <=
                                profiles[p].shared_memory_bytes);
                }
}

static const char *tile(uint64_t rows, device_profile p)
{
    return dequant_tile_choose(rows, &p, VARIANT_NONE)->row.name;
}

/* Also checks the conditions that dequant_matmul.glsl relies on. */
static void tiles(void **state)
{
    (void)state;
    assert_string_equal(tile(3, big_gpu()), "tiled_16x64");
    assert_string_equal(tile(16, big_gpu()), "tiled_32x64");
    assert_string_equal(tile(33, big_gpu()), "tiled_64x64");
    assert_string_equal(tile(64, big_gpu()), "tiled_128x128");
    assert_string_equal(tile(128, big_gpu()), "tiled_160x128");
    assert_string_equal(tile(512, big_gpu()), "tiled_128x128");
    assert_string_equal(tile(512, baseline()), "tiled_32x64");
    assert_string_equal(tile(512, software()), "tiled_32x64");
    for (size_t i = 0; i < dequant_tile_choice.count; i++) {
        const dequant_tile_class *c = choice_row_at(&dequant_tile_choice, i);
        uint32_t threads = dequant_tile_threads(c);
        assert_true(threads >= 2u * c->columns || c->columns % threads == 0);
        assert_int_equal(c->rows * 8u % threads, 0);
        assert_int_equal(threads * c->register_rows * c->register_columns, c->rows * c->columns);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes),
        cmocka_unit_test(integers_where_hardware_multiplies_bytes),
        cmocka_unit_test(ways),
        cmocka_unit_test(ways_on_matrix_units),
        cmocka_unit_test(ways_of_weights_that_stay),
        cmocka_unit_test(ways_from_registers),
        cmocka_unit_test(parts_from_registers),
        cmocka_unit_test(panels_from_registers),
        cmocka_unit_test(panels_of_precisions),
        cmocka_unit_test(tiles),
        cmocka_unit_test(experts_do_not_share_rows),
        cmocka_unit_test(every_shape_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
