/*
 * Norms over one axis of [outer, n, inner]:
 *   layer_norm        y = (x - mean) / sqrt(var + eps) * gamma + beta, var = mean (x - mean)^2
 *   rms_norm          y = x / sqrt(mean x^2 + eps) * gamma + beta
 *   fused_residual_*  the same over the last axis of (x + residual) + bias
 *   layer_norm2d      layer_norm over axis 1 of [N, C, H, W]
 *   group_norm        layer_norm over the elements of C / groups channels, with gamma and beta by
 *                     channel. Rows are [N * groups, C / groups * spatial] and contiguous.
 *
 * gamma, beta and bias are [n] ([C]). If absent, they are 1, 0 and 0. If var + eps is 0, the row is
 * beta. A NaN or infinity spoils its row. If squares of a row do not fit f32, the row is computed
 * again, times a power of two (norm_factor.glsl).
 *
 * Rows of up to 32 elements a lane stay in registers (one dispatch). If there are enough longer
 * rows, a part of each stays in registers. Few long rows are cut into chunks: first statistics,
 * then the values. If elements of a row have a stride, four rows are computed at a time. A pair
 * (add, norm of the sum) is one step that also stores the sum.
 *
 * Error: 1e-6 + 2e-5 A, where A is the largest |xhat gamma| + |beta| of the row. It is 5e-3 A if
 * the mean is large compared with the deviation.
 */
#include "args/rows.h"
#include "constants/rows.h"
#include "op/bucket.h"
#include "op/rows/norm.h"

#include <math.h>

static const uint32_t kernels[] = {KERNEL_NORM, KERNEL_NORM_SUBGROUP};

/* ---- Building ---- */

static rlxvk_tensor build(rlxvk_graph *g, op_kind op, const rlxvk_tensor *operands, size_t count,
                          int32_t axis, float eps)
{
    const rlxvk_tensor *last = operands + count;
    norm_attributes a = {.axis = axis,
                         .eps = eps,
                         .has_bias = count == 5 && operands[2].id,
                         .has_gamma = last[-2].id,
                         .has_beta = last[-1].id};
    return op_build(g, op, operands, count, &a);
}

rlxvk_tensor rlxvk_layer_norm(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma, rlxvk_tensor beta,
                              int32_t axis, float eps)
{
    return build(g, OP_layer_norm, (rlxvk_tensor[]){x, gamma, beta}, 3, axis, eps);
}

rlxvk_tensor rlxvk_rms_norm(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma, rlxvk_tensor beta,
                            int32_t axis, float eps)
{
    return build(g, OP_rms_norm, (rlxvk_tensor[]){x, gamma, beta}, 3, axis, eps);
}

rlxvk_tensor rlxvk_fused_residual_ln(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor residual,
                                     rlxvk_tensor bias, rlxvk_tensor gamma, rlxvk_tensor beta,
                                     float eps)
{
    rlxvk_tensor operands[] = {x, residual, bias, gamma, beta};
    return build(g, OP_fused_residual_ln, operands, 5, -1, eps);
}

rlxvk_tensor rlxvk_fused_residual_rms_norm(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor residual,
                                           rlxvk_tensor bias, rlxvk_tensor gamma, rlxvk_tensor beta,
                                           float eps)
{
    rlxvk_tensor operands[] = {x, residual, bias, gamma, beta};
    return build(g, OP_fused_residual_rms_norm, operands, 5, -1, eps);
}

rlxvk_tensor rlxvk_layer_norm2d(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma,
                                rlxvk_tensor beta, float eps)
{
    return build(g, OP_layer_norm2d, (rlxvk_tensor[]){x, gamma, beta}, 3, 1, eps);
}

rlxvk_tensor rlxvk_group_norm(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma, rlxvk_tensor beta,
                              int64_t num_groups, float eps)
{
    norm_attributes a = {.axis = 1,
                         .eps = eps,
                         .num_groups = num_groups,
                         .has_gamma = gamma.id,
                         .has_beta = beta.id};
    return op_build(g, OP_group_norm, (rlxvk_tensor[]){x, gamma, beta}, 3, &a);
}

/* ---- Infer ---- */

/* Vectors have an element for each place along the normalized axis. */
static rlxvk_status check_vectors(const rlxvk_graph *g, const node *n, const norm_roles *r,
                                  int64_t length)
{
    const char *like = node_code(n) == NORM_GROUP ? "channels" : "normalized axis";
    const struct {
        uint32_t operand;
        const char *role;
    } vectors[] = {{r->bias, "bias"}, {r->gamma, "gamma"}, {r->beta, "beta"}};
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < ARRAY_COUNT(vectors); i++)
        if (vectors[i].operand != NODE_NONE)
            TRY(op_require_vector(g, n, vectors[i].operand, vectors[i].role, length, like));
error:
    return status;
}

/* Checks x and the groups of the image norms. */
static rlxvk_status check_channels(const node *n, const norm_attributes *a, const rlxvk_shape *x)
{
    char shape[SHAPE_TEXT];
    uint32_t code = node_code(n);
    if (code == NORM_LAYER_2D && x->rank != 4)
        return op_fail(n, RLXVK_E_SHAPE, "x is %s; must be [N, C, H, W]", shape_text(x, shape));
    if (code != NORM_GROUP)
        return RLXVK_OK;
    if (x->rank < 2)
        return op_fail(n, RLXVK_E_SHAPE, "x is %s; must be [N, C, ...]", shape_text(x, shape));
    if (a->num_groups < 1 || x->dims[1] % a->num_groups)
        return op_fail(n, RLXVK_E_ATTR,
                       "num_groups %lld does not divide the channels of x %s; choose a divisor",
                       (long long)a->num_groups, shape_text(x, shape));
    return RLXVK_OK;
}

static rlxvk_status norm_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    norm_attributes *a = attributes;
    norm_roles r = norm_roles_of(n, a);
    char shapes[2][SHAPE_TEXT];
    const rlxvk_shape *x = input_shape(g, n, 0);
    rlxvk_status status;
    if (n->input_count != r.count)
        return op_fail(n, RLXVK_E_ARITY, "%u operands; its attributes name %u", n->input_count,
                       r.count);
    if (x->rank == 0)
        return op_fail(n, RLXVK_E_SHAPE, "x is a scalar; there is no axis to normalize");
    if (r.residual != NODE_NONE && !shape_equal(x, input_shape(g, n, r.residual)))
        return op_fail(n, RLXVK_E_SHAPE, "x is %s and the residual %s; they must agree",
                       shape_text(x, shapes[0]),
                       shape_text(input_shape(g, n, r.residual), shapes[1]));
    if (!(a->eps >= 0) || isinf(a->eps))
        return op_fail(n, RLXVK_E_ATTR, "eps is %g; needs a finite value >= 0", (double)a->eps);
    TRY(check_channels(n, a, x));
    TRY(op_axis(n, a->axis, x->rank, &a->axis));
    TRY(check_vectors(g, n, &r, x->dims[a->axis]));
    n->shape = *x;
    n->dtype = input_dtype(g, n, 0);
error:
    return status;
}

/* x and the residual may share memory with the result. Each element is read before it is written,
 * by the same lane or in an earlier dispatch. */
static uint32_t norm_in_place(const rlxvk_graph *g, const node *n)
{
    (void)g;
    norm_roles r = norm_roles_of(n, n->attributes);
    return r.residual != NODE_NONE ? 3 : 1;
}

/* ---- Lower ---- */

/* Everything that a lowering needs. If an operand is absent, x is bound in its place, and the
 * kernel does not read it as that operand. */
typedef struct norm_work {
    axis_view view;
    row_tile tile;
    uint32_t form; /* of the chunks of long rows */
    uint32_t flags;
    uint32_t groups, group_channels, spatial; /* only group norm, else 0 */
    float eps;
    operand x, residual, bias, gamma, beta, sum, y;
} norm_work;

static operand take(const lowering *l, uint32_t id, uint32_t index, uint32_t flag, norm_work *w)
{
    if (index == NODE_NONE)
        return w->x;
    w->flags |= flag;
    return lower_input(l, id, index);
}

static row_tile choose_tile(lowering *l, const norm_work *w)
{
    operand operands[] = {w->x, w->residual, w->bias, w->gamma, w->beta, w->sum, w->y};
    operand moved[] = {w->x, w->residual, w->sum, w->y};
    uint32_t traits = row_traits(w->view, operands, ARRAY_COUNT(operands)) & ROW_WHOLE;
    traits |= row_traits(w->view, moved, ARRAY_COUNT(moved)) & ROW_ALIKE;
    if (!(w->flags & (NORM_KEEPS_SUM | NORM_HAS_RESIDUAL | NORM_HAS_BIAS)))
        traits |= row_traits(w->view, (operand[]){w->x, w->y}, 2) & ROW_PARTED;
    if (!(w->flags & (NORM_KEEPS_SUM | NORM_HAS_RESIDUAL)))
        traits |= ROW_COPIED;
    if (!(w->flags & NORM_KEEPS_SUM) && traits & ROW_WHOLE) /* ragged rows run out of registers */
        traits |= ROW_REREAD;
    return row_tile_choose(l, w->view, traits, 4, 4 * ROW_MOST_QUADS);
}

/* `x_of` is the node whose operands 0 and 1 are x and the residual: the norm itself, or the add of
 * a pair. */
static norm_work describe_work(lowering *l, uint32_t id, uint32_t x_of, bool has_residual)
{
    const node *n = graph_node(l->graph, id);
    const norm_attributes *a = n->attributes;
    norm_roles r = norm_roles_of(n, a);
    norm_work w = {.view = norm_rows_of(n, a),
                   .flags = r.rms ? NORM_IS_RMS : 0,
                   .eps = a->eps,
                   .x = lower_input(l, x_of, 0),
                   .y = lower_write(l, id)};
    w.residual = take(l, x_of, has_residual ? 1 : NODE_NONE, NORM_HAS_RESIDUAL, &w);
    w.bias = take(l, id, r.bias, NORM_HAS_BIAS, &w);
    w.gamma = take(l, id, r.gamma, NORM_HAS_GAMMA, &w);
    w.beta = take(l, id, r.beta, NORM_HAS_BETA, &w);
    w.sum = w.y;
    w.tile = choose_tile(l, &w);
    if (node_code(n) == NORM_GROUP) {
        w.flags |= NORM_BY_CHANNEL;
        w.groups = (uint32_t)a->num_groups;
        w.group_channels = (uint32_t)(n->shape.dims[1] / a->num_groups);
        w.spatial = (uint32_t)shape_product(&n->shape, 2, n->shape.rank);
        if (w.spatial % 4 == 0 && row_plain_form(&w.tile) == ROW_FORM_QUADS)
            w.flags |= NORM_BY_QUADS;
    }
    return w;
}

/* All three kernels take the same arguments; each reads only some. */
static struct norm_args arguments(const norm_work *w, row_chunks chunks)
{
    return (struct norm_args){.rows = row_arguments(w->view, &w->tile, chunks),
                              .x_offset = w->x.offset,
                              .residual_offset = w->residual.offset,
                              .bias_offset = w->bias.offset,
                              .gamma_offset = w->gamma.offset,
                              .beta_offset = w->beta.offset,
                              .sum_offset = w->sum.offset,
                              .y_offset = w->y.offset,
                              .eps = w->eps,
                              .groups = w->groups,
                              .group_channels = w->group_channels,
                              .spatial = w->spatial};
}

/* `quads` is how much of a row a lane holds. If 0, it holds as much as it can, and the rest is read
 * again. */
static rlxvk_status lower_whole(lowering *l, const norm_work *w, uint32_t quads)
{
    uint32_t held = quads ? quads : w->tile.held;
    struct norm_args args = arguments(w, row_unbroken(w->view));
    dispatch d = row_dispatch_either(l, kernels, &w->tile, &args.rows);
    operand operands[] = {w->x, w->residual, w->bias, w->gamma, w->beta, w->sum, w->y};
    SET_CONSTANTS(&d, {NORM_ROWS_FLAGS, w->flags}, {NORM_ROWS_FORM, w->tile.form->form},
                  {NORM_ROWS_QUADS, held}, {NORM_ROWS_LONG, quads == 0});
    return lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

static rlxvk_status emit_partial(lowering *l, const norm_work *w, row_chunks chunks,
                                 operand statistics)
{
    struct norm_args args = arguments(w, chunks);
    dispatch d = row_dispatch(l, KERNEL_NORM_PARTIAL, &w->tile, &args.rows);
    /* If no sum is kept, the operand in its place must not look written. */
    operand sum = w->flags & NORM_KEEPS_SUM ? w->sum : statistics;
    const uint32_t of_results = NORM_HAS_GAMMA | NORM_HAS_BETA | NORM_BY_CHANNEL | NORM_BY_QUADS;
    operand operands[] = {w->x, w->residual, w->bias, sum, statistics};
    SET_CONSTANTS(&d, {NORM_PARTIAL_FLAGS, norm_turn_flags(l) | (w->flags & ~of_results)},
                  {NORM_PARTIAL_FORM, w->form});
    return lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

static rlxvk_status emit_finish(lowering *l, const norm_work *w, row_chunks chunks,
                                operand statistics)
{
    struct norm_args args = arguments(w, chunks);
    dispatch d = row_dispatch(l, KERNEL_NORM_FINISH, &w->tile, &args.rows);
    statistics.access = ACCESS_READ;
    operand operands[] = {w->x, w->residual, w->bias, w->gamma, w->beta, statistics, w->y};
    SET_CONSTANTS(&d, {NORM_FINISH_FLAGS, w->flags}, {NORM_FINISH_FORM, w->form});
    return lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

static rlxvk_status lower_chunks(lowering *l, norm_work w)
{
    w.form = row_plain_form(&w.tile);
    w.tile = row_tile_plain(l, w.view, 4, 4 * ROW_MOST_QUADS);
    uint64_t length = (uint64_t)NORM_CHUNK_ELEMENTS * w.tile.lanes;
    row_chunks chunks = {(uint32_t)divide_up(w.view.length, length), length};
    operand statistics;
    rlxvk_status status;
    TRY(lower_temporary(l, 4 * NORM_PART_WORDS * w.view.outer * chunks.count * w.view.inner,
                        &statistics));
    TRY(emit_partial(l, &w, chunks, statistics));
    if (w.flags & NORM_KEEPS_SUM) {
        w.x = w.residual = w.sum;
        w.x.access = w.residual.access = ACCESS_READ;
        w.flags &= ~(NORM_HAS_RESIDUAL | NORM_KEEPS_SUM);
    }
    TRY(emit_finish(l, &w, chunks, statistics));
error:
    return status;
}

static rlxvk_status lower_columns(lowering *l, const norm_work *w)
{
    struct norm_args args = arguments(w, row_unbroken(w->view));
    args.rows.inner /= 4;
    args.rows.outputs /= 4;
    dispatch d = row_dispatch(l, KERNEL_NORM_COLUMNS, &w->tile, &args.rows);
    operand operands[] = {w->x, w->gamma, w->beta, w->y};
    SET_CONSTANTS(&d, {NORM_COLUMNS_FLAGS, w->flags},
                  {NORM_COLUMNS_HELD, row_column_held(w->view, &w->tile)});
    return lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

static rlxvk_status lower_work(lowering *l, const norm_work *w)
{
    if (w->tile.form->form == ROW_FORM_COLUMNS)
        return lower_columns(l, w);
    uint32_t quads = row_quads(w->view, &w->tile);
    return quads || row_is_long(&w->tile) ? lower_whole(l, w, quads) : lower_chunks(l, *w);
}

static rlxvk_status norm_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    norm_roles r = norm_roles_of(n, n->attributes);
    norm_work w = describe_work(l, id, id, r.residual != NODE_NONE);
    return lower_work(l, &w);
}

/* `first` is an add of two tensors of the norm's shape. `id` is a plain norm whose operand 0 is
 * that add. */
static rlxvk_status norm_lower_pair(lowering *l, uint32_t first, uint32_t id)
{
    norm_work w = describe_work(l, id, first, true);
    w.flags |= NORM_KEEPS_SUM;
    w.sum = lower_write(l, first);
    w.tile = choose_tile(l, &w);
    return lower_work(l, &w);
}

/* Group norm reduces over a whole group of an image, so only axis 0 can hold rows. */
static uint64_t norm_bucket(bucket_call *c)
{
    const norm_attributes *a = c->node->attributes;
    norm_roles r = norm_roles_of(c->node, a);
    uint32_t like = r.residual == NODE_NONE ? 0 : 1u << r.residual;
    return bucket_rows(c, node_code(c->node) == NORM_GROUP ? ~1u : 1u << a->axis, like);
}

/* ---- The family ---- */

static void norm_describe(const node *n, text *out)
{
    const norm_attributes *a = n->attributes;
    text_append(out, " axis=%d eps=%g%s%s%s", a->axis, (double)a->eps, a->has_bias ? " bias" : "",
                a->has_gamma ? " gamma" : "", a->has_beta ? " beta" : "");
    if (a->num_groups)
        text_append(out, " num_groups=%lld", (long long)a->num_groups);
}

const op_family norm_family = {
    .name = "norm",
    .attribute_size = sizeof(norm_attributes),
    .infer = norm_infer,
    .memory = {.in_place = norm_in_place},
    .execution = {.lower = norm_lower, .lower_pair = norm_lower_pair, .host = norm_host},
    .rows = {.bucket = norm_bucket, .shorten = norm_shorten},
    .derivative = {.vjp = norm_vjp, .expand = norm_expand},
    .describe = norm_describe,
};
