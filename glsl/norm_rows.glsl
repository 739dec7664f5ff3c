/*
 * Norm of rows that fit the registers of their lanes, QUADS (constant 3) times four elements each:
 * one read, one write. y may be x or the residual, and so may the sum. Longer rows: norm_partial,
 * norm_finish.
 */
#include "common.glsl"
#include "rows.glsl"

layout(push_constant) uniform block { norm_args args; };
#include "norm.glsl"
#include "norm_result.glsl"
layout(constant_id = 3) const uint QUADS = 1;
#define NORM_SUMS_BINDING 5
#include "norm_take.glsl"

void main()
{
    uint lane = row_lane(args.lanes, args.lane_stride);
    uint o = row_output(args.lanes, args.lane_stride);
    uint end = o < args.outputs ? args.extent : 0u;
    uint start = row_start(o, args.inner, args.extent, 1u);
    float count = float(args.extent);
    take(start, 0u, lane, end);
    if (!IS_RMS)
        find_mean(start, 0u, lane, end, count);
    float scale = norm_scale(sum_of_squares(0u, lane, end) / count, args.eps);
    keep_sum(start, 0u, lane, end);
    [[unroll]] for (uint k = 0u; k < QUADS; k++) {
        uvec4 r = element_of(0u, lane, k);
        store_normalized(o, start + r * args.inner, r, row_live(r, end), deviation(k) * scale);
    }
}
