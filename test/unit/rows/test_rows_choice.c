/*
 * The choice of row kernels, on made-up devices. Tests the choice, that it fits the device and the
 * kernels' own conditions, and that lanes and chunks cover the rows.
 */
#include "op/rows/row_tile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static device_profile big_gpu(void)
{
    return (device_profile){.kind = RLXVK_DEVICE_DISCRETE,
                            .subgroup_size = 32,
                            .subgroup_shuffle = true,
                            .max_shuffle_invocations = 1024,
                            .max_workgroup_invocations = 1024,
                            .workgroup_size = 256,
                            .shared_memory_bytes = 32768,
                            .compute_units = 128};
}

static device_profile baseline(void)
{
    return (device_profile){.kind = RLXVK_DEVICE_INTEGRATED,
                            .subgroup_size = 32,
                            .max_workgroup_invocations = 128,
                            .workgroup_size = 128,
                            .compute_units = 16};
}

static device_profile software(void)
{
    return (device_profile){.kind = RLXVK_DEVICE_CPU,
                            .subgroup_size = 8,
                            .subgroup_shuffle = true,
                            .max_shuffle_invocations = 1024,
                            .max_workgroup_invocations = 1024,
                            .workgroup_size = 64,
                            .compute_units = 4,
                            .portable = true};
}

/* If a subgroup is so small, shuffles hardly help. */
static device_profile tiny_subgroups(void)
{
    device_profile p = big_gpu();
    p.subgroup_size = 2;
    return p;
}

static const char *choose(row_shape s, device_profile p, size_t forced)
{
    return rows_choose(&s, &p, forced)->row.name;
}

#define HELD (ROW_COPIED | ROW_REREAD) /* by kernels that hold rows */

static const row_shape whole_quads = {1, 1024, 999, ROW_WHOLE | ROW_ALIKE},
                       odd_rows = {1, 1001, 999, 0}, columns = {7, 1024, 999, 0};

static void classes(void **state)
{
    (void)state;
    assert_string_equal(choose(whole_quads, big_gpu(), VARIANT_NONE), "subgroup_quads");
    assert_string_equal(choose(odd_rows, big_gpu(), VARIANT_NONE), "subgroup_words");
    assert_string_equal(choose(columns, big_gpu(), VARIANT_NONE), "shared_words");
    assert_string_equal(choose(whole_quads, baseline(), VARIANT_NONE), "shared_quads");
    assert_string_equal(choose(odd_rows, baseline(), VARIANT_NONE), "shared_words");
    assert_string_equal(choose(whole_quads, software(), VARIANT_NONE), "shared_words");
    assert_string_equal(choose(whole_quads, tiny_subgroups(), VARIANT_NONE), "shared_quads");
}

/* Only kernels that hold rows have these forms. */
static void forms(void **state)
{
    (void)state;
    uint32_t odd = ROW_ALIKE | HELD, whole = ROW_WHOLE | odd;
    device_profile small = big_gpu();
    small.shared_memory_bytes = 16384;
    small.max_workgroup_invocations = 512;
    assert_string_equal(choose((row_shape){1, 17, 999, odd}, big_gpu(), VARIANT_NONE),
                        "subgroup_span");
    assert_string_equal(choose((row_shape){1, 33, 999, odd}, big_gpu(), VARIANT_NONE),
                        "subgroup_ragged");
    assert_string_equal(choose((row_shape){1, 32, 999, whole}, big_gpu(), VARIANT_NONE),
                        "subgroup_quads");
    assert_string_equal(choose((row_shape){1, 33, 999, odd}, small, VARIANT_NONE),
                        "subgroup_ragged");
    assert_string_equal(choose((row_shape){1, 7, 999, odd}, small, VARIANT_NONE), "subgroup_words");
    assert_string_equal(choose((row_shape){1, 1001, 999, odd}, big_gpu(), VARIANT_NONE),
                        "subgroup_ragged");
    assert_string_equal(choose((row_shape){1, 50257, 999, odd}, big_gpu(), VARIANT_NONE),
                        "long_ragged");
    assert_string_equal(choose((row_shape){1, 50257, 9, odd}, big_gpu(), VARIANT_NONE),
                        "subgroup_ragged");
    assert_string_equal(choose((row_shape){1, 32000, 9, whole}, big_gpu(), VARIANT_NONE),
                        "long_quads");
    assert_string_equal(choose((row_shape){1, 32000, 999, whole}, small, VARIANT_NONE),
                        "subgroup_quads");
    assert_string_equal(choose((row_shape){64, 256, 999, ROW_PARTED}, big_gpu(), VARIANT_NONE),
                        "columns");
    assert_string_equal(choose((row_shape){64, ROW_MOST_COLUMN + 1, 999, ROW_PARTED}, big_gpu(),
                               VARIANT_NONE),
                        "shared_words");
}

static size_t index_of(const char *name)
{
    return choice_find_row(&choice_kinds[CHOICE_rows], name, strlen(name));
}

/* Rows that are too long for small workgroups to hold. */
static void long_rows(void **state)
{
    (void)state;
    uint32_t odd = ROW_ALIKE | HELD, whole = ROW_WHOLE | odd;
    size_t stream = index_of("stream_quads");
    row_shape rows = {1, 32000, 999, whole | ROW_FLOWS};
    assert_string_equal(choose(rows, big_gpu(), VARIANT_NONE), "stream_quads");
    rows.traits = odd | ROW_FLOWS;
    assert_string_equal(choose(rows, big_gpu(), VARIANT_NONE), "stream_ragged");
    rows.traits = whole;
    assert_string_equal(choose(rows, big_gpu(), stream), "long_quads");
    rows = (row_shape){1, 32000, 99, whole | ROW_FLOWS};
    assert_string_equal(choose(rows, big_gpu(), VARIANT_NONE), "long_quads");
}

/* A row of the table that is asked for is taken if possible, and otherwise ignored. */
static void forced(void **state)
{
    (void)state;
    size_t quads = index_of("subgroup_quads"), words = index_of("subgroup_words");
    assert_string_equal(choose(whole_quads, software(), quads), "subgroup_quads");
    assert_string_equal(choose(whole_quads, software(), words), "subgroup_words");
    assert_string_equal(choose(odd_rows, software(), quads), "shared_words");
    assert_string_equal(choose(columns, big_gpu(), words), "shared_words");
    assert_string_equal(choose(whole_quads, baseline(), quads), "shared_quads");
    assert_string_equal(choose(whole_quads, big_gpu(), index_of("shared_words")), "shared_words");
}

static void check_tile(axis_view v, uint32_t traits, const device_profile *p, const char *variants)
{
    lowering l = {.profile = p};
    assert_int_equal(variant_parse(variants, "test", &l.variants), RLXVK_OK);
    row_tile tile = row_tile_choose(&l, v, traits, 4, 4 * ROW_MOST_QUADS);
    row_chunks chunks = row_chunks_choose(p, v, &tile, 16 * tile.lanes);
    uint32_t quads = row_quads(v, &tile);
    assert_true(tile.lanes > 0 && (tile.lanes & (tile.lanes - 1)) == 0);
    assert_true(tile.size % tile.lanes == 0 && tile.size <= p->max_workgroup_invocations);
    assert_true(row_class_shuffles(tile.form) || tile.size <= ROW_TILE_LARGEST);
    assert_true(!row_class_shuffles(tile.form) || tile.size % p->subgroup_size == 0);
    assert_true(tile.lane_stride == (v.inner == 1 ? 1 : tile.size / tile.lanes));
    assert_true(quads == 0 || 4ull * quads * tile.lanes >= v.length);
    assert_true(chunks.length * chunks.count >= v.length);
    assert_true(chunks.count == 1 ||
                (chunks.length * (chunks.count - 1) < v.length && chunks.length % 4 == 0));
}

static void tiles_cover(void **state)
{
    (void)state;
    static const uint64_t extents[] = {1, 4, 31, 320, 1024, 4096, 32000, 1u << 20};
    static const char *const variants[] = {NULL,
                                           "rows=subgroup_words",
                                           "rows=shared_quads",
                                           "rows=long_quads",
                                           "rows=subgroup_ragged",
                                           "rows=stream_quads"};
    const device_profile profiles[] = {big_gpu(), baseline(), software(), tiny_subgroups()};
    for (size_t i = 0; i < 512 * ARRAY_COUNT(profiles) * ARRAY_COUNT(variants); i++) {
        axis_view v = {extents[i % 8], extents[i / 8 % 8], extents[i / 64 % 8]};
        uint32_t whole = v.inner == 1 && v.length % 4 == 0 ? ROW_WHOLE : 0;
        check_tile(v, whole | ROW_ALIKE | HELD | ROW_FLOWS, &profiles[i / 512 % 4],
                   variants[i / 2048]);
    }
}

/* 1,024 threads have 64 registers each on a compute unit of 65,536, so workgroups are halved. With
 * 49,152, they have 96, and a lane keeps fewer quads. */
static void registers(void **state)
{
    (void)state;
    device_profile p = big_gpu();
    lowering l = {.profile = &p};
    axis_view v = {999, 32768, 1};
    uint32_t traits = ROW_WHOLE | ROW_ALIKE | ROW_REREAD;
    row_tile tile = row_tile_choose(&l, v, traits, 4, 4 * ROW_MOST_QUADS);
    assert_int_equal(tile.size, 1024);
    assert_int_equal(tile.held, 8);
    p.thread_registers = 255;
    p.unit_registers = 65536;
    tile = row_tile_choose(&l, v, traits, 4, 4 * ROW_MOST_QUADS);
    assert_int_equal(tile.size, 512);
    assert_int_equal(tile.held, 6);
    p.unit_registers = 49152;
    row_plan plan = row_plan_choose(&l, v, traits, UINT32_MAX);
    assert_int_equal(plan.tile.size, 512);
    assert_int_equal(plan.quads, 4);
    assert_true(plan.rest);
    p.thread_registers = 127;
    for (uint64_t n = 1; n < 600; n++) { /* the quads of a kernel are no more than a lane keeps */
        tile = row_tile_plain(&l, (axis_view){1, n, 33}, 4, 4 * ROW_MOST_QUADS);
        assert_int_equal(tile.held, 6);
        assert_true(row_quads((axis_view){1, n, 33}, &tile) <= tile.held);
    }
    p.loads_early = true; /* places, too */
    tile = row_tile_plain(&l, (axis_view){1, 130, 33}, 4, 4 * ROW_MOST_QUADS);
    assert_int_equal(tile.held, 4);
}

static void whole_rows(void **state)
{
    (void)state;
    operand operands[] = {{.offset = 8}, {.offset = 4}};
    assert_int_equal(row_traits((axis_view){3, 12, 1}, operands, 2), ROW_WHOLE | ROW_ALIKE);
    assert_int_equal(row_traits((axis_view){3, 13, 1}, operands, 2), ROW_ALIKE);
    assert_int_equal(row_traits((axis_view){3, 12, 4}, operands, 2), ROW_PARTED);
    operands[0].offset = 10;
    operands[1].offset = 6;
    assert_int_equal(row_traits((axis_view){3, 12, 1}, operands, 2), ROW_ALIKE);
    operands[1].offset = 5;
    assert_int_equal(row_traits((axis_view){3, 12, 1}, operands, 2), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(classes),     cmocka_unit_test(forms),
                                       cmocka_unit_test(long_rows),   cmocka_unit_test(forced),
                                       cmocka_unit_test(tiles_cover), cmocka_unit_test(registers),
                                       cmocka_unit_test(whole_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
