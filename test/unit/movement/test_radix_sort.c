/*
 * sort and argsort of long rows. Each variant must keep the order of equal elements, and their
 * bits. Also tests which variant is chosen.
 */
#include "op/movement/radix_select.h"
#include "support/harness.h"
#include "support/profiles.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROWS   2
#define EXTENT 17001
#define COUNT  (ROWS * EXTENT)

/* Few distinct numbers, zeros of both signs, infinities and many kinds of NaN. */
static void fill(float *x)
{
    static const uint32_t kinds[] = {0, 0x80000000u, 0x7f800000u, 0xff800000u, 0x3f800000u};
    uint32_t state = 1;
    for (int i = 0; i < COUNT; i++) {
        state = state * 1664525u + 1013904223u;
        uint32_t kind = state >> 24, bits = state & 0xbfffffffu;
        if (kind < 64)
            bits = kinds[kind % 5];
        else if (kind < 72)
            bits = 0x7fc00000u | (state & 0x803fffffu);
        memcpy(&x[i], &bits, sizeof bits);
    }
}

static const float *compared;
static bool descending;

/* Orders by value, with NaN last. Equal values keep their order. */
static int compare(const void *left, const void *right)
{
    int a = *(const int *)left, b = *(const int *)right;
    float v = compared[a], w = compared[b];
    if (isnan(v) != isnan(w))
        return isnan(v) ? 1 : -1;
    if (!isnan(v) && v != w)
        return (v < w) != descending ? -1 : 1;
    return a < b ? -1 : 1;
}

static void sort_row(const float *x, float *values, float *places)
{
    static int order[EXTENT];
    compared = x;
    for (int i = 0; i < EXTENT; i++)
        order[i] = i;
    qsort(order, EXTENT, sizeof *order, compare);
    for (int i = 0; i < EXTENT; i++) {
        values[i] = x[order[i]];
        places[i] = (float)order[i];
    }
}

static void run(const char *row, const float *x, float *values, float *places)
{
    rlxvk_variant variant = {"radix", row};
    rlxvk_compile_options options = {.variants = &variant, .variant_count = 1};
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    rlxvk_run_input in = {.name = "x", .data = x, .length = COUNT};
    rlxvk_run_output out[] = {{.index = 0, .buffer = values, .length = COUNT},
                              {.index = 1, .buffer = places, .length = COUNT, .f32_words = true}};
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor t = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(ROWS, EXTENT));
    rlxvk_graph_output(g, rlxvk_sort(g, t, -1, descending));
    rlxvk_graph_output(g, rlxvk_argsort(g, t, -1, descending));
    expect_ok(rlxvk_compile(shared_context, g, &options, &e));
    expect_ok(rlxvk_run(e, &in, 1, out, 2));
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

static void keeps_order_and_bits(void **state)
{
    static float x[COUNT], wanted[2][COUNT], got[2][COUNT];
    const kernel_kind *kind = &choice_kinds[CHOICE_radix];
    (void)state;
    fill(x);
    for (int down = 0; down < 2; down++) {
        descending = down;
        for (int r = 0; r < COUNT; r += EXTENT)
            sort_row(&x[r], &wanted[0][r], &wanted[1][r]);
        for (size_t i = 0; choice_row_name(kind, i); i++) {
            run(choice_row_name(kind, i), x, got[0], got[1]);
            assert_memory_equal(got, wanted, sizeof got);
        }
    }
}

static const char *choose(const device_profile *p, uint64_t rows, uint64_t extent)
{
    return radix_select(&(radix_shape){rows, extent}, p, VARIANT_NONE)->row.name;
}

static void ways(void **state)
{
    device_profile gpu = big_gpu();
    (void)state;
    assert_string_equal(choose(&gpu, 1, 1 << 24), "counters_256");
    gpu.subgroup_ballot = gpu.subgroup_shuffle = true;
    gpu.subgroup_size = 32;
    assert_string_equal(choose(&gpu, 1, 1 << 24), "ballots_512");
    assert_string_equal(choose(&gpu, 200, 5000), "ballots_512");
    assert_string_equal(choose(&gpu, 1, 600000), "ballots_256");
    assert_string_equal(choose(&gpu, 1, 5000), "ballots_128");
    gpu.subgroup_size = 8; /* more counters than fit */
    assert_string_equal(choose(&gpu, 1, 1 << 24), "ballots_256");
    gpu.subgroup_size = 1;
    assert_string_equal(choose(&gpu, 1, 1 << 24), "counters_256");
    device_profile least = baseline(), cpu = software();
    assert_string_equal(choose(&least, 1, 1 << 24), "counters_128");
    assert_string_equal(choose(&cpu, 1, 1 << 24), "counters_256");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(keeps_order_and_bits),
                                       cmocka_unit_test(ways)};
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
