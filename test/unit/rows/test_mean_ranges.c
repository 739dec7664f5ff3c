/*
 * Means whose sum overflows f32 although the mean does not, and softmax of such rows. Tests every
 * row kernel and every op with a mean. The right results are computed here in double.
 */
#include "support/ranges.h"

#include <rlxvk_train.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

/* ---- Means ---- */

static const struct mean_case {
    rlxvk_shape shape;
    int32_t axes[3];
    size_t axis_count;
} mean_cases[] = {
    {{1, {4}}, {0}, 1},
    {{2, {37, 3}}, {1}, 1},
    {{2, {20, 64}}, {1}, 1},
    {{2, {19, 1024}}, {1}, 1},
    {{2, {9, 257}}, {1}, 1},
    {{2, {9, 40001}}, {1}, 1},
    {{2, {2, 100000}}, {1}, 1},
    {{3, {2, 48, 20}}, {1}, 1},
    {{3, {2, 131, 20}}, {1}, 1},
    {{3, {1, 9000, 6}}, {1}, 1},
    {{2, {300, 300}}, {0, 1}, 2},
    {{3, {9, 5, 12}}, {0, 2}, 2},
    {{3, {70, 5, 1200}}, {0, 2}, 2},
    {{3, {4000, 3, 70}}, {0, 2}, 2},
    {{5, {3, 4, 5, 6, 7}}, {0, 2, 4}, 3},
};
#define MEAN_CASES (sizeof mean_cases / sizeof *mean_cases)

/* The index of the result that element i belongs to. */
static uint64_t result_of(const struct mean_case *c, uint64_t i)
{
    uint64_t at = 0, step = 1;
    for (uint32_t k = c->shape.rank; k-- > 0;) {
        uint64_t dim = (uint64_t)c->shape.dims[k];
        bool kept = true;
        for (size_t j = 0; j < c->axis_count; j++)
            kept &= c->axes[j] != (int32_t)k;
        at += kept ? i % dim * step : 0;
        step *= kept ? dim : 1;
        i /= dim;
    }
    return at;
}

static void expect_means(const trial *t, const char *what, const struct mean_case *c,
                         const float *x, uint64_t numel, const float *y, uint64_t results)
{
    double *sums = calloc((size_t)results, sizeof *sums), n = (double)(numel / results);
    double *magnitudes = calloc((size_t)results, sizeof *magnitudes);
    for (uint64_t i = 0; i < numel; i++) {
        sums[result_of(c, i)] += x[i];
        magnitudes[result_of(c, i)] += fabs(x[i]);
    }
    for (uint64_t o = 0; o < results; o++)
        expect_close(t, what, o, y[o], sums[o] / n, 0x1p-23 * (4 + log2(n)) * magnitudes[o] / n);
    free(sums);
    free(magnitudes);
}

static void walk_mean(const struct mean_case *c, const char *variant)
{
    uint64_t numel = 1, results = 1;
    trial t;
    trial_begin(&t);
    for (uint32_t k = 0; k < c->shape.rank; k++)
        numel *= (uint64_t)c->shape.dims[k];
    rlxvk_tensor mean = rlxvk_reduce_mean(t.graph, trial_input(&t, RLXVK_F32, c->shape), c->axes,
                                          c->axis_count, false);
    trial_output(&t, mean);
    rlxvk_shape shape = rlxvk_tensor_shape(t.graph, mean);
    for (uint32_t k = 0; k < shape.rank; k++)
        results *= (uint64_t)shape.dims[k];
    snprintf(t.label, sizeof t.label, "mean of case %d, %s", (int)(c - mean_cases),
             variant ? variant : "by table");
    trial_compile(&t, variant);
    float *y = malloc((size_t)results * sizeof *y);
    for (int f = 0; f < FILLS + 1; f++) {
        uint64_t row = numel / results;
        float *x = filled(f < FILLS ? (fill)f : SMALLEST, (view){results, row, 1});
        for (uint64_t i = 0; f == SMALLEST && i < numel; i++)
            x[i] = (float)(2e-38 + 1e-39 * noise(i)); /* here a scale of 1 / n would show */
        for (uint64_t i = 0; f == FILLS && i < numel; i++)
            x[i] = result_of(c, i) % 2 ? 2e-38f : 3e38f;
        trial_give(&t, 0, x, numel);
        trial_run_one(&t, y, results);
        expect_means(&t, f < FILLS ? fill_names[f] : "3e38 beside 2e-38", c, x, numel, y, results);
        free(x);
    }
    free(y);
    trial_end(&t);
}

static void walk_means(const char *variant)
{
    for (size_t i = 0; i < MEAN_CASES; i++)
        walk_mean(&mean_cases[i], variant);
}

static void means_do_not_overflow(void **state)
{
    (void)state;
    each_variant(walk_means);
}

typedef rlxvk_tensor pool_builder(rlxvk_graph *g, rlxvk_tensor x);

static rlxvk_tensor pool_windows(rlxvk_graph *g, rlxvk_tensor x)
{
    return rlxvk_pool_mean(g, x, &(rlxvk_pool_options){.kernel = {3, 3}, .stride = {2, 2}});
}
static rlxvk_tensor pool_padded(rlxvk_graph *g, rlxvk_tensor x)
{
    return rlxvk_pool_mean(
        g, x, &(rlxvk_pool_options){.kernel = {4, 4}, .padding = {1, 1}, .exclude_pad = true});
}
static rlxvk_tensor pool_all(rlxvk_graph *g, rlxvk_tensor x)
{
    return rlxvk_pool_mean(g, x, &(rlxvk_pool_options){.kernel = {9, 9}});
}
static rlxvk_tensor pool_evenly(rlxvk_graph *g, rlxvk_tensor x)
{
    return rlxvk_adaptive_pool_mean(g, x, (int64_t[]){3, 3});
}
static rlxvk_tensor pool_unevenly(rlxvk_graph *g, rlxvk_tensor x)
{
    return rlxvk_adaptive_pool_mean(g, x, (int64_t[]){2, 4});
}
static rlxvk_tensor mean_of_parts(rlxvk_graph *g, rlxvk_tensor x)
{
    return rlxvk_reduce_mean(g, x, (int32_t[]){2, 3}, 2, false);
}

/* If all cells are alike, every mean is the value of a cell. */
static void other_means_do_not_overflow(void **state)
{
    static pool_builder *const builders[] = {pool_windows, pool_padded,   pool_all,
                                             pool_evenly,  pool_unevenly, rlxvk_global_pool_mean,
                                             mean_of_parts};
    static const float values[] = {3e38f, -3e38f, 1.5f, 2e-38f};
    (void)state;
    for (size_t b = 0; b < sizeof builders / sizeof *builders; b++) {
        float x[4 * 81], y[4 * 81];
        uint64_t parts = builders[b] == mean_of_parts ? 2 : 1;
        trial t;
        trial_begin(&t);
        rlxvk_tensor data =
            trial_input(&t, parts == 2 ? RLXVK_C64 : RLXVK_F32, RLXVK_SHAPE(1, 2, 9, 9));
        rlxvk_tensor pooled = builders[b](t.graph, data);
        uint64_t results = parts;
        rlxvk_shape shape = rlxvk_tensor_shape(t.graph, pooled);
        for (uint32_t k = 0; k < shape.rank; k++)
            results *= (uint64_t)shape.dims[k];
        trial_output(&t, pooled);
        snprintf(t.label, sizeof t.label, "mean %zu", b);
        trial_compile(&t, NULL);
        trial_give(&t, 0, x, parts * 2 * 81);
        for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
            float value = values[v];
            if (b == 3 || b == 4) /* sums of weighted cells may lose denormals */
                value = value == 2e-38f ? 1e-36f : value;
            for (int i = 0; i < 4 * 81; i++)
                x[i] = value;
            trial_run_one(&t, y, results);
            for (uint64_t i = 0; i < results; i++)
                expect_close(&t, "y", i, y[i], value, 2e-6 * fabs((double)value));
        }
        trial_end(&t);
    }
}

/* ---- Softmax ---- */

static void walk_softmax(const char *variant)
{
    static const view views[] = {{9, 4, 1}, {9, 257, 1}, {9, 1024, 1}, {9, 12000, 1}, {1, 50, 8}};
    for (size_t s = 0; s < sizeof views / sizeof *views; s++) {
        view v = views[s];
        uint64_t numel = v.outer * v.length * v.inner;
        float *y = malloc((size_t)numel * sizeof *y);
        trial t;
        trial_begin(&t);
        rlxvk_shape shape = RLXVK_SHAPE((int64_t)v.outer, (int64_t)v.length, (int64_t)v.inner);
        trial_output(&t, rlxvk_softmax(t.graph, trial_input(&t, RLXVK_F32, shape), 1));
        snprintf(t.label, sizeof t.label, "softmax of %llu, %s", (unsigned long long)v.length,
                 variant ? variant : "by table");
        trial_compile(&t, variant);
        for (int f = 0; f < FILLS; f++) {
            float *x = filled((fill)f, v);
            trial_give(&t, 0, x, numel);
            trial_run_one(&t, y, numel);
            for (uint64_t o = 0; o < v.outer * v.inner; o++) {
                struct {
                    const float *x;
                    uint64_t start, length, step;
                } r = {.x = x,
                       .start = o / v.inner * v.length * v.inner + o % v.inner,
                       .length = v.length,
                       .step = v.inner};
                double most = -INFINITY, sum = 0;
                for (uint64_t i = 0; i < v.length; i++)
                    most = isnan((double)r.x[r.start + i * r.step]) ? NAN
                           : (double)r.x[r.start + i * r.step] > most
                               ? (double)r.x[r.start + i * r.step]
                               : most;
                for (uint64_t i = 0; i < v.length; i++)
                    sum += exp((double)r.x[r.start + i * r.step] - most);
                for (uint64_t i = 0; i < v.length; i++) {
                    double wanted = exp((double)r.x[r.start + i * r.step] - most) / sum;
                    expect_close(&t, fill_names[f], r.start + i * r.step, y[r.start + i * r.step],
                                 wanted, 1e-6 + 1e-5 * fabs(wanted));
                }
            }
            free(x);
        }
        free(y);
        trial_end(&t);
    }
}

static void softmax_does(void **state)
{
    (void)state;
    each_variant(walk_softmax);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(means_do_not_overflow),
        cmocka_unit_test(other_means_do_not_overflow),
        cmocka_unit_test(softmax_does),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
