/*
 * Inside main(): v, what a lane holds of its row (of one chunk of it), as deviations from the mean,
 * and `squares`, their sum over the row. Before: `start`, where the row begins; elements `first` to
 * `end` of it, `count` of them; `lane`. In main and not in functions, so that v stays in registers.
 *
 * A kept sum comes without a bias. It may overwrite x: it is stored once every lane has read the
 * pivot, which takes a barrier, or no reading but of a lane's own.
 */
#include "args/rows.h"

    vec4 v[QUADS];
    [[unroll]] for (uint k = 0u; k < QUADS; k++) {
        uvec4 r = first + row_quad(lane, args.lanes, k);
        bvec4 live = row_live(r, end);
        v[k] = with_bias(residual_sum(start + r * args.inner, live), r, live);
    }
    float pivot = 0.0, offset = 0.0, squares = 0.0;
    if (!IS_RMS) {
        pivot = first_element(v[0].x, start, first, end);
        float sum = 0.0;
        [[unroll]] for (uint k = 0u; k < QUADS; k++) {
            bvec4 live = row_live(first + row_quad(lane, args.lanes, k), end);
            vec4 d = mix(vec4(0.0), v[k] - pivot, live);
            sum += (d.x + d.y) + (d.z + d.w);
        }
        offset = sum_of_lanes(sum, lane, args.lanes, args.lane_stride) / count;
    }
    [[unroll]] for (uint k = 0u; k < QUADS; k++) {
        uvec4 r = first + row_quad(lane, args.lanes, k);
        bvec4 live = row_live(r, end);
        if ((FLAGS & NORM_KEEPS_SUM) != 0u)
            write_sum(args.sum_offset + start + r * args.inner, live, v[k]);
        if (!IS_RMS)
            v[k] = mix(vec4(0.0), (v[k] - pivot) - offset, live);
        squares += dot(v[k], v[k]);
    }
    squares = squares_of_lanes(squares, lane, args.lanes, args.lane_stride);
