/*
 * Inside main(): v, what a lane holds of its row (of one chunk of it), as deviations from the mean,
 * and `squares`, their sum over the row. Before: the row_work `w`, and
 * `count`, how many elements it has. In main and not in functions, so that v stays in registers.
 *
 * A kept sum comes without a bias. It may overwrite x: it is stored once every lane has read the
 * pivot, which takes a barrier, or no reading but of a lane's own.
 */
#include "args/rows.h"

    vec4 v[QUADS];
    [[unroll]] for (uint k = 0u; k < QUADS; k++) {
        uvec4 r = w.first + row_quad(w.lane, k);
        bvec4 live = row_live(r, w.end);
        v[k] = with_bias(residual_sum(w.start + r * args.rows.inner, live), r, live);
    }
    float pivot = 0.0, offset = 0.0, squares = 0.0;
    if (!IS_RMS) {
        pivot = first_element(v[0].x, w);
        float sum = 0.0;
        [[unroll]] for (uint k = 0u; k < QUADS; k++) {
            bvec4 live = row_live(w.first + row_quad(w.lane, k), w.end);
            vec4 d = mix(vec4(0.0), v[k] - pivot, live);
            sum += (d.x + d.y) + (d.z + d.w);
        }
        offset = sum_of_lanes(sum, w.lane) / count;
    }
    [[unroll]] for (uint k = 0u; k < QUADS; k++) {
        uvec4 r = w.first + row_quad(w.lane, k);
        bvec4 live = row_live(r, w.end);
        if ((FLAGS & NORM_KEEPS_SUM) != 0u)
            write_sums(args.sum_offset + w.start + r * args.rows.inner, live, v[k]);
        if (!IS_RMS)
            v[k] = mix(vec4(0.0), (v[k] - pivot) - offset, live);
        squares += dot(v[k], v[k]);
    }
    squares = squares_of_lanes(squares, w.lane);
