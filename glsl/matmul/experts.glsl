/*
 * Rows of x that each name an expert, and the plan that expert_sort makes of them:
 *
 *   blocks[E + 2]   first block of each bucket, and the number of blocks at the end. A block is up
 *                   to `tile` rows of one expert. Bucket E has the rows without a valid expert.
 *   starts[E + 2]   first position of each bucket in `order`, and the number of rows at the end
 *   cursor[E + 1]   scratch of the sort
 *   order[M]        rows by bucket; the order within a bucket varies, but no result depends on it
 */

/* floor(v + 1/2) without the rounding error of the sum. The result is `experts` if that is not an
 * expert. */
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
