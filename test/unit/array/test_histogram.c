/*
 * bincount on a device: all variants count the same, even if a bin has more than 65535 elements.
 * Also tests which variant is chosen.
 */
#include "args/array.h"
#include "op/array/histogram_choice.h"
#include "support/harness.h"
#include "support/profiles.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT 2200003
#define BINS  17001

static void run(const char *row, const float *x, float *y)
{
    rlxvk_variant variant = {"histogram", row};
    rlxvk_compile_options options = {.variants = &variant, .variant_count = 1};
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    rlxvk_run_input in = {.name = "x", .data = x, .length = COUNT};
    rlxvk_run_output out = {.buffer = y, .length = BINS};
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor t = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(COUNT));
    rlxvk_graph_output(g, rlxvk_bincount(g, t, RLXVK_NONE, BINS));
    expect_ok(rlxvk_compile(shared_context, g, &options, &e));
    expect_ok(rlxvk_run(e, &in, 1, &out, 1));
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

static void counts_alike(void **state)
{
    static float wanted[BINS], got[BINS];
    float *x = malloc(COUNT * sizeof *x);
    const kernel_kind *kind = &choice_kinds[CHOICE_histogram];
    (void)state;
    assert_non_null(x);
    for (int i = 0; i < COUNT; i++) {
        int bin = i % 9 ? 1 : i / 9 % BINS;
        x[i] = (float)bin;
        wanted[bin]++;
    }
    for (size_t i = 0; choice_row_name(kind, i); i++) {
        run(choice_row_name(kind, i), x, got);
        assert_memory_equal(got, wanted, sizeof got);
    }
    free(x);
}

static const char *choose(const device_profile *p, uint64_t count, uint64_t bins)
{
    return histogram_find_way(&(histogram_problem){count, bins, 4}, p, VARIANT_NONE)->row.name;
}

static void ways(void **state)
{
    device_profile gpu = big_gpu(), least = baseline(), cpu = software();
    (void)state;
    assert_string_equal(choose(&gpu, 1 << 26, 256), "packed");
    assert_string_equal(choose(&gpu, 1 << 26, 8192), "packed");
    assert_string_equal(choose(&least, 1 << 26, 8192), "packed");
    assert_string_equal(choose(&gpu, 1 << 13, 256), "shared");
    assert_string_equal(choose(&gpu, 1 << 24, 65536), "direct");
    assert_string_equal(choose(&cpu, 1 << 24, 256), "shared");
    assert_string_equal(choose(&cpu, 1 << 24, 16384), "packed");
    assert_string_equal(choose(&gpu, 1 << 26, 65537), "direct");
    assert_string_equal(choose(&gpu, 1 << 20, 65536), "direct");
}

/* Packed counters have 16 bits, so no workgroup may count more elements than that. Together the
 * workgroups must cover all elements. */
static void divides_all(void **state)
{
    device_profile gpu = big_gpu();
    const choice_table *table = choice_kinds[CHOICE_histogram].table;
    (void)state;
    for (size_t i = 0; i < table->count; i++)
        for (uint64_t count = 1; count < 1u << 30; count = 3 * count + 1) {
            const histogram_way *way = choice_row_at(table, i);
            histogram_problem p = {count, 6000, count % 2 ? 4 : 1};
            histogram_division d = histogram_divide(way, &p, &gpu);
            uint64_t chunks = d.groups / d.ranges;
            assert_true(chunks * d.run * p.width + p.width > count);
            assert_true(d.ranges * d.range_bins >= p.bins);
            if (way->place == HISTOGRAM_PACKED)
                assert_true(d.run * p.width + 3 < 1 << 16);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(counts_alike), cmocka_unit_test(ways),
                                       cmocka_unit_test(divides_all)};
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
