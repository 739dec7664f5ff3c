/*
 * Rows of x that each name an expert, and the plan expert_sort makes of them:
 *
 *   blocks[E + 2]   first block of each bucket, and their number at the end; a block is up to
 *                   `tile` rows of one expert; bucket E holds the rows whose index is no expert
 *   starts[E + 2]   first place of each bucket in `order`, and the number of rows at the end
 *   cursor[E + 1]   scratch of the sort
 *   order[M]        rows by bucket; within one in no fixed order, which no result depends on
 */

/* floor(v + 1/2) without the rounding of the sum; `experts` where that is no expert. */
uint expert_of(float v, uint experts)
{
    float below = floor(v);
    float nearest = v - below >= 0.5 ? below + 1 : below;
    if (is_nan(v) || !(nearest >= 0) || nearest >= 4294967040.0)
        return experts;
    return min(uint(nearest), experts);
}

uint plan_starts(uint experts)
{
    return experts + 2;
}
uint plan_cursor(uint experts)
{
    return 2 * (experts + 2);
}
uint plan_order(uint experts)
{
    return 2 * (experts + 2) + experts + 1;
}
