/*
 * Products with experts whose weights are larger than what the device binds. As in split_weights.c,
 * the weight stays one value, and several nodes read parts of it. A part is a number of experts. If
 * one expert is too large, it is a number of its rows, which are columns of the result. Each part
 * gets all rows of x; those that name experts of other parts cost little, because their results
 * are zeros. The index chooses among the results, so no bit differs from that of a whole weight.
 */
#include "op/movement/movement.h"
#include "op/packed/dequant.h"
#include "op/packed/quant_format.h"
#include "rewrite/split.h"

#include <string.h>

typedef struct split_job {
    pass *p;
    node n;
    bool packed;
    bool ordered;                     /* a row of the weight gives a column of the result */
    uint64_t experts, rows, columns;  /* of an expert, in elements; packed: in bytes */
    uint64_t most_experts, most_rows; /* of a part; the other one is 0 */
    rlxvk_tensor x, w, index, grid;
} split_job;

static rlxvk_tensor replaced(const split_job *j, uint32_t operand)
{
    return operand < j->n.input_count ? tensor_of(j->p->graph, j->p->map[j->n.inputs[operand]])
                                      : RLXVK_NONE;
}

static void measure(split_job *j)
{
    const node *w = fuse_operand(j->p, &j->n, 1);
    if (j->packed) {
        const expert_attributes *a = j->n.attributes;
        j->experts = (uint64_t)a->experts;
        j->rows = (uint64_t)a->n;
        j->columns = quant_row_bytes(a->format, (uint64_t)a->k);
        j->ordered = true;
    } else {
        j->experts = (uint64_t)w->shape.dims[0];
        j->rows = (uint64_t)w->shape.dims[1];
        j->columns = (uint64_t)w->shape.dims[2];
        j->ordered = ((const grouped_attributes *)j->n.attributes)->product.transpose_b;
    }
    j->most_experts = split_rows(j->p, w, j->rows * j->columns, 1);
    /* Rows of an expert only begin at aligned addresses if the expert does. */
    const rewrite_options *options = j->p->context;
    uint64_t alignment = MAX(options->profile->slot_alignment, 1);
    if (!j->most_experts && j->ordered &&
        (j->experts == 1 || j->rows * j->columns % alignment == 0))
        j->most_rows = split_rows(j->p, w, j->columns, 1);
}

static uint64_t count_parts(const split_job *j)
{
    if (j->most_experts)
        return divide_up(j->experts, j->most_experts);
    return j->most_rows ? j->experts * divide_up(j->rows, j->most_rows) : 0;
}

/* The product with `rows` rows, from `row` on, of `experts` experts, from `expert` on. If rows are
 * not all, it is one expert. */
static rlxvk_tensor append_part(const split_job *j, uint64_t expert, uint64_t experts, uint64_t row,
                                uint64_t rows)
{
    rlxvk_graph *g = j->p->graph;
    experts_part part = {(int64_t)expert, (int64_t)j->experts};
    int64_t first = (int64_t)((expert * j->rows + row) * j->columns);
    int64_t numel = (int64_t)(experts * rows * j->columns);
    rlxvk_tensor w = rlxvk_narrow(g, j->w, 0, first, numel), index = j->index;
    if (expert)
        index = rlxvk_sub(g, index, rlxvk_scalar(g, (float)expert));
    if (j->packed) {
        expert_attributes a;
        memcpy(&a, j->n.attributes, sizeof a);
        a.n = (int64_t)rows;
        a.part = part;
        return op_build(g, OP_dequant_grouped_matmul, (rlxvk_tensor[]){j->x, w, index, j->grid}, 4,
                        &a);
    }
    grouped_attributes a;
    memcpy(&a, j->n.attributes, sizeof a);
    a.part = part;
    w = rlxvk_reshape(g, w, RLXVK_SHAPE((int64_t)experts, (int64_t)rows, (int64_t)j->columns));
    return op_build(g, OP_grouped_matmul, (rlxvk_tensor[]){j->x, w, index}, 3, &a);
}

/* The experts [expert, expert + experts), which one part has; or one expert in parts. */
static rlxvk_tensor append_experts(const split_job *j, uint64_t expert, uint64_t experts)
{
    rlxvk_tensor parts[SPLIT_MOST_PARTS];
    uint32_t count = 0;
    if (j->most_experts)
        return append_part(j, expert, experts, 0, j->rows);
    for (uint64_t row = 0; row < j->rows; row += j->most_rows)
        parts[count++] = append_part(j, expert, 1, row, MIN(j->most_rows, j->rows - row));
    return rlxvk_concat(j->p->graph, parts, count, 1);
}

uint32_t split_experts(pass *p, uint32_t id)
{
    split_job j = {.p = p,
                   .n = p->nodes[id],
                   .packed = p->nodes[id].op == OP_dequant_grouped_matmul};
    rlxvk_graph *g = p->graph;
    rlxvk_tensor y = RLXVK_NONE;
    if (!split_is_needed(p, &j.n, 1))
        return NODE_NONE;
    measure(&j);
    if (count_parts(&j) == 0 || count_parts(&j) > SPLIT_MOST_PARTS)
        return NODE_NONE;
    j.x = replaced(&j, 0);
    j.w = replaced(&j, 1);
    j.w = rlxvk_reshape(g, j.w, RLXVK_SHAPE((int64_t)(j.experts * j.rows * j.columns)));
    j.index = rlxvk_reshape(g, replaced(&j, 2), RLXVK_SHAPE(j.n.shape.dims[0]));
    j.grid = replaced(&j, 3);
    uint64_t most = MAX(j.most_experts, 1);
    for (uint64_t expert = 0; expert < j.experts; expert += most) {
        rlxvk_tensor part = append_experts(&j, expert, MIN(most, j.experts - expert));
        y = expert ? rlxvk_where(g, split_reaches(g, j.index, (int64_t)expert, j.n.shape.rank),
                                 part, y)
                   : part;
    }
    if (g->status != RLXVK_OK)
        return NODE_NONE;
    rlxvk_graph_set_name(g, y, j.n.name);
    return y.id - 1;
}
