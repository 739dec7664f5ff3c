/*
 * scatter: each variant applies the updates of an element in their order, so results are the same
 * bit for bit. Also tests which variant is chosen.
 */
#include "op/array/scatter_choice.h"
#include "support/harness.h"
#include "support/profiles.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* x is [rows, columns], scattered along `axis`. Some indices are out of range at either end. If
 * `different` is small, many updates hit the same element. */
typedef struct problem {
    int64_t rows, columns, updates;
    int32_t axis;
    int64_t different; /* the number of distinct indices */
} problem;

typedef struct data {
    int64_t lines, length, inner; /* x is [lines, length, inner] */
    size_t numel, update_count;
    float *x, *index, *updates, *wanted, *got;
} data;

static uint32_t random_bits(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state;
}

/* Magnitudes differ so much that any other order of additions would round differently. */
static float random_value(uint32_t *state)
{
    uint32_t r = random_bits(state);
    return ((float)(r >> 8) - 0x1p23f) * (r & 64 ? 0x1p-20f : 0x1p-12f);
}

static data make(const problem *p)
{
    bool last = p->axis == 1;
    data d = {.lines = last ? p->rows : 1,
              .length = last ? p->columns : p->rows,
              .inner = last ? 1 : p->columns};
    uint32_t state = 1;
    d.numel = (size_t)(p->rows * p->columns);
    d.update_count = (size_t)(d.lines * p->updates * d.inner);
    float **all[] = {&d.x, &d.wanted, &d.got, &d.index, &d.updates};
    for (int i = 0; i < 5; i++) {
        *all[i] = malloc((i < 3 ? d.numel : d.update_count) * sizeof **all[i]);
        assert_non_null(*all[i]);
    }
    for (size_t i = 0; i < d.numel; i++)
        d.x[i] = random_value(&state);
    for (size_t i = 0; i < d.update_count; i++) {
        d.updates[i] = random_value(&state);
        d.index[i] = (float)((int64_t)(random_bits(&state) >> 8) % (p->different + 2)) - 1;
    }
    return d;
}

static void destroy(data *d)
{
    free(d->x);
    free(d->index);
    free(d->updates);
    free(d->wanted);
    free(d->got);
}

static float apply(rlxvk_scatter_mode mode, float y, float v)
{
    volatile float sum = y + v;
    if (mode == RLXVK_SCATTER_ADD)
        return sum;
    if (mode == RLXVK_SCATTER_MAX)
        return v > y ? v : y;
    return v;
}

static void apply_in_order(const problem *p, data *d, rlxvk_scatter_mode mode)
{
    memcpy(d->wanted, d->x, d->numel * sizeof *d->x);
    for (size_t u = 0; u < d->update_count; u++) {
        int64_t line = (int64_t)u / d->inner, column = (int64_t)u % d->inner;
        int64_t row = (int64_t)d->index[u];
        float *y = &d->wanted[(line / p->updates * d->length + row) * d->inner + column];
        if (row >= 0 && row < d->length)
            *y = apply(mode, *y, d->updates[u]);
    }
}

static void run(const problem *p, data *d, rlxvk_scatter_mode mode, const char *row)
{
    rlxvk_variant variant = {"scatter", row};
    rlxvk_compile_options options = {.variants = &variant, .variant_count = 1};
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    bool last = p->axis == 1;
    rlxvk_shape shape = RLXVK_SHAPE(last ? p->rows : p->updates, last ? p->updates : p->columns);
    rlxvk_run_input in[] = {{.name = "x", .data = d->x, .length = d->numel},
                            {.name = "i", .data = d->index, .length = d->update_count},
                            {.name = "u", .data = d->updates, .length = d->update_count}};
    rlxvk_run_output out = {.buffer = d->got, .length = d->numel};
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(p->rows, p->columns));
    rlxvk_tensor i = rlxvk_input(g, "i", RLXVK_F32, shape);
    rlxvk_tensor u = rlxvk_input(g, "u", RLXVK_F32, shape);
    rlxvk_graph_output(g, rlxvk_scatter(g, x, i, u, p->axis, mode));
    expect_ok(rlxvk_compile(shared_context, g, &options, &e));
    expect_ok(rlxvk_run(e, in, 3, &out, 1));
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

static void test_order(void **state)
{
    static const problem problems[] = {
        {3, 900, 2500, 1, 900},  {2, 5000, 300, 1, 5000}, {2, 40, 3000, 1, 3},
        {1300, 9, 700, 0, 1300}, {70, 19, 900, 0, 70},    {600, 2, 700, 0, 1},
    };
    static const rlxvk_scatter_mode modes[] = {RLXVK_SCATTER_ADD, RLXVK_SCATTER_MAX,
                                               RLXVK_SCATTER_ASSIGN};
    const kernel_kind *kind = &choice_kinds[CHOICE_scatter];
    (void)state;
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        data d = make(&problems[i]);
        for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
            apply_in_order(&problems[i], &d, modes[m]);
            for (size_t row = 0; choice_row_name(kind, row); row++) {
                run(&problems[i], &d, modes[m], choice_row_name(kind, row));
                assert_memory_equal(d.got, d.wanted, d.numel * sizeof *d.got);
            }
        }
        destroy(&d);
    }
}

static const char *choose(const device_profile *p, scatter_problem s)
{
    return scatter_find_path(&s, p, VARIANT_NONE)->row.name;
}

static void test_choice(void **state)
{
    device_profile gpu = big_gpu(), least = baseline(), cpu = software();
    scatter_problem rows = {4096, 4096, 4096, 1}, columns = {1, 4096, 4096, 4096};
    scatter_problem sums = rows, column_sums = columns, long_sums = {1, 1000000, 1000000, 1};
    (void)state;
    sums.ordered = column_sums.ordered = long_sums.ordered = true;
    assert_string_equal(choose(&gpu, rows), "lines");
    assert_string_equal(choose(&gpu, columns), "lines");
    assert_string_equal(choose(&gpu, (scatter_problem){1, 6000, 6000, 4096}), "tiles");
    assert_string_equal(choose(&gpu, (scatter_problem){1, 1000000, 1000000, 1}), "marks");
    assert_string_equal(choose(&gpu, (scatter_problem){9, 50, 64, 1}), "direct");
    assert_string_equal(choose(&gpu, (scatter_problem){1, 50, 900, 8, .nd = true}), "marks");
    assert_string_equal(choose(&gpu, sums), "split");
    assert_string_equal(choose(&gpu, long_sums), "sort");
    gpu.subgroup_ballot = gpu.subgroup_shuffle = true;
    gpu.subgroup_size = 32;
    assert_string_equal(choose(&gpu, sums), "owners");
    assert_string_equal(choose(&gpu, column_sums), "owners");
    assert_string_equal(choose(&gpu, long_sums), "sort");
    assert_string_equal(choose(&least, sums), "sort");
    assert_string_equal(choose(&cpu, column_sums), "split");
}

static void test_division(void **state)
{
    const kernel_kind *kind = &choice_kinds[CHOICE_scatter];
    const scatter_path *tiles = choice_row_at(kind->table, choice_find_row(kind, "tiles", 5));
    device_profile gpu = big_gpu(), least = baseline();
    scatter_problem columns = {1, 4096, 4096, 4100}, few = {7, 10, 100, 3};
    scatter_division d = scatter_divide(tiles, &columns, &gpu);
    (void)state;
    assert_int_equal(d.slots, 8192);
    assert_int_equal(d.tiles, 513);
    assert_int_equal(d.groups, 4 * 513);
    d = scatter_divide(tiles, &columns, &least);
    assert_int_equal(d.slots, 4096);
    assert_int_equal(d.ranges, 8);
    d = scatter_divide(tiles, &few, &least);
    assert_int_equal(d.columns, 4);
    assert_int_equal(d.slots, 64);
    assert_int_equal(d.groups, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order), cmocka_unit_test(test_choice),
                                       cmocka_unit_test(test_division)};
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
