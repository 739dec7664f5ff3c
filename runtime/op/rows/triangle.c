/* arange, triu and tril, composed of other ops. A triangle compares a row of indices with a column
 * of indices, and takes x or 0. */
#include "graph/symbol.h"
#include "op/compose/composite.h"
#include "op/gradient.h"

#include <rlxvk_ops_math.h>

#define MOST_PLACES (1 << 24) /* f32 counts exactly up to here */

/* 0, 1, 2, ...: a constant, or, if the length is a symbol, running sums of ones. Both are exact in
 * f32. */
static rlxvk_tensor count_up(rlxvk_graph *g, int64_t length)
{
    if (symbol_is_code(length))
        return rlxvk_cumsum(g, rlxvk_full(g, RLXVK_SHAPE(length), 1), 0, true);
    float *values = memory_allocate((size_t)(length + 1) * sizeof *values);
    if (!values) {
        graph_fail(g, status_fail_memory("numbers"));
        return RLXVK_NONE;
    }
    for (int64_t i = 0; i < length; i++)
        values[i] = (float)i;
    rlxvk_tensor t =
        rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(length), values, (size_t)length * sizeof *values);
    memory_free(values);
    return t;
}

static bool is_countable(rlxvk_graph *g, const char *row, const char *what, int64_t length)
{
    if (symbol_is_code(length) || (length >= 0 && length <= MOST_PLACES))
        return true;
    return composite_fail(g, row, length < 0 ? RLXVK_E_SHAPE : RLXVK_E_TOO_LARGE,
                          "%lld %s; 0 to %d", (long long)length, what, MOST_PLACES);
}

rlxvk_tensor rlxvk_arange(rlxvk_graph *g, float start, float step, int64_t length)
{
    if (!composite_begin(g, "arange", NULL, 0) || !is_countable(g, "arange", "numbers", length))
        return RLXVK_NONE;
    size_t begin = g->nodes.count;
    rlxvk_tensor t = count_up(g, length);
    if (step != 1)
        t = rlxvk_mul(g, t, gradient_scalar(g, (double)step));
    if (start != 0)
        t = rlxvk_add(g, t, gradient_scalar(g, (double)start));
    return composite_end(g, "arange", begin, t);
}

static rlxvk_tensor keep(rlxvk_graph *g, rlxvk_tensor x, int64_t rows, int64_t columns, int64_t k,
                         bool upper)
{
    int64_t shift = MAX(MIN(k, MOST_PLACES), -MOST_PLACES); /* larger shifts change nothing */
    rlxvk_tensor r = rlxvk_reshape(g, count_up(g, rows), RLXVK_SHAPE(rows, 1));
    rlxvk_tensor c = rlxvk_reshape(g, count_up(g, columns), RLXVK_SHAPE(1, columns));
    r = rlxvk_add(g, r, gradient_scalar(g, (double)shift));
    rlxvk_tensor inside = upper ? rlxvk_ge(g, c, r) : rlxvk_le(g, c, r);
    return rlxvk_where(g, inside, x, gradient_scalar(g, 0));
}

static rlxvk_tensor build(rlxvk_graph *g, const char *row, rlxvk_tensor x, int64_t k, bool upper)
{
    rlxvk_shape s = rlxvk_tensor_shape(g, x);
    if (!composite_begin(g, row, &x, 1))
        return RLXVK_NONE;
    if (s.rank < 2) {
        composite_fail(g, row, RLXVK_E_SHAPE, "x has rank %u; it must be a matrix or more", s.rank);
        return RLXVK_NONE;
    }
    int64_t rows = s.dims[s.rank - 2], columns = s.dims[s.rank - 1];
    if (!is_countable(g, row, "rows", rows) || !is_countable(g, row, "columns", columns))
        return RLXVK_NONE;
    size_t start = g->nodes.count;
    return composite_end(g, row, start, keep(g, x, rows, columns, k, upper));
}

rlxvk_tensor rlxvk_triu(rlxvk_graph *g, rlxvk_tensor x, int64_t k)
{
    return build(g, "triu", x, k, true);
}

rlxvk_tensor rlxvk_tril(rlxvk_graph *g, rlxvk_tensor x, int64_t k)
{
    return build(g, "tril", x, k, false);
}
