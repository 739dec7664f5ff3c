/*
 * softmax: y = exp(x - m) / sum exp(x - m) over one axis of [outer, n, inner], where m is the
 * maximum. log_softmax is its logarithm, (x - m) - log sum exp(x - m). If a row has a NaN or +Inf,
 * or only -Inf, it becomes NaN.
 *
 * Rows of up to 32 elements a lane stay in registers: one dispatch reads x once. If there are
 * enough longer rows, most of each stays in registers. Few long rows are cut into chunks: first
 * statistics, then the values.
 */
#include "args/rows.h"
#include "constants/rows.h"
#include "op/shorten.h"
#include "op/gradient.h"
#include "op/rows/row_tile.h"

#include <rlxvk_train.h>

#include <math.h>

static const uint32_t kernels[] = {KERNEL_SOFTMAX, KERNEL_SOFTMAX_SUBGROUP};

rlxvk_tensor rlxvk_softmax(rlxvk_graph *g, rlxvk_tensor x, int32_t axis)
{
    axis_attributes a = {.axis = axis};
    return op_build(g, OP_softmax, &x, 1, &a);
}

rlxvk_tensor rlxvk_log_softmax(rlxvk_graph *g, rlxvk_tensor x, int32_t axis)
{
    axis_attributes a = {.axis = axis};
    return op_build(g, OP_log_softmax, &x, 1, &a);
}

static rlxvk_status softmax_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    axis_attributes *a = attributes;
    n->shape = *input_shape(g, n, 0);
    n->dtype = input_dtype(g, n, 0);
    return op_axis(n, a->axis, n->shape.rank, &a->axis);
}

static axis_view view_of(const node *n)
{
    return op_axis_view(&n->shape, ((const axis_attributes *)n->attributes)->axis);
}

static struct softmax_args arguments(axis_view v, const row_plan *p, operand x, operand y)
{
    return (struct softmax_args){.rows = row_arguments(v, &p->tile, p->chunks),
                                 .x_offset = x.offset,
                                 .y_offset = y.offset};
}

static rlxvk_status lower_whole(lowering *l, axis_view v, const row_plan *p, bool is_log, operand x,
                                operand y)
{
    struct softmax_args args = arguments(v, p, x, y);
    dispatch d = row_dispatch_either(l, kernels, &p->tile, &args.rows);
    SET_CONSTANTS(&d, {SOFTMAX_ROWS_QUADS, p->quads}, {SOFTMAX_ROWS_FORM, p->form},
                  {SOFTMAX_ROWS_LONG, p->rest}, {SOFTMAX_ROWS_LOG, is_log});
    return lower_emit(l, &d, &args, sizeof args, (operand[]){x, y}, 2);
}

static rlxvk_status lower_chunks(lowering *l, axis_view v, const row_plan *p, bool is_log,
                                 operand x, operand y)
{
    struct softmax_args args = arguments(v, p, x, y);
    dispatch partial = row_dispatch(l, KERNEL_SOFTMAX_PARTIAL, &p->tile, &args.rows);
    dispatch finish = row_dispatch(l, KERNEL_SOFTMAX_FINISH, &p->tile, &args.rows);
    operand statistics;
    rlxvk_status status;
    SET_CONSTANTS(&partial, {SOFTMAX_PARTIAL_FORM, p->form});
    SET_CONSTANTS(&finish, {SOFTMAX_FINISH_FORM, p->form}, {SOFTMAX_FINISH_LOG, is_log});
    TRY(lower_temporary(l, 8 * (uint64_t)args.rows.outputs, &statistics));
    TRY(lower_emit(l, &partial, &args, sizeof args, (operand[]){x, statistics}, 2));
    TRY(lower_emit(l, &finish, &args, sizeof args, (operand[]){x, reading(statistics), y}, 3));
error:
    return status;
}

static rlxvk_status softmax_lower(lowering *l, uint32_t id)
{
    axis_view v = view_of(graph_node(l->graph, id));
    bool is_log = node_code(graph_node(l->graph, id)) == SOFTMAX_LOGARITHMS;
    operand x = lower_input(l, id, 0), y = lower_write(l, id);
    uint32_t traits = row_traits(v, (operand[]){x, y}, 2) | ROW_COPIED;
    row_plan p = row_plan_choose(l, v, traits, UINT32_MAX);
    return (p.quads ? lower_whole : lower_chunks)(l, v, &p, is_log, x, y);
}

static void host_row(const float *x, double *y, uint64_t n, uint64_t stride, bool is_log)
{
    double largest = -INFINITY, sum = 0;
    bool poisoned = false;
    for (uint64_t i = 0; i < n; i++) {
        largest = fmax(largest, x[i * stride]);
        poisoned |= isnan(x[i * stride]) || x[i * stride] == INFINITY;
    }
    for (uint64_t i = 0; i < n; i++)
        sum += exp(x[i * stride] - largest);
    for (uint64_t i = 0; i < n; i++) {
        double above = x[i * stride] - largest;
        y[i * stride] = poisoned || largest == -INFINITY ? NAN
                        : is_log                         ? above - log(sum)
                                                         : exp(above) / sum;
    }
}

static rlxvk_status softmax_host(const host_call *c)
{
    axis_view v = view_of(c->node);
    for (uint64_t o = 0; o < v.outer; o++)
        for (uint64_t i = 0; i < v.inner; i++) {
            uint64_t start = o * v.length * v.inner + i;
            host_row(c->inputs[0].words + start, c->out + start, v.length, v.inner,
                     node_code(c->node) == SOFTMAX_LOGARITHMS);
        }
    return RLXVK_OK;
}

static uint64_t softmax_bucket(bucket_call *c)
{
    const axis_attributes *a = c->node->attributes;
    return bucket_rows(c, 1u << a->axis, 0);
}

static rlxvk_tensor softmax_shorten(shorten_call *s)
{
    s->span = bucket_span(s->bucket, 0);
    return shorten_with(s, 1, -INFINITY);
}

static rlxvk_status softmax_vjp(gradient_call *c)
{
    int32_t axis = ((const axis_attributes *)c->n.attributes)->axis;
    rlxvk_graph *g = c->graph;
    if (node_code(&c->n) == SOFTMAX_VALUES) {
        gradient_give(c, 0, rlxvk_softmax_backward(g, gradient_result(c), c->dy, axis));
        return RLXVK_OK;
    }
    rlxvk_tensor sum = c->n.shape.rank ? rlxvk_reduce_sum(g, c->dy, &axis, 1, true) : c->dy;
    sum = rlxvk_gradient_product(g, sum, rlxvk_exp(g, gradient_result(c)));
    gradient_give(c, 0, rlxvk_sub(g, c->dy, sum));
    return RLXVK_OK;
}

const op_family softmax_family = {
    .name = "softmax",
    .attribute_size = sizeof(axis_attributes),
    .infer = softmax_infer,
    .views = {.reorder = op_reorder_axis},
    .memory = {.in_place = op_first_in_place},
    .execution = {.lower = softmax_lower, .host = softmax_host},
    .rows = {.bucket = softmax_bucket, .shorten = softmax_shorten},
    .derivative = {.vjp = softmax_vjp},
    .describe = op_describe_axis,
};
