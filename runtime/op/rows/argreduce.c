/*
 * argmax, argmin: the index of the largest or smallest element along one axis, as a float word
 * (dtype I32). The first NaN wins. Otherwise the smallest index wins ties, and zeros of either sign
 * are equal. Few long rows are cut into chunks. Each chunk gives one candidate, and a second
 * dispatch chooses among them.
 */
#include "args/rows.h"
#include "constants/rows.h"
#include "op/shorten.h"
#include "op/gradient.h"
#include "op/rows/row_tile.h"

#include <math.h>

typedef struct argreduce_attributes {
    int32_t axis;
    bool keep_dim;
} argreduce_attributes;

#define LONGEST_AXIS (1 << 24) /* indices are exact f32 integers */

static rlxvk_tensor build(rlxvk_graph *g, op_kind op, rlxvk_tensor x, int32_t axis, bool keep_dim)
{
    argreduce_attributes a = {.axis = axis, .keep_dim = keep_dim};
    return op_build(g, op, &x, 1, &a);
}

rlxvk_tensor rlxvk_argmax(rlxvk_graph *g, rlxvk_tensor x, int32_t axis, bool keep_dim)
{
    return build(g, OP_argmax, x, axis, keep_dim);
}

rlxvk_tensor rlxvk_argmin(rlxvk_graph *g, rlxvk_tensor x, int32_t axis, bool keep_dim)
{
    return build(g, OP_argmin, x, axis, keep_dim);
}

static rlxvk_status argreduce_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    argreduce_attributes *a = attributes;
    const rlxvk_shape *x = input_shape(g, n, 0);
    rlxvk_status status;
    TRY(op_axis(n, a->axis, x->rank, &a->axis));
    int64_t length = x->rank ? x->dims[a->axis] : 1;
    if (length == 0)
        return op_fail(n, RLXVK_E_RANGE,
                       "axis %d has no elements to choose from; it needs one at least", a->axis);
    if (length > LONGEST_AXIS)
        return op_fail(n, RLXVK_E_INDEX_RANGE, "axis %d has %lld elements; indices end at 2^24",
                       a->axis, (long long)length);
    n->dtype = RLXVK_I32;
    n->shape = (rlxvk_shape){0};
    for (uint32_t i = 0; i < x->rank; i++)
        if ((int32_t)i != a->axis || a->keep_dim)
            n->shape.dims[n->shape.rank++] = (int32_t)i == a->axis ? 1 : x->dims[i];
error:
    return status;
}

static axis_view view_of(const rlxvk_shape *x, const node *n)
{
    return op_axis_view(x, ((const argreduce_attributes *)n->attributes)->axis);
}

static const uint32_t kernels[] = {KERNEL_ARGREDUCE, KERNEL_ARGREDUCE_SUBGROUP};

/* Chooses the best of each row's candidates. */
static rlxvk_status lower_choice(lowering *l, uint32_t code, axis_view v, uint32_t count, operand x,
                                 operand candidates, operand y)
{
    row_tile tile = row_tile_plain(l, (axis_view){v.outer, count, v.inner}, 4, ROW_ANY_LENGTH);
    struct argreduce_args args = {.rows = row_arguments(v, &tile, row_unbroken(v)),
                                  .x_offset = x.offset,
                                  .y_offset = y.offset,
                                  .candidates = count};
    dispatch d = row_dispatch(l, KERNEL_ARGREDUCE, &tile, &args.rows);
    candidates.access = ACCESS_READ;
    SET_CONSTANTS(&d, {ARGREDUCE_CODE, code}, {ARGREDUCE_CHOOSES, true},
                  {ARGREDUCE_VECTORS, false});
    return lower_emit(l, &d, &args, sizeof args, (operand[]){x, candidates, y}, 3);
}

static rlxvk_status argreduce_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    axis_view v = view_of(input_shape(l->graph, n, 0), n);
    operand x = lower_input(l, id, 0), y = lower_write(l, id), to = y;
    row_tile tile = row_tile_choose(l, v, row_traits(v, &x, 1) & ROW_WHOLE, 8, ROW_ANY_LENGTH);
    row_chunks chunks = row_chunks_choose(l->profile, v, &tile, 8 * tile.lanes);
    struct argreduce_args args = {.rows = row_arguments(v, &tile, chunks), .x_offset = x.offset};
    dispatch d = row_dispatch_either(l, kernels, &tile, &args.rows);
    rlxvk_status status;
    if (chunks.count > 1)
        TRY(lower_temporary(l, 4 * (uint64_t)args.rows.outputs, &to));
    args.y_offset = to.offset;
    SET_CONSTANTS(&d, {ARGREDUCE_ROWS_CODE, node_code(n)}, {ARGREDUCE_ROWS_CHOOSES, false},
                  {ARGREDUCE_ROWS_VECTORS, tile.form->form});
    TRY(lower_emit(l, &d, &args, sizeof args, (operand[]){x, x, to}, 3));
    if (chunks.count > 1)
        TRY(lower_choice(l, node_code(n), v, chunks.count, x, to, y));
error:
    return status;
}

static double host_row(const float *x, uint64_t n, uint64_t stride, bool largest)
{
    uint64_t best = 0;
    for (uint64_t i = 0; i < n; i++)
        if (isnan(x[i * stride]))
            return (double)i;
    for (uint64_t i = 1; i < n; i++) {
        float v = x[i * stride], held = x[best * stride];
        if (largest ? v > held : v < held)
            best = i;
    }
    return (double)best;
}

static rlxvk_status argreduce_host(const host_call *c)
{
    axis_view v = view_of(&c->inputs[0].node->shape, c->node);
    bool largest = node_code(c->node) == ARGREDUCE_MAX;
    for (uint64_t o = 0; o < v.outer; o++)
        for (uint64_t i = 0; i < v.inner; i++)
            c->out[o * v.inner + i] = host_row(c->inputs[0].words + o * v.length * v.inner + i,
                                               v.length, v.inner, largest);
    return RLXVK_OK;
}

static uint64_t argreduce_bucket(bucket_call *c)
{
    const argreduce_attributes *a = c->node->attributes;
    return bucket_reduced(c, 1u << a->axis, a->keep_dim);
}

static rlxvk_tensor argreduce_shorten(shorten_call *s)
{
    bool largest = node_code(s->bucket->node) == ARGREDUCE_MAX;
    return shorten_with(s, 1, largest ? -INFINITY : INFINITY);
}

static void argreduce_describe(const node *n, text *out)
{
    const argreduce_attributes *a = n->attributes;
    text_append(out, " axis=%d keep_dim=%d", a->axis, a->keep_dim);
}

const op_family argreduce_family = {
    .name = "argreduce",
    .attribute_size = sizeof(argreduce_attributes),
    .infer = argreduce_infer,
    .execution = {.lower = argreduce_lower, .host = argreduce_host},
    .rows = {.bucket = argreduce_bucket, .shorten = argreduce_shorten},
    .describe = argreduce_describe,
};
