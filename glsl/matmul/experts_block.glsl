/*
 * Finds the block of a workgroup, for tiled kernels over rows sorted by expert. The includer binds
 * `plan`.
 */
#include "matmul/experts.glsl"

struct expert_block {
    uint expert; /* equal to the number of experts: rows without an expert */
    uint first;  /* position in the plan's `order` */
    uint rows;   /* 0: no such block */
};

expert_block find_block(uint index, uint tile, uint experts)
{
    if (index >= plan[experts + 1])
        return expert_block(0, 0, 0);
    uint low = 0, high = experts + 1; /* blocks[low] <= index < blocks[high] */
    while (high - low > 1) {
        uint middle = (low + high) / 2;
        if (plan[middle] <= index)
            low = middle;
        else
            high = middle;
    }
    uint first = plan[plan_starts(experts) + low] + (index - plan[low]) * tile;
    return expert_block(low, first, min(tile, plan[plan_starts(experts) + low + 1] - first));
}

uint row_at(expert_block b, uint place, uint experts)
{
    return plan[plan_order(experts) + b.first + min(place, b.rows - 1)];
}
