/* Inside main(), from v, pivot and rest: offset, how far the mean is from the pivot. */
    if (!IS_RMS) {
        float sum = rest.x * rest.y;
        [[unroll]] for (uint k = 0u; k < HELD; k++) {
            bvec4 live = row_live(w.first + row_quad(w, k), w.end);
            vec4 d = mix(vec4(0.0), v[k] - pivot, live);
            sum += (d.x + d.y) + (d.z + d.w);
        }
        offset = sum_of_lanes(sum, w.lane) / count;
        float apart = rest.y - offset;
        rest.z += rest.x * apart * apart;
    }
