/*
 * Control flow on the device: the examples of the definition, nesting, params shared by name,
 * random streams, and refusals.
 */
#include "op/op.h"
#include "support/harness.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static rlxvk_graph *new_graph(void)
{
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_graph_create(&g));
    return g;
}

static rlxvk_tensor value(rlxvk_graph *g, float v)
{
    return rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(1), &v, 4);
}

static rlxvk_tensor input(rlxvk_graph *g, const char *name, int64_t n)
{
    return rlxvk_input(g, name, RLXVK_F32, RLXVK_SHAPE(n));
}

/* Compiles g, sets each param to 1, runs with x if it is given, and reads output `index`. */
static void run(rlxvk_graph *g, const float *x, size_t n, size_t index, float *y, size_t count)
{
    rlxvk_executable *e = NULL;
    rlxvk_run_input in = {"x", x, n, RLXVK_F32};
    rlxvk_run_output out = {index, y, count, RLXVK_F32};
    expect_ok(
        rlxvk_compile(shared_context, g, &(rlxvk_compile_options){.check_plan = RLXVK_ON}, &e));
    float one = 1;
    rlxvk_status unknown = rlxvk_set_param(e, "w", &one, 1); /* not every graph has a w */
    assert_true(unknown == RLXVK_OK || unknown == RLXVK_E_UNKNOWN_NAME);
    expect_ok(rlxvk_run(e, &in, n != 0, &out, 1));
    rlxvk_executable_destroy(e);
}

static void expect_values(const float *got, const float *wanted, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_true(got[i] == wanted[i]);
}
#define EXPECT(got, ...)                                                                           \
    expect_values(got, (float[]){__VA_ARGS__}, sizeof((float[]){__VA_ARGS__}) / 4)

/* ---- while ---- */

/* scale * (c < 100) */
static rlxvk_graph *below_hundred(float scale)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor less = rlxvk_lt(g, input(g, "c", 1), value(g, 100));
    rlxvk_graph_output(g, rlxvk_mul(g, value(g, scale), rlxvk_cast(g, less, RLXVK_F32)));
    return g;
}

static rlxvk_graph *doubled(void)
{
    rlxvk_graph *g = new_graph();
    rlxvk_graph_output(g, rlxvk_mul(g, input(g, "c", 1), value(g, 2)));
    return g;
}

static void test_while(void **state)
{
    static const struct {
        uint32_t rounds;
        float scale, result;
    } rows[] = {{10, 1, 128}, {3, 1, 8}, {0, 1, 1}, {10, 0.5f, 128}, {10, 2, 128}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rlxvk_graph *g = new_graph(), *condition = below_hundred(rows[i].scale), *body = doubled();
        rlxvk_tensor x = input(g, "x", 1), last;
        float y;
        rlxvk_while(g, condition, body, rows[i].rounds, &x, 1, &last);
        rlxvk_graph_destroy(condition);
        rlxvk_graph_destroy(body);
        rlxvk_graph_output(g, last);
        run(g, (float[]){1}, 1, 0, &y, 1);
        assert_true(y == rows[i].result);
        rlxvk_graph_destroy(g);
    }
}

/* Carries two values. After the condition fails, both stay as they are. */
static void test_while_carries(void **state)
{
    rlxvk_graph *g = new_graph(), *condition = new_graph(), *body = new_graph();
    rlxvk_tensor c = input(condition, "i", 1), out[2];
    float y;
    (void)state;
    (void)input(condition, "sum", 3);
    rlxvk_graph_output(condition, rlxvk_lt(condition, c, value(condition, 4)));
    rlxvk_tensor i = input(body, "i", 1), sum = input(body, "sum", 3);
    rlxvk_graph_output(body, rlxvk_add(body, i, value(body, 1)));
    rlxvk_graph_output(body, rlxvk_add(body, sum, i));
    rlxvk_tensor carried[] = {value(g, 0), input(g, "x", 3)};
    rlxvk_while(g, condition, body, 9, carried, 2, out);
    rlxvk_graph_output(g, out[0]);
    rlxvk_graph_output(g, out[1]);
    float sums[3];
    run(g, (float[]){0, 10, 20}, 3, 1, sums, 3);
    EXPECT(sums, 6, 16, 26);
    run(g, (float[]){0, 10, 20}, 3, 0, &y, 1);
    assert_true(y == 4);
    rlxvk_graph_destroy(condition);
    rlxvk_graph_destroy(body);
    rlxvk_graph_destroy(g);
}

/* ---- if ---- */

static rlxvk_graph *unary_body(rlxvk_tensor (*op)(rlxvk_graph *, rlxvk_tensor), int64_t n)
{
    rlxvk_graph *g = new_graph();
    rlxvk_graph_output(g, op(g, input(g, "v", n)));
    return g;
}

static void test_if(void **state)
{
    rlxvk_graph *logarithm = unary_body(rlxvk_log, 3), *negative = unary_body(rlxvk_neg, 3);
    float y[3];
    (void)state;
    for (int chosen = 0; chosen < 2; chosen++) {
        rlxvk_graph *g = new_graph();
        rlxvk_tensor x = input(g, "x", 3);
        rlxvk_graph_output(g, rlxvk_if(g, value(g, (float)chosen), logarithm, negative, &x, 1));
        run(g, (float[]){-1, 1, 0}, 3, 0, y, 3);
        if (chosen)
            assert_true(isnan(y[0]) && y[1] == 0 && isinf(y[2]));
        else
            EXPECT(y, 1, -1, 0); /* NaN of the other branch must not leak */
        rlxvk_graph_destroy(g);
    }
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", 3), p = rlxvk_lt(g, x, value(g, 0));
    rlxvk_graph_output(g, rlxvk_if(g, p, negative, logarithm, &x, 1));
    run(g, (float[]){-1, 1, -5}, 3, 0, y, 3);
    EXPECT(y, 1, 0, 5);
    rlxvk_graph_destroy(g);
    rlxvk_graph_destroy(logarithm);
    rlxvk_graph_destroy(negative);
}

/* ---- scan ---- */

static rlxvk_graph *adding(bool scaled)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor c = input(g, "c", 1);
    rlxvk_tensor k = scaled ? input(g, "k", 1) : RLXVK_NONE, x = input(g, "x", 1);
    if (scaled)
        x = rlxvk_mul(g, x, k);
    rlxvk_tensor w = rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(1));
    rlxvk_graph_output(g, rlxvk_add(g, c, rlxvk_mul(g, x, w)));
    return g;
}

static void test_scan(void **state)
{
    static const struct {
        bool trajectory;
        int64_t checkpoints;
        size_t count;
        float wanted[5];
    } rows[] = {
        {false, 0, 1, {15}},   {true, 0, 5, {1, 3, 6, 10, 15}}, {true, 5, 5, {1, 3, 6, 10, 15}},
        {true, 2, 2, {6, 15}}, {true, 3, 3, {3, 10, 15}},       {true, 1, 1, {15}}};
    const float xs[] = {1, 2, 3, 4, 5};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int scaled = 0; scaled < 2; scaled++) {
            rlxvk_graph *g = new_graph(), *body = adding(scaled);
            rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(5, 1));
            rlxvk_tensor values[] = {value(g, 0), scaled ? value(g, 2) : x, x};
            rlxvk_scan_options o = {5, (size_t)scaled, rows[i].trajectory, rows[i].checkpoints};
            float y[5];
            rlxvk_graph_output(g, rlxvk_scan(g, body, values, 2 + (size_t)scaled, &o));
            expect_ok(rlxvk_graph_status(g));
            run(g, xs, 5, 0, y, rows[i].count);
            for (size_t k = 0; k < rows[i].count; k++)
                assert_true(y[k] == rows[i].wanted[k] * (float)(1 + scaled));
            rlxvk_graph_destroy(body);
            rlxvk_graph_destroy(g);
        }
}

static void test_empty_scan(void **state)
{
    rlxvk_graph *g = new_graph(), *body = adding(false);
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(1)), none, y;
    float got;
    (void)state;
    none = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(0, 1), "", 0);
    y = rlxvk_scan(g, body, (rlxvk_tensor[]){x, none}, 2, &(rlxvk_scan_options){.length = 0});
    rlxvk_graph_output(g, y);
    run(g, (float[]){7}, 1, 0, &got, 1);
    assert_true(got == 7);
    y = rlxvk_scan(g, body, (rlxvk_tensor[]){x, none}, 2,
                   &(rlxvk_scan_options){.length = 0, .save_trajectory = true});
    assert_int_equal(rlxvk_tensor_shape(g, y).dims[0], 0);
    assert_int_equal(rlxvk_tensor_shape(g, y).rank, 2);
    rlxvk_graph_destroy(body);
    rlxvk_graph_destroy(g);
}

/* A scan inside a while inside a call: two rounds, each of which adds 1 + 2 + 3. */
static void test_nesting(void **state)
{
    static const float steps[] = {1, 2, 3};
    rlxvk_graph *step = adding(false), *round = new_graph(), *always = new_graph(),
                *outer = new_graph(), *g = new_graph();
    float y;
    (void)state;
    rlxvk_tensor xs = rlxvk_constant(round, RLXVK_F32, RLXVK_SHAPE(3, 1), steps, sizeof steps);
    rlxvk_tensor c = input(round, "c", 1);
    rlxvk_graph_output(round, rlxvk_scan(round, step, (rlxvk_tensor[]){c, xs}, 2,
                                         &(rlxvk_scan_options){.length = 3}));
    (void)input(always, "c", 1);
    rlxvk_graph_output(always, value(always, 1));
    rlxvk_tensor start = input(outer, "start", 1), last;
    rlxvk_while(outer, always, round, 2, &start, 1, &last);
    rlxvk_graph_output(outer, last);
    rlxvk_tensor x = input(g, "x", 1), result;
    rlxvk_call(g, outer, &x, 1, &result, 1);
    rlxvk_graph_output(g, result);
    expect_ok(rlxvk_graph_status(g));
    run(g, (float[]){100}, 1, 0, &y, 1);
    assert_true(y == 112);
    rlxvk_graph *all[] = {step, round, always, outer, g};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        rlxvk_graph_destroy(all[i]);
}

/* Each round of a body draws its own random numbers. */
static void test_random_bodies(void **state)
{
    rlxvk_graph *g = new_graph(), *body = new_graph();
    float y[4];
    (void)state;
    (void)input(body, "c", 1);
    (void)input(body, "x", 1);
    rlxvk_graph_output(body, rlxvk_rng_uniform(body, RLXVK_SHAPE(1), 0, 1, NULL));
    rlxvk_tensor values[] = {value(g, 0), rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(4, 1))};
    rlxvk_graph_output(g, rlxvk_scan(g, body, values, 2,
                                     &(rlxvk_scan_options){.length = 4, .save_trajectory = true}));
    run(g, (float[4]){0}, 4, 0, y, 4);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < i; k++)
            assert_true(y[i] != y[k]);
    rlxvk_graph_destroy(body);
    rlxvk_graph_destroy(g);
}

/* The params, constants and random state of a body exist only once, however many rounds there
 * are. */
static void test_leaves_once(void **state)
{
    rlxvk_graph *g = new_graph(), *body = new_graph(), *condition = below_hundred(1);
    uint32_t leaves = 0;
    (void)state;
    rlxvk_tensor c = input(body, "c", 1), w = rlxvk_param(body, "w", RLXVK_F32, RLXVK_SHAPE(1));
    rlxvk_tensor u = rlxvk_rng_uniform(body, RLXVK_SHAPE(1), 0, 1, NULL);
    rlxvk_graph_output(body,
                       rlxvk_add(body, rlxvk_mul(body, c, w), rlxvk_mul(body, u, value(body, 2))));
    rlxvk_tensor x = input(g, "x", 1), last;
    rlxvk_while(g, condition, body, 50, &x, 1, &last);
    rlxvk_graph_output(g, rlxvk_scan(g, body, &last, 1, &(rlxvk_scan_options){.length = 50}));
    expect_ok(rlxvk_graph_status(g));
    for (uint32_t id = 0; id < g->nodes.count; id++)
        leaves += graph_node(g, id)->input_count == 0;
    /* Three: x, w and the random state. Two: 100 and 1 of the condition. Two: the constant 2 of
     * each body. 50: each round compares with a 0 of its own. */
    assert_int_equal(leaves, 3 + 2 + 2 + 50);
    rlxvk_graph_destroy(condition);
    rlxvk_graph_destroy(body);
    rlxvk_graph_destroy(g);
}

/* ---- Limits ---- */

/* The array for the results may be the array of the operands. After a failure it has no tensors. */
static void test_results_over_operands(void **state)
{
    rlxvk_graph *g = new_graph(), *twice = doubled(), *condition = below_hundred(1);
    float y;
    (void)state;
    rlxvk_tensor x = value(g, 3), more[2] = {x, x};
    rlxvk_call(g, twice, &x, 1, &x, 1);
    rlxvk_while(g, condition, twice, 3, &x, 1, &x);
    rlxvk_graph_output(g, x);
    run(g, NULL, 0, 0, &y, 1);
    EXPECT(&y, 48);
    rlxvk_call(g, twice, more, 2, more, 1);
    assert_int_equal(rlxvk_graph_status(g), RLXVK_E_ARITY);
    assert_int_equal(more[0].id, 0);
    rlxvk_graph_destroy(g);
    rlxvk_graph_destroy(twice);
    rlxvk_graph_destroy(condition);
}

/* Each level uses the level below it twice, so building all of it would take 2^40 nodes. */
static void test_nested_bodies_are_bounded(void **state)
{
    (void)state;
    for (int branches = 0; branches < 2; branches++) {
        rlxvk_graph *body = unary_body(rlxvk_neg, 1), *g;
        rlxvk_status status = RLXVK_OK;
        char sentence[256] = "";
        int level = 0;
        for (; level < 40 && status == RLXVK_OK; level++) {
            g = new_graph();
            rlxvk_tensor x = input(g, "x", 1), once, y;
            if (branches) {
                y = rlxvk_if(g, value(g, 1), body, body, &x, 1);
            } else {
                rlxvk_call(g, body, &x, 1, &once, 1);
                rlxvk_call(g, body, &once, 1, &y, 1);
            }
            rlxvk_graph_output(g, y);
            status = rlxvk_graph_status(g);
            assert_true(g->nodes.count < 1100000);
            strncpy(sentence, rlxvk_graph_error(g), sizeof sentence - 1);
            rlxvk_graph_destroy(body);
            body = g;
        }
        assert_int_equal(status, RLXVK_E_TOO_LARGE);
        assert_in_range(level, 17, 21);
        assert_non_null(strstr(sentence, "at most 1000000 in all"));
        rlxvk_graph_destroy(body);
    }
}

/* A trajectory has one more axis than the carried value. */
static void test_scan_of_largest_rank(void **state)
{
    const rlxvk_shape eight = RLXVK_SHAPE(1, 1, 1, 1, 1, 1, 1, 2);
    rlxvk_graph *body = new_graph();
    rlxvk_graph_output(body, rlxvk_neg(body, rlxvk_input(body, "c", RLXVK_F32, eight)));
    (void)state;
    for (int64_t length = 0; length < 3; length++)
        for (int trajectory = 0; trajectory < 2; trajectory++) {
            rlxvk_graph *g = new_graph();
            rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, eight);
            x = rlxvk_scan(g, body, &x, 1,
                           &(rlxvk_scan_options){.length = length, .save_trajectory = trajectory});
            assert_int_equal(rlxvk_graph_status(g), trajectory ? RLXVK_E_SHAPE : RLXVK_OK);
            assert_int_equal(rlxvk_tensor_shape(g, x).rank, trajectory ? 0 : 8);
            rlxvk_graph_destroy(g);
        }
    rlxvk_graph_destroy(body);
}

/* ---- Refusals ---- */

static void expect_sticky(rlxvk_graph *g, rlxvk_status wanted, const char *part)
{
    assert_int_equal(rlxvk_graph_status(g), wanted);
    assert_non_null(strstr(rlxvk_graph_error(g), part));
    rlxvk_graph_destroy(g);
}

static void test_refusals(void **state)
{
    rlxvk_graph *body = doubled(), *wide = unary_body(rlxvk_neg, 3), *step = adding(false), *g;
    rlxvk_tensor x, out;
    (void)state;
    g = new_graph();
    x = input(g, "x", 3);
    rlxvk_call(g, body, &x, 1, &out, 1);
    expect_sticky(g, RLXVK_E_SHAPE, "input 'c' is F32 1, given F32 3");
    g = new_graph();
    rlxvk_call(g, body, NULL, 0, &out, 1);
    expect_sticky(g, RLXVK_E_ARITY, "1 inputs");
    g = new_graph();
    rlxvk_while(g, body, body, 3, NULL, 0, &out);
    expect_sticky(g, RLXVK_E_ARITY, "nothing is carried");
    g = new_graph();
    x = input(g, "x", 1);
    rlxvk_graph_set_unroll_limit(g, UINT64_MAX);
    rlxvk_while(g, body, body, 1000000, &x, 1, &out);
    expect_sticky(g, RLXVK_E_TOO_LARGE, "1000000 rounds");
    g = new_graph();
    x = input(g, "x", 3);
    (void)rlxvk_if(g, rlxvk_input(g, "p", RLXVK_F32, RLXVK_SHAPE(2, 1)), wide, wide, &x, 1);
    expect_sticky(g, RLXVK_E_SHAPE, "predicate 2x1");
    g = new_graph();
    (void)rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(2));
    rlxvk_call(g, step, (rlxvk_tensor[]){input(g, "a", 1), input(g, "b", 1)}, 2, &out, 1);
    expect_sticky(g, RLXVK_E_PARAM_CONFLICT, "'w'");
    g = new_graph();
    x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(5, 1));
    (void)rlxvk_scan(g, step, (rlxvk_tensor[]){value(g, 0), x}, 2,
                     &(rlxvk_scan_options){.length = 5, .save_trajectory = true, .checkpoints = 6});
    expect_sticky(g, RLXVK_E_ATTR, "6 checkpoints");
    g = new_graph();
    x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(5, 1));
    (void)rlxvk_scan(g, step, (rlxvk_tensor[]){value(g, 0), x}, 2,
                     &(rlxvk_scan_options){.length = 4});
    expect_sticky(g, RLXVK_E_SHAPE, "5 steps, not 4");
    g = new_graph(); /* a branch that writes, even if it is not taken */
    rlxvk_graph *writes = new_graph();
    x = rlxvk_input(writes, "cache", RLXVK_F32, RLXVK_SHAPE(1, 4, 2));
    rlxvk_graph_output(writes,
                       rlxvk_write_rows(writes, x,
                                        rlxvk_input(writes, "r", RLXVK_F32, RLXVK_SHAPE(1, 1, 2)),
                                        input(writes, "at", 1)));
    rlxvk_tensor captures[] = {rlxvk_input(g, "cache", RLXVK_F32, RLXVK_SHAPE(1, 4, 2)),
                               rlxvk_input(g, "r", RLXVK_F32, RLXVK_SHAPE(1, 1, 2)),
                               input(g, "at", 1)};
    (void)rlxvk_if(g, input(g, "p", 1), writes, writes, captures, 3);
    expect_sticky(g, RLXVK_E_ATTR, "if: then (node 4): write_rows writes");
    g = new_graph();
    x = input(g, "x", 1);
    (void)rlxvk_scan(g, body, &x, 1, &(rlxvk_scan_options){.broadcast_count = SIZE_MAX});
    expect_sticky(g, RLXVK_E_ATTR, "broadcast of 1 values");
    rlxvk_graph_destroy(writes);
    rlxvk_graph_destroy(body);
    rlxvk_graph_destroy(wide);
    rlxvk_graph_destroy(step);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_while),
        cmocka_unit_test(test_while_carries),
        cmocka_unit_test(test_if),
        cmocka_unit_test(test_scan),
        cmocka_unit_test(test_empty_scan),
        cmocka_unit_test(test_nesting),
        cmocka_unit_test(test_random_bodies),
        cmocka_unit_test(test_leaves_once),
        cmocka_unit_test(test_results_over_operands),
        cmocka_unit_test(test_nested_bodies_are_bounded),
        cmocka_unit_test(test_scan_of_largest_rank),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
