/* Inside main() of norm_columns.comp: the mean, from v and pivot, and the squares. */
    if ((FLAGS & NORM_IS_RMS) == 0u) {
        vec4 sum = vec4(0.0);
        [[unroll]] for (uint k = 0u; k < HELD; k++)
            if (lane + k * args.rows.lanes < end)
                sum += v[k] - pivot;
        offset = sum_of_lanes(sum, 0.0) / count;
    }
    squares = vec4(0.0);
    [[unroll]] for (uint k = 0u; k < HELD; k++) {
        vec4 d = v[k];
        if ((FLAGS & NORM_IS_RMS) == 0u && lane + k * args.rows.lanes < end)
            d = (v[k] - pivot) - offset;
        squares += d * d;
    }
    squares = sum_of_lanes(squares, count);
