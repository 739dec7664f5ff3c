/*
 * Parameters are f32 at every compile option `precision`. Small updates must add up, even if
 * products round them away.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/harness.h"

#include <rlxvk_train.h>

#define ROWS  16
#define N     32
#define STEPS 32

/* y = x p, and x is 1/16 everywhere, so the gradient of the sum over 16 rows is 1. Each step is
 * 2^-13, a quarter of the distance from 1 to the next f16 below it. The steps must add up exactly.
 * After 32 steps p is 1 - 2^-8. Products keep that value, because f16 and bf16 hold it. */
static void small_updates_are_not_lost(void **state)
{
    static const int32_t axes[] = {0, 1};
    const rlxvk_sgd_options sgd = {.learning_rate = 0x1p-13f};
    (void)state;
    for (int p = 0; p <= RLXVK_PRECISION_SPLIT; p++) {
        static float x[ROWS * N], values[N * N];
        rlxvk_compile_options options = {.precision = (rlxvk_precision)p};
        rlxvk_graph *g = NULL;
        rlxvk_executable *e = NULL;
        rlxvk_tensor gradient;
        float sum = 0;
        expect_ok(rlxvk_graph_create(&g));
        rlxvk_tensor w = rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(N, N));
        rlxvk_tensor m = rlxvk_param(g, "m", RLXVK_F32, RLXVK_SHAPE(N, N));
        rlxvk_tensor y = rlxvk_matmul(g, rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(ROWS, N)), w);
        rlxvk_tensor loss = rlxvk_reduce_sum(g, y, axes, 2, false);
        rlxvk_grad(g, loss, RLXVK_NONE, &w, 1, &gradient);
        rlxvk_graph_output(g, loss);
        rlxvk_sgd(g, w, gradient, m, &sgd, NULL, NULL);
        expect_ok(rlxvk_compile(shared_context, g, &options, &e));
        for (int i = 0; i < ROWS * N; i++)
            x[i] = 1.0f / 16;
        for (int i = 0; i < N * N; i++)
            values[i] = 0;
        expect_ok(rlxvk_set_param(e, "m", values, N * N));
        for (int i = 0; i < N * N; i++)
            values[i] = 1;
        expect_ok(rlxvk_set_param(e, "w", values, N * N));
        for (int step = 1; step <= STEPS + 1; step++) {
            rlxvk_run_input in = {.name = "x", .data = x, .length = ROWS * N};
            rlxvk_run_output out = {.index = 0, .buffer = &sum, .length = 1};
            expect_ok(rlxvk_run(e, &in, 1, &out, 1));
            expect_ok(rlxvk_read_param(e, "w", values, N * N));
            for (int i = 0; i < N * N; i++)
                assert_true(values[i] == 1 - (float)step * 0x1p-13f);
        }
        assert_true(sum == ROWS * N * 2 * (1 - 0x1p-8f));
        rlxvk_executable_destroy(e);
        rlxvk_graph_destroy(g);
    }
}

/* ---- The order of gradients and steps ---- */

/* loss = sum(a b). Takes gradients and steps of a and b: either all gradients first, or each before
 * its own step. */
static rlxvk_graph *product(bool gradients_first, bool read_again)
{
    static const int32_t axes[] = {0};
    const rlxvk_sgd_options sgd = {.learning_rate = 1};
    rlxvk_graph *g = NULL;
    rlxvk_tensor p[2], m[2], d[2];
    expect_ok(rlxvk_graph_create(&g));
    for (int i = 0; i < 2; i++) {
        p[i] = rlxvk_param(g, i ? "b" : "a", RLXVK_F32, RLXVK_SHAPE(1));
        m[i] = rlxvk_param(g, i ? "mb" : "ma", RLXVK_F32, RLXVK_SHAPE(1));
    }
    rlxvk_tensor loss = rlxvk_reduce_sum(g, rlxvk_mul(g, p[0], p[1]), axes, 1, false);
    if (gradients_first)
        rlxvk_grad(g, loss, RLXVK_NONE, p, 2, d);
    for (int i = 0; i < 2; i++) {
        if (i && read_again) /* reads the result of the first step */
            loss = rlxvk_reduce_sum(g, rlxvk_mul(g, p[0], p[1]), axes, 1, false);
        if (!gradients_first)
            rlxvk_grad(g, loss, RLXVK_NONE, &p[i], 1, &d[i]);
        rlxvk_sgd(g, p[i], d[i], m[i], &sgd, NULL, NULL);
    }
    rlxvk_graph_output(g, loss);
    return g;
}

static void expect_steps(rlxvk_graph *g, float a, float b)
{
    const rlxvk_compile_options options = {.allow_unset = RLXVK_ON};
    rlxvk_executable *e = NULL;
    float got[2];
    expect_ok(rlxvk_compile(shared_context, g, &options, &e));
    expect_ok(rlxvk_set_param(e, "a", (float[]){2}, 1));
    expect_ok(rlxvk_set_param(e, "b", (float[]){3}, 1));
    expect_ok(rlxvk_run(e, NULL, 0, NULL, 0));
    expect_ok(rlxvk_read_param(e, "a", &got[0], 1));
    expect_ok(rlxvk_read_param(e, "b", &got[1], 1));
    assert_true(got[0] == a && got[1] == b);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

static void gradients_do_not_read_what_a_step_has_written(void **state)
{
    (void)state;
    rlxvk_graph *late = product(false, false);
    expect_error(rlxvk_graph_status(late), RLXVK_E_ORDER, "reads param 'a' (node 0), which sgd");
    rlxvk_graph_destroy(late);
    expect_steps(product(true, false), -1, 1);
    expect_steps(product(false, true), -1, 4); /* the second loss reads a = -1 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_updates_are_not_lost),
        cmocka_unit_test(gradients_do_not_read_what_a_step_has_written),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
