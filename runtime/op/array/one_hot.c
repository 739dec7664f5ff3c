/* one_hot adds an axis on which the position given by an index has the value `on`, and all others
 * have `off`. Exact. */
#include "args/array.h"
#include "args/movement.h"
#include "constants/array.h"
#include "op/bucket.h"
#include "op/families.h"
#include "op/gradient.h"
#include "op/movement/layout.h"

#include <rlxvk_ops_array.h>

#include <math.h>

typedef struct one_hot_attributes {
    int64_t depth;
    int32_t axis;
    float on, off;
} one_hot_attributes;

#define LONGEST_AXIS (1 << 24) /* indices are exact f32 integers */

rlxvk_tensor rlxvk_one_hot(rlxvk_graph *g, rlxvk_tensor indices, int64_t depth, int32_t axis,
                           float on, float off)
{
    one_hot_attributes a = {depth, axis, on, off};
    return op_build(g, OP_one_hot, &indices, 1, &a);
}

static rlxvk_status one_hot_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    one_hot_attributes *a = attributes;
    const rlxvk_shape *index = input_shape(g, n, 0);
    char buffer[SHAPE_TEXT];
    rlxvk_status status;
    if (index->rank == RLXVK_MAX_RANK)
        return op_fail(n, RLXVK_E_SHAPE, "indices %s leave no room for another axis; %d at most",
                       shape_text(index, buffer), RLXVK_MAX_RANK);
    TRY(op_axis(n, a->axis, index->rank + 1, &a->axis));
    if (a->depth < 0)
        return op_fail(n, RLXVK_E_ATTR, "depth is %lld; it counts places", (long long)a->depth);
    if (a->depth > LONGEST_AXIS)
        return op_fail(n, RLXVK_E_INDEX_RANGE,
                       "depth is %lld, above 2^24, which indices held as f32 can count",
                       (long long)a->depth);
    n->shape = *index;
    n->shape.rank++;
    for (uint32_t i = index->rank; i > (uint32_t)a->axis; i--)
        n->shape.dims[i] = index->dims[i - 1];
    n->shape.dims[a->axis] = a->depth;
    n->dtype = RLXVK_F32;
error:
    return status;
}

static uint32_t one_hot_sizes(void *attributes, int64_t *out[OP_MOST_SIZES])
{
    one_hot_attributes *a = attributes;
    out[0] = &a->depth;
    return 1;
}

static rlxvk_status one_hot_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const one_hot_attributes *a = n->attributes;
    axis_view v = op_axis_view(&n->shape, a->axis);
    operand operands[] = {lower_input(l, id, 0), lower_write(l, id)};
    bool quads = v.inner == 1 && (v.length | operands[1].offset) % 4 == 0;
    uint32_t width = quads ? 4 : 1;
    dispatch d = {.kernel = KERNEL_ONE_HOT};
    struct one_hot_args args = {.count = (u32)(shape_numel(&n->shape) / width),
                                .depth = (u32)(v.length / width),
                                .inner = (u32)v.inner,
                                .on = a->on,
                                .off = a->off,
                                .index_offset = operands[0].offset,
                                .y_offset = operands[1].offset / width};
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size}, {ONE_HOT_WIDTH, width});
    lower_groups_in_order(l, &d, args.count, copy_lot(d.constants[LOCAL_SIZE]));
    return lower_emit(l, &d, &args, sizeof args, operands, 2);
}

static rlxvk_status one_hot_host(const host_call *c)
{
    const one_hot_attributes *a = c->node->attributes;
    axis_view v = op_axis_view(&c->node->shape, a->axis);
    uint64_t numel = shape_numel(&c->node->shape);
    for (uint64_t e = 0; e < numel; e++) {
        uint64_t line = e / v.inner, place = line % v.length, o = line / v.length;
        double at = floor((double)c->inputs[0].words[o * v.inner + e % v.inner] + 0.5);
        c->out[e] = at == (double)place ? a->on : a->off;
    }
    return RLXVK_OK;
}

static uint64_t one_hot_bucket(bucket_call *c)
{
    int32_t rows = bucket_axis(c, 0),
            places = ((const one_hot_attributes *)c->node->attributes)->axis;
    if (rows < 0)
        return bucket_refuse(c, "the rows of its indices do not lie along one axis");
    return bucket_along(c, rows + (rows >= places));
}

static void one_hot_describe(const node *n, text *out)
{
    const one_hot_attributes *a = n->attributes;
    text_append(out, " depth=%lld axis=%d on=%g off=%g", (long long)a->depth, a->axis,
                (double)a->on, (double)a->off);
}

const op_family one_hot_family = {
    .name = "one_hot",
    .attribute_size = sizeof(one_hot_attributes),
    .infer = one_hot_infer,
    .sizes = one_hot_sizes,
    .execution = {.lower = one_hot_lower, .host = one_hot_host},
    .rows = {.bucket = one_hot_bucket},
    .describe = one_hot_describe,
};
