/*
 * Rotary embedding: each pair (a, b) of a head becomes (a c - b s, b c + a s). c and s come from
 * tables that have one row for each position, or for each token. The sequence is the last axis but
 * one, and the last axis holds whole heads. Columns from n_rot on are copied. If a table has too
 * few rows, this is an error, because tables do not wrap around. rope_backward rotates back: it
 * uses -s instead of s.
 */
#include "args/attention.h"
#include "constants/attention.h"
#include "op/attention/attention.h"
#include "op/bucket.h"
#include "op/families.h"
#include "op/gradient.h"

#include <rlxvk_ops_array.h>
#include <rlxvk_train.h>

#include <math.h>

typedef struct rope_attributes {
    rlxvk_rope_options options; /* table is resolved: never AUTO */
} rope_attributes;

typedef struct rope_geometry {
    int64_t sequence, row_length; /* S; elements of a row */
    int64_t batch, batch_rows;    /* size of axis 0 (1 at rank 2); rows of x for one index of it */
    int64_t table_rows, columns;
} rope_geometry;

/* ---- Building ---- */

static rlxvk_tensor build(rlxvk_graph *g, op_kind op, rlxvk_tensor x, rlxvk_tensor cos,
                          rlxvk_tensor sin, const rlxvk_rope_options *options)
{
    rope_attributes a = {0};
    rlxvk_tensor operands[] = {x, cos, sin};
    if (!op_take(g, op_table[op].name, SIZED(rlxvk_rope_options), options, &a.options))
        return RLXVK_NONE;
    return op_build(g, op, operands, ARRAY_COUNT(operands), &a);
}

rlxvk_tensor rlxvk_rope(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor cos, rlxvk_tensor sin,
                        const rlxvk_rope_options *options)
{
    return build(g, OP_rope, x, cos, sin, options);
}

rlxvk_tensor rlxvk_rope_backward(rlxvk_graph *g, rlxvk_tensor dy, rlxvk_tensor cos,
                                 rlxvk_tensor sin, const rlxvk_rope_options *options)
{
    return build(g, OP_rope_backward, dy, cos, sin, options);
}

static bool turns_back(const node *n)
{
    return node_code(n) == ROPE_TURN_BACK;
}

/* ---- Infer ---- */

static rope_geometry geometry_of(const rlxvk_rope_options *o, const rlxvk_shape *x,
                                 const rlxvk_shape *table)
{
    rope_geometry r = {.sequence = x->dims[x->rank - 2],
                       .row_length = x->dims[x->rank - 1],
                       .batch = x->rank > 2 ? x->dims[0] : 1,
                       .columns = o->head_dim / 2};
    r.batch_rows = (int64_t)shape_product(x, x->rank > 2 ? 1 : 0, x->rank - 1);
    if (table->rank >= 2) {
        r.columns = table->dims[table->rank - 1];
        r.table_rows = (int64_t)shape_product(table, 0, table->rank - 1);
    } else {
        r.table_rows = (int64_t)shape_numel(table) / r.columns;
    }
    return r;
}

static rlxvk_status check_options(const node *n, const rlxvk_rope_options *o)
{
    if (o->head_dim < 2 || o->head_dim % 2 || o->head_dim > INT32_MAX)
        return op_fail(n, RLXVK_E_ATTR, "head_dim %lld; must be even, at least 2",
                       (long long)o->head_dim);
    if (o->n_rot < 0 || o->n_rot % 2 || o->n_rot > o->head_dim)
        return op_fail(n, RLXVK_E_ATTR, "n_rot %lld; must be even, from 0 to head_dim %lld",
                       (long long)o->n_rot, (long long)o->head_dim);
    if ((unsigned)o->style > RLXVK_ROPE_GPTJ || (unsigned)o->table > RLXVK_ROPE_TABLE_PER_TOKEN)
        return op_fail(n, RLXVK_E_ATTR, "style %d, table mode %d; styles are 0 and 1, modes 0 to 2",
                       (int)o->style, (int)o->table);
    return RLXVK_OK;
}

static rlxvk_status check_tables(const node *n, rlxvk_rope_options *o, const rope_geometry *r,
                                 const rlxvk_shape *cos, const rlxvk_shape *sin)
{
    char cos_text[SHAPE_TEXT], sin_text[SHAPE_TEXT];
    int64_t tokens = r->batch * r->sequence;
    if (!shape_equal(cos, sin))
        return op_fail(n, RLXVK_E_SHAPE, "cos %s and sin %s differ; both tables have one shape",
                       shape_text(cos, cos_text), shape_text(sin, sin_text));
    if (r->columns < o->n_rot / 2)
        return op_fail(n, RLXVK_E_SHAPE, "tables %s have %lld columns; n_rot %lld needs %lld",
                       shape_text(cos, cos_text), (long long)r->columns, (long long)o->n_rot,
                       (long long)o->n_rot / 2);
    if (o->table == RLXVK_ROPE_TABLE_AUTO)
        o->table = r->table_rows == tokens && r->table_rows != r->sequence
                       ? RLXVK_ROPE_TABLE_PER_TOKEN
                       : RLXVK_ROPE_TABLE_PER_POSITION;
    bool per_token = o->table == RLXVK_ROPE_TABLE_PER_TOKEN;
    if (per_token ? r->table_rows != tokens : r->table_rows < r->sequence)
        return op_fail(n, RLXVK_E_SHAPE, "tables %s have %lld rows; needs %s%lld, one per %s",
                       shape_text(cos, cos_text), (long long)r->table_rows,
                       per_token ? "" : "at least ", (long long)(per_token ? tokens : r->sequence),
                       per_token ? "token" : "position");
    return RLXVK_OK;
}

static rlxvk_status rope_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    rlxvk_rope_options *o = &((rope_attributes *)attributes)->options;
    const rlxvk_shape *x = input_shape(g, n, 0), *cos = input_shape(g, n, 1);
    char buffer[SHAPE_TEXT];
    rlxvk_status status;
    TRY(check_options(n, o));
    if (x->rank < 2)
        return op_fail(n, RLXVK_E_SHAPE, "x %s; needs a sequence axis and a row",
                       shape_text(x, buffer));
    if (x->dims[x->rank - 1] % o->head_dim)
        return op_fail(n, RLXVK_E_SHAPE, "rows of x %s are not a multiple of head_dim %lld",
                       shape_text(x, buffer), (long long)o->head_dim);
    rope_geometry r = geometry_of(o, x, cos);
    TRY(check_tables(n, o, &r, cos, input_shape(g, n, 2)));
    n->shape = *x;
    n->dtype = (uint8_t)input_dtype(g, n, 0);
error:
    return status;
}

static rlxvk_status rope_settle(const node *n, void *given, const void *inferred)
{
    rlxvk_rope_options *o = &((rope_attributes *)given)->options;
    const rlxvk_rope_options *at = &((const rope_attributes *)inferred)->options;
    if (o->table != RLXVK_ROPE_TABLE_AUTO && o->table != at->table)
        return op_fail(n, RLXVK_E_ATTR,
                       "table AUTO is one row per token at some sizes of the symbols and per "
                       "position at others; give the table");
    o->table = at->table;
    return RLXVK_OK;
}

/* ---- Lower ---- */

rlxvk_status rope_emit(lowering *l, uint32_t id, struct rope_args *arguments,
                       const operand operands[4], bool neighbours, bool back)
{
    dispatch d = {.kernel = KERNEL_ROPE, .node = id};
    arguments->x_offset = operands[0].offset;
    arguments->cos_offset = operands[1].offset;
    arguments->sin_offset = operands[2].offset;
    arguments->y_offset = operands[3].offset;
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size}, {ROPE_NEIGHBOURS, neighbours},
                  {ROPE_BACK, back});
    lower_groups_in_order(l, &d, arguments->pairs, l->profile->workgroup_size);
    return lower_emit(l, &d, arguments, sizeof *arguments, operands, 4);
}

/* Takes rows of x with up to three axes, and rows of tables with one, if columns are contiguous. */
static bool rope_accepts_strides(const rlxvk_graph *g, const node *n, uint32_t i,
                                 const int64_t *strides)
{
    if (i == n->input_count)
        return false;
    uint32_t rank = input_shape(g, n, i)->rank;
    return (i == 0 ? rank <= 4 : rank == 2) && strides[rank - 1] == 1;
}

/* Elements from one row of a table to the next. Only tables of rank 2 may have strides; others are
 * dense. */
static uint32_t table_pitch(const lowering *l, uint32_t table, int64_t columns)
{
    int64_t strides[RLXVK_MAX_RANK];
    lower_strides(l, table, strides);
    return (uint32_t)(graph_node(l->graph, table)->shape.rank == 2 ? strides[0] : columns);
}

static rlxvk_status rope_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const rlxvk_rope_options *o = &((const rope_attributes *)n->attributes)->options;
    rope_geometry r = geometry_of(o, &n->shape, input_shape(l->graph, n, 1));
    operand operands[] = {lower_input(l, id, 0), lower_input(l, id, 1), lower_input(l, id, 2),
                          lower_write(l, id)};
    bool per_token = o->table == RLXVK_ROPE_TABLE_PER_TOKEN;
    uint32_t rank = n->shape.rank;
    int64_t strides[RLXVK_MAX_RANK];
    lower_strides(l, n->inputs[0], strides);
    struct rope_args arguments = {.pairs = (uint32_t)(shape_numel(&n->shape) / 2),
                                  .row_pairs = (uint32_t)r.row_length / 2,
                                  .head_pairs = (uint32_t)o->head_dim / 2,
                                  .rotated_pairs = (uint32_t)o->n_rot / 2,
                                  .sequence = (uint32_t)r.sequence,
                                  .batch_rows = (uint32_t)r.batch_rows,
                                  .table_batch = per_token ? (uint32_t)r.sequence : 0,
                                  .cos_row = table_pitch(l, n->inputs[1], r.columns),
                                  .sin_row = table_pitch(l, n->inputs[2], r.columns),
                                  .x_batch = rank > 2 ? (uint32_t)strides[0] : 0,
                                  .x_sequence = rank > 3 ? (uint32_t)strides[rank - 3] : 0,
                                  .x_row = (uint32_t)strides[rank - 2]};
    return rope_emit(l, id, &arguments, operands, o->style == RLXVK_ROPE_GPTJ, turns_back(n));
}

/* ---- Host ---- */

/* Rotates the pairs of one head. The tolerance is 2^-24 (8 + 4 sqrt 2) times the sum of both
 * |terms|. */
static void rotate_head(const rlxvk_rope_options *o, bool back, const float *x, const float *c,
                        const float *s, double *y, double *bound)
{
    double factor = ldexp(8 + 4 * sqrt(2.0), -24);
    int64_t half = o->n_rot / 2;
    for (int64_t i = 0; i < half; i++) {
        int64_t a = o->style == RLXVK_ROPE_GPTJ ? 2 * i : i;
        int64_t b = o->style == RLXVK_ROPE_GPTJ ? 2 * i + 1 : i + half;
        double sine = back ? -(double)s[i] : s[i];
        y[a] = (double)x[a] * c[i] - x[b] * sine;
        y[b] = (double)x[b] * c[i] + x[a] * sine;
        if (!bound)
            continue;
        bound[a] = 1e-7 + factor * (fabs((double)x[a] * c[i]) + fabs((double)x[b] * s[i]));
        bound[b] = 1e-7 + factor * (fabs((double)x[b] * c[i]) + fabs((double)x[a] * s[i]));
    }
    for (int64_t i = o->n_rot; i < o->head_dim; i++)
        y[i] = x[i];
}

static rlxvk_status rope_host(const host_call *call)
{
    const rlxvk_rope_options *o = &((const rope_attributes *)call->node->attributes)->options;
    const host_tensor *in = call->inputs;
    rope_geometry r = geometry_of(o, &in[0].node->shape, &in[1].node->shape);
    int64_t rows = r.batch * r.batch_rows, heads = r.row_length / o->head_dim;
    for (int64_t row = 0; row < rows; row++) {
        int64_t position = row % r.sequence;
        if (o->table == RLXVK_ROPE_TABLE_PER_TOKEN)
            position += row / r.batch_rows * r.sequence;
        for (int64_t h = 0; h < heads; h++) {
            int64_t at = row * r.row_length + h * o->head_dim;
            rotate_head(o, turns_back(call->node), in[0].words + at,
                        in[1].words + position * r.columns, in[2].words + position * r.columns,
                        call->out + at, call->bound ? call->bound + at : NULL);
        }
    }
    return RLXVK_OK;
}

/* ---- Gradients ---- */

/* The rotated columns of t as [batch, rows, sequence, heads, pairs, 2]. With style NEOX the last
 * two axes are [2, pairs]. */
static rlxvk_tensor as_pairs(rlxvk_graph *g, const rlxvk_rope_options *o, const rope_geometry *r,
                             rlxvk_tensor t)
{
    int64_t half = o->n_rot / 2;
    rlxvk_shape s = RLXVK_SHAPE(r->batch, r->batch_rows / r->sequence, r->sequence,
                                r->row_length / o->head_dim, o->head_dim);
    t = rlxvk_narrow(g, rlxvk_reshape(g, t, s), 4, 0, o->n_rot);
    s.rank = 6;
    s.dims[4] = o->style == RLXVK_ROPE_GPTJ ? half : 2;
    s.dims[5] = o->style == RLXVK_ROPE_GPTJ ? 2 : half;
    return rlxvk_reshape(g, t, s);
}

/* Sums t, which is `pairs` wide, over all elements that read the same row of a table. The result
 * has the table's shape. Columns and rows that are never read get 0. */
static rlxvk_tensor to_table(rlxvk_graph *g, const rlxvk_rope_options *o, const rope_geometry *r,
                             rlxvk_tensor t, int32_t pair_axis, rlxvk_shape table)
{
    bool per_token = o->table == RLXVK_ROPE_TABLE_PER_TOKEN;
    int32_t axes[4] = {1, 3, pair_axis, 0};
    int64_t half = o->n_rot / 2, none = 0, more = r->columns - half;
    int64_t rows = (per_token ? r->batch : 1) * r->sequence;
    t = rlxvk_reduce_sum(g, t, axes, per_token ? 3 : 4, false);
    t = rlxvk_reshape(g, t, RLXVK_SHAPE(rows, half));
    if (more)
        t = rlxvk_pad(g, t, &none, &more, 1, NULL);
    t = rlxvk_reshape(g, t, RLXVK_SHAPE(rows * r->columns));
    more = (int64_t)shape_numel(&table) - rows * r->columns;
    if (more)
        t = rlxvk_pad(g, t, &none, &more, 1, NULL);
    return rlxvk_reshape(g, t, table);
}

/* For a pair (a, b), cos gets dy_a a + dy_b b and sin gets dy_b a - dy_a b. A rotation back negates
 * sin's. */
static void give_tables(gradient_call *c, const rlxvk_rope_options *o)
{
    rlxvk_graph *g = c->graph;
    rlxvk_shape table = gradient_shape(c, 1);
    rope_geometry r = geometry_of(o, &c->n.shape, &table);
    int32_t pair_axis = o->style == RLXVK_ROPE_GPTJ ? 5 : 4;
    if (shape_numel(&c->n.shape) == 0 || o->n_rot == 0) {
        gradient_give_zero(c, 1);
        gradient_give_zero(c, 2);
        return;
    }
    rlxvk_tensor x = as_pairs(g, o, &r, gradient_operand(c, 0)), dy = as_pairs(g, o, &r, c->dy);
    if (gradient_wanted(c, 1))
        gradient_give(c, 1, to_table(g, o, &r, rlxvk_gradient_product(g, dy, x), pair_axis, table));
    if (gradient_wanted(c, 2)) {
        rlxvk_tensor a = rlxvk_narrow(g, x, pair_axis, 0, 1);
        rlxvk_tensor b = rlxvk_narrow(g, x, pair_axis, 1, 1);
        rlxvk_tensor up = rlxvk_gradient_product(g, rlxvk_narrow(g, dy, pair_axis, 1, 1), a);
        rlxvk_tensor down = rlxvk_gradient_product(g, rlxvk_narrow(g, dy, pair_axis, 0, 1), b);
        rlxvk_tensor turn = turns_back(&c->n) ? rlxvk_sub(g, down, up) : rlxvk_sub(g, up, down);
        gradient_give(c, 2, to_table(g, o, &r, turn, pair_axis, table));
    }
}

/* The transpose of a rotation is the rotation back. */
static rlxvk_status rope_vjp(gradient_call *c)
{
    const rlxvk_rope_options *o = &((const rope_attributes *)c->n.attributes)->options;
    op_kind op = turns_back(&c->n) ? OP_rope : OP_rope_backward;
    if (gradient_wanted(c, 0))
        gradient_give(c, 0,
                      build(c->graph, op, c->dy, gradient_operand(c, 1), gradient_operand(c, 2),
                            o));
    if (gradient_wanted(c, 1) || gradient_wanted(c, 2))
        give_tables(c, o);
    return RLXVK_OK;
}

/* Tables may also have a row for each row of the bucket, if the bucket is the sequence. */
static uint64_t rope_bucket(bucket_call *c)
{
    const rlxvk_shape *x = input_shape(c->graph, c->node, 0);
    int32_t rows = bucket_axis(c, 0);
    if (rows < 0 || rows == (int32_t)x->rank - 1)
        return bucket_refuse(c, "its vectors are not rows of the bucket");
    for (uint32_t i = 1; i < 3; i++) {
        const rlxvk_shape *table = input_shape(c->graph, c->node, i);
        if (bucket_span(c, i) == BUCKET_FIXED)
            continue;
        if (rows != (int32_t)x->rank - 2 || bucket_axis(c, i) != (int32_t)table->rank - 2 ||
            shape_product(table, 0, table->rank - 1) != (uint64_t)x->dims[rows])
            return bucket_refuse(c, "its tables are not of the rows of its sequence");
    }
    return bucket_along(c, rows);
}

/* ---- The family ---- */

static void rope_describe(const node *n, text *out)
{
    static const char *const modes[] = {"auto", "position", "token"};
    const rlxvk_rope_options *o = &((const rope_attributes *)n->attributes)->options;
    text_append(out, " head_dim=%lld n_rot=%lld style=%s table=%s", (long long)o->head_dim,
                (long long)o->n_rot, o->style == RLXVK_ROPE_GPTJ ? "gptj" : "neox",
                modes[o->table]);
}

const op_family rope_family = {
    .name = "rope",
    .attribute_size = sizeof(rope_attributes),
    .infer = rope_infer,
    .settle = rope_settle,
    .views = {.accepts_strides = rope_accepts_strides},
    .memory = {.in_place = op_first_in_place},
    .execution = {.lower = rope_lower, .host = rope_host},
    .rows = {.bucket = rope_bucket},
    .derivative = {.vjp = rope_vjp},
    .describe = rope_describe,
};
