/*
 * Inside main(): v, what a lane holds of its row (of one chunk of it), as deviations from the mean
 * pivot + offset, and `squares`, their sum of squares over the row. Before: the row_work `w`, and
 * `count`, how many elements it has. In main and not in functions, so that v stays in registers.
 *
 * NORM_TURNS: inside `turn`, which is above 0 for a row that is taken again, times `factor`, with
 * the pivot `pivot_again`. If TURNS is false, no row is.
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
#ifdef NORM_TURNS
    if (TURNS && turn > 0u) {
        [[unroll]] for (uint k = 0u; k < HELD; k++) {
            uvec4 r = w.first + row_quad(w, k);
            if ((FLAGS & NORM_KEEPS_SUM) != 0u) /* it may be where x was */
                v[k] = read_sums(args.sum_offset + w.start + r * args.rows.inner,
                                 row_live(r, w.end), 0.0);
            v[k] = norm_scaled(v[k], factor);
        }
    }
    const bool first_turn = !TURNS || turn == 0u;
#else
    const bool first_turn = true;
    const float pivot_again = 0.0;
#endif
    if (!IS_RMS && !LONG)
        pivot = first_turn ? first_element(v[0].x, w) : pivot_again;
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
    [[unroll]] for (uint k = 0u; k < HELD; k++) {
        uvec4 r = w.first + row_quad(w, k);
        bvec4 live = row_live(r, w.end);
        if ((FLAGS & NORM_KEEPS_SUM) != 0u && first_turn)
            write_sums(args.sum_offset + w.start + r * args.rows.inner, live, v[k]);
        if (!IS_RMS)
            v[k] = mix(vec4(0.0), (v[k] - pivot) - offset, live);
        squares += dot(v[k], v[k]);
    }
    squares = squares_of_lanes(squares + rest.z, w.lane);
