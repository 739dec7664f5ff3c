/*
 * Feeds, row feeds and run-time checks on shared memory: outputs are views of memory that a feed,
 * an upload or a later run writes. Each test runs on two devices: the host maps the memory of one,
 * and for the other everything is staged.
 */
#include "exec/executable.h"
#include "support/harness.h"

#include <rlxvk_ops.h>
#include <rlxvk_ops_domain.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static rlxvk_context *contexts[2]; /* mapped; staged */

static int open_contexts(void **state)
{
    (void)state;
    contexts[0] = open_context(NULL);
    contexts[1] = open_context(&(rlxvk_context_options){.direct_upload = RLXVK_OFF});
    return 0;
}

static int close_contexts(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(contexts); i++)
        close_context(contexts[i]);
    return 0;
}

static void expect_values(const float *got, size_t count, const float *wanted)
{
    for (size_t i = 0; i < count; i++)
        if (!(got[i] == wanted[i]))
            fail_msg("element %zu is %g, wanted %g", i, (double)got[i], (double)wanted[i]);
}
#define EXPECT(got, ...)                                                                           \
    expect_values(got, sizeof((float[]){__VA_ARGS__}) / 4, (float[]){__VA_ARGS__})

static rlxvk_tensor plus_one(rlxvk_graph *g, rlxvk_tensor x)
{
    float one = 1;
    return rlxvk_add(g, x, rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(1), &one, 4));
}

static rlxvk_executable *compile(rlxvk_context *c, rlxvk_graph *g, const rlxvk_compile_options *o)
{
    rlxvk_executable *e = NULL;
    expect_ok(rlxvk_compile(c, g, o, &e));
    rlxvk_graph_destroy(g);
    return e;
}

static void run(rlxvk_executable *e, const char *name, float value, float *outputs, size_t count)
{
    rlxvk_run_input in = {name, &value, 1, RLXVK_F32};
    rlxvk_run_output out[4];
    for (size_t i = 0; i < count; i++)
        out[i] = (rlxvk_run_output){i, outputs + i, 1, RLXVK_F32};
    expect_ok(rlxvk_run(e, &in, name != NULL, out, count));
}

/* Outputs x and x + 1. After the run, x + 1 is fed into x. Output 0 must be x before the feed. */
static void test_feed_spares_views_of_its_target(void **state)
{
    (void)state;
    for (size_t k = 0; k < ARRAY_COUNT(contexts); k++) {
        rlxvk_graph *g = NULL;
        float y[2];
        expect_ok(rlxvk_graph_create(&g));
        rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(1));
        rlxvk_graph_output(g, x);
        rlxvk_graph_output(g, plus_one(g, x));
        rlxvk_executable *e = compile(contexts[k], g, NULL), *copy = NULL;
        run(e, "x", 2, y, 2);
        expect_ok(rlxvk_set_handle_feed(e, "x", 1));
        expect_ok(rlxvk_read_output_row(e, 0, 0, 1, y)); /* of the run before the feed was set */
        EXPECT(y, 2);
        run(e, "x", 5, y, 2);
        EXPECT(y, 5, 6);
        expect_ok(rlxvk_read_output_row(e, 0, 0, 1, y));
        EXPECT(y, 5);
        expect_ok(rlxvk_read_handle(e, "x", y, 1));
        EXPECT(y, 6);
        expect_ok(rlxvk_clone(e, &copy));
        expect_ok(rlxvk_read_output_row(copy, 0, 0, 1, y)); /* from the source's last run */
        EXPECT(y, 5);
        expect_ok(rlxvk_read_fed_output(copy, "x", y, 1));
        EXPECT(y, 6);
        rlxvk_executable *both[] = {e, copy};
        for (size_t i = 0; i < 2; i++) {
            run(both[i], NULL, 0, y, 2);
            EXPECT(y, 6, 7);
            expect_ok(rlxvk_clear_handle_feed(both[i], "x"));
            run(both[i], NULL, 0, y, 2);
            EXPECT(y, 7, 8);
            run(both[i], "x", 1, y, 2);
            EXPECT(y, 1, 2);
            rlxvk_executable_destroy(both[i]);
        }
    }
}

/* The outputs are the bound inputs a = 1 and b = 2. */
static rlxvk_executable *two_handles(rlxvk_context *c)
{
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_graph_output(g, rlxvk_input(g, "a", RLXVK_F32, RLXVK_SHAPE(1)));
    rlxvk_graph_output(g, rlxvk_input(g, "b", RLXVK_F32, RLXVK_SHAPE(1)));
    rlxvk_executable *e = compile(c, g, NULL);
    expect_ok(rlxvk_bind_handle(e, "a", (float[]){1}, 1));
    expect_ok(rlxvk_bind_handle(e, "b", (float[]){2}, 1));
    return e;
}

/* The fed output is itself a view of another fed input. rlxvk_read_fed_output returns the value
 * that was fed. */
static void test_read_fed_output_of_swapped_inputs(void **state)
{
    (void)state;
    for (size_t k = 0; k < ARRAY_COUNT(contexts); k++) {
        float y[2];
        rlxvk_executable *e = two_handles(contexts[k]);
        expect_ok(rlxvk_set_handle_feed(e, "a", 1));
        expect_ok(rlxvk_set_handle_feed(e, "b", 0));
        run(e, NULL, 0, y, 2);
        EXPECT(y, 1, 2);
        expect_ok(rlxvk_read_fed_output(e, "a", y, 1));
        EXPECT(y, 2);
        expect_ok(rlxvk_read_handle(e, "b", y, 1));
        EXPECT(y, 1);
        run(e, NULL, 0, y, 2);
        EXPECT(y, 2, 1);
        rlxvk_executable_destroy(e);
    }
}

/* The source of a row feed is a view of x, and the next run uploads x again. */
static void test_row_feed_goes_before_uploads_of_its_source(void **state)
{
    (void)state;
    for (size_t k = 0; k < ARRAY_COUNT(contexts); k++) {
        rlxvk_graph *g = NULL;
        float y[2];
        expect_ok(rlxvk_graph_create(&g));
        rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(1));
        rlxvk_tensor c = rlxvk_input(g, "c", RLXVK_F32, RLXVK_SHAPE(1));
        rlxvk_graph_output(g, x);
        rlxvk_graph_output(g, plus_one(g, c));
        rlxvk_executable *e = compile(contexts[k], g, NULL);
        expect_ok(rlxvk_bind_handle(e, "c", (float[]){40}, 1));
        expect_ok(rlxvk_register_row_feed(e, "c", 0));
        run(e, "x", 5, y, 2);
        EXPECT(y, 5, 41);
        expect_ok(rlxvk_feed_rows(e, 0, 0, 1)); /* c <- 5 */
        run(e, "x", 9, y, 2);
        EXPECT(y, 9, 6);
        expect_ok(rlxvk_bind_handle(e, "x", (float[]){3}, 1));
        run(e, NULL, 0, y, 2);
        EXPECT(y, 3, 6);
        run(e, "x", 7, y, 2);
        expect_ok(rlxvk_feed_rows(e, 0, 0, 1)); /* c <- 7, before x is restored to 3 */
        run(e, NULL, 0, y, 2);
        EXPECT(y, 3, 8);
        rlxvk_executable_destroy(e);
    }
}

/* The source of each row feed is a view of the other's target. Both must copy rows of the last run.
 */
static void test_row_feeds_that_swap(void **state)
{
    (void)state;
    for (size_t k = 0; k < ARRAY_COUNT(contexts); k++) {
        float y[2];
        rlxvk_executable *e = two_handles(contexts[k]);
        expect_ok(rlxvk_register_row_feed(e, "a", 1));
        expect_ok(rlxvk_register_row_feed(e, "b", 0));
        run(e, NULL, 0, y, 2);
        for (int round = 0; round < 3; round++) {
            expect_ok(rlxvk_feed_rows(e, 0, 0, 1));
            run(e, NULL, 0, y, 2);
            expect_values(y, 2, round % 2 ? (float[]){1, 2} : (float[]){2, 1});
        }
        rlxvk_executable_destroy(e);
    }
}

static void test_feed_between_unlike_storages(void **state)
{
    rlxvk_graph *g = NULL;
    (void)state;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(4));
    rlxvk_tensor z = rlxvk_input(g, "z", RLXVK_C64, RLXVK_SHAPE(4));
    rlxvk_graph_output(g, rlxvk_conjugate(g, z));
    rlxvk_graph_output(g, plus_one(g, x));
    rlxvk_executable *e = compile(contexts[0], g, NULL);
    expect_error(rlxvk_set_handle_feed(e, "x", 0), RLXVK_E_DTYPE, "'x' (F32) and output 0 (C64)");
    expect_error(rlxvk_set_handle_feed(e, "z", 1), RLXVK_E_DTYPE, "'z' (C64)");
    expect_error(rlxvk_register_row_feed(e, "x", 0), RLXVK_E_DTYPE, "C64");
    expect_ok(rlxvk_set_handle_feed(e, "z", 0));
    float in[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[8];
    rlxvk_run_input inputs[] = {{"z", in, 4, RLXVK_C64}, {"x", in, 4, RLXVK_F32}};
    expect_ok(rlxvk_run(e, inputs, 2, NULL, 0));
    expect_ok(rlxvk_read_handle_as(e, "z", out, 4, RLXVK_C64));
    EXPECT(out, 1, -2, 3, -4, 5, -6, 7, -8);
    rlxvk_executable_destroy(e);
}

/* ---- Shared handles ---- */

/* y = c + by, and c becomes y. */
static rlxvk_executable *shared_counter(rlxvk_context *context, float by,
                                        rlxvk_executable *share_with)
{
    const char *shared[] = {"c"};
    rlxvk_compile_options options = {.share_with = share_with,
                                     .shared_inputs = shared,
                                     .shared_input_count = share_with != NULL};
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor c = rlxvk_input(g, "c", RLXVK_F32, RLXVK_SHAPE(1));
    rlxvk_graph_output(g, rlxvk_add(g, c, rlxvk_scalar(g, by)));
    return compile(context, g, &options);
}

/* A write by one executable holds for all. So another's bound value is not restored over it,
 * however it was written. A later binding holds for all again. */
static void bound_handles_yield(rlxvk_context *context)
{
    float y[1];
    rlxvk_run_output out = RLXVK_RUN_OUTPUT(0, y);
    rlxvk_executable *a = shared_counter(context, 0, NULL), *b = shared_counter(context, 1, a),
                     *copy = NULL;
    expect_ok(rlxvk_bind_handle(a, "c", (float[]){0}, 1));
    expect_ok(rlxvk_set_handle_feed(b, "c", 0));
    expect_ok(rlxvk_run(b, NULL, 0, &out, 1));
    expect_ok(rlxvk_clone(a, &copy));
    rlxvk_executable *readers[] = {a, copy, a};
    for (size_t i = 0; i < ARRAY_COUNT(readers); i++) {
        expect_ok(rlxvk_run(readers[i], NULL, 0, &out, 1));
        assert_true(y[0] == 1);
    }
    expect_ok(rlxvk_run(b, &(rlxvk_run_input){"c", (float[]){7}, 1, RLXVK_F32, false}, 1, &out, 1));
    expect_ok(rlxvk_run(a, NULL, 0, &out, 1));
    assert_true(y[0] == 8);
    expect_ok(rlxvk_bind_handle(a, "c", (float[]){20}, 1));
    expect_ok(rlxvk_run(b, NULL, 0, &out, 1)); /* now 21 */
    expect_ok(rlxvk_run(a, NULL, 0, &out, 1));
    assert_true(y[0] == 21);
    expect_ok(rlxvk_clear_handle_feed(b, "c"));
    expect_ok(rlxvk_bind_handle(b, "c", (float[]){30}, 1));
    expect_ok(rlxvk_run(a, NULL, 0, &out, 1));
    assert_true(y[0] == 30);
    expect_ok(rlxvk_run(a, &(rlxvk_run_input){"c", (float[]){5}, 1, RLXVK_F32, false}, 1, &out, 1));
    expect_ok(rlxvk_run(b, NULL, 0, &out, 1)); /* 5 holds for all */
    assert_true(y[0] == 6);
    rlxvk_executable_destroy(a);
    rlxvk_executable_destroy(b);
    rlxvk_executable_destroy(copy);
}

static void test_bound_handles_yield_to_others(void **state)
{
    (void)state;
    for (size_t k = 0; k < ARRAY_COUNT(contexts); k++)
        bound_handles_yield(contexts[k]);
}

/* ---- Reports of runs in flight ---- */

static rlxvk_ticket submit(rlxvk_executable *e, const rlxvk_run_input *in, rlxvk_run_output *out)
{
    rlxvk_ticket ticket;
    expect_ok(rlxvk_submit(e, in, 1, out, 1, &ticket));
    return ticket;
}

/* Only the wait of a bad run reports the error, not those of good runs before and after it. */
static void test_singular_runs_in_flight(void **state)
{
    (void)state;
    for (size_t k = 0; k < ARRAY_COUNT(contexts); k++) {
        rlxvk_graph *g = NULL;
        const float good[4] = {2, 0, 0, 4}, bad[4] = {1, 1, 1, 1}, right[2] = {2, 4};
        float y[3][2];
        expect_ok(rlxvk_graph_create(&g));
        rlxvk_tensor a = rlxvk_input(g, "a", RLXVK_F32, RLXVK_SHAPE(2, 2));
        rlxvk_tensor b = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(2), right, sizeof right);
        rlxvk_graph_output(g, rlxvk_dense_solve(g, a, b));
        rlxvk_executable *e = compile(contexts[k], g, &(rlxvk_compile_options){.max_in_flight = 3});
        const float *given[] = {good, bad, good};
        rlxvk_ticket tickets[3];
        rlxvk_run_output out[3];
        for (int i = 0; i < 3; i++) {
            rlxvk_run_input in = {"a", given[i], 4, RLXVK_F32};
            out[i] = (rlxvk_run_output){0, y[i], 2, RLXVK_F32};
            tickets[i] = submit(e, &in, &out[i]);
        }
        expect_ok(rlxvk_wait(e, tickets[2]));
        expect_error(rlxvk_wait(e, tickets[1]), RLXVK_E_SINGULAR, "slice 0");
        expect_ok(rlxvk_wait(e, tickets[0]));
        EXPECT(y[0], 1, 1);
        EXPECT(y[2], 1, 1);
        assert_true(isnan(y[1][0]));
        rlxvk_executable_destroy(e);
    }
}

/* The indices are in an input that a feed changes after the run. */
static void test_bad_index_runs_in_flight(void **state)
{
    (void)state;
    for (size_t k = 0; k < ARRAY_COUNT(contexts); k++) {
        rlxvk_graph *g = NULL;
        const float table[3] = {10, 20, 30};
        float y[3];
        expect_ok(rlxvk_graph_create(&g));
        rlxvk_tensor data = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(3), table, sizeof table);
        rlxvk_tensor ids = rlxvk_input(g, "ids", RLXVK_F32, RLXVK_SHAPE(1));
        rlxvk_graph_output(g, rlxvk_gather(g, data, ids, 0));
        rlxvk_graph_output(g, plus_one(g, ids));
        rlxvk_compile_options o = {.check_index = RLXVK_ON, .max_in_flight = 3};
        rlxvk_executable *e = compile(contexts[k], g, &o);
        const float given[] = {2, 7, 0};
        rlxvk_ticket tickets[3];
        rlxvk_run_output out[3];
        for (int fed = 0; fed < 2; fed++) {
            if (fed)
                expect_ok(rlxvk_set_handle_feed(e, "ids", 1)); /* 2 + 1 is out of range */
            for (int i = 0; i < 3; i++) {
                rlxvk_run_input in = {"ids", &given[i], 1, RLXVK_F32};
                out[i] = (rlxvk_run_output){0, &y[i], 1, RLXVK_F32};
                tickets[i] = submit(e, &in, &out[i]);
            }
            expect_ok(rlxvk_wait(e, tickets[2]));
            expect_ok(rlxvk_wait(e, tickets[0]));
            expect_error(rlxvk_wait(e, tickets[1]), RLXVK_E_INDEX_OOB, "is 7");
            EXPECT(&y[0], 30);
            EXPECT(&y[2], 10);
            tickets[0] = submit(e, &(rlxvk_run_input){"ids", &given[1], 1, RLXVK_F32}, &out[0]);
            expect_error(rlxvk_wait(e, 0), RLXVK_E_INDEX, "ticket 0");
            expect_error(rlxvk_wait(e, tickets[0]), RLXVK_E_INDEX_OOB, "is 7");
        }
        rlxvk_executable_destroy(e);
    }
}

/* If a submitted run fails, calls on the executable still succeed before the wait for that run. */
static void test_ticket_keeps_its_own_error(void **state)
{
    rlxvk_graph *g = NULL;
    const float bad[4] = {0, 0, 0, 0}, good[4] = {1, 0, 0, 1};
    float y[2];
    (void)state;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor a = rlxvk_input(g, "a", RLXVK_F32, RLXVK_SHAPE(2, 2));
    rlxvk_tensor b = rlxvk_param(g, "b", RLXVK_F32, RLXVK_SHAPE(2));
    rlxvk_graph_output(g, rlxvk_dense_solve(g, a, b));
    rlxvk_executable *e = compile(contexts[0], g, NULL);
    expect_ok(rlxvk_set_param(e, "b", (float[]){1, 2}, 2));
    rlxvk_run_output out = {0, y, 2, RLXVK_F32}, late = {0, y, 2, RLXVK_F32};
    rlxvk_ticket ticket = submit(e, &(rlxvk_run_input){"a", bad, 4, RLXVK_F32}, &out);
    expect_ok(rlxvk_set_param(e, "b", (float[]){3, 4}, 2));
    expect_ok(rlxvk_run(e, &(rlxvk_run_input){"a", good, 4, RLXVK_F32}, 1, &late, 1));
    EXPECT(y, 3, 4);
    expect_error(rlxvk_wait(e, ticket), RLXVK_E_SINGULAR, "slice 0");
    rlxvk_executable_destroy(e);
}

/* ---- Memory that two executables share ---- */

static void test_uploads_into_shared_inputs(void **state)
{
    const char *names[] = {"x"};
    (void)state;
    for (size_t k = 0; k < ARRAY_COUNT(contexts); k++) {
        rlxvk_graph *g = NULL;
        rlxvk_executable *other = NULL;
        float y;
        expect_ok(rlxvk_graph_create(&g));
        rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(1));
        rlxvk_graph_output(g, plus_one(g, x));
        rlxvk_executable *e = NULL;
        expect_ok(rlxvk_compile(contexts[k], g, NULL, &e));
        rlxvk_compile_options o = {.share_with = e,
                                   .shared_inputs = names,
                                   .shared_input_count = 1};
        run(e, "x", 1, &y, 1);
        expect_ok(rlxvk_compile(contexts[k], g, &o, &other));
        run(e, "x", 1, &y, 1);
        run(other, "x", 2, &y, 1);
        EXPECT(&y, 3);
        run(e, "x", 1, &y, 1); /* uploaded again, because the other executable wrote it */
        EXPECT(&y, 2);
        run(other, "x", 2, &y, 1);
        EXPECT(&y, 3);
        rlxvk_graph_destroy(g);
        rlxvk_executable_destroy(e);
        rlxvk_executable_destroy(other);
    }
}

/* Output 0 is x or the param w, and output 1 is c + 1. Rows of output 0 are fed into c. */
static rlxvk_executable *row_reader(rlxvk_context *context, bool from_param,
                                    const rlxvk_compile_options *options)
{
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = from_param ? rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(1))
                                : rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(1));
    rlxvk_tensor c = rlxvk_input(g, "c", RLXVK_F32, RLXVK_SHAPE(1));
    rlxvk_graph_output(g, x);
    rlxvk_graph_output(g, plus_one(g, c));
    return compile(context, g, options);
}

/* Rows are fed before another executable shares their target, or before it overwrites their source.
 */
static void test_row_feeds_and_sharers(void **state)
{
    const char *names[] = {"x", "c"};
    rlxvk_compile_options o = {.shared_inputs = names};
    float y[2];
    (void)state;
    for (uint32_t way = 0; way < 4; way++) {
        rlxvk_context *context = contexts[way & 1];
        bool from_param = way & 2;
        rlxvk_executable *e = row_reader(context, from_param, NULL), *other[2];
        expect_ok(rlxvk_bind_handle(e, "c", (float[]){40}, 1));
        expect_ok(rlxvk_register_row_feed(e, "c", 0));
        if (from_param)
            expect_ok(rlxvk_set_param(e, "w", (float[]){5}, 1));
        run(e, from_param ? NULL : "x", 5, y, 2);
        EXPECT(y, 5, 41);
        expect_ok(rlxvk_feed_rows(e, 0, 0, 1));
        o.share_with = e;
        o.shared_inputs = names + from_param;
        o.shared_input_count = 2 - from_param;
        other[0] = row_reader(context, from_param, &o);
        run(other[0], NULL, 0, y, 2);
        EXPECT(y, 5, 6);
        o.shared_input_count--; /* c is not shared */
        other[1] = row_reader(context, from_param, &o);
        expect_ok(rlxvk_bind_handle(other[1], "c", (float[]){0}, 1));
        expect_ok(rlxvk_register_row_feed(other[1], "c", 0));
        run(other[1], NULL, 0, y, 2);
        EXPECT(y, 5, 1);
        expect_ok(rlxvk_feed_rows(other[1], 0, 0, 1)); /* c <- 5 */
        if (from_param)
            expect_ok(rlxvk_set_param(e, "w", (float[]){9}, 1));
        run(e, from_param ? NULL : "x", 9, y, 2);
        run(other[1], NULL, 0, y, 2);
        EXPECT(y, 9, 6);
        rlxvk_executable_destroy(e);
        rlxvk_executable_destroy(other[0]);
        rlxvk_executable_destroy(other[1]);
    }
}

/* ---- Deadlines and failures ---- */

/* 200 products of 256 x 256 matrices in sequence. */
static rlxvk_executable *slow_executable(uint64_t timeout_ns, rlxvk_toggle time_runs)
{
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor w = rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(256, 256));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(256, 256));
    for (int i = 0; i < 200; i++)
        x = rlxvk_matmul(g, x, w);
    rlxvk_graph_output(g, x);
    rlxvk_compile_options o = {.allow_unset = RLXVK_ON, .time_runs = time_runs};
    rlxvk_executable *e = compile(contexts[0], g, &o);
    e->program->options.timeout_ns = timeout_ns;
    return e;
}

/* The time is that of the last run. If that is still in flight, the call waits for it. */
static void test_times_of_a_run_in_flight(void **state)
{
    static float x[256 * 256];
    rlxvk_run_input in = {"x", x, 256 * 256, RLXVK_F32};
    rlxvk_executable *e = slow_executable(60ull * 1000000000, RLXVK_ON);
    rlxvk_ticket ticket;
    double first, again;
    (void)state;
    expect_ok(rlxvk_submit(e, &in, 1, NULL, 0, &ticket));
    expect_ok(rlxvk_executable_run_time(e, &first));
    expect_ok(rlxvk_wait(e, ticket));
    expect_ok(rlxvk_executable_run_time(e, &again));
    assert_true(first == again && first > 0);
    rlxvk_executable_destroy(e);
}

/* Memory in use by the device is freed only when the device is done. */
static void test_destroy_after_deadline(void **state)
{
    static float x[256 * 256];
    rlxvk_run_input in = {"x", x, 256 * 256, RLXVK_F32};
    (void)state;
    rlxvk_executable *e = slow_executable(1, RLXVK_OFF);
    expect_error(rlxvk_run(e, &in, 1, NULL, 0), RLXVK_E_TIMEOUT, "raise timeout_ns");
    expect_error(rlxvk_run(e, &in, 1, NULL, 0), RLXVK_E_DEVICE_LOST, "deadline passed");
    rlxvk_executable_destroy(e);
    e = slow_executable(60ull * 1000000000, RLXVK_OFF);
    expect_ok(rlxvk_run(e, &in, 1, NULL, 0));
    rlxvk_executable_destroy(e);
}

/* Outputs x and x + 1. One run with x = 1 is done. */
static rlxvk_executable *counter(rlxvk_context *c)
{
    rlxvk_graph *g = NULL;
    float y[2];
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(1));
    rlxvk_graph_output(g, x);
    rlxvk_graph_output(g, plus_one(g, x));
    rlxvk_executable *e = compile(c, g, NULL);
    run(e, "x", 1, y, 2);
    return e;
}

/* Sets a feed into x while the n-th allocation or Vulkan call fails. If `fed`, x already has a
 * feed. Returns false if the outputs cannot be checked, because a failed wait means a lost device.
 */
static bool feed_while_failing(rlxvk_context *c, bool fed, bool host, uint64_t nth,
                               rlxvk_status *status)
{
    rlxvk_executable *e = counter(c);
    float y[2], step;
    if (fed)
        expect_ok(rlxvk_set_handle_feed(e, "x", 1));
    memory_fail_at(host ? nth : 0);
    vk_hooks.fail_at = host ? 0 : nth;
    *status = fed ? rlxvk_register_row_feed(e, "x", 0) : rlxvk_set_handle_feed(e, "x", 1);
    memory_fail_at(0);
    vk_hooks.fail_at = 0;
    assert_int_equal((fed ? e->inputs[0].row_feed : e->inputs[0].feed) >= 0, *status == RLXVK_OK);
    bool usable = !e->lost;
    if (usable) {
        step = fed || *status == RLXVK_OK;
        run(e, "x", 5, y, 2);
        EXPECT(y, 5, 6);
        run(e, NULL, 0, y, 2);
        EXPECT(y, 5 + step, 6 + step);
    }
    rlxvk_executable_destroy(e);
    return usable;
}

/* If a feed cannot be made, feeds and outputs stay as they were. */
static void test_feed_failure_changes_nothing(void **state)
{
    uint32_t survived = 0;
    (void)state;
    for (uint32_t way = 0; way < 8; way++) {
        rlxvk_status status = RLXVK_E_VULKAN;
        for (uint64_t nth = 1; status != RLXVK_OK; nth++)
            survived += feed_while_failing(contexts[way & 1], way & 2, way & 4, nth, &status);
    }
    assert_true(survived > 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bound_handles_yield_to_others),
        cmocka_unit_test(test_feed_spares_views_of_its_target),
        cmocka_unit_test(test_read_fed_output_of_swapped_inputs),
        cmocka_unit_test(test_row_feed_goes_before_uploads_of_its_source),
        cmocka_unit_test(test_row_feeds_that_swap),
        cmocka_unit_test(test_feed_between_unlike_storages),
        cmocka_unit_test(test_singular_runs_in_flight),
        cmocka_unit_test(test_bad_index_runs_in_flight),
        cmocka_unit_test(test_ticket_keeps_its_own_error),
        cmocka_unit_test(test_uploads_into_shared_inputs),
        cmocka_unit_test(test_row_feeds_and_sharers),
        cmocka_unit_test(test_times_of_a_run_in_flight),
        cmocka_unit_test(test_destroy_after_deadline),
        cmocka_unit_test(test_feed_failure_changes_nothing),
    };
    return cmocka_run_group_tests(tests, open_contexts, close_contexts);
}
