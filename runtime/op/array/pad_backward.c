/*
 * pad_backward is the adjoint of padding along one axis by reflection, by the nearest element, or
 * by the other end. Every element of dx sums its images in dy, so no atomics are needed. Images lie
 * at the same position of every period, or at one end. The error for n images is 2^-23 (n + 2) sum
 * |dy|.
 */
#include "args/array.h"
#include "constants/array.h"
#include "op/array/pad.h"
#include "op/bucket.h"
#include "op/families.h"
#include "op/gradient.h"

#include <rlxvk_ops_array.h>

typedef struct pad_backward_attributes {
    uint32_t mode;
    int32_t axis;
    int64_t before, extent;
} pad_backward_attributes;

rlxvk_tensor rlxvk_pad_backward(rlxvk_graph *g, rlxvk_tensor dy, int32_t axis, int64_t before,
                                int64_t extent, rlxvk_pad_mode mode)
{
    pad_backward_attributes a = {(uint32_t)mode, axis, before, extent};
    return op_build(g, OP_pad_backward, &dy, 1, &a);
}

static rlxvk_status pad_backward_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    pad_backward_attributes *a = attributes;
    const rlxvk_shape *dy = input_shape(g, n, 0);
    rlxvk_status status;
    if (dy->rank == 0)
        return op_fail(n, RLXVK_E_AXIS, "dy is a scalar and has no axis; reshape it to [1]");
    TRY(op_axis(n, a->axis, dy->rank, &a->axis));
    if (a->mode == PAD_CONSTANT)
        return op_fail(n, RLXVK_E_ATTR, "mode constant; its adjoint is a pad by negative amounts");
    if (a->extent < 0)
        return op_fail(n, RLXVK_E_ATTR, "extent is %lld; it counts elements", (long long)a->extent);
    if (a->before > PAD_MOST || a->before < -PAD_MOST)
        return op_fail(n, RLXVK_E_ATTR, "before is %lld; 2^31 - 1 at most, either way",
                       (long long)a->before);
    TRY(pad_check_mode(n, a->mode, a->extent, dy->dims[a->axis]));
    n->shape = *dy;
    n->shape.dims[a->axis] = a->extent;
    n->dtype = (uint8_t)input_dtype(g, n, 0);
error:
    return status;
}

static pad_axis axis_of(const rlxvk_shape *dy, const pad_backward_attributes *a)
{
    return (pad_axis){a->extent, dy->dims[a->axis], a->before};
}

static rlxvk_status pad_backward_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const pad_backward_attributes *a = n->attributes;
    const rlxvk_shape *dy = input_shape(l->graph, n, 0);
    operand operands[] = {lower_input(l, id, 0), lower_write(l, id)};
    uint32_t words = n->dtype == RLXVK_C64 ? 2 : 1;
    pad_axis axis = axis_of(dy, a);
    if (shape_numel(dy) == 0)
        axis.size = 0;
    dispatch d = {.kernel = KERNEL_PAD_BACKWARD};
    struct pad_backward_args args = {
        .count = (u32)shape_numel(&n->shape) * words,
        .extent = (u32)axis.extent,
        .size = (u32)axis.size,
        .inner = (u32)op_axis_view(&n->shape, a->axis).inner * words,
        .before = (i32)pad_normal_before(a->mode, axis),
        .dy_offset = operands[0].offset * words,
        .dx_offset = operands[1].offset * words,
    };
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size}, {PAD_BACKWARD_MODE, a->mode});
    lower_groups(l, &d, groups_for(args.count, l->profile->workgroup_size));
    return lower_emit(l, &d, &args, sizeof args, operands, 2);
}

static rlxvk_status pad_backward_host(const host_call *c)
{
    const node *n = c->node;
    const pad_backward_attributes *a = n->attributes;
    axis_view v = op_axis_view(&n->shape, a->axis);
    pad_axis axis = axis_of(&c->inputs[0].node->shape, a);
    uint64_t inner = v.inner * (n->dtype == RLXVK_C64 ? 2 : 1), line = (uint64_t)axis.size * inner;
    uint64_t words = v.outer * v.length * inner;
    double *counts = memory_zeroed((size_t)a->extent + 1, sizeof *counts);
    if (!counts)
        return status_fail_memory("pad_backward");
    for (uint64_t i = 0; c->bound && i < words; i++)
        c->bound[i] = 0;
    for (int64_t j = 0; j < axis.size; j++) {
        uint64_t i = (uint64_t)pad_source(a->mode, axis, j);
        counts[i]++;
        for (uint64_t o = 0; o < v.outer; o++)
            for (uint64_t k = 0; k < inner; k++) {
                double term = c->inputs[0].words[o * line + (uint64_t)j * inner + k];
                uint64_t to = (o * v.length + i) * inner + k;
                c->out[to] += term;
                if (c->bound)
                    c->bound[to] += fabs(term);
            }
    }
    for (uint64_t i = 0; c->bound && i < words; i++)
        c->bound[i] *= 0x1p-23 * (counts[i / inner % v.length] + 2);
    memory_free(counts);
    return RLXVK_OK;
}

static uint64_t pad_backward_bucket(bucket_call *c)
{
    return bucket_rows(c, 1u << ((const pad_backward_attributes *)c->node->attributes)->axis, 0);
}

/* The op is linear, so its gradient is the padding of which it is the adjoint. */
static rlxvk_status pad_backward_vjp(gradient_call *c)
{
    const pad_backward_attributes *a = c->n.attributes;
    rlxvk_shape dy = gradient_shape(c, 0);
    pad_axis axis = axis_of(&dy, a);
    int64_t before[RLXVK_MAX_RANK] = {0}, after[RLXVK_MAX_RANK] = {0};
    axis.before = pad_normal_before(a->mode, axis);
    before[0] = axis.before;
    after[0] = axis.size - axis.extent - axis.before;
    if (shape_numel(&dy) == 0 || shape_numel(&c->n.shape) == 0)
        gradient_give(c, 0, gradient_filled(c->graph, 0, (rlxvk_dtype)c->n.dtype, dy));
    else
        gradient_give(c, 0,
                      rlxvk_pad(c->graph, c->dy, before, after, dy.rank - (uint32_t)a->axis,
                                &(rlxvk_pad_options){(rlxvk_pad_mode)a->mode, 0}));
    return RLXVK_OK;
}

static void pad_backward_describe(const node *n, text *out)
{
    const pad_backward_attributes *a = n->attributes;
    text_append(out, " axis=%d before=%lld extent=%lld mode=%s", a->axis, (long long)a->before,
                (long long)a->extent, pad_mode_name(a->mode));
}

const op_family pad_backward_family = {
    .name = "pad_backward",
    .attribute_size = sizeof(pad_backward_attributes),
    .infer = pad_backward_infer,
    .storage = {.pairs = true},
    .execution = {.lower = pad_backward_lower, .host = pad_backward_host},
    .rows = {.bucket = pad_backward_bucket},
    .derivative = {.vjp = pad_backward_vjp},
    .describe = pad_backward_describe,
};
