/* pairwise_distance: the distances between all rows of a matrix, from one matrix product and, for
 * l2 and cosine, the norms of the rows. For l2, rows are scaled so that no square overflows or
 * underflows. The diagonal of l2 and cosine is set to 0, because cancellation would leave small
 * values there. The distance of metric dot is the negative product. */
#include "op/compose/composite.h"
#include "op/gradient.h"

#define MOST_ROWS 46340 /* n^2 must be below 2^31 */

/* A matrix [n, n] that is 0 on the diagonal and 1 elsewhere. */
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

/* Square roots. If a value is 0 or negative, the root is 0 and has no gradient. */
static rlxvk_tensor safe_root(rlxvk_graph *g, rlxvk_tensor square)
{
    rlxvk_tensor zero = gradient_scalar(g, 0);
    rlxvk_tensor none = rlxvk_le(g, square, zero); /* false for NaN */
    rlxvk_tensor root = rlxvk_sqrt(g, rlxvk_where(g, none, gradient_scalar(g, 1), square));
    return rlxvk_where(g, none, zero, root);
}

/* A power of two for each row, [n, 1]. If a row is scaled by it, its squares do not overflow or
 * underflow. */
static rlxvk_tensor row_scales(rlxvk_graph *g, rlxvk_tensor x)
{
    int32_t last = -1;
    rlxvk_tensor size = rlxvk_abs(g, rlxvk_stop_gradient(g, x));
    rlxvk_tensor most = rlxvk_reduce_max(g, size, &last, 1, true);
    rlxvk_tensor large = rlxvk_gt(g, most, gradient_scalar(g, 0x1p50));
    rlxvk_tensor small = rlxvk_lt(g, most, gradient_scalar(g, 0x1p-30));
    rlxvk_tensor up = rlxvk_where(g, small, gradient_scalar(g, 0x1p76), gradient_scalar(g, 1));
    return rlxvk_where(g, large, gradient_scalar(g, 0x1p-76), up);
}

static rlxvk_tensor sum_rows(rlxvk_graph *g, rlxvk_tensor x)
{
    int32_t last = -1;
    return rlxvk_reduce_sum(g, x, &last, 1, true);
}

static const int32_t turn[] = {1, 0};

/* l2 distances. Each row is multiplied by its power of two, s. For each pair, both rows are then
 * brought to the smaller of their two scales, t. */
static rlxvk_tensor l2_distances(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor off)
{
    rlxvk_tensor s = row_scales(g, x), y = rlxvk_mul(g, x, s);
    rlxvk_tensor square = sum_rows(g, rlxvk_mul(g, y, y));
    rlxvk_tensor product = rlxvk_matmul(g, y, rlxvk_transpose(g, y, turn, 2));
    rlxvk_tensor t = rlxvk_min(g, s, rlxvk_transpose(g, s, turn, 2));
    rlxvk_tensor own = rlxvk_div(g, t, s);
    rlxvk_tensor other = rlxvk_div(g, t, rlxvk_transpose(g, s, turn, 2));
    rlxvk_tensor a = rlxvk_mul(g, rlxvk_mul(g, square, own), own);
    rlxvk_tensor b = rlxvk_mul(g, rlxvk_mul(g, rlxvk_transpose(g, square, turn, 2), other), other);
    product = rlxvk_mul(g, rlxvk_mul(g, product, own), other);
    y = rlxvk_sub(g, rlxvk_add(g, a, b), rlxvk_mul(g, gradient_scalar(g, 2), product));
    return rlxvk_div(g, safe_root(g, rlxvk_where(g, off, y, gradient_scalar(g, 0))), t);
}

static rlxvk_tensor cosine_distances(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor off)
{
    int32_t last = -1;
    rlxvk_tensor zero = gradient_scalar(g, 0), one = gradient_scalar(g, 1);
    rlxvk_tensor norm = rlxvk_l2_norm(g, x, &last, 1, true);
    rlxvk_tensor y = rlxvk_div(g, x, rlxvk_max(g, norm, gradient_scalar(g, 1e-12)));
    y = rlxvk_matmul(g, y, rlxvk_transpose(g, y, turn, 2));
    y = rlxvk_max(g, rlxvk_min(g, y, one), gradient_scalar(g, -1));
    y = rlxvk_max(g, rlxvk_sub(g, one, y), zero);
    return rlxvk_where(g, off, y, zero);
}

static rlxvk_tensor distances(rlxvk_graph *g, rlxvk_tensor x, int64_t n, rlxvk_metric metric)
{
    if (metric == RLXVK_METRIC_DOT)
        return rlxvk_neg(g, rlxvk_matmul(g, x, rlxvk_transpose(g, x, turn, 2)));
    rlxvk_tensor off = off_diagonal(g, n);
    if (metric == RLXVK_METRIC_COSINE)
        return cosine_distances(g, x, off);
    return l2_distances(g, x, off);
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
    rlxvk_tensor y = distances(g, x, s.dims[0], metric);
    return composite_end(g, row, start, y);
}
