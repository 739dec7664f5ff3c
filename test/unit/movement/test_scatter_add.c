/*
 * scatter_add: variants add updates in their order, so results are the same bit for bit. One
 * variant does not promise that, and is only used if it is asked for by name.
 */
#include "op/movement/scatter_add_choice.h"
#include "support/harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct problem {
    int64_t rows, columns, updates;
} problem;

/* Magnitudes differ so much that any other order of additions would round differently. */
static void fill(const problem *p, float *updates, float *indices)
{
    uint32_t x = 1;
    for (int64_t i = 0; i < p->updates * p->columns; i++) {
        x = x * 1664525u + 1013904223u;
        updates[i] = ((float)(x >> 8) - 0x1p23f) * (x & 64 ? 0x1p-20f : 0x1p-12f);
    }
    for (int64_t u = 0; u < p->updates; u++) {
        x = x * 1664525u + 1013904223u;
        indices[u] = (float)(x >> 8) * 0x1p-24f * (float)p->rows - 0.25f;
    }
}

static void add_in_order(const problem *p, const float *updates, const float *indices, float *y)
{
    for (int64_t u = 0; u < p->updates; u++) {
        int64_t row = (int64_t)(indices[u] + 0.5f);
        for (int64_t c = 0; c < p->columns && row < p->rows; c++) {
            volatile float sum = y[row * p->columns + c] + updates[u * p->columns + c];
            y[row * p->columns + c] = sum;
        }
    }
}

static void run(const problem *p, const char *row, const float *updates, const float *indices,
                float *y)
{
    rlxvk_variant variant = {"scatter_add", row};
    rlxvk_compile_options options = {.variants = &variant, .variant_count = row ? 1 : 0};
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    rlxvk_run_input in[] = {{.name = "x",
                             .data = updates,
                             .length = (size_t)(p->updates * p->columns)},
                            {.name = "i", .data = indices, .length = (size_t)p->updates}};
    rlxvk_run_output out = {.buffer = y, .length = (size_t)(p->rows * p->columns)};
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(p->updates, p->columns));
    rlxvk_tensor i = rlxvk_input(g, "i", RLXVK_F32, RLXVK_SHAPE(p->updates));
    rlxvk_graph_output(g, rlxvk_scatter_add(g, x, i, p->rows));
    expect_ok(rlxvk_compile(shared_context, g, &options, &e));
    expect_ok(rlxvk_run(e, in, 2, &out, 1));
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

static void expect_order(const problem *p)
{
    static const char *const rows[] = {NULL, "direct", "runs", "elements"};
    size_t words = (size_t)(p->updates * p->columns), size = (size_t)(p->rows * p->columns);
    float *updates = malloc(words * sizeof *updates);
    float *indices = malloc((size_t)p->updates * sizeof *indices);
    float *wanted = calloc(size, sizeof *wanted), *got = malloc(size * sizeof *got);
    assert_true(updates && indices && wanted && got);
    fill(p, updates, indices);
    add_in_order(p, updates, indices, wanted);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        run(p, rows[i], updates, indices, got);
        assert_memory_equal(got, wanted, size * sizeof *got);
    }
    run(p, "parts", updates, indices, wanted);
    run(p, "parts", updates, indices, got);
    assert_memory_equal(got, wanted, size * sizeof *got);
    free(updates);
    free(indices);
    free(wanted);
    free(got);
}

static void test_order(void **state)
{
    static const problem problems[] = {{3, 1, 20000},  {10, 3, 9001}, {1, 1, 5000},
                                       {40, 17, 6000}, {2, 5, 4000},  {900, 2, 5003}};
    (void)state;
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++)
        expect_order(&problems[i]);
}

static const char *choose(scatter_shape s, size_t forced)
{
    static const device_profile gpu = {.kind = RLXVK_DEVICE_DISCRETE,
                                       .max_workgroup_invocations = 1024,
                                       .workgroup_size = 256,
                                       .compute_units = 128};
    return scatter_choose(&s, &gpu, forced)->row.name;
}

static void test_choice(void **state)
{
    const kernel_kind *kind = &choice_kinds[CHOICE_scatter_add];
    size_t parts = choice_find_row(kind, "parts", 5);
    (void)state;
    assert_string_equal(choose((scatter_shape){1, 10, 1, 4096}, VARIANT_NONE), "direct");
    assert_string_equal(choose((scatter_shape){1, 10, 1, 4097}, VARIANT_NONE), "runs");
    assert_string_equal(choose((scatter_shape){1, 10, 1024, 65536}, VARIANT_NONE), "runs");
    assert_string_equal(choose((scatter_shape){1, 1000, 1024, 65536}, VARIANT_NONE), "elements");
    assert_string_equal(choose((scatter_shape){1, 32000, 1024, 65536}, VARIANT_NONE), "elements");
    assert_string_equal(choose((scatter_shape){1, 10, 1, 1000000}, parts), "parts");
    assert_string_equal(choose((scatter_shape){2, 10, 1, 1000000}, parts), "runs");
    assert_string_equal(choose((scatter_shape){4096, 32000, 1, 10}, VARIANT_NONE), "elements");
    assert_string_equal(choose((scatter_shape){1, 33, 1, 1000000}, parts), "runs");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order), cmocka_unit_test(test_choice)};
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
