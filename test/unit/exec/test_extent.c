/*
 * Active extents on a device. Active rows must have the same bits as in a full run, whatever the
 * other rows hold. So scratch memory is filled with NaN, and inactive rows of inputs are NaN or
 * left over from another run.
 */
#include "exec/allocate.h"
#include "exec/executable.h"
#include "support/extent_check.h"
#include "support/harness.h"
#include "support/row_graph.h"

#include <rlxvk_symbols.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* The axes of graphs in which rows do not affect each other. Such graphs must be supported. */
static const rlxvk_bucket_axis row_axes[] = {{"x", 0, false}, {"y", -2, false}, {"i", 0, false}};

static void check_rows(rlxvk_context *c, const rlxvk_graph *g, rlxvk_compile_options o,
                       size_t axis_count, const char *what, uint64_t seed)
{
    if (!extent_check(c, g, o, row_axes, axis_count, what, seed))
        fail_msg("%s, seed %llu is not supported", what, (unsigned long long)seed);
}

static rlxvk_graph *make_rows(uint64_t seed)
{
    static const int64_t sizes[] = {1, 2, 5, 16, 33, 70};
    rlxvk_graph *g = NULL;
    random_source r = {seed};
    expect_ok(rlxvk_graph_create(&g));
    int64_t rows = sizes[random_below(&r, ARRAY_COUNT(sizes))];
    row_graph(g, &r, rows, 1 + random_below(&r, 20));
    expect_ok(rlxvk_graph_status(g));
    return g;
}

static void test_random_rows(void **state)
{
    static const rlxvk_variant sorted = {"experts", "sorted"};
    static const rlxvk_compile_options modes[] = {{.variants = &sorted, .variant_count = 1},
                                                  {.check_plan = RLXVK_ON},
                                                  {.reuse_memory = RLXVK_OFF},
                                                  {.cached = RLXVK_OFF},
                                                  {.fusion = RLXVK_OFF},
                                                  {.reorder = RLXVK_OFF},
                                                  {.profile = RLXVK_ON},
                                                  {.check_index = RLXVK_ON},
                                                  {.regions = RLXVK_OFF}};
    (void)state;
    for (uint64_t seed = 1; seed <= harness_rounds(48); seed++) {
        rlxvk_graph *g = make_rows(seed);
        check_rows(shared_context, g, modes[seed % ARRAY_COUNT(modes)], ARRAY_COUNT(row_axes),
                   "rows", seed);
        rlxvk_graph_destroy(g);
    }
}

/* Runs a graph for each rule. Each must be supported if the axes are row_axes. */
static void check_rules(rlxvk_context *c, rlxvk_compile_options o, const rlxvk_bucket_axis *axes)
{
    for (uint32_t rule = 0; rule < row_graph_rule_count(); rule++) {
        rlxvk_graph *g = NULL;
        expect_ok(rlxvk_graph_create(&g));
        rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(40, ROW_GRAPH_WIDTH));
        rlxvk_tensor y = rlxvk_input(g, "y", RLXVK_F32, RLXVK_SHAPE(40, ROW_GRAPH_WIDTH));
        rlxvk_tensor i = rlxvk_input(g, "i", RLXVK_F32, RLXVK_SHAPE(40));
        rlxvk_graph_output(g, row_graph_rule(g, rule, x, y, i));
        if (!extent_check(c, g, o, axes, 3, "rule", rule) && axes == row_axes)
            fail_msg("rule %u is not supported", rule);
        rlxvk_graph_destroy(g);
    }
}

/* Runs every rule on two contexts: with staged uploads, and with few, small workgroups, so that
 * grids fold. */
static void test_every_rule(void **state)
{
    static const rlxvk_context_options kinds[] = {{.direct_upload = RLXVK_OFF},
                                                  {.limit_group_count = 16,
                                                   .limit_workgroup_invocations = 128,
                                                   .tuning = RLXVK_OFF}};
    (void)state;
    for (size_t k = 0; k < harness_rounds(ARRAY_COUNT(kinds)); k++) {
        rlxvk_context *c = open_context(&kinds[k]);
        check_rules(c, (rlxvk_compile_options){0}, row_axes);
        close_context(c);
    }
}

/* Runs every rule with kernels that this device would not choose by itself, if it can run them. */
static void test_every_rule_by_other_kernels(void **state)
{
    static const rlxvk_variant others[][7] = {{{"scatter", "sort"},
                                               {"scatter_add", "runs"},
                                               {"knn", "filtered"},
                                               {"recurrent", "tiles_8_256"},
                                               {"recurrent_backward", "tiles_8x8"},
                                               {"rows", "shared_words"},
                                               {"conv", "tiled_64x64"}},
                                              {{"scatter", "marks"},
                                               {"scatter_add", "elements"},
                                               {"radix", "ballots_128"},
                                               {"recurrent", "steps"},
                                               {"recurrent_backward", "tiles_4x1"},
                                               {"rows", "columns"},
                                               {"conv", "tiled_32x32"}},
                                              {{"scatter", "tiles"},
                                               {"scatter_add", "parts"},
                                               {"radix", "counters_128"},
                                               {"recurrent", "tiles_32_128"},
                                               {"recurrent_backward", "sequences"},
                                               {"rows", "subgroup_words"},
                                               {"conv", "direct_single"}},
                                              {{"scatter", "split"},
                                               {"scatter_add", "direct"},
                                               {"radix", "ballots_256"},
                                               {"recurrent", "sequences"},
                                               {"recurrent_backward", "tiles_16x16"},
                                               {"rows", "long_ragged"},
                                               {"attention", "tile_64x64"}},
                                              {{"scatter", "owners"},
                                               {"rows", "stream_quads"},
                                               {"experts", "sorted"},
                                               {"radix", "counters_256"},
                                               {"conv", "tiled_32x128"},
                                               {"matmul", "tiled_32x32"},
                                               {"attention", "tile_split"}}};
    (void)state;
    for (size_t k = 0; k < harness_rounds(ARRAY_COUNT(others)); k++)
        check_rules(shared_context,
                    (rlxvk_compile_options){.variants = others[k],
                                            .variant_count = ARRAY_COUNT(others[k])},
                    row_axes);
}

/* In f16, attention over the rows is not supported if it may run on matrix units. */
static void test_every_rule_in_precisions(void **state)
{
    static const rlxvk_precision precisions[] = {RLXVK_PRECISION_F16, RLXVK_PRECISION_BF16,
                                                 RLXVK_PRECISION_SPLIT};
    rlxvk_bucket_axis axes[ARRAY_COUNT(row_axes)];
    (void)state;
    memcpy(axes, row_axes, sizeof axes);
    for (size_t k = 0; k < harness_rounds(ARRAY_COUNT(precisions)); k++)
        check_rules(shared_context, (rlxvk_compile_options){.precision = precisions[k]},
                    precisions[k] == RLXVK_PRECISION_F16 ? axes : row_axes);
}

/* Random graphs with random inputs as buckets. Most are not supported; then an extent must change
 * nothing. */
static void test_random_graphs(void **state)
{
    uint32_t supported = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= harness_rounds(120); seed++) {
        rlxvk_graph *g = NULL;
        random_source r = {seed};
        rlxvk_bucket_axis axes[2];
        size_t count = 0;
        expect_ok(rlxvk_graph_create(&g));
        random_graph(g, &r, 1 + random_below(&r, 8), false);
        for (uint32_t id = 0; id < g->nodes.count && count < 1 + seed % 2; id++) {
            const node *n = graph_node(g, id);
            uint32_t axis = n->shape.rank ? random_below(&r, n->shape.rank) : 0;
            if (node_is_input(n) && n->shape.rank && n->shape.dims[axis] > 1 && *n->name == 't')
                axes[count++] = (rlxvk_bucket_axis){n->name, (int32_t)axis, false};
        }
        if (count)
            supported += extent_check(shared_context, g, (rlxvk_compile_options){0}, axes, count,
                                      "graph", seed);
        rlxvk_graph_destroy(g);
    }
    print_message("%u of the graphs are supported\n", supported);
    assert_true(supported * 20 >= harness_rounds(120));
}

/* Forces kernels that this device would not choose by itself. */
static void test_forced_kernels(void **state)
{
    static const rlxvk_variant forced[] = {
        {"matmul", "tiled_32x32"},   {"matmul", "tiled_32x64"},   {"matmul", "scalar_block"},
        {"matmul", "scalar_row"},    {"matmul", "scalar_single"}, {"matmul", "vector_swapped"},
        {"matmul", "tiled_128x128"}, {"attention", "tile_64x64"}, {"attention", "tile_split"}};
    (void)state;
    for (size_t v = 0; v < ARRAY_COUNT(forced); v++)
        for (int precision = 0; precision < 4; precision += v == 0 ? 1 : 4) {
            rlxvk_graph *g = NULL;
            rlxvk_compile_options o = {.variants = &forced[v],
                                       .variant_count = 1,
                                       .precision = (rlxvk_precision)precision};
            expect_ok(rlxvk_graph_create(&g));
            rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(700, ROW_GRAPH_WIDTH));
            rlxvk_tensor y = x,
                         w = rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(ROW_GRAPH_WIDTH, 37));
            if (precision != RLXVK_PRECISION_F16)
                y = row_graph_rule(g, 18, x, x, x); /* attention */
            rlxvk_graph_output(g, rlxvk_matmul(g, y, w));
            rlxvk_graph_output(g, rlxvk_matmul(g, y,
                                               rlxvk_param(g, "n", RLXVK_F32,
                                                           RLXVK_SHAPE(ROW_GRAPH_WIDTH, 5))));
            check_rows(shared_context, g, o, 1, forced[v].row, v);
            rlxvk_graph_destroy(g);
        }
}

static bool has_kernel(const rlxvk_executable *e, uint16_t kernel)
{
    bool found = false;
    for (size_t i = 0; i < e->program->schedule.dispatches.count; i++)
        found |= e->program->schedule.dispatches.items[i].kernel == kernel;
    return found;
}

/* Products with few outputs and a long K, which use split-K. */
static void test_split_products(void **state)
{
    static const struct {
        rlxvk_variant variant;
        int64_t rows, columns;
    } cases[] = {{{"matmul", "tiled_32x32"}, 70, 32},    {{"matmul", "tiled_16x128"}, 40, 20},
                 {{"matmul", "rows_1"}, 30, 33},         {{"matmul", "vector_swapped"}, 40, 3},
                 {{"matmul", "vector_swapped"}, 260, 8}, {{"matmul", "vector"}, 5, 32}};
    uint32_t split = 0;
    (void)state;
    for (size_t v = 0; v < 2 * ARRAY_COUNT(cases); v++) {
        rlxvk_graph *g = NULL;
        rlxvk_executable *e = NULL;
        int64_t n = cases[v / 2].columns;
        rlxvk_compile_options o = {.variants = &cases[v / 2].variant, .variant_count = 1};
        rlxvk_matmul_options how = {.transpose_b = v % 2};
        expect_ok(rlxvk_graph_create(&g));
        rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(cases[v / 2].rows, 1600));
        rlxvk_shape shape = v % 2 ? RLXVK_SHAPE(n, 1600) : RLXVK_SHAPE(1600, n);
        rlxvk_graph_output(g, rlxvk_matmul_with(g, x, rlxvk_param(g, "w", RLXVK_F32, shape), &how));
        expect_ok(rlxvk_compile(shared_context, g, &o, &e));
        split += has_kernel(e, KERNEL_MATMUL_SUM);
        rlxvk_executable_destroy(e);
        check_rows(shared_context, g, o, 1, cases[v / 2].variant.row, v);
        rlxvk_graph_destroy(g);
    }
    print_message("%u of the products are split\n", split);
    assert_true(split >= 4);
}

/* A gather reads one row. The caller promises that the index is that of an active row. */
static void test_indices_of_rows(void **state)
{
    enum { ROWS = 16 };
    static const rlxvk_bucket_axis axes[] = {{"x", 0, false}, {"last", 0, true}};
    rlxvk_graph *g = NULL;
    rlxvk_executable *plain = NULL, *e = NULL;
    rlxvk_compile_options o = {0};
    float x[ROWS * ROW_GRAPH_WIDTH], y[2][ROW_GRAPH_WIDTH];
    random_source r = {5};
    (void)state;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor in = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(ROWS, ROW_GRAPH_WIDTH));
    rlxvk_tensor last = rlxvk_input(g, "last", RLXVK_F32, RLXVK_SHAPE(1));
    rlxvk_tensor all = row_graph_rule(g, 7, in, in, in); /* mlp */
    rlxvk_graph_output(g, rlxvk_softmax(g, rlxvk_gather(g, all, last, 0), -1));
    expect_ok(rlxvk_compile(shared_context, g, &o, &plain));
    o.bucket_axes = axes;
    o.bucket_axis_count = ARRAY_COUNT(axes);
    expect_ok(rlxvk_compile(shared_context, g, &o, &e));
    assert_true(rlxvk_extent_supported(e, NULL));
    extent_set_params(plain);
    extent_set_params(e);
    for (int64_t actual = 1; actual <= ROWS; actual++) {
        float at = (float)actual - 1;
        random_fill(&r, false, x, ARRAY_COUNT(x));
        rlxvk_run_input inputs[] = {{"x", x, ARRAY_COUNT(x), RLXVK_F32},
                                    {"last", &at, 1, RLXVK_F32}};
        rlxvk_run_output outputs[] = {{0, y[0], ROW_GRAPH_WIDTH, RLXVK_F32},
                                      {0, y[1], ROW_GRAPH_WIDTH, RLXVK_F32}};
        expect_ok(rlxvk_run(plain, inputs, 2, &outputs[0], 1));
        for (size_t i = (size_t)actual * ROW_GRAPH_WIDTH; i < ARRAY_COUNT(x); i++)
            x[i] = NAN;
        expect_ok(rlxvk_set_active_extent(e, actual, ROWS));
        expect_ok(rlxvk_run(e, inputs, 2, &outputs[1], 1));
        assert_memory_equal(y[0], y[1], sizeof y[0]);
    }
    rlxvk_executable_destroy(plain);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

/* ---- Costs ---- */

static rlxvk_executable *two_layers(rlxvk_context *c, int64_t rows)
{
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    rlxvk_compile_options o = {.bucket_axes = row_axes, .bucket_axis_count = 1};
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(rows, ROW_GRAPH_WIDTH));
    for (uint32_t k = 0; k < 2; k++)
        x = row_graph_rule(g, 7, row_graph_rule(g, 4, x, x, x), x, x); /* norm, mlp */
    rlxvk_graph_output(g, x);
    expect_ok(rlxvk_compile(c, g, &o, &e));
    rlxvk_graph_destroy(g);
    extent_set_params(e);
    return e;
}

/* Only scaled dispatches have other group counts, and 0 groups for 0 rows. The plan itself stays as
 * it is. */
static void expect_counts(rlxvk_executable *e, int64_t actual, int64_t upper)
{
    const program *p = e->program;
    uint32_t fewer = 0;
    for (size_t i = 0; i < p->schedule.dispatches.count; i++) {
        const dispatch *d = &p->schedule.dispatches.items[i];
        uint32_t got[3];
        if (!extent_scales(&p->extent, i))
            continue;
        extent_launch(d, &p->extent.groups[i], &e->device->setup.profile, (uint64_t)actual,
                      (uint64_t)upper, got);
        fewer += got[0] < d->groups[0];
        if (actual == 0)
            assert_int_equal(got[0], 0);
    }
    assert_true(actual == upper || fewer > 0);
}

/* A change of the extent records only one copy, and only if memory is not mapped. Setting the same
 * extent again, or a run, records nothing. */
static void test_nothing_is_recorded(void **state)
{
    (void)state;
    for (int staged = 0; staged < 2; staged++) {
        rlxvk_context_options kind = {.direct_upload = staged ? RLXVK_OFF : RLXVK_DEFAULT};
        rlxvk_context *c = open_context(&kind);
        rlxvk_executable *e = two_layers(c, 512);
        uint64_t lowered = schedule_lowered_count(), copies = c->device->setup.arena_mapped ? 0 : 1;
        float *y[1];
        extent_run(e, 1, 0, y);
        free(y[0]);
        for (int64_t actual = 0; actual <= 512; actual += 128) {
            uint64_t recorded = vk_hooks.recorded, submitted = vk_hooks.submitted;
            expect_ok(rlxvk_set_active_extent(e, actual, 512));
            assert_int_equal(vk_hooks.recorded - recorded, copies);
            assert_int_equal(vk_hooks.submitted - submitted, copies);
            expect_counts(e, actual, 512);
            expect_ok(rlxvk_set_active_extent(e, actual, 512));
            assert_int_equal(vk_hooks.recorded - recorded, copies);
            extent_run(e, 1, 0, y);
            free(y[0]);
            assert_int_equal(vk_hooks.recorded - recorded, copies);
            assert_int_equal(vk_hooks.submitted - submitted, copies + 1);
        }
        assert_int_equal(schedule_lowered_count(), lowered);
        rlxvk_executable_destroy(e);
        close_context(c);
    }
}

static void test_report(void **state)
{
    rlxvk_executable *e = two_layers(shared_context, 512);
    rlxvk_extent_report report;
    (void)state;
    assert_true(rlxvk_extent_supported(e, &report));
    assert_string_equal(report.reason, "");
    assert_int_equal(report.upper, 0);
    assert_int_equal(report.scaled_dispatches, e->program->schedule.dispatches.count);
    expect_ok(rlxvk_set_active_extent(e, 3, 256));
    assert_true(rlxvk_extent_supported(e, &report));
    assert_int_equal(report.actual, 3);
    assert_int_equal(report.upper, 256);
    expect_ok(rlxvk_clear_active_extent(e));
    assert_true(rlxvk_extent_supported(e, &report));
    assert_int_equal(report.upper, 0);
    rlxvk_executable_destroy(e);
    assert_false(rlxvk_extent_supported(NULL, &report));
    assert_non_null(strstr(report.reason, "executable"));
}

/* ---- Errors ---- */

static rlxvk_graph *sum_of_rows(void)
{
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(12, 2));
    rlxvk_tensor sum = rlxvk_reduce_sum(g, x, (int32_t[]){0}, 1, false);
    rlxvk_graph_set_name(g, sum, "pooled");
    rlxvk_graph_output(g, sum);
    return g;
}

static void test_extents_that_do_not_fit(void **state)
{
    static const struct {
        int64_t actual, upper;
    } wrong[] = {{0, 0}, {-1, 12}, {13, 12}, {1, -12}, {1, 24}, {1, 5}, {1, 13}};
    rlxvk_graph *g = sum_of_rows();
    rlxvk_compile_options o = {.bucket_axes = row_axes, .bucket_axis_count = 1};
    rlxvk_executable *e = NULL;
    rlxvk_extent_report report;
    float *y[1];
    (void)state;
    expect_ok(rlxvk_compile(shared_context, g, &o, &e));
    expect_ok(rlxvk_set_active_extent(e, 2, 6));
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++)
        expect_error(rlxvk_set_active_extent(e, wrong[i].actual, wrong[i].upper), RLXVK_E_EXTENT,
                     "set_active_extent: ");
    assert_false(rlxvk_extent_supported(e, &report));
    assert_int_equal(report.actual, 2);
    assert_int_equal(report.upper, 6);
    assert_string_equal(report.reason, "reduce_sum 'pooled' (node 1): it computes across the rows");
    extent_run(e, 1, NAN, y); /* a full run: the sum of all rows */
    assert_true(isfinite(y[0][0]));
    free(y[0]);
    rlxvk_executable_destroy(e);

    static const rlxvk_bucket_axis unknown[] = {{"z", 0, false}}, outside[] = {{"x", 2, false}},
                                   below[] = {{"x", -3, false}}, none[] = {{NULL, 0, true}};
    o.bucket_axes = unknown;
    expect_error(rlxvk_compile(shared_context, g, &o, &e), RLXVK_E_UNKNOWN_NAME, "bucket_axes");
    o.bucket_axes = outside;
    expect_error(rlxvk_compile(shared_context, g, &o, &e), RLXVK_E_AXIS, "12x2) has no axis 2");
    o.bucket_axes = below;
    expect_error(rlxvk_compile(shared_context, g, &o, &e), RLXVK_E_AXIS, "no axis -3");
    o.bucket_axes = none;
    expect_error(rlxvk_compile(shared_context, g, &o, &e), RLXVK_E_NULL, "bucket_axes");
    o.bucket_axes = NULL;
    expect_error(rlxvk_compile(shared_context, g, &o, &e), RLXVK_E_NULL, "bucket_axes");

    /* If there is no bucket, an extent only affects feeds. */
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    assert_false(rlxvk_extent_supported(e, &report));
    assert_non_null(strstr(report.reason, "bucket_axes"));
    expect_ok(rlxvk_set_active_extent(e, 1, 1000));
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

typedef struct plan_lines {
    char extent[256];
    uint32_t scaled;
} plan_lines;

static void keep_line(void *user, rlxvk_log_level level, const char *line)
{
    plan_lines *lines = user;
    (void)level;
    lines->scaled += strstr(line, " by active rows ") != NULL;
    if (strstr(line, "active extents"))
        snprintf(lines->extent, sizeof lines->extent, "%s", line);
}

static void test_plan_dump(void **state)
{
    plan_lines lines = {0};
    rlxvk_context_options log = {.log = keep_line, .log_user = &lines};
    rlxvk_context *c = open_context(&log);
    rlxvk_compile_options o = {.bucket_axes = row_axes,
                               .bucket_axis_count = 1,
                               .dump = RLXVK_DUMP_PLAN};
    rlxvk_graph *g = sum_of_rows();
    rlxvk_executable *e = NULL;
    (void)state;
    expect_ok(rlxvk_compile(c, g, &o, &e));
    assert_string_equal(lines.extent,
                        "  active extents of 12 rows: every run is a full one, for reduce_sum "
                        "'pooled' (node 1): it computes across the rows");
    assert_int_equal(lines.scaled, 0);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_graph_output(g, rlxvk_softmax(g, rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(12, 2)), 1));
    expect_ok(rlxvk_compile(c, g, &o, &e));
    assert_string_equal(lines.extent, "  active extents of 12 rows: supported");
    assert_int_equal(lines.scaled, 1);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    close_context(c);
}

/* ---- Feeds ---- */

/* Feeds the first rows of [past; row] (5 rows) into past [4, 2], and the whole row into state [2].
 */
static rlxvk_executable *decoder(rlxvk_context *c)
{
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor past = rlxvk_input(g, "past", RLXVK_F32, RLXVK_SHAPE(4, 2));
    rlxvk_tensor row = rlxvk_input(g, "row", RLXVK_F32, RLXVK_SHAPE(1, 2));
    rlxvk_tensor state = rlxvk_input(g, "state", RLXVK_F32, RLXVK_SHAPE(1, 2));
    rlxvk_graph_output(g, rlxvk_concat(g, (rlxvk_tensor[]){row, past}, 2, 0));
    rlxvk_graph_output(g, rlxvk_add(g, row, state));
    expect_ok(rlxvk_compile(c, g, NULL, &e));
    rlxvk_graph_destroy(g);
    expect_ok(rlxvk_bind_handle(e, "past", (float[8]){0}, 8));
    expect_ok(rlxvk_bind_handle(e, "state", (float[2]){0}, 2));
    expect_ok(rlxvk_set_handle_feed_prefix(e, "past", 0));
    expect_ok(rlxvk_set_handle_feed(e, "state", 1));
    return e;
}

static void expect_past(rlxvk_executable *e, float row, const float wanted[8])
{
    float values[] = {row, -row}, past[8];
    rlxvk_run_input in = {"row", values, 2, RLXVK_F32};
    expect_ok(rlxvk_run(e, &in, 1, NULL, 0));
    expect_ok(rlxvk_read_handle(e, "past", past, 8));
    for (int i = 0; i < 8; i++)
        if (past[i] != wanted[i])
            fail_msg("row %g: past[%d] is %g, wanted %g", (double)row, i, (double)past[i],
                     (double)wanted[i]);
}

static void test_prefix_feeds(void **state)
{
    rlxvk_executable *e = decoder(shared_context), *copy = NULL;
    float sum[2];
    (void)state;
    expect_past(e, 1, (float[]){1, -1, 0, 0, 0, 0, 0, 0});
    expect_ok(rlxvk_set_active_extent(e, 2, 4));
    expect_past(e, 2, (float[]){2, -2, 1, -1, 0, 0, 0, 0});
    expect_past(e, 3, (float[]){3, -3, 2, -2, 0, 0, 0, 0});
    expect_ok(rlxvk_set_active_extent(e, 0, 4));
    expect_past(e, 4, (float[]){3, -3, 2, -2, 0, 0, 0, 0});
    expect_ok(rlxvk_set_active_extent(e, 3, 4));
    expect_ok(rlxvk_clone(e, &copy));
    expect_past(e, 5, (float[]){5, -5, 3, -3, 2, -2, 0, 0});
    expect_past(copy, 6, (float[]){6, -6, 3, -3, 2, -2, 0, 0});
    expect_ok(rlxvk_clear_active_extent(copy));
    expect_past(copy, 7, (float[]){7, -7, 6, -6, 3, -3, 2, -2});
    expect_ok(rlxvk_read_handle(copy, "state", sum, 2)); /* an ordinary feed copies all rows */
    assert_true(sum[0] == 1 + 2 + 3 + 4 + 6 + 7);
    rlxvk_executable_destroy(copy);

    /* 5 rows are not 3 + 1. The order of setting feed and extent does not matter. */
    expect_error(rlxvk_set_active_extent(e, 1, 3), RLXVK_E_EXTENT, "output 0 (5x2)");
    expect_past(e, 8, (float[]){8, -8, 5, -5, 3, -3, 0, 0});
    expect_ok(rlxvk_clear_handle_feed(e, "past"));
    expect_ok(rlxvk_set_active_extent(e, 1, 3));
    expect_error(rlxvk_set_handle_feed_prefix(e, "past", 0), RLXVK_E_EXTENT, "'past'");
    expect_past(e, 9, (float[]){8, -8, 5, -5, 3, -3, 0, 0});
    rlxvk_executable_destroy(e);
}

/* ---- Runs in flight, clones, symbols ---- */

/* A new extent first waits for the runs in flight, because they must keep the old one. */
static void test_runs_in_flight(void **state)
{
    rlxvk_executable *e = two_layers(shared_context, 64), *copy = NULL;
    enum { COUNT = 64 * ROW_GRAPH_WIDTH };
    float x[COUNT], y[3][COUNT], *full[1];
    rlxvk_ticket tickets[2];
    (void)state;
    extent_run(e, 5, 0, full);
    float *values = extent_values(graph_node(e->program->source, e->program->inputs[0].source), 5);
    memcpy(x, values, sizeof x);
    free(values);
    rlxvk_run_input in = {"x", x, COUNT, RLXVK_F32};
    for (int i = 0; i < 2; i++) {
        rlxvk_run_output out = {0, y[i], COUNT, RLXVK_F32};
        memset(y[i], 0, sizeof y[i]);
        expect_ok(rlxvk_set_active_extent(e, i ? 10 : 40, 64));
        expect_ok(rlxvk_submit(e, &in, 1, &out, 1, &tickets[i]));
        expect_ok(rlxvk_clone(e, &copy)); /* has the same extent */
        rlxvk_run_output again = {0, y[2], COUNT, RLXVK_F32};
        expect_ok(rlxvk_run(copy, &in, 1, &again, 1));
        assert_memory_equal(y[2], full[0], (i ? 10 : 40) * ROW_GRAPH_WIDTH * sizeof(float));
        assert_int_equal(copy->extent_actual, i ? 10 : 40);
        rlxvk_executable_destroy(copy);
        expect_ok(rlxvk_set_active_extent(e, 1, 64));
        expect_ok(rlxvk_wait(e, tickets[i]));
        assert_memory_equal(y[i], full[0], (i ? 10 : 40) * ROW_GRAPH_WIDTH * sizeof(float));
    }
    free(full[0]);
    rlxvk_executable_destroy(e);
}

/* SEQ is a bucket in each binding. An extent belongs to the binding in force. */
static void test_symbols(void **state)
{
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL, *copy = NULL;
    rlxvk_compile_options o = {.bucket_symbols = RLXVK_ON};
    rlxvk_extent_report report;
    (void)state;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x =
        rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(rlxvk_symbol(RLXVK_SEQ), ROW_GRAPH_WIDTH));
    rlxvk_graph_output(g, rlxvk_softmax(g, x, -1));
    expect_ok(rlxvk_compile(shared_context, g, &o, &e));
    assert_false(rlxvk_extent_supported(e, &report));
    assert_non_null(strstr(report.reason, "symbols"));
    expect_error(rlxvk_set_active_extent(e, 1, 8), RLXVK_E_UNBOUND_SYMBOL, "set_active_extent");
    expect_error(rlxvk_clear_active_extent(e), RLXVK_E_UNBOUND_SYMBOL, "clear_active_extent");
    for (int64_t rows = 8; rows <= 24; rows += 8) {
        rlxvk_binding b = {RLXVK_SEQ, rows};
        expect_ok(rlxvk_bind_symbols(e, &b, 1));
        assert_true(rlxvk_extent_supported(e, &report));
        assert_int_equal(report.upper, 0);
        assert_int_equal(report.scaled_dispatches, 1);
        expect_error(rlxvk_set_active_extent(e, 1, rows + 1), RLXVK_E_EXTENT, "must divide");
        expect_ok(rlxvk_set_active_extent(e, rows / 2, rows));
    }
    expect_ok(rlxvk_clone(e, &copy));
    assert_true(rlxvk_extent_supported(copy, &report));
    assert_int_equal(report.actual, 12);
    expect_ok(rlxvk_bind_symbols(copy, &(rlxvk_binding){RLXVK_SEQ, 40}, 1));
    assert_true(rlxvk_extent_supported(copy, &report));
    rlxvk_executable_destroy(copy);
    rlxvk_executable_destroy(e);

    o.bindings = &(rlxvk_binding){RLXVK_SEQ, 6};
    o.binding_count = 1;
    expect_ok(rlxvk_compile(shared_context, g, &o, &e));
    assert_true(rlxvk_extent_supported(e, NULL));
    rlxvk_executable_destroy(e);
    o.bucket_symbols = RLXVK_OFF;
    expect_ok(rlxvk_compile(shared_context, g, &o, &e));
    assert_false(rlxvk_extent_supported(e, NULL));
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_rows),
        cmocka_unit_test(test_every_rule),
        cmocka_unit_test(test_every_rule_by_other_kernels),
        cmocka_unit_test(test_every_rule_in_precisions),
        cmocka_unit_test(test_random_graphs),
        cmocka_unit_test(test_forced_kernels),
        cmocka_unit_test(test_split_products),
        cmocka_unit_test(test_indices_of_rows),
        cmocka_unit_test(test_nothing_is_recorded),
        cmocka_unit_test(test_report),
        cmocka_unit_test(test_extents_that_do_not_fit),
        cmocka_unit_test(test_plan_dump),
        cmocka_unit_test(test_prefix_feeds),
        cmocka_unit_test(test_runs_in_flight),
        cmocka_unit_test(test_symbols),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
