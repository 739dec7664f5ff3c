/* Inside main(): squares, the sum of squared deviations from the mean. */
    squares = 0.0;
    [[unroll]] for (uint k = 0u; k < HELD; k++) {
        bvec4 live = row_live(w.first + row_quad(w, k), w.end);
        vec4 d = v[k];
        if (!IS_RMS)
            d = mix(vec4(0.0), (v[k] - pivot) - offset, live);
        squares += dot(d, d);
    }
    squares = squares_of_lanes(squares + rest.z, w.lane);
