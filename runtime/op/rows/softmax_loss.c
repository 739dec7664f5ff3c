/*
 * softmax_cross_entropy, for logits [.., C] and one label for each row: loss = m + ln(sum exp(x -
 * m)) - x[label], with m the row's maximum. Its gradient is (softmax - [c == label]) d_loss. If a
 * label is below -1/2, its row is left out (0). If a label is not a class, or the softmax is NaN,
 * the row is NaN.
 *
 * No temporary is as large as the logits. The loss reads them once. The gradient reads and writes
 * them once. Only rows that do not fit registers are read twice. If there are only few of these,
 * they are cut into chunks: first statistics, then the values of rows, then the result.
 *
 * With ulp = 2^-23 and an exp with error 3 + 2 |x| ulp, the error is at most:
 *   loss      (96 + C / 128 + 2 |loss|) ulp, because sum p |x - m| is at most ln C, and joining the
 *             parts of a row rescales at most C / 512 times a lane
 *   gradient  |d_loss| ((112 + C / 128 + 2 |x - m|) p + |p - [c == label]|) ulp
 */
#include "args/rows.h"
#include "constants/rows.h"
#include "op/bucket.h"
#include "op/gradient.h"
#include "op/rows/row_tile.h"

#include <rlxvk_train.h>

#include <math.h>

static const uint32_t forward_kernels[] = {KERNEL_SOFTMAX_LOSS, KERNEL_SOFTMAX_LOSS_SUBGROUP};
static const uint32_t backward_kernels[] = {KERNEL_SOFTMAX_LOSS_BACKWARD,
                                            KERNEL_SOFTMAX_LOSS_BACKWARD_SUBGROUP};

#define MOST_CLASSES (1 << 24) /* labels are exact f32 integers */

rlxvk_tensor rlxvk_softmax_cross_entropy(rlxvk_graph *g, rlxvk_tensor logits, rlxvk_tensor labels)
{
    return op_build(g, OP_softmax_cross_entropy, (rlxvk_tensor[]){logits, labels}, 2, NULL);
}

rlxvk_tensor rlxvk_softmax_cross_entropy_backward(rlxvk_graph *g, rlxvk_tensor logits,
                                                  rlxvk_tensor labels, rlxvk_tensor d_loss)
{
    rlxvk_tensor inputs[] = {logits, labels, d_loss};
    return op_build(g, OP_softmax_cross_entropy_backward, inputs, 3, NULL);
}

static rlxvk_status check_logits(const rlxvk_graph *g, const node *n, rlxvk_shape *out_rows)
{
    char buffer[SHAPE_TEXT];
    *out_rows = *input_shape(g, n, 0);
    if (out_rows->rank == 0 || out_rows->dims[out_rows->rank - 1] == 0)
        return op_fail(n, RLXVK_E_SHAPE, "logits %s have no classes; needs [.., C], C at least 1",
                       shape_text(out_rows, buffer));
    if (out_rows->dims[out_rows->rank - 1] > MOST_CLASSES)
        return op_fail(
            n, RLXVK_E_INDEX_RANGE,
            "logits %s have more classes than the 2^24 that labels held as f32 can count",
            shape_text(out_rows, buffer));
    out_rows->dims[--out_rows->rank] = 0;
    return RLXVK_OK;
}

static rlxvk_status check_rows(const rlxvk_graph *g, const node *n, const rlxvk_shape *rows,
                               uint32_t index, const char *name)
{
    char want[SHAPE_TEXT], have[SHAPE_TEXT];
    if (!shape_equal(rows, input_shape(g, n, index)))
        return op_fail(n, RLXVK_E_SHAPE, "%s %s; needs one for each row of the logits, %s", name,
                       shape_text(input_shape(g, n, index), have), shape_text(rows, want));
    return RLXVK_OK;
}

static rlxvk_status softmax_loss_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    bool backward = node_code(n) == SOFTMAX_LOSS_BACKWARD;
    rlxvk_shape rows;
    rlxvk_status status;
    (void)attributes;
    TRY(check_logits(g, n, &rows));
    TRY(check_rows(g, n, &rows, 1, "labels"));
    if (backward)
        TRY(check_rows(g, n, &rows, 2, "d_loss"));
    n->shape = backward ? *input_shape(g, n, 0) : rows;
    n->dtype = (uint8_t)input_dtype(g, n, 0);
error:
    return status;
}

/* The gradient may overwrite the logits. */
static uint32_t softmax_loss_in_place(const rlxvk_graph *g, const node *n)
{
    (void)g;
    return node_code(n) == SOFTMAX_LOSS_BACKWARD ? 1 : 0;
}

/* ---- Lower ---- */

typedef struct loss_work {
    axis_view view;
    bool backward;
    operand logits, labels, d_loss, y;
} loss_work;

static rlxvk_status lower_whole(lowering *l, const loss_work *w, const row_plan *p)
{
    struct softmax_loss_args args = {.rows = row_arguments(w->view, &p->tile, p->chunks),
                                     .x_offset = w->logits.offset,
                                     .labels_offset = w->labels.offset,
                                     .d_offset = w->d_loss.offset,
                                     .y_offset = w->y.offset};
    const uint32_t *kernels = w->backward ? backward_kernels : forward_kernels;
    dispatch d = row_dispatch_either(l, kernels, &p->tile, &args.rows);
    operand operands[] = {w->logits, w->labels, w->backward ? w->d_loss : w->y, w->y};
    SET_CONSTANTS(&d, {SOFTMAX_LOSS_ROWS_QUADS, p->quads}, {SOFTMAX_LOSS_ROWS_FORM, p->form},
                  {SOFTMAX_LOSS_ROWS_LONG, p->rest});
    return lower_emit(l, &d, &args, sizeof args, operands, w->backward ? 4 : 3);
}

/* Joins statistics of chunks into losses, or into values that the gradients of a row share. */
static rlxvk_status emit_join(lowering *l, const loss_work *w, uint64_t chunks, operand statistics,
                              operand out)
{
    axis_view view = {w->view.outer, chunks, 1};
    row_tile tile = row_tile_plain(l, view, 4, 4 * ROW_MOST_QUADS);
    operand beside = w->backward ? w->d_loss : w->logits;
    struct softmax_loss_join_args args = {.rows = row_arguments(view, &tile, row_unbroken(view)),
                                          .classes = (u32)w->view.length,
                                          .labels_offset = w->labels.offset,
                                          .beside_offset = beside.offset,
                                          .y_offset = out.offset};
    dispatch d = row_dispatch(l, KERNEL_SOFTMAX_LOSS_JOIN, &tile, &args.rows);
    operand operands[] = {statistics, w->labels, beside, out};
    SET_CONSTANTS(&d, {SOFTMAX_LOSS_JOIN_BACKWARD, w->backward});
    return lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

static rlxvk_status lower_chunks(lowering *l, const loss_work *w, const row_plan *p)
{
    struct softmax_args args = {.rows = row_arguments(w->view, &p->tile, p->chunks),
                                .x_offset = w->logits.offset,
                                .y_offset = w->y.offset};
    dispatch partial = row_dispatch(l, KERNEL_SOFTMAX_PARTIAL, &p->tile, &args.rows);
    dispatch finish = row_dispatch(l, KERNEL_SOFTMAX_LOSS_FINISH, &p->tile, &args.rows);
    operand statistics, joined = w->y;
    rlxvk_status status;
    SET_CONSTANTS(&partial, {SOFTMAX_PARTIAL_FORM, p->form});
    SET_CONSTANTS(&finish, {SOFTMAX_LOSS_FINISH_FORM, p->form});
    TRY(lower_temporary(l, 8 * (uint64_t)args.rows.outputs, &statistics));
    if (w->backward)
        TRY(lower_temporary(l, 16 * w->view.outer, &joined));
    TRY(lower_emit(l, &partial, &args, sizeof args, (operand[]){w->logits, statistics}, 2));
    TRY(emit_join(l, w, p->chunks.count, reading(statistics), joined));
    if (w->backward)
        TRY(lower_emit(l, &finish, &args, sizeof args,
                       (operand[]){w->logits, reading(joined), w->y}, 3));
error:
    return status;
}

static rlxvk_status softmax_loss_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const rlxvk_shape *logits = input_shape(l->graph, n, 0);
    loss_work w = {.view = op_axis_view(logits, (int32_t)logits->rank - 1),
                   .backward = node_code(n) == SOFTMAX_LOSS_BACKWARD,
                   .logits = lower_input(l, id, 0),
                   .labels = lower_input(l, id, 1),
                   .y = lower_write(l, id)};
    operand both[] = {w.logits, w.y};
    if (w.backward)
        w.d_loss = lower_input(l, id, 2);
    uint32_t traits = row_traits(w.view, both, w.backward ? 2 : 1) | (w.backward ? 0 : ROW_FLOWS);
    row_plan p = row_plan_choose(l, w.view, traits, UINT32_MAX);
    return (p.quads ? lower_whole : lower_chunks)(l, &w, &p);
}

/* ---- Host ---- */

#define ULP 0x1p-23

typedef struct row_statistics {
    double largest, sum; /* both are NaN if the softmax is */
} row_statistics;

static row_statistics statistics_of(const float *x, uint64_t n)
{
    row_statistics s = {-INFINITY, 0};
    for (uint64_t i = 0; i < n; i++)
        if (isnan(x[i]) || x[i] == INFINITY)
            return (row_statistics){NAN, NAN};
        else
            s.largest = fmax(s.largest, x[i]);
    if (s.largest == -INFINITY)
        return (row_statistics){NAN, NAN};
    for (uint64_t i = 0; i < n; i++)
        s.sum += exp(x[i] - s.largest);
    return s;
}

static double label_of(const host_call *c, uint64_t row)
{
    return floor((double)c->inputs[1].words[row] + 0.5);
}

static void host_loss(const host_call *c, uint64_t row, uint64_t classes)
{
    const float *x = c->inputs[0].words + row * classes;
    double label = label_of(c, row);
    if (label < 0)
        return;
    row_statistics s = statistics_of(x, classes);
    c->out[row] = label < (double)classes ? log(s.sum) + s.largest - x[(uint64_t)label] : NAN;
    if (c->bound && isfinite(c->out[row]))
        c->bound[row] = ULP * (96 + (double)classes / 128 + 2 * fabs(c->out[row]));
}

static void host_gradient(const host_call *c, uint64_t row, uint64_t classes)
{
    const float *x = c->inputs[0].words + row * classes;
    double label = label_of(c, row), d = c->inputs[2].words[row];
    if (label < 0)
        return;
    row_statistics s = statistics_of(x, classes);
    for (uint64_t i = 0; i < classes; i++) {
        double p = exp(x[i] - s.largest) / s.sum, rest = p - ((double)i == label);
        double steps = 112 + (double)classes / 128 + 2 * fabs(x[i] - s.largest);
        c->out[row * classes + i] = label < (double)classes ? rest * d : NAN;
        if (c->bound && isfinite(c->out[row * classes + i])) /* denormals count as 0 */
            c->bound[row * classes + i] =
                fabs(d) * (0x1p-120 + ULP * ((p > 0 ? steps * p : 0) + fabs(rest))) + 0x1p-126;
    }
}

static rlxvk_status softmax_loss_host(const host_call *c)
{
    const rlxvk_shape *logits = &c->inputs[0].node->shape;
    axis_view v = op_axis_view(logits, (int32_t)logits->rank - 1);
    bool backward = node_code(c->node) == SOFTMAX_LOSS_BACKWARD;
    for (uint64_t row = 0; row < v.outer; row++)
        (backward ? host_gradient : host_loss)(c, row, v.length);
    return RLXVK_OK;
}

/* ---- Rows of a bucket ---- */

static uint64_t softmax_loss_bucket(bucket_call *c)
{
    return bucket_rows(c, 1u << (input_shape(c->graph, c->node, 0)->rank - 1), 3u << 1);
}

/* ---- Gradients ---- */

static rlxvk_status softmax_loss_vjp(gradient_call *c)
{
    rlxvk_tensor labels = gradient_operand(c, 1);
    gradient_give(c, 0,
                  rlxvk_softmax_cross_entropy_backward(c->graph, gradient_operand(c, 0), labels,
                                                       c->dy));
    return RLXVK_OK;
}

/* 1 at the label's class, otherwise 0. */
static rlxvk_tensor hits_of(rlxvk_graph *g, rlxvk_tensor label, int64_t classes)
{
    rlxvk_tensor ones = gradient_filled(g, 1, RLXVK_F32, RLXVK_SHAPE(classes));
    rlxvk_tensor number = rlxvk_cumsum(g, ones, 0, true), half = gradient_scalar(g, 0.5);
    rlxvk_tensor hit = rlxvk_mul(g, rlxvk_ge(g, label, rlxvk_sub(g, number, half)),
                                 rlxvk_lt(g, label, rlxvk_add(g, number, half)));
    return rlxvk_where(g, hit, gradient_scalar(g, 1), gradient_scalar(g, 0));
}

/* Rows that are left out contribute nothing, even if they contain NaN. */
static rlxvk_tensor softmax_loss_expand(rlxvk_graph *g, const node *n)
{
    if (node_code(n) != SOFTMAX_LOSS_BACKWARD)
        return RLXVK_NONE;
    rlxvk_tensor logits = tensor_of(g, n->inputs[0]), labels = tensor_of(g, n->inputs[1]),
                 d = tensor_of(g, n->inputs[2]);
    rlxvk_shape column = n->shape;
    int64_t classes = column.dims[column.rank - 1];
    column.dims[column.rank - 1] = 1;
    rlxvk_tensor zero = gradient_scalar(g, 0), label = rlxvk_reshape(g, labels, column);
    rlxvk_tensor ignored = rlxvk_lt(g, label, gradient_scalar(g, -0.5));
    rlxvk_tensor known = rlxvk_lt(g, label, gradient_scalar(g, (double)classes - 0.5));
    rlxvk_tensor p = rlxvk_softmax(g, rlxvk_where(g, ignored, zero, logits), -1);
    rlxvk_tensor all =
        rlxvk_mul(g, rlxvk_sub(g, p, hits_of(g, label, classes)), rlxvk_reshape(g, d, column));
    all = rlxvk_where(g, known, all, gradient_scalar(g, NAN));
    return rlxvk_where(g, ignored, zero, all);
}

/* If a label is below 0, its row is left out. */
static index_limits softmax_loss_indices(const rlxvk_graph *g, const node *n)
{
    const rlxvk_shape *logits = input_shape(g, n, 0);
    index_limits r = index_limits_of(1, logits->dims[logits->rank - 1]);
    r.skips = true;
    return r;
}

const op_family softmax_loss_family = {
    .name = "softmax_loss",
    .infer = softmax_loss_infer,
    .memory = {.in_place = softmax_loss_in_place},
    .execution = {.lower = softmax_loss_lower, .host = softmax_loss_host},
    .rows = {.bucket = softmax_loss_bucket},
    .derivative = {.vjp = softmax_loss_vjp, .expand = softmax_loss_expand},
    .checks = {.indices = softmax_loss_indices},
};
