/*
 * Bit-exact strided copies. A copy is first coalesced: axes of 1 are dropped, and neighbouring axes
 * are merged if both sides step through them as one. If the rest reads along one axis and writes
 * along another, the tiled kernel takes it. Otherwise the plain kernel does, in the widest unit (up
 * to 4 words) that divides the inner run, all strides and both offsets.
 *
 * Limits: up to 8 axes. Element indices are below 2^31, because strides are signed 32-bit numbers.
 */
#include "args/movement.h"
#include "constants/movement.h"
#include "op/movement/layout.h"
#include "op/movement/movement.h"
#include "op/value.h"

#include <string.h>

/* With fewer rows or columns, most of a tile would be idle, and caches make up for strided
 * reads. */
#define TRANSPOSE_SMALLEST    16
#define TRANSPOSE_INVOCATIONS 128 /* of a tile; with more, each has too few loads in flight */

strided_copy layout_dense_copy(const rlxvk_shape *shape)
{
    strided_copy copy = {.rank = shape->rank};
    for (uint32_t i = 0; i < shape->rank; i++)
        copy.dims[i] = shape->dims[i];
    shape_strides(shape, copy.target);
    return copy;
}

static bool mergeable(const strided_copy *c, uint32_t outer, uint32_t inner)
{
    return c->source[outer] == c->source[inner] * c->dims[inner] &&
           c->target[outer] == c->target[inner] * c->dims[inner];
}

/* Drops axes of 1 and merges neighbours. At least one axis remains. */
static strided_copy coalesce(const strided_copy *c)
{
    strided_copy out = {.source_first = c->source_first, .target_first = c->target_first};
    for (uint32_t i = 0; i < c->rank; i++) {
        if (c->dims[i] == 1)
            continue;
        uint32_t last = out.rank;
        out.dims[last] = c->dims[i];
        out.source[last] = c->source[i];
        out.target[last] = c->target[i];
        if (last && mergeable(&out, last - 1, last)) {
            out.dims[last - 1] *= c->dims[i];
            out.source[last - 1] = c->source[i];
            out.target[last - 1] = c->target[i];
        } else {
            out.rank++;
        }
    }
    if (out.rank == 0) {
        out.rank = 1;
        out.dims[0] = out.source[0] = out.target[0] = 1;
    }
    return out;
}

static uint64_t copy_count(const strided_copy *c)
{
    uint64_t count = 1;
    for (uint32_t i = 0; i < c->rank; i++)
        count *= (uint64_t)c->dims[i];
    return count;
}

static bool divides(const strided_copy *c, int64_t factor)
{
    uint32_t inner = c->rank - 1;
    if (c->source[inner] != 1 || c->target[inner] != 1 || c->dims[inner] % factor ||
        c->source_first % factor || c->target_first % factor)
        return false;
    for (uint32_t i = 0; i < inner; i++)
        if (c->source[i] % factor || c->target[i] % factor)
            return false;
    return true;
}

/* Rewrites the copy in units of `factor` elements. */
static strided_copy rescale(const strided_copy *c, int64_t factor)
{
    strided_copy out = *c;
    uint32_t inner = c->rank - 1;
    out.dims[inner] /= factor;
    out.source_first /= factor;
    out.target_first /= factor;
    for (uint32_t i = 0; i < inner; i++) {
        out.source[i] /= factor;
        out.target[i] /= factor;
    }
    return coalesce(&out);
}

static rlxvk_status emit_copy(lowering *l, const strided_copy *c, uint32_t width, bool in_order,
                              const operand *operands)
{
    dispatch d = {.kernel = KERNEL_STRIDED_COPY};
    struct strided_copy_args args = {.count = (uint32_t)copy_count(c),
                                     .rank = c->rank,
                                     .source_offset = (int32_t)c->source_first,
                                     .target_offset = (uint32_t)c->target_first};
    for (uint32_t i = 0; i < c->rank; i++) {
        uint32_t axis = c->rank - 1 - i;
        args.dims[i] = (uint32_t)c->dims[axis];
        args.source_strides[i] = (int32_t)c->source[axis];
        args.target_strides[i] = (uint32_t)c->target[axis];
    }
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size}, {STRIDED_COPY_WIDTH, width});
    lower_groups_in_order(l, &d, args.count, copy_lot(d.constants[LOCAL_SIZE]));
    if (!in_order)
        d.order = (group_order){0};
    return lower_emit(l, &d, &args, sizeof args, operands, 2);
}

/* The axis with stride 1; rank if there is none. */
static uint32_t unit_axis(const strided_copy *c, const int64_t *strides)
{
    uint32_t axis = 0;
    while (axis < c->rank && strides[axis] != 1)
        axis++;
    return axis;
}

static bool suits_tiles(const lowering *l, const strided_copy *c, uint32_t *row, uint32_t *column)
{
    *row = unit_axis(c, c->target);
    *column = unit_axis(c, c->source);
    if (*row == c->rank || *column == c->rank || *row == *column || c->source[*row] == 0 ||
        l->profile->workgroup_size % TRANSPOSE_TILE)
        return false;
    for (uint32_t i = 0; i < c->rank; i++)
        if (c->source[i] < 0)
            return false;
    return c->dims[*row] >= TRANSPOSE_SMALLEST && c->dims[*column] >= TRANSPOSE_SMALLEST;
}

/* The order of tiles. Tiles of one matrix follow each other. The axes before both matrix axes
 * divide the target into equal parts, which are made in order. */
static group_order order_of_tiles(const strided_copy *c, uint32_t row, uint32_t column,
                                  uint64_t groups)
{
    uint64_t parts = 1;
    for (uint32_t i = 0; i < MIN(row, column); i++)
        parts *= (uint64_t)c->dims[i];
    return parts > 1 ? (group_order){.run = (uint32_t)(groups / parts), .parts = parts, .lot = 1}
                     : (group_order){0};
}

static rlxvk_status emit_tiles(lowering *l, const strided_copy *c, uint32_t row, uint32_t column,
                               bool in_order, const operand *operands)
{
    dispatch d = {.kernel = KERNEL_TRANSPOSE2D};
    uint64_t row_tiles = divide_up((uint64_t)c->dims[row], TRANSPOSE_TILE);
    uint64_t column_tiles = divide_up((uint64_t)c->dims[column], TRANSPOSE_TILE);
    uint64_t groups = row_tiles * column_tiles;
    struct transpose2d_args args = {.rows = (uint32_t)c->dims[row],
                                    .columns = (uint32_t)c->dims[column],
                                    .row_stride = (uint32_t)c->source[row],
                                    .column_stride = (uint32_t)c->target[column],
                                    .source_offset = (uint32_t)c->source_first,
                                    .target_offset = (uint32_t)c->target_first,
                                    .row_tiles = (uint32_t)row_tiles,
                                    .column_tiles = (uint32_t)column_tiles};
    for (uint32_t i = c->rank; i-- > 0;) {
        if (i == row || i == column)
            continue;
        args.batch_dims[args.batch_rank] = (uint32_t)c->dims[i];
        args.batch_source[args.batch_rank] = (uint32_t)c->source[i];
        args.batch_target[args.batch_rank++] = (uint32_t)c->target[i];
        groups *= (uint64_t)c->dims[i];
    }
    args.group_count = (uint32_t)groups;
    SET_CONSTANTS(&d, {LOCAL_SIZE, MIN(l->profile->workgroup_size, TRANSPOSE_INVOCATIONS)});
    lower_groups(l, &d, groups);
    if (in_order)
        d.order = order_of_tiles(c, row, column, groups);
    return lower_emit(l, &d, &args, sizeof args, operands, 2);
}

/* in_order: the target's axes are those of the node's result. */
static rlxvk_status emit(lowering *l, const strided_copy *copy, bool in_order, operand source,
                         operand target)
{
    operand operands[2] = {source, target};
    strided_copy c = *copy;
    uint32_t row, column, width = element_words(&target);
    c.source_first += source.offset;
    c.target_first += target.offset;
    c = coalesce(&c);
    if (copy_count(&c) == 0)
        return RLXVK_OK;
    if (width == 1 && suits_tiles(l, &c, &row, &column))
        return emit_tiles(l, &c, row, column, in_order, operands);
    for (; width < 4 && divides(&c, 2); width *= 2)
        c = rescale(&c, 2);
    return emit_copy(l, &c, width, in_order, operands);
}

rlxvk_status layout_emit_copy(lowering *l, const strided_copy *copy, operand source, operand target)
{
    return emit(l, copy, false, source, target);
}

rlxvk_status layout_emit_rows(lowering *l, const strided_copy *copy, operand source, operand target)
{
    return emit(l, copy, true, source, target);
}

rlxvk_status layout_emit_node(lowering *l, uint32_t id, const strided_copy *copy)
{
    const value *items = l->values->items;
    if (items[graph_node(l->graph, id)->inputs[0]].root == items[id].root)
        return RLXVK_OK;
    return layout_emit_rows(l, copy, lower_input(l, id, 0), lower_write(l, id));
}

rlxvk_tensor layout_build_shape(rlxvk_graph *g, op_kind op, rlxvk_tensor x, rlxvk_shape shape)
{
    shape_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.shape = shape;
    return op_build(g, op, &x, 1, &attributes);
}

void layout_describe_shape(const node *n, text *out)
{
    char buffer[SHAPE_TEXT];
    text_append(out, " shape=%s", shape_text(&n->shape, buffer));
}

uint32_t layout_shape_sizes(void *attributes, int64_t *out[OP_MOST_SIZES])
{
    return op_shape_sizes(&((shape_attributes *)attributes)->shape, out);
}

void layout_describe_axes(text *out, const char *key, const int32_t *axes, uint32_t count)
{
    text_append(out, " %s=", key);
    for (uint32_t i = 0; i < count; i++)
        text_append(out, "%s%d", i ? "," : "", axes[i]);
}

void layout_host_coordinates(const rlxvk_shape *s, uint64_t index,
                             int64_t coordinates[RLXVK_MAX_RANK])
{
    for (uint32_t i = s->rank; i-- > 0;) {
        coordinates[i] = (int64_t)(index % (uint64_t)s->dims[i]);
        index /= (uint64_t)s->dims[i];
    }
}

uint64_t layout_host_index(const rlxvk_shape *s, const int64_t coordinates[RLXVK_MAX_RANK])
{
    uint64_t index = 0;
    for (uint32_t i = 0; i < s->rank; i++)
        index = index * (uint64_t)s->dims[i] + (uint64_t)coordinates[i];
    return index;
}

void layout_host_move(const host_call *call, uint64_t to, const host_tensor *input, uint64_t from)
{
    if (input->storage == STORAGE_RAW) {
        bool is_signed = input->node->dtype == RLXVK_I8;
        call->out[to] = is_signed ? (int8_t)input->bytes[from] : input->bytes[from];
        return;
    }
    if (input->storage != STORAGE_PAIR) {
        call->out[to] = input->words[from];
        return;
    }
    call->out[2 * to] = input->words[2 * from];
    call->out[2 * to + 1] = input->words[2 * from + 1];
}

rlxvk_status layout_host_gather(const host_call *call,
                                void (*source_of)(const node *n, const rlxvk_shape *from,
                                                  const int64_t c[RLXVK_MAX_RANK],
                                                  int64_t source[RLXVK_MAX_RANK]))
{
    const rlxvk_shape *to = &call->node->shape, *from = &call->inputs[0].node->shape;
    uint64_t numel = shape_numel(to);
    int64_t c[RLXVK_MAX_RANK] = {0}, source[RLXVK_MAX_RANK] = {0};
    for (uint64_t i = 0; i < numel; i++) {
        layout_host_coordinates(to, i, c);
        source_of(call->node, from, c, source);
        layout_host_move(call, i, &call->inputs[0], layout_host_index(from, source));
    }
    return RLXVK_OK;
}
