/*
 * Deep and wide graphs with tens of thousands of nodes, without a device. The work of planning must
 * grow with the graph and not with its square. The test counts work and does not time it. If sizes
 * are given as arguments, graphs of these sizes are compiled instead, and the milliseconds of each
 * stage are printed.
 */
#include "plan/plan.h"
#include "rewrite/rewrite.h"
#include "support/profiles.h"
#include "support/random_graph.h"

#include <rlxvk_ops.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

static const device_profile profile = ORDINARY_GPU;

/* ---- Graphs of about n nodes ---- */

static rlxvk_tensor numbered_leaf(rlxvk_graph *g, bool param, uint32_t i, rlxvk_shape shape)
{
    char name[24];
    snprintf(name, sizeof name, "layer.%u.weight", i);
    return param ? rlxvk_param(g, name, RLXVK_F32, shape) : rlxvk_input(g, name, RLXVK_F32, shape);
}

static void chain(rlxvk_graph *g, uint32_t n)
{
    rlxvk_tensor x = numbered_leaf(g, false, 0, RLXVK_SHAPE(64));
    for (uint32_t i = 1; i < n; i++)
        x = rlxvk_neg(g, x);
    rlxvk_graph_output(g, x);
}

static void inputs_to_outputs(rlxvk_graph *g, uint32_t n)
{
    for (uint32_t i = 0; i < n / 2; i++)
        rlxvk_graph_output(g, rlxvk_neg(g, numbered_leaf(g, false, i, RLXVK_SHAPE(64))));
}

static void params(rlxvk_graph *g, uint32_t n)
{
    rlxvk_tensor x = numbered_leaf(g, false, 0, RLXVK_SHAPE(64));
    for (uint32_t i = 0; i < n / 2; i++)
        x = rlxvk_add(g, x, numbered_leaf(g, true, i, RLXVK_SHAPE(64)));
    rlxvk_graph_output(g, x);
}

/* All `count` values are live before the first two are added. */
static rlxvk_tensor sum_tree(rlxvk_graph *g, rlxvk_tensor *values, uint32_t count)
{
    for (; count > 1; count = (count + 1) / 2)
        for (uint32_t i = 0; i < count / 2; i++)
            values[i] = rlxvk_add(g, values[i], values[count - 1 - i]);
    return values[0];
}

static void live_at_once(rlxvk_graph *g, uint32_t n)
{
    rlxvk_tensor *values = test_malloc((n / 2 + 1) * sizeof *values);
    rlxvk_tensor x = numbered_leaf(g, false, 0, RLXVK_SHAPE(64));
    for (uint32_t i = 0; i < n / 2; i++)
        values[i] = rlxvk_neg(g, x);
    rlxvk_graph_output(g, sum_tree(g, values, n / 2));
    test_free(values);
}

/* The same with values of many sizes. */
static void sizes_at_once(rlxvk_graph *g, uint32_t n)
{
    uint32_t count = n / 4;
    random_source r = {7};
    rlxvk_tensor *values = test_malloc((count + 1) * sizeof *values);
    rlxvk_tensor x = numbered_leaf(g, false, 0, RLXVK_SHAPE(4096));
    int32_t axis = 0;
    for (uint32_t i = 0; i < count; i++) {
        rlxvk_tensor part = rlxvk_narrow(g, x, 0, 0, 1 + random_below(&r, 4096));
        values[i] = rlxvk_neg(g, part);
    }
    for (uint32_t i = 0; i < count; i++)
        values[i] = rlxvk_reduce_max(g, values[i], &axis, 1, false);
    rlxvk_graph_output(g, sum_tree(g, values, count));
    test_free(values);
}

/* Values have random sizes and random lifetimes, which is the hardest case for placement. */
static void random_lives(rlxvk_graph *g, uint32_t n)
{
    uint32_t count = n / 4, live = 0;
    random_source r = {9};
    rlxvk_tensor *values = test_malloc((count + 1) * sizeof *values);
    rlxvk_tensor x = numbered_leaf(g, false, 0, RLXVK_SHAPE(4096)), sum = RLXVK_NONE;
    int32_t axis = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t size = 1 + random_below(&r, 4096);
        values[live++] = rlxvk_neg(g, rlxvk_narrow(g, x, 0, 0, size));
        if (i < count / 8)
            continue;
        uint32_t at = random_below(&r, live);
        rlxvk_tensor one = rlxvk_reduce_max(g, values[at], &axis, 1, false);
        sum = sum.id ? rlxvk_max(g, sum, one) : one;
        values[at] = values[--live];
    }
    rlxvk_graph_output(g, sum);
    test_free(values);
}

/* As in training: the backward pass reads each value of the forward pass. */
static void there_and_back(rlxvk_graph *g, uint32_t n)
{
    uint32_t count = n / 3;
    rlxvk_tensor *values = test_malloc((count + 1) * sizeof *values);
    int32_t axis = 0;
    values[0] = numbered_leaf(g, false, 0, RLXVK_SHAPE(256));
    for (uint32_t i = 1; i < count; i++)
        values[i] = rlxvk_reverse(g, values[i - 1], &axis, 1);
    rlxvk_tensor x = values[count - 1];
    for (uint32_t i = count; i-- > 0;)
        x = rlxvk_mul(g, rlxvk_neg(g, x), values[i]);
    rlxvk_graph_output(g, x);
    test_free(values);
}

static void view_outputs(rlxvk_graph *g, uint32_t n)
{
    rlxvk_tensor x = numbered_leaf(g, false, 0, RLXVK_SHAPE(64));
    for (uint32_t i = 0; i < n / 4; i++)
        rlxvk_graph_output(g, rlxvk_reshape(g, x, RLXVK_SHAPE(1, 64)));
    for (uint32_t i = 0; i < n / 4; i++) {
        x = rlxvk_neg(g, x);
        rlxvk_graph_output(g, rlxvk_reshape(g, x, RLXVK_SHAPE(1, 64)));
    }
}

static void view_chain(rlxvk_graph *g, uint32_t n)
{
    rlxvk_tensor x = numbered_leaf(g, false, 0, RLXVK_SHAPE(64));
    for (uint32_t i = 1; i < n; i++)
        x = rlxvk_reshape(g, x, i % 2 ? RLXVK_SHAPE(1, 64) : RLXVK_SHAPE(64));
    rlxvk_graph_output(g, rlxvk_neg(g, x));
}

/* Parts of a concat are written in place, then read one by one. */
static void parts(rlxvk_graph *g, uint32_t n)
{
    uint32_t count = n / 3;
    rlxvk_tensor *values = test_malloc((count + 1) * sizeof *values);
    rlxvk_tensor x = numbered_leaf(g, false, 0, RLXVK_SHAPE(64));
    for (uint32_t i = 0; i < count; i++)
        values[i] = rlxvk_neg(g, x);
    rlxvk_tensor all = rlxvk_concat(g, values, count, 0);
    for (uint32_t i = 0; i < count; i++)
        rlxvk_graph_output(g, rlxvk_neg(g, rlxvk_narrow(g, all, 0, 64 * (int64_t)i, 64)));
    test_free(values);
}

/* Each sum is lowered together with a norm. */
static void norms(rlxvk_graph *g, uint32_t n)
{
    rlxvk_tensor x = numbered_leaf(g, false, 0, RLXVK_SHAPE(4, 64));
    rlxvk_tensor gamma = numbered_leaf(g, true, 0, RLXVK_SHAPE(64));
    for (uint32_t i = 0; i < n / 3; i++) {
        rlxvk_tensor sum = rlxvk_add(g, x, rlxvk_neg(g, x));
        rlxvk_graph_output(g, rlxvk_rms_norm(g, sum, gamma, RLXVK_NONE, -1, 0.1f));
        x = sum;
    }
    rlxvk_graph_output(g, x);
}

/* Each op has its own constant. */
static void constants(rlxvk_graph *g, uint32_t n)
{
    rlxvk_tensor x = numbered_leaf(g, false, 0, RLXVK_SHAPE(3));
    for (uint32_t i = 0; i < n / 2; i++) {
        float values[3] = {(float)i, 1, 2};
        x = rlxvk_add(g, x, rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(3), values, sizeof values));
    }
    rlxvk_graph_output(g, x);
}

static const struct {
    const char *name;
    void (*build)(rlxvk_graph *g, uint32_t n);
    bool hard; /* to place: small values fill holes, and the planner gives up some orders */
} graphs[] = {
    {"chain", chain},
    {"inputs to outputs", inputs_to_outputs},
    {"params", params},
    {"live at once", live_at_once},
    {"sizes at once", sizes_at_once, true},
    {"random lives", random_lives, true},
    {"there and back", there_and_back},
    {"view outputs", view_outputs},
    {"view chain", view_chain},
    {"parts", parts},
    {"norms", norms},
    {"constants", constants},
};

/* ---- The stages ---- */

/* Prints the processor time since the last call. */
static void lap(const char *stage)
{
    static double last;
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    double now = (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
    if (stage)
        printf(" %s %.1f", stage, now - last);
    last = now;
}

/* Options of a compile. */
typedef struct mode {
    const char *name;
    bool fusion, reorder, bump;
} mode;

static const mode modes[] = {{"in order", false, false, false},
                             {"levels", false, true, false},
                             {"no reuse", false, true, true},
                             {"fused", true, true, false}};

typedef struct large {
    rlxvk_graph *source, *graph;
    pair_list pairs;
    schedule schedule;
    plan plan;
} large;

static void ignore_miss(void *user, uint32_t id, const char *pattern, const char *reason)
{
    (void)user, (void)id, (void)pattern, (void)reason;
}

static void compile_large(size_t which, uint32_t n, const mode *m, large *out)
{
    rewrite_options rewriting = {.fusion = m->fusion, .regions = m->fusion, .profile = &profile};
    schedule_options how = {.profile = &profile,
                            .forbid_host = true,
                            .reorder = m->reorder,
                            .strided = m->fusion};
    plan_options layout = {.max_block_bytes = 1u << 30,
                           .max_binding_bytes = 1u << 30,
                           .alignment = 256,
                           .bump = m->bump};
    *out = (large){0};
    printf("%-17s %6u %-8s:", graphs[which].name, n, m->name);
    lap(NULL);
    assert_int_equal(rlxvk_graph_create(&out->source), RLXVK_OK);
    graphs[which].build(out->source, n);
    lap("build");
    assert_int_equal(op_verify(out->source), RLXVK_OK);
    lap("verify");
    assert_int_equal(graph_clone(out->source, &out->graph), RLXVK_OK);
    lap("clone");
    assert_int_equal(rewrite_graph(out->graph, &rewriting), RLXVK_OK);
    lap("rewrite");
    assert_int_equal(rewrite_find_norm_pairs(out->graph, &out->pairs), RLXVK_OK);
    lap("pairs");
    assert_int_equal(rewrite_find_misses(out->graph, &out->pairs, NULL, ignore_miss, NULL),
                     RLXVK_OK);
    lap("misses");
    how.pairs = out->pairs.items;
    how.pair_count = out->pairs.count;
    assert_int_equal(schedule_create(out->graph, &how, &out->schedule), RLXVK_OK);
    lap("schedule");
    assert_int_equal(plan_create(&out->schedule, &layout, &out->plan), RLXVK_OK);
    lap("plan");
    printf("; %zu steps, %u barriers, peak %llu, bound %llu, %llu visits\n",
           out->schedule.steps.count, out->plan.barrier_count,
           (unsigned long long)out->plan.scratch_peak,
           (unsigned long long)out->plan.scratch_lower_bound,
           (unsigned long long)(out->plan.visits + out->schedule.visits));
}

static void release(large *l)
{
    plan_destroy(&l->plan);
    schedule_destroy(&l->schedule);
    VECTOR_FREE(&l->pairs);
    rlxvk_graph_destroy(l->graph);
    rlxvk_graph_destroy(l->source);
}

/* ---- Expected growth ---- */

/* The count may grow like n log n, plus a little for work that is done only once. */
static void expect_near_linear(uint64_t few, uint64_t many, uint32_t times)
{
    if (many > few * times * 3 / 2 + 10000)
        fail_msg("%llu visits where a graph of 1/%u the size takes %llu", (unsigned long long)many,
                 times, (unsigned long long)few);
}

static void work_grows_with_the_graph(void **state)
{
    enum { FEW = 5000, TIMES = 4 };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(graphs); i++)
        for (size_t m = 0; m < ARRAY_COUNT(modes); m++) {
            uint64_t visits[2];
            for (int k = 0; k < 2; k++) {
                large l;
                compile_large(i, k ? FEW * TIMES : FEW, &modes[m], &l);
                visits[k] = l.plan.visits + l.schedule.visits;
                assert_true(l.plan.scratch_peak * 10 <= l.plan.scratch_lower_bound * 11);
                release(&l);
            }
            if (!graphs[i].hard)
                expect_near_linear(visits[0], visits[1], TIMES);
        }
}

/* If the planner gives up on its most expensive orders, the last one must still give a good plan.
 */
static void work_has_a_limit(void **state)
{
    enum { MOST_VISITS = 60000000 };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(graphs); i++) {
        large l;
        if (!graphs[i].hard)
            continue;
        compile_large(i, 60000, &modes[0], &l);
        assert_true(l.plan.visits < MOST_VISITS);
        assert_true(l.plan.scratch_peak * 20 <= l.plan.scratch_lower_bound * 23);
        release(&l);
    }
}

/* The graphs are small enough to prove their plans. */
static void plans_are_sound(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(graphs); i++)
        for (size_t m = 0; m < ARRAY_COUNT(modes); m++) {
            large l;
            uint32_t needless = 0;
            compile_large(i, 400, &modes[m], &l);
            assert_int_equal(plan_check(&l.schedule, &l.plan, &needless), RLXVK_OK);
            assert_int_equal(needless, 0);
            release(&l);
        }
}

static void time_stages(uint32_t n)
{
    for (size_t i = 0; i < ARRAY_COUNT(graphs); i++)
        for (size_t m = 0; m < ARRAY_COUNT(modes); m++) {
            large l;
            compile_large(i, n, &modes[m], &l);
            release(&l);
        }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_grows_with_the_graph),
        cmocka_unit_test(work_has_a_limit),
        cmocka_unit_test(plans_are_sound),
    };
    for (int i = 1; i < argc; i++)
        time_stages((uint32_t)strtoul(argv[i], NULL, 10));
    return argc > 1 ? 0 : cmocka_run_group_tests(tests, NULL, NULL);
}
