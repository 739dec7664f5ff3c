#include "support/ranges.h"

#include "op/choice/choice.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

/* ---- Data ---- */

const char *const fill_names[] = {"1e25",  "1e18",  "+-3e38", "3e38",
                                  "1e-25", "1e-38", "mixed",  "rows"};

uint64_t scrambled(uint64_t i)
{
    i = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    i = (i ^ i >> 31) * UINT64_C(0xbf58476d1ce4e5b9);
    return i ^ i >> 29;
}

double noise(uint64_t i)
{
    return (double)(scrambled(i) % 20001) / 10000 - 1;
}

static float of_row(uint64_t row, uint64_t element, uint64_t i)
{
    switch (row % 9) {
    case 0:
        return (float)(1e25 * noise(i));
    case 1:
        return (float)(1e-25 * noise(i));
    case 2:
        return scrambled(i) & 1 ? 3e38f : -3e38f;
    case 3:
        return 0;
    case 4:
        return 3e38f;
    case 5:
        return element == 1 ? INFINITY : (float)noise(i);
    case 6:
        return element == 2 ? NAN : (float)(1e25 * noise(i));
    case 7:
        return 1e4f;
    default:
        return (float)noise(i);
    }
}

static float element(fill f, view v, uint64_t i)
{
    static const double mixed[] = {1e25, 1, 1e-25};
    double x = noise(i);
    switch (f) {
    case LARGE:
        return (float)(1e25 * x);
    case WIDE:
        return (float)((1 + 0.01 * x) * (scrambled(i) & 4 ? 1e18 : -1e18));
    case FAR:
        return scrambled(i) & 4 ? 3e38f : -3e38f;
    case HIGH:
        return 3e38f;
    case TINY:
        return (float)(1e-25 * x);
    case SMALLEST:
        return (float)(1e-38 * x);
    case MIXED:
        return (float)(x * mixed[scrambled(i + 77) % 3]);
    default:
        return of_row(i / v.inner / v.length * v.inner + i % v.inner, i / v.inner % v.length, i);
    }
}

float *filled(fill f, view v)
{
    uint64_t count = v.outer * v.length * v.inner;
    float *x = malloc((size_t)count * sizeof *x);
    assert_non_null(x);
    for (uint64_t i = 0; i < count; i++)
        x[i] = element(f, v, i);
    return x;
}

float *ordinary(uint64_t count, uint64_t seed)
{
    float *x = malloc((size_t)count * sizeof *x);
    assert_non_null(x);
    for (uint64_t i = 0; i < count; i++)
        x[i] = (float)(1.5 + noise(i + seed));
    return x;
}

/* ---- Graphs ---- */

static const char *const input_names[MOST_INPUTS] = {"a", "b", "c", "d", "e"};

void trial_begin(trial *t)
{
    *t = (trial){0};
    expect_ok(rlxvk_graph_create(&t->graph));
}

rlxvk_tensor trial_input(trial *t, rlxvk_dtype dtype, rlxvk_shape shape)
{
    return rlxvk_input(t->graph, input_names[t->inputs++], dtype, shape);
}

void trial_output(trial *t, rlxvk_tensor y)
{
    rlxvk_graph_output(t->graph, y);
    t->outputs++;
}

void trial_compile(trial *t, const char *variant)
{
    rlxvk_variant v = {"rows", variant};
    rlxvk_compile_options o = {.forbid_host = RLXVK_ON, .variants = &v, .variant_count = !!variant};
    expect_ok(rlxvk_graph_status(t->graph));
    expect_ok(rlxvk_compile(shared_context, t->graph, &o, &t->executable));
}

void trial_give(trial *t, size_t i, const float *data, uint64_t length)
{
    t->data[i] = data;
    t->lengths[i] = (size_t)length;
}

void trial_run(trial *t, float *const *outputs, const uint64_t *lengths)
{
    rlxvk_run_input in[MOST_INPUTS];
    rlxvk_run_output out[MOST_OUTPUTS];
    for (size_t i = 0; i < t->inputs; i++)
        in[i] = (rlxvk_run_input){.name = input_names[i],
                                  .data = t->data[i],
                                  .length = t->lengths[i],
                                  .f32_words = true};
    for (size_t i = 0; i < t->outputs; i++)
        out[i] = (rlxvk_run_output){.index = i,
                                    .buffer = outputs[i],
                                    .length = (size_t)lengths[i],
                                    .f32_words = true};
    expect_ok(rlxvk_run(t->executable, in, t->inputs, out, t->outputs));
}

void trial_run_one(trial *t, float *y, uint64_t length)
{
    trial_run(t, &y, &length);
}

void trial_end(trial *t)
{
    rlxvk_executable_destroy(t->executable);
    rlxvk_graph_destroy(t->graph);
}

void expect_close(const trial *t, const char *what, uint64_t i, double got, double wanted,
                  double bound)
{
    bool right = isnan(wanted)   ? isnan(got)
                 : isinf(wanted) ? got == wanted
                                 : fabs(got - wanted) <= bound;
    if (!right)
        fail_msg("%s, %s: element %llu is %.9g, wanted %.9g within %.3g", t->label, what,
                 (unsigned long long)i, got, wanted, bound);
}

void each_variant(void (*walk)(const char *variant))
{
    const char *name;
    walk(NULL);
    for (size_t i = 0; (name = choice_row_name(&choice_kinds[CHOICE_rows], i)); i++)
        walk(name);
}
