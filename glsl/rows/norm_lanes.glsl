/* What norm_held.glsl calls: sums over the lanes of a row, the element that all of them know. */
QUAD_WRITER(write_sum, sums, sums4)
ROW_TREE(float, sum_of_lanes, scratch, row_add)
ROW_TREE(float, squares_of_lanes, scratch_of_squares, row_add)

/* The row's (chunk's) first element; `own`: the first this lane holds. Where no barrier will part
 * this read from the row's being written, it comes by a shuffle. */
float first_element(float own, uint start, uint first, uint end)
{
#ifdef ROW_SUBGROUPS
    if (args.lanes <= gl_SubgroupSize)
        return subgroupShuffle(own, gl_SubgroupInvocationID & ~(args.lanes - 1u));
#endif
    uvec4 r = uvec4(first);
    bvec4 live = bvec4(first < end);
    return with_bias(residual_sum(start + r * args.inner, live), r, live).x;
}
