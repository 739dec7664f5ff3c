/*
 * Norm of rows that fit the registers of their lanes, QUADS (constant 3) times four elements each:
 * one read, one write. y may be x or the residual, and so may the sum. Longer rows: norm_partial,
 * norm_finish.
 */
#include "lib/common.glsl"
#include "args/rows.h"
#include "lib/rows.glsl"

layout(push_constant) uniform block { norm_args args; };
#include "rows/norm.glsl"
#include "rows/norm_result.glsl"
layout(constant_id = 3) const uint QUADS = 1;
layout(set = 0, binding = 5) writeonly buffer kept { float sums[]; };
layout(set = 0, binding = 5) writeonly buffer kept4 { vec4 sums4[]; };
#include "rows/norm_lanes.glsl"

void main()
{
    uint lane = row_lane(args.lanes, args.lane_stride);
    uint o = row_output(args.lanes, args.lane_stride);
    uint first = 0u, end = o < args.outputs ? args.extent : 0u;
    uint start = row_start(o, args.inner, args.extent, 1u);
    float count = float(args.extent);
#include "rows/norm_held.glsl"
    float scale = norm_scale(squares / count, args.eps);
    [[unroll]] for (uint k = 0u; k < QUADS; k++) {
        uvec4 r = row_quad(lane, args.lanes, k);
        store_normalized(o, start + r * args.inner, r, row_live(r, end), v[k] * scale);
    }
}
