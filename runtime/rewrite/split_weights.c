/*
 * Products with a weight that is larger than what the device binds. The weight stays one param in
 * one piece of memory, so setting, saving and names do not change. Several products read parts of
 * it, which are views of its rows, and their results are concatenated. Parts begin at aligned
 * addresses, so that no part is copied.
 */
#include "op/movement/movement.h"
#include "rewrite/fuse.h"

/* Rows of a part, or 0 if the parts cannot begin at aligned addresses. If the weight is held as
 * halves later, its parts are still aligned. */
static int64_t rows_of_part(const node *w, const rewrite_options *options)
{
    const device_profile *profile = options->profile;
    bool halves = w->dtype == RLXVK_F32 && options->may_halve;
    uint64_t columns = (uint64_t)w->shape.dims[1], unit = 1;
    uint64_t bytes = columns * rlxvk_dtype_size((rlxvk_dtype)w->dtype);
    uint64_t least = columns * rlxvk_dtype_size(halves ? RLXVK_F16 : (rlxvk_dtype)w->dtype);
    if (bytes == 0)
        return 0;
    while (unit * least % MAX(profile->slot_alignment, 1))
        unit *= 2;
    return (int64_t)(profile->max_binding_bytes / bytes / unit * unit);
}

/* Whether the weight is a param or constant of two dimensions, stored as rows of the result, and
 * too large. */
static bool is_too_large(const node *n, const node *w, const device_profile *profile)
{
    const matmul_attributes *a = n->attributes;
    return node_is_weight(w) && w->shape.rank == 2 && a->transpose_b && !a->transpose_a &&
           shape_numel(&w->shape) * rlxvk_dtype_size((rlxvk_dtype)w->dtype) >
               profile->max_binding_bytes &&
           shape_numel(&n->shape) > 0;
}

/* One product: weight, and bias if there is one, from row `start` on. */
static uint32_t append_part(pass *p, const node *n, int64_t start, int64_t rows)
{
    narrow_attributes part = {.axis = 0, .start = start, .length = rows};
    matmul_attributes a = *(const matmul_attributes *)n->attributes;
    uint32_t inputs[3] = {p->map[n->inputs[0]]};
    for (uint32_t i = 1; i < n->input_count; i++) {
        uint32_t whole = p->map[n->inputs[i]];
        if (p->graph->status == RLXVK_OK)
            inputs[i] = op_append(p->graph, OP_narrow, &whole, 1, &part, NULL);
    }
    return p->graph->status == RLXVK_OK
               ? op_append(p->graph, (op_kind)n->op, inputs, n->input_count, &a, NULL)
               : NODE_NONE;
}

uint32_t split_weight(pass *p, uint32_t id)
{
    const rewrite_options *options = p->context;
    const node n = p->nodes[id];
    axis_attributes last = {.axis = (int32_t)n.shape.rank - 1};
    uint32_t parts[SPLIT_MOST_PARTS], count = 0;
    if ((n.op != OP_matmul && n.op != OP_fused_matmul_bias_act) || !options->profile ||
        (options->on_host && options->on_host[n.op]) ||
        !is_too_large(&n, fuse_operand(p, &n, 1), options->profile))
        return NODE_NONE;
    int64_t rows = fuse_operand(p, &n, 1)->shape.dims[0];
    int64_t most = rows_of_part(fuse_operand(p, &n, 1), options);
    if (most == 0 || divide_up((uint64_t)rows, (uint64_t)most) > SPLIT_MOST_PARTS)
        return NODE_NONE;
    for (int64_t start = 0; start < rows && p->graph->status == RLXVK_OK; start += most)
        parts[count++] = append_part(p, &n, start, MIN(most, rows - start));
    return p->graph->status == RLXVK_OK
               ? op_append(p->graph, OP_concat, parts, count, &last, n.name)
               : NODE_NONE;
}
