/* Sequence models: worked examples to seven digits, and states that are kept in place. */
#include "support/harness.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static rlxvk_graph *new_graph(void)
{
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_graph_create(&g));
    return g;
}

/* A constant with these values. */
static rlxvk_tensor given(rlxvk_graph *g, rlxvk_shape shape, const float *values, size_t count)
{
    return rlxvk_constant(g, RLXVK_F32, shape, values, count * sizeof *values);
}
#define GIVEN(g, shape, ...)                                                                       \
    given(g, shape, (const float[]){__VA_ARGS__}, LENGTH(((const float[]){__VA_ARGS__})))

/* Compiles the graph, runs it and compares its only output. */
static void expect_output(rlxvk_graph *g, rlxvk_tensor t, const float *wanted, size_t count)
{
    rlxvk_executable *e = NULL;
    float got[16];
    rlxvk_run_output out = {0, got, count, RLXVK_F32};
    rlxvk_graph_output(g, t);
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    expect_ok(rlxvk_run(e, NULL, 0, &out, 1));
    for (size_t i = 0; i < count; i++)
        assert_float_equal(got[i], wanted[i], 1e-6);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}
#define EXPECT(g, t, ...)                                                                          \
    expect_output(g, t, (const float[]){__VA_ARGS__}, LENGTH(((const float[]){__VA_ARGS__})))

static rlxvk_tensor two_steps(rlxvk_graph *g)
{
    return GIVEN(g, RLXVK_SHAPE(1, 2, 1), 1, 2);
}

static void lstm_example(bool cell)
{
    rlxvk_graph *g = new_graph();
    const rlxvk_recurrent_options options = {.hidden_size = 1};
    rlxvk_tensor zero = GIVEN(g, RLXVK_SHAPE(1, 1, 1), 0), h, c;
    rlxvk_tensor y =
        rlxvk_lstm(g, two_steps(g), GIVEN(g, RLXVK_SHAPE(4, 1), .5f, -.5f, 1, .25f),
                   GIVEN(g, RLXVK_SHAPE(4, 1), .1f, .2f, .3f, .4f),
                   GIVEN(g, RLXVK_SHAPE(4), 0, .1f, 0, -.1f), zero, zero, &options, &h, &c);
    if (cell)
        EXPECT(g, c, 0.854386f);
    else
        EXPECT(g, y, 0.2372618f, 0.4307538f);
}

static void test_recurrent_examples(void **state)
{
    const rlxvk_recurrent_options options = {.hidden_size = 1};
    rlxvk_graph *g = new_graph();
    (void)state;
    lstm_example(false);
    lstm_example(true);
    EXPECT(g,
           rlxvk_gru(g, two_steps(g), GIVEN(g, RLXVK_SHAPE(3, 1), .5f, -.5f, 1),
                     GIVEN(g, RLXVK_SHAPE(3, 1), .1f, .2f, .3f),
                     GIVEN(g, RLXVK_SHAPE(3), 0, .1f, .2f), GIVEN(g, RLXVK_SHAPE(3), .1f, 0, -.3f),
                     RLXVK_NONE, &options, NULL),
           0.4575342f, 0.8113973f);
    g = new_graph();
    EXPECT(g,
           rlxvk_rnn(g, two_steps(g), GIVEN(g, RLXVK_SHAPE(1, 1), .5f),
                     GIVEN(g, RLXVK_SHAPE(1, 1), .1f), GIVEN(g, RLXVK_SHAPE(1), .2f), RLXVK_NONE,
                     &options, NULL),
           0.6043678f, 0.8511845f);
}

static rlxvk_tensor delta_example(rlxvk_graph *g, rlxvk_tensor *out_state)
{
    rlxvk_tensor zero = GIVEN(g, RLXVK_SHAPE(1, 1, 2, 2), 0, 0, 0, 0);
    return rlxvk_gated_delta_net(g, GIVEN(g, RLXVK_SHAPE(1, 2, 1, 2), 1, 0, .5f, .5f),
                                 GIVEN(g, RLXVK_SHAPE(1, 2, 1, 2), .6f, .8f, 0, 1),
                                 GIVEN(g, RLXVK_SHAPE(1, 2, 1, 2), 1, 2, -1, 1),
                                 GIVEN(g, RLXVK_SHAPE(1, 2, 1), -.5f, -1),
                                 GIVEN(g, RLXVK_SHAPE(1, 2, 1), .5f, 1), zero, false, out_state);
}

static void test_scan_examples(void **state)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor final;
    (void)state;
    EXPECT(g,
           rlxvk_selective_scan(g, two_steps(g), GIVEN(g, RLXVK_SHAPE(1, 2, 1), .5f, 1),
                                GIVEN(g, RLXVK_SHAPE(1, 2), -1, -2),
                                GIVEN(g, RLXVK_SHAPE(1, 2, 2), 1, 2, .5f, -1),
                                GIVEN(g, RLXVK_SHAPE(1, 2, 2), 1, 1, 1, -1)),
           1.5f, 3.048604f);
    g = new_graph();
    EXPECT(g,
           rlxvk_mamba2(g, GIVEN(g, RLXVK_SHAPE(1, 2, 1, 2), 1, 2, 2, -1),
                        GIVEN(g, RLXVK_SHAPE(1, 2, 1), .5f, 1), GIVEN(g, RLXVK_SHAPE(1), -1),
                        GIVEN(g, RLXVK_SHAPE(1, 2, 1, 2), 1, 2, .5f, -1),
                        GIVEN(g, RLXVK_SHAPE(1, 2, 1, 2), 1, 1, 1, -1), RLXVK_NONE, false, NULL),
           1.5f, 3, 2.81606f, -1.867879f);
    g = new_graph();
    EXPECT(g, delta_example(g, &final), 0.212132f, 0.4242641f, -0.3145339f, 0.4315924f);
    g = new_graph();
    (void)delta_example(g, &final);
    EXPECT(g, final, 0.1103638f, 0.2207277f, -1, 1);
}

/* Two queries of one head, values of width 1, a decay by key of 1/2 and 1/4, no delta rule. */
static void test_linear_attention_example(void **state)
{
    const float half = -0.6931472f, quarter = -1.3862944f;
    const rlxvk_linear_attention_options options = {.scale = 2};
    rlxvk_graph *g = new_graph();
    (void)state;
    EXPECT(g,
           rlxvk_linear_attention(g, GIVEN(g, RLXVK_SHAPE(1, 2, 2, 2), 1, 0, 0, 1, 1, 1, 1, -1),
                                  GIVEN(g, RLXVK_SHAPE(1, 2, 1, 2), 1, 2, 3, 4),
                                  GIVEN(g, RLXVK_SHAPE(1, 2, 1, 1), 2, 1),
                                  GIVEN(g, RLXVK_SHAPE(1, 2, 1, 2), half, quarter, half, quarter),
                                  RLXVK_NONE, RLXVK_NONE, &options, NULL),
           4, 8, 18, -2);
}

/* h' = relu(x + h), and h is kept in place. The outputs are h before, y, and h after. */
static rlxvk_graph *accumulator(bool param)
{
    rlxvk_graph *g = new_graph();
    const rlxvk_recurrent_options options = {.hidden_size = 1, .in_place = true, .relu = true};
    rlxvk_tensor one = GIVEN(g, RLXVK_SHAPE(1, 1), 1), out;
    rlxvk_tensor h = param ? rlxvk_param(g, "h", RLXVK_F32, RLXVK_SHAPE(1, 1, 1))
                           : rlxvk_input(g, "h", RLXVK_F32, RLXVK_SHAPE(1, 1, 1));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(1, 2, 1));
    rlxvk_graph_output(g, rlxvk_neg(g, h));
    rlxvk_graph_output(g,
                       rlxvk_rnn(g, x, one, one, GIVEN(g, RLXVK_SHAPE(1), 0), h, &options, &out));
    assert_int_equal(out.id, 0);
    rlxvk_graph_output(g, rlxvk_neg(g, h));
    return g;
}

static void run_accumulator(rlxvk_executable *e, const float *h, const float *wanted)
{
    float before, y[2], after;
    const rlxvk_run_input in[] = {{"x", (float[]){3, 4}, 2, RLXVK_F32}, {"h", h, 1, RLXVK_F32}};
    const rlxvk_run_output out[] = {{0, &before, 1, RLXVK_F32},
                                    {1, y, 2, RLXVK_F32},
                                    {2, &after, 1, RLXVK_F32}};
    expect_ok(rlxvk_run(e, in, h ? 2 : 1, out, LENGTH(out)));
    assert_true(before == wanted[0] && y[0] == wanted[1] && y[1] == wanted[2] &&
                after == wanted[3]);
}
#define EXPECT_RUN(e, h, ...) run_accumulator(e, h, (const float[]){__VA_ARGS__})

static void check_accumulator(bool param, const char *on_host)
{
    rlxvk_graph *g = accumulator(param);
    rlxvk_compile_options options = {.check_plan = RLXVK_ON, .reorder = RLXVK_ON};
    host_rows room;
    rlxvk_executable *e = NULL;
    const float ten = 10;
    force_host(&options, on_host, &room);
    expect_ok(rlxvk_compile(shared_context, g, &options, &e));
    if (param)
        expect_ok(rlxvk_set_param(e, "h", &ten, 1));
    EXPECT_RUN(e, param ? NULL : &ten, -10, 13, 17, -17);
    EXPECT_RUN(e, NULL, -17, 20, 24, -24); /* the state has stayed */
    if (param)
        expect_ok(rlxvk_set_param(e, "h", &ten, 1));
    EXPECT_RUN(e, param ? NULL : &ten, -10, 13, 17, -17);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

/* If a reader is built before the writer, it sees the old state; later readers see the new one.
 * This holds over several runs. */
static void test_state_in_place(void **state)
{
    static const char *const hosts[] = {NULL, "rnn", "all"};
    (void)state;
    for (size_t i = 0; i < LENGTH(hosts); i++) {
        check_accumulator(true, hosts[i]);
        check_accumulator(false, hosts[i]);
    }
}

/* If nothing reads the result of a writer, the writer is still not a dead node. */
static void test_unread_writer(void **state)
{
    rlxvk_graph *g = new_graph();
    const rlxvk_recurrent_options options = {.hidden_size = 1, .in_place = true, .relu = true};
    rlxvk_tensor one = GIVEN(g, RLXVK_SHAPE(1, 1), 1);
    rlxvk_tensor h = rlxvk_param(g, "h", RLXVK_F32, RLXVK_SHAPE(1, 1, 1));
    rlxvk_executable *e = NULL;
    float five = 5, got;
    rlxvk_run_output out = {0, &got, 1, RLXVK_F32};
    (void)state;
    (void)rlxvk_rnn(g, two_steps(g), one, one, GIVEN(g, RLXVK_SHAPE(1), 0), h, &options, NULL);
    rlxvk_graph_output(g, h);
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    expect_ok(rlxvk_set_param(e, "h", &five, 1));
    expect_ok(rlxvk_run(e, NULL, 0, &out, 1));
    assert_true(got == 8);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_recurrent_examples),
                                       cmocka_unit_test(test_scan_examples),
                                       cmocka_unit_test(test_linear_attention_example),
                                       cmocka_unit_test(test_state_in_place),
                                       cmocka_unit_test(test_unread_writer)};
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
