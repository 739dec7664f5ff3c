/* triu and tril: composites, x where one row of numbers compares with one column of them, else 0.
 */
#include "graph/symbol.h"
#include "op/compose/composite.h"
#include "op/gradient.h"

#include <rlxvk_ops_math.h>

#define MOST_PLACES (1 << 24) /* f32 tells them apart */

/* 0, 1, .. as [length, 1] or [1, length]. */
static rlxvk_tensor places(rlxvk_graph *g, int64_t length, bool column)
{
    float *values = memory_allocate((size_t)(length + 1) * sizeof *values);
    if (!values) {
        graph_fail(g, status_fail_memory("numbers of a triangle"));
        return RLXVK_NONE;
    }
    for (int64_t i = 0; i < length; i++)
        values[i] = (float)i;
    rlxvk_shape shape = column ? RLXVK_SHAPE(length, 1) : RLXVK_SHAPE(1, length);
    rlxvk_tensor t = rlxvk_constant(g, RLXVK_F32, shape, values, (size_t)length * sizeof *values);
    memory_free(values);
    return t;
}

static rlxvk_tensor keep(rlxvk_graph *g, rlxvk_tensor x, int64_t rows, int64_t columns, int64_t k,
                         bool upper)
{
    int64_t shift = MAX(MIN(k, columns), -rows); /* beyond, nothing changes */
    rlxvk_tensor r = rlxvk_add(g, places(g, rows, true), gradient_scalar(g, (double)shift));
    rlxvk_tensor c = places(g, columns, false);
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
    if (!composite_number(g, row, "the number of rows", rows) ||
        !composite_number(g, row, "the number of columns", columns))
        return RLXVK_NONE;
    if (rows > MOST_PLACES || columns > MOST_PLACES) {
        composite_fail(g, row, RLXVK_E_TOO_LARGE, "%lld rows and %lld columns; at most %d of each",
                       (long long)rows, (long long)columns, MOST_PLACES);
        return RLXVK_NONE;
    }
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
