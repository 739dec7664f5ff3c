/* gather_nd gathers rows of x. An index consists of several numbers, one for each of the first axes
 * of x. As in gather, each number is clamped to its axis, and NaN counts as 0. Bit-exact. */
#include "args/movement.h"
#include "constants/array.h"
#include "op/array/scatter.h"
#include "op/bucket.h"
#include "op/families.h"
#include "op/movement/layout.h"

#include <rlxvk_ops_array.h>

#include <math.h>

rlxvk_tensor rlxvk_gather_nd(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor indices)
{
    return op_build(g, OP_gather_nd, (rlxvk_tensor[]){x, indices}, 2, NULL);
}

static rlxvk_status gather_nd_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const rlxvk_shape *x = input_shape(g, n, 0), *index = input_shape(g, n, 1);
    char texts[2][SHAPE_TEXT];
    rlxvk_shape out;
    rlxvk_status status;
    (void)attributes;
    TRY(scatter_check_components(n, x, index));
    if (!scatter_rows_shape(x, index, &out))
        return op_fail(n, RLXVK_E_SHAPE, "x %s by indices %s has more than %d axes",
                       shape_text(x, texts[0]), shape_text(index, texts[1]), RLXVK_MAX_RANK);
    if (shape_numel(index) && shape_product(x, 0, (uint32_t)index->dims[index->rank - 1]) == 0)
        return op_fail(n, RLXVK_E_RANGE, "an axis that is indexed of x %s is empty",
                       shape_text(x, texts[0]));
    n->shape = out;
    n->dtype = (uint8_t)input_dtype(g, n, 0);
error:
    return status;
}

static rlxvk_status gather_nd_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    operand operands[] = {lower_input(l, id, 0), lower_input(l, id, 1), lower_write(l, id)};
    struct scatter_args args = {.x_offset = operands[0].offset,
                                .index_offset = operands[1].offset,
                                .y_offset = operands[2].offset};
    dispatch d = {.kernel = KERNEL_GATHER_ND};
    scatter_set_components(input_shape(l->graph, n, 0), input_shape(l->graph, n, 1), &args);
    uint32_t width = (args.inner | args.x_offset | args.y_offset) % 4 == 0 ? 4 : 1;
    args.count = (u32)(shape_numel(&n->shape) / width);
    args.inner /= width;
    args.x_offset /= width;
    args.y_offset /= width;
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size}, {GATHER_ND_WIDTH, width});
    lower_groups_in_order(l, &d, args.count, copy_lot(d.constants[LOCAL_SIZE]));
    return lower_emit(l, &d, &args, sizeof args, operands, 3);
}

static rlxvk_status gather_nd_host(const host_call *c)
{
    const rlxvk_shape *x = &c->inputs[0].node->shape;
    struct scatter_args args = {0};
    scatter_set_components(x, &c->inputs[1].node->shape, &args);
    for (uint64_t u = 0; u < args.updates; u++) {
        uint64_t row = 0;
        for (uint32_t k = 0; k < args.components; k++) {
            double v = c->inputs[1].words[u * args.components + k], last = (double)x->dims[k] - 1;
            double at = isnan(v) ? 0 : fmin(fmax(floor(v + 0.5), 0), last);
            row = row * (uint64_t)x->dims[k] + (uint64_t)at;
        }
        for (uint64_t t = 0; t < args.inner; t++)
            c->out[u * args.inner + t] = c->inputs[0].words[row * args.inner + t];
    }
    return RLXVK_OK;
}

/* If x is fixed, the rows of the indices stay apart. If the indices are fixed, an axis of x stays
 * apart if no index number selects along it. */
static uint64_t gather_nd_bucket(bucket_call *c)
{
    const rlxvk_shape *index = input_shape(c->graph, c->node, 1);
    int32_t data = bucket_axis(c, 0), places = bucket_axis(c, 1);
    int32_t last = (int32_t)index->rank - 1, taken = (int32_t)index->dims[last];
    bool moves = bucket_span(c, 0) != BUCKET_FIXED, asks = bucket_span(c, 1) != BUCKET_FIXED;
    if (moves && (asks || data < taken))
        return bucket_refuse(c, "it takes rows from where its indices say");
    if (asks && (places < 0 || places == last))
        return bucket_refuse(c, "the rows of its indices are not along one of their axes");
    return bucket_along(c, asks ? places : last + data - taken);
}

/* The gradient of x is a scatter_nd that adds dy at the same indices. They are clamped first,
 * because scatter_nd drops indices that are outside. */
static rlxvk_status gather_nd_vjp(gradient_call *c)
{
    rlxvk_graph *g = c->graph;
    rlxvk_shape x = gradient_shape(c, 0), shape = gradient_shape(c, 1);
    uint32_t count = (uint32_t)shape.dims[shape.rank - 1];
    float last[RLXVK_MAX_RANK];
    rlxvk_tensor dx = gradient_filled(g, 0, RLXVK_F32, x);
    if (shape_numel(&x) != 0 && shape_numel(&shape) != 0) {
        for (uint32_t i = 0; i < count; i++)
            last[i] = (float)(x.dims[i] - 1);
        rlxvk_tensor index = rlxvk_cast(g, gradient_operand(c, 1), RLXVK_F32);
        rlxvk_tensor zero = gradient_scalar(g, 0);
        index = rlxvk_where(g, rlxvk_eq(g, index, index), index, zero);
        index =
            rlxvk_min(g, rlxvk_max(g, index, zero),
                      rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(count), last, count * sizeof *last));
        dx = rlxvk_scatter_nd(g, dx, index, c->dy, RLXVK_SCATTER_ADD);
    }
    gradient_give(c, 0, dx);
    return RLXVK_OK;
}

const op_family gather_nd_family = {
    .name = "gather_nd",
    .infer = gather_nd_infer,
    .execution = {.lower = gather_nd_lower, .host = gather_nd_host},
    .rows = {.bucket = gather_nd_bucket},
    .derivative = {.vjp = gather_nd_vjp},
    .checks = {.indices = scatter_nd_indices},
};
