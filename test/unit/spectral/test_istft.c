/* istft gives back what stft was given, on a device, for windows and hops whose squares cover it.
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

/* The largest difference in [length, samples - length), where all windows are there, of a signal
 * whose largest is about 1. */
static double round_trip(int64_t samples, int64_t length, int64_t hop, int64_t n_fft, bool window)
{
    rlxvk_graph *g = new_graph();
    rlxvk_stft_options forth = {.length = length, .hop = hop, .n_fft = n_fft};
    rlxvk_istft_options back = {.length = length, .hop = hop, .n_fft = n_fft, .samples = samples};
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(samples));
    rlxvk_tensor w = window ? rlxvk_signal_hann(g, length, true) : RLXVK_NONE;
    double worst = 0;
    size_t count;
    rlxvk_executable *e = NULL;
    rlxvk_graph_output(g, rlxvk_istft(g, rlxvk_stft(g, x, w, &forth), w, &back));
    rlxvk_graph_output(g, rlxvk_copy(g, x));
    expect_ok(rlxvk_graph_status(g));
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    float *y = run_seeded(e, g, 1, false, &count);
    assert_int_equal(count, 2 * samples);
    for (int64_t i = length; i < samples - length; i++)
        worst = fmax(worst, fabs((double)y[i] - (double)y[samples + i]));
    free(y);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(istft_inverts_stft),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
