/*
 * Executables with symbols that share params and inputs by name. Either of the two may have
 * symbols. Sizes and the orders of binding and destroying vary.
 */
#include "support/harness.h"

#include <rlxvk_ops.h>
#include <rlxvk_symbols.h>
#include <rlxvk_train.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#define BATCH     rlxvk_symbol(RLXVK_BATCH)
#define AXES(...) (const int32_t[]){__VA_ARGS__}, sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t)

/* y = x * w + shift; shift is an input. */
static rlxvk_graph *scaled(int64_t batch)
{
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(batch, 2));
    rlxvk_tensor y = rlxvk_mul(g, x, rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(2)));
    y = rlxvk_add(g, y, rlxvk_input(g, "shift", RLXVK_F32, RLXVK_SHAPE(2)));
    rlxvk_graph_output(g, y);
    return g;
}

/* Subtracts 1 from w in each run; x does not matter. */
static rlxvk_graph *trainer(int64_t batch)
{
    rlxvk_graph *g = NULL;
    rlxvk_tensor d;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(batch, 2));
    rlxvk_tensor w = rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(2));
    rlxvk_tensor same = rlxvk_mul(g, x, rlxvk_scalar(g, 0));
    rlxvk_tensor loss = rlxvk_add(g, rlxvk_reduce_sum(g, same, AXES(0, 1), false),
                                  rlxvk_reduce_sum(g, w, AXES(0), false));
    rlxvk_graph_output(g, loss);
    rlxvk_grad(g, loss, RLXVK_NONE, &w, 1, &d);
    expect_ok(rlxvk_sgd_all(g, &w, &d, 1, &(rlxvk_sgd_options){.learning_rate = 1}, NULL));
    return g;
}

static rlxvk_executable *compile(rlxvk_graph *g, rlxvk_executable *with, bool inputs)
{
    static const char *const names[] = {"shift"};
    rlxvk_executable *e = NULL;
    expect_ok(rlxvk_graph_status(g));
    expect_ok(rlxvk_compile(shared_context, g,
                            &(rlxvk_compile_options){.share_with = with,
                                                     .shared_inputs = inputs ? names : NULL,
                                                     .shared_input_count = inputs},
                            &e));
    rlxvk_graph_destroy(g);
    return e;
}

/* The first element of y if x is 10. */
static float first_of(rlxvk_executable *e, size_t batch, const float *shift)
{
    float x[16] = {10}, y[16] = {0};
    rlxvk_run_input given[] = {{"x", x, 2 * batch, RLXVK_F32, false},
                               {"shift", shift, 2, RLXVK_F32, false}};
    expect_ok(rlxvk_run(e, given, shift ? 2 : 1,
                        &(rlxvk_run_output){0, y, 2 * batch, RLXVK_F32, false}, 1));
    return y[0];
}

static void train(rlxvk_executable *e, size_t batch)
{
    float x[16] = {0};
    expect_ok(rlxvk_run(e, &(rlxvk_run_input){"x", x, 2 * batch, RLXVK_F32, false}, 1, NULL, 0));
}

/* A model and its trainer. Each has numbers or symbols, and either is compiled first. */
static void test_params(void **state)
{
    static const float shift[2] = {0.5f, 0}, w[2] = {8, 8};
    (void)state;
    for (int k = 0; k < 16; k++) {
        bool numbers[2] = {k & 1, k & 2}, trainer_first = k & 4, set_early = k & 8;
        rlxvk_executable *e[2] = {NULL};
        for (int i = 0; i < 2; i++) {
            int which = i ^ trainer_first; /* 0: the model */
            int64_t batch = numbers[which] ? 3 : BATCH;
            e[which] = compile(which ? trainer(batch) : scaled(batch), i ? e[!which] : NULL, false);
            if (set_early && i == 0)
                expect_ok(rlxvk_set_param(e[which], "w", w, 2));
        }
        if (!set_early)
            expect_ok(rlxvk_set_param(e[trainer_first], "w", w, 2));
        for (size_t step = 0; step < 4; step++) {
            size_t batch = 2 + step % 3;
            if (first_of(e[0], numbers[0] ? 3 : batch, shift) != 80.5f - 10 * (float)step)
                fail_msg("case %d, step %zu", k, step);
            train(e[1], numbers[1] ? 3 : batch + 1);
        }
        rlxvk_executable_destroy(e[k >> 1 & 1]);
        if (k & 2)
            assert_true(first_of(e[0], numbers[0] ? 3 : 7, shift) == 40.5f);
        else
            train(e[1], numbers[1] ? 3 : 7);
        rlxvk_executable_destroy(e[!(k >> 1 & 1)]);
    }
}

/* An input can be shared if its shape is the same at all sizes. If its shape depends on a symbol,
 * sharing is an error. */
static void test_inputs(void **state)
{
    static const float w[2] = {1, 1}, one[2] = {1, 1}, two[2] = {2, 2};
    static const char *const wrong[] = {"x"};
    rlxvk_executable *a = compile(scaled(BATCH), NULL, false), *b, *c = NULL;
    (void)state;
    b = compile(scaled(BATCH), a, true);
    expect_ok(rlxvk_set_param(a, "w", w, 2));
    assert_true(first_of(a, 3, one) == 11);
    assert_true(first_of(b, 5, NULL) == 11);
    assert_true(first_of(b, 2, two) == 12);
    assert_true(first_of(a, 4, NULL) == 12);
    rlxvk_graph *g = scaled(4);
    expect_ok(rlxvk_bind_symbols(a, &(rlxvk_binding){RLXVK_BATCH, 3}, 1));
    assert_int_equal(rlxvk_compile(shared_context, g,
                                   &(rlxvk_compile_options){.share_with = a,
                                                            .shared_inputs = wrong,
                                                            .shared_input_count = 1},
                                   &c),
                     RLXVK_E_SHAPE);
    rlxvk_graph_destroy(g);
    rlxvk_executable_destroy(a);
    assert_true(first_of(b, 6, NULL) == 12);
    rlxvk_executable_destroy(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_params),
                                       cmocka_unit_test(test_inputs)};
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
