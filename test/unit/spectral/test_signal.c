/*
 * Signals on a device. istft must return the input of stft, if the squares of the windows cover it.
 * Peaks, bands and filters are compared with known numbers.
 */
#include "op/op.h"
#include "support/harness.h"
#include "support/rewritten.h"

#include <rlxvk_ops_signal.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

/* Returns the values of all outputs; y is the last. The caller frees them. The graph is
 * destroyed. */
static float *result_of(rlxvk_graph *g, rlxvk_tensor y, size_t *count)
{
    rlxvk_executable *e = NULL;
    rlxvk_graph_output(g, y);
    expect_ok(rlxvk_graph_status(g));
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    float *words = run_seeded(e, g, 1, false, count);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    return words;
}

/* Returns the largest difference in [length, samples - length), the range that all windows cover.
 * The largest value of the signal is about 1. */
static double round_trip(int64_t samples, int64_t length, int64_t hop, int64_t n_fft, bool window)
{
    rlxvk_graph *g = new_graph();
    rlxvk_stft_options forth = {.length = length, .hop = hop, .n_fft = n_fft};
    rlxvk_istft_options back = {.length = length, .hop = hop, .n_fft = n_fft, .samples = samples};
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(samples));
    rlxvk_tensor w = window ? rlxvk_signal_hann(g, length, true) : RLXVK_NONE;
    double worst = 0;
    size_t count;
    rlxvk_graph_output(g, rlxvk_istft(g, rlxvk_stft(g, x, w, &forth), w, &back));
    float *y = result_of(g, rlxvk_copy(g, x), &count);
    assert_int_equal(count, 2 * samples);
    for (int64_t i = length; i < samples - length; i++)
        worst = fmax(worst, fabs((double)y[i] - (double)y[samples + i]));
    free(y);
    return worst;
}

static void istft_inverts_stft(void **state)
{
    static const int64_t sizes[][4] = {/* samples, length, hop, n_fft */
                                       {4096, 256, 64, 0},
                                       {4096, 256, 128, 512},
                                       {5000, 400, 160, 400},
                                       {3000, 101, 50, 101},
                                       {2048, 64, 64, 64}};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        bool window = sizes[i][2] < sizes[i][1];
        double worst = round_trip(sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3], window);
        print_message("%lld samples by %lld, hop %lld: %.2g\n", (long long)sizes[i][0],
                      (long long)sizes[i][1], (long long)sizes[i][2], worst);
        assert_true(worst < 1e-5);
    }
}

static void expect_numbers(rlxvk_graph *g, rlxvk_tensor y, const double *wanted, size_t count)
{
    size_t got;
    float *words = result_of(g, y, &got);
    assert_int_equal(got, count);
    for (size_t i = 0; i < count; i++)
        if (fabs((double)words[i] - wanted[i]) > 2e-6)
            fail_msg("word %zu is %.8f, not %.8f", i, (double)words[i], wanted[i]);
    free(words);
}

static void peaks_of_two_segments(void **state)
{
    static const float segments[] = {1, 2, 3, 0, 0, 1, 0, 0, 2, 0, 1, 0, 0, 2, 0, 0};
    static const double wanted[] = {1, 9, 2, 5};
    rlxvk_graph *g = new_graph();
    (void)state;
    expect_numbers(g, rlxvk_welch_peaks(g, floats(g, RLXVK_SHAPE(2, 8), segments), 2, 2), wanted,
                   4);
}

/* Two frames: the real parts, then the imaginary ones. There are three bands. */
static const float frames[] = {1,   2,  0, 0, 0, 0, 0, 0, 0, 1,    0,    0, 0, 0, 0, 0,
                               .5f, -1, 2, 3, 4, 0, 0, 0, 0, .25f, -.5f, 1, 0, 0, 0, 0};
static const float bands[] = {1, .5f, 0, 0, 0, 0, .5f, 1, .5f, 0, 0, 0, 0, .5f, 1e-9f};

static void bands_of_two_frames(void **state)
{
    static const double wanted[] = {1.1360170, 1.0994850, -0.8639830,
                                    0.9731976, 1.2475986, 1.1747425};
    rlxvk_graph *g = new_graph();
    (void)state;
    rlxvk_tensor x = floats(g, RLXVK_SHAPE(2, 16), frames);
    expect_numbers(g, rlxvk_log_mel(g, x, floats(g, RLXVK_SHAPE(3, 5), bands), RLXVK_LOG_MEL_FRAME),
                   wanted, 6);
}

static void slopes_of_a_frame(void **state)
{
    static const float slopes[] = {0.5f, -1, 0.25f};
    static const double wanted[16] = {0.0694871, -0.0583869, -0.0444007, -0.0170145, 0, 0, 0, 0,
                                      0,         0.0145967,  0.0111002,  -0.0056715};
    rlxvk_graph *g = new_graph();
    (void)state;
    rlxvk_tensor x = floats(g, RLXVK_SHAPE(1, 16), frames + 16);
    rlxvk_tensor y =
        rlxvk_log_mel_backward(g, x, floats(g, RLXVK_SHAPE(3, 5), bands),
                               floats(g, RLXVK_SHAPE(1, 3), slopes), RLXVK_LOG_MEL_FRAME);
    expect_numbers(g, y, wanted, 16);
}

static void filters_of_speech(void **state)
{
    static const struct {
        int64_t n_mels;
        size_t at, used;
        double weight, total;
    } banks[] = {{80, 1, 391, 0.024862594, 1.9990241}, {128, 1, 394, 0.012373986, 3.1909855}};
    (void)state;
    for (size_t b = 0; b < ARRAY_COUNT(banks); b++) {
        rlxvk_graph *g = new_graph();
        rlxvk_mel_options o = {.rate = 16000, .n_fft = 400, .n_mels = banks[b].n_mels};
        size_t count, used = 0;
        double total = 0;
        float *w = result_of(g, rlxvk_copy(g, rlxvk_signal_mel_filterbank(g, &o)), &count);
        assert_int_equal(count, banks[b].n_mels * 201);
        for (size_t i = 0; i < count; i++) {
            total += (double)w[i];
            used += w[i] > 1e-12f;
        }
        assert_int_equal(used, banks[b].used);
        assert_true(fabs(total - banks[b].total) < 1e-6);
        assert_true(fabs((double)w[banks[b].at] - banks[b].weight) < 1e-8);
        free(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(istft_inverts_stft),  cmocka_unit_test(peaks_of_two_segments),
        cmocka_unit_test(bands_of_two_frames), cmocka_unit_test(slopes_of_a_frame),
        cmocka_unit_test(filters_of_speech),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
