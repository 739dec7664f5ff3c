/*
 * sort and argsort order rows [.., n]. They are stable, and NaN comes last. Another axis is made
 * the last one first and permuted back afterwards. Exact.
 *
 *   rows that fit a workgroup   sorted in shared memory, as many at once as fit (sort_rows)
 *   longer rows                 passes of 8 bits (op/movement/radix_sort.h)
 *
 * Keys are unsigned words that ascend as the result does. Equal keys keep their order, because
 * every pass is stable. So nothing depends on timing.
 */
#include "args/array.h"
#include "constants/array.h"
#include "op/bucket.h"
#include "op/compose/composite.h"
#include "op/families.h"
#include "op/gradient.h"
#include "op/movement/radix_sort.h"

#include <rlxvk_ops_array.h>

#include <math.h>
#include <stdlib.h>

typedef struct sort_attributes {
    bool descending;
} sort_attributes;

#define LONGEST_INDEXED (1 << 24) /* indices are exact f32 integers */

/* ---- Building ---- */

static rlxvk_tensor build(rlxvk_graph *g, op_kind op, rlxvk_tensor x, int32_t axis, bool descending)
{
    const char *name = op_table[op].name;
    sort_attributes a = {descending};
    int32_t perm[RLXVK_MAX_RANK];
    if (!composite_begin(g, name, &x, 1))
        return RLXVK_NONE;
    size_t start = g->nodes.count;
    int32_t rank = (int32_t)rlxvk_tensor_shape(g, x).rank, last = rank - 1;
    if (axis < -rank || axis >= rank) {
        composite_fail(g, name, RLXVK_E_AXIS, "axis %d of rank %d; takes %d .. %d", axis, rank,
                       -rank, rank - 1);
        return RLXVK_NONE;
    }
    axis = axis < 0 ? axis + rank : axis;
    if (axis == last)
        return op_build(g, op, &x, 1, &a);
    for (int32_t i = 0; i < rank; i++)
        perm[i] = i;
    perm[axis] = last;
    perm[last] = axis;
    x = rlxvk_transpose(g, x, perm, (size_t)rank);
    x = op_build(g, op, &x, 1, &a);
    x = rlxvk_transpose(g, x, perm, (size_t)rank);
    return composite_end(g, name, start, x);
}

rlxvk_tensor rlxvk_sort(rlxvk_graph *g, rlxvk_tensor x, int32_t axis, bool descending)
{
    return build(g, OP_sort, x, axis, descending);
}

rlxvk_tensor rlxvk_argsort(rlxvk_graph *g, rlxvk_tensor x, int32_t axis, bool descending)
{
    return build(g, OP_argsort, x, axis, descending);
}

static rlxvk_status sort_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const rlxvk_shape *x = input_shape(g, n, 0);
    bool indices = node_code(n) == SORT_INDICES;
    (void)attributes;
    if (x->rank == 0)
        return op_fail(n, RLXVK_E_AXIS, "x is a scalar; reshape it to [1]");
    if (indices && x->dims[x->rank - 1] > LONGEST_INDEXED)
        return op_fail(n, RLXVK_E_INDEX_RANGE, "rows have %lld elements; indices end at 2^24",
                       (long long)x->dims[x->rank - 1]);
    n->shape = *x;
    n->dtype = indices ? RLXVK_I32 : (uint8_t)input_dtype(g, n, 0);
    return RLXVK_OK;
}

/* ---- Lower ---- */

typedef struct sort_work {
    uint64_t rows, extent;
    bool descending, indices;
    operand x, y;
} sort_work;

static rlxvk_status lower_short(lowering *l, const sort_work *w, uint64_t block)
{
    uint64_t lines = MIN(block / w->extent, w->rows), groups = divide_up(w->rows, lines);
    struct sort_rows_args args = {.rows = (u32)w->rows,
                                  .extent = (u32)w->extent,
                                  .lines = (u32)lines,
                                  .groups = (u32)groups,
                                  .descending = w->descending,
                                  .indices = w->indices,
                                  .x_offset = w->x.offset,
                                  .y_offset = w->y.offset};
    dispatch d = {.kernel = KERNEL_SORT_ROWS};
    while (lines > 1 && (block - 1) / w->extent >> args.line_bits)
        args.line_bits++;
    SET_CONSTANTS(&d, {LOCAL_SIZE, radix_sort_threads(l)});
    lower_groups(l, &d, groups);
    return lower_emit(l, &d, &args, sizeof args, (operand[]){w->x, w->y}, 2);
}

static rlxvk_status lower_long(lowering *l, const sort_work *w)
{
    radix_sort sort = {.rows = w->rows,
                       .extent = w->extent,
                       .mode = w->descending ? RADIX_DESCENDING : RADIX_ASCENDING,
                       .bits = 32,
                       .words = w->x};
    return radix_sort_to(l, &sort, w->indices, w->y);
}

static rlxvk_status sort_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    sort_work w = {.rows = shape_product(&n->shape, 0, n->shape.rank - 1),
                   .extent = (uint64_t)n->shape.dims[n->shape.rank - 1],
                   .descending = ((const sort_attributes *)n->attributes)->descending,
                   .indices = node_code(n) == SORT_INDICES,
                   .x = lower_input(l, id, 0),
                   .y = lower_write(l, id)};
    uint64_t block = (uint64_t)radix_sort_threads(l) * RADIX_ITEMS;
    return w.extent <= block ? lower_short(l, &w, block) : lower_long(l, &w);
}

/* ---- Host ---- */

typedef struct placed {
    float value;
    bool descending;
    uint64_t index;
} placed;

/* A comparison for qsort: NaN last, then by value, then by index. */
static int compare_placed(const void *left, const void *right)
{
    const placed *a = left, *b = right;
    if (isnan(a->value) != isnan(b->value))
        return isnan(a->value) ? 1 : -1;
    if (!isnan(a->value) && a->value != b->value)
        return (a->value < b->value) != a->descending ? -1 : 1;
    return a->index < b->index ? -1 : 1;
}

static rlxvk_status sort_host(const host_call *c)
{
    const node *n = c->node;
    uint64_t extent = (uint64_t)n->shape.dims[n->shape.rank - 1];
    uint64_t rows = shape_product(&n->shape, 0, n->shape.rank - 1);
    bool descending = ((const sort_attributes *)n->attributes)->descending;
    placed *row = memory_zeroed((size_t)extent + 1, sizeof *row);
    if (!row)
        return status_fail_memory("sort");
    for (uint64_t r = 0; r < rows; r++) {
        for (uint64_t i = 0; i < extent; i++)
            row[i] = (placed){c->inputs[0].words[r * extent + i], descending, i};
        qsort(row, (size_t)extent, sizeof *row, compare_placed);
        for (uint64_t i = 0; i < extent; i++)
            c->out[r * extent + i] =
                node_code(n) == SORT_INDICES ? (double)row[i].index : row[i].value;
    }
    memory_free(row);
    return RLXVK_OK;
}

/* ---- The family ---- */

static rlxvk_status sort_vjp(gradient_call *c)
{
    bool descending = ((const sort_attributes *)c->n.attributes)->descending;
    rlxvk_shape shape = gradient_shape(c, 0);
    int32_t last = (int32_t)shape.rank - 1;
    if (shape_numel(&shape) == 0) {
        gradient_give(c, 0, gradient_filled(c->graph, 0, RLXVK_F32, shape));
        return RLXVK_OK;
    }
    rlxvk_tensor order = rlxvk_argsort(c->graph, gradient_operand(c, 0), last, descending);
    gradient_give(c, 0,
                  rlxvk_take_along_axis(c->graph, c->dy,
                                        rlxvk_argsort(c->graph, order, last, false), last));
    return RLXVK_OK;
}

static void sort_describe(const node *n, text *out)
{
    text_append(out, " descending=%d", ((const sort_attributes *)n->attributes)->descending);
}

const op_family sort_family = {
    .name = "sort",
    .attribute_size = sizeof(sort_attributes),
    .infer = sort_infer,
    .execution = {.lower = sort_lower, .host = sort_host},
    .rows = {.bucket = bucket_vectors},
    .derivative = {.vjp = sort_vjp},
    .describe = sort_describe,
};

const op_family argsort_family = {
    .name = "argsort",
    .attribute_size = sizeof(sort_attributes),
    .infer = sort_infer,
    .execution = {.lower = sort_lower, .host = sort_host},
    .rows = {.bucket = bucket_vectors},
    .describe = sort_describe,
};
