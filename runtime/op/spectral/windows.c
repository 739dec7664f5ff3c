/* Windows, as constants computed in double precision. hann is in spectrum.c. */
#include "op/spectral/windows.h"
#include "base/numeric.h"
#include "op/compose/composite.h"

#include <math.h>

#define LONGEST_WINDOW (1 << 28)
#define TURN           6.283185307179586476925

typedef struct window {
    double terms[3]; /* of cosines: a0 - a1 cos(x) + a2 cos(2x) */
    bool kaiser;
    double beta;
} window;

double windows_bessel(double x)
{
    double sum = 1, term = 1;
    for (int k = 1; k < 2000 && term > 1e-18 * sum; k++) {
        term *= x * x / 4 / ((double)k * k);
        sum += term;
    }
    return sum;
}

static double value_at(const window *w, double at)
{
    double from_middle = 2 * at - 1;
    if (w->kaiser)
        return windows_bessel(w->beta * sqrt(fmax(0, 1 - from_middle * from_middle))) /
               windows_bessel(w->beta);
    return w->terms[0] - w->terms[1] * numeric_cos(TURN * at) +
           w->terms[2] * numeric_cos(2 * TURN * at);
}

static rlxvk_tensor make(rlxvk_graph *g, const char *row, const window *w, int64_t n, bool periodic)
{
    if (!graph_ready(g, row) || !composite_number(g, row, "n", n))
        return RLXVK_NONE;
    if (n < 1 || n > LONGEST_WINDOW) {
        composite_fail(g, row, n < 1 ? RLXVK_E_ATTR : RLXVK_E_TOO_LARGE,
                       "n is %lld; takes 1 to 2^28", (long long)n);
        return RLXVK_NONE;
    }
    if (w->kaiser && !(w->beta >= 0 && w->beta <= 700)) {
        composite_fail(g, row, RLXVK_E_ATTR, "beta is %g; takes 0 to 700", w->beta);
        return RLXVK_NONE;
    }
    float *words = memory_allocate((size_t)n * sizeof *words);
    if (!words) {
        graph_fail(g, status_fail_memory("window"));
        return RLXVK_NONE;
    }
    double last = (double)(periodic ? n : n - 1);
    for (int64_t k = 0; k < n; k++)
        words[k] = n == 1 ? 1 : (float)value_at(w, (double)k / last);
    rlxvk_tensor t = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(n), words, (size_t)n * sizeof *words);
    memory_free(words);
    return t;
}

rlxvk_tensor rlxvk_signal_hamming(rlxvk_graph *g, int64_t n, bool periodic)
{
    return make(g, "signal_hamming", &(window){.terms = {0.54, 0.46, 0}}, n, periodic);
}

rlxvk_tensor rlxvk_signal_blackman(rlxvk_graph *g, int64_t n, bool periodic)
{
    return make(g, "signal_blackman", &(window){.terms = {0.42, 0.5, 0.08}}, n, periodic);
}

rlxvk_tensor rlxvk_signal_kaiser(rlxvk_graph *g, int64_t n, double beta, bool periodic)
{
    return make(g, "signal_kaiser", &(window){.kaiser = true, .beta = beta}, n, periodic);
}
