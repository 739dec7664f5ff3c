/*
 * NonMaxSuppression. In each round of a loop, every class of every image chooses its best box, and
 * removes the boxes that overlap it too much. Removed scores are -infinity.
 */
#include "model/onnx_counted.h"
#include "model/onnx_ops.h"

#include <math.h>

typedef struct suppression {
    int64_t images, classes, boxes, most; /* most: rounds, of which each chooses a box of a class */
    float threshold;                      /* of intersection over union */
} suppression;

/* The loop's values. corners: top, left, bottom, right [4, images, 1, boxes]. */
enum { ROUND, SCORES, CHOSEN, CORNERS, VALUES };

static rlxvk_tensor corner(rlxvk_graph *g, rlxvk_tensor corners, int64_t i)
{
    rlxvk_shape s = rlxvk_tensor_shape(g, corners);
    rlxvk_shape plane = RLXVK_SHAPE(s.dims[1], s.dims[2], s.dims[3]);
    return rlxvk_reshape(g, rlxvk_narrow(g, corners, 0, i, 1), plane);
}

/* The overlap of [low, high] and [low at, high at] along an axis. */
static rlxvk_tensor overlap(rlxvk_graph *g, const rlxvk_tensor *box, const rlxvk_tensor *at, int i)
{
    rlxvk_tensor high = rlxvk_min(g, box[2 + i], at[2 + i]);
    rlxvk_tensor low = rlxvk_max(g, box[i], at[i]);
    return rlxvk_max(g, rlxvk_sub(g, high, low), rlxvk_scalar(g, 0));
}

static rlxvk_tensor area(rlxvk_graph *g, const rlxvk_tensor *box)
{
    return rlxvk_mul(g, rlxvk_sub(g, box[2], box[0]), rlxvk_sub(g, box[3], box[1]));
}

/* Whether each box overlaps that of the index too much. */
static rlxvk_tensor too_near(rlxvk_graph *g, const suppression *s, rlxvk_tensor corners,
                             rlxvk_tensor index)
{
    rlxvk_shape all = RLXVK_SHAPE(s->images, s->classes, s->boxes);
    rlxvk_tensor box[4], at[4], common, joint;
    for (int i = 0; i < 4; i++) {
        box[i] = corner(g, corners, i);
        at[i] = rlxvk_take_along_axis(g, rlxvk_expand(g, box[i], all), index, 2);
    }
    common = rlxvk_mul(g, overlap(g, box, at, 0), overlap(g, box, at, 1));
    joint = rlxvk_sub(g, rlxvk_add(g, area(g, box), area(g, at)), common);
    /* 0 / 0, of boxes without an area, is not above the threshold. */
    return rlxvk_gt(g, rlxvk_div(g, common, joint), rlxvk_scalar(g, s->threshold));
}

static rlxvk_tensor is_at(rlxvk_graph *g, int64_t length, rlxvk_tensor index)
{
    return rlxvk_eq(g, rlxvk_arange(g, 0, 1, length), rlxvk_cast(g, index, RLXVK_F32));
}

/* The round chooses the best box, or none (-1) if all are removed. */
static void build_body(rlxvk_graph *g, const suppression *s, const rlxvk_tensor *in)
{
    rlxvk_tensor best = rlxvk_reduce_max(g, in[SCORES], (const int32_t[]){2}, 1, true);
    rlxvk_tensor index = rlxvk_argmax(g, in[SCORES], 2, true);
    rlxvk_tensor none = rlxvk_scalar(g, -INFINITY), now, gone;
    rlxvk_tensor found = rlxvk_where(g, rlxvk_gt(g, best, none), rlxvk_cast(g, index, RLXVK_F32),
                                     rlxvk_scalar(g, -1));
    gone = rlxvk_max(g, too_near(g, s, in[CORNERS], index), is_at(g, s->boxes, index));
    now = is_at(g, s->most, in[ROUND]);
    rlxvk_graph_output(g, rlxvk_add(g, in[ROUND], rlxvk_scalar(g, 1)));
    rlxvk_graph_output(g, rlxvk_where(g, gone, none, in[SCORES]));
    rlxvk_graph_output(g, rlxvk_where(g, now, found, in[CHOSEN]));
    rlxvk_graph_output(g, in[CORNERS]);
}

/* Rounds go on while a box is left. */
static void build_condition(rlxvk_graph *g, const rlxvk_tensor *in)
{
    rlxvk_tensor best = rlxvk_reduce_max(g, in[SCORES], (const int32_t[]){0, 1, 2}, 3, false);
    rlxvk_graph_output(g, rlxvk_gt(g, best, rlxvk_scalar(g, -INFINITY)));
}

static rlxvk_graph *begin_graph(call *c, const rlxvk_tensor *values, rlxvk_tensor *in)
{
    static const char *const names[] = {"round", "scores", "chosen", "corners"};
    rlxvk_graph *g = NULL;
    if (rlxvk_graph_create(&g) != RLXVK_OK) {
        import_end(c->import, RLXVK_E_OUT_OF_HOST_MEMORY);
        return NULL;
    }
    for (int i = 0; i < VALUES; i++)
        in[i] = rlxvk_input(g, names[i], RLXVK_F32, call_tensor_shape(c, values[i]));
    return g;
}

/* Runs the rounds: chosen [images, classes, most], -1 for none. */
static rlxvk_tensor choose(call *c, const suppression *s, rlxvk_tensor scores, rlxvk_tensor corners)
{
    rlxvk_shape chosen = RLXVK_SHAPE(s->images, s->classes, s->most);
    rlxvk_tensor values[VALUES], in[VALUES], out[VALUES] = {{0}};
    rlxvk_graph *body, *condition;
    values[ROUND] = call_scalar(c, 0);
    values[SCORES] = scores;
    values[CHOSEN] = rlxvk_expand(c->graph, call_scalar(c, -1), chosen);
    values[CORNERS] = corners;
    body = begin_graph(c, values, in);
    if (body)
        build_body(body, s, in);
    condition = begin_graph(c, values, in);
    if (condition)
        build_condition(condition, in);
    if (body && condition)
        rlxvk_while(c->graph, condition, body, (uint32_t)s->most, values, VALUES, out);
    rlxvk_graph_destroy(body);
    rlxvk_graph_destroy(condition);
    return out[CHOSEN];
}

/* Boxes [images, boxes, 4] as planes. They are two corners in any order, or centre and size. */
static rlxvk_tensor take_corners(call *c, bool centred)
{
    static const int32_t perm[] = {2, 0, 1};
    rlxvk_graph *g = c->graph;
    rlxvk_shape s = call_shape(c, 0);
    rlxvk_tensor planes = rlxvk_transpose(g, call_tensor(c, 0), perm, 3), part[4], out[4];
    for (int i = 0; i < 4; i++)
        part[i] = rlxvk_narrow(g, planes, 0, i, 1);
    for (int i = 0; i < 2; i++) {
        if (centred) { /* x, y, width, height */
            rlxvk_tensor half = rlxvk_mul(g, part[3 - i], call_scalar(c, 0.5));
            out[i] = rlxvk_sub(g, part[1 - i], half);
            out[2 + i] = rlxvk_add(g, part[1 - i], half);
        } else {
            out[i] = rlxvk_min(g, part[i], part[2 + i]);
            out[2 + i] = rlxvk_max(g, part[i], part[2 + i]);
        }
    }
    planes = rlxvk_concat(g, out, 4, 0);
    return rlxvk_reshape(g, planes, RLXVK_SHAPE(4, s.dims[0], 1, s.dims[1]));
}

/* Rows [image, class, box] of the chosen boxes, in order. */
static void give_rows(call *c, const suppression *s, rlxvk_tensor chosen)
{
    rlxvk_graph *g = c->graph;
    rlxvk_tensor row = rlxvk_reshape(g, chosen, RLXVK_SHAPE(-1)), mask, order, at, columns[3],
                 count;
    mask = call_cast(c, rlxvk_ge(g, row, call_scalar(c, 0)), ONNX_FLOAT);
    order = rlxvk_argsort(g, mask, 0, true);
    count = rlxvk_reduce_sum(g, mask, (const int32_t[]){0}, 1, false);
    columns[0] = call_divide_whole(c, order, s->classes * s->most, &at);
    columns[1] = call_divide_whole(c, at, s->most, &at);
    columns[2] = rlxvk_gather(g, row, order, 0);
    for (int i = 0; i < 3; i++)
        columns[i] = rlxvk_reshape(g, columns[i], RLXVK_SHAPE(-1, 1));
    onnx_give_counted(c, 0, rlxvk_concat(g, columns, 3, 1), call_cast(c, count, ONNX_INT64), 0,
                      ONNX_INT64);
}

static bool read_sizes(call *c, suppression *s)
{
    rlxvk_shape boxes = call_shape(c, 0), scores = call_shape(c, 1);
    if (!call_is_fixed(c, boxes) || !call_is_fixed(c, scores))
        return false;
    if (boxes.rank != 3 || scores.rank != 3 || boxes.dims[2] != 4 ||
        boxes.dims[0] != scores.dims[0] || boxes.dims[1] != scores.dims[2]) {
        call_refuse(c, NULL, "boxes and scores do not fit each other");
        return false;
    }
    s->images = scores.dims[0];
    s->classes = scores.dims[1];
    s->boxes = scores.dims[2];
    s->most = call_host_integer(c, 2, "the length of the result", 0);
    s->most = MIN(MAX(s->most, 0), s->boxes);
    s->threshold = (float)call_host_real(c, 3, "which boxes are removed", 0);
    return !c->failed;
}

void onnx_non_max_suppression(call *c)
{
    rlxvk_graph *g = c->graph;
    bool centred = call_flag(c, "center_point_box", false);
    suppression s;
    rlxvk_tensor scores = call_tensor(c, 1);
    if (!read_sizes(c, &s))
        return;
    if (call_has(c, 4)) {
        double least = call_host_real(c, 4, "which boxes are removed", 0);
        rlxvk_tensor good = rlxvk_gt(g, scores, call_scalar(c, least));
        scores = rlxvk_where(g, good, scores, call_scalar(c, -INFINITY));
    }
    if (s.most == 0 || s.images * s.classes == 0) {
        call_give_host(c, 0, call_make_host(c, ONNX_INT64, RLXVK_SHAPE(0, 3)));
        return;
    }
    if (!c->failed)
        give_rows(c, &s, choose(c, &s, scores, take_corners(c, centred)));
}
