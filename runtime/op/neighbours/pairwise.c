/*
 * pairwise_distance: distances of every row of a matrix to every other, of one matrix product and
 * the rows' norms. The diagonal is 0 by place: cancellation would leave something there.
 */
#include "op/compose/composite.h"
#include "op/gradient.h"

#define MOST_ROWS 46340 /* n n is below 2^31 */

/* Whether an element is off the diagonal: [n, n], 0 or 1. */
static rlxvk_tensor off_diagonal(rlxvk_graph *g, int64_t n)
{
    float *words = memory_zeroed((size_t)n + 1, sizeof *words);
    if (!words) {
        graph_fail(g, status_fail_memory("pairwise_distance"));
        return RLXVK_NONE;
    }
    for (int64_t i = 0; i < n; i++)
        words[i] = (float)i;
    rlxvk_tensor index = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(n), words, (size_t)n * 4);
    memory_free(words);
    return rlxvk_ne(g, index, rlxvk_reshape(g, index, RLXVK_SHAPE(n, 1)));
}

/* Square roots; where there is nothing to take one of, 0, and no gradient. */
static rlxvk_tensor safe_root(rlxvk_graph *g, rlxvk_tensor square)
{
    rlxvk_tensor zero = gradient_scalar(g, 0);
    rlxvk_tensor none = rlxvk_le(g, square, zero); /* NaN is none of these */
    rlxvk_tensor root = rlxvk_sqrt(g, rlxvk_where(g, none, gradient_scalar(g, 1), square));
    return rlxvk_where(g, none, zero, root);
}

static rlxvk_tensor sum_rows(rlxvk_graph *g, rlxvk_tensor x)
{
    int32_t last = -1;
    return rlxvk_reduce_sum(g, x, &last, 1, true);
}

rlxvk_tensor rlxvk_pairwise_distance(rlxvk_graph *g, rlxvk_tensor x, rlxvk_metric metric)
{
    static const char row[] = "pairwise_distance";
    if (!composite_begin(g, row, &x, 1))
        return RLXVK_NONE;
    size_t start = g->nodes.count;
    rlxvk_shape s = rlxvk_tensor_shape(g, x);
    if (s.rank != 2)
        composite_fail(g, row, RLXVK_E_SHAPE, "x has rank %u; it is [n, d]", s.rank);
    else if (metric != RLXVK_METRIC_L2 && metric != RLXVK_METRIC_COSINE &&
             metric != RLXVK_METRIC_DOT)
        composite_fail(g, row, RLXVK_E_ATTR, "metric %d; rlxvk_metric has 0 to 2", (int)metric);
    else if (composite_number(g, row, "n", s.dims[0]) && s.dims[0] > MOST_ROWS)
        composite_fail(g, row, RLXVK_E_TOO_LARGE, "%lld rows; takes %d at most",
                       (long long)s.dims[0], MOST_ROWS);
    if (g->status != RLXVK_OK)
        return composite_end(g, row, start, RLXVK_NONE);
    const int32_t turn[] = {1, 0};
    rlxvk_tensor zero = gradient_scalar(g, 0), one = gradient_scalar(g, 1), y = x;
    rlxvk_tensor square = sum_rows(g, rlxvk_mul(g, x, x));
    if (metric == RLXVK_METRIC_COSINE)
        y = rlxvk_div(g, x, rlxvk_max(g, safe_root(g, square), gradient_scalar(g, 1e-12)));
    y = rlxvk_matmul(g, y, rlxvk_transpose(g, y, turn, 2));
    if (metric == RLXVK_METRIC_DOT)
        return composite_end(g, row, start, rlxvk_neg(g, y));
    rlxvk_tensor off = off_diagonal(g, s.dims[0]);
    if (metric == RLXVK_METRIC_COSINE) {
        y = rlxvk_max(g, rlxvk_min(g, y, one), gradient_scalar(g, -1));
        y = rlxvk_max(g, rlxvk_sub(g, one, y), zero);
        return composite_end(g, row, start, rlxvk_where(g, off, y, zero));
    }
    rlxvk_tensor norms = rlxvk_add(g, square, rlxvk_transpose(g, square, turn, 2));
    y = rlxvk_sub(g, norms, rlxvk_mul(g, gradient_scalar(g, 2), y));
    return composite_end(g, row, start, safe_root(g, rlxvk_where(g, off, y, zero)));
}
