/*
 * Dropout beyond its conformance cases. The mask must follow the contract and depend on the step,
 * and gradients must use the same mask. The share of kept elements must be right.
 */
#include "op/random/random.h"
#include "support/harness.h"

#include <rlxvk_train.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define N    1003
#define SEED 0x123456789abcdef0u

typedef struct dropper {
    rlxvk_graph *graph;
    rlxvk_executable *executable;
    float rate;
} dropper;

/* The outputs are y and the gradient of sum(y w) by x. The inputs are x, w and, if `given`,
 * step. */
static dropper open_dropper(float rate, uint64_t seed, bool given, const rlxvk_rng_options *rng)
{
    dropper d = {.rate = rate};
    rlxvk_dropout_options options = {rate, seed};
    expect_ok(rlxvk_graph_create(&d.graph));
    rlxvk_graph *g = d.graph;
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(N)), gradient;
    rlxvk_tensor w = rlxvk_input(g, "w", RLXVK_F32, RLXVK_SHAPE(N));
    rlxvk_tensor step = given ? rlxvk_input(g, "step", RLXVK_F32, RLXVK_SHAPE(1)) : RLXVK_NONE;
    rlxvk_tensor y = rlxvk_dropout(g, x, &options, step);
    rlxvk_grad(g, y, w, &x, 1, &gradient);
    rlxvk_graph_output(g, y);
    rlxvk_graph_output(g, gradient);
    expect_ok(rlxvk_graph_status(g));
    expect_ok(
        rlxvk_compile(shared_context, g, &(rlxvk_compile_options){.rng = rng}, &d.executable));
    return d;
}

static void close_dropper(dropper *d)
{
    rlxvk_executable_destroy(d->executable);
    rlxvk_graph_destroy(d->graph);
}

/* Runs with x = 1 and w = 1, 2, ... If `step` is below 0, it is not passed. Each y must be 1 / (1 -
 * rate) or 0, and the gradient must be w times that. Sets out[i] if element i is kept. */
static void run_mask(const dropper *d, float step, bool out[N])
{
    static float x[N], w[N], y[N], gradient[N];
    const float scale = 1 / (1 - d->rate);
    for (int i = 0; i < N; i++) {
        x[i] = 1;
        w[i] = (float)(i + 1);
    }
    const rlxvk_run_input in[] = {{.name = "x", .data = x, .length = N},
                                  {.name = "w", .data = w, .length = N},
                                  {.name = "step", .data = &step, .length = 1}};
    const rlxvk_run_output to[] = {{.index = 0, .buffer = y, .length = N},
                                   {.index = 1, .buffer = gradient, .length = N}};
    expect_ok(rlxvk_run(d->executable, in, step < 0 ? 2 : 3, to, 2));
    for (int i = 0; i < N; i++) {
        out[i] = y[i] != 0;
        assert_true(!out[i] || fabsf(y[i] - scale) <= 2e-7f * scale);
        assert_true(fabsf(gradient[i] - w[i] * y[i]) <= 4e-7f * fabsf(gradient[i]));
    }
}

/* Follows the words of the contract literally. */
static bool is_kept(uint64_t seed, uint64_t step, uint32_t i, double rate)
{
    const uint32_t counter[] = {i / 4, 0, (uint32_t)step, (uint32_t)(step >> 32)};
    const uint32_t key[] = {(uint32_t)seed, (uint32_t)(seed >> 32) ^ 0x44524F50u};
    uint32_t words[4];
    random_philox(counter, key, words);
    return (words[i % 4] >> 8) / 16777216.0 >= rate;
}

static void expect_mask(const bool mask[N], uint64_t seed, uint64_t step, double rate)
{
    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(mask[i], is_kept(seed, step, i, rate));
}

static void test_steps_given(void **state)
{
    static const float steps[] = {0, 1, 2, 16777216, 4294967040};
    dropper d = open_dropper(0.3f, SEED, true, NULL);
    bool mask[N];
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(steps); i++) {
        run_mask(&d, steps[i], mask);
        expect_mask(mask, SEED, (uint64_t)steps[i], 0.3f);
    }
    close_dropper(&d);
}

/* Of the random options of a run, only the step matters. Both of its words must count. */
static void test_steps_of_runs(void **state)
{
    const uint64_t first = 0xfffffffffu;
    rlxvk_rng_options rng = {.seed = 9,
                             .backend = RLXVK_RNG_ZERO,
                             .step = first,
                             .advance_per_run = true};
    dropper d = open_dropper(0.5f, 7, false, &rng);
    bool mask[N];
    (void)state;
    for (uint64_t run = 0; run < 3; run++) {
        run_mask(&d, -1, mask);
        expect_mask(mask, 7, first + run, 0.5);
    }
    rng = (rlxvk_rng_options){.step = first};
    expect_ok(rlxvk_set_rng(d.executable, &rng));
    run_mask(&d, -1, mask);
    expect_mask(mask, 7, first, 0.5);
    close_dropper(&d);
}

/* The share of kept elements over seeds and steps must be within five standard deviations of 1 -
 * rate. */
static void test_shares(void **state)
{
    static const float rates[] = {0.1f, 0.5f, 0.9f};
    bool mask[N];
    (void)state;
    for (size_t r = 0; r < ARRAY_COUNT(rates); r++) {
        double kept = 0, count = 0, both = 0;
        for (uint64_t seed = 0; seed < 4; seed++) {
            dropper d = open_dropper(rates[r], seed, true, NULL);
            bool before[N] = {false};
            for (int step = 0; step < 10; step++) {
                run_mask(&d, (float)step, mask);
                for (int i = 0; i < N; i++) {
                    kept += mask[i];
                    both += mask[i] && before[i];
                }
                count += N;
                memcpy(before, mask, sizeof before);
            }
            close_dropper(&d);
        }
        double p = 1 - (double)rates[r], pairs = count * 0.9;
        assert_true(fabs(kept - count * p) < 5 * sqrt(count * p * (1 - p)));
        assert_true(fabs(both - pairs * p * p) < 5 * sqrt(pairs * p * p * (1 - p * p)));
    }
}

/* If the rate is 0, no bit changes and no work is done. */
static void test_nothing_dropped(void **state)
{
    static float x[N], w[N], y[N];
    dropper d = open_dropper(0, 1, false, NULL);
    const rlxvk_run_input in[] = {{.name = "x", .data = x, .length = N},
                                  {.name = "w", .data = w, .length = N}};
    const rlxvk_run_output to = {.index = 0, .buffer = y, .length = N};
    rlxvk_plan_report plan;
    (void)state;
    for (int i = 0; i < N; i++)
        x[i] = ldexpf(i % 2 ? 1 : -1, -i % 150);
    x[5] = NAN;
    x[6] = -INFINITY;
    expect_ok(rlxvk_run(d.executable, in, 2, &to, 1));
    assert_memory_equal(x, y, sizeof x);
    rlxvk_executable_plan(d.executable, &plan);
    assert_int_equal(plan.dispatches, 0);
    close_dropper(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_steps_given),
                                       cmocka_unit_test(test_steps_of_runs),
                                       cmocka_unit_test(test_shares),
                                       cmocka_unit_test(test_nothing_dropped)};
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
