/* What norm_held.glsl calls: sums over the lanes of a row, the element that all of them know. */
ROW_TREE(float, sum_of_lanes, scratch, row_add)
ROW_TREE(float, squares_of_lanes, scratch_of_squares, row_add)

float pivot_in_memory(row_work w)
{
    uvec4 r = uvec4(w.first + w.head);
    bvec4 live = bvec4(r.x < w.end);
    return with_bias(residual_sum(w.start + r * args.rows.inner, live), r, live).x;
}

/* The row's (chunk's) first element, or the first of its quads; `own`: the first this lane holds.
 * Where no barrier will part this read from the row's being written, it comes by a shuffle. */
float first_element(float own, row_work w)
{
#ifdef ROW_SUBGROUPS
    if (args.rows.lanes <= gl_SubgroupSize)
        return subgroupShuffle(own, gl_SubgroupInvocationID & ~(args.rows.lanes - 1u));
#endif
    return pivot_in_memory(w);
}
