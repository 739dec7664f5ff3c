/*
 * Lowerings of ops whose results have a size that data decides. The chosen elements come first, in
 * order, by a stable sort; a count says how many they are (onnx_counted.h).
 */
#include "model/host.h"
#include "model/onnx_counted.h"
#include "model/onnx_ops.h"

#include <string.h>

/* The indices of the true elements of a row, in order, then those of the others. */
static rlxvk_tensor true_first(call *c, rlxvk_tensor mask)
{
    return rlxvk_argsort(c->graph, call_cast(c, mask, ONNX_FLOAT), 0, true);
}

/* How many elements of a row are true, I64. */
static rlxvk_tensor count_true(call *c, rlxvk_tensor mask)
{
    rlxvk_tensor t = call_cast(c, mask, ONNX_FLOAT);
    return call_cast(c, rlxvk_reduce_sum(c->graph, t, (const int32_t[]){0}, 1, false), ONNX_INT64);
}

static rlxvk_tensor flat(call *c, rlxvk_tensor t)
{
    return rlxvk_reshape(c->graph, t, RLXVK_SHAPE(-1));
}

/* ---- NonZero ---- */

static void give_known_non_zero(call *c)
{
    const host_array *x = call_host(c, 0, "how many elements the result has");
    int64_t strides[RLXVK_MAX_RANK], count = 0, at = 0;
    host_array *h;
    if (!x)
        return;
    if (x->symbolic) {
        call_refuse(c, NULL, "named dims decide the result; give them sizes (--bind NAME=SIZE)");
        return;
    }
    for (uint64_t i = 0; i < x->numel; i++)
        count += x->reals ? x->reals[i] != 0 : x->integers[i] != 0;
    h = call_make_host(c, ONNX_INT64, RLXVK_SHAPE(x->shape.rank, count));
    host_strides(x->shape, strides);
    for (uint64_t i = 0; h && i < x->numel; i++) {
        if (x->reals ? x->reals[i] == 0 : x->integers[i] == 0)
            continue;
        for (uint32_t k = 0; k < x->shape.rank; k++)
            h->integers[k * (uint64_t)count + (uint64_t)at] =
                (int64_t)i / strides[k] % x->shape.dims[k];
        at++;
    }
    call_give_host(c, 0, h);
}

void onnx_non_zero(call *c)
{
    rlxvk_graph *g = c->graph;
    rlxvk_shape s = call_shape(c, 0);
    rlxvk_tensor rows[RLXVK_MAX_RANK], mask, at;
    if (call_is_known(c, 0)) {
        give_known_non_zero(c);
        return;
    }
    if (s.rank == 0) {
        call_refuse(c, NULL, "a scalar is not supported");
        return;
    }
    mask = flat(c, rlxvk_ne(g, call_tensor(c, 0), call_scalar(c, 0)));
    if (c->failed || !call_is_fixed(c, s))
        return;
    at = true_first(c, mask);
    for (uint32_t i = s.rank; i-- > 0;) {
        at = call_divide_whole(c, at, MAX(s.dims[i], 1), &rows[i]);
        rows[i] = rlxvk_reshape(g, rows[i], RLXVK_SHAPE(1, -1));
    }
    onnx_give_counted(c, 0, rlxvk_concat(g, rows, s.rank, 0), count_true(c, mask), 1, ONNX_INT64);
}

/* ---- Compress ---- */

static void compress_known(call *c, rlxvk_tensor x, int32_t axis, int64_t length)
{
    const host_array *condition = call_host_integers(c, 1, "how many elements the result has");
    onnx_value v = {.type = ONNX_INT64, .input = UINT32_MAX};
    host_array *h;
    rlxvk_tensor indices;
    int64_t count = 0, at = 0;
    for (int64_t i = 0; condition && i < length; i++)
        count += condition->integers[i] != 0;
    v.host = h = call_make_host(c, ONNX_INT64, RLXVK_SHAPE(count));
    for (int64_t i = 0; h && condition && i < length; i++)
        if (condition->integers[i])
            h->integers[at++] = i;
    if (h && import_tensor(c->import, &v, &indices) == RLXVK_OK)
        call_give(c, 0, rlxvk_gather(c->graph, x, indices, axis));
}

/* Chooses the indices of an axis at which the condition is true. */
void onnx_compress(call *c)
{
    rlxvk_graph *g = c->graph;
    const onnx_attribute *given = call_attribute(c, "axis", ONNX_ATTRIBUTE_INT);
    rlxvk_shape s = call_shape(c, 0), condition = call_shape(c, 1);
    rlxvk_tensor x = call_tensor(c, 0), mask;
    int32_t axis;
    int64_t length;
    if (c->failed || !call_is_fixed(c, s) || !call_is_fixed(c, condition))
        return;
    if (condition.rank != 1) {
        call_refuse(c, NULL, "the condition is no row");
        return;
    }
    if (!given) {
        x = flat(c, x);
        s = call_tensor_shape(c, x);
    }
    axis = call_axis(c, "axis", given ? given->integer : 0, s.rank);
    if (c->failed)
        return;
    length = MIN(condition.dims[0], s.dims[axis]);
    if (call_is_known(c, 1)) {
        compress_known(c, x, axis, length);
        return;
    }
    mask = rlxvk_narrow(g, call_tensor(c, 1), 0, 0, length);
    onnx_give_counted(c, 0, rlxvk_gather(g, x, true_first(c, mask), axis), count_true(c, mask),
                      (uint32_t)axis, call_type(c, 0));
}

/* ---- Unique ---- */

enum { MOST_COLUMNS = 64 };

typedef struct unique {
    rlxvk_tensor rows;  /* [N, K]: what is compared */
    rlxvk_tensor order; /* [N]: the rows, sorted */
    rlxvk_tensor group; /* [N]: of row order[i], the number of its group of equal rows */
    rlxvk_tensor first; /* [N]: whether order[i] is the first of its group */
    int64_t n, k;
} unique;

/* Stable sorts by each column, the last one first. */
static void sort_rows(call *c, unique *u)
{
    rlxvk_graph *g = c->graph;
    rlxvk_tensor sorted, change;
    u->order = rlxvk_arange(g, 0, 1, u->n);
    for (int64_t k = u->k; k-- > 0;) {
        rlxvk_tensor column = flat(c, rlxvk_narrow(g, u->rows, 1, k, 1));
        rlxvk_tensor step = rlxvk_argsort(g, rlxvk_gather(g, column, u->order, 0), 0, false);
        u->order = rlxvk_gather(g, u->order, step, 0);
    }
    sorted = rlxvk_gather(g, u->rows, u->order, 0);
    change = rlxvk_ne(g, rlxvk_narrow(g, sorted, 0, 1, u->n - 1),
                      rlxvk_narrow(g, sorted, 0, 0, u->n - 1));
    change = rlxvk_reduce_max(g, call_cast(c, change, ONNX_FLOAT), (const int32_t[]){1}, 1, false);
    u->first = rlxvk_concat(g, (rlxvk_tensor[]){rlxvk_arange(g, 1, 1, 1), change}, 2, 0);
    u->group = rlxvk_sub(g, rlxvk_cumsum(g, u->first, 0, false), call_scalar(c, 1));
}

/* Groups in the order of their first rows. `indices` has these rows; those behind the count are n,
 * so they stay last. */
static void order_by_first(call *c, unique *u, rlxvk_tensor count, rlxvk_tensor *indices)
{
    rlxvk_graph *g = c->graph;
    rlxvk_tensor padded = rlxvk_keep_first(g, *indices, count, 0, (float)u->n);
    rlxvk_tensor order = rlxvk_argsort(g, padded, 0, false);
    *indices = rlxvk_gather(g, padded, order, 0);
    u->group = rlxvk_gather(g, rlxvk_argsort(g, order, 0, false), u->group, 0);
}

static void give_unique(call *c, unique *u, rlxvk_tensor x, bool sorted, int32_t axis, int32_t type)
{
    rlxvk_graph *g = c->graph;
    rlxvk_tensor count, indices, inverse, counts;
    sort_rows(c, u);
    count = count_true(c, u->first);
    indices = rlxvk_gather(g, u->order, true_first(c, u->first), 0);
    if (!sorted)
        order_by_first(c, u, count, &indices);
    onnx_give_counted(c, 0, rlxvk_gather(g, x, indices, axis), count, (uint32_t)axis, type);
    onnx_give_counted(c, 1, indices, count, 0, ONNX_INT64);
    inverse = rlxvk_gather(g, u->group, rlxvk_argsort(g, u->order, 0, false), 0);
    call_give_as(c, 2, inverse, ONNX_INT64);
    counts = rlxvk_bincount(g, u->group, RLXVK_NONE, u->n);
    onnx_give_counted(c, 3, counts, count, 0, ONNX_INT64);
}

/* Without an axis elements are compared, else slices. */
void onnx_unique(call *c)
{
    rlxvk_graph *g = c->graph;
    const onnx_attribute *given = call_attribute(c, "axis", ONNX_ATTRIBUTE_INT);
    bool sorted = call_flag(c, "sorted", true);
    rlxvk_shape s = call_shape(c, 0);
    rlxvk_tensor x = call_tensor(c, 0), front;
    int32_t axis = 0, perm[RLXVK_MAX_RANK];
    unique u;
    if (c->failed || !call_is_fixed(c, s))
        return;
    if (given)
        axis = call_axis(c, "axis", given->integer, s.rank);
    else {
        x = flat(c, x);
        s = call_tensor_shape(c, x);
    }
    u.n = c->failed ? 0 : s.dims[axis];
    if (u.n < 1) {
        call_refuse(c, NULL, "an axis without elements is not supported");
        return;
    }
    u.k = call_product(c, s, 0, s.rank) / u.n;
    if (u.k < 1 || u.k > MOST_COLUMNS) {
        call_refuse(c, "axis", "slices of %lld elements are compared; 1 to %d are supported",
                    (long long)u.k, MOST_COLUMNS);
        return;
    }
    for (uint32_t i = 0; i < s.rank; i++)
        perm[i] = i == 0 ? axis : (int32_t)i <= axis ? (int32_t)i - 1 : (int32_t)i;
    front = s.rank > 1 ? rlxvk_transpose(g, x, perm, s.rank) : x;
    u.rows = rlxvk_reshape(g, call_cast(c, front, ONNX_FLOAT), RLXVK_SHAPE(u.n, u.k));
    give_unique(c, &u, x, sorted, axis, call_type(c, 0));
}
