/*
 * softmax_backward: dx = y (dy - sum dy y). y is the result of a softmax, and the sum is along one
 * axis of [outer, n, inner]. As in softmax.c, rows or most of longer rows stay in registers. Few
 * long rows are cut into chunks: first sums, then the values. If a lane adds k terms in a chain,
 * the error is at most |y| (2^-23 (k + 16) sum |dy y| + 2^-22 |dy - sum dy y|).
 */
#include "args/rows.h"
#include "constants/rows.h"
#include "op/bucket.h"
#include "op/gradient.h"
#include "op/rows/row_tile.h"

#include <rlxvk_train.h>

#include <float.h>
#include <math.h>

static const uint32_t kernels[] = {KERNEL_SOFTMAX_BACKWARD, KERNEL_SOFTMAX_BACKWARD_SUBGROUP};

/* Quads of each operand that a lane holds if the workgroup is larger than ROW_TILE_LARGEST, because
 * then each lane has fewer registers. */
#define LONG_QUADS 4

rlxvk_tensor rlxvk_softmax_backward(rlxvk_graph *g, rlxvk_tensor y, rlxvk_tensor dy, int32_t axis)
{
    rlxvk_tensor inputs[] = {y, dy};
    axis_attributes a = {.axis = axis};
    return op_build(g, OP_softmax_backward, inputs, 2, &a);
}

static rlxvk_status softmax_backward_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    axis_attributes *a = attributes;
    char y[SHAPE_TEXT], dy[SHAPE_TEXT];
    if (!shape_equal(input_shape(g, n, 0), input_shape(g, n, 1)))
        return op_fail(n, RLXVK_E_SHAPE, "y is %s, dy %s; they must be alike",
                       shape_text(input_shape(g, n, 0), y), shape_text(input_shape(g, n, 1), dy));
    n->shape = *input_shape(g, n, 0);
    n->dtype = input_dtype(g, n, 0);
    return op_axis(n, a->axis, n->shape.rank, &a->axis);
}

static uint32_t softmax_backward_in_place(const rlxvk_graph *g, const node *n)
{
    (void)g, (void)n;
    return 3;
}

static axis_view view_of(const node *n)
{
    return op_axis_view(&n->shape, ((const axis_attributes *)n->attributes)->axis);
}

/* ---- Lower ---- */

typedef struct backward_work {
    axis_view view;
    operand y, dy, dx;
} backward_work;

static struct softmax_backward_args arguments(const backward_work *w, const row_plan *p)
{
    return (struct softmax_backward_args){.rows = row_arguments(w->view, &p->tile, p->chunks),
                                          .y_offset = w->y.offset,
                                          .dy_offset = w->dy.offset,
                                          .dx_offset = w->dx.offset};
}

static rlxvk_status lower_whole(lowering *l, const backward_work *w, const row_plan *p)
{
    struct softmax_backward_args args = arguments(w, p);
    dispatch d = row_dispatch_either(l, kernels, &p->tile, &args.rows);
    SET_CONSTANTS(&d, {SOFTMAX_BACKWARD_ROWS_QUADS, p->quads},
                  {SOFTMAX_BACKWARD_ROWS_FORM, p->form}, {SOFTMAX_BACKWARD_ROWS_LONG, p->rest});
    return lower_emit(l, &d, &args, sizeof args, (operand[]){w->y, w->dy, w->dx}, 3);
}

static rlxvk_status lower_chunks(lowering *l, const backward_work *w, const row_plan *p)
{
    struct softmax_backward_args args = arguments(w, p);
    dispatch partial = row_dispatch(l, KERNEL_SOFTMAX_BACKWARD_PARTIAL, &p->tile, &args.rows);
    dispatch finish = row_dispatch(l, KERNEL_SOFTMAX_BACKWARD_FINISH, &p->tile, &args.rows);
    operand sums;
    rlxvk_status status;
    SET_CONSTANTS(&partial, {SOFTMAX_BACKWARD_PARTIAL_FORM, p->form});
    SET_CONSTANTS(&finish, {SOFTMAX_BACKWARD_FINISH_FORM, p->form});
    TRY(lower_temporary(l, 4 * (uint64_t)args.rows.outputs, &sums));
    TRY(lower_emit(l, &partial, &args, sizeof args, (operand[]){w->y, w->dy, sums}, 3));
    TRY(lower_emit(l, &finish, &args, sizeof args, (operand[]){w->y, w->dy, reading(sums), w->dx},
                   4));
error:
    return status;
}

static rlxvk_status softmax_backward_lower(lowering *l, uint32_t id)
{
    backward_work w = {view_of(graph_node(l->graph, id)), lower_input(l, id, 0),
                       lower_input(l, id, 1), lower_write(l, id)};
    uint32_t traits = row_traits(w.view, (operand[]){w.y, w.dy, w.dx}, 3) & ~(uint32_t)ROW_PARTED;
    row_plan p = row_plan_choose(l, w.view, traits, LONG_QUADS);
    return (p.quads ? lower_whole : lower_chunks)(l, &w, &p);
}

/* ---- Host ---- */

/* Additions in a lane. Contiguous rows have enough lanes; others may have only one. */
static double chain_of(axis_view v)
{
    return (double)v.length / (v.inner == 1 ? 256 : 4) + 16;
}

static void host_row(const host_call *c, uint64_t start, axis_view v)
{
    const float *y = c->inputs[0].words + start, *dy = c->inputs[1].words + start;
    double sum = 0, magnitude = 0, finite = 0;
    for (uint64_t i = 0; i < v.length; i++) {
        double product = (double)dy[i * v.inner] * y[i * v.inner];
        sum += product;
        magnitude += fabs(product);
        finite += isfinite(product) ? fabs(product) : 0;
    }
    for (uint64_t i = 0; i < v.length; i++) {
        uint64_t at = start + i * v.inner;
        double factor = dy[i * v.inner] - sum, scale = fabs((double)y[i * v.inner]);
        c->out[at] = y[i * v.inner] * factor;
        if (c->bound && isfinite(c->out[at]))
            c->bound[at] = scale * (0x1p-23 * chain_of(v) * magnitude + 0x1p-22 * fabs(factor));
        if (c->bound && isfinite(c->out[at]) && scale < FLT_MIN)
            c->bound[at] += scale * fabs(factor); /* 0 if denormals count as 0 */
        if (finite + fabs((double)dy[i * v.inner]) > FLT_MAX && isfinite(dy[i * v.inner]))
            host_leave_open(c, at); /* some order of the sum overflows f32 */
        else if (finite > FLT_MAX && isinf(c->out[at]) && c->bound)
            c->bound[at] = INFINITY; /* infinite, or NaN if the sum is infinite too */
        if (scale > 0 && scale < FLT_MIN && isinf(factor))
            host_leave_open(c, at); /* infinite, or NaN if denormals count as 0 */
    }
}

static rlxvk_status softmax_backward_host(const host_call *c)
{
    axis_view v = view_of(c->node);
    for (uint64_t o = 0; o < v.outer; o++)
        for (uint64_t i = 0; i < v.inner; i++)
            host_row(c, o * v.length * v.inner + i, v);
    return RLXVK_OK;
}

/* ---- The family ---- */

static uint64_t softmax_backward_bucket(bucket_call *c)
{
    return bucket_rows(c, 1u << ((const axis_attributes *)c->node->attributes)->axis, 1u << 1);
}

static rlxvk_tensor softmax_backward_expand(rlxvk_graph *g, const node *n)
{
    rlxvk_tensor y = tensor_of(g, n->inputs[0]), dy = tensor_of(g, n->inputs[1]);
    int32_t axis = ((const axis_attributes *)n->attributes)->axis;
    rlxvk_tensor sum = rlxvk_reduce_sum(g, rlxvk_mul(g, dy, y), &axis, 1, true);
    return rlxvk_mul(g, y, rlxvk_sub(g, dy, sum));
}

const op_family softmax_backward_family = {
    .name = "softmax_backward",
    .attribute_size = sizeof(axis_attributes),
    .infer = softmax_backward_infer,
    .memory = {.in_place = softmax_backward_in_place},
    .execution = {.lower = softmax_backward_lower, .host = softmax_backward_host},
    .rows = {.bucket = softmax_backward_bucket},
    .derivative = {.expand = softmax_backward_expand},
    .describe = op_describe_axis,
};
