/*
 * Batches in parts: one executable adds the gradients of a part to sums. Another one shares its
 * params. It does the same for the last part and then takes the step. Both together must match an
 * executable that takes the batch at once. The test runs three rounds, because the sums must begin
 * anew in each. Before the first round they hold NaN.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "graph/graph.h"
#include "support/harness.h"
#include "support/random_graph.h"

#include <rlxvk_train.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#define PARTS   4
#define PART    8
#define BATCH   (PARTS * PART)
#define IN      12
#define HIDDEN  16
#define CLASSES 5
#define MOST    (IN * HIDDEN)

enum { W1, B1, GAMMA, W2, PARAMS };
static const char *const names[] = {"w1", "b1", "gamma", "w2"};

static rlxvk_shape shape_of(int i)
{
    return i == W1   ? RLXVK_SHAPE(IN, HIDDEN)
           : i == W2 ? RLXVK_SHAPE(HIDDEN, CLASSES)
                     : RLXVK_SHAPE(HIDDEN);
}

static uint64_t length_of(int i)
{
    rlxvk_shape s = shape_of(i);
    return shape_numel(&s);
}

typedef enum mode { AT_ONCE, ADD, ADD_AND_STEP } mode;

/* The mean loss over `rows` of a small net of normalized GELUs. */
static rlxvk_tensor loss_of(rlxvk_graph *g, int64_t rows, const rlxvk_tensor p[PARAMS])
{
    static const int32_t axis = 0;
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(rows, IN));
    rlxvk_tensor labels = rlxvk_input(g, "labels", RLXVK_F32, RLXVK_SHAPE(rows));
    rlxvk_tensor h = rlxvk_gelu(g, rlxvk_add(g, rlxvk_matmul(g, x, p[W1]), p[B1]));
    h = rlxvk_layer_norm(g, h, p[GAMMA], RLXVK_NONE, -1, 1e-5f);
    h = rlxvk_softmax_cross_entropy(g, rlxvk_matmul(g, h, p[W2]), labels);
    return rlxvk_reduce_mean(g, h, &axis, 1, false);
}

static rlxvk_tensor named(rlxvk_graph *g, const char *prefix, int i)
{
    char name[16];
    snprintf(name, sizeof name, "%s.%s", prefix, names[i]);
    return rlxvk_param(g, name, RLXVK_F32, shape_of(i));
}

/* Outputs: the loss, then the sums of the gradients so far. */
static rlxvk_executable *compile(mode m, rlxvk_executable *other)
{
    const rlxvk_adamw_options options = {0.01f, 0.9f, 0.99f, 1e-3f, 0.01f, 0};
    rlxvk_tensor p[PARAMS], gradients[PARAMS], keep = RLXVK_NONE;
    rlxvk_optimizer_data data = {RLXVK_NONE, RLXVK_NONE};
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    expect_ok(rlxvk_graph_create(&g));
    for (int i = 0; i < PARAMS; i++)
        p[i] = rlxvk_param(g, names[i], RLXVK_F32, shape_of(i));
    rlxvk_tensor loss = loss_of(g, m == AT_ONCE ? BATCH : PART, p);
    rlxvk_grad(g, loss, RLXVK_NONE, p, PARAMS, gradients);
    rlxvk_graph_output(g, loss);
    if (m != AT_ONCE)
        keep = rlxvk_input(g, "keep", RLXVK_F32, RLXVK_SHAPE(1));
    if (m != ADD)
        data.schedule = rlxvk_input(g, "schedule", RLXVK_F32, RLXVK_SHAPE(3));
    if (m == ADD_AND_STEP)
        data.gradient_scale =
            rlxvk_constant(g, RLXVK_F32, RLXVK_SCALAR, &(float){1.0f / PARTS}, sizeof(float));
    for (int i = 0; i < PARAMS; i++) {
        if (m != AT_ONCE)
            gradients[i] = rlxvk_accumulate(g, named(g, "sum", i), gradients[i], keep);
        rlxvk_graph_output(g, gradients[i]);
        if (m != ADD)
            rlxvk_adamw(g, p[i], gradients[i], named(g, "m", i), named(g, "v", i), &options, &data,
                        NULL);
    }
    expect_ok(rlxvk_graph_status(g));
    expect_ok(rlxvk_compile(shared_context, g,
                            &(rlxvk_compile_options){.share_with = other, .forbid_host = RLXVK_ON},
                            &e));
    rlxvk_graph_destroy(g);
    return e;
}

static void set(rlxvk_executable *e, const char *prefix, int i, const float *values)
{
    char name[16];
    snprintf(name, sizeof name, "%s%s%s", prefix, *prefix ? "." : "", names[i]);
    expect_ok(rlxvk_set_param(e, name, values, length_of(i)));
}

static void set_start(rlxvk_executable *e, bool sums)
{
    random_source r = {17};
    for (int i = 0; i < PARAMS; i++) {
        float values[MOST], zeros[MOST] = {0}, nans[MOST];
        for (int k = 0; k < MOST; k++) {
            values[k] = (i == GAMMA) + 0.5f * random_real(&r);
            nans[k] = NAN;
        }
        set(e, "", i, values);
        set(e, "m", i, zeros);
        set(e, "v", i, zeros);
        if (sums)
            set(e, "sum", i, nans);
    }
}

/* Returns the loss and copies the other outputs to `gradients`. */
static double run(rlxvk_executable *e, mode m, int step, int part, const float *x,
                  const float *labels, float gradients[PARAMS][MOST])
{
    const uint64_t rows = m == AT_ONCE ? BATCH : PART;
    const float schedule[] = {0.01f, (float)(1 - pow(0.9f, step)), (float)(1 - pow(0.99f, step))};
    const float keep = part > 0;
    rlxvk_run_input in[4] = {{.name = "x", .data = x + part * PART * IN, .length = rows * IN},
                             {.name = "labels", .data = labels + part * PART, .length = rows}};
    rlxvk_run_output out[1 + PARAMS];
    float loss;
    size_t count = 2;
    if (m != AT_ONCE)
        in[count++] = (rlxvk_run_input){.name = "keep", .data = &keep, .length = 1};
    if (m != ADD)
        in[count++] = (rlxvk_run_input){.name = "schedule", .data = schedule, .length = 3};
    out[0] = (rlxvk_run_output){.index = 0, .buffer = &loss, .length = 1};
    for (size_t i = 0; i < PARAMS; i++)
        out[1 + i] =
            (rlxvk_run_output){.index = 1 + i, .buffer = gradients[i], .length = length_of((int)i)};
    expect_ok(rlxvk_run(e, in, count, out, 1 + PARAMS));
    return loss;
}

/* Equal except for rounding, because sums of 32 terms are added in another order. */
static void expect_near(const char *what, const float *got, const float *wanted, float factor,
                        uint64_t count)
{
    double largest = 0;
    for (uint64_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(wanted[i]));
    for (uint64_t i = 0; i < count; i++) {
        if (!(fabs(got[i] * factor - wanted[i]) <= 32 * 0x1p-24 * largest))
            print_error("%s: element %d is %.9g, wanted %.9g\n", what, (int)i, got[i] * factor,
                        wanted[i]);
        assert_true(fabs(got[i] * factor - wanted[i]) <= 32 * 0x1p-24 * largest);
    }
}

static void parts_make_a_batch(void **state)
{
    static float x[BATCH * IN], labels[BATCH], sums[PARAMS][MOST], gradients[PARAMS][MOST];
    rlxvk_executable *whole = compile(AT_ONCE, NULL), *step = compile(ADD_AND_STEP, NULL);
    rlxvk_executable *add = compile(ADD, step);
    random_source r = {3};
    (void)state;
    set_start(whole, false);
    set_start(step, true);
    for (int round = 1; round <= 3; round++) {
        double loss = 0;
        random_fill(&r, false, x, BATCH * IN);
        for (int i = 0; i < BATCH; i++)
            labels[i] = (float)random_below(&r, CLASSES);
        for (int part = 0; part < PARTS; part++) {
            bool last = part == PARTS - 1;
            loss += run(last ? step : add, last ? ADD_AND_STEP : ADD, round, part, x, labels, sums);
        }
        double wanted = run(whole, AT_ONCE, round, 0, x, labels, gradients);
        assert_true(fabs(loss / PARTS - wanted) <= 1e-6 * wanted);
        for (int i = 0; i < PARAMS; i++) {
            float a[MOST], b[MOST];
            expect_near("gradient", sums[i], gradients[i], 1.0f / PARTS, length_of(i));
            expect_ok(rlxvk_read_param(add, names[i], a, length_of(i)));
            expect_ok(rlxvk_read_param(whole, names[i], b, length_of(i)));
            expect_near(names[i], a, b, 1, length_of(i));
        }
    }
    rlxvk_executable_destroy(add);
    rlxvk_executable_destroy(step);
    rlxvk_executable_destroy(whole);
}

/* Two errors: the sum is a computed tensor, so it cannot be kept; or the sum is also given as
 * `keep`. */
static void refusals(void **state)
{
    rlxvk_graph *g = NULL;
    (void)state;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(3));
    rlxvk_tensor keep = rlxvk_input(g, "keep", RLXVK_F32, RLXVK_SCALAR);
    rlxvk_accumulate(g, rlxvk_exp(g, x), x, keep);
    expect_error(rlxvk_graph_status(g), RLXVK_E_ATTR, "input or a param");
    rlxvk_graph_destroy(g);
    expect_ok(rlxvk_graph_create(&g));
    x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(1));
    rlxvk_accumulate(g, x, rlxvk_input(g, "t", RLXVK_F32, RLXVK_SHAPE(1)), x);
    expect_error(rlxvk_graph_status(g), RLXVK_E_ATTR, "one tensor");
    rlxvk_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(parts_make_a_batch),
                                       cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
