/*
 * softmax_cross_entropy_dense, for logits x and targets t [.., C]: loss = sum_c t_c (lse - x_c),
 * with lse = m + ln(sum exp(x - m)). Its backward op gives both gradients, packed: (T softmax - t)
 * d_loss, with T = sum t, then (lse - x) d_loss.
 *
 * Rows of logits and targets stay in registers as in softmax_backward.c. Few long rows are cut into
 * chunks: first statistics (m, sum exp, sum t (m - x), T), then the values of rows, then the
 * result.
 */
#include "graph/symbol.h"
#include "args/rows.h"
#include "constants/rows.h"
#include "op/bucket.h"
#include "op/gradient.h"
#include "op/rows/row_tile.h"

#include <rlxvk_train.h>

#include <float.h>
#include <math.h>

static const uint32_t forward_kernels[] = {KERNEL_SOFTMAX_DENSE, KERNEL_SOFTMAX_DENSE_SUBGROUP};
static const uint32_t backward_kernels[] = {KERNEL_SOFTMAX_DENSE_BACKWARD,
                                            KERNEL_SOFTMAX_DENSE_BACKWARD_SUBGROUP};

/* Quads of each operand that a lane holds if the workgroup is larger than ROW_TILE_LARGEST. */
#define LONG_QUADS 4

/* ---- Building ---- */

rlxvk_tensor rlxvk_softmax_cross_entropy_dense(rlxvk_graph *g, rlxvk_tensor logits,
                                               rlxvk_tensor targets)
{
    rlxvk_tensor inputs[] = {logits, targets};
    return op_build(g, OP_softmax_cross_entropy_dense, inputs, 2, NULL);
}

rlxvk_tensor rlxvk_softmax_cross_entropy_dense_backward(rlxvk_graph *g, rlxvk_tensor logits,
                                                        rlxvk_tensor targets, rlxvk_tensor d_loss,
                                                        rlxvk_tensor *out_d_targets)
{
    rlxvk_tensor inputs[] = {logits, targets, d_loss};
    rlxvk_tensor packed = op_build(g, OP_softmax_cross_entropy_dense_backward, inputs, 3, NULL);
    if (out_d_targets)
        *out_d_targets = RLXVK_NONE;
    if (!packed.id)
        return RLXVK_NONE;
    rlxvk_shape shape = rlxvk_tensor_shape(g, logits);
    int64_t numel = dim_elements(g, &shape);
    if (out_d_targets)
        *out_d_targets = rlxvk_reshape(g, rlxvk_narrow(g, packed, 0, numel, numel), shape);
    return rlxvk_reshape(g, rlxvk_narrow(g, packed, 0, 0, numel), shape);
}

/* ---- Infer ---- */

static rlxvk_status softmax_dense_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    rlxvk_shape rows = *input_shape(g, n, 0);
    char have[SHAPE_TEXT], want[SHAPE_TEXT];
    (void)attributes;
    if (rows.rank == 0 || rows.dims[rows.rank - 1] == 0)
        return op_fail(n, RLXVK_E_SHAPE, "logits %s have no classes; needs [.., C], C at least 1",
                       shape_text(&rows, have));
    if (!shape_equal(&rows, input_shape(g, n, 1)))
        return op_fail(n, RLXVK_E_SHAPE, "logits are %s, targets %s; they must be alike",
                       shape_text(&rows, have), shape_text(input_shape(g, n, 1), want));
    n->dtype = (uint8_t)input_dtype(g, n, 0);
    rows.dims[--rows.rank] = 0;
    n->shape = rows;
    if (node_code(n) == SOFTMAX_DENSE_FORWARD)
        return RLXVK_OK;
    if (!shape_equal(&rows, input_shape(g, n, 2)))
        return op_fail(n, RLXVK_E_SHAPE, "d_loss %s; needs one for each row of the logits, %s",
                       shape_text(input_shape(g, n, 2), have), shape_text(&rows, want));
    n->shape = RLXVK_SHAPE((int64_t)(2 * shape_numel(input_shape(g, n, 0))));
    return RLXVK_OK;
}

/* ---- Lower ---- */

typedef struct dense_work {
    axis_view view;
    bool backward;
    operand logits, targets, d_loss, y, second; /* second: y, at the targets' gradient */
} dense_work;

static struct softmax_dense_args arguments(const dense_work *w, const row_plan *p)
{
    return (struct softmax_dense_args){.rows = row_arguments(w->view, &p->tile, p->chunks),
                                       .x_offset = w->logits.offset,
                                       .t_offset = w->targets.offset,
                                       .d_offset = w->d_loss.offset,
                                       .y_offset = w->y.offset,
                                       .second_offset = w->second.offset};
}

static rlxvk_status lower_whole(lowering *l, const dense_work *w, const row_plan *p)
{
    struct softmax_dense_args args = arguments(w, p);
    const uint32_t *kernels = w->backward ? backward_kernels : forward_kernels;
    dispatch d = row_dispatch_either(l, kernels, &p->tile, &args.rows);
    operand operands[] = {w->logits, w->targets, w->backward ? w->d_loss : w->y, w->y};
    SET_CONSTANTS(&d, {SOFTMAX_DENSE_ROWS_QUADS, p->quads}, {SOFTMAX_DENSE_ROWS_FORM, p->form},
                  {SOFTMAX_DENSE_ROWS_LONG, p->rest});
    return lower_emit(l, &d, &args, sizeof args, operands, w->backward ? 4 : 3);
}

/* Joins statistics of chunks into losses, or into values that the gradients of a row share. */
static rlxvk_status emit_join(lowering *l, const dense_work *w, uint64_t chunks, operand statistics,
                              operand out)
{
    axis_view view = {w->view.outer, chunks, 1};
    row_tile tile = row_tile_plain(l, view, 4, 4 * ROW_MOST_QUADS);
    struct softmax_dense_join_args args = {.rows = row_arguments(view, &tile, row_unbroken(view)),
                                           .d_offset = w->d_loss.offset,
                                           .y_offset = out.offset};
    dispatch d = row_dispatch(l, KERNEL_SOFTMAX_DENSE_JOIN, &tile, &args.rows);
    operand operands[] = {statistics, w->backward ? w->d_loss : statistics, out};
    SET_CONSTANTS(&d, {SOFTMAX_DENSE_JOIN_BACKWARD, w->backward});
    return lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

static rlxvk_status lower_chunks(lowering *l, const dense_work *w, const row_plan *p)
{
    struct softmax_dense_args args = arguments(w, p);
    dispatch partial = row_dispatch(l, KERNEL_SOFTMAX_DENSE_PARTIAL, &p->tile, &args.rows);
    dispatch finish = row_dispatch(l, KERNEL_SOFTMAX_DENSE_FINISH, &p->tile, &args.rows);
    operand sums, joined = w->y;
    rlxvk_status status;
    SET_CONSTANTS(&partial, {SOFTMAX_DENSE_PARTIAL_FORM, p->form});
    SET_CONSTANTS(&finish, {SOFTMAX_DENSE_FINISH_FORM, p->form});
    TRY(lower_temporary(l, 16 * (uint64_t)args.rows.outputs, &sums));
    if (w->backward)
        TRY(lower_temporary(l, 16 * w->view.outer, &joined));
    TRY(lower_emit(l, &partial, &args, sizeof args, (operand[]){w->logits, w->targets, sums}, 3));
    TRY(emit_join(l, w, p->chunks.count, reading(sums), joined));
    if (w->backward)
        TRY(lower_emit(l, &finish, &args, sizeof args,
                       (operand[]){w->logits, w->targets, reading(joined), w->y}, 4));
error:
    return status;
}

static rlxvk_status softmax_dense_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const rlxvk_shape *logits = input_shape(l->graph, n, 0);
    dense_work w = {.view = op_axis_view(logits, (int32_t)logits->rank - 1),
                    .backward = node_code(n) == SOFTMAX_DENSE_BACKWARD,
                    .logits = lower_input(l, id, 0),
                    .targets = lower_input(l, id, 1),
                    .y = lower_write(l, id)};
    w.second = w.y;
    if (w.backward) {
        w.d_loss = lower_input(l, id, 2);
        w.second.offset += (uint32_t)shape_numel(logits);
    }
    operand all[] = {w.logits, w.targets, w.y, w.second};
    row_plan p =
        row_plan_choose(l, w.view, row_traits(w.view, all, w.backward ? 4 : 2), LONG_QUADS);
    return (p.quads ? lower_whole : lower_chunks)(l, &w, &p);
}

/* ---- Host ---- */

#define ULP 0x1p-23

typedef struct dense_row {
    const float *x, *t;
    uint64_t count;
    double largest, lse, total, magnitude; /* magnitude: sum |t| */
} dense_row;

static dense_row row_of(const host_call *c, uint64_t row, uint64_t count)
{
    dense_row r = {c->inputs[0].words + row * count, c->inputs[1].words + row * count, count,
                   .largest = -INFINITY};
    double sum = 0;
    bool poisoned = false;
    for (uint64_t i = 0; i < count; i++) {
        poisoned |= isnan(r.x[i]) || r.x[i] == INFINITY;
        r.largest = fmax(r.largest, r.x[i]);
        r.total += r.t[i];
        r.magnitude += fabs((double)r.t[i]);
    }
    for (uint64_t i = 0; i < count; i++)
        sum += exp(r.x[i] - r.largest);
    r.lse = poisoned || r.largest == -INFINITY ? NAN : r.largest + log(sum);
    return r;
}

/* ln(sum exp(x - m)), plus the distance of x from m. The error grows with both. */
static double reach_of(const dense_row *r, uint64_t i)
{
    return r->lse - r->largest + fabs(r->x[i] - r->largest);
}

static void host_loss(const host_call *c, uint64_t row, uint64_t count)
{
    dense_row r = row_of(c, row, count);
    double weight = 0, finite = 0;
    for (uint64_t i = 0; i < count; i++) {
        double term = r.t[i] * (r.lse - r.x[i]);
        c->out[row] += term;
        weight += fabs((double)r.t[i]) * (1 + reach_of(&r, i));
        finite += isfinite(term) ? fabs(term) : 0;
    }
    if (c->bound && isfinite(c->out[row]))
        c->bound[row] = ULP * ((double)count / 128 + 96) * weight + 0x1p-126;
    if (finite > FLT_MAX) /* the order of terms decides */
        host_leave_open(c, row);
}

static void host_gradients(const host_call *c, uint64_t row, uint64_t count)
{
    dense_row r = row_of(c, row, count);
    double d = c->inputs[2].words[row], chunks = (double)count / 128;
    uint64_t numel = shape_numel(&c->inputs[0].node->shape);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t at = row * count + i;
        double p = exp(r.x[i] - r.lse), rest = r.total * p - r.t[i];
        double steps = 112 + 2 * chunks + (p > 0 ? 2 * fabs(r.x[i] - r.largest) : 0);
        c->out[at] = rest * d;
        c->out[numel + at] = (r.lse - r.x[i]) * d;
        if (c->bound && isfinite(c->out[at])) /* denormals count as 0 */
            c->bound[at] = fabs(d) * (0x1p-110 * r.magnitude +
                                      ULP * (steps * p * r.magnitude + 2 * fabs(rest))) +
                           0x1p-126;
        if (c->bound && isfinite(c->out[numel + at]))
            c->bound[numel + at] = fabs(d) * ULP * (96 + chunks + 3 * reach_of(&r, i)) + 0x1p-126;
    }
}

static rlxvk_status softmax_dense_host(const host_call *c)
{
    const rlxvk_shape *logits = &c->inputs[0].node->shape;
    axis_view v = op_axis_view(logits, (int32_t)logits->rank - 1);
    bool backward = node_code(c->node) == SOFTMAX_DENSE_BACKWARD;
    for (uint64_t row = 0; row < v.outer; row++)
        (backward ? host_gradients : host_loss)(c, row, v.length);
    return RLXVK_OK;
}

/* ---- Rows of a bucket ---- */

static uint64_t softmax_dense_bucket(bucket_call *c)
{
    uint32_t classes = 1u << (input_shape(c->graph, c->node, 0)->rank - 1);
    return node_code(c->node) == SOFTMAX_DENSE_FORWARD ? bucket_rows(c, classes, 1u << 1)
                                                       : bucket_parts(c, classes, 3u << 1);
}

/* ---- Gradients ---- */

static rlxvk_status softmax_dense_vjp(gradient_call *c)
{
    rlxvk_tensor d_targets, logits = gradient_operand(c, 0), targets = gradient_operand(c, 1);
    gradient_give(c, 0,
                  rlxvk_softmax_cross_entropy_dense_backward(c->graph, logits, targets, c->dy,
                                                             &d_targets));
    gradient_give(c, 1, d_targets);
    return RLXVK_OK;
}

static rlxvk_tensor softmax_dense_expand(rlxvk_graph *g, const node *n)
{
    if (node_code(n) != SOFTMAX_DENSE_BACKWARD)
        return RLXVK_NONE;
    rlxvk_tensor x = tensor_of(g, n->inputs[0]), t = tensor_of(g, n->inputs[1]);
    rlxvk_tensor d = tensor_of(g, n->inputs[2]), packed[2];
    rlxvk_shape flat = n->shape, column = rlxvk_tensor_shape(g, x);
    int32_t axis = -1;
    flat.dims[0] /= 2;
    column.dims[column.rank - 1] = 1;
    d = rlxvk_reshape(g, d, column);
    rlxvk_tensor m = rlxvk_stop_gradient(g, rlxvk_reduce_max(g, x, &axis, 1, true));
    rlxvk_tensor from = rlxvk_sub(g, x, m);
    rlxvk_tensor sum = rlxvk_reduce_sum(g, rlxvk_exp(g, from), &axis, 1, true);
    rlxvk_tensor all =
        rlxvk_mul(g, rlxvk_reduce_sum(g, t, &axis, 1, true), rlxvk_softmax(g, x, -1));
    packed[0] = rlxvk_reshape(g, rlxvk_mul(g, rlxvk_sub(g, all, t), d), flat);
    packed[1] = rlxvk_mul(g, rlxvk_sub(g, rlxvk_log(g, sum), from), d);
    packed[1] = rlxvk_reshape(g, packed[1], flat);
    return rlxvk_concat(g, packed, 2, 0);
}

const op_family softmax_dense_family = {
    .name = "softmax_dense",
    .infer = softmax_dense_infer,
    .execution = {.lower = softmax_dense_lower, .host = softmax_dense_host},
    .rows = {.bucket = softmax_dense_bucket},
    .derivative = {.vjp = softmax_dense_vjp, .expand = softmax_dense_expand},
};
