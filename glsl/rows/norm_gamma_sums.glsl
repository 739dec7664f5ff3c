/* Inside the loop of norm_gamma: deviations for v, and their squares over the row. */
        float offset = 0.0, sum = 0.0;
        if (!IS_RMS) {
            [[unroll]] for (uint k = 0u; k < QUADS; k++) {
                v[k] = mix(vec4(0.0), v[k] - pivot, row_live(row_quad(w, k), w.end));
                sum += sum_of_quad(v[k]);
            }
            offset = sum_of_lanes(sum, w.lane) / count;
        }
        squares = 0.0;
        [[unroll]] for (uint k = 0u; k < QUADS; k++) {
            if (!IS_RMS)
                v[k] = mix(vec4(0.0), v[k] - offset, row_live(row_quad(w, k), w.end));
            squares += dot(v[k], v[k]);
        }
        squares = squares_of_lanes(squares, w.lane);
