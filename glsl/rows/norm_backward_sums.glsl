/* Inside main() of norm_backward: deviations for v, and the sums over the row. */
    if (!IS_RMS) {
        float sum = 0.0;
        [[unroll]] for (uint k = 0u; k < HELD; k++) {
            bvec4 live = row_live(w.first + row_quad(w, k), w.end);
            sum += sum_of_quad(mix(vec4(0.0), v[k] - pivot, live));
        }
        offset = sum_of_lanes(sum, w.lane) / count;
    }
    sums = vec3(0.0);
    [[unroll]] for (uint k = 0u; k < HELD; k++) {
        bvec4 live = row_live(w.first + row_quad(w, k), w.end);
        if (!IS_RMS)
            v[k] = mix(vec4(0.0), (v[k] - pivot) - offset, live);
        sums += vec3(dot(v[k], v[k]), sum_of_quad(u[k]), dot(u[k], v[k]));
    }
    sums = sums_of_lanes(sums, w.lane);
