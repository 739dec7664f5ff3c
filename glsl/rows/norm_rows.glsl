/*
 * Norm of rows that fit the registers of their lanes, QUADS (constant 3) times four elements each:
 * one read, one write. Where rows are LONG (constant 4) what is beyond that is read again to be
 * written. y may be x or the residual, and so may the sum. Few rows longer than that: norm_partial,
 * norm_finish.
 */
#include "lib/common.glsl"
#include "args/rows.h"

layout(push_constant) uniform block { norm_args args; };
#define ROW_VOTES
#include "lib/rows.glsl"
#define NORM_HOLDS
#include "rows/norm.glsl"
#include "rows/norm_result.glsl"
QUAD_KEPT(5, sums)
SPAN_LOAD(x)
SPAN_STORE(y)
#include "rows/norm_lanes.glsl"

void main()
{
    row_work w = row_formed(row_whole(), args.x_offset);
    float count = float(args.rows.extent);
    if (SPAN)
        span_load();
#include "rows/norm_held.glsl"
    float scale = norm_scale(squares / count, norm_eps(args.eps, factor));
    [[unroll]] for (uint k = 0u; k < HELD; k++) {
        uvec4 r = row_quad(w, k);
        store_normalized(w.o, w.start + r * args.rows.inner, r, row_live(r, w.end), v[k] * scale);
    }
    if (LONG) {
        for (uint first = QUADS; row_goes_on(w, first); first += QUADS) {
            [[unroll]] for (uint k = 0u; k < QUADS; k++) {
                uvec4 r = row_rest(w, first + k);
                v[k] = norm_scaled(normed_quad(w, r, rest_live(r, w.end)), factor);
            }
            [[unroll]] for (uint k = 0u; k < QUADS; k++) {
                uvec4 r = row_rest(w, first + k);
                store_normalized(w.o, w.start + r, r, rest_live(r, w.end),
                                 ((v[k] - pivot) - offset) * scale);
            }
        }
    }
    if (SPAN)
        span_store();
}
