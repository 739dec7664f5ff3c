/*
 * Code included inside main(), not a function, so that v stays in registers. It computes:
 *
 * - v: the elements of the row or chunk that this lane holds, as deviations from the mean pivot +
 *   offset
 * - `squares`: the sum of their squares over the row
 *
 * The includer declares the row_work `w`, and `count`, the number of elements of the row or chunk.
 *
 * With NORM_TURNS the code runs in a loop over `turn`. If `turn` is above 0, the row is taken a
 * second time, times `factor`, with the pivot `pivot_again`.
 *
 * If the sum is kept, there is no bias. The sum may overwrite x. Therefore it is stored only after
 * every lane has read the pivot. This takes a barrier, unless a lane reads only its own elements.
 */
#include "args/rows.h"

    vec4 v[HELD];
    float pivot = 0.0, offset = 0.0, squares = 0.0;
    vec3 rest = vec3(0.0); /* moments of the elements not held, as deviations from the pivot */
#ifdef NORM_HOLDS
    if (LONG) { /* elements that are not held come first, while all registers are free */
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
    if (turn > 0u) {
        [[unroll]] for (uint k = 0u; k < HELD; k++) {
            uvec4 r = w.first + row_quad(w, k);
            if ((FLAGS & NORM_KEEPS_SUM) != 0u) /* the sum may have overwritten x */
                v[k] = read_sums(args.sum_offset + w.start + r * args.rows.inner,
                                 row_live(r, w.end), 0.0);
            v[k] = norm_scaled(v[k], factor);
        }
    }
    const bool first_turn = turn == 0u;
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
