/*
 * Welch's average on a device, tested by properties that always hold. The density must add up to
 * the power of the signal's frames (Parseval). Samples that are in no frame must not matter, and
 * runs must give the same bits. Also tests the choice of tiles, on made-up devices.
 */
#include "op/spectral/fft.h"
#include "support/harness.h"
#include "support/rewritten.h"

#include <rlxvk_ops_signal.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SAMPLES 20000
#define MOST    2049 /* bins */

static float signal[SAMPLES];

/* A tone in noise. */
static void fill_signal(void)
{
    uint32_t state = 1;
    for (size_t i = 0; i < SAMPLES; i++) {
        state = state * 1664525u + 1013904223u;
        signal[i] = (float)sin(0.3 * (double)i) + (float)(state >> 8) * 0x1p-24f - 0.5f;
    }
}

/* Compiles the average of the first `samples` samples. */
static rlxvk_executable *compile(int64_t samples, const rlxvk_welch_frame_options *frames)
{
    rlxvk_graph *g = new_graph();
    rlxvk_executable *e = NULL;
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(samples));
    rlxvk_graph_output(g, rlxvk_welch(g, x, RLXVK_NONE, frames));
    expect_ok(rlxvk_graph_status(g));
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    rlxvk_graph_destroy(g);
    return e;
}

static void run(rlxvk_executable *e, const float *x, int64_t samples, float *out, size_t bins)
{
    rlxvk_run_input in = {.name = "x", .data = x, .length = (size_t)samples};
    rlxvk_run_output result = {.index = 0, .buffer = out, .length = bins};
    expect_ok(rlxvk_run(e, &in, 1, &result, 1));
}

/* The mean over the frames of the sums of their squares. */
static double power_of(int64_t samples, const rlxvk_welch_frame_options *f)
{
    double sum = 0, count = 0;
    for (int64_t start = 0; start + f->length <= samples; start += f->hop, count++)
        for (int64_t i = 0; i < f->length; i++)
            sum += (double)signal[start + i] * signal[start + i];
    return sum / count;
}

static const rlxvk_welch_frame_options shapes[] = {
    {.length = 1, .hop = 7},      {.length = 30, .hop = 11},
    {.length = 33, .hop = 40},    {.length = 100, .hop = 50, .n_fft = 128},
    {.length = 1024, .hop = 512}, {.length = 1000, .hop = 1, .n_fft = 1001},
};

static void density_adds_up(void **state)
{
    float out[MOST];
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(shapes); i++) {
        int64_t samples = shapes[i].hop == 1 ? 1100 : 19001 + (int64_t)i;
        int64_t n = shapes[i].n_fft ? shapes[i].n_fft : shapes[i].length, bins = n / 2 + 1;
        rlxvk_executable *e = compile(samples, &shapes[i]);
        double sum = 0, power = power_of(samples, &shapes[i]) * (double)n;
        run(e, signal, samples, out, (size_t)bins);
        for (int64_t k = 0; k < bins; k++)
            sum += out[k];
        assert_true(fabs(sum - power) < 1e-6 * power);
        rlxvk_executable_destroy(e);
    }
}

/* NaN is between frames and after the last one. The frames are padded with zeros, which may lie
 * over NaN. */
static void gaps_do_not_count(void **state)
{
    static const rlxvk_welch_frame_options frames = {.length = 48, .hop = 100, .n_fft = 64};
    float *holes = malloc(sizeof signal), with[33], without[33];
    (void)state;
    assert_non_null(holes);
    for (int64_t samples = 148; samples < 900; samples += 51) {
        rlxvk_executable *e = compile(samples, &frames);
        for (int64_t i = 0; i < samples; i++) {
            bool last = i / 100 * 100 + 48 > samples;
            holes[i] = i % 100 < 48 && !last ? signal[i] : NAN;
        }
        run(e, holes, samples, with, 33);
        run(e, signal, samples, without, 33);
        assert_memory_equal(with, without, sizeof with);
        rlxvk_executable_destroy(e);
    }
    free(holes);
}

static void runs_are_alike(void **state)
{
    static const rlxvk_welch_frame_options frames = {.length = 256, .hop = 64};
    rlxvk_executable *e = compile(SAMPLES, &frames);
    float first[129], again[129];
    (void)state;
    run(e, signal, SAMPLES, first, 129);
    for (int i = 0; i < 5; i++) {
        run(e, signal, SAMPLES, again, 129);
        assert_memory_equal(first, again, sizeof first);
    }
    rlxvk_executable_destroy(e);
}

/* ---- Tiles ---- */

static const device_profile profiles[] = {
    {.max_workgroup_invocations = 128, .shared_memory_bytes = 16384}, /* the baseline */
    {.max_workgroup_invocations = 1024, .shared_memory_bytes = 49152},
    {.max_workgroup_invocations = 256, .shared_memory_bytes = 32768, .portable = true},
};

static void check_tile(const device_profile *p, const fft_tile *t)
{
    uint32_t product = 1;
    for (uint32_t i = 0; i < t->stages; product *= t->radices[i++]) {
        uint64_t rounds = divide_up(t->n / t->radices[i], t->lanes);
        assert_true(t->radices[i] <= 16 && rounds * t->radices[i] <= 32);
    }
    assert_int_equal(product, t->n);
    assert_true(t->places >= t->rows * t->n && 4 * t->places <= p->shared_memory_bytes);
    assert_true(t->rows * t->lanes <= p->max_workgroup_invocations);
}

/* If the baseline has a tile for a length, every device has one. */
static void tiles_fit(void **state)
{
    (void)state;
    for (uint64_t n = 1; n <= 5000; n++) {
        fft_tile_problem problem = {n, 1, true};
        size_t forced = n % 2 ? VARIANT_NONE : n / 2 % welch_choice.count;
        bool fits = false, power = (n & (n - 1)) == 0;
        for (size_t d = 0; d < ARRAY_COUNT(profiles); d++) {
            fft_tile t;
            bool has = fft_tile_choose(&welch_choice, &profiles[d], &problem, forced, &t);
            if (has)
                check_tile(&profiles[d], &t);
            fits = d ? fits : has;
            assert_true(has || !fits);
        }
        if (n <= 4096 && fft_is_smooth(n, FFT_SMOOTH) && (n <= 2048 || power))
            assert_true(fits);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(density_adds_up),
        cmocka_unit_test(gaps_do_not_count),
        cmocka_unit_test(runs_are_alike),
        cmocka_unit_test(tiles_fit),
    };
    fill_signal();
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
