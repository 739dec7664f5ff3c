/* Code that pattern fusions share. See fuse.h for their conditions. */
#include "op/movement/movement.h"
#include "rewrite/fuse.h"

/* Old node `old` as [N]. The reshape of a constant is folded by the last pass; any other is a
 * view. */
static uint32_t flat_bias(pass *p, uint32_t old)
{
    const node *bias = &p->nodes[old];
    shape_attributes flat = {{.rank = 1, .dims = {bias->shape.dims[bias->shape.rank - 1]}}};
    uint32_t id = p->map[old];
    return bias->shape.rank == 1 ? id : op_append(p->graph, OP_reshape, &id, 1, &flat, NULL);
}

uint32_t fuse_replace(pass *p, uint32_t id, fusion_match match)
{
    fusion f = {0};
    uint32_t inputs[ARRAY_COUNT(f.inputs)];
    if (!match(p, id, &f))
        return NODE_NONE;
    for (uint32_t i = 0; i < f.count; i++) {
        inputs[i] = f.flat_bias && i == 2 ? flat_bias(p, f.inputs[i]) : p->map[f.inputs[i]];
        if (inputs[i] == NODE_NONE)
            return NODE_NONE;
    }
    return op_append(p->graph, f.op, inputs, f.count, &f.attributes, p->nodes[id].name);
}

bool fuse_is_row(const node *bias, int64_t n)
{
    uint32_t rank = bias->shape.rank;
    return rank >= 1 && bias->shape.dims[rank - 1] == n && shape_numel(&bias->shape) == (uint64_t)n;
}

bool fuse_no_write_since(const pass *p, uint32_t first, uint32_t id)
{
    return !rewrite_writes_between(p, first, id) ||
           rewrite_miss(p, "a tensor is written in place after %%%u", first);
}
