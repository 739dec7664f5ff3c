/*
 * Reductions over any set of axes. Axes of 1 do not matter. Neighbouring axes that are all reduced,
 * or all kept, merge into runs. Each reduced run is one pass [outer, run, inner], the innermost run
 * first, with temporaries between passes. If a pass has only few long rows, they are cut into
 * chunks, and it takes two dispatches.
 *
 *   sum         of nothing: 0. Error: 2^-23 (4 + log2 n) sum |x|
 *   mean        sum / count, divided once, by the whole count; of nothing: NaN. If the sum
 *               overflows, it is made of elements times a power of two (reduce.glsl)
 *   max, min    NaN wins; of nothing: -Inf, +Inf
 *   prod        of nothing: 1
 *
 * If all reduced axes are 1, the node is a view. Sums and means of C64 are those of the parts,
 * which are an innermost axis of two.
 */
#include "args/rows.h"
#include "constants/rows.h"
#include "op/shorten.h"
#include "op/gradient.h"
#include "op/rows/rows.h"

#include <rlxvk_train.h>

#include <float.h>
#include <math.h>
#include <string.h>

typedef struct reduce_attributes {
    uint32_t axis_count;
    int32_t axes[RLXVK_MAX_RANK]; /* ascending, distinct */
    bool keep_dim;
} reduce_attributes;

/* ---- Building ---- */

static rlxvk_tensor build(rlxvk_graph *g, op_kind op, rlxvk_tensor x, const int32_t *axes,
                          size_t axis_count, bool keep_dim)
{
    reduce_attributes a = {.axis_count = (uint32_t)axis_count, .keep_dim = keep_dim};
    const char *row = op_table[op].name;
    if (!graph_ready(g, row) ||
        graph_fail(g, status_require_items(axes, axis_count, row, "axes")) != RLXVK_OK)
        return RLXVK_NONE;
    if (axis_count > RLXVK_MAX_RANK) {
        graph_fail(g, status_fail(RLXVK_E_AXIS, "%s: %zu axes; a tensor has at most %d", row,
                                  axis_count, RLXVK_MAX_RANK));
        return RLXVK_NONE;
    }
    if (axis_count)
        memcpy(a.axes, axes, axis_count * sizeof *axes);
    return op_build(g, op, &x, 1, &a);
}

rlxvk_tensor rlxvk_reduce_sum(rlxvk_graph *g, rlxvk_tensor x, const int32_t *axes,
                              size_t axis_count, bool keep_dim)
{
    return build(g, OP_reduce_sum, x, axes, axis_count, keep_dim);
}

rlxvk_tensor rlxvk_reduce_mean(rlxvk_graph *g, rlxvk_tensor x, const int32_t *axes,
                               size_t axis_count, bool keep_dim)
{
    return build(g, OP_reduce_mean, x, axes, axis_count, keep_dim);
}

rlxvk_tensor rlxvk_reduce_max(rlxvk_graph *g, rlxvk_tensor x, const int32_t *axes,
                              size_t axis_count, bool keep_dim)
{
    return build(g, OP_reduce_max, x, axes, axis_count, keep_dim);
}

rlxvk_tensor rlxvk_reduce_min(rlxvk_graph *g, rlxvk_tensor x, const int32_t *axes,
                              size_t axis_count, bool keep_dim)
{
    return build(g, OP_reduce_min, x, axes, axis_count, keep_dim);
}

rlxvk_tensor rlxvk_reduce_prod(rlxvk_graph *g, rlxvk_tensor x, const int32_t *axes,
                               size_t axis_count, bool keep_dim)
{
    return build(g, OP_reduce_prod, x, axes, axis_count, keep_dim);
}

/* ---- Infer ---- */

static bool is_sum(uint32_t code)
{
    return code == REDUCE_SUM || code == REDUCE_MEAN;
}

/* The words of an element. */
static uint64_t part_count(const node *n)
{
    return n->dtype == RLXVK_C64 ? 2 : 1;
}

static rlxvk_status reduce_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    reduce_attributes *a = attributes;
    const rlxvk_shape *x = input_shape(g, n, 0);
    uint32_t set = 0;
    rlxvk_status status = RLXVK_OK;
    if (input_dtype(g, n, 0) == RLXVK_C64 && !is_sum(node_code(n)))
        return op_fail(n, RLXVK_E_DTYPE,
                       "operand is C64, which has no order and no product here; "
                       "sums and means take it");
    for (uint32_t i = 0; i < a->axis_count; i++) {
        int32_t axis = 0;
        TRY(op_axis(n, a->axes[i], x->rank, &axis));
        if (set >> axis & 1)
            return op_fail(n, RLXVK_E_AXIS, "axis %d is named twice; name each once", a->axes[i]);
        set |= 1u << axis;
    }
    a->axis_count = 0;
    n->shape = (rlxvk_shape){0};
    n->dtype = input_dtype(g, n, 0);
    for (uint32_t i = 0; i < MAX(x->rank, 1); i++)
        if (set >> i & 1)
            a->axes[a->axis_count++] = (int32_t)i;
    for (uint32_t i = 0; i < x->rank; i++)
        if (!(set >> i & 1) || a->keep_dim)
            n->shape.dims[n->shape.rank++] = set >> i & 1 ? 1 : x->dims[i];
error:
    return status;
}

/* The axes that stay keep their order beside each other. */
static bool reduce_reorder(const node *n, axis_order *order, void *attributes)
{
    const reduce_attributes *old = n->attributes;
    reduce_attributes *a = attributes;
    axis_order from = *order;
    uint32_t set = 0, new_set = 0;
    for (uint32_t i = 0; i < old->axis_count; i++) {
        set |= 1u << old->axes[i];
        new_set |= 1u << from.place[old->axes[i]];
    }
    a->axis_count = 0;
    for (int32_t i = 0; i < (int32_t)from.rank; i++)
        if (new_set >> i & 1)
            a->axes[a->axis_count++] = i;
    if (a->keep_dim)
        return true;
    order->rank = 0;
    for (uint32_t i = 0; i < from.rank; i++)
        if (!(set >> i & 1))
            order->place[order->rank++] =
                from.place[i] - count_set_bits(new_set & ((1u << from.place[i]) - 1));
    return true;
}

/* The reduced axes, as bits. */
static uint32_t reduced_axes(const node *n)
{
    const reduce_attributes *a = n->attributes;
    uint32_t set = 0;
    for (uint32_t i = 0; i < a->axis_count; i++)
        set |= 1u << a->axes[i];
    return set;
}

static uint64_t reduced_count(const rlxvk_shape *x, uint32_t set)
{
    uint64_t count = 1;
    for (uint32_t i = 0; i < x->rank; i++)
        if (set >> i & 1)
            count *= (uint64_t)x->dims[i];
    return count;
}

static bool reduce_view(const rlxvk_graph *g, const node *n, uint64_t *out_offset)
{
    *out_offset = 0;
    return reduced_count(input_shape(g, n, 0), reduced_axes(n)) == 1;
}

/* ---- Lower ---- */

static const uint32_t kernels[] = {KERNEL_REDUCE, KERNEL_REDUCE_SUBGROUP};

/* Rows with a stride that are at least so long are shared by many lanes (ROW_FORM_COLUMNS),
 * although neighbouring lanes could take neighbouring rows. */
#define FEWEST_IN_COLUMN 128

/* One reduced run; runs inside it are reduced already. reduce.glsl explains spare sums. */
typedef struct pass {
    axis_view view;
    uint32_t code;
    float divisor;             /* for the last pass of a mean */
    float shrink;              /* for each pass of a mean */
    uint32_t x_spare, y_spare; /* words to the spare sums; 0: there are none */
} pass;

/* A power of two for a sum of so many terms. With it, the sum is at most half of the largest
 * term. */
static float shrink_for(double count)
{
    int exponent = 0;
    frexp(fmax(count, 1), &exponent);
    return (float)ldexp(1, -exponent - 1);
}

static bool is_mean(uint32_t code)
{
    return code == REDUCE_MEAN || code == REDUCE_PART;
}

/* Allocates `count` sums of a code, and spare sums for a mean. */
static rlxvk_status make_sums(lowering *l, uint32_t code, uint64_t count, operand *out)
{
    return lower_temporary(l, (is_mean(code) ? 8 : 4) * count, out);
}

/* Reduces rows with a stride. A workgroup takes quads of neighbouring rows. */
static rlxvk_status emit_columns(lowering *l, const pass *p, row_tile tile, operand x, operand y)
{
    axis_view quads = {p->view.outer, p->view.length, p->view.inner / 4};
    struct reduce_args args = {.rows = row_arguments(quads, &tile, row_unbroken(quads)),
                               .x_offset = x.offset,
                               .y_offset = y.offset,
                               .divisor = p->divisor,
                               .shrink = p->shrink,
                               .x_spare = p->x_spare,
                               .y_spare = p->y_spare};
    dispatch d = row_dispatch(l, KERNEL_REDUCE_COLUMNS, &tile, &args.rows);
    x.access = ACCESS_READ;
    SET_CONSTANTS(&d, {REDUCE_COLUMNS_CODE, p->code},
                  {REDUCE_COLUMNS_HELD, row_column_held(p->view, &tile)});
    return lower_emit(l, &d, &args, sizeof args, (operand[]){x, y}, 2);
}

static rlxvk_status emit_pass(lowering *l, const pass *p, row_tile tile, row_chunks chunks,
                              operand x, operand y)
{
    struct reduce_args args = {.rows = row_arguments(p->view, &tile, chunks),
                               .x_offset = x.offset,
                               .y_offset = y.offset,
                               .divisor = p->divisor,
                               .shrink = p->shrink,
                               .x_spare = p->x_spare,
                               .y_spare = p->y_spare};
    dispatch d = row_dispatch_either(l, kernels, &tile, &args.rows);
    x.access = ACCESS_READ;
    SET_CONSTANTS(&d, {REDUCE_ROWS_CODE, p->code}, {REDUCE_ROWS_VECTORS, tile.form->form});
    return lower_emit(l, &d, &args, sizeof args, (operand[]){x, y}, 2);
}

static row_tile choose_tile(lowering *l, axis_view v, const operand *x)
{
    return row_tile_choose(l, v, row_traits(v, x, 1) & ROW_WHOLE, 8, ROW_ANY_LENGTH);
}

/* The tile for rows that are not cut. */
static row_tile choose_whole(lowering *l, axis_view v, operand x, operand y)
{
    uint32_t parted = v.length < FEWEST_IN_COLUMN ? 0 : ROW_PARTED;
    uint32_t traits = row_traits(v, &x, 1) & ROW_WHOLE;
    traits |= row_traits(v, (operand[]){x, y}, 2) & parted;
    return row_tile_choose(l, v, traits, 8, ROW_ANY_LENGTH);
}

rlxvk_status reduce_chunks(lowering *l, axis_view rows, row_chunks chunks, uint32_t code, operand x,
                           operand y)
{
    return emit_pass(l, &(pass){rows, code}, choose_tile(l, rows, &x), chunks, x, y);
}

static rlxvk_status lower_pass(lowering *l, pass p, operand x, operand y)
{
    row_tile tile = choose_whole(l, p.view, x, y);
    row_chunks chunks = row_unbroken(p.view);
    rlxvk_status status = RLXVK_OK;
    if (tile.form->form != ROW_FORM_COLUMNS)
        chunks = row_chunks_choose(l->profile, p.view, &tile, 8 * tile.lanes);
    if (chunks.count > 1) {
        operand sums;
        pass part = p;
        uint64_t count = p.view.outer * chunks.count * p.view.inner;
        TRY(make_sums(l, p.code, count, &sums));
        part.code = is_mean(p.code) ? REDUCE_PART : p.code;
        part.y_spare = (uint32_t)count;
        TRY(emit_pass(l, &part, choose_tile(l, p.view, &x), chunks, x, sums));
        p.x_spare = is_mean(p.code) ? (uint32_t)count : 0;
        p.view.length = chunks.count;
        tile = choose_whole(l, p.view, sums, y);
        x = sums;
    }
    TRY(tile.form->form == ROW_FORM_COLUMNS ? emit_columns(l, &p, tile, x, y)
                                            : emit_pass(l, &p, tile, row_unbroken(p.view), x, y));
error:
    return status;
}

rlxvk_status reduce_rows(lowering *l, axis_view rows, uint32_t code, float divisor, operand x,
                         operand y)
{
    return lower_pass(l, (pass){rows, code, divisor, shrink_for(divisor)}, x, y);
}

/* The innermost reduced run with more than one element: axes [*first, *last). False if there is
 * none. */
static bool innermost_run(const rlxvk_shape *s, uint32_t set, uint32_t *first, uint32_t *last)
{
    uint32_t i = s->rank;
    while (i > 0 && (!(set >> (i - 1) & 1) || s->dims[i - 1] == 1))
        i--;
    *last = i;
    while (i > 0 && ((set >> (i - 1) & 1) || s->dims[i - 1] == 1))
        i--;
    *first = i;
    return *last > 0;
}

static rlxvk_status reduce_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    rlxvk_shape s = *input_shape(l->graph, n, 0);
    uint32_t set = reduced_axes(n), first, last, code = node_code(n);
    uint64_t count = reduced_count(&s, set);
    uint64_t parts = part_count(n);
    operand x = lower_input(l, id, 0), y = lower_write(l, id);
    size_t begin = l->dispatches.count, passes = 0;
    uint32_t spare = 0;
    rlxvk_status status = RLXVK_OK;
    x.offset *= (uint32_t)parts;
    y.offset *= (uint32_t)parts;
    if (count == 0)
        return lower_pass(l, (pass){{shape_numel(&n->shape) * parts, 0, 1}, code}, x, y);
    while (innermost_run(&s, set, &first, &last)) {
        pass p = {{shape_product(&s, 0, first), shape_product(&s, first, last),
                   shape_product(&s, last, s.rank) * parts},
                  code == REDUCE_MEAN ? REDUCE_PART : code,
                  0,
                  shrink_for((double)count),
                  spare};
        for (uint32_t i = first; i < last; i++)
            s.dims[i] = 1;
        operand to = y;
        if (shape_numel(&s) == shape_numel(&n->shape))
            p.code = code, p.divisor = (float)count;
        else
            TRY(make_sums(l, code, shape_numel(&s) * parts, &to));
        p.y_spare = spare = (uint32_t)(shape_numel(&s) * parts);
        TRY(lower_pass(l, p, x, to));
        x = to;
        passes++;
    }
    for (; (passes > 1 || parts > 1) && begin < l->dispatches.count; begin++)
        l->dispatches.items[begin].order =
            (group_order){0}; /* these do not make rows of the result */
error:
    return status;
}

/* ---- Host ---- */

static double start_of(uint32_t code)
{
    static const double starts[] = {
        [REDUCE_MAX] = -INFINITY, [REDUCE_MIN] = INFINITY, [REDUCE_PROD] = 1};
    return starts[code];
}

static void accumulate(uint32_t code, double v, double *value, double *magnitude)
{
    *magnitude += fabs(v);
    if (is_sum(code))
        *value += v;
    else if (code == REDUCE_PROD)
        *value *= v;
    else if (isnan(v) || (!isnan(*value) && (code == REDUCE_MAX ? v > *value : v < *value)))
        *value = v;
}

/* The element of the result to which element `at` of x belongs. */
static uint64_t target_of(const rlxvk_shape *x, uint32_t set, uint64_t at)
{
    uint64_t target = 0, stride = 1;
    for (uint32_t i = x->rank; i-- > 0;) {
        uint64_t dim = (uint64_t)x->dims[i];
        if (!(set >> i & 1)) {
            target += at % dim * stride;
            stride *= dim;
        }
        at /= dim;
    }
    return target;
}

static double bound_of(uint32_t code, double count, double value, double magnitude)
{
    double sum = 0x1p-23 * (4 + log2(fmax(count, 1))) * magnitude;
    if (code == REDUCE_SUM)
        return sum;
    if (code == REDUCE_MEAN)
        return sum / fmax(count, 1);
    return code == REDUCE_PROD ? 1.2e-7 * count * fabs(value) : -1;
}

/* log2 of two products: of all factors above 1 in size, and of all below 1. */
typedef struct reach {
    double above, below;
} reach;

static void extend(reach *r, double v)
{
    double bits = log2(fabs(v));
    if (isfinite(bits) && bits > 0)
        r->above += bits;
    else if (isfinite(bits))
        r->below += bits;
}

/* In some order of the factors, a partial product may overflow or become denormal. Then any value
 * is accepted instead of a finite one. */
static void judge_product(const host_call *c, uint64_t o, reach r)
{
    if (r.above < 128 && r.below > -126)
        return;
    if (isfinite(c->out[o]))
        host_leave_open(c, o);
    else if (isinf(c->out[o]) && c->bound)
        c->bound[o] = INFINITY;
}

static rlxvk_status reduce_host(const host_call *c)
{
    const rlxvk_shape *x = &c->inputs[0].node->shape;
    uint32_t code = node_code(c->node), set = reduced_axes(c->node);
    uint64_t parts = part_count(c->node);
    uint64_t outputs = shape_numel(&c->node->shape) * parts, numel = shape_numel(x) * parts;
    double count = (double)reduced_count(x, set);
    double *magnitudes = memory_zeroed(outputs + 1, sizeof *magnitudes);
    reach *reaches = memory_zeroed(outputs + 1, sizeof *reaches);
    rlxvk_status status = RLXVK_OK;
    if (!magnitudes || !reaches)
        TRY(status_fail_memory("reduction"));
    for (uint64_t o = 0; o < outputs; o++)
        c->out[o] = start_of(code);
    for (uint64_t i = 0; i < numel; i++) {
        uint64_t o = target_of(x, set, i / parts) * parts + i % parts;
        accumulate(code, c->inputs[0].words[i], &c->out[o], &magnitudes[o]);
        if (code == REDUCE_PROD)
            extend(&reaches[o], c->inputs[0].words[i]);
    }
    for (uint64_t o = 0; o < outputs; o++) {
        if (code == REDUCE_MEAN)
            c->out[o] /= count;
        if (c->bound)
            c->bound[o] = bound_of(code, count, c->out[o], magnitudes[o]);
        if (code == REDUCE_PROD)
            judge_product(c, o, reaches[o]);
    }
error:
    memory_free(magnitudes);
    memory_free(reaches);
    return status;
}

static uint64_t reduce_bucket(bucket_call *c)
{
    const reduce_attributes *a = c->node->attributes;
    uint32_t used = 0;
    for (uint32_t i = 0; i < a->axis_count; i++)
        used |= 1u << a->axes[i];
    return bucket_reduced(c, used, a->keep_dim);
}

static float identity_of(uint32_t code)
{
    return code == REDUCE_MAX    ? -INFINITY
           : code == REDUCE_MIN  ? INFINITY
           : code == REDUCE_PROD ? 1
                                 : 0;
}

static rlxvk_tensor reduce_shorten(shorten_call *s)
{
    uint32_t code = node_code(s->bucket->node);
    rlxvk_tensor y = shorten_with(s, 1, identity_of(code));
    return code == REDUCE_MEAN && y.id ? shorten_mean(s, y) : y;
}

/* ---- The family ---- */

/* The product of all elements before each element, or after it (from_end), by doubling. */
static rlxvk_tensor running_product(rlxvk_graph *g, rlxvk_tensor x, int32_t axis, bool from_end)
{
    rlxvk_shape shape = rlxvk_tensor_shape(g, x), ones = shape;
    int64_t n = shape.dims[axis];
    for (int64_t step = 1; step < 2 * n; step *= 2) { /* each element covers `step` elements */
        int64_t shift = step == 1 ? 1 : step / 2;
        rlxvk_tensor parts[2];
        ones.dims[axis] = shift;
        parts[from_end] = gradient_filled(g, 1, RLXVK_F32, ones);
        parts[!from_end] = rlxvk_narrow(g, x, axis, from_end ? shift : 0, n - shift);
        rlxvk_tensor moved = rlxvk_concat(g, parts, 2, axis);
        x = step == 1 ? moved : rlxvk_mul(g, x, moved);
    }
    return x;
}

/* The product of the other elements. y / x would fail for zeros. */
static void give_product(gradient_call *c, const reduce_attributes *a)
{
    rlxvk_graph *g = c->graph;
    rlxvk_shape shape = gradient_shape(c, 0), flat = {.rank = 2, .dims = {1, 1}}, moved = shape;
    int32_t perm[RLXVK_MAX_RANK], back[RLXVK_MAX_RANK];
    uint32_t count = 0, reduced = 0;
    for (uint32_t i = 0; i < a->axis_count; i++)
        reduced |= 1u << a->axes[i];
    for (uint32_t last = 0; last < 2; last++)
        for (uint32_t i = 0; i < shape.rank; i++)
            if ((reduced >> i & 1) == last) {
                flat.dims[last] *= shape.dims[i];
                moved.dims[count] = shape.dims[i];
                back[i] = (int32_t)count;
                perm[count++] = (int32_t)i;
            }
    rlxvk_tensor rows =
        rlxvk_reshape(g, rlxvk_transpose(g, gradient_operand(c, 0), perm, count), flat);
    rlxvk_tensor others =
        rlxvk_mul(g, running_product(g, rows, 1, false), running_product(g, rows, 1, true));
    others = rlxvk_transpose(g, rlxvk_reshape(g, others, moved), back, count);
    rlxvk_tensor dy = gradient_expand_to(g, c->dy, shape, a->axes, a->axis_count);
    gradient_give(c, 0, rlxvk_gradient_product(g, dy, others));
}

/* All elements that equal the largest (or smallest) share the gradient equally. */
static void give_extreme(gradient_call *c, const reduce_attributes *a)
{
    rlxvk_graph *g = c->graph;
    rlxvk_shape shape = gradient_shape(c, 0);
    rlxvk_tensor x = gradient_operand(c, 0);
    rlxvk_tensor y = gradient_expand_to(g, gradient_result(c), shape, a->axes, a->axis_count);
    rlxvk_tensor is = rlxvk_cast(g, rlxvk_eq(g, x, y), RLXVK_F32);
    rlxvk_tensor count = rlxvk_reduce_sum(g, is, a->axes, a->axis_count, a->keep_dim);
    rlxvk_tensor share = rlxvk_div(g, c->dy, count);
    share = gradient_expand_to(g, share, shape, a->axes, a->axis_count);
    gradient_give(c, 0, rlxvk_where(g, is, share, gradient_scalar(g, 0)));
}

static rlxvk_status reduce_vjp(gradient_call *c)
{
    const reduce_attributes *a = c->n.attributes;
    rlxvk_graph *g = c->graph;
    rlxvk_shape shape = gradient_shape(c, 0);
    rlxvk_tensor dy = c->dy;
    uint64_t count = shape_numel(&shape) / MAX(shape_numel(&c->n.shape), 1);
    switch (node_code(&c->n)) {
    case REDUCE_MEAN:
        dy = rlxvk_div(g, dy, gradient_scalar(g, (double)count));
        /* fall through */
    case REDUCE_SUM:
        gradient_give(c, 0, gradient_expand_to(g, dy, shape, a->axes, a->axis_count));
        break;
    case REDUCE_PROD:
        give_product(c, a);
        break;
    default:
        give_extreme(c, a);
    }
    return RLXVK_OK;
}

static void reduce_describe(const node *n, text *out)
{
    const reduce_attributes *a = n->attributes;
    text_append(out, " axes=");
    for (uint32_t i = 0; i < a->axis_count; i++)
        text_append(out, "%s%d", i ? "," : "", a->axes[i]);
    text_append(out, " keep_dim=%d", a->keep_dim);
}

const op_family reduce_family = {
    .name = "reduce",
    .attribute_size = sizeof(reduce_attributes),
    .infer = reduce_infer,
    .storage = {.pairs = true},
    .views = {.view = reduce_view, .reorder = reduce_reorder},
    .execution = {.foldable = true, .lower = reduce_lower, .host = reduce_host},
    .rows = {.bucket = reduce_bucket, .shorten = reduce_shorten},
    .derivative = {.vjp = reduce_vjp},
    .describe = reduce_describe,
};
