/*
 * Batch norm in a graph that trains: running averages that go on from run to run, and inference
 * with these averages.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/harness.h"

#include <rlxvk_train.h>

#include <math.h>

#define C 2
#define N 6

/* The channels have means 2 and -1, and sums of squared deviations 2 and 8. */
static const float xs[N] = {1, -3, 2, -1, 3, 1};

static void expect_near(const float *got, const double *wanted, int count)
{
    for (int i = 0; i < count; i++) {
        if (!(fabs(got[i] - wanted[i]) <= 2e-6 * fmax(1, fabs(wanted[i]))))
            print_error("element %d is %.9g, wanted %.9g\n", i, got[i], wanted[i]);
        assert_true(fabs(got[i] - wanted[i]) <= 2e-6 * fmax(1, fabs(wanted[i])));
    }
}

/* Three outputs: x normalized with the averages before the update, with the batch's statistics, and
 * with the averages after the update. */
static rlxvk_executable *compile(rlxvk_graph **out_graph)
{
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    rlxvk_batch_norm_options o = {.eps = 1e-40f, .momentum = 0.25f};
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(N / C, C));
    rlxvk_tensor mean = rlxvk_param(g, "mean", RLXVK_F32, RLXVK_SHAPE(C));
    rlxvk_tensor variance = rlxvk_param(g, "variance", RLXVK_F32, RLXVK_SHAPE(C));
    rlxvk_tensor none = RLXVK_NONE;
    rlxvk_tensor before = rlxvk_batch_norm_inference(g, x, none, none, mean, variance, 0, 1);
    rlxvk_tensor y = rlxvk_batch_norm_training(g, x, none, none, mean, variance, &o);
    rlxvk_tensor after = rlxvk_batch_norm_inference(g, x, none, none, mean, variance, 0, 1);
    rlxvk_graph_output(g, before);
    rlxvk_graph_output(g, y);
    rlxvk_graph_output(g, after);
    expect_ok(rlxvk_graph_status(g));
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    *out_graph = g;
    return e;
}

static void averages_run_on(void **state)
{
    (void)state;
    rlxvk_graph *g;
    rlxvk_executable *e = compile(&g);
    const double batch[C] = {2, -1}, unbiased[C] = {1, 4};
    const double deviations[C] = {sqrt(2.0 / 3), sqrt(8.0 / 3)};
    double means[C] = {0, 1}, variances[C] = {1, 2};
    float y[3][N], mean[C] = {0, 1}, variance[C] = {1, 2};
    expect_ok(rlxvk_set_param(e, "mean", mean, C));
    expect_ok(rlxvk_set_param(e, "variance", variance, C));
    for (int step = 0; step < 3; step++) {
        rlxvk_run_input in = {.name = "x", .data = xs, .length = N};
        rlxvk_run_output out[3];
        double wanted[3][N];
        for (int i = 0; i < 3; i++)
            out[i] = (rlxvk_run_output){.index = (size_t)i, .buffer = y[i], .length = N};
        expect_ok(rlxvk_run(e, &in, 1, out, 3));
        for (int c = 0; c < C; c++) {
            for (int i = c; i < N; i += C) {
                wanted[0][i] = (xs[i] - means[c]) / sqrt(variances[c]);
                wanted[1][i] = (xs[i] - batch[c]) / deviations[c];
            }
            means[c] = 0.75 * means[c] + 0.25 * batch[c];
            variances[c] = 0.75 * variances[c] + 0.25 * unbiased[c];
            for (int i = c; i < N; i += C)
                wanted[2][i] = (xs[i] - means[c]) / sqrt(variances[c]);
        }
        for (int i = 0; i < 3; i++)
            expect_near(y[i], wanted[i], N);
        expect_ok(rlxvk_read_param(e, "mean", mean, C));
        expect_ok(rlxvk_read_param(e, "variance", variance, C));
        expect_near(mean, means, C);
        expect_near(variance, variances, C);
    }
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

/* Gradient of x^2, normalized, in tanh. If `kept`, averages are kept. If `again`, the norm is
 * recomputed because of a checkpoint. */
static void take_gradient(bool kept, bool again, float dx[N], float mean[C])
{
    const float seed[N] = {1, -1, 0.5f, 2, -3, 1};
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(N / C, C)), gradient;
    rlxvk_tensor weights = rlxvk_input(g, "seed", RLXVK_F32, RLXVK_SHAPE(N / C, C));
    rlxvk_tensor averages[2] = {RLXVK_NONE, RLXVK_NONE};
    if (kept) {
        averages[0] = rlxvk_param(g, "mean", RLXVK_F32, RLXVK_SHAPE(C));
        averages[1] = rlxvk_param(g, "variance", RLXVK_F32, RLXVK_SHAPE(C));
    }
    rlxvk_tensor square = rlxvk_mul(g, x, x);
    rlxvk_tensor y = rlxvk_batch_norm_training(g, square, RLXVK_NONE, RLXVK_NONE, averages[0],
                                               averages[1], NULL);
    y = rlxvk_tanh(g, y);
    if (again)
        rlxvk_checkpoint(g, y);
    rlxvk_grad(g, rlxvk_mul(g, y, y), weights, &x, 1, &gradient);
    rlxvk_graph_output(g, gradient);
    expect_ok(rlxvk_graph_status(g));
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    if (kept) {
        expect_ok(rlxvk_set_param(e, "mean", (float[C]){0}, C));
        expect_ok(rlxvk_set_param(e, "variance", (float[C]){0}, C));
    }
    rlxvk_run_input in[] = {{.name = "x", .data = xs, .length = N},
                            {.name = "seed", .data = seed, .length = N}};
    rlxvk_run_output out = {.index = 0, .buffer = dx, .length = N};
    expect_ok(rlxvk_run(e, in, 2, &out, 1));
    if (kept)
        expect_ok(rlxvk_read_param(e, "mean", mean, C));
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

/* The averages do not change the gradient. They are updated once, even if the norm is
 * recomputed. */
static void gradients_do_not_depend_on_what_is_kept(void **state)
{
    (void)state;
    float plain[N], dx[N], mean[C];
    take_gradient(false, false, plain, mean);
    for (int i = 0; i < N; i++)
        assert_true(isfinite(plain[i]) && plain[i] != 0);
    for (int i = 1; i < 4; i++) {
        take_gradient(i & 1, i & 2, dx, mean);
        assert_memory_equal(dx, plain, sizeof dx);
        if (i & 1)
            expect_near(mean, (double[]){0.1 * 14 / 3, 0.1 * 11 / 3}, C);
    }
}

/* The mean lies between two floats. A kernel that reads statistics of the host gets both parts. */
static void statistics_of_the_host_have_all_digits(void **state)
{
    static const char *const on_host[] = {"batch_norm_statistics"};
    const float values[2] = {100000, 100000.0078125F};
    float y[2];
    (void)state;
    for (size_t hosted = 0; hosted < 2; hosted++) {
        const rlxvk_batch_norm_options options = {.eps = 1e-40F};
        rlxvk_graph *g = NULL;
        rlxvk_executable *e = NULL;
        rlxvk_plan_report report = {.struct_size = sizeof report};
        expect_ok(rlxvk_graph_create(&g));
        rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(2, 1)), none = RLXVK_NONE;
        rlxvk_graph_output(g, rlxvk_batch_norm_training(g, x, none, none, none, none, &options));
        expect_ok(
            rlxvk_compile(shared_context, g,
                          &(rlxvk_compile_options){.host_ops = on_host, .host_op_count = hosted},
                          &e));
        rlxvk_executable_plan(e, &report);
        assert_int_equal(report.host_steps, hosted);
        rlxvk_run_input in = {.name = "x", .data = values, .length = 2};
        rlxvk_run_output out = {.index = 0, .buffer = y, .length = 2};
        expect_ok(rlxvk_run(e, &in, 1, &out, 1));
        expect_near(y, (double[]){-1, 1}, 2);
        rlxvk_executable_destroy(e);
        rlxvk_graph_destroy(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(averages_run_on),
        cmocka_unit_test(gradients_do_not_depend_on_what_is_kept),
        cmocka_unit_test(statistics_of_the_host_have_all_digits),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
