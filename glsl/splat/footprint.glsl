/*
 * The ellipse q(d) = d^T S^-1 d <= 1 that a splat covers, and the tiles that meet it. Because an
 * ellipse is convex, the tiles that it meets in a tile row are neighbours. They go from its
 * leftmost to its rightmost point between the row's upper and lower edge. Two kernels must agree on
 * the tiles, so that the arithmetic is `precise`.
 */
#define ELLIPSE 1.000001 /* limit of q, with room for rounding */

struct footprint {
    vec2 centre;
    float slope, spread; /* the ellipse is x = slope y +- spread sqrt(1 - y^2 / Syy), with slope
                          * Sxy/Syy and spread sqrt(det S / Syy) */
    float sxx, sxy, syy;
};

float reach_of(footprint f)
{
    precise float reach = sqrt(ELLIPSE * f.syy);
    return reach;
}

/* The tile rows that meet the ellipse: the first one, and the end. */
uvec2 tile_rows(footprint f)
{
    float size = float(args.tile_size), high = float(args.tiles_high), reach = reach_of(f);
    precise float first = ceil((f.centre.y - reach) / size) - 1.0;
    precise float last = floor((f.centre.y + reach) / size);
    if (!(last >= 0.0) || !(first < high))
        return uvec2(0u);
    return uvec2(uint(max(first, 0.0)), uint(min(last, high - 1.0)) + 1u);
}

/* The tiles of one row that meet the ellipse: the first one, and the end. */
uvec2 tiles_of_row(footprint f, uint row)
{
    float size = float(args.tile_size), wide = float(args.tiles_wide), reach = reach_of(f);
    precise float top = float(row) * size - f.centre.y;
    precise float bottom = top + size;
    float low = max(top, -reach), high = min(bottom, reach);
    if (!(low <= high))
        return uvec2(0u);
    precise float peak = f.sxy * sqrt(ELLIPSE / f.sxx); /* y of the rightmost point */
    float y_right = min(max(peak, low), high), y_left = min(max(-peak, low), high);
    precise float right = f.centre.x + f.slope * y_right +
                          f.spread * sqrt(max(ELLIPSE - y_right * y_right / f.syy, 0.0));
    precise float left = f.centre.x + f.slope * y_left -
                         f.spread * sqrt(max(ELLIPSE - y_left * y_left / f.syy, 0.0));
    precise float first = ceil(left / size) - 1.0;
    precise float last = floor(right / size);
    if (!(last >= 0.0) || !(first < wide))
        return uvec2(0u);
    return uvec2(uint(max(first, 0.0)), uint(min(last, wide - 1.0)) + 1u);
}
