/*
 * pad, roll and tile: axes are extended at both ends, or cut. All three ops are described by the
 * length of the result and the element at which it begins, for each axis. Because roll and tile
 * wrap around, they extend an axis by its other end.
 *
 * Neighbouring axes that do not change are merged. If the mode moves whole elements, an unchanged
 * axis is also merged into the axis before it. A dispatch takes PAD_AXES of the remaining axes, so
 * most ops are one dispatch. If all lengths are multiples of four or two words, so many words are
 * moved at once.
 */
#include "op/array/pad.h"
#include "args/array.h"
#include "constants/array.h"
#include "op/bucket.h"
#include "op/conv/conv.h"
#include "op/elementwise/elementwise.h"
#include "op/families.h"
#include "op/gradient.h"
#include "op/movement/layout.h"

#include <rlxvk_ops_array.h>

#include <string.h>

typedef struct pad_attributes {
    uint32_t mode, count;
    float value;
    int64_t before[RLXVK_MAX_RANK]; /* roll: offset along an axis of x; tile: number of copies */
    int64_t after[RLXVK_MAX_RANK];  /* roll: which axis */
} pad_attributes;

/* ---- Building ---- */

/* Copies a list. Fails if it is missing, or longer than the largest rank. */
static bool take_list(rlxvk_graph *g, const char *row, const char *argument, const int64_t *values,
                      size_t count, int64_t *out)
{
    if (!graph_ready(g, row) ||
        graph_fail(g, status_require_items(values, count, row, argument)) != RLXVK_OK)
        return false;
    if (count > RLXVK_MAX_RANK) {
        graph_fail(g, status_fail(RLXVK_E_ATTR, "%s: %zu in %s; the largest rank is %d", row, count,
                                  argument, RLXVK_MAX_RANK));
        return false;
    }
    for (size_t i = 0; i < count; i++)
        out[i] = values[i];
    return true;
}

rlxvk_tensor rlxvk_pad(rlxvk_graph *g, rlxvk_tensor x, const int64_t *before, const int64_t *after,
                       size_t count, const rlxvk_pad_options *options)
{
    pad_attributes a = {.count = (uint32_t)count};
    if (!take_list(g, "pad", "before", before, count, a.before) ||
        !take_list(g, "pad", "after", after, count, a.after))
        return RLXVK_NONE;
    rlxvk_pad_options o;
    if (!op_take(g, "pad", SIZED(rlxvk_pad_options), options, &o))
        return RLXVK_NONE;
    a.mode = (uint32_t)o.mode;
    a.value = o.value;
    return op_build(g, OP_pad, &x, 1, &a);
}

rlxvk_tensor rlxvk_roll(rlxvk_graph *g, rlxvk_tensor x, const int64_t *shifts, const int32_t *axes,
                        size_t count)
{
    pad_attributes a = {.mode = PAD_WRAP, .count = (uint32_t)count};
    if (!take_list(g, "roll", "shifts", shifts, count, a.before) ||
        graph_fail(g, status_require_items(axes, count, "roll", "axes")) != RLXVK_OK)
        return RLXVK_NONE;
    for (size_t i = 0; i < count; i++)
        a.after[i] = axes[i];
    return op_build(g, OP_roll, &x, 1, &a);
}

rlxvk_tensor rlxvk_tile(rlxvk_graph *g, rlxvk_tensor x, const int64_t *repeats, size_t count)
{
    pad_attributes a = {.mode = PAD_WRAP, .count = (uint32_t)count};
    if (!take_list(g, "tile", "repeats", repeats, count, a.before))
        return RLXVK_NONE;
    return op_build(g, OP_tile, &x, 1, &a);
}

/* ---- Infer ---- */

static rlxvk_status infer_amounts(const node *n, const pad_attributes *a, const rlxvk_shape *from,
                                  rlxvk_shape *out)
{
    char buffer[SHAPE_TEXT];
    rlxvk_status status;
    if (a->count > from->rank)
        return op_fail(n, RLXVK_E_ATTR, "%u amounts for the %u axes of %s", a->count, from->rank,
                       shape_text(from, buffer));
    for (uint32_t i = 0; i < a->count; i++) {
        int64_t *dim = &out->dims[from->rank - a->count + i], extent = *dim;
        if (MAX(a->before[i], a->after[i]) > PAD_MOST || MIN(a->before[i], a->after[i]) < -PAD_MOST)
            return op_fail(n, RLXVK_E_ATTR, "amounts %lld and %lld; 2^31 - 1 at most, either way",
                           (long long)a->before[i], (long long)a->after[i]);
        if (add_overflows(extent, a->before[i] + a->after[i], dim))
            return op_fail(n, RLXVK_E_TOO_LARGE, "an axis of %lld and %lld elements more",
                           (long long)extent, (long long)(a->before[i] + a->after[i]));
        if (*dim < 0)
            return op_fail(n, RLXVK_E_ATTR,
                           "axis %u of %s by amounts %lld and %lld has %lld elements; cut fewer",
                           from->rank - a->count + i, shape_text(from, buffer),
                           (long long)a->before[i], (long long)a->after[i], (long long)*dim);
        TRY(pad_check_mode(n, a->mode, extent, *dim));
    }
    status = pad_check_mode(n, a->mode, 1, 1);
error:
    return status;
}

static rlxvk_status infer_shifts(const node *n, pad_attributes *a, const rlxvk_shape *from)
{
    rlxvk_status status = RLXVK_OK;
    for (uint32_t i = 0; i < a->count; i++) {
        int32_t axis;
        if (from->rank == 0)
            return op_fail(n, RLXVK_E_AXIS, "a scalar has no axis to roll; leave axes empty");
        TRY(op_axis(n, (int32_t)a->after[i], from->rank, &axis));
        a->after[i] = axis;
    }
error:
    return status;
}

static rlxvk_status infer_repeats(const node *n, const pad_attributes *a, rlxvk_shape *out)
{
    uint32_t added = a->count > out->rank ? a->count - out->rank : 0;
    rlxvk_shape from = *out;
    char buffer[SHAPE_TEXT];
    out->rank += added;
    for (uint32_t i = 0; i < out->rank; i++)
        out->dims[i] = i < added ? 1 : from.dims[i - added];
    for (uint32_t i = 0; i < a->count; i++) {
        int64_t *dim = &out->dims[out->rank - a->count + i];
        if (a->before[i] < 0)
            return op_fail(n, RLXVK_E_ATTR, "repeat %u is %lld; takes 0 and more", i,
                           (long long)a->before[i]);
        if (multiply_overflows(*dim, a->before[i], dim))
            return op_fail(n, RLXVK_E_TOO_LARGE, "repeat %u is %lld, of %s: 2^63 or more", i,
                           (long long)a->before[i], shape_text(&from, buffer));
    }
    return RLXVK_OK;
}

static rlxvk_status pad_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    pad_attributes *a = attributes;
    const rlxvk_shape *from = input_shape(g, n, 0);
    rlxvk_shape out = *from;
    rlxvk_status status;
    if (node_code(n) == PAD_AMOUNTS)
        TRY(infer_amounts(n, a, from, &out));
    else if (node_code(n) == PAD_ROLL)
        TRY(infer_shifts(n, a, from));
    else
        TRY(infer_repeats(n, a, &out));
    n->dtype = (uint8_t)input_dtype(g, n, 0);
    n->shape = out;
    a->value = (float)cast_host_value((rlxvk_dtype)n->dtype, a->value);
error:
    return status;
}

/* Amounts are those of the last axes. */
static bool pad_reorder(const node *n, axis_order *order, void *attributes)
{
    const pad_attributes *old = n->attributes;
    pad_attributes *a = attributes;
    uint32_t rank = order->rank;
    if (node_code(n) != PAD_AMOUNTS || old->count > rank)
        return false;
    memset(a->before, 0, sizeof a->before);
    memset(a->after, 0, sizeof a->after);
    a->count = rank;
    for (uint32_t i = rank - old->count; i < rank; i++) {
        a->before[order->place[i]] = old->before[i + old->count - rank];
        a->after[order->place[i]] = old->after[i + old->count - rank];
    }
    return true;
}

/* Both shifts are nearer to 0 than the extent, and their sum may still overflow. */
static int64_t add_shifts(int64_t a, int64_t b, int64_t extent)
{
    int64_t sum;
    if (add_overflows(a, b, &sum))
        sum = a > 0 ? a - extent + b : a + extent + b;
    return sum % extent;
}

/* How axis i of the result is made. */
static pad_axis axis_of(const node *n, const rlxvk_shape *from, uint32_t i)
{
    const pad_attributes *a = n->attributes;
    uint32_t added = n->shape.rank - from->rank;
    pad_axis out = {.extent = i < added ? 1 : from->dims[i - added], .size = n->shape.dims[i]};
    if (node_code(n) == PAD_AMOUNTS && i + a->count >= n->shape.rank)
        out.before = a->before[i + a->count - n->shape.rank];
    for (uint32_t k = 0; k < a->count && node_code(n) == PAD_ROLL && out.extent > 0; k++)
        if (a->after[k] == (int64_t)i)
            out.before = add_shifts(out.before, a->before[k] % out.extent, out.extent);
    return out;
}

static bool stays(uint32_t mode, pad_axis a)
{
    return a.extent == a.size &&
           (mode == PAD_WRAP || mode == PAD_REFLECT ? pad_normal_before(mode, a) : a.before) == 0;
}

static bool pad_view(const rlxvk_graph *g, const node *n, uint64_t *out_offset)
{
    const pad_attributes *a = n->attributes;
    *out_offset = 0;
    for (uint32_t i = 0; i < n->shape.rank; i++)
        if (!stays(a->mode, axis_of(n, input_shape(g, n, 0), i)))
            return false;
    return true;
}

/* ---- Lower ---- */

typedef struct pad_work {
    uint32_t mode, rank;
    pad_axis axes[RLXVK_MAX_RANK + 1]; /* the last one: the words of an element */
    uint32_t fill[2];
} pad_work;

static bool by_whole_elements(uint32_t mode)
{
    return mode == PAD_CONSTANT || mode == PAD_WRAP;
}

/* Drops and merges axes. At least one is left. */
static void coalesce(pad_work *w)
{
    uint32_t rank = 0;
    for (uint32_t i = 0; i < w->rank; i++) {
        pad_axis a = w->axes[i], *last = rank ? &w->axes[rank - 1] : NULL;
        bool plain = stays(w->mode, a);
        if (plain && a.extent == 1)
            continue;
        if (last && plain && (stays(w->mode, *last) || by_whole_elements(w->mode)))
            *last =
                (pad_axis){last->extent * a.extent, last->size * a.extent, last->before * a.extent};
        else
            w->axes[rank++] = a;
    }
    if (rank == 0)
        w->axes[rank++] = (pad_axis){1, 1, 0};
    w->rank = rank;
}

static uint64_t size_of(const pad_work *w, uint32_t padded)
{
    uint64_t size = 1;
    for (uint32_t i = 0; i < w->rank; i++)
        size *= (uint64_t)(i < padded ? w->axes[i].size : w->axes[i].extent);
    return size;
}

/* How many words are moved at once: 4, 2 or 1. */
static uint32_t choose_width(const pad_work *w, const operand *operands, uint32_t words)
{
    const pad_axis *inner = &w->axes[w->rank - 1];
    uint64_t bits = (uint64_t)(inner->extent | inner->size | inner->before);
    bits |= (uint64_t)operands[0].offset * words | (uint64_t)operands[1].offset * words;
    if (!by_whole_elements(w->mode) && !stays(w->mode, *inner))
        return 1;
    return bits % 4 == 0 ? 4 : bits % 2 == 0 ? 2 : 1;
}

static rlxvk_status emit(lowering *l, const pad_work *w, const operand *operands, uint32_t words)
{
    uint32_t width = choose_width(w, operands, words);
    dispatch d = {.kernel = KERNEL_PAD};
    struct pad_args args = {.count = (u32)(size_of(w, w->rank) / width),
                            .rank = w->rank,
                            .source_offset = operands[0].offset * words / width,
                            .target_offset = operands[1].offset * words / width,
                            .fill = {w->fill[0], w->fill[1]}};
    bool empty = size_of(w, 0) == 0;
    for (uint32_t i = 0; i < w->rank; i++) {
        pad_axis a = w->axes[w->rank - 1 - i];
        int64_t unit = i == 0 ? width : 1;
        args.extents[i] = empty ? 0 : (u32)(a.extent / unit);
        args.sizes[i] = (u32)(a.size / unit);
        args.before[i] = (i32)(a.before / unit);
        args.divide_size[i] = conv_divide_multiplier(args.sizes[i]);
        u32 period = w->mode == PAD_REFLECT ? 2 * (MAX(args.extents[i], 2) - 1) : args.extents[i];
        args.divide_period[i] = conv_divide_multiplier(MAX(period, 1));
    }
    /* Software drivers gain nothing from quads. */
    bool quads = width == 1 && args.target_offset % 4 == 0 && !profile_is_software(l->profile);
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size}, {PAD_WIDTH, width},
                  {PAD_MODE, w->mode}, {PAD_QUADS, quads});
    lower_groups_in_order(l, &d, args.count, copy_lot(d.constants[LOCAL_SIZE]) * (quads ? 4 : 1));
    return lower_emit(l, &d, &args, sizeof args, operands, 2);
}

/* If there are more axes than a dispatch takes, another dispatch does the outer ones first. */
static rlxvk_status emit_outer(lowering *l, pad_work *w, operand *source, uint32_t words)
{
    const uint32_t outer = PAD_AXES - 1;
    uint64_t elements = size_of(w, outer);
    int64_t sizes = 1, rest = 1;
    pad_work first = *w;
    operand between;
    rlxvk_status status = RLXVK_OK;
    if (elements > INT32_MAX)
        return status_fail(RLXVK_E_TOO_LARGE,
                           "pad: %llu elements between two passes; pad fewer axes at a time",
                           (unsigned long long)elements);
    for (uint32_t i = 0; i < w->rank; i++) {
        sizes *= i < outer ? w->axes[i].size : 1;
        rest *= i < outer ? 1 : w->axes[i].extent;
    }
    first.rank = PAD_AXES;
    first.axes[outer] = (pad_axis){rest, rest, 0};
    if (elements) { /* else x is empty, too, and is not read */
        TRY(lower_temporary(l, 4 * elements, &between));
        TRY(emit(l, &first, (operand[]){*source, between}, words));
        *source = between;
        source->access = ACCESS_READ;
    }
    w->rank -= outer - 1;
    memmove(w->axes, w->axes + outer - 1, w->rank * sizeof *w->axes);
    w->axes[0] = (pad_axis){sizes, sizes, 0};
error:
    return status;
}

static rlxvk_status pad_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const pad_attributes *a = n->attributes;
    const rlxvk_shape *from = input_shape(l->graph, n, 0);
    operand source = lower_input(l, id, 0), target = lower_write(l, id);
    uint32_t words = element_words(&target);
    bool empty = shape_numel(from) == 0;
    pad_work w = {.mode = a->mode, .rank = n->shape.rank};
    rlxvk_status status;
    memcpy(&w.fill[0], &a->value, sizeof a->value);
    w.fill[1] = words == 1 ? w.fill[0] : 0;
    for (uint32_t i = 0; i < n->shape.rank; i++) {
        w.axes[i] = axis_of(n, from, i);
        if (empty)
            w.axes[i].extent = 0;
        w.axes[i].before = pad_normal_before(a->mode, w.axes[i]);
    }
    if (words > 1)
        w.axes[w.rank++] = (pad_axis){words, words, 0};
    for (coalesce(&w); w.rank > PAD_AXES; coalesce(&w))
        TRY(emit_outer(l, &w, &source, words));
    TRY(emit(l, &w, (operand[]){source, target}, words));
error:
    return status;
}

/* ---- Host ---- */

static rlxvk_status pad_host(const host_call *c)
{
    const node *n = c->node;
    const pad_attributes *a = n->attributes;
    const rlxvk_shape *from = &c->inputs[0].node->shape;
    uint64_t numel = shape_numel(&n->shape), added = n->shape.rank - from->rank;
    int64_t at[RLXVK_MAX_RANK] = {0}, source[RLXVK_MAX_RANK] = {0};
    for (uint64_t i = 0; i < numel; i++) {
        bool inside = true;
        layout_host_coordinates(&n->shape, i, at);
        for (uint32_t k = 0; k < n->shape.rank; k++) {
            int64_t p = pad_source(a->mode, axis_of(n, from, k), at[k]);
            inside = inside && p >= 0;
            if (k >= added)
                source[k - added] = p;
        }
        if (inside)
            layout_host_move(c, i, &c->inputs[0], layout_host_index(from, source));
        else
            c->out[n->dtype == RLXVK_C64 ? 2 * i : i] = a->value;
    }
    return RLXVK_OK;
}

/* ---- The family ---- */

static uint64_t pad_bucket(bucket_call *c)
{
    const node *n = c->node;
    const rlxvk_shape *from = input_shape(c->graph, n, 0);
    uint32_t used = 0;
    if (n->shape.rank != from->rank)
        return bucket_refuse(c, "it is repeated along new axes");
    for (uint32_t i = 0; i < n->shape.rank; i++)
        if (!stays(((const pad_attributes *)n->attributes)->mode, axis_of(n, from, i)))
            used |= 1u << i;
    return bucket_rows(c, used, 0);
}

/* Applies the adjoint of one axis after the other, the last one first. */
static rlxvk_tensor adjoint(gradient_call *c, const rlxvk_shape *from)
{
    const pad_attributes *a = c->n.attributes;
    rlxvk_tensor d = c->dy;
    for (uint32_t i = c->n.shape.rank; i-- > 0;) {
        pad_axis axis = axis_of(&c->n, from, i);
        if (!stays(a->mode, axis))
            d = rlxvk_pad_backward(c->graph, d, (int32_t)i, pad_normal_before(a->mode, axis),
                                   axis.extent, (rlxvk_pad_mode)a->mode);
    }
    return c->n.shape.rank == from->rank ? d : rlxvk_reshape(c->graph, d, *from);
}

static rlxvk_status pad_vjp(gradient_call *c)
{
    const pad_attributes *a = c->n.attributes;
    rlxvk_shape from = gradient_shape(c, 0);
    int64_t before[RLXVK_MAX_RANK], after[RLXVK_MAX_RANK];
    int32_t axes[RLXVK_MAX_RANK];
    for (uint32_t i = 0; i < a->count; i++) {
        uint32_t k = node_code(&c->n) == PAD_AMOUNTS ? i : a->count - 1 - i;
        before[i] = a->before[k] == INT64_MIN ? INT64_MIN : -a->before[k];
        after[i] = -a->after[k];
        axes[i] = (int32_t)a->after[k];
    }
    if (shape_numel(&from) == 0 || shape_numel(&c->n.shape) == 0)
        gradient_give(c, 0, gradient_filled(c->graph, 0, (rlxvk_dtype)c->n.dtype, from));
    else if (node_code(&c->n) == PAD_ROLL)
        gradient_give(c, 0, rlxvk_roll(c->graph, c->dy, before, axes, a->count));
    else if (a->mode == PAD_CONSTANT)
        gradient_give(c, 0, rlxvk_pad(c->graph, c->dy, before, after, a->count, NULL));
    else
        gradient_give(c, 0, adjoint(c, &from));
    return RLXVK_OK;
}

static void pad_describe(const node *n, text *out)
{
    const pad_attributes *a = n->attributes;
    static const char *const keys[] = {"before", "shifts", "repeats"};
    for (int list = 0; list < (node_code(n) == PAD_TILE ? 1 : 2); list++) {
        const char *second = node_code(n) == PAD_ROLL ? "axes" : "after";
        text_append(out, " %s=", list ? second : keys[node_code(n)]);
        for (uint32_t i = 0; i < a->count; i++)
            text_append(out, "%s%lld", i ? "," : "", (long long)(list ? a->after : a->before)[i]);
    }
    if (node_code(n) == PAD_AMOUNTS)
        text_append(out, " mode=%s", pad_mode_name(a->mode));
}

const op_family pad_family = {
    .name = "pad",
    .attribute_size = sizeof(pad_attributes),
    .infer = pad_infer,
    .storage = {.pairs = true},
    .views = {.view = pad_view, .reorder = pad_reorder},
    .execution = {.foldable = true, .lower = pad_lower, .host = pad_host},
    .rows = {.bucket = pad_bucket},
    .derivative = {.vjp = pad_vjp},
    .describe = pad_describe,
};
