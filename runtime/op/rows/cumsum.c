/*
 * cumsum: y[j] = sum of x[k] over k <= j (k < j if exclusive) along one axis. cumprod is the
 * product. Few long rows take two dispatches: the first sums chunks. The second makes running sums
 * within chunks, and each chunk starts with the sum of those before it. A NaN or infinity affects
 * only elements after it.
 *
 * Error at j: 2^-23 (4 + sqrt j) sum |x[k]| for a sum, 1.2e-7 (j + 1) |y[j]| for a product. A
 * product also loses precision if neighbours multiply to a denormal (running_product.h).
 */
#include "args/rows.h"
#include "constants/rows.h"
#include "op/compose/composite.h"
#include "op/gradient.h"
#include "op/rows/rows.h"
#include "op/running_product.h"
#include "op/shorten.h"

#include <rlxvk_ops_math.h>
#include <rlxvk_train.h>

#include <math.h>

typedef struct cumsum_attributes {
    int32_t axis;
    bool exclusive;
} cumsum_attributes;

rlxvk_tensor rlxvk_cumsum(rlxvk_graph *g, rlxvk_tensor x, int32_t axis, bool exclusive)
{
    cumsum_attributes a = {.axis = axis, .exclusive = exclusive};
    return op_build(g, OP_cumsum, &x, 1, &a);
}

rlxvk_tensor rlxvk_cumprod(rlxvk_graph *g, rlxvk_tensor x, int32_t axis, bool exclusive)
{
    cumsum_attributes a = {.axis = axis, .exclusive = exclusive};
    return op_build(g, OP_cumprod, &x, 1, &a);
}

/* Sums from the other end. A scalar has only one end. */
rlxvk_tensor rlxvk_cumsum_backward(rlxvk_graph *g, rlxvk_tensor dy, int32_t axis, bool exclusive)
{
    static const char row[] = "cumsum_backward";
    if (!composite_begin(g, row, &dy, 1))
        return RLXVK_NONE;
    size_t start = g->nodes.count;
    bool turns = rlxvk_tensor_shape(g, dy).rank > 0;
    rlxvk_tensor sums = turns ? rlxvk_reverse(g, dy, &axis, 1) : dy;
    sums = rlxvk_cumsum(g, sums, axis, exclusive);
    return composite_end(g, row, start, turns ? rlxvk_reverse(g, sums, &axis, 1) : sums);
}

static rlxvk_status cumsum_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    cumsum_attributes *a = attributes;
    n->shape = *input_shape(g, n, 0);
    n->dtype = input_dtype(g, n, 0);
    return op_axis(n, a->axis, n->shape.rank, &a->axis);
}

static axis_view view_of(const node *n)
{
    return op_axis_view(&n->shape, ((const cumsum_attributes *)n->attributes)->axis);
}

/* The most chunks of a row, because each chunk adds the sums of those before it. */
#define MOST_PIECES 1024

static const uint32_t kernels[] = {KERNEL_CUMSUM, KERNEL_CUMSUM_SUBGROUP};

/* `sums` are those of the chunks; NULL if rows are not cut. */
static rlxvk_status emit_scan(lowering *l, uint32_t id, const row_tile *tile, row_chunks chunks,
                              const operand *sums)
{
    const node *n = graph_node(l->graph, id);
    axis_view v = view_of(n);
    operand x = lower_input(l, id, 0), y = lower_write(l, id), parts = sums ? *sums : x;
    struct cumsum_args args = {.rows = row_arguments(v, tile, chunks),
                               .x_offset = x.offset,
                               .y_offset = y.offset};
    dispatch d = row_dispatch_either(l, kernels, tile, &args.rows);
    parts.access = ACCESS_READ;
    SET_CONSTANTS(&d,
                  {CUMSUM_ROWS_EXCLUSIVE, ((const cumsum_attributes *)n->attributes)->exclusive},
                  {CUMSUM_ROWS_HAS_SUMS, sums != NULL}, {CUMSUM_ROWS_FORM, tile->form->form},
                  {CUMSUM_ROWS_PRODUCT, node_code(n) == RUNNING_PRODUCT});
    return lower_emit(l, &d, &args, sizeof args, (operand[]){x, parts, y}, 3);
}

/* Chunks hold as much as the lanes hold in registers, so that a chunk is loaded only once. If that
 * makes too many, chunks are fewer and longer, because adding their sums takes time. */
static row_chunks choose_chunks(const device_profile *profile, axis_view v, const row_tile *tile)
{
    uint64_t held = CUMSUM_HELD * (uint64_t)tile->lanes, pieces = divide_up(v.length, held);
    row_chunks chunks = row_chunks_choose(profile, v, tile, (uint32_t)held);
    if (chunks.count > 1 && pieces <= MOST_PIECES && !profile_is_software(profile))
        return (row_chunks){(uint32_t)pieces, held};
    return chunks;
}

static rlxvk_status cumsum_lower(lowering *l, uint32_t id)
{
    axis_view v = view_of(graph_node(l->graph, id));
    bool is_product = node_code(graph_node(l->graph, id)) == RUNNING_PRODUCT;
    operand x = lower_input(l, id, 0), y = lower_write(l, id), sums;
    uint32_t whole = row_traits(v, (operand[]){x, y}, 2) & ROW_WHOLE;
    row_tile tile = row_tile_choose(l, v, whole, 4, ROW_ANY_LENGTH);
    row_chunks chunks = choose_chunks(l->profile, v, &tile);
    rlxvk_status status;
    if (chunks.count == 1)
        return emit_scan(l, id, &tile, chunks, NULL);
    TRY(lower_temporary(l, 4 * v.outer * chunks.count * v.inner, &sums));
    TRY(reduce_chunks(l, v, chunks, is_product ? REDUCE_PROD : REDUCE_SUM, x, sums));
    TRY(emit_scan(l, id, &tile, chunks, &sums));
error:
    return status;
}

static void host_row(const host_call *c, uint64_t start, axis_view v, bool exclusive)
{
    double sum = 0, magnitude = 0;
    for (uint64_t j = 0; j < v.length; j++) {
        uint64_t at = start + j * v.inner;
        double x = c->inputs[0].words[at];
        double before = sum, magnitude_before = magnitude;
        sum += x;
        magnitude += fabs(x);
        c->out[at] = exclusive ? before : sum;
        if (c->bound)
            c->bound[at] =
                0x1p-23 * (4 + sqrt((double)j)) * (exclusive ? magnitude_before : magnitude);
    }
}

static void host_products(const host_call *c, uint64_t start, axis_view v, bool exclusive)
{
    running_product p = running_product_of(1);
    for (uint64_t j = 0; j < v.length; j++) {
        uint64_t at = start + j * v.inner;
        running_product before = p;
        running_product_take(&p, c->inputs[0].words[at]);
        const running_product *y = exclusive ? &before : &p;
        c->out[at] = y->value;
        if (c->bound)
            c->bound[at] = running_product_bound(y, 1.2e-7 * (double)(j + 1));
    }
}

static rlxvk_status cumsum_host(const host_call *c)
{
    axis_view v = view_of(c->node);
    bool exclusive = ((const cumsum_attributes *)c->node->attributes)->exclusive;
    for (uint64_t o = 0; o < v.outer; o++)
        for (uint64_t i = 0; i < v.inner; i++)
            (node_code(c->node) == RUNNING_PRODUCT
                 ? host_products
                 : host_row)(c, o * v.length * v.inner + i, v, exclusive);
    return RLXVK_OK;
}

/* An element depends only on elements before it. So an active one depends only on active rows. */
static uint64_t cumsum_bucket(bucket_call *c)
{
    const cumsum_attributes *a = c->node->attributes;
    return bucket_rows(c, a->exclusive ? 1u << a->axis : 0, 0);
}

/* Elements after the end are in no sum of an active element. */
static rlxvk_tensor cumsum_shorten(shorten_call *s)
{
    s->span = bucket_span(s->bucket, 0);
    return shorten_with(s, 1, 0);
}

/* t from element `from` on, followed by zeros up to the same length. */
static rlxvk_tensor moved(rlxvk_graph *g, rlxvk_tensor t, int32_t axis, int64_t from)
{
    rlxvk_shape gap = rlxvk_tensor_shape(g, t);
    int64_t rest = gap.dims[axis] - from;
    gap.dims[axis] = from;
    rlxvk_tensor parts[] = {rlxvk_narrow(g, t, axis, from, rest),
                            gradient_filled(g, 0, RLXVK_F32, gap)};
    return rlxvk_concat(g, parts, 2, axis);
}

/* Solves r[k] = b[k] + m[k] r[k + 1], with 0 after the end, by doubling: r is known over 1, 2, 4,
 * ... elements, and m is the product over as many. m has one element fewer than b. */
static rlxvk_tensor recurrence(rlxvk_graph *g, rlxvk_tensor b, rlxvk_tensor m, int32_t axis)
{
    int64_t n = rlxvk_tensor_shape(g, b).dims[axis];
    for (int64_t step = 1; step < n && g->status == RLXVK_OK; step *= 2) {
        rlxvk_tensor later = rlxvk_narrow(g, b, axis, step, n - step), parts[2];
        parts[0] = rlxvk_narrow(g, b, axis, 0, n - step);
        parts[0] = rlxvk_add(g, parts[0], rlxvk_gradient_product(g, later, m));
        parts[1] = rlxvk_narrow(g, b, axis, n - step, step);
        b = rlxvk_concat(g, parts, 2, axis);
        if (2 * step < n)
            m = rlxvk_mul(g, rlxvk_narrow(g, m, axis, 0, n - 2 * step),
                          rlxvk_narrow(g, m, axis, step, n - 2 * step));
    }
    return b;
}

/* dx[k] is the product of the elements before x[k], times a sum over j: dy[j] times the product of
 * the elements between k and j. There is no division, so a factor of 0 is not special in any
 * derivative. */
static rlxvk_status product_vjp(gradient_call *c)
{
    const cumsum_attributes *a = c->n.attributes;
    rlxvk_graph *g = c->graph;
    if (c->n.shape.rank == 0 || shape_numel(&c->n.shape) == 0) {
        if (a->exclusive)
            gradient_give_zero(c, 0);
        else
            gradient_give(c, 0, c->dy);
        return RLXVK_OK;
    }
    int64_t n = c->n.shape.dims[a->axis];
    rlxvk_tensor x = gradient_operand(c, 0), sums = c->dy;
    if (a->exclusive)
        sums = moved(g, sums, a->axis, 1);
    sums = recurrence(g, sums, rlxvk_narrow(g, x, a->axis, 1, n - 1), a->axis);
    gradient_give(c, 0, rlxvk_gradient_product(g, sums, rlxvk_cumprod(g, x, a->axis, true)));
    return RLXVK_OK;
}

static rlxvk_status cumsum_vjp(gradient_call *c)
{
    const cumsum_attributes *a = c->n.attributes;
    if (node_code(&c->n) == RUNNING_PRODUCT)
        return product_vjp(c);
    if (c->n.shape.rank == 0) {
        if (a->exclusive)
            gradient_give_zero(c, 0);
        else
            gradient_give(c, 0, c->dy);
        return RLXVK_OK;
    }
    gradient_give(c, 0, rlxvk_cumsum_backward(c->graph, c->dy, a->axis, a->exclusive));
    return RLXVK_OK;
}

static void cumsum_describe(const node *n, text *out)
{
    const cumsum_attributes *a = n->attributes;
    text_append(out, " axis=%d exclusive=%d", a->axis, a->exclusive);
}

const op_family cumsum_family = {
    .name = "cumsum",
    .attribute_size = sizeof(cumsum_attributes),
    .infer = cumsum_infer,
    .memory = {.in_place = op_first_in_place},
    .execution = {.lower = cumsum_lower, .host = cumsum_host},
    .rows = {.bucket = cumsum_bucket, .shorten = cumsum_shorten},
    .derivative = {.vjp = cumsum_vjp},
    .describe = cumsum_describe,
};
