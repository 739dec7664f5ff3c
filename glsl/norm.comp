#version 450
/*
 * Norm of rows that fit the registers of their lanes, KEEP (constant 2) elements each: one read,
 * one write. y may be x or the residual, and so may the sum. Longer rows: norm_partial,
 * norm_finish.
 *
 * The rounded mean may be off by half a unit in its last place, much against the deviations when
 * these are small: the mean deviation found with the squares corrects for it.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common.glsl"
#include "rows.glsl"

layout(push_constant) uniform block { norm_args args; };
#include "norm.glsl"
#include "norm_result.glsl"
layout(constant_id = 2) const uint KEEP = 4;
layout(set = 0, binding = 5) writeonly buffer kept { float sums[]; };

shared vec2 scratch[ROW_THREADS];
ROW_TREE(vec2, sum_of_lanes, scratch, row_add)
ROW_FIRST(vec2, first_of_lanes, scratch)

/* Element r of the row, stored as the sum on the way where that is wanted. */
float take(uint at, uint r)
{
    float v = residual_sum(at);
    if ((FLAGS & NORM_KEEPS_SUM) != 0u)
        sums[args.sum_offset + at] = v;
    return with_bias(v, r);
}

void main()
{
    uint lane = row_lane(args.lanes, args.lane_stride);
    uint o = row_output(args.lanes, args.lane_stride);
    uint end = o < args.outputs ? args.extent : 0u;
    uint start = row_start(o, args.inner, args.extent, 1u);
    float share = 1.0 / float(args.extent), mean = 0.0;

    float v[KEEP];
    [[unroll]] for (uint k = 0u; k < KEEP; k++) {
        uint r = lane + k * args.lanes;
        v[k] = r < end ? take(start + r * args.inner, r) : 0.0;
    }
    vec2 sum = vec2(0.0);
    if (!IS_RMS) {
        float pivot = first_of_lanes(vec2(v[0]), lane, args.lane_stride).x;
        [[unroll]] for (uint k = 0u; k < KEEP; k++)
            if (lane + k * args.lanes < end)
                sum.x += v[k] - pivot;
        mean = pivot + sum_of_lanes(sum, lane, args.lanes, args.lane_stride).x * share;
    }
    sum = vec2(0.0);
    [[unroll]] for (uint k = 0u; k < KEEP; k++)
        if (lane + k * args.lanes < end) {
            v[k] -= mean;
            sum += vec2(v[k], v[k] * v[k]);
        }
    sum = sum_of_lanes(sum, lane, args.lanes, args.lane_stride) * share;
    float shift = IS_RMS ? 0.0 : sum.x;
    float mean_square = IS_RMS ? sum.y : sum.y - shift * shift;
    float scale = norm_scale(mean_square, args.eps);
    [[unroll]] for (uint k = 0u; k < KEEP; k++) {
        uint r = lane + k * args.lanes;
        if (r < end)
            store_normalized(o, start + r * args.inner, r, (v[k] - shift) * scale);
    }
}
