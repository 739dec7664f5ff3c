/*
 * Gradients of scans beyond the conformance cases: a worked example, refusals, the scratch memory,
 * and the same bits in every run.
 */
#include "op/op.h"
#include "plan/schedule.h"
#include "support/harness.h"
#include "support/profiles.h"

#include <rlxvk_train.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static rlxvk_graph *new_graph(void)
{
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_graph_create(&g));
    return g;
}

static rlxvk_tensor leaf(rlxvk_graph *g, const char *name, rlxvk_shape shape)
{
    return rlxvk_input(g, name, RLXVK_F32, shape);
}

static rlxvk_tensor ones(rlxvk_graph *g, rlxvk_shape shape)
{
    float one = 1;
    rlxvk_tensor t = rlxvk_constant(g, RLXVK_F32, RLXVK_SCALAR, &one, sizeof one);
    return rlxvk_expand(g, t, shape);
}

/* ---- Refusals ---- */

static void refuse(rlxvk_graph *g, rlxvk_tensor y, rlxvk_tensor wrt, const char *part)
{
    rlxvk_tensor gradient;
    rlxvk_grad(g, y, ones(g, rlxvk_tensor_shape(g, y)), &wrt, 1, &gradient);
    expect_error(rlxvk_graph_status(g), RLXVK_E_UNSUPPORTED, part);
    rlxvk_graph_destroy(g);
}

static void test_refusals(void **state)
{
    rlxvk_graph *g = new_graph();
    rlxvk_shape wide = RLXVK_SHAPE(1, 2, 1, 3), narrow = RLXVK_SHAPE(1, 2, 1);
    rlxvk_tensor x = leaf(g, "x", wide), dt = leaf(g, "dt", narrow), db;
    rlxvk_tensor a = leaf(g, "a", RLXVK_SHAPE(1)), m = leaf(g, "m", RLXVK_SHAPE(1, 1, 3, 3));
    (void)state;
    refuse(g, rlxvk_mamba2(g, x, dt, a, x, x, m, true, NULL), x, "in_place false");
    g = new_graph();
    x = leaf(g, "x", wide), dt = leaf(g, "dt", narrow), m = leaf(g, "m", RLXVK_SHAPE(1, 1, 3, 3));
    refuse(g, rlxvk_gated_delta_net(g, x, x, x, dt, dt, m, true, NULL), x, "gated_delta_net");
    g = new_graph();
    x = leaf(g, "x", wide), dt = leaf(g, "dt", narrow), a = leaf(g, "a", RLXVK_SHAPE(1));
    (void)rlxvk_mamba2_backward(g, x, dt, a, x, x, RLXVK_NONE, x, RLXVK_NONE, NULL, NULL, &db, NULL,
                                NULL);
    refuse(g, db, x, "mamba2_backward");
    g = new_graph();
    x = leaf(g, "x", RLXVK_SHAPE(1, 1, 1, 600)), dt = leaf(g, "dt", RLXVK_SHAPE(1, 1, 1));
    refuse(g, rlxvk_gated_delta_net(g, x, x, x, dt, dt, RLXVK_NONE, false, NULL), x, "at most 512");
}

/* ---- Scratch memory ---- */

/* Returns the words of temporaries that the result needs on a large GPU. */
static double scratch_of(rlxvk_graph *g, rlxvk_tensor result)
{
    static const device_profile profile = ORDINARY_GPU;
    const schedule_options options = {.profile = &profile, .forbid_host = true};
    schedule s = {0};
    double words = 0;
    rlxvk_graph_output(g, result);
    expect_ok(rlxvk_graph_status(g));
    expect_ok(schedule_create(g, &options, &s));
    for (size_t i = 0; i < s.temporaries.count; i++)
        words += (double)s.temporaries.items[i].bytes / sizeof(float);
    schedule_destroy(&s);
    rlxvk_graph_destroy(g);
    return words;
}

static double scan_scratch(int64_t batch, int64_t steps, int64_t channels, int64_t size)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = leaf(g, "x", RLXVK_SHAPE(batch, steps, channels));
    rlxvk_tensor a = leaf(g, "a", RLXVK_SHAPE(channels, size));
    rlxvk_tensor b = leaf(g, "b", RLXVK_SHAPE(batch, steps, size));
    return scratch_of(g,
                      rlxvk_selective_scan_backward(g, x, x, a, b, b, x, NULL, NULL, NULL, NULL));
}

static double mamba2_scratch(int64_t steps, int64_t heads, int64_t width, int64_t size)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = leaf(g, "x", RLXVK_SHAPE(1, steps, heads, width));
    rlxvk_tensor dt = leaf(g, "dt", RLXVK_SHAPE(1, steps, heads));
    rlxvk_tensor a = leaf(g, "a", RLXVK_SHAPE(heads));
    rlxvk_tensor b = leaf(g, "b", RLXVK_SHAPE(1, steps, heads, size));
    return scratch_of(g, rlxvk_mamba2_backward(g, x, dt, a, b, b, RLXVK_NONE, x, RLXVK_NONE, NULL,
                                               NULL, NULL, NULL, NULL));
}

static double delta_scratch(int64_t steps, int64_t heads, int64_t size)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor q = leaf(g, "q", RLXVK_SHAPE(1, steps, heads, size));
    rlxvk_tensor gates = leaf(g, "g", RLXVK_SHAPE(1, steps, heads));
    return scratch_of(g, rlxvk_gated_delta_net_backward(g, q, q, q, gates, gates, RLXVK_NONE, q,
                                                        RLXVK_NONE, NULL, NULL, NULL, NULL, NULL));
}

/* The unit is all states of all steps. A few percent must be enough. If there are few channels, it
 * is more, because the time is cut into many segments. */
static void test_scratch(void **state)
{
    (void)state;
    double scan = scan_scratch(4, 2048, 4096, 16) / (4 * 2048 * 4096 * 16.0);
    double mamba2 = mamba2_scratch(2048, 64, 64, 128) / (2048 * 64 * 64 * 128.0);
    double delta = delta_scratch(2048, 32, 128) / (2048 * 32 * 128 * 128.0);
    double narrow = scan_scratch(1, 2048, 256, 16) / (2048 * 256 * 16.0);
    assert_true(scan < 0.08 && mamba2 < 0.12 && delta < 0.12 && narrow < 0.4);
}

/* ---- Values ---- */

/* One channel, one number, two steps. By hand: h = 1/2, then h' = e^-1 / 2 and h = h' + 2. G = 1 at
 * the last step, then e^-1 + 1. */
static void test_example(void **state)
{
    const float x[] = {1, 2}, delta[] = {0.5f, 1}, rate = -1, one[] = {1, 1};
    const float e = 0.36787944f, wanted[] = {0.5f * (1 + e), 1, 1 + e, 2 - e / 2, e / 2,
                                             0.5f * (1 + e), 2, 0.5f,  2 + e / 2};
    rlxvk_graph *g = new_graph();
    rlxvk_shape wide = RLXVK_SHAPE(1, 2, 1);
    rlxvk_tensor ones_tensor = rlxvk_constant(g, RLXVK_F32, wide, one, sizeof one), d[5];
    rlxvk_executable *exe = NULL;
    float got[2];
    size_t at = 0;
    (void)state;
    d[0] = rlxvk_selective_scan_backward(g, rlxvk_constant(g, RLXVK_F32, wide, x, sizeof x),
                                         rlxvk_constant(g, RLXVK_F32, wide, delta, sizeof delta),
                                         rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(1, 1), &rate,
                                                        sizeof rate),
                                         ones_tensor, ones_tensor, ones_tensor, &d[1], &d[2], &d[3],
                                         &d[4]);
    for (size_t i = 0; i < 5; i++)
        rlxvk_graph_output(g, d[i]);
    expect_ok(rlxvk_compile(shared_context, g, NULL, &exe));
    for (size_t i = 0; i < 5; i++) {
        size_t count = i == 2 ? 1 : 2;
        const rlxvk_run_output out = {i, got, count, RLXVK_F32};
        expect_ok(rlxvk_run(exe, NULL, 0, &out, 1));
        for (size_t k = 0; k < count; k++)
            assert_float_equal(got[k], wanted[at++], 1e-6);
    }
    rlxvk_executable_destroy(exe);
    rlxvk_graph_destroy(g);
}

#define STEPS    300
#define CHANNELS 5
#define SIZE     3

/* Two runs, the second by another executable. */
static void test_same_bits(void **state)
{
    enum { WIDE = STEPS * CHANNELS, COUNT = CHANNELS * SIZE };
    float data[WIDE], got[2][COUNT];
    (void)state;
    for (size_t i = 0; i < WIDE; i++)
        data[i] = (float)((i * 7919) % 1000) / 1000;
    for (size_t run = 0; run < 2; run++) {
        rlxvk_graph *g = new_graph();
        rlxvk_executable *exe = NULL;
        rlxvk_tensor x = leaf(g, "x", RLXVK_SHAPE(1, STEPS, CHANNELS)), da;
        rlxvk_tensor a = rlxvk_narrow(g, rlxvk_neg(g, x), 1, 0, SIZE);
        rlxvk_tensor b = rlxvk_narrow(g, x, 2, 0, SIZE);
        a = rlxvk_reshape(g, a, RLXVK_SHAPE(CHANNELS, SIZE));
        (void)rlxvk_selective_scan_backward(g, x, x, a, b, b, x, NULL, &da, NULL, NULL);
        rlxvk_graph_output(g, da);
        const rlxvk_run_input in = {"x", data, WIDE, RLXVK_F32};
        const rlxvk_run_output out = {0, got[run], COUNT, RLXVK_F32};
        expect_ok(rlxvk_compile(shared_context, g, NULL, &exe));
        expect_ok(rlxvk_run(exe, &in, 1, &out, 1));
        rlxvk_executable_destroy(exe);
        rlxvk_graph_destroy(g);
    }
    assert_memory_equal(got[0], got[1], sizeof got[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_scratch),
                                       cmocka_unit_test(test_example),
                                       cmocka_unit_test(test_same_bits)};
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
