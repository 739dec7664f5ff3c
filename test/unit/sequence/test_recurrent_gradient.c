/* Gradients of recurrent nets: long sequences, each variant of the backward pass, and refusals. */
#include "support/harness.h"

#include <rlxvk_train.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define MOST_WRT 6

static rlxvk_graph *new_graph(void)
{
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_graph_create(&g));
    return g;
}

static rlxvk_tensor input(rlxvk_graph *g, const char *name, rlxvk_shape shape)
{
    return rlxvk_input(g, name, RLXVK_F32, shape);
}

/* The outputs are the gradients of the sum of y, hn and cn for all operands. Weights are divided by
 * the width, so that sums stay near 1. */
static rlxvk_graph *lstm_gradients(int64_t batch, int64_t steps, int64_t hidden, int64_t layers)
{
    rlxvk_graph *g = new_graph();
    rlxvk_recurrent_options options = {.hidden_size = hidden,
                                       .num_layers = layers,
                                       .bidirectional = true};
    int64_t rows = 8 * hidden, nets = 2 * layers;
    float scale = 0.5f / (float)hidden;
    rlxvk_tensor wrt[MOST_WRT] = {input(g, "x", RLXVK_SHAPE(batch, steps, 3)),
                                  input(g, "w_ih",
                                        RLXVK_SHAPE(rows * (3 + (layers - 1) * 2 * hidden))),
                                  input(g, "w_hh", RLXVK_SHAPE(layers * rows * hidden)),
                                  input(g, "bias", RLXVK_SHAPE(layers * rows)),
                                  input(g, "h0", RLXVK_SHAPE(nets, batch, hidden)),
                                  input(g, "c0", RLXVK_SHAPE(nets, batch, hidden))};
    rlxvk_tensor factor = rlxvk_constant(g, RLXVK_F32, RLXVK_SCALAR, &scale, sizeof scale);
    rlxvk_tensor h, c, gradients[MOST_WRT];
    rlxvk_tensor y =
        rlxvk_lstm(g, wrt[0], rlxvk_mul(g, wrt[1], factor), rlxvk_mul(g, wrt[2], factor), wrt[3],
                   wrt[4], wrt[5], &options, &h, &c);
    rlxvk_tensor parts[] = {rlxvk_reshape(g, y, RLXVK_SHAPE(-1)),
                            rlxvk_reshape(g, h, RLXVK_SHAPE(-1)),
                            rlxvk_reshape(g, c, RLXVK_SHAPE(-1))};
    rlxvk_tensor all = rlxvk_concat(g, parts, 3, 0);
    rlxvk_tensor seed = input(g, "seed", rlxvk_tensor_shape(g, all));
    rlxvk_grad(g, all, seed, wrt, MOST_WRT, gradients);
    for (size_t i = 0; i < MOST_WRT; i++)
        rlxvk_graph_output(g, gradients[i]);
    expect_ok(rlxvk_graph_status(g));
    return g;
}

static float *run_by(const rlxvk_graph *g, const char *way, size_t *out_count)
{
    rlxvk_variant variant = {"recurrent_backward", way};
    rlxvk_compile_options options = {.variants = &variant,
                                     .variant_count = way != NULL,
                                     .forbid_host = RLXVK_ON,
                                     .check_plan = RLXVK_ON};
    rlxvk_executable *e = NULL;
    expect_ok(rlxvk_compile(shared_context, g, &options, &e));
    float *got = run_seeded(e, g, 7, false, out_count),
          *again = run_seeded(e, g, 7, false, out_count);
    assert_memory_equal(got, again, *out_count * sizeof *got);
    free(again);
    rlxvk_executable_destroy(e);
    return got;
}

static void compare(const float *got, const float *wanted, size_t count)
{
    double largest = 0;
    for (size_t i = 0; i < count; i++)
        largest = fmax(largest, fabs((double)wanted[i]));
    assert_true(largest > 0 && isfinite(largest));
    for (size_t i = 0; i < count; i++)
        if (!(fabs((double)got[i] - wanted[i]) <= 1e-4 * largest))
            fail_msg("element %zu is %.9g, not %.9g", i, (double)got[i], (double)wanted[i]);
}

static void check(int64_t batch, int64_t steps, int64_t hidden, int64_t layers,
                  const char *const *ways)
{
    rlxvk_graph *g = lstm_gradients(batch, steps, hidden, layers);
    size_t count, wanted_count;
    float *wanted = evaluate_seeded(g, 7, false, &wanted_count);
    do {
        float *got = run_by(g, *ways, &count);
        assert_int_equal(count, wanted_count);
        compare(got, wanted, count);
        free(got);
    } while (*ways && *++ways);
    free(wanted);
    rlxvk_graph_destroy(g);
}

/* Each variant must match the host references of all nodes, and give the same bits each time. */
static void test_ways(void **state)
{
    static const char *const ways[] = {"sequences", "sequences_4", "tiles_4x1",
                                       "tiles_4x4", "tiles_16x16", NULL};
    (void)state;
    check(3, 5, 6, 2, ways);
}

static void test_long(void **state)
{
    static const char *const table[] = {NULL}, *const chain[] = {"tiles_4x1", NULL};
    (void)state;
    check(1, 2000, 3, 1, table);
    check(2, 300, 2, 1, chain);
}

/* Graphs differ in the number of steps, and in whether states are written in place. */
static rlxvk_graph *rnn_graph(int64_t steps, bool in_place, rlxvk_tensor *out_x,
                              rlxvk_tensor *out_loss)
{
    rlxvk_graph *g = new_graph();
    rlxvk_recurrent_options options = {.hidden_size = 2, .in_place = in_place};
    rlxvk_tensor h0 = in_place ? input(g, "h0", RLXVK_SHAPE(1, 1, 2)) : RLXVK_NONE;
    const int32_t axes[] = {0, 1, 2};
    *out_x = input(g, "x", RLXVK_SHAPE(1, steps, 2));
    rlxvk_tensor y = rlxvk_rnn(g, *out_x, input(g, "w_ih", RLXVK_SHAPE(2, 2)),
                               input(g, "w_hh", RLXVK_SHAPE(2, 2)), input(g, "b", RLXVK_SHAPE(2)),
                               h0, &options, NULL);
    *out_loss = rlxvk_reduce_sum(g, rlxvk_mul(g, y, y), axes, 3, false);
    return g;
}

static void test_refusals(void **state)
{
    rlxvk_tensor x, loss, dx;
    rlxvk_graph *g = rnn_graph(4, true, &x, &loss);
    (void)state;
    rlxvk_grad(g, loss, RLXVK_NONE, &x, 1, &dx);
    assert_int_equal(rlxvk_graph_status(g), RLXVK_E_UNSUPPORTED);
    assert_non_null(strstr(rlxvk_graph_error(g), "without in_place"));
    rlxvk_graph_destroy(g);
    g = new_graph();
    (void)rlxvk_rnn_backward_gates(g, input(g, "z", RLXVK_SHAPE(0, 1, 32768)),
                                   input(g, "w", RLXVK_SHAPE(32768, 32768)),
                                   input(g, "dy", RLXVK_SHAPE(0, 1, 32768)), RLXVK_NONE, false,
                                   false, NULL);
    assert_int_equal(rlxvk_graph_status(g), RLXVK_E_TOO_LARGE);
    rlxvk_graph_destroy(g);
}

/* Gradients of gradients go step by step, so only as many steps are tested as the time allows. */
static void test_second(void **state)
{
    (void)state;
    for (int64_t steps = 256; steps <= 257; steps++) {
        rlxvk_tensor x, loss, dx, second;
        const int32_t axes[] = {0, 1, 2};
        rlxvk_graph *g = rnn_graph(steps, false, &x, &loss);
        rlxvk_grad(g, loss, RLXVK_NONE, &x, 1, &dx);
        expect_ok(rlxvk_graph_status(g));
        loss = rlxvk_reduce_sum(g, rlxvk_mul(g, dx, dx), axes, 3, false);
        rlxvk_grad(g, loss, RLXVK_NONE, &x, 1, &second);
        assert_int_equal(rlxvk_graph_status(g), steps == 256 ? RLXVK_OK : RLXVK_E_UNSUPPORTED);
        if (steps > 256)
            assert_non_null(strstr(rlxvk_graph_error(g), "over 257 steps"));
        rlxvk_graph_destroy(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ways), cmocka_unit_test(test_long),
                                       cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_second)};
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
