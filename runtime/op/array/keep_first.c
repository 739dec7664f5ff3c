/*
 * keep_first: y [outer, length, inner] = x if the position on the axis is below a count, else
 * `fill`. The count is read in each run. Bit-exact.
 *
 * If `each` is above 1, the count is multiplied by it. This is for axes that have each row of a
 * bucket several times (rewrite/shorten.c).
 */
#include "op/array/keep_first.h"
#include "args/array.h"
#include "args/movement.h"
#include "constants/array.h"
#include "op/bucket.h"
#include "op/elementwise/elementwise.h"
#include "op/families.h"
#include "op/gradient.h"
#include "op/movement/layout.h"

#include <rlxvk_ops_array.h>

#include <math.h>
#include <string.h>

rlxvk_tensor rlxvk_keep_first(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor count, int32_t axis,
                              float fill)
{
    keep_first_attributes a = {.each = 1, .axis = axis, .fill = fill};
    return op_build(g, OP_keep_first, (rlxvk_tensor[]){x, count}, 2, &a);
}

bool keep_first_is_count(const node *n)
{
    return n->op == OP_input && strcmp(n->name, EXTENT_COUNT_NAME) == 0;
}

rlxvk_status keep_first_infer_along(const rlxvk_graph *g, node *n, int32_t *axis)
{
    const rlxvk_shape *count = input_shape(g, n, 1);
    char buffer[SHAPE_TEXT];
    rlxvk_status status;
    n->shape = *input_shape(g, n, 0);
    n->dtype = (uint8_t)input_dtype(g, n, 0);
    TRY(op_axis(n, *axis, n->shape.rank, axis));
    if (count->rank > 1 || shape_numel(count) != 1)
        return op_fail(n, RLXVK_E_SHAPE, "count %s; must be one number", shape_text(count, buffer));
error:
    return status;
}

static rlxvk_status keep_first_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    keep_first_attributes *a = attributes;
    rlxvk_status status = keep_first_infer_along(g, n, &a->axis);
    a->fill = (float)cast_host_value((rlxvk_dtype)n->dtype, a->fill);
    return status;
}

static rlxvk_status keep_first_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const keep_first_attributes *a = n->attributes;
    axis_view v = op_axis_view(&n->shape, a->axis);
    operand operands[] = {lower_input(l, id, 0), lower_input(l, id, 1), lower_write(l, id)};
    bool quads = (v.inner | operands[0].offset | operands[2].offset) % 4 == 0;
    uint32_t width = quads ? 4 : 1;
    dispatch d = {.kernel = KERNEL_KEEP_FIRST};
    struct keep_first_args args = {.count = (u32)(shape_numel(&n->shape) / width),
                                   .extent = (u32)v.length,
                                   .inner = (u32)(v.inner / width),
                                   .each = (u32)a->each,
                                   .fill = a->fill,
                                   .x_offset = operands[0].offset / width,
                                   .count_offset = operands[1].offset,
                                   .y_offset = operands[2].offset / width};
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size}, {KEEP_FIRST_WIDTH, width});
    lower_groups_in_order(l, &d, args.count, copy_lot(d.constants[LOCAL_SIZE]));
    return lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

static rlxvk_status keep_first_host(const host_call *c)
{
    const keep_first_attributes *a = c->node->attributes;
    axis_view v = op_axis_view(&c->node->shape, a->axis);
    double kept = floor((double)c->inputs[1].words[0] + 0.5) * (double)a->each;
    uint64_t numel = shape_numel(&c->node->shape);
    for (uint64_t i = 0; i < numel; i++)
        c->out[i] = (double)(i / v.inner % v.length) < kept ? (double)c->inputs[0].words[i]
                                                            : (double)a->fill;
    return RLXVK_OK;
}

static rlxvk_status keep_first_vjp(gradient_call *c)
{
    keep_first_attributes a = *(const keep_first_attributes *)c->n.attributes;
    rlxvk_tensor operands[] = {c->dy, gradient_operand(c, 1)};
    a.fill = 0;
    gradient_give(c, 0, op_build(c->graph, OP_keep_first, operands, ARRAY_COUNT(operands), &a));
    return RLXVK_OK;
}

/* If x has its rows along the axis and the count is the number of active rows, inactive rows are
 * replaced by `fill`. The result then does not depend on them, so it counts as fixed. */
static uint64_t keep_first_bucket(bucket_call *c)
{
    int32_t axis = ((const keep_first_attributes *)c->node->attributes)->axis;
    if (keep_first_is_count(graph_node(c->graph, c->node->inputs[1])) && bucket_axis(c, 0) == axis)
        return BUCKET_FIXED;
    return bucket_rows(c, 0, 0);
}

static void keep_first_describe(const node *n, text *out)
{
    const keep_first_attributes *a = n->attributes;
    text_append(out, " axis=%d fill=%g", a->axis, (double)a->fill);
    if (a->each != 1)
        text_append(out, " each=%lld", (long long)a->each);
}

const op_family keep_first_family = {
    .name = "keep_first",
    .attribute_size = sizeof(keep_first_attributes),
    .infer = keep_first_infer,
    .memory = {.in_place = op_first_in_place},
    .execution = {.lower = keep_first_lower, .host = keep_first_host},
    .rows = {.bucket = keep_first_bucket},
    .derivative = {.vjp = keep_first_vjp},
    .describe = keep_first_describe,
};
