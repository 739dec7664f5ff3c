/* The executable's contract: params, inputs, handles, feeds, tickets, errors that change nothing,
 * memory sharing, clones and reports. */
#include "exec/executable.h"
#include "support/harness.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static void expect_values(const float *got, size_t count, const float *wanted)
{
    for (size_t i = 0; i < count; i++)
        assert_true(got[i] == wanted[i]);
}
#define EXPECT(got, ...)                                                                           \
    expect_values(got, sizeof((float[]){__VA_ARGS__}) / 4, (float[]){__VA_ARGS__})

/* Input h [4], output h + 1. */
static rlxvk_executable *increment(void)
{
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    float one = 1;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor h = rlxvk_input(g, "h", RLXVK_F32, RLXVK_SHAPE(4));
    rlxvk_tensor c = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(1), &one, 4);
    rlxvk_graph_output(g, rlxvk_add(g, h, c));
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    rlxvk_graph_destroy(g);
    return e;
}

static void run_h(rlxvk_executable *e, const float *h, float *y)
{
    rlxvk_run_input in = {"h", h, 4, RLXVK_F32};
    rlxvk_run_output out = {0, y, y ? 4 : 0, RLXVK_F32};
    expect_ok(rlxvk_run(e, &in, h != NULL, &out, y != NULL));
}

static void read_h(rlxvk_executable *e, float *h)
{
    expect_ok(rlxvk_read_handle(e, "h", h, 4));
}

/* Tests the state table of handles step by step. */
static void test_handle_states(void **state)
{
    rlxvk_executable *e = increment(), *copy = NULL;
    float y[4], h[4];
    const float five[] = {5, 5, 5, 5};
    (void)state;
    assert_false(rlxvk_has_handle(e, "h"));
    expect_error(rlxvk_read_handle(e, "h", h, 4), RLXVK_E_UNBOUND_HANDLE, "plain input");
    expect_ok(rlxvk_bind_handle(e, "h", (float[]){0, 0, 0, 0}, 4));
    assert_true(rlxvk_has_handle(e, "h"));
    run_h(e, NULL, y);
    run_h(e, NULL, y); /* bound: every run restores it */
    EXPECT(y, 1, 1, 1, 1);
    expect_ok(rlxvk_set_handle_feed(e, "h", 0));
    read_h(e, h);
    EXPECT(h, 0, 0, 0, 0);
    run_h(e, NULL, y);
    EXPECT(y, 1, 1, 1, 1);
    read_h(e, h);
    EXPECT(h, 1, 1, 1, 1);
    run_h(e, NULL, y);
    EXPECT(y, 2, 2, 2, 2);
    run_h(e, five, y);
    EXPECT(y, 6, 6, 6, 6);
    run_h(e, five, y); /* uploaded again, because the feed overwrote it */
    EXPECT(y, 6, 6, 6, 6);
    expect_ok(rlxvk_read_fed_output(e, "h", h, 4));
    EXPECT(h, 6, 6, 6, 6);
    expect_ok(rlxvk_bind_handle(e, "h", (float[]){9, 9, 9, 9}, 4));
    expect_ok(rlxvk_clone(e, &copy));
    run_h(copy, NULL, y);
    EXPECT(y, 10, 10, 10, 10);
    read_h(copy, h);
    EXPECT(h, 10, 10, 10, 10);
    read_h(e, h);
    EXPECT(h, 9, 9, 9, 9);
    expect_ok(rlxvk_clear_handle_feed(e, "h"));
    expect_ok(rlxvk_unbind_handle(e, "h"));
    assert_false(rlxvk_has_handle(e, "h"));
    run_h(e, NULL, y); /* the input keeps its value */
    EXPECT(y, 10, 10, 10, 10);
    rlxvk_executable_destroy(copy);
    rlxvk_executable_destroy(e);
}

static void test_handle_errors(void **state)
{
    rlxvk_executable *e = increment();
    float h[4] = {0};
    (void)state;
    expect_error(rlxvk_bind_handle(e, "q", h, 4), RLXVK_E_UNKNOWN_NAME, "'q'");
    expect_error(rlxvk_bind_handle(e, "h", h, 3), RLXVK_E_LENGTH, "needs 4");
    assert_false(rlxvk_has_handle(e, "h"));
    expect_error(rlxvk_set_handle_feed(e, "h", 1), RLXVK_E_INDEX, "output 1 of 1");
    expect_error(rlxvk_register_row_feed(e, "x", 0), RLXVK_E_UNKNOWN_NAME, "'x'");
    expect_error(rlxvk_feed_rows(e, 0, 0, 1), RLXVK_E_UNBOUND_HANDLE, "no row feed");
    expect_error(rlxvk_read_output_row(e, 0, 4, 1, h), RLXVK_E_RANGE, "outside");
    expect_error(rlxvk_read_output_row(e, 3, 0, 1, h), RLXVK_E_INDEX, "output 3");
    rlxvk_executable_destroy(e);
}

/* a and b are swapped through feeds. That works because all sources are read before a target is
 * written. */
static void test_swapped_feeds(void **state)
{
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    float v[2];
    (void)state;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor a = rlxvk_input(g, "a", RLXVK_F32, RLXVK_SHAPE(2));
    rlxvk_tensor b = rlxvk_input(g, "b", RLXVK_F32, RLXVK_SHAPE(2));
    rlxvk_graph_output(g, a);
    rlxvk_graph_output(g, b);
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    expect_ok(rlxvk_bind_handle(e, "a", (float[]){1, 2}, 2));
    expect_ok(rlxvk_bind_handle(e, "b", (float[]){3, 4}, 2));
    expect_ok(rlxvk_set_handle_feed(e, "a", 1));
    expect_ok(rlxvk_set_handle_feed(e, "b", 0));
    for (int i = 0; i < 3; i++) {
        expect_ok(rlxvk_run(e, NULL, 0, NULL, 0));
        expect_ok(rlxvk_read_handle(e, "a", v, 2));
        assert_true(v[0] == (i % 2 ? 1 : 3));
        expect_ok(rlxvk_read_handle(e, "b", v, 2));
        assert_true(v[0] == (i % 2 ? 3 : 1));
    }
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

/* Row feeds are queued and execute with the next submission. */
static void test_row_feeds(void **state)
{
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    rlxvk_plan_report before, after;
    float cache[8] = {0}, row[2] = {7, 8}, y[10];
    rlxvk_run_input in = {"row", row, 2, RLXVK_F32};
    (void)state;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor c = rlxvk_input(g, "cache", RLXVK_F32, RLXVK_SHAPE(4, 2));
    rlxvk_tensor r = rlxvk_input(g, "row", RLXVK_F32, RLXVK_SHAPE(1, 2));
    rlxvk_graph_output(g, rlxvk_concat(g, (rlxvk_tensor[]){c, r}, 2, 0));
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    expect_ok(rlxvk_bind_handle(e, "cache", cache, 8));
    expect_ok(rlxvk_register_row_feed(e, "cache", 0));
    expect_ok(rlxvk_run(e, &in, 1, NULL, 0));
    expect_error(rlxvk_feed_rows(e, 5, 0, 2), RLXVK_E_RANGE, "row 5");
    expect_error(rlxvk_feed_rows(e, 4, 4, 2), RLXVK_E_RANGE, "row 4");
    expect_ok(rlxvk_feed_rows(e, 4, 1, 2));
    rlxvk_executable_plan(e, &before);
    row[0] = 1;
    expect_ok(rlxvk_run(e, &in, 1, &(rlxvk_run_output){0, y, 10, RLXVK_F32}, 1));
    rlxvk_executable_plan(e, &after);
    assert_int_equal(after.submissions - before.submissions, 1);
    EXPECT(y, 0, 0, 7, 8, 0, 0, 0, 0, 1, 8);
    expect_ok(rlxvk_feed_rows(e, 4, 3, 2));
    expect_ok(rlxvk_read_handle(e, "cache", y, 8));
    EXPECT(y, 0, 0, 7, 8, 0, 0, 1, 8);
    expect_ok(rlxvk_read_output_row(e, 0, 4, 2, y));
    EXPECT(y, 1, 8);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

/* ---- Params, inputs, errors ---- */

/* Params: w [2,3] f32, h [4] f16, raw [5] u8 and d, which is dead. Input: x [3]. Outputs: x * w
 * summed, raw and h. */
static rlxvk_executable *with_params(rlxvk_graph **g)
{
    rlxvk_executable *e = NULL;
    expect_ok(rlxvk_graph_create(g));
    rlxvk_tensor x = rlxvk_input(*g, "x", RLXVK_F32, RLXVK_SHAPE(3));
    rlxvk_tensor w = rlxvk_param(*g, "w", RLXVK_F32, RLXVK_SHAPE(2, 3));
    rlxvk_tensor h = rlxvk_param(*g, "h", RLXVK_F16, RLXVK_SHAPE(4));
    rlxvk_tensor raw = rlxvk_param(*g, "raw", RLXVK_U8, RLXVK_SHAPE(5));
    (void)rlxvk_neg(*g, rlxvk_param(*g, "d", RLXVK_F32, RLXVK_SHAPE(2)));
    rlxvk_graph_output(*g, rlxvk_reduce_sum(*g, rlxvk_mul(*g, x, w), (int32_t[]){1}, 1, false));
    rlxvk_graph_output(*g, raw);
    rlxvk_graph_output(*g, h);
    expect_ok(rlxvk_compile(shared_context, *g, NULL, &e));
    return e;
}

static void test_params(void **state)
{
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = with_params(&g);
    float w[] = {1, 2, 3, 4, 5, 6}, x[] = {1, 10, 100}, y[2], back[6], h[4];
    uint8_t raw[] = {1, 2, 3, 250, 5}, raw_back[5];
    uint16_t half[4];
    rlxvk_run_input in = {"x", x, 3, RLXVK_F32};
    (void)state;
    expect_error(rlxvk_run(e, &in, 1, NULL, 0), RLXVK_E_UNSET_PARAM, "'w'");
    expect_error(rlxvk_set_param(e, "nope", w, 6), RLXVK_E_UNKNOWN_NAME, "'nope'");
    expect_error(rlxvk_set_param(e, "w", w, 5), RLXVK_E_LENGTH, "needs 6");
    expect_error(rlxvk_set_param(e, "raw", w, 5), RLXVK_E_DTYPE, "'raw' is U8");
    expect_error(rlxvk_set_param(e, "h", w, 4), RLXVK_E_DTYPE, "use rlxvk_set_param_typed");
    expect_error(rlxvk_set_param_bytes(e, "raw", raw, 4), RLXVK_E_LENGTH, "needs 5");
    expect_error(rlxvk_run(e, &in, 1, NULL, 0), RLXVK_E_UNSET_PARAM, "'w'");
    expect_ok(rlxvk_set_param(e, "w", w, 6));
    expect_ok(rlxvk_set_param(e, "d", w, 2)); /* optimized away because dead, but still known */
    expect_ok(rlxvk_set_param_bytes(e, "raw", raw, 5));
    expect_ok(rlxvk_set_param_typed(e, "h",
                                    (float[]){1.0f, 1.0009765625f + 0.000244140625f, 65520, -2}, 16,
                                    RLXVK_F32));
    rlxvk_run_output out[] = {{0, y, 2, RLXVK_F32},
                              {1, raw_back, 5, RLXVK_U8},
                              {2, h, 4, .f32_words = true},
                              {2, half, 4, RLXVK_F16}};
    expect_ok(rlxvk_run(e, &in, 1, out, 4));
    EXPECT(y, 321, 654);
    EXPECT(h, 1, 1.0009765625f, INFINITY, -2);
    assert_int_equal(half[1], 0x3c01);
    assert_memory_equal(raw, raw_back, 5);
    expect_ok(rlxvk_read_param(e, "w", back, 6));
    expect_values(back, 6, w);
    expect_ok(rlxvk_set_param_typed(e, "w", (int32_t[]){6, 5, 4, 3, 2, 1}, 24, RLXVK_I32));
    expect_ok(rlxvk_run(e, NULL, 0, out, 1)); /* x keeps its value */
    EXPECT(y, 456, 123);
    rlxvk_param_item items[] = {{"w", w, 24, RLXVK_F32}, {"raw", raw, 3, RLXVK_U8}};
    expect_error(rlxvk_set_params(e, items, 2), RLXVK_E_LENGTH, "raw");
    expect_ok(rlxvk_run(e, NULL, 0, out, 1));
    EXPECT(y, 456, 123); /* the failed call wrote nothing */
    items[1].length = 5;
    expect_ok(rlxvk_set_params(e, items, 2));
    expect_ok(rlxvk_run(e, NULL, 0, out, 1));
    EXPECT(y, 321, 654);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

static void test_run_errors_change_nothing(void **state)
{
    rlxvk_executable *e = increment();
    float h[] = {1, 2, 3, 4}, y[4];
    rlxvk_run_input good = {"h", h, 4, RLXVK_F32}, unknown = {"z", h, 4, RLXVK_F32},
                    short_one = {"h", h, 3, RLXVK_F32};
    rlxvk_run_output out = {0, y, 4, RLXVK_F32}, bad_index = {2, y, 4, RLXVK_F32},
                     bad_length = {0, y, 5, RLXVK_F32};
    rlxvk_plan_report report;
    (void)state;
    expect_error(rlxvk_run(e, NULL, 0, &out, 1), RLXVK_E_MISSING_INPUT, "'h'");
    expect_error(rlxvk_run(e, (rlxvk_run_input[]){good, unknown}, 2, &out, 1), RLXVK_E_UNKNOWN_NAME,
                 "'z'");
    expect_error(rlxvk_run(e, &short_one, 1, &out, 1), RLXVK_E_LENGTH, "needs 4");
    expect_error(rlxvk_run(e, &good, 1, &bad_index, 1), RLXVK_E_INDEX, "output 2 of 1");
    expect_error(rlxvk_run(e, &good, 1, &bad_length, 1), RLXVK_E_LENGTH, "has 4");
    expect_error(rlxvk_run(e, NULL, 0, &out, 1), RLXVK_E_MISSING_INPUT, "'h'");
    rlxvk_executable_plan(e, &report);
    assert_int_equal(report.runs, 0);
    expect_ok(rlxvk_run(e, (rlxvk_run_input[]){{"h", y, 4, RLXVK_F32}, good}, 2, &out, 1));
    EXPECT(y, 2, 3, 4, 5); /* if a name is given twice, the last wins */
    rlxvk_executable_destroy(e);
}

static void test_compile_errors(void **state)
{
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    (void)state;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(2, 8, 64, 64));
    expect_error(rlxvk_compile(shared_context, g, NULL, &e), RLXVK_E_NO_OUTPUTS, "no output");
    rlxvk_tensor y = rlxvk_softmax(g, x, 4);
    assert_int_equal(y.id, 0);
    assert_int_equal(rlxvk_graph_status(g), RLXVK_E_AXIS);
    assert_non_null(strstr(rlxvk_graph_error(g), "axis 4 outside rank 4"));
    rlxvk_graph_output(g, rlxvk_add(g, y, x)); /* ignored after an error */
    expect_error(rlxvk_compile(shared_context, g, NULL, &e), RLXVK_E_AXIS, "softmax");
    rlxvk_graph_destroy(g);

    expect_ok(rlxvk_graph_create(&g));
    rlxvk_graph_output(g, rlxvk_relu(g, rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(4))));
    rlxvk_compile_options o = {.host_ops = (const char *[]){"relu"},
                               .host_op_count = 1,
                               .forbid_host = RLXVK_ON};
    expect_error(rlxvk_compile(shared_context, g, &o, &e), RLXVK_E_UNSUPPORTED,
                 "1 node would run on the host, which forbid_host rules out: relu (node 1)");
    o = (rlxvk_compile_options){.host_ops = (const char *[]){"no_such_op"}, .host_op_count = 1};
    expect_error(rlxvk_compile(shared_context, g, &o, &e), RLXVK_E_ATTR, "no_such_op");
    o.host_ops = (const char *[]){"relu,neg"};
    expect_error(rlxvk_compile(shared_context, g, &o, &e), RLXVK_E_ATTR,
                 "there is no op 'relu,neg'");
    o.host_ops = NULL;
    expect_error(rlxvk_compile(shared_context, g, &o, &e), RLXVK_E_NULL, "host_ops");
    o = (rlxvk_compile_options){.variants = &(rlxvk_variant){"matmul", NULL}, .variant_count = 1};
    expect_error(rlxvk_compile(shared_context, g, &o, &e), RLXVK_E_NULL, "a row in variants");
    o.variants = &(rlxvk_variant){"matmul", "no_such_row"};
    expect_error(rlxvk_compile(shared_context, g, &o, &e), RLXVK_E_ATTR,
                 "compile option variants: matmul has no variant 'no_such_row'");
    o = (rlxvk_compile_options){.dump = 32};
    expect_error(rlxvk_compile(shared_context, g, &o, &e), RLXVK_E_ATTR, "0x20");
    o = (rlxvk_compile_options){.precision = (rlxvk_precision)4};
    expect_error(rlxvk_compile(shared_context, g, &o, &e), RLXVK_E_ATTR, "precision is 4");
    rlxvk_graph_destroy(g);
}

/* The error lists each node that cannot run, if there are few. If there are a hundred, it lists as
 * many as fit. */
static void test_nodes_ruled_out(void **state)
{
    rlxvk_compile_options o = {.host_ops = (const char *[]){"relu", "exp"},
                               .host_op_count = 2,
                               .forbid_host = RLXVK_ON};
    rlxvk_executable *e = NULL;
    rlxvk_graph *g = NULL;
    (void)state;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(4));
    rlxvk_tensor y = rlxvk_exp(g, rlxvk_neg(g, rlxvk_relu(g, x)));
    rlxvk_graph_set_name(g, y, "power");
    rlxvk_graph_output(g, y);
    expect_error(rlxvk_compile(shared_context, g, &o, &e), RLXVK_E_UNSUPPORTED,
                 "2 nodes would run on the host, which forbid_host rules out: relu (node 1), exp "
                 "'power' (node 3)");
    for (int i = 0; i < 98; i++)
        y = rlxvk_relu(g, rlxvk_neg(g, y));
    rlxvk_graph_output(g, y);
    expect_error(rlxvk_compile(shared_context, g, &o, &e), RLXVK_E_UNSUPPORTED, "100 nodes would");
    assert_non_null(strstr(rlxvk_last_error(), " more"));
    rlxvk_graph_destroy(g);
}

static void test_tickets(void **state)
{
    rlxvk_executable *e = increment();
    float a[] = {1, 1, 1, 1}, b[] = {2, 2, 2, 2}, ya[4], yb[4], yc[4];
    rlxvk_run_input ia = {"h", a, 4, RLXVK_F32}, ib = {"h", b, 4, RLXVK_F32};
    rlxvk_run_output oa = {0, ya, 4, RLXVK_F32}, ob = {0, yb, 4, RLXVK_F32},
                     oc = {0, yc, 4, RLXVK_F32};
    rlxvk_ticket ta, tb, tc;
    (void)state;
    for (int i = 0; i < 3; i++) {
        expect_ok(rlxvk_submit(e, &ia, 1, &oa, 1, &ta));
        expect_ok(rlxvk_submit(e, &ib, 1, &ob, 1, &tb));
        expect_error(rlxvk_submit(e, &ia, 1, &oc, 1, &tc), RLXVK_E_BUSY, "2 runs");
        a[0] = 50; /* no effect, because inputs were copied */
        expect_ok(rlxvk_run(e, NULL, 0, &oc, 1));
        EXPECT(yc, 3, 3, 3, 3);
        expect_ok(rlxvk_wait(e, tb));
        expect_ok(rlxvk_wait(e, ta));
        EXPECT(ya, 2, 2, 2, 2);
        EXPECT(yb, 3, 3, 3, 3);
        expect_error(rlxvk_wait(e, ta), RLXVK_E_INDEX, "no run");
        a[0] = 1;
    }
    expect_ok(rlxvk_submit(e, &ia, 1, NULL, 0, &ta)); /* destroyed in flight */
    rlxvk_executable_destroy(e);
}

/* ---- Cost of a run ---- */

static void test_run_makes_nothing(void **state)
{
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    random_source r = {11};
    size_t n;
    (void)state;
    expect_ok(rlxvk_graph_create(&g));
    random_graph(g, &r, 30, false);
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    free(run_seeded(e, g, 1, false, &n));
    float out[64];
    rlxvk_shape s = rlxvk_executable_output_shape(e, 1);
    rlxvk_run_output item = {1, out, shape_numel(&s), RLXVK_F32};
    uint64_t allocations = memory_allocation_count();
    vk_test_hooks before = vk_hooks;
    for (int i = 0; i < 10; i++)
        expect_ok(rlxvk_run(e, NULL, 0, &item, 1));
    assert_int_equal(memory_allocation_count() - allocations, 0);
    assert_int_equal(vk_hooks.created - before.created, 0);
    assert_int_equal(vk_hooks.recorded - before.recorded, 0);
    assert_int_equal(vk_hooks.submitted - before.submitted, 10);
    print_message("10 runs: 0 allocations, 0 objects, 0 recordings, 10 submissions\n");
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

/* An input is uploaded again only if its value changed. */
static void test_upload_skipping(void **state)
{
    rlxvk_executable *e = increment();
    float h[] = {1, 2, 3, 4}, y[4];
    (void)state;
    run_h(e, h, y);
    run_h(e, h, y);
    EXPECT(y, 2, 3, 4, 5);
    h[3] = 9;
    run_h(e, h, y);
    EXPECT(y, 2, 3, 4, 10);
    expect_ok(rlxvk_bind_handle(e, "h", (float[]){0, 0, 0, 0}, 4));
    run_h(e, h, y);
    EXPECT(y, 2, 3, 4, 10);
    rlxvk_executable_destroy(e);
}

/* ---- In-place rows and sharing ---- */

static rlxvk_graph *cache_graph(int64_t rows)
{
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor cache = rlxvk_input(g, "cache", RLXVK_F32, RLXVK_SHAPE(1, 4, 2));
    rlxvk_tensor fresh = rlxvk_input(g, "rows", RLXVK_F32, RLXVK_SHAPE(1, rows, 2));
    rlxvk_tensor position = rlxvk_input(g, "position", RLXVK_F32, RLXVK_SHAPE(1));
    rlxvk_tensor w = rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(1));
    rlxvk_tensor before = rlxvk_reduce_sum(g, cache, (int32_t[]){0, 1, 2}, 3, false);
    rlxvk_tensor after = rlxvk_write_rows(g, cache, fresh, position);
    rlxvk_graph_output(g, before);
    rlxvk_graph_output(g, rlxvk_mul(g, after, w));
    expect_ok(rlxvk_graph_status(g));
    return g;
}

static void test_write_rows_and_sharing(void **state)
{
    const char *shared[] = {"cache"};
    rlxvk_graph *two = cache_graph(2), *one = cache_graph(1);
    rlxvk_executable *a = NULL, *b = NULL;
    float w = 1, rows[] = {1, 2, 3, 4}, position = 0, sum, y[8];
    rlxvk_run_input inputs[] = {{"rows", rows, 4, RLXVK_F32}, {"position", &position, 1, 0}};
    rlxvk_run_output out[] = {{0, &sum, 1, 0}, {1, y, 8, 0}};
    (void)state;
    expect_ok(rlxvk_compile(shared_context, two, NULL, &a));
    expect_ok(rlxvk_set_param(a, "w", &w, 1));
    expect_ok(rlxvk_bind_handle(a, "cache", (float[8]){0}, 8));
    rlxvk_compile_options o = {.share_with = a, .shared_inputs = shared, .shared_input_count = 1};
    expect_ok(rlxvk_compile(shared_context, one, &o, &b));
    expect_ok(rlxvk_run(a, inputs, 2, out, 2));
    assert_true(sum == 0); /* a reader built before the write reads the old value */
    EXPECT(y, 1, 2, 3, 4, 0, 0, 0, 0);
    rlxvk_executable_destroy(a); /* the shared memory stays */
    position = 2;
    inputs[0].length = 2;
    expect_ok(rlxvk_run(b, inputs, 2, out, 2));
    assert_true(sum == 10);
    EXPECT(y, 1, 2, 3, 4, 1, 2, 0, 0);
    position = 7; /* out of range: dropped */
    expect_ok(rlxvk_run(b, inputs, 2, out, 2));
    EXPECT(y, 1, 2, 3, 4, 1, 2, 0, 0);
    rlxvk_executable_destroy(b);
    rlxvk_graph_destroy(one);
    rlxvk_graph_destroy(two);
}

/* ---- Diagnostics ---- */

static void test_first_bad_node(void **state)
{
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    rlxvk_bad_node bad;
    float x[] = {4, 1, -1, 9};
    rlxvk_run_input in = {"x", x, 4, RLXVK_F32};
    (void)state;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor a = rlxvk_neg(g, rlxvk_neg(g, rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(4))));
    rlxvk_tensor root = rlxvk_sqrt(g, a);
    rlxvk_graph_set_name(g, root, "root");
    rlxvk_graph_output(g, rlxvk_relu(g, root));
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    expect_ok(rlxvk_first_bad_node(e, &in, 1, &bad));
    assert_true(bad.found);
    assert_string_equal(bad.op, "sqrt");
    assert_string_equal(bad.name, "root");
    assert_int_equal(bad.node, root.id - 1);
    assert_int_equal(bad.first_index, 2);
    assert_int_equal(bad.nan_count, 1);
    assert_true(bad.neighbours[1] == 1 && bad.neighbours[3] == 3);
    assert_string_equal(bad.previous_op, "neg");
    x[2] = 1;
    expect_ok(rlxvk_first_bad_node(e, &in, 1, &bad));
    assert_false(bad.found);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

static void test_index_check(void **state)
{
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    float data[] = {1, 2, 3}, good[] = {0, 2}, bad[] = {1, 3}, y[2];
    rlxvk_run_input inputs[] = {{"data", data, 3, 0}, {"index", good, 2, 0}};
    rlxvk_run_output out = {0, y, 2, 0};
    (void)state;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "data", RLXVK_F32, RLXVK_SHAPE(3));
    rlxvk_tensor i = rlxvk_input(g, "index", RLXVK_F32, RLXVK_SHAPE(2));
    rlxvk_graph_output(g, rlxvk_gather(g, x, rlxvk_neg(g, rlxvk_neg(g, i)), 0));
    expect_ok(
        rlxvk_compile(shared_context, g, &(rlxvk_compile_options){.check_index = RLXVK_ON}, &e));
    expect_ok(rlxvk_run(e, inputs, 2, &out, 1));
    EXPECT(y, 1, 3);
    inputs[1].data = bad;
    expect_error(rlxvk_run(e, inputs, 2, &out, 1), RLXVK_E_INDEX_OOB, "3 at position 1");
    rlxvk_executable_destroy(e);
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    expect_ok(rlxvk_run(e, inputs, 2, &out, 1));
    EXPECT(y, 2, 3); /* without the check: clamped */
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

static void test_profile(void **state)
{
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    rlxvk_step_time steps[4];
    float x[4] = {1, 2, 3, 4};
    rlxvk_run_input in = {"x", x, 4, RLXVK_F32};
    double whole = -1, sum = 0;
    size_t count;
    (void)state;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor input = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(2, 2));
    rlxvk_graph_output(g, rlxvk_softmax(g, rlxvk_exp(g, input), -1));
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    expect_ok(rlxvk_run(e, &in, 1, NULL, 0));
    expect_error(rlxvk_executable_run_time(e, &whole), RLXVK_E_UNSUPPORTED, "time_runs");
    rlxvk_executable_destroy(e);
    expect_ok(
        rlxvk_compile(shared_context, g, &(rlxvk_compile_options){.time_runs = RLXVK_ON}, &e));
    expect_error(rlxvk_executable_run_time(e, &whole), RLXVK_E_UNSUPPORTED, "nothing has run");
    expect_ok(rlxvk_run(e, &in, 1, NULL, 0));
    expect_ok(rlxvk_executable_run_time(e, &whole));
    assert_true(whole >= 0 && whole < 1e6);
    expect_error(rlxvk_executable_profile(e, steps, 4, &count), RLXVK_E_UNSUPPORTED,
                 "option profile");
    rlxvk_executable_destroy(e);
    expect_ok(rlxvk_compile(shared_context, g, &(rlxvk_compile_options){.profile = RLXVK_ON}, &e));
    expect_error(rlxvk_executable_profile(e, steps, 4, &count), RLXVK_E_UNSUPPORTED,
                 "nothing has run");
    expect_ok(rlxvk_run(e, &in, 1, NULL, 0));
    expect_ok(rlxvk_executable_profile(e, steps, 4, &count));
    assert_int_equal(count, 2);
    assert_string_equal(steps[0].name, "unary");
    assert_true(steps[0].gpu && steps[0].microseconds >= 0 && steps[0].microseconds < 1e6);
    sum = steps[0].microseconds + steps[1].microseconds;
    expect_ok(rlxvk_executable_run_time(e, &whole));
    assert_true(whole >= 0.999 * sum && whole <= 1.001 * sum + 1e-3);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

static void test_trace(void **state)
{
    char path[] = "/tmp/rlxvk-trace-XXXXXX", line[256], last[256] = "";
    int file = mkstemp(path), events = 0;
    (void)state;
    assert_true(file >= 0);
    setenv("RLXVK_TRACE", path, 1);
    rlxvk_context *kept = shared_context;
    shared_context = open_context(NULL);
    rlxvk_executable *e = increment();
    float h[] = {1, 2, 3, 4}, y[4];
    run_h(e, h, y);
    rlxvk_executable_destroy(e);
    close_context(shared_context);
    shared_context = kept;
    unsetenv("RLXVK_TRACE");
    FILE *in = fdopen(file, "r");
    while (fgets(line, sizeof line, in)) {
        events += strstr(line, "\"ph\":\"X\"") != NULL;
        strcpy(last, line);
    }
    fclose(in);
    unlink(path);
    assert_true(events >= 3);
    assert_string_equal(last, "]\n");
}

/* ---- Injected failures ---- */

/* Compiles, runs and destroys. If anything fails, the call must return a status and leak nothing.
 */
static rlxvk_status whole_life(rlxvk_graph *g)
{
    rlxvk_executable *e = NULL;
    float x[] = {1, 2, 3}, y[2], w[] = {1, 2, 3, 4, 5, 6};
    rlxvk_run_input in = {"x", x, 3, RLXVK_F32};
    rlxvk_run_output out = {0, y, 2, RLXVK_F32};
    rlxvk_status status;
    TRY(rlxvk_compile(shared_context, g, NULL, &e));
    TRY(rlxvk_set_param(e, "w", w, 6));
    TRY(rlxvk_run(e, &in, 1, &out, 1));
error:
    rlxvk_executable_destroy(e);
    return status;
}

static void test_injected_failures(void **state)
{
    rlxvk_graph *g = NULL;
    uint64_t host = 0, vulkan = 0;
    (void)state;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(1, 3));
    rlxvk_tensor w = rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(3, 2));
    rlxvk_graph_output(g, rlxvk_softmax(g, rlxvk_matmul(g, x, w), -1));
    expect_ok(whole_life(g));
    for (rlxvk_status status = RLXVK_E_TIMEOUT; status != RLXVK_OK; host++) {
        memory_fail_at(host + 1);
        status = whole_life(g);
        assert_true(status == RLXVK_OK || status == RLXVK_E_OUT_OF_HOST_MEMORY);
    }
    memory_fail_at(0);
    for (rlxvk_status status = RLXVK_E_TIMEOUT; status != RLXVK_OK; vulkan++) {
        vk_hooks.fail_at = vulkan + 1;
        status = whole_life(g);
        assert_true(status == RLXVK_OK || status == RLXVK_E_OUT_OF_DEVICE_MEMORY);
    }
    vk_hooks.fail_at = 0;
    expect_ok(whole_life(g));
    print_message("%llu host and %llu Vulkan failures injected\n", (unsigned long long)host - 1,
                  (unsigned long long)vulkan - 1);
    assert_true(host > 20 && vulkan > 20);
    rlxvk_graph_destroy(g);
}

/* A wait for a processor sleeps, and one for a GPU polls first. The error names the kernels that
 * were submitted last. The device is not really lost, and still works on what was submitted. */
static void test_losing_a_device(void **state)
{
    rlxvk_context *kept = shared_context;
    float h[] = {1, 2, 3, 4}, y[4];
    rlxvk_run_input in = {"h", h, 4, RLXVK_F32};
    rlxvk_run_output out = {0, y, 4, RLXVK_F32};
    rlxvk_ticket ticket;
    char named[128];
    static const struct {
        bool waits;
        rlxvk_device_kind kind;
    } rows[] = {{false, RLXVK_DEVICE_CPU}, {true, RLXVK_DEVICE_CPU}, {true, RLXVK_DEVICE_DISCRETE}};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        bool waits = rows[i].waits;
        shared_context = open_context(NULL);
        rlxvk_executable *e = increment();
        snprintf(named, sizeof named, "VK_ERROR_DEVICE_LOST: %s; submitted last (1 dispatches): %s",
                 "the device is lost; destroy everything on it and open it again",
                 kernel_table[e->program->schedule.dispatches.items[0].kernel].name);
        expect_ok(rlxvk_run(e, &in, 1, &out, 1));
        device *d = shared_context->device;
        if (waits)
            expect_ok(rlxvk_submit(e, &in, 1, &out, 1, &ticket));
        assert_int_equal(d->fn.DeviceWaitIdle(d->handle), VK_SUCCESS);
        d->setup.profile.kind = rows[i].kind;
        vk_hooks.fail_at = 1;
        vk_hooks.fail_result = VK_ERROR_DEVICE_LOST;
        expect_error(waits ? rlxvk_wait(e, ticket) : rlxvk_run(e, &in, 1, &out, 1),
                     RLXVK_E_DEVICE_LOST, named);
        vk_hooks.fail_result = VK_SUCCESS;
        assert_int_equal(vk_hooks.fail_at, 0);
        assert_int_equal(d->fn.DeviceWaitIdle(d->handle), VK_SUCCESS);
        rlxvk_executable_destroy(e);
        close_context(shared_context);
    }
    shared_context = kept;
}

static void test_lost_device(void **state)
{
    rlxvk_context *kept = shared_context;
    float h[] = {1, 2, 3, 4}, y[4];
    rlxvk_run_input in = {"h", h, 4, RLXVK_F32};
    rlxvk_run_output out = {0, y, 4, RLXVK_F32};
    (void)state;
    shared_context = open_context(NULL);
    rlxvk_executable *e = increment(), *other = increment();
    (void)vk_check(e->device, VK_ERROR_DEVICE_LOST, "QueueSubmit(test)");
    expect_error(rlxvk_run(e, &in, 1, &out, 1), RLXVK_E_DEVICE_LOST, "lost");
    expect_error(rlxvk_run(other, &in, 1, &out, 1), RLXVK_E_DEVICE_LOST, "lost");
    rlxvk_executable_destroy(e);
    rlxvk_executable_destroy(other);
    close_context(shared_context);
    shared_context = kept;
}

static void keep_miss(void *user, rlxvk_log_level level, const char *line)
{
    (void)level;
    if (strstr(line, "not fused"))
        snprintf(user, 160, "%s", line);
}

/* The dump of the rewritten graph has the pattern, the node and the reason why it did not fuse. */
static void test_dump_of_misses(void **state)
{
    char line[160] = "";
    rlxvk_context *c = open_context(&(rlxvk_context_options){.log = keep_miss, .log_user = line});
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    (void)state;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(3, 4));
    rlxvk_tensor m = rlxvk_matmul(g, x, rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(4, 5)));
    rlxvk_tensor y = rlxvk_add(g, m, rlxvk_param(g, "b", RLXVK_F32, RLXVK_SHAPE(5)));
    rlxvk_graph_set_name(g, y, "y");
    rlxvk_graph_output(g, y);
    rlxvk_graph_output(g, rlxvk_neg(g, m));
    expect_ok(rlxvk_compile(c, g, &(rlxvk_compile_options){.dump = RLXVK_DUMP_REWRITE}, &e));
    assert_string_equal(line, "  not fused: matmul + bias + activation at %4 add 'y': "
                              "matmul %2 has 2 readers");
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    close_context(c);
}

static rlxvk_precision precision_of(rlxvk_context *c, rlxvk_precision option)
{
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    rlxvk_compile_options o = {.precision = option};
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_graph_output(g, rlxvk_relu(g, rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(4))));
    expect_ok(rlxvk_compile(c, g, &o, &e));
    rlxvk_precision precision = e->program->options.precision;
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    return precision;
}

/* The switch applies only if the compile options do not set a precision. */
static void test_precision_switch(void **state)
{
    (void)state;
    assert_int_equal(precision_of(shared_context, RLXVK_PRECISION_F32), RLXVK_PRECISION_F32);
    setenv("RLXVK_PRECISION", "split", 1);
    rlxvk_context *c = open_context(NULL);
    unsetenv("RLXVK_PRECISION");
    assert_int_equal(precision_of(c, RLXVK_PRECISION_F32), RLXVK_PRECISION_SPLIT);
    assert_int_equal(precision_of(c, RLXVK_PRECISION_BF16), RLXVK_PRECISION_BF16);
    close_context(c);
}

static void test_context_errors(void **state)
{
    rlxvk_context *c = NULL;
    rlxvk_device_info info = {.name = "untouched"};
    (void)state;
    expect_error(rlxvk_device_find("no such device", &info), RLXVK_E_NO_DEVICE, "no such device");
    assert_string_equal(info.name, "untouched");
    expect_ok(rlxvk_device_find("0", &info));
    assert_int_equal(info.index, 0);
    strcpy(info.name, "taken away");
    expect_error(rlxvk_context_create(&(rlxvk_context_options){.device = &info}, &c),
                 RLXVK_E_NO_DEVICE, "taken away");
    setenv("RLXVK_DUMP", "everything", 1);
    expect_error(rlxvk_context_create(NULL, &c), RLXVK_E_ATTR, "RLXVK_DUMP");
    unsetenv("RLXVK_DUMP");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handle_states),
        cmocka_unit_test(test_handle_errors),
        cmocka_unit_test(test_swapped_feeds),
        cmocka_unit_test(test_row_feeds),
        cmocka_unit_test(test_params),
        cmocka_unit_test(test_run_errors_change_nothing),
        cmocka_unit_test(test_compile_errors),
        cmocka_unit_test(test_nodes_ruled_out),
        cmocka_unit_test(test_tickets),
        cmocka_unit_test(test_run_makes_nothing),
        cmocka_unit_test(test_upload_skipping),
        cmocka_unit_test(test_write_rows_and_sharing),
        cmocka_unit_test(test_first_bad_node),
        cmocka_unit_test(test_index_check),
        cmocka_unit_test(test_profile),
        cmocka_unit_test(test_trace),
        cmocka_unit_test(test_injected_failures),
        cmocka_unit_test(test_losing_a_device),
        cmocka_unit_test(test_lost_device),
        cmocka_unit_test(test_dump_of_misses),
        cmocka_unit_test(test_context_errors),
        cmocka_unit_test(test_precision_switch),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
