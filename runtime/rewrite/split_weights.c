/*
 * Products and gathers with a weight that is larger than what the device binds. The weight stays
 * one value in one piece of memory, so setting, saving and names do not change. Several nodes read
 * parts of it, which are views of its rows. Parts begin at aligned addresses, so that no part is
 * copied. If the rows of a product's weight are its inner axis, the products of the parts are added
 * up; else they are parts of the result's columns.
 */
#include "op/movement/movement.h"
#include "op/packed/dequant.h"
#include "rewrite/split.h"

#include <string.h>

/* How many rows each node reads; 0 if the node stays as it is. The number is even, so that half
 * below the first row of a part is a number of f32 or rounds to that row. */
static int64_t part_rows(const pass *p, const node *n, uint32_t operand)
{
    const node *w = fuse_operand(p, n, operand);
    if (!split_is_needed(p, n, operand) || w->shape.rank < 2)
        return 0;
    uint64_t all = (uint64_t)w->shape.dims[0];
    uint64_t rows = split_rows(p, w, shape_numel(&w->shape) / all, 2);
    return rows && divide_up(all, rows) <= SPLIT_MOST_PARTS ? (int64_t)rows : 0;
}

/* ---- Products ---- */

static uint32_t narrowed(pass *p, uint32_t whole, int64_t axis, int64_t start, int64_t length)
{
    narrow_attributes a = {.axis = (int32_t)axis, .start = start, .length = length};
    return p->graph->status == RLXVK_OK ? op_append(p->graph, OP_narrow, &whole, 1, &a, NULL)
                                        : NODE_NONE;
}

/* The same node with `inputs`. */
static uint32_t append_like(pass *p, const node *n, const uint32_t *inputs)
{
    union {
        matmul_attributes matmul;
        dequant_attributes dequant;
    } a = {0}; /* op_append may move the attributes of `n` */
    memcpy(&a, n->attributes, node_row(n)->family->attribute_size);
    return p->graph->status == RLXVK_OK
               ? op_append(p->graph, (op_kind)n->op, inputs, n->input_count, &a, NULL)
               : NODE_NONE;
}

/* One product with rows of the weight, and of the bias if there is one. The grid of a packed format
 * stays whole. */
static uint32_t append_columns(pass *p, const node *n, int64_t start, int64_t rows)
{
    uint32_t inputs[3] = {p->map[n->inputs[0]]};
    for (uint32_t i = 1; i < n->input_count; i++)
        inputs[i] = i > 1 && n->op == OP_dequant_matmul
                        ? p->map[n->inputs[i]]
                        : narrowed(p, p->map[n->inputs[i]], 0, start, rows);
    return append_like(p, n, inputs);
}

static uint32_t split_columns(pass *p, const node *n, int64_t rows, int64_t most)
{
    axis_attributes last = {.axis = (int32_t)n->shape.rank - 1};
    uint32_t parts[SPLIT_MOST_PARTS], count = 0;
    for (int64_t start = 0; start < rows && p->graph->status == RLXVK_OK; start += most)
        parts[count++] = append_columns(p, n, start, MIN(most, rows - start));
    return p->graph->status == RLXVK_OK
               ? op_append(p->graph, OP_concat, parts, count, &last, n->name)
               : NODE_NONE;
}

static uint32_t split_inner(pass *p, const node *n, int64_t rows, int64_t most)
{
    uint32_t whole[] = {p->map[n->inputs[0]], p->map[n->inputs[1]]}, sum = NODE_NONE;
    int64_t axis = (int64_t)fuse_operand(p, n, 0)->shape.rank - 1;
    for (int64_t start = 0; start < rows && p->graph->status == RLXVK_OK; start += most) {
        int64_t length = MIN(most, rows - start);
        uint32_t inputs[] = {narrowed(p, whole[0], axis, start, length),
                             narrowed(p, whole[1], 0, start, length)};
        uint32_t terms[] = {sum, append_like(p, n, inputs)};
        sum = terms[1];
        if (start > 0 && p->graph->status == RLXVK_OK)
            sum = op_append(p->graph, OP_add, terms, 2, NULL,
                            start + length == rows ? n->name : NULL);
    }
    return sum;
}

static uint32_t split_product(pass *p, uint32_t id)
{
    const node n = p->nodes[id];
    const matmul_attributes *a = n.op == OP_dequant_matmul ? NULL : n.attributes;
    int64_t most = part_rows(p, &n, 1), rows = fuse_operand(p, &n, 1)->shape.dims[0];
    uint32_t made = NODE_NONE;
    if (!most || fuse_operand(p, &n, 1)->shape.rank != 2 || (a && a->transpose_a))
        return NODE_NONE;
    if (!a || a->transpose_b)
        made = split_columns(p, &n, rows, most);
    else if (n.op == OP_matmul)
        made = split_inner(p, &n, rows, most);
    return p->graph->status == RLXVK_OK ? made : NODE_NONE;
}

/* ---- Gathers of rows: each part is read at all indices, clamped into it, and the index chooses
 * among the results. The first part is not clamped from below and the last not from above, so that
 * RLXVK_CHECK=index still finds indices outside. ---- */

static uint32_t gather_part(pass *p, const node *n, int64_t start, int64_t rows, bool ends)
{
    rlxvk_graph *g = p->graph;
    rlxvk_tensor index = tensor_of(g, p->map[n->inputs[1]]);
    if (start)
        index =
            rlxvk_max(g, rlxvk_sub(g, index, rlxvk_scalar(g, (float)start)), rlxvk_scalar(g, 0));
    if (!ends)
        index = rlxvk_min(g, index, rlxvk_scalar(g, (float)(rows - 1)));
    uint32_t inputs[] = {narrowed(p, p->map[n->inputs[0]], 0, start, rows), index.id - 1, 0};
    if (n->input_count > 2)
        inputs[2] = p->map[n->inputs[2]];
    return append_like(p, n, inputs);
}

static uint32_t split_gather(pass *p, uint32_t id)
{
    const node n = p->nodes[id];
    int64_t most = part_rows(p, &n, 0), rows = fuse_operand(p, &n, 0)->shape.dims[0];
    rlxvk_tensor index = tensor_of(p->graph, p->map[n.inputs[1]]);
    bool packed = n.op == OP_dequant_gather;
    uint32_t y = NODE_NONE;
    if (!most || (packed && fuse_operand(p, &n, 0)->shape.rank != 2) ||
        (!packed && (((const axis_attributes *)n.attributes)->axis != 0 || n.dtype == RLXVK_U8 ||
                     n.dtype == RLXVK_I8)))
        return NODE_NONE;
    for (int64_t start = 0; start < rows && p->graph->status == RLXVK_OK; start += most) {
        int64_t count = MIN(most, rows - start);
        bool ends = start + count == rows;
        uint32_t part = gather_part(p, &n, start, count, ends);
        if (start == 0) {
            y = part;
            continue;
        }
        rlxvk_tensor reached = split_reaches(p->graph, index, start, n.shape.rank);
        uint32_t inputs[] = {reached.id - 1, part, y};
        if (p->graph->status == RLXVK_OK)
            y = op_append(p->graph, OP_where, inputs, 3, NULL, ends ? n.name : NULL);
    }
    return p->graph->status == RLXVK_OK ? y : NODE_NONE;
}

uint32_t split_weight(pass *p, uint32_t id)
{
    op_kind op = (op_kind)p->nodes[id].op;
    if (op == OP_gather || op == OP_dequant_gather)
        return split_gather(p, id);
    if (op == OP_matmul || op == OP_fused_matmul_bias_act || op == OP_dequant_matmul)
        return split_product(p, id);
    if (op == OP_grouped_matmul || op == OP_dequant_grouped_matmul)
        return split_experts(p, id);
    return NODE_NONE;
}
