/* Parameters are f32 at every compile option `precision`: what a product rounds away is not lost.
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

/* y = x p with x = 1/16 everywhere: the gradient of the sum over 16 rows is 1. Steps of 2^-13, a
 * quarter of the distance of 1 and the f16 below it, add up to the bit; after 32 of them p is
 * 1 - 2^-8, which f16 and bf16 hold, too, and so do products. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(small_updates_are_not_lost)};
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
