/*
 * Norm of rows that fit the registers of their lanes: QUADS (constant 3) times four elements each.
 * A row is read once and written once. If rows are LONG (constant 4), the elements that do not fit
 * are read again before they are written. y may be x or the residual, and so may the kept sum. A
 * few rows that are longer than that use norm_partial and norm_finish instead.
 */
#include "lib/common.glsl"
#include "args/rows.h"

layout(push_constant) uniform block { norm_args args; };
#include "lib/rows.glsl"
#define NORM_HOLDS
#include "rows/norm.glsl"
#include "rows/norm_result.glsl"
QUAD_KEPT(5, sums)
SPAN_LOAD(x)
SPAN_STORE(y)
#include "rows/norm_lanes.glsl"
#include "rows/norm_again.glsl"

/* Writes rows that are not ordinary. Ordinary rows that take part are already written. */
void store_again(row_work w, float count, float pivot, float offset, float squares)
{
    bool strange = norm_strange(squares, count);
    float factor;
    take_again(w, count, pivot, offset, squares, factor);
    float scale = norm_scale(squares / count, norm_eps(args.eps, factor));
    [[dont_unroll]] for (uint i = 0u; again_goes_on(w, i); i++) {
        uint r = again_element(w, i);
        if (strange && r < w.end) {
            float v = (again_value(w, r, factor) - pivot) - offset;
            store_element(w.o, w.start + r * args.rows.inner, r, v * scale);
        }
    }
}

void main()
{
    row_work w = row_formed(row_whole(), args.x_offset);
    float count = float(args.rows.extent);
    if (SPAN)
        span_load();
#include "rows/norm_held.glsl"
    float scale = norm_scale(squares / count, args.eps);
    row_work usual = w;
    usual.end = norm_strange(squares, count) ? 0u : w.end;
    [[unroll]] for (uint k = 0u; k < HELD; k++) {
        uvec4 r = row_quad(w, k);
        store_normalized(w.o, w.start + r * args.rows.inner, r, row_live(r, usual.end),
                         v[k] * scale);
    }
    if (LONG) {
        for (uint first = QUADS; row_goes_on(usual, first); first += QUADS) {
            [[unroll]] for (uint k = 0u; k < QUADS; k++) {
                uvec4 r = row_rest(w, first + k);
                v[k] = normed_quad(w, r, rest_live(r, usual.end));
            }
            [[unroll]] for (uint k = 0u; k < QUADS; k++) {
                uvec4 r = row_rest(w, first + k);
                store_normalized(w.o, w.start + r, r, rest_live(r, usual.end),
                                 ((v[k] - pivot) - offset) * scale);
            }
        }
    }
    if (norm_vote(squares, count))
        store_again(w, count, pivot, offset, squares);
    if (SPAN)
        span_store();
}
