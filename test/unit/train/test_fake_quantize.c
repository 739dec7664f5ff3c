/*
 * Fake quantization in a graph that trains: an average that goes on from run to run, and gradients.
 * These are estimates, so they cannot be compared with differences.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/harness.h"

#include <rlxvk_train.h>

#include <math.h>

#define N 4

static const float xs[N] = {-1.4f, 0.3f, 0.7f, 2.1f}, seeds[N] = {1, -2, 3, 0.5f};

typedef struct job {
    rlxvk_graph *graph;
    rlxvk_tensor x, scale, seed, y;
    rlxvk_executable *executable;
} job;

/* 4 bits and one scale, which is a param. */
static job begin(bool learned, rlxvk_scale_mode mode, rlxvk_estimator estimator)
{
    job j = {NULL};
    rlxvk_fake_quantize_options o = {.bits = 4, .mode = mode, .estimator = estimator};
    o.decay = 0.75f;
    expect_ok(rlxvk_graph_create(&j.graph));
    j.x = rlxvk_input(j.graph, "x", RLXVK_F32, RLXVK_SHAPE(N));
    j.seed = rlxvk_input(j.graph, "seed", RLXVK_F32, RLXVK_SHAPE(N));
    j.scale = rlxvk_param(j.graph, "scale", RLXVK_F32, RLXVK_SHAPE(1));
    rlxvk_tensor state = mode == RLXVK_SCALE_PER_BATCH ? RLXVK_NONE : j.scale;
    j.y = learned ? rlxvk_fake_quantize_lsq(j.graph, j.x, j.scale, &o)
                  : rlxvk_fake_quantize(j.graph, j.x, state, &o);
    return j;
}

static void compile(job *j, float scale)
{
    expect_ok(rlxvk_graph_status(j->graph));
    expect_ok(rlxvk_compile(shared_context, j->graph, NULL, &j->executable));
    expect_ok(rlxvk_set_param(j->executable, "scale", &scale, 1));
}

static void run(job *j, float *first, uint64_t first_length, float *second)
{
    rlxvk_run_input in[] = {{.name = "x", .data = xs, .length = N},
                            {.name = "seed", .data = seeds, .length = N}};
    rlxvk_run_output out[] = {{.index = 0, .buffer = first, .length = first_length},
                              {.index = 1, .buffer = second, .length = 1}};
    expect_ok(rlxvk_run(j->executable, in, 2, out, second ? 2 : 1));
}

static void end(job *j)
{
    rlxvk_executable_destroy(j->executable);
    rlxvk_graph_destroy(j->graph);
}

static void expect_near(const float *got, const double *wanted, int count)
{
    for (int i = 0; i < count; i++) {
        if (!(fabs(got[i] - wanted[i]) <= 2e-6 * fmax(1, fabs(wanted[i]))))
            print_error("element %d is %.9g, wanted %.9g\n", i, got[i], wanted[i]);
        assert_true(fabs(got[i] - wanted[i]) <= 2e-6 * fmax(1, fabs(wanted[i])));
    }
}

/* The largest element is 2.1, so its scale is 0.3. If the average begins with that, it stays. If it
 * begins with 0.7, it approaches 0.3. */
static void averages_run_on(void **state)
{
    (void)state;
    job j = begin(false, RLXVK_SCALE_EMA, RLXVK_ESTIMATOR_IDENTITY);
    double average = 0.7;
    float y[N], scale;
    rlxvk_graph_output(j.graph, j.y);
    compile(&j, 0);
    for (int i = 0; i < 2; i++) {
        run(&j, y, N, NULL);
        expect_near(y, (double[]){-1.5, 0.3, 0.6, 2.1}, N);
        expect_ok(rlxvk_read_param(j.executable, "scale", &scale, 1));
        expect_near(&scale, (double[]){0.3}, 1);
    }
    scale = 0.7f;
    expect_ok(rlxvk_set_param(j.executable, "scale", &scale, 1));
    for (int i = 0; i < 3; i++) {
        average = 0.75 * average + 0.25 * 0.3;
        run(&j, y, N, NULL);
        expect_ok(rlxvk_read_param(j.executable, "scale", &scale, 1));
        expect_near(&scale, &average, 1);
        expect_near(y + 3, (double[]){round(2.1 / average) * average}, 1);
    }
    end(&j);
}

/* The gradient of x uses the same scale as the forward op. For an average, this is the updated
 * one. */
static void gradients_go_by_the_scale_in_use(void **state)
{
    (void)state;
    static const double scales[] = {0.3, 0.75 * 0.1 + 0.25 * 0.3, 0.1};
    for (int mode = RLXVK_SCALE_PER_BATCH; mode <= RLXVK_SCALE_FIXED; mode++)
        for (int estimator = 0; estimator <= RLXVK_ESTIMATOR_HARD_TANH; estimator++) {
            job j = begin(false, (rlxvk_scale_mode)mode, (rlxvk_estimator)estimator);
            rlxvk_tensor dx;
            double wanted[N], s = scales[mode];
            float got[N];
            rlxvk_grad(j.graph, j.y, j.seed, &j.x, 1, &dx);
            rlxvk_graph_output(j.graph, dx);
            rlxvk_graph_output(j.graph, rlxvk_reshape(j.graph, j.scale, RLXVK_SCALAR));
            compile(&j, 0.1f);
            run(&j, got, N, NULL);
            for (int i = 0; i < N; i++) {
                double z = xs[i] / s;
                const double shares[] = {1, fabs(z) <= 7 + 1e-5, 1 - tanh(z) * tanh(z),
                                         fmax(0, 1 - fabs(z / 7))};
                wanted[i] = seeds[i] * shares[estimator];
            }
            expect_near(got, wanted, N);
            end(&j);
        }
}

static void scales_are_learned(void **state)
{
    (void)state;
    job j = begin(true, RLXVK_SCALE_FIXED, RLXVK_ESTIMATOR_IDENTITY);
    rlxvk_tensor gradients[2];
    float dx[N], ds;
    double sum = 0, wanted[N];
    rlxvk_grad(j.graph, j.y, j.seed, (rlxvk_tensor[]){j.x, j.scale}, 2, gradients);
    rlxvk_graph_output(j.graph, gradients[0]);
    rlxvk_graph_output(j.graph, gradients[1]);
    compile(&j, 0.25f);
    run(&j, dx, N, &ds);
    for (int i = 0; i < N; i++) {
        double z = xs[i] / 0.25;
        wanted[i] = fabs(z) <= 7 ? seeds[i] : 0;
        sum += seeds[i] * (fabs(z) <= 7 ? round(z) - z : copysign(7, z));
    }
    expect_near(dx, wanted, N);
    expect_near(&ds, &sum, 1);
    end(&j);
}

/* An average is written, so it must be a leaf. It must not be x itself. */
static void averages_are_leaves(void **state)
{
    (void)state;
    rlxvk_graph *g = NULL;
    rlxvk_fake_quantize_options o = {.mode = RLXVK_SCALE_EMA};
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(1));
    rlxvk_fake_quantize(g, x, rlxvk_abs(g, x), &o);
    assert_int_equal(rlxvk_graph_status(g), RLXVK_E_ATTR);
    rlxvk_graph_destroy(g);
    expect_ok(rlxvk_graph_create(&g));
    x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(1));
    rlxvk_fake_quantize(g, x, x, &o);
    assert_int_equal(rlxvk_graph_status(g), RLXVK_E_ATTR);
    rlxvk_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(averages_run_on),
        cmocka_unit_test(gradients_go_by_the_scale_in_use),
        cmocka_unit_test(scales_are_learned),
        cmocka_unit_test(averages_are_leaves),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
