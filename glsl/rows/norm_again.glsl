/*
 * The work of norm_held.glsl for rows whose squares do not fit f32 (see norm_factor.glsl). The rows
 * are read again, one element at a time, so that this path takes no registers from ordinary rows. A
 * lane reads only elements that it holds and has written itself, because the kept sum may have
 * overwritten x.
 */
bool norm_strange(float part, float count)
{
    return norm_strange(part, count, args.eps);
}
ROW_VOTE(float, norm_vote, scratch_of_squares, norm_strange)

/* Index in the row of element i of this lane's share, held in registers or not. The index may lie
 * beyond the row's end. again_goes_on tells whether any lane still has an element i. */
uint again_element(row_work w, uint i)
{
    uint r = w.first + row_element(w, i);
    if (LONG && i >= 4u * HELD) {
        uint quad = row_rest(w, (i >> 2) - HELD + QUADS).x;
        r = quad + 3u < w.end ? quad + (i & 3u) : ~0u;
    }
    return r;
}
bool again_goes_on(row_work w, uint i)
{
    return i < 4u * HELD || (LONG && row_goes_on(w, (i >> 2) - HELD + QUADS));
}

/* Element r of the row of x + residual + bias, times factor. */
float again_value(row_work w, uint r, float factor)
{
    const bool kept = (FLAGS & NORM_KEEPS_SUM) != 0u;
    uint at = w.start + r * args.rows.inner;
    float v = 0.0;
    if (kept)
        v = sums[args.sum_offset + at];
    else if (SPAN)
        v = span[at - span_first()];
    else
        v = x[args.x_offset + at];
    if (!kept && (FLAGS & NORM_HAS_RESIDUAL) != 0u)
        v += residual[args.residual_offset + at];
    if (!kept && (FLAGS & NORM_HAS_BIAS) != 0u)
        v += bias[args.bias_offset + r];
    return norm_scaled(v, factor);
}

/*
 * Replaces the statistics of the ordinary path by those of the row times a factor, and returns that
 * factor. If a row takes part only because another row of its workgroup needs it, its results are
 * meaningless.
 */
void take_again(row_work w, float count, inout float pivot, inout float offset,
                inout float squares, out float factor)
{
    factor = w.live ? norm_factor(squares / count + args.eps, pivot) : 1.0;
    pivot = norm_scaled(pivot, factor);
    float low = 0.0;
    offset = squares = 0.0;
    if (!IS_RMS) {
        [[dont_unroll]] for (uint i = 0u; again_goes_on(w, i); i++) {
            uint r = again_element(w, i);
            if (r < w.end)
                add_compensated(offset, low, again_value(w, r, factor) - pivot);
        }
        offset = sum_of_lanes(compensated_value(offset, low), w.lane) / count;
        low = 0.0;
    }
    [[dont_unroll]] for (uint i = 0u; again_goes_on(w, i); i++) {
        uint r = again_element(w, i);
        if (r < w.end) {
            float d = (again_value(w, r, factor) - pivot) - offset;
            add_compensated(squares, low, d * d);
        }
    }
    squares = compensated_value(squares, low);
    /*
     * Take the scratch that the last tree did not use, because only that is free without a barrier.
     */
    squares = IS_RMS ? sum_of_lanes(squares, w.lane) : squares_of_lanes(squares, w.lane);
}
