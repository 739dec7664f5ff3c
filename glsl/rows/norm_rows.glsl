/*
 * Norm of rows that fit the registers of their lanes, QUADS (constant 3) times four elements each:
 * one read, one write. y may be x or the residual, and so may the sum. Longer rows: norm_partial,
 * norm_finish.
 */
#include "lib/common.glsl"
#include "args/rows.h"

layout(push_constant) uniform block { norm_args args; };
#include "lib/rows.glsl"
#include "rows/norm.glsl"
#include "rows/norm_result.glsl"
layout(constant_id = 3) const uint QUADS = 1;
QUAD_OUTPUT(5, sums)
#include "rows/norm_lanes.glsl"

void main()
{
    row_work w = row_whole();
    float count = float(args.rows.extent);
#include "rows/norm_held.glsl"
    float scale = norm_scale(squares / count, args.eps);
    [[unroll]] for (uint k = 0u; k < QUADS; k++) {
        uvec4 r = row_quad(w.lane, k);
        store_normalized(w.o, w.start + r * args.rows.inner, r, row_live(r, w.end), v[k] * scale);
    }
}
