/* Used by norm_held.glsl: sums over the lanes of a row, and the pivot that all lanes share. */
ROW_TREE(float, sum_of_lanes, scratch, row_add)
ROW_TREE(float, squares_of_lanes, scratch_of_squares, row_add)

float pivot_in_memory(row_work w)
{
    uvec4 r = uvec4(w.first + w.head);
    bvec4 live = bvec4(r.x < w.end);
    return with_bias(residual_sum(w.start + r * args.rows.inner, live), r, live).x;
}

/*
 * The first element of the row or chunk, or the first element of its aligned quads. `own` is the
 * first element that this lane holds. If no barrier separates this read from the write of the row,
 * the value comes by a shuffle.
 */
float first_element(float own, row_work w)
{
#ifdef ROW_SUBGROUPS
    if (args.rows.lanes <= gl_SubgroupSize)
        return subgroupShuffle(own, gl_SubgroupInvocationID & ~(args.rows.lanes - 1u));
#endif
    return pivot_in_memory(w);
}
