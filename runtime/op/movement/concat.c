/*
 * concat. If only axes of 1 come before the concatenated axis, each part is one contiguous run of
 * the result. Then each part is one copy, and its write operand is narrowed to the run. So the
 * copies need no barrier between them, and a part that already lies in its place needs no copy.
 *
 * Otherwise the rows of the parts lie side by side. A dispatch takes CONCAT_PARTS parts. It copies
 * in the widest unit that divides all rows and offsets.
 */
#include "args/movement.h"
#include "constants/movement.h"
#include "op/bucket.h"
#include "op/gradient.h"
#include "op/families.h"
#include "op/movement/layout.h"
#include "op/value.h"

#include <string.h>

rlxvk_tensor rlxvk_concat(rlxvk_graph *g, const rlxvk_tensor *parts, size_t count, int32_t axis)
{
    axis_attributes attributes = {.axis = axis};
    if (!graph_ready(g, "concat") ||
        graph_fail(g, status_require_items(parts, count, "concat", "parts")) != RLXVK_OK)
        return RLXVK_NONE;
    for (size_t i = 0; i < count; i++)
        if (parts[i].id == 0) { /* op_build would skip it like an absent optional operand */
            graph_fail(g,
                       status_fail(RLXVK_E_DANGLING,
                                   "concat: part %zu of %zu is RLXVK_NONE; pass fewer", i, count));
            return RLXVK_NONE;
        }
    return op_build(g, OP_concat, parts, count, &attributes);
}

static rlxvk_status check_part(const rlxvk_graph *g, const node *n, uint32_t i, int32_t axis)
{
    const rlxvk_shape *first = input_shape(g, n, 0), *part = input_shape(g, n, i);
    char first_text[SHAPE_TEXT], part_text[SHAPE_TEXT];
    bool agree = part->rank == first->rank;
    for (uint32_t d = 0; agree && d < first->rank; d++)
        agree = d == (uint32_t)axis || part->dims[d] == first->dims[d];
    if (!agree)
        return op_fail(n, RLXVK_E_SHAPE, "part %u is %s, part 0 is %s; only axis %d may differ", i,
                       shape_text(part, part_text), shape_text(first, first_text), axis);
    if (input_dtype(g, n, i) != input_dtype(g, n, 0))
        return op_fail(n, RLXVK_E_DTYPE, "part %u is %s, part 0 is %s; insert a cast", i,
                       rlxvk_dtype_name(input_dtype(g, n, i)),
                       rlxvk_dtype_name(input_dtype(g, n, 0)));
    bool raw = op_node_storage(g, n->inputs[0]) == STORAGE_RAW;
    if ((op_node_storage(g, n->inputs[i]) == STORAGE_RAW) != raw)
        return op_fail(n, RLXVK_E_DTYPE,
                       "part %u is %s, part 0 is %s; insert a cast of the raw bytes", i,
                       raw ? "computed" : "of raw bytes", raw ? "of raw bytes" : "computed");
    if (raw && op_axis_view(part, axis).inner * (uint64_t)part->dims[axis] % 4)
        return op_fail(n, RLXVK_E_DTYPE,
                       "part %u is %s: raw bytes are joined in runs of multiples of 4 bytes; "
                       "insert a cast",
                       i, shape_text(part, part_text));
    return RLXVK_OK;
}

static rlxvk_status concat_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    int32_t *axis = &((axis_attributes *)attributes)->axis;
    const rlxvk_shape *first = input_shape(g, n, 0);
    int64_t total = 0;
    rlxvk_status status;
    TRY(op_axis(n, *axis, first->rank, axis));
    if (first->rank == 0)
        return op_fail(n, RLXVK_E_AXIS, "scalars have no axis; reshape the parts to [1]");
    for (uint32_t i = 0; i < n->input_count; i++) {
        TRY(check_part(g, n, i, *axis));
        if (add_overflows(total, input_shape(g, n, i)->dims[*axis], &total))
            return op_fail(n, RLXVK_E_TOO_LARGE, "axis %d of the first %u parts has 2^63 or more",
                           *axis, i + 1);
    }
    n->shape = *first;
    n->shape.dims[*axis] = total;
    n->dtype = (uint8_t)input_dtype(g, n, 0);
error:
    return status;
}

/* If only axes of 1 come before the axis, the parts follow each other in memory. */
static bool concat_concatenates(const node *n)
{
    uint32_t axis = (uint32_t)((const axis_attributes *)n->attributes)->axis;
    return shape_product(&n->shape, 0, axis) == 1;
}

/* Does the part already lie in its place? A part may share the result's slot and still lie
 * elsewhere: if it is given twice, or if the result is itself a part. */
static bool in_place(const lowering *l, uint32_t id, uint32_t part, uint64_t start)
{
    const value *whole = &l->values->items[id], *v = &l->values->items[part];
    return v->root == whole->root && v->offset == whole->offset + start;
}

/* Raw bytes are copied as words, so offsets are in words. */
static operand in_words(operand o)
{
    if (o.storage == STORAGE_RAW)
        o.offset /= 4;
    return o;
}
static uint64_t unit_bytes(const operand *o)
{
    return o->storage == STORAGE_RAW ? 4 : 1;
}

/* Copies each part as one run. */
static rlxvk_status lower_runs(lowering *l, uint32_t id, axis_view whole, uint32_t axis)
{
    const node *n = graph_node(l->graph, id);
    uint64_t start = 0;
    rlxvk_status status = RLXVK_OK;
    for (uint32_t i = 0; i < n->input_count; i++) {
        const rlxvk_shape *shape = input_shape(l->graph, n, i);
        uint64_t run = (uint64_t)shape->dims[axis] * whole.inner;
        operand source = in_words(lower_input(l, id, i)), target = lower_write(l, id);
        strided_copy copy = {.rank = 1,
                             .dims = {(int64_t)(run / unit_bytes(&target))},
                             .source = {1},
                             .target = {1}};
        lower_narrow(l, &target, start, run);
        if (source.value == target.value) /* it is another part that already lies in the result */
            source.overlap = OVERLAP_APART;
        if (run && !in_place(l, id, n->inputs[i], start))
            TRY(layout_emit_copy(l, &copy, source, in_words(target)));
        start += run;
    }
error:
    return status;
}

/* `count` parts that are copied together, side by side. `columns` is their width in the result's
 * rows. */
typedef struct band {
    uint32_t count;
    uint64_t columns;
    uint64_t widths[CONCAT_PARTS];
    operand parts[CONCAT_PARTS];
} band;

static bool band_divides(const band *b, const operand *target, uint64_t row, uint64_t words)
{
    uint64_t bits = row * words | target->offset * words;
    for (uint32_t i = 0; i < b->count; i++)
        bits |= b->widths[i] * words | b->parts[i].offset * words;
    return bits % 4 == 0;
}

static rlxvk_status emit_band(lowering *l, band *b, uint64_t rows, uint64_t row, operand target)
{
    dispatch d = {.kernel = KERNEL_CONCAT};
    uint64_t words = element_words(&target), size = l->profile->workgroup_size;
    uint64_t width = band_divides(b, &target, row, words) ? 4 : words;
    struct concat_args args = {.rows = (u32)rows,
                               .columns = (u32)(b->columns * words / width),
                               .target_row = (u32)(row * words / width),
                               .target_offset = (u32)(target.offset * words / width)};
    operand operands[CONCAT_PARTS + 1];
    args.step_rows = (u32)(size / args.columns);
    args.step_columns = (u32)(size % args.columns);
    for (uint32_t i = 0, end = 0; i < CONCAT_PARTS; i++) {
        end += i < b->count ? (u32)(b->widths[i] * words / width) : 0;
        operands[i] = b->parts[i < b->count ? i : 0];
        args.ends[i] = end;
        args.offsets[i] = (u32)(operands[i].offset * words / width);
    }
    operands[CONCAT_PARTS] = target;
    SET_CONSTANTS(&d, {LOCAL_SIZE, (u32)size}, {CONCAT_WIDTH, (u32)width},
                  {CONCAT_ITEMS, COPY_ITEMS});
    lower_groups_in_order(l, &d, (uint64_t)args.rows * args.columns, copy_lot((u32)size));
    return lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

static rlxvk_status lower_bands(lowering *l, uint32_t id, axis_view whole, uint32_t axis)
{
    const node *n = graph_node(l->graph, id);
    uint64_t row = whole.length * whole.inner, start = 0, elements = 0;
    operand result = lower_write(l, id);
    uint64_t unit = unit_bytes(&result);
    band b = {0};
    rlxvk_status status = RLXVK_OK;
    for (uint32_t i = 0; i < n->input_count; i++) {
        uint64_t width = (uint64_t)input_shape(l->graph, n, i)->dims[axis] * whole.inner;
        if (width) {
            b.parts[b.count] = in_words(lower_input(l, id, i));
            b.widths[b.count++] = width / unit;
            b.columns += width / unit;
            elements += width;
        }
        if (b.count == 0 || (b.count < CONCAT_PARTS && i + 1 < n->input_count))
            continue;
        operand target = lower_write(l, id); /* from the band's first element to its last */
        lower_narrow(l, &target, start, (whole.outer - 1) * row + elements);
        TRY(emit_band(l, &b, whole.outer, row / unit, in_words(target)));
        start += elements;
        elements = 0;
        b = (band){0};
    }
error:
    return status;
}

static rlxvk_status concat_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    uint32_t axis = (uint32_t)((const axis_attributes *)n->attributes)->axis;
    axis_view whole = op_axis_view(&n->shape, (int32_t)axis);
    if (shape_numel(&n->shape) == 0)
        return RLXVK_OK;
    return whole.outer == 1 ? lower_runs(l, id, whole, axis) : lower_bands(l, id, whole, axis);
}

static rlxvk_status concat_host(const host_call *call)
{
    const node *n = call->node;
    int32_t axis = ((const axis_attributes *)n->attributes)->axis;
    uint64_t numel = shape_numel(&n->shape);
    int64_t c[RLXVK_MAX_RANK];
    for (uint64_t i = 0; i < numel; i++) {
        uint32_t part = 0;
        layout_host_coordinates(&n->shape, i, c);
        while (c[axis] >= call->inputs[part].node->shape.dims[axis])
            c[axis] -= call->inputs[part++].node->shape.dims[axis];
        layout_host_move(call, i, &call->inputs[part],
                         layout_host_index(&call->inputs[part].node->shape, c));
    }
    return RLXVK_OK;
}

static uint64_t concat_bucket(bucket_call *c)
{
    return bucket_rows(c, 1u << ((const axis_attributes *)c->node->attributes)->axis, ~0u);
}

static rlxvk_status concat_vjp(gradient_call *c)
{
    int32_t axis = ((const axis_attributes *)c->n.attributes)->axis;
    int64_t start = 0;
    for (uint32_t i = 0; i < c->n.input_count; i++) {
        int64_t extent = gradient_shape(c, i).dims[axis];
        if (gradient_wanted(c, i))
            gradient_give(c, i, rlxvk_narrow(c->graph, c->dy, axis, start, extent));
        start += extent;
    }
    return RLXVK_OK;
}

const op_family concat_family = {
    .name = "concat",
    .attribute_size = sizeof(axis_attributes),
    .infer = concat_infer,
    .storage = {.raw_inputs = UINT32_MAX, .pairs = true, .keeps_storage = true},
    .views = {.concatenates = concat_concatenates, .reorder = op_reorder_axis},
    .execution = {.foldable = true, .lower = concat_lower, .host = concat_host},
    .rows = {.bucket = concat_bucket},
    .derivative = {.vjp = concat_vjp},
    .describe = op_describe_axis,
};
