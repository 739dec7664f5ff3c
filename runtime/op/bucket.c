/* Bucket rules that several families share; see bucket.h. */
#include "op/bucket.h"

void bucket_explain(const rlxvk_graph *g, uint32_t id, const char *why, text *out)
{
    char label[NODE_LABEL];
    if (!out->length)
        text_append(out, "%s: %s", op_node_label(g, id, label), why);
}

static void note_input(bucket_walk *w, const bucket_input *input, text *why)
{
    const rlxvk_shape *shape = &graph_node(w->graph, input->node)->shape;
    uint32_t axis = (uint32_t)input->axis;
    w->indices[input->node] |= input->indices;
    if (input->indices)
        return;
    if (w->spans[input->node] && why)
        bucket_explain(w->graph, input->node, "it has rows of the bucket along several axes", why);
    w->unit = common_divisor((uint64_t)shape->dims[axis], w->unit);
    w->spans[input->node] = shape_product(shape, axis, shape->rank);
}

rlxvk_status bucket_walk_begin(const rlxvk_graph *g, const bucket_input *inputs, size_t count,
                               rlxvk_precision precision, text *why, bucket_walk *out)
{
    *out = (bucket_walk){.graph = g,
                         .spans = memory_zeroed(g->nodes.count + 1, sizeof *out->spans),
                         .indices = memory_zeroed(g->nodes.count + 1, sizeof *out->indices),
                         .precision = precision};
    if (!out->spans || !out->indices)
        return status_fail_memory("rows of a bucket");
    for (size_t i = 0; i < count; i++)
        note_input(out, &inputs[i], why);
    return RLXVK_OK;
}

void bucket_walk_end(bucket_walk *w)
{
    memory_free(w->spans);
    memory_free(w->indices);
    *w = (bucket_walk){0};
}

static uint64_t span_of(bucket_call *c, bool on_host)
{
    const op_family *family = node_row(c->node)->family;
    if (!bucket_others(c, 0))
        return BUCKET_FIXED;
    if (on_host)
        return bucket_refuse(c, "it runs on the host");
    if (c->unit == 1 && !node_writes(c->node)) /* all of it is active, or nothing */
        return shape_numel(&c->node->shape);
    return family->rows.bucket ? family->rows.bucket(c)
                               : bucket_refuse(c, "what it does is not known to keep rows apart");
}

bucket_call bucket_walk_node(bucket_walk *w, uint32_t id, bool on_host)
{
    bucket_call c = {.graph = w->graph,
                     .node = graph_node(w->graph, id),
                     .spans = w->spans,
                     .indices = w->indices,
                     .unit = w->unit,
                     .precision = w->precision,
                     .why = ""};
    if (c.node->input_count)
        w->spans[id] = span_of(&c, on_host);
    return c;
}

uint64_t bucket_refuse(bucket_call *c, const char *why)
{
    c->why = why;
    return BUCKET_NONE;
}

/* At most one axis fits, because the unit is more than 1. */
int32_t bucket_axis_of(const rlxvk_shape *s, uint64_t span, uint64_t unit)
{
    for (uint32_t axis = 0; span && axis < s->rank; axis++)
        if (shape_product(s, axis, s->rank) == span && (uint64_t)s->dims[axis] % unit == 0)
            return (int32_t)axis;
    return -1;
}

int32_t bucket_axis(const bucket_call *c, uint32_t i)
{
    return bucket_axis_of(input_shape(c->graph, c->node, i), bucket_span(c, i), c->unit);
}

uint64_t bucket_along(bucket_call *c, int64_t axis)
{
    const rlxvk_shape *s = &c->node->shape;
    if (axis < 0 || axis >= s->rank || (uint64_t)s->dims[axis] % c->unit)
        return bucket_refuse(c, "it has no axis of whole buckets");
    return shape_product(s, (uint32_t)axis, s->rank);
}

bool bucket_others(const bucket_call *c, uint32_t mask)
{
    bool others = false;
    for (uint32_t i = 0; i < c->node->input_count && !others; i++)
        others = !(mask >> MIN(i, 31) & 1) && bucket_span(c, i) != BUCKET_FIXED;
    return others;
}

uint64_t bucket_same(bucket_call *c)
{
    return bucket_others(c, 1) ? bucket_refuse(c, "an operand behind its first depends on the rows")
                               : bucket_span(c, 0);
}

uint64_t bucket_first(bucket_call *c)
{
    return bucket_span(c, 0);
}

static uint64_t broadcast_span(bucket_call *c, uint32_t i)
{
    const rlxvk_shape *from = input_shape(c->graph, c->node, i), *to = &c->node->shape;
    int32_t axis = bucket_axis(c, i);
    int64_t target = (int64_t)axis + to->rank - from->rank;
    if (shape_numel(from) == shape_numel(to))
        return bucket_span(c, i);
    if (axis < 0 || target < 0 || to->dims[target] != from->dims[axis])
        return bucket_refuse(c, "it repeats an operand along its rows");
    return bucket_along(c, target);
}

uint64_t bucket_broadcast(bucket_call *c)
{
    uint64_t span = BUCKET_FIXED;
    for (uint32_t i = 0; i < c->node->input_count && span != BUCKET_NONE; i++) {
        uint64_t mine = bucket_span(c, i) ? broadcast_span(c, i) : BUCKET_FIXED;
        if (mine != BUCKET_NONE && mine && span && mine != span)
            return bucket_refuse(c, "the rows of its operands lie along different axes");
        span = mine ? mine : span;
    }
    return span;
}

row_place bucket_place(const bucket_call *c, uint32_t i)
{
    const rlxvk_shape *s = input_shape(c->graph, c->node, i);
    uint64_t span = bucket_span(c, i);
    for (uint32_t axis = 0; span && axis < s->rank; axis++) {
        uint64_t row = shape_product(s, axis + 1, s->rank);
        uint64_t all = row * (uint64_t)s->dims[axis];
        if (span > row && all % span == 0 && span % row == 0 && span / row % c->unit == 0)
            return (row_place){(int32_t)axis, s->dims[axis], span / row};
    }
    return (row_place){-1, 0, 0};
}

/* The place of the rows of all operands. The axis is -1 if there is no common one; c->why has the
 * reason. */
static row_place common_place(bucket_call *c, uint32_t used, uint32_t like)
{
    row_place common = {-1, 0, 0};
    bool apart = false;
    c->why = "an operand that each row needs whole depends on the rows";
    if (bucket_others(c, like | 1))
        return common;
    for (uint32_t i = 0; i < c->node->input_count; i++) {
        row_place mine = bucket_place(c, i);
        if (bucket_span(c, i) == BUCKET_FIXED)
            continue;
        apart = apart || mine.axis < 0 ||
                (common.axis >= 0 && (common.axis != mine.axis || common.dim != mine.dim ||
                                      common.count != mine.count));
        common = mine;
    }
    c->why = apart ? "its rows do not lie along one axis" : "it computes across the rows";
    return apart || (used >> common.axis & 1) ? (row_place){-1, 0, 0} : common;
}

/* The span of a tensor that has these rows along this axis. */
static uint64_t span_along(bucket_call *c, const rlxvk_shape *s, row_place place, int64_t axis)
{
    bool all = place.count == (uint64_t)place.dim; /* the axis may then have several elements a row
                                                    */
    if (axis < 0 || axis >= s->rank ||
        (all ? (uint64_t)s->dims[axis] % c->unit != 0 : s->dims[axis] != place.dim))
        return bucket_refuse(c, "it has no axis of whole buckets");
    return (all ? (uint64_t)s->dims[axis] : place.count) *
           shape_product(s, (uint32_t)axis + 1, s->rank);
}

uint64_t bucket_at(bucket_call *c, row_place place, int64_t axis)
{
    return span_along(c, &c->node->shape, place, axis);
}

uint64_t bucket_rows(bucket_call *c, uint32_t used, uint32_t like)
{
    row_place place = common_place(c, used, like);
    return place.axis < 0 ? BUCKET_NONE : bucket_at(c, place, place.axis);
}

uint64_t bucket_parts(bucket_call *c, uint32_t used, uint32_t like)
{
    row_place place = common_place(c, used, like);
    const rlxvk_shape *part = input_shape(c->graph, c->node, 0);
    return place.axis < 0 ? BUCKET_NONE : span_along(c, part, place, place.axis);
}

uint64_t bucket_reduced(bucket_call *c, uint32_t used, bool keep_dim)
{
    row_place place = common_place(c, used, 0);
    uint32_t gone = place.axis < 0 || keep_dim ? 0 : used & ((1u << place.axis) - 1);
    return place.axis < 0 ? BUCKET_NONE : bucket_at(c, place, place.axis - count_set_bits(gone));
}

uint64_t bucket_batch(bucket_call *c)
{
    return bucket_rows(c, ~1u, 0);
}

uint64_t bucket_vectors(bucket_call *c)
{
    return bucket_rows(c, 1u << (input_shape(c->graph, c->node, 0)->rank - 1), 0);
}
