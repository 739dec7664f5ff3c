/*
 * Gradients of graphs with symbols. At every size they must have the same bits as for the graph of
 * numbers. Also tests training steps whose batch changes, second derivatives, and errors while
 * building.
 */
#include "exec/executable.h"
#include "support/harness.h"
#include "support/random_graph.h"

#include <rlxvk_ops.h>
#include <rlxvk_symbols.h>
#include <rlxvk_train.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

enum { INPUTS = 6, HIDDEN = 5, CLASSES = 3, MOST_BATCH = 9 };

#define AXES(...) (const int32_t[]){__VA_ARGS__}, sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t)

typedef enum how { GRADIENTS, STEP, SECOND, HOWS } how;

/* A perceptron. `batch` is a number or a symbol. The outputs are the loss and then, depending on
 * `how`, both gradients, nothing, or a second derivative. */
static rlxvk_graph *make(int64_t batch, how how)
{
    rlxvk_graph *g = NULL;
    rlxvk_tensor d[2], again;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(batch, INPUTS));
    rlxvk_tensor labels = rlxvk_input(g, "labels", RLXVK_I32, RLXVK_SHAPE(batch));
    rlxvk_tensor w[] = {rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(INPUTS, HIDDEN)),
                        rlxvk_param(g, "v", RLXVK_F32, RLXVK_SHAPE(HIDDEN, CLASSES))};
    rlxvk_tensor y = rlxvk_matmul(g, rlxvk_tanh(g, rlxvk_matmul(g, x, w[0])), w[1]);
    rlxvk_tensor loss =
        rlxvk_reduce_mean(g, rlxvk_softmax_cross_entropy(g, y, labels), AXES(0), false);
    rlxvk_graph_output(g, loss);
    rlxvk_grad(g, loss, RLXVK_NONE, w, 2, d);
    if (how == STEP)
        expect_ok(rlxvk_adamw_all(g, w, d, 2,
                                  &(rlxvk_adamw_options){.learning_rate = 0.1f, .step = 1}, NULL));
    for (int i = 0; i < 2 && how == GRADIENTS; i++)
        rlxvk_graph_output(g, d[i]);
    if (how == SECOND) {
        rlxvk_tensor size = rlxvk_reduce_sum(g, rlxvk_mul(g, d[0], d[0]), AXES(0, 1), false);
        rlxvk_grad(g, size, RLXVK_NONE, &w[1], 1, &again);
        rlxvk_graph_output(g, again);
    }
    if (rlxvk_graph_status(g) != RLXVK_OK)
        fail_msg("%s", rlxvk_graph_error(g));
    return g;
}

static void set_params(rlxvk_executable *e)
{
    float w[INPUTS * HIDDEN], v[HIDDEN * CLASSES];
    for (int i = 0; i < INPUTS * HIDDEN; i++)
        w[i] = (float)(i * 7 % 11) / 11 - 0.4f;
    for (int i = 0; i < HIDDEN * CLASSES; i++)
        v[i] = (float)(i * 5 % 7) / 7 - 0.5f;
    expect_ok(rlxvk_set_param(e, "w", w, INPUTS * HIDDEN));
    expect_ok(rlxvk_set_param(e, "v", v, HIDDEN * CLASSES));
}

typedef struct results {
    float values[3][INPUTS * HIDDEN];
    size_t counts[3], count;
} results;

static void run(rlxvk_executable *e, int64_t batch, uint64_t seed, results *out)
{
    float x[MOST_BATCH * INPUTS];
    int32_t labels[MOST_BATCH];
    rlxvk_run_input given[] = {{"x", x, (size_t)batch * INPUTS, RLXVK_F32, false},
                               {"labels", labels, (size_t)batch, RLXVK_I32, false}};
    rlxvk_run_output reads[3];
    random_source r = {seed};
    for (int64_t i = 0; i < batch * INPUTS; i++)
        x[i] = (float)random_below(&r, 200) / 100 - 1;
    for (int64_t i = 0; i < batch; i++)
        labels[i] = (int32_t)random_below(&r, CLASSES);
    if (!e->program)
        expect_ok(rlxvk_bind_symbols(e, &(rlxvk_binding){RLXVK_BATCH, batch}, 1));
    out->count = e->program->result_count;
    for (size_t o = 0; o < out->count; o++) {
        out->counts[o] = shape_numel(&e->program->results[o].shape);
        reads[o] = (rlxvk_run_output){o, out->values[o], out->counts[o], RLXVK_F32, false};
    }
    expect_ok(rlxvk_run(e, given, 2, reads, out->count));
}

static void expect_same(const results *a, const results *b)
{
    assert_int_equal(a->count, b->count);
    for (size_t o = 0; o < a->count; o++) {
        assert_int_equal(a->counts[o], b->counts[o]);
        assert_memory_equal(a->values[o], b->values[o], 4 * a->counts[o]);
    }
}

/* While the batch changes, params and averages stay those of one model. For comparison there is a
 * graph of numbers for each batch; these graphs share them. */
static void check(how how, const rlxvk_compile_options *options)
{
    static const int64_t batches[] = {4, 9, 4, 1, 7};
    rlxvk_graph *g = make(rlxvk_symbol(RLXVK_BATCH), how);
    rlxvk_executable *symbolic = NULL, *numbers[ARRAY_COUNT(batches)] = {NULL};
    expect_ok(rlxvk_compile(shared_context, g, options, &symbolic));
    rlxvk_graph_destroy(g);
    set_params(symbolic);
    for (size_t i = 0; i < ARRAY_COUNT(batches); i++) {
        rlxvk_compile_options sharing = options ? *options : (rlxvk_compile_options){0};
        results wanted, got;
        sharing.share_with = i ? numbers[0] : NULL;
        g = make(batches[i], how);
        expect_ok(rlxvk_compile(shared_context, g, &sharing, &numbers[i]));
        rlxvk_graph_destroy(g);
        if (i == 0)
            set_params(numbers[0]);
        for (uint64_t step = 0; step < 3; step++) {
            run(numbers[i], batches[i], 10 * i + step, &wanted);
            run(symbolic, batches[i], 10 * i + step, &got);
            expect_same(&got, &wanted);
        }
    }
    for (size_t i = 0; i < ARRAY_COUNT(batches); i++)
        rlxvk_executable_destroy(numbers[i]);
    rlxvk_executable_destroy(symbolic);
}

static void test_every_size(void **state)
{
    static const rlxvk_compile_options options[] = {{0},
                                                    {.fusion = RLXVK_OFF},
                                                    {.keep_all = RLXVK_ON},
                                                    {.check_plan = RLXVK_ON}};
    (void)state;
    for (int k = 0; k < HOWS; k++)
        for (size_t i = 0; i < ARRAY_COUNT(options); i++)
            check((how)k, &options[i]);
}

/* If a graph with gradients is bound, it has the gradients as nodes, and these have gradients
 * too. */
static void test_bound_graph(void **state)
{
    rlxvk_graph *g = make(rlxvk_symbol(RLXVK_BATCH), GRADIENTS), *bound = NULL, *numbers;
    rlxvk_executable *e[2] = {NULL};
    results found[2];
    (void)state;
    expect_ok(rlxvk_graph_bind(g, &(rlxvk_binding){RLXVK_BATCH, 5}, 1, &bound));
    numbers = make(5, GRADIENTS);
    for (int k = 0; k < 2; k++) {
        rlxvk_graph *of = k ? numbers : bound;
        rlxvk_tensor d = rlxvk_graph_output_tensor(of, 1), w = rlxvk_graph_tensor_named(of, "v");
        rlxvk_tensor again;
        rlxvk_grad(of, rlxvk_reduce_sum(of, rlxvk_mul(of, d, d), AXES(0, 1), false), RLXVK_NONE, &w,
                   1, &again);
        rlxvk_graph_output(of, again);
        expect_ok(rlxvk_graph_status(of));
        expect_ok(rlxvk_compile(shared_context, of, NULL, &e[k]));
        set_params(e[k]);
    }
    rlxvk_graph_destroy(g);
    for (int k = 0; k < 2; k++) {
        float x[5 * INPUTS], y[4][INPUTS * HIDDEN];
        int32_t labels[5] = {0, 1, 2, 1, 0};
        rlxvk_run_output reads[4];
        for (int i = 0; i < 5 * INPUTS; i++)
            x[i] = (float)(i % 13) / 13 - 0.5f;
        for (size_t o = 0; o < 4; o++)
            reads[o] = (rlxvk_run_output){o, y[o], shape_numel(&e[k]->program->results[o].shape),
                                          RLXVK_F32, false};
        rlxvk_run_input given[] = {RLXVK_RUN_INPUT("x", x), RLXVK_RUN_INPUT("labels", labels)};
        expect_ok(rlxvk_run(e[k], given, 2, reads, 4));
        memcpy(found[k].values[0], y[1], sizeof y[1]);
        memcpy(found[k].values[1], y[3], sizeof y[3]);
    }
    for (int i = 0; i < INPUTS * HIDDEN; i++)
        assert_true(found[0].values[0][i] == found[1].values[0][i]);
    for (int i = 0; i < HIDDEN * CLASSES; i++)
        assert_true(fabsf(found[0].values[1][i] - found[1].values[1][i]) <
                    1e-5f * (1 + fabsf(found[1].values[1][i])));
    for (int k = 0; k < 2; k++)
        rlxvk_executable_destroy(e[k]);
    rlxvk_graph_destroy(bound);
    rlxvk_graph_destroy(numbers);
}

/* Errors are reported when the gradient is built, as for a graph of numbers. */
static void test_refusals(void **state)
{
    static const rlxvk_status wanted[] = {RLXVK_E_SHAPE, RLXVK_E_DTYPE, RLXVK_E_ORDER};
    (void)state;
    for (int k = 0; k < 3; k++) {
        rlxvk_graph *g = NULL;
        rlxvk_tensor d = {7};
        expect_ok(rlxvk_graph_create(&g));
        rlxvk_tensor x =
            rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(rlxvk_symbol(RLXVK_BATCH), INPUTS));
        rlxvk_tensor w = rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(INPUTS, HIDDEN));
        rlxvk_tensor n = rlxvk_param(g, "n", RLXVK_I32, RLXVK_SHAPE(1));
        rlxvk_tensor y = rlxvk_matmul(g, x, w);
        rlxvk_tensor loss = rlxvk_reduce_sum(g, rlxvk_mul(g, y, y), AXES(0, 1), false);
        if (k == 0)
            rlxvk_grad(g, y, RLXVK_NONE, &w, 1, &d);
        if (k == 1)
            rlxvk_grad(g, loss, RLXVK_NONE, &n, 1, &d);
        if (k == 2) { /* the gradient of x reads w, changed by a step */
            rlxvk_grad(g, loss, RLXVK_NONE, &w, 1, &d);
            expect_ok(rlxvk_sgd_all(g, &w, &d, 1, &(rlxvk_sgd_options){.learning_rate = 1}, NULL));
            rlxvk_grad(g, loss, RLXVK_NONE, &x, 1, &d);
        }
        assert_int_equal(rlxvk_graph_status(g), wanted[k]);
        assert_int_equal(d.id, 0);
        rlxvk_graph_destroy(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_size),
                                       cmocka_unit_test(test_bound_graph),
                                       cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
