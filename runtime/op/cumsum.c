/*
 * cumsum: y[j] = sum of x[k], k <= j (k < j when exclusive) along one axis. Few long rows take
 * three dispatches: sums of chunks, their running sums, running sums inside the chunks. A NaN or
 * infinity affects only what follows it. Error at j: 2^-23 (4 + sqrt j) sum |x[k]|.
 */
#include "op/row_tile.h"

#include <math.h>

rlxvk_tensor rlxvk_cumsum(rlxvk_graph *g, rlxvk_tensor x, int32_t axis, bool exclusive)
{
    cumsum_attributes a = {.axis = axis, .exclusive = exclusive};
    return op_build(g, OP_cumsum, &x, 1, &a);
}

static rlxvk_status infer(const rlxvk_graph *g, node *n, void *attributes)
{
    cumsum_attributes *a = attributes;
    n->shape = *input_shape(g, n, 0);
    n->dtype = input_dtype(g, n, 0);
    return op_axis(n, a->axis, n->shape.rank, &a->axis);
}

static axis_view view_of(const node *n)
{
    return shape_axis_view(&n->shape, ((const cumsum_attributes *)n->attributes)->axis);
}

/* The sum of each chunk: reduce.comp on the same rows. */
static rlxvk_status emit_sums(lowering *l, axis_view v, row_chunks chunks, operand x, operand sums)
{
    row_tile tile = row_tile_choose(l->profile, v, 8, ROW_ANY_LENGTH);
    uint64_t outputs = v.outer * chunks.count * v.inner;
    dispatch d = row_dispatch(l, KERNEL_REDUCE, &tile, outputs);
    struct reduce_args args = {.outputs = (u32)outputs,
                               .inner = (u32)v.inner,
                               .extent = (u32)v.length,
                               .chunks = chunks.count,
                               .chunk_length = (u32)chunks.length,
                               .lanes = tile.lanes,
                               .lane_stride = tile.lane_stride,
                               .x_offset = x.offset,
                               .y_offset = sums.offset};
    d.constants[1] = REDUCE_SUM;
    return lower_emit(l, &d, &args, sizeof args, (operand[]){x, sums}, 2);
}

/* `starts` NULL: the rows begin at zero. */
static rlxvk_status emit_scan(lowering *l, axis_view v, row_chunks chunks, bool exclusive,
                              operand x, const operand *starts, operand y)
{
    row_tile tile = row_tile_choose(l->profile, (axis_view){v.outer, chunks.length, v.inner}, 4,
                                    ROW_ANY_LENGTH);
    uint64_t outputs = v.outer * chunks.count * v.inner;
    dispatch d = row_dispatch(l, KERNEL_CUMSUM, &tile, outputs);
    struct cumsum_args args = {.outputs = (u32)outputs,
                               .inner = (u32)v.inner,
                               .extent = (u32)v.length,
                               .chunks = chunks.count,
                               .chunk_length = (u32)chunks.length,
                               .lanes = tile.lanes,
                               .lane_stride = tile.lane_stride,
                               .x_offset = x.offset,
                               .y_offset = y.offset};
    x.access = ACCESS_READ;
    operand before = starts ? *starts : x;
    before.access = ACCESS_READ;
    d.constants[1] = exclusive;
    d.constants[2] = starts != NULL;
    return lower_emit(l, &d, &args, sizeof args, (operand[]){x, before, y}, 3);
}

static rlxvk_status lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    bool exclusive = ((const cumsum_attributes *)n->attributes)->exclusive;
    axis_view v = view_of(n);
    operand x = lower_input(l, id, 0), y = lower_write(l, id), sums, starts;
    row_tile tile = row_tile_choose(l->profile, v, 4, ROW_ANY_LENGTH);
    row_chunks chunks = row_chunks_choose(l->profile, v, &tile, 8 * tile.lanes);
    uint64_t pieces = v.outer * chunks.count * v.inner;
    rlxvk_status status;
    if (chunks.count == 1)
        return emit_scan(l, v, chunks, exclusive, x, NULL, y);
    TRY(lower_temporary(l, 4 * pieces, &sums));
    TRY(lower_temporary(l, 4 * pieces, &starts));
    TRY(emit_sums(l, v, chunks, x, sums));
    TRY(emit_scan(l, (axis_view){v.outer, chunks.count, v.inner}, (row_chunks){1, chunks.count},
                  true, sums, NULL, starts));
    TRY(emit_scan(l, v, chunks, exclusive, x, &starts, y));
error:
    return status;
}

static uint32_t in_place(const rlxvk_graph *g, const node *n)
{
    (void)g;
    (void)n;
    return 1;
}

static void host_row(const host_call *c, uint64_t start, axis_view v, bool exclusive)
{
    double sum = 0, magnitude = 0;
    for (uint64_t j = 0; j < v.length; j++) {
        uint64_t at = start + j * v.inner;
        double x = c->inputs[0].words[at];
        double before = sum, magnitude_before = magnitude;
        sum += x;
        magnitude += fabs(x);
        c->out[at] = exclusive ? before : sum;
        if (c->bound)
            c->bound[at] =
                0x1p-23 * (4 + sqrt((double)j)) * (exclusive ? magnitude_before : magnitude);
    }
}

static rlxvk_status host(const host_call *c)
{
    axis_view v = view_of(c->node);
    bool exclusive = ((const cumsum_attributes *)c->node->attributes)->exclusive;
    for (uint64_t o = 0; o < v.outer; o++)
        for (uint64_t i = 0; i < v.inner; i++)
            host_row(c, o * v.length * v.inner + i, v, exclusive);
    return RLXVK_OK;
}

static void describe(const node *n, text *out)
{
    const cumsum_attributes *a = n->attributes;
    text_append(out, " axis=%d exclusive=%d", a->axis, a->exclusive);
}

const op_family cumsum_family = {.name = "cumsum",
                                 .attribute_size = sizeof(cumsum_attributes),
                                 .infer = infer,
                                 .lower = lower,
                                 .in_place = in_place,
                                 .host = host,
                                 .describe = describe};
