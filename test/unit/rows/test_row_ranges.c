/*
 * Norms of rows whose squares do not fit f32 although their results are ordinary numbers. Tests
 * every row kernel, and every norm with its gradients. The right results are computed here in
 * double.
 */
#include "support/ranges.h"

#include <rlxvk_train.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

/* ---- A norm by its definition ---- */

typedef struct row {
    const float *x;
    uint64_t start, length, step;
    double eps;
    bool rms;
    double mean, root, width, range; /* width: of x; range: width in standard deviations */
} row;

static double row_x(const row *r, uint64_t i)
{
    return r->x[r->start + i * r->step];
}

static void measure(row *r)
{
    double sum = 0, square = 0, least = INFINITY, most = -INFINITY;
    for (uint64_t i = 0; i < r->length; i++) {
        sum += row_x(r, i);
        least = fmin(least, row_x(r, i));
        most = fmax(most, row_x(r, i));
    }
    r->mean = r->rms ? 0 : sum / (double)r->length;
    for (uint64_t i = 0; i < r->length; i++)
        square += pow(row_x(r, i) - r->mean, 2);
    r->root = sqrt(square / (double)r->length + r->eps);
    r->width = r->rms ? fmax(fabs(least), fabs(most)) : most - least;
    r->range = r->root == 0 ? 0 : r->width / r->root;
}

static double xhat(const row *r, uint64_t i)
{
    return r->root == 0 ? 0 : (row_x(r, i) - r->mean) / r->root;
}

static row row_of(view v, uint64_t o, const float *x, bool rms, double eps)
{
    row r = {.x = x,
             .start = o / v.inner * v.length * v.inner + o % v.inner,
             .length = v.length,
             .step = v.inner,
             .eps = eps,
             .rms = rms};
    measure(&r);
    return r;
}

/* `span` neighbours in a row share one element of gamma and beta. `groups` consecutive rows use
 * different parts of these, then they repeat. gamma may be NULL. */
static void expect_norm(const trial *t, const char *what, view v, const float *x, bool rms,
                        double eps, const float *gamma, const float *beta, uint64_t span,
                        uint64_t groups, const float *y)
{
    for (uint64_t o = 0; o < v.outer * v.inner; o++) {
        row r = row_of(v, o, x, rms, eps);
        uint64_t first = o % groups * (v.length / span);
        double most = 0, spread = sqrt(fmax(r.root * r.root - eps, 0));
        double share = spread > 0 && fabs(r.mean) > 1e3 * spread ? 5e-3 : 2e-5;
        for (uint64_t i = 0; i < v.length; i++)
            most = fmax(most, gamma ? fabs(xhat(&r, i) * gamma[first + i / span]) +
                                          fabs(beta[first + i / span])
                                    : fabs(xhat(&r, i)));
        for (uint64_t i = 0; i < v.length; i++) {
            double wanted = xhat(&r, i);
            if (gamma)
                wanted = wanted * gamma[first + i / span] + beta[first + i / span];
            expect_close(t, what, r.start + i * r.step, y[r.start + i * r.step], wanted,
                         1e-6 + share * most);
        }
    }
}

/* ---- Norms ---- */

typedef enum norm_kind {
    LAYER,
    RMS,
    FUSED_LAYER,
    FUSED_RMS,
    PAIR_LAYER, /* of a sum that is also a result */
    PAIR_RMS,
    NORM_KINDS
} norm_kind;

static const struct norm_case {
    rlxvk_shape shape;
    int32_t axis;
    view v;
} norm_cases[] = {
    {{2, {1, 4}}, -1, {1, 4, 1}},           {{2, {37, 3}}, -1, {37, 3, 1}},
    {{2, {21, 30}}, -1, {21, 30, 1}},       {{2, {19, 1024}}, -1, {19, 1024, 1}},
    {{2, {9, 257}}, -1, {9, 257, 1}},       {{2, {10, 4096}}, -1, {10, 4096, 1}},
    {{2, {9, 9001}}, -1, {9, 9001, 1}},     {{2, {9, 12000}}, -1, {9, 12000, 1}},
    {{3, {2, 48, 20}}, 1, {2, 48, 20}},     {{3, {2, 130, 11}}, 1, {2, 130, 11}},
    {{3, {1, 3000, 12}}, 1, {1, 3000, 12}},
};
#define NORM_CASES (sizeof norm_cases / sizeof *norm_cases)

static bool is_rms(norm_kind k)
{
    return k == RMS || k == FUSED_RMS || k == PAIR_RMS;
}

static rlxvk_tensor build_norm(rlxvk_graph *g, norm_kind k, rlxvk_tensor x, rlxvk_tensor sum,
                               rlxvk_tensor residual, const rlxvk_tensor vectors[2], int32_t axis,
                               float eps)
{
    switch (k) {
    case FUSED_LAYER:
        return rlxvk_fused_residual_ln(g, x, residual, RLXVK_NONE, vectors[0], vectors[1], eps);
    case FUSED_RMS:
        return rlxvk_fused_residual_rms_norm(g, x, residual, RLXVK_NONE, vectors[0], vectors[1],
                                             eps);
    case LAYER:
        return rlxvk_layer_norm(g, x, vectors[0], vectors[1], axis, eps);
    case RMS:
        return rlxvk_rms_norm(g, x, vectors[0], vectors[1], axis, eps);
    case PAIR_LAYER:
        return rlxvk_layer_norm(g, sum, vectors[0], vectors[1], axis, eps);
    default:
        return rlxvk_rms_norm(g, sum, vectors[0], vectors[1], axis, eps);
    }
}

/* If there is a residual, x is cut into two halves. Their sum is exact, except for denormals. */
static void walk_fills(trial *t, norm_kind k, view v, float eps)
{
    uint64_t numel = v.outer * v.length * v.inner;
    float *gamma = ordinary(v.length, 1), *beta = ordinary(v.length, 2);
    float *half = malloc((size_t)numel * sizeof *half), *y = malloc((size_t)numel * sizeof *y);
    float *sum = malloc((size_t)numel * sizeof *sum);
    for (int f = 0; f < FILLS; f++) {
        if (k >= FUSED_LAYER && f == SMALLEST)
            continue;
        float *x = filled((fill)f, v);
        for (uint64_t i = 0; i < numel; i++)
            half[i] = x[i] * 0.5f;
        trial_give(t, 0, k >= FUSED_LAYER ? half : x, numel);
        trial_give(t, 1, gamma, v.length);
        trial_give(t, 2, beta, v.length);
        trial_give(t, 3, half, numel);
        trial_run(t, (float *[]){y, sum}, (uint64_t[]){numel, numel});
        expect_norm(t, fill_names[f], v, x, is_rms(k), eps, gamma, beta, 1, 1, y);
        for (uint64_t i = 0; t->outputs > 1 && i < numel; i++)
            expect_close(t, "sum", i, sum[i], x[i], 0);
        free(x);
    }
    free(gamma);
    free(beta);
    free(half);
    free(sum);
    free(y);
}

static void walk_norm(norm_kind k, const struct norm_case *c, float eps, const char *variant)
{
    trial t;
    trial_begin(&t);
    rlxvk_tensor x = trial_input(&t, RLXVK_F32, c->shape), vectors[2];
    for (int i = 0; i < 2; i++) {
        vectors[i] = trial_input(&t, RLXVK_F32, RLXVK_SHAPE((int64_t)c->v.length));
        if (c->v.inner > 1)
            vectors[i] =
                rlxvk_reshape(t.graph, vectors[i], RLXVK_SHAPE(1, (int64_t)c->v.length, 1));
    }
    rlxvk_tensor residual = k >= FUSED_LAYER ? trial_input(&t, RLXVK_F32, c->shape) : RLXVK_NONE;
    rlxvk_tensor sum = k >= PAIR_LAYER ? rlxvk_add(t.graph, x, residual) : RLXVK_NONE;
    trial_output(&t, build_norm(t.graph, k, x, sum, residual, vectors, c->axis, eps));
    if (k >= PAIR_LAYER)
        trial_output(&t, sum);
    snprintf(t.label, sizeof t.label, "norm %d of %llu x %llu x %llu, eps %g, %s", k,
             (unsigned long long)c->v.outer, (unsigned long long)c->v.length,
             (unsigned long long)c->v.inner, (double)eps, variant ? variant : "by table");
    trial_compile(&t, variant);
    walk_fills(&t, k, c->v, eps);
    trial_end(&t);
}

static void walk_norms(const char *variant)
{
    for (size_t i = 0; i < NORM_CASES; i++)
        for (int k = 0; k < NORM_KINDS; k++) {
            if ((k >= FUSED_LAYER && norm_cases[i].v.inner > 1) ||
                (variant && (k == FUSED_RMS || k == PAIR_LAYER)))
                continue;
            walk_norm((norm_kind)k, &norm_cases[i], 0, variant);
            if (!variant)
                walk_norm((norm_kind)k, &norm_cases[i], 1e-5f, variant);
        }
}

static void norms_take_rows_of_any_size(void **state)
{
    (void)state;
    each_variant(walk_norms);
}

/* Group, instance and layer norm of images: x is [2, 12, spatial]; gamma and beta are by
 * channel. */
static void walk_image(const char *variant, int64_t groups, int64_t spatial)
{
    trial t;
    trial_begin(&t);
    uint64_t numel = 24 * (uint64_t)spatial, shared = groups ? (uint64_t)spatial : 1;
    view v = groups ? (view){2 * (uint64_t)groups, 12 / (uint64_t)groups * shared, 1}
                    : (view){2, 12, (uint64_t)spatial};
    rlxvk_tensor x = trial_input(&t, RLXVK_F32, RLXVK_SHAPE(2, 12, 1, spatial));
    rlxvk_tensor gamma = trial_input(&t, RLXVK_F32, RLXVK_SHAPE(12)),
                 beta = trial_input(&t, RLXVK_F32, RLXVK_SHAPE(12));
    trial_output(&t, groups == 0    ? rlxvk_layer_norm2d(t.graph, x, gamma, beta, 0)
                     : groups == 12 ? rlxvk_instance_norm(t.graph, x, gamma, beta, 0)
                                    : rlxvk_group_norm(t.graph, x, gamma, beta, groups, 0));
    snprintf(t.label, sizeof t.label, "%lld groups of 12 channels of %lld, %s", (long long)groups,
             (long long)spatial, variant ? variant : "by table");
    trial_compile(&t, variant);
    float *gammas = ordinary(12, 1), *betas = ordinary(12, 2);
    float *y = malloc((size_t)numel * sizeof *y);
    for (int f = 0; f < FILLS; f++) {
        float *data = filled((fill)f, v);
        trial_give(&t, 0, data, numel);
        trial_give(&t, 1, gammas, 12);
        trial_give(&t, 2, betas, 12);
        trial_run_one(&t, y, numel);
        expect_norm(&t, fill_names[f], v, data, false, 0, gammas, betas, shared,
                    groups ? (uint64_t)groups : 1, y);
        free(data);
    }
    free(gammas);
    free(betas);
    free(y);
    trial_end(&t);
}

static void walk_images(const char *variant)
{
    static const int64_t sizes[] = {1, 7, 32, 9000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        walk_image(variant, 0, sizes[i]);
        walk_image(variant, 3, sizes[i]);
        if (!variant)
            walk_image(variant, 12, sizes[i]);
    }
}

static void norms_of_images_do(void **state)
{
    (void)state;
    each_variant(walk_images);
}

/* ---- Batch norm ---- */

/* Channels of [batch, 5, inner] are rows of the transposed tensor. */
static void transpose(const float *x, uint64_t batch, uint64_t inner, float *out)
{
    for (uint64_t b = 0; b < batch; b++)
        for (uint64_t c = 0; c < 5; c++)
            for (uint64_t i = 0; i < inner; i++)
                out[(c * batch + b) * inner + i] = x[(b * 5 + c) * inner + i];
}

static void walk_batch(int64_t batch, int64_t inner)
{
    static const fill fills[] = {LARGE, WIDE, TINY, MIXED, HIGH};
    uint64_t numel = 5 * (uint64_t)(batch * inner);
    view channels = {5, (uint64_t)(batch * inner), 1};
    float *rows = malloc((size_t)numel * sizeof *rows), *y = malloc((size_t)numel * sizeof *y);
    float *by_row = malloc((size_t)numel * sizeof *by_row), statistics[15];
    trial t;
    trial_begin(&t);
    rlxvk_batch_norm_options o = {.eps = 1e-40f, .momentum = 0.5f};
    rlxvk_tensor x = trial_input(&t, RLXVK_F32, RLXVK_SHAPE(batch, 5, inner)), none = RLXVK_NONE;
    trial_output(&t, rlxvk_batch_norm_training(t.graph, x, none, none, none, none, &o));
    trial_output(&t, rlxvk_batch_norm_statistics(t.graph, x, none, none, &o));
    snprintf(t.label, sizeof t.label, "batch norm of %lld x 5 x %lld", (long long)batch,
             (long long)inner);
    trial_compile(&t, NULL);
    for (size_t f = 0; f < sizeof fills / sizeof *fills; f++) {
        float *data = filled(fills[f], (view){1, numel, 1});
        trial_give(&t, 0, data, numel);
        trial_run(&t, (float *[]){y, statistics}, (uint64_t[]){numel, 15});
        transpose(data, (uint64_t)batch, (uint64_t)inner, rows);
        transpose(y, (uint64_t)batch, (uint64_t)inner, by_row);
        expect_norm(&t, fill_names[fills[f]], channels, rows, false, 0, NULL, NULL, 1, 1, by_row);
        for (uint64_t c = 0; c < 5; c++) {
            row r = row_of(channels, c, rows, false, 0);
            double s = r.root == 0 ? 0 : 1 / r.root;
            expect_close(&t, "mean", c, (double)statistics[c] + statistics[5 + c], r.mean,
                         2e-6 * (fabs(r.mean) + r.width));
            expect_close(&t, "s", c, statistics[10 + c], s, 1e-5 * s);
        }
        free(data);
    }
    free(rows);
    free(y);
    free(by_row);
    trial_end(&t);
}

static void batch_norm_learns_from_rows_of_any_size(void **state)
{
    (void)state;
    walk_batch(16, 1);
    walk_batch(3, 40);
    walk_batch(2, 9000);
    walk_batch(6000, 1);
}

static void batch_norm_inference_subtracts_what_it_must(void **state)
{
    (void)state;
    const float x[4] = {3e38f, 1e-20f, -3e38f, 1e-25f}, mean[4] = {-3e38f, 0, 3e38f, 0};
    const float variance[4] = {1e38f, 1e-40f, 3e38f, 1e-38f};
    float y[4];
    trial t;
    trial_begin(&t);
    rlxvk_tensor in[3];
    for (int i = 0; i < 3; i++)
        in[i] = trial_input(&t, RLXVK_F32, RLXVK_SHAPE(4));
    trial_output(&t, rlxvk_batch_norm_inference(t.graph, in[0], RLXVK_NONE, RLXVK_NONE, in[1],
                                                in[2], 0, -1));
    snprintf(t.label, sizeof t.label, "batch norm with statistics");
    trial_compile(&t, NULL);
    trial_give(&t, 0, x, 4);
    trial_give(&t, 1, mean, 4);
    trial_give(&t, 2, variance, 4);
    trial_run_one(&t, y, 4);
    for (uint64_t i = 0; i < 4; i++) {
        double wanted = ((double)x[i] - mean[i]) / sqrt(variance[i]);
        expect_close(&t, "y", i, y[i], wanted, 1e-5 * fabs(wanted));
    }
    trial_end(&t);
}

/* ---- Gradients of norms ---- */

/* The gradient of a norm by its definition, with the bounds of rlxvk_train.h. */
static void expect_input_gradient(const trial *t, const char *what, view v, const float *x,
                                  bool rms, const float *dy, const float *dx)
{
    double u = 0x1p-23 * (24 + log2((double)v.length)), n = (double)v.length;
    for (uint64_t o = 0; o < v.outer * v.inner; o++) {
        row r = row_of(v, o, x, rms, 0);
        double w = 0, size = 0, pull = 0, pulls = 0;
        for (uint64_t i = 0; i < v.length; i++) {
            double d = dy[r.start + i * r.step];
            w += d / n;
            size += fabs(d) / n;
            pull += d * xhat(&r, i) / n;
            pulls += fabs(d * xhat(&r, i)) / n;
        }
        for (uint64_t i = 0; i < v.length; i++) {
            uint64_t at = r.start + i * r.step;
            double s = r.root == 0 ? 0 : 1 / r.root, h = fabs(xhat(&r, i));
            double wanted = s * (dy[at] - (rms ? 0 : w) - xhat(&r, i) * pull);
            double bound =
                fabs(dy[at]) + size + h * (2 * pulls + r.range * size) + (r.range + h) * fabs(pull);
            expect_close(t, what, at, dx[at], wanted, 1e-37 + u * s * bound);
        }
    }
}

static void expect_gamma_gradient(const trial *t, const char *what, view v, const float *x,
                                  bool rms, const float *dy, const float *got)
{
    double u = 0x1p-23 * (24 + log2((double)v.length)), rows = (double)(v.outer * v.inner);
    double *sums = calloc((size_t)v.length, sizeof *sums);
    double *bounds = calloc((size_t)v.length, sizeof *bounds);
    for (uint64_t o = 0; o < v.outer * v.inner; o++) {
        row r = row_of(v, o, x, rms, 0);
        for (uint64_t i = 0; i < v.length; i++) {
            double d = dy[r.start + i * r.step], h = xhat(&r, i);
            sums[i] += d * h;
            bounds[i] +=
                u * fabs(d) * (r.range + 2 * fabs(h)) + 0x1p-23 * (32 + log2(rows)) * fabs(d * h);
        }
    }
    for (uint64_t i = 0; i < v.length; i++)
        expect_close(t, what, i, got[i], sums[i], bounds[i]);
    free(sums);
    free(bounds);
}

static void walk_gradient(const struct norm_case *c, bool rms, const char *variant)
{
    static const fill fills[] = {LARGE, WIDE, TINY, MIXED};
    uint64_t numel = c->v.outer * c->v.length * c->v.inner;
    float *dy = ordinary(numel, 3), *dx = malloc((size_t)numel * sizeof *dx);
    float *both = malloc((size_t)c->v.length * 2 * sizeof *both);
    rlxvk_tensor none = RLXVK_NONE;
    trial t;
    trial_begin(&t);
    rlxvk_tensor x = trial_input(&t, RLXVK_F32, c->shape), d = trial_input(&t, RLXVK_F32, c->shape);
    trial_output(&t, rms ? rlxvk_rms_norm_backward_input(t.graph, x, none, d, c->axis, 0)
                         : rlxvk_layer_norm_backward_input(t.graph, x, none, d, c->axis, 0));
    trial_output(&t, rms ? rlxvk_rms_norm_backward_parameters(t.graph, x, d, c->axis, 0)
                         : rlxvk_layer_norm_backward_parameters(t.graph, x, d, c->axis, 0));
    snprintf(t.label, sizeof t.label, "gradients of %s of %llu x %llu x %llu, %s",
             rms ? "rms norm" : "layer norm", (unsigned long long)c->v.outer,
             (unsigned long long)c->v.length, (unsigned long long)c->v.inner,
             variant ? variant : "by table");
    trial_compile(&t, variant);
    for (size_t f = 0; f < sizeof fills / sizeof *fills; f++) {
        float *data = filled(fills[f], c->v);
        trial_give(&t, 0, data, numel);
        trial_give(&t, 1, dy, numel);
        trial_run(&t, (float *[]){dx, both}, (uint64_t[]){numel, 2 * c->v.length});
        expect_input_gradient(&t, fill_names[fills[f]], c->v, data, rms, dy, dx);
        expect_gamma_gradient(&t, fill_names[fills[f]], c->v, data, rms, dy, both);
        free(data);
    }
    free(dy);
    free(dx);
    free(both);
    trial_end(&t);
}

static void walk_gradients(const char *variant)
{
    for (size_t i = 0; i < NORM_CASES; i++) {
        walk_gradient(&norm_cases[i], false, variant);
        walk_gradient(&norm_cases[i], true, variant);
    }
}

static void gradients_of_norms_do(void **state)
{
    (void)state;
    each_variant(walk_gradients);
}

/* ---- Rows of several sizes side by side ---- */

static void walk_among(uint64_t rows, uint64_t n, int op, const float *x, const float *dy, float *y,
                       const char *variant)
{
    trial t;
    trial_begin(&t);
    rlxvk_shape s = RLXVK_SHAPE((int64_t)rows, (int64_t)n);
    rlxvk_tensor a = trial_input(&t, RLXVK_F32, s), d = trial_input(&t, RLXVK_F32, s);
    trial_output(&t, op == 0 ? rlxvk_layer_norm_backward_input(t.graph, a, RLXVK_NONE, d, -1, 1e-5f)
                     : op == 1 ? rlxvk_rms_norm_backward_input(t.graph, a, RLXVK_NONE, d, -1, 1e-5f)
                               : rlxvk_layer_norm(t.graph, a, RLXVK_NONE,
                                                  rlxvk_narrow(t.graph, d, 0, 0, 1), -1, 1e-5f));
    trial_compile(&t, variant);
    trial_give(&t, 0, x, rows * n);
    trial_give(&t, 1, dy, rows * n);
    trial_run_one(&t, y, rows * n);
    trial_end(&t);
}

/* A row's result may not depend on the other rows of its workgroup. It is the same among rows of
 * other magnitudes as among rows of its own. */
static void walk_mixed(const char *variant)
{
    static const uint64_t lengths[] = {3, 20, 49};
    enum { ROWS = 67, MOST = 67 * 49, PERIOD = 9 };
    static float x[MOST], dy[MOST], y[MOST], alike[MOST];
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int op = 0; op < 3; op++) {
            uint64_t n = lengths[i];
            for (uint64_t k = 0; k < ROWS * n; k++) {
                x[k] = (float)noise(k) * (k / n % PERIOD == 1 ? 1e25f : 1);
                dy[k] = (float)noise(k + 7);
            }
            walk_among(ROWS, n, op, x, dy, y, variant);
            for (int large = 0; large < 2; large++) {
                for (uint64_t k = 0; k < ROWS * n; k++)
                    x[k] = (float)noise(k) * (large ? 1e25f : 1);
                walk_among(ROWS, n, op, x, dy, alike, variant);
                for (uint64_t r = 0; r < ROWS; r++)
                    if ((r % PERIOD == 1) == large &&
                        memcmp(y + r * n, alike + r * n, n * sizeof *y) != 0)
                        fail_msg("op %d, %llu elements, %s: row %llu is another among others", op,
                                 (unsigned long long)n, variant ? variant : "by table",
                                 (unsigned long long)r);
            }
        }
}

static void rows_among_others_stay_the_same(void **state)
{
    (void)state;
    each_variant(walk_mixed);
}

/* ---- Norms within products ---- */

static void walk_projection(rlxvk_dtype dtype, bool apart, float eps, double size)
{
    enum { K = 96, N = 40 };
    float x[K], gamma[K], w[N * K], y[N];
    double square = 0;
    trial t;
    for (int i = 0; i < K; i++) {
        x[i] = (float)(size * noise((uint64_t)i));
        gamma[i] = (float)(1 + 0.5 * noise((uint64_t)i + 100));
        square += (double)x[i] * x[i] / K;
    }
    for (int i = 0; i < N * K; i++)
        w[i] = (float)((int)(scrambled((uint64_t)i) % 65) - 32) / 32;
    trial_begin(&t);
    rlxvk_tensor a = trial_input(&t, RLXVK_F32, RLXVK_SHAPE(1, K)),
                 b = trial_input(&t, RLXVK_F32, RLXVK_SHAPE(K));
    rlxvk_tensor c = rlxvk_param(t.graph, "w", dtype, RLXVK_SHAPE(N, K));
    rlxvk_projection_options o = {.gamma = b, .epsilon = eps};
    trial_output(&t, apart
                         ? rlxvk_matmul(t.graph, rlxvk_rms_norm(t.graph, a, b, RLXVK_NONE, -1, eps),
                                        rlxvk_transpose(t.graph, c, (int32_t[]){1, 0}, 2))
                         : rlxvk_projection(t.graph, a, c, &o));
    snprintf(t.label, sizeof t.label, "projection of %g, eps %g%s", size, (double)eps,
             apart ? ", of a norm and a product" : "");
    trial_compile(&t, NULL);
    expect_ok(rlxvk_set_param_typed(t.executable, "w", w, 4 * N * K, RLXVK_F32));
    trial_give(&t, 0, x, K);
    trial_give(&t, 1, gamma, K);
    trial_run_one(&t, y, N);
    for (int n = 0; n < N; n++) {
        double sum = 0, magnitude = 0, flushed = 0;
        for (int i = 0; i < K; i++) {
            double term = x[i] / sqrt(square + eps) * gamma[i] * w[n * K + i];
            sum += term;
            magnitude += fabs(term);
            /* Some devices flush denormals, both operands and products in any order. */
            if (fabs((double)x[i] * w[n * K + i]) * fmin(1, gamma[i]) < 0x1p-126)
                flushed += fabs(term);
        }
        /* Sums of products may be flushed too, and products may cancel. Eight times is enough. */
        flushed += 8 * 0x1p-126 / sqrt(square + eps);
        expect_close(&t, "y", (uint64_t)n, y[n], sum, 1e-5 * magnitude + flushed);
    }
    trial_end(&t);
}

static void norms_within_products_do(void **state)
{
    static const double sizes[] = {1e37, 1e25, 1e18, 1, 1e-25, 1e-36};
    static const rlxvk_dtype types[] = {RLXVK_F32, RLXVK_F16};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int j = 0; j < 4; j++) {
            if (sizes[i] < 1e36)
                walk_projection(types[j & 1], j & 2, 1e-6f, sizes[i]);
            if (sizes[i] < 1e36)
                walk_projection(types[j & 1], j & 2, 0, sizes[i]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(norms_take_rows_of_any_size),
        cmocka_unit_test(norms_of_images_do),
        cmocka_unit_test(batch_norm_learns_from_rows_of_any_size),
        cmocka_unit_test(batch_norm_inference_subtracts_what_it_must),
        cmocka_unit_test(gradients_of_norms_do),
        cmocka_unit_test(rows_among_others_stay_the_same),
        cmocka_unit_test(norms_within_products_do),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
