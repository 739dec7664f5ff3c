#version 450
/*
 * Softmax of rows that fit the registers of their lanes, KEEP (constant 1) elements each: one
 * read, one write. y may be x. Longer rows: softmax_partial, softmax_finish.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common.glsl"
#include "rows.glsl"
#include "softmax.glsl"

layout(constant_id = 1) const uint KEEP = 4;
layout(push_constant) uniform block { softmax_args args; };
layout(set = 0, binding = 0) readonly buffer source { float x[]; };
layout(set = 0, binding = 1) writeonly buffer target { float y[]; };

shared float scratch[ROW_THREADS];
ROW_TREE(float, largest_of_lanes, scratch, row_larger)
ROW_TREE(float, sum_of_lanes, scratch, row_add)

void main()
{
    uint lane = row_lane(args.lanes, args.lane_stride);
    uint o = row_output(args.lanes, args.lane_stride);
    uint end = o < args.outputs ? args.extent : 0u;
    uint start = row_start(o, args.inner, args.extent, 1u);
    uint step_size = args.lanes * args.inner;
    uint from = args.x_offset + start + lane * args.inner;
    uint to = args.y_offset + start + lane * args.inner;

    float v[KEEP];
    float m = -INFINITY;
    [[unroll]] for (uint k = 0u; k < KEEP; k++)
        v[k] = lane + k * args.lanes < end ? x[from + k * step_size] : -INFINITY;
    [[unroll]] for (uint k = 0u; k < KEEP; k++)
        m = row_larger(m, v[k]);
    m = largest_of_lanes(m, lane, args.lanes, args.lane_stride);

    float s = 0.0;
    [[unroll]] for (uint k = 0u; k < KEEP; k++) {
        v[k] = decay(v[k] - m);
        s += v[k];
    }
    s = sum_of_lanes(s, lane, args.lanes, args.lane_stride);
    [[unroll]] for (uint k = 0u; k < KEEP; k++)
        if (lane + k * args.lanes < end)
            y[to + k * step_size] = is_plain(m) ? v[k] / s : NAN_VALUE;
}
