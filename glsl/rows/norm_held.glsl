/*
 * Inside main(): v, what a lane holds of its row (of one chunk of it), times `factor`; the mean of
 * that, pivot + offset; `squares`, the sum of squared deviations from it over the row. The factor
 * is 1 but for rows whose squares do not fit f32. Before: the row_work `w`, and `count`, how many
 * elements it has. In main and not in functions, so that v stays in registers.
 *
 * A kept sum comes without a bias. It may overwrite x: it is stored once every lane has read the
 * pivot, which takes a barrier, or no reading but of a lane's own.
 */
#include "args/rows.h"

    vec4 v[HELD];
    float pivot = 0.0, offset = 0.0, squares = 0.0;
    vec3 rest = vec3(0.0); /* of what is not held, in deviations from the pivot */
#ifdef NORM_HOLDS
    if (LONG) { /* what is not held comes first, so that all registers are free for it */
        if (!IS_RMS)
            pivot = pivot_in_memory(w);
        for (uint first = QUADS; row_goes_on(w, first); first += QUADS) {
            [[unroll]] for (uint k = 0u; k < QUADS; k++) {
                uvec4 r = row_rest(w, first + k);
                v[k] = normed_quad(w, r, rest_live(r, w.end));
            }
            [[unroll]] for (uint k = 0u; k < QUADS; k++) {
                if (IS_RMS)
                    rest.z += dot(v[k], v[k]);
                else if (rest_live(row_rest(w, first + k), w.end).x)
                    join_quad(rest, v[k] - pivot);
            }
        }
    }
#endif
    [[unroll]] for (uint k = 0u; k < HELD; k++) {
        uvec4 r = w.first + row_quad(w, k);
        v[k] = normed_quad(w, r, row_live(r, w.end));
    }
    if (!IS_RMS && !LONG)
        pivot = first_element(v[0].x, w);
#include "rows/norm_offset.glsl"
    if ((FLAGS & NORM_KEEPS_SUM) != 0u) {
        [[unroll]] for (uint k = 0u; k < HELD; k++) {
            uvec4 r = w.first + row_quad(w, k);
            write_sums(args.sum_offset + w.start + r * args.rows.inner, row_live(r, w.end), v[k]);
        }
    }
#include "rows/norm_squares.glsl"
    float factor = w.live ? norm_factor(squares / count + args.eps, pivot) : 1.0;
    if (row_vote(factor != 1.0, w)) {
        float offset_before = offset, squares_before = squares;
        row_barrier();
        pivot = norm_scaled(pivot, factor);
        rest = vec3(0.0);
#ifdef NORM_HOLDS
        if (LONG) {
            for (uint k = QUADS; row_goes_on(w, k); k++) {
                uvec4 r = row_rest(w, k);
                bvec4 live = rest_live(r, w.end);
                vec4 beyond = norm_scaled(normed_quad(w, r, live), factor);
                if (IS_RMS)
                    rest.z += dot(beyond, beyond);
                else if (live.x)
                    join_quad(rest, beyond - pivot);
            }
        }
#endif
        [[unroll]] for (uint k = 0u; k < HELD; k++)
            v[k] = norm_scaled(v[k], factor);
#include "rows/norm_offset.glsl"
#include "rows/norm_squares.glsl"
        if (factor == 1.0) { /* it only went along: not one bit is another */
            offset = offset_before;
            squares = squares_before;
        }
    }
