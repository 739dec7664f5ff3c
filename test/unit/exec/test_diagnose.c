/* The output of RLXVK_NAN_TRACE and RLXVK_DUMP_NODES for a run, and of RLXVK_DUMP for a plan: which
 * lines are printed, and how many. */
#include "exec/executable.h"
#include "support/harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h> /* after base.h, whose status_fail() it hides */

static char said[4096];

static void keep_line(void *user, rlxvk_log_level level, const char *line)
{
    size_t length = strlen(said);
    (void)user, (void)level;
    snprintf(said + length, sizeof said - length, "%s\n", line);
}

static size_t count_of(const char *part)
{
    size_t count = 0;
    for (const char *at = said; (at = strstr(at, part)); at += strlen(part))
        count++;
    return count;
}

/* Runs so many square roots, one of the other. If an element of x is negative, every node has a NaN
 * there. */
static void run_roots(rlxvk_context *c, int roots, const float *x, size_t count)
{
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    float y[8];
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor v = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE((int64_t)count));
    for (int i = 0; i < roots; i++)
        v = rlxvk_sqrt(g, v);
    rlxvk_graph_output(g, v);
    expect_ok(rlxvk_compile(c, g, &(rlxvk_compile_options){.fusion = RLXVK_OFF}, &e));
    const rlxvk_run_input in = {"x", x, count, RLXVK_F32, false};
    const rlxvk_run_output out = {.index = 0, .buffer = y, .length = count};
    said[0] = 0;
    expect_ok(rlxvk_run(e, &in, 1, &out, 1));
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

/* Opens a context with these switches: a name and its value, and so on, and NULL at the end. */
static rlxvk_context *tracing(const char *const *set)
{
    for (const char *const *at = set; *at; at += 2)
        setenv(at[0], at[1], 1);
    rlxvk_context *c = open_context(&(rlxvk_context_options){.log = keep_line});
    for (const char *const *at = set; *at; at += 2)
        unsetenv(at[0]);
    return c;
}
#define TRACING(...) tracing((const char *const[]){__VA_ARGS__, NULL})

/* The trace lists at most three nodes. A run counts as clean only if no node has a NaN. */
static void nan_trace_tells_three_nodes(void **state)
{
    const float bad[] = {1, 4, -1, 2}, one[] = {1, 0, 2, 3};
    rlxvk_context *c = TRACING("RLXVK_NAN_TRACE", "1");
    (void)state;
    run_roots(c, 4, bad, 4);
    assert_ptr_equal(strstr(said, "sqrt (node 1): NaN 1, "), said); /* the first bad node */
    assert_int_equal(count_of("NaN 1, +Inf 0, -Inf 0 of 4 elements; first at 2 = [2]; around it: "),
                     3);
    assert_int_equal(count_of("around it: 1 2 (NaN) 1.41421\n"), 1); /* only for the first node */
    assert_int_equal(count_of("  operand 0, input 'x' (node 0): 4 values from -1 to 4\n"), 1);
    assert_int_equal(count_of(": 4 values from 1 to 2, NaN 1\n"), 1);
    assert_int_equal(count_of("clean"), 0);
    run_roots(c, 4, one, 4);
    assert_int_equal(count_of("NaN"), 0);
    assert_int_equal(count_of("run 1: clean"), 1);
    close_context(c);
}

/* The trace counts NaN and infinities separately, and prints the position of the first as
 * coordinates. It prints only the nearest neighbours of that element. */
static void nan_trace_tells_where_and_what(void **state)
{
    float x[24], y[24];
    rlxvk_context *c = TRACING("RLXVK_NAN_TRACE", "1");
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    (void)state;
    for (int i = 0; i < 24; i++)
        x[i] = (float)(i + 1);
    x[17] = 0;
    x[20] = -0.0f;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor v = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(2, 3, 4));
    rlxvk_tensor one = rlxvk_scalar(g, 12);
    v = rlxvk_div(g, one, v);
    rlxvk_graph_output(g, v);
    expect_ok(rlxvk_compile(c, g, &(rlxvk_compile_options){.fusion = RLXVK_OFF}, &e));
    const rlxvk_run_input in = {"x", x, 24, RLXVK_F32, false};
    const rlxvk_run_output out = {.index = 0, .buffer = y, .length = 24};
    said[0] = 0;
    expect_ok(rlxvk_run(e, &in, 1, &out, 1));
    assert_int_equal(count_of("NaN 0, +Inf 1, -Inf 1 of 24 elements; first at 17 = [1, 1, 1]; "
                              "around it: .. 0.8 0.75 0.705882 (inf) 0.631579 0.6 -inf ..\n"),
                     1);
    assert_int_equal(count_of("  operand "), 2);
    assert_int_equal(count_of(": 24 values from "), 1);
    assert_int_equal(count_of(": 1 values from 12 to 12\n"), 1);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    close_context(c);
}

/* Without a switch, a run prints nothing, even if there is a NaN. */
static void runs_are_silent_without_a_switch(void **state)
{
    const float bad[] = {1, 4, -1, 2};
    rlxvk_context *c = TRACING("RLXVK_NAN_TRACE", "0", "RLXVK_DUMP_NODES", "0");
    (void)state;
    run_roots(c, 4, bad, 4);
    assert_string_equal(said, "");
    close_context(c);
}

/* Every node has its line with its own numbers, in the order of execution. */
static void every_node_is_dumped(void **state)
{
    const float x[] = {16, 0, 81, -4};
    rlxvk_context *c = TRACING("RLXVK_DUMP_NODES", "1");
    (void)state;
    run_roots(c, 3, x, 4);
    assert_string_equal(said, "sqrt (node 1): max abs 9, nonzero 3 / 4, NaN 1\n"
                              "sqrt (node 2): max abs 3, nonzero 3 / 4, NaN 1\n"
                              "sqrt (node 3): max abs 1.73205, nonzero 3 / 4, NaN 1\n");
    run_roots(c, 45, x, 4);
    assert_int_equal(count_of("max abs"), 40);
    close_context(c);
}

/* The dump prints as many nodes as the limit allows. If an element is asked for and the node has
 * it, its value is printed, too. */
static void dumped_nodes_are_limited(void **state)
{
    static const struct {
        const char *flat, *limit;
        size_t lines;
        const char *first, *second;
    } cases[] = {
        {"0", "2", 2, "max abs 9, nonzero 2 / 3, NaN 0 [0]=4\n",
         "max abs 3, nonzero 2 / 3, NaN 0 [0]=2\n"},
        {"2", "3", 3, "NaN 0 [2]=9\n", "NaN 0 [2]=3\n"},
        {"3", "1000", 4, "max abs 9, nonzero 2 / 3, NaN 0\n", "max abs 3, nonzero 2 / 3, NaN 0\n"},
        {"0", "0", 0, NULL, NULL},
    };
    const float x[] = {16, 0, 81};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        rlxvk_context *c = TRACING("RLXVK_DUMP_NODES", "1", "RLXVK_DUMP_NODES_LIMIT",
                                   cases[i].limit, "RLXVK_DUMP_NODES_FLAT", cases[i].flat);
        run_roots(c, 4, x, 3);
        assert_int_equal(count_of("max abs"), cases[i].lines);
        assert_int_equal(count_of("\n"), cases[i].lines);
        if (cases[i].first) {
            assert_int_equal(count_of(cases[i].first), 1);
            assert_int_equal(count_of(cases[i].second), 1);
        }
        close_context(c);
    }
}

/* The dump of a plan lists each loop with its steps and its number of iterations. */
static void dumped_plans_have_loops(void **state)
{
    rlxvk_context *c = open_context(&(rlxvk_context_options){.log = keep_line});
    rlxvk_graph *body = NULL, *g = NULL;
    rlxvk_executable *e = NULL;
    rlxvk_scan_options scan = {.length = 20};
    (void)state;
    expect_ok(rlxvk_graph_create(&body));
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_graph_output(body, rlxvk_tanh(body, rlxvk_input(body, "x", RLXVK_F32, RLXVK_SHAPE(4))));
    rlxvk_graph_set_unroll_limit(g, 1);
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(4));
    rlxvk_graph_output(g, rlxvk_scan(g, body, &x, 1, &scan));
    said[0] = 0;
    expect_ok(rlxvk_compile(c, g, &(rlxvk_compile_options){.dump = RLXVK_DUMP_PLAN}, &e));
    assert_int_equal(count_of("  loop: steps "), 1);
    assert_int_equal(count_of(", 20 times, recorded "), 1);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    rlxvk_graph_destroy(body);
    close_context(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nan_trace_tells_three_nodes),
        cmocka_unit_test(nan_trace_tells_where_and_what),
        cmocka_unit_test(runs_are_silent_without_a_switch),
        cmocka_unit_test(every_node_is_dumped),
        cmocka_unit_test(dumped_nodes_are_limited),
        cmocka_unit_test(dumped_plans_have_loops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
