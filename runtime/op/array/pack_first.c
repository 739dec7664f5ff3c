/*
 * pack_first and unpack_first take x [outer, length, inner] and a count n that is read in each run.
 * A row is the `inner` elements at one position on the axis. Packing puts the first n rows of each
 * outer index one behind the other, from the first element of the result on. Unpacking puts them
 * back. The rest of both results is 0. Each op is the adjoint of the other. Bit-exact.
 *
 * A product of packed rows takes only as long as a product of that many rows (rewrite/pack_rows.c).
 */
#include "args/array.h"
#include "args/movement.h"
#include "constants/array.h"
#include "op/array/keep_first.h"
#include "op/bucket.h"
#include "op/families.h"
#include "op/gradient.h"
#include "op/movement/layout.h"

#include <rlxvk_ops_array.h>

#include <math.h>

static rlxvk_tensor build(rlxvk_graph *g, op_kind op, rlxvk_tensor x, rlxvk_tensor count,
                          int32_t axis)
{
    axis_attributes a = {.axis = axis};
    return op_build(g, op, (rlxvk_tensor[]){x, count}, 2, &a);
}

rlxvk_tensor rlxvk_pack_first(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor count, int32_t axis)
{
    return build(g, OP_pack_first, x, count, axis);
}

rlxvk_tensor rlxvk_unpack_first(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor count, int32_t axis)
{
    return build(g, OP_unpack_first, x, count, axis);
}

static rlxvk_status pack_first_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    return keep_first_infer_along(g, n, &((axis_attributes *)attributes)->axis);
}

static axis_view view_of(const node *n)
{
    return op_axis_view(&n->shape, ((const axis_attributes *)n->attributes)->axis);
}

static rlxvk_status pack_first_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    axis_view v = view_of(n);
    operand operands[] = {lower_input(l, id, 0), lower_input(l, id, 1), lower_write(l, id)};
    bool quads = (v.inner | operands[0].offset | operands[2].offset) % 4 == 0;
    uint32_t width = quads ? 4 : 1;
    dispatch d = {.kernel = KERNEL_PACK_FIRST};
    struct pack_first_args args = {.count = (u32)(shape_numel(&n->shape) / width),
                                   .extent = (u32)v.length,
                                   .inner = (u32)(v.inner / width),
                                   .outer = (u32)v.outer,
                                   .x_offset = operands[0].offset / width,
                                   .count_offset = operands[1].offset,
                                   .y_offset = operands[2].offset / width};
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size}, {PACK_FIRST_WIDTH, width},
                  {PACK_FIRST_UNPACK, n->op == OP_unpack_first});
    lower_groups_in_order(l, &d, args.count, copy_lot(d.constants[LOCAL_SIZE]));
    return lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

static rlxvk_status pack_first_host(const host_call *c)
{
    axis_view v = view_of(c->node);
    double given = floor((double)c->inputs[1].words[0] + 0.5);
    uint64_t rows = given > 0 ? (uint64_t)fmin(given, (double)v.length) : 0; /* 0 if NaN */
    uint64_t kept = rows * v.inner, span = v.length * v.inner;
    bool unpack = c->node->op == OP_unpack_first;
    for (uint64_t o = 0; o < v.outer; o++)
        for (uint64_t i = 0; i < kept; i++) {
            uint64_t packed = o * kept + i, apart = o * span + i;
            c->out[unpack ? apart : packed] = (double)c->inputs[0].words[unpack ? packed : apart];
        }
    return RLXVK_OK;
}

static rlxvk_status pack_first_vjp(gradient_call *c)
{
    int32_t axis = ((const axis_attributes *)c->n.attributes)->axis;
    op_kind other = c->n.op == OP_pack_first ? OP_unpack_first : OP_pack_first;
    gradient_give(c, 0, build(c->graph, other, c->dy, gradient_operand(c, 1), axis));
    return RLXVK_OK;
}

/* If the count is the number of active rows, the packed rows are the first ones of the whole
 * result. */
static uint64_t pack_first_bucket(bucket_call *c)
{
    const rlxvk_shape *s = &c->node->shape;
    int32_t axis = ((const axis_attributes *)c->node->attributes)->axis;
    bool unpack = c->node->op == OP_unpack_first;
    uint64_t apart = shape_product(s, (uint32_t)axis, s->rank), packed = shape_numel(s);
    if (keep_first_is_count(graph_node(c->graph, c->node->inputs[1])) &&
        (uint64_t)s->dims[axis] == c->unit && bucket_span(c, 0) == (unpack ? packed : apart))
        return unpack ? apart : packed;
    return bucket_rows(c, (2u << axis) - 1, 0);
}

const op_family pack_first_family = {
    .name = "pack_first",
    .attribute_size = sizeof(axis_attributes),
    .infer = pack_first_infer,
    .execution = {.lower = pack_first_lower, .host = pack_first_host},
    .rows = {.bucket = pack_first_bucket},
    .derivative = {.vjp = pack_first_vjp},
    .describe = op_describe_axis,
};
