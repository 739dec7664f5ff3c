/*
 * Fourier transforms against FFTW: the exact transform on the host, the kernels, the choice of
 * passes on made-up devices, and the builders around fft. Each row has two tolerances: the relative
 * error in the 2-norm, and the largest error of an element.
 */
#include "exec/executable.h"
#include "op/spectral/fft.h"
#include "support/harness.h"

#include <fftw3.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static rlxvk_context *context;
static device_profile own;

static int open_device(void **state)
{
    (void)state;
    context = open_context(NULL);
    own = context->device->setup.profile;
    return 0;
}

static int close_device(void **state)
{
    (void)state;
    close_context(context);
    return 0;
}

static float noise(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (float)((double)(*seed >> 40) * 0x1p-23 - 1);
}

/* Transforms `rows` rows of n pairs in place. */
static void reference(double *x, int n, int rows, bool inverse, double scale)
{
    fftw_plan work =
        fftw_plan_many_dft(1, &n, rows, (fftw_complex *)x, NULL, 1, n, (fftw_complex *)x, NULL, 1,
                           n, inverse ? FFTW_BACKWARD : FFTW_FORWARD, FFTW_ESTIMATE);
    fftw_execute(work);
    fftw_destroy_plan(work);
    for (size_t i = 0; i < 2 * (size_t)n * (size_t)rows; i++)
        x[i] *= scale;
}

static double scale_of(int n, bool inverse, rlxvk_fft_norm norm)
{
    if (norm == RLXVK_FFT_ORTHO)
        return 1 / sqrt(n);
    return inverse && norm == RLXVK_FFT_INVERSE ? 1.0 / n : 1;
}

/* Runs a graph of one input and one output, and frees the graph. */
static void run_graph(rlxvk_graph *g, rlxvk_tensor y, const float *x, size_t x_length, float *out,
                      size_t length)
{
    rlxvk_executable *e = NULL;
    rlxvk_run_input in = {"x", x, x_length, .f32_words = true};
    rlxvk_run_output result = {0, out, length, .f32_words = true};
    rlxvk_graph_output(g, y);
    expect_ok(rlxvk_graph_status(g));
    expect_ok(rlxvk_compile(context, g, NULL, &e));
    expect_ok(rlxvk_run(e, &in, x != NULL, &result, 1));
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

static rlxvk_graph *new_graph(void)
{
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_graph_create(&g));
    return g;
}

/* Converts pairs to blocks, and back. */
static void to_blocks(const float *pairs, float *blocks, int n, int rows)
{
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < 2 * n; i++)
            blocks[2 * n * r + i % 2 * n + i / 2] = pairs[2 * n * r + i];
}
static void to_pairs(const float *blocks, float *pairs, int n, int rows)
{
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < 2 * n; i++)
            pairs[2 * n * r + i] = blocks[2 * n * r + i % 2 * n + i / 2];
}

static void run_fft(const float *x, float *y, int n, int rows, bool inverse, rlxvk_fft_norm norm,
                    bool block)
{
    size_t words = 2 * (size_t)n * (size_t)rows;
    rlxvk_graph *g = new_graph();
    float *in = malloc(words * sizeof *in), *out = malloc(words * sizeof *out);
    rlxvk_shape shape = RLXVK_SHAPE(rows, block ? 2 * n : n);
    rlxvk_tensor t = rlxvk_input(g, "x", block ? RLXVK_F32 : RLXVK_C64, shape);
    memcpy(in, x, words * sizeof *in);
    if (block)
        to_blocks(x, in, n, rows);
    run_graph(g, rlxvk_fft(g, t, inverse, norm), in, words, out, words);
    memcpy(y, out, words * sizeof *y);
    if (block)
        to_pairs(out, y, n, rows);
    free(in);
    free(out);
}

/* Checks both tolerances of a row. */
static void check_row(const float *got, const double *wanted, int n)
{
    double u = 0x1p-24, power = 0, error = 0, largest = 0, length = n;
    bool smooth = fft_is_smooth((uint64_t)n, 13);
    if (!smooth)
        length = (double)fft_next_smooth(2 * (uint64_t)n - 1);
    double l = log2(fmax(length, 2));
    for (int i = 0; i < 2 * n; i++) {
        double d = got[i] - wanted[i];
        power += wanted[i] * wanted[i];
        error += d * d;
        largest = fmax(largest, fabs(d));
    }
    double relative = smooth ? u * (2 + 2 * sqrt(l)) : u * (4 + 3 * sqrt(l));
    double absolute = (smooth ? 12 : 20) * u * sqrt(l + 1) * sqrt(power / n);
    if (sqrt(error) > relative * sqrt(power) || largest > absolute)
        fail_msg("N = %d: error %g of %g, largest %g of %g", n, sqrt(error / power), relative,
                 largest, absolute);
}

static void check_fft(int n, int rows, bool inverse, rlxvk_fft_norm norm, bool block)
{
    size_t words = 2 * (size_t)n * (size_t)rows;
    float *x = malloc(words * sizeof *x), *y = malloc(words * sizeof *y);
    double *wanted = malloc(words * sizeof *wanted);
    uint64_t seed = (uint64_t)n;
    for (size_t i = 0; i < words; i++)
        wanted[i] = x[i] = noise(&seed);
    run_fft(x, y, n, rows, inverse, norm, block);
    reference(wanted, n, rows, inverse, scale_of(n, inverse, norm));
    for (int r = 0; r < rows; r++)
        check_row(y + 2 * (size_t)n * (size_t)r, wanted + 2 * (size_t)n * (size_t)r, n);
    free(x);
    free(y);
    free(wanted);
}

/* ---- The exact transform ---- */

static void exact_agrees(void **state)
{
    static const int more[] = {97, 121, 1009, 1018, 3721, 4096, 4489, 10007, 65537, 1 << 17};
    (void)state;
    for (int i = 1; i <= 64 + (int)ARRAY_COUNT(more); i++) {
        int n = i <= 64 ? i : more[i - 65];
        double *x = malloc(2 * (size_t)n * sizeof *x), *y = malloc(2 * (size_t)n * sizeof *y);
        double error = 0, power = 0;
        uint64_t seed = (uint64_t)n;
        for (int k = 0; k < 2 * n; k++)
            x[k] = y[k] = noise(&seed);
        reference(y, n, 1, false, 1);
        expect_ok(fft_exact((complex_value *)(void *)x, (uint64_t)n));
        for (int k = 0; k < 2 * n; k++) {
            error += (x[k] - y[k]) * (x[k] - y[k]);
            power += y[k] * y[k];
        }
        assert_true(sqrt(error) <= 4e-15 * sqrt(power));
        free(x);
        free(y);
    }
}

/* ---- Kernels ---- */

static void lengths_agree(void **state)
{
    static const int lengths[] = {1,    2,    3,    4,    5,    6,     7,     8,     9,
                                  11,   13,   17,   60,   97,   128,   243,   400,   1000,
                                  1009, 2048, 4093, 4096, 6000, 10007, 65536, 65537, 1 << 20};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(lengths); i++)
        check_fft(lengths[i], lengths[i] > 5000 ? 1 : 3, i % 2, (rlxvk_fft_norm)(i % 3), i / 2 % 2);
    check_fft(4, 65536, false, RLXVK_FFT_NONE, false);
    check_fft(7, 20000, true, RLXVK_FFT_ORTHO, true);
}

/* Compares half spectra of real rows with whole spectra, and transforms them back. */
static void check_real(int n, int rows)
{
    size_t words = (size_t)n * (size_t)rows, bins = (size_t)n / 2 + 1;
    float *x = malloc(words * sizeof *x), *y = malloc(2 * bins * (size_t)rows * sizeof *y);
    double *wanted = malloc(2 * words * sizeof *wanted);
    uint64_t seed = (uint64_t)n;
    rlxvk_shape shape = RLXVK_SHAPE(rows, n);
    for (size_t i = 0; i < words; i++) {
        wanted[2 * i] = x[i] = noise(&seed);
        wanted[2 * i + 1] = 0;
    }
    rlxvk_graph *g = new_graph();
    rlxvk_tensor t = rlxvk_input(g, "x", RLXVK_F32, shape);
    run_graph(g, rlxvk_rfft_block(g, t, 0, RLXVK_FFT_ORTHO), x, words, y, 2 * bins * (size_t)rows);
    reference(wanted, n, rows, false, scale_of(n, false, RLXVK_FFT_ORTHO));
    for (int r = 0; r < rows; r++) {
        float *row = malloc(2 * (size_t)n * sizeof *row), *at = y + 2 * bins * (size_t)r;
        for (size_t k = 0; k < (size_t)n; k++) {
            size_t bin = MIN(k, (size_t)n - k);
            row[2 * k] = at[bin];
            row[2 * k + 1] = bin == k ? at[bins + bin] : -at[bins + bin];
        }
        check_row(row, wanted + 2 * (size_t)n * (size_t)r, n);
        free(row);
    }
    g = new_graph();
    t = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(rows, (int64_t)(2 * bins)));
    float *back = malloc(words * sizeof *back);
    run_graph(g, rlxvk_irfft_block(g, t, n, RLXVK_FFT_ORTHO), y, 2 * bins * (size_t)rows, back,
              words);
    for (size_t i = 0; i < words; i++)
        assert_true(fabsf(back[i] - x[i]) <= 4e-6f);
    free(back);
    free(x);
    free(y);
    free(wanted);
}

/* Forms that this device's own profile does not choose: one buffer, radix 16, gaps, three
 * passes. */
static void other_devices_agree(void **state)
{
    static const int more[] = {4, 16, 60, 121, 1024, 1009, 2187, 4096, 8192};
    static const int reals[] = {2, 6, 16, 34, 240, 2048, 2018, 30000};
    static const int lengths[] = {1, 2, 8,  16,  32,   128,  1024, 4096, 8192,
                                  3, 6, 60, 121, 1000, 1009, 2187, 5005, 17};
    (void)state;
    device_profile *p = &context->device->setup.profile;
    p->portable = false;
    for (size_t i = 0; i < ARRAY_COUNT(lengths); i++)
        check_fft(lengths[i], 3, i % 2, RLXVK_FFT_ORTHO, i % 3 == 0);
    fft_tiles = false; /* each takes long to compile, so half are here and half below */
    for (size_t i = 0; i < ARRAY_COUNT(lengths); i += 2)
        check_fft(lengths[i], 3, i % 2, RLXVK_FFT_ORTHO, i % 3 == 0);
    check_real(2048, 3);
    fft_tiles = true;
    for (size_t i = 0; i < ARRAY_COUNT(reals); i++)
        check_real(reals[i], 3);
    p->max_workgroup_invocations = 128;
    p->workgroup_size = 128;
    p->shared_memory_bytes = 16384;
    for (size_t i = 0; i < ARRAY_COUNT(more); i++)
        check_fft(more[i], 5, i % 2, RLXVK_FFT_NONE, i % 3 == 1);
    check_fft(1 << 20, 2, true, RLXVK_FFT_ORTHO, false); /* three passes */
    check_real(1 << 21, 1);
    fft_tiles = false;
    for (size_t i = 1; i < ARRAY_COUNT(lengths); i += 2)
        check_fft(lengths[i], 5, i % 2, RLXVK_FFT_NONE, i % 3 == 1);
    fft_tiles = true;
    p->shared_memory_bytes = 1024;
    check_fft(1 << 15, 2, false, RLXVK_FFT_NONE, false);
    check_fft(30030, 2, true, RLXVK_FFT_INVERSE, true);
    check_fft(10007, 2, true, RLXVK_FFT_INVERSE, false);
    *p = own;
}

static void impulses(void **state)
{
    (void)state;
    for (int n = 1; n <= 64; n += n < 17 ? 1 : 9) {
        size_t words = 2 * (size_t)n * (size_t)n;
        float *x = calloc(words, sizeof *x), *y = malloc(words * sizeof *y);
        double *wanted = calloc(words, sizeof *wanted);
        for (int r = 0; r < n; r++)
            wanted[2 * (n * r + r)] = x[2 * (n * r + r)] = 1;
        run_fft(x, y, n, n, false, RLXVK_FFT_NONE, false);
        reference(wanted, n, n, false, 1);
        for (int r = 0; r < n; r++)
            check_row(y + 2 * n * r, wanted + 2 * n * r, n);
        free(x);
        free(y);
        free(wanted);
    }
}

static void rows_are_apart(void **state)
{
    enum { N = 34, ROWS = 5 };
    float x[2 * N * ROWS], y[2 * N * ROWS];
    uint64_t seed = 1;
    (void)state;
    for (int i = 0; i < 2 * N * ROWS; i++)
        x[i] = i / (2 * N) == 3 ? 0 : noise(&seed);
    x[2 * N] = NAN;
    x[2 * N * 4 + 7] = INFINITY;
    run_fft(x, y, N, ROWS, false, RLXVK_FFT_NONE, false);
    for (int i = 0; i < 2 * N; i++) {
        assert_true(isfinite(y[i]) && isfinite(y[2 * N * 2 + i]));
        assert_true(y[2 * N * 3 + i] == 0);
        assert_true(isnan(y[2 * N + i]));
    }
}

/* Two transforms of one length must share one table, which counts as weights. */
static void tables_are_shared(void **state)
{
    uint64_t bytes[2];
    (void)state;
    for (int k = 0; k < 2; k++) {
        rlxvk_graph *g = new_graph();
        rlxvk_executable *e = NULL;
        rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_C64, RLXVK_SHAPE(3, 1009));
        rlxvk_tensor y = rlxvk_fft(g, x, false, RLXVK_FFT_INVERSE);
        rlxvk_graph_output(g, k ? rlxvk_fft(g, y, true, RLXVK_FFT_INVERSE) : y);
        expect_ok(rlxvk_compile(context, g, NULL, &e));
        bytes[k] = e->program->plan.class_bytes[CLASS_WEIGHTS];
        rlxvk_executable_destroy(e);
        rlxvk_graph_destroy(g);
    }
    assert_true(bytes[0] > 0);
    assert_int_equal(bytes[0], bytes[1]);
}

/* If a result is written directly into its place in a concat, it begins inside a slot. */
static void into_a_concat(void **state)
{
    enum { N = 51, WORDS = 2 * N };
    float x[WORDS], y[3 * WORDS];
    double wanted[WORDS];
    uint64_t seed = 4;
    (void)state;
    for (int i = 0; i < WORDS; i++)
        wanted[i] = x[i] = noise(&seed);
    reference(wanted, N, 1, false, 1);
    for (int block = 0; block < 2; block++) {
        float given[WORDS];
        rlxvk_graph *g = new_graph();
        rlxvk_shape shape = RLXVK_SHAPE(1, block ? 2 * N : N);
        rlxvk_tensor t = rlxvk_input(g, "x", block ? RLXVK_F32 : RLXVK_C64, shape);
        rlxvk_tensor spectrum = rlxvk_fft(g, t, false, RLXVK_FFT_NONE);
        rlxvk_tensor parts[] = {t, spectrum, rlxvk_neg(g, t)};
        memcpy(given, x, sizeof x);
        if (block)
            to_blocks(x, given, N, 1);
        run_graph(g, rlxvk_concat(g, parts, 3, 0), given, WORDS, y, 3 * WORDS);
        for (int i = 0; i < WORDS; i++)
            assert_true(y[i] == given[i] && y[2 * WORDS + i] == -given[i]);
        memcpy(given, y + WORDS, sizeof given);
        if (block)
            to_pairs(y + WORDS, given, N, 1);
        check_row(given, wanted, N);
    }
}

/* If scratch memory for all lines is not available, lines are transformed one after the other:
 * rows, and columns. */
static void lines_in_turn(void **state)
{
    enum { N = 37, COLUMNS = 5, WORDS = 2 * N * COLUMNS };
    float x[2 * WORDS], y[2 * WORDS];
    double row[2 * N];
    uint64_t seed = 4;
    (void)state;
    fft_scratch_bytes = 2 * 8 * 75; /* two lines of the convolution's length */
    check_fft(N, 5, false, RLXVK_FFT_NONE, false);
    check_fft(N, 4, true, RLXVK_FFT_ORTHO, true);
    for (int i = 0; i < 2 * WORDS; i++)
        x[i] = noise(&seed);
    rlxvk_graph *g = new_graph();
    rlxvk_tensor t = rlxvk_input(g, "x", RLXVK_C64, RLXVK_SHAPE(2, N, COLUMNS));
    run_graph(g, rlxvk_fft_axis(g, t, 1, false, RLXVK_FFT_NONE), x, 2 * WORDS, y, 2 * WORDS);
    fft_scratch_bytes = 64u << 20;
    for (int line = 0; line < 2 * COLUMNS; line++) {
        int first = line / COLUMNS * WORDS + 2 * (line % COLUMNS);
        float got[2 * N];
        for (int i = 0; i < 2 * N; i++) {
            row[i] = x[first + i / 2 * 2 * COLUMNS + i % 2];
            got[i] = y[first + i / 2 * 2 * COLUMNS + i % 2];
        }
        reference(row, N, 1, false, 1);
        check_row(got, row, N);
    }
}

/* ---- The choice of passes ---- */

static void check_group(const device_profile *p, uint64_t n, bool across)
{
    fft_group g;
    uint64_t product = 1, least = n;
    assert_true(fft_group_choose(p, n, 1000, across, &g));
    for (uint32_t i = 0; i < g.stages; i++) {
        product *= g.radices[i];
        least = MIN(least, g.radices[i]);
    }
    assert_int_equal(product, n);
    assert_true(g.stages <= FFT_MOST_STAGES && g.rows >= 1 && g.threads >= g.rows);
    assert_true(g.threads <= p->max_workgroup_invocations);
    assert_true(8 * g.points <= p->shared_memory_bytes);
    assert_true((g.single ? 1 : 2) * g.rows * g.pitch <= g.points);
    assert_true(g.pitch >= n + ((n - 1) >> g.pad));
    assert_true(!g.single || g.threads / g.rows >= n / least);
}

static const device_profile profiles[] = {
    {.max_workgroup_invocations = 128, .shared_memory_bytes = 16384, .workgroup_size = 128},
    {.max_workgroup_invocations = 1024, .shared_memory_bytes = 49152, .workgroup_size = 256},
    {.max_workgroup_invocations = 256,
     .shared_memory_bytes = 32768,
     .workgroup_size = 128,
     .portable = true},
};

static void passes_fit(void **state)
{
    static const uint64_t more[] = {1 << 20, 1 << 24, 4826809, 9765625, 14348907, 16000000};
    fft_split s;
    (void)state;
    for (size_t d = 0; d < ARRAY_COUNT(profiles); d++)
        for (uint64_t i = 1; i <= 20000 + ARRAY_COUNT(more); i++) {
            uint64_t n = i <= 20000 ? i : more[i - 20001];
            if (!fft_split_choose(&profiles[d], n, &s)) {
                assert_false(fft_is_smooth(n, FFT_SMOOTH));
                continue;
            }
            uint64_t product = 1;
            for (uint32_t k = 0; k < s.count; product *= s.factors[k++])
                check_group(&profiles[d], s.factors[k], k + 1 < s.count);
            assert_int_equal(product, n);
        }
}

static void check_tile(const device_profile *p, const fft_tile *t)
{
    uint64_t product = 1;
    for (uint32_t i = 0; i < t->stages; i++) {
        uint64_t radix = t->radices[i], rounds = divide_up(divide_up(t->n, radix), t->lanes);
        product *= radix;
        assert_true(radix <= 16 && rounds * radix <= 16);
    }
    assert_int_equal(product, t->n);
    assert_true(t->rows * t->lanes <= p->max_workgroup_invocations);
    assert_true(4 * t->places <= p->shared_memory_bytes);
    for (uint32_t i = 0, ns = 1; i + 1 < t->stages; ns *= t->radices[i++]) {
        uint32_t groups = t->n / (ns * t->radices[i]);
        assert_true(t->gaps[i] < 32 && t->places >= t->rows * (t->n + (groups - 1) * t->gaps[i]));
    }
}

static void tiles_fit(void **state)
{
    (void)state;
    for (size_t d = 0; d < ARRAY_COUNT(profiles); d++)
        for (uint64_t n = 1; n <= 70000; n += n < 5000 ? 1 : 13) {
            fft_plan plan;
            uint64_t product = 1, inner = n % 3 ? 1 : n % 100 + 1;
            size_t forced = n % 5 ? VARIANT_NONE : n / 5 % fft_tile_choice.count;
            if (!fft_plan_choose(&profiles[d], &(fft_problem){n, inner, 3}, forced, &plan)) {
                assert_true(plan.count == 0);
                continue;
            }
            for (uint32_t i = 0; i < plan.count; product *= plan.tiles[i++].n)
                check_tile(&profiles[d], &plan.tiles[i]);
            assert_true(plan.tiles[0].along == (plan.count == 1 && inner == 1));
            assert_int_equal(product, n);
        }
}

static bool choose(const device_profile *p, uint64_t length, uint64_t inner, size_t forced,
                   fft_plan *out)
{
    return fft_plan_choose(p, &(fft_problem){length, inner, 2}, forced, out);
}

static void expect_plan(uint64_t length, uint64_t inner, const char *first, const char *second)
{
    fft_plan plan;
    assert_true(choose(&profiles[1], length, inner, VARIANT_NONE, &plan));
    assert_int_equal(plan.count, second ? 2 : 1);
    assert_string_equal(plan.tiles[0].name, first);
    if (second)
        assert_string_equal(plan.tiles[1].name, second);
}

static void classes(void **state)
{
    fft_plan plan;
    (void)state;
    expect_plan(8, 1, "along_least", NULL);
    expect_plan(16, 1, "along_short", NULL);
    expect_plan(64, 1, "along_middle", NULL);
    expect_plan(1024, 1, "along_even", NULL);
    expect_plan(1000, 1, "along_long", NULL);
    expect_plan(8192, 1, "along_long", NULL);
    expect_plan(16, 7, "across_short", NULL);
    expect_plan(1024, 100, "across_long", NULL);
    expect_plan(1024, 16384, "across_far", NULL);
    expect_plan(65536, 1, "across_even", "across_even");
    expect_plan(1 << 20, 1, "across_long", "across_long");
    expect_plan(1 << 24, 1, "across_last", "across_last");
    assert_true(fft_plan_choose(&profiles[1], &(fft_problem){1 << 24, 1, 3}, VARIANT_NONE, &plan));
    assert_int_equal(plan.count, 3);
    assert_string_equal(plan.tiles[2].name, "across_even");
    assert_true(fft_plan_choose(&profiles[0], &(fft_problem){1 << 20, 1, 3}, VARIANT_NONE, &plan));
    assert_int_equal(plan.count, 3);
    assert_false(choose(&profiles[1], 17, 1, VARIANT_NONE, &plan));
    assert_false(choose(&profiles[2], 1024, 1, VARIANT_NONE, &plan));
    assert_true(choose(&profiles[2], 4096, 1, VARIANT_NONE, &plan));
    assert_int_equal(plan.count, 2);
    assert_string_equal(plan.tiles[0].name, "across_portable");
    size_t row = choice_find_row(&choice_kinds[CHOICE_fft_tile], "along_long", 10);
    assert_true(choose(&profiles[2], 1024, 1, row, &plan));
    assert_string_equal(plan.tiles[0].name, "along_long");
    assert_false(choose(&profiles[2], 1024, 7, row, &plan)); /* across */
    device_profile adreno = profiles[1]; /* 900 invocations would have 54 registers each */
    expect_plan(2025, 2, "across_long", NULL);
    adreno.unit_registers = 49152;
    adreno.thread_registers = 192;
    assert_true(choose(&adreno, 2025, 2, VARIANT_NONE, &plan));
    assert_string_equal(plan.tiles[0].name, "across_last");
    assert_int_equal(plan.count, 1);
    adreno.register_threads = 256; /* 450 count as 512, and have 96 */
    adreno.loads_early = true;
    assert_true(choose(&adreno, 2025, 2, VARIANT_NONE, &plan));
    assert_int_equal(plan.count, 2);
    assert_true(choose(&adreno, 4096, 1, VARIANT_NONE, &plan)); /* 256 invocations, not 512 */
    assert_int_equal(plan.count, 1);
    assert_string_equal(plan.tiles[0].name, "along_long");
}

/* ---- Builders ---- */

static void expect_close(const float *got, const double *wanted, size_t count, double tolerance)
{
    for (size_t i = 0; i < count; i++)
        if (!(fabs(got[i] - wanted[i]) <= tolerance))
            fail_msg("element %zu: %.9g, expected %.9g", i, (double)got[i], wanted[i]);
}
#define CLOSE(got, tolerance, ...)                                                                 \
    expect_close(got, (double[]){__VA_ARGS__}, sizeof((double[]){__VA_ARGS__}) / sizeof(double),   \
                 tolerance)

static void given_vectors(void **state)
{
    const float x[] = {1, 1, 2, -1, 0, 0, 0, 1, -1, 0}, real[] = {1, 0, 2, 0, 3};
    float y[10];
    (void)state;
    run_fft(x, y, 5, 1, false, RLXVK_FFT_NONE, true);
    CLOSE(y, 2e-6, 2, 1, -0.2298248, -2.9712035, 0.5542543, 0.3546782, -0.1722883, 3.8813897,
          2.8478588, 2.7351356);
    rlxvk_graph *g = new_graph();
    rlxvk_tensor im, t = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(5));
    rlxvk_tensor re = rlxvk_rfft(g, t, 0, RLXVK_FFT_INVERSE, &im);
    run_graph(g, rlxvk_fft_merge(g, re, im), real, 5, y, 6);
    CLOSE(y, 2e-6, 6, 0.3090170, -0.8090170, 0, 1.6775990, 3.6654688);
}

/* irfft(rfft(x, n), n) = x, padded or cut. */
static void real_round_trips(void **state)
{
    static const int lengths[] = {1, 2, 3, 8, 15, 34};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(lengths); i++)
        for (int extra = -1; extra <= 1; extra++) {
            int n = lengths[i], given = MAX(n + extra, 1);
            float x[40], y[40];
            double wanted[40] = {0};
            uint64_t seed = 3;
            for (int k = 0; k < given; k++)
                wanted[k] = x[k] = noise(&seed);
            rlxvk_graph *g = new_graph();
            rlxvk_tensor im, t = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(1, given));
            rlxvk_tensor re = rlxvk_rfft(g, t, n, RLXVK_FFT_ORTHO, &im);
            run_graph(g, rlxvk_irfft(g, re, im, n, RLXVK_FFT_ORTHO), x, (size_t)given, y,
                      (size_t)n);
            expect_close(y, wanted, (size_t)n, 1e-6);
        }
}

static void frames_and_spectra(void **state)
{
    enum { T = 23, LENGTH = 6, HOP = 4, N = 9, F = 5, BINS = N / 2 + 1 };
    float x[T], y[F * 2 * BINS];
    double wanted[F * 2 * BINS];
    uint64_t seed = 5;
    (void)state;
    for (int i = 0; i < T; i++)
        x[i] = noise(&seed);
    for (int f = 0; f < F; f++) {
        double row[2 * N] = {0};
        for (int i = 0; i < LENGTH; i++)
            row[2 * i] = x[f * HOP + i] * (0.5 - 0.5 * cos(2 * acos(-1) * i / LENGTH));
        reference(row, N, 1, false, 1);
        for (int k = 0; k < BINS; k++) {
            wanted[f * 2 * BINS + k] = row[2 * k];
            wanted[f * 2 * BINS + BINS + k] = row[2 * k + 1];
        }
    }
    rlxvk_graph *g = new_graph();
    rlxvk_tensor t = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(T));
    rlxvk_stft_options options = {.length = LENGTH, .hop = HOP, .n_fft = N};
    rlxvk_tensor s = rlxvk_stft(g, t, rlxvk_signal_hann(g, LENGTH, true), &options);
    assert_true(
        shape_equal(&RLXVK_SHAPE(F, 2 * BINS), &(rlxvk_shape[]){rlxvk_tensor_shape(g, s)}[0]));
    run_graph(g, s, x, T, y, F * 2 * BINS);
    expect_close(y, wanted, F * 2 * BINS, 2e-6);
    g = new_graph();
    t = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(4));
    run_graph(g, rlxvk_psd_real(g, t, RLXVK_FFT_NONE), (float[]){1, 2, 3, 4}, 4, y, 3);
    CLOSE(y, 1e-5, 25, 2, 1);
}

static void tables_of_numbers(void **state)
{
    float y[8];
    (void)state;
    rlxvk_graph *g = new_graph();
    run_graph(g, rlxvk_signal_fftfreq(g, 6), NULL, 0, y, 6);
    CLOSE(y, 1e-7, 0, 1 / 6.0, 2 / 6.0, -0.5, -2 / 6.0, -1 / 6.0);
    g = new_graph();
    run_graph(g, rlxvk_signal_rfftfreq(g, 5), NULL, 0, y, 3);
    CLOSE(y, 1e-7, 0, 0.2, 0.4);
    g = new_graph();
    run_graph(g, rlxvk_signal_hann(g, 5, false), NULL, 0, y, 5);
    CLOSE(y, 1e-7, 0, 0.5, 1, 0.5, 0);
    g = new_graph();
    run_graph(g, rlxvk_signal_hann(g, 1, false), NULL, 0, y, 1);
    CLOSE(y, 0, 1);
}

static void convolution(void **state)
{
    float y[6];
    (void)state;
    rlxvk_graph *g = new_graph();
    rlxvk_tensor a = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(4));
    rlxvk_tensor b = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(3), (float[]){1, -1, 2}, 12);
    run_graph(g, rlxvk_fft_conv1d(g, a, b), (float[]){1, 2, 3, 4}, 4, y, 6);
    CLOSE(y, 5e-6, 1, 1, 3, 5, 2, 8);
}

static void several_axes(void **state)
{
    enum { A = 6, B = 10, C = 3 };
    float x[2 * A * B * C], y[2 * A * B * C];
    double wanted[2 * A * B * C];
    uint64_t seed = 9;
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(x); i++)
        wanted[i] = x[i] = noise(&seed);
    fftw_plan work = fftw_plan_dft_3d(A, B, C, (fftw_complex *)wanted, (fftw_complex *)wanted,
                                      FFTW_FORWARD, FFTW_ESTIMATE);
    fftw_execute(work);
    fftw_destroy_plan(work);
    rlxvk_graph *g = new_graph();
    rlxvk_tensor t = rlxvk_input(g, "x", RLXVK_C64, RLXVK_SHAPE(A, B, C));
    run_graph(g, rlxvk_fftn(g, t, NULL, 0, false, RLXVK_FFT_NONE), x, ARRAY_COUNT(x), y,
              ARRAY_COUNT(y));
    expect_close(y, wanted, ARRAY_COUNT(y), 2e-5);
}

static rlxvk_tensor twice(rlxvk_graph *g, rlxvk_tensor x)
{
    return rlxvk_fftn(g, x, (int32_t[]){0, -2}, 2, false, RLXVK_FFT_NONE);
}
static rlxvk_tensor wrong_bins(rlxvk_graph *g, rlxvk_tensor x)
{
    return rlxvk_irfft(g, x, x, 8, RLXVK_FFT_NONE);
}
static rlxvk_tensor short_frames(rlxvk_graph *g, rlxvk_tensor x)
{
    return rlxvk_frames(g, x, 7, 1);
}
static rlxvk_tensor no_hop(rlxvk_graph *g, rlxvk_tensor x)
{
    return rlxvk_frames(g, x, 2, 0);
}
static rlxvk_tensor nothing_given(rlxvk_graph *g, rlxvk_tensor x)
{
    (void)x;
    return rlxvk_pad_last(g, RLXVK_NONE, 4);
}

/* The builder fails in one of its parts, after its own checks. The rest must not read the failed
 * part's shape. */
static rlxvk_tensor odd_bytes(rlxvk_graph *g, rlxvk_tensor x)
{
    (void)x;
    rlxvk_tensor bytes = rlxvk_input(g, "bytes", RLXVK_U8, RLXVK_SHAPE(10));
    return rlxvk_irfft_block(g, bytes, 9, RLXVK_FFT_NONE);
}
static rlxvk_tensor many_axes(rlxvk_graph *g, rlxvk_tensor x)
{
    return rlxvk_fftn(g, x, (int32_t[]){0, 0}, SIZE_MAX, false, RLXVK_FFT_NONE);
}
static rlxvk_tensor convolved(rlxvk_graph *g, int64_t a, int64_t b)
{
    return rlxvk_fft_conv1d(g, rlxvk_input(g, "a", RLXVK_F32, RLXVK_SHAPE(0, a)),
                            rlxvk_input(g, "b", RLXVK_F32, RLXVK_SHAPE(0, b)));
}
static rlxvk_tensor long_convolution(rlxvk_graph *g, rlxvk_tensor x)
{
    (void)x;
    return convolved(g, ((int64_t)1 << 61) + 1, (int64_t)1 << 61);
}
static rlxvk_tensor longest_convolution(rlxvk_graph *g, rlxvk_tensor x)
{
    (void)x;
    return convolved(g, INT64_MAX, INT64_MAX);
}

static void refusals(void **state)
{
    static const struct {
        rlxvk_tensor (*build)(rlxvk_graph *, rlxvk_tensor);
        rlxvk_status status;
    } rows[] = {{twice, RLXVK_E_AXIS},
                {wrong_bins, RLXVK_E_SHAPE},
                {short_frames, RLXVK_E_SHAPE},
                {no_hop, RLXVK_E_ATTR},
                {nothing_given, RLXVK_E_ARITY},
                {odd_bytes, RLXVK_E_DTYPE},
                {many_axes, RLXVK_E_DTYPE},
                {long_convolution, RLXVK_E_TOO_LARGE},
                {longest_convolution, RLXVK_E_TOO_LARGE}};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        rlxvk_graph *g = new_graph();
        rlxvk_tensor x = rlxvk_input(g, "x", i ? RLXVK_F32 : RLXVK_C64, RLXVK_SHAPE(3, 6));
        assert_int_equal(rows[i].build(g, x).id, 0);
        assert_int_equal(rlxvk_graph_status(g), rows[i].status);
        rlxvk_graph_destroy(g);
    }
}

static void integers(void **state)
{
    uint64_t factors[63];
    (void)state;
    assert_int_equal(rlxvk_signal_next_pow2(0), 1);
    assert_int_equal(rlxvk_signal_next_pow2(1025), 2048);
    assert_int_equal(rlxvk_signal_next_smooth7(11), 12);
    assert_int_equal(rlxvk_signal_next_smooth7(2017), 2025);
    for (uint64_t n = 0, least = 1; n < 5000; n++) {
        for (least = n ? n : 1; !fft_is_smooth(least, 7); least++)
            ;
        assert_int_equal(rlxvk_signal_next_smooth7(n), least);
    }
    assert_int_equal(rlxvk_signal_next_smooth7(UINT64_C(1) << 62), UINT64_C(1) << 62);
    assert_int_equal(rlxvk_signal_next_smooth7((UINT64_C(1) << 62) + 1),
                     UINT64_C(4611840800000000000));
    assert_int_equal(rlxvk_signal_next_smooth7(UINT64_C(18446613971412049920)),
                     UINT64_C(18446613971412049920)); /* the largest below 2^64 */
    assert_int_equal(rlxvk_signal_next_smooth7(UINT64_C(18446613971412049921)), 0);
    assert_int_equal(rlxvk_signal_next_smooth7(UINT64_MAX), 0);
    assert_int_equal(rlxvk_signal_bit_reverse(6, 4), 6);
    assert_int_equal(rlxvk_signal_bit_reverse(5, 0), 0);
    assert_int_equal(rlxvk_signal_prime_factors(360, factors, 63), 6);
    assert_int_equal(factors[0] * factors[3] * factors[5], 30);
    assert_int_equal(rlxvk_signal_prime_factors(65537, factors, 63), 1);
    assert_int_equal(rlxvk_signal_prime_factors(1, factors, 63), 0);
    assert_int_equal(rlxvk_signal_prime_factors(UINT64_C(18446744073709551557), factors, 63), 1);
    assert_int_equal(rlxvk_signal_prime_factors(UINT64_C(4294967291) * 4294967279, factors, 63), 2);
    assert_true(factors[0] == 4294967279 && factors[1] == 4294967291);
    assert_int_equal(rlxvk_signal_prime_factors(UINT64_C(4294967291) * 4294967291, factors, 63), 2);
    assert_true(factors[0] == 4294967291 && factors[1] == 4294967291);
    assert_int_equal(rlxvk_signal_prime_factors(UINT64_C(3) * 4194301 * 4194319, factors, 63), 3);
    assert_true(factors[1] == 4194301 && factors[2] == 4194319);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_agrees),
        cmocka_unit_test(lengths_agree),
        cmocka_unit_test(other_devices_agree),
        cmocka_unit_test(impulses),
        cmocka_unit_test(rows_are_apart),
        cmocka_unit_test(tables_are_shared),
        cmocka_unit_test(into_a_concat),
        cmocka_unit_test(lines_in_turn),
        cmocka_unit_test(passes_fit),
        cmocka_unit_test(tiles_fit),
        cmocka_unit_test(classes),
        cmocka_unit_test(given_vectors),
        cmocka_unit_test(real_round_trips),
        cmocka_unit_test(frames_and_spectra),
        cmocka_unit_test(tables_of_numbers),
        cmocka_unit_test(convolution),
        cmocka_unit_test(several_axes),
        cmocka_unit_test(refusals),
        cmocka_unit_test(integers),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
