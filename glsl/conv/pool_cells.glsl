/*
 * The cells of a pool's windows along an axis. The file that includes this has pool_args `args` and
 * the constant DILATED. Bounds are computed in padded coordinates, because those are never
 * negative. Without dilation the cells are [max(start, p), min(start + span, extent + p)) - p.
 */

/* From a cell of a window to the next. */
uint step_of(uint axis)
{
    return DILATED ? args.dilation[axis] : 1u;
}

/* The cells of x that window `o` has: x, x + step, and so on below y. */
uvec2 cells(uint axis, uint o)
{
    uint start = o * args.stride[axis], padding = args.padding[axis];
    uint first = max(start, padding);
    if (DILATED)
        first = start + (first - start + args.dilation[axis] - 1u) / args.dilation[axis] *
                            args.dilation[axis];
    uint end = min(start + args.span[axis], args.extents[axis] + padding);
    return uvec2(first, max(first, end)) - padding;
}

uint count_of(uint axis, uvec2 cells)
{
    uint length = cells.y - cells.x;
    return DILATED ? (length + args.dilation[axis] - 1u) / args.dilation[axis] : length;
}

/* How many cells of window `o` are inside x or its padding. */
uint padded_count(uint axis, uint o)
{
    uint start = o * args.stride[axis];
    return count_of(axis, uvec2(start, min(start + args.span[axis], args.padded[axis])));
}
