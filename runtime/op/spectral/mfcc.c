/* mfcc: a product with a table of cosines. */
#include "base/numeric.h"
#include "op/compose/composite.h"

#include <math.h>

#define MOST_NUMBERS (1 << 24)

/* [bands, count]. Each column is that of the orthonormal DCT-II, times its lifter. */
static rlxvk_tensor make_table(rlxvk_graph *g, int64_t bands, int64_t count, double lifter)
{
    const double pi = acos(-1);
    size_t numbers = (size_t)(bands * count);
    float *words = memory_allocate(numbers * sizeof *words);
    if (!words) {
        graph_fail(g, status_fail_memory("mfcc"));
        return RLXVK_NONE;
    }
    for (int64_t n = 0; n < bands; n++)
        for (int64_t k = 0; k < count; k++) {
            double scale = sqrt((k ? 2.0 : 1.0) / (double)bands);
            double lift = lifter > 0 ? 1 + lifter / 2 * numeric_sin(pi * (double)k / lifter) : 1;
            double angle = pi * (double)k * (double)(2 * n + 1) / (double)(2 * bands);
            words[n * count + k] = (float)(scale * lift * numeric_cos(angle));
        }
    rlxvk_tensor t =
        rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(bands, count), words, numbers * sizeof *words);
    memory_free(words);
    return t;
}

rlxvk_tensor rlxvk_mfcc(rlxvk_graph *g, rlxvk_tensor bands, int64_t count, double lifter)
{
    static const char row[] = "mfcc";
    if (!composite_begin(g, row, &bands, 1))
        return RLXVK_NONE;
    size_t start = g->nodes.count;
    rlxvk_shape shape = rlxvk_tensor_shape(g, bands);
    int64_t n = shape.rank ? shape.dims[shape.rank - 1] : 0;
    if (!composite_number(g, row, "bands", n) || !composite_number(g, row, "count", count))
        return composite_end(g, row, start, RLXVK_NONE);
    if (n < 1)
        composite_fail(g, row, RLXVK_E_SHAPE, "bands has none along its last axis");
    else if (count < 1 || count > n || !(lifter >= 0 && lifter < INFINITY))
        composite_fail(g, row, RLXVK_E_ATTR,
                       "count is %lld, lifter %g; takes 1 to %lld, the bands, and 0 or above",
                       (long long)count, lifter, (long long)n);
    else if (count >= MOST_NUMBERS / n)
        composite_fail(g, row, RLXVK_E_TOO_LARGE,
                       "%lld coefficients of %lld bands: a table of 2^24 numbers or more",
                       (long long)count, (long long)n);
    if (g->status != RLXVK_OK)
        return composite_end(g, row, start, RLXVK_NONE);
    rlxvk_tensor table = make_table(g, n, count, lifter);
    return composite_end(g, row, start, rlxvk_matmul(g, bands, table));
}
